"""What probes see of processes, git and agents, as values that every contract can use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessView:
    """A process of the box; pid and start time together are its identity."""

    pid: int
    start: int
    parent: int
    argv: tuple[str, ...]
    state: str = "S"
    descriptors: int | None = None
    """How many it has open; None when that is not known."""

    @property
    def identity(self) -> tuple[int, int]:
        return (self.pid, self.start)


@dataclass(frozen=True, slots=True)
class WorktreeView:
    """What git says about a worktree."""

    exists: bool
    branch: str | None = None
    """Checked-out branch; None when HEAD is detached, as in a rebase."""
    head: str | None = None
    rebasing: bool = False
    dirty: tuple[str, ...] | None = None
    """Paths with uncommitted changes; None when it was not asked or git failed."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that some ref reaches."""

    sha: str
    tokens: tuple[str, ...]
    on_default: bool
    in_files: tuple[str, ...] = ()
    """Tokens in the lines that it adds, as far as they were asked for."""
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """An agent received a prompt: one line of the double's record."""

    token: str | None
    tokens: tuple[str, ...]
    worker: str
    agent: tuple[int, int]
    kind: str
    earlier_alive: bool
    """An agent that had received the same token before was still alive at this moment."""
    same_agent: bool
    finished: bool = False
    """The turn has ended in the record."""
    committed: bool = False
    """The agent wrote down a commit for it."""
    wrote: bool = False
    """The agent has written files for it that were not committed at that moment."""
    text: str | None = None
    """What it received, to the last character; None: it was too long to be written down whole."""
    shape: tuple[str, ...] = ()
    """`MODE SIZE PATH` of each file that it has made or changed in more than its text."""
    removed: tuple[str, ...] = ()
    """The files that it has removed."""


@dataclass(frozen=True, slots=True)
class AgentView:
    """An agent process that announced itself in the double's record."""

    worker: str
    identity: tuple[int, int]
    alive: bool
    busy: bool
    """It has received a prompt whose turn has not ended."""
    left: bool = False
    """It wrote down its own exit."""
    cut_off: bool = False
    """It was ended in the middle of a turn, and could still write that down."""
    left_running: tuple[tuple[int, int], ...] = ()
    """What it has started in sessions of their own, and what lives."""
    argv: tuple[str, ...] = ()
    """The words that it was started with."""
