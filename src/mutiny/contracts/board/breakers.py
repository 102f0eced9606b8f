"""Situations of a circuit breaker: failures open it, time half-opens it, a success closes it."""

from __future__ import annotations

from mutiny.contracts.board.fault_scenarios import Sequence
from mutiny.contracts.board.operations import (
    AddBatch,
    Cancel,
    Claim,
    Complete,
    Configure,
    Fail,
    Init,
    Release,
    Settle,
    Status,
    Up,
)
from mutiny.contracts.board.profile import BoardProfile
from mutiny.kit.operations import ExpectError, Reset, Sleep


def _failing(profile: BoardProfile) -> Sequence:
    """Enough failures to open a breaker, and three tasks that are left."""
    names = [f"t{number}" for number in range(int(profile.figures.breaker_failures))]
    tries = tuple(step for name in names for step in (Claim("w1", name), Fail("w1", name)))
    return (Init(), Up(), AddBatch((*names, "x", "y", "z")), *tries)


def opens(profile: BoardProfile) -> Sequence:
    """Once it is open nobody gets through."""
    return (
        *(Reset(), Configure("retry_base_s", 5), Configure("breaker_open_s", 60)),
        *(*_failing(profile), ExpectError(Claim("w1")), ExpectError(Claim("w2", "x"))),
        *(Status(), Settle()),
    )


def closes(profile: BoardProfile) -> Sequence:
    """Failures open it, time half-opens it, a success closes it."""
    return (
        *(Reset(), Configure("retry_base_s", 5), *_failing(profile), Claim("w1")),
        *(Sleep(profile.past(profile.figures.breaker_open_s)), Claim("w1", "x")),
        *(ExpectError(Claim("w2")), Complete("w1", "x"), Claim("w1"), Claim("w2")),
        *(Status(), Settle()),
    )


def probe_dropped(profile: BoardProfile) -> Sequence:
    """What was let through to try it is cancelled or given back: the next one may try."""
    return (
        *(Reset(), Configure("retry_base_s", 5), *_failing(profile)),
        *(Sleep(profile.past(profile.figures.breaker_open_s)), Claim("w1", "x"), Cancel("x")),
        *(Claim("w1", "y"), Release("w1", "y"), Claim("w2", "z"), Complete("w2", "z")),
        *(Claim("w1", "y"), Status(), Settle()),
    )


def opens_anew(profile: BoardProfile) -> Sequence:
    """What tries a half-open breaker takes its time, and fails: it is open for as long as before."""
    open_s = 3.0
    return (
        *(Reset(), Configure("retry_base_s", 30), Configure("breaker_open_s", open_s)),
        *(*_failing(profile), Sleep(profile.past(open_s)), Claim("w1", "x"), Sleep(2.4)),
        *(Fail("w1", "x"), Sleep(0.8), Claim("w2", "y"), Status()),
        *(Sleep(profile.past(open_s)), Claim("w2", "y"), Complete("w2", "y"), Settle()),
    )


def forgets(profile: BoardProfile) -> Sequence:
    """It counts failures in a row: a success in between begins the count anew."""
    names = [f"t{number}" for number in range(int(profile.figures.breaker_failures) - 1)]
    tries = tuple(step for name in names for step in (Claim("w1", name), Fail("w1", name)))
    return (
        *(Reset(), Configure("retry_base_s", 5), Init(), Up()),
        *(AddBatch((*names, "x", "y", "z")), *tries, Claim("w1", "x"), Complete("w1", "x")),
        *(Claim("w1", "y"), Fail("w1", "y"), Claim("w2", "z"), Settle()),
    )
