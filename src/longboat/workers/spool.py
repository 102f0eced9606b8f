"""The daemon's side of the spool: hooks that agents left, in the order in which they happened."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from longboat.workers.store import Home, write_log


class Event(NamedTuple):
    """One hook of one agent."""

    name: str
    kind: str
    worker: str
    spawn: str
    time: float
    session_id: str = ""
    source: str = ""
    prompt: str = ""
    transcript: str = ""


def read(home: Home, seen: tuple[str, ...]) -> list[Event]:
    """All waiting hooks that were not applied yet, oldest first."""
    events = []
    for name in names(home):
        if name in seen:
            continue
        path = os.path.join(home.spool, name)
        try:
            with open(path, "rb") as file:
                events.append(parse(name, file.read()))
        except FileNotFoundError:
            continue
        except ValueError as error:
            write_log(home, f"hook {name} is unreadable ({error}); set aside")
            os.rename(path, path + ".bad")
    return events


def names(home: Home) -> list[str]:
    """The files that wait, oldest first; half-written ones have another name."""
    waiting = os.listdir(home.spool)
    return sorted(name for name in waiting if name.endswith(".hook") and name[0] != ".")


def parse(name: str, raw: bytes) -> Event:
    """One hook from its file; a payload that is no JSON still counts as the event itself."""
    header, _, payload = raw.partition(b"\n")
    fields = header.decode().split(" ")
    if len(fields) != 6 or fields[:2] != ["longboat-hook", "1"]:
        raise ValueError("no longboat hook header")
    data = _payload(payload)
    return Event(
        name=name,
        kind=fields[2],
        worker=fields[3],
        spawn=fields[4],
        time=int(fields[5]) / 1e9,
        session_id=_text(data, "session_id"),
        source=_text(data, "source") or _text(data, "reason"),
        prompt=_text(data, "prompt"),
        transcript=_text(data, "transcript_path"),
    )


def _payload(raw: bytes) -> dict[str, Any]:
    try:
        data = json.loads(raw or b"{}")
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _text(data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def remove(home: Home, applied: tuple[str, ...]) -> None:
    """Forget hooks whose effect is saved."""
    for name in applied:
        try:
            os.unlink(os.path.join(home.spool, name))
        except FileNotFoundError:
            continue
