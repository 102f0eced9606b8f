"""What is kept of a box when something went wrong. It is never worth an error of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutiny.system.files import SAID_LIMIT, BoxPath

if TYPE_CHECKING:
    from pathlib import Path


def last_words(path: BoxPath, limit: int = SAID_LIMIT) -> str:
    """The end of a file for people to read, or why nobody may read it."""
    try:
        return path.read_said(limit)
    except OSError as error:
        return f"({error})"


class Keepsake:
    """A file or directory of a box that is worth keeping."""

    def __init__(self, place: BoxPath) -> None:
        self._place = place

    def copy_to(self, directory: Path, name: str) -> list[str]:
        """Copy it below a directory of our own; what could not be kept is told."""
        from mutiny.system import trees

        if not self._place.exists():
            return []
        try:
            target = BoxPath(directory) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            return trees.copy(self._place, target, with_links=False, most=trees.Most())
        except OSError as error:
            return [str(error)]
