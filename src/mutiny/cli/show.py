"""How commands show runs: the terminal form, a progress line while minimising, or nothing at all."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager

from mutiny.report.terminal import Terminal

TYPE_CHECKING = False  # the real one would import typing
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutiny.engine.loop import Outcome
    from mutiny.engine.minimise import Budget, Progress
    from mutiny.modes.bench import Bench


class Show:
    """Terminal output of a command; `quiet` when a program listens."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.terminal = None if quiet else Terminal()

    @property
    def listeners(self) -> tuple[object, ...]:
        return () if self.terminal is None else (self.terminal.listen,)

    def line(self, text: str = "") -> None:
        if self.terminal is not None:
            self.terminal.line(text)

    def header(self, bench: Bench, title: str, seed: int, kind: str) -> None:
        if self.terminal is not None:
            plant = bench.target.options.plant
            name = f"{bench.target.name} (planted: {plant})" if plant else bench.target.name
            self.terminal.header(name, title, seed, kind=kind)

    def finish(self, bench: Bench, outcome: Outcome) -> None:
        if self.terminal is not None:
            self.terminal.failure(outcome, bench.target.contract(), None)

    def minimising(self, budget: Budget | None) -> ProgressLine:
        """A progress line for the trial runs."""
        return ProgressLine("Minimising", budget.runs if budget else 0, quiet=self.quiet)


LOG_EVERY_S = 30.0


class ProgressLine:
    """How far it is, the rate and the time left: a bar on a terminal, now and then a line in a log."""

    def __init__(self, title: str, total: int, *, quiet: bool) -> None:
        self._title = title
        self.total = total
        self._quiet = quiet
        self._live = not quiet and sys.stderr.isatty()
        self._started = self._told = time.monotonic()

    def minimise(self, progress: Progress) -> None:
        """Show where the minimiser is."""
        self.update(progress.runs, f"{progress.stage}, shortest so far {progress.best}")

    def update(self, done: int, note: str) -> None:
        """Show how far it is."""
        now = time.monotonic()
        if self._quiet or not (self._live or now - self._told >= LOG_EVERY_S):
            return
        self._told = now
        rate = done / max(now - self._started, 1e-6)
        left = (self.total - done) / rate if rate else 0.0
        figures = f"{done}/{self.total}  {rate:.1f}/s  {left:.0f}s left  {note}"
        if self._live:
            filled = int(24 * min(done / self.total, 1.0)) if self.total else 0
            bar = "█" * filled + "·" * (24 - filled)
            sys.stderr.write(f"\r{self._title} {bar} {figures}\x1b[K")
        else:
            title = f"{self._title}: " if self._title else ""
            sys.stderr.write(f"{title}{figures}\n")
        sys.stderr.flush()

    def done(self) -> None:
        """Take the line away."""
        if self._live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def progress(title: str, total: int, *, quiet: bool = False) -> Iterator[ProgressLine]:
    """A progress line for the length of a block."""
    line = ProgressLine(title, total, quiet=quiet)
    try:
        yield line
    finally:
        line.done()
