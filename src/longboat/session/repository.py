"""The project that the agents build: its files, its commits, and how an earlier state comes back.

Git is kept beside the checkpoints, not instead of them: a checkpoint holds all contents, so even a
repository that lost its objects in a power cut is made anew from it.
"""

from __future__ import annotations

import os

from longboat.batch.store import make_directory, remove_tree
from longboat.errors import GitFailed
from longboat.planting import planted
from longboat.session.checkpoints import file_bytes, file_entry
from longboat.session.values import Json
from longboat.workers.gitops import Git
from longboat.workers.store import replace_file, sync_directory

_PATIENCE = 60.0
"""Git's time limits are real ones; a session's clock may run so many times as fast."""
_SKIPPED = (".git", "__pycache__")
_EXCLUDED = "__pycache__/\n*.tmp\n"


class Repository:
    """The worktree of one session."""

    def __init__(self, path: str, kept_lock: int | None = None) -> None:
        self.path = path
        self._git = Git(path, kept_lock, patience=_PATIENCE)

    def create(self) -> str:
        """A repository with one empty commit; its name."""
        make_directory(self.path)
        self._git.change("init", "-q", "--initial-branch=main", "--template=")
        os.makedirs(os.path.join(self.path, ".git", "info"), exist_ok=True)
        replace_file(os.path.join(self.path, ".git", "info", "exclude"), _EXCLUDED.encode())
        return self._commit("The session begins", "--allow-empty")

    def _commit(self, message: str, *more: str) -> str:
        self._git.change("add", "-A")
        self._git.change("commit", "-q", "--no-verify", *more, "-m", message)
        return self._git.head(self.path)

    def commit(self, message: str) -> str:
        """Everything that lies there, as a commit; the present one when nothing has changed."""
        if not self._git.is_dirty(self.path):
            return self._git.head(self.path)
        return self._commit(message)

    def commit_paths(self, message: str, paths: list[str]) -> str:
        """These files alone: others may be in the middle of something."""
        self._git.change("add", "--", *paths)
        if self._git.read("diff", "--cached", "--quiet", "--", *paths).code != 0:
            self._git.change("commit", "-q", "--no-verify", "-m", message, "--", *paths)
        return self._git.head(self.path)

    def is_clean(self) -> bool:
        """Is everything committed?"""
        return not self._git.is_dirty(self.path)

    def paths(self, *, unfinished: bool = False) -> list[str]:
        """All files of the project, by their names below it; also those being written just now."""
        found = []
        for directory, folders, names in os.walk(self.path):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED)
            for name in names:
                path = os.path.join(directory, name)
                if (unfinished or not name.endswith(".tmp")) and os.path.isfile(path):
                    found.append(os.path.relpath(path, self.path))
        return sorted(found)

    def snapshot(self) -> Json:
        """All files with their contents."""
        found = {}
        for name in self.paths():
            with open(os.path.join(self.path, name), "rb") as file:
                found[name] = file_entry(file.read())
        return found

    # --- going back -----------------------------------------------------------------------------------

    def put_back(self, files: Json, commit: str) -> str:
        """Exactly these files, and git at this commit; a new commit when git has lost it."""
        wanted = {name: file_bytes(entry) for name, entry in files.items()}
        message = f"Restored: commit {commit[:12]} was lost"
        if self._reset(commit):
            try:
                self._write(wanted)
                return self.commit(message)
            except GitFailed:
                pass  # it has the commit and not all of its objects: the repository is made anew
        self._renew()
        self._write(wanted)
        return self.commit(message)

    def _reset(self, commit: str) -> bool:
        """Does git have the commit, and can it go there?"""
        try:
            self._clear_locks()
            self._git.change("checkout", "-q", "-f", "-B", "main", commit)
            return self._git.head(self.path) == commit
        except GitFailed:
            return False

    def _clear_locks(self) -> None:
        """What our own killed git left; nobody else works here, and the supervisor's lock is ours."""
        admin = os.path.join(self.path, ".git")
        for directory, _, names in os.walk(admin):
            for name in names:
                if name.endswith(".lock"):
                    os.unlink(os.path.join(directory, name))

    def _renew(self) -> None:
        """A new repository in place of one that cannot be used; the old one stays beside it."""
        admin = os.path.join(self.path, ".git")
        if os.path.lexists(admin):
            aside = f"{self.path}.lost-git"
            remove_tree(aside)
            os.rename(admin, aside)
        self.create()

    def _write(self, wanted: dict[str, bytes]) -> None:
        """These files and no others, also none that a killed writer left half."""
        if not planted("session-restore-keeps-new-files"):
            for name in set(self.paths(unfinished=True)) - set(wanted):
                os.unlink(os.path.join(self.path, name))
        for name, data in wanted.items():
            path = os.path.join(self.path, name)
            try:
                with open(path, "rb") as file:
                    if file.read() == data:
                        continue
            except OSError:
                make_parents(self.path, name)
            replace_file(path, data)


def make_parents(root: str, name: str) -> None:
    """The directories above a file of the project, each on the disk."""
    parts = name.split("/")[:-1]
    for count in range(1, len(parts) + 1):
        path = os.path.join(root, *parts[:count])
        if os.path.lexists(path) and not os.path.isdir(path):
            os.unlink(path)
        make_directory(path)
    sync_directory(root)
