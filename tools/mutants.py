"""`make mutants`: how many faults that nobody wrote by hand does Mutiny find in longboat?

Mutants are made by operators (`mutation/operators.py`) of lines that the scenarios reach, chosen by a
seed, and each is tried as a user would try a program: the scenarios that reach the line, exploration, the
sweep that fits; default settings, bounded in time. The table says what found each and by which rule.
Survivors keep their diff: each is a missing rule, scenario, fault or domain, or equivalent. A run that was
interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import random
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from mutation import reach  # noqa: E402
from mutation.operators import Edit, changes_meaning, edits_of  # noqa: E402
from mutation.trials import Finding, try_mutant  # noqa: E402

PACKAGE = ROOT / "src" / "longboat"
_APART = ("plants.py", "planting.py", "view.py", "arguments.py", "__init__.py")
"""Tables of plants, and what only people read."""


@dataclass(frozen=True)
class Part:
    """A part of longboat: its files and the targets that run it."""

    files: str
    targets: tuple[str, ...]


PARTS = {
    "workers": Part("*.py", ("longboat",)),
    "board": Part("board/*.py", ("longboat-board", "longboat-broker", "longboat-crew")),
}


@dataclass(frozen=True)
class Mutant:
    """One edit of one file."""

    file: str
    edit: Edit

    @property
    def name(self) -> str:
        digest = hashlib.sha256(f"{self.file}{self.edit}".encode()).hexdigest()[:8]
        return f"{self.file}:{self.edit.line} {self.edit.operator} {digest}"

    @property
    def slug(self) -> str:
        return self.name.rsplit(" ", 1)[1]

    def diff(self) -> str:
        old = (PACKAGE / self.file).read_bytes()
        before, after = old.decode().splitlines(), self.edit.apply(old).decode().splitlines()
        return "\n".join(
            difflib.unified_diff(before, after, self.file, self.file, lineterm="", n=2)
        )


def choose(
    part: Part, reached: dict[str, list[reach.Reach]], count: int, seed: int
) -> list[Mutant]:
    """So many mutants of reached lines; operators take turns, so that none crowds out the others."""
    by_operator: dict[str, list[Mutant]] = defaultdict(list)
    for path in sorted(PACKAGE.glob(part.files)):
        name = path.relative_to(PACKAGE).as_posix()
        if name.endswith(_APART):
            continue
        for edit in edits_of(path.read_bytes()):
            if f"{name}:{edit.line}" in reached:
                by_operator[edit.operator].append(Mutant(name, edit))
    rows = [by_operator[operator] for operator in sorted(by_operator)]
    dice = random.Random(seed)
    for row in rows:
        dice.shuffle(row)
    chosen: list[Mutant] = []
    while any(rows) and len(chosen) < count:
        for row in rows:
            while row:
                mutant = row.pop()
                if changes_meaning((PACKAGE / mutant.file).read_bytes(), mutant.edit):
                    chosen.append(mutant)
                    break
    return chosen[:count]


def run(
    mutant: Mutant, places: list[reach.Reach], folder: Path, seconds: float, seed: int
) -> Finding:
    """Make the mutant, try it, clear it away."""
    scratch = folder / mutant.slug
    shutil.rmtree(scratch, ignore_errors=True)
    program = reach.program_of(PACKAGE, scratch / "program")
    changed = scratch / "program" / "longboat" / mutant.file
    changed.write_bytes(mutant.edit.apply(changed.read_bytes()))
    mutiny = Path(sys.executable).parent / "mutiny"
    try:
        return try_mutant(mutiny, program, scratch / "runs", places, mutant.diff(), seconds, seed)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def main() -> int:
    """Choose, try, tell."""
    options = _options()
    part = PARTS[options.part]
    folder = ROOT / ".mutants" / options.part
    folder.mkdir(parents=True, exist_ok=True)
    reached = _reached(part, folder)
    mutants = choose(part, reached, options.count, options.seed)
    results = folder / f"seed-{options.seed}.jsonl"
    known = {row["name"]: row for row in _rows(results)}
    todo = [mutant for mutant in mutants if mutant.name not in known]
    print(f"{len(mutants)} mutants of {options.part}, {len(mutants) - len(todo)} already tried")
    started = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool, results.open("a", encoding="utf-8") as file:
        running = {
            pool.submit(
                run,
                mutant,
                reached[f"{mutant.file}:{mutant.edit.line}"],
                folder,
                options.seconds,
                options.seed,
            ): mutant
            for mutant in todo
        }
        for done, future in enumerate(as_completed(running), 1):
            mutant, finding = running[future], future.result()
            row = {"name": mutant.name, **asdict(finding), "diff": mutant.diff()}
            file.write(json.dumps(row) + "\n")
            file.flush()
            known[mutant.name] = row
            left = (time.monotonic() - started) / done * (len(todo) - done)
            said = f"{finding.by}: {finding.rule}" if finding.by else "SURVIVED"
            print(
                f"{done:3d} of {len(todo)} {mutant.name[:44]:<44} {said} ({left / 60:.0f} min left)",
                flush=True,
            )
    _tell([known[mutant.name] for mutant in mutants if mutant.name in known], folder)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--part", choices=sorted(PARTS), default="workers")
    parser.add_argument("--count", type=int, default=60, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="which mutants, and which explorations")
    parser.add_argument("--jobs", type=int, default=2, help="mutants side by side")
    parser.add_argument("--seconds", type=float, default=180, help="at most so long for a mutant")
    return parser.parse_args()


def _reached(part: Part, folder: Path) -> dict[str, list[reach.Reach]]:
    text = b"".join(path.read_bytes() for path in sorted(PACKAGE.rglob("*.py")))
    kept = folder / f"reach-{hashlib.sha256(text).hexdigest()[:12]}.json"
    if not kept.exists():
        scratch = folder / "reach"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        reach.save(reach.measure(PACKAGE, part.targets, scratch, print), kept)
        shutil.rmtree(scratch, ignore_errors=True)
    return reach.load(kept)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        yield json.loads(line)


def _tell(rows: list[dict[str, str]], folder: Path) -> None:
    survivors = [row for row in rows if not row["by"]]
    print("\n| mutant | found by | rule |\n|---|---|---|")
    for row in sorted(rows, key=lambda row: row["name"]):
        print(
            f"| {row['name'].rsplit(' ', 1)[0]} | {row['by'] or '**survived**'} | {row['rule']} |"
        )
    print(f"\nfound {len(rows) - len(survivors)} of {len(rows)}; by: ", end="")
    print(
        ", ".join(
            f"{by.split()[0]} {n}"
            for by, n in Counter(row["by"].partition(" ")[0] for row in rows if row["by"]).items()
        )
    )
    if survivors:
        path = folder / "survivors.diff"
        path.write_text(
            "\n\n".join(f"# {row['name']}\n{row['diff']}" for row in survivors), encoding="utf-8"
        )
        print(f"survivors: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main())
