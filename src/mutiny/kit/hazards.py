"""The fault library as exploration uses it: around one command, beside all of them, and lasting.

A contract says what its target can feel (a lock, a number of system calls that every command surely
makes, places); the kit makes every fault of the library that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, fields

from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.exploring import Around, Explored, Move, Scene, always, drawn
from mutiny.model.operation import Kind, Operation

KILL_AFTER_MS = (5.0, 30.0, 60.0, 90.0, 120.0, 180.0, 260.0)
OFFSETS_S = (3600.0, -3600.0, 86400.0, -86400.0, 2.0)
SPARE = (0, 1, 3)
DAMAGES = ("append", "flip", "middle", "stale", "truncate")

When = Callable[[Scene, Operation], bool]


def broken(sure_calls: int) -> tuple[Around, ...]:
    """A command that dies, or one of whose calls fails, at a moment or at an exact system call."""

    def killed(scene: Scene, command: Operation) -> Operation:
        whole = scene.pick((True, False))
        # After a command's end a world can still be killed, the command cannot.
        return common.KillDuring(command, scene.pick(KILL_AFTER_MS), whole, anywhere=not whole)

    def call(scene: Scene) -> int:
        return scene.chance.randrange(sure_calls)

    at_a_moment = Around(common.KillDuring, killed, certain=True, weight=1.5)
    if not sure_calls:
        return (at_a_moment,)
    return (
        at_a_moment,
        Around(common.CrashAt, lambda s, o: common.CrashAt(o, call(s)), certain=True),
        Around(common.KillAt, lambda s, o: common.KillAt(o, call(s)), certain=True),
        Around(
            common.FailAt,
            lambda s, o: common.FailAt(o, call(s), s.pick(common.ERRNOS)),
            certain=True,
        ),
    )


def disks(
    place: Callable[[Scene, Operation], str], full: tuple[str, ...] = ("bytes", "inodes")
) -> tuple[Around, ...]:
    """No space, no inodes, read-only, slow: felt only by a command that surely writes.

    `full`: of what there is none left; who writes into files that are there needs no inodes.
    """
    return (
        Around(
            faults.FillDisk,
            lambda s, o: faults.FillDisk(s.pick(full), place(s, o), during=o),
            certain=True,
        ),
        Around(
            faults.ReadOnlyDisk,
            lambda s, o: faults.ReadOnlyDisk(place(s, o), during=o),
            certain=True,
        ),
        Around(
            faults.SlowFiles,
            lambda s, o: faults.SlowFiles(s.pick((1.0, 5.0)), place(s, o), during=o),
            certain=True,
        ),
    )


def lock(place: str = "lock") -> tuple[Around, ...]:
    """Somebody else holds the target's lock while a command runs."""
    return (Around(faults.HoldLock, lambda _s, o: faults.HoldLock(place, during=o, seconds=0.3)),)


def clock() -> tuple[Around, ...]:
    """The wall clock is wrong for one command."""
    return (
        Around(
            faults.SkewClock, lambda s, o: faults.SkewClock(offset_s=s.pick(OFFSETS_S), during=o)
        ),
    )


def resources() -> tuple[Around, ...]:
    """Too few rights, descriptors and processor time while a command runs, for a target with a daemon."""
    return (
        Around(faults.LowerLimit, lambda s, o: faults.LowerLimit(spare=s.pick(SPARE), during=o)),
        Around(faults.Forbid, lambda s, o: faults.Forbid(s.pick(("write", "all")), during=o)),
        Around(faults.StarveCpu, lambda _s, o: faults.StarveCpu(0.2, during=o)),
    )


def beside(
    *, when: When = always, has_lock: bool = True, files: Sequence[str] = ("state",)
) -> tuple[Move, ...]:
    """Faults that come and go, that last, and damage that stays in one of these files, for a target with
    a daemon.
    """
    short: tuple[Move, ...] = (
        Move(faults.SkewClock, {"offset_s": drawn(*OFFSETS_S), "seconds": drawn(0.3)}, 0.1, when),
        Move(faults.StarveCpu, {"share": drawn(0.15), "seconds": drawn(0.4)}, 0.1, when),
        Move(faults.Forbid, {"seconds": drawn(0.3)}, 0.1, when),
    )
    lasting: tuple[Move, ...] = (
        Move(faults.SkewClock, {"offset_s": drawn(*OFFSETS_S), "lasting": drawn(True)}, 0.1, when),
        Move(faults.StarveCpu, {"share": drawn(0.3), "lasting": drawn(True)}, 0.1, when),
        Move(faults.Forbid, {"lasting": drawn(True)}, 0.1, when),
    )
    limits: tuple[Move, ...] = (
        Move(faults.LowerLimit, {"spare": drawn(*SPARE), "seconds": drawn(0.4)}, 0.1, when),
        Move(faults.LowerLimit, {"what": drawn("file_size"), "seconds": drawn(0.4)}, 0.1, when),
        Move(faults.LowerLimit, {"spare": drawn(*SPARE), "lasting": drawn(True)}, 0.1, when),
    )
    damage = tuple(
        Move(
            faults.DamageFile,
            {"how": drawn(*DAMAGES), "file": drawn(file), "seed": drawn(*range(1, 100))},
            0.3,
            when,
        )
        for file in files
    )
    held = Move(faults.HoldLock, {"seconds": drawn(0.4)}, 0.1, when)
    return (*short, *lasting, *limits, *damage, *((held,) if has_lock else ()))


def every_command(operations: Iterable[type[Operation]], sure_calls: int = 0) -> Explored:
    """For a contract that declares nothing: every command that needs no argument, alone, refused, at once
    with others, and broken off.
    """
    plain = [
        make
        for make in operations
        if make.kind is Kind.COMMAND
        and not any(
            one.default is MISSING and one.default_factory is MISSING for one in fields(make)
        )
    ]
    return Explored(
        opening=lambda _scene: (),
        moves=(*(Move(make) for make in plain), Move(common.Sleep, weight=0.2)),
        around=broken(sure_calls),
        recovery=lambda _scene: (),
    )
