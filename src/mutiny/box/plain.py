"""A box without a target: no doubles, no repository, one readable directory of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutiny.box.startup import Startup, begin

if TYPE_CHECKING:
    from pathlib import Path


def plain_box(directory: Path, technique: str | None, visible: Path) -> Startup:
    """The walls alone; `visible` can be read inside."""
    return begin(directory, technique=technique, doubles=False, source=False, read_only=(visible,))
