"""Faults of the library carried out on a live target, for all contracts: on, felt, proved, healed.

Each operation becomes one `Fault` of the library, and all of them go through the same few lines: refuse
what this machine cannot do, inject, keep it on for as long as the operation says, heal in any case.
A fault that only one command shall feel is a policy of the system-call engine on that command's
process tree: it needs no mount, no root, and touches nobody else.
"""

from __future__ import annotations

import contextlib
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Protocol, cast

from mutiny import stopping
from mutiny.box.box import Box
from mutiny.box.results import Command, CommandResult
from mutiny.errors import BoxError
from mutiny.faults import clients, clock, content, disk, locks, namespaces, network, resources
from mutiny.faults.base import Fault, FaultUnavailable
from mutiny.faults.process import paused, views
from mutiny.kit import faults as op
from mutiny.kit.contract import StepContext
from mutiny.kit.operations import OUTLASTED, LibraryFault
from mutiny.kit.views import ProcessView
from mutiny.model.operation import Operation, walk
from mutiny.model.result import OperationResult
from mutiny.syscalls import policies
from mutiny.syscalls.memory import real
from mutiny.syscalls.supervisor import Supervisor
from mutiny.syscalls.supervisor import why_not as why_no_engine
from mutiny.system.files import BoxPath

ENGINE = "seccomp user notification"
KILL_ALL, KILL_COMMAND = "SIGKILL to the whole box", "SIGKILL to the command's processes"
_PROBE_LIMIT_S = 20.0
_KILL_PASSES = 20
_REPAIR_LIMIT_S = 2.0


class FaultHost(Protocol):
    """What a live target tells about itself."""

    box: Box

    @property
    def program_path(self) -> Path | None: ...

    def execute(self, operation: Operation, context: StepContext) -> OperationResult: ...

    def place(self, word: str) -> str:
        """A directory or file by its word, as the box sees it."""
        ...

    def file(self, word: str) -> str:
        """One file by its word, as the box sees it."""
        ...

    def party(self, word: str) -> tuple[str, int | None]:
        """Somebody on the network by a word: address and port."""
        ...

    def processes_of(self, role: str, worker: str | None) -> Sequence[ProcessView]: ...

    def look_again(self) -> None:
        """Files are to be found elsewhere from now on, or Mutiny itself has just written one."""
        ...

    def damaged(self, word: str, left: bytes | None) -> None:
        """Mutiny itself has just made this of a file; None: it is gone."""
        ...


class FaultRunner:
    """The faults that are on in one live target."""

    def __init__(self, host: FaultHost) -> None:
        self._host = host
        self._active: list[Fault] = []
        self._disks: dict[str, disk.SmallDisk] = {}
        self._clocks: clock.BoxClocks | None = None
        self._copies: dict[str, list[bytes]] = {}
        self._seen_at: dict[str, int] = {}
        self.engine: Supervisor | None = None
        """Commands run under it as long as it is there."""

    def why_no_crash(self) -> str | None:
        """Why nothing may be broken at a system call, or killed with the box, just now."""
        if self._active:
            return "a lasting fault is on; Heal first"
        return "a disk of the box's own would be lost with the box" if self._disks else None

    # --- before and beside the faults --------------------------------------------------------------

    def prepare(self, operations: Iterable[Operation]) -> None:
        """Make what must be there from the beginning: clocks, when a clock will be bent."""
        skewed = [
            part for item in operations for part in walk(item) if isinstance(part, op.SkewClock)
        ]
        if skewed and clock.why_no_shim() is None:
            workers = sorted({part.worker for part in skewed if part.worker})
            self._clocks = clock.BoxClocks(self._host.box, workers)

    @property
    def environment(self) -> Mapping[str, str]:
        """What the target's commands need on top of their own environment."""
        return {} if self._clocks is None else self._clocks.environment

    @property
    def clocks(self) -> clock.BoxClocks | None:
        """The clocks of the box, when one is planned to be bent."""
        return self._clocks

    def outside(self, inside: str) -> BoxPath:
        """A file of the box as it is reached from outside, also when it lies on a disk of the box's own."""
        for root in self._disks:
            if PurePosixPath(inside).is_relative_to(root):
                return namespaces.seen_by_box(self._host.box, inside)
        return self._host.box.outside(inside)

    def keep_copy(self, word: str, path: BoxPath) -> None:
        """Remember the last two contents of a file: an old copy may come back."""
        with contextlib.suppress(OSError):  # not there yet, or gone, or nothing to be read
            changed = path.stat().st_mtime_ns
            if self._seen_at.get(word) != changed:
                self._seen_at[word] = changed
                known = self._copies.setdefault(word, [])
                fresh = path.read_bytes()
                self._copies[word] = [*(one for one in known if one != fresh), fresh][-2:]

    def run(self, command: Command) -> CommandResult:
        """Run a command of the target, under the engine when a fault asks for it."""
        if self.engine is None:
            return self._host.box.run_many([command])[0]
        answer = self.engine.run_in(
            self._host.box,
            command.argv,
            timeout_s=command.timeout_s,
            cwd=command.cwd,
            env=command.env,
            stdin=command.stdin,
        )
        if answer is None:
            raise BoxError("the box died while a command ran under the system-call engine")
        return answer

    def wrapped(self, argv: Sequence[str]) -> Sequence[str]:
        """The same for a command that stays in the background."""
        if self.engine is None:
            return argv
        return self.engine.wrap_argv(argv, box=self._host.box)

    # --- one fault -----------------------------------------------------------------------------------

    def carry_out(self, operation: LibraryFault, context: StepContext) -> OperationResult:
        """Inject a fault for as long as its operation says."""
        fault = self._make(operation)
        fault.refuse_if_unavailable()
        alone = operation.during is None and not operation.lasting and not views(self._box)
        if alone and operation.seconds:
            return fault.not_done("nothing of the target is running that could feel it")
        try:
            fault.prepare()
            injected = fault.inject()
            deadline = time.monotonic() + _REPAIR_LIMIT_S
            damage = isinstance(operation, op.DamageFile)
            while damage and not injected.fired and time.monotonic() < deadline:
                stopping.sleep(0.05)  # an earlier damage is just being repaired
                injected = fault.inject()
        except BaseException:
            self._heal_one(fault)
            raise
        if isinstance(operation, op.DamageFile):
            self._host.look_again()
        if injected.fired and isinstance(fault, content.DamageContent | content.DeleteFile):
            self._host.damaged(cast(op.DamageFile, operation).file, fault.left)
        if not injected.fired:
            self._heal_one(fault)
            return injected
        if operation.lasting:
            self._active.append(fault)
            return injected
        if operation.during is None and not operation.seconds:
            return injected  # it has simply happened
        return self._while_on(fault, injected, operation, context)

    def switch_on(self, operation: LibraryFault) -> OperationResult:
        """A lasting fault that is part of something else, such as a worker with a wrong clock."""
        fault = self._make(operation)
        fault.refuse_if_unavailable()
        fault.prepare()
        injected = fault.inject()
        if injected.fired:
            self._active.append(fault)
        return injected

    def _while_on(
        self,
        fault: Fault,
        injected: OperationResult,
        operation: LibraryFault,
        context: StepContext,
    ) -> OperationResult:
        """Let the command run, or the time pass; heal in any case, also on Ctrl-C."""
        if operation.during is None:
            try:
                stopping.sleep(operation.seconds)
            finally:
                ended = self._end(fault)
            return ended.told(injected)
        early: list[_Ended] = []
        over = threading.Event()

        def end_early() -> None:
            fault.wait_until_met(over)
            if not over.wait(operation.seconds):
                early.append(self._end(fault))

        release = threading.Thread(target=end_early)
        if operation.seconds:
            release.start()
        try:
            inner = self._host.execute(operation.during, context)
        finally:
            over.set()
            if operation.seconds:
                release.join()
            ended = early[0] if early else self._end(fault)
        felt = {"felt": fault.felt} if isinstance(fault, _OnCalls) else {}
        together = replace(
            inner,
            inner=(inner,),
            technique=fault.technique,
            fired=True,
            details={**inner.details, "injected": injected.stdout, OUTLASTED: not early, **felt},
        )
        return ended.told(together)

    def _end(self, fault: Fault) -> _Ended:
        """Take a fault back, having asked whether it was felt."""
        unfelt = fault.unfelt() if self._box.alive else None
        return _Ended(self._heal_one(fault), unfelt)

    def _heal_one(self, fault: Fault) -> str | None:
        """Take a fault back; what then is still wrong."""
        healed = fault.heal()
        if isinstance(fault, content.DamageContent | content.DeleteFile):
            self._host.look_again()
        # A damaged file that somebody has written meanwhile is well without us.
        harmless = isinstance(fault, content.DamageContent | content.DeleteFile | disk.Forbid)
        return None if healed.fired or harmless else healed.stderr

    def heal(self) -> OperationResult:
        """Take back everything that is on, the newest first."""
        ended = []
        while self._active:
            ended.append(self._end(self._active.pop()))
        done = OperationResult(stdout=f"{len(ended)} healed")
        troubles = [one.trouble for one in ended if one.trouble]
        unfelt = [one.unfelt for one in ended if one.unfelt]
        return _Ended("; ".join(troubles) or None, "; ".join(unfelt) or None).told(done)

    def close(self) -> None:
        """Heal, and save the files of the box's own disks; the box is about to end."""
        if not self._host.box.alive:
            self.forget()
            return
        try:
            self.heal()
            if self._disks:
                with paused(self._host.box, views(self._host.box)):
                    for small in self._disks.values():
                        self._collect(small)
        finally:
            self.forget()

    def _collect(self, small: disk.SmallDisk) -> None:
        """Save the files of a disk; where the box has no place for them any more, that is told instead."""
        try:
            small.collect()
        except OSError as error:
            note = BoxPath(self._box.directory.parent, "disks.left_out.txt")
            note.write_text(f"{small.inside}: {error}\n")

    def forget(self) -> None:
        """The box is gone, and with it what was wrong with it; only what is outside is given back."""
        for fault in self._active:
            with contextlib.suppress(BoxError, OSError, FaultUnavailable):
                fault.heal()
        self._active.clear()
        self._disks.clear()
        if self._clocks is not None:
            self._clocks.close()
            self._clocks = None

    # --- from operation to fault ---------------------------------------------------------------------

    def _make(self, operation: LibraryFault) -> Fault:
        return _MAKERS[type(operation)](self, operation)

    @property
    def _box(self) -> Box:
        return self._host.box

    def _on_calls(self, place: str, policy: Callable[[str], policies.Policy], new: bool) -> Fault:
        inside = self._host.place(place)
        return _OnCalls(self, self._box, inside, self._own(inside), policy, new_name=new)

    def _own(self, inside: str) -> Path:
        """A directory as the system-call engine compares it; one that leads out of the box is refused."""
        place = self.outside(inside)
        place.require_own()
        return place.host

    def _fill(self, operation: op.FillDisk) -> Fault:
        what = cast(Literal["bytes", "inodes"], operation.what)
        if operation.during is not None:
            return self._on_calls(
                operation.place, lambda below: policies.FullBelow(below, what), new=True
            )
        return disk.FillDisk(self.own_disk(operation.place), what)

    def own_disk(self, place: str) -> disk.SmallDisk:
        """A place as a disk of its own, made before anybody lives there."""
        inside = self._host.place(place)
        known = self._disks.get(inside)
        small = known or disk.SmallDisk(self._box, inside)
        if known is None:
            small.mount()
            self._disks[inside] = small
            self._host.look_again()
        return small

    def _read_only(self, operation: op.ReadOnlyDisk) -> Fault:
        if operation.during is None:
            return disk.ReadOnly(self._box, self._host.place(operation.place))
        return self._on_calls(
            operation.place,
            lambda below: policies.FailBelow(policies.Selection(below), "EROFS"),
            new=False,
        )

    def _slow(self, operation: op.SlowFiles) -> Fault:
        delay_s = operation.delay_ms / 1000
        return self._on_calls(
            operation.place,
            lambda below: policies.DelayBelow(policies.Selection(below), delay_s),
            new=False,
        )

    def _forbid(self, operation: op.Forbid) -> Fault:
        inside = self._host.place(operation.place)
        mode = self.outside(inside).stat().st_mode & 0o7777
        wanted = mode & ~0o222 if operation.what == "write" else 0
        return disk.Forbid(self._box, inside, wanted)

    def _hold(self, operation: op.HoldLock) -> Fault:
        kind = cast(locks.LockKind, operation.how)
        return locks.HoldLock(self._box, self._host.place(operation.place), kind)

    def _damage(self, operation: op.DamageFile) -> Fault:
        path = self.outside(self._host.file(operation.file))
        if operation.how == "delete":
            return content.DeleteFile(path)
        if operation.how == "stale":
            old = self._copies.get(operation.file, [])[:-1]
            return content.DamageContent(path, lambda now: old[0] if old else now, "stale copy")
        return content.damage(path, operation.how, operation.seed)

    def _skew(self, operation: op.SkewClock) -> Fault:
        program = self._host.program_path
        reason = clock.why_no_shim()
        if reason is None and program is not None:
            reason = clock.why_not_affected(program)
        if reason is not None:
            raise FaultUnavailable(f"{clock.SkewClock.technique} is not available: {reason}")
        if self._clocks is None:
            raise FaultUnavailable("the clocks were not prepared: this step was not planned")
        page = operation.worker or clock.DEFAULT_PAGE
        return clock.SkewClock(self._clocks, page, rate=operation.rate, offset_s=operation.offset_s)

    def _partition(self, operation: op.Partition) -> Fault:
        address, port = self._host.party(operation.party)
        return network.Partition(
            self._box,
            network.Party(operation.party, address, port),
            direction=cast(Literal["both", "to", "from"], operation.direction),
            how=cast(Literal["drop", "reject"], operation.how),
            loss=None if operation.loss == 1 else operation.loss,
        )

    def _slow_link(self, operation: op.SlowLink) -> Fault:
        return network.SlowLink(
            self._box,
            kilobits_per_s=operation.kilobits_per_s or None,
            delay_ms=operation.delay_ms or None,
        )

    def _silent(self, operation: op.SilentClient) -> Fault:
        servers = self._host.processes_of(operation.role, None)
        return clients.SilentClient(self._box, servers, self._host.place("state"))

    def _limit(self, operation: op.LowerLimit) -> Fault:
        found = self._host.processes_of(operation.role, operation.worker)
        if not found:
            raise FaultUnavailable(f"there is no {operation.role} whose limit could be lowered")
        what = cast(resources.Limited, operation.what)
        first = found[0]
        return resources.LowerLimit(self._box, first.pid, first.start, what, spare=operation.spare)

    def _limit_processes(self, operation: op.LimitProcesses) -> Fault:
        return resources.LimitProcesses(self._box, spare=operation.spare)

    def _starve(self, operation: op.StarveCpu) -> Fault:
        return resources.StarveCpu(self._box, operation.share)


Maker = Callable[[FaultRunner, Any], Fault]

_MAKERS: dict[type[LibraryFault], Maker] = {
    op.FillDisk: FaultRunner._fill,
    op.ReadOnlyDisk: FaultRunner._read_only,
    op.SlowFiles: FaultRunner._slow,
    op.Forbid: FaultRunner._forbid,
    op.HoldLock: FaultRunner._hold,
    op.DamageFile: FaultRunner._damage,
    op.SkewClock: FaultRunner._skew,
    op.Partition: FaultRunner._partition,
    op.SlowLink: FaultRunner._slow_link,
    op.SilentClient: FaultRunner._silent,
    op.LowerLimit: FaultRunner._limit,
    op.LimitProcesses: FaultRunner._limit_processes,
    op.StarveCpu: FaultRunner._starve,
}


@dataclass(frozen=True)
class _Ended:
    """How a fault came to its end."""

    trouble: str | None
    """It could not be healed: why."""
    unfelt: str | None
    """Nobody can have felt it: why."""

    def told(self, result: OperationResult) -> OperationResult:
        """A world that could not be healed proves nothing any more, nor does a fault that nobody felt."""
        if self.trouble is not None:
            return replace(result, harness_error=f"the fault could not be healed: {self.trouble}")
        if self.unfelt is None:
            return result
        text = f"the fault was not felt: {self.unfelt}"
        fired = None if result.fired is None else False
        return replace(result, exit_code=1, stderr=text, fired=fired)


class _OnCalls(Fault):
    """A fault on the file operations of every command that starts while it is on."""

    technique = ENGINE

    def __init__(
        self,
        fault_runner: FaultRunner,
        box: Box,
        inside: str,
        outside: Path,
        policy: Callable[[str], policies.Policy],
        *,
        new_name: bool,
    ) -> None:
        self._fault_runner = fault_runner
        self._box = box
        self._inside = inside
        self._outside = outside
        self._policy = policy(real(outside))
        self._new_name = new_name
        self._supervisor: Supervisor | None = None
        self.felt = 0
        """How many calls of the target it has hit."""

    def why_not(self) -> str | None:
        """No seccomp notification here, or another such fault is on."""
        if self._fault_runner.engine is not None:
            return "another fault on system calls is on; heal it first"
        return why_no_engine()

    def inject(self) -> OperationResult:
        """Start the engine; a program that changes nothing tries it out."""
        supervisor = Supervisor(self._policy, roots=[self._outside])
        supervisor.start()
        self._supervisor = supervisor
        # Making what is there already changes nothing; a new name is refused by a full disk.
        name = f"{self._inside}/.mutiny-{secrets.token_hex(4)}" if self._new_name else self._inside
        said = supervisor.run_in(self._box, ["mkdir", name], timeout_s=_PROBE_LIMIT_S)
        if not supervisor.fired:
            return self.not_done(f"a change below {self._inside} was let through: {said}")
        supervisor.use(self._policy)
        self._fault_runner.engine = supervisor
        return self.done(f"{self._inside}: {_text_of(self._policy)}")

    def unfelt(self) -> str | None:
        """No call of the target was hit."""
        if self._supervisor is None or self._supervisor.fired:
            return None
        return f"nothing was changed below {self._inside} meanwhile"

    def heal(self) -> OperationResult:
        """Decide nothing more; what still runs under the engine is let through."""
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is None:
            return self.done("nothing was on")
        self._fault_runner.engine = None
        self.felt = len(supervisor.fired)
        supervisor.close()
        return self.done(f"{self._inside}: as before; {self.felt} calls were hit")


def _text_of(policy: policies.Policy) -> str:
    """What a policy of this module does, in words."""
    if isinstance(policy, policies.FullBelow):
        return f"no {policy.what} left (ENOSPC)"
    if isinstance(policy, policies.DelayBelow):
        return f"every change {policy.seconds * 1000:g} ms later"
    return "read-only (EROFS)"


# --- the random kill ------------------------------------------------------------------------------


def kill_during(
    box: Box, command: Command, after_s: float, *, whole: bool
) -> tuple[OperationResult, str]:
    """Run a command and kill it, or everything, after some time; its answer, and what was done."""
    argv = tuple(command.argv)
    given = box.files / "tmp" / f"stdin-{secrets.token_hex(4)}"
    given.replace_bytes(command.stdin)
    spawned = box.spawn(
        ["sh", "-c", 'exec "$@" < "$0"', box.inside(given), *argv], cwd=command.cwd, env=command.env
    )
    ending = box.wait_ended(spawned, after_s)
    if whole:
        box.kill()
        text = f"everything was killed {_when(ending is None, after_s)}"
    else:
        text = f"the command was killed after {after_s * 1000:g} ms"
        if ending is None:
            _kill_tree(box, spawned.pid, spawned.start)
        else:
            text = (
                f"the command had ended before {after_s * 1000:g} ms were over: nothing was killed"
            )
    given.unlink(missing_ok=True)
    if ending is None:
        return OperationResult(None, signal=signal.SIGKILL, argv=argv), text
    said = box.outside(spawned.output).read_said()
    answer = OperationResult(ending.exit_code, said, said, signal=ending.signal, argv=argv)
    return answer, text


def _when(reached: bool, after_s: float) -> str:
    return f"after {after_s * 1000:g} ms" if reached else "after its end, which came first"


def _kill_tree(box: Box, pid: int, start: int) -> None:
    """Kill a process and all that it has started, the parents first, until none is left."""
    family: dict[int, int] = {pid: start}
    for _ in range(_KILL_PASSES):
        alive = views(box)
        for process in alive:
            if process.parent in family:
                family.setdefault(process.pid, process.start)
        hit = [process for process in alive if family.get(process.pid) == process.start]
        if not hit:
            return
        for process in hit:
            box.signal(process.pid, process.start, signal.SIGKILL)
        box.wait_gone(hit[0].pid, hit[0].start, 1.0)
