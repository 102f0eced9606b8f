"""Every right outcome of each command: its answer, and what is the case afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mutiny.contracts.spawns import operations as op
from mutiny.contracts.spawns.mentions import HUMAN, is_name
from mutiny.contracts.spawns.model import Sent, SpawnsModel
from mutiny.kit.domains import BAD_INPUT
from mutiny.kit.outcome import Outcome, no, ok
from mutiny.model.operation import Operation

SpawnsOutcome = Outcome[SpawnsModel]


def outcomes(model: SpawnsModel, operation: Operation) -> Sequence[SpawnsOutcome]:
    """What is right, and what follows. Which runs live is not known here: the judge looks."""
    if model.doubted:
        return (no(model, "the database was lost", "unreadable"),)
    if isinstance(operation, op.Init):
        return (ok(replace(model, home=True), "there is a home afterwards"),)
    if not model.home:
        return (no(model, "there is no home", "not_initialised"),)
    if isinstance(operation, op.Register):
        return _register(model, operation)
    if isinstance(operation, op.CreateChannel):
        return _channel(model, operation)
    if isinstance(operation, op.Send):
        return _send(model, operation)
    if isinstance(operation, op.Spawn):
        return _spawn(model, operation)
    if isinstance(operation, op.Stop | op.Logs):
        return _of_run(model, operation)
    if isinstance(operation, op.Await):
        return _await(model, operation)
    if isinstance(operation, op.AwaitHuman) and operation.channel.lower() in model.channels:
        return (ok(model, "one may be called"), no(model, "nobody may call one", "timeout"))
    if (
        isinstance(operation, op.Receive | op.AwaitHuman)
        and operation.channel.lower() not in model.channels
    ):
        return (no(model, "there is no such channel", "no_channel", BAD_INPUT),)
    if (
        isinstance(operation, op.StopAll)
        and operation.channel
        and operation.channel.lower() not in model.channels
    ):
        refused = no(model, "there is no such channel", "no_channel", BAD_INPUT)
        return (ok(model, "there is nothing to stop"), refused)
    return (ok(model, "it can always be asked"),)


def _register(model: SpawnsModel, operation: op.Register) -> tuple[SpawnsOutcome, ...]:
    name, values = operation.agent.lower(), (operation.provider, operation.model)
    if not is_name(operation.agent) or name == HUMAN:
        return (no(model, "nobody can be called that", BAD_INPUT),)
    if model.agents.get(name, values) != values:
        return (no(model, "there is such an agent, and it is another", "exists"),)
    there = ok(replace(model, agents={**model.agents, name: values}), "it is there afterwards")
    return (there, *_already(model, name in model.agents))


def _channel(model: SpawnsModel, operation: op.CreateChannel) -> tuple[SpawnsOutcome, ...]:
    if not is_name(operation.channel):
        return (no(model, "no channel can be called that", BAD_INPUT),)
    name = operation.channel.lower()
    there = ok(replace(model, channels=model.channels | {name}), "it is there afterwards")
    return (there, *_already(model, name in model.channels))


def _already(model: SpawnsModel, known: bool) -> tuple[SpawnsOutcome, ...]:
    """What is there may be made again, or be refused with the true reason."""
    return (no(model, "it is there already", "exists"),) if known else ()


def _send(model: SpawnsModel, operation: op.Send) -> tuple[SpawnsOutcome, ...]:
    if operation.channel.lower() not in model.channels:
        return (no(model, "there is no such channel", "no_channel", BAD_INPUT),)
    if not operation.text.strip() or not is_name(operation.sender):
        return (no(model, "nobody says nothing", BAD_INPUT),)
    sent = Sent(
        operation.channel.lower(),
        operation.sender.lower(),
        operation.text,
        knew=frozenset(model.agents),
    )
    return (ok(replace(model, sent=(*model.sent, sent)), "it is posted"),)


def _spawn(model: SpawnsModel, operation: op.Spawn) -> tuple[SpawnsOutcome, ...]:
    agent, channel = operation.agent.lower(), operation.channel.lower()
    wrong: tuple[SpawnsOutcome, ...] = ()
    if channel not in model.channels:
        wrong += (no(model, "there is no such channel", "no_channel", BAD_INPUT),)
    if agent not in model.agents:
        wrong += (no(model, "there is no such agent", "no_agent", BAD_INPUT),)
    if wrong:
        return wrong
    if not operation.text.strip():
        return (no(model, "nobody says nothing", BAD_INPUT),)
    sent = Sent(channel, HUMAN, operation.text, agent, knew=frozenset(model.agents))
    after = replace(model, sent=(*model.sent, sent))
    begun = ok(after, "it is begun")
    return (begun,) if operation.detach else (begun, no(after, "it may fail", "not_completed"))


def _of_run(model: SpawnsModel, operation: op.Stop | op.Logs) -> tuple[SpawnsOutcome, ...]:
    """Which run is meant, and whether it lives, is only seen: the judge compares."""
    gone = no(model, "there may be no such run", "no_spawn", BAD_INPUT)
    agent, channel = operation.agent.lower(), operation.channel.lower()
    if agent not in model.agents or channel not in model.channels:
        return (gone,)
    if isinstance(operation, op.Logs):
        return (ok(model, "it only looks"), gone)
    return (ok(model, "it may live"), no(model, "it may be over", "not_running"), gone)


def _await(model: SpawnsModel, operation: op.Await) -> tuple[SpawnsOutcome, ...]:
    """How the runs ended is only seen: the judge compares."""
    gone = no(model, "there may be no such run", "no_spawn", BAD_INPUT)
    known = {one.lower() for one in operation.agents} <= set(model.agents)
    if not known or operation.channel.lower() not in model.channels:
        return (gone,)
    return (
        ok(model, "they may have ended well"),
        no(model, "one may have ended otherwise", "not_completed"),
        no(model, "one may go on", "timeout"),
        gone,
    )
