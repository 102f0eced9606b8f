"""Races: what competes, how many rounds say how much, and where no order can be chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.races import contests, lock_checks, races
from mutiny.errors import UsageError
from mutiny.kit.operations import Parallel
from mutiny.model.verdict import Verdict
from mutiny.modes.race import KINDS, Race, Racer, Tried, bound, rounds_of
from mutiny.targets.board.spec import BoardSpec
from mutiny.targets.registry import find_target, shipped

SPEC = BoardSpec.load(shipped()["longboat-board"])
PROFILE = SPEC.profile


def test_the_bound_of_rounds_without_a_bug() -> None:
    assert bound(0) == 1.0
    assert bound(1) == pytest.approx(0.95)
    assert bound(20) == pytest.approx(0.1391, abs=1e-4)
    assert bound(1000) == pytest.approx(3 / 1000, rel=0.01)  # the rule of three


def test_claims_are_for_one_task_by_different_workers() -> None:
    (contest,) = contests(PROFILE, "claims", "-7", 3)
    claims = [part for part in contest.together if isinstance(part, op.Claim)]
    assert len({claim.worker for claim in claims}) == 3
    assert {claim.task for claim in claims} == {"task-7"}


@pytest.mark.parametrize("kind", ["claims", "update", "toctou"])
def test_rounds_do_not_share_tasks(kind: str) -> None:
    sequence = rounds_of(races(SPEC), kind, 5, 2)
    added = [one.task for one in sequence if isinstance(one, op.AddTask)]
    assert len(added) == len(set(added))
    assert sum(1 for one in sequence if isinstance(one, Parallel)) in (5, 10)
    assert sequence[-1] == op.Settle()


def test_every_kind_has_something_to_try() -> None:
    assert [kind for kind in KINDS if contests(PROFILE, kind, "", 2)] == [
        "claims",
        "update",
        "toctou",
    ]
    held = [one for one in lock_checks(PROFILE) if isinstance(one, op.HoldBoardLock)]
    assert {one.during.type for one in held if one.during} == {
        *("AddTask", "Claim", "Complete", "Cancel")
    }


def test_a_board_is_asked_only_what_it_has_words_for() -> None:
    silent = replace(PROFILE, lacks=("Configure", "Checkpoint", "Complete"), names_tasks=False)
    assert [contest.name for contest in contests(silent, "toctou", "", 2)] == [
        "cancel against claim"
    ]
    (contest,) = contests(silent, "claims", "", 2)
    assert all(one.task is None for one in contest.together if isinstance(one, op.Claim))
    begin = rounds_of(races(replace(SPEC, profile=silent)), "update", 1, 2)
    assert not any(isinstance(one, op.Configure) for one in begin)
    held = [one for one in lock_checks(silent) if isinstance(one, op.HoldBoardLock)]
    assert {one.during.type for one in held if one.during} == {"AddTask", "Cancel"}, (
        "its claims cannot name a task"
    )


def part(verdict: Verdict, how: str = "rounds") -> Tried:
    return Tried("claims", "2 claims", how, verdict, 20)


def test_only_rounds_without_a_bug_have_a_bound() -> None:
    assert part(Verdict.SUCCESS).rate_at_most == pytest.approx(bound(20))
    assert part(Verdict.EXPECTED).rate_at_most == pytest.approx(bound(20))
    assert part(Verdict.BUG).rate_at_most is None
    assert part(Verdict.SUCCESS, "exhaustive").rate_at_most is None


def test_a_race_without_parts_has_tested_nothing() -> None:
    assert Race("x").verdict is Verdict.INCONCLUSIVE
    assert Race("x", [part(Verdict.SUCCESS), part(Verdict.BUG)]).verdict is Verdict.BUG


class Bench:
    """A bench that only knows its target."""

    def __init__(self, name: str) -> None:
        self.target = find_target(name)


def test_where_commands_meet_in_a_server_that_is_said() -> None:
    bench: Any = Bench("longboat-broker")
    race = Racer(bench, rounds=0).run(KINDS)
    assert "one server process" in race.not_applicable["exhaustive"]
    assert "lock" in race.not_applicable
    assert race.verdict is Verdict.INCONCLUSIVE


def test_only_boards_can_be_raced() -> None:
    bench: Any = Bench("longboat")
    with pytest.raises(
        UsageError, match="longboat is a fleet of workers; `mutiny race` needs a board"
    ):
        Racer(bench).run(KINDS)
