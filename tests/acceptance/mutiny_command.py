"""Run the real `mutiny` command in a directory of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

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
    done = subprocess.run(
        [*wrapper, COMMAND, *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return Ran(done.returncode, done.stdout, done.stderr, directory)


def longboat_spec(directory: Path, *changes: tuple[str, str]) -> Path:
    """longboat's own target file with some lines changed."""
    text = files("mutiny.targets.files").joinpath("longboat.toml").read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = directory / "changed.toml"
    path.write_text(text)
    return path
