"""Drivers of the real coordination system: its words become ours; no real target is needed."""

from __future__ import annotations

import errno
import fcntl
import json
import subprocess
import sys
import threading
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import pytest

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.explain import KNOWN
from mutiny.contracts.board.scenarios import scenarios_of
from mutiny.contracts.board.supported import supported
from mutiny.doubles import mcp_client
from mutiny.engine.replay import load
from mutiny.kit.operations import ExpectError
from mutiny.targets import drivers
from mutiny.targets.board.spec import BoardSpec
from mutiny.targets.drivers import common, coordination_a, coordination_b, coordination_c

FINDINGS = Path(__file__).parents[2] / "docs" / "findings" / "coordination"
TARGETS = ("coordination-a", "coordination-b", "coordination-c")


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What can never be read is read again for a moment only."""
    monkeypatch.setattr(common, "READ_WITHIN_S", 0.05)


def target(name: str) -> Path:
    return Path(str(files("mutiny.targets.files").joinpath(f"{name}.toml")))


# --- texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "text", "said"),
    [
        ("add", "✓ Added task task-2026-ab12\n", {"ok": True, "task": "task-2026-ab12"}),
        ("claim", "Claimed task t-1\n  Description: x\n", {"ok": True, "task": "t-1"}),
        ("claim", "No available tasks with satisfied dependencies", {"error": "nothing_to_claim"}),
        (
            "start",
            "✗ Cannot start task t-1 - not claimed by w2",
            {"error": "not_owner|unknown_task"},
        ),
        ("complete", "X Task t-1 not claimed by w2", {"error": "not_owner"}),
        ("complete", "✗ Task nobody not found", {"error": "unknown_task"}),
        ("fail", "✗ Task t-1 marked as failed: it broke", {"ok": True, "task": "t-1"}),
        ("cancel", "X Cannot cancel task t-1 - status is done", {"error": "wrong_status"}),
        ("retry", "X Task t-1 is not failed (status: done)", {"error": "wrong_status"}),
        ("restore", "Checkpoint not found: one", {"error": "unknown_checkpoint"}),
        ("recover", "...\nMaintenance complete: 0 boosted, 0 reassigned", {"ok": True}),
        ("heartbeat", "", {"ok": True}),
        ("claim", "something new", {"ok": False, "error": ""}),
    ],
)
def test_a_is_read_from_its_texts(verb: str, text: str, said: dict[str, object]) -> None:
    phrase = coordination_a.PHRASES[verb]
    answer = common.understood(text, phrase.success, phrase.refusals)
    assert {key: answer[key] for key in said} == said


def test_a_repair_that_failed_is_no_success_although_it_says_so() -> None:
    text = (
        "! Crash detected - attempting recovery from backup...\n"
        "Failed to restore: corrupted backup file - Expecting value\n"
        "✓ No recovery needed - state is healthy\n"
    )
    phrase = coordination_a.PHRASES["repair"]
    answer = common.understood(text, phrase.success, phrase.refusals)
    assert (answer["ok"], answer["error"]) == (False, "unreadable")
    assert answer["message"].startswith("Failed to restore")


def test_a_counts_completions_in_the_boards_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    logs = tmp_path / ".coordination" / "logs"
    logs.mkdir(parents=True)
    (logs / "w1.log").write_text("[x] CLAIMED: t-1\n[x] COMPLETED: t-1\n[x] COMPLETED: t-12\n")
    (logs / "w2.log").write_text("[x] COMPLETED: t-1\n")
    assert coordination_a.completions(["t-1", "t-12", "t-2"]) == [2, 1, 0]


@pytest.mark.parametrize(
    ("tool", "said", "answer"),
    [
        ("claim_task", {"ok": True, "success": False}, {"ok": False, "error": "nothing_to_claim"}),
        (
            "complete_task",
            {"ok": True, "success": False},
            {"ok": False, "error": "not_owner|unknown_task|wrong_status"},
        ),
        ("start_task", {"ok": True, "success": True}, {"ok": True}),
        ("nonsense", {"ok": True, "error": "Unknown tool"}, {"ok": False, "error": ""}),
        ("claim_task", {"ok": False, "error": "server_down"}, {"error": "server_down"}),
    ],
)
def test_b_says_everything_in_success(
    tool: str, said: dict[str, object], answer: dict[str, object]
) -> None:
    judged = coordination_b.judged(tool, said)
    assert {key: judged[key] for key in answer} == answer


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Task not found", "unknown_task"),
        ("Task not available", "task_not_available"),
        ("Dependencies not satisfied", "dependencies_open"),
        ("Task not assigned", "wrong_status"),
        ("Duplicate task ID: a", "duplicate_id"),
        ("Dependency not found: b", "dependency_missing"),
        ("Dependency cycle detected: a -> b -> a", "cycle"),
        ("Something else", ""),
    ],
)
def test_c_is_read_from_its_exceptions(text: str, error: str) -> None:
    assert common.understood(text, r"(?!)", coordination_c.REFUSALS)["error"] == error


# --- state ----------------------------------------------------------------------------------------


def test_rows_have_our_names_and_our_words() -> None:
    tasks: list[dict[str, object]] = [
        {"id": "t1", "description": "a", "status": "done", "result": {"output": "x"}},
        {"id": "t2", "description": "b", "status": "available", "dependencies": ["t1"]},
        {"id": "t3", "description": "c", "status": "available", "dependencies": ["t2", "lost"]},
        {"id": "t4", "description": "d", "status": "claimed", "claimed_by": "w1"},
    ]
    shown = common.rows(tasks, owner="claimed_by", named=False)
    assert [(row["id"], row["status"], row["owner"]) for row in shown] == [
        ("a", "done", None),
        ("b", "available", None),
        ("c", "blocked", None),
        ("d", "claimed", "w1"),
    ]
    assert shown[0]["output"] == "x"
    assert shown[2]["depends"] == ["b", "lost"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"tasks": 1}', '{"tasks": [1]}'])
def test_a_state_that_cannot_be_read_is_no_empty_board(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(content)
    assert common.state_in(str(path))["error"] == "unreadable"
    assert common.state_in(str(tmp_path / "nothing"))["error"] == "unreadable"


def test_new_tasks_and_errors_of_the_system(tmp_path: Path) -> None:
    payload = tmp_path / "payload"
    payload.write_text("text")
    words = ["a", "3", "--depends", "b", "--payload", str(payload), "--depends", "c"]
    assert common.new_task(words) == ("a", 3, "text", ["b", "c"])
    full = common.hindered(OSError(errno.ENOSPC, "full"))
    assert full is not None
    assert full["error"] == "no_space"
    assert common.hindered(FileNotFoundError(errno.ENOENT, "its own mistake")) is None


# --- the bridge -----------------------------------------------------------------------------------

SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["params"].get("name") == "die":
        sys.exit(1)
    text = json.dumps({"success": True, "asked": asked["params"].get("name")})
    result = {"content": [{"type": "text", "text": text}]}
    print("noise", flush=True)
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def test_a_bridge_keeps_one_server_for_many_calls(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(SERVER)
    argv = [
        sys.executable,
        mcp_client.__file__,
        "bridge",
        str(tmp_path),
        sys.executable,
        str(server),
    ]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as bridge:
        try:
            assert bridge.stdout is not None
            endpoint = bridge.stdout.readline().split()[-1]
            long = {"text": "x" * 300_000}
            assert mcp_client.call_socket(endpoint, "one", long)["asked"] == "one"
            assert mcp_client.call_socket(endpoint, "two", {})["asked"] == "two"
            gone = mcp_client.call_socket(endpoint, "die", {})
            assert (gone["error"], gone["happened"]) == ("server_down", "unknown")
            assert bridge.wait(10) == 1
            assert "happened" not in mcp_client.call_socket(endpoint, "three", {})
        finally:
            bridge.kill()


# --- target files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TARGETS)
def test_target_files_offer_only_what_can_be_said(name: str) -> None:
    profile = BoardSpec.load(target(name)).profile
    found = scenarios_of(profile)
    assert {"ready_tasks", "priority"} & set(found)
    assert not set(profile.skips) & set(found)
    assert all(profile.skips.values())
    for sequence in found.values():
        assert all(supported(profile, item) for item in sequence)


def test_what_a_board_without_epochs_and_names_cannot_be_told() -> None:
    profile = BoardSpec.load(target("coordination-a")).profile
    assert not supported(profile, op.Claim("w1", "a"))
    assert not supported(profile, op.Complete("w1", "a", stale=True))
    assert not supported(profile, op.Release("w1", "a"))
    assert not supported(profile, ExpectError(op.AddBatch(("a:b", "b:a"))))
    assert supported(profile, op.Claim("w1"))


@pytest.mark.parametrize("path", sorted(FINDINGS.glob("*.json")), ids=lambda path: path.stem)
def test_findings_can_be_said_to_their_target(path: Path) -> None:
    replay = load(path, op.OPERATIONS, contract="board")
    assert replay.target in TARGETS
    profile = BoardSpec.load(target(replay.target)).profile
    assert all(supported(profile, item) for item in replay.operations)
    assert replay.expect not in profile.not_applicable
    assert json.loads(path.read_text())["expect"] == replay.expect
    text = (FINDINGS.parent / "coordination.md").read_text(encoding="utf-8")
    assert f"coordination/{path.name}" in text


# --- what is the driver's own is not held against the target ----------------------------------------


@pytest.fixture
def board_a(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the state of option A in it: one task, `task-1`, which we call a."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".coordination").mkdir()
    state = tmp_path / coordination_a.STATE
    state.write_text(json.dumps({"tasks": [{"id": "task-1", "description": "a"}]}))
    (tmp_path / coordination_a.LOCK).touch()
    return state


def test_a_second_task_of_one_name_is_never_asked_for(board_a: Path) -> None:
    said = coordination_a.Driver("nothing").speak("add", ["a", "5"])
    assert "unable" in said
    assert "error" not in said


@pytest.mark.parametrize("verb", ["complete", "start", "fail"])
def test_a_name_that_cannot_be_looked_up_is_no_unknown_task(board_a: Path, verb: str) -> None:
    board_a.write_text("{")
    assert "unable" in coordination_a.Driver("nothing").speak(verb, ["w", "a", "x"])


def test_a_state_is_read_under_the_lock_of_its_target(
    board_a: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody writes: what is there meanwhile is no state."""
    monkeypatch.setattr(
        common, "READ_WITHIN_S", 60.0
    )  # the machine may be busy with ten other things
    whole = board_a.read_text()
    board_a.write_text("")
    with open(coordination_a.LOCK, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found: list[dict[str, object]] = []
        reader = threading.Thread(
            target=lambda: found.append(common.state_in(coordination_a.STATE, coordination_a.LOCK))
        )
        reader.start()
        board_a.write_text(whole)
        fcntl.flock(lock, fcntl.LOCK_UN)
    reader.join(30)
    assert found[0]["ok"] is True


def test_a_lock_that_nobody_gives_back_is_no_unreadable_board(
    board_a: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "READ_WITHIN_S", 0.05)
    board_a.write_text("")
    with open(coordination_a.LOCK, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "unable" in common.state_in(coordination_a.STATE, coordination_a.LOCK)
    assert common.state_in(coordination_a.STATE, coordination_a.LOCK)["error"] == "unreadable"


def test_an_error_of_the_system_leaves_open_what_has_happened() -> None:
    for number in (errno.ENOSPC, errno.EIO):
        said = common.hindered(OSError(number, "x"))
        assert said is not None
        assert said["happened"] == "unknown"


def test_a_restore_takes_completions_back(board_a: Path) -> None:
    logs = board_a.parent / "logs"
    logs.mkdir()
    log = logs / "w1.log"
    log.write_text("[x] COMPLETED: task-1\n")
    assert coordination_a.completions(["task-1"]) == [1]
    coordination_a.begin_counting()
    assert coordination_a.completions(["task-1"]) == [0]
    log.write_text("[x] COMPLETED: task-1\n[x] COMPLETED: task-1\n")
    assert coordination_a.completions(["task-1"]) == [1]


def test_every_refusal_of_a_driver_is_a_word_of_the_contract() -> None:
    words = {
        *(word for phrase in coordination_a.PHRASES.values() for word in phrase.refusals),
        *coordination_b.REFUSED.values(),
        *coordination_c.REFUSALS,
    }
    assert {part for word in words for part in word.split("|")} <= KNOWN


@pytest.mark.parametrize(("real", "fits"), [(60, True), (8, False), (None, True)])
def test_a_figure_of_the_target_that_its_file_does_not_know_is_no_bug(
    real: int | None, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHESTRATOR_HEARTBEAT_TIMEOUT", "60")
    config = SimpleNamespace() if real is None else SimpleNamespace(DEFAULT_HEARTBEAT_TIMEOUT=real)
    assert (coordination_c.another_lease(config) == "") is fits


@pytest.mark.parametrize("name", ["coordination_a", "coordination_b", "coordination_c"])
def test_a_driver_finds_its_own_modules_as_a_program(name: str) -> None:
    """In a box it is started alone, without anybody's site-packages."""
    path = Path(drivers.__file__).with_name(f"{name}.py")
    started = subprocess.run(
        [sys.executable, "-IS", str(path)], capture_output=True, text=True, check=False
    )
    assert "No module named 'mutiny" not in started.stderr


def test_a_tool_s_own_mark_of_a_refusal_is_told_beside_its_answer() -> None:
    block = {"content": [{"type": "text", "text": '{"ok": false}'}]}
    for marked in (True, False):
        answer = mcp_client.answer_in({"result": {**block, "isError": marked}})
        assert (answer["ok"], answer["isError"]) == (False, marked)
