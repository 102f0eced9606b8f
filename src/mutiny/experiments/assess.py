"""From a finished run to its report: findings, score, time line. Pure: values in, a value out."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from mutiny.contracts.catalogue import language_of
from mutiny.experiments.experiment import CHAOS_TOOLKIT
from mutiny.kit.experiment import Probe, SteadyState, Undo, Watch
from mutiny.kit.language import availability, median, of_chaos
from mutiny.kit.operations import disturbs
from mutiny.model.operation import Kind
from mutiny.model.verdict import Verdict
from mutiny.report.advice import advice
from mutiny.report.experiment import (
    ExperimentReport,
    FaultRecord,
    FindingRecord,
    SampleRecord,
    Score,
    SteadyRecord,
    StepRecord,
)
from mutiny.report.story import cause_of, disturbances, missed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mutiny.engine.journal import Step
    from mutiny.engine.loop import Outcome
    from mutiny.experiments.compile import Placed, Plan
    from mutiny.experiments.experiment import Experiment
    from mutiny.experiments.recorder import Recorder, Shock
    from mutiny.kit.contract import AnyContract
    from mutiny.kit.sentences import Sample
    from mutiny.model.violation import Rule, Violation

CAUSE_STEPS = 4


def assess(
    experiment: Experiment,
    plan: Plan,
    outcome: Outcome,
    recorder: Recorder,
    contract: AnyContract,
    *,
    target: str,
    plant: str,
    seed: int,
    again: str = "",
) -> ExperimentReport:
    """The whole report of one run; `again` is the command that repeats it."""
    placed = {
        step.sequence_id: where
        for step, where in zip(_ran(outcome), _places(outcome, plan), strict=True)
    }
    zero = outcome.steps[0].timestamp_unix if outcome.steps else 0.0
    rules = contract.rules
    findings = tuple(_findings(outcome, rules, again))
    verdict = outcome.verdict
    return ExperimentReport(
        experiment.name,
        experiment.hypothesis,
        experiment.path,
        experiment.form,
        target,
        plant,
        seed,
        verdict.value,
        verdict.exit_code,
        _reason(outcome, placed),
        round(zero, 3),
        round(outcome.duration_s, 3),
        experiment.radius,
        tuple(_faults(outcome, placed, recorder, zero)),
        findings,
        tuple(_steady(experiment, outcome, recorder)),
        tuple(_steps(outcome, plan, zero)),
        tuple(
            SampleRecord(round(s.at - zero, 3), s.ok, round(s.latency_ms, 1), s.slots)
            for s in recorder.samples
        ),
        _score(outcome, recorder, rules, placed),
        probe="" if experiment.probe is None else str(experiment.probe),
        directory=str(outcome.directory.path),
        replay="" if outcome.replay is None else outcome.replay.of(len(outcome.steps)),
        not_applicable=dict(contract.not_applicable),
        changes=plan.changes,
    )


def _ran(outcome: Outcome) -> tuple[Step, ...]:
    return (*outcome.steps, *outcome.rollback)


def _places(outcome: Outcome, plan: Plan) -> tuple[Placed, ...]:
    """Where each step that ran stands in the plan: the rollback begins behind whatever came last."""
    ran = _ran(outcome)
    back = sum(isinstance(step.operation, Undo) for step in ran)
    return (*plan.steps[: len(ran) - back], *plan.rollback[:back])


def _reason(outcome: Outcome, placed: Mapping[int, Placed]) -> str:
    """Why it did not pass, in one line."""
    step, text = outcome.failed_step, outcome.reason
    if step is None:
        return text
    phase = placed[step.sequence_id].phase if step.sequence_id in placed else ""
    if step.verdict is Verdict.INCONCLUSIVE and phase == "before":
        return f"the steady state is not met before the method, which was not run: {text}"
    line = placed[step.sequence_id].line if step.sequence_id in placed else 0
    where = f" (line {line})" if line else ""
    if step.verdict is Verdict.INCONCLUSIVE and step.operation.kind is Kind.FAULT:
        return f"a fault did not happen{where}: {step.operation.short()}: {text}"
    if step.verdict is Verdict.INCONCLUSIVE:
        return f"could not be tested{where}: {step.operation.short()}: {text}"
    return text + where


def _findings(outcome: Outcome, rules: Mapping[str, Rule], again: str) -> list[FindingRecord]:
    step = outcome.failed_step
    if step is None:
        return []
    found = []
    distinct = {violation.rule: violation for violation in reversed(step.violations)}
    for violation in reversed(distinct.values()):
        rule = rules.get(violation.rule)
        said = advice(violation.rule, rule, cause_of(outcome.steps))
        found.append(
            FindingRecord(
                _title(violation, rule),
                said.severity,
                violation.rule,
                violation.message,
                _root_cause(outcome, step),
                said.impact,
                said.recommendation,
                again,
            )
        )
    return found


def _title(violation: Violation, rule: Rule | None) -> str:
    """The promise that was broken; a sentence of the experiment itself is its own title."""
    if rule is None:
        return violation.rule
    own = violation.rule.startswith("experiment.")
    return violation.message.partition(": ")[0] if own else rule.promise


def _root_cause(outcome: Outcome, failed: Step) -> str:
    """As far as the evidence goes: what fired before it, and what was done since."""
    before = [step for step in outcome.steps if step.sequence_id < failed.sequence_id]
    done = [
        step
        for step in before
        if step.operation.kind in (Kind.COMMAND, Kind.COMBINATION, Kind.CONTROL, Kind.FAULT)
        and step.operation.type not in ("Reset", "Watch", "Sleep")
    ]
    tail = ", ".join(step.operation.short() for step in done[-CAUSE_STEPS:])
    shown = f"seen at `{failed.operation.short()}`, step {failed.sequence_id}"
    fired = disturbances(outcome.steps)
    if not fired:
        asked = "happened, though one was asked for" if missed(outcome.steps) else "was needed"
        return f"No fault {asked}; before it: {tail or 'nothing'} ({shown})."
    last = fired[-1]
    if last.step is failed:
        return f"Seen at once: {last.text} (step {failed.sequence_id}); before it: {tail or 'nothing'}."
    elapsed = failed.timestamp_unix - last.step.timestamp_unix
    return (
        f"The last disturbance before it: {last.text}, {elapsed:.1f} s earlier; the operations "
        f"before it: {tail} ({shown}). The evidence shows this order, not the line of code."
    )


def _faults(
    outcome: Outcome, placed: Mapping[int, Placed], recorder: Recorder, zero: float
) -> list[FaultRecord]:
    shocks = {id(shock.operation): shock for shock in recorder.shocks}
    took = dict(zip(map(id, recorder.shocks), _recoveries(outcome, recorder), strict=True))
    found = []
    for step in outcome.steps:
        where = placed.get(step.sequence_id)
        if not disturbs(step.operation) or where is None or where.phase != "method":
            continue
        shock = shocks.get(id(step.operation))
        until = shock.ended if shock is not None else None
        found.append(
            FaultRecord(
                round(step.timestamp_unix - zero, 3),
                step.operation.short(),
                step.result.technique or "",
                shock is not None,
                None if shock is None else took[id(shock)],
                None if until is None else round(until - zero, 3),
            )
        )
    return found


def _steps(outcome: Outcome, plan: Plan, zero: float) -> list[StepRecord]:
    found = []
    for step, where in zip(_ran(outcome), _places(outcome, plan), strict=True):
        note = _note(step)
        begin = step.timestamp_unix - zero
        found.append(
            StepRecord(
                where.phase,
                step.operation.short(),
                step.operation.kind.value,
                round(begin, 3),
                round(begin + step.result.duration_ms / 1000, 3),
                step.verdict.value,
                note,
                where.line,
            )
        )
    return found


def _note(step: Step) -> str:
    if step.violations:
        return f"{step.violations[0].rule}: {step.violations[0].message}"
    if step.inconclusive:
        return step.inconclusive[0]
    return step.result.stdout.strip()[:160] if step.operation.kind is not Kind.COMMAND else ""


def _steady(experiment: Experiment, outcome: Outcome, recorder: Recorder) -> list[SteadyRecord]:
    if experiment.form == CHAOS_TOOLKIT:
        return _steady_probes(outcome)
    asked: dict[str, dict[str, str]] = {"before": {}, "after": {}}
    for step in outcome.steps:
        if isinstance(step.operation, SteadyState):
            answers = step.result.details.get("sentences", {})
            assert isinstance(answers, dict)
            asked[step.operation.when] = {str(k): str(v) for k, v in answers.items()}
    broken = {breach.line: breach.why for breach in recorder.breaches}
    watched = any(isinstance(step.operation, Watch) for step in outcome.steps)
    vocabulary = language_of(experiment.contract).vocabulary

    def during(line: str) -> str:
        if line in broken:
            return f"broken: {broken[line]}"
        if not vocabulary.read(line).sentence.always:
            return "-"
        return "kept" if watched else "not watched"

    return [
        SteadyRecord(
            line.text,
            asked["before"].get(line.text, "not asked"),
            during(line.text),
            asked["after"].get(line.text, "not asked"),
        )
        for line in experiment.steady_state
    ]


def _steady_probes(outcome: Outcome) -> list[SteadyRecord]:
    answers: dict[str, dict[str, str]] = {}
    for step in outcome.steps:
        operation = step.operation
        if isinstance(operation, Probe) and operation.when in ("before", "after"):
            said = "holds" if step.result.succeeded else f"broken: {step.result.stderr.strip()}"
            answers.setdefault(operation.name, {})[operation.when] = said
    return [
        SteadyRecord(name, said.get("before", "not asked"), "-", said.get("after", "not asked"))
        for name, said in answers.items()
    ]


def _score(
    outcome: Outcome, recorder: Recorder, rules: Mapping[str, Rule], placed: Mapping[int, Placed]
) -> Score:
    judged = any(not rule.startswith("experiment.") for rule in rules)
    took = _recoveries(outcome, recorder) if judged else []
    recovered = None if not took else all(value is not None for value in took)
    if not recovered and outcome.verdict is Verdict.SUCCESS:
        recovered = None  # it was back at the end, but nobody saw when
    known = [value for value in took if value is not None]
    window = _chaos_window(outcome, placed)
    begun = [sample for sample in recorder.samples if sample.at >= window[0]]
    samples = of_chaos(begun, recorder.deeds, window[1])
    return Score(
        round(max(known), 3) if recovered and known else None,
        recovered,
        _integrity(outcome, rules, placed) if judged else "UNKNOWN",
        None if not samples else _rounded(availability(samples)),
        len(samples),
        _rate(samples),
    )


def _recoveries(outcome: Outcome, recorder: Recorder) -> list[float | None]:
    """For each shock how long the recovery took; None: it was not seen to recover.

    When a promise was broken, nothing counts as recovered from then on, nor from the last shock before.
    """
    step = outcome.failed_step
    broken_at = float("inf") if step is None else step.timestamp_unix
    before = [shock for shock in recorder.shocks if shock.at <= broken_at]
    guilty = before[-1] if before and step is not None and step.violations else None
    return [None if shock is guilty else _recovered(shock, broken_at) for shock in recorder.shocks]


def _recovered(shock: Shock, broken_at: float) -> float | None:
    if shock.recovered_s is None or shock.ended is None:
        return None
    recovered = shock.ended + shock.recovered_s < broken_at
    return round(shock.recovered_s, 3) if recovered else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _chaos_window(outcome: Outcome, placed: Mapping[int, Placed]) -> tuple[float, float]:
    """From the first step of the method to the end of the recovery."""
    times = [
        (step.timestamp_unix, step.timestamp_unix + step.result.duration_ms / 1000)
        for step in outcome.steps
        if step.sequence_id in placed and placed[step.sequence_id].phase in ("method", "recovery")
    ]
    return (times[0][0], times[-1][1]) if times else (0.0, 0.0)


def _rate(samples: Sequence[Sample]) -> float:
    """Samples a second, from the typical distance between two of them."""
    if len(samples) < 2:
        return 0.0
    gaps = [later.at - earlier.at for earlier, later in pairwise(samples)]
    middle = median(gaps)
    return round(1 / middle, 2) if middle > 0 else 0.0


def _integrity(outcome: Outcome, rules: Mapping[str, Rule], placed: Mapping[int, Placed]) -> str:
    """FAIL when a rule about data was broken; PASS only when the run got to its last check."""
    step = outcome.failed_step
    if step is not None:
        for violation in step.violations:
            if advice(violation.rule, rules.get(violation.rule)).touches_data:
                return "FAIL"
        return "UNKNOWN"
    last = placed.get(len(outcome.steps))
    reached = last is not None and last.phase == "after"
    return "PASS" if reached else "UNKNOWN"
