"""A command while a setting is wrong: how the file is made wrong, and what is right then."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from builders import belief, judge_answer, model, ok, picture, view
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.supported import supported
from mutiny.faults.settings import UNKNOWN, in_json, in_toml, wrong_setting
from mutiny.kit.operations import WRONG_SETTINGS, WrongSetting
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.system.files import BoxPath

TOML = 'name = "x"\nwait = 2\n\n[defaults]\nwait = 3 # seconds\nother = 1\n[more]\nwait = 4\n'
WRONG = WrongSetting(op.Status(), "boolean")


def test_a_setting_of_a_toml_file_is_replaced_in_its_table_alone() -> None:
    assert tomllib.loads(in_toml(TOML, "", "wait", "soon")) == {
        **tomllib.loads(TOML),
        "wait": "soon",
    }
    changed = tomllib.loads(in_toml(TOML, "defaults", "wait", -1))
    assert changed["defaults"] == {"wait": -1, "other": 1}
    assert (changed["wait"], changed["more"]) == (2, {"wait": 4})
    added = tomllib.loads(in_toml(TOML, "new", UNKNOWN, 1))
    assert added == {**tomllib.loads(TOML), "new": {UNKNOWN: 1}}


def test_a_setting_of_a_json_file_is_replaced_or_added() -> None:
    assert json.loads(in_json("", "", "wait", True)) == {"wait": True}
    assert json.loads(in_json('{"a": {"b": 1, "c": 2}}', "a", "b", "3")) == {
        "a": {"b": "3", "c": 2}
    }


@pytest.mark.parametrize("how", WRONG_SETTINGS)
def test_the_file_is_put_back_as_it_was(tmp_path: Path, how: str) -> None:
    path = BoxPath(tmp_path) / "config.toml"
    with wrong_setting(path, "defaults.wait", how) as name:
        assert name == (UNKNOWN if how == "unknown" else "wait")
        assert name in path.read_text()
    assert not path.exists()
    path.write_text(TOML)
    with wrong_setting(path, "defaults.wait", how), pytest.raises(ZeroDivisionError):
        raise ZeroDivisionError
    assert path.read_text() == TOML


def judged(answer: OperationResult) -> tuple[Verdict, str | None]:
    result = replace(answer, inner=(answer,), details={"due_name": "wait"})
    seen = picture(view())
    found = judge_answer(model(belief()), WRONG, result, seen, seen, {}, 2000.0)
    return found.verdict, found.violation.rule if found.violation else None


def test_a_wrong_setting_is_refused_by_its_name() -> None:
    named = OperationResult(1, stderr="config.toml: 'wait' must be a number")
    assert judged(named) == (Verdict.EXPECTED, None)
    broken = (Verdict.BUG, "workers.settings_checked")
    assert judged(OperationResult(1, stderr="something is wrong")) == broken
    assert judged(ok()) == broken
    crash = OperationResult(
        1, stderr='Traceback (most recent call last):\n  File "x"\nTypeError: x'
    )
    assert judged(crash) == (Verdict.BUG, "workers.no_crash")


def test_only_what_a_target_promises_to_refuse_is_tried() -> None:
    told = Profile(number_settings=("wait",), refused_settings=("boolean",))
    assert supported(told, WRONG)
    assert not supported(told, replace(WRONG, place=1))
    assert not supported(told, replace(WRONG, how="unknown"))
