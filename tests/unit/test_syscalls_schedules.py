"""Which orders are tried: nobody is starved by a command that only polls."""

from __future__ import annotations

import os

from mutiny.syscalls import tables
from mutiny.syscalls.calls import Call
from mutiny.syscalls.schedules import SPIN_STEPS, SPIN_VARIETY, Outcome, Step, fair

BOTH = (0, 1)


def step(command: int, name: str, file: str, flags: int = 0) -> Step:
    call = Call(
        index=0, pid=1, process="x#1", name=name, paths=(file,), files=(f"/r/{file}",), flags=flags
    )
    return Step(command, f"{name} {file}", BOTH, call)


def poll(command: int) -> list[Step]:
    """A look at a lock, as often as it takes to be recognised."""
    looks = [step(command, "openat", "daemon.lock", os.O_RDWR | tables.O_CREAT)]
    looks.append(step(command, "fcntl", "daemon.lock"))
    return (looks * SPIN_STEPS)[:SPIN_STEPS]


def test_who_polls_lets_the_others_go_first() -> None:
    assert fair(poll(1), BOTH) == (0,)
    assert fair([step(0, "write", "x"), *poll(1)], BOTH) == (0,)


def test_who_polls_alone_goes_on() -> None:
    assert fair(poll(1), (1,)) == (1,)


def test_a_few_looks_are_no_polling() -> None:
    assert fair(poll(1)[1:], BOTH) == BOTH
    assert fair([*poll(1)[1:], step(0, "openat", "x")], BOTH) == BOTH


def test_who_changes_something_or_looks_at_many_files_does_not_poll() -> None:
    assert fair([*poll(1)[1:], step(1, "write", "log")], BOTH) == BOTH
    reads = [step(1, "openat", f"file-{number % (SPIN_VARIETY + 1)}") for number in range(90)]
    assert fair(reads, BOTH) == BOTH


def test_a_switch_away_from_polling_is_no_preemption() -> None:
    steps = [*poll(1), Step(0, "write x", fair(poll(1), BOTH), step(0, "write", "x").call)]
    assert Outcome(tuple(steps), "done").preemptions == 0
