"""Who keeps each rule about state true, and when a rule is therefore no fair question.

Insight: a promise needs somebody who can keep it. While the daemon is dead nobody notices that an agent
has ended its rebase, and a state file that a fault has just written tells of the fault, not of the
target. A rule whose keeper is away says nothing; it is asked again as soon as the keeper is back.
"""

from __future__ import annotations

from enum import Enum

from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.observation import Observation


class KeptBy(Enum):
    """Who has to act so that a rule holds."""

    ALWAYS = "nobody has to act: it holds whatever the state file says"
    WRITER = "whoever wrote the state file: it holds in every state that the target wrote"
    DAEMON = "the daemon: it brings state and world together, within its lag"


KEPT_BY: dict[str, KeptBy] = {
    f"workers.{name}": keeper
    for keeper, names in {
        KeptBy.ALWAYS: (
            *("state_readable", "state_atomic", "daemon_survives", "one_daemon", "no_crash"),
            *("no_growth", "nothing_outlives", "backs_off"),
            *("down_ends_all", "source_untouched", "merged_stays", "default_moves_forward"),
            *("only_work_lands", "lands_whole", "others_left_alone"),
        ),
        KeptBy.WRITER: (
            *("idle_has_no_prompt", "working_has_prompt", "status_follows_model"),
            *("errors_told", "error_has_cause"),
            *("daemon_flag_true", "worker_kept", "refusal_changes_nothing", "live_agent_kept"),
            *(
                "nothing_lost",
                "delivered_once",
                "delivered_whole",
                "delivered_in_order",
                "given_up_stays_so",
                "agent_as_asked",
                "tasks_accounted",
                "merged_once",
                "nothing_invented",
            ),
            *("way_out", "accepted_is_merged"),
        ),
        KeptBy.DAEMON: (
            *("worktree_exists", "session_exists", "offline_has_no_agent", "agent_running"),
            *("review_has_commit", "review_means_done", "rebasing_is_in_rebase", "on_branch"),
            *("rebased_is_on_top", "begins_on_newest"),
            *("tree_clean", "idle_is_fresh", "nuked_is_gone", "one_agent", "no_orphan_session"),
            *("recovers", "completes", "discarded_is_kept", "work_reachable", "checkout_clean"),
        ),
    }.items()
    for name in names
}
"""Every rule that is judged by looking, the ledger's too."""

CLEARED_AWAY = frozenset({"workers.nuked_is_gone", "workers.no_orphan_session"})
"""Rules that a daemon keeps by clearing away what a fault has left; without one nobody does."""


def is_kept(rule: str, model: WorkersModel, seen: Observation) -> bool:
    """Is somebody there who could keep this rule?

    Who runs cannot be told when the process list could not be read: then the rule is asked, and it is
    the missing list that makes the step inconclusive.
    """
    keeper = KEPT_BY[rule]
    if keeper is KeptBy.ALWAYS:
        return True
    if seen.state_as_left or model.doubted:
        return False
    if model.profile.daemonless:
        return rule not in CLEARED_AWAY or not model.faults
    return keeper is KeptBy.WRITER or seen.daemons is None or seen.daemon_alive
