"""`longboat board` as a program: exit codes, words, JSON, locks, and what it loads."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from pathlib import Path

from board_bench import LIMIT_S, LONGBOAT, board, environment

from longboat.board.file_store import FileStore


def run(*words: str, **settings: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LONGBOAT, "board", *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=environment(**settings),
        check=False,
    )


def test_the_words_of_the_program(tmp_path: Path) -> None:
    place = tmp_path / "b"
    assert board(place, "status", code=1)["error"] == "not_initialised"
    assert board(place, "init")["created"] is True
    (tmp_path / "payload").write_text("much\nto say")
    words = ("-p", "2", "--id", "a", "--max-attempts", "1", "--payload-file")
    assert board(place, "add", "first", *words, str(tmp_path / "payload"))["task"] == "a"
    assert board(place, "add", "--", "--second")["task"] == "task-2"
    batch = tmp_path / "batch.json"
    batch.write_text(json.dumps({"tasks": [{"description": "x", "depends": ["a"]}]}))
    assert board(place, "add-batch", str(batch))["tasks"] == ["task-3"]
    claimed = board(place, "claim", "w1", "--task", "a")
    assert (claimed["payload"], claimed["epoch"]) == ("much\nto say", 1)
    assert board(place, "fail", "w1", "a", "--epoch", "1", "--reason", "why")["status"] == "failed"
    tasks = {task["id"]: task for task in board(place, "list")["tasks"]}
    assert tasks["a"]["reason"] == "why"
    assert tasks["task-3"]["reason"] == "dependency a failed"
    status = board(place, "status")
    assert status["counts"]["failed"] == 2
    assert status["workers"]["w1"]["alive"] is True
    assert board(place, "repair")["repaired"] is False


def test_exit_codes_and_texts(tmp_path: Path) -> None:
    place = str(tmp_path / "b")
    for words in (["nonsense"], ["claim"], ["renew", "n", "x"], ["add", "--id"], ["init", "x"]):
        assert run("--dir", place, *words).returncode == 2, words
    (tmp_path / "bad.json").write_text('{"tasks": [{"id": "x"}]}')
    assert run("--dir", place, "add-batch", str(tmp_path / "bad.json")).returncode == 1
    assert run("--dir", place, "status", lease_s="much").stderr.count("\n") == 1
    assert run("--dir", place, "init").stdout.startswith("created: True")
    refused = run("--dir", place, "claim", "w1")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "No task is available\n"
    Path(place, "board.json").write_text("{}")
    assert run("--dir", place, "list").returncode == 3
    helped = run("--help")
    assert helped.returncode == 0
    assert "write-as-leader NODE TOKEN TEXT" in helped.stdout


def test_a_held_lock_is_waited_for_and_given_up(tmp_path: Path) -> None:
    place = tmp_path / "b"
    board(place, "init")
    with open(place / "board.lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        busy = board(place, "add", "x", code=1, lock_timeout_s=0.05)
        assert busy["error"] == "busy"
        assert board(place, "list")["tasks"] == [], "readers need no lock"
        waiting = subprocess.Popen(
            [*LONGBOAT, "board", "--dir", str(place), "add", "x"], stdout=subprocess.PIPE
        )
    assert waiting.communicate(timeout=LIMIT_S)[0] == b"task: task-1\n"


def test_parallel_claims_give_every_task_to_one(tmp_path: Path) -> None:
    place = tmp_path / "b"
    board(place, "init")
    for _ in range(3):
        board(place, "add", "x")
    claims = [
        subprocess.Popen(
            [*LONGBOAT, "board", "--dir", str(place), "--json", "claim", f"w{number}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for number in range(5)
    ]
    answers = [json.loads(claim.communicate(timeout=LIMIT_S)[0]) for claim in claims]
    given = sorted(answer["task"] for answer in answers if answer["ok"])
    assert given == ["task-1", "task-2", "task-3"]


def test_an_answer_that_cannot_be_printed_is_no_success(tmp_path: Path) -> None:
    place = tmp_path / "b"
    board(place, "init")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*LONGBOAT, "board", "--dir", str(place), "add", "x"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=LIMIT_S,
        )
    assert done.returncode == 1
    assert "it may have happened" in done.stderr


def test_a_claim_loads_little_and_cleans_up(tmp_path: Path) -> None:
    from longboat.board.config import Config
    from longboat.board.values import Command, NewTask

    store = FileStore(str(tmp_path / "b"), Config())
    store.execute(Command("init"))
    store.execute(Command("add-batch", new=tuple(NewTask("x") for _ in range(100))))
    (tmp_path / "b" / "board.json.1.tmp").write_text("half")
    probe = (
        "import resource, sys; from longboat.cli import main; code = main(sys.argv[1:]);"
        "used = resource.getrusage(resource.RUSAGE_SELF);"
        "print(used.ru_utime + used.ru_stime, *sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, "board", "--dir", str(tmp_path / "b"), "claim", "w1"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0
    _, *loaded = done.stderr.split()
    assert not {"argparse", "dataclasses", "subprocess", "asyncio", "sqlite3", "mcp"} & set(loaded)
    assert not list((tmp_path / "b").glob("*.tmp"))
