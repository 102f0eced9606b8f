"""Configuration: layers of settings, the upper ones first, and who wants to know of changes."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Settings"]


class Settings:
    """Defaults, environment, overrides: the last that says something counts."""

    LAYERS = ("defaults", "environment", "overrides")

    def __init__(self, defaults: dict[str, str]) -> None:
        self._layers: dict[str, dict[str, str]] = {name: {} for name in self.LAYERS}
        self._layers["defaults"] = dict(defaults)
        self._watchers: dict[str, list[Callable[[str], None]]] = {}

    def get(self, key: str) -> str:
        """The value that counts."""
        for name in reversed(self.LAYERS):
            if key in self._layers[name]:
                return self._layers[name][key]
        raise KeyError(key)

    def number(self, key: str) -> float:
        """A value that must be a number."""
        text = self.get(key)
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"{key} is a number, not {text!r}") from None

    def set(self, key: str, value: str, layer: str = "overrides") -> None:
        """Change a layer; who watches the key is told when what counts has changed."""
        before = self._layers["defaults"].get(key) if key not in self else self.get(key)
        self._layers[layer][key] = value
        if self.get(key) != before:
            for watcher in self._watchers.get(key, []):
                watcher(self.get(key))

    def watch(self, key: str, watcher: Callable[[str], None]) -> None:
        """Be told of every new value."""
        self._watchers.setdefault(key, []).append(watcher)

    def __contains__(self, key: str) -> bool:
        return any(key in layer for layer in self._layers.values())
