"""The last thing that runs before a traced command: install the filter, hand its listener out,
exec.

Insight: the listener must leave the box before the first trapped call, and no call that is trapped
may happen in between, because nobody could answer it. So the line to the supervisor is opened
first; after the filter only ``sendmsg``, ``recv`` and ``execve`` follow. The line closes by itself
when the exec succeeds; if it fails, the reason goes over it.

It runs inside the box in an isolated interpreter (``python -IS``): standard library only and few
imports, because each traced command pays for them.
"""

from __future__ import annotations

import _socket
import os
import sys
from binascii import a2b_base64

TYPE_CHECKING = False  # the real one would import typing, which costs more than this module
if TYPE_CHECKING:
    from typing import Any, NoReturn

_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_SET_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE_RECV = 1 << 3, 1 << 5
_CONNECT_LIMIT_S = 10.0
_BYTES_PER_INSTRUCTION = 8
NOT_STARTED = 127
GO = b"G"

BOOT = (
    "import sys;sys.path.insert(0,sys.argv[1]);from mutiny.syscalls.launcher import main;"
    "main(sys.argv[2:])"
)


def install(program: bytes, seccomp_number: int) -> int:
    """Put the filter on this process and all that it will start; return the listener."""
    # The core of ctypes without its comfort, which costs as much as half an interpreter start.
    core: Any = __import__("_ctypes")
    long: Any = type("Long", (core._SimpleCData,), {"_type_": "l"})
    byte: Any = type("Byte", (core._SimpleCData,), {"_type_": "c"})
    array = {"_type_": byte, "_length_": len(program)}
    code: Any = type("Code", (core.Array,), array)()
    code.raw = program
    calling = {"_flags_": core.FUNCFLAG_CDECL | core.FUNCFLAG_USE_ERRNO, "_restype_": long}
    function: Any = type("Function", (core.CFuncPtr,), calling)
    library = core.dlopen(None, 0)
    prctl = function(core.dlsym(library, "prctl"))
    syscall = function(core.dlsym(library, "syscall"))
    if prctl(_PR_SET_NO_NEW_PRIVS, long(1), long(0), long(0), long(0)) != 0:
        raise OSError(core.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS) failed")
    # struct sock_fprog: a length, a gap, a pointer
    count = len(program) // _BYTES_PER_INSTRUCTION
    packed = count.to_bytes(8, sys.byteorder) + core.addressof(code).to_bytes(8, sys.byteorder)
    flags = long(_NEW_LISTENER | _WAIT_KILLABLE_RECV)
    found = int(syscall(long(seccomp_number), long(_SECCOMP_SET_MODE_FILTER), flags, packed))
    if found < 0:
        number = core.get_errno()
        reasons = {
            16: "this process is already under another listener; do not wrap a command twice",
            22: "the kernel refuses the filter; WAIT_KILLABLE_RECV needs Linux 5.19 or later",
        }
        raise OSError(number, reasons.get(number, f"seccomp failed: {os.strerror(number)}"))
    return found


def original_environment() -> dict[bytes, bytes]:
    """The environment as it was given to us; the interpreter may have added to its own copy."""
    with open("/proc/self/environ", "rb") as file:
        pairs = (entry.partition(b"=") for entry in file.read().split(b"\0") if entry)
        return {name: value for name, _, value in pairs}


def main(words: list[str]) -> None:
    """``SOCKET SECCOMP_NUMBER PROGRAM TAG COMMAND...``: become COMMAND, with the filter on."""
    place, seccomp_number, program, tag, *command = words
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    line.settimeout(_CONNECT_LIMIT_S)
    environment = original_environment()
    try:
        line.connect(place)
    except OSError as error:
        _give_up(f"no supervisor at {place}: {error.strerror}")
    line.settimeout(None)
    try:
        listener = install(a2b_base64(program), int(seccomp_number))
    except OSError as error:
        _tell(line, tag, str(error.strerror))
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, listener.to_bytes(4, sys.byteorder))]
    line.sendmsg([b"L" + os.fsencode(tag)], rights)
    os.close(listener)
    if line.recv(1) != GO:
        _give_up("the supervisor does not want this command to start")
    signals: Any = __import__("_signal")  # the comfortable one imports enum
    for number in (signals.SIGPIPE, signals.SIGXFSZ):  # the interpreter ignores them, we must not
        signals.signal(number, signals.SIG_DFL)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        _tell(line, tag, f"cannot start {command[0]!r}: {error.strerror}")


def _tell(line: _socket.socket, tag: str, reason: str) -> NoReturn:
    line.send(b"!" + os.fsencode(f"{tag}\0{reason}"))
    _give_up(reason)


def _give_up(reason: str) -> NoReturn:
    os.write(2, os.fsencode(f"mutiny launcher: {reason}\n"))
    os._exit(NOT_STARTED)
