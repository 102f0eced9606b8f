"""`longboat spawn`: agents, and their runs."""

from __future__ import annotations

import time

from longboat.board.values import Answer, Refused
from longboat.planting import planted
from longboat.spawns import bridge, ending
from longboat.spawns.ledger import COMPLETED, OPEN, REFUSED, STOPPED, Spawn
from longboat.spawns.mentions import HUMAN
from longboat.spawns.names import check
from longboat.spawns.office import Office
from longboat.spawns.providers import PROVIDERS, provider_for

NOT_COMPLETED = 4
"""The exit code when a run that was waited for has not ended well."""
_POLL_S = (0.02, 0.2)


def register(office: Office, name: str, provider: str, model: str) -> Answer:
    """Somebody who can be mentioned; the same once more is fine."""
    check("agent", name)
    provider = provider or provider_for(model)
    if planted("provider-by-model-only"):
        provider = provider_for(model)
    if provider not in PROVIDERS:
        raise Refused("bad_input", f"'{provider}' is no provider: {', '.join(PROVIDERS)}")
    if name.lower() == HUMAN:
        raise Refused("bad_input", "'human' is whoever is not an agent")
    ending.heal(office)
    with office.change() as flow:
        known = flow.ledger.agent(name)
        if known is None:
            flow.ledger.add_agent(name, provider, model)
        elif (known.name, known.provider, known.model) != (name, provider, model) and not (
            planted("another-model-is-fine") and known.provider == provider
        ):
            text = (
                f"There is an agent {known.name} already ({known.provider}, {known.model or '-'})"
            )
            raise Refused("exists", text)
    created = known is None
    return {"ok": True, "agent": name, "provider": provider, "model": model, "created": created}


def agents(office: Office) -> Answer:
    """Everybody who can be mentioned."""
    fields = ("name", "provider", "model")
    rows = [{name: getattr(one, name) for name in fields} for one in office.ledger.agents()]
    return {"ok": True, "agents": rows}


def run(office: Office, agent: str, text: str, channel: str, sender: str) -> Answer:
    """A run of one agent without a mention: the text is a message, and starts nobody else."""
    ending.heal(office)
    with office.change() as flow:
        known = flow.ledger.agent(agent)
        if known is None:
            raise Refused("no_agent", f"There is no agent '{agent}'")
        message, by = bridge.post(office, flow, channel, text, sender)
        row = flow.mention(message, known, by)
    return {"ok": True, "spawn": row.shown(), "message": message.id}


def listed(office: Office, channel: str, status: str, agent: str) -> Answer:
    """Runs in their order."""
    statuses = (status,) if status else ()
    rows = office.ledger.spawns(*statuses, channel=channel, agent=agent)
    return {"ok": True, "spawns": [row.shown() for row in rows]}


def wait(office: Office, names: list[str], channel: str, timeout_s: float) -> tuple[Answer, int]:
    """Until these runs are over; without a name, until nothing runs or waits (in this channel)."""
    numbers = [office.ledger.known(name).id for name in names]
    if channel:
        channel = office.ledger.channel(channel)
    deadline = time.monotonic() + timeout_s
    pause = _POLL_S[0]
    while True:
        ending.heal(office)
        rows = _waited_for(office, numbers, channel)
        left = [row for row in rows if row.status in OPEN]
        if not left:
            break
        if time.monotonic() >= deadline:
            shown = ", ".join(f"s{row.id} is {row.status}" for row in left[:5])
            raise Refused("timeout", f"Not over within {timeout_s:g} s: {shown}")
        time.sleep(pause)
        pause = min(pause * 1.3, _POLL_S[1])
    fine = (COMPLETED, STOPPED, REFUSED) if planted("stopped-is-well") else (COMPLETED,)
    well = all(row.status in fine for row in rows)
    answer: Answer = {"ok": True, "spawns": [row.shown() for row in rows]}
    return answer, 0 if well or not numbers else NOT_COMPLETED


def _waited_for(office: Office, numbers: list[int], channel: str) -> list[Spawn]:
    if numbers:
        return [office.ledger.fresh(number) for number in numbers]
    return office.ledger.spawns(*OPEN, channel=channel) or office.ledger.spawns(channel=channel)
