"""Situations, each small: what a board must do, and what it must survive.

Sleeps let leases, backoffs and breakers run out; no verdict depends on them, because every moment is
measured. The figures are those of the target's file, so that the sleeps fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from mutiny.contracts.board import breakers
from mutiny.contracts.board.fault_scenarios import (
    BEGIN,
    FAULT_SCENARIOS,
    NEEDS_FILES,
    NEEDS_SERVER,
    OWN_AGENTS,
    Sequence,
)
from mutiny.contracts.board.operations import (
    AddBatch,
    AddTask,
    AddUnnamed,
    AssertOwner,
    AssertStatus,
    Cancel,
    Checkpoint,
    Claim,
    Complete,
    Configure,
    Down,
    Elect,
    Fail,
    Heartbeat,
    Init,
    List,
    Recover,
    Release,
    Renew,
    Restore,
    Retry,
    Settle,
    Start,
    Status,
    StepDown,
    Up,
    Verify,
    WriteAsLeader,
)
from mutiny.contracts.board.profile import LONGEST_WAIT_S, BoardProfile
from mutiny.contracts.board.short_scenarios import SHORT_SCENARIOS
from mutiny.contracts.board.supported import TELLING, fit
from mutiny.kit.faults import SkewClock
from mutiny.kit.operations import ExpectError, Parallel, Reset, Sleep
from mutiny.kit.recipes import everywhere, misset, said_wrongly, with_words_for_numbers
from mutiny.kit.supported import worth_running

CHECKUP: Sequence = (
    Reset(),
    ExpectError(Claim("w1")),
    *BEGIN[1:],
    AddTask("a"),
    AddTask("b", priority=1),
    AddTask("c"),
    AddTask("d", depends=("a",)),
    Claim("w1"),
    AssertStatus("b", "claimed"),
    ExpectError(Claim("w2", "b")),
    Start("w1", "b"),
    ExpectError(Complete("w2", "b")),
    Complete("w1", "b"),
    ExpectError(Complete("w1", "b")),
    ExpectError(Complete("w1", "nobody")),
    ExpectError(Claim("w2", "d")),
    Claim("w1", "a"),
    Release("w1", "a"),
    Cancel("c"),
    ExpectError(Cancel("c")),
    Claim("w1", "a"),
    Complete("w1", "a", size=2000),
    Claim("w2"),
    Complete("w2", "d"),
    ExpectError(Claim("w1")),
    Status(),
    List(),
    Settle(),
)
"""Every ordinary command once, and the refusals that every board has: a target file is tried with it."""


def checkup(profile: BoardProfile) -> Sequence:
    """What a board is told whose file is tried; none where agents of its own would come in between."""
    return () if profile.works else CHECKUP


def _stale_claim(profile: BoardProfile) -> Sequence:
    """A worker dies; its task is returned, and its ghost is refused."""
    over = Sleep(profile.past(profile.figures.lease_s))
    return (
        *BEGIN,
        AddTask("a"),
        Claim("w1"),
        Start("w1", "a"),
        over,
        Recover(),
        AssertStatus("a", "available"),
        Claim("w2"),
        AssertOwner("a", "w2"),
        ExpectError(Complete("w1", "a")),
        ExpectError(Release("w1", "a")),
        Complete("w2", "a"),
        Settle(),
    )


def _stale_by_claim(profile: BoardProfile) -> Sequence:
    """Nobody calls recover: the next claim takes what is stale; at the last attempt it fails."""
    over = Sleep(profile.past(profile.figures.lease_s))
    return (
        *BEGIN,
        AddTask("a", max_attempts=2),
        Claim("w1"),
        over,
        Claim("w2"),
        AssertOwner("a", "w2"),
        over,
        ExpectError(Claim("w3")),
        AssertStatus("a", "failed"),
        Settle(),
    )


def _claim_is_heard(profile: BoardProfile) -> Sequence:
    """Who was silent for long and claims has shown that it lives."""
    over = Sleep(profile.past(profile.figures.lease_s))
    return (
        *BEGIN,
        AddTask("a"),
        Heartbeat("w1"),
        over,
        Claim("w1"),
        Claim("w2"),
        AssertOwner("a", "w1"),
        Complete("w1", "a"),
        Settle(),
    )


def _live_worker(profile: BoardProfile) -> Sequence:
    """A worker that is heard of keeps its task, however long it takes."""
    part = Sleep(round(profile.figures.lease_s * 0.4, 3))
    beat: Sequence = (part, Heartbeat("w1"))
    return (
        *BEGIN,
        AddTask("a"),
        Claim("w1"),
        *(beat * 3),
        Recover(),
        Claim("w2"),
        Complete("w1", "a"),
        Settle(),
    )


def _clock_skew(profile: BoardProfile) -> Sequence:
    """One clock that is an hour ahead or behind robs nobody."""
    long_enough = profile.figures.lease_s >= 20
    return (
        Reset(),
        *(() if long_enough else (Configure("lease_s", 20),)),
        Init(),
        Up(),
        AddTask("a"),
        AddTask("b"),
        Heartbeat("w1"),
        Claim("w1"),
        SkewClock(offset_s=3600, during=Claim("w2")),
        AssertOwner("a", "w1"),
        SkewClock(offset_s=-3600, during=Heartbeat("w1")),
        SkewClock(offset_s=3600, during=Recover()),
        Recover(),
        AssertOwner("a", "w1"),
        AssertOwner("b", "w2"),
        Complete("w1", "a"),
        Settle(),
    )


def _election(profile: BoardProfile) -> Sequence:
    """One leader at a time; whoever was one before is fenced off."""
    over = Sleep(profile.past(profile.figures.leader_lease_s))
    return (
        *BEGIN,
        Elect("n1"),
        Elect("n2"),
        WriteAsLeader("n1"),
        Renew("n1"),
        StepDown("n1"),
        ExpectError(WriteAsLeader("n1")),
        Elect("n2"),
        over,
        Elect("n3"),
        ExpectError(WriteAsLeader("n2")),
        ExpectError(Renew("n2")),
        WriteAsLeader("n3"),
        ExpectError(WriteAsLeader("n3", stale=True)),
        Status(),
        Settle(),
    )


def _next_leader(profile: BoardProfile) -> Sequence:
    """The next leader has a newer token, though the last one never stepped down."""
    over = Sleep(profile.past(profile.figures.leader_lease_s))
    return (*BEGIN, Elect("n1"), over, Elect("n2"), Status(), Settle())


def _refused_renews_nothing(profile: BoardProfile) -> Sequence:
    """Who wants to lead and is refused keeps no other lease alive: it runs out all the same."""
    set_to = Configure("leader_lease_s", LONG_LEASE_S)
    known = profile.settable is None or set_to.name in profile.settable
    lease_s = LONG_LEASE_S if known else profile.figures.leader_lease_s
    first_s = round(lease_s * 0.7, 3)
    rest = Sleep(round(profile.past(lease_s) - first_s, 3))
    return (
        *(Reset(), set_to, Init(), Up(), Elect("n1"), Sleep(first_s), Elect("n2"), Renew("n2")),
        *(Elect("n2"), rest, Elect("n2"), WriteAsLeader("n2"), Status(), Settle()),
    )


def _retry_returns(profile: BoardProfile) -> Sequence:
    """What has rested comes back, and not for ever."""
    rest_s = 0.2 * (1 + profile.figures.jitter)
    return (
        Reset(),
        Configure("retry_base_s", 0.2),
        Init(),
        Up(),
        AddTask("a"),
        Claim("w1"),
        Fail("w1", "a"),
        Sleep(profile.past(rest_s)),
        Claim("w2"),
        Fail("w2", "a"),
        Sleep(profile.past(rest_s * 2)),
        Claim("w1"),
        Fail("w1", "a"),
        AssertStatus("a", "failed"),
        Retry("a"),
        Claim("w1"),
        Complete("w1", "a"),
        Settle(),
    )


def _named_alike(profile: BoardProfile) -> Mapping[str, Sequence]:
    """What the board would call its next task is taken."""
    second, third = (profile.gives_names.format(number) for number in (2, 3))
    steps = (*BEGIN, AddTask(second), AddUnnamed(), AddTask("a"), AddUnnamed(), AddTask(third))
    return {"names_given": (*steps, AddUnnamed(), List(), Claim("w1"), Claim("w2"), Settle())}


_SAID_WRONGLY: Sequence = (
    *BEGIN,
    AddTask("a"),
    AddTask("b"),
    Claim("w1"),
    *said_wrongly(Status(), List(), AddTask("c"), Heartbeat("w1"), Claim("w2")),
    *said_wrongly(Release("w1", "a"), Complete("w1", "a"), AddBatch(("d", "e:d"))),
    *(Elect("n1"), *said_wrongly(Renew("n1"))),
    *with_words_for_numbers(AddTask("c"), AddBatch(("d",)), Complete("w1", "a"), Renew("n1")),
    Settle(),
)
_WRONG_SETTINGS: Sequence = (
    *(*BEGIN, AddTask("a"), Down(), *misset(Up()), *misset(List())),
    *(*misset(AddTask("b"), 4), Up(), Claim("w1"), Settle()),
)
_FIXED: Mapping[str, Sequence] = {
    "ready_tasks": (
        *BEGIN,
        AddTask("a"),
        AddTask("b", priority=1),
        AddTask("c"),
        Claim("w1"),
        AssertStatus("b", "claimed"),
        Start("w1", "b"),
        Complete("w1", "b"),
        Claim("w1"),
        Complete("w1", "a", size=2000),
        Claim("w2"),
        Complete("w2", "c"),
        ExpectError(Claim("w1")),
        Status(),
        List(),
        Settle(),
    ),
    "dependencies": (
        *BEGIN,
        AddTask("base"),
        AddBatch(("left:base", "right:base", "top:left,right")),
        AssertStatus("top", "blocked"),
        ExpectError(Claim("w1", "top")),
        Claim("w1"),
        ExpectError(Claim("w2")),
        Complete("w1", "base"),
        Claim("w1"),
        Claim("w2"),
        Complete("w1", "left"),
        AssertStatus("top", "blocked"),
        Complete("w2", "right"),
        AssertStatus("top", "available"),
        Claim("w1"),
        Complete("w1", "top"),
        Settle(),
    ),
    "failed_dependency": (
        *BEGIN,
        AddTask("base", max_attempts=1),
        AddTask("next", depends=("base",)),
        AddTask("last", depends=("next",)),
        Claim("w1"),
        Fail("w1", "base"),
        AssertStatus("last", "failed"),
        ExpectError(Retry("last")),
        Retry("base"),
        Retry("next"),
        AssertStatus("next", "blocked"),
        Cancel("base"),
        AssertStatus("next", "failed"),
        Settle(),
    ),
    "cycles": (
        *BEGIN,
        AddTask("a"),
        ExpectError(AddBatch(("x:y", "y:x"))),
        ExpectError(AddTask("self", depends=("self",))),
        ExpectError(AddTask("orphan", depends=("nobody",))),
        ExpectError(AddTask("a")),
        AddBatch(("x", "y:x", "z:y,a")),
        Settle(),
    ),
    "batch_atomic": (
        *BEGIN,
        AddTask("a"),
        ExpectError(AddBatch(("b", "c:b", "a"))),
        ExpectError(AddBatch(("d", "e:missing"))),
        AddBatch(("b", "c:b")),
        Verify("there are 3 tasks"),
        Settle(),
    ),
    "contention": (
        *BEGIN,
        AddTask("a"),
        Parallel((Claim("w1"), Claim("w2"), Claim("w3"))),
        AddTask("b"),
        AddTask("c"),
        Parallel((Claim("w4"), Claim("w5"), AddTask("d"))),
        List(),
        Settle(),
    ),
    "ownership": (
        *BEGIN,
        AddTask("a"),
        AddTask("b"),
        Claim("w1"),
        ExpectError(Complete("w2", "a")),
        ExpectError(Complete("w1", "a", stale=True)),
        ExpectError(Start("w2", "a")),
        Start("w1", "a"),
        ExpectError(Start("w1", "a")),
        Release("w1", "a"),
        Claim("w2", "a"),
        ExpectError(Complete("w1", "a")),
        Complete("w2", "a"),
        ExpectError(Complete("w2", "a")),
        ExpectError(Cancel("a")),
        ExpectError(Claim("w1", "a")),
        Cancel("b"),
        ExpectError(Claim("w1")),
        Settle(),
    ),
    "names_alike": (
        *(*BEGIN, AddTask("t"), AddTask("t1"), AddTask("t-1"), AddTask("T")),
        *(Claim("w", "t1"), Claim("w1", "t"), ExpectError(Complete("w", "t"))),
        *(ExpectError(Complete("w1", "t1")), Complete("w", "t1"), AssertOwner("t", "w1")),
        *(AssertStatus("t-1", "available"), Cancel("t-1"), AssertOwner("t", "w1"), Cancel("T")),
        *(AssertOwner("t", "w1"), Checkpoint("one"), Complete("w1", "t"), Checkpoint("One")),
        *(Restore("one"), AssertStatus("t", "available"), Restore("One"), Settle()),
    ),
    "priority": (
        *BEGIN,
        AddTask("old"),
        AddTask("new"),
        AddTask("urgent", priority=1),
        AddTask("lazy", priority=9),
        Claim("w1"),
        AssertOwner("urgent", "w1"),
        Claim("w1"),
        AssertOwner("old", "w1"),
        Claim("w2"),
        AssertOwner("new", "w2"),
        Complete("w1", "urgent"),
        AssertOwner("old", "w1"),
        Settle(),
    ),
    "priority_is_a_number": (
        *(*BEGIN, AddTask("a", priority=10), AddTask("b", priority=9), AddTask("c", priority=2)),
        *(Claim("w1"), Claim("w2"), Claim("w3"), Settle()),
    ),
    "checkpoint": (
        *BEGIN,
        AddTask("a"),
        AddTask("b"),
        AddTask("c", depends=("a",)),
        Claim("w1"),
        Complete("w1", "a"),
        Claim("w1"),
        Checkpoint("one"),
        Complete("w1", "b"),
        AddTask("d"),
        Claim("w2"),
        Complete("w2", "c"),
        Restore("one"),
        Verify("there are 3 tasks"),
        AssertStatus("a", "done"),
        AssertStatus("b", "available"),
        AssertStatus("c", "available"),
        ExpectError(Complete("w1", "b")),
        Claim("w3"),
        Claim("w3"),
        ExpectError(Restore("none")),
        Settle(),
    ),
    "two_checkpoints": (
        *BEGIN,
        AddTask("a"),
        Checkpoint("one"),
        AddTask("b"),
        Checkpoint("one"),
        Cancel("a"),
        Restore("one"),
        Verify("there are 2 tasks"),
        Settle(),
    ),
    "restore_fences": (
        *BEGIN,
        AddTask("a"),
        Checkpoint("one"),
        Claim("w1"),
        Restore("one"),
        Claim("w2"),
        ExpectError(Complete("w1", "a")),
        Complete("w2", "a"),
        Settle(),
    ),
    "tokens_over_restore": (
        *BEGIN,
        Elect("n1"),
        Checkpoint("one"),
        StepDown("n1"),
        Elect("n2"),
        StepDown("n2"),
        Restore("one"),
        Elect("n3"),
        ExpectError(WriteAsLeader("n2")),
        Settle(),
    ),
    "one_leader": (
        Reset(),
        Configure("leader_lease_s", 30),
        Init(),
        Up(),
        Elect("n1"),
        ExpectError(Elect("n2")),
        WriteAsLeader("n1"),
        Renew("n1"),
        StepDown("n1"),
        ExpectError(WriteAsLeader("n1")),
        Elect("n2"),
        ExpectError(WriteAsLeader("n1")),
        ExpectError(WriteAsLeader("n2", stale=True)),
        WriteAsLeader("n2"),
        Settle(),
    ),
    "retry_backoff": (
        Reset(),
        Configure("retry_base_s", 4),
        Init(),
        Up(),
        AddTask("a"),
        Claim("w1"),
        Fail("w1", "a"),
        Claim("w2"),
        Claim("w2", "a"),
        AddTask("b"),
        Claim("w2"),
        Settle(),
    ),
    "limiter_refills": (
        *(Reset(), Configure("rate_limit", 0.25), Configure("rate_burst", 2), Init(), Up()),
        *(AddBatch(("a", "b", "c", "d", "e", "f")), Claim("w-1"), Sleep(9.0)),
        *(Claim("w-1"), Claim("w-1"), Claim("w-1"), Settle()),
    ),
    "limiter": (
        Reset(),
        Configure("rate_limit", 0.1),
        Configure("rate_burst", 3),
        Init(),
        Up(),
        AddBatch(("a", "b", "c", "d", "e", "f")),
        Claim("w-1"),
        Claim("w-1"),
        Claim("w-1"),
        ExpectError(Claim("w-1")),
        Claim("w-2"),
        Settle(),
    ),
}
_TIMED = {
    "clock_skew": _clock_skew,
    "stale_claim": _stale_claim,
    "stale_by_claim": _stale_by_claim,
    "claim_is_heard": _claim_is_heard,
    "live_worker": _live_worker,
    "election": _election,
    "next_leader": _next_leader,
    "refused_renews_nothing": _refused_renews_nothing,
    "retry_returns": _retry_returns,
    "breaker_opens": breakers.opens,
    "breaker": breakers.closes,
    "breaker_forgets": breakers.forgets,
    "breaker_probe_dropped": breakers.probe_dropped,
    "breaker_opens_anew": breakers.opens_anew,
}
_NEEDS_PRIORITIES = ("priority", "priority_is_a_number")
_NEEDS_BREAKER = (
    *("breaker", "breaker_opens", "breaker_forgets", "breaker_probe_dropped"),
    "breaker_opens_anew",
)
_ONE_LEASE = ("stale_claim", "claim_is_heard")
"""They wait once until a lease is over, for which a minute is worth it."""
_NEEDS_LEASE = (
    *("stale_by_claim", "live_worker", "dying_worker", "killed_worker"),
    *_ONE_LEASE,
)
"""They wait until a lease is over, which nobody does for a long one."""
LONGEST_LEASE_S = 90.0
LONG_LEASE_S = 6.0
"""So long that two commands on a busy machine are much shorter."""


def _soon_over(profile: BoardProfile, name: str) -> bool:
    """Does a lease run out within a run? Where nothing runs out by intention there is nothing to see."""
    if not profile.leases:
        return not profile.keeps_claims
    longest_s = LONGEST_LEASE_S if name in _ONE_LEASE else LONGEST_WAIT_S
    return profile.figures.lease_s <= longest_s


def scenarios_of(profile: BoardProfile) -> Mapping[str, Sequence]:
    """The scenarios that make sense for a target."""
    timed = {} if profile.works else {name: make(profile) for name, make in _TIMED.items()}
    away = {
        "said_wrongly": _SAID_WRONGLY,
        "wrong_settings": _WRONG_SETTINGS,
        **everywhere(_FIXED["ready_tasks"]),
    }
    named = _named_alike(profile) if profile.gives_names else {}
    given = {**_FIXED, **named, **timed, **FAULT_SCENARIOS, **SHORT_SCENARIOS, **away}
    listed = OWN_AGENTS if profile.works else given
    chosen = {
        name: sequence
        for name, sequence in listed.items()
        if (profile.works or name not in (NEEDS_FILES if profile.server else NEEDS_SERVER))
        and (profile.breaker or name not in _NEEDS_BREAKER)
        and (name not in _NEEDS_LEASE or _soon_over(profile, name))
        and (profile.says_priorities or name not in _NEEDS_PRIORITIES)
        and name not in profile.skips
    }
    return worth_running(chosen, partial(fit, profile), TELLING)
