"""Which lines of longboat run, in which scenario and under which of its commands.

A copy of longboat writes down every statement that it comes to, once a process, into the box's own
temporary directory; the scenarios run against it as against any target. Mutants are only made of lines
that were reached, and are first tried on the scenarios that reach them.
"""

from __future__ import annotations

import ast
import compileall
import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path

from mutiny.engine.rundir import RunDirectory
from mutiny.model.operation import Operation
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.targets.registry import find_target

MARKER = "__reached__"
RECORDER = f"""
import os, sys
_seen = set()
_command = "-".join([word for word in sys.argv[1:6] if word.isalnum()][:2]) or "none"
def {MARKER}(place):
    if place in _seen:
        return
    _seen.add(place)
    # Opened anew each time: a daemon closes every descriptor that it does not know.
    path = f"/tmp/reached.{{_command}}.{{os.getpid()}}"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, place.encode() + b"\\n")
    finally:
        os.close(file)
"""


@dataclass(frozen=True)
class Reach:
    """Where a line was reached: in which scenario, how long it takes, by which command of longboat."""

    target: str
    scenario: str
    command: str
    seconds: float = 0.0


def program_of(package: Path, directory: Path) -> Path:
    """A program that runs the copy of longboat in `directory`."""
    shutil.copytree(package, directory / "longboat")
    # A box shows the tree of a program that lies below its user's home from such a mark on.
    (directory / "pyproject.toml").touch()
    program = directory / "bin" / "longboat"
    program.parent.mkdir(parents=True)
    program.write_text(
        # What it starts with `python -m longboat...` is to be the copy, too.
        f"#!{sys.executable}\nimport os, sys\nsys.path.insert(0, {str(directory)!r})\n"
        f"os.environ['PYTHONPATH'] = {str(directory)!r}\n"
        f"import longboat\nassert longboat.__file__.startswith({str(directory)!r}), longboat.__file__\n"
        "from longboat.cli import main\nsys.exit(main())\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    return program


def instrument(directory: Path) -> None:
    """Let the copy of longboat in `directory` write down what it reaches."""
    package = directory / "longboat"
    (directory / "reached_lines.py").write_text(RECORDER, encoding="utf-8")
    for path in package.rglob("*.py"):
        if "projects" in path.relative_to(package).parts:
            continue  # what agents of a session are given to write, no part of longboat
        tree = ast.parse(path.read_bytes())
        name = path.relative_to(package).as_posix()
        for body in _bodies(tree):
            body[:] = _marked(body, name)
        first = ast.parse(f"from reached_lines import {MARKER}").body
        place = next(
            (index for index, node in enumerate(tree.body) if not _must_be_first(node)),
            len(tree.body),
        )
        tree.body[place:place] = first
        path.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")


def _must_be_first(node: ast.stmt) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _bodies(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in list(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body


def _marked(body: list[ast.stmt], name: str) -> list[ast.stmt]:
    marked: list[ast.stmt] = []
    for index, statement in enumerate(body):
        documented = index == 0 and _must_be_first(statement)
        if not documented and not isinstance(statement, ast.Import | ast.ImportFrom):
            marked += ast.parse(f"{MARKER}({f'{name}:{statement.lineno}'!r})").body
        marked.append(statement)
    return marked


def measure(
    package: Path, targets: Iterable[str], folder: Path, jobs: int
) -> dict[str, list[Reach]]:
    """Run every scenario of every target once; lines (`file.py:12`) and where they were reached.

    What a scenario reached is kept in `folder` until longboat or the scenario changes. The boxes hide what
    stands beside them, so the copy of longboat lies there, and the boxes elsewhere.
    """
    copy, kept = folder / "programs" / "instrumented", folder / "reach"
    kept.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(copy, ignore_errors=True)
    program = program_of(package, copy)
    instrument(copy)
    compileall.compile_dir(copy, quiet=2)
    reached: dict[str, list[Reach]] = defaultdict(list)
    files = sorted(package.rglob("*.py"))
    source = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as runs,
        ThreadPoolExecutor(jobs) as pool,
    ):
        trials = []
        for target in targets:
            bench = Bench(find_target(target, program=str(program)), Path(runs))
            for name, operations in bench.target.contract().scenarios.items():
                text = f"{source} {target} {name} {operations!r}"
                path = kept / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
                known = (path, target, name)
                trials.append(pool.submit(_one, bench, known, operations, Path(runs)))
        for number, trial in enumerate(trials, 1):
            said, lines = trial.result()
            if said:
                print(f"reach: {number} of {len(trials)} {said}", flush=True)
            for line, where in lines:
                reached[line].append(where)
    shutil.rmtree(copy, ignore_errors=True)
    return dict(reached)


def _one(
    bench: Bench, known: tuple[Path, str, str], operations: Sequence[Operation], runs: Path
) -> tuple[str, list[tuple[str, Reach]]]:
    """What one scenario reached; nothing when it does not pass, for then it could not tell a mutant."""
    path, target, name = known
    if path.exists():
        rows = json.loads(path.read_text(encoding="utf-8"))
        return "", [(line, Reach(*where)) for line, where in rows]
    directory = RunDirectory.create(runs, latest=False)
    started = time.monotonic()
    outcome = bench.try_once(operations, 1, directory)
    seconds = round(time.monotonic() - started, 1)
    found = {
        (line, Reach(target, name, record.name.split(".")[1], seconds))
        for record in (directory.box_path / "tmp").glob("reached.*")
        for line in record.read_text(encoding="utf-8").split()
    }
    directory.discard()
    said = f"{target} {name}: {outcome.verdict.value} ({seconds} s)"
    if outcome.verdict is not Verdict.SUCCESS:
        return said, []
    lines = sorted(found, key=lambda pair: (pair[0], pair[1].scenario, pair[1].command))
    text = json.dumps([(line, astuple(where)) for line, where in lines])
    path.write_text(text, encoding="utf-8")
    return said, lines
