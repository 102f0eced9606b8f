"""Every git command that longboat runs.

Two insights. A git command keeps the home lock open, so it is never still running when somebody
recovers from the death of its parent. And a ``*.lock`` file of git names no owner, so it is only
removed when a look at all processes proves that no git is at work there.
"""

from __future__ import annotations

import os
import time

from longboat.errors import GitFailed, LongboatError
from longboat.planting import planted
from longboat.workers.proc import Result, run
from longboat.workers.processes import all_pids

_READ_TIMEOUT_S = 20.0
_WRITE_TIMEOUT_S = 120.0
_LOCK_PATIENCE_S = 3.0
# User hooks, signing prompts and background maintenance have no place in an unattended change.
_SYNC = "core.fsync=all"
_QUIET_SETTINGS = (
    "core.hooksPath=/dev/null",
    _SYNC,
    "gc.auto=0",
    "maintenance.auto=false",
    "core.fsmonitor=false",
    "commit.gpgSign=false",
    "rebase.autoSquash=false",
    "rebase.autoStash=false",
    "rebase.updateRefs=false",
    "advice.detachedHead=false",
)
_FALLBACK_IDENTITY = {
    "GIT_AUTHOR_NAME": "longboat",
    "GIT_AUTHOR_EMAIL": "longboat@localhost",
    "GIT_COMMITTER_NAME": "longboat",
    "GIT_COMMITTER_EMAIL": "longboat@localhost",
}
PLACES_OF_GIT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR")
"""Whoever is called from a hook has them, and they mean the user's own repository, wherever one is."""


class Git:
    """git in one source repository and its worktrees."""

    def __init__(self, source: str, kept_lock: int | None = None, *, patience: float = 1.0) -> None:
        """``patience`` stretches all time limits, for clocks that run faster than git."""
        self.source = source
        self._patience = patience
        self._kept_lock = kept_lock
        self._common_directory: str | None = None
        settings = [s for s in _QUIET_SETTINGS if s != _SYNC or not planted("git-not-synced")]
        self._settings = [part for setting in settings for part in ("-c", setting)]

    # ---------------------------------------------------------------- running

    def read(self, *arguments: str, at: str = "", stdin: bytes = b"") -> Result:
        """A question: takes no lock and changes nothing."""
        argv = ["git", "-C", at or self.source, *arguments]
        environment = _environment({"GIT_OPTIONAL_LOCKS": "0"})
        limit_s = _READ_TIMEOUT_S * self._patience
        return run(argv, timeout_s=limit_s, stdin=stdin, environment=environment)

    def ask(self, *arguments: str, at: str = "") -> str:
        """A question whose failure is an error; returns the stripped answer."""
        result = self.read(*arguments, at=at)
        if not result.ok:
            raise GitFailed(f"{_shown(result)}: {result.last_words}")
        return result.out.strip()

    def write(
        self,
        *arguments: str,
        at: str = "",
        stdin: bytes = b"",
        environment: dict[str, str] | None = None,
    ) -> Result:
        """A change. Waits for live locks, clears dead ones, and gives a nameless user a name."""
        argv = ["git", "-C", at or self.source, *self._settings, *arguments]
        extra = dict(environment or {})
        deadline = time.monotonic() + _LOCK_PATIENCE_S * self._patience
        while True:
            result = run(
                argv,
                timeout_s=_WRITE_TIMEOUT_S * self._patience,
                stdin=stdin,
                environment=_environment(extra),
                kept_lock=self._kept_lock,
            )
            if result.ok:
                return result
            if "GIT_COMMITTER_NAME" not in extra and _lacks_identity(result.err):
                extra = {**_FALLBACK_IDENTITY, **extra}
                continue
            lock = _lock_in_the_way(result.err)
            if not lock or time.monotonic() > deadline or planted("end-lost-to-busy-git"):
                return result
            if not (self._is_ours(lock) and self.clear_locks([lock], near=at)):
                time.sleep(0.05)

    def change(self, *arguments: str, at: str = "", stdin: bytes = b"") -> str:
        """A change whose failure is an error; returns the stripped answer."""
        result = self.write(*arguments, at=at, stdin=stdin)
        if not result.ok:
            raise GitFailed(f"{_shown(result)}: {result.last_words}")
        return result.out.strip()

    # ---------------------------------------------------------------- places

    @property
    def common_directory(self) -> str:
        """The repository's own directory (``.git`` of the source, or the bare source)."""
        if self._common_directory is None:
            answer = self.ask("rev-parse", "--git-common-dir")
            self._common_directory = os.path.realpath(os.path.join(self.source, answer))
        return self._common_directory

    def admin_directory(self, worktree: str) -> str | None:
        """The directory where git keeps a worktree's HEAD and index; None when there is none."""
        try:
            with open(os.path.join(worktree, ".git"), encoding="utf-8") as file:
                text = file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except IsADirectoryError:
            return os.path.join(worktree, ".git")
        path = text.removeprefix("gitdir:").strip()
        return path if path and os.path.isdir(path) else None

    def in_rebase(self, worktree: str) -> bool:
        """True while a rebase is under way there."""
        admin = self.admin_directory(worktree)
        return admin is not None and any(
            os.path.isdir(os.path.join(admin, name)) for name in ("rebase-merge", "rebase-apply")
        )

    def checked_out(self, worktree: str) -> str | None:
        """The branch of a worktree (``longboat/alpha``), None when its HEAD is detached or gone."""
        admin = self.admin_directory(worktree)
        if admin is None:
            return None
        try:
            with open(os.path.join(admin, "HEAD"), encoding="utf-8") as file:
                text = file.read().strip()
        except FileNotFoundError:
            return None
        return text.removeprefix("ref: refs/heads/") if text.startswith("ref: ") else None

    # ---------------------------------------------------------------- questions

    def head(self, worktree: str) -> str:
        """The commit that a worktree is at."""
        return self.ask("rev-parse", "--verify", "HEAD^{commit}", at=worktree)

    def ref(self, name: str) -> str | None:
        """The commit of a full reference name, None when there is no such reference."""
        result = self.read("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if result.ok:
            return result.out.strip()
        if result.code == 1 and not result.err.strip():
            return None
        raise GitFailed(f"{_shown(result)}: {result.last_words}")

    def is_dirty(self, worktree: str) -> bool:
        """True when something there is not committed (ignored files do not count)."""
        return bool(self.ask("status", "--porcelain", "--untracked-files=normal", at=worktree))

    def ahead(self, commit: str, of: str) -> int:
        """How many commits ``commit`` has that ``of`` has not."""
        return int(self.ask("rev-list", "--count", f"{of}..{commit}"))

    def contains(self, descendant: str, ancestor: str) -> bool:
        """True when ``ancestor`` is part of the history of ``descendant``."""
        result = self.read("merge-base", "--is-ancestor", ancestor, descendant)
        if result.code not in (0, 1):
            raise GitFailed(f"{_shown(result)}: {result.last_words}")
        return result.code == 0

    def worktrees(self) -> list[tuple[str, str]]:
        """All worktrees as (path, branch or empty), the source first."""
        found: list[tuple[str, str]] = []
        for line in self.ask("worktree", "list", "--porcelain").splitlines():
            if line.startswith("worktree "):
                found.append((line.removeprefix("worktree "), ""))
            elif line.startswith("branch refs/heads/"):
                found[-1] = (found[-1][0], line.removeprefix("branch refs/heads/"))
            elif line == "bare":
                found.pop()
        return found

    # ---------------------------------------------------------------- locks

    def _is_ours(self, lock: str) -> bool:
        """Locks that our commands and agents leave; the others of the source need an intent."""
        inside = os.path.relpath(lock, self.common_directory)
        ours = ("worktrees/", "refs/heads/longboat/", "refs/longboat/")
        return inside.startswith(ours) or inside == "packed-refs.lock"

    def clear_locks(self, locks: list[str], *, near: str = "") -> list[str]:
        """Remove lock files that no live git can own; returns what was removed."""
        present = [lock for lock in locks if os.path.lexists(lock)]
        if not present or planted("git-lock-left"):
            return []
        places = [os.path.realpath(near or self.source)]
        own = os.path.join(self.common_directory, "worktrees") + os.sep
        if not all(lock.startswith(own) for lock in present):
            # A lock of the whole repository may belong to a git in any of its worktrees.
            places += [self.common_directory, *(path for path, _ in self.worktrees())]
        if git_at_work(places):
            return []
        for lock in present:
            try:
                os.unlink(lock)
            except FileNotFoundError:
                continue  # its owner lived after all and has finished
        return present

    def clear_worktree_locks(self, worktree: str, branch: str) -> list[str]:
        """Remove what a dead agent left locked in its own worktree."""
        admin = self.admin_directory(worktree)
        locks = [os.path.join(self.common_directory, "refs/heads", branch + ".lock")]
        if admin is not None:
            locks += [os.path.join(admin, n) for n in os.listdir(admin) if n.endswith(".lock")]
        return self.clear_locks(locks, near=worktree)

    def clear_reference_locks(self) -> list[str]:
        """Remove what our own killed changes left locked among our references."""
        locks = [os.path.join(self.common_directory, "packed-refs.lock")]
        for place in ("refs/longboat", "refs/heads/longboat"):
            for directory, _, files in os.walk(os.path.join(self.common_directory, place)):
                locks += [os.path.join(directory, one) for one in files if one.endswith(".lock")]
        return self.clear_locks(locks)

    def clear_source_locks(self, branch: str) -> list[str]:
        """Remove what our own killed change left locked in the source (only with an intent)."""
        names = ("index.lock", "HEAD.lock", "packed-refs.lock", f"refs/heads/{branch}.lock")
        return self.clear_locks([os.path.join(self.common_directory, name) for name in names])


def git_at_work(places: list[str]) -> bool:
    """True when some live git process works in, or was told about, one of these directories."""
    needles = [place.encode() for place in places]
    for pid in all_pids():
        try:
            with open(f"/proc/{pid}/comm", "rb") as file:
                if not file.read().startswith(b"git"):
                    continue
            directory = os.readlink(f"/proc/{pid}/cwd").encode()
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read()
        except OSError:
            continue  # it ended while we looked, or belongs to another user
        if any(_inside(directory, needle) or needle in command for needle in needles):
            return True
    return False


def _inside(path: bytes, directory: bytes) -> bool:
    return path == directory or path.startswith(directory + b"/")


def free_environment() -> dict[str, str]:
    """Our environment, without the places of a repository that whoever called us works in."""
    return {key: value for key, value in os.environ.items() if key not in PLACES_OF_GIT}


def _environment(extra: dict[str, str]) -> dict[str, str]:
    fixed = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true"}
    return {**free_environment(), **fixed, **extra}


def _shown(result: Result) -> str:
    """The command without the settings that every command has."""
    words = list(result.argv)
    while "-c" in words:
        at = words.index("-c")
        del words[at : at + 2]
    return " ".join(words)


def _lacks_identity(complaint: str) -> bool:
    return "tell me who you are" in complaint or "empty ident name" in complaint


def _lock_in_the_way(complaint: str) -> str:
    """The path of the lock file that git complains about, or nothing."""
    for line in complaint.splitlines():
        before, found, _ = line.partition(".lock': File exists")
        if found:
            return before.rpartition("'")[2] + ".lock"
    return ""


def open_source(path: str, branch: str, kept_lock: int | None = None) -> Git:
    """git for a source that must be a repository with this branch; says clearly when it is not."""
    git = Git(path, kept_lock)
    if not os.path.isdir(path):
        raise LongboatError(f"Source repository {path} does not exist")
    if not git.read("rev-parse", "--git-dir").ok:
        raise LongboatError(f"{path} is not a git repository")
    if git.ref(f"refs/heads/{branch}") is None:
        raise LongboatError(f"Source repository {path} has no branch '{branch}' with a commit")
    return git
