"""Campaigns without a target: the matrix, the journal, and a crew that dies at every moment."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mutiny.engine.campaigns import (
    JOURNAL,
    MOST_TRIES,
    CampaignJournal,
    Finished,
    Job,
    Standing,
    read_plan,
    read_standing,
    write_plan,
)
from mutiny.engine.causes import Cause
from mutiny.engine.known import Known
from mutiny.engine.rundir import RunDirectory
from mutiny.engine.signature import Failure, clauses_of
from mutiny.engine.sweeping import Point, Sweep
from mutiny.errors import FormatError, UsageError
from mutiny.kit.operations import Sleep
from mutiny.model.verdict import Verdict
from mutiny.modes.campaign import Campaign
from mutiny.modes.campaign_plan import Matrix, jobs_of, read_matrix
from mutiny.modes.campaign_results import finished_of
from mutiny.modes.crew import CrewGone, Delivered, Missing
from mutiny.modes.own_command import Answer
from mutiny.modes.parcels import pack, unpack
from mutiny.report.campaign_page import render

CAUSE = {"rule": "toy.rule", "operation": "Add", "said": ["it · failed"], "operations": 3}
BOARD = ("longboat-board",)


def jobs(count: int) -> tuple[Job, ...]:
    return tuple(Job(f"toy seed {number}", "toy", ("explore",)) for number in range(count))


def passed() -> Answer:
    return Answer(0, {"verdict": "success", "error": None, "coverage": []}, "")


def failed() -> Answer:
    causes = [{**CAUSE, "replay": "d/minimal_replay.json", "count": 1, "first": "seed 1"}]
    document = {"verdict": "bug", "error": None, "coverage": [], "causes": causes}
    return Answer(1, document, "")


class Died(BaseException):
    """kill -9 of whoever carries the campaign out."""


class FakeCrew:
    """Delivers in any order, loses some, and may die."""

    slots = 3

    def __init__(
        self, dice: random.Random, losses: float, die_after: int, journal: Path | None = None
    ) -> None:
        self._dice, self._losses, self._left = dice, losses, die_after
        self._journal = journal
        self._under_way: deque[str] = deque()

    def start(self, id_: str, words: Sequence[str]) -> None:
        self._under_way.append(id_)

    def next(self, timeout_s: float) -> Delivered | Missing | None:
        self._left -= 1
        if self._left < 0:
            if self._journal is None or self._dice.random() < 0.5:
                raise CrewGone("the scheduler is gone")
            raise Died(self._journal.read_bytes())
        if not self._under_way:
            return None
        self._under_way.rotate(self._dice.randrange(3))
        id_ = self._under_way.popleft()
        if self._dice.random() < self._losses:
            return Missing(id_, "its worker died")
        return Delivered(id_, self._dice.choice((passed, failed))(), 1.0, "toy")

    def close(self) -> None:
        pass


def lines(directory: Path) -> list[dict[str, Any]]:
    found = []
    for text in (directory / JOURNAL).read_text().splitlines():
        try:
            found.append(json.loads(text))
        except ValueError:
            continue
    return found


@pytest.mark.parametrize("seed", range(40))
def test_whoever_dies_whenever_each_run_is_counted_once_and_every_loss_named(
    seed: int, tmp_path: Path
) -> None:
    dice = random.Random(seed)
    wanted = jobs(12)
    for _ in range(400):
        try:
            with Campaign(tmp_path, wanted, lambda *_: None) as campaign:
                campaign.run(FakeCrew(dice, 0.2, dice.randrange(1, 9), tmp_path / JOURNAL))
            break
        except CrewGone:
            continue
        except Died as death:  # what it had written stays, perhaps without the end of the last line
            (data,) = death.args
            last = data[:-1].rfind(b"\n") + 1
            cut = dice.randrange(last, len(data)) if dice.random() < 0.5 else len(data)
            (tmp_path / JOURNAL).write_bytes(data[:cut])
    told = lines(tmp_path)
    started = [line["id"] for line in told if line["event"] == "started"]
    over = [line["id"] for line in told if line["event"] in ("finished", "lost")]
    assert len(started) == len(set(started)), "an id is used once"
    assert sorted(over) == sorted(started), "whatever was started has finished or is named lost"
    standing = read_standing(tmp_path, wanted)
    assert set(standing.finished) == {job.key for job in wanted}
    assert not standing.under_way
    finished = [line["key"] for line in told if line["event"] == "finished"]
    assert len(finished) == len(set(finished)), "nothing is counted twice"


def test_a_run_that_is_always_lost_is_given_up_and_has_shown_nothing(tmp_path: Path) -> None:
    with Campaign(tmp_path, jobs(1), lambda *_: None) as campaign:
        campaign.run(FakeCrew(random.Random(1), 1.0, 10_000))
        standing = campaign.standing
    (done,) = standing.finished.values()
    assert (done.verdict, done.reason) == ("inconclusive", f"lost {MOST_TRIES} times, given up")
    assert len(standing.lost) == MOST_TRIES
    assert standing.verdict is Verdict.INCONCLUSIVE


def test_what_was_stopped_is_lost_and_no_pass(tmp_path: Path) -> None:
    error = {"kind": "interrupted", "message": "interrupted by SIGTERM"}
    for answer in (Answer(-9, None, ""), Answer(143, {"verdict": "success", "error": error}, "")):
        assert answer.broken_off is not None
    assert passed().broken_off is None
    assert Standing({"a": jobs(1)[0]}).verdict is Verdict.INCONCLUSIVE


def test_only_one_carries_a_campaign_out(tmp_path: Path) -> None:
    first = CampaignJournal(tmp_path / JOURNAL)
    with pytest.raises(UsageError, match="somebody carries this campaign out"):
        CampaignJournal(tmp_path / JOURNAL)
    first.close()
    CampaignJournal(tmp_path / JOURNAL).close()


def test_a_foreign_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no campaign lies there"):
        read_plan(tmp_path)
    (tmp_path / "campaign.json").write_text('{"format": 9, "title": "", "folder": "", "jobs": []}')
    with pytest.raises(FormatError, match="format 9"):
        read_plan(tmp_path)
    write_plan(RunDirectory(tmp_path), "x", Path("/y"), jobs(2))
    assert read_plan(tmp_path).jobs == jobs(2)
    (tmp_path / JOURNAL).write_text('{"event": "nonsense"}\n')
    with pytest.raises(FormatError, match="unknown event 'nonsense'"):
        read_standing(tmp_path, jobs(2))


# --- the matrix -------------------------------------------------------------------------------------


def test_a_matrix_is_every_run_once_and_targets_take_turns() -> None:
    matrix = Matrix(
        targets=("longboat-board", "longboat-broker"),
        plants=("", "cycle-accepted"),
        seeds=2,
        scenarios=("cycles",),
        sweeps=("crash:ready_tasks:Claim",),
        points=4,
    )
    made = jobs_of(matrix)
    assert len(made) == len({job.key for job in made}) == 4 * 4
    assert [job.key for job in made[:4]] == [
        "longboat-board crash of Claim in ready_tasks",
        "longboat-board+cycle-accepted crash of Claim in ready_tasks",
        "longboat-broker crash of Claim in ready_tasks",
        "longboat-broker+cycle-accepted crash of Claim in ready_tasks",
    ]
    words = " ".join(made[-1].words)
    assert words == (
        "explore --target longboat-broker --plant cycle-accepted --seed 2 --ops 30 --jobs 1 --no-minimise"
    )


@pytest.mark.parametrize(
    ("matrix", "told"),
    [
        (Matrix(), "nothing to run"),
        (Matrix(targets=BOARD, scenarios=("cyles",)), "did you mean 'cycles'"),
        (Matrix(targets=BOARD, sweeps=("crash:cycles",)), "KIND:SCENARIO:OPERATION"),
        (Matrix(targets=BOARD, sweeps=("crahs:cycles:Add",)), "did you mean 'crash'"),
        (Matrix(targets=BOARD, sweeps=("crash:cycles:Nope",)), "no operation 'Nope'"),
        (Matrix(targets=("nobody",), seeds=1), "unknown target 'nobody'"),
        (Matrix(targets=(*BOARD, *BOARD), seeds=1), "named twice"),
        (Matrix(targets=BOARD, seeds=1, programs={"x": "y"}), "none of the targets"),
    ],
)
def test_what_cannot_be_run_is_told_before_anything_runs(matrix: Matrix, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        jobs_of(matrix)


def test_a_file_with_an_unknown_word_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("seds = 3\n")
    with pytest.raises(FormatError, match=r"seds: unknown key \(did you mean 'seeds'"):
        read_matrix(path)
    path.write_text("seeds = -1\nops = 0\n")
    with pytest.raises(FormatError) as caught:
        read_matrix(path)
    assert len(caught.value.problems) == 2


# --- what runs tell ---------------------------------------------------------------------------------


def told(answer: Answer, runs: Path) -> Finished:
    return finished_of(jobs(1)[0], "0.1", answer, seconds=1, at_s=2, where="here", runs=runs)


def test_a_command_without_an_answer_has_shown_nothing(tmp_path: Path) -> None:
    error = {"kind": "inconclusive", "message": "no program"}
    for answer in (Answer(70, None, "x\nboom\n"), Answer(3, {"verdict": None, "error": error}, "")):
        one = told(answer, tmp_path)
        assert one.verdict == "inconclusive"
        assert one.reason


def test_a_sweep_tells_its_causes_and_its_first_bug(tmp_path: Path) -> None:
    bad = {"verdict": "bug", "rule": "toy.rule", "message": "m"}
    good = {**bad, "verdict": "success", "rule": None}
    cause = {"rule": "toy.rule", "operation": "CrashAt(Accept)", "said": ["m"], "operations": 4}
    document = {
        "verdict": "bug",
        "error": None,
        "points": [good, bad, bad],
        "causes": [{**cause, "replay": "d/run_1/minimal_replay.json"}],
        "first_bug": "d/run_1",
    }
    one = told(Answer(1, document, ""), tmp_path)
    assert [cause.text for cause in one.causes] == ["toy.rule at CrashAt(Accept): m"]
    assert (one.directory, one.reason) == ("d/run_1", "toy.rule m")


def test_causes_are_grouped_and_the_shortest_is_kept() -> None:
    standing = Standing({job.key: job for job in jobs(3)})
    for number, length in enumerate((5, 3, 9)):
        key = f"toy seed {number}"
        standing.take({"event": "started", "id": key, "key": key}, "x")
        line = {
            "event": "finished",
            "id": key,
            "key": key,
            "verdict": "bug",
            "seconds": 1,
            "at_s": number + 1.0,
            "causes": [{**CAUSE, "operations": length}],
        }
        standing.take(line, "x")
    (group,) = standing.causes.values()
    assert (group.count, group.first, group.at_s) == (3, "toy seed 0", 1.0)
    assert group.shortest.operations == 3
    assert standing.as_json()["first_bug_s"] == 1.0


def test_a_page_shows_everything_and_obeys_nothing(tmp_path: Path) -> None:
    standing = Standing({job.key: job for job in jobs(2)})
    for id_, key in (("0.1", "toy seed 0"), ("1.1", "toy seed 1")):
        standing.take({"event": "started", "id": id_, "key": key}, "x")
    hostile = "<script>alert(1)</script>"
    standing.take({"event": "lost", "id": "1.1", "key": "toy seed 1", "why": hostile}, "x")
    cause = {**CAUSE, "said": [hostile]}
    line = {"id": "0.1", "key": "toy seed 0", "verdict": "bug", "seconds": 1, "at_s": 2.0}
    standing.take({"event": "finished", **line, "causes": [cause], "cells": ["a|b|c|d"]}, "x")
    page = render(standing, "night", tmp_path / "campaign.html")
    assert hostile not in page
    assert "1 RUNS MISSING" in page
    assert "distinct causes" in page
    assert "cells covered" in page


def test_parcels_bring_everything_home_and_nothing_outside(tmp_path: Path) -> None:
    place = tmp_path / "there"
    (place / "run_1" / "box").mkdir(parents=True)
    (place / "run_1" / "summary.json").write_text("{}")
    (place / "run_1" / "box" / "link").symlink_to("/etc/passwd")
    home = tmp_path / "home"
    unpack(pack(place), home)
    assert (home / "run_1" / "summary.json").read_text() == "{}"
    assert not (home / "run_1" / "box" / "link").is_symlink()


def test_a_cause_that_was_minimised_keeps_its_shortest_replay() -> None:
    (job,) = jobs(1)
    standing = Standing({job.key: job})
    standing.take({"event": "started", "id": "0.1", "key": job.key}, "x")
    line = {"id": "0.1", "key": job.key, "verdict": "bug", "seconds": 1, "at_s": 2.0}
    cause = {**CAUSE, "replay": "d/minimal_replay.json"}
    standing.take({"event": "finished", **line, "causes": [cause]}, "x")
    (group,) = standing.causes.values()
    assert group.can_be_shorter
    standing.take({"event": "minimised", **CAUSE, "operations": 2, "replay": "e"}, "x")
    assert (group.shortest.operations, group.shortest.replay) == (2, "e")
    assert not group.can_be_shorter
    assert group.as_json()["minimised"] is True


def test_what_is_known_is_counted_over_all_runs() -> None:
    two = jobs(2)
    standing = Standing({job.key: job for job in two})
    for number, job in enumerate(two):
        id_ = f"{number}.1"
        standing.take({"event": "started", "id": id_, "key": job.key}, "x")
        met = {"rule": "toy.a", "reason": "being mended", "link": "#1", "count": number + 2}
        line = {"id": id_, "key": job.key, "verdict": "success", "seconds": 1, "at_s": 2.0}
        standing.take({"event": "finished", **line, "known": [met]}, "x")
    told = {"rule": "toy.a", "reason": "being mended", "link": "#1", "count": 5}
    assert standing.as_json()["known"] == [told]
    assert "being mended" in render(standing, "title", Path("campaign.html"))


def test_a_file_of_known_findings_is_read_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text('[[known]]\nrule = "toy.a"\nreason = "old"\nexpires = "2001-01-01"\n')
    with pytest.raises(FormatError, match=r"line 1: toy\.a: it expired on 2001-01-01"):
        jobs_of(Matrix(seeds=1, known=str(path)))


def test_points_of_a_sweep_that_say_the_same_are_one_cause() -> None:
    def point(index: int, rule: str | None, message: str) -> Point:
        if rule is None:
            return Point(Sleep(1.0), index, "call", "p", Verdict.SUCCESS)
        cause = Cause(Failure(rule, said=clauses_of(message)), "CrashAt(Sleep)")
        return Point(Sleep(1.0), index, "call", "p", Verdict.BUG, rule, message, cause=cause)

    sweep = Sweep("crash", "toy", Sleep(1.0))
    said = ((None, ""), ("toy.a", "3 tasks lost"), ("toy.b", "x"), ("toy.a", "5 tasks lost"))
    sweep.points = [point(index, *one) for index, one in enumerate(said)]
    found = [(one["rule"], one["count"], one["first"]) for one in sweep.causes()]
    assert found == [("toy.a", 2, "point 1"), ("toy.b", 1, "point 2")]
    assert sweep.causes()[0]["said"] == ["# tasks lost"]


def test_known_points_of_a_sweep_are_counted_and_are_no_verdict() -> None:
    entry = Known(rule="toy.a", reason="being mended", expires="2999-01-01")
    cause = Cause(Failure("toy.a"), "CrashAt(Sleep)")
    fine = Point(Sleep(1.0), 0, "call", "p", Verdict.SUCCESS)
    known = Point(
        *(Sleep(1.0), 1, "call", "p", Verdict.BUG, "toy.a"),
        cause=cause,
        met=(entry, entry),
        known=entry.reason,
    )
    sweep = Sweep("crash", "toy", Sleep(1.0), points=[fine, known])
    assert (sweep.verdict, sweep.causes()) == (Verdict.SUCCESS, [])
    assert sweep.known == {entry: 2}
    assert Sweep("crash", "toy", Sleep(1.0), points=[known]).verdict is Verdict.SUCCESS
    assert Sweep("crash", "toy", Sleep(1.0)).verdict is Verdict.INCONCLUSIVE
    new = replace(known, known="", met=())
    assert Sweep("crash", "toy", Sleep(1.0), points=[known, new]).verdict is Verdict.BUG
