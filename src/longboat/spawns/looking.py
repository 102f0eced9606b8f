"""What only looks: what is wrong with runs, what they said, and who started whom."""

from __future__ import annotations

import json
import sys
import time

from longboat.board.values import Answer
from longboat.planting import planted
from longboat.spawns import bridge
from longboat.spawns.ledger import LIVE, OPEN, RUNNING, Spawn, name_of
from longboat.spawns.office import Office
from longboat.workers.processes import is_alive

_POLL_S = 0.1


# --- health ------------------------------------------------------------------------------------------


def health(office: Office) -> Answer:
    """Runs that are dead, over their time, without a session, or silent; and no others."""
    problems = []
    for seen in office.ledger.spawns(*LIVE):
        found = _problem(office, seen)
        if found is None or office.ledger.fresh(seen.id) != seen:
            continue  # it went on while we looked
        problem, text, age_s = found
        if planted("health-posts"):
            with office.change() as flow:
                bridge.post(office, flow, seen.channel, f"s{seen.id}: {text}", "health")
        problems.append(
            {
                "id": name_of(seen.id),
                "agent": seen.agent,
                "channel": seen.channel,
                "problem": problem,
                "text": text,
                "age_s": round(age_s, 3),
            }
        )
    return {"ok": True, "problems": problems}


def _problem(office: Office, spawn: Spawn) -> tuple[str, str, float] | None:
    settings, moment = office.settings, time.monotonic()
    age_s = moment - (spawn.began or moment)
    dead = spawn.supervisor is None or not is_alive(spawn.supervisor)
    if dead and not planted("health-ignores-dead"):
        return "dead", f"{spawn.status}, but its supervisor is dead", age_s
    if spawn.status != RUNNING:
        return None
    if age_s > settings.timeout_s:
        return "timeout", f"it runs for {age_s:.0f} s", age_s
    if spawn.session is None:
        if age_s > settings.no_session_s:
            return "no_session", f"no session file after {age_s:.0f} s", age_s
        return None
    silent_s = moment - (spawn.progress or moment)
    if silent_s > settings.stall_s:
        return "stalled", f"nothing was written for {silent_s:.0f} s", age_s
    return None


# --- logs --------------------------------------------------------------------------------------------


def logs(office: Office, name: str, tail: int, *, follow: bool) -> Answer:
    """What a run has said, and what happened to it; with ``follow`` as it comes, until it is over."""
    spawn = office.ledger.known(name)
    if follow:
        _follow(office, spawn.id)
    spawn = office.ledger.fresh(spawn.id)
    lines = _said(office, spawn)
    return {
        "ok": True,
        "spawn": spawn.shown(),
        "lines": lines[:tail] if planted("tail-is-head") else lines[-tail:] if tail else lines,
        "events": office.ledger.events(spawn.id),
    }


def _said(office: Office, spawn: Spawn) -> list[str]:
    lines: list[str] = []
    for number in range(1, spawn.attempt + 1):
        for ending in ("out", "err"):
            path = office.file("runs", f"s{spawn.id}", f"attempt-{number}.{ending}")
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    lines += [f"{number} {ending}: {line.rstrip()}" for line in file]
            except FileNotFoundError:
                continue
    return lines


def _follow(office: Office, number: int) -> None:
    shown: dict[str, int] = {}
    while True:
        spawn = office.ledger.fresh(number)
        counted: dict[str, int] = {}
        for line in _said(office, spawn):
            kind = line.partition(":")[0]
            counted[kind] = counted.get(kind, 0) + 1
            known = shown.get(kind, 0) - planted("follow-repeats-itself")
            if counted[kind] > known:
                sys.stdout.write(json.dumps({"line": line}) + "\n")
                shown[kind] = counted[kind]
        sys.stdout.flush()
        if spawn.status not in OPEN:
            return
        time.sleep(_POLL_S)


# --- chain -------------------------------------------------------------------------------------------


def chain(office: Office, name: str) -> Answer:
    """Who started whom, as a tree: of one run, or of all."""
    rows = office.ledger.spawns()
    children: dict[int | None, list[Spawn]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row)
    tops = [office.ledger.known(name)] if name else children.get(None, [])
    lines: list[str] = []
    tree = []
    for top in tops:
        lines.append(_shown(top))
        tree.append(_branch(top, children, "", lines))
    return {"ok": True, "tree": tree, "text": "\n".join(lines)}


def _branch(
    spawn: Spawn, children: dict[int | None, list[Spawn]], margin: str, lines: list[str]
) -> dict[str, object]:
    below = []
    for child in (found := children.get(spawn.id, [])):
        last = child is found[-1]
        lines.append(f"{margin}{'`-- ' if last else '|-- '}{_shown(child)}")
        below.append(_branch(child, children, margin + ("    " if last else "|   "), lines))
    return {
        "id": name_of(spawn.id),
        "agent": spawn.agent,
        "status": spawn.status,
        "depth": spawn.depth,
        "children": below,
    }


def _shown(spawn: Spawn) -> str:
    why = f" ({spawn.reason})" if spawn.reason else ""
    return (
        f"s{spawn.id} {spawn.agent} #{spawn.channel} {spawn.status}{why} {spawn.created_at[11:19]}"
    )
