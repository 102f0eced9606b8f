"""Keeping the box's files before every call of a traced command, so that one pass gives every crash state.

Each state can become a complete box directory in which a new box goes on: the files as they were
(`files`), or as a power loss would have left them (`synced`): then the target's own directories
hold only what was synced, everything else stands as it was. The states stay in memory, where most of
them share their contents, until one is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mutiny.syscalls import policies
from mutiny.syscalls.calls import Call
from mutiny.syscalls.durability import Durability
from mutiny.syscalls.snapshots import Snapshots, State
from mutiny.system import trees
from mutiny.system.files import BoxPath


class KeptStates:
    """Keeps one state before each call, and one after the last."""

    def __init__(self, box: Path, roots: Sequence[BoxPath], *, synced: bool) -> None:
        self._box = box
        store = box.parent / "points"
        self._files = Snapshots(box, store / "large")
        self._durable = {
            root: Durability(root.host, store / f"large-{number}")
            for number, root in enumerate(roots if synced else ())
        }
        self._states: tuple[State, ...] = ()
        self._kept: dict[BoxPath, list[State]] = {}
        self._behind: dict[BoxPath, list[State | None]] = {}

    def policy(self) -> policies.Policy:
        """What the supervisor has to do before each call."""
        return policies.BeforeEach(self._keep)

    def _keep(self, call: Call) -> None:
        self._files.capture(call)
        for durable in self._durable.values():
            durable.follow(call)

    def finish(self) -> None:
        """The command is over: one more state."""
        self._states = (*self._files.states, self._files.finish())
        for root, each in self._durable.items():
            self._kept[root] = [*each.states, each.finish()]
            self._behind[root] = [*each.behind, each.finish_behind()]

    def has_names_to_lose(self, index: int) -> bool:
        """Would a power loss before this call take names with it?"""
        return any(each[index] is not None for each in self._behind.values())

    def write(self, index: int, place: Path, *, names_lost: bool = False) -> None:
        """Make the state before a call a box directory."""
        self._states[index].materialise(place)
        for root, kept in self._kept.items():
            behind = self._behind[root][index] if names_lost else None
            inside = BoxPath(place, *root.parts)
            trees.remove(inside)
            inside.mkdir(parents=True, exist_ok=True)
            (behind or kept[index]).materialise(inside.host)


def kept_states(keep: str, box: Path, roots: Sequence[BoxPath]) -> KeptStates | None:
    """The states that a trace asks for."""
    return KeptStates(box, roots, synced=keep == "synced") if keep else None
