"""What the double writes down: received.jsonl for the oracle, and the agent's session file.

Each record is one append of one line, so records of many agents never mix; and a prompt is
recorded under a lock together with the reading of all earlier prompts, so that of two agents
that receive the same work at the same moment at least one sees the other.
"""

from __future__ import annotations

import fcntl
import json
import os
import time

from mutiny.doubles.agents import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

RECEIVED_FILE = "received.jsonl"
SCRIPT_FILE = "script.json"

TEXT_LIMIT = 500
"""Characters of a prompt that are kept in its record; the hash covers the whole."""

LOCK_WAIT_S = 0.5
"""A paused agent may hold the lock for ever; after this time the record is written without it."""

_RECORD_START = b'{"time":'
_PROMPT_MARK = b'"event":"prompt"'
_EXIT_AT_START_MARK = b'"reason":"exit-at-start"'


class CannotRecord(Exception):
    """received.jsonl cannot be written: whatever the agent did now would go unseen."""


def new_session_id() -> str:
    """Return a random (version 4) UUID; the uuid module would double the start-up time."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class EarlierPrompts:
    """All prompts that agents of this box have received so far, read incrementally."""

    def __init__(self, path: str, worker: str) -> None:
        self.turn = 0
        self._by_token: dict[str, list[tuple[int, int]]] = {}
        self._path = path
        self._worker = worker
        self._offset = 0

    def refresh(self) -> None:
        """Read what was appended since the last time; a half last line waits for its end."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.split(b"\n"):
            if _PROMPT_MARK not in line and _EXIT_AT_START_MARK not in line:
                continue
            # A writer killed in the middle of a line leaves its beginning in front of the next.
            whole = line[max(line.rfind(_RECORD_START), 0) :]
            if _PROMPT_MARK in whole or _EXIT_AT_START_MARK in whole:
                self._take(json.loads(whole))

    def carriers(self, tokens: Sequence[str]) -> list[tuple[int, int]]:
        """Return pid and start time of each agent that got one of the tokens, in that order."""
        return [agent for token in tokens for agent in self._by_token.get(token, [])]

    def _take(self, record: dict[str, object]) -> None:
        if record["worker"] == self._worker:
            self.turn += 1
        agent = (int(str(record["pid"])), int(str(record["start"])))
        tokens = record.get("tokens")
        for token in tokens if isinstance(tokens, list) else []:
            self._by_token.setdefault(token, []).append(agent)


class Log:
    """Appends the records of one agent process to received.jsonl."""

    def __init__(self, doubles_dir: str, worker: str, session: str) -> None:
        self.path = os.path.join(doubles_dir, RECEIVED_FILE)
        self.worker = worker
        self.session = session
        self.earlier = EarlierPrompts(self.path, worker)
        self._pid = os.getpid()
        self._start_ticks = processes.own_start_ticks()

    def write(self, event: str, **fields: object) -> None:
        """Append one record.

        Raises:
            CannotRecord: The line could not be written whole (full disk, directory gone).
        """
        record = {
            "time": time.time(),
            "event": event,
            "pid": self._pid,
            "start": self._start_ticks,
            "worker": self.worker,
            "session": self.session,
            **fields,
        }
        line = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
        try:
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                written = os.write(fd, line)
            finally:
                os.close(fd)
        except OSError as error:
            raise CannotRecord(f"{self.path}: {error}") from error
        if written != len(line):
            raise CannotRecord(f"{self.path}: only {written} of {len(line)} bytes were written")

    def problem(self, detail: str) -> None:
        """Record something that the double itself met and that must not go unseen."""
        self.write("problem", detail=detail)

    def lock(self) -> int:
        """Lock received.jsonl for a read that must belong to the next write; returns the fd."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise CannotRecord(f"{self.path}: {error}") from error
        deadline_s = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return fd
            except BlockingIOError:
                if time.monotonic() >= deadline_s:
                    self.problem("another agent holds the lock of received.jsonl; went on without")
                    return fd
                time.sleep(0.01)

    def earlier_carriers(self, tokens: Sequence[str]) -> list[dict[str, object]]:
        """Describe each agent that got one of the tokens before: who, alive now, and is it us."""
        me = (self._pid, self._start_ticks)
        return [
            {
                "pid": pid,
                "start": start,
                "alive": processes.is_alive(pid, start),
                "same_agent": (pid, start) == me,
            }
            for pid, start in self.earlier.carriers(tokens)
        ]


class Transcript:
    """The session file that the real agent keeps below ``~/.claude/projects``."""

    def __init__(self, cwd: str, session: str, model: str) -> None:
        folder = cwd.replace("/", "-").replace(".", "-")
        home = os.environ.get("HOME", "/")
        self.path = os.path.join(home, ".claude", "projects", folder, f"{session}.jsonl")
        self._cwd = cwd
        self._session = session
        self._model = model

    def exists(self) -> bool:
        """Whether the session has been written to before, so that it can be resumed."""
        return os.path.exists(self.path)

    def user(self, prompt: str) -> None:
        """Append the prompt."""
        self._append("user", {"role": "user", "content": prompt})

    def assistant(self, text: str) -> None:
        """Append the answer."""
        self._append("assistant", self.assistant_message(text))

    def assistant_message(self, text: str) -> dict[str, object]:
        """Return the answer in the model API's form; also used by stream-json."""
        return {
            "role": "assistant",
            "model": self._model,
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": max(1, len(text.split()))},
        }

    def _append(self, kind: str, message: dict[str, object]) -> None:
        seconds = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        line = {
            "type": kind,
            "sessionId": self._session,
            "cwd": self._cwd,
            "timestamp": f"{stamp}.{int(seconds * 1000) % 1000:03d}Z",
            "uuid": new_session_id(),
            "message": message,
        }
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "ab", buffering=0) as file:
            file.write(json.dumps(line).encode("ascii") + b"\n")
