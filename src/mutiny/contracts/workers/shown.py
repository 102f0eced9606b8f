"""What a target shows of workers is what it keeps of them, and what was asked of it, where promised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.kit.questions import Heard
from mutiny.kit.telling import untrue

LEAVES = {
    op.Add: ("offline", "error"),
    op.Start: ("working",),
    op.Review: ("needs_review", "rebasing"),
    op.ReviewNext: ("needs_review", "rebasing"),
    op.Accept: ("idle", "rebasing"),
    op.AcceptReviewed: ("idle", "rebasing"),
    op.Reject: ("rejected",),
    op.Rebase: ("working", "needs_review", "rebasing", "no_changes", "error"),
    op.ResetWorker: ("offline",),
}
"""How a command leaves its worker, before anybody goes on with it."""
OBEYS = ("obey",)
"""An agent that does as it is told does not end by itself."""
REVIEWS = (op.Review, op.ReviewNext)
ACCEPTS = (op.Accept, op.AcceptReviewed)


def unlike(
    model: WorkersModel, heard: Heard, before: Observation, seen: Observation
) -> Iterator[tuple[str, str]]:
    """Whom it is about, and what is shown and is not so; nothing else was done between the looks."""
    said, looks = heard.answer.said, (before, seen)
    damaged = any(one.state_error or one.state_as_left or one.document is None for one in looks)
    if not said or not heard.alone or damaged or model.doubted or model.lasting:
        return
    if isinstance(heard.operation, op.Status):
        yield from _status(said, model.profile.shows_kept, model.profile.shown_as, before, seen)
        return
    if isinstance(heard.operation, op.Down):
        yield from _stopped(said, model, before)
    named = op.meant(heard.operation, model.last_reviewed)
    if isinstance(heard.operation, op.ReviewNext):
        named = heard.answer.task
    if named is not None:
        for wrong in (
            *_left(heard.operation, said, named, seen),
            *_asked(heard.operation, said, named, before, seen),
            *_changed(heard, said),
        ):
            yield named, wrong


# --- status --------------------------------------------------------------------------------------------


def _status(
    said: Mapping[str, Any],
    place: str,
    shown_as: Mapping[str, str],
    before: Observation,
    seen: Observation,
) -> Iterator[tuple[str, str]]:
    """Every worker that was the same before and after is shown so; so is everything else that is kept."""
    rows = said.get(place)
    told = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    names = sorted(str(row.get("name")) for row in told)
    if before.kept.keys() == seen.kept.keys() and names != sorted(seen.kept):
        yield "", f"it shows the workers {names}, and keeps {sorted(seen.kept)}"
    for row in told:
        name = str(row.get("name"))
        kept = seen.kept.get(name)
        if kept is None or before.kept.get(name) != kept:
            continue  # somebody is at work on it, and may have been so for a moment
        known = {**kept, **{shown: kept_at(kept, at) for shown, at in shown_as.items()}}
        if (wrong := untrue(row, known, known)) is not None:
            yield name, f"of {name} it shows {wrong}"
    others = {key: value for key, value in said.items() if key != place}
    found = untrue(others, before.document, seen.document, quiet=OF_THE_MOMENT)
    if found is not None:
        yield "", f"it shows {found}"
    yield from _daemon(said, *((one.document or {}).get("daemon") for one in (before, seen)))


def _daemon(said: Mapping[str, Any], was: object, now: object) -> Iterator[tuple[str, str]]:
    """The daemon that is told of is the one that is kept; who says that none runs tells of none."""
    told, runs = said.get("daemon"), said.get("daemon_running")
    if "daemon" in said and isinstance(runs, bool) and (told is not None) != runs:
        yield "daemon", f"it says daemon_running {runs}, and the daemon {told!r}"
    if isinstance(told, Mapping) and was == now and isinstance(now, Mapping):
        found = untrue(told, now, now)
        if found is not None:
            yield "daemon", f"of the daemon it shows {found}"


OF_THE_MOMENT = ("daemon", "daemon_running")
"""What is so, whatever the state keeps: other promises are about that."""


def kept_at(row: Mapping[str, Any], place: str) -> object:
    """A part of what is kept: `inflight.stage`; `#inbox`: how many there are."""
    value: Any = row
    for name in place.removeprefix("#").split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return len(value or ()) if place.startswith("#") else value


# --- commands ------------------------------------------------------------------------------------------


def _left(
    operation: object, said: Mapping[str, Any], named: str, seen: Observation
) -> Iterator[str]:
    """How the command has left its worker; somebody may have gone on with it since."""
    due = {*LEAVES.get(type(operation), ()), seen.status_of(named)}
    for word in ("status", "new_status"):
        told = said.get(word)
        if isinstance(told, str) and type(operation) in LEAVES and told not in due:
            yield f"it says that {named} is {told} now"
    conflict, status = said.get("needs_conflict_resolution"), said.get("status")
    was = said.get("previous_status")
    if isinstance(was, str) and was not in op.STATUSES:
        yield f"it says that {named} was {was}, which is no status"
    asks = isinstance(operation, (*REVIEWS, *ACCEPTS, op.Rebase)) and isinstance(status, str)
    if asks and (conflict is True) != (status == "rebasing"):
        yield f"it says {status}, and needs_conflict_resolution {conflict}"
    later = said.get("deferred")
    put_off = isinstance(operation, op.Rebase) and isinstance(later, bool)
    if put_off and later != (status == "working"):
        yield f"it says {status}, and deferred {later}"


def _asked(
    operation: object,
    said: Mapping[str, Any],
    named: str,
    before: Observation,
    seen: Observation,
) -> Iterator[str]:
    """What was asked for, and the task that was begun or has been merged."""
    model = said.get("model")
    if isinstance(operation, op.Add) and isinstance(model, str) and model != operation.model:
        yield f"it says the model {model}; {operation.model} was asked for"
    told = said.get("task_id")
    if told is None or before.tasks is None or seen.tasks is None:
        return
    if isinstance(operation, op.Start):
        new = {one.name for one in seen.tasks} - {one.name for one in before.tasks}
        if new and told not in new:  # that nothing is accounted for is told by its own rule
            yield f"it names task {told}; new are {sorted(new)}"
    row = before.kept.get(named, {})
    waited = row.get("task_id") if row.get("status") == "needs_review" else None
    if isinstance(operation, ACCEPTS) and waited not in (None, told):
        yield f"it names task {told}; {waited} waited for review"


def _changed(heard: Heard, said: Mapping[str, Any]) -> Iterator[str]:
    """The files that are to be reviewed are those that git itself names."""
    shown, listed = said.get("changed_files"), heard.result.details.get("changed")
    if not isinstance(shown, list) or not isinstance(listed, list | tuple):
        return
    if sorted(map(str, shown)) not in [sorted(one) for one in listed]:
        yield f"it shows the changed files {sorted(map(str, shown))}; git names {sorted(listed[0])}"


def _stopped(
    said: Mapping[str, Any], model: WorkersModel, before: Observation
) -> Iterator[tuple[str, str]]:
    """Whoever is named as stopped is there; whoever was at rest, with an agent, is named."""
    told = said.get("stopped")
    if not isinstance(told, list):
        return
    for name in map(str, told):
        if name not in before.kept:
            yield name, f"it has stopped {name}, which there was not"
    if model.faults or not before.daemon_alive:
        return
    for name, view in before.workers.items():
        belief = model.workers.get(name)
        calm = belief is not None and belief.disturbed is None and belief.behaviours == OBEYS
        there = any(one.worker == name and one.alive for one in before.agents or ())
        if calm and there and view.status == "idle" and name not in told:
            yield name, f"it does not name {name}, whose agent it has ended"
