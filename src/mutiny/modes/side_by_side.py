"""Runs side by side: so many at a time, each result as it comes; nothing new begins once it is over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from mutiny import stopping

Key = TypeVar("Key")
Done = TypeVar("Done")


def side_by_side(
    work: Iterable[tuple[Key, Callable[[], Done]]],
    jobs: int,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[Key, Done]]:
    """Do each piece of work in a thread and hand over what came of it.

    A piece is taken from `work` when there is room for it, and none when somebody wants Mutiny to stop or
    `is_over` says so; what runs then still comes to its end, and is handed over, too.
    """
    waiting = iter(work)
    running: dict[Future[Done], Key] = {}
    with ThreadPoolExecutor(max_workers=jobs) as pool:

        def fill() -> None:
            while len(running) < jobs and not stopping.asked() and not is_over():
                piece = next(waiting, None)
                if piece is None:
                    return
                running[pool.submit(piece[1])] = piece[0]

        fill()
        while running:
            try:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
            except stopping.Stopped:
                continue  # every run hears it, too, and comes to its end
            for future in done:
                yield running.pop(future), future.result()
            fill()
