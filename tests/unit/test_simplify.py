"""Which shortened sequences still mean something, and which simpler forms are worth a try."""

from __future__ import annotations

import pytest

from builders import CONTRACT
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.scenarios import SCENARIOS
from mutiny.kit import operations as common
from mutiny.model.operation import Operation

Run = tuple[Operation, ...]
UP: Run = (common.Reset(), op.Init(), op.Up())
IDLE: Run = (*UP, op.Add("alpha"), op.WaitForIdle("alpha"))
READY: Run = (*IDLE, op.Start("alpha", "x"), op.WaitForNeedsReview("alpha"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_is_plausible(name: str) -> None:
    assert CONTRACT.plausible(SCENARIOS[name], ())
    assert CONTRACT.plausible(SCENARIOS[name], SCENARIOS[name])


@pytest.mark.parametrize(
    "sequence",
    [
        UP,
        READY,
        (*READY, op.Accept("alpha"), op.Down()),
        (*UP, op.Start("nobody", "x")),  # refused, which is a promise too
        (*IDLE, op.Reject("nothing was reviewed")),
        (*IDLE, op.KillDaemon(), op.KillAgent("alpha")),
        (*IDLE, op.Start("alpha", "x"), op.WaitForState("alpha", "working")),
        (*READY, common.Reset(), *IDLE[1:]),
        (*IDLE, common.Parallel((op.Start("alpha", "x"), op.Start("alpha", "y")))),
        (*IDLE, op.PauseProcess("daemon", during=op.Start("alpha", "x")), op.Accept("alpha")),
    ],
)
def test_what_makes_sense(sequence: Run) -> None:
    assert CONTRACT.plausible(sequence, ())


@pytest.mark.parametrize(
    "sequence",
    [
        (),
        (op.Init(), op.Up()),
        (common.Reset(), op.Up()),
        (common.Reset(), op.Init(), op.Init()),
        (*UP, op.WaitForIdle("alpha")),
        (common.Reset(), op.Init(), op.Add("alpha"), op.WaitForIdle("alpha")),
        (*IDLE, op.WaitForNeedsReview("alpha")),
        (*IDLE, op.WaitForPrompt("alpha")),
        (*UP, op.WaitForPrompt("alpha")),
        (*IDLE, op.Down(), op.WaitForIdle("alpha")),
        (*READY, op.Accept("alpha"), op.WaitForNeedsReview("alpha")),
        (*UP, op.KillAgent("alpha")),
        (*UP, op.KillTmuxSession("alpha")),
        (*UP, op.KillTmuxServer()),
        (common.Reset(), op.Init(), op.KillDaemon()),
        (*UP, op.KillDaemon(), op.KillDaemon()),
        (common.Reset(), op.Init(), op.PauseProcess("daemon")),
        (*UP, op.PauseProcess("tmux")),
        (*IDLE, op.Nuke("alpha"), op.AssertState("alpha", "idle")),
        (*READY, common.Reset(), op.Up()),
    ],
)
def test_what_makes_no_sense(sequence: Run) -> None:
    assert not CONTRACT.plausible(sequence, ())


START = op.Start("alpha", "x")
REVIEWED = op.AssertState("alpha", "needs_review")


@pytest.mark.parametrize(
    ("shorter", "original"),
    [
        ((*UP, op.Add("alpha"), START), (*IDLE, START)),
        ((*IDLE, START, op.Accept("alpha")), (*READY, op.Accept("alpha"))),
        ((*IDLE, START, op.Nuke("alpha")), (*READY, op.Nuke("alpha"))),
        ((*IDLE, START, op.KillAgent("alpha")), (*READY, op.KillAgent("alpha"))),
        ((*IDLE, START, op.KillDaemon()), (*READY, op.KillDaemon())),
    ],
)
def test_a_shorter_sequence_that_needs_luck_is_no_reproduction(shorter: Run, original: Run) -> None:
    assert CONTRACT.certain(original, ())
    assert not CONTRACT.certain(shorter, original)
    assert CONTRACT.certain(shorter, shorter), "the original needed the same luck"
    assert CONTRACT.plausible(shorter, original), "it is no nonsense: a trial may decide"


@pytest.mark.parametrize(
    ("turns", "certain"), [(("slow:900", "obey"), True), (("hang",), True), (("obey",), False)]
)
def test_an_agent_that_is_scripted_to_stay_busy_is_no_luck(
    turns: tuple[str, ...], certain: bool
) -> None:
    begun = (*IDLE, op.Behave("alpha", turns), START)
    received = (*begun, op.WaitForPrompt("alpha"), op.KillAgent("alpha"))
    original = (*READY, op.KillAgent("alpha"))
    assert CONTRACT.certain(received, original) is certain
    assert not CONTRACT.certain((*begun, op.KillAgent("alpha")), original), "is it there yet?"


def test_a_worker_that_is_ready_is_not_held_busy_by_its_script() -> None:
    script = op.Behave("alpha", ("slow:900",))
    away = (*IDLE, script, op.KillTmuxSession("alpha"), START)
    assert not CONTRACT.certain(away, (*IDLE, script, START))


@pytest.mark.parametrize(
    ("shorter", "original"),
    [
        (
            (*IDLE, op.AssertState("alpha", "needs_review")),
            (*READY, op.AssertState("alpha", "needs_review")),
        ),
        ((*UP, op.AssertWorkerExists("alpha")), (*IDLE, op.AssertWorkerExists("alpha"))),
        (
            (common.Reset(), op.Init(), op.Add("alpha"), op.AssertSessionAlive("alpha")),
            (*IDLE, op.AssertSessionAlive("alpha")),
        ),
    ],
)
def test_what_only_the_original_made_true_is_not_asserted(shorter: Run, original: Run) -> None:
    assert CONTRACT.plausible(original, original)
    assert not CONTRACT.plausible(shorter, original)


def test_a_command_that_must_succeed_is_not_expected_to_fail() -> None:
    assert not CONTRACT.plausible((*IDLE, common.ExpectError(START)), ())
    assert CONTRACT.plausible((*IDLE, common.ExpectError(op.Accept("alpha"))), ())


def forms(sequence: Run) -> list[tuple[str, Run]]:
    return list(CONTRACT.simpler(sequence))


def test_a_minimal_sequence_has_no_simpler_form() -> None:
    sequence = (*IDLE, op.Start("alpha", "Create a.txt"), op.Behave("alpha", ("hang",)))
    without_the_worker = ("workers", (common.Reset(), op.Init(), op.Up()))
    assert forms(sequence) == [without_the_worker]


def test_a_combination_is_replaced_by_each_part() -> None:
    both = common.Parallel((op.Accept("alpha"), op.Nuke("alpha")))
    found = [form[-1] for word, form in forms((*IDLE, both)) if word == "unwrap"]
    assert found == [op.Accept("alpha"), op.Nuke("alpha")]


def test_workers_are_merged_and_renamed() -> None:
    sequence = (*UP, op.Add("zeta"), op.Add("omega"), op.Accept("omega"), op.Nuke("zeta"))
    merged = (*UP, op.Add("zeta"), op.Accept("zeta"), op.Nuke("zeta"))
    assert ("workers", merged) in forms(sequence)
    found = dict(reversed(forms(sequence)))
    assert found["names"] == (
        *UP,
        op.Add("alpha"),
        op.Add("beta"),
        op.Accept("beta"),
        op.Nuke("alpha"),
    )


def test_names_that_are_prefixes_of_each_other_are_kept() -> None:
    sequence = (*UP, op.Add("zeta"), op.Add("zeta2"))
    assert "names" not in dict(forms(sequence))


def test_workers_inside_combinations_are_renamed_too() -> None:
    sequence = (
        *UP,
        common.ExpectError(op.Accept("zeta")),
        common.Parallel((op.Nuke("zeta"), op.Nuke("zeta"))),
        op.PauseProcess("agent", worker="zeta", during=op.Message("zeta", "x")),
    )
    renamed = dict(forms(sequence))["names"]
    assert "zeta" not in str(renamed)
    assert len(renamed) == len(sequence)


def test_texts_are_shortened_together_and_one_by_one() -> None:
    sequence = (*IDLE, op.Start("alpha", "long"), op.Message("alpha", "also long"))
    found = [form for word, form in forms(sequence) if word == "texts"]
    short = (op.Start("alpha", "Create a.txt"), op.Message("alpha", "x"))
    assert found[0][-2:] == short
    assert {form[-2:] for form in found[1:]} == {
        (short[0], sequence[-1]),
        (sequence[-2], short[1]),
    }


def test_long_sleeps_shrink_and_short_ones_stay() -> None:
    seconds, rounds = 8.0, 0
    while True:
        found = [form for word, form in forms((*UP, common.Sleep(seconds))) if word == "waits"]
        if not found:
            break
        last = found[0][-1]
        assert isinstance(last, common.Sleep)
        assert last.seconds < seconds
        seconds, rounds = last.seconds, rounds + 1
    assert rounds <= 5
    assert 0.2 <= seconds < 0.5


def test_a_script_is_cut_to_its_first_turn() -> None:
    found = dict(forms((*UP, op.Behave("alpha", ("hang", "obey")))))
    assert found["script"][-1] == op.Behave("alpha", ("hang",))


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_simpler_form_is_longer_than_what_it_simplifies(name: str) -> None:
    for _, form in forms(SCENARIOS[name]):
        assert len(form) <= len(SCENARIOS[name])
        assert form != SCENARIOS[name]
