"""Rules about votes: who wins one, and what becomes of one that nobody wins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mutiny.contracts.session.looking import BOOK, SessionCheck, session_of
from mutiny.contracts.session.observation import Row, SessionView
from mutiny.kit.checking import Found

_SAME_TRUST = 1e-9
"""Sums of trust that differ by less are the same."""


@BOOK.rule(eventual=True)
def votes_true(check: SessionCheck) -> Iterator[Found]:
    """The most trust wins; what nobody wins is decided by priority, or somebody is asked."""
    one = session_of(check)
    if one is None:
        return
    yield from _held_again(check, one)
    cast: dict[str, dict[object, list[Row]]] = {}
    voters: dict[str, object] = {}
    deadlocked: dict[str, Row] = {}
    settled = ("vote.won", "vote.priority", "vote.escalated", "vote.decided")
    for row in one.events:
        kind, vote = row["type"], str(row.get("vote", ""))
        if kind in ("vote.open", "vote.deadlock"):
            ballots, cast[vote] = cast.get(vote, {}), {}
            if kind == "vote.open":
                voters[vote] = row.get("voters")
            else:
                deadlocked[vote] = row
                most = _majority(ballots) if len(ballots) == _count(voters.get(vote)) else ""
                if most:
                    yield vote, f"Vote {vote} is called deadlocked; {most} has most of the trust."
                if int(row.get("rounds") or 0) > check.model.most("vote_rounds"):
                    yield vote, f"Vote {vote} went into round {row.get('rounds')}."
        elif kind == "vote.ballot":
            if vote not in voters and not one.bad_lines:
                yield vote, f"Vote {vote} has a ballot, and was never opened."
                return
            ballots = cast.setdefault(vote, {})
            ballots.setdefault(row.get("agent", len(ballots)), []).append(row)
        elif kind in settled:
            deadlocked.pop(vote, None)
            won = str(row.get("option"))
            rival = _rival(cast.get(vote, {}), won) if kind == "vote.won" else ""
            if rival:
                yield vote, f"Vote {vote} was won by {won}, which has no more trust than {rival}."
        elif kind == "phase.complete" and deadlocked:
            vote = next(iter(deadlocked))
            yield vote, f"Vote {vote} was never resolved, and the phase went on."
            return
        elif kind == "supervisor.start":
            cast, deadlocked = {}, {}


def _count(voters: object) -> int | None:
    return len(voters) if isinstance(voters, list) else None


def _trusted(cast: Mapping[object, Sequence[Row]]) -> dict[str, float]:
    """The trust in each option; nothing when that cannot be said.

    A vote may have rounds, and nobody tells when one begins: each voter's last ballot counts, while all
    have cast as many. Who said nothing in the last round has one of an earlier round, which proves nothing.
    """
    if len({len(rows) for rows in cast.values()}) != 1:
        return {}
    trust: dict[str, float] = {}
    for rows in cast.values():
        option = str(rows[-1].get("option"))
        trust[option] = trust.get(option, 0.0) + float(rows[-1].get("trust") or 0.0)
    return trust


def _rival(cast: Mapping[object, Sequence[Row]], won: str) -> str:
    """The option that has as much trust as the one that has won, or more; empty: there is none."""
    trust = _trusted(cast)
    least = trust.get(won, 0.0) - _SAME_TRUST
    return next((one for one in trust if one != won and trust[one] > least), "")


def _majority(cast: Mapping[object, Sequence[Row]]) -> str:
    """The option with more than half of the trust of all who have voted; empty: there is none."""
    trust = _trusted(cast)
    half = sum(trust.values()) / 2 + _SAME_TRUST
    return next((one for one in trust if trust[one] > half), "")


def _held_again(check: SessionCheck, one: SessionView) -> Iterator[Found]:
    """What was decided, and has led to work, stays decided over a crash."""
    if check.seen.damaged or check.model.damaged or check.model.cramped or check.model.lasting:
        return
    decided: set[str] = set()
    binding: set[str] = set()
    newest = 0
    for row in one.events:
        kind, vote = row["type"], str(row.get("vote", ""))
        if kind in ("vote.won", "vote.priority", "vote.decided"):
            decided.add(vote)
        elif kind == "checkpoint.written":
            newest = max(newest, int(row.get("checkpoint") or 0))
        elif kind == "task.start":
            binding |= decided
        elif kind == "session.restore":
            back = int(row.get("checkpoint") or 0) < newest  # somebody has named an older one
            decided = binding = set() if back else set(binding)
            newest += 1  # what is restored may be written as a checkpoint of its own
        elif kind == "vote.open" and vote in binding:
            yield vote, f"Vote {vote} was decided, and is held again."
            return
