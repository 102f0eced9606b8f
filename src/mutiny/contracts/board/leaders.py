"""Right outcomes of leadership: one leader at a time, and old tokens are refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.model import BoardModel, BoardOutcome
from mutiny.contracts.board.tasks import Leader
from mutiny.kit.beliefs import Span
from mutiny.kit.outcome import no, ok

WRITES_LOOKED_AT = 10
"""Of a longer account only the end is looked at: a board need not keep all of it."""


def elect(model: BoardModel, operation: Any, when: Span) -> Iterable[BoardOutcome]:
    """A node wants to lead."""
    gone = model.leader_gone(when)
    token = model.top_token + 1
    led = replace(model, leader=Leader(operation.node, token, when), top_token=token)
    won = ok(led, "nobody leads")
    lost = no(model, f"{model.leader.node if model.leader else 'nobody'} leads", "leader_exists")
    if model.leader is not None and model.leader.node == operation.node:
        return (won, lost)
    if gone is None:
        return (won, lost)
    return (won,) if gone else (lost,)


def _leads(model: BoardModel, operation: op.LeaderCommand, when: Span) -> bool | None:
    """Does the node lead with the token that it shows? None: its lease may just have run out."""
    token = model.token_used(operation.node, stale=operation.stale, borrowed=operation.borrowed)
    leader = model.leader
    if leader is None or leader.node != operation.node or token != leader.token:
        return False
    return True if model.leader_gone(when) is False else None


def _as_leader(
    model: BoardModel, operation: op.LeaderCommand, when: Span, after: BoardModel
) -> Iterable[BoardOutcome]:
    leads = _leads(model, operation, when)
    refused = no(model, f"{operation.node} does not lead", "not_leader", "stale_token")
    if leads is False:
        return (refused,)
    served = ok(after, f"{operation.node} leads")
    return (served,) if leads else (served, refused)


def renew(model: BoardModel, operation: Any, when: Span) -> Iterable[BoardOutcome]:
    """The leader says that it lives."""
    leader = model.leader
    renewed = model if leader is None else replace(model, leader=replace(leader, renewed=when))
    return _as_leader(model, operation, when, renewed)


def step_down(model: BoardModel, operation: Any, when: Span) -> Iterable[BoardOutcome]:
    """The leader gives up."""
    return _as_leader(model, operation, when, replace(model, leader=None))


def write(model: BoardModel, operation: Any, when: Span) -> Iterable[BoardOutcome]:
    """A node acts as the leader."""
    after = model
    if model.writes is not None and model.leader is not None:
        entry = (operation.node, model.leader.token, operation.text)
        after = replace(model, writes=(*model.writes, entry)[-WRITES_LOOKED_AT:])
    return _as_leader(model, operation, when, after)
