"""Waits on a live target, for every contract: until it is so, nothing moves, or all is too slow."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeAlias

from mutiny.kit.contract import StepContext
from mutiny.model.pace import BOUND, Patience
from mutiny.model.result import OperationResult

LOOK_EVERY_S = 1.0
"""How often a wait that only glances looks at everything, to see whether it moves."""

Finding: TypeAlias = "str | OperationResult"
"""What is still missing, in words; or the result that ends the wait."""
Wait: TypeAlias = Callable[[Any, Any, StepContext], OperationResult]
"""How an operation that waits is carried out: live target, operation, context."""


class Standing(Protocol):
    """What was seen of a target."""

    def standing(self) -> Hashable:
        """How things stand, without pids and times: what changes in it is progress."""
        ...


class Waiting(Protocol):
    """A live target that can be waited for."""

    def observe(self) -> Standing: ...

    def wait_change(self, timeout_s: float) -> None: ...

    def limit(self, given_s: float) -> float:
        """A limit of the target's file at the pace of this run."""
        ...


def until(live: Waiting, limit_s: float, missing: Callable[[Any], Finding]) -> OperationResult:
    """Look until nothing is missing any more; `missing` judges one complete look."""
    patience = Patience(live.limit(limit_s))
    while True:
        seen = live.observe()
        why = missing(seen)
        if isinstance(why, OperationResult):
            return why
        if not why:
            return OperationResult(stdout="so it is")
        patience.saw(seen.standing())
        patience.grow(live.limit(limit_s))
        if patience.over:
            return gave_up(patience, why, limit_s)
        live.wait_change(patience.left_s)


def until_glanced(live: Waiting, limit_s: float, missing: Callable[[], Finding]) -> OperationResult:
    """The same for what a glance tells that costs less than a complete look, which is only taken now and
    then to see whether anything moves.
    """
    patience = Patience(live.limit(limit_s))
    looked_at = time.monotonic()
    while True:
        why = missing()
        if isinstance(why, OperationResult):
            return why
        patience.grow(live.limit(limit_s))
        if patience.over:
            return gave_up(patience, why, limit_s)
        live.wait_change(min(patience.left_s, LOOK_EVERY_S))
        if time.monotonic() - looked_at >= min(LOOK_EVERY_S, patience.limit_s / 4):
            patience.saw(live.observe().standing())
            looked_at = time.monotonic()


def gave_up(patience: Patience, what: str, given_s: float) -> OperationResult:
    """It has not come: nothing moves any more, or all of it is too slow to be waited for.

    `stretch`: how much longer than `given_s` the limit was, at the slowest pace of the wait. Whoever judges
    the wait by another limit stretches it alike: the pace after the wait was not the one it waited at.
    """
    how = (
        f"nothing has moved for {patience.limit_s:.3g}s"
        if patience.stuck
        else f"things still move after {BOUND * patience.limit_s:.3g}s: slow is not stuck"
    )
    details: dict[str, object] = {"stretch": patience.limit_s / given_s if given_s else 1.0}
    if not patience.stuck:
        details["moving"] = True
    return OperationResult(None, stderr=f"{what}; {how}", timed_out=True, details=details)


def not_so(text: str, unknown: str | None = None) -> OperationResult:
    """An assertion that does not hold; `unknown`: nobody could look, so nothing is said."""
    return OperationResult(1, stderr=unknown or text, details={"unknown": unknown is not None})
