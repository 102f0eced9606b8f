"""Putting the providers into a box, scripting them, and reading what they did; never runs in a box."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from mutiny.doubles.agents.records import RECEIVED_FILE
from mutiny.doubles.install import launcher, whole_lines
from mutiny.doubles.providers.launch import PROVIDERS
from mutiny.doubles.providers.script import SCRIPT_FILE, SCRIPT_VERSION, STEPS, UnknownStep, check
from mutiny.system.files import BoxPath

__all__ = [
    "PROVIDERS",
    "RECEIVED_FILE",
    "SCRIPT_FILE",
    "STEPS",
    "UnknownStep",
    "install",
    "read_received",
    "write_script",
]


def install(bin_dir: BoxPath, desk: BoxPath, *, python: str | None = None) -> None:
    """Write `claude`, `codex` and `gemini` into ``bin_dir``, and make the desk that they read and write.

    A launcher finds the desk by MUTINY_DOUBLES, else relative to itself.
    """
    bin_dir.mkdir(parents=True, exist_ok=True)
    (desk / "holds").mkdir(parents=True, exist_ok=True)
    relative = os.path.relpath(desk.host, bin_dir.host)
    for name in PROVIDERS:
        text = launcher(
            "from mutiny.doubles.providers.provider import main",
            f"main({name!r}, sys.argv[1:], _doubles)",
            relative,
            python,
        )
        (bin_dir / name).replace_bytes(text.encode(), 0o755)


def write_script(
    desk: BoxPath,
    agents: Mapping[str, Sequence[str]],
    *,
    tokens: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    default: Sequence[str] = ("reply",),
    send: Sequence[str] = (),
) -> None:
    """Write script.json atomically; providers that start from now on follow it.

    Args:
        desk: The directory given to ``install``.
        agents: Behaviours by agent, one for each turn, the last one repeats; ``*`` is everybody else.
        tokens: Behaviours by token and agent; they come first.
        default: Behaviours when there is neither.
        send: The command by which an agent posts, with {channel}, {agent} and {text}.

    Raises:
        UnknownStep: A behaviour does not exist; nothing is written.
    """
    script: dict[str, Any] = {
        "version": SCRIPT_VERSION,
        "default": check(default),
        "agents": {name: check(row) for name, row in agents.items()},
        "tokens": {
            token: {name: check(row) for name, row in rows.items()}
            for token, rows in (tokens or {}).items()
        },
    }
    if send:
        script["send"] = list(send)
    (desk / SCRIPT_FILE).replace_bytes(json.dumps(script, indent=1).encode())


def read_received(path: BoxPath, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """The records from a byte offset on, and the offset for the next call.

    What is no record of ours comes back as the event `torn` with its text.
    """
    lines, end = whole_lines(path, offset)
    records = []
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        ours = isinstance(record, dict) and isinstance(record.get("event"), str)
        torn = {"event": "torn", "detail": line.decode("utf-8", "replace")}
        records.append(record if ours else torn)
    return records, end
