"""Rules about processes and sessions: daemons, agents, what they start, and what is somebody else's."""

from __future__ import annotations

from collections.abc import Iterator

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.looking import BOOK, Check, agents_of, is_on, sessions_of
from mutiny.contracts.workers.observation import Observation
from mutiny.kit import faults
from mutiny.kit.checking import Found, Unreadable
from mutiny.kit.views import AgentView
from mutiny.model.operation import Kind, walk

TICKS_A_SECOND = 100
"""In these Linux tells when a process began."""
SPARE_DESCRIPTORS = 16


@BOOK.rule(eventual=False)
def daemon_survives(check: Check) -> Iterator[Found]:
    if check.before.daemons is None or check.seen.daemons is None:
        raise Unreadable("the process list")
    starved = is_on(check.model, faults.LowerLimit)
    touched = check.daemon_touched or check.model.daemon_told
    if check.seen.daemon_alive or touched or starved:
        return
    if check.before.daemon_alive:
        yield "daemon", "The daemon died by itself."
    elif isinstance(check.operation, op.Up) and check.succeeded:
        yield "daemon", "Up succeeded but no daemon runs."


@BOOK.rule(eventual=True)
def no_growth(check: Check) -> Iterator[Found]:
    """Some come and go, and each worker may need a few: only more than that is growth."""
    spare = SPARE_DESCRIPTORS + 4 * len(check.model.workers)
    for daemon in check.seen.daemons or ():
        first = check.model.opened.get(daemon.identity)
        if first is None or daemon.descriptors is None:
            continue
        if daemon.descriptors > first + spare:
            counts = f"{daemon.descriptors} descriptors open, and had {first}"
            yield "daemon", f"The daemon (pid {daemon.pid}) has {counts} when it was first seen."


@BOOK.rule(eventual=True)
def one_daemon(check: Check) -> Iterator[Found]:
    if check.seen.daemons is None:
        raise Unreadable("the process list")
    if len(check.seen.daemons) > 1:
        pids = ", ".join(str(process.pid) for process in check.seen.daemons)
        yield "daemon", f"Several daemons run at once: pids {pids}."


@BOOK.rule(eventual=True)
def one_agent(check: Check) -> Iterator[Found]:
    live: dict[str, list[int]] = {}
    for agent in agents_of(check.seen):
        if agent.alive:
            live.setdefault(agent.worker, []).append(agent.identity[0])
    for worker, pids in live.items():
        if len(pids) > 1:
            shown = ", ".join(map(str, pids))
            yield worker, f"Worker {worker!r} has {len(pids)} agents at once: pids {shown}."


@BOOK.rule(eventual=True)
def no_orphan_session(check: Check) -> Iterator[Found]:
    if check.model.state_damaged or check.seen.state_error:
        return
    known = {view.session for view in check.seen.workers.values()}
    for session in sorted(sessions_of(check.seen) - known):
        yield session, f"Session {session!r} belongs to no worker."


@BOOK.rule(eventual=True)
def nothing_outlives(check: Check) -> Iterator[Found]:
    """Somebody must be there to end it: the daemon, or a command that has just ended the agent."""
    ends = isinstance(check.operation, op.Down | op.Nuke | op.ResetWorker) and check.succeeded
    if not check.model.profile.ends_children or not (ends or check.seen.daemon_alive):
        return
    for agent in agents_of(check.seen):
        if agent.left_running and not agent.alive:
            pids = ", ".join(str(pid) for pid, _ in agent.left_running)
            who = f"The agent of worker {agent.worker!r} (pid {agent.identity[0]}) is dead"
            yield agent.worker, f"{who}, but what it has started lives on: pid {pids}."


_SPARES_OTHERS = (op.KillDaemon, op.KillAgent, op.KillTmuxSession, op.CorruptState, op.MoveSource)


@BOOK.rule(eventual=False)
def others_left_alone(check: Check) -> Iterator[Found]:
    """Faults of ours that may end a session of anybody excuse its end."""
    parts = (part for part in walk(check.operation) if not isinstance(part, _SPARES_OTHERS))
    if check.model.lasting or any(part.kind is Kind.FAULT for part in parts):
        return
    for what, intact in check.seen.neighbours.items():
        if not intact and check.before.neighbours.get(what):
            yield "", f"The {what}, which is somebody else's, is gone or was changed."


QUICK_S = 5.0
"""An agent that lived shorter than this died at once."""


@BOOK.rule(eventual=False)
def backs_off(check: Check) -> Iterator[Found]:
    """Only starts that nobody asked for count: those of one step that is neither a command nor a fault, of
    agents that died before they were told anything.
    """
    profile = check.model.profile
    if check.operation.kind not in (Kind.WAIT, Kind.CONTROL):
        return
    known = {agent.identity for agent in agents_of(check.before)}
    known |= {receipt.agent for receipt in check.seen.receipts or ()}  # those died of what they did
    starts: dict[str, list[int]] = {}
    for agent in agents_of(check.seen):
        if agent.identity not in known and not agent.alive:
            starts.setdefault(agent.worker, []).append(agent.identity[1])
    for worker, ticks in starts.items():
        if 0 < profile.most_restarts < len(ticks):
            yield (
                worker,
                f"The agent of worker {worker!r} was started {len(ticks)} times by itself.",
            )
        for first, second, third in zip(ticks, ticks[1:], ticks[2:], strict=False):
            quick = (second - first) / TICKS_A_SECOND < QUICK_S
            pause_s = (third - second) / TICKS_A_SECOND
            if quick and pause_s < profile.restart_pause_s - 2 / TICKS_A_SECOND:
                text = f"The agent of worker {worker!r} died at once twice, and was started again"
                yield worker, f"{text} {pause_s:.2f}s after the last start."


@BOOK.rule(eventual=False)
def agent_as_asked(check: Check) -> Iterator[Found]:
    if not check.model.profile.passes_model:
        return
    for agent in agents_of(check.seen):
        belief = check.model.workers.get(agent.worker)
        if belief is None or not belief.model or not agent.alive or not agent.argv:
            continue
        if not any(belief.model in word for word in agent.argv):
            words = " ".join(agent.argv)
            text = f"Worker {agent.worker!r} was added with the model {belief.model}"
            yield agent.worker, f"{text}, but its agent was started as {words!r}."


@BOOK.rule(eventual=False)
def live_agent_kept(check: Check) -> Iterator[Found]:
    if check.all_touched:
        return
    now = {agent.identity: agent for agent in agents_of(check.seen)}
    for agent in _cut_off(check):
        text = f"The agent of worker {agent.worker!r} (pid {agent.identity[0]}) was told its work"
        text += f" and ended in the middle of it during {check.operation}"
        yield agent.worker, f"{text}, though nothing named that worker."
    for agent in agents_of(check.before):
        if not agent.alive or not _left_alone(check, agent.worker):
            continue
        status = check.before.status_of(
            agent.worker
        )  # None: a fault's own state, which tells nothing
        waiting = status is None or status in ("working", "rejected", "rebasing")
        if waiting and not agent.busy:
            continue  # whether its prompt arrived may be unknown; then replacing it is the safe way
        if agent.cut_off or _lost_its_session(check.before, agent):
            continue  # it was already on its way out
        later = now.get(agent.identity)
        if later is None or not later.alive or (agent.busy and later.cut_off):
            was = f"The agent of worker {agent.worker!r} (pid {agent.identity[0]}) was alive before"
            text = f"{was} {check.operation} and is gone, though nothing named that worker."
            yield agent.worker, text, {"busy": agent.busy}


def _left_alone(check: Check, worker: str) -> bool:
    """No command and no fault has had to do with this worker's agents, and they do what they are told."""
    belief = check.model.workers.get(worker)
    if belief is None or worker in check.touched:
        return False
    return belief.disturbed is None and belief.will_complete and not belief.hits


def _cut_off(check: Check) -> Iterator[AgentView]:
    """Agents that were told their work since the last look, and are gone before they had ended it.

    One that wrote down that it is cut off may still be seen for a moment: what ended it came before that.
    """
    before = {agent.identity: agent for agent in agents_of(check.before)}
    for agent in agents_of(check.seen):
        known = before.get(agent.identity)
        since = known is None or (known.alive and not (known.busy or known.cut_off))
        gone = agent.cut_off or (agent.busy and not agent.alive)
        if since and gone and _left_alone(check, agent.worker):
            yield agent


def _lost_its_session(seen: Observation, agent: AgentView) -> bool:
    """A death takes its time: an agent whose session is gone may still be seen for a moment."""
    view = seen.workers.get(agent.worker)
    return view is not None and seen.sessions is not None and view.session not in seen.sessions


@BOOK.rule(eventual=True)
def down_ends_all(check: Check) -> Iterator[Found]:
    if not isinstance(check.operation, op.Down) or not check.succeeded:
        return
    if check.seen.daemons is None:
        raise Unreadable("the process list")
    if check.seen.daemon_alive:
        yield "daemon", "Down succeeded but the daemon runs."
    for agent in agents_of(check.seen):
        if agent.alive:
            yield agent.worker, f"Down succeeded but the agent of worker {agent.worker!r} runs."
