"""The session file of each provider, with what an orchestrator reads in it."""

from __future__ import annotations

import json
import os
import time

from mutiny.doubles.agents.records import Transcript


class Session:
    """The session of one provider process; `begin` writes the prompt down, `say` an answer."""

    def __init__(self, provider: str, identity: str, cwd: str, model: str) -> None:
        self.provider = provider
        self.identity = identity
        self._transcript = Transcript(cwd, identity, model)
        self._cwd = cwd
        self._began = time.gmtime()
        self._messages: list[dict[str, str]] = []
        self.path = self._path()

    def _path(self) -> str:
        if self.provider == "claude":
            return self._transcript.path
        home, began = os.environ.get("HOME", "/"), self._began
        if self.provider == "codex":
            day = time.strftime("%Y/%m/%d", time.localtime())
            stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.localtime())  # local, as the real one
            name = f"rollout-{stamp}-{self.identity}.jsonl"
            return os.path.join(home, ".codex", "sessions", *day.split("/"), name)
        import hashlib

        folder = hashlib.sha256(self._cwd.encode()).hexdigest()
        name = f"session-{time.strftime('%Y-%m-%dT%H-%M', began)}-{self.identity[:8]}.json"
        return os.path.join(home, ".gemini", "tmp", folder, "chats", name)

    def begin(self, prompt: str) -> None:
        """The session with its prompt."""
        if self.provider == "claude":
            self._transcript.user(prompt)
        elif self.provider == "codex":
            meta = {"id": self.identity, "cwd": self._cwd, "originator": "codex_exec"}
            self._line({"type": "session_meta", "payload": meta})
            self._codex("user", "input_text", prompt)
        else:
            self._gemini("user", prompt)

    def say(self, text: str) -> None:
        """One more answer."""
        if self.provider == "claude":
            self._transcript.assistant(text)
        elif self.provider == "codex":
            self._codex("assistant", "output_text", text)
        else:
            self._gemini("gemini", text)

    def _codex(self, role: str, kind: str, text: str) -> None:
        content = [{"type": kind, "text": text}]
        payload = {"type": "message", "role": role, "content": content}
        self._line({"type": "response_item", "payload": payload})

    def _line(self, value: dict[str, object]) -> None:
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "ab", buffering=0) as file:
            file.write(json.dumps({"timestamp": _stamp(), **value}).encode("ascii") + b"\n")

    def _gemini(self, kind: str, text: str) -> None:
        """The real one writes the whole document again and again."""
        self._messages.append({"type": kind, "content": text, "timestamp": _stamp()})
        started = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", self._began)
        document = {
            "sessionId": self.identity,
            "startTime": started,
            "lastUpdated": _stamp(),
            "messages": self._messages,
        }
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(f"{self.path}.tmp", "w", encoding="ascii") as file:
            json.dump(document, file)
        os.rename(f"{self.path}.tmp", self.path)


def _stamp() -> str:
    seconds = time.time()
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{text}.{int(seconds * 1000) % 1000:03d}Z"
