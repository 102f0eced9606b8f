"""The agent double as an orchestrator meets it: in a real tmux pane, with real git and hooks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_box import DEADLINE_S, EVENTS, Box, heard_events, wait_until
from mutiny.doubles.agents.behaviours import BEHAVIOURS
from mutiny.doubles.agents.processes import is_alive
from mutiny.doubles.agents.work import ELSEWHERE
from mutiny.doubles.install import install, read_received, write_script
from mutiny.system.files import BoxPath

pytestmark = pytest.mark.skipif(
    not (shutil.which("tmux") and shutil.which("git")), reason="needs tmux and git"
)


@pytest.fixture
def box() -> Iterator[Box]:
    # Not tmp_path: a tmux socket must have a short path.
    with tempfile.TemporaryDirectory(prefix="mt") as root:
        box = Box(Path(root).resolve())
        yield box
        box.close()


@pytest.fixture
def alpha(box: Box) -> Path:
    return box.worktree("alpha")


def test_typed_prompt_becomes_a_commit(box: Box, alpha: Path) -> None:
    box.start("a", alpha)
    assert box.tmux("display", "-p", "-t", "=a:", "#{pane_current_command}").strip() == "claude"
    box.type("a", "Create a file named test.txt with content 'hello' MT-7f3a-2")
    box.wait_for("turn_end", outcome="done")
    [prompt] = box.events("prompt")
    assert prompt.worker == "alpha"
    assert (prompt.turn, prompt.behaviour, prompt.kind) == (0, "obey", "task")
    assert (prompt.token, prompt.tokens, prompt.earlier) == ("MT-7f3a-2", ("MT-7f3a-2",), ())
    assert (alpha / "test.txt").read_text() == "hello\ntoken: MT-7f3a-2\n"
    head, trailer = box.git(
        *("log", "-1", "--format=%H%n%(trailers:key=Mutiny-Token,valueonly)"), cwd=alpha
    ).split()
    assert trailer == "MT-7f3a-2"
    [commit] = box.events("commit")
    assert (commit.sha, commit.tokens) == (head, ("MT-7f3a-2",))
    assert box.git("status", "--porcelain", cwd=alpha) == ""
    wait_until(lambda: box.screen("a").rstrip().endswith("\n>"), lambda: box.screen("a"))


def test_pasted_prompt_with_markers_needs_no_pause(box: Box, alpha: Path) -> None:
    box.start("a", alpha)
    filler = "\n".join(f"Rule {number}: Grüße 世界 🚢" for number in range(300))
    text = f"{filler}\nCreate a.txt with 'x' and b.txt with 'y' MT-1-1"
    box.paste("a", text, "-p")
    box.press("a", "Enter")
    box.wait_for("turn_end", outcome="done")
    [prompt] = box.events("prompt")
    assert prompt.text == text[:500]
    assert (alpha / "b.txt").read_text() == "y\ntoken: MT-1-1\n"


def test_paste_without_markers_is_submitted_by_a_later_enter(box: Box, alpha: Path) -> None:
    box.start("a", alpha)
    text = "\n".join(["Preamble " + "x" * 60] * 40 + ["Create a.txt MT-1-1"])
    box.paste("a", text)
    wait_until(lambda: "[Pasted text" in box.screen("a"), lambda: box.screen("a"))
    # The silence before Enter is the input under test, as LLMC produces it.
    time.sleep(0.5)
    assert box.events("prompt") == []
    box.press("a", "Enter")
    box.wait_for("turn_end", outcome="done")
    assert "[Pasted text" not in box.screen("a")
    [prompt] = box.events("prompt")
    assert prompt.text == text[:500]


def test_hooks_run_in_order_with_their_input(box: Box, alpha: Path) -> None:
    heard_file = box.configure_hooks(alpha)
    box.start("a", alpha, "--model", "haiku")
    box.wait_for("hook", name="SessionStart")
    # The agent keeps the settings that it read at its start.
    (alpha / ".claude" / "settings.json").write_text("{}")
    box.type("a", "Create one.txt")
    box.wait_for("turn_end")
    box.type("a", "/clear")
    box.wait_for("hook", 2, name="SessionStart")
    box.type("a", "/exit")
    box.wait_for("exit", reason="command", exit_code=0)

    heard = heard_events(heard_file)
    assert [(one["hook_event_name"], one.get("source") or one.get("reason")) for one in heard] == [
        ("SessionStart", "startup"),
        ("UserPromptSubmit", None),
        ("Stop", None),
        ("SessionEnd", "clear"),
        ("SessionStart", "clear"),
        ("SessionEnd", "prompt_input_exit"),
    ]
    assert heard[1]["prompt"] == "Create one.txt"
    first, second = heard[0]["session_id"], heard[4]["session_id"]
    assert first != second
    assert [one["session_id"] for one in heard] == [first] * 4 + [second] * 2
    assert all(one["cwd"] == str(alpha) for one in heard)
    folder = str(alpha).replace("/", "-").replace(".", "-")
    transcript = Path(heard[0]["transcript_path"])
    assert transcript == box.root / f"home/.claude/projects/{folder}/{first}.jsonl"
    user, assistant = heard_events(transcript)
    assert (user["type"], user["sessionId"], user["cwd"]) == ("user", first, str(alpha))
    assert json.loads(json.dumps(user["message"])) == {"role": "user", "content": "Create one.txt"}
    assert assistant["type"] == "assistant"
    assert box.events("hook", exit_code=0) == box.events("hook")
    [clear] = box.events("clear")
    assert (clear.session, clear.new_session) == (first, second)
    assert len(box.events("prompt")) == 1


def test_failing_and_endless_hooks_are_recorded(box: Box, alpha: Path) -> None:
    box.configure_hooks(alpha)
    settings = {
        "hooks": {
            "SessionStart": [
                {
                    "hooks": [
                        {"type": "command", "command": "echo sorry >&2; exit 3"},
                        {"type": "command", "command": "sleep 60", "timeout": 0.2},
                        {"type": "command", "command": "exit 4"},
                    ]
                },
                {"matcher": "resume", "hooks": [{"type": "command", "command": "exit 5"}]},
            ]
        }
    }
    (alpha / ".claude" / "settings.local.json").write_text("{ broken")
    (alpha / ".claude" / "settings.json").write_text(json.dumps(settings))
    box.start("a", alpha)
    box.wait_for("hook", exit_code=4)
    failed, endless, _ = box.events("hook", name="SessionStart")
    assert (failed.exit_code, failed.detail) == (3, "sorry\n")
    assert (endless.exit_code, endless.timed_out) == (-signal.SIGTERM, True)
    [problem] = box.events("problem")
    assert "settings.local.json" in (problem.detail or "")


def test_input_that_arrives_during_a_turn_is_kept(box: Box, alpha: Path) -> None:
    write_script(BoxPath(box.doubles), {"alpha": ["slow:300", "obey"]})
    box.start("a", alpha)
    box.type("a", "Create one.txt")
    [first] = box.wait_for("prompt")
    box.type("a", "Create two.txt")
    _, second = box.wait_for("turn_end", 2)
    [end] = [record for record in box.events("turn_end") if record.time < second.time]
    assert end.time - first.time >= 0.3
    assert [record.turn for record in box.events("prompt")] == [0, 1]
    assert box.events("prompt")[1].time >= end.time
    assert (alpha / "two.txt").exists()


def test_hang_ends_by_ctrl_c_and_the_next_one_leaves(box: Box, alpha: Path) -> None:
    heard_file = box.configure_hooks(alpha)
    write_script(BoxPath(box.doubles), {}, default=["hang"])
    box.start("a", alpha)
    box.type("a", "Create one.txt")
    box.wait_for("hook", name="UserPromptSubmit")
    box.press("a", "C-c")
    box.wait_for("turn_end", outcome="interrupted")
    box.press("a", "C-c")
    box.wait_for("exit", reason="interrupt", exit_code=0)
    heard = heard_events(heard_file)
    assert [one["hook_event_name"] for one in heard] == [
        *("SessionStart", "UserPromptSubmit", "SessionEnd")
    ]
    assert heard[-1]["reason"] == "prompt_input_exit"
    assert not (alpha / "one.txt").exists()


def test_a_closed_terminal_ends_the_session(box: Box, alpha: Path) -> None:
    heard_file = box.configure_hooks(alpha)
    write_script(BoxPath(box.doubles), {}, default=["hang"])
    agent = box.start("a", alpha)
    box.type("a", "Create one.txt")
    box.wait_for("hook", name="UserPromptSubmit")
    box.tmux("kill-session", "-t", "=a")
    [leaving] = box.wait_for("exit", exit_code=1)
    assert leaving.pid == agent.pid
    last = heard_events(heard_file)[-1]
    assert (last["hook_event_name"], last["reason"]) == ("SessionEnd", "other")


def test_sigterm_ends_the_session(box: Box, alpha: Path) -> None:
    agent = box.start("a", alpha)
    os.kill(agent.pid, signal.SIGTERM)
    box.wait_for("exit", reason="terminated", exit_code=143)


def test_exit_leaves_at_once_without_hooks(box: Box, alpha: Path) -> None:
    box.configure_hooks(alpha)
    write_script(BoxPath(box.doubles), {"alpha": ["exit", "obey"]})
    box.start("a", alpha)
    box.wait_for("hook", name="SessionStart")
    box.type("a", "Create one.txt MT-1-1")
    box.wait_for("exit", reason="exit", exit_code=1)
    assert [record.name for record in box.events("hook")] == ["SessionStart"]
    # The count of turns goes on in the agent that replaces it.
    box.start("b", alpha)
    box.type("b", "Create one.txt MT-1-1")
    box.wait_for("turn_end", outcome="done")
    assert [record.turn for record in box.events("prompt")] == [0, 1]


def test_exit_at_start_uses_up_a_turn_before_any_hook(box: Box, alpha: Path) -> None:
    box.configure_hooks(alpha)
    write_script(BoxPath(box.doubles), {"*": ["exit-at-start", "obey"]})
    box.start("a", alpha)
    box.wait_for("exit", reason="exit-at-start", exit_code=1)
    assert box.events("hook") == []
    box.start("b", alpha)
    box.type("b", "Create one.txt")
    box.wait_for("turn_end", outcome="done")


def test_crash_in_commit_leaves_the_lock_and_loses_the_commit(box: Box, alpha: Path) -> None:
    write_script(BoxPath(box.doubles), {}, default=["crash-in-commit"])
    before = box.git("rev-parse", "HEAD", cwd=alpha)
    agent = box.start("a", alpha)
    box.type("a", "Create one.txt MT-1-1")
    wait_until(lambda: not is_alive(agent.pid, agent.start), lambda: "the crash")
    git_dir = Path(box.git("rev-parse", "--absolute-git-dir", cwd=alpha).strip())
    assert (git_dir / "index.lock").exists()
    assert box.git("rev-parse", "HEAD", cwd=alpha) == before
    assert (alpha / "one.txt").exists()
    assert [
        record.event for record in read_received(BoxPath(box.doubles, "received.jsonl"), 0)[0]
    ] == ["start", "ready", "prompt"]
    # The lock stays in the way of the next agent, which says so and ends its turn.
    write_script(BoxPath(box.doubles), {})
    result = box.print_mode("Create one.txt MT-1-1", cwd=alpha)
    assert result.returncode == 1
    [end] = box.events("turn_end", outcome="failed")
    assert "index.lock" in (end.detail or "")


@pytest.mark.parametrize(
    ("behaviour", "outcome", "committed", "status"),
    [
        ("obey", "done", ["one.txt"], ""),
        ("dirty", "dirty", [], "?? one.txt\n"),
        ("busy-git:300", "dirty", [], "?? one.txt\n"),
        ("nothing", "nothing", [], ""),
        ("stray", "done", ["one.txt", "stray/MT-1-1.txt"], ""),
        ("resolve", "done", ["one.txt"], ""),
        ("give-up", "done", ["one.txt"], ""),
        ("no-stop", "done", ["one.txt"], ""),
        ("late-stop:50", "done", ["one.txt"], ""),
        ("double-stop", "done", ["one.txt"], ""),
        ("late-commit:50", "done", ["one.txt"], ""),
        ("unfinished:50", "done", ["one.txt"], ""),
        ("garbage", "done", ["one.txt"], ""),
    ],
)
def test_what_a_behaviour_leaves_behind(
    box: Box, alpha: Path, behaviour: str, outcome: str, committed: list[str], status: str
) -> None:
    box.configure_hooks(alpha)
    write_script(BoxPath(box.doubles), {"alpha": [behaviour]})
    box.start("a", alpha)
    box.type("a", "Create one.txt MT-1-1")
    [end] = box.wait_for("turn_end")
    assert end.outcome == outcome
    assert box.git("diff", "--name-only", "master", cwd=alpha).split() == committed
    assert box.git("status", "--porcelain", cwd=alpha) == status
    stops = box.events("hook", name="Stop")
    assert len(stops) == {"no-stop": 0, "double-stop": 2}.get(behaviour, 1)
    if behaviour.startswith("late-commit"):
        assert stops[0].time < box.events("commit")[0].time
    wrote = [one.tokens for one in box.events("wrote")]
    assert wrote == ([("MT-1-1",)] if behaviour.startswith("unfinished") else [])
    # Whatever it printed, it can still be talked to.
    box.type("a", "/exit")
    box.wait_for("exit", exit_code=0)


@pytest.mark.parametrize(("behaviour", "commits"), [("reshape", 2), ("reshape-dirty", 1)])
def test_work_of_every_shape_is_written_down(
    box: Box, alpha: Path, behaviour: str, commits: int
) -> None:
    write_script(BoxPath(box.doubles), {"alpha": [behaviour]})
    assert box.print_mode("Create one.txt MT-1-1", cwd=alpha).returncode == 0
    [shaped] = box.events("shaped")
    assert len(shaped.shape) == 5
    assert all(os.path.lexists(alpha / line.split(" ", 2)[2]) for line in shaped.shape)
    assert box.git("rev-list", "--count", "HEAD", cwd=alpha).strip() == str(commits)
    clean = box.git("status", "--porcelain", cwd=alpha) == ""
    assert clean is (behaviour == "reshape")


def test_an_agent_that_dies_leaves_its_work_uncommitted(box: Box, alpha: Path) -> None:
    write_script(BoxPath(box.doubles), {"alpha": ["die-dirty"]})
    result = box.print_mode("Create one.txt MT-1-1", cwd=alpha)
    assert result.returncode == -signal.SIGKILL
    assert box.git("status", "--porcelain", cwd=alpha) == "?? one.txt\n"
    assert not box.events("commit") + box.events("hook") + box.events("exit")


@pytest.mark.parametrize(
    ("behaviour", "branch"), [("die-elsewhere", ELSEWHERE), ("die-detached", "HEAD")]
)
def test_an_agent_may_die_where_nobody_looks(
    box: Box, alpha: Path, behaviour: str, branch: str
) -> None:
    was = box.git("rev-parse", "--abbrev-ref", "HEAD", cwd=alpha).strip()
    tip = box.git("rev-parse", "HEAD", cwd=alpha)
    write_script(BoxPath(box.doubles), {"alpha": [behaviour]})
    assert box.print_mode("Create one.txt MT-1-1", cwd=alpha).returncode == -signal.SIGKILL
    assert box.git("rev-parse", "--abbrev-ref", "HEAD", cwd=alpha).strip() == branch
    assert box.git("rev-parse", was, cwd=alpha) == tip, "its own branch does not have the work"
    [commit] = box.events("commit")
    assert box.git("rev-parse", "HEAD", cwd=alpha).strip() == commit.sha


def test_an_agent_may_leave_a_lock_or_a_child(box: Box, alpha: Path) -> None:
    write_script(BoxPath(box.doubles), {"alpha": ["leave-child", "die-locked"]})
    assert box.print_mode("Create one.txt MT-1-1", cwd=alpha).returncode == 0
    child = box.events("child")[0].child or 0
    assert os.getsid(child) == child, "it lives, in a session of its own"
    os.kill(child, signal.SIGKILL)
    assert box.print_mode("Create two.txt MT-1-2", cwd=alpha).returncode == -signal.SIGKILL
    assert (alpha / box.git("rev-parse", "--git-path", "index.lock", cwd=alpha).strip()).exists()


def test_ignore_ctrl_c_until_the_next_turn(box: Box, alpha: Path) -> None:
    write_script(BoxPath(box.doubles), {"alpha": ["ignore-ctrl-c", "obey"]})
    agent = box.start("a", alpha)
    box.type("a", "Create one.txt")
    box.wait_for("turn_end", outcome="done")
    box.press("a", "C-c")
    os.kill(agent.pid, signal.SIGINT)
    box.type("a", "Create two.txt")
    box.wait_for("turn_end", 2, outcome="done")
    box.press("a", "C-c")
    box.wait_for("exit", reason="interrupt")


def test_only_sigkill_ends_who_will_not_go(box: Box, alpha: Path) -> None:
    write_script(BoxPath(box.doubles), {"alpha": ["will-not-go", "obey"]})
    agent = box.start("a", alpha)
    box.type("a", "Create one.txt")
    box.wait_for("turn_end", outcome="done")
    os.kill(agent.pid, signal.SIGTERM)
    os.kill(agent.pid, signal.SIGHUP)
    box.type("a", "Create two.txt")
    box.wait_for("turn_end", 2, outcome="done")
    box.tmux("kill-session", "-t", "=a")
    assert is_alive(agent.pid, agent.start)
    os.kill(agent.pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(agent.pid, agent.start), lambda: "its end")
    assert box.events("exit") == []


def test_swallow_takes_the_prompt_and_goes_on(box: Box, alpha: Path) -> None:
    box.configure_hooks(alpha)
    write_script(BoxPath(box.doubles), {"alpha": ["swallow", "obey"]})
    box.start("a", alpha)
    box.type("a", "Create one.txt MT-1-1")
    box.wait_for("turn_end", outcome="swallowed")
    assert [record.name for record in box.events("hook")] == ["SessionStart"]
    box.type("a", "Create two.txt MT-1-2")
    box.wait_for("turn_end", outcome="done")
    assert not (alpha / "one.txt").exists()


def test_read_stdin_waits_for_the_end_of_input(box: Box, alpha: Path) -> None:
    box.configure_hooks(alpha)
    write_script(BoxPath(box.doubles), {"alpha": ["read-stdin"]})
    box.start("a", alpha)
    box.type("a", "Create one.txt")
    box.wait_for("hook", name="UserPromptSubmit")
    assert box.events("turn_end") == []
    box.press("a", "C-d")
    box.wait_for("turn_end", outcome="done")


def test_a_recreated_worktree_is_entered_again(box: Box, alpha: Path) -> None:
    box.start("a", alpha)
    box.git("worktree", "remove", "--force", str(alpha))
    box.type("a", "Create lost.txt MT-1-1")
    [end] = box.wait_for("turn_end", outcome="failed")
    assert str(alpha) in (end.detail or "")
    box.git("worktree", "add", "--quiet", str(alpha), "work/alpha")
    box.type("a", "Create one.txt MT-1-2")
    box.wait_for("turn_end", outcome="done")
    assert box.git("log", "--format=%s", "-1", cwd=alpha) == "Create one.txt\n"


def start_conflicting_rebase(box: Box, alpha: Path) -> None:
    """Let two branches create the same files in two commits each, and rebase one on the other."""
    beta = box.worktree("beta")
    for number, path in enumerate(["src/shared.rs", "README"]):
        for worker, folder in (("alpha", alpha), ("beta", beta)):
            prompt = f"Create a file named {path} with '{worker}' MT-{worker}-{number}"
            assert box.print_mode(prompt, cwd=folder).returncode == 0
    box.git("rebase", "work/beta", cwd=alpha, check=False)


CONFLICT_PROMPT = (
    "REBASE CONFLICT DETECTED\n\nOriginal task: Create src/shared.rs with 'alpha' MT-alpha-0"
)


def test_a_conflict_is_resolved_by_keeping_both_sides(box: Box, alpha: Path) -> None:
    start_conflicting_rebase(box, alpha)
    box.start("a", alpha)
    box.paste("a", CONFLICT_PROMPT, "-p")
    box.press("a", "Enter")
    [prompt] = box.wait_for("prompt", kind="conflict")
    box.wait_for("turn_end", session=prompt.session, outcome="done")
    assert box.git("status", "--porcelain", cwd=alpha) == ""
    assert "rebase in progress" not in box.git("status", cwd=alpha)
    assert (alpha / "src/shared.rs").read_text() == (
        "beta\ntoken: MT-beta-0\nalpha\ntoken: MT-alpha-0\n"
    )
    # No commit is added, and the rewritten ones are recorded with their tokens.
    rewritten = box.git("log", "--reverse", "--format=%H", "work/beta..HEAD", cwd=alpha).split()
    commits = box.events("commit", rewritten=True)
    assert [record.sha for record in commits] == rewritten
    assert [record.tokens for record in commits] == [("MT-alpha-0",), ("MT-alpha-1",)]


def test_give_up_leaves_the_rebase_alone(box: Box, alpha: Path) -> None:
    start_conflicting_rebase(box, alpha)
    write_script(BoxPath(box.doubles), {"alpha": ["give-up"]})
    result = box.print_mode(CONFLICT_PROMPT, cwd=alpha)
    assert result.returncode == 0
    assert box.events("turn_end", outcome="gave-up") != []
    assert "rebase in progress" in box.git("status", cwd=alpha)


def test_redelivery_says_whether_the_first_agent_lives(box: Box, alpha: Path) -> None:
    write_script(BoxPath(box.doubles), {"alpha": ["hang"]}, default=["nothing"])
    first = box.start("a", alpha)
    box.type("a", "Create one.txt MT-1-1")
    box.wait_for("prompt", worker="alpha")

    box.start("b", box.worktree("beta"))
    box.type("b", "Create one.txt MT-1-1")
    [delivery] = box.wait_for("prompt", worker="beta")
    [had_it] = delivery.earlier
    assert (had_it.pid, had_it.start) == (first.pid, first.start)
    assert had_it.alive
    assert not had_it.same_agent

    os.kill(first.pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(first.pid, first.start), lambda: "the death of alpha")
    box.type("b", "Create one.txt MT-1-1")
    delivery = box.wait_for("prompt", 2, worker="beta")[-1]
    assert [(one.alive, one.same_agent) for one in delivery.earlier] == [
        (False, False),
        (True, True),
    ]


def test_agents_that_get_the_same_work_at_once_see_each_other(box: Box) -> None:
    write_script(BoxPath(box.doubles), {}, default=["nothing"])
    agents = [
        subprocess.Popen(["claude", "-p", "Go MT-1-1"], cwd=box.source, env=box.environment)
        for _ in range(4)
    ]
    assert [agent.wait(DEADLINE_S) for agent in agents] == [0] * 4
    assert [(one.turn, len(one.earlier)) for one in box.events("prompt")] == [
        *((0, 0), (1, 1), (2, 2), (3, 3))
    ]


class TestPrint:
    """Without a terminal: one turn, then the result in the format that was asked for."""

    def test_text_from_argument_or_stdin(self, box: Box) -> None:
        heard_file = box.configure_hooks(box.source)
        result = box.print_mode("Create one.txt MT-1-1")
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.startswith("Wrote one.txt and committed ")
        assert [one["hook_event_name"] for one in heard_events(heard_file)] == list(EVENTS)
        box.environment["MUTINY_WORKER"] = "gamma"
        result = box.print_mode("--model", "haiku", "--add-dir", "/tmp", stdin="Create two.txt\n")
        assert result.returncode == 0
        assert [record.worker for record in box.events("prompt")] == ["source", "gamma"]

    def test_json_and_the_session_that_is_resumed(self, box: Box) -> None:
        first = json.loads(box.print_mode("Create one.txt", "--output-format", "json").stdout)
        assert (first["type"], first["is_error"], first["num_turns"]) == ("result", False, 1)
        session = first["session_id"]
        second = box.print_mode("-r", session, "--output-format=json", "Create two.txt")
        assert json.loads(second.stdout)["session_id"] == session
        folder = str(box.source).replace("/", "-").replace(".", "-")
        transcript = box.root / f"home/.claude/projects/{folder}/{session}.jsonl"
        assert [line["type"] for line in heard_events(transcript)] == ["user", "assistant"] * 2
        unknown = box.print_mode("-r", "no-such-session", "Create three.txt")
        assert unknown.returncode == 1
        assert "No conversation found" in unknown.stderr

    def test_stream_json(self, box: Box) -> None:
        result = box.print_mode("Create one.txt", "--output-format", "stream-json", "--verbose")
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        assert [line["type"] for line in lines] == ["system", "assistant", "result"]
        assert lines[0]["subtype"] == "init"
        assert len({line["session_id"] for line in lines}) == 1
        assert lines[1]["message"]["content"][0]["text"] == lines[2]["result"]

    def test_read_stdin_to_its_end_first(self, box: Box) -> None:
        write_script(BoxPath(box.doubles), {"source": ["read-stdin"]})
        agent = subprocess.Popen(
            ["claude", "--print", "Create one.txt"],
            cwd=box.source,
            env=box.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        assert agent.stdin is not None
        box.wait_for("start")
        assert box.events("prompt") == []
        agent.stdin.close()
        assert agent.wait(DEADLINE_S) == 0

    @pytest.mark.parametrize(
        ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 1)]
    )
    def test_signals_end_a_hanging_turn(
        self, box: Box, number: signal.Signals, exit_code: int
    ) -> None:
        write_script(BoxPath(box.doubles), {}, default=["hang"])
        agent = subprocess.Popen(
            ["claude", "-p", "Create one.txt"], cwd=box.source, env=box.environment
        )
        box.wait_for("prompt")
        agent.send_signal(number)
        assert agent.wait(DEADLINE_S) == exit_code
        box.wait_for("turn_end", outcome="interrupted" if number == signal.SIGINT else "cut off")

    def test_garbage_comes_before_the_result(self, box: Box) -> None:
        write_script(BoxPath(box.doubles), {}, default=["garbage"])
        output = subprocess.run(
            ["claude", "-p", "--output-format", "json", "Create one.txt"],
            cwd=box.source,
            env=box.environment,
            capture_output=True,
            check=True,
            timeout=DEADLINE_S,
        ).stdout
        with pytest.raises(UnicodeDecodeError):
            output.decode()
        assert json.loads(output.splitlines()[-1])["type"] == "result"

    def test_outside_of_a_repository_the_work_is_still_done(self, box: Box) -> None:
        folder = box.root / "plain"
        folder.mkdir()
        result = box.print_mode("Say hello MT-1-1", cwd=folder)
        assert (result.returncode, result.stdout) == (0, "Wrote notes/MT-1-1.md.\n")
        assert (folder / "notes/MT-1-1.md").read_text() == "Say hello MT-1-1\ntoken: MT-1-1\n"
        assert box.events("commit") == []

    def test_no_prompt_is_an_error(self, box: Box) -> None:
        result = box.print_mode()
        assert result.returncode == 1
        assert "no prompt" in result.stderr

    def test_a_wrong_script_is_a_recorded_problem(self, box: Box) -> None:
        (box.doubles / "script.json").write_text('{"version":1,"default":["dance"]}')
        assert box.print_mode("Create one.txt").returncode == 0
        assert all("dance" in (record.detail or "") for record in box.wait_for("problem"))

    def test_a_double_that_cannot_record_does_nothing(self, box: Box) -> None:
        box.environment["MUTINY_DOUBLES"] = str(box.root / "missing")
        result = box.print_mode("Create one.txt")
        assert result.returncode == 70
        assert "missing" in result.stderr
        assert not (box.source / "one.txt").exists()


class TestInstall:
    """The launcher works wherever the box and the interpreter are."""

    def test_the_doubles_directory_is_found_without_environment(self, box: Box) -> None:
        del box.environment["MUTINY_DOUBLES"]
        assert box.print_mode("Create one.txt").returncode == 0
        assert len(box.events("prompt")) == 1

    def test_an_interpreter_with_a_difficult_path(self, box: Box) -> None:
        folder = box.root / "my py"
        folder.mkdir()
        (folder / "python").symlink_to(os.path.realpath(sys.executable))
        install(BoxPath(box.root, "bin"), BoxPath(box.doubles), python=str(folder / "python"))
        assert box.print_mode("Create one.txt with 'two words'").returncode == 0
        assert (box.source / "one.txt").read_text() == "two words\n"

    def test_version(self, box: Box) -> None:
        assert box.print_mode("--version").stdout == "2.0.0 (Claude Code)\n"

    def test_it_starts_fast(self, box: Box) -> None:
        write_script(BoxPath(box.doubles), {}, default=["exit-at-start"])
        costs_ms = []
        for _ in range(5):
            pid = os.posix_spawn(
                str(box.root / "bin" / "claude"), ["claude", "-p", "x"], box.environment
            )
            usage = os.wait4(pid, 0)[2]
            costs_ms.append((usage.ru_utime + usage.ru_stime) * 1000)
        assert min(costs_ms) < 60


def test_an_agent_may_sign_its_work_or_say_that_it_failed(box: Box, alpha: Path) -> None:
    write_script(BoxPath(box.doubles), {"alpha": ["signs", "obey", "fail"]})
    authors = []
    for name in ("one", "two"):
        box.print_mode(f"Create {name}.txt", cwd=alpha)
        authors.append(box.git("log", "-1", "--format=%an", cwd=alpha).strip())
    assert authors[0] == "alpha" != authors[1]
    head = box.git("rev-parse", "HEAD", cwd=alpha)
    told = box.print_mode("Create three.txt", "--output-format", "json", cwd=alpha)
    assert (json.loads(told.stdout)["is_error"], box.git("rev-parse", "HEAD", cwd=alpha)) == (
        True,
        head,
    )


def test_an_agent_may_stay_when_it_has_answered(box: Box, alpha: Path) -> None:
    write_script(BoxPath(box.doubles), {"alpha": ["stays"]})
    with subprocess.Popen(
        ["claude", "--print", "Create one.txt"],
        cwd=alpha,
        env=box.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip(), "it has answered"
        assert process.poll() is None, "and lives"
        process.terminate()
    assert process.returncode != 0


def test_every_behaviour_is_tried() -> None:
    text = Path(__file__).read_text()
    untried = [name for name in BEHAVIOURS if f'"{name}"' not in text and f'"{name}:' not in text]
    assert untried == []
