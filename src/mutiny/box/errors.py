"""What can go wrong with a box.

::

BoxError ├── TechniqueUnavailable   the machine cannot build the box that was asked for ├──
CommandNotStarted      the program could not be executed inside the box (the box is fine) ├──
BoxDied                the box or its agent ended although nobody asked for it, or does not answer
└── SurvivorsLeft          after a kill something still runs: the walls have a hole
"""

from __future__ import annotations

from mutiny.errors import BoxError

__all__ = ["BoxDied", "BoxError", "CommandNotStarted", "SurvivorsLeft", "TechniqueUnavailable"]


class TechniqueUnavailable(BoxError):
    """The machine cannot build the box that was asked for: nothing was tested."""

    exit_code = 3


class CommandNotStarted(BoxError):
    """A program could not be executed inside the box. The box itself is fine."""


class BoxDied(BoxError):
    """The box ended although nobody asked for it, or its agent does not answer."""


class SurvivorsLeft(BoxError):
    """After a kill something of the box still runs."""
