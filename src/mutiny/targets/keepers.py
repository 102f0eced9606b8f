"""Keeping the box's files before every call of a traced command, so that one pass gives every crash state.

Each state becomes a complete box directory in which a new box can go on: the files as they were
(`files`), or as a power loss would have left them (`synced`): then the target's own directories
hold only what was synced, everything else stands as it was.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from mutiny.syscalls import policies
from mutiny.syscalls.calls import Call
from mutiny.syscalls.durability import Durability
from mutiny.syscalls.snapshots import Snapshots


def state_name(index: int) -> str:
    """The directory of the state before call `index`."""
    return f"{index:04d}"


class Keeper:
    """Keeps one state before each call, and one after the last."""

    def __init__(self, box: Path, states: Path, roots: Sequence[Path], *, synced: bool) -> None:
        self._box = box
        self._states = states
        self._files = Snapshots(box, states / "large")
        self._durable = {
            root: Durability(root, states / f"large-{number}")
            for number, root in enumerate(roots if synced else ())
        }

    def policy(self) -> policies.Policy:
        """What the supervisor has to do before each call."""
        return policies.BeforeEach(self._keep)

    def _keep(self, call: Call) -> None:
        self._files.capture(call)
        for durable in self._durable.values():
            durable.follow(call)

    def finish(self) -> int:
        """Write all states to their directories; how many there are."""
        last = self._files.finish()
        durable_last = {root: durable.finish() for root, durable in self._durable.items()}
        for index, state in enumerate((*self._files.states, last)):
            place = state.materialise(self._states / state_name(index))
            for root, durable in self._durable.items():
                inside = place / root.relative_to(self._box)
                shutil.rmtree(inside, ignore_errors=True)
                kept = durable_last[root] if state is last else durable.states[index]
                kept.materialise(inside)
        return len(self._files.states) + 1


def keeper_of(keep: str, box: Path, states: Path, roots: Sequence[Path]) -> Keeper | None:
    """The keeper that a trace asks for."""
    return Keeper(box, states, roots, synced=keep == "synced") if keep else None
