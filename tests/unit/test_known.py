"""Known findings: what they cover, when they expire, and that a run goes on behind them."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import pytest
from test_causes import failed

from mutiny.contracts.catalogue import all_rules
from mutiny.contracts.workers import operations as op
from mutiny.engine.causes import cause_of
from mutiny.engine.known import Known, KnownFindings, load_known, without_trigger, written
from mutiny.errors import FormatError
from mutiny.kit import operations as common
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.modes.behind import run_behind
from mutiny.modes.bench import Assignment, Bench

RULES = all_rules()
TODAY = datetime.date(2027, 1, 15)
ENTRY = Known(
    rule="workers.no_crash",
    reason="it is being mended",
    expires="2027-01-31",
    said=("it crashed",),
    operation="Accept",
)


def test_an_entry_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    odd = Known(rule="workers.recovers", reason='say "no"\n', expires="2027-01-31", link="#1")
    path.write_text(written(ENTRY) + "\n" + written(odd))
    assert load_known(path, TODAY, RULES).entries == (ENTRY, odd)


def test_steps_that_have_to_stay_are_no_trigger() -> None:
    planned = (common.Reset(), op.Add("a"), op.Accept("a"), op.Nuke("a"), common.Settle())
    outcome = failed(op.Accept("a"), "it crashed")
    steps = tuple(replace(outcome.steps[-1], operation=one) for one in planned[:3])
    stopped = replace(outcome, steps=steps)
    assert without_trigger(stopped, planned) == (*planned[:2], *planned[3:])
    assert without_trigger(stopped, planned, first=3) is None


def test_a_place_with_the_same_right_may_be_named() -> None:
    cause = cause_of(failed(op.Nuke("a"), "it crashed"))
    assert cause is not None
    assert not ENTRY.covers(cause)
    assert ENTRY.covers(cause, also="Accept")


def test_it_covers_what_it_names_and_nothing_else() -> None:
    def covered(operation: Operation, message: str, rule: str = "workers.no_crash") -> bool:
        cause = cause_of(failed(operation, message, rule))
        assert cause is not None
        return ENTRY.covers(cause)

    assert covered(op.Accept("a"), "it crashed")
    assert covered(op.Accept("a"), "it crashed, and more")
    assert not covered(op.Nuke("a"), "it crashed")
    assert not covered(op.Accept("a"), "it hangs")
    assert not covered(op.Accept("a"), "it crashed", "workers.recovers")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (written(ENTRY).replace("2027-01-31", "2027-01-14"), "line 1: .*expired on 2027-01-14"),
        (written(ENTRY).replace("2027-01-31", "soon"), "line 1: .*'soon' is no day"),
        (written(ENTRY).replace("reason", "raeson"), "line 1: .*raeson"),
        (
            written(ENTRY).replace("no_crash", "no_crashes"),
            "line 1: .*no such rule.*'workers.no_crash'",
        ),
        (written(ENTRY).replace("no_crash", "*"), "line 1: .*there is no such rule"),
        ("[known]\nrule = 1\n", r"entries begin with a line \[\[known\]\]"),
        (f"{written(ENTRY)}\n[other]\n", "unknown table 'other'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "known.toml"
    path.write_text(text)
    with pytest.raises(FormatError, match=said):
        load_known(path, TODAY, RULES)


def test_a_day_of_toml_is_a_day(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(written(ENTRY).replace('"2027-01-31"', "2027-01-31"))
    assert load_known(path, TODAY, RULES).entries == (ENTRY,)


def test_behind_the_last_step_there_is_nothing() -> None:
    outcome = failed(op.Accept("a"), "it crashed", steps=2)
    planned = (op.Status(), op.Accept("a"), op.Nuke("a"), op.Status())
    assert without_trigger(outcome, planned) == (op.Status(), op.Nuke("a"), op.Status())
    assert without_trigger(outcome, planned[:2]) is None


def test_what_a_sequence_expects_behind_a_finding_is_not_asked() -> None:
    outcome = failed(op.Accept("a"), "it crashed", steps=2)
    behind = (common.ExpectError(op.Nuke("a")), op.AssertState("a", "idle"), op.WaitForIdle("a"))
    left = without_trigger(outcome, (op.Status(), op.Accept("a"), *behind))
    assert left == (op.Status(), op.Nuke("a"), common.Settle())


def test_a_run_goes_on_without_the_step_that_showed_a_known_finding(tmp_path: Path) -> None:
    bench = Bench(None, tmp_path, known=KnownFindings((ENTRY,)))  # type: ignore[arg-type]
    runs: list[tuple[Operation, ...]] = []

    def run(assignment: Assignment, _kind: str) -> object:
        runs.append(assignment.operations)
        first = next(i for i, one in enumerate(assignment.operations) if one != op.Status())
        said = "it crashed" if assignment.operations[first] == op.Accept("a") else "it hangs"
        return failed(assignment.operations[first], said, steps=first + 1)

    planned = (op.Status(), op.Accept("a"), op.Nuke("a"), op.Status())
    tried = run_behind(bench, Assignment(planned, "one", 1), run)  # type: ignore[arg-type]
    assert runs == [planned, (op.Status(), op.Nuke("a"), op.Status())]
    assert [entry for entry, _ in tried.met] == [ENTRY]
    assert not tried.only_known
    assert "it hangs" in tried.outcome.reason


@pytest.mark.parametrize(("fired", "goes_on"), [(False, True), (True, False)])
def test_behind_a_known_finding_a_fault_without_a_victim_is_left_out(
    tmp_path: Path, fired: bool, goes_on: bool
) -> None:
    bench = Bench(None, tmp_path, known=KnownFindings((ENTRY,)))  # type: ignore[arg-type]
    runs: list[tuple[Operation, ...]] = []

    def run(assignment: Assignment, _kind: str) -> object:
        runs.append(assignment.operations)
        place = next(i for i, one in enumerate(assignment.operations) if one != op.Status())
        outcome = failed(assignment.operations[place], "it crashed", steps=place + 1)
        if assignment.operations[place] == op.Accept("a"):
            return outcome
        result = OperationResult(1, stderr="no agent to kill", fired=fired)
        last = replace(
            outcome.steps[-1], result=result, verdict=Verdict.INCONCLUSIVE, violations=()
        )
        steps = (*outcome.steps[:-1], last)
        return replace(outcome, steps=steps, verdict=Verdict.INCONCLUSIVE)

    planned = (op.Status(), op.Accept("a"), op.KillAgent("a"), op.Nuke("a"), op.Status())
    tried = run_behind(bench, Assignment(planned, "one", 1), run)  # type: ignore[arg-type]
    left = [planned, (op.Status(), *planned[2:]), (op.Status(), *planned[3:])]
    assert runs == left[: 3 if goes_on else 2]
    assert len(tried.met) == 1


def test_the_same_finding_is_known_once_whatever_is_told_about_it() -> None:
    first = Known(rule="workers.recovers", reason="one", expires="2027-01-31", said=("a", "b"))
    again = replace(first, reason="other", expires="2027-02-28", said=("b", "a"))
    assert first.names_the_same(again)
    assert not first.names_the_same(replace(again, operation="Up"))
