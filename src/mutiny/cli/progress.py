"""The one progress line: how far it is, how fast it goes, how long it will take.

On a terminal it is redrawn in place and never wider than the screen; a log gets a line every half minute;
a program gets nothing. The time left is an estimate from what is done, and unknown until it can be said.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from mutiny.report.screen import CLEAR, can_write, cells, columns_of, fit, is_live

if TYPE_CHECKING:
    from mutiny.engine.minimise import Budget, Progress

LOG_EVERY_S = 30.0
DRAW_EVERY_S = 0.05
"""A screen is not redrawn more often: nobody reads it, and a slow line would choke on it."""
KNOWN_AFTER_S = 1.0
"""No estimate from less."""
BARS = (24, 12, 0)
"""How long the bar is: the longest that leaves room for the figures ..."""
LEAST_NOTE = 24
"""... and for so much of the note."""
WORTH_A_NOTE = 8
MOST_TITLE = 8
"""So much of the title stays where even the figures have no room."""


class ProgressLine:
    """How far something is."""

    def __init__(
        self,
        title: str,
        total: int,
        *,
        quiet: bool = False,
        at_most: bool = False,
        limit_s: float | None = None,
    ) -> None:
        """`at_most`: it may be over before the total is reached. `limit_s`: and ends then in any case."""
        self.title = title
        self.total = total
        self.is_open = False
        """Nobody knows the total yet: what is done still finds more to do."""
        self._quiet = quiet
        self._live = not quiet and is_live(sys.stderr)
        self._at_most = at_most
        self._limit_s = limit_s
        self._started = self._told = time.monotonic()
        self._done = self._before = 0
        self._shown = False

    def minimise(self, progress: Progress) -> None:
        """Show where the minimiser is."""
        self.update(progress.runs, f"shortest so far {progress.best}, {progress.stage}")

    def begin_at(self, done: int) -> None:
        """So much was done before: the rate is that of what comes now."""
        self._done = self._before = done

    def anew(self, title: str, total: int) -> None:
        """Count something else from here on; the same thing is counted on."""
        if title != self.title:
            self._restart()
        self.title, self.total = title, total

    def update(self, done: int, note: str = "") -> None:
        """Show how far it is."""
        if done < self._done:
            self._restart()
        self._done = done
        now = time.monotonic()
        wait = DRAW_EVERY_S if self._live else LOG_EVERY_S
        if self._quiet or (now - self._told < wait and not (self._live and not self._shown)):
            return
        self._told = now
        if self._live:
            self._shown = True
            sys.stderr.write(CLEAR + self.text(now, note, columns_of(sys.stderr) - 1))
        else:
            title = f"{self.title}: " if self.title else ""
            sys.stderr.write(f"{title}{'  '.join(_said(self._figures(now), note))}\n")
        sys.stderr.flush()

    def text(self, now: float, note: str, columns: int) -> str:
        """The line for a screen: first the figures, then as much of the rest as fits."""
        full, empty, more = ("█", "·", "…") if can_write(sys.stderr, "█·…") else ("#", ".", "~")
        share = min(self._done / self.total, 1.0) if self.total and not self.is_open else 0.0
        figures = "  ".join(self._figures(now))
        room = columns - cells(figures) - 2
        title = fit(self.title, max(room, MOST_TITLE), more)
        for length in (0,) if self.is_open else BARS:
            filled = int(length * share)
            bar = full * filled + empty * (length - filled)
            head = " ".join(_said([title, bar]))
            if cells(head) + min(cells(note), LEAST_NOTE) + 2 <= room:
                break
        rest = room - cells(head) - 2
        shown = fit(note, rest, more) if rest >= WORTH_A_NOTE else ""
        return fit("  ".join(_said([head, figures, shown])), columns, more)

    def done(self) -> None:
        """Take the line away; a later update shows it again."""
        if self._shown:
            self._shown = False
            sys.stderr.write(CLEAR)
            sys.stderr.flush()

    def __enter__(self) -> ProgressLine:
        if self.title:
            self.update(0)
        return self

    def __exit__(self, *_: object) -> None:
        self.done()

    def _restart(self) -> None:
        self._started, self._done, self._before = time.monotonic(), 0, 0

    def _figures(self, now: float) -> list[str]:
        """`3/40`, the rate and the time left."""
        passed = now - self._started
        new = self._done - self._before
        rate = new / passed if new > 0 and passed >= KNOWN_AFTER_S else None
        counted = f"{self._done}/{self.total}" + ("+" if self.is_open else "")
        return [counted, *_said([_rate(rate)]), self._left(rate, passed)]

    def _left(self, rate: float | None, passed: float) -> str:
        limit = None if self._limit_s is None else max(self._limit_s - passed, 0.0)
        if rate is None or self.is_open:
            return "time left unknown" if limit is None else f"at most {span(limit)} left"
        left = max(self.total - self._done, 0) / rate
        if limit is not None:
            left = min(left, limit)
        return f"{'at most ' if self._at_most else ''}{span(left)} left"


def minimising(budget: Budget | None, *, quiet: bool) -> ProgressLine:
    """The line for the trial runs of the minimiser: it stops at the first of its limits."""
    runs, seconds = (budget.runs, budget.seconds) if budget else (0, None)
    return ProgressLine("Minimising", runs, quiet=quiet, at_most=True, limit_s=seconds)


def span(seconds: float) -> str:
    """A length of time in two figures at most."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"


def _rate(rate: float | None) -> str:
    if rate is None:
        return ""
    return f"{rate:.1f}/s" if rate >= 0.95 else f"{rate * 60:.1f}/min"


def _said(parts: list[str], *more: str) -> list[str]:
    """Those that say something."""
    return [part for part in (*parts, *more) if part]
