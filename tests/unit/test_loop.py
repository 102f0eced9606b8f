"""The one loop, with a target that is only a script: stops at the first bug, never green by
accident.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from builders import PATTERNS, SHA, agent, belief, beliefs, model, ok, picture, refused, view
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.profile import Limits, Profile
from mutiny.engine.loop import Engine, Event, Outcome
from mutiny.engine.rundir import RunDirectory
from mutiny.errors import BoxError, StoreError, TargetMissing
from mutiny.kit import operations as common
from mutiny.kit.contract import Evidence, StepContext
from mutiny.kit.views import Commit
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict

Look = Observation | Exception
Answer = OperationResult | Exception
DOWN = picture(daemons=(), daemon_flag=False)
UP = picture()
IDLE = picture(view())
QUICK = WorkersContract(Profile(limits=Limits(lag_s=0.02)), PATTERNS)


class Script:
    """A target that answers and looks as it is told; the last look repeats."""

    def __init__(self, answers: Iterable[Answer], looks: Iterable[Look]) -> None:
        self.answers = iter(answers)
        self.looks = list(looks)
        self.executed: list[Operation] = []
        self.closed = 0
        self.waits = 0

    def prepare(self, operations: Sequence[Operation]) -> None:
        self.planned = tuple(operations)

    def execute(self, operation: Operation, context: StepContext) -> OperationResult:
        self.executed.append(operation)
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        tokens = (context.token(),) if isinstance(operation, op.Start) else ()
        return replace(answer, tokens=tokens)

    def observe(self) -> Observation:
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(look, Exception):
            raise look
        return look

    def wait_change(self, timeout_s: float) -> None:
        self.waits += 1

    def evidence(self) -> Evidence:
        return Evidence(daemon_log="the log")

    def facts(self) -> dict[str, object]:
        return {"technique": "none"}

    def close(self) -> None:
        self.closed += 1


def _fields(result: OperationResult) -> dict[str, object]:
    return {name: getattr(result, name) for name in OperationResult.__dataclass_fields__}


def run(
    directory: Path,
    script: Script,
    *operations: Operation,
    contract: WorkersContract = QUICK,
    seed: int = 0,
    listeners: tuple[Callable[[Event], None], ...] = (),
) -> Outcome:
    engine = Engine(
        contract,
        lambda directory, reset=common.USUAL_WORLD: script,
        RunDirectory(directory),
        seed=seed,
        listeners=listeners,
    )
    return engine.run(operations)


BEGIN = (common.Reset(), op.Init(), op.Up())


def test_a_run_that_passes(tmp_path: Path) -> None:
    script = Script(
        [ok(), ok(), ok(), ok()], [DOWN, DOWN, UP, IDLE, picture(view("alpha", "working"))]
    )
    outcome = run(tmp_path, script, *BEGIN, op.Add("alpha"), op.Start("alpha", "x"))
    assert outcome.verdict is Verdict.SUCCESS
    assert [step.verdict for step in outcome.steps] == [Verdict.SUCCESS] * 5
    assert outcome.steps[-1].result.tokens == ("MT-" + outcome.steps[-1].result.tokens[0][3:],)
    assert outcome.evidence == Evidence()
    assert script.closed == 1
    lines = (tmp_path / "operations.jsonl").read_text().splitlines()
    assert [json.loads(line)["sequence_id"] for line in lines] == [1, 2, 3, 4, 5]
    assert json.loads((tmp_path / "plan.json").read_text()) == {"box": {"technique": "none"}}


def test_nothing_runs_after_the_first_bug(tmp_path: Path) -> None:
    script = Script([ok(), ok(), refused("disk on fire"), ok()], [DOWN, DOWN, UP])
    outcome = run(tmp_path, script, *BEGIN, op.Add("alpha"), op.Down())
    assert outcome.verdict is Verdict.BUG
    assert outcome.rule == "workers.fails_clearly"
    assert script.executed == [op.Init(), op.Up(), op.Add("alpha")]
    assert outcome.evidence.daemon_log == "the log"
    assert script.closed == 1


def test_a_refusal_that_is_right_goes_on(tmp_path: Path) -> None:
    script = Script(
        [ok(), ok(), refused("Worker 'x' does not exist"), ok()], [DOWN, DOWN, UP, UP, DOWN]
    )
    outcome = run(tmp_path, script, *BEGIN, op.Nuke("x"), op.Down())
    assert [step.verdict.value for step in outcome.steps[3:]] == ["expected", "success"]
    assert outcome.verdict is Verdict.SUCCESS


def test_a_target_that_always_says_yes_never_passes(tmp_path: Path) -> None:
    """Issue: exit 0 for everything, and nothing ever happens."""
    script = Script([ok()] * 9, [picture(state_exists=False, daemons=(), daemon_flag=None)])
    outcome = run(tmp_path, script, *BEGIN, op.Add("alpha"), op.Start("alpha", "x"))
    assert outcome.verdict.is_bug


def test_an_empty_run_is_inconclusive(tmp_path: Path) -> None:
    assert run(tmp_path, Script([], [DOWN])).verdict is Verdict.INCONCLUSIVE


# --- what Mutiny could not do ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        *(BoxError("the box died"), OSError(5, "I/O"), ValueError("embedded null byte")),
        *(KeyError("x"), TypeError("a list"), RecursionError("deep"), OverflowError("large")),
    ],
)
def test_an_operation_that_could_not_be_done_is_inconclusive(
    tmp_path: Path, error: Exception
) -> None:
    outcome = run(tmp_path, Script([error], [DOWN]), common.Reset(), op.Init())
    assert outcome.verdict is Verdict.INCONCLUSIVE
    (doubt, *_) = outcome.steps[-1].inconclusive
    assert type(error).__name__ in doubt


@pytest.mark.parametrize(
    "error", [BoxError("no answer"), TypeError("a list"), RecursionError("deep"), OverflowError()]
)
def test_a_look_that_fails_is_inconclusive(tmp_path: Path, error: Exception) -> None:
    script = Script([ok()], [DOWN, error])
    outcome = run(tmp_path, script, common.Reset(), op.Init())
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "the oracle could not look" in outcome.steps[-1].inconclusive[0]


def test_a_probe_that_fails_is_inconclusive(tmp_path: Path) -> None:
    blind = picture(daemons=None, sessions=None, probe_errors=("tmux: no answer",))
    outcome = run(tmp_path, Script([ok()], [DOWN, blind]), common.Reset(), op.Init())
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "tmux: no answer" in outcome.steps[-1].inconclusive
    assert any("could not read" in doubt for doubt in outcome.steps[-1].inconclusive)


def test_a_fault_that_did_not_fire_is_inconclusive(tmp_path: Path) -> None:
    nothing = refused("no daemon to kill", fired=False)
    script = Script([ok(), ok(), nothing], [DOWN, DOWN, UP])
    outcome = run(tmp_path, script, *BEGIN, op.KillDaemon())
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "no daemon to kill" in outcome.steps[-1].inconclusive[0]


def test_a_judge_that_breaks_down_is_inconclusive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> object:
        raise AssertionError("a mistake of ours")

    monkeypatch.setattr(WorkersContract, "judge", broken)
    outcome = run(tmp_path, Script([ok()], [DOWN]), common.Reset(), op.Init())
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "a mistake of ours" in json.dumps(outcome.steps[-1].as_json())


def test_a_target_that_cannot_start_ends_the_run_and_closes_the_journal(tmp_path: Path) -> None:
    def missing(directory: Path, reset: common.Reset = common.USUAL_WORLD) -> Script:
        raise TargetMissing("not there")

    with pytest.raises(TargetMissing):
        Engine(QUICK, missing, RunDirectory(tmp_path)).run([common.Reset()])
    assert (tmp_path / "operations.jsonl").read_bytes() == b""


def test_a_full_disk_ends_the_run_but_not_the_box_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script([ok()], [DOWN])
    monkeypatch.setattr("os.write", lambda *_: 3)
    with pytest.raises(StoreError):
        run(tmp_path, script, common.Reset(), op.Init())
    assert script.closed == 1


def test_evidence_that_cannot_be_had_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(self: Script) -> Evidence:
        raise BoxError("the box died")

    monkeypatch.setattr(Script, "evidence", gone)
    outcome = run(tmp_path, Script([refused("disk on fire")], [DOWN]), common.Reset(), op.Init())
    assert outcome.verdict is Verdict.BUG
    assert "the box died" in outcome.evidence.daemon_log


# --- lag ------------------------------------------------------------------------------------------


def test_what_heals_within_the_lag_is_no_bug(tmp_path: Path) -> None:
    slow = WorkersContract(Profile(limits=Limits(lag_s=30.0)), PATTERNS)
    twice = picture(view(), agents=(agent(), agent(pid=201)))
    script = Script([ok(), ok(), ok()], [DOWN, DOWN, UP, twice, twice, twice, IDLE])
    outcome = run(tmp_path, script, *BEGIN, op.Add("alpha"), contract=slow)
    assert outcome.verdict is Verdict.SUCCESS
    assert script.waits == 3
    assert outcome.steps[-1].post_state == IDLE.as_json()


def test_what_does_not_heal_is_a_bug(tmp_path: Path) -> None:
    twice = picture(view(), agents=(agent(), agent(pid=201)))
    script = Script([ok(), ok(), ok()], [DOWN, DOWN, UP, twice])
    outcome = run(tmp_path, script, *BEGIN, op.Add("alpha"))
    assert outcome.rule == "workers.one_agent"


@pytest.mark.parametrize(
    "step",
    [
        (op.WaitForIdle("alpha"), OperationResult(1, stderr="?", harness_error="no answer")),
        (op.AssertState("alpha", "idle"), OperationResult(1, harness_error="not readable")),
        (op.KillDaemon(), refused("no daemon to kill", fired=False)),
    ],
    ids=lambda step: step[0].type,
)
def test_what_is_broken_counts_also_where_the_step_itself_proves_nothing(
    tmp_path: Path, step: tuple[Operation, OperationResult]
) -> None:
    twice = picture(view(), agents=(agent(), agent(pid=201)))
    script = Script([ok(), ok(), ok(), step[1]], [DOWN, DOWN, UP, IDLE, twice])
    outcome = run(tmp_path, script, *BEGIN, op.Add("alpha"), step[0])
    assert outcome.rule == "workers.one_agent"
    assert outcome.verdict.is_bug


def test_a_rule_without_lag_does_not_wait(tmp_path: Path) -> None:
    slow = WorkersContract(Profile(limits=Limits(lag_s=30.0)), PATTERNS)
    script = Script([ok()], [DOWN, picture(state_in_place=True, daemons=(), daemon_flag=False)])
    outcome = run(tmp_path, script, common.Reset(), op.Init(), contract=slow)
    assert outcome.rule == "workers.state_atomic"
    assert script.waits == 0


def test_waiting_for_the_target_is_not_mutinys_own_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = WorkersContract(Profile(limits=Limits(lag_s=30.0)), PATTERNS)
    twice = picture(view(), agents=(agent(), agent(pid=201)))
    script = Script([ok(), ok(), ok()], [DOWN, DOWN, UP, twice, IDLE])
    clock = {"now": 0.0}
    monkeypatch.setattr("mutiny.engine.loop.time.perf_counter", lambda: clock["now"])
    monkeypatch.setattr(
        Script, "wait_change", lambda self, _: clock.__setitem__("now", clock["now"] + 2.0)
    )
    outcome = run(tmp_path, script, *BEGIN, op.Add("alpha"), contract=slow)
    assert outcome.steps[-1].own_ms == pytest.approx(0.0)


# --- recovery, choices, tokens, listeners ---------------------------------------------------------


def test_after_a_fault_a_bug_is_a_recovery_bug(tmp_path: Path) -> None:
    killed = ok(fired=True, technique="SIGKILL by handle")
    flagged = picture(daemons=(), daemon_flag=True)
    script = Script([ok(), ok(), killed, refused("what?")], [DOWN, DOWN, UP, flagged])
    outcome = run(tmp_path, script, *BEGIN, op.KillDaemon(), op.Up())
    assert outcome.verdict is Verdict.RECOVERY_BUG


def test_a_timeout_stays_a_timeout(tmp_path: Path) -> None:
    late = OperationResult(None, timed_out=True, duration_ms=30_000)
    outcome = run(tmp_path, Script([late], [DOWN]), common.Reset(), op.Init())
    assert outcome.verdict is Verdict.TIMEOUT
    assert outcome.verdict.exit_code == 4


def test_a_choice_is_made_by_the_seed_and_written_down(tmp_path: Path) -> None:
    choice = common.Choice((common.Sleep(1), common.Sleep(2), common.Sleep(3)))
    taken = set()
    for seed in range(12):
        directory = tmp_path / str(seed)
        directory.mkdir()
        outcome = run(directory, Script([ok()], [DOWN]), common.Reset(), choice, seed=seed)
        again = tmp_path / f"{seed}-again"
        again.mkdir()
        repeated = run(again, Script([ok()], [DOWN]), common.Reset(), choice, seed=seed)
        assert outcome.steps[-1].operation == repeated.steps[-1].operation
        assert isinstance(outcome.steps[-1].operation, common.Sleep)
        taken.add(outcome.steps[-1].operation)
    assert len(taken) == 3


def test_tokens_are_unique_in_a_run_and_the_same_in_its_replay(tmp_path: Path) -> None:
    one, two = picture(view()), picture(view(), view("beta"))
    started = picture(view("alpha", "working"), view("beta"))
    both = picture(view("alpha", "working"), view("beta", "working"))

    def tokens(name: str, seed: int) -> list[str]:
        (tmp_path / name).mkdir()
        script = Script([ok()] * 6, [DOWN, DOWN, UP, one, two, started, both])
        starts = (op.Start("alpha", "x"), op.Start("beta", "x"))
        sequence = (*BEGIN, op.Add("alpha"), op.Add("beta"), *starts)
        steps = run(tmp_path / name, script, *sequence, seed=seed).steps
        return [token for step in steps for token in step.result.tokens]

    first = tokens("first", 7)
    assert len(set(first)) == 2
    assert tokens("replay", 7) == first
    assert not set(tokens("other", 8)) & set(first)


def test_who_goes_on_from_files_gives_no_token_a_second_time(tmp_path: Path) -> None:
    """A recovery speaks to agents that may still show what they were told before."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    start = op.Start("alpha", "x")
    ran = run(tmp_path / "first", Script([ok()], [IDLE]), start, contract=QUICK)
    crashed = OperationResult(0, fired=True)
    goes_on = Engine(
        QUICK,
        lambda directory, reset=common.USUAL_WORLD: Script([ok()], [IDLE]),
        RunDirectory(tmp_path / "second"),
    )
    later = goes_on.resume(
        (beliefs(model(belief())), IDLE), common.Sleep(), crashed, [start], earlier_steps=ran.steps
    )
    first, second = ran.steps[0].result.tokens, later.steps[0].result.tokens
    assert first
    assert second
    assert set(first).isdisjoint(second)


def resumed(directory: Path, before: Observation | None, left: Observation) -> Outcome:
    """A doctor was killed, and `left` is what is found then."""
    directory.mkdir()
    live = Script([ok()], [left])
    engine = Engine(QUICK, lambda box, reset=common.USUAL_WORLD: live, RunDirectory(directory))
    cut_off = OperationResult(0, fired=True, inner=(OperationResult(None, signal=9),))
    believed = beliefs(model(belief()))
    return engine.resume((believed, before), common.KillAt(op.Doctor(), 3), cut_off, [op.Doctor()])


def test_what_a_run_goes_on_from_is_held_to_every_promise(tmp_path: Path) -> None:
    lost = replace(IDLE, commits=(Commit(SHA, (), on_default=True),), default_head=SHA)
    broken = resumed(tmp_path / "broken", IDLE, lost)
    assert broken.rule == "workers.default_moves_forward"
    assert [step.operation.type for step in broken.steps] == ["KillAt"]
    assert len(broken.directory.journal_path.read_text().splitlines()) == 1
    for name, before, left in (("whole", IDLE, IDLE), ("nobody looked", None, lost)):
        passed = resumed(tmp_path / name, before, left)
        assert [step.operation.type for step in passed.steps] == ["Doctor"]


def test_listeners_hear_of_every_step_twice(tmp_path: Path) -> None:
    heard: list[tuple[int, bool]] = []
    run(
        tmp_path,
        Script([ok()], [DOWN]),
        common.Reset(),
        op.Init(),
        listeners=(lambda event: heard.append((event.sequence_id, event.step is not None)),),
    )
    assert heard == [(1, False), (1, True), (2, False), (2, True)]


def test_a_reset_in_the_middle_makes_a_new_box(tmp_path: Path) -> None:
    boxes: list[Script] = []

    def make(directory: Path, reset: common.Reset = common.USUAL_WORLD) -> Script:
        boxes.append(Script([ok()], [DOWN]))
        return boxes[-1]

    sequence = (common.Reset(), op.Init(), common.Reset(), op.Init())
    outcome = Engine(QUICK, make, RunDirectory(tmp_path)).run(sequence)
    assert outcome.verdict is Verdict.SUCCESS, "the second init is legal: the workspace is new"
    assert [box.closed for box in boxes] == [1, 1]


def test_a_run_may_begin_without_a_reset(tmp_path: Path) -> None:
    outcome = run(tmp_path, Script([ok()], [DOWN]), op.Init())
    assert outcome.verdict is Verdict.SUCCESS


# --- what runs in any case ------------------------------------------------------------------------


class Interrupted(Script):
    """Ctrl-C in the middle of a command."""

    def execute(self, operation: Operation, context: StepContext) -> OperationResult:
        if isinstance(operation, op.Doctor):
            self.executed.append(operation)
            raise KeyboardInterrupt
        return super().execute(operation, context)


def always(directory: Path, script: Script, *operations: Operation) -> Outcome:
    engine = Engine(
        QUICK, lambda directory, reset=common.USUAL_WORLD: script, RunDirectory(directory)
    )
    return engine.run(operations, always=(op.Down(), op.Status()))


def test_what_runs_always_runs_after_a_bug_and_changes_no_verdict(tmp_path: Path) -> None:
    script = Script([ok(), refused("boom"), ok(), ok()], [DOWN, DOWN, UP, DOWN])
    outcome = always(tmp_path, script, common.Reset(), op.Init(), op.Up())
    assert outcome.verdict.is_bug
    assert outcome.failed_step is not None
    assert isinstance(outcome.failed_step.operation, op.Up)
    assert [type(step.operation) for step in outcome.rollback] == [op.Down, op.Status]
    assert script.executed[-2:] == [op.Down(), op.Status()]
    lines = (tmp_path / "operations.jsonl").read_text().splitlines()
    assert [json.loads(line)["sequence_id"] for line in lines] == [1, 2, 3, 4, 5]


def test_a_promise_that_only_the_rollback_breaks_is_broken(tmp_path: Path) -> None:
    script = Script([ok(), refused("boom"), ok()], [DOWN, DOWN, DOWN])
    engine = Engine(
        QUICK, lambda directory, reset=common.USUAL_WORLD: script, RunDirectory(tmp_path)
    )
    outcome = engine.run((common.Reset(), op.Init()), always=(op.Status(), op.Down()))
    assert outcome.verdict.is_bug
    assert outcome.failed_step is not None
    assert isinstance(outcome.failed_step.operation, op.Status)
    assert [type(step.operation) for step in outcome.rollback] == [op.Down]


def test_what_runs_always_runs_after_an_interrupt(tmp_path: Path) -> None:
    script = Interrupted([ok(), ok(), ok(), ok()], [DOWN, DOWN])
    with pytest.raises(KeyboardInterrupt):
        always(tmp_path, script, common.Reset(), op.Init(), op.Doctor(), op.Up())
    assert script.executed == [op.Init(), op.Doctor(), op.Down(), op.Status()]
    assert script.closed == 1


def test_what_runs_always_runs_after_success_too(tmp_path: Path) -> None:
    script = Script([ok(), ok(), ok()], [DOWN])
    outcome = always(tmp_path, script, common.Reset(), op.Init())
    assert outcome.verdict is Verdict.SUCCESS
    assert len(outcome.rollback) == 2
