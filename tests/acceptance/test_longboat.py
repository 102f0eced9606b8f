"""longboat as a person meets it: the real command line, tmux, git and agent processes."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from longboat_driver import Box, is_alive


@pytest.fixture
def box() -> Iterator[Box]:
    one = Box()
    try:
        yield one
    finally:
        one.close()


# ---------------------------------------------------------------- ways through


def test_lifecycle(box: Box) -> None:
    box.ready("alpha")
    box.start("alpha", "MT-a-1", "hello.txt")
    assert box.worker("alpha")["status"] == "working"
    box.wait_status("alpha", "needs_review")
    assert "hello.txt" in box.do("review", "alpha", "--name-only")
    assert "from alpha" in box.do("review")
    shown = json.loads(box.do("accept", "--json"))
    assert shown["commit_sha"] == box.git("rev-parse", "master")
    assert (box.source / "hello.txt").read_text().startswith("from alpha")
    assert box.git("status", "--porcelain") == ""
    assert box.git("log", "-1", "--format=%(trailers:key=Mutiny-Token,valueonly)") == "MT-a-1"
    worker = box.worker("alpha")
    assert (worker["status"], worker["current_prompt"]) == ("idle", "")
    assert box.git("rev-parse", "longboat/alpha") == box.git("rev-parse", "master")
    # A second task goes to the same agent, after a /clear.
    agent = worker["agent"]["pid"]
    box.start("alpha", "MT-a-2")
    box.wait_status("alpha", "needs_review")
    box.do("accept", "alpha")
    assert [one.pid for one in box.prompts("MT-a-2")] == [agent]
    assert "healthy" in box.do("doctor")
    box.do("down")
    assert box.sessions() == []
    assert box.worker("alpha")["status"] == "offline"


def test_reject_and_message(box: Box) -> None:
    box.ready("alpha")
    box.start("alpha", "MT-a-1")
    box.wait_status("alpha", "needs_review")
    assert box.rejected("reject", "x") == "No worker has been reviewed recently"
    box.do("review", "alpha")
    box.do("reject", "Please also create again.txt MT-a-2")
    assert box.worker("alpha")["status"] in ("rejected", "needs_review")
    box.wait("reworked", lambda: box.prompts("MT-a-2") and not box.worker("alpha")["inbox"])
    box.wait_status("alpha", "needs_review")
    box.do("message", "alpha", "Also add third.txt MT-a-3")
    box.wait("third", lambda: box.prompts("MT-a-3") != [])
    box.wait_status("alpha", "needs_review")
    assert "third.txt" in box.do("review", "alpha", "--name-only")
    box.do("accept", "alpha")
    for token in ("MT-a-1", "MT-a-2", "MT-a-3"):
        assert len(box.prompts(token)) == 1
        assert box.merged(token) == 1


@pytest.mark.slow
def test_message_while_working_waits_for_the_turn(box: Box) -> None:
    box.script(alpha=["slow:300", "obey"])
    box.ready("alpha")
    box.start("alpha", "MT-a-1")
    box.do("message", "alpha", "Also add more.txt MT-a-2")
    box.wait_status("alpha", "needs_review")
    assert len(box.prompts("MT-a-2")) == 1
    assert (box.home / "worktrees" / "alpha" / "more.txt").exists()


@pytest.mark.slow
def test_merge_conflict_is_resolved_by_the_agent(box: Box) -> None:
    box.ready("alpha", "beta")
    box.start("alpha", "MT-a-1", "shared.txt")
    box.start("beta", "MT-b-1", "shared.txt")
    box.wait_status("alpha", "needs_review")
    box.wait_status("beta", "needs_review")
    box.do("accept", "alpha")
    assert "conflicts" in box.do("review", "beta")
    assert "rebasing" in box.log() or box.worker("beta")["status"] in ("rebasing", "needs_review")
    box.wait_status("beta", "needs_review")
    box.do("accept", "beta")
    text = (box.source / "shared.txt").read_text()
    assert "from alpha" in text
    assert "from beta" in text
    assert box.merged("MT-b-1") == 1


@pytest.mark.slow
def test_conflict_given_up_keeps_the_work(box: Box) -> None:
    box.script(beta=["give-up"])
    box.ready("alpha", "beta")
    box.start("alpha", "MT-a-1", "shared.txt")
    box.start("beta", "MT-b-1", "shared.txt")
    box.wait_status("alpha", "needs_review")
    box.wait_status("beta", "needs_review")
    box.do("accept", "alpha")
    before = box.git("rev-parse", "longboat/beta")
    box.do("accept", "beta")
    box.wait_status("beta", "error")
    assert "rebase" in box.worker("beta")["error_reason"]
    assert box.git("rev-parse", "longboat/beta") == before
    assert not (box.source / ".git" / "worktrees" / "beta" / "rebase-merge").exists()
    # A message brings it back to work, and accept asks again.
    box.script(beta=["obey"])
    box.do("message", "beta", "Also add b.txt MT-b-2")
    box.wait_status("beta", "needs_review")
    box.do("accept", "beta")
    box.wait_status("beta", "needs_review")
    box.do("accept", "beta")
    assert box.merged("MT-b-1") == 1


@pytest.mark.slow
def test_rebase_of_working_and_of_waiting_worker(box: Box) -> None:
    box.script(beta=["slow:3000"])
    box.ready("alpha", "beta")
    box.start("beta", "MT-b-1")
    box.start("alpha", "MT-a-1")
    assert "after its current turn" in box.do("rebase", "beta")
    box.wait_status("alpha", "needs_review")
    box.do("accept", "alpha")
    box.wait_status("beta", "needs_review")
    box.do("rebase", "beta")
    assert box.git("merge-base", "master", "longboat/beta") == box.git("rev-parse", "master")
    assert box.worker("beta")["commit_sha"] == box.git("rev-parse", "longboat/beta")


@pytest.mark.slow
def test_dirty_and_empty_turns(box: Box) -> None:
    box.script(alpha=["dirty"], beta=["nothing"])
    box.ready("alpha", "beta")
    box.start("alpha", "MT-a-1")
    box.start("beta", "MT-b-1")
    box.wait_status("alpha", "needs_review")
    assert box.git("log", "-1", "--format=%s", "longboat/alpha") == "Work in progress"
    box.wait_status("beta", "no_changes")
    expected = "Worker 'beta' is not in needs_review state (status: no_changes)"
    assert box.rejected("accept", "beta") == expected
    box.do("accept", "alpha")
    assert box.git("log", "-1", "--format=%s").startswith("Create a file named")
    box.do("reset", "beta", "--yes")
    box.wait_status("beta", "idle")
    assert box.state()["tasks"][next(iter(box.state()["tasks"]))]["state"] == "merged"


@pytest.mark.deep
def test_nuke_and_reset_keep_work_in_the_archive(box: Box) -> None:
    box.script(beta=["hang"])
    box.ready("alpha", "beta")
    box.start("alpha", "MT-a-1")
    box.start("beta", "MT-b-1")
    box.wait_status("alpha", "needs_review")
    box.wait_stage("beta", "received")
    sha = box.worker("alpha")["commit_sha"]
    (box.home / "worktrees" / "beta" / "draft.txt").write_text("half done")
    agent = box.worker("beta")["agent"]["pid"]
    kept = json.loads(box.do("nuke", "alpha", "--yes", "--json"))["kept"]
    assert box.git("rev-parse", kept[0]) == sha
    kept = json.loads(box.do("reset", "beta", "--yes", "--json"))["kept"]
    assert box.git("show", f"{kept[0]}:draft.txt") == "half done"
    assert not is_alive(agent)
    box.wait_status("beta", "idle")
    assert box.sessions() == ["longboat-beta"]
    assert "longboat/alpha" not in box.git("branch", "--list", "longboat/*")
    assert sorted(t["state"] for t in box.state()["tasks"].values()) == ["discarded", "discarded"]
    box.do("add", "alpha")
    box.wait_status("alpha", "idle")


@pytest.mark.slow
def test_names_that_are_prefixes_of_each_other(box: Box) -> None:
    box.ready("al", "alpha")
    agent = box.worker("alpha")["agent"]["pid"]
    box.do("nuke", "al", "--yes")
    assert box.sessions() == ["longboat-alpha"]
    assert box.worker("alpha")["agent"]["pid"] == agent
    assert is_alive(agent)
    assert box.rejected("attach", "al") == "Worker 'al' does not exist"


# ---------------------------------------------------------------- rejections


@pytest.mark.slow
def test_rejections(box: Box) -> None:
    box.script(alpha=["hang"])
    box.init()
    assert box.rejected("down") == "Daemon is not running"
    box.do("up")
    assert box.rejected("up") == "Daemon is already running"
    box.do("add", "alpha")
    assert box.rejected("add", "alpha") == "Worker 'alpha' already exists"
    for words in (
        ("start", "--worker", "x", "--prompt", "y"),
        ("message", "x", "y"),
        ("attach", "x"),
        ("peek", "x"),
        ("review", "x"),
        ("accept", "x"),
        ("rebase", "x"),
        ("nuke", "x", "--yes"),
        ("reset", "x", "--yes"),
    ):
        assert box.rejected(*words) == "Worker 'x' does not exist"
    box.wait_status("alpha", "idle")
    in_idle = "Cannot {} while worker is in idle state"
    assert box.rejected("message", "alpha", "y") == in_idle.format("message")
    assert box.rejected("rebase", "alpha") == in_idle.format("rebase")
    not_review = "Worker 'alpha' is not in needs_review state (status: {})"
    assert box.rejected("review", "alpha") == not_review.format("idle")
    assert box.rejected("accept", "alpha") == not_review.format("idle")
    assert box.rejected("accept") == "No worker has been reviewed recently"
    assert box.rejected("reject", "y") == "No worker has been reviewed recently"
    assert box.do("attach", "alpha", "--print").strip().endswith("=longboat-alpha")
    box.start("alpha", "MT-a-1")
    refused = box.rejected("start", "--worker", "alpha", "--prompt", "y")
    assert refused == "Worker 'alpha' is not idle (status: working)"
    assert box.rejected("accept", "alpha") == not_review.format("working")
    box.kill_daemon()
    assert box.rejected("message", "alpha", "y") == "Daemon is not running"
    assert box.run("status").returncode == 0
    assert json.loads(box.do("status", "--json"))["daemon_running"] is False
    for line in (["start"], ["fly"], ["add"], ["add", "a b"], ["nuke", "alpha"]):
        assert box.run(*line).returncode == 2


@pytest.mark.slow
def test_dirty_source_is_refused_before_anything_changes(box: Box) -> None:
    box.ready("alpha", "beta")
    box.start("alpha", "MT-a-1", "new.txt")
    box.wait_status("alpha", "needs_review")
    master = box.git("rev-parse", "master")
    (box.source / "README").write_text("mine\n")
    assert "Source repository has uncommitted changes" in box.rejected("accept", "alpha")
    (box.source / "README").write_text("hello\n")
    (box.source / "new.txt").write_text("my own file\n")
    assert "Source repository has uncommitted changes" in box.rejected("accept", "alpha")
    assert box.git("rev-parse", "master") == master
    assert box.worker("alpha")["status"] == "needs_review"
    (box.source / "new.txt").unlink()
    (box.source / "other.txt").write_text("not in the way\n")
    box.do("accept", "alpha")
    assert (box.source / "other.txt").read_text() == "not in the way\n"
    assert (box.source / "new.txt").exists()
    # On another branch the user's files are none of our business.
    box.git("checkout", "-q", "-b", "mine")
    (box.source / "README").write_text("mine\n")
    box.start("beta", "MT-b-1", "b.txt")
    box.wait_status("beta", "needs_review")
    box.do("accept", "beta")
    assert box.merged("MT-b-1") == 1
    assert not (box.source / "b.txt").exists()
    assert (box.source / "README").read_text() == "mine\n"


# ---------------------------------------------------------------- kills


@pytest.mark.deep
def test_daemon_killed_in_each_status(box: Box) -> None:
    box.script(alpha=["slow:3000"], gamma=["hang"])
    box.ready("alpha", "beta", "gamma")
    box.start("beta", "MT-b-1")
    box.wait_status("beta", "needs_review")
    box.start("gamma", "MT-c-1")
    box.start("alpha", "MT-a-1")
    box.wait_stage("alpha", "received")
    box.wait_stage("gamma", "received")
    agents = {name: box.worker(name)["agent"]["pid"] for name in ("alpha", "beta", "gamma")}
    box.kill_daemon()
    # The Stop hook of alpha happens while nobody listens.
    box.wait("spooled", lambda: any(b" Stop " in p.read_bytes() for p in _hooks(box)))
    box.do("up")
    assert {n: box.worker(n)["agent"]["pid"] for n in agents} == agents
    box.wait_status("alpha", "needs_review")
    assert box.worker("gamma")["status"] == "working"
    box.do("accept", "beta")
    box.do("accept", "alpha")
    for token in ("MT-a-1", "MT-b-1", "MT-c-1"):
        assert len(box.prompts(token)) == 1


def _hooks(box: Box) -> list[Path]:
    return list((box.home / "spool").glob("*.hook"))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["agent", "session", "server"])
def test_agent_session_or_server_killed(box: Box, how: str) -> None:
    box.script(alpha=["hang", "obey"])
    box.ready("alpha", "beta", "gamma")
    box.start("beta", "MT-b-1")
    box.wait_status("beta", "needs_review")
    box.start("alpha", "MT-a-1")
    box.wait_stage("alpha", "received")
    old = {name: box.worker(name)["agent"]["pid"] for name in ("alpha", "beta", "gamma")}
    if how == "agent":
        for name in old:
            box.kill_agent(name)
    elif how == "session":
        for name in old:
            box.tmux("kill-session", "-t", f"=longboat-{name}")
    else:
        box.kill(box.tmux_server_pid())
    box.wait_status("alpha", "needs_review")
    first, second = box.prompts("MT-a-1")
    assert first.pid == old["alpha"]
    assert [one.alive for one in second.earlier] == [False]
    assert box.worker("beta")["status"] == "needs_review"
    for name, pid in old.items():
        box.wait(name, lambda n=name, p=pid: (box.worker(n)["agent"] or {}).get("pid", p) != p)
        box.wait(name, lambda n=name: box.worker(n)["agent"]["ready"])
    assert box.worker("gamma")["status"] == "idle"
    assert "healthy" in box.do("doctor")
    box.do("accept", "alpha")
    box.do("accept", "beta")
    assert box.merged("MT-a-1") == box.merged("MT-b-1") == 1


@pytest.mark.slow
def test_everything_killed_at_once(box: Box) -> None:
    box.script(alpha=["hang", "obey"])
    box.ready("alpha")
    box.start("alpha", "MT-a-1")
    box.wait_stage("alpha", "received")
    server = box.tmux_server_pid()
    box.kill_daemon()
    box.kill(server)
    box.do("up")
    assert box.sessions() == ["longboat-alpha"]
    box.wait_status("alpha", "needs_review")
    assert [e.alive for e in box.prompts("MT-a-1")[1].earlier] == [False]


@pytest.mark.slow
def test_down_and_up_with_unfinished_work(box: Box) -> None:
    box.script(alpha=["hang", "obey"], beta=["obey"])
    box.ready("alpha", "beta", "gamma")
    box.start("alpha", "MT-a-1")
    box.start("beta", "MT-b-1")
    box.wait_status("beta", "needs_review")
    box.wait_stage("alpha", "received")
    box.do("message", "alpha", "Also add late.txt MT-a-2")
    box.do("down")
    assert {w["status"] for w in box.state()["workers"].values()} == {"offline"}
    assert box.sessions() == []
    assert box.state()["daemon_running"] is False
    refused = box.rejected("start", "--worker", "gamma", "--prompt", "x")
    assert refused == "Worker 'gamma' is not idle (status: offline)"
    box.do("up")
    assert box.worker("beta")["status"] == "needs_review"
    box.wait_status("alpha", "needs_review")
    box.wait_status("gamma", "idle")
    box.do("accept", "alpha")
    box.do("accept", "beta")
    assert box.merged("MT-a-1") == box.merged("MT-a-2") == box.merged("MT-b-1") == 1


def test_down_after_the_daemon_died(box: Box) -> None:
    box.ready("alpha")
    agent = box.worker("alpha")["agent"]["pid"]
    box.kill_daemon()
    box.do("down")
    assert box.sessions() == []
    assert not is_alive(agent)
    assert box.rejected("down") == "Daemon is not running"


@pytest.mark.slow
def test_swallowed_prompt_is_delivered_again_to_a_fresh_agent(box: Box) -> None:
    box.script(alpha=["swallow", "obey"])
    box.ready("alpha", ack_timeout_secs=0.6)
    box.start("alpha", "MT-a-1")
    box.wait_status("alpha", "needs_review")
    assert [one.behaviour for one in box.prompts("MT-a-1")] == ["swallow", "obey"]
    assert [e.alive for e in box.prompts("MT-a-1")[1].earlier] == [False]


@pytest.mark.slow
def test_prompt_that_kills_every_agent_is_reported_not_lost(box: Box) -> None:
    box.script(alpha=["exit"])
    box.ready("alpha")
    box.start("alpha", "MT-a-1")
    box.wait_status("alpha", "error")
    assert "3 times" in box.worker("alpha")["error_reason"]
    assert len(box.prompts("MT-a-1")) == 3
    assert [t["state"] for t in box.state()["tasks"].values()] == ["failed"]
    box.script(alpha=["obey"])
    box.do("message", "alpha", "Also add more.txt MT-a-2")
    box.wait_status("alpha", "needs_review")
    box.do("accept", "alpha")
    assert box.merged("MT-a-1") == box.merged("MT-a-2") == 1


@pytest.mark.slow
def test_agent_that_never_starts_is_an_error(box: Box) -> None:
    box.script(alpha=["exit-at-start"])
    box.init()
    box.do("up")
    box.do("add", "alpha")
    box.wait_status("alpha", "error")
    box.script(alpha=["obey"])
    box.do("reset", "alpha", "--yes")
    box.wait_status("alpha", "idle")


@pytest.mark.slow
def test_commit_cut_in_half(box: Box) -> None:
    box.script(alpha=["crash-in-commit", "obey"])
    box.ready("alpha")
    box.start("alpha", "MT-a-1")
    box.wait_status("alpha", "needs_review")
    box.do("accept", "alpha")
    assert box.merged("MT-a-1") == 1


@pytest.mark.slow
def test_missed_end_of_a_turn(box: Box) -> None:
    box.script(alpha=["no-stop", "obey"])
    box.ready("alpha", missed_completion_secs=0.5)
    box.start("alpha", "MT-a-1")
    box.wait_status("alpha", "needs_review")
    box.do("accept", "alpha")


def test_stubborn_agent_is_ended_by_down(box: Box) -> None:
    box.script(alpha=["ignore-ctrl-c"])
    box.ready("alpha")
    agent = box.worker("alpha")["agent"]["pid"]
    box.do("down")
    assert not is_alive(agent)


# ---------------------------------------------------------------- silence is not death


@pytest.mark.slow
def test_silent_tmux_is_not_death(box: Box) -> None:
    box.script(alpha=["slow:800"])
    box.ready("alpha", "beta")
    box.start("alpha", "MT-a-1")
    box.wait_stage("alpha", "received")
    agents = {name: box.worker(name)["agent"]["pid"] for name in ("alpha", "beta")}
    server = box.tmux_server_pid()
    box.kill(server, signal.SIGSTOP)
    try:
        box.wait_status("alpha", "needs_review")
        box.wait("a silent patrol", lambda: "tmux does not answer" in box.log())
    finally:
        box.kill(server, signal.SIGCONT)
    assert {n: box.worker(n)["agent"]["pid"] for n in agents} == agents
    for pid in agents.values():
        assert is_alive(pid)
    box.wait("healthy", lambda: box.run("doctor").returncode == 0)


@pytest.mark.slow
def test_stopped_daemon(box: Box) -> None:
    box.ready("alpha", lock_timeout_secs=0.5)
    daemon = box.state()["daemon"]["pid"]
    box.kill(daemon, signal.SIGSTOP)
    assert box.rejected("up") == "Daemon is already running"
    box.do("down")
    assert not is_alive(daemon)
    assert box.sessions() == []
    box.do("up")
    box.wait_status("alpha", "idle")


# ---------------------------------------------------------------- state files and doctor


@pytest.mark.deep
def test_corrupt_state_is_replaced_by_the_backup(box: Box) -> None:
    box.ready("alpha")
    box.start("alpha", "MT-a-1")
    box.wait_status("alpha", "needs_review")
    backup = box.home / "state.bak.json"
    box.wait("the second copy", lambda: "needs_review" in backup.read_text())
    box.kill_daemon()
    (box.home / "state.json").write_text('{"version": 1, "workers": {')
    assert "needs_review" in box.do("status")
    assert box.run("doctor").returncode == 1
    assert "repaired" in box.do("doctor", "--repair")
    assert list(box.home.glob("state.corrupt-*.json"))
    box.do("up")
    box.do("accept", "alpha")
    (box.home / "state.json").write_text("garbage under a living daemon")
    box.wait("healed", lambda: (box.home / "state.json").read_bytes()[:1] == b"{")
    assert box.worker("alpha")["status"] == "idle"


@pytest.mark.slow
def test_both_copies_corrupt_is_refused_and_rebuilt(box: Box) -> None:
    box.ready("alpha", "beta")
    box.start("alpha", "MT-a-1")
    box.wait_status("alpha", "needs_review")
    box.do("down")
    for name in ("state.json", "state.bak.json"):
        (box.home / name).write_text("{}")
    for words in (("up",), ("status",), ("add", "gamma")):
        result = box.run(*words)
        assert result.returncode == 1
        assert "unreadable" in result.stderr
    assert "rebuilt" in box.do("doctor", "--repair")
    box.do("up")
    box.wait_status("alpha", "needs_review")
    box.wait_status("beta", "idle")
    box.do("accept", "alpha")
    assert box.merged("MT-a-1") == 1


@pytest.mark.slow
def test_doctor_finds_and_repairs_without_destroying(box: Box) -> None:
    box.ready("alpha", "beta")
    box.do("down")
    orphan = box.home / "worktrees" / "ghost"
    box.git("worktree", "add", "-q", "-b", "longboat/ghost", str(orphan))
    (orphan / "precious.txt").write_text("precious")
    (box.source / ".git" / "worktrees" / "alpha" / "index.lock").touch()
    environment = ("-e", f"LONGBOAT_HOME={box.home}")
    box.tmux("new-session", "-d", "-s", "longboat-stray", *environment, "sleep 1000")
    found = json.loads(box.run("doctor", "--json").stdout)
    assert not found["healthy"]
    assert len(found["problems"]) == 3
    done = json.loads(box.do("doctor", "--repair", "--json"))
    assert done["healthy"]
    assert len(done["repairs"]) == 3
    assert box.sessions() == []
    kept = box.git("for-each-ref", "--format=%(refname)", "refs/longboat/archive/ghost")
    assert box.git("show", f"{kept}:precious.txt") == "precious"
    assert not orphan.exists()


@pytest.mark.slow
def test_lost_worktree_is_made_again(box: Box) -> None:
    box.ready("alpha")
    box.start("alpha", "MT-a-1")
    box.wait_status("alpha", "needs_review")
    (box.home / "worktrees" / "alpha" / ".git").unlink()
    box.wait("made again", lambda: (box.home / "worktrees" / "alpha" / ".git").exists())
    box.wait("agent", lambda: (box.worker("alpha")["agent"] or {}).get("ready"))
    box.do("accept", "alpha")
    assert box.merged("MT-a-1") == 1
