"""What a health report must name, and what it must not: held against two looks around the command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mutiny.contracts.spawns.model import SpawnsModel
from mutiny.contracts.spawns.observation import LIVE, Run, SpawnsSeen

PROBLEMS = ("dead", "timeout", "no_session", "stalled")
SLACK_S = 1.0
"""So close to a limit nobody is blamed."""


def untrue(
    model: SpawnsModel, before: SpawnsSeen, seen: SpawnsSeen, said: object
) -> Iterator[tuple[Run | None, str]]:
    """Whom a report wrongly names or leaves out, and why."""
    named = _named(said)
    for (spawn, problem), row in named.items():
        run = seen.runs.get(spawn) or before.runs.get(spawn)
        if run is None or (run.over and _over(before, run)):
            yield run, f"health calls s{spawn} {problem}, which is not running"
        elif problem not in PROBLEMS:
            yield run, f"health calls {run} {problem!r}, which nobody knows: {row}"
        elif not any(
            _may(model, look, look.runs[spawn], problem)
            for look in (before, seen)
            if spawn in look.runs
        ):
            yield run, f"health calls {run} {problem}, which it is not"
    for run in seen.runs.values():
        was = before.runs.get(run.id)
        if was is None or not any(spawn == run.id for spawn, _ in named):
            due = _due(model, before, was, seen, run) if was is not None else ""
            if due:
                yield run, f"health does not name {run}, which is {due}"


def _named(said: object) -> dict[tuple[int, str], Mapping[str, Any]]:
    rows = said if isinstance(said, list) else []
    return {
        (int(str(row.get("id", "s0")).lstrip("s") or 0), str(row.get("problem"))): row
        for row in rows
        if isinstance(row, Mapping)
    }


def _over(seen: SpawnsSeen, run: Run) -> bool:
    known = seen.runs.get(run.id)
    return known is not None and known.over


def _may(model: SpawnsModel, seen: SpawnsSeen, run: Run, problem: str) -> bool:
    """Could a run be called this at that moment?"""
    if problem == "dead":
        return run.status in LIVE and not (run.supervised and run.provided)
    now = seen.latest(run)
    limit = model.setting(
        {"no_session": "no_session_s", "stalled": "stall_s"}.get(problem, problem + "_s")
    )
    old = run.started == 0 or seen.at - run.started > limit - SLACK_S
    if problem == "no_session":
        return old and (now is None or not now.session or seen.at - now.session_at < SLACK_S)
    if problem == "stalled" and now is not None and now.session:
        return old and seen.at - now.session_at > limit - SLACK_S
    return old


def _due(model: SpawnsModel, before: SpawnsSeen, was: Run, seen: SpawnsSeen, run: Run) -> str:
    """What a run is surely to be called, in both looks; empty: perhaps nothing."""
    if was.status != "running" or run.status != "running" or was.attempt != run.attempt:
        return ""
    if not was.supervised and not run.supervised:
        return "dead"
    now, age = before.latest(was), before.at - was.started
    if now is None or was.started == 0 or not run.provided or now.task is None:
        return ""
    if (
        not now.session
        and seen.latest(run) == now
        and age > model.setting("no_session_s") + SLACK_S
    ):
        return "without a session"
    quiet = before.at - now.session_at
    if now.session and now.endless and quiet > model.setting("stall_s") + SLACK_S:
        return "stalled"
    return ""
