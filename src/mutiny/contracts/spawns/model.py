"""What should be the case: who is there, what was said, what was stopped, and what was broken on purpose.

How the runs go is not foretold: agents work at their own pace. What they did they write down themselves,
and the rules hold the target's account against that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from mutiny.contracts.spawns.observation import LIVE, Message, Run, SpawnsSeen
from mutiny.contracts.spawns.profile import SETTINGS
from mutiny.kit import faults
from mutiny.kit.beliefs import ModelBase

HARMLESS = (faults.SlowFiles, faults.SkewClock, faults.StarveCpu, faults.HoldLock)
"""Faults that cost time, and kill nothing."""
SHORT_S = 60.0
"""A time limit of this length ends what would never end by itself while somebody waits for it."""
Said = tuple[str, str, str]
"""Channel, sender, text."""


@dataclass(frozen=True)
class Sent:
    """A message that was sent from outside."""

    channel: str
    sender: str
    text: str
    agent: str = ""
    """Sent to start this one agent, whatever it mentions."""
    id: int | None = None
    """As the target called it."""
    knew: frozenset[str] = frozenset()
    """The agents that there were then: who comes later is not meant."""

    @property
    def said(self) -> Said:
        """What tells it from others."""
        return (self.channel, self.sender, self.text)


@dataclass(frozen=True, kw_only=True)
class SpawnsModel(ModelBase):
    """What is the case with one home."""

    home: bool = False
    agents: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Name -> provider and model."""
    channels: frozenset[str] = frozenset()
    sent: tuple[Sent, ...] = ()
    """What was acknowledged, in that order."""
    unsure: tuple[Sent, ...] = ()
    """What was said without an answer: it is there or it is not."""
    settings: Mapping[str, float] = field(default_factory=lambda: dict(SETTINGS))
    retuned: bool = False
    """Settings were changed when there were runs: those may go by what was set before."""
    stopped: frozenset[int] = frozenset()
    """Runs whose stop was acknowledged."""
    meant: frozenset[tuple[str, str]] = frozenset()
    """Agents and channels whose stop nobody has acknowledged; empty words mean all."""
    died: bool = False
    """Something was killed, and nobody has cleaned up since."""
    hit: frozenset[int] = frozenset()
    """Runs of which something was killed on purpose: nothing is foretold of them."""
    missing: frozenset[str] = frozenset()
    """Providers that are not installed."""
    bent: bool = False
    """Somebody's clock was bent: times of day that were written down since then tell no order."""
    bookmarks: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Reader and channel -> the last message that the reader has got."""

    def outline(self) -> Hashable:
        """What tells most worlds apart."""
        return (self.home, frozenset(self.agents), self.channels)

    @property
    def acknowledged(self) -> str:
        """Something that has to be written down somewhere; empty when there is nothing."""
        said = [f"the message {one.text!r}" for one in self.sent]
        agents = [f"the agent {name}" for name in sorted(self.agents)]
        return next(iter((*said, *agents, *(f"the channel {one}" for one in self.channels))), "")

    @property
    def hindered(self) -> bool:
        """Is a fault on that may keep the target from writing anything down?"""
        return any(not isinstance(one, HARMLESS) for one in self.lasting)

    def setting(self, name: str) -> float:
        """What a setting is now."""
        return self.settings[name]

    @property
    def everything_sent(self) -> Iterator[Sent]:
        """What may be there."""
        yield from self.sent
        yield from self.unsure

    def struck(self, agent: str, *looks: SpawnsSeen | None) -> Self:
        """Something was killed that belongs to the runs of an agent which lived then; no name: to all."""
        lived = {
            run.id
            for seen in looks
            for run in (() if seen is None else seen.runs.values())
            if agent.lower() in ("", run.agent) and not (run.over and run.id in _over(looks[0]))
        }
        return replace(self, hit=self.hit | lived, died=True)

    def may_stop(self, run: Run) -> bool:
        """Has somebody wanted this run to stop?"""
        wanted = (
            agent in ("", run.agent) and channel in ("", run.channel)
            for agent, channel in self.meant
        )
        return run.id in self.stopped or any(wanted)

    def direct(self, message: Message) -> str:
        """The agent that a message was sent to alone; empty: it speaks for itself."""
        meant = (one.agent for one in self._may_be(message, self.everything_sent) if one.agent)
        return next(meant, "")

    def meant_agents(self, message: Message) -> frozenset[str]:
        """The agents that there were when somebody outside sent a message; none: it is not known."""
        same = [one.knew for one in self._may_be(message, self.sent)]
        return frozenset.intersection(*same) if same else frozenset()

    @staticmethod
    def _may_be(message: Message, sent: Iterable[Sent]) -> list[Sent]:
        """What was sent that may be this message: the one that the target called so, else what nobody
        answered and that says the same.
        """
        if message.spawn is not None:
            return []
        said = (message.channel, message.sender, message.text)
        sent = tuple(sent)
        answered = [one for one in sent if one.id == message.id]
        return answered or [one for one in sent if one.id is None and one.said == said]

    def see(self, seen: SpawnsSeen) -> Self:
        """What was sent without an answer and is there has been sent."""
        if not self.unsure or seen.error is not None:
            return self
        known = {one.id for one in self.sent}
        extra = Counter(
            (one.channel, one.sender, one.text)
            for one in seen.messages.values()
            if one.spawn is None and one.id not in known
        )
        extra.subtract(one.said for one in self.sent if one.id is None)
        sent, unsure = list(self.sent), []
        for one in self.unsure:
            if extra[one.said] > 0:
                extra[one.said] -= 1
                sent.append(one)
            else:
                unsure.append(one)
        return replace(self, sent=tuple(sent), unsure=tuple(unsure))

    def agrees(self, seen: SpawnsSeen) -> bool:
        """Does it know the same agents and channels?"""
        return self.channels == seen.channels and set(self.agents) == set(seen.agents)

    def endless(self, seen: SpawnsSeen, run: Run) -> bool:
        """Will a run that has begun never end by itself?"""
        now = seen.latest(run)
        return now is not None and now.endless and self.setting("timeout_s") > SHORT_S

    def pending(self, seen: SpawnsSeen) -> tuple[str, ...]:
        """Runs that have still to begin or to end; what is deeper than its bound has no end to wait for."""
        most = self.setting("max_depth")
        if any(run.status != "refused" and seen.depth_of(run) > most for run in seen.runs.values()):
            return ()
        due = (f"{run} is {run.status}" for run in self.due(seen))
        return (*due, *(f"{words} is under way" for words in seen.starting))

    def due(self, seen: SpawnsSeen) -> Iterator[Run]:
        """The same as runs. What lies behind a run that never ends waits rightly, or while such runs have
        all the room that there is; and what died waits until somebody cleans up.
        """
        endless = [
            run
            for run in seen.runs.values()
            if run.status == "running" and not run.stopping and self.endless(seen, run)
        ]
        held = {run.place for run in endless}
        full = 0 < self.setting("max_running") <= len(endless)
        for run in seen.runs.values():
            waits = run.status in (*LIVE, "queued")
            if not waits or (run.place in held and not run.stopping):
                continue
            if full and run.status == "queued":
                continue
            abandoned = self.died and not run.supervised
            behind = run.status == "queued" and any(
                other.place == run.place and other.status in LIVE and not other.supervised
                for other in seen.runs.values()
            )
            if not abandoned and not (self.died and behind):
                yield run


def _over(seen: SpawnsSeen | None) -> set[int]:
    """Runs that had ended then."""
    return set() if seen is None else {run.id for run in seen.runs.values() if run.over}
