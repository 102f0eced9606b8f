"""How one target differs from the contract's ideal, as data.

The contract states what a workers orchestrator promises; a profile says which words a target uses,
in which statuses it serves a command, how long it may take, and which promises it does not make at
all. What a target does not promise is reported as not applicable, never as passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mutiny.kit.profile import TargetProfile

LEGAL: Mapping[str, tuple[str, ...]] = {
    "Start": ("idle",),
    "Review": ("needs_review",),
    "Accept": ("needs_review",),
    "Reject": ("needs_review",),
    "Rebase": ("working", "needs_review"),
    "Message": (
        "working",
        "needs_review",
        "rejected",
        "rebasing",
        "error",
        "no_changes",
        "reviewing",
    ),
}
"""Statuses in which a command is due to succeed; in all others it is due to be refused."""

NEEDS_DAEMON = ("Start", "Message", "Review", "Accept", "Reject", "Rebase")


@dataclass(frozen=True)
class Limits:
    """Seconds that a correct target may take; the deadline of each obligation."""

    command_s: float = 30.0
    idle_s: float = 10.0
    complete_s: float = 15.0
    rebase_s: float = 20.0
    recover_s: float = 15.0
    lag_s: float = 3.0
    """How long the target's files may lag behind what is true: one patrol and a little."""


@dataclass(frozen=True)
class Profile(TargetProfile):
    """What one target promises within the workers contract."""

    legal: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Statuses in which it serves a command, where they differ from `LEGAL`."""
    needs_daemon: tuple[str, ...] = NEEDS_DAEMON
    restarts_agents_on_up: bool = False
    """`up` replaces running agents instead of adopting them."""
    crash_flag: bool = False
    """Its flag only says that no daemon has ended in good order: after a kill it stays, `down` or not."""
    makes_workspace: bool = True
    """There is a command that makes the workspace, and does it once."""
    shows_ends: bool = True
    """It shows that an agent has ended its turn; else only prompts and sessions are known."""
    start_is_immediate: bool = True
    """`start` makes the worker working before it returns."""
    extra_moves: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Status changes that happen by themselves, beyond the contract's."""
    dirty_source: str = "refuse"
    """What accept does when the user's checkout is dirty: `refuse`, or `either`."""
    picks_review: str = "oldest"
    """Whose change a review without a name shows: the `oldest`, or `any`."""
    prompt_with_add: bool = False
    """The command that makes a worker gives it its prompt, too; there is none that only starts it."""
    takes_names: bool = True
    """The command that makes a worker says its name; else the target gives names itself, and each such
    command makes somebody new.
    """
    accept_removes: bool = False
    """Accept merges the work and removes the worker."""
    keeps_discarded: bool = False
    """Commits of nuked and reset workers are archived under some ref."""
    keeps_uncommitted: bool = False
    """So is what their agents had written and not committed."""
    repairs: bool = True
    """The doctor has a cure, too."""
    has_backup: bool = True
    """It keeps a second copy of its state, and goes on when that is damaged."""
    listens: bool = False
    """The daemon listens on a socket; others may connect to it."""
    has_lock: bool = True
    """The target has a lock that somebody else can hold."""
    ends_children: bool = False
    """What an agent has started ends with it, also what made a session of its own."""
    stop_costs_nothing: bool = False
    """An orderly stop is no failed attempt: a task goes on after any number of them."""
    review_per_task: bool = False
    """A review is of one task: once that is merged or given up, nothing counts as reviewed."""
    begins_on_newest: bool = False
    """A worker that is given a task begins it on the newest commit of the default branch."""
    keeps_wishes: bool = False
    """What was taken for later (a rebase after the turn) outlasts a stop, and is done after it."""
    message_begins_anew: bool = False
    """A worker that was given up and is told to go on has all its attempts again."""
    passes_bad_hooks: bool = False
    """What agents tell it comes as files (the place `inbox`); one that is damaged keeps nobody from being
    heard.
    """
    spares_settings: bool = True
    """A project may have settings of agents of its own (`.claude/settings.json`)."""
    keeps_author: bool = False
    """Whoever committed last to a worker's branch is the author of what is merged of it."""
    tames_texts: bool = False
    """What a terminal would obey is left out of the texts that an agent is told, or refused."""
    notices_typing: bool = False
    """What a person types into the terminal of an agent that rests is work like any other."""
    tells_errors: bool = False
    """A worker in error says why, and forgets it when it goes on."""
    shows_kept: str = ""
    """Where status lists workers, each with what is kept of it by the same names; then its other answers
    are held to what was asked, and to what git names, too.
    """
    shown_as: Mapping[str, str] = field(default_factory=dict)
    """What status shows of a worker under another name -> where it is kept (`#inbox`: how many)."""
    passes_model: bool = False
    """Every agent of a worker is started with the model that the worker was added with."""
    restart_pause_s: float = 0.0
    """An agent that died at once for the second time is started again after so long; 0: no promise."""
    most_restarts: int = 0
    """So often an agent that dies at once is started without anybody's asking; 0: no promise."""
    limits: Limits = field(default_factory=Limits)

    @property
    def daemonless(self) -> bool:
        """No daemon looks after the workers: every command leaves things as they have to be."""
        return "Up" in self.lacks

    def serves(self, command: str) -> tuple[str, ...] | None:
        """Statuses in which a command is legal; None when any status will do."""
        statuses = self.legal.get(command, LEGAL.get(command))
        if statuses is None or "*" in statuses:
            return None
        return statuses
