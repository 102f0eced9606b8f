"""What is known about each plant: the scenario that finds it, the rule that it breaks, its shortest
sequence.

`known.json` holds the minimal sequences as Mutiny wrote them; their lengths are the known shortest
lengths.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mutiny.codec import decode_operation
from mutiny.contracts.workers.operations import OPERATIONS
from mutiny.engine.replay import Replay
from mutiny.model.operation import Operation

KNOWN_FILE = Path(__file__).with_name("known.json")


@dataclass(frozen=True)
class Known:
    """One plant and how it shows."""

    plant: str
    scenario: str
    rule: str
    operations: tuple[Operation, ...]

    def replay(self) -> Replay:
        """As a replay file would say it."""
        return Replay(self.operations, "workers", "longboat", self.plant, 1, self.rule)


@cache
def known() -> dict[str, Known]:
    """All known plants by name."""
    data = json.loads(KNOWN_FILE.read_text(encoding="utf-8"))
    return {
        name: Known(
            name,
            entry["scenario"],
            entry["rule"],
            tuple(decode_operation(item, OPERATIONS, where=name) for item in entry["operations"]),
        )
        for name, entry in data.items()
    }
