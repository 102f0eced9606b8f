"""Only what a target has is asked for: laws over all contracts, scenarios and ready experiments."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from mutiny.contracts.board import operations as board
from mutiny.contracts.board.contract import BoardContract
from mutiny.contracts.board.profile import BoardProfile
from mutiny.contracts.board.scenarios import scenarios_of
from mutiny.contracts.board.supported import supported as board_says
from mutiny.contracts.spawns import operations as spawns
from mutiny.contracts.spawns.contract import SpawnsContract
from mutiny.contracts.spawns.profile import SETTINGS, SpawnsProfile
from mutiny.contracts.workers import operations as workers
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.scenarios import SCENARIOS
from mutiny.contracts.workers.supported import supported as workers_say
from mutiny.experiments.compile import compile_experiment, fit_plan
from mutiny.kit import operations as common
from mutiny.kit.operations import ExpectError, Parallel
from mutiny.kit.supported import TargetWords, fitted
from mutiny.model.operation import Kind, Operation, walk
from mutiny.modes.experiment_files import load
from mutiny.targets.registry import find_spec
from mutiny.targets.workers.spec import TargetSpec
from sampling import sampled

LIBRARY = sorted(
    Path(str(one))
    for one in files("mutiny.experiments.library").iterdir()
    if one.name.endswith("yaml")
)
Says = Callable[[Any, Operation], bool]
ALL_SPAWNS = SpawnsProfile(settable=tuple(SETTINGS), keeps_place=True, any_case=True, roams=True)
EVERYTHING = Profile(
    notices_damage=True,
    listens=True,
    notices_typing=True,
    passes_bad_hooks=True,
    tames_texts=True,
    keeps_author=True,
    asks_first=("Nuke", "ResetWorker"),
    number_settings=("a", "b", "c"),
    refused_settings=common.WRONG_SETTINGS,
)
BOARD = BoardProfile(typed=("AddTask", "AddBatch", "Complete", "Renew"))
CONTRACTS: list[tuple[Callable[[Any], Any], Any, dict[str, Sequence[Operation]], Says]] = [
    (WorkersContract, EVERYTHING, dict(SCENARIOS), workers_say),
    (BoardContract, BOARD, dict(scenarios_of(BOARD)), board_says),
]


@pytest.mark.parametrize(("make", "profile", "scenarios", "says"), CONTRACTS)
def test_a_target_that_has_every_word_is_told_everything(
    make: Callable[[Any], Any], profile: Any, scenarios: dict[str, Any], says: Says
) -> None:
    for sequence in scenarios.values():
        made = make(profile).fit(sequence)
        assert made.operations == tuple(sequence)
        assert (made.changes, made.nothing_left) == ((), "")


@pytest.mark.parametrize("seed", sampled(range(40), every=5))
@pytest.mark.parametrize(("make", "profile", "scenarios", "says"), CONTRACTS)
def test_whatever_it_lacks_only_what_it_has_is_said(
    make: Callable[[Any], Any], profile: Any, scenarios: dict[str, Any], says: Says, seed: int
) -> None:
    drawn = random.Random(seed)
    words = [name for name, cls in make(profile).operations.items() if cls.kind is Kind.COMMAND]
    lacking = replace(profile, lacks=tuple(drawn.sample(words, drawn.randint(1, 6))))
    for name, sequence in scenarios.items():
        made = make(lacking).fit(sequence)
        assert len(made.operations) == len(sequence), name
        assert all(says(lacking, one) for one in made.sequence), name
        assert bool(made.changes) == (made.operations != tuple(sequence))
        if not made.nothing_left:
            assert any(part.asks for one in made.sequence for part in walk(one)), name
        # Twice is once: what can be said needs no second thought.
        assert make(lacking).fit(made.sequence).changes == ()


def words_of(*lacks: str, **more: Any) -> TargetWords:
    return TargetWords(lambda one: one.type not in lacks, settle=board.Settle(), **more)


def test_parts_of_a_combination_are_left_out_alone() -> None:
    both = Parallel((board.Cancel("a"), board.Claim("w"), board.Claim("v")))
    assert fitted(words_of("Cancel"), [both]).sequence == (
        Parallel((board.Claim("w"), board.Claim("v"))),
    )
    one = Parallel((board.Cancel("a"), board.Claim("w")))
    assert fitted(words_of("Cancel"), [one]).sequence == (board.Claim("w"),)
    assert fitted(words_of("Cancel", "Claim"), [one]).operations == (None,)


def test_what_the_whole_sequence_expected_is_not_expected_of_a_part() -> None:
    sequence = [
        board.Retry("a"),
        ExpectError(board.Claim("w")),
        board.WaitForStatus("a", "available"),
        board.AssertStatus("a", "available"),
    ]
    assert fitted(words_of(), sequence).sequence == tuple(sequence)
    assert fitted(words_of("Retry"), sequence).sequence == (board.Claim("w"), board.Settle())


def test_without_its_faults_or_its_subject_nothing_is_left_to_show() -> None:
    killed = [board.AddTask("a"), board.KillServer(), board.List()]
    assert "faults" in fitted(words_of("KillServer"), killed).nothing_left
    saved = [board.AddTask("a"), board.Checkpoint("c"), board.Restore("c")]
    assert "Checkpoint" in fitted(words_of("Checkpoint"), saved).nothing_left
    assert fitted(words_of("Status"), [board.AddTask("a"), board.Status()]).nothing_left
    looks = words_of("Status", harmless=("Status",))
    assert fitted(looks, [board.AddTask("a"), board.Status()]).nothing_left == ""


def test_a_scenario_without_what_it_is_named_after_is_not_run() -> None:
    """What is left of it another one asks, too, so that it would pass for nothing."""
    about = {"cancelled_not_completed": "Cancel", "done_not_started": "Start"}
    assert set(about) <= set(scenarios_of(BoardProfile()))
    for name, lacked in about.items():
        poorer = scenarios_of(replace(BoardProfile(), lacks=(lacked,)))
        assert name not in poorer
        assert "ownership" in poorer  # it says both, and shows more than them


@pytest.mark.parametrize("target", ["par", "uzi"])
def test_what_is_about_reviews_is_not_run_where_nothing_is_reviewed(target: str) -> None:
    spec, _ = find_spec(target)
    assert isinstance(spec, TargetSpec)
    found = set(WorkersContract(spec.make_profile()).scenarios)
    assert not found & {"accept_too_early", "rebase_is_done", "conflict_given_up"}
    assert {"basic_lifecycle", "tmux_crash", "racing_adds"} <= found


@pytest.mark.parametrize(
    ("lacked", "names"),
    [
        ("AwaitHuman", {"human_is_called"}),
        ("Receive", {"readers", "reader_looks_back", "readers_of_two_channels"}),
        ("Logs", {"logs", "followed_live"}),
        ("Health", {"hangs", "stalls", "work_is_no_stall", "health_of_the_healthy"}),
    ],
)
def test_what_is_about_a_question_is_not_run_where_it_cannot_be_asked(
    lacked: str, names: set[str]
) -> None:
    whole = set(SpawnsContract(ALL_SPAWNS).scenarios)
    left = set(SpawnsContract(replace(ALL_SPAWNS, lacks=(lacked,))).scenarios)
    assert names <= whole - left
    # Others only look once more behind their end, or have broken something.
    assert {"one_mention", "two_channels", "logs_of_bytes", "killed_group"} <= left


def test_what_is_about_a_setting_is_not_run_where_it_cannot_be_set() -> None:
    """Without it another one asks the same."""
    left = set(SpawnsContract(replace(ALL_SPAWNS, settable=())).scenarios)
    assert not {"pause_before_retry", "no_retries"} & left
    assert {"second_try", "never_works", "echo"} <= left


def test_a_scenario_that_says_something_of_its_own_is_run_without_the_rest() -> None:
    poorer = scenarios_of(replace(BoardProfile(), lacks=("Recover",)))["clock_steps"]
    assert {"SkewClock", "Heartbeat", "Complete"} <= {one.type for one in poorer}


def test_an_unnamed_claim_stands_for_a_named_one() -> None:
    made = BoardContract(BoardProfile(names_tasks=False)).fit(
        [board.AddTask("a"), board.Claim("w", "a"), board.Complete("w", "a")]
    )
    assert made.sequence == (board.AddTask("a"), board.Claim("w"), board.Complete("w", "a"))
    assert made.nothing_left == ""


def test_a_target_without_a_doctor_recovers_without_one() -> None:
    contract = WorkersContract(Profile(lacks=("Doctor",)))
    for ended in (True, False):
        steps = contract.recovery(workers.Accept("alpha"), world_ended=ended, damaged=True)
        assert not any(isinstance(one, workers.Doctor) for one in steps)
        assert workers.Accept("alpha") in steps, "the command that was broken is tried again"
    assert any(isinstance(one, common.Settle) for one in steps)


@pytest.mark.parametrize(
    "target", sampled(["coordination-a", "coordination-b", "coordination-c"], every=3)
)
def test_most_ready_experiments_have_something_to_show_on_a_real_board(target: str) -> None:
    spec = find_spec(target)[0]
    contract = BoardContract(spec.profile)
    shown = []
    for path in LIBRARY:
        experiment = load(path, None)
        if experiment.contract != "board" or "longboat-fleet" in experiment.targets:
            continue
        plan, nothing = fit_plan(compile_experiment(experiment), contract)
        said = [part for step in plan.steps for part in walk(step.operation)]
        assert all(board_says(spec.profile, part) for part in said), path.stem
        shown += [path.stem] if not nothing else []
    assert len(shown) >= 15
    assert "circuit-breaker" not in shown, "there is none that could trip"


@pytest.mark.parametrize("seed", sampled(range(20), every=4))
def test_exploration_says_only_what_a_target_has(seed: int) -> None:
    drawn = random.Random(seed)
    some = ("Doctor", "Status", "Message", "Rebase", "ResetWorker", "Attach", "Nuke", "Reject")
    lacking = Profile(lacks=tuple(drawn.sample(some, 4)))
    made = WorkersContract(lacking).generate(seed, 30)
    assert len(made) > 5
    assert all(workers_say(lacking, one) for one in made)
    few = ("Cancel", "Release", "Retry", "Checkpoint", "Restore", "Elect", "Repair", "Start")
    bare = BoardProfile(lacks=tuple(drawn.sample(few, 4)), names_tasks=False)
    assert all(board_says(bare, one) for one in BoardContract(bare).generate(seed, 30))


def test_what_not_every_target_promises_is_asked_only_where_it_is() -> None:
    author = workers.AssertAuthor("alpha")
    assert workers_say(EVERYTHING, author)
    assert not workers_say(replace(EVERYTHING, keeps_author=False), author)
    named = {True: SpawnsContract(ALL_SPAWNS).scenarios}
    named[False] = SpawnsContract(replace(ALL_SPAWNS, any_case=False)).scenarios
    for name in ("names_in_any_case", "human_in_capitals"):
        assert [name in named[promised] for promised in (True, False)] == [True, False]
    named[False] = SpawnsContract(replace(ALL_SPAWNS, roams=False)).scenarios
    name = "human_ends_elsewhere"
    assert [name in named[promised] for promised in (True, False)] == [True, False]


@pytest.mark.parametrize("seed", range(5))
def test_agents_speak_elsewhere_only_where_they_can(seed: int) -> None:
    for roams in (True, False):
        contract = SpawnsContract(replace(ALL_SPAWNS, roams=roams))
        told = [one for one in contract.generate(seed, 60) if isinstance(one, spawns.Behave)]
        assert told
        assert roams or not any("in:" in turn for one in told for turn in one.does)
