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


class ProgressLine:
    """One line with a bar, the rate and the time left; only on a terminal."""

    def __init__(self, title: str, total: int, *, quiet: bool) -> None:
        self._title = title
        self.total = total
        self._live = not quiet and sys.stderr.isatty()
        self._started = time.monotonic()

    def minimise(self, progress: Progress) -> None:
        """Show where the minimiser is."""
        self.update(progress.runs, f"{progress.stage}, shortest so far {progress.best}")

    def update(self, done: int, note: str) -> None:
        """Show how far it is."""
        if not self._live:
            return
        elapsed = max(time.monotonic() - self._started, 1e-6)
        rate = done / elapsed
        left = (self.total - done) / rate if rate else 0.0
        filled = int(24 * min(done / self.total, 1.0)) if self.total else 0
        bar = "█" * filled + "·" * (24 - filled)
        sys.stderr.write(
            f"\r{self._title} {bar} {done}/{self.total}  {rate:.1f}/s  {left:.0f}s left  {note}\x1b[K"
        )
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
