"""What an answer shows of a run, a plan or a log, held against what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mutiny.contracts.batch import operations as op
from mutiny.contracts.batch.observation import BatchSeen
from mutiny.contracts.batch.tasks import rows_of
from mutiny.kit.telling import Untrue, untrue
from mutiny.model.operation import Operation

OF_RUNS = (op.Status, op.Run, op.Resume, op.SetTaskStatus)
"""Commands that show a run."""
DERIVED = ("status", "reason")
"""What status may tell of a run that nobody works on any more, although it is kept as running."""


@dataclass(frozen=True)
class Lie:
    """What an answer shows, and is not so."""

    rule: str
    text: str
    subject: str = ""


def lie_of(
    operation: Operation, said: Mapping[str, Any], before: BatchSeen, seen: BatchSeen
) -> Lie | None:
    """The first part of an answer that is not what is kept; nothing else was done between the looks."""
    if isinstance(operation, OF_RUNS):
        return _of_run(operation, said, before, seen)
    if isinstance(operation, op.Plan):
        return _of_plan(operation, said, seen)
    if isinstance(operation, op.LogsQuery | op.LogsTimeline):
        return _of_log(operation, said, before, seen)
    if isinstance(operation, op.Clean):
        return _of_clean(operation, said, before)
    return None


def _of_run(
    operation: Operation, said: Mapping[str, Any], before: BatchSeen, seen: BatchSeen
) -> Lie | None:
    """Whoever changes a run shows it as it is then; who does not may have looked just before."""
    name = _run_of(operation, before, seen)
    now = None if name is None else seen.kept.get(name)
    if name is None or now is None or "tasks" not in said:
        return None
    # To resume what is complete changes nothing; if it does, that is another promise's.
    done = before.run is not None and before.run.status == "complete"
    idle = operation.looks or (isinstance(operation, op.Resume) and done)
    was = before.kept.get(name, now) if idle else now
    told = dict(said)
    if isinstance(operation, op.Status) and "running" in (was.get("status"), now.get("status")):
        told = {key: value for key, value in said.items() if key not in DERIVED}
    # An agent that its run has left behind may be at work, but nobody saves what becomes of it.
    moving = bool(before.processes or seen.processes)
    found = untrue(told, was, now, moving=moving) or _other_names(told, was, now, moving=moving)
    if found is None:
        return None
    place = found.place.split(".")
    task = place[1] if place[0] == "tasks" and len(place) > 1 else ""
    return Lie("status_true", f"{operation} shows {found}.", task)


def _other_names(
    told: Mapping[str, Any], was: Mapping[str, Any], now: Mapping[str, Any], *, moving: bool
) -> Untrue | None:
    """The tasks that are shown are those that there are."""
    shown, *known = (one.get("tasks") for one in (told, was, now))
    tables = [sorted(one) for one in known if isinstance(one, Mapping)]
    if not isinstance(shown, Mapping) or not tables or moving or sorted(shown) in tables:
        return None
    return Untrue("tasks", sorted(shown), tables[-1])


def _run_of(operation: Operation, before: BatchSeen, seen: BatchSeen) -> str | None:
    """The run that a command is about: the one that it has begun, or the newest; None: nobody knows."""
    newest = None if seen.run is None else seen.run.name
    if not isinstance(operation, op.Run):
        return newest
    begun = sorted(seen.runs.keys() - before.runs.keys())
    return operation.name or (begun[0] if len(begun) == 1 else None if begun else newest)


def _of_plan(operation: op.Plan, said: Mapping[str, Any], seen: BatchSeen) -> Lie | None:
    """The plan that is shown is the one that is kept, and the one that was given."""
    shown, kept = said.get("tasks"), seen.planned
    if not isinstance(shown, list):
        return None
    found = untrue(said, kept, kept) if isinstance(kept, Mapping) else None
    if found is not None:
        return Lie("answers_truly", f"{operation} shows {found}.")
    given = {row["id"]: row for row in rows_of(operation.parsed())}
    told = {row.get("id"): row for row in shown if isinstance(row, Mapping)}
    if told.keys() != given.keys() or len(told) != len(shown):
        text = f"{operation} shows the tasks {sorted(map(str, told))}."
        return Lie("answers_truly", text)
    for name, row in given.items():
        wrong = untrue(_sorted(told[name]), _sorted(row), _sorted(row))
        if wrong is not None:
            text = f"{operation} shows {wrong.place} {wrong.told!r}; it was given {wrong.kept!r}."
            return Lie("answers_truly", text, name)
    return None


def _sorted(row: Mapping[str, Any]) -> dict[str, Any]:
    """A task whose lists are sets: nobody promises their order, nor to keep what is there twice."""
    return {
        key: sorted({str(one) for one in value}) if isinstance(value, list) else value
        for key, value in row.items()
    }


def _of_log(
    operation: op.LogsQuery | op.LogsTimeline,
    said: Mapping[str, Any],
    before: BatchSeen,
    seen: BatchSeen,
) -> Lie | None:
    """The lines that are shown are those that were written, in their order."""
    shown, run = said.get("events"), before.run
    if not isinstance(shown, list) or run is None or run.name not in before.lines:
        return None
    if before.lines != seen.lines or before.bad_events:
        return None  # somebody writes, or nobody knows what a bad line is taken for
    task = operation.task if isinstance(operation, op.LogsQuery) else ""
    due = [one.said for one in before.lines[run.name] if not task or task == one.task]
    if shown == due:
        return None
    if len(shown) != len(due):
        text = f"{operation} shows {len(shown)} lines of the log; {len(due)} are about that."
        return Lie("answers_truly", text, task)
    at = next(at for at, one in enumerate(due) if shown[at] != one)
    found = untrue(shown[at], due[at], due[at]) or f"{shown[at]!r}; the log says {due[at]!r}"
    return Lie("answers_truly", f"Line {at + 1} that {operation} shows has {found}.", task)


def _of_clean(operation: op.Clean, said: Mapping[str, Any], before: BatchSeen) -> Lie | None:
    """It names the run that it was told to take away."""
    told = said.get("cleaned")
    asked = operation.name or ("" if before.run is None else before.run.name)
    if not isinstance(told, str) or not asked or told == asked:
        return None
    return Lie("answers_truly", f"{operation} says that {told} is gone; {asked} was to go.")
