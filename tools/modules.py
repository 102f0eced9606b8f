"""The list of all modules at the end of ARCHITECTURE.md, made from their docstrings.

python tools/modules.py --write     puts it there (`make modules`)
python tools/modules.py             prints it
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
HEADING = "## Every module\n"
PACKAGES = ("mutiny", "longboat")


def sentence(path: Path) -> str:
    """What a module says of itself first."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return first.partition(". ")[0].rstrip(".:") + "."


def folders() -> Iterator[tuple[Path, list[Path]]]:
    """Every folder with its modules; those that only mark a package are left out."""
    for package in PACKAGES:
        top = ROOT / "src" / package
        # What agents of longboat's sessions write are no modules of ours.
        ours = [path for path in top.rglob("*.py") if "projects" not in path.parts]
        for folder in sorted({path.parent for path in ours}):
            modules = [path for path in sorted(folder.glob("*.py")) if path.read_text().strip()]
            if modules:
                yield folder.relative_to(ROOT / "src"), modules


def listed() -> str:
    """The whole list, as Markdown."""
    lines = [HEADING, "Made from the docstrings by `make modules`; a test compares.\n"]
    for folder, modules in folders():
        lines.append(f"### `{folder}/`\n")
        lines += [f"- `{path.name}`: {sentence(path)}" for path in modules]
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Print or write the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="Put it into ARCHITECTURE.md.")
    if not parser.parse_args().write:
        sys.stdout.write(listed())
        return 0
    before = PAGE.read_text(encoding="utf-8").partition(HEADING)[0]
    PAGE.write_text(before + listed(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
