"""Laws that every contract and every wrapper around one keeps, whatever it is about."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from builders import PATTERNS, TRACEBACK
from mutiny.contracts.board.contract import BoardContract
from mutiny.contracts.board.profile import BoardProfile
from mutiny.contracts.catalogue import language_of
from mutiny.contracts.plain.contract import PlainContract
from mutiny.contracts.session.contract import SessionContract
from mutiny.contracts.spawns.contract import SpawnsContract
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.experiments.instrumented import InstrumentedContract
from mutiny.experiments.recorder import Recorder
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.base import ContractBase
from mutiny.kit.beliefs import Beliefs
from mutiny.kit.contract import AnyContract, Contract
from mutiny.kit.judging import Judge
from mutiny.kit.outcome import Outcome
from mutiny.model.operation import Kind, Operation, walk
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.targets.registry import find_spec, shipped
from sampling import sampled

sys.path.insert(0, str(Path(__file__).parents[1] / "toy"))
from counter_contract.contract import CounterContract

NOW = 1000.0
TEXTS = {
    name: patterns[0].replace(".*", "x").replace("s?", "s") for name, patterns in PATTERNS.items()
}
"""A text of each class of refusals that the workers' patterns know."""
PLAIN: dict[str, ContractBase[Any, Any]] = {
    "plain": PlainContract(),
    "workers": WorkersContract(patterns=PATTERNS),
    "board": BoardContract(),
    "board with a server": BoardContract(BoardProfile(server=True)),
    "spawns": SpawnsContract(),
    "session": SessionContract(),
    "counter": CounterContract(),
}
EVERY: dict[str, AnyContract] = {
    **PLAIN,
    **{
        f"{name} in an experiment": InstrumentedContract(
            contract, language_of(contract.name), Recorder()
        )
        for name, contract in PLAIN.items()
        if contract.name != "counter"
    },
}
PROMISING = {name: contract for name, contract in PLAIN.items() if contract.rules}
every = pytest.mark.parametrize("contract", EVERY.values(), ids=EVERY)
promising = pytest.mark.parametrize("contract", PROMISING.values(), ids=PROMISING)

ENDINGS = {
    "success": OperationResult(0),
    "refusal": OperationResult(1, stderr=TEXTS["no_such_worker"]),
    "unknown text": OperationResult(1, stderr="hm"),
    "silence": OperationResult(3),
    "Python crash": OperationResult(1, stderr=TRACEBACK),
    "Rust panic": OperationResult(
        101, stderr="thread 'main' panicked at src/state.rs:142:9:\ncalled `Option::unwrap()`"
    ),
    "Go panic": OperationResult(2, stderr="panic: boom\n\ngoroutine 1 [running]:\nmain.main()\n"),
    "Node error": OperationResult(
        1,
        stderr="/a/b.js:3\n  throw x\n  ^\n\nError: boom\n    at f (/a/b.js:3:9)\n\nNode.js v20\n",
    ),
    "out of time": OperationResult(None, timed_out=True, signal=9),
    "killed": OperationResult(None, signal=9),
    "not carried out": OperationResult(None, harness_error="the box is gone"),
}
CRASHES = ("Python crash", "Rust panic", "Go panic", "Node error", "killed")


def whole(operation: Operation, part: OperationResult, *, fired: bool = True) -> OperationResult:
    """The result of an operation whose parts all ended like this."""
    return replace(
        part,
        fired=fired if operation.kind is Kind.FAULT else None,
        inner=(part,) * _parts(operation),
    )


def _parts(operation: Operation) -> int:
    return len(operation.children())


_ASKED: dict[int, tuple[AnyContract, list[Operation]]] = {}
"""With the contract itself: the number of one that is gone may come to mean another."""


def asked(contract: AnyContract) -> list[Operation]:
    """Each operation of the scenarios and of two explored runs, up to three times by type."""
    if id(contract) not in _ASKED:
        _ASKED[id(contract)] = (contract, _asked(contract))
    return _ASKED[id(contract)][1]


def _asked(contract: AnyContract) -> list[Operation]:
    found: dict[str, list[Operation]] = {}
    runs = [*contract.scenarios.values(), *(contract.generate(seed, 30) for seed in (1, 2))]
    for operation in (one for run in runs for one in run):
        known = found.setdefault(operation.type, [])
        if operation not in known and len(known) < 3 and not isinstance(operation, common.Choice):
            known.append(operation)
    listed = [one for each in found.values() for one in each]
    commands = [one for one in listed if one.kind is Kind.COMMAND]
    for command in commands[:4]:
        listed += [common.KillAt(command, 1), common.CrashAt(command, 1), common.Trace(command)]
        listed += [common.KillDuring(command, 5.0), faults.FillDisk(during=command)]
        listed.append(common.ExpectError(command))
    return listed or [common.Sleep(0.0)]


# --- all contracts and all wrappers -----------------------------------------------------------------


@every
def test_it_answers_everything_that_the_engine_asks(contract: AnyContract) -> None:
    for name in vars(Contract):
        if not name.startswith("_"):
            assert hasattr(contract, name), name


@every
def test_nobody_is_accused_before_anything_ran(contract: AnyContract) -> None:
    nothing, beliefs = contract.nothing_seen(), contract.initial()
    for operation in (common.Reset(), common.Sleep(0.0), *asked(contract)[:20]):
        checked = contract.check(beliefs, operation, False, nothing, nothing)
        assert (checked.broken, checked.settling) == ((), ()), operation
    assert contract.pending(beliefs, nothing) == ()
    assert contract.disturbed(beliefs) == ()


@every
@pytest.mark.parametrize("ending", sampled(ENDINGS, every=3))
def test_every_ending_of_every_operation_gets_a_verdict(contract: AnyContract, ending: str) -> None:
    nothing, beliefs = contract.nothing_seen(), contract.initial()
    for operation in asked(contract):
        for fired in (True, False):
            result = whole(operation, ENDINGS[ending], fired=fired)
            answered = contract.judge(beliefs, operation, result, nothing, nothing, NOW)
            if answered.violation is not None:
                assert answered.violation.rule in contract.rules, (operation, answered)
                assert answered.verdict.stops_run
            assert answered.violation is not None or not answered.verdict.is_bug
            if result.harness_error is not None:
                assert answered.verdict is Verdict.INCONCLUSIVE, operation
            assert contract.see(answered.model, nothing) is not None
            assert contract.coverage(operation, nothing, answered.verdict, beliefs) is not None


@every
def test_the_same_answer_is_judged_the_same_way_again(contract: AnyContract) -> None:
    nothing, beliefs = contract.nothing_seen(), contract.initial()
    for operation in asked(contract):
        result = whole(operation, ENDINGS["success"], fired=True)
        first = contract.judge(beliefs, operation, result, nothing, nothing, NOW)
        assert first == contract.judge(beliefs, operation, result, nothing, nothing, NOW)


@every
def test_a_fault_that_did_not_fire_is_never_a_pass(contract: AnyContract) -> None:
    nothing = contract.nothing_seen()
    for operation in asked(contract):
        if operation.kind is Kind.FAULT and not isinstance(operation, common.KillDuring):
            result = OperationResult(0, fired=False)
            answered = contract.judge(contract.initial(), operation, result, nothing, nothing, NOW)
            assert answered.verdict is Verdict.INCONCLUSIVE, operation


@every
def test_a_choice_is_one_of_its_options_and_a_reset_begins_anew(contract: AnyContract) -> None:
    first, second = common.Sleep(0.1), common.Sleep(0.2)
    chosen = contract.resolve(common.Choice((first, second)), lambda options: options[-1])
    assert chosen == second
    assert contract.resolve(first, lambda options: second) == first
    assert contract.starts_afresh(common.Reset())
    assert not contract.starts_afresh(first)


@every
def test_a_sequence_is_a_function_of_its_seed(contract: AnyContract) -> None:
    assert contract.generate(7, 20) == contract.generate(7, 20)
    known = {**contract.operations, **{one.__name__: one for one in faults.FAULTS}}
    for operation in contract.generate(7, 20):
        assert {part.type for part in walk(operation)} <= set(known)


@pytest.mark.parametrize("name", sampled(shipped(), every=5))
def test_a_target_file_gives_a_contract_that_keeps_the_laws(name: str) -> None:
    contract: AnyContract = find_spec(name)[0].make_contract("double")
    test_it_answers_everything_that_the_engine_asks(contract)
    test_nobody_is_accused_before_anything_ran(contract)
    test_a_fault_that_did_not_fire_is_never_a_pass(contract)
    for ending in ("success", "Go panic", "out of time"):
        test_every_ending_of_every_operation_gets_a_verdict(contract, ending)


# --- contracts that promise something ---------------------------------------------------------------


@dataclass(frozen=True)
class Reached:
    """A command in a state that a scenario reaches."""

    model: Any
    command: Operation
    outcomes: Sequence[Outcome[Any]]


def judge_of(contract: ContractBase[Any, Any]) -> Judge[Any, Any]:
    nothing = contract.nothing_seen()
    return contract.judge_class(contract, nothing, nothing, NOW)


def reached(contract: ContractBase[Any, Any]) -> Iterator[Reached]:
    """Walk through every scenario as a target would that does what is right."""
    judge, counted = judge_of(contract), dict[str, int]()
    for sequence in contract.scenarios.values():
        model = contract.first_model()
        for operation in sequence:
            if operation.kind is not Kind.COMMAND:
                if not operation.children():
                    model = judge.follows(model, operation, judge.moment(OperationResult()))[0]
                continue
            moment = judge.moment(OperationResult())
            right = contract.outcomes(model, operation, moment)
            key = f"{operation.type} {len(right)} {right[0].success}"
            counted[key] = counted.get(key, 0) + 1
            if counted[key] <= 2:
                yield Reached(model, operation, right)
            model = next((one.after for one in right if one.success), right[0].after)


def said(contract: ContractBase[Any, Any], outcome: Outcome[Any]) -> OperationResult | None:
    """What a target prints that goes this way; None: its refusals are nobody's words."""
    if outcome.success:
        answer = {"ok": True} if outcome.task is None else {"ok": True, "task": outcome.task}
        return OperationResult(0, details={"answer": answer})
    for word in sorted(outcome.refusals):
        if contract.name != "workers":
            details = {"answer": {"ok": False, "error": word, "message": word}}
            return OperationResult(1, stderr=word, details=details)
        if word in TEXTS:
            return OperationResult(1, stderr=TEXTS[word])
    return None


@promising
def test_every_command_has_a_right_outcome(contract: ContractBase[Any, Any]) -> None:
    found = list(reached(contract))
    assert len({one.command.type for one in found}) >= 3
    for one in found:
        assert one.outcomes, one.command


@promising
def test_what_an_outcome_says_is_what_is_believed_after_its_answer(
    contract: ContractBase[Any, Any],
) -> None:
    judge, told = judge_of(contract), 0
    for one in reached(contract):
        for outcome in one.outcomes:
            result = said(contract, outcome)
            if result is None or "broken_off" in outcome.refusals:
                continue
            judged = judge.judge(one.model, one.command, result)
            expected = Verdict.SUCCESS if outcome.success else Verdict.EXPECTED
            assert (judged.verdict, judged.violation) == (expected, None), one.command
            learned = contract.learn(
                one.model, outcome.after, one.command, contract.read(result), judge.moment(result)
            )
            assert learned.see(judge.seen) in judged.models, one.command
            told += 1
    assert told >= 5


@promising
def test_an_unknown_outcome_holds_what_was_and_all_that_may_be(
    contract: ContractBase[Any, Any],
) -> None:
    judge = judge_of(contract)
    for one in reached(contract):
        moment = replace(judge.moment(OperationResult()), seen=None)
        worlds = judge.unknown(one.model, one.command, moment)
        possible = [
            one.model,
            *(way.after for way in contract.outcomes(one.model, one.command, moment)),
        ]
        outlines = {world.outline() for world in worlds}
        for way in possible:
            assert way in worlds or way.outline() in outlines - {None}, one.command
        killed = OperationResult(None, signal=9)
        point = common.KillAt(one.command, 0)
        broken_off = judge.judge(one.model, point, replace(killed, fired=True, inner=(killed,)))
        assert broken_off.verdict is Verdict.SUCCESS
        assert len(broken_off.models) >= 1


@promising
@pytest.mark.parametrize("crash", CRASHES)
def test_a_crash_is_a_crash_in_every_language(contract: ContractBase[Any, Any], crash: str) -> None:
    nothing = contract.nothing_seen()
    for one in reached(contract):
        answered = contract.judge(
            Beliefs((one.model,)), one.command, ENDINGS[crash], nothing, nothing, NOW
        )
        assert answered.violation is not None, one.command
        assert answered.violation.rule == f"{contract.name}.no_crash"


@promising
def test_after_giving_up_only_what_is_wrong_in_any_case_is_accused(
    contract: ContractBase[Any, Any],
) -> None:
    nothing, tried = contract.nothing_seen(), 0
    for one in reached(contract):
        guessed = Beliefs((replace(one.model, guessed=True),))
        if not any(way.success for way in one.outcomes):
            sure = contract.judge(
                Beliefs((one.model,)), one.command, OperationResult(0), nothing, nothing, NOW
            )
            answered = contract.judge(
                guessed, one.command, OperationResult(0), nothing, nothing, NOW
            )
            assert sure.verdict is Verdict.BUG, one.command
            certain = sure.violation is not None and sure.violation.rule.rpartition(".")[2] in (
                contract.judge_class.certain
            )
            assert answered.verdict is (Verdict.BUG if certain else Verdict.INCONCLUSIVE)
            tried += 1
        crashed = contract.judge(guessed, one.command, ENDINGS["Rust panic"], nothing, nothing, NOW)
        assert crashed.verdict is Verdict.BUG
    assert tried or contract.name == "counter"


@promising
def test_a_rule_that_breaks_down_is_a_doubt(
    contract: ContractBase[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mutiny.kit.checking import StateRule

    def broken(check: object) -> list[Any]:
        raise KeyError("x")

    monkeypatch.setattr(
        type(contract), "state_rules", lambda self, check: (StateRule("it", broken),)
    )
    nothing = contract.nothing_seen()
    checked = contract.check(contract.initial(), common.Sleep(0.0), True, nothing, nothing)
    assert (checked.broken, checked.settling) == ((), ())
    assert "it: the rule itself failed with KeyError('x')" in checked.unreadable
