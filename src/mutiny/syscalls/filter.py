"""The kernel's part: a small BPF program that decides which calls are worth a notification.

Insight: a notification costs tens of microseconds and a look at the arguments in the kernel costs
nanoseconds, so that everything that can be decided without following a pointer is decided there. A
call that no rule names is allowed without looking at its arguments, and for those the kernel keeps
a bitmap: they stay as fast as without a filter.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from mutiny.syscalls import tables
from mutiny.syscalls.tables import Architecture, Group, Kind

_LOAD, _JUMP_EQUAL, _JUMP_GREATER, _JUMP_SET, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
ALLOW, NOTIFY, ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
ENOSYS = 38
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_LONGEST_JUMP = 255
LIMIT = 4096
"""The kernel refuses longer programs."""
_INSTRUCTION = struct.Struct("=HBBI")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a filter traps besides the calls that change files."""

    reads: bool = False
    """Also opens that only read (schedules need them: a read is where a lost update begins)."""
    locks: bool = False
    """Also ``flock`` and the locks of ``fcntl``."""
    standard_streams: bool = False
    """Also writes to descriptors 0 to 2, which are usually a terminal or a log."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One BPF instruction. Jumps count the instructions to skip."""

    code: int
    if_true: int
    if_false: int
    operand: int

    def packed(self) -> bytes:
        """The form that the kernel reads."""
        return _INSTRUCTION.pack(self.code, self.if_true, self.if_false, self.operand)


def build(machine: Architecture, wanted: Wanted) -> list[Instruction]:
    """Return the program for a machine."""
    program = [
        _load(_ARCHITECTURE),
        Instruction(_JUMP_EQUAL, 1, 0, machine.audit),
        _answer(ERRNO | ENOSYS),  # a 32-bit program: fails loudly instead of writing unseen
        _load(_NUMBER),
    ]
    if machine.forbidden_bit is not None:
        program += [
            Instruction(_JUMP_SET, 0, 1, machine.forbidden_bit),
            _answer(ERRNO | ENOSYS),
        ]
    program += _rule(tables.IO_URING_SETUP, [_answer(ERRNO | ENOSYS)])
    for kind in tables.KINDS:
        number = machine.number(kind)
        if number is None or (kind.group is Group.LOCK and not wanted.locks):
            continue
        program += _rule(number, _body(kind, wanted))
    program.append(_answer(ALLOW))
    assert len(program) <= LIMIT
    return program


def packed(program: list[Instruction]) -> bytes:
    """Return a program as the array of structures that the kernel wants."""
    return b"".join(instruction.packed() for instruction in program)


def _rule(number: int, body: list[Instruction]) -> list[Instruction]:
    """``body`` must return; what follows it sees the call's number in the accumulator again."""
    assert len(body) <= _LONGEST_JUMP
    return [Instruction(_JUMP_EQUAL, 0, len(body), number), *body]


def _body(kind: Kind, wanted: Wanted) -> list[Instruction]:
    notify, allow = _answer(NOTIFY), _answer(ALLOW)
    if kind.open_flags is not None and not wanted.reads:
        flags = tables.CHANGING_OPEN_FLAGS
        test = [_load_argument(kind.open_flags), Instruction(_JUMP_SET, 0, 1, flags)]
        return [*test, notify, allow]
    if kind.name in ("write", "writev") and not wanted.standard_streams:
        return [_load_argument(0), Instruction(_JUMP_GREATER, 0, 1, 2), notify, allow]
    if kind.name == "fcntl":
        return _one_of(1, tables.LOCK_COMMANDS)
    if kind.name == "ioctl":
        return _one_of(1, tables.CLONE_REQUESTS)
    if kind.name == "mmap":
        return [
            _load_argument(2),
            Instruction(_JUMP_SET, 0, 4, tables.PROT_WRITE),
            _load_argument(3),
            Instruction(_JUMP_SET, 0, 2, tables.MAP_SHARED),
            Instruction(_JUMP_SET, 1, 0, tables.MAP_ANONYMOUS),
            notify,
            allow,
        ]
    return [notify]


def _one_of(argument: int, values: tuple[int, ...]) -> list[Instruction]:
    tests = [
        Instruction(_JUMP_EQUAL, len(values) - place, 0, value)
        for place, value in enumerate(values)
    ]
    return [_load_argument(argument), *tests, _answer(ALLOW), _answer(NOTIFY)]


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, 0, 0, offset)


def _load_argument(index: int) -> Instruction:
    """Load the lower half of an argument (both architectures are little-endian)."""
    return _load(_ARGUMENTS + 8 * index)


def _answer(value: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, value)


# --- a model of the kernel's side, for tests and for questions ------------------------------------


def evaluate(
    program: list[Instruction], *, number: int, audit: int, arguments: tuple[int, ...] = ()
) -> int:
    """Run a program on one call as the kernel would; return its verdict."""
    padded = [*arguments, *([0] * (6 - len(arguments)))]
    memory = struct.pack("=iIQ6Q", number, audit, 0, *(value & (1 << 64) - 1 for value in padded))
    accumulator, place = 0, 0
    while True:
        step = program[place]
        place += 1
        if step.code == _RETURN:
            return step.operand
        if step.code == _LOAD:
            (accumulator,) = struct.unpack_from("=I", memory, step.operand)
            continue
        holds = {
            _JUMP_EQUAL: accumulator == step.operand,
            _JUMP_GREATER: accumulator > step.operand,
            _JUMP_SET: bool(accumulator & step.operand),
        }[step.code]
        place += step.if_true if holds else step.if_false
