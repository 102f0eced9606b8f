"""Files of checkpoints, damaged on purpose."""

from __future__ import annotations

import json
from typing import Any

from mutiny.contracts.session.checkpoints import digest_of
from mutiny.foreign import parse
from mutiny.system.files import BoxPath

ALIEN = "mutiny was here"
NEEDED = "file_system_state"
"""A field without which nobody can go on."""


def checkpoint(path: BoxPath, part: str, *, needed: str = NEEDED, key: bytes | None = None) -> None:
    """A checkpoint that reads as one, and is none; or only half of it. With a key, digests are HMACs."""
    data = path.read_bytes()
    if part in ("newest", "all"):
        path.overwrite(data[: len(data) // 2])
        return
    envelope = parse(data)
    if part == "key":
        first = str(envelope["sha256"])
        envelope["sha256"] = ("1" if first[0] == "0" else "0") + first[1:]
    elif part == "field":
        _shorten(envelope, needed, key)
    else:
        _alter(envelope["payload"])
    path.overwrite(json.dumps(envelope).encode() + b"\n")


def _alter(payload: dict[str, Any]) -> None:
    """Something that was said is another thing now; the payload still reads as one."""
    if isinstance(payload.get("working_memory"), dict):
        payload["working_memory"]["mutiny"] = ALIEN
        return
    texts = [name for name, value in payload.items() if isinstance(value, str) and " " in value]
    payload[texts[0]] += f" {ALIEN}"


def _shorten(envelope: dict[str, Any], needed: str, key: bytes | None) -> None:
    """What another version of the program may have written: whole, and without a field that is needed."""
    payload = envelope["payload"]
    if needed not in payload:
        _alter(payload)
        return
    del payload[needed]
    envelope["sha256"] = digest_of(payload, key)


def last_line(path: BoxPath) -> None:
    """One bit of the last line is another one."""
    lines = path.read_bytes().splitlines()
    last = bytearray(lines[-1])
    last[len(last) // 2] ^= 1
    path.overwrite(b"\n".join([*lines[:-1], bytes(last)]) + b"\n")
