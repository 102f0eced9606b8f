"""What Mutiny itself has to remember of a box, so that a box that goes on from kept files knows it."""

from __future__ import annotations

import json
from typing import Any

from mutiny.foreign import parse
from mutiny.system.files import BoxPath


class Notes:
    """One small file of the box."""

    def __init__(self, path: BoxPath) -> None:
        self._path = path
        self._known: dict[str, Any] = {}
        if path.is_file():
            self._known = parse(path.read_text())

    @property
    def spoiled(self) -> frozenset[str]:
        """Parts of checkpoints that Mutiny itself has damaged: `3`, `3.delta`."""
        return frozenset(self._known.get("spoiled", ()))

    def spoil(self, part: str) -> None:
        """One more is damaged."""
        self._keep("spoiled", sorted({*self.spoiled, part}))

    @property
    def settings(self) -> dict[str, str]:
        """Settings of the target that were changed."""
        found: dict[str, str] = dict(self._known.get("settings", {}))
        return found

    def set(self, name: str, value: str) -> None:
        """From now on a setting is this."""
        self._keep("settings", {**self.settings, name: value})

    @property
    def project(self) -> str:
        """The project whose answers the model's API knows."""
        return str(self._known.get("project", ""))

    @project.setter
    def project(self, name: str) -> None:
        self._keep("project", name)

    @property
    def tasks(self) -> dict[str, str]:
        """Its tasks, each with the file that it writes, where the target keeps no plan."""
        found: dict[str, str] = dict(self._known.get("tasks", {}))
        return found

    @tasks.setter
    def tasks(self, tasks: dict[str, str]) -> None:
        self._keep("tasks", tasks)

    def _keep(self, name: str, value: object) -> None:
        self._known[name] = value
        self._path.replace_bytes(json.dumps(self._known).encode())
