"""The one loop: observe, execute, classify, advance the model, check invariants and ledger, write
the journal.

Every mode goes through here. A mode makes operations and reads verdicts; it never executes anything
itself. Exceptions become data in one place, `_execute`: what Mutiny could not do is inconclusive,
never green and never a dead run.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic

from mutiny import stopping
from mutiny.engine.journal import JournalWriter, Step
from mutiny.engine.rundir import RunDirectory, storing
from mutiny.engine.settling import Lag, Settled, Taken, left_alone
from mutiny.engine.untested import why_untested
from mutiny.errors import MutinyError
from mutiny.kit.contract import Answered, Checked, Evidence, MakeLive, Model, Seen, StepContext
from mutiny.kit.operations import USUAL_WORLD, Reset
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict, of_step, worst
from mutiny.model.violation import most_telling_first
from mutiny.seeds import short_tag, stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from random import Random

    from mutiny.engine.replay import Replay
    from mutiny.kit.contract import Contract, Live

Listener = Callable[["Event"], None]


_UNTOLD = "it went well, and whether that was right could not be told"
_UNDONE = "the step did not do what it should"


@dataclass(frozen=True)
class Event:
    """Something a sink may show: an operation begins, or a step is done."""

    sequence_id: int
    operation: Operation
    step: Step | None = None


@dataclass(frozen=True)
class Outcome:
    """A finished run."""

    verdict: Verdict
    steps: tuple[Step, ...]
    directory: RunDirectory
    model: Any = None
    evidence: Evidence = field(default_factory=Evidence)
    duration_s: float = 0.0
    before_last: Any = None
    """Beliefs and observation before the last step, for a caller that continues from there."""
    rollback: tuple[Step, ...] = ()
    """What was run at the end in any case, behind the step that failed."""
    untested: tuple[str, ...] = ()
    """Nothing broke, and yet nothing was proved: why."""
    replay: Replay | None = None
    """The shortest sequence that fails in the same way, once somebody has looked for it."""
    seen: Any = None
    """What was seen last."""

    @property
    def failed_step(self) -> Step | None:
        """The step that stopped the run."""
        return self.steps[-1] if self.steps and self.steps[-1].verdict.stops_run else None

    @property
    def rule(self) -> str | None:
        """The id of the most telling broken rule."""
        return next(iter(self.rules), None)

    @property
    def rules(self) -> tuple[str, ...]:
        """All rules that the last step broke, the most telling first."""
        step = self.failed_step
        return tuple(violation.rule for violation in step.violations) if step is not None else ()

    @property
    def reason(self) -> str:
        """Why it did not pass, in one line; nothing when it did."""
        step = self.failed_step
        if step is None:
            empty = () if self.verdict is Verdict.SUCCESS else ("nothing was run",)
            return "; ".join(self.untested or empty)
        said = [violation.message for violation in step.violations] or list(step.inconclusive)
        return said[0] if said else step.result.stderr.strip() or f"{step.operation} failed"


class Engine(Generic[Model, Seen]):
    """Runs one list of operations against one target."""

    def __init__(
        self,
        contract: Contract[Model, Seen],
        make_live: MakeLive,
        directory: RunDirectory,
        *,
        seed: int = 0,
        listeners: Sequence[Listener] = (),
        done: int = 0,
        bears: Callable[[Step], bool] = lambda _step: False,
    ) -> None:
        """`done`: so many steps are in the journal already. `bears`: goes on after a step that would stop
        others.
        """
        self.contract = contract
        self._make_live = make_live
        self.directory = directory
        self._seed = seed
        self._listeners = tuple(listeners)
        self._done = done
        self._bears = bears
        self._live: Live | None = None
        self._model: Model = contract.initial()
        self._seen: Seen = contract.nothing_seen()
        self._before_last: tuple[Model, Seen] | None = None
        self._told: tuple[Seen, Mapping[str, object]] | None = None
        self._tokens = 0
        self._boxes = 0
        self._planned: tuple[Operation, ...] = ()

    def run(
        self,
        operations: Iterable[Operation],
        *,
        always: Iterable[Operation] = (),
        repeats: bool = False,
    ) -> Outcome:
        """Run until the list ends or a step must stop it.

        `always` runs at the end in any case: after a bug, after an error of Mutiny, after Ctrl-C.
        `repeats`: it is a failure that is tried again, so that nothing is left out of it or asked after it.
        """
        return self._whole(operations, always, repeats=repeats)

    def _whole(
        self,
        operations: Iterable[Operation],
        always: Iterable[Operation] = (),
        *,
        repeats: bool = False,
        broken: Step | None = None,
    ) -> Outcome:
        """A run from its first step to its evidence; `broken` is a step that ended it before it began."""
        started = time.monotonic()
        listed, last = tuple(operations), tuple(always)
        self._planned = (*listed, *last)
        journal = JournalWriter(self.directory.journal_path)
        steps: list[Step] = []
        undone: list[Step] = []
        try:
            try:
                with stopping.running():
                    if broken is None:
                        self._obey(listed, journal, steps)
                    else:
                        self._add(broken, journal, steps)
                verdict = worst(step.verdict for step in steps)
                untested: tuple[str, ...] = ()
                if verdict is Verdict.SUCCESS:
                    untested = why_untested(steps, repeats=repeats)
                    verdict = Verdict.INCONCLUSIVE if untested else verdict
                with stopping.held_off(), stopping.running():
                    evidence = self._evidence() if verdict not in (Verdict.SUCCESS,) else Evidence()
            finally:
                with stopping.held_off(), stopping.running():
                    self._undo(last, journal, len(steps), undone)
            broke = _first_broken(undone)
            if broke is not None and steps and not steps[-1].verdict.stops_run:
                # A promise that only the rollback breaks is broken all the same.
                steps, undone = [*steps, *undone[: broke + 1]], undone[broke + 1 :]
                verdict, untested = steps[-1].verdict, ()
                with stopping.held_off(), stopping.running():
                    evidence = self._evidence()
            return Outcome(
                verdict,
                tuple(steps),
                self.directory,
                self._model,
                evidence,
                time.monotonic() - started,
                self._before_last,
                tuple(undone),
                untested,
                seen=self._seen,
            )
        finally:
            with stopping.held_off(), stopping.running():
                journal.close()
                self.close()

    def _obey(
        self, operations: Sequence[Operation], journal: JournalWriter, steps: list[Step]
    ) -> None:
        """Run them; when Mutiny is asked to stop, the step that was under way has shown nothing."""
        try:
            self._go(operations, journal, steps)
        except stopping.Stopped as stop:
            with stopping.held_off():
                if len(steps) < len(operations):
                    operation = operations[len(steps)]
                    self._add(self._broken_off(len(steps) + 1, operation, stop), journal, steps)

    def _go(
        self, operations: Sequence[Operation], journal: JournalWriter, steps: list[Step]
    ) -> None:
        for sequence_id, planned in enumerate(operations, self._done + 1):
            stopping.check()
            operation = self._resolve(planned, sequence_id)
            self._emit(Event(sequence_id, operation))
            step = self._step(sequence_id, operation)
            with stopping.held_off():
                self._add(step, journal, steps)
            if step.verdict.stops_run and not self._bears(step):
                break

    def _add(self, step: Step, journal: JournalWriter, steps: list[Step]) -> None:
        if step.verdict.stops_run:
            self.directory.require_room()
        journal.append(step)
        steps.append(step)
        self._emit(Event(step.sequence_id, step.operation, step))

    def _broken_off(self, sequence_id: int, operation: Operation, stop: stopping.Stopped) -> Step:
        text = str(stop)
        return Step(
            sequence_id,
            time.time(),
            operation,
            self._seen.as_json(),
            OperationResult(None, stderr=text, harness_error=text),
            self._seen.as_json(),
            Verdict.INCONCLUSIVE,
            inconclusive=(text,),
        )

    def _undo(
        self,
        operations: Sequence[Operation],
        journal: JournalWriter,
        done: int,
        undone: list[Step],
    ) -> None:
        """Every one of them gets its chance, whatever came of those before it."""
        if self._live is None:
            return
        for sequence_id, operation in enumerate(operations, done + 1):
            self._emit(Event(sequence_id, operation))
            try:
                step = self._step(sequence_id, operation)
            except stopping.Stopped as stop:
                step = self._broken_off(sequence_id, operation, stop)
            journal.append(step)
            undone.append(step)
            self._emit(Event(sequence_id, operation, step))

    def resume(
        self,
        before: tuple[Model, Seen | None],
        operation: Operation,
        result: OperationResult,
        operations: Iterable[Operation],
        world: Reset = USUAL_WORLD,
        earlier_steps: Iterable[Step] = (),
    ) -> Outcome:
        """Go on from files that another run left behind.

        `before` is that run's `before_last`, `operation` and `result` are what it went through since,
        `world` is how it began. No token of its `earlier_steps` is given a second time. What it went
        through is held to every promise, as in an ordinary run, unless nobody looked before it; a
        broken one ends it there.
        """
        began, timestamp = time.perf_counter(), time.time()
        step: Step | None = None
        given = [*result.tokens, *(one for step in earlier_steps for one in step.result.tokens)]
        self._tokens = max((int(one.rpartition("-")[2]) for one in given), default=0)
        planned = tuple(operations)
        try:
            with stopping.running():
                with storing(self.directory.box_path):
                    self._live = self._make_live(self.directory.box_path, world)
                    self._live.prepare(planned)
                seen = self._live.observe()
                model, earlier = before
                self._model = model
                if earlier is None:
                    nothing = self.contract.nothing_seen()
                    answered = self._judge(operation, result, nothing, seen, timestamp)
                    self._model, self._seen = answered.model, seen
                else:
                    self._before_last = (model, earlier)
                    step = self._held(
                        Taken(1, timestamp, operation, result, earlier, timestamp), seen, began
                    )
        except BaseException:
            self.close()
            raise
        is_bug = step is not None and step.verdict.is_bug
        return self._whole(planned, broken=step if is_bug else None)

    def close(self) -> None:
        """Kill the box. Its files stay where they are."""
        live, self._live = self._live, None
        if live is not None:
            with contextlib.suppress(
                stopping.Stopped
            ):  # it has waited long enough; the box is down
                live.close()

    # --- one step ------------------------------------------------------------------------------

    def _resolve(self, operation: Operation, sequence_id: int) -> Operation:
        made: list[Random] = []

        def choose(options: Sequence[Operation]) -> Operation:
            if not made:  # most operations leave nothing to choose
                made.append(stream(self._seed, f"choice/{sequence_id}"))
            return made[0].choice(list(options))

        return self.contract.resolve(operation, choose)

    def _step(self, sequence_id: int, operation: Operation) -> Step:
        began = time.perf_counter()
        timestamp = time.time()
        if self.contract.starts_afresh(operation) or self._live is None:
            fresh = self._afresh(operation if isinstance(operation, Reset) else USUAL_WORLD)
            if self.contract.starts_afresh(operation):
                return self._reset_step(sequence_id, operation, timestamp, fresh, began)
        before = self._seen
        self._before_last = (self._model, before)
        result = self._execute(operation)
        now = time.time()
        seen, trouble = self._observe()
        if trouble is not None:
            result = replace(result, harness_error=trouble)
        taken = Taken(sequence_id, timestamp, operation, result, before, now)
        return self._held(taken, seen, began, looked=trouble is None)

    def _held(self, taken: Taken[Seen], seen: Seen, began: float, *, looked: bool = True) -> Step:
        """What was done and seen is held to every promise; beliefs follow."""
        operation, result, before, model = taken.operation, taken.result, taken.before, self._model
        answered = self._judge(operation, result, before, seen, taken.ended)
        settled, seen, waited_ms = self._settle_rules(
            answered, operation, result, before, seen, looked=looked
        )
        self._model, self._seen = settled.model, seen
        own = () if settled.violation is None else (settled.violation,)
        violations = most_telling_first((*own, *settled.extra), self.contract.rules)
        verdict = of_step(
            settled.verdict,
            violated=bool(violations),
            doubtful=bool(settled.doubts),
            disturbed=bool(violations and self.contract.disturbed(model)),
        )
        foreign_ms = waited_ms + self._foreign_ms(operation, result)
        own_ms = (time.perf_counter() - began) * 1000 - foreign_ms
        return Step(
            taken.sequence_id,
            taken.began,
            operation,
            self._shown(before),
            result,
            self._shown(seen),
            verdict,
            violations,
            settled.expected,
            settled.doubts if verdict is Verdict.INCONCLUSIVE else (),
            own_ms,
            self.contract.coverage(operation, before, verdict, model),
        )

    def _shown(self, seen: Seen) -> Mapping[str, object]:
        """A look as the journal tells it: what one step left is what the next one begins with."""
        if self._told is None or self._told[0] is not seen:
            self._told = (seen, seen.as_json())
        return self._told[1]

    @staticmethod
    def _foreign_ms(operation: Operation, result: OperationResult) -> float:
        """Time that is not Mutiny's: the target's own, or a deliberate wait."""
        return result.target_ms if operation.kind is Kind.COMMAND else result.duration_ms

    def _execute(self, operation: Operation) -> OperationResult:
        """The only place where an exception becomes a result."""
        assert self._live is not None
        model = self._model
        context = StepContext(
            token=self._next_token,
            pending=lambda seen: self.contract.pending(model, seen),
            before=self._seen,
            impossible=lambda subject, status: self.contract.impossible(model, subject, status),
            model=model,
        )
        started = time.perf_counter()
        try:
            return self._live.execute(operation, context)
        except Exception as error:  # noqa: BLE001  a wait looks, too, at whatever a target wrote
            text = _told(error)
            elapsed_ms = (time.perf_counter() - started) * 1000
            return OperationResult(None, stderr=text, harness_error=text, duration_ms=elapsed_ms)

    def _judge(
        self, operation: Operation, result: OperationResult, before: Seen, seen: Seen, now: float
    ) -> Answered[Model]:
        """A judge that breaks down has judged nothing: inconclusive, never green."""
        try:
            return self.contract.judge(self._model, operation, result, before, seen, now)
        except Exception as error:  # noqa: BLE001  a broken oracle must not end the run
            return Answered(Verdict.INCONCLUSIVE, self._model, None, _breakdown(error))

    def _check(
        self, model: Model, operation: Operation, result: OperationResult, before: Seen, seen: Seen
    ) -> Checked[Model]:
        try:
            return self.contract.check(model, operation, result.succeeded, before, seen)
        except Exception as error:  # noqa: BLE001  a broken oracle must not end the run
            return Checked(unreadable=(_breakdown(error),))

    def _observe(self) -> tuple[Seen, str | None]:
        """Look; when looking itself fails, keep the last observation and say so."""
        assert self._live is not None
        try:
            return self._live.observe(), None
        except Exception as error:  # noqa: BLE001  what a target wrote breaks a look in any way
            return self._seen, f"the oracle could not look: {_told(error)}"

    def _settle_rules(
        self,
        answered: Answered[Model],
        operation: Operation,
        result: OperationResult,
        before: Seen,
        seen: Seen,
        *,
        looked: bool,
    ) -> tuple[Settled[Model], Seen, float]:
        """Check all rules; give the target its lag to heal what may be healed."""
        model = answered.model
        aloof = left_alone(operation, result)
        if result.harness_error is not None and not (aloof and looked):
            # Mutiny itself failed in the middle: what is seen now is nobody's promise.
            failed = Settled(
                Verdict.INCONCLUSIVE, model, None, answered.expected, (), (result.harness_error,)
            )
            return failed, seen, 0.0
        waiting_since: float | None = None
        lag = Lag(seen.pace.lag(self.contract.lag_s))
        while True:
            checked = self._check(model, operation, result, before, seen)
            model = model if checked.model is None else checked.model
            unseen = () if checked.unseen else seen.probe_errors
            doubts = (*unseen, *checked.unreadable)
            hopeless = (
                checked.broken
                or answered.violation
                or (answered.verdict is Verdict.INCONCLUSIVE and not (checked.settling and aloof))
            )
            over = lag.over(checked.settling, doubts)
            if hopeless or over or (not checked.settling and not doubts):
                break
            assert self._live is not None
            if waiting_since is None:
                waiting_since = time.perf_counter()
            self._live.wait_change(0.05)
            later, trouble = self._observe()
            if trouble is not None:
                doubts = (*doubts, trouble)
                break
            seen = later
            model = self.contract.see(model, seen)
        broken = checked.broken or (checked.settling if over else ())
        if answered.violation is not None and not answered.beliefs_hold:
            broken = ()
        if answered.verdict is Verdict.INCONCLUSIVE:
            why = (
                result.harness_error
                or result.stderr.strip()
                or answered.expected
                or (_UNTOLD if result.succeeded else _UNDONE)
            )
            doubts = (why, *doubts)
        settled = Settled(
            answered.verdict, model, answered.violation, answered.expected, broken, doubts
        )
        waited_s = 0.0 if waiting_since is None else time.perf_counter() - waiting_since
        return settled, seen, waited_s * 1000

    # --- boxes ---------------------------------------------------------------------------------

    def _afresh(self, world: Reset) -> float:
        """Throw the box away and make a new one; returns the milliseconds that took."""
        started = time.perf_counter()
        if self._live is not None or self._boxes:
            self.close()
            self.directory.discard_box()
        with storing(self.directory.box_path):
            self._live = self._make_live(self.directory.box_path, world)
            self._live.prepare(self._planned)
        self._boxes += 1
        self._model = self.contract.initial()
        self._seen = self._live.observe()
        return (time.perf_counter() - started) * 1000

    def _reset_step(
        self,
        sequence_id: int,
        operation: Operation,
        timestamp: float,
        spent_ms: float,
        began: float,
    ) -> Step:
        assert self._live is not None
        if self._boxes == 1:
            self.directory.add_to_plan({"box": self._live.facts()})
        state = self._seen.as_json()
        place = self._live.facts().get("inside", "")
        result = OperationResult(0, f"a new box, {place} inside", duration_ms=spent_ms)
        own_ms = (time.perf_counter() - began) * 1000
        return Step(
            sequence_id, timestamp, operation, {}, result, state, Verdict.SUCCESS, own_ms=own_ms
        )

    def _evidence(self) -> Evidence:
        if self._live is None:
            return Evidence()
        try:
            return self._live.evidence()
        except (Exception, stopping.Stopped) as error:  # noqa: BLE001  it is never worth a finding
            return Evidence(daemon_log=f"(the evidence could not be collected: {_told(error)})")

    def _next_token(self) -> str:
        self._tokens += 1
        return f"MT-{short_tag(self._seed)}-{self._tokens}"

    def _emit(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)


def _first_broken(steps: Sequence[Step]) -> int | None:
    """Where the first of them broke a promise."""
    return next((place for place, step in enumerate(steps) if step.verdict.is_bug), None)


def _told(error: BaseException) -> str:
    """An error in one line; an unforeseen one with the place where it was raised."""
    said = f"{type(error).__name__}: {error}"
    foreseen = (MutinyError, OSError, ValueError, LookupError, stopping.Stopped)
    return said if isinstance(error, foreseen) else f"{said}, in {_place_of(error)}"


def _place_of(error: BaseException) -> str:
    import traceback  # it loads the reader of Python's own grammar

    return traceback.extract_tb(error.__traceback__)[-1].name


def _breakdown(error: Exception) -> str:
    """Where the oracle itself broke down."""
    return f"the oracle broke down in {_place_of(error)}: {type(error).__name__}: {error}"
