"""The errors that longboat shows to people.

Every failure that a person can meet is one of these, so that the command line can print one clear
line and choose the exit code in one place.

    LongboatError          something could not be done: exit 1
      Rejection            the request is not allowed now; nothing was changed: exit 1
      UsageError           the command line itself is wrong: exit 2
      StateUnreadable      neither state file can be read: exit 1, `doctor --repair` rebuilds
      GitFailed            a git command failed in a way that was not expected
"""

from __future__ import annotations


class LongboatError(Exception):
    """A failure with a text for people: what, where, what to do."""

    exit_code = 1


class Rejection(LongboatError):
    """A correct request at the wrong time; nothing was changed."""


class UsageError(LongboatError):
    """The command line makes no sense."""

    exit_code = 2


class StateUnreadable(LongboatError):
    """Both state files are unreadable; an empty state must never be invented."""


class GitFailed(LongboatError):
    """git said no; the text carries its command and its last words."""


def no_such_worker(name: str) -> Rejection:
    """The rejection for a worker that does not exist."""
    return Rejection(f"Worker '{name}' does not exist")


def wrong_status(verb: str, status: str) -> Rejection:
    """The rejection for a verb that the worker's status does not allow."""
    return Rejection(f"Cannot {verb} while worker is in {status} state")


def not_in_review(name: str, status: str) -> Rejection:
    """The rejection for review, accept and reject outside of needs_review."""
    return Rejection(f"Worker '{name}' is not in needs_review state (status: {status})")
