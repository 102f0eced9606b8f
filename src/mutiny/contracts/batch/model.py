"""What should be the case: the plan, the settings, and the run with what each of its tasks may be now.

A status is a set of words, because several ends may be right; the next look narrows it. What is merged is
never believed from the target: git tells it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from mutiny.contracts.batch.knobs import Knobs
from mutiny.contracts.batch.observation import DONE, UNFINISHED, BatchSeen
from mutiny.contracts.batch.tasks import Task
from mutiny.kit.beliefs import ModelBase

May = frozenset[str]
"""Statuses that are right."""
PENDING = frozenset({"pending"})
UNDER_WAY = frozenset({"pending", "running", "validated"})


@dataclass(frozen=True)
class RunModel:
    """One run."""

    name: str
    """As it was asked for; empty: the target has chosen."""
    tasks: Mapping[str, Task]
    status: May
    may: Mapping[str, May]
    """Task -> what it may be now."""
    before: Mapping[str, int] = field(default_factory=dict)
    """Task -> how often its work had come to the branch before this run."""
    began: int = 0
    """So many agents had been started before this run."""
    again: bool = False
    """Others came after it, and were cleaned: what has landed since is not its own."""

    def narrowed(self, seen: BatchSeen) -> RunModel:
        """With what is seen, where that is right."""
        shown = seen.run
        if shown is None:
            return self
        may = {
            name: frozenset({shown.tasks[name].status})
            if name in shown.tasks and shown.tasks[name].status in words
            else words
            for name, words in self.may.items()
        }
        status = frozenset({shown.status}) if shown.status in self.status else self.status
        return replace(self, may=may, status=status, name=self.name or shown.name)

    def sure(self, task: str, *words: str) -> bool:
        """Can it only be one of these?"""
        return self.may[task] <= set(words)

    @property
    def finished(self) -> bool:
        """Is it surely at its end?"""
        return not self.status & {"running", "paused"}


@dataclass(frozen=True, kw_only=True)
class BatchModel(ModelBase):
    """What is the case with one home."""

    home: bool = False
    plan: tuple[Task, ...] = ()
    knobs: Knobs = field(default_factory=Knobs)
    gates: Mapping[str, str] = field(default_factory=dict)
    """What each gate says; it passes unless told otherwise."""
    run: RunModel | None = None
    older: tuple[RunModel, ...] = ()
    """Runs before it that nobody has cleaned."""
    edited: bool = False
    """The user has an edit in the checkout that nobody committed."""
    same_plan: bool = False
    """The last plan was the one before it."""
    cost_per_1k: float = 0.002
    landed: Mapping[str, int] = field(default_factory=dict)
    """Task -> how often its work had come to the branch when it was last looked at."""
    started: int = 0
    """So many agents had been started when it was last looked at."""
    newest: str | None = None
    """The newest run when the step began: what a command without a name is given; None: as it is now."""
    unheard: frozenset[int] = frozenset()
    """Attempts that may have told nobody what they used: the command was broken off."""
    run_resumes: bool = False
    """`run` goes on with a run that there is."""
    tidy: bool = False
    """What is merged, and what is cleaned, leaves nothing behind."""
    done_once: bool = False
    """What went well is not done again because of others."""
    forgets_errors: bool = False
    """What is complete does not tell what once went wrong."""
    set_anew: frozenset[str] = frozenset()
    """Tasks of the run that the user has set back or left out: nobody waits for what they were at."""
    engine_out: bool = False
    """The container engine is away."""
    lost: frozenset[str] = frozenset()
    """Tasks whose agent was killed, so that an attempt more has failed."""

    @property
    def contained(self) -> bool:
        """Do agents work in containers?"""
        return self.knobs.workers == "container"

    def gate(self, name: str) -> str:
        """What a gate says."""
        return self.gates.get(name, "pass")

    def see(self, seen: BatchSeen) -> Self:
        """Narrowed by what is seen."""
        looked = replace(self, started=len(seen.attempts))
        if seen.git is not None:
            looked = replace(looked, landed=dict(seen.git.landed))
        return looked if self.run is None else replace(looked, run=self.run.narrowed(seen))

    def agrees(self, seen: BatchSeen) -> bool:
        """Does it know the same run?"""
        return (self.run is None) == (seen.run is None)

    def begun(self, name: str, seen: BatchSeen | None) -> BatchModel:
        """With a new run of the plan."""
        landed = {task.id: self._landed(task.id, seen) for task in self.plan}
        run = RunModel(
            name,
            {task.id: task for task in self.plan},
            frozenset({"running"}),
            {task.id: PENDING for task in self.plan},
            landed,
            self.started if seen is None else len(seen.attempts),
        )
        older = self.older if self.run is None else (*self.older, self.run)
        return replace(self, run=run, older=older, set_anew=frozenset())

    def _landed(self, task: str, seen: BatchSeen | None) -> int:
        """How often a task came to the branch before; another command may have run since the last look."""
        if seen is not None:
            return seen.landed(task)
        if self.run is None or task not in self.run.tasks:
            return self.landed.get(task, 0)
        return self.run.before.get(task, 0) + ("complete" in self.run.may[task])

    def ended(self, may: Mapping[str, May], status: May) -> BatchModel:
        """The run has come to an end."""
        assert self.run is not None
        return replace(self, run=replace(self.run, may=may, status=status), lost=frozenset())

    def broken_off(self, may: Mapping[str, May], ends: May) -> BatchModel:
        """The run was broken off: anything on the way to its end is right."""
        assert self.run is not None
        loose = {
            name: words if self.run.sure(name, *DONE) else words | self.run.may[name] | UNDER_WAY
            for name, words in may.items()
        }
        return replace(self, run=replace(self.run, may=loose, status=frozenset(UNFINISHED) | ends))
