"""The promises of the workers contract: thirteen about the state, stated so that a correct system keeps
them, and what real failures add.

Ids are stable API. `invariants.py` and `process_rules.py` have one function for each rule that is about
state; rules about answers to commands are judged in `judge.py`.
"""

from __future__ import annotations

from mutiny.kit.rules import ANSWER as _ANSWER
from mutiny.kit.rules import CRASH as _CRASH
from mutiny.kit.rules import SETTINGS, binding, rules_of
from mutiny.model.violation import Rule

_CORRUPTION = "State corruption"
_STUCK = "Stuck workers"
_LOST = "Lost work"
_RECOVERY = "Recovery failures"
_RACE = "Race conditions"
_ZOMBIE = "Zombie processes"
_GIT = "Git corruption"

_OWN = (
    # Thirteen invariants of the state.
    ("state_readable", _CORRUPTION,
     "The state file is valid JSON with every field that the contract needs.",
     "state.json is valid JSON"),
    ("worktree_exists", _GIT, "Every worker in the state has its worktree.",
     "all workers in state have existing worktrees"),
    ("session_exists", _ZOMBIE, "Every worker that is not offline or in error has its tmux session.",
     "all workers in state have matching TMUX sessions (if not offline)"),
    ("offline_has_no_agent", _ZOMBIE, "A worker that stays offline has no running agent.",
     "worker status matches TMUX session state"),
    ("idle_has_no_prompt", _CORRUPTION, "An idle worker has no current prompt.",
     "idle workers have no current_prompt"),
    ("working_has_prompt", _LOST, "A working worker has its prompt in the state.",
     "working workers have current_prompt set"),
    ("review_has_commit", _CORRUPTION,
     "A worker that needs review names a commit, and the commit is its branch's head.",
     "needs_review workers have commit_sha set"),
    ("rebased_is_on_top", _GIT,
     "A branch whose rebase was acknowledged contains what the default branch had."),
    ("begins_on_newest", _GIT,
     "A worker that is given a task begins it on the newest commit of the default branch."),
    ("rebasing_is_in_rebase", _GIT,
     "A rebasing worker is in a rebase in git, or leaves the status soon after the rebase ended; "
     "no other worker that rests is in one.",
     "rebasing workers are in rebase state in git"),
    ("on_branch", _GIT, "Every worktree is on its worker's branch unless a rebase is under way.",
     "each worktree is on its expected branch"),
    ("tree_clean", _GIT, "A worker that is idle or needs review has no uncommitted changes.",
     "no worktree has uncommitted changes (except during work)"),
    ("idle_is_fresh", _GIT, "An idle worker's branch has nothing that is not on the default branch."),
    ("accepted_is_merged", _LOST,
     "Work whose acceptance was acknowledged is on the source's default branch.",
     "master has no llmc-prefixed branches (after accept)"),
    ("daemon_flag_true", _CORRUPTION,
     "The state's daemon_running agrees with the daemon process, except after the daemon was killed.",
     "daemon_running matches actual daemon process"),
    ("agent_running", _ZOMBIE, "Every worker that is not offline or in error has a running agent.",
     "each worker session has Claude running (if not offline)"),
    # Answers to commands.
    ("refusal_changes_nothing", _LOST,
     "A command that is refused leaves workers, branches and the source as they were."),
    ("errors_told", _ANSWER,
     "A worker in error says why, and one that goes on does not tell of an old error."),
    ("error_has_cause", _STUCK,
     "A worker that has nothing to do, and that nothing has hit, is not in error."),
    ("review_means_done", _LOST, "A worker needs review only when its agent has ended the turn."),
    ("health_is_honest", _RECOVERY, "The health check says healthy only when nothing is wrong."),
    ("longest_wait_first", _ANSWER,
     "A review without a name shows the change that has waited longest."),
    SETTINGS,
    ("way_out", _STUCK, "Every status with open work has a way out that destroys nothing."),
    ("doctor_agrees", _RECOVERY, "The health check's exit code agrees with what it prints."),
    ("repair_is_honest", _RECOVERY, "After a repair that claims success the problem is gone."),
    ("status_is_honest", _ANSWER, "What the status command tells about daemon and workers is true."),
    # The course of things.
    ("status_follows_model", _CORRUPTION,
     "A worker's status changes only in ways that its commands and its agent explain."),
    ("worker_kept", _LOST, "A worker that was added stays known until it is nuked."),
    ("nuked_is_gone", _ZOMBIE, "A worker that was nuked is gone, with its session, agent and worktree."),
    ("completes", _STUCK, "An agent that finished its turn makes its worker ready for review in time."),
    ("state_atomic", _CORRUPTION, "The state file is replaced as a whole, never written in place."),
    # Processes.
    ("daemon_survives", _CRASH, "The daemon ends only when it is told to."),
    ("one_daemon", _ZOMBIE, "At most one daemon runs for one workspace."),
    ("no_growth", _ZOMBIE, "A daemon's open descriptors do not grow with time or commands."),
    ("one_agent", _ZOMBIE, "At most one agent runs for one worker."),
    ("no_orphan_session", _ZOMBIE, "Every session of the target belongs to a worker."),
    ("others_left_alone", _LOST,
     "A session and a branch that somebody else has beside the target are left as they are."),
    ("nothing_outlives", _ZOMBIE, "What an agent has started ends with it, also in a session of its own."),
    ("backs_off", _ZOMBIE,
     "An agent that dies at once, again and again, is started again after a pause, and not for ever."),
    ("agent_as_asked", _ZOMBIE, "An agent is started with the model that its worker was added with."),
    ("live_agent_kept", _LOST,
     "A live agent is ended only by a command or fault that names its worker or all workers."),
    ("down_ends_all", _ZOMBIE, "After down succeeded no daemon and no agent runs."),
    # The ledger.
    ("nothing_lost", _LOST,
     "Work that was acknowledged is delivered, and is kept until it is merged, given up or reported."),
    ("delivered_once", _RACE, "A prompt is delivered again only when the agent that had it is dead."),
    ("delivered_whole", _LOST, "An agent receives what was said, to the last character."),
    ("delivered_in_order", _RACE, "What was said to a worker first is delivered to it first."),
    ("given_up_stays_so", _LOST,
     "Work that was given up by nuke or reset is told to no agent that comes later."),
    ("tasks_accounted", _LOST,
     "Where the target keeps account of all tasks, that account says what became of each."),
    ("merged_once", _RACE, "Work is merged at most once."),
    ("nothing_invented", _LOST, "Nothing is merged that was not accepted."),
    ("only_work_lands", _GIT,
     "An accept brings only files to the default branch that an agent wrote, without open conflicts."),
    ("lands_whole", _LOST,
     "Accepted work lands whole: what it removed is gone, and modes, links and bytes are the agent's."),
    ("merged_stays", _LOST, "What was merged stays in the files of the default branch."),
    ("discarded_is_kept", _LOST,
     "Commits of a worker that was nuked or reset stay reachable from some ref."),
    ("work_reachable", _LOST,
     "A commit of an agent stays reachable from a ref until it is merged or given up."),
    ("source_untouched", _LOST, "The user's own uncommitted changes in the source repository survive."),
    ("default_moves_forward", _LOST,
     "The default branch only moves forward: no commit leaves it, whoever made it."),
    ("checkout_clean", _GIT,
     "The user's checkout is clean, at the tip of its branch, unless the user has edited it."),
)  # fmt: skip

RULES: dict[str, Rule] = rules_of("workers", *_OWN)
"""All rules of the contract by id."""

BINDING = binding(
    *("workers", "state_readable", "worker_kept", "status_follows_model", "completes", "recovers"),
    *("nothing_lost", "accepted_is_merged", "parallel_is_serial", "agent_running"),
    "daemon_survives",
)
"""Rules that no target may be excused from."""

BY_RECORD = (
    *("workers.delivered_once", "workers.delivered_whole", "workers.nothing_lost"),
    *("workers.delivered_in_order", "workers.given_up_stays_so", "workers.agent_as_asked"),
    *("workers.accepted_is_merged", "workers.work_reachable"),
    *("workers.discarded_is_kept", "workers.review_means_done"),
)
"""Rules that need the doubles' own record."""
