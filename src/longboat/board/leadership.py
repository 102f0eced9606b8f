"""One leader at a time: a lease says who, a token that only grows says which of all leaders.

The lease alone cannot stop a leader that slept; the token can: whoever writes shows it, and an old
one is refused however sure its holder is.
"""

from __future__ import annotations

from longboat.board.ledger import Ledger, Moment
from longboat.board.values import (
    WRITES_LENGTH,
    Answer,
    Command,
    Leader,
    Refused,
    Write,
)
from longboat.planting import planted


def present(ledger: Ledger, moment: Moment) -> Leader | None:
    """The leader whose lease still runs."""
    leader = ledger.leader
    if leader.node is None or moment.leader_age_s() > ledger.config.leader_lease_s:
        return None
    return leader


def elect(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """Become the leader when there is none; the same node again gets a new token as well."""
    now = present(ledger, moment)
    if now is not None and now.node != command.name and not planted("two-leaders"):
        raise Refused("leader_exists", f"{now.node} leads with token {now.token}")
    token = ledger.leader.token + 1
    ledger.set_leader(ledger.leader._replace(node=command.name, token=token))
    return _led(ledger, token)


def _led(ledger: Ledger, token: int) -> Answer:
    lease_s = ledger.config.leader_lease_s
    return {"ok": True, "node": ledger.leader.node, "token": token, "lease_s": lease_s}


def _leads(ledger: Ledger, command: Command, moment: Moment) -> Leader:
    leader = ledger.leader
    if command.token != leader.token:
        raise Refused("stale_token", f"The token is {leader.token}, not {command.token}")
    now = present(ledger, moment)
    if now is None or now.node != command.name:
        who = f"{now.node} leads" if now else "nobody leads (the lease is over)"
        raise Refused("not_leader", f"{command.name} does not lead: {who}")
    return now


def renew(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """The leader lives."""
    return _led(ledger, _leads(ledger, command, moment).token)


def step_down(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """The leader goes; its token stays used for ever."""
    leader = _leads(ledger, command, moment)
    ledger.set_leader(leader._replace(node=None))
    return {"ok": True, "node": command.name, "token": leader.token}


def write(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """A write that only the present leader may make."""
    leader = ledger.leader if planted("old-token-accepted") else _leads(ledger, command, moment)
    entry = Write(command.name, command.token, command.text or "")
    ledger.set_leader(leader._replace(writes=(*leader.writes, entry)[-WRITES_LENGTH:]))
    return {"ok": True, "node": command.name, "token": command.token}
