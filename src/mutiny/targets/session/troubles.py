"""The faults of the session contract on a live session: on, and proved by what was seen of them."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.observation import ENDED, SessionView, at_of
from mutiny.faults.process import TECHNIQUE
from mutiny.kit import faults
from mutiny.kit.contract import StepContext
from mutiny.kit.views import ProcessView
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.targets.kit.live import Handler
from mutiny.targets.session.model_api import ODD, ODD_FILE, Trouble

API = "script of the model's API"
FELT_S = 30.0
"""Real seconds within which a session meets what was put in its way."""
HEED_S = 6.0
"""A session that goes on for so long with too little memory has not noticed it; in its own time."""
PATIENCE_S = 900.0
"""The same in the session's own time, where that passes faster; at least `LEAST_S` real ones."""
LEAST_S = 5.0
GONE_S = 5.0
ASKED_S = 10.0
ASKED = "a signal that asks to end"
LAST = 4
"""So many lines may follow the one that ends a session."""
SQUEEZED_MB = "1"


def _fired(text: str, technique: str, **facts: object) -> OperationResult:
    return OperationResult(0, text, fired=True, technique=technique, details=dict(facts))


def _not_fired(text: str) -> OperationResult:
    return OperationResult(1, stderr=text, fired=False)


def ended(events: Sequence[Mapping[str, Any]]) -> bool:
    """Has a session come to its end?"""
    ends = ("session.complete", "session.stop", "session.failed")
    return bool(events) and any(row["type"] in ends for row in events[-LAST:])


def _felt(live: Any, seen: Callable[[], bool]) -> bool:
    """Wait until a fault was met; False: it was not in time, or the session is at its end."""
    deadline = time.monotonic() + patience_s(live.limit(FELT_S), live.rate)
    while not seen():
        if time.monotonic() > deadline or ended(live.events()):
            return seen()
        live.wait_change(0.1)
    return True


def patience_s(limit_s: float, rate: float) -> float:
    """How long to wait for a fault to be met. Where hours pass in minutes, one whose moment does not come
    would wait through the whole session, and the moments of all others would pass meanwhile.
    """
    return limit_s if rate <= 1 else min(limit_s, max(LEAST_S, PATIENCE_S / rate))


def _met(live: Any, trouble: Trouble) -> OperationResult:
    """A trouble of the API, once somebody has met it; one that nobody met is taken back."""
    if _felt(live, lambda: live.api.fired(trouble) > 0):
        return _fired(f"met {live.api.fired(trouble)} times", API)
    live.api.drop([trouble.rule])
    return _not_fired("nobody asked the model")


def _model_error(live: Any, operation: op.ModelError, context: StepContext) -> OperationResult:
    trouble = live.api.fail(
        operation.error, operation.times, operation.model, operation.retry_after_s
    )
    if not live.processes_of("daemon", None):
        return _fired("the next session will meet it", API)
    return _met(live, trouble)


def _tool_timeout(live: Any, operation: op.ToolTimeout, context: StepContext) -> OperationResult:
    return _met(live, live.api.call_that_never_ends(operation.times))


def _bad_work(live: Any, operation: op.BadWork, context: StepContext) -> OperationResult:
    trouble = live.api.bad_work(operation.how)
    return (
        _not_fired("no task is left that writes code") if trouble is None else _met(live, trouble)
    )


def _odd_bytes(live: Any, operation: op.OddBytes, context: StepContext) -> OperationResult:
    return _one_more(live, ODD_FILE, ODD[operation.what], late=operation.late)


def _trespass(live: Any, operation: op.Trespass, context: StepContext) -> OperationResult:
    if operation.reads:
        return _look_out(live, op.OUT_OF_BOUNDS[operation.where])
    return _one_more(live, op.OUT_OF_BOUNDS[operation.where], f"{operation.where}\n")


def _look_out(live: Any, path: str) -> OperationResult:
    """A file outside of the project with a secret in it, once the model has asked what stands there."""
    names = live.observer.names()
    if not names:
        return _not_fired("there is no session")
    above = live.observer.files(names[-1]).place / path.removeprefix("../")
    place = above if path.startswith("../") else live.outside(path)
    place.replace_bytes(f"{op.SECRET}\n".encode())
    return _met(live, live.api.one_look(live.spec.profile.reads_with, path))


def _one_more(live: Any, path: str, content: str, *, late: bool = False) -> OperationResult:
    """A file beside those of the next work, once the model has asked for it."""
    trouble = live.api.one_more(path, content, late=late)
    return _not_fired("no work is left") if trouble is None else _met(live, trouble)


def _deadlock(live: Any, operation: op.AgentDeadlock, context: StepContext) -> OperationResult:
    one: SessionView | None = context.before.session
    if one is None or not one.plan.votes:
        return _not_fired("no session has had votes yet: nobody knows what they are about")
    decided = {row.get("vote") for row in one.of("vote.won", "vote.deadlock", "vote.decided")}
    if one.told not in ENDED and not set(one.plan.votes) - decided:
        return _not_fired("all votes are decided")
    if operation.how == "mute":
        if one.told not in ENDED:
            return _not_fired("a session is at work, whose votes may have been answered")
        live.api.mute_voter(one.plan.votes, one.plan.agents[0])
        return _fired("somebody will say nothing in the next session's votes", API)
    split = live.api.split_votes(one.plan.votes, list(one.plan.agents))
    if one.told in ENDED:
        return _fired("the next session's votes will not be won", API)
    felt = _felt(live, partial(_more, live, "vote.deadlock", len(list(one.of("vote.deadlock")))))
    live.api.drop(split)
    return _fired("a vote was not won", API) if felt else _not_fired("there was no vote to split")


def _more(live: Any, kind: str, known: int) -> bool:
    """Have there been more events of a type than before?"""
    return len([row for row in live.events() if row["type"] == kind]) > known


def _pressure(live: Any, operation: op.MemoryPressure, context: StepContext) -> OperationResult:
    """Less memory than it uses, until it has done something about it."""
    one: SessionView | None = context.before.session
    if one is None or "memory_mb" not in live.spec.knobs:
        return _not_fired("there is no session that could be squeezed")
    known, squeezed_at = len(live.events()), _last_at(live)
    live.heedless_s = 0.0
    word = live.spec.knobs["memory_mb"]
    before = live.notes.settings.get(word)
    live.configure("memory_mb", SQUEEZED_MB)

    def answered() -> bool:
        return any(
            row["type"] == "context.compressed" or "memory" in str(row.get("kind", ""))
            for row in live.events()[known:]
        )

    felt = _felt(live, answered)
    live.configure("memory_mb", before or "1024")
    if felt:
        return _fired("the limit was felt", "setting")
    lasted_s = _last_at(live) - squeezed_at
    if lasted_s < live.limit(HEED_S) * max(1.0, live.rate):
        return _not_fired("nobody felt it")
    live.heedless_s = lasted_s
    return _fired("nothing was done about it", "setting")


def _last_at(live: Any) -> float:
    """How far the session has come, in its own time."""
    return max((at_of(row) for row in live.events()), default=0.0)


# --- processes --------------------------------------------------------------------------------------------


def _crash(live: Any, operation: op.SystemCrash, context: StepContext) -> OperationResult:
    """Parents first, until nobody is left who could start another one."""
    drivers = live.processes_of("daemon", None)
    if not drivers:
        return _not_fired("nothing drives a session")
    if operation.told and not _told(live, operation.told, drivers):
        return _not_fired(f"no {operation.told} was told of any more")
    if operation.asked:
        live.signalled(drivers, signal.SIGTERM)
        for one in drivers:
            live.box.wait_gone(one.pid, one.start, live.limit(ASKED_S))
        left = {one.identity for one in live.everybody()} & {one.identity for one in drivers}
        return _not_fired("it did not end") if left else _fired("it has ended", ASKED)
    for _ in range(20):
        found = drivers if operation.alone else live.everybody()
        alive = [one for one in live.everybody() if one.identity in {f.identity for f in found}]
        if not alive:
            return _fired("it is dead", TECHNIQUE)
        live.signalled(alive, signal.SIGKILL)
        live.box.wait_gone(alive[0].pid, alive[0].start, GONE_S)
    return _not_fired("something of it is always started again")


def _told(live: Any, kind: str, drivers: Sequence[ProcessView]) -> bool:
    """Wait for the next event of a kind; what drives the session stands still at each look:
    what it would have done next is not done. Between two looks there is no pause: a signal through the box
    takes long enough for a step. False: none comes any more.
    """
    events = live.observer.files(live.observer.names()[-1]).events
    known = sum(row["type"] == kind for row in events.rows())
    deadline = time.monotonic() + patience_s(live.limit(FELT_S), live.rate)
    while time.monotonic() < deadline:
        live.signalled(drivers, signal.SIGSTOP)
        rows = events.rows()
        if sum(row["type"] == kind for row in rows) > known:
            return True
        live.signalled(drivers, signal.SIGCONT)
        if ended(rows):
            return False
    return False


def _agents(live: Any, find: Callable[[Any], tuple[ProcessView, ...]]) -> tuple[ProcessView, ...]:
    """Such agents, as soon as there are some; a session at its end will have none."""
    if ended(live.events()):
        return ()
    found: tuple[ProcessView, ...] = live.awaited(partial(find, live))
    return found


def _all(live: Any) -> tuple[ProcessView, ...]:
    found: tuple[ProcessView, ...] = live.processes_of("agent", None)
    return found


def _at_work(live: Any) -> tuple[ProcessView, ...]:
    """Those that hold a task: who is coming up may be slow, and who has nothing to do may be silent."""
    pids: dict[object, object] = {}
    held: dict[object, object] = {}
    for row in live.events():
        if row["type"] == "agent.start":
            pids[row.get("agent")] = row.get("pid")
        elif row["type"] == "task.start":
            held[row.get("task")] = row.get("agent")
        elif row["type"] in ("task.done", "task.flagged", "task.reassigned"):
            held.pop(row.get("task"), None)
        elif row["type"] == "supervisor.start":
            held.clear()
    working = {pids.get(agent) for agent in held.values()}
    return tuple(one for one in _all(live) if one.pid in working)


def _at_gate(live: Any) -> tuple[ProcessView, ...]:
    """Whoever runs the tests of a gate: they belong to no task."""
    files = live.observer.files(live.observer.names()[-1])
    pids = {r.get("agent"): r.get("pid") for r in live.events() if r["type"] == "agent.start"}
    begun: dict[object, object] = {}
    for row in files.calls.rows():
        begun.pop(row.get("agent"), None)
        tests = (row.get("name"), row.get("state")) == ("run_tests", "begin")
        if tests and row.get("task") not in files.plan().tasks:
            begun[row.get("agent")] = pids.get(row.get("agent"))
    return tuple(one for one in _all(live) if one.pid in begun.values())


def _kill_agent(live: Any, operation: op.KillAgent, context: StepContext) -> OperationResult:
    agents = _agents(live, _all)
    if not agents:
        return _not_fired("there is no agent")
    live.signalled(agents[:1], signal.SIGKILL)
    gone = live.box.wait_gone(agents[0].pid, agents[0].start, GONE_S)
    return _fired("an agent is dead", TECHNIQUE) if gone else _not_fired("it does not die")


def _freeze(live: Any, operation: op.FreezeAgent, context: StepContext) -> OperationResult:
    agents = _agents(live, _at_gate if operation.at == "gate" else _at_work)
    if not agents or not live.signalled(agents[:1], signal.SIGSTOP):
        return _not_fired("there is no agent at work")
    return _fired("an agent stands still", "SIGSTOP by handle")


# --- files, disk, clock -----------------------------------------------------------------------------------


def _disk_full(live: Any, operation: op.DiskFull, context: StepContext) -> OperationResult:
    seconds = max(0.1, operation.seconds / live.rate)
    full = faults.FillDisk(place="state", seconds=seconds)
    result: OperationResult = live.fault_runner.carry_out(full, context)
    return result


def _jump(live: Any, operation: op.ClockJump, context: StepContext) -> OperationResult:
    if live.page is None:
        return _not_fired("the clock of this target cannot be bent")
    live.page.jump(operation.offset_s)
    live.jumped_s += operation.offset_s
    return _fired(f"the wall clock is {operation.offset_s:+g} s off", "clock shim (LD_PRELOAD)")


def _corrupt(live: Any, operation: op.CorruptCheckpoint, context: StepContext) -> OperationResult:
    names = live.observer.names()
    if not names:
        return _not_fired("there is no session")
    spoilt = live.observer.damage(names[-1], operation.part)
    for part in spoilt:
        live.notes.spoil(part)
    if not spoilt:
        return _not_fired("there is nothing to damage")
    return _fired(f"{operation.part} is damaged", "file changed in place")


def _touch(live: Any, operation: op.TouchCheckpoints, context: StepContext) -> OperationResult:
    names = live.observer.names()
    older = live.observer.touch(names[-1]) if names else 0
    if not older:
        return _not_fired("there are no older checkpoints")
    return _fired(f"{older} older checkpoints look newer", "the same bytes written again")


def _half_done(live: Any, operation: op.HalfDone, context: StepContext) -> OperationResult:
    names = live.observer.names()
    if not names or live.processes_of("daemon", None):
        return _not_fired("there is no session that has died")
    if not live.observer.leave_half(names[-1], operation.what):
        return _not_fired(f"there is nothing that could have a half {operation.what}")
    return _fired(f"half a {operation.what} is left", "file written")


HANDLERS: Mapping[type[Operation], Handler] = {
    op.ModelError: _model_error,
    op.ToolTimeout: _tool_timeout,
    op.BadWork: _bad_work,
    op.OddBytes: _odd_bytes,
    op.Trespass: _trespass,
    op.AgentDeadlock: _deadlock,
    op.MemoryPressure: _pressure,
    op.SystemCrash: _crash,
    op.KillAgent: _kill_agent,
    op.FreezeAgent: _freeze,
    op.DiskFull: _disk_full,
    op.ClockJump: _jump,
    op.CorruptCheckpoint: _corrupt,
    op.TouchCheckpoints: _touch,
    op.HalfDone: _half_done,
}
