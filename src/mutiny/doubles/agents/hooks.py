"""The hooks of the agent's settings files, run as the real agent runs them.

Settings are read once, at start: an orchestrator that changes them under a running agent sees no
effect, and that is a way in which completions get lost.
"""

from __future__ import annotations

import json
import os

from mutiny.doubles.agents import processes
from mutiny.doubles.agents.terminal import HungUp, Interrupted, Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutiny.doubles.agents.records import Log, Transcript

DEFAULT_TIMEOUT_S = 60.0

_MATCHED_FIELD = {"SessionStart": "source", "SessionEnd": "reason"}
"""The field of the event that a hook's ``matcher`` is compared with."""


class Hook:
    """One command of one event."""

    __slots__ = ("command", "matcher", "timeout_s")

    def __init__(self, command: str, matcher: str, timeout_s: float) -> None:
        self.command = command
        self.matcher = matcher
        self.timeout_s = timeout_s

    def matches(self, value: str) -> bool:
        """Whether the hook wants an event with this source or reason."""
        return self.matcher in ("", "*") or value in self.matcher.split("|")


def settings_sources(cwd: str, extra: Sequence[str]) -> list[str]:
    """Return the settings files in the order in which their hooks run."""
    home = os.environ.get("HOME", "/")
    files = [
        os.path.join(home, ".claude", "settings.json"),
        os.path.join(cwd, ".claude", "settings.json"),
        os.path.join(cwd, ".claude", "settings.local.json"),
        *extra,
    ]
    return list(dict.fromkeys(files))


def read_hooks(sources: Sequence[str], log: Log) -> dict[str, list[Hook]]:
    """Read the hooks of all sources; a broken one is recorded and skipped, as the agent does.

    A source is a file name, or JSON text (``--settings`` takes both).
    """
    hooks: dict[str, list[Hook]] = {}
    for source in sources:
        try:
            if source.lstrip().startswith("{"):
                settings = json.loads(source)
            else:
                with open(source, "rb") as file:
                    settings = json.loads(file.read())
            for event, entries in settings.get("hooks", {}).items():
                _add_entries(hooks.setdefault(event, []), entries)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
            log.problem(f"settings {source[:200]}: {type(error).__name__}: {error}")
    return hooks


def _add_entries(hooks: list[Hook], entries: Sequence[dict[str, object]]) -> None:
    for entry in entries:
        commands = entry["hooks"]
        if not isinstance(commands, list):
            raise TypeError("hooks must be a list")
        for item in commands:
            if item.get("type", "command") != "command":
                continue
            hook = Hook(
                item["command"],
                str(entry.get("matcher") or ""),
                float(item.get("timeout", DEFAULT_TIMEOUT_S)),
            )
            # The agent runs a command once for an event, however often it is configured.
            if all(known.command != hook.command for known in hooks):
                hooks.append(hook)


def run_hooks(
    hooks: Sequence[Hook],
    event: str,
    fields: dict[str, object],
    *,
    cwd: str,
    transcript: Transcript,
    log: Log,
    terminal: Terminal,
) -> None:
    """Run the hooks of one event one after the other and record how each ended."""
    payload = {
        "session_id": log.session,
        "transcript_path": transcript.path,
        "cwd": cwd,
        "permission_mode": "bypassPermissions",
        "hook_event_name": event,
        **fields,
    }
    stdin = json.dumps(payload).encode("ascii")
    environment = {**os.environ, "CLAUDE_PROJECT_DIR": cwd}
    for hook in hooks:
        if not hook.matches(str(fields.get(_MATCHED_FIELD.get(event, ""), ""))):
            continue
        try:
            finished = processes.run(
                ("/bin/sh", "-c", hook.command),
                terminal,
                environment=environment,
                stdin=stdin,
                timeout_s=hook.timeout_s,
            )
        except (Interrupted, HungUp):
            log.write("hook", name=event, exit_code=None, duration_ms=None, detail="interrupted")
            raise
        failure: dict[str, object] = {}
        if finished.timed_out:
            failure["timed_out"] = True
        if finished.exit_code != 0:
            failure["detail"] = finished.output[-500:]
        log.write(
            "hook",
            name=event,
            exit_code=finished.exit_code,
            duration_ms=finished.duration_ms,
            **failure,
        )
