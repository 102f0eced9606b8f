"""Sweep points made real: an operation's plain arguments become a policy of the system-call engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from mutiny.box.box import Box
from mutiny.box.errors import BoxDied
from mutiny.box.results import Command, CommandResult
from mutiny.contracts.workers import operations as op
from mutiny.syscalls import policies
from mutiny.syscalls.calls import Call
from mutiny.syscalls.supervisor import Supervisor
from mutiny.targets.keepers import keeper_of

TECHNIQUE = "seccomp user notification"


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
    if isinstance(point, op.FailAt):
        return policies.FailAt(point.call, point.errno)
    if isinstance(point, op.TearAt):
        return policies.TearAt(point.call, cast(policies.TearMode, point.mode))
    return policies.CrashAt(point.call)


def break_at(point: op.SweepPoint, box: Box, roots: Sequence[Path], command: Command) -> Broken:
    """Run a command in the box under supervision and break it at its point."""
    with Supervisor(policy_of(point), roots=roots) as supervisor:
        answer = supervisor.run_in(
            box,
            command.argv,
            timeout_s=command.timeout_s,
            cwd=command.cwd,
            env=command.env,
            stdin=command.stdin,
        )
        fired, seen = supervisor.fired, len(supervisor.calls)
    if fired:
        return Broken(True, f"call {fired[0].index}: {fired[0]}", answer)
    return Broken(False, f"the command made only {seen} state-changing calls", answer)


@dataclass(frozen=True)
class Traced:
    """A command that ran unharmed, and every state-changing call that it made."""

    answer: CommandResult
    calls: list[dict[str, object]]
    blind_spots: tuple[str, ...]
    technique: str = TECHNIQUE


def points_directory(run: Path) -> Path:
    """Where the states before each call are kept, beside the box."""
    return run / "points"


def trace(
    operation: op.Trace, box: Box, roots: Sequence[Path], command: Command, run: Path
) -> Traced:
    """Run a command under supervision; keep the box's files before each call when wanted."""
    keeper = keeper_of(operation.keep, box.directory, points_directory(run), roots)
    policy: policies.Policy = policies.Record() if keeper is None else keeper.policy()
    with Supervisor(policy, roots=roots) as supervisor:
        answer = supervisor.run_in(
            box,
            command.argv,
            timeout_s=command.timeout_s,
            cwd=command.cwd,
            env=command.env,
            stdin=command.stdin,
        )
        calls, blind = supervisor.calls, supervisor.blind_spots
    if answer is None:
        raise BoxDied("the box died while a command was traced")
    if keeper is not None:
        keeper.finish()
    return Traced(answer, [describe(call) for call in calls], blind)


def describe(call: Call) -> dict[str, object]:
    """A call for the journal and the picture."""
    return {"index": call.index, "process": call.process, "name": call.name, "text": str(call)}
