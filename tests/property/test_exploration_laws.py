"""Laws of exploration, for every contract: what is declared occurs, and a seed says everything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from mutiny.codec import decode_operation
from mutiny.contracts.board.contract import BoardContract
from mutiny.contracts.plain.contract import PlainContract
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.kit import operations as common
from mutiny.kit.domains import (
    BAD_INPUT,
    ROOTS,
    STRANGE_NAMES,
    STRANGE_TEXTS,
    TEXTS,
    plain_name,
    strange,
)
from mutiny.kit.exploring import Explored, Scene, refusals
from mutiny.kit.surroundings import SURROUNDINGS
from mutiny.model.operation import Kind, Operation, walk
from mutiny.seeds import stream
from mutiny.targets.registry import find_target

pytestmark = pytest.mark.usefixtures("by_chance_alone")

SEEDS = range(190)
LENGTH = 30
Run = tuple[Operation, ...]
TARGETS = (
    "longboat",
    pytest.param("longboat-board", marks=pytest.mark.slow),
    pytest.param("longboat-broker", marks=pytest.mark.slow),
)
NEVER_SERVED_AGAIN = {"Init"}
"""A box is made once: inside a fault it would be refused."""


@cache
def contract(target: str) -> Any:
    return find_target(target).contract()


@cache
def runs(target: str) -> tuple[Run, ...]:
    return tuple(contract(target).generate(seed, LENGTH) for seed in SEEDS)


@cache
def declared(target: str) -> Explored:
    found: Explored = contract(target).explored()
    return found


def everything(target: str) -> Iterator[Operation]:
    for run in runs(target):
        for operation in run:
            yield from walk(operation)


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_seed_gives_the_same_sequence_and_another_one_another(target: str) -> None:
    assert [contract(target).generate(seed, LENGTH) for seed in range(10)] == list(
        runs(target)[:10]
    )
    assert len(set(runs(target))) == len(SEEDS)


@pytest.mark.parametrize("target", TARGETS)
def test_every_sequence_can_be_written_down_and_read_again(target: str) -> None:
    known = contract(target).operations
    for run in runs(target)[:15]:
        text = json.dumps([item.as_json() for item in run])
        assert tuple(decode_operation(item, known, where="law") for item in json.loads(text)) == run


@pytest.mark.parametrize("target", TARGETS)
def test_every_sequence_is_plausible(target: str) -> None:
    for seed, run in enumerate(runs(target)[:15]):
        assert contract(target).plausible(run, ()), f"seed {seed}"


@pytest.mark.parametrize("target", TARGETS)
def test_every_declared_operation_occurs(target: str) -> None:
    explored = declared(target)
    wanted = {move.make.__name__ for move in explored.moves} | {
        fault.fault.__name__ for fault in explored.around
    }
    seen = {operation.type for operation in everything(target)}
    lacking = {move.make.__name__ for move in explored.moves if not _supported(target, move.make)}
    assert wanted - seen - lacking == set()


def _supported(target: str, make: type[Operation]) -> bool:
    return make.__name__ not in getattr(contract(target).profile, "lacks", ())


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_every_command_that_can_be_refused_is_refused_in_every_wrong_state(target: str) -> None:
    """Over all seeds: what was once sure to be refused was also tried, in each state it can meet."""
    explored = declared(target)
    possible: dict[tuple[str, str], int] = {}
    tried: set[tuple[str, str]] = set()
    for seed, run in enumerate(runs(target)):
        way = contract(target).walk()
        scene = Scene(way, stream(seed, "law"), _names(explored, run))
        for step, operation in enumerate(run[1:]):
            inner = operation.inner if isinstance(operation, common.ExpectError) else operation
            if inner.kind is Kind.COMMAND and way.served(inner) is False:
                tried.add((inner.type, way.situation(inner)))
            way.apply(operation)
            for key in (
                ()
                if step % 4 or seed % 3
                else {(one.type, state) for state, one in refusals(explored, scene)}
            ):
                possible[key] = possible.get(key, 0) + 1
    often = {key for key, times in possible.items() if times >= 75}
    assert len(often) > 15
    assert often - tried == set()


def _names(explored: Explored, run: Run) -> dict[str, tuple[str, ...]]:
    return {kind: tuple(casts[0]) for kind, casts in explored.names.items()}


@pytest.mark.parametrize("target", TARGETS)
def test_every_ordered_pair_of_commands_runs_at_once(target: str) -> None:
    """Commands that may meet, in both orders; how often is a matter of seeds."""
    explored = declared(target)
    pairs = {
        tuple(part.type for part in operation.operations)
        for operation in everything(target)
        if isinstance(operation, common.Parallel)
    }
    names = {move.make.__name__ for move in explored.commands()}
    met = {name for pair in pairs for name in pair}
    assert len(pairs) > len(names) * 3, "many different pairs"
    assert {first for first, _ in pairs} | {"Heartbeat", "Restore"} >= met, "either may come first"
    assert len(names - met) <= 4, "all but those that are about the target's life"


@pytest.mark.parametrize("target", TARGETS)
def test_every_fault_surrounds_several_commands(target: str) -> None:
    explored = declared(target)
    inside: dict[str, set[str]] = {}
    for operation in everything(target):
        if operation.kind is Kind.FAULT:
            inside.setdefault(operation.type, set()).update(
                one.type for one in operation.children()
            )
    for fault in explored.around:
        least = 2 if fault.certain else 4
        assert len(inside[fault.fault.__name__]) >= least, (fault.fault, inside)


@pytest.mark.parametrize("target", TARGETS)
def test_values_that_break_programs_occur(target: str) -> None:
    values = {
        value
        for operation in everything(target)
        for value in operation.arguments().values()
        if isinstance(value, str)
    }
    assert values & set(STRANGE_NAMES)
    assert values >= {"w1", "w10", *ROOTS, *SURROUNDINGS}
    if target == "longboat":
        assert values >= {*STRANGE_TEXTS, *TEXTS}
        assert {"job", "job-2"} <= values


def test_a_target_that_says_how_its_names_look_gets_no_others() -> None:
    for target in ("longboat", "longboat-board", "longboat-broker"):
        spoken = contract(target)
        shaped = type(spoken)(_with(spoken.profile, names="[a-z]+[0-9]*"))
        for seed in range(12):
            for operation in shaped.generate(seed, LENGTH):
                for part in walk(operation):
                    for argument in ("worker", "task"):
                        name = getattr(part, argument, None)
                        assert name is None or plain_name(name, "[a-z]+[0-9]*"), part


def _with(profile: Any, **changes: object) -> Any:
    from dataclasses import replace

    return replace(profile, **changes)


def test_only_strange_values_may_be_refused_for_what_they_are() -> None:
    from mutiny.contracts.workers import operations as op

    assert all(strange(op.Add(name)) for name in STRANGE_NAMES)
    assert not any(strange(op.Add(name)) for name in ("alpha", "job-2", "w100", "al_1"))
    assert all(strange(op.Message("alpha", text)) for text in STRANGE_TEXTS)
    assert not any(strange(op.Message("alpha", text)) for text in TEXTS), "a shell's own trouble"
    assert BAD_INPUT == "bad_input"


def test_a_contract_that_declares_nothing_is_explored_all_the_same() -> None:
    run = PlainContract().generate(1, 5)
    assert run[0] == common.Reset()
    assert len(run) == 6


def test_contracts_without_a_target_are_explored() -> None:
    for spoken in (WorkersContract(), BoardContract()):
        assert spoken.generate(3, 12) == spoken.generate(3, 12)
