"""The promises of agents that summon agents: id, class of failure, sentence."""

from __future__ import annotations

from mutiny.kit.rules import rules_of

_STATE = "Corrupted state"
_LOST = "Lost work"
_TWICE = "Double work"
_RUNAWAY = "Runaway spawns"
_TRUTH = "Untrue reports"
_KILLED = "Live work killed"
_LEFT = "Leftovers"

TIER_0 = (
    ("database_whole", _STATE, "The database can be read at any time, and is whole."),
    ("never_new", _STATE, "A database that is empty, damaged or gone is never silently a new one."),
    ("messages_kept", _LOST, "What was accepted is there, once, as it was said; nothing else is."),
    ("messages_ordered", _LOST, "Who spoke later stands later, whatever the clocks say."),
    ("reader_sees_all", _LOST, "A reader gets every message, in order."),
    ("mention_runs", _LOST, "Every accepted mention leads to a run, or to a recorded refusal."),
    ("only_mentions", _RUNAWAY, "What only looks like a mention starts nobody."),
    ("run_once", _TWICE, "One mention is one run; what is refused never begins."),
    ("text_received", _LOST, "A run has received exactly the text that started it."),
    ("effect_once", _TWICE, "What has left an effect is not run again."),
)
TIER_1 = (
    ("one_live", _TWICE, "At most one run of an agent lives in a channel."),
    ("depth_bound", _RUNAWAY, "No chain of runs gets deeper than its bound."),
    ("runs_bounded", _RUNAWAY, "The runs for one root message are bounded."),
    ("running_bounded", _RUNAWAY, "No more runs are at work at once than may be."),
    ("nothing_after_end", _RUNAWAY, "After the completion signal nothing is started."),
    ("retries", "Wrong flow", "A failed run is tried again, as often and as late as it is said."),
    (
        "first_come",
        "Wrong flow",
        "Runs of an agent in a channel begin in the order of their mentions.",
    ),
    ("has_its_time", "Wrong flow", "Every attempt has the time that it may take."),
    ("row_true", _TRUTH, "Running means a live supervisor and provider; ended means neither."),
    ("times_true", _TRUTH, "What has ended says when; what has not ended does not."),
    ("result_true", _TRUTH, "Completed means that the agent ended well, failed that it did not."),
    ("result_kept", _LOST, "What has ended stays as it ended."),
    ("pid_first", _TRUTH, "The pid is written down before the provider can act."),
    ("session_own", _TRUTH, "A session belongs to the one run that made it."),
    (
        "outlives_starter",
        _KILLED,
        "A run ends by itself, by its stop, or by its time; by nothing else.",
    ),
    ("stop_stops", _LEFT, "What was stopped is stopped: no process of it lives."),
    ("only_named", _KILLED, "Only what was named is stopped."),
    ("cleanup_only_dead", _KILLED, "Cleaning up touches only the dead."),
)
TIER_2 = (
    (
        "health_true",
        _TRUTH,
        "Health names what is dead, stalled or without a session; nothing else.",
    ),
    ("origin_true", _TRUTH, "A run says truly what started it, by whom, and how deep it is."),
    ("registered", _LOST, "Agents and channels are those that were made."),
    ("reason_given", _TRUTH, "What failed or was refused says why."),
    ("looks_only", _TRUTH, "Who only looks changes nothing."),
    ("nothing_left", _LEFT, "When everything has ended no process is left."),
)
RULES = rules_of("spawns", *TIER_0, *TIER_1, *TIER_2)
