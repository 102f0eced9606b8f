"""The write-ahead log: what was promised before it was done, and survives a crash."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

__all__ = ["Log", "decode", "encode"]


def encode(record: dict[str, Any]) -> bytes:
    """A record as one line with its checksum."""
    data = json.dumps(record, sort_keys=True).encode()
    return b"%08x %b\n" % (zlib.crc32(data), data)


def decode(data: bytes) -> Iterator[dict[str, Any]]:
    """All records up to the first that is not whole: behind it nothing can be trusted."""
    for line in data.splitlines(keepends=True):
        if not line.endswith(b"\n") or len(line) < 10:
            return
        if b"%08x" % zlib.crc32(line[9:-1]) != line[:8]:
            return
        yield json.loads(line[9:])


class Log:
    """A log in memory; a file would sync where this one notes that it did."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = data
        self.synced = len(self.data)

    def append(self, record: dict[str, Any]) -> None:
        """One more record, not yet safe."""
        self.data += encode(record)

    def sync(self) -> None:
        """Everything is safe now."""
        self.synced = len(self.data)

    def crash(self) -> bytes:
        """What a crash would leave."""
        return self.data[: self.synced]

    def committed(self) -> list[dict[str, Any]]:
        """The changes of all transactions that were committed, in order."""
        changes: dict[int, list[dict[str, Any]]] = {}
        done: list[dict[str, Any]] = []
        for record in decode(self.data):
            if record["kind"] == "commit":
                done += changes.pop(record["id"], [])
            elif record["kind"] == "change":
                changes.setdefault(record["id"], []).append(record)
        return done
