"""What `target check` advises: wrong words of a file are told from answers alone, and right ones never."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders import ok, refused
from mutiny.contracts.workers import operations as op
from mutiny.engine.rundir import RunDirectory
from mutiny.kit.judging import classes_in, without_words
from mutiny.kit.operations import ExpectError
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.modes.checkup import Checkup, Covered, Tried, coverage_of, sequence_of
from mutiny.targets.kit.advice import Advice, about_command, last_line
from mutiny.targets.registry import find_spec, own
from mutiny.targets.workers.spec import TargetSpec

SPEC = TargetSpec.load(own()["longboat"])
ADD = op.Add("probe")


@pytest.mark.parametrize(
    ("result", "change"),
    [
        (refused("Error: No such command 'add'."), "change commands.add"),
        (refused("usage: longboat [-h]"), "change commands.add"),
        (refused("probe was here before"), '.* was here before"'),
        (OperationResult(None, timed_out=True), "stdin"),
    ],
    ids=["unknown command", "usage", "unknown refusal", "waits"],
)
def test_an_answer_that_does_not_fit_is_told_with_its_change(
    result: OperationResult, change: str
) -> None:
    (found,) = about_command(SPEC, ADD, result)
    assert change in found.change
    assert str(found).startswith("your file says ")


@pytest.mark.parametrize("operation", [ADD, ExpectError(ADD)])
def test_answers_that_the_file_knows_need_no_change(operation: Operation) -> None:
    known = refused("Worker 'probe' already exists")
    assert not list(about_command(SPEC, operation, known))
    assert not list(about_command(SPEC, operation, ok()))


def test_a_crash_is_no_refusal_that_the_file_lacks() -> None:
    crash = 'Traceback (most recent call last):\n  File "/x/y.py", line 8, in <module>\nKeyError: 1'
    crashed = OperationResult(1, stderr=crash)
    assert not list(about_command(SPEC, ADD, crashed))
    assert not list(about_command(SPEC, ADD, crashed, ["already_exists"]))


@pytest.mark.parametrize(
    ("rule", "told"),
    [("board.no_crash", "Nobody is excused"), ("board.fails_clearly", "say so: [profile.not_app")],
)
def test_nobody_is_told_to_excuse_what_nobody_is_excused_from(
    rule: str, told: str, tmp_path: Path
) -> None:
    spec = find_spec("claimd")[0]
    checkup = Checkup(SimpleNamespace(name="x", spec=spec), RunDirectory(tmp_path))
    outcome: Any = SimpleNamespace(verdict=Verdict.BUG, failed_step=None, rule=rule, reason="r")
    assert told in checkup._told(outcome)


def test_a_refusal_that_exits_like_a_success_is_told_once_with_its_class() -> None:
    said = OperationResult(0, stdout="probe was here before")
    (found,) = about_command(SPEC, ADD, said, ["already_exists", "already_exists"])
    assert found.change.count("already_exists = [") == 1


def test_what_mutiny_could_not_do_is_nobodys_word() -> None:
    broken = replace(refused("usage:"), harness_error="the box is gone")
    assert not list(about_command(SPEC, ADD, broken))


def test_a_file_that_has_to_be_changed_is_no_bug() -> None:
    advised = (Advice("x", "y", "z"),)
    assert Tried(Verdict.BUG, advised, "").exit_code == 2
    assert Tried(Verdict.BUG, (), "").exit_code == 1
    assert Tried(Verdict.SUCCESS, (), "").exit_code == 0


@pytest.mark.parametrize("name", sorted(own()))
def test_every_shipped_target_can_be_tried_and_its_coverage_told(name: str) -> None:
    spec = find_spec(name)[0]
    contract = spec.make_contract("double")
    steps = sequence_of(contract, spec.profile)
    assert any(one.asks for one in steps)
    commands, rules, scenarios = coverage_of(spec, contract)
    assert (commands.what, rules.what, scenarios.what) == ("commands", "rules", "scenarios")
    for one in (commands, rules, scenarios):
        assert 0 < one.percent <= 100


def test_boards_are_also_asked_for_what_every_board_refuses() -> None:
    """So a file hears of the refusals that it has no words for before anything is called a bug."""
    clawctl, fleet = find_spec("clawctl")[0], find_spec("longboat-fleet")[0]
    asked = [str(one) for one in sequence_of(clawctl.make_contract("double"), clawctl.profile)]
    assert 'ExpectError(Complete(worker="w1", task="nobody"))' in asked
    alone = sequence_of(fleet.make_contract("double"), fleet.profile)
    assert not any("Claim" in str(one) for one in alone), "its own agents come in between"


def test_percent() -> None:
    assert Covered("x", ("a",), ("b", "c")).percent == 33
    assert Covered("x", (), ()).percent == 100


def test_advice_names_the_class_of_a_refusal_that_was_right() -> None:
    told = without_words({"no_such_worker", "already_exists"})
    assert classes_in(f"{told}, and it said: no") == ("already_exists", "no_such_worker")
    assert classes_in("something else") == ()
    result = OperationResult(exit_code=1, stderr="Nobody is called so")
    (found,) = about_command(SPEC, ADD, result, ("no_such_worker",))
    assert found.change.endswith('[rejections] no_such_worker = ["Nobody is called so"]')


def test_what_stands_below_a_refusal_is_no_refusal() -> None:
    said = "\x1b[38;5;196mERROR: run 'td init' first\x1b[m\nUsage:\n  td ready [flags]\n"
    result = OperationResult(exit_code=1, stderr=said)
    assert last_line(result) == "ERROR: run 'td init' first"
    (found,) = about_command(SPEC, ADD, result, ("not_initialised",))
    assert found.change.startswith("a refusal is right here: [rejections] not_initialised")


def test_a_program_that_says_how_it_may_be_asked_has_not_said_why_it_refuses() -> None:
    result = OperationResult(
        2, "", "Nuke 'a'? Say --sure when nobody can be asked\nTry `x --help`.\n"
    )
    assert last_line(result) == "Nuke 'a'? Say --sure when nobody can be asked"
    (found,) = about_command(SPEC, ADD, result)
    assert found.change.startswith("say --sure in commands.add; or, if it refuses like this")
