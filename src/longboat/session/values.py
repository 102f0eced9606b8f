"""Names, refusals and the one form of bytes that a digest is made of."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from longboat.errors import LongboatError, UsageError

Json = dict[str, Any]
SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}\Z")
"""Names of sessions, agents and tasks: they become names of files and words of prompts."""
ENDED = ("complete", "stopped", "failed")
LOOKS = ("status", "health", "metrics")
"""Commands that change nothing."""
CHECKS = (
    "git_clean",
    "files_saved",
    "tests_compile",
    "nothing_uncommitted",
    "agents_serialized",
    "memory_complete",
    "metrics_logged",
    "no_active_tools",
    "votes_resolved",
    "errors_empty",
)
"""What every checkpoint must be able to say of itself."""


class Refused(LongboatError):
    """A command that cannot be obeyed: its kind for programs, its words for people."""

    def __init__(self, kind: str, text: str, **more: Any) -> None:
        super().__init__(text)
        self.kind = kind
        self.more = more

    def answer(self) -> Json:
        """What the command prints."""
        return {"ok": False, "refused": self.kind, "text": str(self), **self.more}


def too_late(name: str, status: str, verb: str) -> Refused:
    """The refusal of a command that only a running session can obey."""
    if status in ENDED:
        return Refused("finished", f"Session {name} is {status}; there is nothing to {verb}")
    return Refused("not_running", f"Session {name} is not running: recover it")


def check_name(name: str, what: str) -> str:
    """Refuse a name that could leave its directory."""
    if not SAFE.match(name):
        raise UsageError(f"{what} {name[:60]!r}: letters, digits, '_' and '-', at most 40")
    return name


def compact(value: Any) -> bytes:
    """The same value always gives the same bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest(data: bytes) -> str:
    """SHA-256 as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
