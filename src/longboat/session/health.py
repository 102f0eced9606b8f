"""How a running session is: its status, whether it is healthy, and what is done about memory and disk."""

from __future__ import annotations

import os
from typing import Protocol

from longboat.planting import planted
from longboat.session import contexts, measures
from longboat.session.checkpoints import Invalid
from longboat.session.saving import Saving
from longboat.session.site import Site
from longboat.session.values import Json, Refused
from longboat.session.work import Work
from longboat.workers.processes import identify

_PATIENCE_S = 300.0
"""So much later than it is due a checkpoint may be before that is unhealthy."""
_RELIEF_S = 120.0
_MOST_PRESSURE = 5


class Owner(Protocol):
    """Who pauses."""

    def critical(self, kind: str, text: str) -> None:
        """Pause."""


def status(site: Site, work: Work) -> Json:
    """Where the session is."""
    state, (base, deltas) = site.state, site.numbers
    me = identify(os.getpid())
    counts = [task["status"] for task in state["tasks"].values()]
    done = counts.count("done") + counts.count("flagged")
    if planted("session-status-optimistic"):
        done += counts.count("working")
    phase = {**state["phase"], "elapsed_s": round(site.phase_elapsed_s(), 3)}
    return {
        "status": state["status"],
        "reason": state["reason"],
        "project": site.project.name,
        "phase": phase,
        "elapsed_s": round(site.clock.now(), 3),
        "remaining_s": measures.line(site, site.spent)["estimated_remaining"],
        "agents": [_agent(one, work) for one in state["agent_states"] if one["name"] in work.desks],
        "tasks": {"done": done, "left": len(counts) - done, "flagged": counts.count("flagged")},
        "checkpoint": base,
        "deltas": deltas,
        "votes": {name: vote["status"] for name, vote in state["votes"].items()},
        "errors": state["counts"]["errors"],
        "recoveries": state["counts"]["recoveries"],
        "git_commit": state["git_commit"],
        "pid": os.getpid(),
        "start": me.start if me else 0,
    }


def _agent(one: Json, work: Work) -> Json:
    hand = work.desks[one["name"]].hand
    known = {key: one[key] for key in ("name", "role", "status", "task", "trust", "model")}
    start = hand.identity.start if hand is not None and hand.identity else 0
    return {**known, "pid": hand.pid if hand else 0, "start": start}


def answer(site: Site, work: Work) -> Json:
    """What `health` says: every check, and whether all hold."""
    state = site.state
    interval_s = site.config.interval_s or site.phase.checkpoint_minutes * 60
    age_s = site.clock.now() - site.base_at_s
    checks = {
        "supervisor": True,
        "agents": all(desk.hand is not None for desk in work.desks.values()),
        "checkpoint": age_s <= 2 * interval_s + _PATIENCE_S and _readable(site),
        "disk": disk_mb(site.session.directory) <= site.config.disk_mb,
        "memory": memory_mb(work) <= site.config.memory_mb,
        "errors": state["status"] != "paused" or state["reason"] == "asked",
    }
    known = {"session": site.session.name, "status": state["status"], "checks": checks}
    if all(checks.values()) or planted("session-health-always-well"):
        return {"ok": True, **known}
    wrong = ", ".join(name for name, holds in checks.items() if not holds)
    text = f"Session {site.session.name} is not healthy: {wrong}"
    return Refused("unhealthy", text, **known).answer()


def _readable(site: Site) -> bool:
    try:
        return not site.session.checkpoints.read(site.numbers[0]).why
    except Invalid:
        return False


def memory_mb(work: Work) -> float:
    """What the supervisor and all agents hold."""
    return measures.memory_mb([os.getpid(), *work.pids()])


def disk_mb(directory: str) -> float:
    """What the session takes on the disk."""
    size = 0
    for place, _, names in os.walk(directory):
        for name in names:
            try:
                size += os.lstat(os.path.join(place, name)).st_blocks * 512
            except FileNotFoundError:
                continue  # a temporary file that was renamed
    return size / 1e6


class Pressure:
    """How often memory was short in a row, and when last."""

    def __init__(self) -> None:
        self.rows = 0
        self.last_s = float("-inf")


def watch(site: Site, work: Work, saving: Saving, owner: Owner, pressure: Pressure) -> None:
    """Memory: shorten, restart the largest agent, checkpoint. Disk: clean up, or pause."""
    if site.state["status"] != "running":
        return
    _watch_memory(site, work, saving, owner, pressure)
    used = disk_mb(site.session.directory)
    if used > site.config.disk_mb and not planted("session-disk-unlimited"):
        known = {"limit": "disk", "agent": "", "action": "cleanup", "used": int(used)}
        site.say("limit.reached", **known, limit_value=int(site.config.disk_mb))
        saving.clean_up()
        used = disk_mb(site.session.directory)
        if used > site.config.disk_mb:
            text = f"{used:.1f} MB of {site.config.disk_mb:g} MB are used"
            owner.critical("disk_full", text)


def _watch_memory(site: Site, work: Work, saving: Saving, owner: Owner, pressure: Pressure) -> None:
    used, limit, now_s = memory_mb(work), site.config.memory_mb, site.clock.now()
    if used <= limit or planted("session-memory-unlimited"):
        pressure.rows = 0
        return
    if now_s - pressure.last_s < min(_RELIEF_S, site.config.idle_s):
        return
    pressure.rows, pressure.last_s = pressure.rows + 1, now_s
    if pressure.rows > _MOST_PRESSURE:
        owner.critical("memory_pressure", f"{used:.0f} MB of {limit:g} MB, again and again")
        return
    known = {"limit": "memory", "agent": "", "action": "compress", "used": int(used)}
    site.say("limit.reached", **known, limit_value=int(limit))
    for one in site.state["agent_states"]:
        contexts.compress(one)
    largest = max(
        (desk for desk in work.desks.values() if desk.hand is not None),
        key=lambda desk: measures.memory_mb([desk.hand.pid]) if desk.hand else 0.0,
        default=None,
    )
    if largest is not None:
        work.restart(largest, f"memory: {used:.0f} MB of {limit:g} MB")
    began_s = now_s

    def kept(made: Json) -> None:
        if made.get("ok", True):
            took_s = round(site.clock.now() - began_s, 3)
            work.recovered("memory_pressure", took_s, by="compress")

    saving.want("pressure", kept)
