"""A box without a target: no doubles, no repository, one readable directory of the host."""

from __future__ import annotations

from mutiny.box.box import Box

TYPE_CHECKING = False  # the real one would import typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def plain_box(
    directory: Path,
    technique: str | None,
    visible: Path,
    meanwhile: Callable[[], None] | None = None,
) -> Box:
    """The walls alone; `visible` can be read inside, `meanwhile` is called while they go up."""
    return Box.create(
        directory,
        technique=technique,
        doubles=False,
        source=False,
        read_only=(visible,),
        meanwhile=meanwhile,
    )
