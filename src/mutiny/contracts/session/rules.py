"""The promises of a long session: id, class of failure, sentence."""

from __future__ import annotations

from mutiny.kit.rules import SETTINGS, rules_of

_LOST = "Lost work"
_STATE = "Corrupted state"
_FLOW = "Wrong flow"
_LIMIT = "Limits"
_TROUBLE = "Wrong recovery"
_TRUTH = "Untrue reports"
_LEFT = "Leftovers"
_LEAK = "Leaks"

TIER_0 = (
    (
        "checkpoint_whole",
        _STATE,
        "A checkpoint that was announced is whole, and its digest is true.",
    ),
    ("restores_last_valid", _LOST, "Recovery restores exactly the last valid checkpoint."),
    ("fallback_told", _LOST, "A checkpoint that is not valid is left out, and that is told."),
    (
        "work_kept",
        _LOST,
        "A crash costs at most one interval of work, and nothing that was done twice.",
    ),
    (
        "bytes_as_asked",
        _STATE,
        "What is written are the bytes that were asked for, in the project.",
    ),
)
TIER_1 = (
    ("checkpoint_complete", _STATE, "A checkpoint holds everything that a session is made of."),
    ("checkpoint_valid", _STATE, "A checkpoint is taken at a moment that can be gone on from."),
    ("tests_kept", _STATE, "What is kept of the tests is what the last run of them has told."),
    ("reads_own", _LEAK, "What an agent is given to read is of its project."),
    ("checkpoint_chain", _STATE, "Checkpoints and their deltas follow each other without a gap."),
    ("checkpoint_by_time", _FLOW, "No interval passes without a checkpoint."),
    ("checkpoint_by_calls", _FLOW, "So many tool calls never pass without a checkpoint."),
    ("checkpoint_by_tokens", _FLOW, "So many tokens never pass without a checkpoint."),
    ("checkpoint_by_phase", _FLOW, "A phase ends with a checkpoint."),
    ("phases_in_order", _FLOW, "Phases run in their order, and tasks when what they need is done."),
    ("gates_hold", _FLOW, "A phase is left when its criteria hold, and not before."),
    ("pause_holds", _FLOW, "Who is paused begins nothing; what was under way may end."),
    ("one_at_a_time", _FLOW, "An agent asks nothing while an earlier call of it is under way."),
    ("requests_readable", _FLOW, "What is said to the model is something that its API takes."),
    ("one_supervisor", _FLOW, "A session is driven by one process at a time."),
    ("severity_obeyed", _TROUBLE, "What an error leads to is what its severity says."),
    ("retries_bounded", _TROUBLE, "What fails is tried again, and not for ever."),
    ("backs_off", _TROUBLE, "Whoever was told to wait waits."),
    ("switches_model", _TROUBLE, "A model that never answers is replaced by the other one."),
    (
        "votes_true",
        _TROUBLE,
        "A vote is won by the most trust, and one that nobody wins is resolved.",
    ),
    ("recovers_in_time", _TROUBLE, "Recovery takes no longer than the table says."),
    ("agent_tokens", _LIMIT, "An agent above its tokens in an hour waits."),
    (
        "agent_calls",
        _LIMIT,
        "An agent near its calls in an hour does several at once, and then waits.",
    ),
    ("context_bounded", _LIMIT, "A context that is too long is compressed."),
    ("idle_reassigned", _LIMIT, "What an idle agent holds is given to another one."),
    ("total_tokens", _LIMIT, "A session above its tokens pauses, and warns before."),
    ("agents_bounded", _LIMIT, "No more agents run than were asked for."),
    ("disk_bounded", _LIMIT, "A session does not use more room than it may."),
    ("memory_bounded", _LIMIT, "A session with less memory than it uses does something about it."),
    ("tests_bounded", _LIMIT, "Tests that do not end are ended."),
    ("limits_have_reason", _LIMIT, "Who is far from a limit is not held up by it."),
)
TIER_2 = (
    ("metrics_add_up", _TRUTH, "Metrics are what the agents and the model's API wrote down."),
    ("metrics_regular", _TRUTH, "There is a line of metrics for every span of time, once."),
    ("status_true", _TRUTH, "Status tells what is so."),
    ("verify_true", _TRUTH, "Verify tells of each checkpoint whether it is valid."),
    ("health_true", _TRUTH, "Health tells what is so."),
    ("report_true", _TRUTH, "A report is what the session wrote down."),
    ("looks_only", _TRUTH, "Status, verify, health, metrics and report change nothing."),
    ("logs_whole", _STATE, "Every line of the logs parses, and time does not go back in them."),
    ("processes_end", _LEFT, "Nothing that a session has started outlives it."),
    ("no_growth", _LEFT, "Memory and descriptors do not grow with the length of a session."),
    ("project_works", _STATE, "What a complete session leaves compiles, and its tests pass."),
    SETTINGS,
)
RULES = rules_of("session", *TIER_0, *TIER_1, *TIER_2)
