"""Where a run comes from, and the command that repeats it."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Origin:
    """What was tested, and how it was called."""

    target: str
    program: str = ""
    version: str = ""
    plant: str = ""
    seed: int = 0
    title: str = ""
    mutiny: str = ""
    again: str = ""
    """The command that repeats the run; it works from every directory."""

    @property
    def names(self) -> tuple[str, ...]:
        """How the target's own code may be called, in the paths of its frames."""
        stem = Path(self.program).stem
        return tuple(dict.fromkeys(n for n in (self.target, stem, stem.replace("-", "_")) if n))


def replay_command(path: Path, options: Sequence[str]) -> str:
    """`mutiny replay PATH ...` with everything quoted that a shell would take apart."""
    return shlex.join([_program(), "replay", str(path.absolute()), *options])


def _program() -> str:
    """The word for this Mutiny: short where the shell finds it, its path elsewhere."""
    called = Path(sys.argv[0])
    places = (Path(place) / "mutiny" for place in os.environ.get("PATH", "").split(os.pathsep))
    found = any(os.access(place, os.X_OK) for place in places)
    return "mutiny" if found or called.name != "mutiny" else str(called.absolute())
