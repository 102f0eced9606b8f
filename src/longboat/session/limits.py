"""What was used in the last hour, in bounded memory."""

from __future__ import annotations

from collections import deque

HOUR_S = 3600.0


class Window:
    """Amounts with their times; those older than an hour no longer count."""

    def __init__(self) -> None:
        self._entries: deque[tuple[float, int]] = deque()
        self._sum = 0

    def add(self, now_s: float, amount: int) -> None:
        """So much was used now."""
        self._entries.append((now_s, amount))
        self._sum += amount
        self._drop(now_s)

    def _drop(self, now_s: float) -> None:
        while self._entries and self._entries[0][0] <= now_s - HOUR_S:
            self._sum -= self._entries.popleft()[1]

    def used(self, now_s: float) -> int:
        """What counts now."""
        self._drop(now_s)
        return self._sum

    def wait_s(self, now_s: float, amount: int, limit: int) -> float:
        """How long until so much more fits; 0: now, and so it is when nothing else counts."""
        self._drop(now_s)
        if self._sum + amount <= limit or not self._entries:
            return 0.0
        over = self._sum + amount - limit
        for when, used in self._entries:
            over -= used
            if over <= 0:
                return max(when + HOUR_S - now_s, 0.001)
        return max(self._entries[-1][0] + HOUR_S - now_s, 0.001)
