"""`mutiny sweep` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mutiny_command import Ran, run_mutiny


def sweep(tmp_path: Path, *words: str) -> Ran:
    return run_mutiny(tmp_path, "sweep", *words)


def document(ran: Ran) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("kind", ["crash", pytest.param("fsync", marks=pytest.mark.slow)])
def test_a_healthy_operation_passes_at_every_chosen_point(tmp_path: Path, kind: str) -> None:
    ran = sweep(
        *(tmp_path, kind, "--scenario", "basic_lifecycle", "--at", "Add", "--points", "3", "--json")
    )
    assert ran.code == 0, ran.stdout + ran.stderr
    told = document(ran)
    assert [point["verdict"] for point in told["points"]] == ["success"] * 3
    assert told["left_out"] > 50
    page = (tmp_path / told["page"]).read_text()
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.slow
def test_a_daemon_may_die_after_any_change_of_files(tmp_path: Path) -> None:
    ran = sweep(
        *(tmp_path, "daemon", "--scenario", "basic_lifecycle", "--at", "Add"),
        *("--points", "4", "--json"),
    )
    assert ran.code == 0, ran.stdout + ran.stderr
    told = document(ran)
    assert [point["verdict"] for point in told["points"]] == ["success"] * 4
    assert "(then Up)" in told["points"][0]["call"]
    assert told["left_out"] > 20


@pytest.mark.slow
def test_a_rebase_that_stopped_at_a_conflict_survives_a_power_cut(tmp_path: Path) -> None:
    ran = sweep(
        *(tmp_path, "fsync", "--scenario", "conflict_with_upstream", "--at", "Rebase"),
        *("--points", "2", "--json"),
    )
    assert ran.code == 0, ran.stdout + ran.stderr
    last = document(ran)["points"][-1]
    assert "after the last call" in last["call"]
    assert last["verdict"] == "success"


@pytest.mark.deep
def test_the_point_after_the_last_call_is_met_whatever_their_number(tmp_path: Path) -> None:
    """The number of calls of the traced command is no number that a replay can rely on."""
    send = ("--target", "longboat-spawns", "--scenario", "one_mention", "--at", "Send")
    words = ("fsync", *send, "--points", "2", "--plant", "spawns-unsynced", "--json")
    told = document(sweep(tmp_path, *words))
    (cause,) = told["causes"]
    replay = json.loads((tmp_path / cause["replay"]).read_text())
    (point,) = [each for each in replay["operations"] if each["type"] == "PowerLossAt"]
    assert point["args"]["call"] == -1
    ran = run_mutiny(tmp_path, "replay", cause["replay"], "--expect", cause["rule"])
    assert ran.code == 0, ran.stdout + ran.stderr


@pytest.mark.slow
def test_errors_of_calls_are_answered_truthfully(tmp_path: Path) -> None:
    ran = sweep(
        *(tmp_path, "errno", "--scenario", "basic_lifecycle", "--at", "Start"),
        *("--only", "ENOSPC", "--points", "4"),
    )
    assert ran.code == 0, ran.stdout + ran.stderr
    assert "4 points: 4 success" in ran.stdout


@pytest.mark.slow
def test_the_first_bug_has_a_replay_that_names_the_exact_point(tmp_path: Path) -> None:
    ran = sweep(
        *(tmp_path, "crash", "--scenario", "basic_lifecycle", "--at", "Start", "--until-bug"),
        *("--plant", "unlink-before-rename", "--json"),
    )
    assert ran.code == 1, ran.stdout + ran.stderr
    told = document(ran)
    last = told["points"][-1]
    assert last["operation"]["type"] == "CrashAt"
    replay = tmp_path / told["first_bug"] / "minimal_replay.json"
    assert last["operation"] in json.loads(replay.read_text())["operations"]
    again = run_mutiny(tmp_path, "replay", str(replay))
    assert again.code == 1


def test_what_is_no_command_cannot_be_swept_and_is_no_bug(tmp_path: Path) -> None:
    ran = run_mutiny(
        *(tmp_path, "sweep", "crash", "--target", "longboat-broker"),
        *("--scenario", "ready_tasks", "--at", "Init"),
    )
    assert ran.code == 3, ran.stdout + ran.stderr
    assert "Init is no command" in ran.stdout
    assert "bug" not in ran.stdout


@pytest.mark.slow
def test_a_server_comes_back_to_a_board_whose_repair_never_began(tmp_path: Path) -> None:
    ran = run_mutiny(
        *(tmp_path, "sweep", "crash", "--target", "longboat-broker"),
        *("--scenario", "corrupt_store", "--at", "Repair", "--points", "2"),
    )
    assert ran.code == 0, ran.stdout + ran.stderr


def test_a_bug_of_the_unbroken_run_has_a_report(tmp_path: Path) -> None:
    ran = run_mutiny(
        *(tmp_path, "sweep", "crash", "--target", "longboat-board", "--plant", "cycle-accepted"),
        *("--scenario", "cycles", "--at", "AddBatch"),
    )
    assert ran.code == 1, ran.stdout + ran.stderr
    told = ran.stdout.partition("First bug: ")[2].splitlines()[0]
    assert "board.cycles_refused" in (tmp_path / told).read_text()


@pytest.mark.slow
def test_one_exact_order_of_two_commands(tmp_path: Path) -> None:
    ran = sweep(
        *(tmp_path, "preempt", "--scenario", "racing_adds", "--at", "Parallel"),
        *("--plant", "lock-not-taken", "--points", "20", "--json"),
    )
    assert ran.code == 1, ran.stdout + ran.stderr
    bug = document(ran)["points"][-1]
    assert bug["operation"]["type"] == "Interleave"
    assert "0x" in bug["operation"]["args"]["schedule"]


@pytest.mark.slow
def test_a_daemon_that_a_schedule_leaves_behind_is_no_bug(tmp_path: Path) -> None:
    """Mutiny's own filter stays on the daemon of `up`: it must be served to the end of the run."""
    ran = sweep(
        *(tmp_path, "preempt", "--scenario", "basic_lifecycle", "--at", "Up"),
        *("--points", "4", "--json"),
    )
    assert ran.code == 0, ran.stdout + ran.stderr
    assert [point["verdict"] for point in document(ran)["points"]] == ["success"] * 4


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("crash", "--scenario", "basic_lifecycle", "--at", "Nuke"), "no operation 'Nuke'"),
        (("crash", "--scenario", "racing_adds", "--at", "Parallel"), "breaks one command"),
        (
            ("daemon", "--target", "longboat-board", "--scenario", "thief", "--at", "AddTask"),
            "no process that works on after AddTask",
        ),
    ],
)
def test_what_cannot_be_swept_is_refused(
    tmp_path: Path, words: tuple[str, ...], complaint: str
) -> None:
    ran = sweep(tmp_path, *words)
    assert ran.code == 2
    assert complaint in ran.stderr
    assert not (tmp_path / "chaos_runs").exists() or complaint


KNOWN = """
[[known]]
rule = "{rule}"
reason = "being mended"
expires = "2999-01-01"
"""
ADD = ("--target", "longboat-board", "--scenario", "cycles", "--at", "AddTask", "--json")


def known(tmp_path: Path, rule: str) -> tuple[str, str]:
    (tmp_path / "known.toml").write_text(KNOWN.format(rule=rule))
    return "--known", "known.toml"


@pytest.mark.slow
def test_a_known_finding_is_shown_and_fails_no_sweep(tmp_path: Path) -> None:
    words = ("crash", *ADD, "--plant", "board-in-place")
    told = document(sweep(tmp_path, *words))
    (cause,) = told["causes"]
    assert (cause["rule"], cause["operation"]) == ("board.state_readable", "CrashAt(AddTask)")
    assert json.loads((tmp_path / cause["replay"]).read_text())["expect"] == cause["rule"]
    ran = sweep(tmp_path, *words, *known(tmp_path, "board.state_readable"))
    assert ran.code == 0, ran.stdout + ran.stderr
    told = document(ran)
    assert [one["rule"] for one in told["points"] if one["known"]] == ["board.state_readable"]
    assert [(one["reason"], one["count"]) for one in told["known"]] == [("being mended", 1)]
    assert told["causes"] == []


@pytest.mark.slow
def test_orders_behind_a_known_finding_are_tried(tmp_path: Path) -> None:
    words = ("preempt", *ADD, "--plant", "board-without-lock", "--points", "8")
    ran = sweep(tmp_path, *words, *known(tmp_path, "board.rejects_illegal"))
    assert ran.code == 0, ran.stdout + ran.stderr
    points = document(ran)["points"]
    first = next(place for place, one in enumerate(points) if one["known"])
    assert len(points) == 8
    assert first < 7
