"""A target on which experiments can run: wrappers around its contract and its live side.

They carry out and judge the operations that experiments add, and leave everything else to the contract and
the live target inside. Nothing runs beside the one loop.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutiny import stopping
from mutiny.contracts.catalogue import language_of
from mutiny.experiments.recorder import Breach, Recorder
from mutiny.kit import operations as common
from mutiny.kit.contract import Answered, Live, Model, Seen
from mutiny.kit.experiment import (
    EXPERIMENT_OPERATIONS,
    Action,
    Gather,
    Probe,
    SteadyState,
    Undo,
    Unwatch,
    VerifySentence,
    Watch,
)
from mutiny.kit.sentences import Truth
from mutiny.kit.wrapping import WrappedContract
from mutiny.model.operation import Kind
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Rule, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mutiny.experiments.sampler import Sampler
    from mutiny.kit.contract import AnyContract, Checked, Contract, Evidence, StepContext
    from mutiny.kit.language import Language
    from mutiny.kit.sentences import Finding
    from mutiny.model.operation import Operation
    from mutiny.targets.registry import Target

LOOK_EVERY_S = 0.2
NOTHING = common.Sleep(0.0)
"""What a step of an experiment is for a contract that does not know it: nothing happened."""
_EXACT = (common.SweepPoint, common.Trace, common.Interleave)

RULES = {
    rule.id: rule
    for rule in (
        Rule(
            "experiment.verified",
            "What the method verifies is true.",
            "Recovery failures",
        ),
        Rule(
            "experiment.steady_state",
            "The steady state is kept during the method and is back after it.",
            "Recovery failures",
        ),
    )
}


class InstrumentedContract(WrappedContract[Model, Seen]):
    """A contract that also knows sentences."""

    def __init__(
        self, inner: Contract[Model, Seen], language: Language, recorder: Recorder
    ) -> None:
        super().__init__(inner)
        self._language = language
        self._recorder = recorder

    @property
    def operations(self) -> Mapping[str, type[Operation]]:
        """The contract's, and those of experiments."""
        return {**self._inner.operations, **EXPERIMENT_OPERATIONS}

    @property
    def rules(self) -> Mapping[str, Rule]:
        """The contract's, and the two of experiments."""
        return {**self._inner.rules, **RULES}

    def judge(
        self,
        model: Model,
        operation: Operation,
        result: OperationResult,
        before: Seen,
        seen: Seen,
        now: float,
    ) -> Answered[Model]:
        """Judge what experiments add; a fault that did not fire is never a pass, whoever judges."""
        if isinstance(operation, Undo):
            return self._judge_undo(model, operation, result, before, seen, now)
        if not _own(operation):
            answered = self._inner.judge(model, operation, result, before, seen, now)
            if operation.kind is Kind.FAULT and not result.fired and not answered.verdict.stops_run:
                return replace(answered, verdict=Verdict.INCONCLUSIVE)
            return answered
        after = self._inner.see(model, seen)
        verdict, violation = _judged(operation, result)
        return Answered(verdict, after, violation, result.stdout)

    def _judge_undo(
        self,
        model: Model,
        undo: Undo,
        result: OperationResult,
        before: Seen,
        seen: Seen,
        now: float,
    ) -> Answered[Model]:
        """What was not there to be taken back is no failure; a broken promise is one here too."""
        answered = self.judge(model, undo.operation, result, before, seen, now)
        done = undo.operation.kind is not Kind.FAULT or result.fired
        if answered.verdict is Verdict.INCONCLUSIVE and not (done or result.harness_error):
            return Answered(Verdict.SUCCESS, self._inner.see(model, seen), None, "nothing to undo")
        return answered

    def check(
        self, model: Model, operation: Operation, succeeded: bool, before: Seen, seen: Seen
    ) -> Checked[Model]:
        """The contract's rules, and the steady state while it is watched."""
        if isinstance(operation, Undo):
            operation = operation.operation
        neutral = NOTHING if _own(operation) else operation
        checked = self._inner.check(model, neutral, succeeded, before, seen)
        known = model if checked.model is None else checked.model
        self._recorder.looked(time.time(), seen, self._inner.pending(known, seen))
        keep_watch(self._recorder, known, seen, self._inner.pending(known, seen))
        broken = tuple(
            _breach_violation(breach) for breach in self._recorder.breaches if not breach.told
        )
        for breach in self._recorder.breaches:
            breach.told = True
        return replace(checked, broken=(*checked.broken, *broken))

    def coverage(
        self, operation: Operation, before: Seen, verdict: Verdict, model: Model
    ) -> dict[str, object]:
        """The contract's cell; a step of an experiment has none."""
        foreign = _own(operation) or isinstance(operation, Undo)
        return {} if foreign else self._inner.coverage(operation, before, verdict, model)

    def plausible(self, operations: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """As the contract says of what it knows. A sentence is about everything that was done: with
        one of them in it, nothing but looking may be left out of the original.
        """
        from mutiny.kit.simplifying import deeds  # only minimising asks

        bare, whole = _without(operations), _without(original)
        speaks = any(_speaks(operation) for operation in operations)
        if original and speaks and deeds(bare) != deeds(whole):
            return False
        return self._inner.plausible(bare, whole)

    def certain(self, operations: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """As the contract says of what it knows."""
        return self._inner.certain(_without(operations), _without(original))

    def simpler(
        self, operations: Sequence[Operation]
    ) -> Iterator[tuple[str, tuple[Operation, ...]]]:
        """As the contract says; a list with sentences in it is left as it is."""
        if not any(_own(operation) for operation in operations):
            yield from self._inner.simpler(operations)


def _own(operation: Operation) -> bool:
    return isinstance(
        operation, VerifySentence | SteadyState | Watch | Unwatch | Action | Probe | Gather
    )


def _speaks(operation: Operation) -> bool:
    """Does it ask a sentence that somebody wrote?"""
    if isinstance(operation, SteadyState):
        return operation.when == "after"
    return isinstance(operation, VerifySentence | Probe) or (
        isinstance(operation, Watch) and bool(operation.sentences)
    )


def _without(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    bare = (item.operation if isinstance(item, Undo) else item for item in operations)
    return tuple(operation for operation in bare if not _own(operation))


def keep_watch(recorder: Recorder, model: Any, seen: Any, pending: tuple[str, ...]) -> bool:
    """Ask all watched lines that must always hold; True when one is broken."""
    if not recorder.watched:
        return False
    now = time.time()
    witness = recorder.record(model, seen, now, pending)
    found = False
    known = {breach.line for breach in recorder.breaches}
    for line, spoken in recorder.watched:
        if not spoken.sentence.always:
            continue
        finding = spoken.check(witness)
        if finding.truth is Truth.BROKEN:
            found = True
            if line not in known:
                recorder.breaches.append(
                    Breach(now, line, finding.why, spoken.sentence.rule, finding.subject)
                )
    return found


def _breach_violation(breach: Breach) -> Violation:
    return Violation(
        breach.rule or "experiment.steady_state",
        f"The steady state was broken during the method: {breach.line!r}: {breach.why}",
        breach.subject,
        {"sentence": breach.line, "at": breach.at},
    )


def _judged(operation: Operation, result: OperationResult) -> tuple[Verdict, Violation | None]:
    """The verdict of a step that experiments add."""
    if result.harness_error is not None:
        return Verdict.INCONCLUSIVE, None
    if isinstance(operation, Action):
        return (Verdict.SUCCESS if result.fired else Verdict.INCONCLUSIVE), None
    if result.succeeded:
        return Verdict.SUCCESS, None
    when = getattr(operation, "when", "method")
    if when == "before" or isinstance(operation, Watch | Unwatch | Gather):
        return Verdict.INCONCLUSIVE, None
    if when == "method" and isinstance(operation, Probe) and operation.tolerance is None:
        return Verdict.INCONCLUSIVE, None  # it measured nothing
    rule = "experiment.verified" if when == "method" else "experiment.steady_state"
    named = result.details.get("rule")
    evidence = {"why": result.stderr, "sentence": str(result.details.get("sentence", ""))}
    violation = Violation(
        named if isinstance(named, str) else rule,
        result.stderr,
        str(result.details.get("subject", "")),
        evidence,
    )
    return Verdict.BUG, violation


class InstrumentedLive:
    """A live target that is looked at, asked and written down."""

    def __init__(
        self,
        inner: Live,
        contract: AnyContract,
        language: Language,
        recorder: Recorder,
        run_directory: Path,
        deadline_s: float | None,
        *,
        adapted: bool = False,
    ) -> None:
        self._inner = inner
        self._contract = contract
        self._language = language
        self._recorder = recorder
        self._directory = run_directory
        self._deadline = None if deadline_s is None else time.monotonic() + deadline_s
        self._sampler: Sampler | None = None
        self._runner: Any = None
        self._watched_since = 0.0
        self._adapted = adapted
        self._verified: list[bool] = []
        """Of an adapted method: which of its sentences were shown."""
        self._disturbed = False
        """A fault has happened: a steady state that holds in spite of it shows something."""

    def prepare(self, operations: Sequence[Operation]) -> None:
        """As the target does, for what it knows; what stands in a `during` counts too."""
        self._inner.prepare(_without(operations))

    def observe(self) -> Any:
        """One look."""
        return self._inner.observe()

    def wait_change(self, timeout_s: float) -> None:
        """As the target does."""
        self._inner.wait_change(timeout_s)

    def evidence(self) -> Evidence:
        """As the target does."""
        return self._inner.evidence()

    def facts(self) -> dict[str, object]:
        """As the target does."""
        return self._inner.facts()

    def close(self) -> None:
        """Stop asking, end what runs in the background, then close the target."""
        self._stop_sampler()
        self._inner.close()

    def execute(self, operation: Operation, context: StepContext) -> OperationResult:
        """Carry out one operation and write it down."""
        began, started = time.time(), time.perf_counter()
        if self._deadline is not None and time.monotonic() > self._deadline:
            text = "the time that the experiment was given is over"
            return OperationResult(1, stderr=text, harness_error=text)
        exact = (
            isinstance(operation, _EXACT)
            or operation.type == "KillDuring"
            or getattr(operation, "during", None) is not None
        )
        quiet = self._sampler.paused() if exact and self._sampler else nullcontext()
        with quiet:
            result = self._carry_out(operation, context)
        result = replace(result, duration_ms=(time.perf_counter() - started) * 1000)
        self._recorder.did(operation, result, began, time.time())
        fired = result.fired if operation.kind is Kind.FAULT else result.succeeded
        self._disturbed = self._disturbed or (common.disturbs(operation) and bool(fired))
        return result

    def _carry_out(self, operation: Operation, context: StepContext) -> OperationResult:
        if isinstance(operation, Undo):
            return self._carry_out(operation.operation, context)
        if isinstance(operation, VerifySentence):
            asked = self._ask((operation.sentence,), operation.within_s, context, patient=True)
            self._verified.append(not asked.details.get("unasked"))
            return asked
        if isinstance(operation, SteadyState):
            patient = operation.when == "after"
            if patient:
                self._recorder.chaos_until = min(self._recorder.chaos_until, time.time())
            asked = self._ask(operation.sentences, operation.within_s, context, patient=patient)
            return self._shown(asked) if patient and self._adapted else asked
        if isinstance(operation, Watch):
            return self._watch(operation, context)
        if isinstance(operation, Unwatch):
            self._stop_sampler()
            self._recorder.watched = ()
            return OperationResult(stdout=f"{len(self._recorder.samples)} samples")
        if isinstance(operation, Action | Probe | Gather):
            return self._activity(operation)
        if isinstance(operation, common.Sleep) and self._recorder.watched:
            return self._wait(operation.seconds, context)
        return self._inner.execute(operation, context)

    # --- looking -----------------------------------------------------------------------------------

    def _look(self, context: StepContext) -> tuple[Any, Any, tuple[str, ...]]:
        seen = self._inner.observe()
        model = self._contract.see(context.model, seen) if context.model is not None else None
        pending = context.pending(seen)
        self._recorder.looked(time.time(), seen, pending)
        return model, seen, pending

    def _wait(self, seconds: float, context: StepContext) -> OperationResult:
        """Let time pass with open eyes; a broken steady state ends it."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            stopping.sleep(min(left, LOOK_EVERY_S))
            model, seen, pending = self._look(context)
            if keep_watch(self._recorder, model, seen, pending):
                break
            if self._deadline is not None and time.monotonic() > self._deadline:
                break
        return OperationResult()

    def _ask(
        self, lines: Sequence[str], within_s: float, context: StepContext, *, patient: bool
    ) -> OperationResult:
        """Are these lines true? A patient question waits for what is only pending."""
        spoken = [(line, self._language.vocabulary.read(line)) for line in lines]
        deadline = time.monotonic() + within_s
        while True:
            model, seen, pending = self._look(context)
            witness = self._recorder.record(model, seen, time.time(), pending)
            found = [(line, one, one.check(witness)) for line, one in spoken]
            waiting = [
                (line, finding)
                for line, _, finding in found
                if finding.truth in (Truth.PENDING, Truth.UNKNOWN)
            ]
            bad = [entry for entry in found if entry[2].truth is Truth.BROKEN]
            if bad or not waiting or not patient or time.monotonic() >= deadline:
                return self._answer(found, patient=patient)
            self._inner.wait_change(LOOK_EVERY_S)

    def _answer(
        self, found: Sequence[tuple[str, Any, Finding]], *, patient: bool
    ) -> OperationResult:
        shown = {line: f"{finding.truth.value}: {finding.why}" for line, _, finding in found}
        details: dict[str, object] = {"sentences": shown}
        if self._adapted and patient:
            # What did not come need not have come: a step that was to bring it was left out.
            settled = (Truth.HOLDS, Truth.BROKEN)
            kept = [one for one in found if one[2].truth in settled]
            details |= {} if kept else {"unasked": True}
            found = kept
        for line, spoken, finding in found:
            # Before the method what is on its way counts as steady; afterwards it is overdue.
            if finding.truth is Truth.BROKEN or (finding.truth is Truth.PENDING and patient):
                details |= {
                    "rule": spoken.sentence.rule,
                    "subject": finding.subject,
                    "sentence": line,
                }
                late = " (still not so)" if finding.truth is Truth.PENDING else ""
                text = f"{line!r} is not true{late}: {finding.why}"
                return OperationResult(1, stderr=text, details=details)
        for line, _, finding in found:  # what is broken counts, whatever else could not be seen
            if finding.truth is Truth.UNKNOWN:
                text = f"{line!r} could not be checked: {finding.why}"
                return OperationResult(1, stderr=text, harness_error=text, details=details)
        return OperationResult(stdout="; ".join(shown.values()), details=details)

    def _shown(self, asked: OperationResult) -> OperationResult:
        """Inconclusive when nothing of what an adapted experiment asks could be shown."""
        steady = not asked.details.get("unasked")
        held = any(self._verified) or (steady and (self._disturbed or not self._verified))
        if held or not asked.succeeded:
            return asked
        text = "nothing of what it asks could be shown: steps were left out for this target"
        return replace(asked, exit_code=1, stderr=text, harness_error=text)

    # --- the probe -----------------------------------------------------------------------------------

    def _watch(self, operation: Watch, context: StepContext) -> OperationResult:
        self._recorder.watched = tuple(
            (line, self._language.vocabulary.read(line)) for line in operation.sentences
        )
        if operation.probe is None:
            return OperationResult(stdout="no probe")
        asked = operation.probe
        silent = replace(context, token=lambda: "")
        first = self._inner.execute(asked, silent)
        if not first.succeeded:
            text = f"the probe {asked} does not answer: {first.stderr.strip()}"
            return OperationResult(1, stderr=text, harness_error=text)
        from mutiny.experiments.sampler import Sampler, uptime_s

        self._stop_sampler()
        self._watched_since = uptime_s()
        self._sampler = Sampler(
            lambda: self._inner.execute(asked, silent),
            self._measure,
            operation.rate_hz,
            self._recorder,
            self._directory / "availability.jsonl",
        )
        return OperationResult(stdout=f"{asked} at {operation.rate_hz:g} Hz")

    def _measure(self) -> tuple[int, int] | None:
        from mutiny.experiments.sampler import lasting_processes

        box = getattr(self._inner, "box", None)
        pid = getattr(box, "agent_host_pid", None)
        return (
            None if pid is None else lasting_processes(pid, frozenset({pid}), self._watched_since)
        )

    def _stop_sampler(self) -> None:
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            sampler.close()

    # --- Chaos Toolkit ---------------------------------------------------------------------------------

    def _activity(self, operation: Action | Probe | Gather) -> OperationResult:
        from mutiny.experiments.activities import Activities

        if self._runner is None:
            self._runner = Activities(getattr(self._inner, "box"))  # noqa: B009
        result: OperationResult = self._runner.run(operation)
        return result


@dataclass(frozen=True)
class InstrumentedTarget:
    """A target whose runs can be experiments."""

    inner: Target
    deadline_s: float | None = None
    recorder: Recorder = field(default_factory=Recorder)
    adapted: bool = False
    """Steps were left out or said otherwise for this target."""

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def spec(self) -> Any:
        return self.inner.spec

    @property
    def program(self) -> Path:
        return self.inner.program

    @property
    def origin(self) -> str:
        return self.inner.origin

    @property
    def options(self) -> Any:
        return self.inner.options

    @property
    def language(self) -> Language:
        """The language of the target's contract."""
        return language_of(self.inner.spec.contract)

    def contract(self) -> AnyContract:
        """The target's contract, with sentences."""
        return InstrumentedContract(self.inner.contract(), self.language, self.recorder)

    def apart(self) -> InstrumentedTarget:
        """The same target with an empty book: what trials do is not written into that of the run."""
        return replace(self, inner=self.inner.apart(), recorder=Recorder())

    def healthy(self) -> InstrumentedTarget | None:
        """The same target without its plant, with a book of its own; None when it has none."""
        inner = self.inner.healthy()
        return None if inner is None else replace(self, inner=inner, recorder=Recorder())

    def make_live(self, directory: Path, reset: common.Reset = common.USUAL_WORLD) -> Live:
        """The target in a new box, witnessed from the beginning."""
        self.recorder.forget()
        live: Live = self.inner.make_live(directory, reset)
        return InstrumentedLive(
            live,
            self.inner.contract(),
            self.language,
            self.recorder,
            directory.parent,
            self.deadline_s,
            adapted=self.adapted,
        )
