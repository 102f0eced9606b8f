"""Suggestions follow from what was seen in this run; nothing is canned."""

from __future__ import annotations

from pathlib import Path

from builders import CONTRACT, ok, outcome, refused, step
from mutiny.contracts.base import Evidence
from mutiny.contracts.workers import operations as op
from mutiny.engine.journal import Step
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation
from mutiny.report.investigation import suggestions

LOST = Violation("workers.nothing_lost", "It is gone.", "MT-7f3a-1")


def suggest(tmp_path: Path, *steps: Step, log: str = "") -> list[str]:
    return suggestions(outcome(tmp_path, *steps, evidence=Evidence(daemon_log=log)), CONTRACT.rules)


def failing(result: OperationResult | None = None, **states: dict[str, object]) -> Step:
    return step(
        op.Accept("alpha"),
        Verdict.BUG,
        9,
        LOST,
        result=result,
        pre_state={"workers": states.get("before", {})},
        post_state={"workers": states.get("after", {})},
    )


def test_a_run_that_passed_needs_no_investigation(tmp_path: Path) -> None:
    assert suggest(tmp_path, step(op.Up())) == []


def test_a_failed_run_always_has_somewhere_to_look(tmp_path: Path) -> None:
    for verdict in (Verdict.BUG, Verdict.RECOVERY_BUG, Verdict.TIMEOUT, Verdict.INCONCLUSIVE):
        assert suggest(tmp_path, step(op.Up(), verdict))


def test_the_last_frame_of_a_traceback_comes_first(tmp_path: Path) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/x/cli.py", line 3, in main\n'
        '  File "/x/state.py", line 142, in load\nKeyError: 1\n'
    )
    found = suggest(tmp_path, failing(refused(text)))
    assert found[0].startswith("Look at /x/state.py:142 in load: ")
    assert "the command's output" in found[0]


def test_a_panic_in_the_daemons_log_is_a_place_too(tmp_path: Path) -> None:
    log = "all fine\nthread 'main' panicked at src/state.rs:142: called unwrap on None"
    found = suggest(tmp_path, failing(), log=log)
    assert found[0].startswith("Look at src/state.rs:142: ")
    assert "the daemon's log" in found[0]


def test_frames_of_parallel_commands_are_found(tmp_path: Path) -> None:
    crash = refused('Traceback\n  File "/x/lock.py", line 7, in take\n')
    both = step(
        op.Parallel((op.Up(), op.Up())),
        Verdict.BUG,
        2,
        LOST,
        result=OperationResult(inner=(ok(), crash)),
    )
    assert suggest(tmp_path, both)[0].startswith("Look at /x/lock.py:7 in take")


def test_what_changed_during_the_operation_is_shown(tmp_path: Path) -> None:
    found = suggest(
        tmp_path,
        failing(
            before={
                "alpha": {"status": "needs_review", "commit_sha": "abc"},
                "beta": {"status": "idle"},
            },
            after={
                "alpha": {"status": "needs_review", "commit_sha": None},
                "beta": {"status": "idle"},
            },
        ),
    )
    assert (
        "During Accept worker 'alpha' changed: commit_sha 'abc' -> None. Is that one atomic step?"
        in found
    )
    assert not any("beta" in line for line in found)


def test_workers_that_come_and_go_are_shown(tmp_path: Path) -> None:
    found = suggest(
        tmp_path, failing(before={"alpha": {"status": "idle"}}, after={"beta": {"status": "idle"}})
    )
    assert any("'alpha' vanished from the state during Accept" in line for line in found)
    assert any("'beta' appeared in the state during Accept" in line for line in found)


def test_the_last_fault_and_the_state_it_met(tmp_path: Path) -> None:
    fault = step(
        op.KillDaemon(),
        sequence_id=6,
        result=ok(technique="SIGKILL by handle", fired=True),
        pre_state={"workers": {"alpha": {"status": "working"}}},
    )
    early = step(op.KillAgent("alpha"), sequence_id=3, result=ok(technique="x", fired=True))
    found = suggest(tmp_path, early, fault, failing())
    (line,) = [line for line in found if "The last fault" in line]
    assert "KillDaemon() at step 6 (3 steps before, SIGKILL by handle), with alpha working" in line


def test_without_a_fault_that_is_said(tmp_path: Path) -> None:
    assert any(line.startswith("No fault was injected") for line in suggest(tmp_path, failing()))


def test_the_last_troubled_line_of_the_log(tmp_path: Path) -> None:
    log = "[1] ERROR first\n[2] warn: second\n[3] accepted alpha\n"
    found = suggest(tmp_path, failing(), log=log)
    assert "The daemon's log says: '[2] warn: second'." in found
    assert not any("daemon's log says" in line for line in suggest(tmp_path, failing(), log="fine"))


def test_the_promise_and_whom_it_was_about(tmp_path: Path) -> None:
    (line,) = [line for line in suggest(tmp_path, failing()) if "broken promise" in line]
    assert "(about MT-7f3a-1)" in line
    assert CONTRACT.rules["workers.nothing_lost"].promise in line


def test_doubts_are_told(tmp_path: Path) -> None:
    doubtful = step(op.KillDaemon(), Verdict.INCONCLUSIVE, 2, inconclusive=("no daemon to kill",))
    assert "It could not be tested: no daemon to kill." in suggest(tmp_path, doubtful)


def test_six_are_enough_and_none_comes_twice(tmp_path: Path) -> None:
    before = {f"w{n}": {"status": "idle"} for n in range(20)}
    found = suggest(tmp_path, failing(before=before, after={}))
    assert len(found) == len(set(found)) == 6


def test_different_evidence_gives_different_suggestions(tmp_path: Path) -> None:
    first = suggest(tmp_path, failing(before={"alpha": {"status": "idle"}}, after={}))
    second = suggest(tmp_path, failing(), log="fatal: index.lock exists")
    assert set(first) != set(second)


def test_long_values_are_shortened(tmp_path: Path) -> None:
    found = suggest(
        tmp_path,
        failing(before={"alpha": {"prompt": "x" * 900}}, after={"alpha": {"prompt": "y" * 900}}),
        log="error " + "z" * 900,
    )
    assert all(len(line) < 320 for line in found)
