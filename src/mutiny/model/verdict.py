"""The outcome of one step and of a whole run.

The insight behind the order: what could not be tested must never look like what passed, so a run's
verdict is the *worst* of its steps', and `inconclusive` is worse than `success`.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Judged = TypeVar("Judged")


class Verdict(Enum):
    """Classification of a step and of a run."""

    SUCCESS = "success"
    EXPECTED = "expected"
    INCONCLUSIVE = "inconclusive"
    TIMEOUT = "timeout"
    RECOVERY_BUG = "recovery_bug"
    BUG = "bug"

    @property
    def is_bug(self) -> bool:
        """True when a promise was broken."""
        return self in (Verdict.BUG, Verdict.RECOVERY_BUG)

    @property
    def stops_run(self) -> bool:
        """True when no further operation may run: the state is evidence now."""
        return self not in (Verdict.SUCCESS, Verdict.EXPECTED)

    @property
    def exit_code(self) -> int:
        """The process exit code that carries this verdict."""
        return _EXIT_CODES[self]


_SEVERITY = list(Verdict)
_EXIT_CODES = {
    Verdict.SUCCESS: 0,
    Verdict.EXPECTED: 0,
    Verdict.INCONCLUSIVE: 3,
    Verdict.TIMEOUT: 4,
    Verdict.RECOVERY_BUG: 1,
    Verdict.BUG: 1,
}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of the whole. Nothing at all was tested: inconclusive."""
    seen = list(verdicts)
    if not seen:
        return Verdict.INCONCLUSIVE
    most_severe = max(seen, key=_SEVERITY.index)
    return Verdict.SUCCESS if most_severe is Verdict.EXPECTED else most_severe


def first_of_worst(judged: Iterable[Judged], verdict: Callable[[Judged], Verdict]) -> Judged | None:
    """The one to show of many: the first that has the verdict of the whole. None: all passed."""
    listed = list(judged)
    whole = worst(map(verdict, listed))
    return next((one for one in listed if verdict(one) is whole and whole.stops_run), None)


def of_step(answered: Verdict, *, violated: bool, doubtful: bool, disturbed: bool) -> Verdict:
    """The verdict of one step: a broken promise outranks every doubt, and a doubt every success.

    A command that never ended stays a timeout: what it broke it may have been about to put right.
    """
    if answered is Verdict.TIMEOUT:
        return answered
    if violated:
        return Verdict.RECOVERY_BUG if disturbed else Verdict.BUG
    return Verdict.INCONCLUSIVE if doubtful else answered
