"""What experiments and goals may say about a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mutiny.contracts.session.observation import SessionSeen, SessionView
from mutiny.contracts.session.operations import StartSession, Status
from mutiny.kit.language import Language
from mutiny.kit.operations import Settle
from mutiny.kit.sentences import Check, Finding, Record, Sentence, Value, told, unknown


def _about(say: Callable[[SessionView, Mapping[str, Value]], Finding]) -> Check:
    """A sentence about the newest session."""

    def check(record: Record, values: Mapping[str, Value]) -> Finding:
        seen: SessionSeen = record.seen
        if seen.error is not None:
            return unknown(seen.error)
        if seen.session is None:
            return told(False, "there is no session")
        return say(seen.session, values)

    return check


def _is(one: SessionView, values: Mapping[str, Value]) -> Finding:
    return told(one.status == values["status"], f"it is {one.status}")


def _behind(one: SessionView, values: Mapping[str, Value]) -> Finding:
    return told(one.phase >= int(float(str(values["number"]))), f"it is in phase {one.phase}")


def _checkpoints(one: SessionView, values: Mapping[str, Value]) -> Finding:
    whole = [point for point in one.points if point.valid]
    return told(len(whole) >= int(float(str(values["number"]))), f"there are {len(whole)}")


def _valid(one: SessionView, values: Mapping[str, Value]) -> Finding:
    wrong = [point for point in one.points if not point.valid]
    return told(not wrong, f"{wrong[0].number}: {wrong[0].why}" if wrong else "all are valid")


def _done(one: SessionView, values: Mapping[str, Value]) -> Finding:
    return told(str(values["task"]) in one.done, f"{len(one.done)} tasks are done")


def _recovered(one: SessionView, values: Mapping[str, Value]) -> Finding:
    kinds = {str(row.get("kind")) for row in one.of("recovered")}
    return told(
        values["kind"] in kinds, f"it recovered from {', '.join(sorted(kinds)) or 'nothing'}"
    )


def _logged(one: SessionView, values: Mapping[str, Value]) -> Finding:
    kinds = {row["type"] for row in one.events}
    return told(values["type"] in kinds, f"its log has {len(kinds)} types of events")


def _now(text: str, check: Check, meaning: str) -> Sentence:
    return Sentence(text, check, meaning, momentary=True)


LANGUAGE = Language(
    "session",
    (
        _now("[The] session is {status:word}", _about(_is), "By its events and its processes."),
        _now("[The] session is in phase {number:number} or later", _about(_behind), "By its log."),
        _now("There are {number:number} checkpoints or more", _about(_checkpoints), "Valid ones."),
        _now("Every checkpoint is valid", _about(_valid), "As their files tell."),
        _now("Task {task:word} is done", _about(_done), "In the last valid checkpoint."),
        _now("[The] session has recovered from {kind:word}", _about(_recovered), "By its log."),
        _now("Event {type:word} was logged", _about(_logged), "In the session's event log."),
    ),
    setup=(StartSession(),),
    probe=Status(),
    settle=(Settle(),),
)
