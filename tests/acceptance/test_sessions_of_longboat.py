"""Sessions of longboat with real agents and the fake model API: whole, killed, damaged, in trouble."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longboat.session import project
from longboat.session.logs import read_lines
from mutiny.doubles.model_api.api import ModelApi
from mutiny.doubles.model_api.script import read_script

pytestmark = pytest.mark.deep

LIMIT_S = 400.0


class Boat:
    """One home, one model, and the commands."""

    def __init__(self, place: Path, api: ModelApi) -> None:
        self.home = place / "home"
        self.log = place / "api.jsonl"
        self.session = self.home / "sessions" / "s1"
        self.api = api
        self.environment = {
            **os.environ,
            "ANTHROPIC_BASE_URL": api.url,
            "LONGBOAT_SESSION_HOME": str(self.home),
            "LONGBOAT_SESSION_BACKOFF_S": "0.05",
            "LONGBOAT_SESSION_BACKOFF_CAP_S": "0.2",
            "LONGBOAT_SESSION_VOTE_WAIT_S": "0.05",
            "LONGBOAT_SESSION_METRICS_S": "0.5",
        }

    def script(self, *first: dict[str, Any]) -> None:
        """What the model says: these rules, then those of the project."""
        script = project.script(project.find("demo"))
        self.api.set_script(read_script({**script, "rules": [*first, *script["rules"]]}))

    def say(self, *words: str) -> dict[str, Any]:
        argv = [sys.executable, "-m", "longboat.cli", "session", *words]
        done = subprocess.run(
            argv, env=self.environment, capture_output=True, timeout=LIMIT_S, check=False
        )
        assert done.returncode in (0, 1), done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        assert answer["ok"] == (done.returncode == 0)
        return answer

    def start(self, hours: str = "0.0002") -> dict[str, Any]:
        return self.say("start", "--project", "demo", "--hours", hours, "--agents", "3")

    def until(self, event_type: str, /, **wanted: Any) -> dict[str, Any]:
        """The first event of a kind."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            for event in self.events(event_type):
                if wanted.items() <= event.items():
                    return event
            time.sleep(0.05)
        raise AssertionError(f"no {event_type} {wanted}; {self.events()[-3:]}")

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        found = read_lines(str(self.session / "events.jsonl"))
        return [event for event in found if kind in ("", event["type"])]

    def kill(self) -> None:
        """End the supervisor as a power cut would."""
        pid = self.say("status")["pid"]
        assert pid > 1, "nobody supervises the session any more"
        os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        for name in [event["pid"] for event in self.events("supervisor.start")]:
            line = Path(f"/proc/{name}/cmdline")
            if line.exists() and str(self.home).encode() in line.read_bytes():
                os.kill(name, signal.SIGKILL)


@pytest.fixture
def boat(tmp_path: Path) -> Iterator[Boat]:
    with ModelApi(log=tmp_path / "api.jsonl") as api:
        made = Boat(tmp_path, api)
        made.script()
        yield made
        made.close()


def test_a_whole_session_builds_what_it_should_and_everything_adds_up(boat: Boat) -> None:
    boat.start()
    boat.until("session.complete")
    deadline = time.monotonic() + LIMIT_S
    while boat.say("status")["status"] != "complete":
        assert time.monotonic() < deadline
    metrics = boat.say("metrics")
    told = [json.loads(line) for line in boat.log.read_text(encoding="utf-8").splitlines()]
    spent = sum(line["input_tokens"] + line["output_tokens"] for line in told)
    assert metrics["total_tokens_consumed"] == spent
    asked = {
        tool["path"]: tool["sha256"] for line in told for tool in line["tools"] if tool["path"]
    }
    written = boat.session / "project"
    for path, sha256 in asked.items():
        assert hashlib.sha256((written / path).read_bytes()).hexdigest() == sha256
    tests = [sys.executable, "-m", "unittest", "discover", "-s", "tests", "-t", "."]
    subprocess.run(tests, cwd=written, check=True, capture_output=True)
    assert boat.say("verify")["last_valid"]["checkpoint"] == metrics["checkpoint_count"] - 1
    report = boat.say("report")
    assert (report["final_status"], report["code_quality"]["tests_passed"]) == ("complete", 1)
    assert boat.say("recover")["refused"] == "finished"
    assert boat.say("status", "--session", "nope")["refused"] == "no_session"


def test_a_killed_session_goes_on_from_its_last_valid_checkpoint(boat: Boat) -> None:
    boat.start("0.02")
    boat.until("task.done")
    boat.kill()
    assert boat.say("health")["refused"] == "unhealthy"
    known = boat.say("verify")["last_valid"]
    back = boat.say("recover")
    assert {key: back[key] for key in known} == known
    assert back["fell_back"] == []
    assert boat.say("status")["tasks"]["done"] >= 1
    boat.kill()
    newest = max((boat.session / "checkpoints").glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:-9])
    assert boat.say("verify")["refused"] == "invalid"
    back = boat.say("recover")
    assert back["fell_back"][0]["checkpoint"] == int(newest.stem)
    assert boat.until("checkpoint.invalid")["checkpoint"] == int(newest.stem)
    assert boat.say("stop")["status"] == "stopped"


def test_when_nothing_valid_is_left_that_is_said_and_nothing_begins(boat: Boat) -> None:
    boat.start("0.01")
    boat.kill()
    for path in (boat.session / "checkpoints").glob("*.json"):
        path.write_bytes(path.read_bytes().replace(b"sha", b"sah"))
    before = sorted((boat.session / "checkpoints").iterdir())
    assert boat.say("recover")["refused"] == "all_invalid"
    assert sorted((boat.session / "checkpoints").iterdir()) == before
    assert boat.say("status")["status"] == "unreadable"


@pytest.mark.slow
def test_errors_are_waited_out_and_a_dead_model_is_replaced(boat: Boat) -> None:
    limited = {"last": "*Task boot-1:*", "times": 2, "steps": [{"fault": "429"}]}
    dead = {"last": "*Task boot-2:*", "model": "*sonnet*", "steps": [{"fault": "reset"}]}
    boat.script(limited, dead)
    boat.start()
    assert boat.until("recovered", kind="rate_limit")["by"] == "retry"
    assert boat.until("model.switched")["to"] == "claude-haiku-4-5"
    assert boat.until("recovered", kind="network_timeout")["by"] == "fallback"
    errors = [event for event in boat.events("error") if event["task"] == "boot-2"]
    assert [event["action"] for event in errors] == ["retry"] * 3 + ["backoff"] * 5 + ["switch"]
    boat.say("stop")


@pytest.mark.slow
def test_a_vote_that_nobody_wins_is_decided_by_somebody(boat: Boat) -> None:
    boat.environment["LONGBOAT_SESSION_DEADLOCK"] = "escalate"
    boat.script({"last": "*Vote shape by cody:*", "steps": [{"text": "prompt"}]})
    boat.start()
    boat.until("session.pause")
    assert boat.say("continue")["refused"] == "paused"
    assert boat.say("continue", "--decide", "shape=nothing")["refused"] == "no_vote"
    assert boat.say("continue", "--decide", "shape=prompt")["status"] == "running"
    boat.until("task.done", task="boot-1")
    assert boat.say("pause")["status"] == "paused"
    assert boat.say("stop")["ok"]


@pytest.mark.slow
def test_a_silent_agent_loses_its_task_and_a_dead_one_is_replaced(boat: Boat) -> None:
    boat.environment["LONGBOAT_SESSION_IDLE_S"] = "3"
    held = {"last": "*Task boot-1:*", "times": 1, "steps": [{"fault": "hang"}]}
    boat.script(held)
    boat.start()
    agent = boat.until("agent.start", agent="cody")
    os.kill(agent["pid"], signal.SIGKILL)
    assert boat.until("agent.lost", agent="cody")["why"] == "its process ended"
    assert boat.until("limit.reached", limit="idle")["action"] == "reassign"
    boat.until("task.done", task="boot-1")
    boat.say("stop")
