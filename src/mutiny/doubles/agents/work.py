"""Doing the work in git: write files, commit, crash in a commit, resolve a rebase.

Only what was asked for is staged; anything else that lies in the tree is left for the
orchestrator to notice.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time

from mutiny.doubles.agents import processes, prompts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mutiny.doubles.agents.records import Log
    from mutiny.doubles.agents.terminal import Terminal

GIT_TIMEOUT_S = 60.0
LOCK_RETRY_S = 2.0
"""How long to try again when another git command holds a lock; a stale lock outlasts this."""

LOCK_RETRY_PAUSE_S = 0.05
REBASE_ROUNDS = 50
ELSEWHERE = "an-idea-of-the-agent"
"""Commits of one rebase that may conflict before the double gives the rebase up as endless."""


class WorkFailed(Exception):
    """The work could not be done; the text says which command failed and how."""


class Work:
    """The work of one turn in one working directory."""

    def __init__(self, cwd: str, prompt: str, terminal: Terminal, log: Log) -> None:
        self.tokens = prompts.find_tokens(prompt)
        self._cwd = cwd
        self._prompt = prompt
        self._terminal = terminal
        self._log = log
        self._git_dir = find_git_dir(cwd)
        self._long_git = 0
        self.written: list[str] = []
        """What this turn has written, changed or not."""

    @property
    def in_repository(self) -> bool:
        """Whether the working directory belongs to a git repository."""
        return self._git_dir is not None

    def rebase_in_progress(self) -> bool:
        """Whether git waits in this directory for a rebase to go on."""
        return self._git_dir is not None and any(
            os.path.isdir(os.path.join(self._git_dir, name))
            for name in ("rebase-merge", "rebase-apply")
        )

    def write_files(self, *, stray: bool = False, reshaped: bool = False) -> list[str]:
        """Write what the prompt asks for, and more, and return the paths, changed or not."""
        label = self._label
        requests = prompts.requested_files(self._prompt)
        if not requests:
            requests = [(f"notes/{label}.md", self._prompt)]
        if stray:
            requests.append((f"stray/{label}.txt", "nobody asked for this file"))
        for path, content in requests:
            self._write_file(os.path.join(self._cwd, path), content)
        self.written = [path for path, _ in requests]
        if reshaped:
            self.written += self._reshape()
        return self.written

    def _reshape(self) -> list[str]:
        """Change the tree in every shape, and write down what it must look like where the work lands."""
        from mutiny.doubles.agents import shapes

        removed, shape = shapes.reshape(self._cwd, self._label)
        lines = [f"{told} {path}" for path, told in shape.items()]
        self._log.write("shaped", tokens=self.tokens, shape=lines, removed=removed)
        return [*removed, *shape]

    @property
    def _label(self) -> str:
        """What tells this work from any other: its token, or else a digest of what was asked."""
        digest = hashlib.sha256(self._prompt.encode("utf-8", "replace")).hexdigest()[:12]
        return self.tokens[0] if self.tokens else digest

    def _write_file(self, path: str, content: str | None) -> None:
        existing = None
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
                existing = file.read()
        body = prompts.file_body(existing, content, self.tokens)
        if body != existing:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
                file.write(body)

    def commit(self, paths: list[str], author: str = "") -> str | None:
        """Commit the paths, under a name; return the new commit, or None when there is nothing new."""
        if self._git_dir is None:
            return None
        self._git("add", "--", *paths)
        message = prompts.commit_message(self._prompt, self.tokens)
        signed = (f"--author={author} <{author}@agents.invalid>",) if author else ()
        finished = self._git("commit", "--quiet", *signed, "-m", message, accept=(0, 1))
        if finished.exit_code == 1:
            if "nothing to commit" in finished.output or "nothing added" in finished.output:
                return None
            raise WorkFailed(f"git commit: {finished.output.strip()[-500:]}")
        sha = self._git("rev-parse", "HEAD").output.strip()
        self._log.write("commit", sha=sha, tokens=self.tokens)
        return sha

    def die(self) -> None:
        """Die by SIGKILL with whatever lies in the tree; never returns."""
        os.kill(os.getpid(), signal.SIGKILL)

    def die_after_commit(self, paths: list[str], how: str) -> None:
        """Commit where nobody looks for it, or leave git's lock; then die; never returns."""
        if how == "die-elsewhere":
            self._git("checkout", "--quiet", "-B", ELSEWHERE)
        if how == "die-detached":
            self._git("checkout", "--quiet", "--detach")
        self.commit(paths)
        if how == "die-locked" and self._git_dir is not None:
            with open(os.path.join(self._git_dir, "index.lock"), "xb"):
                pass
        self.die()

    def begin_long_git(self, milliseconds: int) -> None:
        """Let a git command work here for so long that holds the index, and in the end changes nothing."""
        if self._git_dir is None or not milliseconds:
            return
        # As in `crash_in_commit`; this "editor" takes its time, and then does not want the commit.
        editor = f"sleep {milliseconds / 1000:.3f}; false #"
        commit = ["git", "commit", "--all", "--edit", "--allow-empty", "-m", "not yet"]
        self._long_git = processes.spawn(commit, {**os.environ, "GIT_EDITOR": editor})
        lock, deadline_s = (
            os.path.join(self._git_dir, "index.lock"),
            time.monotonic() + LOCK_RETRY_S,
        )
        while not os.path.exists(lock) and time.monotonic() < deadline_s:
            time.sleep(LOCK_RETRY_PAUSE_S)

    def end_long_git(self) -> None:
        """Wait for that command."""
        while self._long_git and not os.waitpid(self._long_git, os.WNOHANG)[0]:
            self._terminal.wait(LOCK_RETRY_PAUSE_S)

    def crash_in_commit(self, paths: list[str]) -> None:
        """Die by SIGKILL while git holds the index lock; never returns."""
        message = prompts.commit_message(self._prompt, self.tokens)
        # With --all git keeps index.lock while the editor runs, and this "editor" is a shell that
        # kills its parent, git. Then the agent dies too, so nobody is left to clean up.
        commit = ("commit", "--all", "--edit", "--allow-empty", "-m", message)
        try:
            if self._git_dir is not None:
                self._git("add", "--", *paths)
                self._git(*commit, editor="kill -KILL $PPID #", accept=(-signal.SIGKILL,))
        except WorkFailed as error:
            self._log.problem(f"crash-in-commit: died without reaching the commit: {error}")
        os.kill(os.getpid(), signal.SIGKILL)

    def resolve_rebase(self) -> None:
        """Resolve every conflict of the rebase by keeping both sides, until it is done."""
        assert self._git_dir is not None, "a rebase in progress was seen"
        onto = self._rebase_target()
        finished = None
        for _ in range(REBASE_ROUNDS):
            if not self.rebase_in_progress():
                self._record_rewritten(onto)
                return
            for path in self._conflicted_files():
                self._resolve_file(os.path.join(self._cwd, path))
            self._git("add", "--all")
            finished = self._git(
                "-c", "core.editor=true", "rebase", "--continue", accept=(0, 1, 128)
            )
            if finished.exit_code != 0 and not self._conflicted_files():
                break
        if self.rebase_in_progress():
            output = finished.output.strip()[-500:] if finished else ""
            raise WorkFailed(f"git rebase --continue: {output}")
        self._record_rewritten(onto)

    def _conflicted_files(self) -> list[str]:
        output = self._git("diff", "--name-only", "--diff-filter=U", "-z").output
        return [name for name in output.split("\0") if name]

    def _resolve_file(self, path: str) -> None:
        try:
            with open(path, "rb") as file:
                text = file.read()
        except FileNotFoundError:
            return  # Deleted on both sides; adding records exactly that.
        with open(path, "wb") as file:
            file.write(prompts.keep_both_sides(text))

    def _rebase_target(self) -> str:
        assert self._git_dir is not None
        for name in ("rebase-merge", "rebase-apply"):
            try:
                with open(os.path.join(self._git_dir, name, "onto"), encoding="ascii") as file:
                    return file.read().strip()
            except FileNotFoundError:
                continue
        return ""

    def _record_rewritten(self, onto: str) -> None:
        """Record the commits that the rebase made, with the tokens that they carry."""
        span = f"{onto}..HEAD" if onto else "-1"
        log = self._git("log", "--reverse", "--format=%H%n%B%x00", span).output
        for entry in log.split("\0"):
            sha, _, message = entry.strip().partition("\n")
            if sha:
                tokens = prompts.find_tokens(message)
                self._log.write("commit", sha=sha, tokens=tokens, rewritten=True)

    def _git(
        self, *arguments: str, editor: str = "true", accept: tuple[int, ...] = (0,)
    ) -> processes.Finished:
        """Run git; try again for a while when another git command holds a lock."""
        environment = {**os.environ, "GIT_EDITOR": editor, "LC_ALL": "C.UTF-8", "LANGUAGE": "C"}
        deadline_s = time.monotonic() + LOCK_RETRY_S
        while True:
            finished = processes.run(
                ("git", *arguments),
                self._terminal,
                environment=environment,
                timeout_s=GIT_TIMEOUT_S,
            )
            locked = finished.exit_code != 0 and ".lock': File exists" in finished.output
            if not locked or time.monotonic() >= deadline_s:
                break
            self._terminal.wait(LOCK_RETRY_PAUSE_S)
        if locked or finished.exit_code not in accept:
            command = next(word for word in arguments if not word.startswith(("-", "core.")))
            end = "no time left" if finished.timed_out else f"exit code {finished.exit_code}"
            raise WorkFailed(f"git {command}: {end}: {finished.output.strip()[-500:]}")
        return finished


def find_git_dir(cwd: str) -> str | None:
    """Return the git directory that belongs to a working directory, without asking git."""
    folder = cwd if os.path.isdir(cwd) else "/"  # A deleted worktree is in no repository.
    while True:
        entry = os.path.join(folder, ".git")
        if os.path.isdir(entry):
            return entry
        if os.path.isfile(entry):  # A linked worktree: the file says where its directory is.
            with open(entry, encoding="utf-8", errors="surrogateescape") as file:
                target = file.read().partition("gitdir:")[2].strip()
            return os.path.join(folder, target)
        if folder == os.path.dirname(folder):
            return None
        folder = os.path.dirname(folder)
