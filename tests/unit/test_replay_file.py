"""Replay files in their three forms, and every way in which one can be wrong: one clear line each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders import step
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.operations import OPERATIONS
from mutiny.contracts.workers.scenarios import SCENARIOS
from mutiny.engine.journal import JournalWriter
from mutiny.engine.replay import Replay, load, python_form
from mutiny.errors import FormatError, MutinyError, NotReproducible, UsageError
from mutiny.kit import operations as common
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation

SEQUENCE = SCENARIOS["basic_lifecycle"]
OPERATION = {"type": "Reset", "args": {}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "bug.json"


def put(file: Path, value: object) -> Path:
    file.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return file


def problems(file: Path) -> tuple[str, ...]:
    with pytest.raises(FormatError) as caught:
        load(file, OPERATIONS, "workers")
    return caught.value.problems


# --- the three forms ------------------------------------------------------------------------------


def test_a_minimal_replay_comes_back_as_it_was(file: Path) -> None:
    replay = Replay(
        SEQUENCE, "workers", "llmc", "accept-half-done", 7, "workers.nothing_lost", "bwrap"
    )
    assert load(put(file, replay.as_json()), OPERATIONS, "workers") == replay


def test_a_bare_list_is_a_scenario(file: Path) -> None:
    found = load(put(file, [item.as_json() for item in SEQUENCE]), OPERATIONS, "workers")
    assert found == Replay(SEQUENCE, "workers")


def test_args_may_be_left_out(file: Path) -> None:
    assert load(put(file, [{"type": "Up"}]), OPERATIONS, "workers").operations == (op.Up(),)


def test_an_object_needs_only_format_and_operations(file: Path) -> None:
    found = load(put(file, {"format": 1, "operations": [OPERATION]}), OPERATIONS, "workers")
    assert found == Replay((common.Reset(),), "workers")


def journal(directory: Path, *violations: Violation) -> Path:
    path = directory / "operations.jsonl"
    writer = JournalWriter(path)
    writer.append(step(common.Reset()))
    writer.append(step(op.Up(), Verdict.BUG if violations else Verdict.SUCCESS, 2, *violations))
    writer.close()
    return path


def test_a_journal_is_a_replay(tmp_path: Path) -> None:
    path = journal(
        tmp_path, Violation("workers.one_daemon", "x"), Violation("workers.one_agent", "y")
    )
    put(
        tmp_path / "plan.json",
        {
            "format": 1,
            "contract": "workers",
            "target": "llmc",
            "plant": "p",
            "seed": 9,
            "box": {"technique": "unshare"},
            "title": "anything else",
        },
    )
    expected = Replay(
        (common.Reset(), op.Up()), "workers", "llmc", "p", 9, "workers.one_daemon", "unshare"
    )
    assert load(path, OPERATIONS, "workers") == expected
    assert load(tmp_path, OPERATIONS, "workers") == expected


def test_a_journal_without_its_plan_is_a_plain_sequence(tmp_path: Path) -> None:
    assert load(journal(tmp_path), OPERATIONS, "workers") == Replay(
        (common.Reset(), op.Up()), "workers"
    )


def test_a_run_directory_prefers_its_minimal_replay(tmp_path: Path) -> None:
    journal(tmp_path)
    put(tmp_path / "minimal_replay.json", Replay((common.Reset(),), "workers").as_json())
    assert load(tmp_path, OPERATIONS, "workers").operations == (common.Reset(),)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "line 1: not valid JSON: Expecting property name enclosed in double quotes"),
        ('[\n{"type": "Up"},\n', "line 3: not valid JSON: Expecting value"),
        ('"Reset"', "expected an object or a list of operations"),
        ("7", "expected an object or a list of operations"),
        ([], "operations: expected a list with at least one operation"),
        ({"operations": [OPERATION]}, "format: is missing"),
        ({"format": 1}, "operations: is missing"),
        (
            {"format": 1, "operations": []},
            "operations: expected a list with at least one operation",
        ),
        ({"format": 1, "operations": 3}, "operations: expected a list with at least one operation"),
        ({"format": 2, "whatever": 1}, "format 2 is newer than this Mutiny reads (1)"),
        ({"format": "1"}, "format: expected a whole number from 1 on, got '1'"),
        ({"format": True}, "format: expected a whole number from 1 on, got True"),
        ({"format": 0}, "format: expected a whole number from 1 on, got 0"),
        (
            {"format": 1, "operations": [OPERATION], "seed": "seven"},
            "seed: expected a whole number, got 'seven'",
        ),
        (
            {"format": 1, "operations": [OPERATION], "seed": [1]},
            "seed: expected a whole number, got [1]",
        ),
        ({"format": 1, "operations": [OPERATION], "target": 5}, "target: expected text, got 5"),
        ({"format": 1, "operations": [OPERATION], "expect": 5}, "expect: expected text, got 5"),
        ({"format": 1, "operations": [OPERATION], "plant": None}, "plant: expected text, got None"),
        (
            {"format": 1, "operations": [OPERATION], "expects": "x"},
            "expects: unknown key (did you mean 'expect'?)",
        ),
    ],
)
def test_mistakes_are_named(file: Path, content: object, problem: str) -> None:
    assert problems(put(file, content)) == (problem,)


def test_every_wrong_operation_is_named_with_its_number(file: Path) -> None:
    put(
        file, [OPERATION, {"type": "Strat"}, {"type": "Up"}, {"type": "Add", "args": {"name": "a"}}]
    )
    assert problems(file) == (
        "operation 2: unknown operation 'Strat' (did you mean 'Start'?)",
        "operation 4: Add.name: unknown key",
        "operation 4: Add.worker: is missing",
    )


def test_a_file_nested_too_deeply_is_refused(file: Path) -> None:
    (problem,) = problems(put(file, "[" * 100_000))
    assert problem.startswith("not valid JSON")


def test_another_contract_is_not_weakened_to_ours(file: Path) -> None:
    put(file, {"format": 1, "contract": "board", "operations": [OPERATION]})
    with pytest.raises(NotReproducible, match="the contract 'board'") as caught:
        load(file, OPERATIONS, "workers")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("plan", "word"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected an object"),
        ({"format": 9}, "format 9 is newer"),
        ({"seed": "x"}, "seed: expected a whole number"),
        ({"target": 4}, "target: expected text"),
    ],
)
def test_a_plan_that_cannot_be_read_is_not_passed_over(
    tmp_path: Path, plan: object, word: str
) -> None:
    """Seed, target and plant are in it: without them another run would be repeated."""
    path = journal(tmp_path)
    put(tmp_path / "plan.json", plan)
    with pytest.raises(FormatError, match=word) as caught:
        load(path, OPERATIONS, "workers")
    assert str(tmp_path / "plan.json") in str(caught.value)


@pytest.mark.parametrize("violations", [[{}], ["x"], [{"rule": 4}]])
def test_a_journal_with_a_violation_of_nothing_is_refused(
    tmp_path: Path, violations: object
) -> None:
    line = {"operation": OPERATION, "violations": violations, "format": 1}
    (problem,) = problems(put(tmp_path / "operations.jsonl", json.dumps(line) + "\n"))
    assert problem == "line 1: a violation names no rule"


def test_an_empty_journal_is_no_replay(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the journal has no operation"):
        load(put(tmp_path / "operations.jsonl", ""), OPERATIONS, "workers")


def test_a_directory_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no minimal_replay\.json and no operations\.jsonl"):
        load(tmp_path, OPERATIONS, "workers")


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path, file: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the replay file: No such file"):
        load(tmp_path / "nowhere.json", OPERATIONS, "workers")
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        load(file, OPERATIONS, "workers")


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"format": 99}', "\x00"])
def test_every_refusal_is_about_the_file_and_exits_with_2(file: Path, content: str) -> None:
    with pytest.raises(MutinyError) as caught:
        load(put(file, content), OPERATIONS, "workers")
    assert caught.value.exit_code == 2
    assert all(line.startswith(str(file)) for line in str(caught.value).splitlines())


# --- as people read it ----------------------------------------------------------------------------


def test_the_sequence_is_printed_as_the_seed_prints_it() -> None:
    operations = (common.Reset(), op.Start("alpha", "Create test.txt"), op.Accept("alpha"))
    assert python_form(operations, mark_last=True).splitlines() == [
        "Reset()",
        'Start(worker="alpha", prompt="Create test.txt")',
        'Accept(worker="alpha")  # <- Error occurs here',
    ]
    assert "#" not in python_form(operations, mark_last=False)
    assert python_form((), mark_last=True) == ""
