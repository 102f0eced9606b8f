"""One holder of the lock at work: lock, load, finish what was left half-done, work, save, unlock.

Commands and the daemon both change things only inside of :func:`opened`, so there is one writer at
a time and nobody ever sees, or builds on, somebody else's half-done change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from longboat.planting import planted
from longboat.workers import store
from longboat.workers.config import Config
from longboat.workers.store import Book, Home, HomeLock
from longboat.workers.transaction import Transaction


@contextmanager
def opened(
    home: Home, config: Config, purpose: str, *, recover: bool = True
) -> Iterator[Transaction]:
    """Hold the lock; the state is saved at the end unless the work raised."""
    early = store.read_state(home) if planted("stale-when-free") else None
    lock = HomeLock(home, config.lock_timeout_secs, purpose)
    if planted("lock-not-taken"):
        lock.share()
    try:
        loaded = early if early is not None and lock.was_free else store.read_state(home)
        book = Book(home, lock, loaded)
        if planted("lock-dropped"):
            lock.share()
        transaction = Transaction(home, config, book, lock)
        _notice_dead_daemon(transaction)
        if recover and book.state.intents:
            from longboat.workers import recovery

            recovery.recover(transaction)
        yield transaction
        book.save()
    finally:
        lock.release()


def _notice_dead_daemon(transaction: Transaction) -> None:
    """The kernel's lock says whether a daemon lives; the state only repeats it."""
    state = transaction.book.state
    if state.daemon_running and not store.daemon_is_alive(transaction.home):
        transaction.book.state = state._replace(daemon=None, daemon_running=False)
        transaction.log("the daemon is gone without having said goodbye")
