"""Hints follow from what was seen in this run, and carry it; nothing is canned."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import CONTRACT, TRACEBACK, ok, outcome, step
from mutiny.contracts.workers import operations as op
from mutiny.engine.journal import Step
from mutiny.kit import operations as common
from mutiny.kit.contract import Evidence
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation
from mutiny.report.changes import changes
from mutiny.report.investigation import Hint, suggestions
from mutiny.report.story import disturbances

BEGUN = op.Start("alpha", "x")
LOST = Violation("workers.nothing_lost", "It is gone.", "MT-7f3a-1")
ABOUT = Violation("workers.review_has_commit", "It names no commit.", "alpha")
FIRED = ok(technique="SIGKILL by handle", fired=True)


def suggest(tmp_path: Path, *steps: Step, log: str = "") -> list[Hint]:
    return suggestions(outcome(tmp_path, *steps, evidence=Evidence(daemon_log=log)), CONTRACT.rules)


def texts(hints: list[Hint]) -> str:
    return "\n".join(hint.text for hint in hints)


def failing(
    result: OperationResult | None = None, violation: Violation = LOST, **states: dict[str, object]
) -> Step:
    return step(
        op.Accept("alpha"),
        Verdict.BUG,
        9,
        violation,
        result=result,
        pre_state={"workers": states.get("before", {})},
        post_state={"workers": states.get("after", {})},
    )


def test_a_run_that_passed_needs_no_investigation(tmp_path: Path) -> None:
    assert suggest(tmp_path, step(op.Up())) == []


def test_a_failed_run_always_has_somewhere_to_look(tmp_path: Path) -> None:
    for verdict in (Verdict.BUG, Verdict.RECOVERY_BUG, Verdict.TIMEOUT, Verdict.INCONCLUSIVE):
        assert suggest(tmp_path, step(op.Up(), verdict))


def test_the_place_of_a_crash_comes_first(tmp_path: Path) -> None:
    found = suggest(tmp_path, failing(OperationResult(1, stderr=TRACEBACK)))
    assert found[0].text.startswith("Look at /opt/tool/store.py:31 in save: ")
    assert "the command's output: OSError" in found[0].evidence


def test_a_panic_in_the_daemons_log_is_a_place_too(tmp_path: Path) -> None:
    log = "all fine\nthread 'main' (7) panicked at src/state.rs:142:9:\ncalled unwrap on None"
    found = suggest(tmp_path, failing(), log=log)
    assert found[0].text.startswith("Look at src/state.rs:142: ")
    assert "the daemon's log" in found[0].evidence


def test_a_place_that_no_crash_names_is_no_hint(tmp_path: Path) -> None:
    found = suggest(tmp_path, failing(OperationResult(1, stderr="see notes.py:3 for help")))
    assert "notes.py" not in texts(found)


def test_crashes_of_parallel_commands_are_found(tmp_path: Path) -> None:
    both = step(
        common.Parallel((op.Up(), op.Up())),
        Verdict.BUG,
        2,
        LOST,
        result=OperationResult(inner=(ok(), OperationResult(1, stderr=TRACEBACK))),
    )
    assert suggest(tmp_path, both)[0].text.startswith("Look at /opt/tool/store.py:31")


def test_what_changed_about_whom_it_is_about_is_shown(tmp_path: Path) -> None:
    found = suggest(
        tmp_path,
        failing(
            violation=ABOUT,
            before={"alpha": {"commit_sha": "abc"}, "beta": {"status": "idle"}},
            after={"alpha": {"commit_sha": None}, "beta": {"status": "working"}},
        ),
    )
    (hint,) = [hint for hint in found if "changed" in hint.text]
    assert '`workers.alpha.commit_sha`: "abc" -> null' in hint.text
    assert "beta" not in hint.text
    assert "step 9" in hint.evidence


def test_what_nothing_changed_in_is_told_with_its_last_change(tmp_path: Path) -> None:
    idle, working = ({"workers": {"alpha": {"status": word}}} for word in ("idle", "working"))
    start = step(op.Start("alpha", "x"), sequence_id=6, pre_state=idle, post_state=working)
    wait = step(
        op.WaitForIdle("alpha"), Verdict.BUG, 7, ABOUT, pre_state=working, post_state=working
    )
    told = texts(suggest(tmp_path, start, wait))
    assert "the last change was in step 6" in told
    assert '`workers.alpha.status`: "idle" -> "working"' in told


def test_the_last_fault_that_fired_and_its_distance(tmp_path: Path) -> None:
    early = step(op.KillAgent("alpha"), sequence_id=3, result=FIRED)
    fault = step(op.KillDaemon(), sequence_id=6, result=FIRED)
    found = suggest(tmp_path, early, fault, failing())
    (hint,) = [hint for hint in found if "The last fault" in hint.text]
    assert "`KillDaemon` (SIGKILL by handle), 3 steps before" in hint.text
    assert "step 6" in hint.evidence


def test_a_fault_that_did_not_fire_is_not_counted_as_one(tmp_path: Path) -> None:
    nothing = ok(fired=False, stderr="no daemon to kill")
    told = texts(suggest(tmp_path, step(op.KillDaemon(), sequence_id=2, result=nothing), failing()))
    assert "did not happen" in told
    assert "The last fault" not in told
    assert "No fault" not in told, "one was asked for"


def test_without_a_fault_that_is_said(tmp_path: Path) -> None:
    told = texts(suggest(tmp_path, step(common.Reset()), failing()))
    assert "No fault and no forced order was needed: the plain sequence" in told


def test_an_unusual_machine_is_named(tmp_path: Path) -> None:
    hook = common.Reset(surroundings="git_hook")
    told = texts(suggest(tmp_path, step(hook), failing()))
    assert "the plain sequence" not in told
    assert 'Reset(surroundings="git_hook")' in told


@pytest.mark.parametrize("gone", [True, False])
def test_durability_is_asked_about_only_where_the_death_took_it(tmp_path: Path, gone: bool) -> None:
    there: dict[str, object] = {"workers": {"alpha": {"status": "idle"}}}
    after: dict[str, object] = {"workers": {}} if gone else there
    add = step(op.Add("alpha"), sequence_id=4)
    kill = step(op.KillDaemon(), sequence_id=5, result=FIRED, pre_state=there, post_state=after)
    lost = Violation("workers.worker_kept", "Worker 'alpha' has vanished.", "alpha")
    up = step(op.Up(), Verdict.RECOVERY_BUG, 6, lost, pre_state=after, post_state={"workers": {}})
    told = texts(suggest(tmp_path, add, kill, up))
    assert ("synced before its answer" in told) is gone


def test_durability_is_not_asked_about_after_unrelated_faults(tmp_path: Path) -> None:
    dirty = step(op.DirtySource(), sequence_id=5, result=FIRED)
    told = texts(suggest(tmp_path, step(op.Add("alpha"), sequence_id=4), dirty, failing()))
    assert "synced" not in told
    assert "durable" not in told


def turn(command: int, first: str, read: list[str], changed: list[str]) -> dict[str, object]:
    return {
        "command": command,
        "calls": 4,
        "first": first,
        "last": "openat log",
        "read": read,
        "changed": changed,
    }


@pytest.mark.parametrize("meets", [True, False])
def test_an_order_names_the_file_that_was_read_before_and_changed_in_between(
    tmp_path: Path, meets: bool
) -> None:
    turns = [
        turn(0, "start", ["state.json"], []),
        turn(1, "start", [], ["state.json" if meets else "log"]),
        turn(0, "rename tmp -> state.json", [], ["state.json"]),
    ]
    both = common.Interleave((op.Accept("a"), op.Nuke("b")), "0x4 1x4 0x4")
    result = OperationResult(inner=(ok(), ok()), details={"turns": turns})
    found = suggest(tmp_path, step(both, Verdict.BUG, 1, LOST, result=result))
    assert "stopped before `rename tmp -> state.json`" in found[0].text + found[0].evidence
    assert ("had read `state.json`" in found[0].text) is meets
    assert ("changed it afterwards" in found[0].text) is meets


@pytest.mark.parametrize(
    ("where", "in_place"),
    [
        ("call 8 python tool#1 write state.json", True),
        ("call 8 python tool#1 write state.json.<n>.tmp", False),
        ("call 8 python tool#1 rename x -> state.json", False),
    ],
)
def test_a_file_that_is_written_in_place_is_seen_where_it_was_broken_off(
    tmp_path: Path, where: str, in_place: bool
) -> None:
    crash = step(
        common.CrashAt(op.Start("alpha", "x"), 8),
        sequence_id=2,
        result=ok(fired=True, stdout=where),
    )
    unreadable = Violation("workers.state_readable", "It cannot be read.")
    found = suggest(tmp_path, crash, step(op.Up(), Verdict.BUG, 3, unreadable))
    assert ("written in place" in texts(found)) is in_place


@pytest.mark.parametrize("rule", ["workers.completes", "workers.review_has_commit"])
def test_a_worker_that_stands_still_is_shown_with_what_its_agent_did_last(
    tmp_path: Path, rule: str
) -> None:
    late = step(op.WaitForIdle("alpha"), Verdict.BUG, 3, Violation(rule, "It stays.", "alpha"))
    panes = {"tool-alpha": "> Create a\n● committed 7b84.\n>\n", "tool-beta": "● other"}
    evidence = Evidence(panes=panes)
    found = suggestions(outcome(tmp_path, late, evidence=evidence), CONTRACT.rules)
    shown = [hint.evidence for hint in found if "session" in hint.text]
    assert shown == (["tool-alpha: ● committed 7b84."] if rule.endswith("completes") else [])


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize(
    ("point", "word"),
    [
        (common.FailAt(BEGUN, 7), "failed with ENOSPC"),
        (common.FullAt(BEGUN, 7), "the disk was full from"),
        (common.TearAt(BEGUN, 7, "short"), "was written, and the caller was told so"),
    ],
)
def test_an_error_that_was_answered_with_success_is_told(
    tmp_path: Path, code: int, point: Operation, word: str
) -> None:
    result = ok(fired=True, stdout="call 7 tool#1 write state.tmp", inner=(OperationResult(code),))
    found = suggest(tmp_path, step(point, Verdict.BUG, 2, LOST, result=result))
    assert ("answered success although" in texts(found)) is (code == 0)
    assert word in texts(found)


def test_the_last_troubled_line_of_the_log_is_evidence(tmp_path: Path) -> None:
    log = "[1] ERROR first\n[2] warn: second\n[3] accepted alpha\n"
    found = suggest(tmp_path, failing(), log=log)
    assert "[2] warn: second" in [hint.evidence for hint in found]
    assert "log" not in texts(suggest(tmp_path, failing(), log="fine"))


def test_doubts_are_told(tmp_path: Path) -> None:
    doubtful = step(op.KillDaemon(), Verdict.INCONCLUSIVE, 2, inconclusive=("no daemon to kill",))
    assert "It could not be tested: no daemon to kill" in texts(suggest(tmp_path, doubtful))


def test_long_values_are_shortened(tmp_path: Path) -> None:
    found = suggest(
        tmp_path,
        failing(
            violation=ABOUT,
            before={"alpha": {"prompt": "x" * 900}},
            after={"alpha": {"prompt": "y" * 900}},
        ),
        log="error " + "z" * 900,
    )
    assert all(len(hint.text) < 320 and len(hint.evidence) < 320 for hint in found)


# --- the class: nothing is said that was not seen -----------------------------------------------------

DEEDS: list[tuple[Operation, OperationResult]] = [
    (op.Up(), ok()),
    (op.Start("alpha", "x"), ok()),
    (op.KillDaemon(), FIRED),
    (op.KillDaemon(), ok(fired=False)),
    (op.DirtySource(), FIRED),
    (op.Behave("alpha", ("crash",)), ok()),
    (op.Behave("alpha", ("slow:100",)), ok()),
    (common.Parallel((op.Up(), op.Status())), ok(inner=(ok(), ok()))),
    (common.Interleave((op.Up(), op.Status()), "0x1 1x2"), ok(inner=(ok(), ok()))),
    (common.CrashAt(op.Start("alpha", "x"), 3), ok(fired=True, inner=(ok(),))),
    (common.FailAt(op.Start("alpha", "x"), 3), ok(fired=False, inner=(ok(),))),
]


@settings(max_examples=150, deadline=None)
@given(deeds=st.lists(st.sampled_from(DEEDS), max_size=6), verdict=st.sampled_from(list(Verdict)))
def test_no_fault_is_claimed_only_where_nothing_fired_and_every_hint_has_evidence(
    tmp_path_factory: pytest.TempPathFactory,
    deeds: list[tuple[Operation, OperationResult]],
    verdict: Verdict,
) -> None:
    steps = [step(one, sequence_id=n, result=result) for n, (one, result) in enumerate(deeds, 1)]
    steps.append(step(op.Accept("alpha"), verdict, len(steps) + 1, LOST))
    found = suggest(tmp_path_factory.getbasetemp(), *steps)
    told = texts(found)
    fired = any(result.fired for _, result in deeds)
    forced = any(isinstance(one, common.Parallel | common.Interleave) for one, _ in deeds)
    if fired or forced:
        assert "No fault" not in told
        assert disturbances(steps)
    if not fired and not any(isinstance(one, op.Behave) for one, _ in deeds):
        assert "The last fault" not in told
    assert all(hint.evidence.strip() and hint.text.strip() for hint in found)
    assert len(found) == len({hint.text for hint in found}) <= 6


def test_a_field_that_tells_of_no_error_is_no_trouble(tmp_path: Path) -> None:
    quiet = '{"event": "effect", "exit_code": 0, "error": "", "failed": 0, "warnings": [], "fatal":null}'
    assert "tells of trouble" not in texts(suggest(tmp_path, failing(), log=quiet))
    loud = '{"event": "effect", "error": "no space left"}'
    assert "tells of trouble" in texts(suggest(tmp_path, failing(), log=f"{quiet}\n{loud}"))


def test_what_changed_in_an_entry_of_a_list_is_about_whom_the_entry_names(tmp_path: Path) -> None:
    run = {"id": 1, "agent": "prime", "status": "pending"}
    about = Violation("workers.review_has_commit", "It has no run.", "prime")
    bad = step(
        op.Accept("alpha"),
        Verdict.BUG,
        9,
        about,
        pre_state={"runs": [run]},
        post_state={"runs": [{**run, "status": "completed"}, {**run, "id": 2, "agent": "other"}]},
    )
    told = texts(suggest(tmp_path, bad))
    assert '`runs.1.status`: "pending" -> "completed"' in told
    assert "runs.2" not in told


def test_of_a_long_list_what_came_and_went_is_told() -> None:
    before = [[number, "a message", "of somebody"] for number in range(9)]
    after = [*before[1:], [9, "a message", "of nobody"]]
    assert [str(one) for one in changes({"m": before}, {"m": after})] == [
        '`m`: [0, "a message", "of somebody"] -> (not there)',
        '`m`: (not there) -> [9, "a message", "of nobody"]',
    ]
    assert [str(one) for one in changes({"m": ["a"]}, {"m": []})] == ['`m`: ["a"] -> []']
    assert [one.path for one in changes({"m": before}, {"m": before[::-1]})] == [("m",)]
