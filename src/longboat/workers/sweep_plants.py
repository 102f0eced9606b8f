"""What only a sweep over system calls finds reliably in the workers part.

Plain rows for `longboat.plants`: name, what it does, kind, where it was seen, and the sweep that
finds it (its kind, scenario and operation).
"""

from __future__ import annotations

_KNOWN = "a known class of failure"
_CRASH = "crash consistency"
_RARE = "a window of microseconds that random kills miss"

ROWS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "state-in-place",
        "State is overwritten in place and the backup is never refreshed, so one corrupt file "
        "loses the workers. Shortest: Init Add CorruptState AssertWorkerExists",
        "state corruption",
        f"{_KNOWN}; gascity#1933, claude-code#29143",
        "crash basic_lifecycle Start",
    ),
    (
        "lock-not-taken",
        "Commands read, change and write the state without the lock, so the last writer wins.",
        "race conditions",
        f"{_KNOWN}; Agent-Bridge#16, crewAI#6125",
        "preempt racing_adds Parallel",
    ),
    (
        "no-sync-before-rename",
        "State files are renamed into place before their data is on the disk: after a power cut both "
        "copies are empty.",
        _CRASH,
        _RARE,
        "fsync basic_lifecycle Start",
    ),
    (
        "rename-not-synced",
        "The directory is not synced after the rename, and there is no second copy: a power cut takes "
        "back what was acknowledged.",
        _CRASH,
        _RARE,
        "fsync basic_lifecycle Start",
    ),
    (
        "unlink-before-rename",
        "The old state is removed before the new one is there, and the backup is from the first day.",
        _CRASH,
        _RARE,
        "crash basic_lifecycle Start",
    ),
    (
        "lock-file-by-hand",
        "Writing is guarded by a file that stands for a lock; a crash leaves it behind for ever.",
        _CRASH,
        "gastown and others: stale lock files after a crash",
        "crash basic_lifecycle Start",
    ),
    (
        "git-lock-left",
        "Locks that a killed git left behind are never removed.",
        _CRASH,
        _KNOWN,
        "crash basic_lifecycle Accept",
    ),
    (
        "merged-before-landed",
        "accept writes `merged` into the state before the branch moves, two places without an order.",
        _CRASH,
        _KNOWN,
        "crash basic_lifecycle Accept",
    ),
    (
        "archived-after-removal",
        "nuke removes the branch before the work is archived.",
        _CRASH,
        _KNOWN,
        "crash nuke_finished_work Nuke",
    ),
    (
        "lock-dropped",
        "The lock is let go between reading and writing the state: the last writer wins.",
        "race conditions",
        "Agent-Bridge#16, crewAI#6125",
        "preempt racing_adds Parallel",
    ),
    (
        "short-write-ignored",
        "The count that write() returns is not looked at: half a file is renamed into place.",
        _CRASH,
        _RARE,
        "torn basic_lifecycle Start",
    ),
    (
        "full-disk-acknowledged",
        "An error while the state is written is swallowed, and the command says that it is done.",
        _CRASH,
        "gascity#2158",
        "errno basic_lifecycle Start",
    ),
    (
        "intents-not-synced",
        "What is about to be done is written down without a sync, because it is only for a moment: a "
        "power cut keeps the deed and loses the note.",
        _CRASH,
        _RARE,
        "fsync basic_lifecycle Accept",
    ),
    (
        "worktree-head-not-synced",
        "git does not sync where a worktree stands, and accept does not do it either: after a power cut "
        "the interrupted accept cannot be finished.",
        _CRASH,
        "an earlier longboat, found by its fsync sweep",
        "fsync basic_lifecycle Accept",
    ),
    (
        "checkout-not-synced",
        "git does not sync the files that it writes, and accept does not do it either: after a power cut "
        "the user's checkout has an empty file where accepted work should be.",
        _CRASH,
        "an earlier longboat, found by its fsync sweep",
        "fsync basic_lifecycle Accept",
    ),
    (
        "temporary-blocks",
        "The file next to the state into which it is written first has one fixed name and must be new: "
        "the one of a killed writer stops everybody for ever.",
        _CRASH,
        "gastown and others: stale lock files after a crash",
        "crash basic_lifecycle Start",
    ),
    (
        "git-not-synced",
        "git runs with its defaults, which do not sync references: after a power cut a branch that was "
        "moved is an empty file.",
        _CRASH,
        _RARE,
        "fsync basic_lifecycle Accept",
    ),
    (
        "archive-error-swallowed",
        "nuke goes on when the work cannot be archived, and removes its only copy.",
        _CRASH,
        "gascity#2158",
        "errno nuke_finished_work Nuke",
    ),
    (
        "stale-when-free",
        "The state is read before the lock is taken, and once more only when somebody had the lock: "
        "whoever came and went in between is overwritten.",
        "race conditions",
        _RARE,
        "preempt racing_adds Parallel",
    ),
)
