"""How a target differs from its contract's ideal, as far as all contracts say it alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mutiny.kit.rules import canonical


@dataclass(frozen=True)
class Limits:
    """Seconds that a correct target may take, where its contract has no more to say about it."""

    command_s: float = 20.0
    settle_s: float = 15.0
    """Until nothing is pending any more."""
    lag_s: float = 1.0
    """How long what is seen may lag behind what is true."""


@dataclass(frozen=True, kw_only=True)
class TargetProfile:
    """What one target promises; a contract's own profile adds its figures."""

    lacks: tuple[str, ...] = ()
    """Operations that the target does not have: they are left out, replaced, or not tested."""
    sure_calls: int = 0
    """State-changing system calls that every state-changing command surely makes: exploration breaks
    commands only before these. 0: it breaks none at a call.
    """
    names: str = ""
    """What names of workers and tasks may look like, as a regular expression: exploration then uses no
    others. Empty: it also tries names that a target may refuse.
    """
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Operation -> the fields that its answer always has, for a target that answers in JSON; `a.b`: where
    it has `a`, that has `b` (`kit/answer.py`).
    """
    notices_damage: bool = False
    """What it keeps carries a checksum or has a second copy: content that somebody else changed, an old
    file that came back, or a write of which the disk kept only half, is noticed and put right. Where it
    is not, nothing is known of the state after a damage that still reads as a state.
    """
    typed: tuple[str, ...] = ()
    """Operations whose commands take a number or a list, which can be given as a word instead."""
    asks_first: tuple[str, ...] = ()
    """Operations whose commands ask before they destroy, and do nothing when nobody answers."""
    marks_refusals: bool = False
    """Its tools answer as the protocol has it: a refusal is marked as an error, and nothing else is."""
    number_settings: tuple[str, ...] = ()
    """Its settings that are numbers, as its file tells of them; each can be made wrong."""
    refused_settings: tuple[str, ...] = ()
    """What may be wrong about a setting (`operations.WRONG_SETTINGS`) that it promises to refuse."""
    skips: Mapping[str, str] = field(default_factory=dict)
    """Scenarios that make no sense for this target, each with the reason."""
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    """Rules that this target does not promise, each with the reason."""
    limits: Any = field(default_factory=Limits)
    """Seconds that a correct target may take; a contract may have more of them."""

    def __post_init__(self) -> None:
        known = {canonical(rule): reason for rule, reason in self.not_applicable.items()}
        object.__setattr__(self, "not_applicable", known)
