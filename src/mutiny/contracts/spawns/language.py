"""What experiments may say about agents that summon agents."""

from __future__ import annotations

from collections.abc import Mapping

from mutiny.contracts.spawns.observation import Run, SpawnsSeen
from mutiny.contracts.spawns.operations import (
    CreateChannel,
    Init,
    ListSpawns,
    Register,
)
from mutiny.kit.language import Language
from mutiny.kit.operations import Settle
from mutiny.kit.sentences import Check, Finding, Record, Sentence, Value, told, unknown


def _seen(record: Record) -> SpawnsSeen:
    seen: SpawnsSeen = record.seen
    return seen


def _asked(check: Check) -> Check:
    """Nothing is said of a database that could not be read."""

    def ask(record: Record, values: Mapping[str, Value]) -> Finding:
        error = _seen(record).error
        return check(record, values) if error is None else unknown(error)

    return ask


def _of(record: Record, agent: Value) -> list[Run]:
    return [run for run in _seen(record).runs.values() if run.agent == str(agent).lower()]


def _run_is(record: Record, values: Mapping[str, Value]) -> Finding:
    runs = _of(record, values["agent"])
    status = runs[-1].status if runs else "not there"
    return told(status == values["status"], f"the last run of {values['agent']} is {status}")


def _ran(record: Record, values: Mapping[str, Value]) -> Finding:
    begun = [run for run in _of(record, values["agent"]) if run.attempt]
    return told(len(begun) == values["number"], f"{values['agent']} has run {len(begun)} times")


def _runs(record: Record, values: Mapping[str, Value]) -> Finding:
    count = sum(1 for run in _seen(record).runs.values() if run.status != "refused")
    return told(count == values["number"], f"{count} runs were started")


def _at_most(record: Record, values: Mapping[str, Value]) -> Finding:
    count = sum(1 for run in _seen(record).runs.values() if run.status != "refused")
    return told(count <= values["number"], f"{count} runs were started")


def _deep(record: Record, values: Mapping[str, Value]) -> Finding:
    seen = _seen(record)
    begun = [run for run in seen.runs.values() if run.attempt]
    deepest = max((seen.depth_of(run) for run in begun), default=0)
    return told(deepest == values["number"], f"the deepest run is at {deepest}")


def _human(record: Record, values: Mapping[str, Value]) -> Finding:
    calls = [one.sender for one in _seen(record).messages.values() if one.ends]
    return told(bool(calls), f"{calls[0]} has called" if calls else "nobody has called")


def _nobody_runs(record: Record, values: Mapping[str, Value]) -> Finding:
    live = [str(run) for run in _seen(record).runs.values() if not run.over]
    return told(not live, f"{live[0]} is not over" if live else "all runs are over")


def _none_failed(record: Record, values: Mapping[str, Value]) -> Finding:
    failed = [str(run) for run in _seen(record).runs.values() if run.status == "failed"]
    return told(not failed, f"{failed[0]} has failed" if failed else "none has failed")


def _posted(record: Record, values: Mapping[str, Value]) -> Finding:
    agent = str(values["agent"]).lower()
    posts = sum(1 for one in _seen(record).messages.values() if one.sender == agent)
    return told(posts == values["number"], f"{agent} has posted {posts} messages")


def _now(text: str, check: Check, meaning: str) -> Sentence:
    return Sentence(text, _asked(check), meaning, momentary=True)


LANGUAGE = Language(
    "spawns",
    (
        _now("Agent {agent:word} has run {number:number} times", _ran, "Runs that began."),
        _now("Agent {agent:word} has posted {number:number} messages", _posted, "In any channel."),
        _now("Agent {agent:word} is {status:word}", _run_is, "Its last run."),
        _now("{number:number} runs were started", _runs, "Refused ones do not count."),
        _now("At most {number:number} runs were started", _at_most, "Refused ones do not count."),
        _now("[The] deepest run is at {number:number}", _deep, "A human's own is at 0."),
        _now("[A] human was called", _human, "By an agent, with @human."),
        _now("Nobody runs", _nobody_runs, "No run waits or is under way."),
        _now("No run failed", _none_failed, "None at all."),
    ),
    setup=(
        Init(),
        CreateChannel("dev"),
        Register("oplot"),
        Register("sonnelot"),
        Register("hailot"),
        Register("prime"),
        Register("auger", "gemini"),
        Register("sentinel", "codex"),
    ),
    probe=ListSpawns(),
    settle=(Settle(),),
    reaches={
        "KillSender": "single task",
        "KillSupervisor": "one worker",
        "KillProvider": "one worker",
        "KillSpawnGroup": "one worker",
        "ReusePid": "one worker",
        "ProviderMissing": "all workers",
        "HoldDatabase": "storage",
        "LoseDatabase": "storage",
    },
)
