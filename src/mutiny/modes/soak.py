"""Soak mode: hours of a session under faults, recorded, and gone on with after Mutiny itself was killed.

The journal is the checkpoint: the plan is a pure function of what was asked and the seed, so the steps that
are in the journal say where to go on. What a killed Mutiny leaves behind is a session that died with its
box, and that is one of the things that a session must survive.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from mutiny import documents, stopping
from mutiny.codec import decode
from mutiny.engine.journal import Step, numbered_lines
from mutiny.engine.loop import Engine, Event, Outcome
from mutiny.engine.rundir import RunDirectory, storing
from mutiny.engine.soaking import Soaked
from mutiny.errors import FormatError, UsageError, nearest
from mutiny.kit.beliefs import Beliefs
from mutiny.kit.operations import Reset
from mutiny.kit.soaking import SoakAsk, Soaks, judged
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Assignment, Bench
from mutiny.modes.series import progress_of
from mutiny.modes.subject import ability
from mutiny.system.processes import is_alive, start_ticks

METRICS, EVENTS, REPORT = "metrics.jsonl", "events.jsonl", "soak.json"
EARLIER = 12
"""So many earlier soaks are looked at for trends."""
HOUR_S = 3600.0


@dataclass(frozen=True)
class Process:
    """The Mutiny that was at work on it."""

    pid: int = 0
    start: int = 0


@dataclass(frozen=True)
class Begun:
    """What the plan in a soak's directory says, as far as it takes to go on."""

    ask: SoakAsk
    target_file: str
    program: str | None = None
    plant: str = ""
    process: Process = Process()


def begin(
    bench: Bench, ask: SoakAsk, watch: Callable[[float, str], None] = lambda _done, _note: None
) -> Soaked:
    """A new soak, to its end."""
    soaks: Soaks = ability(bench.target, "soak")
    _require(ask, soaks)
    directory = RunDirectory.create(bench.root)
    assignment = _assignment(ask, soaks)
    plan = {**bench.plan(assignment), "ask": asdict(ask), "process": _process()}
    directory.write_json(directory.plan_path, plan)
    with _Watched(directory, soaks, _told(bench, directory, assignment, ask, watch)) as listener:
        engine = _engine(bench, directory, ask, listener, 0)
        outcome = engine.run(assignment.operations)
    return _finished(bench, ask, assignment, outcome, soaks)


def resume(
    bench: Bench,
    directory: RunDirectory,
    watch: Callable[[float, str], None] = lambda _done, _note: None,
    tell: Callable[[str], None] = lambda _text: None,
) -> Soaked:
    """Go on with a soak whose Mutiny was killed."""
    ask, soaks = begun(directory).ask, ability(bench.target, "soak")
    _require(ask, soaks)
    assignment = _assignment(ask, soaks)
    done = _journalled(directory)
    place = reached(assignment.operations, done)
    _cut_half_a_line(directory.path / EVENTS)
    read_metrics(directory.path)
    directory.add_to_plan({"process": _process()})
    if place < 1 + len(soaks.begin(ask)):
        _start_over(directory)
        tell("it was killed before its session had begun: it begins anew")
        place, done = 0, []
    missed = _missed(directory, assignment.operations, place) if place else {}
    for text in missed.values():
        tell(str(text))
    with _Watched(directory, soaks, _told(bench, directory, assignment, ask, watch)) as listener:
        engine = _engine(bench, directory, ask, listener, len(done))
        if not place:
            return _finished(bench, ask, assignment, engine.run(assignment.operations), soaks)
        note(directory, {"what": "resumed", "step": place + 1, **missed})
        left = (*soaks.again(ask), *assignment.operations[place:])
        before = (_beliefs(bench, assignment.operations[:place]), None)
        died = OperationResult(0, "Mutiny was killed, and its box with it", fired=True)
        outcome = engine.resume(before, soaks.died, died, left)
    return _finished(bench, ask, assignment, outcome, soaks)


def begun(directory: RunDirectory) -> Begun:
    """How the soak of a directory was begun; UsageError when it is none that can be gone on with."""
    try:
        plan = documents.read_json(directory.plan_path, "plan")
    except UsageError as error:
        raise UsageError(f"{directory.path} is no soak that could be resumed: {error}") from None
    if not isinstance(plan, dict) or not isinstance(plan.get("ask"), dict):
        raise UsageError(f"{directory.path} is no soak that could be resumed")
    known = {one.name: plan[one.name] for one in fields(Begun) if one.name in plan}
    made = decode(Begun, known, where=str(directory.plan_path))
    if directory.summary_path.exists():
        raise UsageError(f"{directory.path}: that soak has come to its end")
    if is_alive(made.process.pid, made.process.start):
        raise UsageError(f"{directory.path}: that soak still runs (process {made.process.pid})")
    return made


def reached(plan: Sequence[Operation], done: Sequence[Mapping[str, Any]]) -> int:
    """How many steps of a plan are done; what else is in the journal brought it back after a kill."""
    place = 0
    for line in done:
        if place < len(plan) and line["operation"] == json.loads(json.dumps(plan[place].as_json())):
            carried_out = not (line.get("result") or {}).get("harness_error")
            place += carried_out
    return place


# --- parts ------------------------------------------------------------------------------------------------


def _require(ask: SoakAsk, soaks: Soaks) -> None:
    if ask.project not in soaks.projects:
        hint = nearest(ask.project, list(soaks.projects))
        raise UsageError(
            f"unknown project {ask.project!r}{hint}; known: {', '.join(soaks.projects)}"
        )


def _assignment(ask: SoakAsk, soaks: Soaks) -> Assignment:
    operations = (Reset(), *soaks.begin(ask), *soaks.middle(ask), *soaks.end(ask))
    title = f"soak: {ask.project}, {ask.hours:g} h at rate {ask.rate:g}, {ask.schedule}"
    return Assignment(operations, title, ask.seed, "soak")


def _told(
    bench: Bench,
    directory: RunDirectory,
    assignment: Assignment,
    ask: SoakAsk,
    watch: Callable[[float, str], None],
) -> Callable[[float, str], None]:
    """How far it is, also for whoever looks on from elsewhere."""
    progress = progress_of(bench, directory.path, "soak", assignment.title, "hours", ask.seed)

    def told(at_s: float, doing: str) -> None:
        progress.tell(round(at_s / HOUR_S, 2), ask.hours, doing)
        watch(at_s, doing)

    return told


def _engine(
    bench: Bench,
    directory: RunDirectory,
    ask: SoakAsk,
    listener: Callable[[Event], None],
    done: int,
) -> Engine[Any, Any]:
    return Engine(
        bench.target.contract(),
        bench.target.make_live,
        directory,
        seed=ask.seed,
        listeners=(listener,),
        done=done,
        bears=_bears,
    )


def _bears(step: Step) -> bool:
    """A fault that nobody met ends nothing: the session had no use for what was broken just then."""
    unmet = step.operation.kind is Kind.FAULT and step.result.fired is False
    return unmet and step.verdict is Verdict.INCONCLUSIVE and not step.violations


def _process() -> dict[str, int]:
    return {"pid": os.getpid(), "start": start_ticks(os.getpid()) or 0}


def _journalled(directory: RunDirectory) -> list[Mapping[str, Any]]:
    """The steps that are done; half a line that a kill has left is cut off."""
    path = directory.journal_path
    if not path.exists():
        return []
    _cut_half_a_line(path)
    done = list(numbered_lines(path))
    for number, line in done:
        parts = (line.get("operation"), line.get("result") or {})
        if not all(isinstance(part, dict) for part in parts):
            raise FormatError(str(path), [f"line {number}: it is no step with its result"])
    return [line for _, line in done]


def _cut_half_a_line(path: Path) -> None:
    data = path.read_bytes() if path.exists() else b""
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(path, whole)


def _start_over(directory: RunDirectory) -> None:
    directory.discard_box()
    for name in (METRICS, EVENTS, directory.journal_path.name):
        (directory.path / name).unlink(missing_ok=True)


def _missed(directory: RunDirectory, plan: Sequence[Operation], place: int) -> dict[str, str]:
    """What happened to nobody's eyes."""
    lines = read_metrics(directory.path)
    written = [path.stat().st_mtime for path in directory.path.glob("*.jsonl")]
    gap_s = time.time() - max(written, default=time.time())
    last = lines[-1]["session_seconds"] if lines else 0
    step = plan[place].short() if place < len(plan) else "its end"
    return {
        "missed": f"nobody looked for {gap_s:.0f} s; session time stood still at about {last:.0f} s",
        "broken_off": f"step {place + 1} of {len(plan)} was not finished: {step}; it is done again",
    }


def _beliefs(bench: Bench, done: Sequence[Operation]) -> Beliefs[Any]:
    """What is believed after these steps: settings, faults, and that a session was begun."""
    walk: Any = bench.target.contract().walk()  # type: ignore[attr-defined]
    first = next(one for one in done if one.kind is Kind.COMMAND)
    for operation in done:
        if operation.kind in (Kind.CONTROL, Kind.FAULT) or operation is first:
            walk.apply(operation)
    return Beliefs(walk.models)


def note(directory: RunDirectory, facts: Mapping[str, Any]) -> None:
    """One line for whoever follows the soak."""
    line = json.dumps({"time": round(time.time(), 3), **facts}, ensure_ascii=False)
    with storing(directory.path), (directory.path / EVENTS).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def read_metrics(path: Path) -> tuple[Mapping[str, Any], ...]:
    """All whole lines of metrics of a run."""
    file = path / METRICS
    if not file.exists():
        return ()
    return tuple(_objects(file))


def _objects(file: Path) -> Iterator[Mapping[str, Any]]:
    """Each whole line as an object; one that is none is named."""
    for number, line in enumerate(file.read_bytes().split(b"\n")[:-1], 1):
        try:
            told = json.loads(line) if line else {}
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise FormatError(str(file), [f"line {number}: it is no JSON object"])
        if line:
            yield told


class _Watched:
    """Writes down what happens, for those who follow it, and the answers of every hour."""

    def __init__(
        self, directory: RunDirectory, soaks: Soaks, watch: Callable[[float, str], None]
    ) -> None:
        self._directory = directory
        self._soaks = soaks
        self._watch = watch
        self._note = ""
        self._at_s = 0.0

    def __enter__(self) -> Callable[[Event], None]:
        return self._heard

    def __exit__(self, *_: object) -> None:
        return None

    def _heard(self, event: Event) -> None:
        step = event.step
        until = getattr(event.operation, "seconds", None)
        self._note = event.operation.short()
        if step is None:
            self._watch(self._at_s, self._note)
            return
        if event.operation.type == "RunUntil" and isinstance(until, int | float):
            self._at_s = max(self._at_s, float(until))
        fired = step.result.fired if event.operation.kind is Kind.FAULT else None
        if event.operation.type != "RunUntil" or step.violations:
            note(
                self._directory,
                {
                    "what": "fault" if event.operation.kind is Kind.FAULT else "step",
                    "at_s": self._at_s,
                    "operation": event.operation.short(),
                    "verdict": step.verdict.value,
                    **({} if fired is None else {"fired": bool(fired)}),
                },
            )
        file = self._soaks.hourly.get(event.operation.type)
        if file is not None and step.result.succeeded and self._at_s:
            hour = max(1, round(self._at_s / HOUR_S))
            name = file.replace("{hour}", str(hour))
            self._directory.write_text(self._directory.path / name, step.result.stdout)
        self._watch(self._at_s, self._note)


def _finished(
    bench: Bench, ask: SoakAsk, assignment: Assignment, outcome: Outcome, soaks: Soaks
) -> Soaked:
    """Everything that is kept of a soak."""
    with stopping.held_off():
        directory = outcome.directory
        lines = _journalled(directory)
        fired = _fired(bench, lines)
        account = soaks.account(outcome.seen, fired)
        broken = tuple(
            step for step in outcome.steps if step.verdict.stops_run and not _bears(step)
        )
        facts = {**account.facts, "broken_promises": float(sum(s.verdict.is_bug for s in broken))}
        made = Soaked(
            ask,
            outcome,
            account,
            judged(soaks.criteria, facts),
            _legs(directory),
            read_metrics(directory.path),
            earlier(bench.root, ask.project, directory.path),
            broken,
        )
        _write(bench, assignment, made, facts)
    return made


def _write(bench: Bench, assignment: Assignment, made: Soaked, facts: Mapping[str, Any]) -> None:
    from mutiny.report.soak_page import render
    from mutiny.report.summary import summary

    outcome, directory = made.outcome, made.outcome.directory
    written = {
        "format": 1,
        "ask": asdict(made.ask),
        "verdict": made.verdict.value,
        "facts": dict(facts),
        "criteria": [
            {**asdict(one.criterion), "holds": one.holds, "word": one.word} for one in made.criteria
        ],
        "legs": list(made.legs),
        "real_seconds": round(outcome.duration_s, 1),
        "finished_unix": time.time(),
        "recommendations": list(made.account.recommendations),
        "report": dict(made.account.report),
    }
    directory.write_json(directory.path / REPORT, written)
    directory.write_text(directory.path / "final_report.html", render(made))
    if made.broken:
        from mutiny.report.error_report import write_failure

        write_failure(outcome, bench.target.contract(), None, bench.origin(assignment, outcome))
    told = summary(outcome, bench.target.contract(), assignment.title, made.ask.seed, None)
    verdict = made.verdict
    directory.write_json(
        directory.summary_path,
        {**told, "verdict": verdict.value, "exit_code": verdict.exit_code},
    )


def _fired(bench: Bench, lines: Sequence[Mapping[str, Any]]) -> list[Operation]:
    """The faults that were met, from the whole journal."""
    from mutiny.codec import decode_operation

    known = bench.target.contract().operations
    return [
        decode_operation(line["operation"], known, where="journal")
        for line in lines
        if (line.get("result") or {}).get("fired") is True
    ]


def _legs(directory: RunDirectory) -> tuple[Mapping[str, Any], ...]:
    """Each time that somebody went on with it."""
    file = directory.path / EVENTS
    return tuple(row for row in _objects(file) if row.get("what") == "resumed")


def earlier(root: Path, project: str, own: Path) -> tuple[Mapping[str, Any], ...]:
    """What came of earlier soaks of the same project, the oldest first."""
    found = []
    for path in sorted(root.glob(f"run_*/{REPORT}")):
        if path.parent == own:
            continue
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(told, dict) and told.get("ask", {}).get("project") == project:
            found.append({**told, "run": path.parent.name})
    return tuple(found[-EARLIER:])
