"""The promises of the workers contract: thirteen about the state, stated so that a correct system keeps
them, and what real failures add.

Ids are stable API. `invariants.py` has one function for each rule that is about state; rules about
answers to commands are judged in `judge.py`.
"""

from __future__ import annotations

from mutiny.model.violation import Rule

_CRASH = "Crashes"
_CORRUPTION = "State corruption"
_STUCK = "Stuck workers"
_LOST = "Lost work"
_RECOVERY = "Recovery failures"
_RACE = "Race conditions"
_ZOMBIE = "Zombie processes"
_GIT = "Git corruption"

_ALL = (
    # Thirteen invariants of the state.
    Rule(
        "workers.state_readable",
        "The state file is valid JSON with every field that the contract needs.",
        _CORRUPTION,
        "state.json is valid JSON",
    ),
    Rule(
        "workers.worktree_exists",
        "Every worker in the state has its worktree.",
        _GIT,
        "all workers in state have existing worktrees",
    ),
    Rule(
        "workers.session_exists",
        "Every worker that is not offline or in error has its tmux session.",
        _ZOMBIE,
        "all workers in state have matching TMUX sessions (if not offline)",
    ),
    Rule(
        "workers.offline_has_no_agent",
        "A worker that stays offline has no running agent.",
        _ZOMBIE,
        "worker status matches TMUX session state",
    ),
    Rule(
        "workers.idle_has_no_prompt",
        "An idle worker has no current prompt.",
        _CORRUPTION,
        "idle workers have no current_prompt",
    ),
    Rule(
        "workers.working_has_prompt",
        "A working worker has its prompt in the state.",
        _LOST,
        "working workers have current_prompt set",
    ),
    Rule(
        "workers.review_has_commit",
        "A worker that needs review names a commit, and the commit is its branch's head.",
        _CORRUPTION,
        "needs_review workers have commit_sha set",
    ),
    Rule(
        "workers.rebasing_is_in_rebase",
        "A rebasing worker is in a rebase in git, or leaves the status soon after the rebase ended; "
        "no other worker that rests is in one.",
        _GIT,
        "rebasing workers are in rebase state in git",
    ),
    Rule(
        "workers.on_branch",
        "Every worktree is on its worker's branch unless a rebase is under way.",
        _GIT,
        "each worktree is on its expected branch",
    ),
    Rule(
        "workers.tree_clean",
        "A worker that is idle or needs review has no uncommitted changes.",
        _GIT,
        "no worktree has uncommitted changes (except during work)",
    ),
    Rule(
        "workers.idle_is_fresh",
        "An idle worker's branch has nothing that is not on the default branch.",
        _GIT,
    ),
    Rule(
        "workers.accepted_is_merged",
        "Work whose acceptance was acknowledged is on the source's default branch.",
        _LOST,
        "master has no llmc-prefixed branches (after accept)",
    ),
    Rule(
        "workers.daemon_flag_true",
        "The state's daemon_running agrees with the daemon process, except after the daemon was killed.",
        _CORRUPTION,
        "daemon_running matches actual daemon process",
    ),
    Rule(
        "workers.agent_running",
        "Every worker that is not offline or in error has a running agent.",
        _ZOMBIE,
        "each worker session has Claude running (if not offline)",
    ),
    # Answers to commands.
    Rule(
        "workers.rejects_illegal",
        "A command that is not legal now is refused with exit code 1.",
        _RACE,
    ),
    Rule(
        "workers.serves_legal",
        "A command that is legal now succeeds.",
        _STUCK,
    ),
    Rule(
        "workers.refusal_changes_nothing",
        "A command that is refused leaves branches and the source as they were.",
        _LOST,
    ),
    Rule(
        "workers.review_means_done",
        "A worker needs review only when its agent has ended the turn.",
        _LOST,
    ),
    Rule(
        "workers.rejects_truthfully",
        "A refusal gives a reason that is true.",
        _CORRUPTION,
    ),
    Rule(
        "workers.fails_clearly",
        "A command fails only with a known refusal.",
        _CRASH,
    ),
    Rule(
        "workers.no_crash",
        "No command ends by a signal, a panic or a traceback.",
        _CRASH,
    ),
    Rule(
        "workers.answers_in_time",
        "Every command ends within its time limit.",
        _STUCK,
    ),
    Rule(
        "workers.parallel_is_serial",
        "Commands given at the same time end as if they had been given one after the other.",
        _RACE,
    ),
    Rule(
        "workers.status_is_honest",
        "What the status command tells about daemon and workers is true.",
        _CORRUPTION,
    ),
    Rule(
        "workers.health_is_honest",
        "The health check says healthy only when nothing is wrong.",
        _RECOVERY,
    ),
    Rule(
        "workers.repair_is_honest",
        "After a repair that claims success the problem is gone.",
        _RECOVERY,
    ),
    # The course of things.
    Rule(
        "workers.status_follows_model",
        "A worker's status changes only in ways that its commands and its agent explain.",
        _CORRUPTION,
    ),
    Rule(
        "workers.worker_kept",
        "A worker that was added stays known until it is nuked.",
        _LOST,
    ),
    Rule(
        "workers.nuked_is_gone",
        "A worker that was nuked is gone, with its session, agent and worktree.",
        _ZOMBIE,
    ),
    Rule(
        "workers.completes",
        "An agent that finished its turn makes its worker ready for review in time.",
        _STUCK,
    ),
    Rule(
        "workers.recovers",
        "After faults stop, everything comes back by itself in time.",
        _RECOVERY,
    ),
    Rule(
        "workers.assertion",
        "What a scenario asserts holds.",
        _CORRUPTION,
    ),
    Rule(
        "workers.state_atomic",
        "The state file is replaced as a whole, never written in place.",
        _CORRUPTION,
    ),
    # Processes.
    Rule(
        "workers.daemon_survives",
        "The daemon ends only when it is told to.",
        _CRASH,
    ),
    Rule(
        "workers.one_daemon",
        "At most one daemon runs for one workspace.",
        _ZOMBIE,
    ),
    Rule(
        "workers.one_agent",
        "At most one agent runs for one worker.",
        _ZOMBIE,
    ),
    Rule(
        "workers.no_orphan_session",
        "Every session of the target belongs to a worker.",
        _ZOMBIE,
    ),
    Rule(
        "workers.live_agent_kept",
        "A live agent is ended only by a command or fault that names its worker or all workers.",
        _LOST,
    ),
    Rule(
        "workers.down_ends_all",
        "After down succeeded no daemon and no agent runs.",
        _ZOMBIE,
    ),
    # The ledger.
    Rule(
        "workers.nothing_lost",
        "Work that was acknowledged is delivered, and is kept until it is merged, given up or reported.",
        _LOST,
    ),
    Rule(
        "workers.delivered_once",
        "A prompt is delivered again only when the agent that had it is dead.",
        _RACE,
    ),
    Rule(
        "workers.merged_once",
        "Work is merged at most once.",
        _RACE,
    ),
    Rule(
        "workers.nothing_invented",
        "Nothing is merged that was not accepted.",
        _LOST,
    ),
    Rule(
        "workers.merged_stays",
        "What was merged stays in the files of the default branch.",
        _LOST,
    ),
    Rule(
        "workers.discarded_is_kept",
        "Commits of a worker that was nuked or reset stay reachable from some ref.",
        _LOST,
    ),
    Rule(
        "workers.work_reachable",
        "A commit of an agent stays reachable from a ref until it is merged or given up.",
        _LOST,
    ),
    Rule(
        "workers.source_untouched",
        "The user's own uncommitted changes in the source repository survive.",
        _LOST,
    ),
    Rule(
        "workers.default_moves_forward",
        "The default branch only moves forward: no commit leaves it, whoever made it.",
        _LOST,
    ),
    Rule(
        "workers.checkout_clean",
        "The user's checkout is clean, at the tip of its branch, unless the user has edited it.",
        _GIT,
    ),
)

RULES: dict[str, Rule] = {rule.id: rule for rule in _ALL}
"""All rules of the contract by id."""

BINDING = frozenset(
    f"workers.{name}"
    for name in (
        *("state_readable", "worker_kept", "status_follows_model", "completes", "recovers"),
        *(
            "nothing_lost",
            "accepted_is_merged",
            "serves_legal",
            "parallel_is_serial",
            "agent_running",
        ),
        *("no_crash", "answers_in_time", "assertion", "daemon_survives"),
    )
)
"""Rules that no target may be excused from: without them a program that does nothing would pass, or the
beliefs could not follow what it does.
"""

BY_RECORD = (
    *("workers.delivered_once", "workers.nothing_lost", "workers.accepted_is_merged"),
    *("workers.work_reachable", "workers.discarded_is_kept", "workers.review_means_done"),
)
"""Rules that need the doubles' own record."""
