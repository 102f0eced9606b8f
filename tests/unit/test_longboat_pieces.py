"""Smaller parts of longboat: settings, command line, processes, git locks, plants."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from longboat import planting, plants
from longboat.arguments import parse
from longboat.errors import LongboatError, UsageError
from longboat.workers import config as config_module
from longboat.workers import daemon, gitops, processes, tmuxctl
from longboat.workers.config import Config
from longboat.workers.gitops import Git
from longboat.workers.proc import run
from longboat.workers.processes import Identity
from longboat.workers.store import open_home
from longboat.workers.tmuxctl import Listing, Pane, shell_quote

# ---------------------------------------------------------------- settings


def test_settings_survive_their_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    wanted = Config(source='/a "b"\\c', patrol_interval_secs=0.3, agent_command="my agent --x")
    path.write_text(config_module.render(wanted))
    assert config_module.load(str(path)) == wanted
    path.write_text("patrol_interval_secs = 1 # comment\nsource = 'x'\n")
    assert config_module.load(str(path)).patrol_interval_secs == 1.0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("surce = 'x'", "unknown setting 'surce'"),
        ("max_attempts = 'three'", "must be a int"),
        ("max_attempts = 0", "above 0"),
        ("a = [", "not valid TOML"),
    ],
)
def test_wrong_settings_name_file_and_key(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=complaint) as caught:
        config_module.load(str(path))
    assert str(path) in str(caught.value)


def test_missing_home_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LongboatError, match="longboat init"):
        config_module.load(str(tmp_path / "config.toml"))


# ---------------------------------------------------------------- command line


def test_command_line() -> None:
    parsed = parse(["--home", "/h", "start", "--worker=a", "--prompt", "x --y", "--json"])
    assert (parsed.command, parsed.option("--home")) == ("start", "/h")
    assert (parsed.option("--worker"), parsed.option("--prompt")) == ("a", "x --y")
    assert parsed.flags == {"--json"}
    assert parse(["message", "a", "--", "--text"]).words == ("a", "--text")
    for wrong in ([], ["fly"], ["add"], ["add", "a", "b"], ["up", "--yes"], ["start", "--worker"]):
        with pytest.raises(UsageError):
            parse(wrong)


def test_shell_quote() -> None:
    for word in ("plain", "a b", "it's", "$HOME", "", "a;b", "é"):
        shown = subprocess.run(
            ["/bin/sh", "-c", f"printf %s {shell_quote(word)}"], capture_output=True, text=True
        )
        assert shown.stdout == word


# ---------------------------------------------------------------- processes


def test_identity_is_number_and_start_time() -> None:
    child = subprocess.Popen(["sleep", "100"])
    try:
        one = processes.identify(child.pid)
        assert one is not None
        assert processes.is_alive(one)
        stranger = Identity(one.pid, one.start + 1)
        assert not processes.is_alive(stranger)
        assert not processes.send(stranger, signal.SIGKILL)
        assert child.poll() is None
        assert processes.send(one, signal.SIGSTOP)
        assert processes.is_alive(one)
        processes.send(one, signal.SIGKILL)
        assert processes.wait_dead([one], 5.0) == []  # dead although nobody has reaped it
    finally:
        child.kill()
        child.wait()


def test_terminate_ends_children_that_made_their_own_session() -> None:
    program = (
        "import subprocess,sys; subprocess.Popen(['setsid', 'sleep', '100']); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "LONGBOAT_SPAWN": "unit-test-mark"},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        for _ in range(500):
            if len(processes.members(child.pid, "unit-test-mark")) >= 2:
                break
            processes.wait_dead([Identity(child.pid, 0)], 0.01)
            os.sched_yield()
        assert processes.terminate(child.pid, "unit-test-mark", grace_s=0.1) == []
        assert processes.members(child.pid, "unit-test-mark") == []
    finally:
        child.kill()
        child.wait()


def test_run_feeds_collects_and_has_a_deadline() -> None:
    big = b"x" * 300_000
    assert len(run(["cat"], timeout_s=10, stdin=big).out) == len(big)
    failed = run(["sh", "-c", "echo no >&2; exit 3"], timeout_s=10)
    assert (failed.code, failed.last_words) == (3, "no")
    assert run(["sh", "-c", "sleep 100"], timeout_s=0.05).timed_out
    assert run(["no-such-program-here"], timeout_s=1).code == 127


# ---------------------------------------------------------------- tmux answers


def test_only_certainty_means_gone() -> None:
    me = processes.identify(os.getpid())
    assert me is not None
    pane = Pane("%1", 4, False, "longboat-a")
    assert not tmuxctl.is_gone(Listing(False), "longboat-a", me)
    assert not tmuxctl.is_gone(Listing(True, (pane,), me.pid), "longboat-a", me)
    assert tmuxctl.is_gone(Listing(True, (), me.pid), "longboat-a", me)
    assert tmuxctl.is_gone(Listing(True, (pane,), me.pid), "longboat-", me)
    # Another server answers (or none), while the one that holds the session lives.
    assert not tmuxctl.is_gone(Listing(True, (), me.pid + 1), "longboat-a", me)
    assert not tmuxctl.is_gone(Listing(True), "longboat-a", me)
    assert tmuxctl.is_gone(Listing(False), "longboat-a", Identity(me.pid, me.start - 1))


# ---------------------------------------------------------------- git locks


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    monkeypatch.setenv("HOME", str(tmp_path))
    subprocess.run(["git", "init", "-q", "-b", "master", str(tmp_path / "r")], check=True)
    one = Git(str(tmp_path / "r"))
    one.change("commit", "-q", "--allow-empty", "-m", "first")
    return one


def test_stale_lock_of_our_own_is_removed_and_the_change_done(git: Git) -> None:
    directory = Path(git.common_directory) / "refs" / "longboat"
    directory.mkdir(parents=True)
    (directory / "x.lock").touch()
    git.change("update-ref", "refs/longboat/x", "HEAD")
    assert git.ref("refs/longboat/x") == git.ref("refs/heads/master")


def test_lock_of_the_source_is_respected(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gitops, "_LOCK_PATIENCE_S", 0.1)
    lock = Path(git.common_directory) / "index.lock"
    lock.touch()
    assert not git.write("commit", "--allow-empty", "-m", "x").ok
    assert lock.exists()


def test_lock_is_kept_while_a_git_is_at_work(git: Git) -> None:
    lock = Path(git.common_directory) / "packed-refs.lock"
    lock.touch()
    busy = subprocess.Popen(
        ["git", "-C", git.source, "hash-object", "--stdin"], stdin=subprocess.PIPE
    )
    try:
        for _ in range(1000):
            if gitops.git_at_work([git.source]):
                break
        assert git.clear_reference_locks() == []
        assert lock.exists()
    finally:
        busy.kill()
        busy.wait()
    assert git.clear_reference_locks() == [str(lock)]


def test_missing_identity_does_not_stop_a_commit(git: Git) -> None:
    git.change("config", "user.useConfigOnly", "true")
    git.change("commit", "-q", "--allow-empty", "-m", "nameless")
    assert git.ask("log", "-1", "--format=%an") == "longboat"


# ---------------------------------------------------------------- daemon


def test_down_waits_for_the_daemon_that_it_stopped_and_for_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody's `up` may come in between: its daemon holds the lock, and lives for long."""
    waited: list[Identity] = []
    monkeypatch.setattr(daemon, "daemon_is_alive", lambda home: True)
    monkeypatch.setattr(daemon, "_ask_to_stop", lambda home, timeout_s: "stopped 71 1 alpha beta")
    monkeypatch.setattr(daemon, "wait_dead", lambda whom, timeout_s: waited.extend(whom))
    assert daemon.stop(open_home(str(tmp_path)), Config(source="/x")) == ["alpha", "beta"]
    assert waited == [Identity(71, 1)]


# ---------------------------------------------------------------- plants


def test_plants_are_off_and_explained() -> None:
    assert len(plants.WORKER_PLANTS) >= 26
    assert not any(planting.planted(name) for name in plants.WORKER_PLANTS)
    for name, plant in plants.WORKER_PLANTS.items():
        assert plant.name == name
        shortest = "Shortest: Init" in plant.what or "Shortest: two workers" in plant.what
        assert shortest or plant.sweep
        assert plant.source
        assert plant.failure_class
