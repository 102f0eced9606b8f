"""Trials side by side: the one that is waited for, and those that come next if it ends as the last one did.

Insight: a search is a function of the outcomes of its trials. So what it will ask for is found by running
it again on the outcomes so far and a guess. A wrong guess costs a trial that nobody asks for; what is found
is the same as with one trial after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from mutiny.model.operation import Operation

Steps = tuple[Operation, ...]
Outcomes = Mapping[Steps, list[bool]]


class Ahead:
    """Answers whether a sequence fails, and has often begun to find out before it is asked."""

    def __init__(
        self,
        trial: Callable[[Steps], bool],
        foresee: Callable[[Outcomes], Steps | None],
        jobs: int,
    ) -> None:
        """`trial`: try a sequence once; `foresee`: what is tried next, after these outcomes."""
        self._trial = trial
        self._foresee = foresee
        self._jobs = jobs
        self._outcomes: dict[Steps, list[bool]] = {}
        self._begun: dict[tuple[Steps, int], Future[bool]] = {}
        self._last = False
        """How the first trial of a sequence went the last time."""
        # Whoever guessed wrongly still runs: what is asked for must not wait behind it.
        self._pool = ThreadPoolExecutor(max_workers=2 * jobs)

    def __enter__(self) -> Ahead:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def __call__(self, candidate: Steps) -> bool:
        """Does it fail? Meanwhile the next ones are tried."""
        outcomes = self._outcomes.setdefault(candidate, [])
        trial = self._start(candidate, len(outcomes))
        self._look_ahead(candidate)
        failed = trial.result()
        if not outcomes:
            self._last = failed
        outcomes.append(failed)
        return failed

    def _look_ahead(self, asked: Steps) -> None:
        guessed = {sequence: list(known) for sequence, known in self._outcomes.items()}
        for _ in range(self._jobs - 1):
            known = guessed.setdefault(asked, [])
            known.append(bool(known) or self._last)  # what has failed once fails again
            following = self._foresee(guessed)
            if following is None:
                return
            self._start(following, len(guessed.get(following, ())))
            asked = following

    def _start(self, candidate: Steps, count: int) -> Future[bool]:
        key = (candidate, count)
        if key not in self._begun:
            self._begun[key] = self._pool.submit(self._trial, candidate)
        return self._begun[key]
