"""Levels of the workers contract: what small programs lack is not asked, what they promise is."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from builders import (
    OK,
    PATTERNS,
    advance,
    belief,
    check_state,
    judge_answer,
    model,
    ok,
    picture,
    view,
)
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.contracts.workers.levels import LEVELS, at_level
from mutiny.contracts.workers.model import ADDED, Work, WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.supported import SOME_PROMPT, supported
from mutiny.errors import FormatError
from mutiny.kit.answer import matched_classes
from mutiny.kit.operations import ExpectError, KillDuring, Settle
from mutiny.model.operation import walk
from mutiny.model.result import OperationResult
from mutiny.targets.registry import find_spec
from mutiny.targets.workers.spec import TargetSpec

ALONE = at_level(Profile(lacks=("Up", "Down"), needs_daemon=()), "sessions")
TOKEN = "MT-1"
WELL = picture(view(), daemons=())
GONE = picture(view(status="offline"), daemons=(), sessions=frozenset(), agents=())


def broken(believed: WorkersModel, seen: Observation) -> set[str]:
    found, _ = check_state(believed, Settle(), True, WELL, seen, ALONE.not_applicable)
    return {one.violation.rule for one in found}


def sessions(*beliefs: object, **changes: object) -> WorkersModel:
    made = model(*(beliefs or (belief(),)), **changes)  # type: ignore[arg-type]
    return replace(made, profile=ALONE, daemon=frozenset({False}))


def test_a_level_leaves_out_what_it_names_and_nothing_else() -> None:
    contract = find_spec("par")[0].make_contract("double")
    lacking = set(LEVELS["sessions"].lacks)
    for sequence in contract.scenarios.values():
        said = {part.type for one in sequence for part in walk(one)}
        assert not said & lacking
        assert said & {"Add", "Start", "Nuke"}, "nothing is asked"
    assert not supported(ALONE, op.KillDaemon())
    assert not supported(ALONE, op.PauseProcess("daemon"))
    assert supported(ALONE, op.PauseProcess("tmux"))


def test_without_a_daemon_what_must_be_refused_is_still_demanded() -> None:
    scenarios = find_spec("par")[0].make_contract("double").scenarios
    refusals = [one for one in scenarios["invalid_operations"] if isinstance(one, ExpectError)]
    assert refusals, "dropping up and down may not make a refusal doubtful"


def test_a_scenario_that_says_the_same_as_another_one_is_there_once() -> None:
    scenarios = find_spec("par")[0].make_contract("double").scenarios
    assert len(set(scenarios.values())) == len(scenarios)


@pytest.mark.parametrize(("label", "bad"), [("", True), ("/..", True), ("/alpha", False)])
def test_par_refuses_the_names_of_directories_as_if_they_existed(label: str, bad: bool) -> None:
    contract = find_spec("par")[0].make_contract("double")
    assert isinstance(contract, WorkersContract)
    text = f"Error: Worktree path '/box/home/.local/share/par/worktrees/7ea33d2b{label}' exists."
    assert ("bad_input" in matched_classes(text, contract.patterns)) is bad


@pytest.mark.parametrize("name", ["given_up_by_reset", "unfinished_work_reset", "typed_by_hand"])
def test_a_scenario_about_what_a_target_lacks_is_none_of_its(name: str) -> None:
    assert name in find_spec("longboat")[0].make_contract("double").scenarios
    assert name not in find_spec("par")[0].make_contract("double").scenarios


def test_a_name_that_is_none_of_its_own_is_not_said() -> None:
    profile = WorkersContract(Profile(names="[a-z]+", keeps_discarded=True))
    assert "foreign_name" not in profile.scenarios
    assert "foreign_name" in WorkersContract(Profile()).scenarios
    assert not supported(Profile(names="[a-z]+"), op.Add("n\u00e4me"))
    assert supported(Profile(names="[a-z]+"), ExpectError(op.Add("n\u00e4me")))


def test_who_may_throw_work_away_is_not_said_to_have_kept_it() -> None:
    assert "nuke_finished_work" not in WorkersContract(Profile()).scenarios
    assert "nuke_finished_work" in WorkersContract(Profile(keeps_discarded=True)).scenarios


def test_a_session_that_vanishes_is_missed_though_no_status_is_shown() -> None:
    assert "workers.session_exists" in broken(sessions(), GONE)
    hit = sessions(belief(disturbed="KillTmuxSession"))
    assert "workers.session_exists" not in broken(hit, GONE)


def test_a_prompt_that_is_taken_without_a_session_is_lost() -> None:
    away = sessions(belief(disturbed="KillTmuxSession", offline_allowed=True))
    start = op.Start("alpha", "Create a.txt")
    judged = judge_answer(away, start, ok(tokens=(TOKEN,)), GONE, GONE, PATTERNS, 1.0)
    assert judged.violation is not None
    assert judged.violation.rule == "workers.nothing_lost"
    fine = judge_answer(sessions(), start, ok(tokens=(TOKEN,)), WELL, WELL, PATTERNS, 1.0)
    assert fine.violation is None


@pytest.mark.parametrize(
    ("one", "seen", "waits"),
    [
        (belief(tokens=(TOKEN,)), WELL, True),
        (belief(tokens=(TOKEN,), disturbed="KillAgent"), WELL, False),
        (belief(disturbed=ADDED), GONE, True),
        (belief(disturbed="KillTmuxSession"), GONE, False),
        (belief(tokens=(TOKEN,), behaviours=("exit",)), WELL, False),
    ],
    ids=["told", "told after a fault", "just added", "killed", "its agent left"],
)
def test_without_a_daemon_only_what_commands_began_is_awaited(
    one: object, seen: Observation, waits: bool
) -> None:
    assert bool(sessions(one).pending(seen)) is waits


def test_what_a_broken_command_left_is_nobodys_fault_until_somebody_clears_away() -> None:
    orphan = replace(WELL, sessions=frozenset({"longboat-alpha", "longboat-beta"}))
    assert "workers.no_orphan_session" in broken(sessions(), orphan)
    hit = replace(sessions(), faults=("KillDuring",))
    assert "workers.no_orphan_session" not in broken(hit, orphan)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('level = "session"', "unknown level 'session' .did you mean 'sessions'"),
        ('level = "workers"', "commands.accept: level 'workers' has no such command"),
    ],
)
def test_a_wrong_level_is_named(line: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'extends = "longboat"\nname = "mine"\n{line}\n', encoding="utf-8")
    with pytest.raises(FormatError, match=told):
        TargetSpec.load(path)


def test_files_of_a_target_lie_in_its_box(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = 'extends = "par"\nname = "mine"\n[files]\n"/etc/par.yaml" = "x"\n'
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=r"'/etc/par\.yaml' does not lie in the box"):
        TargetSpec.load(path)


def test_a_new_worker_without_an_agent_is_told_only_while_nothing_was_broken() -> None:
    late = OperationResult(None, stderr="alpha is offline", timed_out=True)
    wait = op.WaitForIdle("alpha")
    added = sessions(belief(disturbed=ADDED, offline_allowed=True))
    judged = judge_answer(added, wait, late, GONE, GONE, PATTERNS, 1.0)
    assert judged.violation is not None
    assert judged.violation.rule == "workers.agent_running"
    hit = replace(added, faults=("KillAgent",))
    assert judge_answer(hit, wait, late, GONE, GONE, PATTERNS, 1.0).violation is None


def test_where_accept_removes_the_worker_it_is_gone_and_its_work_is_merged() -> None:
    removing = replace(model().profile, accept_removes=True)
    work = Work(TOKEN, "task", "alpha")
    before = replace(
        model(belief("alpha", "needs_review", tokens=(TOKEN,)), work=(work,)), profile=removing
    )
    after = advance(before, op.Accept("alpha"), OK)
    assert "alpha" not in after.workers
    assert after.work[TOKEN].fate == "merged"
    scenarios = WorkersContract(removing).scenarios
    said = {part.type for one in scenarios["basic_lifecycle"] for part in walk(one)}
    assert "Accept" in said
    assert "AssertState" not in said
    kept = WorkersContract(replace(removing, accept_removes=False))
    for contract, touched in ((WorkersContract(removing), {"alpha"}), (kept, set())):
        seen = picture(view(status="needs_review"))
        start = replace(before, profile=contract.profile)
        check = contract.check_of(start, op.Accept("alpha"), True, seen, seen)
        assert check.touched == touched


ASKING = replace(ALONE, prompt_with_add=True, lacks=(*ALONE.lacks, "Start"))


def test_where_the_prompt_comes_with_the_worker_it_begins_at_once() -> None:
    before = replace(model(), profile=ASKING)
    after = advance(before, op.Add("alpha", prompt="Create a.txt"), OK, tokens=(TOKEN,))
    assert after.workers["alpha"].tokens == (TOKEN,)
    assert after.work[TOKEN].said == "Create a.txt"
    plain = advance(replace(model(), profile=ALONE), op.Add("alpha"), OK)
    assert plain.workers["alpha"].tokens == ()


def test_a_start_is_said_as_the_command_that_makes_the_worker() -> None:
    assert not supported(ASKING, op.Add("alpha"))
    assert not supported(ALONE, op.Add("alpha", prompt="Create a.txt"))
    start = op.Start("alpha", "Create a.txt")
    told = (op.Add("alpha"), op.WaitForIdle("alpha"), start, op.Add("beta"), start)
    asked = op.Add("alpha", prompt=start.prompt)
    fitted = WorkersContract(ASKING).fit(told)
    beta = op.Add("beta", prompt=SOME_PROMPT)
    assert fitted.operations == (asked, Settle(), None, beta, asked)
    assert not fitted.nothing_left


def test_a_start_that_is_broken_makes_the_worker() -> None:
    broken = KillDuring(op.Start("alpha", "Create a.txt"), 0.1)
    fitted = WorkersContract(ASKING).fit((op.Add("alpha"), broken))
    assert fitted.operations == (None, KillDuring(op.Add("alpha", prompt="Create a.txt"), 0.1))


def test_an_exploration_gives_every_new_worker_its_prompt() -> None:
    steps = [part for one in WorkersContract(ASKING).generate(3, 30) for part in walk(one)]
    added = [one for one in steps if isinstance(one, op.Add)]
    assert added
    assert all(one.prompt for one in added)
    assert not any(isinstance(one, op.Start) for one in steps)


ADD = 'add = { argv = ["{program}", "new", "{worker}"WITH] }\n'
START = 'start = { argv = ["{program}", "tell", "{worker}", "{prompt}"] }\n'


@pytest.mark.parametrize(
    ("commands", "told"),
    [
        (ADD.replace("WITH", ""), "commands.start: is missing; or `add` takes the {prompt}"),
        (ADD.replace("WITH", ', "{prompt}"') + START, "`add` takes the {prompt} already"),
        (ADD.replace("WITH", ', "{prompt}"'), ""),
    ],
)
def test_a_prompt_is_given_by_one_of_two_commands(commands: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    head = 'format = 1\nname = "m"\ncontract = "workers"\nlevel = "sessions"\n'
    head += 'program = "m"\nsessions = "^m-"\n'
    path.write_text(f'{head}[commands]\n{commands}[state]\nfile = "{{home}}/m.json"\n')
    if not told:
        assert TargetSpec.load(path).make_profile().prompt_with_add
        return
    with pytest.raises(FormatError, match=re.escape(told)):
        TargetSpec.load(path)
