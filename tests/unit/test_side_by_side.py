"""Runs side by side: so many at a time, every result once, nothing new when it is over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from mutiny.modes.side_by_side import side_by_side

PATIENCE_S = 20.0


def numbers(count: int) -> Iterator[tuple[int, Callable[[], int]]]:
    for number in range(count):
        yield number, lambda number=number: number * 10  # type: ignore[misc]


@pytest.mark.parametrize("jobs", [1, 2, 7])
def test_every_result_comes_once_with_its_key(jobs: int) -> None:
    assert dict(side_by_side(numbers(20), jobs)) == {number: number * 10 for number in range(20)}


def test_so_many_are_under_way_at_once_and_no_more() -> None:
    meeting = threading.Barrier(3, timeout=PATIENCE_S)
    running, most, lock = 0, 0, threading.Lock()

    def meet() -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        meeting.wait()  # alone nobody comes past it
        with lock:
            running -= 1
        return 1

    assert len(list(side_by_side(((number, meet) for number in range(9)), 3))) == 9
    assert most == 3


def test_what_runs_when_it_is_over_is_handed_over_and_nothing_new_begins() -> None:
    begun: list[int] = []
    got: list[int] = []
    both = threading.Barrier(2, timeout=PATIENCE_S)

    def pieces() -> Iterator[tuple[int, Callable[[], int]]]:
        for number in range(50):
            begun.append(number)
            yield number, both.wait

    for key, _ in side_by_side(pieces(), 2, lambda: bool(got)):
        got.append(key)
    assert sorted(got) == begun == [0, 1]


def test_an_error_of_one_reaches_whoever_waits_for_the_results() -> None:
    def broken() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(side_by_side([("a", broken)], 2))
