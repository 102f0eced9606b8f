"""What should be the case: which sessions there are, what the newest may be now, and what was set.

A session goes on by itself, so a status is a set of words; the next look narrows it. What is done, and
whether a checkpoint is valid, is never believed: the files tell it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from mutiny.contracts.session.knobs import Knobs
from mutiny.contracts.session.observation import ENDED, SessionSeen
from mutiny.kit.beliefs import ModelBase

May = frozenset[str]
ENDS_NOBODY = (
    *("ModelError", "ToolTimeout", "BadWork", "OddBytes", "Trespass", "AgentDeadlock"),
    *("CorruptCheckpoint", "TouchCheckpoints", "HalfDone"),
)
"""Faults that end no process."""
NONE = frozenset({"none"})
RUNNING = frozenset({"running"})
_DRIFT = {"running": frozenset({"running", "complete", "paused", "failed"})}


def drifts(status: May) -> May:
    """What a session may have become by itself since: whether it had a reason is asked by the rules."""
    return frozenset[str]().union(*(_DRIFT.get(one, frozenset({one})) for one in status))


@dataclass(frozen=True, kw_only=True)
class SessionModel(ModelBase):
    """What is the case with one home."""

    criteria: tuple[str, ...] = ()
    """Criteria of gates that the files of a checkpoint can contradict, of those that the target has."""
    has_fallback: bool = False
    """It has another model to ask."""
    keeps_progress: bool = False
    """After a crash only the rest of a task's time is due."""
    keeps_phase: bool = False
    """How long a phase has lasted is counted over a crash."""
    keeps_tests: bool = False
    """What the last run of the tests gave is in all that is kept after it."""
    uses_limits: bool = False
    """Nobody waits before all calls that the limit allows were made."""
    measured: tuple[str, ...] = ()
    """What every line of metrics has."""
    names: tuple[str | None, ...] = ()
    """The sessions, the newest last; None: the target chose its name."""
    status: May = NONE
    """Of the newest."""
    project: str = ""
    agents: int = 0
    knobs: Knobs = field(default_factory=Knobs)
    set_since: tuple[Knobs, ...] = ()
    """Every setting that was on since the newest session began."""
    killed: bool = False
    """Processes of the session were killed since it was last brought back."""
    met: frozenset[str] = frozenset()
    """The kinds of faults that it has met; what they have left is not forgotten when all has settled."""
    bereft: bool = False
    """A fault may have ended processes of agents; that is not forgotten."""
    jumped: bool = False
    """Its wall clock has jumped."""
    damaged: bool = False
    """Checkpoints were damaged from outside."""
    cramped: bool = False
    """There may have been too little room on its disk."""
    owed: tuple[str, ...] = ()
    """What the last checkpoint held of the conversation when the session was brought back."""
    owed_since: int = 0
    """So many requests had been made before."""
    going: bool = False
    """The last word that it was given, and that was served, was to go on."""
    ended_by_word: bool = False
    """It was ended by a command that was served: nothing that was done may be lost."""

    @property
    def now(self) -> May:
        """What it may be when the next command is given."""
        return drifts(self.status)

    @property
    def settings(self) -> tuple[Knobs, ...]:
        """All that may have been in force while the newest session ran."""
        return (*self.set_since, self.knobs)

    def most(self, name: str) -> float:
        """The largest value that a limit has had; 0 means that there is none."""
        values = [float(getattr(one, name)) for one in self.settings]
        return 0.0 if 0.0 in values else max(values)

    def least(self, name: str) -> float:
        """The smallest value that a limit has had; 0 means that there was none."""
        values = [float(getattr(one, name)) for one in self.settings]
        return min((value for value in values if value), default=0.0)

    def fault(self, text: str) -> Self:
        """A fault has happened."""
        kind = text.partition("(")[0]
        bereft = self.bereft or kind not in ENDS_NOBODY
        return replace(super().fault(text), met=self.met | {kind}, bereft=bereft)

    def begun(self, name: str, project: str, agents: int) -> SessionModel:
        """With a new session."""
        return replace(
            self,
            names=(*self.names, name or None),
            status=RUNNING,
            project=project,
            agents=agents,
            set_since=(),
            killed=False,
            jumped=False,
            damaged=False,
            cramped=bool(self.lasting),
            owed=(),
            going=False,
            ended_by_word=False,
        )

    def brought_back(self, before: SessionSeen | None) -> SessionModel:
        """It goes on, from the last valid checkpoint."""
        made = replace(self.with_status("running", "paused"), owed=(), ended_by_word=False)
        if before is None or before.session is None or before.session.last_valid is None:
            return made
        said = before.session.last_valid.messages
        return replace(made, owed=said, owed_since=len(before.asked))

    def configured(self, name: str, value: str) -> SessionModel:
        """With another setting; a session that runs has had both."""
        return replace(
            self, knobs=self.knobs.set(name, value), set_since=(*self.set_since, self.knobs)
        )

    def with_status(self, *words: str) -> SessionModel:
        """The newest session is one of these."""
        return replace(self, status=frozenset(words))

    def died(self) -> SessionModel:
        """Nothing of the session runs any more."""
        left = frozenset(one if one in (*ENDED, "none") else "interrupted" for one in self.now)
        return replace(self, status=left, killed=True)

    def see(self, seen: SessionSeen) -> Self:
        """Narrowed by what is seen, where that is right."""
        if seen.error is not None or seen.status not in self.now:
            return self
        if self.cramped and seen.status not in self.status:
            # What was answered last there may have been no room to write down.
            return replace(self, status=self.status | {seen.status})
        return replace(self, status=frozenset({seen.status}))

    def agrees(self, seen: SessionSeen) -> bool:
        """Does it know the same sessions?"""
        return len(self.names) == len(seen.names)

    def pending(self, seen: SessionSeen) -> tuple[str, ...]:
        """A session that runs has to come to its end by itself."""
        one = seen.session
        if one is None or one.status != "running":
            return ()
        return (f"session {one.name} is in phase {one.phase}, {len(one.done)} tasks are done",)
