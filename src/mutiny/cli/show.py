"""How commands show runs: step by step, one line a run, or nothing at all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local
from typing import TYPE_CHECKING

from mutiny.cli.progress import ProgressLine, minimising, span
from mutiny.modes.behind import BEHIND
from mutiny.report.terminal import Terminal

if TYPE_CHECKING:
    from collections import Counter

    from mutiny.engine.causes import Causes
    from mutiny.engine.known import Known
    from mutiny.engine.loop import Event, Outcome
    from mutiny.engine.minimise import Progress
    from mutiny.modes.bench import Bench


class Show:
    """Every step of every run, as it happens; `quiet` when a program listens."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.terminal = None if quiet else Terminal()

    @property
    def listeners(self) -> tuple[object, ...]:
        return () if self.terminal is None else (self.terminal.listen,)

    def line(self, text: str = "") -> None:
        if self.terminal is not None:
            self.terminal.line(text)

    def prose(self, text: str, hanging: int = 4) -> None:
        if self.terminal is not None:
            self.terminal.prose(text, hanging)

    def header(self, bench: Bench, title: str, seed: int, kind: str) -> None:
        if self.terminal is not None:
            self.terminal.header(_named(bench), title, seed, kind=kind)

    def finish(self, bench: Bench, outcome: Outcome, title: str) -> None:
        """The failure, if it is one, and the verdict at the end."""
        if self.terminal is not None:
            contract = bench.target.contract()
            self.terminal.failure(outcome, contract, outcome.replay)
            self.terminal.verdict(outcome, contract, title)
            self.terminal.line("")

    def total(
        self, records: list[dict[str, object]], causes: Causes, known: Counter[Known]
    ) -> None:
        """What many runs came to; one has said it already."""
        if len(records) > 1:
            for record in records:
                self.line(row(record))
            for text in told(causes, known):
                self.prose(text)
            self.line(passed_text(records))

    def minimising(self, bench: Bench) -> ProgressLine:
        """A progress line for the trial runs."""
        return minimising(bench.minimise_budget, quiet=self.quiet)


class _Own(local):
    """What a thread shows: the run that it is in."""

    title = ""
    number = 0
    """Its place among those that are over; 0 before that."""


class Brief:
    """One line a run; the step that is under way only where it can be taken away again.

    Runs may go side by side: each stays in one thread, and one at a time writes.
    """

    def __init__(self, bench: Bench, count: int, seed: int) -> None:
        self._terminal = Terminal()
        self._line = ProgressLine("Running", count)
        self._count = count
        self._over = 0
        self._own = _Own()
        self._turn = Lock()
        self._began = time.monotonic()
        scenarios = "1 scenario" if count == 1 else f"{count} scenarios"
        self._terminal.line(f"{_named(bench)}: {scenarios}, seed {seed}")
        self._terminal.excused(bench.target.contract())

    @property
    def listeners(self) -> tuple[object, ...]:
        return (self._listen,)

    def _listen(self, event: Event) -> None:
        if event.step is None:
            self._note(event.operation.short())

    def _note(self, text: str) -> None:
        with self._turn:
            self._line.update(self._over, f"{self._own.title}: {text}")

    def header(self, bench: Bench, title: str, seed: int, kind: str) -> None:
        self._own.title = title
        if kind != BEHIND:
            self._own.number = 0

    def finish(self, bench: Bench, outcome: Outcome, title: str) -> None:
        """Its line; below it what broke and where to read on."""
        known = bench.known.entry_for(outcome)
        with self._turn:
            self._over += not self._own.number
            self._own.number = self._own.number or self._over
            self._line.done()
            self._terminal.row(outcome, self._own.number, self._count, title, known)

    def total(
        self, records: list[dict[str, object]], causes: Causes, known: Counter[Known]
    ) -> None:
        """What all runs came to."""
        if self._count == 1:
            return
        took = time.monotonic() - self._began
        self._terminal.line("")
        for text in told(causes, known):
            self._terminal.prose(text)
        self._terminal.line(f"{passed_text(records)}, {span(took)} in all")

    @contextmanager
    def minimising(self, bench: Bench) -> Iterator[Brief]:
        """The trial runs belong to the run that they shrink."""
        try:
            yield self
        finally:
            with self._turn:
                self._line.done()

    def minimise(self, progress: Progress) -> None:
        """Show how far the minimiser is, in the line of the run."""
        self._note(f"minimising, shortest so far {progress.best}")


def told(causes: Causes, known: Counter[Known]) -> Iterator[str]:
    """Known findings that were met, then why runs failed, the commonest first; nothing where none did."""
    from mutiny.engine.known import known_told

    yield from known_told(known)
    lines = causes.told()
    if lines:
        count = len(causes.groups)
        yield f"{count} distinct cause{'' if count == 1 else 's'}:"
        yield from lines
        yield ""


def row(record: dict[str, object]) -> str:
    """One run in one line."""
    error = record.get("error")
    rule = error.get("rule") or "" if isinstance(error, dict) else ""
    title, verdict, took = record["title"], record["verdict"], record["duration_s"]
    return f"{title:<24} {verdict:<14} {took:6.1f}s  {rule}".rstrip()


def passed_text(records: list[dict[str, object]]) -> str:
    """`43 of 45 passed in 80.1s`: the time of the runs alone."""
    passed = sum(1 for record in records if record["verdict"] == "success")
    total = sum(float(str(record["duration_s"])) for record in records)
    return f"{passed} of {len(records)} passed in {total:.1f}s"


def _named(bench: Bench) -> str:
    plant = bench.target.options.plant
    return f"{bench.target.name} (planted: {plant})" if plant else bench.target.name
