"""The doubles of `claude`, `codex` and `gemini` without a terminal: launch forms, sessions, steps."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mutiny.doubles.providers import install as providers
from mutiny.doubles.providers.launch import Launch
from mutiny.doubles.providers.script import STEPS, UnknownStep, behaviours_of, parse
from mutiny.system.files import BoxPath

PROMPT = "spawn_marker: m.s1.1\nI am prime.\nCHANNEL: #dev\nFROM: ann\nMESSAGE: 7\nTASK:\ndo MT-1-2 now\n"
FORMS = {
    "claude": "--print --dangerously-skip-permissions --disallowedTools A,B --model m --add-dir /x",
    "codex": "exec --json --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check --model m",
    "gemini": "--yolo --allowed-tools Edit Shell --model m --include-directories /x",
}


class Stage:
    """A directory with the doubles, and a command `send` that writes down what was posted."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.box = BoxPath(place)
        providers.install(self.box / "bin", self.box / "desk")
        for name in ("home", "agents"):
            (place / name).mkdir()
        (place / "agents" / "prime").mkdir()
        send = place / "send"
        send.write_text('#!/bin/sh\necho "$2" >>"$1"\n')
        send.chmod(0o755)
        self.script({})

    def script(self, agents: dict[str, list[str]], **more: Any) -> None:
        send = [str(self.place / "send"), str(self.place / "posts"), "#{channel} {agent} {text}"]
        providers.write_script(self.box / "desk", agents, send=send, **more)

    def start(
        self, provider: str, stdin: str | None = PROMPT, line: str | None = None, wait_s: float = 20
    ) -> subprocess.CompletedProcess[str]:
        words = (FORMS[provider] if line is None else line).split()
        environment = {"HOME": str(self.place / "home"), "PATH": os.environ["PATH"]}
        given: dict[str, Any] = {"input": stdin} if stdin is not None else {}
        return subprocess.run(
            [str(self.place / "bin" / provider), *words],
            cwd=self.place / "agents" / "prime",
            env={**environment, "LONGBOAT_AGENT": "prime", "LONGBOAT_SPAWN_ID": "s1"},
            capture_output=True,
            text=True,
            timeout=wait_s,
            check=False,
            **given,
        )

    def records(self, event: str = "") -> list[dict[str, Any]]:
        found, _ = providers.read_received(self.box / "desk" / "received.jsonl")
        return [record for record in found if event in ("", record["event"])]

    def posts(self) -> list[str]:
        path = self.place / "posts"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.mark.parametrize("provider", providers.PROVIDERS)
def test_a_headless_run(stage: Stage, provider: str) -> None:
    done = stage.start(provider)
    assert (done.returncode, stage.posts()) == (0, ["#dev prime prime: done MT-1-2"])
    events = [record["event"] for record in stage.records()]
    assert events == ["start", "prompt", "session", "posting", "effect", "exit"]
    (prompt,) = stage.records("prompt")
    assert (prompt["task"], prompt["sender"], prompt["message"]) == ("do MT-1-2 now", "ann", "7")
    assert (prompt["agent"], prompt["spawn"], prompt["provider"]) == ("prime", "s1", provider)
    path = Path(stage.records("session")[0]["path"])
    first = json.loads(path.read_text().splitlines()[0])
    session = first["payload"]["id"] if provider == "codex" else first["sessionId"]
    assert session == prompt["session"]
    assert "spawn_marker: m.s1.1\\n" in path.read_text()
    folder = {"claude": ".claude/projects", "codex": ".codex/sessions", "gemini": ".gemini/tmp"}
    assert path.is_relative_to(stage.place / "home" / folder[provider])


def test_codex_tells_its_session_first(stage: Stage) -> None:
    done = stage.start("codex")
    assert (
        json.loads(done.stdout.splitlines()[0])["payload"]["id"]
        == stage.records("start")[0]["session"]
    )


def test_codex_needs_exec_without_a_terminal(stage: Stage) -> None:
    done = stage.start("codex", line="--model m")
    assert (done.returncode, done.stderr) == (1, "Error: stdin is not a terminal\n")


def test_an_empty_prompt_is_an_error(stage: Stage) -> None:
    assert stage.start("claude", stdin=" \n").returncode == 1


@pytest.mark.parametrize(
    ("behaviour", "posts"),
    [
        ("mention:a,b", ["@a @b please go on MT-1-2"]),
        ("human", ["@human task complete MT-1-2"]),
        ("echo", ["@ann verified complete MT-1-2"]),
        ("echo:x", ["@x verified complete MT-1-2"]),
        ("flood:2,x", ["@x prime: message 1 MT-1-2", "@x prime: message 2 MT-1-2"]),
        ("post:me@x.org {text} $HOME", ["me@x.org {text} $HOME MT-1-2"]),
        ("slow:1+quiet", []),
        ("stdin+ignore-term+reply", ["prime: done MT-1-2"]),
    ],
)
def test_what_steps_post(stage: Stage, behaviour: str, posts: list[str]) -> None:
    stage.script({"prime": [behaviour]})
    assert stage.start("claude").returncode == 0
    assert stage.posts() == [f"#dev prime {text}" for text in posts]


@pytest.mark.parametrize(
    ("behaviour", "code"), [("exit:3", 3), ("reply+die", -9), ("reply+exit:1", 1)]
)
def test_how_steps_end(stage: Stage, behaviour: str, code: int) -> None:
    stage.script({"prime": [behaviour]})
    assert stage.start("gemini").returncode == code
    assert len(stage.posts()) == behaviour.startswith("reply")


@pytest.mark.parametrize("behaviour", ["hang", "silent", "tty"])
def test_what_never_ends(stage: Stage, behaviour: str) -> None:
    stage.script({"prime": [behaviour]})
    with pytest.raises(subprocess.TimeoutExpired):
        stage.start("claude", wait_s=2.0)
    assert len(stage.records("prompt")) == 1
    assert len(stage.records("session")) == (behaviour == "silent")


def test_turns_are_counted_by_agent_and_token(stage: Stage) -> None:
    stage.script({"prime": ["exit:5"]}, tokens={"MT-1-2": {"prime": ["exit:1", "quiet"]}})
    codes = [stage.start("claude").returncode for _ in range(3)]
    assert codes == [1, 0, 0]
    assert stage.start("claude", stdin="TASK:\nanother").returncode == 5
    assert [record["turn"] for record in stage.records("prompt")] == [0, 1, 2, 0]


def test_without_a_desk_it_does_nothing(stage: Stage) -> None:
    (stage.place / "desk").rename(stage.place / "gone")
    assert stage.start("claude").returncode == 70


def test_records_that_are_torn(tmp_path: Path) -> None:
    path = tmp_path / "received.jsonl"
    path.write_bytes(b'{"time":1,"ev{"time":2,"event":"exit"}\n[1]\n{"time":3')
    found, end = providers.read_received(BoxPath(tmp_path) / "received.jsonl")
    assert [record["event"] for record in found] == ["torn", "exit", "torn"]
    assert end == path.read_bytes().rindex(b"\n") + 1


# --- without a process --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    ["", "sing", "reply:1", "slow", "slow:x", "exit:", "mention", "flood:x", "post", "reply+"],
)
def test_unknown_steps(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownStep):
        parse(wrong)
    with pytest.raises(UnknownStep):
        providers.write_script(BoxPath(tmp_path), {"prime": [wrong]})
    assert list(tmp_path.iterdir()) == []


def test_every_step_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
    assert [step for step in STEPS if f"| `{step}`" not in page] == []


def test_whose_behaviours() -> None:
    script = {
        "default": ["quiet"],
        "agents": {"a": ["reply"]},
        "tokens": {"MT-1-1": {"b": ["die"], "*": ["hang"]}},
    }
    of: Callable[..., tuple[list[str], str]] = lambda *given: behaviours_of(script, *given)  # noqa: E731
    assert of("a", []) == (["reply"], "")
    assert of("c", ["MT-9-9"]) == (["quiet"], "")
    assert of("b", ["MT-9-9", "MT-1-1"]) == (["die"], "MT-1-1")
    assert of("c", ["MT-1-1"]) == (["hang"], "MT-1-1")


@pytest.mark.parametrize(
    ("provider", "line", "prompt", "resumed"),
    [
        ("claude", "--print -r abc --model m", None, "abc"),
        ("claude", "-p --add-dir /x --model m text", "text", ""),
        ("codex", "resume abc exec --json --model m", None, "abc"),
        ("codex", "exec -i pic.png --json text", "text", ""),
        ("codex", "exec -", None, ""),
        ("gemini", "--yolo --allowed-tools A B C --model m", None, ""),
        ("gemini", "-p text", "text", ""),
    ],
)
def test_launch_forms(provider: str, line: str, prompt: str | None, resumed: str) -> None:
    launch = Launch(provider, line.split())
    assert (launch.prompt, launch.resumed) == (prompt, resumed)
