"""What a holder of the lock works with: the state, git and the log."""

from __future__ import annotations

from longboat.errors import LongboatError, no_such_worker
from longboat.planting import planted
from longboat.workers import store
from longboat.workers.config import Config
from longboat.workers.gitops import Git
from longboat.workers.state import Intent, Worker
from longboat.workers.store import Book, Home, HomeLock


class Transaction:
    """The state, git and the log, while the lock is held."""

    def __init__(self, home: Home, config: Config, book: Book, lock: HomeLock) -> None:
        self.home = home
        self.config = config
        self.book = book
        self.git = Git(config.source, lock.descriptor)

    @property
    def trunk(self) -> str:
        """The full name of the default branch."""
        return f"refs/heads/{self.config.default_branch}"

    def trunk_commit(self) -> str:
        """The commit that accepted work lands on."""
        commit = self.git.ref(self.trunk)
        if commit is None:
            raise LongboatError(f"{self.config.source} has no branch {self.config.default_branch}")
        return commit

    def worker(self, name: str) -> Worker:
        """A worker that must exist, and must not be half-changed."""
        found = self.book.state.workers.get(name)
        if found is None:
            raise no_such_worker(name)
        if name in self.book.state.intents:
            kind = self.book.state.intents[name].kind
            raise LongboatError(
                f"An interrupted {kind} of worker '{name}' could not be finished; "
                f"see {self.home.log}"
            )
        return found

    def put(self, worker: Worker) -> Worker:
        """Change a worker in the state (not saved yet)."""
        self.book.state = self.book.state.with_worker(worker)
        return self.book.state.workers[worker.name]

    def begin(self, intent: Intent) -> None:
        """Write down a change before it is made; from here on it is finished or taken back."""
        self.book.state = self.book.state.with_intent(intent)
        self.book.save(sync=not planted("intents-not-synced"))

    def end(self, name: str) -> None:
        """The change is complete (not saved yet); a git that stumbled leaves no lock behind."""
        self.git.clear_reference_locks()
        worktree = self.home.worktree(name)
        if self.git.admin_directory(worktree) is not None:
            self.git.clear_worktree_locks(worktree, f"longboat/{name}")
        self.book.state = self.book.state.without_intent(name)

    def save(self) -> None:
        """Make the state durable now."""
        self.book.save()

    def log(self, text: str) -> None:
        """One line in the log."""
        store.write_log(self.home, text)
