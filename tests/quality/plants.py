"""What is known about each plant: the scenario that finds it, the rule that it breaks, its shortest
sequence.

`known.json` says what finds the workers' plants. `minimal.json` holds the minimal replays of all parts as
Mutiny wrote them, by the name of their case in `prove.py`, one a line; `shorter.json` likewise those whose
minimising had not come to its end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mutiny.codec import decode_operation
from mutiny.contracts.workers.operations import OPERATIONS
from mutiny.engine.replay import Replay
from mutiny.model.operation import Operation

KNOWN_FILE = Path(__file__).with_name("known.json")
MINIMAL = Path(__file__).with_name("minimal.json")
SHORTER = Path(__file__).with_name("shorter.json")


@dataclass(frozen=True)
class Known:
    """One plant and how it shows."""

    plant: str
    scenario: str
    rule: str
    in_scenario: str
    """The rule that its whole scenario shows: there a consequence may tell more than the sequence does."""
    operations: tuple[Operation, ...]
    """Empty until its minimal replay was proved once."""

    def replay(self) -> Replay:
        """As a replay file would say it."""
        return Replay(self.operations, "workers", "longboat", self.plant, 1, self.rule)


@cache
def proved_once(path: Path = MINIMAL) -> dict[str, list[dict[str, Any]]]:
    """The replays that were proved, by the name of their case."""
    found: dict[str, list[dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))
    return found


@cache
def known() -> dict[str, Known]:
    """All known plants by name."""
    data = json.loads(KNOWN_FILE.read_text(encoding="utf-8"))
    return {
        name: Known(
            name,
            entry["scenario"],
            entry["rule"],
            entry.get("in_scenario", entry["rule"]),
            tuple(
                decode_operation(item, OPERATIONS, where=name)
                for item in proved_once().get(f"longboat-{name}-scenario-{entry['scenario']}", ())
            ),
        )
        for name, entry in data.items()
    }
