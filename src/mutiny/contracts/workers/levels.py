"""How much of the contract a target offers, said by one word of its file.

A level is a named set of what is lacking: operations, and promises that make no sense without them.
Everything else adapts by the profile, as it does to a single missing command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.short_scenarios import FOREIGN_NAME
from mutiny.kit.domains import names_fit


@dataclass(frozen=True)
class Level:
    """What targets of one level have, and what they lack."""

    about: str
    lacks: tuple[str, ...] = ()
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    """Rules that say nothing of such a target, each with the reason."""
    derived: tuple[tuple[str, Mapping[str, str]], ...] = ()
    """How a status is derived where none is said: the first whose conditions fit."""
    legal: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    moves: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shows_ends: bool = True


_REVIEW = (
    *("Review", "ReviewNext", "Accept", "AcceptReviewed", "Reject", "Rebase", "AssertOnTop"),
    "AssertAuthor",
)
_OWN_AFFAIR = "what an agent leaves in its worktree is its own affair: nothing is reviewed"

LEVELS: dict[str, Level] = {
    "sessions": Level(
        "names, worktrees, sessions and prompts; no statuses",
        lacks=(*_REVIEW, "ResetWorker", "WaitForState", "WaitForNeedsReview", "AssertState"),
        not_applicable={
            "workers.working_has_prompt": "no prompts are shown",
            "workers.idle_has_no_prompt": "no prompts are shown",
            "workers.tree_clean": _OWN_AFFAIR,
            "workers.idle_is_fresh": _OWN_AFFAIR,
            "workers.way_out": "no statuses are shown",
        },
        derived=(
            ("offline", {"@session": "gone"}),
            ("offline", {"@agent": "none"}),
            ("working", {"@agent": "busy"}),
            ("idle", {}),
        ),
        legal={"Start": ("*",), "Message": ("*",)},
        # Agents come, work, rest and leave; nobody but they themselves shows it.
        moves={
            "idle": ("working", "offline"),
            "working": ("idle", "offline"),
            "offline": ("idle",),
        },
        shows_ends=False,
    ),
    "workers": Level(
        "sessions, and a status for each worker; nothing is reviewed",
        lacks=_REVIEW,
        not_applicable={
            "workers.review_has_commit": "nothing is reviewed",
            "workers.way_out": "nothing is reviewed, so that finished work simply stays",
        },
    ),
    "review": Level("workers whose work is reviewed, accepted or rejected"),
}
"""By name, the smallest first."""


WITHOUT_DAEMON: Mapping[str, str] = {
    "full_disk_from_the_start": "no daemon is started",
    "corrupt_state": "nobody puts back a state that is gone",
    "given_up_and_told": "nobody starts an agent again",
}
"""Scenarios that need a daemon to show anything."""


PROMISED: Mapping[str, Callable[[Profile], bool]] = {
    **dict.fromkeys(
        ("child_left_by_nuke", "child_left_by_down", "child_left_by_death", "agent_will_not_go"),
        lambda profile: profile.ends_children,
    ),
    "dies_at_once": lambda profile: profile.most_restarts > 0,
    "given_up_and_restarted": lambda profile: profile.most_restarts > 0,
    "typed_by_hand": lambda profile: profile.notices_typing,
    "odd_models": lambda profile: profile.passes_model,
    **dict.fromkeys(
        ("refused_in_every_state", "refused_in_error"),
        lambda profile: not profile.legal,
    ),
    "author_is_kept": lambda profile: profile.keeps_author,
    "begins_on_newest": lambda profile: profile.begins_on_newest,
    "rebase_put_off_over_restart": lambda profile: profile.keeps_wishes,
    **dict.fromkeys(
        ("detached_work_nuked", "detached_work_reset"), lambda profile: profile.keeps_discarded
    ),
    "control_characters": lambda profile: profile.tames_texts,
    "nuke_finished_work": lambda profile: profile.keeps_discarded,
    "foreign_name": lambda profile: profile.takes_names and names_fit(profile.names, FOREIGN_NAME),
    **dict.fromkeys(
        (
            *("names_alike", "shorter_name_first"),
            *("words_as_names_used", "words_as_names_removed"),
        ),
        lambda profile: profile.takes_names,
    ),
}
"""Scenarios that show what not every target promises."""


def at_level(profile: Profile, name: str) -> Profile:
    """A target's profile, with what its level lacks."""
    level = LEVELS[name]
    return replace(
        profile,
        lacks=tuple(dict.fromkeys((*profile.lacks, *level.lacks))),
        not_applicable={**level.not_applicable, **profile.not_applicable},
        legal={**level.legal, **profile.legal},
        extra_moves={**level.moves, **profile.extra_moves},
        shows_ends=level.shows_ends,
        skips={**(WITHOUT_DAEMON if profile.daemonless else {}), **profile.skips},
        start_is_immediate=profile.start_is_immediate and level.shows_ends,
    )
