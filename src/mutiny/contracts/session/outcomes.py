"""Every right outcome of each command: its answer, and what is the case afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.model import SessionModel
from mutiny.contracts.session.observation import ENDED, SessionSeen
from mutiny.contracts.session.profile import SessionProfile
from mutiny.kit.domains import BAD_INPUT, plain_name
from mutiny.kit.judging import Moment
from mutiny.kit.outcome import Outcome, no, ok
from mutiny.model.operation import Operation

SessionOutcome = Outcome[SessionModel]
FINISHED = ("finished", "not_running")
_LOOKS = (op.Status, op.Metrics, op.Report)


def outcomes(
    profile: SessionProfile,
    model: SessionModel,
    operation: Operation,
    moment: Moment[SessionSeen],
) -> Sequence[SessionOutcome]:
    """What is right, and what follows."""
    if isinstance(operation, op.StartSession):
        return _start(profile, model, operation, moment)
    assert isinstance(operation, op.OfSession)
    if not model.names:
        if moment.before is not None and _there(moment.before):
            return ()  # one that can be gone on from lies there: this is not so
        return (no(model, "there is no session", "no_home", "no_session", BAD_INPUT),)
    if operation.name and operation.name not in model.names:
        return (no(model, "there is no such session", "no_session", BAD_INPUT),)
    older = bool(operation.name) and operation.name != model.names[-1]
    now = frozenset(ENDED) if older else _now(model, moment)
    found: list[SessionOutcome] = []
    likely = None if moment.seen is None else moment.seen.status
    for status in sorted(now, key=lambda word: (word != likely, word)):
        one = model if older else model.with_status(status)
        found += _one(profile, one, status, operation, moment)
    return tuple(found)


def _there(seen: SessionSeen) -> bool:
    return seen.session is not None and seen.session.last_valid is not None


def _now(model: SessionModel, moment: Moment[SessionSeen]) -> frozenset[str]:
    """What the newest session may be. An end is in its last checkpoint: when that was damaged afterwards,
    what is left says that it was interrupted, and to finish it again is as right as to refuse.
    """
    now = model.now
    if not (model.damaged and now & set(ENDED)):
        return now
    session = None if moment.before is None else moment.before.session
    kept = session is not None and bool(session.points) and session.points[-1].valid
    return now if kept else now | {"interrupted"}


def _start(
    profile: SessionProfile,
    model: SessionModel,
    operation: op.StartSession,
    moment: Moment[SessionSeen],
) -> tuple[SessionOutcome, ...]:
    if operation.project not in profile.projects:
        return (no(model, "there is no such project", "bad_project", BAD_INPUT),)
    if operation.name and not plain_name(operation.name):
        return (no(model, "that is no name", BAD_INPUT),)
    if operation.agents < 1 and profile.takes_agents:
        return (no(model, "somebody has to do it", BAD_INPUT, "too_many_agents"),)
    if operation.agents > model.knobs.max_agents and profile.takes_agents:
        return (no(model, "so many agents are not allowed", "too_many_agents"),)
    found: list[SessionOutcome] = []
    now = _now(model, moment)
    taken = operation.name and operation.name in model.names
    if now - {*ENDED, "none"} and not profile.side_by_side:
        words = ("unfinished", "running", *(("exists",) if taken else ()))
        found.append(no(model, "another session is not finished", *words))
    if now & {*ENDED, "none"} or profile.side_by_side:
        if taken:
            found.append(no(model, "there is such a session", "exists"))
        else:
            begun = model.begun(operation.name, operation.project, operation.agents)
            found.append(ok(begun, "nothing else runs"))
    return tuple(found)


def _one(
    profile: SessionProfile,
    model: SessionModel,
    status: str,
    operation: Operation,
    moment: Moment[SessionSeen],
) -> list[SessionOutcome]:
    """The outcomes while the session has one status."""
    if isinstance(operation, _LOOKS):
        return [ok(model, "it only looks"), *_unreadable(model, moment)]
    if isinstance(operation, op.VerifyCheckpoint):
        return _verify(model, operation, moment)
    if isinstance(operation, op.Health):
        return _health(model, status)
    if isinstance(operation, op.Restore):
        return _restore(model, status, operation, moment)
    if isinstance(operation, op.Recover):
        return _recover(model, status, moment)
    if isinstance(operation, op.Stop):
        return _stop(profile, model, status)
    return _driven(model, status, operation)


def _unreadable(model: SessionModel, moment: Moment[SessionSeen]) -> list[SessionOutcome]:
    """Of what lies in checkpoints alone nothing can be told when none of them is valid."""
    one = None if moment.before is None else moment.before.session
    if one is None or one.last_valid is not None or one.alive is not False:
        return []
    return [no(model, "no checkpoint is left to be read", "all_invalid")]


def _driven(model: SessionModel, status: str, operation: Operation) -> list[SessionOutcome]:
    """What only something that drives the session can do."""
    if status in ENDED:
        return [no(model, f"it is {status}", *FINISHED)]
    if status == "interrupted":
        return [no(model, "nothing runs", "not_running")]
    if isinstance(operation, op.Checkpoint):
        if status == "running":
            return [ok(model, "it runs"), *_unlucky(model)]
        return [ok(model, "it stands still"), no(model, "it is paused", "paused"), *_unlucky(model)]
    if isinstance(operation, op.Pause):
        if status == "paused":
            return [no(model, "it is paused already", "paused")]
        return [ok(replace(model.with_status("paused"), going=False), "it runs")]
    assert isinstance(operation, op.Continue)
    if status == "running":
        return [no(model, "it is not paused", "not_paused")]
    if operation.decide == "none":
        return [no(model, "that was no option", "no_vote", "paused", BAD_INPUT)]
    found = [ok(replace(model.with_status("running"), going=True), "it is paused")]
    if operation.decide:
        found.append(no(model, "there is no such vote", "no_vote", BAD_INPUT))
    elif model.faults or model.knobs.deadlock == "escalate":
        found.append(no(model, "what paused it is still so", "paused", "no_vote", "no_space"))
    return found


def _unlucky(model: SessionModel) -> list[SessionOutcome]:
    """While things fail, a checkpoint may come to nothing, if that is said."""
    if not model.faults:
        return []
    return [no(model, "something else is in trouble", "paused", "no_space", "system", "busy")]


def _health(model: SessionModel, status: str) -> list[SessionOutcome]:
    if status == "running" and not model.faults and not model.damaged:
        return [ok(model, "all is well")]
    if status == "interrupted":
        return [no(model, "nothing drives it", "unhealthy", "not_running")]
    return [ok(model, "it may be well"), no(model, "it may not be", "unhealthy", *FINISHED)]


def _verify(
    model: SessionModel, operation: op.VerifyCheckpoint, moment: Moment[SessionSeen]
) -> list[SessionOutcome]:
    """Which are valid the files tell; without a look either may be."""
    seen = moment.before
    if seen is None or seen.session is None:
        found = [ok(model, "it may be valid")]
        if model.damaged or operation.checkpoint != op.NEWEST:
            found.append(no(model, "it may not be", "invalid", "all_invalid", "no_checkpoint"))
        return found
    points = {point.number: point for point in seen.session.points}
    if operation.checkpoint != op.NEWEST and operation.checkpoint not in points:
        found = [no(model, "there is no such checkpoint", "no_checkpoint", BAD_INPUT)]
        if seen.status == "running" and operation.checkpoint > max(points, default=0):
            found.append(ok(model, "it may just have been written"))
        return found
    number = max(points, default=0) if operation.checkpoint == op.NEWEST else operation.checkpoint
    point = points.get(number)
    if point is None:
        return [no(model, "there is none", "no_checkpoint", "all_invalid", "invalid")]
    moves = operation.checkpoint == op.NEWEST and seen.status == "running"
    whole = point.valid and not point.cut
    found = [ok(model, "it is valid")] if point.valid or moves else []
    if not whole:
        found.append(no(model, "it is damaged", "invalid", "all_invalid"))
    return found


def _restore(
    model: SessionModel, status: str, operation: op.Restore, moment: Moment[SessionSeen]
) -> list[SessionOutcome]:
    named = operation.checkpoint
    if status in ENDED and named == op.NEWEST:
        return [no(model, f"it is {status}", "finished")]
    if status in ("running", "paused"):
        return [no(model, "something drives it", "running", "paused")]
    seen = moment.before
    if seen is None or seen.session is None:
        found = [ok(model, "nothing drives it")]
        if model.damaged or named != op.NEWEST:
            found.append(no(model, "none may be left", "all_invalid", "invalid", "no_checkpoint"))
        return found
    points = {point.number: point for point in seen.session.points}
    if named != op.NEWEST:
        if named not in points:
            return [no(model, "there is no such checkpoint", "no_checkpoint", BAD_INPUT)]
        if not points[named].valid:
            return [no(model, "it is damaged", "invalid", "all_invalid")]
    elif seen.session.last_valid is None:
        return [no(model, "no valid checkpoint is left", "all_invalid", "no_checkpoint")]
    if status in ENDED:  # whoever names a checkpoint may want the time before the end back
        back = model.with_status("interrupted", status)
        return [ok(back, "a checkpoint is named"), no(model, f"it is {status}", "finished")]
    if named != op.NEWEST:  # it may be one that was taken at an end
        back = replace(model.with_status("interrupted", *ENDED), going=False)
        return [ok(back, "there is such a checkpoint")]
    return [ok(model, "there is a valid checkpoint")]


def _recover(model: SessionModel, status: str, moment: Moment[SessionSeen]) -> list[SessionOutcome]:
    if status in ENDED:
        return [no(model, f"it is {status}", *FINISHED)]
    if status == "interrupted":
        seen = moment.before
        lost = seen is not None and seen.session is not None and seen.session.last_valid is None
        if lost:
            return [no(model, "no valid checkpoint is left", "all_invalid", "no_checkpoint")]
        found = [ok(model.brought_back(seen), "it is brought back")]
        if model.damaged and seen is None:
            found.append(no(model, "none may be left", "all_invalid", "no_checkpoint"))
        return found
    if status == "paused":
        found = [ok(model.with_status("running", "paused"), "it goes on, or was asked to pause")]
        return [*found, *_unlucky(model)]
    return [ok(model, "it runs"), no(model, "somebody else brings it back", "running")]


def _stop(profile: SessionProfile, model: SessionModel, status: str) -> list[SessionOutcome]:
    if status in ENDED:
        return [no(model, f"it is {status}", *FINISHED)]
    after = "interrupted" if profile.stop_is_no_end else "stopped"
    if status == "interrupted":
        stopped = ok(model.with_status(after), "it is given up")
        return [stopped, no(model, "nothing runs", "not_running")]
    stopped = ok(replace(model.with_status(after), ended_by_word=True), "it runs")
    found = [stopped, *_unlucky(model)]
    if (
        profile.stop_is_no_end and status == "running"
    ):  # who asked cannot tell whether it came to its end before it heard that
        found.append(ok(model.with_status("complete"), "it came to its end just then"))
    return found
