"""`longboat bridge`: channels, and what is said in them."""

from __future__ import annotations

import time

from longboat.board.values import Answer, Refused
from longboat.planting import planted
from longboat.spawns import ending
from longboat.spawns.flow import Flow
from longboat.spawns.ledger import LIVE, PENDING, Message, Spawn, name_of
from longboat.spawns.mentions import HUMAN, mentioned
from longboat.spawns.names import check
from longboat.spawns.office import Office

_LONGEST_TEXT = 100_000
_POLL_S = 0.05


def create(office: Office, name: str) -> Answer:
    """A channel; one that is there already is fine."""
    check("channel", name)
    ending.heal(office)
    with office.change() as flow:
        known = {str(one["name"]).lower() for one in flow.ledger.channels()}
        created = name.lower() not in known
        if created:
            flow.ledger.add_channel(name)
    return {"ok": True, "channel": name, "created": created}


def channels(office: Office) -> Answer:
    """All channels."""
    return {"ok": True, "channels": office.ledger.channels()}


def send(office: Office, channel: str, text: str, sender: str) -> Answer:
    """Say something: the message and a row for everybody whom it mentions, or nothing of it."""
    ending.heal(office)
    if planted("lost-in-no-channel") and channel.lower() not in {
        str(one["name"]).lower() for one in office.ledger.channels()
    }:
        return {"ok": True, "message": 0, "root": 0, "spawns": [], "unknown": []}
    with office.change() as flow:
        message, by = post(office, flow, channel, text, sender)
        if planted("rows-after-message"):
            office.database.execute("commit")
            office.database.execute("begin immediate")
        names = mentioned(text)
        human = HUMAN in names
        ended = human and by is not None and flow.end_conversation(message)
        others = [name for name in names if name != HUMAN]
        if planted("first-mention-only"):
            others = others[:1]
        agents = {name: flow.ledger.agent(name) for name in others}
        if planted("busy-mention-dropped"):
            busy = {row.agent.lower() for row in flow.ledger.spawns(*LIVE, channel=channel)}
            agents = {name: None if name in busy else one for name, one in agents.items()}
        rows = [flow.mention(message, agent, by) for agent in agents.values() if agent is not None]
    if ended and planted("end-kills-runs"):
        ending.end_runs_of(office, message)
    return {
        "ok": True,
        "message": message.id,
        "root": message.root,
        "spawns": [
            {"id": name_of(row.id), "agent": row.agent, "status": _told(row), "reason": row.reason}
            for row in rows
        ],
        "unknown": [name for name in others if agents[name] is None],
        "human": human,
        "ended": ended,
    }


def _told(row: Spawn) -> str:
    """What whoever has mentioned somebody is told of his run."""
    return PENDING if planted("all-begin-they-say") else row.status


def post(
    office: Office, flow: Flow, channel: str, text: str, sender: str
) -> tuple[Message, Spawn | None]:
    """A message in a channel, and the run that says it (None: a person does)."""
    if not text.strip() or len(text) > _LONGEST_TEXT or "\0" in text:
        raise Refused("bad_input", f"A text has 1 to {_LONGEST_TEXT} characters and no zero byte")
    by = office.speaker()
    if by is not None and sender and sender.lower() != by.agent.lower():
        raise Refused("not_yours", f"Run s{by.id} speaks as {by.agent}, not as {sender}")
    name = by.agent if by is not None else check("sender", sender or HUMAN)
    place = flow.ledger.channel(channel)
    message = flow.ledger.add_message(
        Message(
            id=0,
            channel=place,
            sender=name,
            text=text,
            at="",
            root=0 if by is None else by.root,
            parent=None if by is None else by.message,
            spawn=None if by is None else by.id,
            attempt=None if by is None else by.attempt,
            ended_by=None,
        )
    )
    return message, by


def receive(office: Office, channel: str, after: int | None, limit: int, reader: str) -> Answer:
    """What was said, in its order; for a reader from its bookmark on."""
    place = office.ledger.channel(channel)
    if after is None:
        after = office.ledger.bookmark(check("reader", reader), place) if reader else 0
    found = office.ledger.messages(place, after, limit)
    if planted("read-by-time"):
        found.sort(key=lambda one: one.at)
    return {"ok": True, "messages": [one.shown() for one in found]}


def remember(office: Office, channel: str, reader: str, answer: Answer) -> None:
    """The reader has got it: only now the bookmark moves, so that nothing is lost on the way."""
    messages = answer["messages"]
    assert isinstance(messages, list)
    if messages:
        with office.change() as flow:
            last = messages[0 if planted("bookmark-of-the-first") else -1]
            flow.ledger.put_bookmark(reader, flow.ledger.channel(channel), last["id"])


def wait_for_human(office: Office, channel: str, after: int, timeout_s: float) -> Answer:
    """The first message after this one in which an agent asks for a person."""
    place = office.ledger.channel(channel)
    deadline = time.monotonic() + timeout_s
    while True:
        for message in office.ledger.messages(place, after, 1000):
            after = message.id
            if message.spawn is not None and HUMAN in mentioned(message.text):
                return {"ok": True, "message": message.shown()}
        if time.monotonic() >= deadline:
            raise Refused("timeout", f"Nobody asked for a person within {timeout_s:g} s")
        time.sleep(_POLL_S)
