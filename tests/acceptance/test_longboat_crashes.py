"""longboat commands killed before each of their steps: what comes next finishes or takes back.

A step is one changing git command or one save of the state; the kill is an exception that nothing
catches. (Mutiny's own sweep does the same for every system call.)
"""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from longboat.errors import LongboatError
from longboat.workers import commands, store, worktrees
from longboat.workers.config import Config, render
from longboat.workers.gitops import Git
from longboat.workers.opening import opened
from longboat.workers.proc import Result
from longboat.workers.state import Task
from longboat.workers.store import Book, Home

pytestmark = pytest.mark.deep

STEPS_LIMIT = 80
NOT_IN_REVIEW = "Worker 'alpha' is not in needs_review state"


class Killed(BaseException):
    """The process is gone."""


class Place:
    """A home and a repository without daemon and tmux, that can be put back as they were."""

    def __init__(self, root: Path) -> None:
        self.root = root / "now"
        self.copy = root / "copy"
        self.source = self.root / "source"
        self.home = Home(str(self.root / "home"))
        self.config = Config(source=str(self.source), lock_timeout_secs=2.0)
        self.source.mkdir(parents=True)
        self.git("init", "-q", "-b", "master")
        (self.source / "old.txt").write_text("old\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")
        commands.init(self.home, str(self.source), [], force=False)
        Path(self.home.config).write_text(render(self.config))

    def git(self, *words: str, at: str = "") -> str:
        argv = ["git", "-C", at or str(self.source), *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    def worker_in_review(self) -> str:
        """Add alpha with a commit that waits for review; returns the commit."""
        commands.add(self.home, self.config, "alpha", "", "true")
        worktree = self.home.worktree("alpha")
        Path(worktree, "new.txt").write_text("new\n")
        self.git("add", "-A", at=worktree)
        self.git("commit", "-q", "-m", "work\n\nMutiny-Token: MT-1", at=worktree)
        sha = self.git("rev-parse", "HEAD", at=worktree)
        state = store.read_state(self.home).state
        worker = state.workers["alpha"]._replace(
            status="needs_review", commit_sha=sha, task_id="t1", current_prompt="work"
        )
        state = state.with_worker(worker).with_task(Task("t1", "alpha", "work", "active"))
        store.write_state(self.home, state)
        return sha

    def move_master(self) -> None:
        (self.source / "other.txt").write_text("other\n")
        self.git("rm", "-q", "old.txt")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "other")

    def keep(self) -> None:
        shutil.copytree(self.root, self.copy, symlinks=True)

    def put_back(self) -> None:
        shutil.rmtree(self.root)
        shutil.copytree(self.copy, self.root, symlinks=True)

    def status(self) -> str:
        return store.read_state(self.home).state.workers["alpha"].status

    def check_quiet(self) -> None:
        assert self.git("status", "--porcelain") == ""
        assert not list((self.source / ".git").rglob("*.lock"))
        assert not store.read_state(self.home).state.intents
        self.git("fsck", "--connectivity-only")


def refusal(command: Callable[[], object]) -> str:
    """What the command says when it is refused, nothing when it succeeds."""
    try:
        command()
    except LongboatError as error:
        return str(error)
    return ""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Test")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "test@example.org")
    return Place(tmp_path)


def killed_before_each_step(
    place: Place, monkeypatch: pytest.MonkeyPatch, command: Callable[[], object]
) -> Iterator[int]:
    """Run the command again and again, killed one step later each time, until it is not killed."""
    left = 0

    def count() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    def write(self: Git, *words: str, **more: object) -> Result:
        count()
        return real_write(self, *words, **more)  # type: ignore[arg-type]

    def save(self: Book, *, sync: bool = True) -> None:
        count()
        real_save(self, sync=sync)

    real_write, real_save = Git.write, Book._write
    for step in range(STEPS_LIMIT):
        place.put_back()
        left = step
        with monkeypatch.context() as patch:
            patch.setattr(Git, "write", write)
            patch.setattr(Book, "_write", save)
            try:
                command()
            except Killed:
                survived = False
            else:
                survived = True
        yield step
        if survived:
            return
    raise AssertionError("the command has more steps than expected")


@pytest.mark.slow
@pytest.mark.parametrize("behind", [False, True])
def test_accept(place: Place, monkeypatch: pytest.MonkeyPatch, behind: bool) -> None:
    place.worker_in_review()
    if behind:
        place.move_master()
    place.keep()
    steps = killed_before_each_step(
        place, monkeypatch, lambda: commands.accept(place.home, place.config, "alpha")
    )
    for step in steps:
        accept = partial(commands.accept, place.home, place.config, "alpha")
        assert refusal(accept) in ("", f"{NOT_IN_REVIEW} (status: idle)"), step
        assert place.status() == "idle"
        assert place.git("log", "--format=%B", "master").count("MT-1") == 1
        assert (place.source / "new.txt").read_text() == "new\n"
        worktree = place.home.worktree("alpha")
        assert place.git("rev-parse", "HEAD", at=worktree) == place.git("rev-parse", "master")
        assert place.git("symbolic-ref", "HEAD", at=worktree) == "refs/heads/longboat/alpha"
        assert place.git("rev-parse", "refs/longboat/archive/alpha/t1")
        assert store.read_state(place.home).state.tasks["t1"].state == "merged"
        place.check_quiet()


def test_user_file_that_appears_after_the_crash_is_rescued(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.worker_in_review()
    place.keep()
    rescued = 0
    steps = killed_before_each_step(
        place, monkeypatch, lambda: commands.accept(place.home, place.config, "alpha")
    )
    for _ in steps:
        merged = "MT-1" in place.git("log", "--format=%B", "master")
        if merged and not (place.source / "new.txt").exists():
            (place.source / "new.txt").write_text("mine\n")
            # Any command that takes the lock recovers, also one that is refused.
            with pytest.raises(LongboatError):
                commands.rebase(place.home, place.config, "nobody")
            kept = list(Path(place.home.file("rescued")).rglob("new.txt*"))
            assert [one.read_text() for one in kept] == ["mine\n"]
            assert (place.source / "new.txt").read_text() == "new\n"
            rescued += 1
    assert rescued > 0


def test_nuke(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    sha = place.worker_in_review()
    Path(place.home.worktree("alpha"), "draft.txt").write_text("draft")
    place.keep()
    steps = killed_before_each_step(
        place, monkeypatch, lambda: commands.nuke(place.home, place.config, "alpha", yes=True)
    )
    for _ in steps:
        nuke = partial(commands.nuke, place.home, place.config, "alpha", yes=True)
        assert refusal(nuke) in ("", "Worker 'alpha' does not exist")
        archive = place.git("for-each-ref", "--format=%(refname)", "refs/longboat/archive").split()
        assert place.git("for-each-ref", f"--contains={sha}", "refs/longboat/archive")
        assert any("draft.txt" in place.git("ls-tree", "--name-only", name) for name in archive)
        assert not Path(place.home.worktree("alpha")).exists()
        assert store.read_state(place.home).state.tasks["t1"].state == "discarded"
        place.check_quiet()


def test_add(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.keep()
    steps = killed_before_each_step(
        place, monkeypatch, lambda: commands.add(place.home, place.config, "alpha", "", "true")
    )
    for _ in steps:
        add = partial(commands.add, place.home, place.config, "alpha", "", "true")
        assert refusal(add) in ("", "Worker 'alpha' already exists")
        assert place.status() == "offline"
        assert Path(place.home.worktree("alpha"), ".claude", "settings.json").exists()
        assert place.git("status", "--porcelain", at=place.home.worktree("alpha")) == ""
        place.check_quiet()


def test_start_that_fails_on_the_way_to_a_newer_trunk(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.add(place.home, place.config, "alpha", "", "true")
    state = store.read_state(place.home).state
    idle = state.workers["alpha"]._replace(status="idle")
    store.write_state(place.home, state.with_worker(idle))
    place.move_master()
    monkeypatch.setattr(commands, "_need_daemon", lambda home: None)
    worktree = place.home.worktree("alpha")

    def half(*_: object) -> None:
        Path(worktree, "old.txt").unlink()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(worktrees, "move_to", half)
        with pytest.raises(OSError, match="No space left"):
            commands.start(place.home, place.config, "alpha", "work")
    assert place.git("status", "--porcelain", at=worktree)
    with opened(place.home, place.config, "whoever comes next"):
        pass
    assert place.git("status", "--porcelain", at=worktree) == ""
    assert place.git("rev-parse", "HEAD", at=worktree) == place.git("rev-parse", "master")
    place.check_quiet()
