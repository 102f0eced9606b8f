"""Whatever a user's file is: one clear line and exit code 2 or 3, never a traceback, a bug or a hang.

`make test` tries a few mutants of each kind; `MUTINY_FUZZ=400 pytest tests/property/test_fuzz_files.py`
tries 400 of each kind, from another first seed with `MUTINY_FUZZ_SEED`.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from file_mutants import (
    NO_FILES,
    Mutator,
    mutant,
    mutate_json,
    mutate_lines,
    mutate_toml,
    mutate_yaml,
)

from mutiny.cli import ending
from mutiny.cli.main import main

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "src" / "mutiny"
SAMPLES = Path(__file__).with_name("samples")
RUN = Path("run")
"""Stands for the directory of a real run, which is made once."""
EACH = int(os.environ.get("MUTINY_FUZZ", "12"))
FIRST = int(os.environ.get("MUTINY_FUZZ_SEED", "1"))
LIMIT_S = 60
"""None takes a second; but the machine may be busy with ten other things."""
NOWHERE = ("--bin", "/nowhere/at/all")
"""A mutant may be a good file; then nothing is run all the same."""


@dataclass(frozen=True)
class Kind:
    """Files of one kind, how their structure is changed, and which commands read them."""

    files: tuple[Path, ...]
    structure: Mutator
    commands: tuple[tuple[str, ...], ...]
    name: str = ""
    """The name under which a command looks for it; with it the command gets the directory."""


def _found(folder: Path, pattern: str) -> tuple[Path, ...]:
    found = tuple(sorted(folder.rglob(pattern)))
    assert found, f"no {pattern} in {folder}"
    return found


KINDS = {
    "replay": Kind(
        _found(REPOSITORY / "docs" / "findings", "*.json"),
        mutate_json,
        (("replay", "{}", *NOWHERE), ("minimise", "{}", *NOWHERE)),
    ),
    "experiment": Kind(
        _found(PACKAGE / "experiments" / "library", "*.yaml"),
        mutate_yaml,
        (("experiment", "check", "{}"), ("experiment", "run", "{}", *NOWHERE)),
    ),
    "foreign experiment": Kind(
        (REPOSITORY / "tests" / "unit" / "trivial_experiment.json",),
        mutate_json,
        (("experiment", "check", "{}"),),
    ),
    "target": Kind(
        _found(PACKAGE / "targets" / "files", "*.toml"), mutate_toml, (("target", "check", "{}"),)
    ),
    "campaign": Kind(
        (SAMPLES / "campaign.toml",),
        mutate_toml,
        (("campaign", "{}", "--sweep", "nonsense"),),  # a good file runs nothing all the same
    ),
    "baseline": Kind(
        (SAMPLES / "times.json",),
        mutate_json,
        (("run", "--baseline", "{}", "--scenario", "nonsense"),),
    ),
    "journal": Kind(
        (RUN / "operations.jsonl",),
        mutate_lines,
        (("replay", "{}", *NOWHERE), ("minimise", "{}", *NOWHERE)),
        "operations.jsonl",
    ),
    "plan": Kind((RUN / "plan.json",), mutate_json, (("replay", "{}", *NOWHERE),), "plan.json"),
    "summary": Kind((RUN / "summary.json",), mutate_json, (("report", "{}"),), "summary.json"),
    "result": Kind(
        (RUN / "experiment.json",),
        mutate_json,
        (
            ("experiment", "report", "{}"),
            ("experiment", "report", "{}", "--format", "html"),
            ("experiment", "report", "{}", "--format", "junit"),
        ),
        "experiment.json",
    ),
}


class Hang(BaseException):
    """A command did not come to its end."""


@pytest.fixture(autouse=True)
def crashes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """Tracebacks of what nobody foresaw."""
    seen: list[str] = []

    def crashed(error: BaseException, say: object) -> int:
        seen.append("".join(traceback.format_exception(error)[-12:]))
        return ending.FAILED

    def hang(*_: object) -> None:
        raise Hang

    monkeypatch.setattr(ending, "crashed", crashed)
    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGALRM, hang)
    yield seen
    signal.signal(signal.SIGALRM, before)


def tried(words: tuple[str, ...]) -> str | None:
    """Do it; what is wrong with how it ended."""
    told, errors = io.StringIO(), io.StringIO()
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(errors):
            code = main(list(words))
    except Hang:
        return f"no end within {LIMIT_S} s"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if code not in (0, 2, 3):
        return f"exit {code}: {errors.getvalue()[-300:]}"
    if code and not errors.getvalue().strip():
        return f"exit {code} without a word"
    return None


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run with every sort of file, made by whoever needs it first."""
    together = tmp_path_factory.getbasetemp().parent / "run-for-mutants"
    together.mkdir(exist_ok=True)
    with (together / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be at it
        if not (together / "chaos_runs").exists():
            command = [sys.executable, "-m", "mutiny", "experiment", "run", "killed-agent"]
            subprocess.run(command, cwd=together, capture_output=True, check=True)
    return together / "chaos_runs" / "latest"


def handed_over(kind: Kind, source: Path, finished: Path, directory: Path) -> tuple[Path, Path]:
    """Where the file is put, and what the command is told."""
    if not kind.name:
        return directory / f"mutant{source.suffix}", directory / f"mutant{source.suffix}"
    shutil.copytree(finished, directory / "run", dirs_exist_ok=True)
    return directory / "run" / kind.name, directory / "run"


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", KINDS)
def test_mutants(
    name: str, tmp_path: Path, crashes: list[str], request: pytest.FixtureRequest
) -> None:
    kind = KINDS[name]
    finished = request.getfixturevalue("finished") if kind.name else Path()
    wrong: dict[str, str] = {}
    for number in range(EACH):
        seed = FIRST + number
        source = kind.files[seed % len(kind.files)]
        place, told = handed_over(kind, source, finished, tmp_path)
        good = (finished / kind.name if kind.name else source).read_bytes()
        place.write_bytes(mutant(seed, good, kind.structure))
        for command in kind.commands:
            problem = tried(tuple(str(told) if word == "{}" else word for word in command))
            if problem is not None:
                shown = crashes[-1] if crashes else problem
                wrong[shown] = (
                    f"seed {seed} of {source.name}: mutiny {' '.join(command)}: {problem}"
                )
            crashes.clear()
    assert not wrong, "\n\n".join(f"{what}\n{where}" for where, what in wrong.items())


@pytest.mark.parametrize("what", NO_FILES)
@pytest.mark.parametrize("name", KINDS)
def test_what_is_no_file(
    name: str, what: str, tmp_path: Path, crashes: list[str], request: pytest.FixtureRequest
) -> None:
    kind = KINDS[name]
    finished = request.getfixturevalue("finished") if kind.name else Path()
    place, told = handed_over(kind, kind.files[0], finished, tmp_path)
    place.unlink(missing_ok=True)
    NO_FILES[what](place)
    for command in kind.commands:
        problem = tried(tuple(str(told) if word == "{}" else word for word in command))
        assert (problem, crashes) == (None, []), command
