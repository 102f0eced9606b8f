"""What is made of many runs has a directory of its own, in which whoever looks on sees how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mutiny import stopping
from mutiny.engine.progress import Progress
from mutiny.engine.rundir import RunDirectory
from mutiny.errors import MutinyError
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench


def progress_of(
    bench: Bench, directory: Path, kind: str, title: str, unit: str, seed: int | None = None
) -> Progress:
    """How far something on a bench is, told in a directory."""
    target = bench.target
    return Progress(
        directory,
        kind,
        title,
        target.name,
        target.spec.contract,
        target.options.plant,
        seed,
        unit,
    )


def word_of(verdict: Verdict) -> str:
    """The verdict of what is over; what was stopped before its end has passed nothing."""
    stopped = stopping.asked() and verdict is Verdict.SUCCESS
    return (Verdict.INCONCLUSIVE if stopped else verdict).value


@contextmanager
def series(
    bench: Bench, folder: str, kind: str, title: str, unit: str, seed: int | None = None
) -> Iterator[Progress]:
    """A new directory in a folder beside the runs, for something on one bench."""

    def made(directory: Path) -> Progress:
        return progress_of(bench, directory, kind, title, unit, seed)

    with told_in(bench.root / folder, made) as progress:
        yield progress


@contextmanager
def told_in(folder: Path, make: Callable[[Path], Progress]) -> Iterator[Progress]:
    """A new directory in a folder; nothing is left of one that was refused."""
    directory = RunDirectory.create(folder)
    progress = make(directory.path)
    progress.tell(0, None)
    try:
        yield progress
    except MutinyError:
        directory.discard()
        raise
