"""The bugs that `longboat session` can be asked to have; `longboat.plants` adds them to its table.

Plain rows: name, what it does, kind, where it was seen, and what finds it: a scenario (or `sweep KIND
SCENARIO COMMAND`) and the rule that it breaks there.
"""

from __future__ import annotations

_LOST = "lost work"
_STATE = "state corruption"
_FLOW = "wrong flow"
_LIMIT = "limits"
_TROUBLE = "wrong recovery"
_TRUTH = "untrue reports"
_LEFT = "leftovers"
_KNOWN = "a promise of long sessions"
_SEEN = "seen in a real session runner"


def _row(
    name: str, what: str, kind: str, found_by: str, rule: str, source: str = _KNOWN
) -> tuple[str, str, str, str, str, str]:
    return f"session-{name}", what, kind, source, found_by, f"session.{rule}"


ROWS: tuple[tuple[str, str, str, str, str, str], ...] = (
    # --- checkpoints
    _row(
        "field-missing",
        "A checkpoint lacks the working memory.",
        _STATE,
        "by_phase",
        "checkpoint_complete",
        _SEEN,
    ),
    _row(
        "not-committed",
        "A checkpoint is made of files that are not committed.",
        _STATE,
        "by_calls",
        "checkpoint_valid",
    ),
    _row(
        "chain-broken",
        "A checkpoint does not name the one before.",
        _STATE,
        "by_phase",
        "checkpoint_chain",
    ),
    _row(
        "recover-cleans-up",
        "Recovering a paused session forgets old checkpoints, although there is room.",
        _STATE,
        "recovered_while_paused",
        "checkpoint_whole",
    ),
    _row(
        "no-time-checkpoint",
        "Time alone never makes a checkpoint.",
        _FLOW,
        "by_time",
        "checkpoint_by_time",
        _SEEN,
    ),
    _row(
        "no-calls-checkpoint",
        "Tool calls alone never make a checkpoint.",
        _FLOW,
        "by_calls",
        "checkpoint_by_calls",
    ),
    _row(
        "no-tokens-checkpoint",
        "Tokens alone never make a checkpoint.",
        _FLOW,
        "by_tokens",
        "checkpoint_by_tokens",
    ),
    _row(
        "no-phase-checkpoint",
        "A phase ends without a checkpoint.",
        _FLOW,
        "by_phase",
        "checkpoint_by_phase",
    ),
    _row(
        "checkpoint-in-place",
        "A checkpoint is written where it will lie, not beside it.",
        _STATE,
        "power_cut_after_restore",
        "checkpoint_whole",
        _SEEN,
    ),
    _row(
        "checkpoint-unsynced",
        "A checkpoint is renamed before it is on the disk.",
        _STATE,
        "power_cut_after_restore",
        "checkpoint_whole",
    ),
    _row(
        "delta-unsynced",
        "A finished task is told before its line is on the disk.",
        _LOST,
        "sweep fsync system_crash Recover",
        "work_kept",
    ),
    _row(
        "deltas-skipped",
        "Finished tasks are kept at the next checkpoint only.",
        _LOST,
        "system_crash",
        "work_kept",
        _SEEN,
    ),
    # --- restoring
    _row(
        "silent-empty-start",
        "When no checkpoint is left, the session begins anew as if that were right.",
        _LOST,
        "corrupt_all",
        "rejects_illegal",
        _SEEN,
    ),
    _row(
        "finished-recovered",
        "A session that is complete is restored before anybody asks whether it may be.",
        _FLOW,
        "finished",
        "rejects_truthfully",
        _SEEN,
    ),
    _row(
        "restores-older",
        "The checkpoint before the last one is restored.",
        _LOST,
        "system_crash",
        "restores_last_valid",
        _SEEN,
    ),
    _row(
        "unreadable-is-damaged",
        "A checkpoint that the system does not let it read is taken for a damaged one.",
        _LOST,
        "sweep errno crash_twice Restore",
        "restores_last_valid",
    ),
    _row(
        "deltas-ignored",
        "What was written behind the checkpoint is not restored.",
        _LOST,
        "system_crash",
        "restores_last_valid",
    ),
    _row(
        "digest-ignored",
        "A checkpoint whose digest does not agree is restored.",
        _STATE,
        "corrupt_body",
        "status_true",
        _SEEN,
    ),
    _row(
        "fallback-unsaid",
        "An older checkpoint is restored, and nobody is told.",
        _LOST,
        "corrupt_newest",
        "fallback_told",
        _SEEN,
    ),
    _row(
        "restore-keeps-new-files",
        "Files that are newer than the checkpoint stay.",
        _STATE,
        "crash_in_a_file",
        "checkpoint_valid",
    ),
    _row(
        "unknown-accepted",
        "A session that is not there is taken for the newest.",
        _FLOW,
        "unknown_session",
        "rejects_truthfully",
        _SEEN,
    ),
    _row(
        "second-supervisor",
        "A second supervisor drives the same session.",
        _FLOW,
        "two_recoveries",
        "logs_whole",
    ),
    _row(
        "survivors-left",
        "Agents of a dead supervisor are not ended.",
        _LEFT,
        "crash_over_a_call",
        "agents_bounded",
    ),
    # --- phases
    _row(
        "gate-skipped",
        "A phase is left although its criteria do not hold.",
        _FLOW,
        "scope_creep",
        "gates_hold",
    ),
    _row(
        "gate-stays-shut",
        "A gate never sees the page that describes the architecture, and the session is given up there.",
        _FLOW,
        "whole_session",
        "gates_hold",
    ),
    _row(
        "compile-not-checked",
        "Code that does not compile is let in.",
        _FLOW,
        "uncompilable",
        "checkpoint_valid",
    ),
    _row(
        "needs-ignored",
        "A task begins before what it needs is done.",
        _FLOW,
        "whole_session",
        "phases_in_order",
    ),
    _row(
        "torn-file",
        "The last bytes of a file are not written.",
        _STATE,
        "whole_session",
        "bytes_as_asked",
        _SEEN,
    ),
    _row(
        "later-tools-ignored",
        "Tools that the model asks for once it has seen the results of others are not used.",
        _STATE,
        "asks_again",
        "bytes_as_asked",
        _SEEN,
    ),
    # --- troubles
    _row(
        "retry-unbounded",
        "What never works is tried for ever.",
        _TROUBLE,
        "endless_errors",
        "retries_bounded",
        _SEEN,
    ),
    _row("no-backoff", "Everything is tried again at once.", _TROUBLE, "overloaded", "backs_off"),
    _row(
        "retry-after-ignored",
        "The model's word about when to come back is ignored.",
        _TROUBLE,
        "rate_limited",
        "backs_off",
    ),
    _row(
        "no-model-switch",
        "The other model is never asked.",
        _TROUBLE,
        "model_is_down",
        "switches_model",
    ),
    _row("slow-recovery", "A retry waits for hours.", _TROUBLE, "overloaded", "recovers"),
    _row(
        "critical-ignored",
        "A critical error is told, and the session goes on.",
        _TROUBLE,
        "cost_overrun",
        "severity_obeyed",
    ),
    _row(
        "tool-timeout-ignored",
        "A tool that never ends is waited for.",
        _TROUBLE,
        "endless_tool",
        "idle_reassigned",
    ),
    _row(
        "deadlock-forever",
        "A vote that nobody wins is repeated for ever.",
        _TROUBLE,
        "deadlock",
        "recovers",
        _SEEN,
    ),
    _row("trust-ignored", "Every ballot weighs the same.", _TROUBLE, "deadlock", "votes_true"),
    # --- limits
    _row(
        "tokens-unthrottled",
        "An agent's tokens in an hour are not limited.",
        _LIMIT,
        "agent_tokens",
        "agent_tokens",
    ),
    _row(
        "calls-unlimited",
        "An agent's calls in an hour are not limited.",
        _LIMIT,
        "agent_calls",
        "agent_calls",
    ),
    _row(
        "context-unbounded",
        "A context that is too long is sent as it is.",
        _LIMIT,
        "context",
        "context_bounded",
    ),
    _row(
        "idle-ignored",
        "An agent that does nothing keeps its task.",
        _LIMIT,
        "agent_frozen",
        "idle_reassigned",
    ),
    _row(
        "budget-ignored",
        "The session goes on above its tokens.",
        _LIMIT,
        "cost_overrun",
        "total_tokens",
    ),
    _row(
        "alert-early",
        "It warns of its budget when most of it is left.",
        _LIMIT,
        "cost_overrun",
        "limits_have_reason",
    ),
    _row(
        "idle-early",
        "An agent that works loses its task as if it were idle.",
        _LIMIT,
        "short_silence",
        "limits_have_reason",
    ),
    _row(
        "too-many-agents",
        "More agents run than were asked for.",
        _LIMIT,
        "one_agent",
        "agents_bounded",
    ),
    _row(
        "disk-unlimited",
        "The session takes as much room as it likes.",
        _LIMIT,
        "disk",
        "disk_bounded",
    ),
    _row(
        "memory-unlimited",
        "Memory pressure is not noticed.",
        _LIMIT,
        "memory_short",
        "memory_bounded",
    ),
    _row(
        "test-time-ignored",
        "Tests may take as long as they like.",
        _LIMIT,
        "endless_tests",
        "tests_bounded",
    ),
    # --- reports
    _row(
        "output-tokens-uncounted",
        "Metrics leave out a part of the tokens.",
        _TRUTH,
        "whole_session",
        "metrics_add_up",
    ),
    _row(
        "metrics-field-missing",
        "A line of metrics lacks the coverage.",
        _TRUTH,
        "whole_session",
        "metrics_regular",
    ),
    _row(
        "metrics-doubled",
        "Every line of metrics is there twice.",
        _TRUTH,
        "whole_session",
        "metrics_regular",
    ),
    _row(
        "status-optimistic",
        "Status counts what is begun as done.",
        _TRUTH,
        "whole_session",
        "status_true",
    ),
    _row(
        "verify-trusts",
        "Verify calls a damaged checkpoint valid.",
        _TRUTH,
        "corrupt_named",
        "rejects_illegal",
    ),
    _row(
        "verify-removes", "Verify removes what is not valid.", _TRUTH, "corrupt_named", "looks_only"
    ),
    _row(
        "health-always-well",
        "Health says that all is well.",
        _TRUTH,
        "endless_errors",
        "health_true",
    ),
    _row(
        "report-forgets", "The report leaves out the errors.", _TRUTH, "overloaded", "report_true"
    ),
    _row(
        "setting-ignored",
        "A setting that there is not is passed over in silence, as a misspelt one would be.",
        _TRUTH,
        "said_wrongly",
        "settings_checked",
    ),
    _row("log-torn", "Some lines of the log end too early.", _STATE, "whole_session", "logs_whole"),
    # --- growth
    _row(
        "memory-grows",
        "Every line of metrics costs memory for ever.",
        _LEFT,
        "level",
        "no_growth",
    ),
    _row(
        "descriptors-grow",
        "Every line of metrics costs a descriptor for ever.",
        _LEFT,
        "level",
        "no_growth",
    ),
    _row(
        "tool-children-left",
        "What a tool has started is not ended with it.",
        _LEFT,
        "tool_is_ended",
        "processes_end",
    ),
    _row(
        "newest-by-time",
        "The newest checkpoint is the one whose file was changed last.",
        _LOST,
        "times_changed",
        "status_true",
    ),
    _row(
        "spending-forgotten",
        "What was spent before a crash is forgotten behind it.",
        _TRUTH,
        "system_crash",
        "metrics_add_up",
    ),
    _row(
        "one-kept",
        "Of the checkpoints that are to be kept only the newest is.",
        _LOST,
        "few_kept",
        "checkpoint_chain",
    ),
    _row(
        "pause-ignored",
        "A session says that it is paused, and works on.",
        _FLOW,
        "paused",
        "pause_holds",
    ),
    _row(
        "calls-forgotten",
        "A context that is compressed forgets the calls whose results come next.",
        _FLOW,
        "context",
        "requests_readable",
    ),
    # --- what a seventh sample by hand asked for
    _row(
        "tests-not-in-lines",
        "The lines behind a checkpoint do not hold what the tests have given.",
        _LOST,
        "whole_session",
        "tests_kept",
    ),
    _row(
        "reads-anywhere",
        "An agent can read any file of the machine as one of its project.",
        _STATE,
        "read_out_of_bounds",
        "reads_own",
    ),
    _row(
        "complaint-ends-it",
        "What cannot write down a complaint for want of room dies of that.",
        _TROUBLE,
        "commands_without_room",
        "no_crash",
    ),
    _row(
        "retry-after-cut-short",
        "Whoever was told when to come back waits no longer than any back-off is.",
        _TROUBLE,
        "rate_limited_for_long",
        "backs_off",
    ),
    _row(
        "decisions-forgotten",
        "A restore keeps votes that were won, and no decision by priority or by a person.",
        _LOST,
        "crash_after_a_deadlock",
        "restores_last_valid",
    ),
    _row(
        "line-counted-first",
        "A line behind a checkpoint counts before it is written: one that fails leaves a gap.",
        _STATE,
        "commands_without_room",
        "checkpoint_whole",
    ),
)
