"""The promises of a batch orchestrator: id, class of failure, sentence."""

from __future__ import annotations

from mutiny.kit.rules import SETTINGS, rules_of

_BLOCKED = "Merge while blocked"
_LOST = "Lost work"
_STATE = "Corrupted state"
_FLOW = "Wrong flow"
_LEFT = "Leftovers"
_TRUTH = "Untrue reports"
_SAFE = "Unsafe"

TIER_0 = (
    ("within_budget", _BLOCKED, "Nothing is merged that a budget blocks."),
    (
        "validated",
        _BLOCKED,
        "Nothing is merged that a blocking validator has not passed, also when it could not run.",
    ),
    ("declared", _BLOCKED, "Nothing is merged that a task had not declared, where that blocks."),
    ("no_text_lost", _BLOCKED, "Work that does not merge is never merged over somebody else's."),
    (
        "main_is_tested",
        _BLOCKED,
        "The branch is never at a commit that its doctor has not passed.",
    ),
    ("state_whole", _STATE, "The state can be read at any time: it is whole, or the one before."),
    ("only_forward", _LOST, "The branch only moves forward: nobody's commit leaves it."),
)
TIER_1 = (
    ("complete_is_merged", _LOST, "What is complete is merged, and a complete run has no rest."),
    ("merged_once", _FLOW, "A task is merged at most once in a run."),
    (
        "merged_is_complete",
        _TRUTH,
        "What is merged is called so, everywhere, when a command has ended.",
    ),
    ("dependency_first", _FLOW, "A task begins when everything that it needs is merged."),
    ("not_run_again", _FLOW, "What is complete is not run again."),
    ("as_due", _FLOW, "Runs and tasks end as plan, settings and gates say."),
    ("locks_kept", "Race conditions", "Tasks with conflicting locks never share a batch."),
    ("parallel_bounded", _FLOW, "No more agents work at once than may."),
    ("attempts_bounded", _FLOW, "A task is not tried for ever, nor again when it went well."),
    ("tokens_true", _TRUTH, "What a task is said to have used is what its agents told."),
    ("status_true", _TRUTH, "Status tells what is so."),
    ("looks_only", _TRUTH, "Status and logs change no byte."),
    ("exit_agrees", _TRUTH, "Exit code and status agree."),
    ("resume_repeats", _FLOW, "To resume a complete run changes nothing."),
    ("ended_work_only", _LOST, "What an agent has left half done is not merged."),
    (
        "reattached",
        _FLOW,
        "Resume waits for a container that is at work, and takes what it has done.",
    ),
)
TIER_2 = (
    ("stop_costs_nothing", _FLOW, "An attempt that was broken off from outside is not counted."),
    ("nothing_left", _LEFT, "No workspace, branch, remote or half merge outlives its use."),
    ("processes_end", _LEFT, "Nothing that a command has started outlives it."),
    ("containers_end", _LEFT, "No container outlives the run that it was made for."),
    ("others_containers_stay", _LOST, "A container of somebody else is left alone."),
    ("container_labelled", _FLOW, "A container's labels say for which run and task it is."),
    ("container_walled", _SAFE, "A container has the network and the limits that were set."),
    ("container_mounts", _SAFE, "A container changes its workspace alone, and as its user."),
    (
        "failure_has_text",
        _TRUTH,
        "What failed, or waits for somebody, says why; what went well does not.",
    ),
    ("events_whole", _STATE, "Every line of the log parses, and says when, what and in which run."),
    ("no_secret", _SAFE, "No secret stands in any file that is kept."),
    ("own_files_out", _SAFE, "Only what tasks have written gets into their commits."),
    ("stays_inside", _SAFE, "No name leads out of the run's directory."),
    ("clean_as_named", _LOST, "Clean deletes what it names, and nothing else."),
    ("checkout_follows", _STATE, "A checkout that nobody edited is clean at the new tip."),
    ("edit_kept", _LOST, "An edit that the user has not committed is never lost."),
    (
        "kept_true",
        _TRUTH,
        "What is kept of a run is so: tasks as planned, commits that are on the branch, attempts that were "
        "begun, and a log that agrees.",
    ),
    ("plan_repeats", _FLOW, "The same plan gives the same bytes."),
    SETTINGS,
)
RULES = rules_of("batch", *TIER_0, *TIER_1, *TIER_2)
