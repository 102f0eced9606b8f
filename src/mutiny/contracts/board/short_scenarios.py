"""One promise each, as short as it can be: a board that breaks several shows them all.

A longer scenario ends at its first bug and hides what comes after it. What must be refused is simply
said here: the model knows whether this board owes a refusal.
"""

from __future__ import annotations

from mutiny.contracts.board.operations import (
    AddTask,
    AssertOwner,
    Cancel,
    Checkpoint,
    Claim,
    Complete,
    Configure,
    CorruptBoard,
    Elect,
    Fail,
    Heartbeat,
    Init,
    List,
    Recover,
    Renew,
    Repair,
    Restore,
    Retry,
    Settle,
    Start,
    Status,
    StepDown,
    Up,
    WriteAsLeader,
)
from mutiny.kit.faults import DamageFile, ReadOnlyDisk, SkewClock
from mutiny.kit.operations import Heal, Parallel, Reset, Sleep
from mutiny.model.operation import Operation

Sequence = tuple[Operation, ...]
BEGIN: Sequence = (Reset(), Init(), Up())
_FOUR: Sequence = tuple(AddTask(name) for name in "abcd")
_DONE: Sequence = (*BEGIN, AddTask("a"), Claim("w1"), Complete("w1", "a"))
_FAILED: Sequence = (*BEGIN, AddTask("a", max_attempts=1), Claim("w1"), Fail("w1", "a"))

_PATHS = ("../tasks", "../board", "../state", "team/one")
"""Names that lead to other files, as boards call their own."""
_LONG = "a-task-whose-name-is-most-of-what-a-checkpoint-of-it-holds"

SHORT_SCENARIOS: dict[str, Sequence] = {
    "done_not_started": (*_DONE, Start("w1", "a"), Settle()),
    "done_not_failed": (*_DONE, Fail("w1", "a"), Settle()),
    "done_once": (*_DONE, Complete("w1", "a"), Settle()),
    "failed_not_completed": (*_FAILED, Complete("w1", "a"), Settle()),
    "failed_not_started": (*_FAILED, Start("w1", "a"), Settle()),
    "cancelled_not_completed": (
        *(*BEGIN, AddTask("a"), Claim("w1"), Cancel("a"), Complete("w1", "a"), Settle()),
    ),
    "stranger_completes": (
        *(*BEGIN, AddTask("a"), Claim("w1"), Complete("w2", "a"), Complete("w1", "a"), Settle()),
    ),
    "stranger_fails": (
        *(*BEGIN, AddTask("a"), Claim("w1"), Fail("w2", "a"), Complete("w1", "a"), Settle()),
    ),
    "behind_what_is_done": (
        *(*_DONE, AddTask("b", depends=("a",)), Claim("w2"), Complete("w2", "b"), List(), Settle()),
    ),
    "waiting_not_completed": (
        *(*BEGIN, AddTask("a"), AddTask("b", depends=("a",)), Complete("w1", "b"), List()),
        *(Claim("w1"), Complete("w1", "a"), Claim("w2"), Complete("w2", "b"), Settle()),
    ),
    "unknown_dependency": (*BEGIN, AddTask("a", depends=("nobody",)), AddTask("b"), Settle()),
    "failed_dependant": (
        *(*BEGIN, AddTask("a", max_attempts=1), AddTask("b", depends=("a",))),
        *(Claim("w1"), Fail("w1", "a"), Settle()),
    ),
    "cancelled_dependant": (
        *(*BEGIN, AddTask("a"), AddTask("b", depends=("a",)), Cancel("a"), Settle()),
    ),
    "retried_by_hand": (*_FAILED, Retry("a"), Claim("w2"), Settle()),
    "before_init": (Reset(), Claim("w1"), List(), AddTask("a"), Init(), AddTask("b"), Settle()),
    "odd_names": (
        *(*BEGIN, AddTask("a"), Claim("team/one"), Complete("team/one", "a"), AddTask("b")),
        *(Claim("../up"), AddTask("c"), Claim("a b"), List(), Settle()),
    ),
    "racing_adds": (
        *(*BEGIN, Parallel((AddTask("a"), AddTask("b"), AddTask("c"), AddTask("d")))),
        *(List(), Settle()),
    ),
    "racing_completions": (
        *(*BEGIN, *_FOUR, Claim("w1"), Claim("w2"), Claim("w3"), Claim("w4")),
        Parallel(
            (Complete("w1", "a"), Complete("w2", "b"), Complete("w3", "c"), Complete("w4", "d"))
        ),
        *(List(), Settle()),
    ),
    "racing_kinds": (
        *(*BEGIN, *_FOUR, Claim("w1"), Claim("w2")),
        Parallel((Complete("w1", "a"), Claim("w3"), AddTask("e"), Fail("w2", "b"))),
        *(List(), Settle()),
    ),
    "added_anew_after_restore": (
        *(*BEGIN, Checkpoint("before"), AddTask("a"), Claim("w1"), Restore("before")),
        *(AddTask("a"), Claim("w1"), Complete("w1", "a", stale=True), List(), Complete("w1", "a")),
        Settle(),
    ),
    "elected_anew": (
        *(*BEGIN, Elect("n1"), WriteAsLeader("n1"), Elect("n1"), WriteAsLeader("n1", stale=True)),
        *(WriteAsLeader("n1"), Status(), Settle()),
    ),
    "borrowed_token": (
        *(*BEGIN, Elect("n1"), WriteAsLeader("n2", borrowed=True), Renew("n2", borrowed=True)),
        *(StepDown("n2", borrowed=True), WriteAsLeader("n1"), Status(), Settle()),
    ),
    "leader_renews": (
        *(Reset(), Configure("leader_lease_s", 6), Init(), Up(), Elect("n1"), Sleep(3.6)),
        # Beyond the lease of the election, and well within that of the renewal.
        *(Renew("n1"), Sleep(3.6), Elect("n2"), WriteAsLeader("n1"), Status(), Settle()),
    ),
    "reasons_are_kept": (
        *(*BEGIN, AddTask("a"), AddTask("b"), Claim("w1"), Fail("w1", "a"), Cancel("b")),
        *(List(), Settle()),
    ),
    "newest_copy_damaged": (
        *(*BEGIN, AddTask("a"), AddTask("b"), DamageFile("garbage", file="backup")),
        *(CorruptBoard("garbage"), Repair(), List(), AddTask("c"), List()),
    ),
    "copies_named_as_paths": (
        *(*BEGIN, AddTask("a"), AddTask("b")),
        *(step for name in _PATHS for step in (Checkpoint(name), List())),
        *(Restore(_PATHS[0]), List(), Claim("w1"), Settle()),
    ),
    "damaged_checkpoint": (
        *(*BEGIN, AddTask(_LONG), AddTask(f"{_LONG}-too"), Checkpoint("copy")),
        *(
            step
            for seed in range(1, 7)
            for step in (
                DamageFile("flip", file="checkpoint", seed=seed),
                Restore("copy"),
                List(),
                Checkpoint("copy"),
            )
        ),
        Settle(),
    ),
    "heartbeat_lost": (
        *(*BEGIN, AddTask("a"), Claim("w1"), DamageFile("delete", file="heartbeat"), Recover()),
        *(AssertOwner("a", "w1"), Claim("w2"), Complete("w1", "a"), Settle()),
    ),
    "long_answers": (
        *(*BEGIN, *(AddTask(name, size=200_000) for name in "abc"), List(), Claim("w1")),
        *(Complete("w1", "a", size=200_000), List(), Status(), Settle()),
    ),
    "state_deleted": (*BEGIN, AddTask("a"), CorruptBoard("delete"), Claim("w1")),
    "state_repaired": (
        *(*BEGIN, AddTask("a"), AddTask("b"), CorruptBoard("truncate"), Repair(), List()),
        *(Claim("w1"), Settle()),
    ),
    "clock_steps": (
        *(*BEGIN, AddTask("a"), Claim("w1"), SkewClock(offset_s=3600, lasting=True)),
        *(Heartbeat("w1"), Recover(), List(), AssertOwner("a", "w1"), Heal()),
        *(Complete("w1", "a"), Settle()),
    ),
    "read_only_store": (
        *(*BEGIN, AddTask("a"), ReadOnlyDisk(lasting=True), AddTask("b"), Heal(), List()),
        *(Claim("w1"), Settle()),
    ),
}
