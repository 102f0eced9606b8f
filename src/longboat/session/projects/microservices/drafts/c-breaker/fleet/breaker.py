"""The circuit breaker: who fails too often is left alone for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["Breaker", "Open"]

Result = TypeVar("Result")


class Open(RuntimeError):
    """Not tried: it has failed too often lately."""


class Breaker:
    """Closed, open, or half open: then one call may try."""

    def __init__(self, clock: Callable[[], float], limit: int = 3, rest_s: float = 10.0) -> None:
        self._clock = clock
        self._limit = limit
        self._rest_s = rest_s
        self._failures = 0
        self._open_until_s: float | None = None

    @property
    def state(self) -> str:
        """`closed`, `open` or `half-open`."""
        if self._open_until_s is None:
            return "closed"
        return "open" if self._clock() < self._open_until_s else "half-open"

    def call(self, action: Callable[[], Result]) -> Result:
        """Do it, unless the breaker is open."""
        if self.state == "open":
            raise Open(f"{self._failures} failures")
        try:
            result = action()
        except Exception:
            self._failures += 1
            if self._failures >= self._limit:
                self._open_until_s = self._clock() + self._rest_s
            raise
        self._failures, self._open_until_s = 0, None
        return result
