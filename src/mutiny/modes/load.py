"""Load mode: shapes of load become sequences, and every sequence goes through the one loop.

A load is one operation that does many commands, between an ordinary beginning and a `Settle` that
checks the history: so a load is judged like everything else, and its replay is a few lines long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mutiny import stopping
from mutiny.contracts.board import operations as op
from mutiny.contracts.board.load import growths
from mutiny.engine.loading import Loaded, LoadReport
from mutiny.engine.loop import Outcome
from mutiny.engine.rundir import RunDirectory
from mutiny.errors import UsageError
from mutiny.kit.operations import Reset
from mutiny.model.operation import Operation
from mutiny.modes.bench import Assignment, Bench
from mutiny.system.files import BoxPath
from mutiny.targets.board.load import PROGRESS
from mutiny.targets.board.spec import BoardSpec

SHAPES = ("cost", "cycles", "dag", "payloads", "long", "burst")
ONE_PROCESS_EACH = "a process a command"
LONG_LEASE_S = 60.0
"""Where leases are not what is tested they are longer than any stall of the machine."""
RATE, BURST, REQUESTS = 0.5, 5, 12
"""The limit that bursts run against, and how often each worker asks."""
Watch = Callable[[str, int, int], None]
"""What runs, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Sizes:
    """How large the loads are."""

    tasks: tuple[int, ...] = (100, 1000)
    claims: int = 20
    """Claims that are measured at each size."""
    workers: int = 4
    cycles: int | None = None
    """None: as many as take a few seconds."""
    graph: int = 120
    largest: int = 1_000_000


@dataclass(frozen=True)
class Plan:
    """One load to run."""

    shape: str
    tasks: int
    workers: int
    operations: tuple[Operation, ...]

    @property
    def title(self) -> str:
        return f"{self.shape} with {self.tasks} tasks"


def transport(spec: BoardSpec) -> str:
    """How a load speaks to this board."""
    if spec.lines is not None:
        return "one socket a worker"
    return "one MCP connection a worker" if spec.client else ONE_PROCESS_EACH


def _begin(*figures: op.Configure) -> tuple[Operation, ...]:
    return (Reset(), *figures, op.Init(), op.Up())


def plans(spec: BoardSpec, shapes: Sequence[str], sizes: Sizes) -> Iterator[Plan]:
    """The sequences of these shapes for one board."""
    calm = _begin(op.Configure("lease_s", LONG_LEASE_S))
    end = (op.Status(), op.Settle())
    cycles = sizes.cycles or (30 if transport(spec) == ONE_PROCESS_EACH else 300)
    workers = sizes.workers
    for shape in shapes:
        if shape == "cost":
            for tasks in sizes.tasks:
                drive = op.Drive("cycles", min(sizes.claims, tasks), 1)
                yield Plan(shape, tasks, 1, (*calm, op.AddMany(tasks), drive, *end))
        elif shape == "cycles":
            drive = op.Drive("cycles", cycles, workers)
            yield Plan(shape, cycles, workers, (*calm, op.AddMany(cycles), drive, *end))
        elif shape == "dag":
            drive = op.Drive("dag", sizes.graph, 2 * workers)
            added = op.AddMany(sizes.graph, "dag")
            settled = op.WaitForSettled()
            yield Plan(shape, sizes.graph, 2 * workers, (*calm, added, drive, settled, *end))
        elif shape == "payloads":
            drive = op.Drive("payloads", 12, workers, sizes.largest)
            yield Plan(shape, 12, workers, (*calm, op.AddMany(12), drive, *end))
        elif shape == "long":
            seconds = 1.5 * spec.profile.figures.lease_s
            drive = op.Drive("long", workers, workers, seconds=seconds)
            yield Plan(shape, workers, workers, (*_begin(), op.AddMany(workers), drive, *end))
        else:
            yield _burst(workers)


def _burst(workers: int) -> Plan:
    limited = (op.Configure("rate_limit", RATE), op.Configure("rate_burst", BURST))
    lease = op.Configure("lease_s", LONG_LEASE_S)
    tasks = workers * REQUESTS
    drive = op.Drive("burst", REQUESTS, workers)
    operations = (*_begin(lease, *limited), op.AddMany(tasks), drive, op.Settle())
    return Plan("burst", tasks, workers, operations)


def load(
    bench: Bench, shapes: Sequence[str], sizes: Sizes, report: LoadReport, watch: Watch
) -> None:
    """Run all shapes against one board; the first bug of a board ends its loads."""
    spec = bench.target.spec
    if not isinstance(spec, BoardSpec):
        raise UsageError(f"target {bench.target.name} is no board; `mutiny load` needs one")
    for plan in plans(spec, shapes, sizes):
        assignment = Assignment(plan.operations, f"load: {plan.title}", 1, "load")
        try:
            with _watching(f"{bench.target.name} {plan.title}", watch) as seen:
                outcome = bench.run(assignment, on_directory=seen)
        except stopping.Stopped:
            return
        report.loads.append(_loaded(bench, plan, outcome))
        if outcome.verdict.is_bug or stopping.asked():
            return


def _loaded(bench: Bench, plan: Plan, outcome: Outcome) -> Loaded:
    measured: dict[str, object] = {}
    for step in outcome.steps:
        if isinstance(step.operation, op.Drive):
            told = step.result.details.get("load")
            measured = dict(told) if isinstance(told, dict) else {}
            measured.pop("outputs", None)
        history = step.result.details.get("history")
        if isinstance(history, dict):
            measured["history"] = history
    samples = measured.get("samples")
    grown = growths(samples) if isinstance(samples, list) and plan.shape == "cycles" else ()
    return Loaded(
        bench.target.name,
        plan.shape,
        plan.tasks,
        plan.workers,
        outcome.verdict,
        transport(bench.target.spec),
        outcome.rule,
        outcome.reason,
        str(outcome.directory.path),
        measured,
        tuple(
            {
                "name": one.limit.name,
                "unit": one.limit.unit,
                "what": one.what,
                "per_cycle": round(one.per_cycle, 4) + 0.0,  # no "-0"
                "limit": one.limit.per_cycle,
                "samples": one.samples,
                "too_much": one.too_much,
            }
            for one in grown
        ),
    )


_PROGRESS_BYTES = 1000


@contextmanager
def _watching(title: str, watch: Watch) -> Iterator[Callable[[RunDirectory], None]]:
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
        yield lambda directory: places.append(BoxPath(directory.box_path, "doubles", PROGRESS))
    finally:
        over.set()
        thread.join()


def _progress(path: BoxPath) -> tuple[int, int] | None:
    try:
        done, total = path.read_text(limit=_PROGRESS_BYTES).split()
        return int(done), int(total)
    except (OSError, ValueError):  # not there yet
        return None
