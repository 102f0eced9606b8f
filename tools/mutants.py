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
import py_compile
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from mutation import reach  # noqa: E402
from mutation.equivalent import EQUIVALENT  # noqa: E402
from mutation.operators import (  # noqa: E402
    Edit,
    changes_meaning,
    constant_at,
    edits_of,
    statements_of,
    uses_of,
)
from mutation.trials import Finding, try_mutant  # noqa: E402

_APART = ("plants.py", "planting.py", "view.py", "arguments.py", "__init__.py")
"""Tables of plants, and what only people read."""


@dataclass(frozen=True)
class Part:
    """A part of longboat: its files and the targets that run it."""

    files: str
    targets: tuple[str, ...]


PARTS = {
    "batch": Part("batch/*.py", ("longboat-batch",)),
    "workers": Part("workers/*.py", ("longboat",)),
    "spawns": Part("spawns/*.py", ("longboat-spawns",)),
    "session": Part("session/*.py", ("longboat-session",)),
    "board": Part(
        "board/*.py", ("longboat-board", "longboat-broker", "longboat-crew", "longboat-fleet")
    ),
}


@dataclass(frozen=True)
class Mutant:
    """One edit of one file of a package."""

    package: Path
    file: str
    edit: Edit
    statement: int
    """The line on which the changed statement begins."""

    @property
    def name(self) -> str:
        """Stays the same when other places of the file change."""
        text = "\n".join(line for line in self.diff().splitlines() if not line.startswith("@@"))
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        return f"{self.title} {digest}"

    @property
    def title(self) -> str:
        """Place and operator."""
        return f"{self.file}:{self.edit.line} {self.edit.operator}"

    @property
    def is_one(self) -> bool:
        """The changed file still parses, and says something else."""
        return changes_meaning((self.package / self.file).read_bytes(), self.edit)

    @property
    def place(self) -> str:
        """How the map of what was reached calls the changed statement."""
        return f"{self.file}:{self.statement}"

    def lines(self, reached: Collection[str]) -> tuple[str, ...]:
        """What has to be reached to see the change: its line, or of a constant, which every run reaches,
        the lines that use it.
        """
        name = constant_at((self.package / self.file).read_bytes(), self.statement)
        part = (self.package / self.file).parent
        used = {
            f"{path.relative_to(self.package).as_posix()}:{line}"
            for path in (part.rglob("*.py") if name else ())
            for line in uses_of(path.read_bytes(), name)
        }
        return tuple(sorted(used & set(reached))) or (self.place,)

    @property
    def slug(self) -> str:
        return self.name.rsplit(" ", 1)[1]

    def diff(self, context: int = 2) -> str:
        old = (self.package / self.file).read_bytes()
        before, after = old.decode().splitlines(), self.edit.apply(old).decode().splitlines()
        lines = difflib.unified_diff(before, after, self.file, self.file, lineterm="", n=context)
        return "\n".join(lines)


def all_mutants(
    package: Path, part: Part, reached: dict[str, list[reach.Reach]]
) -> Iterator[Mutant]:
    """Every mutant of a line that was reached."""
    for path in sorted(package.glob(part.files)):
        name, text = path.relative_to(package).as_posix(), path.read_bytes()
        if name.endswith(_APART):
            continue
        statements = statements_of(text)
        for edit in edits_of(text):
            mutant = Mutant(package, name, edit, statements[edit.line])
            if mutant.place in reached:
                yield mutant


def choose(mutants: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many of them; operators take turns, so that none crowds out the others."""
    by_operator: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_operator[mutant.edit.operator].append(mutant)
    rows = [by_operator[operator] for operator in sorted(by_operator)]
    dice = random.Random(seed)
    for row in rows:
        dice.shuffle(row)
    chosen: list[Mutant] = []
    while any(rows) and len(chosen) < count:
        for row in rows:
            while row and not row[-1].is_one:
                row.pop()
            chosen += [row.pop()] if row else []
    return chosen[:count]


def chosen_before(mutants: Iterable[Mutant], names: Collection[str]) -> list[Mutant]:
    """Those with these names."""
    begun = {name.rsplit(" ", 1)[0] for name in names}
    return [one for one in mutants if one.title in begun and one.name in names]


def run(
    mutant: Mutant,
    reached: dict[str, list[reach.Reach]],
    folder: Path,
    options: argparse.Namespace,
) -> Finding:
    """Make the mutant, try it, clear it away. A box hides what stands beside it: they lie apart."""
    home = folder / "programs" / mutant.slug
    shutil.rmtree(home, ignore_errors=True)
    program = reach.program_of(mutant.package, home)
    changed = home / "longboat" / mutant.file
    changed.write_bytes(mutant.edit.apply(changed.read_bytes()))
    py_compile.compile(str(changed), doraise=True)
    try:
        with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as runs:
            text = mutant.diff(context=0)
            seconds, seed = options.seconds, options.seed
            return try_mutant(
                *(options.mutiny, program, Path(runs), mutant.lines(reached), reached, text),
                *(seconds, seed),
                folder / "programs" / "healthy" / "bin" / "longboat",
            )
    finally:
        shutil.rmtree(home, ignore_errors=True)


def main() -> int:
    """Choose, try, tell."""
    options = _options()
    part = PARTS[options.part]
    folder = ROOT / ".mutants" / options.part
    folder.mkdir(parents=True, exist_ok=True)
    targets = tuple(options.target or part.targets)
    reached = reach.measure(options.package, targets, folder, options.jobs)
    mutants = list(all_mutants(options.package, part, reached))
    if options.again:
        wanted = {row["name"] for row in _rows(options.again)}
        mutants = chosen_before(mutants, wanted)
    else:
        mutants = choose(mutants, options.count, options.seed)
    results = folder / f"seed-{options.seed}-{options.label}.jsonl"
    known = {row["name"]: row for row in _rows(results)}
    todo = [mutant for mutant in mutants if mutant.name not in known]
    print(
        f"{len(mutants)} mutants of {options.part}, {len(mutants) - len(todo)} already tried",
        flush=True,
    )
    shutil.rmtree(folder / "programs" / "healthy", ignore_errors=True)
    reach.program_of(options.package, folder / "programs" / "healthy")
    started = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool, results.open("a", encoding="utf-8") as file:
        running = {pool.submit(run, mutant, reached, folder, options): mutant for mutant in todo}
        for done, future in enumerate(as_completed(running), 1):
            mutant, finding = running[future], future.result()
            row = {"name": mutant.name, **asdict(finding), "diff": mutant.diff()}
            file.write(json.dumps(row) + "\n")
            file.flush()
            known[mutant.name] = row
            left = (time.monotonic() - started) / done * (len(todo) - done)
            said = f"{finding.by}: {finding.rule}" if finding.by else "SURVIVED"
            shown = f"{done:3d} of {len(todo)} {mutant.name[:52]:<52} {said}"
            print(f"{shown} ({finding.seconds:.0f} s, {left / 60:.0f} min left)", flush=True)
    _tell([known[mutant.name] for mutant in mutants if mutant.name in known], folder, options)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--part", choices=sorted(PARTS), default="workers")
    parser.add_argument("--count", type=int, default=60, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="which mutants, and which explorations")
    parser.add_argument("--jobs", type=int, default=2, help="mutants side by side")
    parser.add_argument("--seconds", type=float, default=240, help="at most so long for a mutant")
    parser.add_argument(
        "--target", action="append", help="only on this target (again for more)", default=[]
    )
    parser.add_argument(
        "--mutiny",
        type=Path,
        default=Path(sys.executable).parent / "mutiny",
        help="which Mutiny is measured (another version beside this one)",
    )
    parser.add_argument(
        "--package",
        type=Path,
        default=ROOT / "src" / "longboat",
        help="which longboat is changed",
    )
    parser.add_argument("--again", type=Path, help="the mutants of this file of results")
    parser.add_argument("--label", default="now", help="part of the name of the file of results")
    return parser.parse_args()


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        yield json.loads(line)


def _tell(rows: list[dict[str, Any]], folder: Path, options: argparse.Namespace) -> None:
    """The table, the figure, and the survivors with their diffs in a file."""
    survivors = [row for row in rows if not row["by"]]
    same = {
        row["name"]: EQUIVALENT[slug] for row in survivors if (slug := _slug(row)) in EQUIVALENT
    }
    print("\n| mutant | found by | rule |\n|---|---|---|")
    for row in sorted(rows, key=lambda row: str(row["name"])):
        by = row["by"] or ("equivalent" if row["name"] in same else "**survived**")
        print(f"| {row['name']} | {by} | {row['rule'] or same.get(row['name'], '')} |")
    found, counted = len(rows) - len(survivors), len(rows) - len(same)
    ways = Counter(row["by"].partition(" ")[0] for row in rows if row["by"])
    print(f"\n{len(rows)} mutants, {len(same)} equivalent, {found} of {counted} found", end="")
    print(f" ({found / max(counted, 1):.0%}); by {', '.join(f'{w} {n}' for w, n in ways.items())}")
    path = folder / f"survivors-{options.seed}-{options.label}.diff"
    text = (f"# {row['name']}\n# {row['tried']}\n{row['diff']}" for row in survivors)
    path.write_text("\n\n".join(text), encoding="utf-8")
    print(f"survivors: {path.relative_to(ROOT)}")


def _slug(row: dict[str, Any]) -> str:
    return str(row["name"]).rsplit(" ", 1)[1]


if __name__ == "__main__":
    sys.exit(main())
