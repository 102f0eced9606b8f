"""The promises of a board. Their ids are stable API: replays and reports compare nothing else."""

from __future__ import annotations

from mutiny.kit.rules import ANSWER as _ANSWER
from mutiny.kit.rules import SETTINGS, binding, rules_of
from mutiny.model.violation import Rule

_OWNERS = "Ownership"
_LOST = "Lost work"
_STUCK = "Stuck work"
_ORDER = "Order of work"
_STATE = "Corrupted state"
_LEADER = "Leadership"
_GUARD = "Guards"


_OWN = (
    ("single_owner", _OWNERS, "A task has one owner at a time."),
    ("live_worker_kept", _OWNERS, "A worker that is heard of within its lease keeps its tasks."),
    ("only_owner_completes", _OWNERS, "Only the present owner speaks for a task."),
    ("no_double_effect", _OWNERS, "A task is completed once."),
    ("one_run", _OWNERS, "No two agents work on one task at the same time."),
    ("add_kept", _LOST, "A task whose adding was acknowledged is there."),
    ("claim_kept", _LOST, "A claim that was acknowledged stands until its owner ends it."),
    ("completion_kept", _LOST, "A completion that was acknowledged stands, with its output."),
    ("checkpoint_exact", _LOST, "A restore brings back exactly what the checkpoint held."),
    ("repair_keeps_data", _LOST, "A repair brings back everything that was acknowledged."),
    ("terminal_is_terminal", _STATE, "Done, failed and cancelled tasks stay so."),
    ("state_readable", _STATE, "After any crash the board can be read."),
    ("batch_is_atomic", _STATE, "Of a batch all tasks are added, or none."),
    ("no_stuck_claim", _STUCK, "What a dead worker holds is returned after its lease."),
    ("all_settle", _STUCK, "With healthy workers every task comes to its end."),
    ("dependencies_respected", _ORDER, "No task begins before its dependencies are done."),
    ("cycles_refused", _ORDER, "Tasks that depend on each other in a circle are refused."),
    ("priority_respected", _ORDER, "The most urgent task is claimed first, the oldest of equals."),
    ("one_leader", _LEADER, "There is at most one leader at a time."),
    ("tokens_grow", _LEADER, "Epochs and leader tokens only grow."),
    ("old_token_refused", _LEADER, "Whoever shows an old leader token is refused."),
    ("backs_off", _GUARD, "A task that failed rests before it is tried again."),
    ("attempts_bounded", _GUARD, "No task is tried more often than allowed."),
    ("stop_costs_nothing", _GUARD, "An orderly stop, and a start after it, use up no attempt."),
    ("breaker_opens", _GUARD, "After enough failures the circuit breaker lets nothing through."),
    ("breaker_half_opens", _GUARD, "An open breaker lets a few through after its time, not all."),
    ("breaker_closes", _GUARD, "After a success the breaker closes."),
    (
        "rate_limit_holds",
        _GUARD,
        "A worker gets through as often as its limit says, no more, no less.",
    ),
    ("one_server", _STATE, "A board has one server at a time."),
    ("no_growth", _STATE, "Memory, descriptors and files do not grow with the number of commands."),
    SETTINGS,
    ("lock_respected", _OWNERS, "While somebody holds the lock no change goes on."),
    ("status_is_honest", _ANSWER, "What the board shows is what the commands have done."),
    ("linearizable", _ORDER, "Every command takes effect at one moment of its own time."),
    (
        "numbers_are_true",
        _ANSWER,
        "Attempts, limits, priorities and epochs are those that acknowledged commands have made.",
    ),
)

RULES: dict[str, Rule] = rules_of("board", *_OWN, without=("parallel_is_serial", "recovers"))
"""All rules of the contract by id."""

BINDING = binding(
    *("board", "state_readable", "add_kept", "claim_kept", "completion_kept", "all_settle"),
    "linearizable",
)
"""Rules that no target may be excused from."""
