"""Programs that name their workers themselves: our names and theirs, and what nobody was told yet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from builders import OK, advance, belief, model
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.contracts.workers.outcomes import expect
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.supported import supported
from mutiny.errors import FormatError
from mutiny.kit.domains import CONTROL
from mutiny.kit.operations import ExpectError, Misuse
from mutiny.model.result import OWN_NAME, OperationResult
from mutiny.system.files import BoxPath
from mutiny.targets.kit.naming import Names
from mutiny.targets.workers.spec import TargetSpec
from mutiny.targets.workers.turns import ANYBODY, Turns

GIVEN = Profile(takes_names=False, prompt_with_add=True)
FILE = """\
format = 1
name = "mine"
contract = "workers"
level = "sessions"
program = "mine"
sessions = "^mine-"

[commands]
add = { argv = ["{program}", "hire", "{prompt}"], answer = 'hired (?P<worker>\\S+)' }
nuke = { argv = ["{program}", "rm", "{worker}"] }

[state]
file = "{home}/mine.json"
names = '^room:(?P<name>.+)$'
"""


def loaded(tmp_path: Path, text: str) -> TargetSpec:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return TargetSpec.load(path)


def test_a_single_stranger_is_the_single_one_that_is_due() -> None:
    names = Names()
    assert names.shown(["otter1"]) == (), "nobody was asked for: a stranger is one"
    assert names.ours("otter1") == "otter1"
    names.ask("alpha")
    assert names.shown(["otter1"]) == ()
    assert (names.own("alpha"), names.ours("otter1"), names.untold) == ("otter1", "alpha", ())


def test_who_is_one_of_several_nobody_can_say_until_it_is_told() -> None:
    names = Names()
    names.ask("alpha")
    names.ask("beta")
    assert names.shown(["otter1"]) == ("otter1",)
    names.learn("beta", "otter1")
    assert names.shown(["otter1"]) == ()
    assert names.untold == ("alpha",)
    names.shown(["otter1", "otter2"])
    assert names.ours("otter2") == "alpha"


def test_whoever_is_asked_for_again_has_no_name_for_the_moment() -> None:
    names = Names()
    names.learn("alpha", "otter1")
    names.ask("alpha")
    assert (names.own("alpha"), names.untold) == ("alpha", ("alpha",))


def test_names_outlive_the_box_with_its_files(tmp_path: Path) -> None:
    names = Names(kept=BoxPath(tmp_path) / "names.json")
    assert not (tmp_path / "names.json").exists(), "nothing is written where names are taken"
    names.ask("beta")
    names.learn("alpha", "otter1")
    again = Names(kept=BoxPath(tmp_path) / "names.json")
    assert (again.own("alpha"), again.untold) == ("otter1", ("beta",))


def test_a_file_says_where_a_name_is_told(tmp_path: Path) -> None:
    spec = loaded(tmp_path, FILE)
    assert not spec.takes_names
    assert not spec.make_profile().takes_names
    scenarios = spec.make_contract("double").scenarios
    assert "nuke_and_return" in scenarios
    assert "names_alike" not in scenarios, "nobody can choose names that are alike"
    assert "control_characters" not in scenarios, "without them it would show nothing"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (", answer = 'hired (?P<worker>\\S+)'", "", "(?P<worker>...)"),
        ("(?P<worker>", "(?P<who>", "(?P<worker>...)"),
        ("(?P<name>.+)", ".+", "(?P<name>...)"),
    ],
)
def test_a_name_that_can_never_be_known_is_refused(
    old: str, new: str, problem: str, tmp_path: Path
) -> None:
    assert old in FILE
    with pytest.raises(FormatError) as refused:
        loaded(tmp_path, FILE.replace(old, new))
    assert problem in str(refused.value)


def test_nobody_else_can_be_asked_for_by_a_name_that_was_never_said() -> None:
    there = replace(model(belief("alpha")), profile=GIVEN)
    again = op.Add("alpha", prompt="Create a.txt")
    due = expect(there, again)
    assert due.success
    assert not due.rejections
    assert advance(there, again, OK, tokens=("MT-1",)) == there, "nothing was said"
    assert not supported(GIVEN, ExpectError(again))
    assert supported(Profile(prompt_with_add=True), ExpectError(again))
    assert not supported(GIVEN, Misuse(again)), "who would come of it nobody could tell"
    assert not supported(GIVEN, Misuse(op.Start("alpha", "x"))), "which is said as `add`"
    assert supported(GIVEN, Misuse(op.Nuke("alpha")))
    taken = expect(replace(there, profile=Profile()), op.Add("alpha"))
    assert not taken.success, "where a name is said it may not be taken twice"


def test_characters_that_a_terminal_obeys_are_said_only_to_who_promises_to_tame_them() -> None:
    """Also where the command that makes a worker takes the prompt."""
    add = op.Add("alpha", prompt=f"Create {CONTROL}")
    assert not supported(GIVEN, add)
    assert supported(replace(GIVEN, tames_texts=True), add)


def test_a_result_tells_what_the_program_calls_whom_we_named() -> None:
    names = Names()
    assert names.mentioned("alpha") == names.mentioned(None) == {}
    names.learn("alpha", "otter1")
    assert names.mentioned("alpha") == {OWN_NAME: "otter1"}


def test_an_answer_names_a_worker_as_we_do() -> None:
    contract = WorkersContract(GIVEN, {})
    said = OperationResult(0, '{"worker": "otter1", "branch": "b"}', details={"named": "alpha"})
    assert contract.read(said).said == {"worker": "alpha", "branch": "b"}
    assert (
        contract.read(OperationResult(0, "reviewed otter1", details={"named": "alpha"})).said == {}
    )


def test_an_agent_without_a_known_name_behaves_as_who_was_asked_for() -> None:
    names = Names()
    turns = Turns(names)
    assert turns.script({}) is None, "nobody was told how to behave"
    turns.set("alpha", ["quit"], {"alpha": 0})
    names.ask("alpha")
    assert turns.script({}) == {"alpha": ["quit"], ANYBODY: ["quit"]}
    assert turns.script({}) is None, "it is written already"
    assert not turns.can_be_told("beta"), "whose agent comes first nobody knows"
    names.learn("alpha", "otter1")
    assert turns.can_be_told("beta")
    names.ask("beta")
    told = turns.script({"otter1-den": "alpha", "otter9-den": "gamma"})
    assert told is not None
    assert (told["otter1-den"], told["otter9-den"], told[ANYBODY]) == (["quit"], ["obey"], ["obey"])


def test_turns_that_are_over_stay_over() -> None:
    turns = Turns(Names())
    turns.set("alpha", ["quit"], {"alpha": 2})
    assert turns.script({"alpha": "alpha"}) == {"alpha": ["obey", "obey", "quit"]}
