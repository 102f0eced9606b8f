"""Load mode: shapes of load become sequences, and every sequence goes through the one loop.

A load is one operation that does many commands, between an ordinary beginning and a `Settle` that
checks the history: so a load is judged like everything else, and its replay is a few lines long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mutiny import stopping
from mutiny.engine.loading import Loaded, LoadReport
from mutiny.engine.loop import Outcome
from mutiny.engine.rundir import RunDirectory
from mutiny.kit.abilities import LoadPlan, Loads, Sizes
from mutiny.modes.bench import Assignment, Bench
from mutiny.modes.subject import ability
from mutiny.system.files import BoxPath

SHAPES = ("cost", "cycles", "dag", "payloads", "long", "burst")
Watch = Callable[[str, int, int], None]
"""What runs, how much of it is done, and how much there is."""


def load(
    bench: Bench, shapes: Sequence[str], sizes: Sizes, report: LoadReport, watch: Watch
) -> None:
    """Run all shapes against one target; its first bug ends its loads."""
    loads: Loads = ability(bench.target, "load")
    for plan in loads.plans(shapes, sizes):
        assignment = Assignment(plan.operations, f"load: {plan.title}", 1, "load")
        try:
            with _watching(f"{bench.target.name} {plan.title}", loads.progress, watch) as seen:
                outcome = bench.run(assignment, on_directory=seen)
        except stopping.Stopped:
            return
        report.loads.append(_loaded(bench, loads, plan, outcome))
        if outcome.verdict.is_bug or stopping.asked():
            return


def _loaded(bench: Bench, loads: Loads, plan: LoadPlan, outcome: Outcome) -> Loaded:
    measured: dict[str, object] = {}
    for step in outcome.steps:
        if isinstance(step.operation, loads.driver):
            told = step.result.details.get("load")
            measured = dict(told) if isinstance(told, dict) else {}
            measured.pop("outputs", None)
        history = step.result.details.get("history")
        if isinstance(history, dict):
            measured["history"] = history
    samples = measured.get("samples")
    grown = loads.growth(samples) if isinstance(samples, list) and plan.watches_growth else ()
    return Loaded(
        bench.target.name,
        plan.shape,
        plan.tasks,
        plan.workers,
        outcome.verdict,
        loads.transport,
        outcome.rule,
        outcome.reason,
        str(outcome.directory.path),
        measured,
        grown,
    )


_PROGRESS_BYTES = 1000


@contextmanager
def _watching(
    title: str, progress_file: str, watch: Watch
) -> Iterator[Callable[[RunDirectory], None]]:
    """Tell how far the load in a run's box is, a few times a second."""
    places: list[BoxPath] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.25):
            for place in places:
                progress = _progress(place)
                if progress is not None:
                    watch(title, *progress)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield lambda directory: places.append(BoxPath(directory.box_path, "doubles", progress_file))
    finally:
        over.set()
        thread.join()


def _progress(path: BoxPath) -> tuple[int, int] | None:
    try:
        done, total = path.read_text(limit=_PROGRESS_BYTES).split()
        return int(done), int(total)
    except (OSError, ValueError):  # not there yet
        return None
