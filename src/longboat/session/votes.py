"""Decisions that agents take together: votes weighted by trust, and what follows when none wins."""

from __future__ import annotations

from longboat.planting import planted
from longboat.session.project import PRIORITY


def ballot(text: str, options: list[str]) -> str | None:
    """The option that an answer names; None when it names none, or several."""
    said = text.lower().replace(",", " ").replace(".", " ").split()
    named = [option for option in options if option.lower() in said]
    return named[0] if len(named) == 1 else None


def winner(ballots: dict[str, str], trust: dict[str, float]) -> str | None:
    """The option with more than half of all trust; None when there is none."""
    weights: dict[str, float] = {}
    for agent, option in ballots.items():
        weight = 1.0 if planted("session-trust-ignored") else trust.get(agent, 0.0)
        weights[option] = weights.get(option, 0.0) + weight
    whole = sum(weights.values())
    best = max(weights, key=lambda option: weights[option], default=None)
    return best if best is not None and weights[best] > whole / 2 + 1e-9 else None


def by_priority(ballots: dict[str, str], roles: dict[str, str]) -> tuple[str, str] | None:
    """The option of whoever has the first word, and who that is; None when nobody voted."""
    order = {role: number for number, role in enumerate(PRIORITY)}
    voters = sorted(ballots, key=lambda agent: (order.get(roles.get(agent, ""), 99), agent))
    return (ballots[voters[0]], voters[0]) if voters else None
