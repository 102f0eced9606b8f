"""Sweep points made real: an operation's plain arguments become a policy of the system-call engine."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import cast

from mutiny.box.box import Box
from mutiny.box.errors import BoxDied
from mutiny.box.results import Command, CommandResult
from mutiny.kit import operations as op
from mutiny.syscalls import policies
from mutiny.syscalls.calls import Call, Counted
from mutiny.syscalls.dependence import Touch, touched
from mutiny.syscalls.durability import Durability
from mutiny.syscalls.schedules import Interleaver, Step
from mutiny.syscalls.starters import CommandEnd, InBox
from mutiny.syscalls.supervisor import Supervisor
from mutiny.system import trees
from mutiny.system.files import BoxPath
from mutiny.targets.kit.crash_states import KeptStates, kept_states

TECHNIQUE = "seccomp user notification"
HELD = 10.0
"""So many times as long may a command take that is held at every call until its files are kept."""


@dataclass(frozen=True)
class Broken:
    """What became of a command that was to be broken at one call."""

    fired: bool
    where: str
    """The call at which it happened, or why it did not."""
    answer: CommandResult | None
    """The command's own answer; None when the world ended first."""
    technique: str = TECHNIQUE


def policy_of(point: op.SweepPoint) -> policies.Policy:
    """The policy that an operation means."""
    if isinstance(point, op.KillAt):
        return policies.KillProcessAt(point.call)
    if isinstance(point, op.FailAt | op.FailReadAt):
        return policies.FailAt(point.call, point.errno)
    if isinstance(point, op.FullAt):
        return policies.FullFrom(point.call)
    if isinstance(point, op.TearAt):
        return policies.TearAt(point.call, cast(policies.TearMode, point.mode))
    return policies.CrashAt(point.call)


@dataclass(frozen=True)
class _PowerLoss:
    """Follow what becomes durable, and stop the world before one call."""

    index: int
    followers: tuple[Durability, ...]

    def decide(self, call: Call, fired: int) -> policies.Action:
        return policies.KillWorld() if call.index == self.index else policies.Perform(self._follow)

    def _follow(self, call: Call) -> None:
        for follower in self.followers:
            follower.follow(call)


def break_at(point: op.SweepPoint, box: Box, roots: Sequence[BoxPath], command: Command) -> Broken:
    """Run a command in the box under supervision and break it at its point."""
    if not isinstance(point, op.PowerLossAt):
        after = point.call if isinstance(point, op.CrashAt) else None
        counted = Counted.READS if isinstance(point, op.FailReadAt) else Counted.CHANGES
        return _run_broken(policy_of(point), box, roots, command, after, counted)
    with tempfile.TemporaryDirectory() as store:
        followers = {root: Durability(root.host, Path(store) / root.name) for root in roots}
        policy = _PowerLoss(point.call, tuple(followers.values()))
        broken = _run_broken(policy, box, roots, command, point.call)
        for root, follower in followers.items() if broken.fired else ():
            behind = follower.finish_behind() if point.names == "lost" else None
            durable = behind or follower.finish()
            trees.remove(root)
            root.mkdir(parents=True, exist_ok=True)
            durable.materialise(root.host)
    return broken


def _named(roots: Sequence[BoxPath]) -> list[Path]:
    """The directories as the engine compares them with the names in calls."""
    return [root.host for root in roots]


def _given(
    command: Command, supervisor: Supervisor, box: Box, *, held: bool
) -> CommandResult | None:
    """Give a command under supervision; None when the box died."""
    return supervisor.run_in(
        box,
        command.argv,
        timeout_s=command.timeout_s * (HELD if held else 1.0),
        cwd=command.cwd,
        env=command.env,
        stdin=command.stdin,
    )


def _run_broken(
    policy: policies.Policy,
    box: Box,
    roots: Sequence[BoxPath],
    command: Command,
    after: int | None,
    counted: Counted = Counted.CHANGES,
) -> Broken:
    """`after`: so many calls are the whole command (`AFTER_LAST`: however many); then the world ends after
    its answer.
    """
    with Supervisor(policy, roots=_named(roots), counted=counted) as supervisor:
        answer = _given(command, supervisor, box, held=isinstance(policy, _PowerLoss))
        fired, seen = supervisor.fired, len(supervisor.calls)
        ended = supervisor.world_dead
    if after in (seen, op.AFTER_LAST) and answer is not None:
        box.kill()
        return Broken(True, "after the last call", answer)
    harmful = [call for call in fired if call.result != "performed"] if not ended else fired[-1:]
    if harmful:
        return Broken(True, f"call {harmful[0]}", answer)
    point = getattr(policy, "index", 0)
    if point < seen:
        return Broken(False, f"call {point} was no write", answer)
    what = "read only {} files" if counted is Counted.READS else "made only {} state-changing calls"
    return Broken(False, f"the command {what.format(seen)}", answer)


@dataclass(frozen=True)
class Traced:
    """A command that ran unharmed, and every state-changing call that it made."""

    answer: CommandResult
    calls: list[dict[str, object]]
    blind_spots: tuple[str, ...]
    kept: KeptStates | None = None
    """The states before its calls, when they were wanted."""
    technique: str = TECHNIQUE


def trace(operation: op.Trace, box: Box, roots: Sequence[BoxPath], command: Command) -> Traced:
    """Run a command under supervision; keep the box's files before each call when wanted."""
    states = kept_states(operation.keep, box.directory, roots)
    policy: policies.Policy = policies.Record() if states is None else states.policy()
    counted = Counted.BOTH if operation.reads else Counted.CHANGES
    with Supervisor(policy, roots=_named(roots), counted=counted) as supervisor:
        answer = _given(command, supervisor, box, held=states is not None)
        calls, blind = supervisor.calls, supervisor.blind_spots
    if answer is None:
        raise BoxDied("the box died while a command was traced")
    if states is not None:
        states.finish()
    # Calls that only read and calls that change are numbered apart, as points count them.
    numbers = {True: itertools.count(), False: itertools.count()}
    described = [
        describe(replace(call, index=next(numbers[call.reads])))
        for call in calls
        if not (call.reads and call.borrowed)
    ]
    return Traced(answer, described, blind, states)


def describe(call: Call) -> dict[str, object]:
    """A call for the journal and the observation."""
    return {
        "index": call.index,
        "process": call.process,
        "name": call.name,
        "text": str(call),
        "length": call.length,
        "reads": call.reads,
    }


@dataclass(frozen=True)
class Interleaved:
    """Commands that ran at once in one exact order."""

    schedule: tuple[int, ...]
    ending: str
    ends: tuple[CommandEnd, ...]
    alternatives: tuple[tuple[int, tuple[int, ...]], ...]
    """Schedules next to this one that are still to be tried, each with its preemptions."""
    equivalence: str = ""
    """Equal for schedules that nobody can tell apart."""
    problem: str = ""
    turns: tuple[dict[str, object], ...] = ()
    """Who moved when: the command, how many calls it made then, the first and the last of them."""
    technique: str = "seccomp user notification, one command at a time"


def interleave(
    commands: Sequence[Command], schedule: Sequence[int], box: Box, roots: Sequence[BoxPath]
) -> Interleaved:
    """Run commands at once; the schedule says who moves next, then everybody in turn."""
    first = commands[0]
    interleaver = Interleaver(
        [tuple(command.argv) for command in commands],
        roots=_named(roots),
        prepare=lambda: InBox(box, timeout_s=first.timeout_s, cwd=first.cwd, env=first.env),
        judge=lambda _: None,
    )
    outcome, problem = interleaver.replay(schedule)
    return Interleaved(
        outcome.schedule,
        outcome.ending,
        outcome.ends,
        tuple(interleaver.alternatives(outcome, len(schedule))),
        outcome.equivalence,
        problem or "",
        tuple(_turns(outcome.steps)),
    )


def _turns(steps: Sequence[Step]) -> Iterator[dict[str, object]]:
    """A schedule for people: what each command did until it was stopped."""
    for command, group in itertools.groupby(steps, key=lambda step: step.command):
        made = list(group)
        yield {
            "command": command,
            "calls": len(made),
            "first": made[0].operation,
            "last": made[-1].operation,
            "read": _files(made, Touch.READ),
            "changed": _files(made, Touch.WRITE),
        }


def _files(steps: Sequence[Step], how: Touch) -> list[str]:
    """The names of the files that these operations touch in one way, neither locks nor directories."""
    found = {
        PurePath(name).name
        for step in steps
        for name, touch in touched(step.call).items()
        if touch is how and not name.startswith(("lock:", "dir:"))
    }
    return sorted(found)
