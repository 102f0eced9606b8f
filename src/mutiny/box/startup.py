"""How a box comes to stand: which walls it gets, and what happens while they go up.

Insight: to try out the strongest walls before they are needed costs as much as to raise them. So they
are raised, and only when that fails is it asked whether this machine has them at all; if not, the next
technique takes their place.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Unpack

from mutiny.box import layout
from mutiny.box.box import Box
from mutiny.box.errors import BoxError
from mutiny.box.isolation import Walls, choose, proved_by_start, why_not

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mutiny.box.isolation import Technique
    from mutiny.box.wishes import Wishes


def create_box(directory: Path, **wishes: Unpack[Wishes]) -> Box:
    """Make the directories of a box in ``directory``, raise the walls and start the agent.

    What is already in ``directory`` is kept, so that a box can continue from a copy of another one's files.
    """
    return begin(directory, **wishes).stand()


def begin(directory: Path, **wishes: Unpack[Wishes]) -> Startup:
    """``create_box`` without waiting until the walls stand."""
    directory = directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    walls = Walls(
        box_id=os.urandom(6).hex(),
        directory=directory.resolve(),
        network=wishes.get("network", "none"),
        root=wishes.get("root", ""),
        read_only=tuple(wishes.get("read_only", ())),
        hidden=tuple(wishes.get("hidden", ())),
    )
    return Startup(walls, wishes)


class Startup:
    """A box whose walls go up while its owner does something else."""

    def __init__(self, walls: Walls, wishes: Wishes) -> None:
        self._walls = walls
        self._wishes = wishes
        self._untried = proved_by_start(wishes.get("technique"))
        try:
            self._box = self._begun(self._untried or self._chosen())
        except (BoxError, OSError):
            if not self._has_no_such_walls():
                raise
            self._box = self._begun(self._chosen())

    def stand(self) -> Box:
        """The box, when it stands."""
        try:
            return self._finished(self._box)
        except (BoxError, OSError):
            if not self._has_no_such_walls():
                raise
            return self._finished(self._begun(self._chosen()))

    def abandon(self) -> None:
        """Take it down again."""
        self._box.close()

    @property
    def directory(self) -> Path:
        """The directory of the box on the host."""
        return self._walls.directory

    def _has_no_such_walls(self) -> bool:
        """Whether the start failed because this machine cannot do what was not tried out."""
        untried, self._untried = self._untried, None
        if untried is None or why_not(untried.name) is None:
            return False
        layout.forget_path(self._walls.directory, untried.inside_root(self._walls))
        return True

    def _chosen(self) -> Technique:
        return choose(self._wishes.get("technique"))

    def _begun(self, technique: Technique) -> Box:
        box = Box(self._walls, technique, self._wishes.get("environment", {}))
        return _or_closed(box, box.start, self._wishes)

    def _finished(self, box: Box) -> Box:
        return _or_closed(box, box.finish, self._wishes)


def _or_closed(box: Box, step: Callable[[Wishes], None], wishes: Wishes) -> Box:
    try:
        step(wishes)
    except BaseException:
        box.close()
        raise
    return box
