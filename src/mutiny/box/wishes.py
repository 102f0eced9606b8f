"""The options with which a box can be made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from mutiny.box.isolation import Network


class Wishes(TypedDict, total=False):
    """What a box may be asked to be."""

    technique: str | None
    """One of ``isolation.TECHNIQUES``; without it the strongest is taken."""
    network: Network
    root: str
    """The name that the box's directory has inside, where the technique can give it one."""
    read_only: Sequence[Path]
    """Host paths that must be visible inside even if their surroundings are not."""
    hidden: Sequence[Path]
    """Host directories that must not be visible."""
    environment: Mapping[str, str]
    """Added to the box's own."""
    doubles: bool
    """Install the doubles of the agents (yes, unless said otherwise)."""
    source: bool
    """Make a repository in it (yes, unless said otherwise)."""
