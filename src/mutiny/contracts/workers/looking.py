"""What the rules about state share: what they may look at, their book, and facts that may be missing.

A rule whose facts could not be read raises `Unreadable`; the engine turns that into an inconclusive step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.observation import Observation, WorkerView
from mutiny.kit import checking, faults
from mutiny.kit import operations as common
from mutiny.kit.checking import RuleBook, Unreadable
from mutiny.kit.views import AgentView, WorktreeView
from mutiny.model.operation import Operation, walk


@dataclass(frozen=True)
class Check(checking.Check[WorkersModel, Observation]):
    """Everything that a rule may look at."""

    touched: frozenset[str] = field(default_factory=frozenset)
    """Workers whose agents a command or fault may have ended since `before`."""
    all_touched: bool = False
    daemon_touched: bool = False

    def settled_workers(self) -> Iterator[WorkerView]:
        """Workers that no recent fault or start excuses."""
        for name, view in self.seen.workers.items():
            belief = self.model.workers.get(name)
            if belief is not None and belief.disturbed is None:
                yield view


BOOK: RuleBook[Check] = RuleBook("workers")
"""Who has to keep each of them is said in `applicability.py`; while nobody could, it is not asked."""
AGENTLESS = ("offline", "error")


def is_on(model: WorkersModel, kind: type[common.LibraryFault]) -> bool:
    """Is a lasting fault of this kind on?"""
    return any(isinstance(fault, kind) for fault in model.lasting)


def worktree_of(seen: Observation, worker: str) -> WorktreeView:
    """What is known of a worker's worktree."""
    if worker not in seen.worktrees:
        raise Unreadable(f"the worktree of worker {worker!r}")
    return seen.worktrees[worker]


def sessions_of(seen: Observation) -> frozenset[str]:
    """The sessions of the target."""
    if seen.sessions is None:
        raise Unreadable("the list of tmux sessions")
    return seen.sessions


def agents_of(seen: Observation) -> tuple[AgentView, ...]:
    """All agents that announced themselves."""
    if seen.agents is None:
        raise Unreadable("the list of agents")
    return seen.agents


ENDS_ALL_AGENTS = (op.Down, op.KillTmuxServer, common.Reset, op.Init)
ENDS_ONE_AGENT = (op.Nuke, op.ResetWorker, op.KillAgent, op.KillTmuxSession, op.Add)


def touched_workers(
    operation: Operation, *, up_restarts: bool
) -> tuple[frozenset[str], bool, bool]:
    """Workers whose agents an operation may end, whether that is all of them, and whether the
    daemon is meant.
    """
    names: set[str] = set()
    everyone = daemon = False
    for part in walk(operation):
        everyone |= isinstance(part, ENDS_ALL_AGENTS) or (up_restarts and isinstance(part, op.Up))
        daemon |= isinstance(part, op.Down | op.KillDaemon | common.Reset)
        if isinstance(part, common.SweepPoint | common.KillDuring):
            everyone |= part.ends_world
            daemon |= part.ends_world or isinstance(part.operation, op.Up)
        daemon |= isinstance(part, faults.LowerLimit) and part.may_kill
        name = common.worker_of(part)
        if name and isinstance(part, ENDS_ONE_AGENT):
            names.add(name)
    return frozenset(names), everyone, daemon
