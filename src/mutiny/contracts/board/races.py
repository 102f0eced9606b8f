"""Which commands of a board can compete: claims of one task, changes at once, checks and changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Protocol

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.profile import BoardProfile
from mutiny.contracts.board.supported import supported
from mutiny.kit.abilities import Contest, Races
from mutiny.kit.operations import Reset
from mutiny.model.operation import Operation

LONG_LEASE_S = 60.0
"""Longer than any schedule takes: a lease that ends in the middle would be another test."""
HOLD_S = 1.5
ONE_PROCESS = (
    "all commands meet in one server process: their order inside of it cannot be chosen from outside, "
    "so there is no exhaustive part"
)


class Form(Protocol):
    """What is needed of a board's target file."""

    @property
    def profile(self) -> BoardProfile: ...

    @property
    def places(self) -> Mapping[str, str]: ...


def races(form: Form) -> Races:
    """What competes on this board."""
    profile = form.profile
    why_no_lock = "its server keeps the lock" if profile.server else "no lock in [places]"
    has_lock = "lock" in form.places and not profile.server
    locked = lock_checks(profile) if has_lock else ()
    return Races(
        beginning(profile),
        partial(contests, profile),
        (op.Settle(),),
        locked,
        sum(isinstance(one, op.HoldBoardLock) for one in locked),
        {
            **({"exhaustive": ONE_PROCESS} if profile.server else {}),
            **({} if has_lock else {"lock": f"there is no lock that commands take: {why_no_lock}"}),
        },
    )


def _claims(tag: str, workers: int) -> Iterator[Contest]:
    """Everybody wants the same task."""
    task = f"task{tag}"
    names = [f"w{number}" for number in range(1, workers + 1)]
    rivals = tuple(op.Claim(name, task) for name in names)
    yield Contest(f"{workers} claims of one task", (op.AddTask(task),), rivals)


def _updates(tag: str, workers: int) -> Iterator[Contest]:
    """Different changes of the same board: the last writer must not win."""
    first, second, held = f"one{tag}", f"two{tag}", f"held{tag}"
    yield Contest("two adds", (), (op.AddTask(first), op.AddTask(second)))
    yield Contest(
        "complete against heartbeat",
        (op.AddTask(held), op.Claim("w1", held)),
        (op.Complete("w1", held), op.Heartbeat("w1")),
    )


def _toctou(tag: str, workers: int) -> Iterator[Contest]:
    """Somebody checks, somebody else changes, the first goes on."""
    wanted, saved, name = f"wanted{tag}", f"saved{tag}", f"copy{tag}"
    yield Contest(
        "cancel against claim", (op.AddTask(wanted),), (op.Cancel(wanted), op.Claim("w1", wanted))
    )
    yield Contest(
        "restore against complete",
        (op.AddTask(saved), op.Claim("w1", saved), op.Checkpoint(name)),
        (op.Restore(name), op.Complete("w1", saved)),
    )


_CONTESTS: dict[str, Callable[[str, int], Iterator[Contest]]] = {
    "claims": _claims,
    "update": _updates,
    "toctou": _toctou,
}
_BEGIN: tuple[Operation, ...] = (
    Reset(),
    op.Configure("lease_s", LONG_LEASE_S),
    op.Init(),
    op.Up(),
)


def beginning(profile: BoardProfile) -> tuple[Operation, ...]:
    """The way to an empty board, as far as this one has words for it."""
    return tuple(one for one in _BEGIN if supported(profile, one))


def contests(profile: BoardProfile, kind: str, tag: str, workers: int) -> tuple[Contest, ...]:
    """What competes in this kind of race and can be said to this board; `tag` keeps rounds apart."""
    found = _CONTESTS[kind](tag, workers) if kind in _CONTESTS else ()
    return tuple(
        contest
        for contest in (found if profile.names_tasks else map(_unnamed, found))
        if all(supported(profile, one) for one in (*contest.before, *contest.together))
    )


def _unnamed(contest: Contest) -> Contest:
    """For a board whose claims cannot name a task: they want the only one that is open."""
    before, together = (
        tuple(replace(one, task=None) if isinstance(one, op.Claim) else one for one in part)
        for part in (contest.before, contest.together)
    )
    return replace(contest, before=before, together=together)


def lock_checks(profile: BoardProfile) -> tuple[Operation, ...]:
    """Changes while somebody holds the lock: they wait or say that it is taken."""
    held = (
        op.AddTask("locked-out"),
        op.Claim("w1", "first"),
        op.Complete("w1", "first"),
        op.Cancel("second"),
    )
    checks = tuple(op.HoldBoardLock(HOLD_S, one) for one in held if supported(profile, one))
    return (*beginning(profile), op.AddTask("first"), op.AddTask("second"), *checks, op.Settle())
