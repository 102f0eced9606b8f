"""Two or more commands under control: every interleaving of their visible file operations.

Insight: between two visible operations (opening, writing, renaming, removing, locking below the
roots) a process cannot be seen by the others, so that holding each command at its next visible
operation and choosing who goes on makes the whole run a function of the list of choices. That list
is the schedule: it replays the run. A bound on preemptions (switching away from a command that could
go on) keeps the search small: almost every known race needs at most two.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mutiny.errors import MutinyError
from mutiny.syscalls import dependence, tables
from mutiny.syscalls.calls import Call
from mutiny.syscalls.conductor import Conductor
from mutiny.syscalls.starters import CommandEnd, Starter

Ending = Literal["done", "deadlock", "stuck", "diverged"]
PREEMPTION_BOUND = 2
RUN_LIMIT_S = 60.0
SPIN_STEPS, SPIN_VARIETY = 30, 4
"""So many reads in a row of so few files mean that a command polls, and waits for another one."""


@dataclass(frozen=True, slots=True)
class Step:
    """One choice: which command went on, over which operation, and who else could have."""

    command: int
    operation: str
    enabled: tuple[int, ...]
    call: Call | None = None
    """None: the start of the command."""

    def __str__(self) -> str:
        return f"{self.command}: {self.operation}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One executed schedule."""

    steps: tuple[Step, ...]
    ending: Ending
    blocked: tuple[int, ...] = ()
    """For a deadlock: who waited for a lock at the end."""
    ends: tuple[CommandEnd, ...] = ()

    @property
    def schedule(self) -> tuple[int, ...]:
        """The choices; give them to ``replay``."""
        return tuple(step.command for step in self.steps)

    @property
    def equivalence(self) -> str:
        """Equal for schedules that have all conflicting operations in the same order."""
        return dependence.class_of([(step.command, step.call) for step in self.steps])

    @property
    def preemptions(self) -> int:
        """How often a command that could go on was left."""
        return sum(
            _costs(before.command, step.enabled, step.command)
            for before, step in zip(self.steps, self.steps[1:], strict=False)
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """A schedule after which something was wrong."""

    number: int
    """The how-many-th schedule it was, from 1."""
    outcome: Outcome
    text: str


@dataclass(frozen=True, slots=True)
class Exploration:
    """What a search found."""

    schedules: int
    complete: bool
    """Whether every schedule within the bound was executed."""
    problems: tuple[Problem, ...]
    diverged: int
    """Schedules that could not be followed: the commands are not deterministic enough."""


class Interleaver:
    """Runs some commands at once, again and again, each time in another order.

    ``prepare`` brings the world to its first state and says how to start the commands; ``judge``
    looks at the world after a schedule and returns what is wrong, or None. A deadlock is a problem
    by itself.
    """

    def __init__(
        self,
        commands: Sequence[Sequence[str]],
        *,
        roots: Sequence[Path],
        prepare: Callable[[], Starter],
        judge: Callable[[Outcome], str | None],
        preemption_bound: int = PREEMPTION_BOUND,
        timeout_s: float = RUN_LIMIT_S,
    ) -> None:
        self._commands = [tuple(command) for command in commands]
        self._roots = tuple(roots)
        self._prepare = prepare
        self._judge = judge
        self._bound = preemption_bound
        self._timeout_s = timeout_s

    def replay(self, schedule: Sequence[int]) -> tuple[Outcome, str | None]:
        """Execute one schedule; return what happened and what is wrong with it."""
        outcome = self._execute(schedule)
        return outcome, self._verdict(outcome)

    def explore(
        self,
        *,
        limit: int | None = None,
        stop_at_first: bool = True,
        on_schedule: Callable[[int, Outcome, str | None], None] | None = None,
    ) -> Exploration:
        """Search all schedules within the bound, those with the fewest preemptions first."""
        waiting: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, ())]
        pushed, number, diverged = 0, 0, 0
        known: set[str] = set()
        problems: list[Problem] = []
        while waiting and (limit is None or number < limit):
            _, _, prefix = heapq.heappop(waiting)
            outcome, problem = self.replay(prefix)
            number += 1
            if on_schedule is not None:
                on_schedule(number, outcome, problem)
            if outcome.ending == "diverged":
                diverged += 1
                continue
            if problem is not None:
                problems.append(Problem(number, outcome, problem))
                if stop_at_first:
                    break
            if outcome.equivalence in known:
                continue  # what can follow from it follows from its twin as well
            known.add(outcome.equivalence)
            for cost, alternative in self.alternatives(outcome, len(prefix)):
                pushed += 1
                heapq.heappush(waiting, (cost, pushed, alternative))
        return Exploration(number, not waiting, tuple(problems), diverged)

    def alternatives(self, outcome: Outcome, after: int) -> list[tuple[int, tuple[int, ...]]]:
        """The schedules next to one that was executed, the most promising first: commands begin
        with reading and end with tidying up, so that switching in the middle finds races soonest.
        """
        found: list[tuple[int, int, int]] = []
        cost, last = 0, None
        cares = {
            number: dependence.everything(s.call for s in outcome.steps if s.command == number)
            for number in range(len(self._commands))
        }
        for place, step in enumerate(outcome.steps):
            touched = dependence.touched(step.call)
            for other in step.enabled if place >= after else ():
                total = cost + _costs(last, step.enabled, other)
                # Who comes first, and a switch before something that the other one cares about.
                worth = step.call is None or dependence.conflict(touched, cares[other])
                if other != step.command and total <= self._bound and worth:
                    found.append((total, place, other))
            cost += _costs(last, step.enabled, step.command)
            last = step.command
        middle = found[len(found) // 2][1] if found else 0
        found.sort(key=lambda each: abs(each[1] - middle))
        return [(total, (*outcome.schedule[:place], other)) for total, place, other in found]

    def _verdict(self, outcome: Outcome) -> str | None:
        if outcome.ending == "deadlock":
            names = ", ".join(str(number) for number in outcome.blocked)
            return f"deadlock: commands {names} wait for locks for ever"
        if outcome.ending == "stuck":
            return f"stuck: nothing happened for {self._timeout_s} s"
        return None if outcome.ending == "diverged" else self._judge(outcome)

    def _execute(self, schedule: Sequence[int]) -> Outcome:
        starter = self._prepare()
        deadline = time.monotonic() + self._timeout_s
        steps: list[Step] = []
        ending: Ending = "done"
        blocked: tuple[int, ...] = ()
        with Conductor(self._commands, self._roots, starter, deadline) as conductor:
            conductor.start()
            last: int | None = None
            while not conductor.all_ended:
                enabled = fair(steps, conductor.enabled())
                if conductor.all_ended:
                    break  # the last one only waited for somebody who is not part of the race
                if not enabled:
                    blocked = conductor.blocked()
                    ending = "deadlock" if conductor.only_locks else "stuck"
                    break
                chosen = last if last in enabled else enabled[0]
                if len(steps) < len(schedule):
                    chosen = schedule[len(steps)]
                if chosen is None or chosen not in enabled:
                    ending = "diverged"
                    break
                operation, call = conductor.next_of(chosen)
                steps.append(Step(chosen, operation, enabled, call))
                conductor.go_on(chosen)
                last = chosen
            if ending != "done":
                starter.kill()
        if ending == "done" and len(schedule) > len(steps):
            ending = "diverged"
        return Outcome(tuple(steps), ending, blocked, starter.finish())


def fair(steps: Sequence[Step], enabled: tuple[int, ...]) -> tuple[int, ...]:
    """Who may go on: not somebody who polls for what only the others can do, as long as there are
    others. Without it a schedule can starve a command until a timeout, which no machine would do.
    """
    recent = steps[-SPIN_STEPS:]
    if len(recent) < SPIN_STEPS or len({step.command for step in recent}) > 1:
        return enabled
    looked = set()
    for step in recent:
        call = step.call
        if call is None or call.name not in tables.OPENS | tables.LOCKS:
            return enabled
        looked.add((call.name, call.files))
    others = tuple(number for number in enabled if number != recent[0].command)
    return others if others and len(looked) <= SPIN_VARIETY else enabled


def _costs(last: int | None, enabled: Sequence[int], chosen: int) -> int:
    """Whether a choice is a preemption."""
    return int(last is not None and last in enabled and chosen != last)


def parse_schedule(text: str) -> tuple[int, ...]:
    """Read a schedule that was written as ``0 0 1 0``."""
    try:
        return tuple(int(word) for word in text.split())
    except ValueError as error:
        raise MutinyError(f"not a schedule (numbers of commands): {text!r}") from error
