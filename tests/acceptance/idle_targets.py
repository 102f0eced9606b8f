"""Programs that do nothing, each in another way: none of them may pass anything."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from mutiny.contracts.board import rules as board
from mutiny.contracts.workers import rules as workers

IDLE = {
    "says yes": "exit 0",
    "says yes in JSON": 'echo \'{"ok": true, "daemon_running": true, "task": "a", "epoch": 1, '
    '"token": 1, "counts": {}}\'',
    "says no": "exit 1",
    "always refuses": 'echo \'{"ok": false, "error": "busy"}\'; echo \'is locked by 1\' >&2; exit 1',
    "prints rubbish": "head -c 300 /dev/urandom",
    "repeats itself": 'last="$HOME/last"; cat "$last" 2>/dev/null; echo "$*" > "$last"',
    "writes a state": 'mkdir -p "$HOME/longboat"; echo \'{"workers": {"alpha": {"name": "alpha", '
    '"status": "idle", "session": "longboat-alpha"}}, "daemon_running": true}\' '
    '> "$HOME/longboat/state.json"; echo \'{"ok": true}\'',
}
_QUICK = (
    ("idle_s = 8.0", "idle_s = 0.5"),
    ("complete_s = 9.0", "complete_s = 0.5"),
    ("recover_s = 12.0", "recover_s = 0.5"),
    ("lag_s = 3.0", "lag_s = 0.2"),
)


def idle_program(directory: Path, how: str) -> Path:
    """A program that does nothing in this way."""
    path = directory / how.replace(" ", "-")
    path.write_text(f"#!/bin/sh\n{IDLE[how]}\n")
    path.chmod(0o755)
    return path


def excused_spec(directory: Path, target: str) -> Path:
    """A target file of longboat that is excused from every rule that allows it."""
    text = files("mutiny.targets.files").joinpath(f"{target}.toml").read_text()
    for old, new in _QUICK if target == "longboat" else ():
        assert old in text, old
        text = text.replace(old, new)
    module = workers if target == "longboat" else board
    excuses = [rule for rule in module.RULES if rule not in module.BINDING]
    text += "\n[profile.not_applicable]\n" + "".join(f'"{rule}" = "so be it"\n' for rule in excuses)
    path = directory / f"{target}-excused.toml"
    path.write_text(text)
    return path
