"""How a target is brought to life, for all contracts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mutiny.box.isolation import Network


@dataclass(frozen=True)
class LiveOptions:
    """The program, and what the run asks for."""

    program: Path
    plant: str = ""
    agents: str = "double"
    technique: str | None = None
    network: Network = "none"
    root: str = ""
    """What the directory in which everything lies is called inside the box; empty: as usual."""
    surroundings: str = ""
    """What the user's machine is like, by a word of `kit/surroundings.py`."""
    profiled: bool = False
    """The target writes profiles of its own code (`targets/kit/profiling.py`)."""
