"""The tables and the kernel's filter, without a kernel."""

from __future__ import annotations

import struct

import pytest

from mutiny.syscalls import tables
from mutiny.syscalls.filter import ALLOW, ENOSYS, ERRNO, NOTIFY, Wanted, build, evaluate, packed
from mutiny.syscalls.tables import AARCH64, BY_NAME, KINDS, X86_64, Architecture, Group

MACHINES = [X86_64, AARCH64]
OPEN_READ, OPEN_WRITE = 0, tables.O_WRONLY | tables.O_CREAT


def verdict(
    machine: Architecture, name: str, *arguments: int, wanted: Wanted | None = None
) -> int | None:
    number = machine.number(BY_NAME[name])
    if number is None:
        return None
    program = build(machine, wanted or Wanted())
    return evaluate(program, number=number, audit=machine.audit, arguments=arguments)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_numbers_are_unique(machine: Architecture) -> None:
    numbers = [machine.number(kind) for kind in KINDS if machine.number(kind) is not None]
    assert len(numbers) == len(set(numbers)) == len(machine.numbers())


def test_aarch64_has_none_of_the_calls_without_a_directory() -> None:
    for name in ("open", "creat", "rename", "mkdir", "rmdir", "link", "unlink", "symlink"):
        assert AARCH64.number(BY_NAME[name]) is None
        assert X86_64.number(BY_NAME[name]) is not None


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_what_is_trapped(machine: Architecture) -> None:
    assert verdict(machine, "openat", 0, 0, OPEN_READ) == ALLOW
    assert verdict(machine, "openat", 0, 0, OPEN_WRITE) == NOTIFY
    assert verdict(machine, "openat", 0, 0, OPEN_READ, wanted=Wanted(reads=True)) == NOTIFY
    assert verdict(machine, "write", 2) == ALLOW
    assert verdict(machine, "write", 3) == NOTIFY
    assert verdict(machine, "write", 1, wanted=Wanted(standard_streams=True)) == NOTIFY
    assert verdict(machine, "flock", 3) == ALLOW
    assert verdict(machine, "flock", 3, wanted=Wanted(locks=True)) == NOTIFY
    assert verdict(machine, "fcntl", 3, 1, wanted=Wanted(locks=True)) == ALLOW
    for command in tables.LOCK_COMMANDS:
        assert verdict(machine, "fcntl", 3, command, wanted=Wanted(locks=True)) == NOTIFY
    assert verdict(machine, "ioctl", 3, 0x5401) == ALLOW
    assert verdict(machine, "ioctl", 3, tables.FICLONE) == NOTIFY
    always = [
        kind
        for kind in KINDS
        if kind.group is Group.CHANGE
        and kind.open_flags is None
        and kind.name not in ("write", "writev", "ioctl")
    ]
    for kind in always:
        assert verdict(machine, kind.name) in (NOTIFY, None), kind.name


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_only_shared_writable_file_mappings_are_shown(machine: Architecture) -> None:
    def mapped(protection: int, flags: int) -> int | None:
        return verdict(machine, "mmap", 0, 4096, protection, flags, 3)

    assert mapped(tables.PROT_WRITE, tables.MAP_SHARED) == NOTIFY
    assert mapped(1, tables.MAP_SHARED) == ALLOW
    assert mapped(tables.PROT_WRITE, 2) == ALLOW
    assert mapped(tables.PROT_WRITE, tables.MAP_SHARED | tables.MAP_ANONYMOUS) == ALLOW


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_ways_around_the_filter_are_closed(machine: Architecture) -> None:
    program = build(machine, Wanted())
    refused = ERRNO | ENOSYS
    io_uring = tables.IO_URING_SETUP
    assert evaluate(program, number=io_uring, audit=machine.audit) == refused
    assert evaluate(program, number=4, audit=0x40000003) == refused  # a 32-bit program
    if machine.forbidden_bit is not None:
        number = machine.forbidden_bit | 1
        assert evaluate(program, number=number, audit=machine.audit) == refused
    assert evaluate(program, number=39_999, audit=machine.audit) == ALLOW


def test_a_packed_program_is_eight_bytes_an_instruction() -> None:
    program = build(X86_64, Wanted(reads=True, locks=True, standard_streams=True))
    data = packed(program)
    assert len(data) == 8 * len(program)
    assert struct.unpack_from("=HBBI", data) == (0x20, 0, 0, 4)


def test_every_jump_stays_in_the_program() -> None:
    for machine in MACHINES:
        for wanted in (Wanted(), Wanted(reads=True, locks=True, standard_streams=True)):
            program = build(machine, wanted)
            for place, step in enumerate(program):
                assert place + 1 + max(step.if_true, step.if_false) <= len(program)
