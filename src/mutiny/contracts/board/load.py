"""What a load must not show: growth, robbed workers, changed outputs, a limit that does not hold. Pure.

A board that leaks looks healthy at every single moment; only a line through many moments tells. So
growth is the least-squares slope over the cycles, with a limit that is stated, and it counts only when
the sum is more than noise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.observation import BoardObservation
from mutiny.kit.answer import Answer
from mutiny.kit.beliefs import Span
from mutiny.kit.operations import OUTLASTED
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.violation import Violation

CHANGING = (op.AddTask, op.AddBatch, *op.WORKING, op.Cancel, op.Restore)
"""Commands that need the lock."""
FEWEST_SAMPLES = 8
WARM_UP = 0.25
"""The first part of the samples, in which caches fill, does not count."""


@dataclass(frozen=True)
class Limit:
    """How much something may grow."""

    name: str
    unit: str
    per_cycle: float
    noise: float
    """Less than this in all is no growth."""


LIMITS = {
    "rss_kb": Limit("memory", "KB", 4.0, 2048.0),
    "descriptors": Limit("descriptors", "", 0.02, 4.0),
    "files": Limit("files", "", 0.02, 8.0),
}
"""What is watched over the cycles of a load."""


@dataclass(frozen=True)
class Growth:
    """How something grew over the cycles."""

    what: str
    per_cycle: float
    total: float
    """Over the cycles that count."""
    samples: int

    @property
    def limit(self) -> Limit:
        return LIMITS[self.what]

    @property
    def too_much(self) -> bool:
        """Above the limit, and more than noise."""
        return self.per_cycle > self.limit.per_cycle and self.total > self.limit.noise

    def __str__(self) -> str:
        limit = self.limit
        unit = f" {limit.unit}" if limit.unit else ""
        return (
            f"{limit.name}: {self.per_cycle:+.3g}{unit} a cycle "
            f"(limit {limit.per_cycle:g}{unit}, {self.samples} samples)"
        )


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The least-squares line through points: how steep it is."""
    count = len(points)
    if count < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if not spread:
        return 0.0
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def growths(samples: Sequence[Mapping[str, Any]]) -> tuple[Growth, ...]:
    """Everything that was watched, after the warm-up; nothing when there are too few samples."""
    counted = samples[int(len(samples) * WARM_UP) :]
    found = []
    for what in LIMITS:
        points = [(float(one["cycle"]), float(one[what])) for one in counted if what in one]
        if len(points) < FEWEST_SAMPLES:
            continue
        steep = slope(points)
        cycles = points[-1][0] - points[0][0]
        found.append(Growth(what, steep, steep * cycles, len(points)))
    return tuple(found)


def driven(model: BoardModel, operation: op.Drive, seen: BoardObservation) -> BoardModel:
    """After a load everything is as it is seen; its workers are gone."""
    names = dict.fromkeys((*operation.names, "load-thief"), "healthy")
    with_workers = replace(model, spawned={**model.spawned, **names})
    after = with_workers.see(seen)
    left = {name: how for name, how in after.spawned.items() if name not in names}
    heard = {**after.heard, **dict.fromkeys(names, Span(float("-inf"), seen.ended))}
    return replace(after, spawned=left, heard=heard)


def wrong_with_load(
    model: BoardModel, operation: op.Drive, result: OperationResult, seen: BoardObservation
) -> Violation | None:
    """The first broken promise that a load shows by itself."""
    measured = result.details.get("load")
    if not isinstance(measured, Mapping):
        return None
    return next(_wrong(model, operation, measured, seen), None)


def _wrong(
    model: BoardModel, operation: op.Drive, measured: Mapping[str, Any], seen: BoardObservation
) -> Iterator[Violation]:
    for one in measured.get("robbed", ()):
        text = f"{one['thief']} was given task {one['task']}, {one['silent_s']:.2f} s after "
        text += f"the last heartbeat of {one['owner']}; a lease is {one['lease_s']:g} s."
        yield Violation("board.live_worker_kept", text, one["task"])
    for one in measured.get("out_of_order", ()):
        text = f"Task {one['task']} was given out before {one['before']} was completed."
        yield Violation("board.dependencies_respected", text, one["task"])
    for one in measured.get("twice", ()):
        text = f"Task {one['task']} was given to {one['first']} and to {one['second']}."
        yield Violation("board.single_owner", text, one["task"])
    for one in measured.get("unanswered", ()):
        text = f"{one['command']} of {one['worker']} was not answered."
        yield Violation("board.answers_in_time", text)
    yield from _outputs(measured, seen)
    yield from _rate(model, measured)
    for one in measured.get("refused", ()):
        text = f"{one['command']} of {one['worker']} was refused: {one['error']} {one['message']}"
        yield Violation("board.serves_legal", text.strip(), one.get("task") or "")
    if operation.shape == "dag" and seen.tasks is not None:
        left = [view.id for view in seen.tasks.values() if view.status not in op.TERMINAL]
        if left:
            text = f"{len(left)} tasks have not come to their end, among them {left[0]}."
            yield Violation("board.all_settle", text, left[0])
    samples = measured.get("samples", ()) if operation.shape == "cycles" else ()
    for growth in growths(samples):
        if growth.too_much:
            text = f"{growth} after {operation.count} cycles"
            yield Violation("board.no_growth", f"Growth of {text}.", growth.limit.name)


def _outputs(measured: Mapping[str, Any], seen: BoardObservation) -> Iterator[Violation]:
    """Outputs come back as they were given."""
    for task, given in measured.get("outputs", {}).items():
        view = (seen.tasks or {}).get(task)
        if view is None or view.output is None:
            continue
        text = view.output.encode("utf-8", "surrogateescape")
        if hashlib.sha256(text).hexdigest() != given["sha256"]:
            changed = f"The output of task {task} has {len(text)} bytes and is not what its owner "
            changed += f"gave ({given['size']} bytes)."
            yield Violation("board.completion_kept", changed, task)


def _rate(model: BoardModel, measured: Mapping[str, Any]) -> Iterator[Violation]:
    """In no window more commands got through than burst and rate allow, and never fewer."""
    figures = model.profile.figures
    if figures.rate_limit <= 0 or "bursts" not in measured:
        return
    for worker, rows in measured["bursts"].items():
        passed = [(float(begun), float(ended)) for begun, ended, served in rows if served]
        worst = most_in_window(passed, figures.rate_limit, float(figures.rate_burst))
        if worst is not None:
            count, window_s = worst
            text = (
                f"{count} commands of {worker} got through within {window_s:.2f} s; "
                f"{figures.rate_burst} at once and {figures.rate_limit:g} a second are allowed."
            )
            yield Violation("board.rate_limit_holds", text, worker)
        first = rows[: int(figures.rate_burst)]
        if not all(served for _, _, served in first):
            text = f"One of the first {len(first)} commands of {worker} was limited."
            yield Violation("board.rate_limit_holds", text, worker)


def most_in_window(
    passed: Sequence[tuple[float, float]], rate: float, burst: float
) -> tuple[int, float] | None:
    """A window with more than a bucket of this size and rate can have let through, if any.

    A command got through at some moment of its span, so a window reaches from the invocation of its
    first to the return of its last: what is too much there is too much whenever it really was.
    """
    for first in range(len(passed)):
        for last in range(first + 1, len(passed)):
            window_s = passed[last][1] - passed[first][0]
            if last - first + 1 > burst + rate * window_s + 1e-9:
                return last - first + 1, window_s
    return None


def went_on(operation: Operation, result: OperationResult, answer: Answer) -> Violation | None:
    """A change that succeeded while somebody else held the lock all the time."""
    if not isinstance(operation, op.HoldBoardLock) or not isinstance(operation.during, CHANGING):
        return None
    if not answer.ok or result.details.get(OUTLASTED) is not True:
        return None
    text = (
        f"{operation.during} succeeded while somebody else held the lock, from before it began until "
        "after it had answered."
    )
    return Violation("board.lock_respected", text, op.task_of(operation.during) or "")
