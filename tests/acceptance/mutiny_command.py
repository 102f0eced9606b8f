"""Run the real `mutiny` command in a directory of its own."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from warm_mutiny import Warm

COMMAND = str(Path(sys.executable).parent / "mutiny")
LIMIT_S = 400.0


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str
    directory: Path


def run_mutiny(
    directory: Path, *arguments: str, wrapper: tuple[str, ...] = (), limit_s: float = LIMIT_S
) -> Ran:
    """Run and wait; the run directories go below `directory`."""
    environment = {**os.environ, "NO_COLOR": "1"}
    if not wrapper and _warm().fits(environment):
        return _run_warm(directory, list(arguments), environment, limit_s)
    done = subprocess.run(
        [*wrapper, COMMAND, *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
        env=environment,
    )
    return Ran(done.returncode, done.stdout, done.stderr, directory)


@functools.cache
def _warm() -> Warm:
    """One for all tests of this process; it ends with it."""
    return Warm()


def _run_warm(
    directory: Path, words: list[str], environment: dict[str, str], limit_s: float
) -> Ran:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = _warm().run([COMMAND, *words], str(directory), environment, (out, err), limit_s)
        out.seek(0)
        err.seek(0)
        return Ran(code, out.read().decode(), err.read().decode(), directory)


def longboat_spec(directory: Path, *changes: tuple[str, str]) -> Path:
    """longboat's own target file with some lines changed."""
    text = files("mutiny.targets.files").joinpath("longboat.toml").read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = directory / "changed.toml"
    path.write_text(text)
    return path
