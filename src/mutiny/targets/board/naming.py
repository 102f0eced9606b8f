"""Names of tasks: ours, and those that a board gives them itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from mutiny.contracts.board.observation import TaskView

TELLING = 3
"""So long is a name that does not stand in a text by chance."""


def named_in(text: str, names: Iterable[str]) -> str | None:
    """The first of these names that a text says; a short one may stand in any text."""
    told = (one for one in names if len(one) >= TELLING)
    return next(
        (one for one in told if re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", text)), None
    )


def ours_among(views: Iterable[TaskView], pattern: str) -> list[TaskView]:
    """Tasks by our names: those whose text fits the pattern, which wait for others by our names, too."""
    found = [(view, re.search(pattern, view.id) if pattern else None) for view in views]
    named = [
        replace(view, id=match["name"] if match else view.id)
        for view, match in found
        if match or not pattern
    ]
    by_own = {view.own: view.id for view in named if view.own is not None}
    return [
        replace(view, depends=tuple(_our_name(one, by_own, pattern) for one in view.depends))
        for view in named
    ]


def _our_name(own: str, by_own: Mapping[str, str], pattern: str) -> str:
    match = re.search(pattern, own) if pattern else None
    return by_own.get(own) or (match["name"] if match else own)


def as_waiting(tasks: Mapping[str, TaskView]) -> dict[str, TaskView]:
    """Tasks of a board that does not say so: what waits for something that is not done is blocked."""

    def waits(view: TaskView) -> bool:
        open_ones = (one for one in view.depends if one in tasks and tasks[one].status != "done")
        return view.status == "available" and any(open_ones)

    return {
        name: replace(view, status="blocked") if waits(view) else view
        for name, view in tasks.items()
    }
