"""Which places of the target's own code runs have reached, from the profiles that they left.

A place is a line (Python, LLVM) or a block (Go). In all languages it is told what a run reached, what all
did together, and which run adds what. Python's data is read as it is; Go's and LLVM's by the tools of
these languages, which must be installed.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

LIMIT_S = 120.0
_TOOLS = {"go": ("go",), "llvm": ("llvm-profdata", "llvm-cov"), "python": ()}


@dataclass(frozen=True)
class Reached:
    """What one run reached."""

    title: str
    places: frozenset[str]
    new: int
    """So many of them no run before it had reached."""


@dataclass
class CodeCoverage:
    """What runs reached together."""

    language: str
    program: Path
    runs: list[Reached] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Why a run's profile tells nothing."""
    _all: set[str] = field(default_factory=set)
    _known: set[str] = field(default_factory=set)

    def add(self, title: str, folder: Path) -> None:
        """Take the profile of one run into account."""
        reached, known = set[str](), set[str]()
        try:
            for place, hit in read_profile(self.language, folder, self.program):
                known.add(place)
                if hit:
                    reached.add(place)
        except ProfileMissing as missing:
            self.problems.append(f"{title}: {missing}")
            return
        self._known |= known
        self.runs.append(Reached(title, frozenset(reached), len(reached - self._all)))
        self._all |= reached

    @property
    def total(self) -> int | None:
        """How many places there are; None where the profiles name only those that were reached."""
        return len(self._known) if self._known - self._all else None

    def only_here(self, run: Reached) -> int:
        """So many places no other run reached."""
        others = set().union(*(one.places for one in self.runs if one is not run))
        return len(run.places - others)

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {
            "language": self.language,
            "reached": len(self._all),
            "of": self.total,
            "runs": [
                {
                    "title": run.title,
                    "reached": len(run.places),
                    "new": run.new,
                    "only_here": self.only_here(run),
                }
                for run in self.runs
            ],
            "problems": self.problems,
        }

    def told(self) -> Iterator[str]:
        """For people: a line a run, those that add most first."""
        of = "" if self.total is None else f" of {self.total} ({len(self._all) / self.total:.0%})"
        noun = "blocks" if self.language == "go" else "lines"
        yield f"Code of the target: {len(self._all)}{of} {noun} reached"
        for run in sorted(self.runs, key=lambda one: -one.new):
            yield (
                f"  {run.title:<28} {len(run.places):>6} reached {run.new:>6} new "
                f"{self.only_here(run):>6} only here"
            )
        for text in self.problems:
            yield f"  {text}"


class ProfileMissing(Exception):
    """There is nothing to be read, and why."""


def lacking(language: str) -> str | None:
    """The tool that reading this language's profiles needs and this machine lacks."""
    return next((tool for tool in _TOOLS[language] if shutil.which(tool) is None), None)


def read_profile(language: str, folder: Path, program: Path) -> Iterator[tuple[str, bool]]:
    """Every place that a profile names, and whether it was reached."""
    if language == "python":
        return _python(sorted(folder.glob("data.*")))
    if language == "go":
        return _go(folder)
    return _llvm(sorted(folder.glob("*.profraw")), program)


def _python(files: Sequence[Path]) -> Iterator[tuple[str, bool]]:
    """coverage's own data: SQLite, the numbers of lines as bits."""
    if not files:
        raise ProfileMissing("no profile; has the target's Python the package `coverage`?")
    for path in files:
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
                rows = database.execute(
                    "select path, numbits from line_bits join file on file.id = file_id"
                ).fetchall()
        except sqlite3.Error:  # its process was ended while it wrote
            continue
        for name, bits in rows:
            yield from ((f"{name}:{line}", True) for line in _numbers(bits))


def _numbers(bits: bytes) -> Iterator[int]:
    for place, byte in enumerate(bits):
        yield from (place * 8 + bit for bit in range(8) if byte & (1 << bit))


def _go(folder: Path) -> Iterator[tuple[str, bool]]:
    if not list(folder.glob("covcounters.*")):
        raise ProfileMissing("no profile; was the program built with `go build -cover`?")
    with tempfile.TemporaryDirectory() as scratch:
        text = Path(scratch) / "profile.txt"
        _tool("go", "tool", "covdata", "textfmt", f"-i={folder}", f"-o={text}")
        for line in text.read_text(encoding="utf-8").splitlines()[1:]:
            block, _, count = line.rpartition(" ")
            yield block, count != "0"


def _llvm(files: Sequence[Path], program: Path) -> Iterator[tuple[str, bool]]:
    whole = [path for path in files if path.stat().st_size]
    if not whole:
        raise ProfileMissing("no profile; was the program built with coverage instrumentation?")
    with tempfile.TemporaryDirectory() as scratch:
        merged = f"{scratch}/merged.profdata"
        _tool("llvm-profdata", "merge", "--failure-mode=all", "-o", merged, *map(str, whole))
        words = ("export", "-format=lcov", f"-instr-profile={merged}", str(program))
        source = ""
        for line in _tool("llvm-cov", *words).splitlines():
            if line.startswith("SF:"):
                source = line[3:]
            elif line.startswith("DA:"):
                number, count = line[3:].split(",")[:2]
                yield f"{source}:{number}", count != "0"


def _tool(*argv: str) -> str:
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=LIMIT_S, check=False, errors="replace"
    )
    if done.returncode != 0:
        told = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise ProfileMissing(f"{argv[0]}: {told[0]}")
    return done.stdout
