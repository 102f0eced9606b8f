"""How runs end that do not end by themselves: stopped, or found dead. Only what was named is touched."""

from __future__ import annotations

import os
import signal
import time

from longboat.board.values import Refused, SystemRefused
from longboat.planting import planted
from longboat.spawns.ledger import (
    COMPLETED,
    FAILED,
    LIVE,
    OPEN,
    PENDING,
    QUEUED,
    RUNNING,
    STOPPED,
    Message,
    Spawn,
)
from longboat.spawns.office import Office
from longboat.spawns.starting import MARK, mark_of
from longboat.workers.processes import Identity, is_alive, members, send, wait_dead

_SURELY_S = 10.0


def processes_of(office: Office, spawn: Spawn) -> list[Identity]:
    """Everything alive that the present attempt of a run has started, its provider first."""
    provider = spawn.provider_process
    found = [provider] if provider is not None and is_alive(provider) else []
    if planted("children-left"):
        return found
    marked = members(-1, mark_of(office.ledger, spawn, spawn.attempt)) if spawn.attempt else []
    return [*found, *(one for one in marked if one not in found)]


def end_processes(office: Office, spawn: Spawn) -> None:
    """End what an attempt has started: politely, then surely; a refusal when even that does not help."""
    first = processes_of(office, spawn)
    for one in first:
        send(one, signal.SIGTERM)
        send(one, signal.SIGCONT)  # a stopped process cannot obey before it runs
    wait_dead(first, office.settings.grace_s)
    if planted("stop-asks-only"):
        return
    deadline = time.monotonic() + _SURELY_S
    while living := processes_of(office, spawn):
        if time.monotonic() > deadline:
            pids = ", ".join(str(one.pid) for one in living)
            raise SystemRefused("system", f"Run s{spawn.id} cannot be ended: {pids} lives on", "no")
        for one in living:
            send(one, signal.SIGKILL)
        wait_dead(living, 0.5)


def _end_supervisor(spawn: Spawn) -> None:
    """First of all: whoever would start something again."""
    if spawn.supervisor is not None:
        send(spawn.supervisor, signal.SIGKILL)
        if wait_dead([spawn.supervisor], _SURELY_S):
            text = f"The supervisor of s{spawn.id} cannot be ended (pid {spawn.supervisor.pid})"
            raise SystemRefused("system", text, "no")


# --- stop --------------------------------------------------------------------------------------------


def stop(office: Office, names: list[str]) -> list[str]:
    """Stop these runs: the wish is written down first, and `stopped` when nothing of them lives."""
    with office.change() as flow:
        wanted = [flow.ledger.known(name) for name in dict.fromkeys(names)]
        for spawn in wanted:
            if spawn.status not in OPEN:
                text = f"Run s{spawn.id} is {spawn.status} already; nothing was stopped"
                raise Refused("not_running", text)
        if planted("stop-by-channel"):
            places = {spawn.channel for spawn in wanted}
            wanted = [one for one in flow.ledger.spawns(*OPEN) if one.channel in places]
        _wish(office, wanted)
    return finish_stops(office, [spawn.id for spawn in wanted])


def stop_all(office: Office, channel: str, agent: str) -> list[str]:
    """Stop whatever runs or waits, of a channel or of an agent."""
    with office.change() as flow:
        if channel:
            channel = flow.ledger.channel(channel)
        agent = "" if planted("stop-all-of-everybody") else agent
        wanted = flow.ledger.spawns(*OPEN, channel=channel, agent=agent)
        _wish(office, wanted)
    return finish_stops(office, [spawn.id for spawn in wanted])


def _wish(office: Office, spawns: list[Spawn]) -> None:
    for spawn in spawns:
        if spawn.status == QUEUED:  # nothing of it lives
            office.ledger.move(spawn.id, STOPPED, "", reason="stopped", stopping=1)
        else:
            office.ledger.set(spawn.id, stopping=1)


def finish_stops(office: Office, numbers: list[int]) -> list[str]:
    """End everything of the runs that somebody wishes to stop, and write down that they are."""
    for number in numbers:
        spawn = office.ledger.fresh(number)
        if spawn.status not in LIVE:
            continue
        _end_supervisor(spawn)
        spawn = office.ledger.fresh(number)  # its last words may have been another attempt
        end_processes(office, spawn)
    with office.change() as flow:
        for number in numbers:
            if flow.ledger.fresh(number).status in LIVE:
                flow.ledger.move(number, STOPPED, "", reason="stopped")
        flow.promote()
    return [f"s{number}" for number in numbers]


def end_runs_of(office: Office, message: Message) -> None:
    """Plants only: whoever still works for a conversation dies with it."""
    for spawn in office.ledger.spawns(RUNNING):
        provider = spawn.provider_process
        if spawn.root == message.root and spawn.id != message.spawn and provider is not None:
            send(provider, signal.SIGKILL)


# --- what was found dead -----------------------------------------------------------------------------


def heal(office: Office) -> dict[str, list[str]]:
    """Go on where somebody has died: stops without an end, runs and waiting runs without a supervisor."""
    went: dict[str, list[str]] = {"failed": [], "retried": [], "stopped": []}
    own = os.environ.get(MARK, "")
    for spawn in office.ledger.spawns(*LIVE):
        dead = spawn.supervisor is None or not is_alive(spawn.supervisor)
        if mark_of(office.ledger, spawn, spawn.attempt) == own:
            continue  # whoever speaks from within a run that is over is told so
        if spawn.stopping:
            went["stopped"] += finish_stops(office, [spawn.id])
        elif dead and not (spawn.status == PENDING and planted("pending-forgotten")):
            _after_death(office, spawn, went)
    return went


def cleanup(office: Office) -> dict[str, list[str]]:
    """The same, by its own command."""
    if planted("cleanup-fails-finished"):
        with office.change() as flow:
            for spawn in flow.ledger.spawns(COMPLETED):
                flow.ledger.move(spawn.id, FAILED, "", reason="its process is dead")
    if planted("cleanup-takes-silent-for-dead"):
        with office.change() as flow:
            for spawn in flow.ledger.spawns(RUNNING):
                if not flow.ledger.posted(spawn.id):
                    flow.ledger.move(spawn.id, FAILED, "", reason="it has said nothing")
    return heal(office)


def _after_death(office: Office, seen: Spawn, went: dict[str, list[str]]) -> None:
    """The supervisor is dead: end what it has left, then decide as it would have."""
    if seen.status != PENDING and not planted("orphans-left"):
        end_processes(office, seen)
    with office.change() as flow:
        spawn = flow.ledger.fresh(seen.id)
        if (spawn.status, spawn.attempt, spawn.supervisor) != (
            seen.status,
            seen.attempt,
            seen.supervisor,
        ):
            return  # somebody else was quicker, or it has just finished
        if spawn.status == PENDING:
            flow.starter.supervise(spawn)
            return
        if flow.after_attempt(spawn, "supervisor died", None) == PENDING:
            flow.starter.supervise(flow.ledger.fresh(spawn.id))
            went["retried"].append(f"s{spawn.id}")
        else:
            went["failed"].append(f"s{spawn.id}")
