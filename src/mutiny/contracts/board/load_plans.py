"""Shapes of load on a board as sequences: one step that does many commands, between an ordinary beginning
and a `Settle` that checks the history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.load import growths
from mutiny.contracts.board.profile import BoardProfile
from mutiny.kit.abilities import LoadPlan, Loads, Sizes
from mutiny.kit.operations import Reset
from mutiny.model.operation import Operation

ONE_PROCESS_EACH = "a process a command"
PROGRESS = "load-progress"
"""Below the doubles' directory: how far the load is, for whoever watches."""
LONG_LEASE_S = 60.0
"""Where leases are not what is tested they are longer than any stall of the machine."""
RATE, BURST, REQUESTS = 0.5, 5, 12
"""The limit that bursts run against, and how often each worker asks."""


class Form(Protocol):
    """What is needed of a board's target file."""

    @property
    def profile(self) -> BoardProfile: ...

    @property
    def lines(self) -> object | None: ...

    @property
    def client(self) -> tuple[str, ...]: ...


def loads(form: Form) -> Loads:
    """How this board is put under load."""
    return Loads(transport(form), partial(plans, form), growth, op.Drive, PROGRESS)


def transport(form: Form) -> str:
    """How a load speaks to this board."""
    if form.lines is not None:
        return "one socket a worker"
    return "one MCP connection a worker" if form.client else ONE_PROCESS_EACH


def _begin(*figures: op.Configure) -> tuple[Operation, ...]:
    return (Reset(), *figures, op.Init(), op.Up())


def plans(form: Form, shapes: Sequence[str], sizes: Sizes) -> Iterator[LoadPlan]:
    """The sequences of these shapes for one board."""
    calm = _begin(op.Configure("lease_s", LONG_LEASE_S))
    end = (op.Status(), op.Settle())
    cycles = sizes.cycles or (30 if transport(form) == ONE_PROCESS_EACH else 300)
    workers = sizes.workers
    for shape in shapes:
        if shape == "cost":
            for tasks in sizes.tasks:
                drive = op.Drive("cycles", min(sizes.claims, tasks), 1)
                yield LoadPlan(shape, tasks, 1, (*calm, op.AddMany(tasks), drive, *end))
        elif shape == "cycles":
            drive = op.Drive("cycles", cycles, workers)
            sequence = (*calm, op.AddMany(cycles), drive, *end)
            yield LoadPlan(shape, cycles, workers, sequence, watches_growth=True)
        elif shape == "dag":
            drive = op.Drive("dag", sizes.graph, 2 * workers)
            added = op.AddMany(sizes.graph, "dag")
            settled = op.WaitForSettled()
            yield LoadPlan(shape, sizes.graph, 2 * workers, (*calm, added, drive, settled, *end))
        elif shape == "payloads":
            drive = op.Drive("payloads", 12, workers, sizes.largest)
            yield LoadPlan(shape, 12, workers, (*calm, op.AddMany(12), drive, *end))
        elif shape == "long":
            seconds = 1.5 * form.profile.figures.lease_s
            drive = op.Drive("long", workers, workers, seconds=seconds)
            yield LoadPlan(shape, workers, workers, (*_begin(), op.AddMany(workers), drive, *end))
        else:
            yield _burst(workers)


def _burst(workers: int) -> LoadPlan:
    limited = (op.Configure("rate_limit", RATE), op.Configure("rate_burst", BURST))
    lease = op.Configure("lease_s", LONG_LEASE_S)
    tasks = workers * REQUESTS
    drive = op.Drive("burst", REQUESTS, workers)
    operations: tuple[Operation, ...] = (
        *_begin(lease, *limited),
        op.AddMany(tasks),
        drive,
        op.Settle(),
    )
    return LoadPlan("burst", tasks, workers, operations)


def growth(samples: Sequence[Any]) -> tuple[dict[str, object], ...]:
    """What grew over the cycles of a load, each with its limit."""
    return tuple(
        {
            "name": one.limit.name,
            "unit": one.limit.unit,
            "what": one.what,
            "per_cycle": round(one.per_cycle, 4) + 0.0,  # no "-0"
            "limit": one.limit.per_cycle,
            "samples": one.samples,
            "too_much": one.too_much,
        }
        for one in growths(samples)
    )
