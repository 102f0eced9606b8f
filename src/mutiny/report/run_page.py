"""An ordinary run as a page: what broke, how to repeat it, and every step with what it changed.

Made from the run directory alone, so that it can be made of every run that ever was: finished, broken
off, or of a contract that is not installed here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mutiny.codec import decode_operation
from mutiny.contracts.catalogue import find
from mutiny.engine.record import BROKEN_OFF, RUNNING, Record, all_lines, document, table
from mutiny.engine.replay import MINIMISED
from mutiny.errors import MutinyError
from mutiny.model.duration import show_duration
from mutiny.model.operation import Kind, Operation
from mutiny.model.verdict import Verdict
from mutiny.report import page
from mutiny.report.changes import NOTHING, changes
from mutiny.report.experiment import FaultRecord, SampleRecord, StepRecord
from mutiny.report.measured import measure
from mutiny.report.measured import shown as figures
from mutiny.report.timeline import timeline

WORDS = {
    "success": "passed",
    "bug": "bug found",
    "recovery_bug": "bug found",
    "timeout": "timeout",
    "inconclusive": "inconclusive",
}
STEP_WORDS = {
    "success": "ok",
    "expected": "rightly refused",
    "bug": "bug",
    "recovery_bug": "recovery bug",
}
LEGEND = {
    "fault": "var(--bad)",
    "command": "var(--good)",
    "check": "var(--check)",
    "wait": "var(--wait)",
    "not told": "var(--unsure)",
}
MOST_STEPS = 400
"""Of a longer run the end is shown: that is where it stopped."""
MOST_CHANGES = 30
MOST_TEXT = 4_000
LONGEST_VALUE = 160


@dataclass(frozen=True)
class _Times:
    steps: Sequence[StepRecord]
    faults: Sequence[FaultRecord]
    samples: Sequence[SampleRecord] = ()


def render(
    record: Record, again: str = "", links: Mapping[str, str] | None = None, **frame: Any
) -> str:
    """The whole page; `again`: the command that repeats the run."""
    contract = str(record.about("contract") or "")
    lines = all_lines(record.folder / "operations.jsonl")
    steps = list(told_steps(lines, contract))
    replay = document(record.folder / "minimal_replay.json")
    shown = steps[-MOST_STEPS:]
    return page.render(
        "run.html",
        kind=record.kind,
        title=title_of(record),
        verdict=record.verdict or ("success" if record.state == RUNNING else "inconclusive"),
        word=WORDS.get(record.verdict, record.state),
        reason=_reason(record),
        facts=_facts(record, steps),
        links=links,
        broken=_broken(record, contract),
        again=again,
        replay=_replay(replay, contract),
        picture=timeline(_times(shown)) if shown else None,
        colours=LEGEND,
        steps=shown,
        left_out=len(steps) - len(shown),
        **figures(measure(contract, lines)),
        **{"script": "copy.js", **frame},
    )


def title_of(record: Record) -> str:
    """What the run is called."""
    return str((record.summary or {}).get("title") or record.about("title") or record.folder.name)


# --- the head -------------------------------------------------------------------------------------------


def _reason(record: Record) -> str:
    """Why it did not pass, in one line."""
    if record.state == BROKEN_OFF:
        return "Its process is gone, and it wrote no summary: it was broken off."
    untested = (record.summary or {}).get("untested")
    told = record.error.get("inconclusive") or untested
    if record.first_violation or not isinstance(told, list) or not told:
        return ""
    return str(told[0])


def _facts(record: Record, steps: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    plan, summary = record.plan or {}, record.summary or {}
    started = record.about("started_unix")
    planned = len(plan.get("operations") or ())
    faults = sum(1 for step in steps if step["fired"])
    took = summary.get("duration_s")
    facts: dict[str, object | None] = {
        "Target": record.about("target"),
        "Contract": record.about("contract"),
        "Planted": record.about("plant"),
        "Operations": f"{len(steps)} of {planned}" if planned > len(steps) else len(steps),
        "Faults": faults or None,
        "Took": show_duration(float(took)) if isinstance(took, int | float) else None,
        "Seed": record.about("seed"),
        "Started": utc(started) if isinstance(started, int | float) else None,
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}


def utc(unix: float) -> str:
    """A moment in words; one that no calendar has is told as its number."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(unix))
    except (OverflowError, ValueError, OSError):
        return f"{unix:g}"


def _broken(record: Record, contract: str) -> dict[str, Any] | None:
    """The promise that was broken, with everything that was seen of it."""
    violation = record.first_violation
    if not violation:
        return None
    descriptor = find(contract)
    rule = str(violation.get("rule"))
    known = {} if descriptor is None else descriptor.all_rules()
    others = record.error.get("violations")
    assert isinstance(others, list)
    return {
        "rule": rule,
        "promise": known[rule].promise if rule in known else "",
        "category": known[rule].category if rule in known else "",
        "subject": str(violation.get("subject") or ""),
        "message": str(violation.get("message") or ""),
        "expected": str(record.error.get("expected") or ""),
        "step": record.error.get("sequence_id"),
        "operation": _spoken(record.error.get("operation"), registry_of(contract))[1],
        "evidence": {
            str(name): _laid_out(value) for name, value in table(violation.get("evidence")).items()
        },
        "others": [
            f"{table(one).get('rule')}: {table(one).get('message')}" for one in others[1:10]
        ],
    }


def _replay(replay: Mapping[str, Any] | None, contract: str) -> dict[str, Any] | None:
    if replay is None or not isinstance(replay.get("operations"), list):
        return None
    registry = registry_of(contract)
    reproduced = table(replay.get("reproduced"))
    standing = []
    if reproduced:
        standing.append(
            f"failed again in {reproduced.get('failed')} of {reproduced.get('tries')} tries"
        )
    if replay.get("minimised") in MINIMISED:
        standing.append(MINIMISED[replay["minimised"]])
    return {
        "operations": [_spoken(one, registry)[1] for one in replay["operations"]],
        "standing": "; ".join(standing),
    }


# --- the steps ------------------------------------------------------------------------------------------


def told_steps(lines: Sequence[Mapping[str, Any]], contract: str) -> Iterator[dict[str, Any]]:
    """Journal lines as a page shows them; seconds count from the first."""
    registry = registry_of(contract)
    begin: float | None = None
    for line in lines:
        at = _number(line.get("timestamp_unix"))
        begin = at if begin is None else begin
        yield told_step(line, registry, at - begin)


def told_step(
    line: Mapping[str, Any], registry: Mapping[str, type[Operation]], at_s: float
) -> dict[str, Any]:
    """One line of a journal, as a page shows it."""
    result = table(line.get("result"))
    kind, text, whole = *_spoken(line.get("operation"), registry)[:2], _whole(line.get("operation"))
    verdict = str(line.get("classification") or "inconclusive")
    told = [table(one).get("message") for one in line.get("violations") or ()]
    doubts = [str(one) for one in line.get("inconclusive") or ()]
    before = line.get("pre_state")
    found = list(changes(before, line.get("post_state") or {})) if before else []
    argv = result.get("argv")
    return {
        "number": line.get("sequence_id"),
        "kind": kind,
        "text": text,
        "whole": whole if whole != text else "",
        "at_s": at_s,
        "took_s": _number(result.get("duration_ms")) / 1000,
        "verdict": verdict if verdict in {one.value for one in Verdict} else "inconclusive",
        "word": STEP_WORDS.get(verdict, verdict),
        "fired": result.get("fired") is True,
        "missed": result.get("fired") is False,
        "technique": str(line.get("technique") or ""),
        "notes": [str(one) for one in told if one] or doubts,
        "expected": str(line.get("expected") or ""),
        "command": " ".join(map(str, argv)) if isinstance(argv, list) else "",
        "exit_code": result.get("exit_code"),
        "stdout": _cut(result.get("stdout")),
        "stderr": _cut(result.get("stderr")),
        "changes": [
            {"path": ".".join(one.path), "before": _value(one.before), "after": _value(one.after)}
            for one in found[:MOST_CHANGES]
        ],
        "more_changes": max(len(found) - MOST_CHANGES, 0),
    }


def registry_of(contract: str) -> Mapping[str, type[Operation]]:
    """The operations of a contract by name; none of one that is not installed here."""
    descriptor = find(contract)
    return {} if descriptor is None else descriptor.all_operations()


def _spoken(told: object, registry: Mapping[str, type[Operation]]) -> tuple[str, str]:
    """The kind of an operation, and its one-line form; of one that is not known here as it is written."""
    try:
        operation = decode_operation(told, dict(registry), where="journal")
    except (MutinyError, RecursionError):
        return "command", _whole(told)
    kind = (
        "wait" if operation.kind is Kind.WAIT or operation.type == "Sleep" else operation.kind.value
    )
    return kind, operation.short()


def _whole(told: object) -> str:
    written = table(told)
    arguments = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in table(written.get("args")).items()
    )
    name = str(written.get("type") or "unknown operation")
    return f"{name}({arguments})" if arguments else name


def _times(steps: Sequence[Mapping[str, Any]]) -> _Times:
    def record(step: Mapping[str, Any]) -> StepRecord:
        end = step["at_s"] + step["took_s"]
        note = step["notes"][0] if step["notes"] else ""
        return StepRecord("", step["text"], step["kind"], step["at_s"], end, step["verdict"], note)

    shown = [step for step in steps if step["text"] != "Reset"] or steps
    shifted = [{**step, "at_s": step["at_s"] - shown[0]["at_s"]} for step in shown]
    faults = [
        FaultRecord(
            step["at_s"],
            step["text"],
            step["technique"],
            step["fired"],
            until_s=step["at_s"] + step["took_s"],
        )
        for step in shifted
        if step["fired"] or step["missed"]
    ]
    return _Times([record(step) for step in shifted], faults)


def _value(value: object) -> str | None:
    """A value in a line; None: it is not there."""
    if value is NOTHING:
        return None
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _laid_out(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return _cut(text)


def _cut(text: object) -> str:
    said = str(text or "").strip()
    return said if len(said) <= MOST_TEXT else said[: MOST_TEXT - 1] + "…"


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
