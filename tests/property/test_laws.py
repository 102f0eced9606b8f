"""Laws that hold for all inputs: codec, minimiser, model and generator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import (
    CONTRACT,
    OK,
    REFUSED,
    UNKNOWN,
    advance,
    belief,
    check_state,
    judge_answer,
    model,
    picture,
    view,
)
from mutiny.codec import decode_operation
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.model import WorkerBelief, WorkersModel
from mutiny.contracts.workers.observation import Observation, WorkerView
from mutiny.contracts.workers.operations import CORRUPTIONS, OPERATIONS, STATUSES
from mutiny.contracts.workers.outcomes import expect
from mutiny.contracts.workers.profile import Profile
from mutiny.engine.minimise import Budget, minimise
from mutiny.errors import FormatError
from mutiny.kit import operations as common
from mutiny.kit.operations import LEAST_S
from mutiny.model.domain import MOST_SECONDS
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict, worst

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# --- strategies -----------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8"), max_size=30)
workers = st.sampled_from(("alpha", "beta", "al", "nobody"))
seconds = st.floats(LEAST_S, MOST_SECONDS, allow_nan=False)
statuses = st.sampled_from(STATUSES)
limits = st.none() | seconds

commands: st.SearchStrategy[Operation] = st.one_of(
    st.sampled_from((op.Init(), op.Up(), op.Down(), op.Status())),
    st.builds(op.Add, workers, texts),
    st.builds(op.Start, workers, texts),
    st.builds(op.Message, workers, texts),
    st.builds(op.Reject, texts),
    st.builds(op.Doctor, st.booleans(), st.booleans()),
    *(
        st.builds(cls, workers)
        for cls in (op.Nuke, op.Attach, op.Review, op.Accept, op.Rebase, op.ResetWorker)
    ),
)
own_steps: st.SearchStrategy[Operation] = st.one_of(
    st.sampled_from((common.Reset(), common.Settle(), op.KillDaemon(), op.KillTmuxServer())),
    st.builds(common.Sleep, seconds),
    st.builds(op.Behave, workers, st.lists(texts, min_size=1, max_size=3).map(tuple)),
    st.builds(op.WaitForState, workers, statuses, limits),
    st.builds(op.WaitForIdle, workers, limits),
    st.builds(op.WaitForNeedsReview, workers, limits),
    st.builds(op.AssertState, workers, statuses),
    st.builds(op.AssertOnTop, workers),
    st.builds(op.AssertAuthor, workers),
    st.builds(op.AssertWorkerExists, workers),
    st.builds(op.AssertSessionAlive, workers),
    st.builds(op.KillTmuxSession, workers),
    st.builds(op.KillAgent, workers),
    st.builds(op.CorruptState, st.sampled_from(CORRUPTIONS)),
    st.builds(op.DirtySource, st.booleans()),
    st.builds(op.MoveSource, texts),
)
simple = commands | own_steps
operations: st.SearchStrategy[Operation] = st.one_of(
    simple,
    st.builds(common.ExpectError, commands),
    st.builds(common.Choice, st.lists(simple, min_size=1, max_size=3).map(tuple)),
    st.builds(common.Parallel, st.lists(commands, min_size=2, max_size=3).map(tuple)),
    st.builds(common.CrashAt, commands, st.integers(0, 99)),
    st.builds(common.KillAt, commands, st.integers(0, 99)),
    st.builds(common.FullAt, commands, st.integers(0, 99)),
    st.builds(common.FailAt, commands, st.integers(0, 99), st.sampled_from(common.ERRNOS)),
    st.builds(
        op.PauseProcess,
        st.sampled_from(("daemon", "tmux", "agent")),
        seconds,
        workers,
        st.none() | commands,
    ),
)

behaviours = st.lists(
    st.sampled_from(("obey", "slow:5", "hang", "give-up", "exit")), min_size=1, max_size=2
).map(tuple)
profiles = st.builds(
    Profile,
    start_is_immediate=st.booleans(),
    restarts_agents_on_up=st.booleans(),
    extra_moves=st.dictionaries(statuses, st.lists(statuses, max_size=2).map(tuple), max_size=2),
)


@st.composite
def beliefs(draw: st.DrawFn, name: str) -> WorkerBelief:
    some = draw(st.frozensets(st.sampled_from([s for s in STATUSES if s != "offline"]), min_size=1))
    return belief(
        name,
        *some,
        offline_allowed=draw(st.booleans()),
        hits=draw(st.integers(0, 3)),
        behaviours=draw(behaviours),
        tokens=draw(st.lists(st.sampled_from(("t1", "t2")), max_size=2, unique=True).map(tuple)),
        stale_base=draw(st.booleans()),
        disturbed=draw(st.none() | st.just("KillAgent")),
        due_at=draw(st.none() | st.just(1.0)),
    )


@st.composite
def models(draw: st.DrawFn) -> WorkersModel:
    known = [
        draw(beliefs(name)) for name in draw(st.sampled_from(((), ("alpha",), ("alpha", "beta"))))
    ]
    return model(
        *known,
        initialised=draw(st.booleans()),
        daemon=draw(
            st.sampled_from((frozenset({True}), frozenset({False}), frozenset({True, False})))
        ),
        profile=draw(profiles),
        last_reviewed=draw(st.none() | workers),
        review_used=draw(st.booleans()),
        source_dirty=draw(st.sampled_from(("", "edit", "merge", "untracked"))),
        state_damaged=draw(st.booleans()),
    )


@st.composite
def pictures(draw: st.DrawFn) -> Observation:
    def one(name: str) -> WorkerView:
        return view(name, draw(statuses))

    names = draw(st.sampled_from(((), ("alpha",), ("alpha", "beta"), ("al", "alpha"))))
    seen = picture(*(one(name) for name in names))
    if draw(st.booleans()):
        seen = replace(seen, agents=draw(st.sampled_from(((), None))))
    return replace(seen, daemons=draw(st.sampled_from((seen.daemons, (), None))))


results = st.builds(
    OperationResult,
    st.sampled_from((0, 1, 2, None)),
    stderr=st.sampled_from(
        (
            "",
            "Worker 'x' does not exist",
            "Daemon is not running",
            "disk on fire",
            "Traceback (most",
        )
    ),
    signal=st.none() | st.just(9),
    timed_out=st.booleans(),
    fired=st.sampled_from((None, True, False)),
    harness_error=st.none() | st.just("the box died"),
    tokens=st.sampled_from(((), ("t9",))),
)


# --- codec ----------------------------------------------------------------------------------------


@quick
@given(operations)
def test_every_operation_survives_being_written_down(operation: Operation) -> None:
    text = json.dumps(operation.as_json())
    again = decode_operation(json.loads(text), OPERATIONS, where="law")
    assert again == operation
    assert "\n" not in operation.short()
    assert len(operation.short()) <= len(str(operation)) or "..." in operation.short()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@quick
@given(
    json_values
    | st.fixed_dictionaries({"type": st.sampled_from(sorted(OPERATIONS)), "args": json_values})
    | st.fixed_dictionaries(
        {
            "type": st.sampled_from(sorted(OPERATIONS)),
            "args": st.dictionaries(
                st.sampled_from(("worker", "seconds", "turns", "inner", "options", "status", "x")),
                json_values,
                max_size=3,
            ),
        }
    )
)
def test_no_data_brings_the_reader_down(data: object) -> None:
    """Either an operation or a list of mistakes, never another exception."""
    made: Operation | None = None
    problems: tuple[str, ...] = ()
    try:
        made = decode_operation(data, OPERATIONS, where="law")
    except FormatError as error:
        problems = error.problems
    assert isinstance(made, Operation) != bool(problems)
    assert all(problem.isprintable() for problem in problems)


# --- minimiser ------------------------------------------------------------------------------------

ALL = tuple(op.Message("w", str(number)) for number in range(14))
subsets = st.sets(st.integers(0, 13), max_size=5)


def contains(candidate: tuple[Operation, ...], wanted: set[int]) -> bool:
    return {ALL[number] for number in wanted} <= set(candidate)


@quick
@given(st.lists(subsets, min_size=1, max_size=3))
def test_monotone_failures_are_shrunk_to_one_minimal_sequence(causes: list[set[int]]) -> None:
    """Fails when any one cause is complete: what is found fails, and not one step less would."""

    def fails(candidate: tuple[Operation, ...]) -> bool:
        return any(contains(candidate, cause) for cause in causes)

    found = minimise(ALL, fails, budget=Budget(10_000, 10_000, 1, 1))
    assert fails(found.operations)
    assert found.complete
    rest: Iterator[Operation] = iter(ALL)
    assert all(item in rest for item in found.operations), "a subsequence of the input"
    for index in range(len(found.operations)):
        assert not fails(found.operations[:index] + found.operations[index + 1 :])


@quick
@given(st.integers(0, 2**32), st.integers(0, 40))
def test_whatever_the_predicate_says_the_result_fails_and_is_not_longer(
    salt: int, runs: int
) -> None:
    def fails(candidate: tuple[Operation, ...]) -> bool:
        return hash((salt, candidate)) % 3 == 0 or candidate == ALL

    found = minimise(ALL, fails, budget=Budget(runs, 10_000, 1, 1))
    assert fails(found.operations)
    assert len(found.operations) <= len(ALL)
    assert found.runs <= runs


@quick
@given(st.integers(0, 10_000), st.integers(0, 3))
def test_simplified_sequences_stay_plausible_and_get_no_longer(seed: int, keep: int) -> None:
    sequence = CONTRACT.generate(seed, 12)
    kind = type(sequence[4 + keep])

    def fails(candidate: tuple[Operation, ...]) -> bool:
        return any(type(item) is kind for item in candidate)

    def plausible(candidate: tuple[Operation, ...]) -> bool:
        return CONTRACT.plausible(candidate, sequence)

    found = minimise(
        sequence,
        fails,
        plausible=plausible,
        simpler=CONTRACT.simpler,
        budget=Budget(60, 10_000, 1, 1),
    )
    assert fails(found.operations)
    assert len(found.operations) <= len(sequence)
    assert found.operations == sequence or plausible(found.operations)


# --- model ----------------------------------------------------------------------------------------

sets = st.frozensets(statuses, min_size=1)


@quick
@given(profiles, beliefs("alpha"), sets, sets)
def test_the_closure_is_extensive_idempotent_and_monotone(
    profile: Profile, worker: WorkerBelief, some: frozenset[str], more: frozenset[str]
) -> None:
    believed = model(worker, profile=profile)
    closed = believed.closure(some, worker)
    assert some <= closed
    assert believed.closure(closed, worker) == closed
    assert closed <= believed.closure(some | more, worker)
    assert believed.closure(some | more, worker) == closed | believed.closure(more, worker)


@quick
@given(models(), pictures())
def test_seeing_never_widens(believed: WorkersModel, seen: Observation) -> None:
    after = believed.see(seen)
    assert set(after.workers) == set(believed.workers)
    for name in believed.workers:
        assert after.allowed(name) <= believed.allowed(name)
        assert after.possible(name, seen.status_of(name)) <= believed.allowed(name)
    assert after.work == believed.work
    if seen.daemons is None:
        assert after.daemon == believed.daemon
    assert after.see(seen) == after


@quick
@given(models(), operations)
def test_a_refusal_without_a_look_changes_nothing(
    believed: WorkersModel, operation: Operation
) -> None:
    after = advance(believed, operation, REFUSED, tokens=("t9",), now=5.0)
    # That a damaged state was not repaired when it was asked for is remembered, and nothing else.
    assert replace(after, repair_asked=believed.repair_asked) == believed


@quick
@given(models(), operations, st.sampled_from((OK, REFUSED, UNKNOWN)), st.none() | pictures())
def test_the_model_survives_every_answer(
    believed: WorkersModel, operation: Operation, outcome: str, seen: Observation | None
) -> None:
    after = advance(believed, operation, outcome, tokens=("t9",), now=5.0, seen=seen)
    for worker in after.workers.values():
        assert worker.statuses, "somewhere the worker must be"
        assert worker.statuses <= set(STATUSES)
        assert "offline" not in worker.statuses or "offline" in str(believed.profile.extra_moves)
    expectation = expect(after, operation, seen)
    assert expectation.success or expectation.rejections


@quick
@given(models(), operations, results, pictures(), pictures())
def test_every_answer_gets_a_verdict(
    believed: WorkersModel,
    operation: Operation,
    result: OperationResult,
    before: Observation,
    seen: Observation,
) -> None:
    parts = max(len(operation.children()), 1)
    whole = replace(result, inner=(result,) * parts)
    answer = judge_answer(believed, operation, whole, before, seen, CONTRACT.patterns, 5.0)
    verdict, violation = answer.verdict, answer.violation
    if violation is not None:
        assert violation.rule in CONTRACT.rules
        assert verdict.stops_run
    if verdict.is_bug:
        assert violation is not None
    if result.harness_error is not None:
        assert verdict is Verdict.INCONCLUSIVE


@quick
@given(models(), operations, st.booleans(), pictures(), pictures())
def test_no_picture_brings_a_rule_down(
    believed: WorkersModel,
    operation: Operation,
    succeeded: bool,
    before: Observation,
    seen: Observation,
) -> None:
    broken, unreadable = check_state(believed, operation, succeeded, before, seen, {})
    assert {item.violation.rule for item in broken} <= set(CONTRACT.rules)
    assert [text for text in unreadable if "the rule itself failed" in text] == []


@quick
@given(models(), pictures())
def test_what_is_pending_is_told_in_words(believed: WorkersModel, seen: Observation) -> None:
    assert all(text.strip() for text in believed.pending(seen))


@given(st.lists(st.sampled_from(Verdict)))
def test_a_run_is_never_better_than_its_worst_step(verdicts: list[Verdict]) -> None:
    whole = worst(verdicts)
    assert (whole.exit_code == 0) == (
        bool(verdicts) and all(verdict.exit_code == 0 for verdict in verdicts)
    )
    assert whole is worst(reversed(verdicts))


# --- generator ------------------------------------------------------------------------------------


@quick
@given(st.integers(-(2**63), 2**63), st.integers(0, 40), profiles)
def test_generated_sequences_survive_being_written_down(
    seed: int, length: int, profile: Profile
) -> None:
    contract = replace(CONTRACT, profile=profile)
    sequence = contract.generate(seed, length)
    text = json.dumps([item.as_json() for item in sequence])
    again = tuple(decode_operation(item, OPERATIONS, where="law") for item in json.loads(text))
    assert again == sequence == contract.generate(seed, length)
    assert isinstance(sequence[0], common.Reset)
    assert sequence[-4:] == (common.Settle(), op.Doctor(), op.Status(), op.Down())
