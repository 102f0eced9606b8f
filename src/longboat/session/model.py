"""One request to a model's API, streamed: what it answered, or which kind of error it was.

Written by hand over a socket: every wait has the one deadline of the whole request, so that a stream
that trickles for ever ends as surely as one that stalls.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.parse
from typing import Any

from longboat.session.values import Json

_STATUSES = {429: "rate_limit", 500: "overload", 502: "overload", 503: "overload"}
_STATUSES |= {504: "overload", 529: "overload"}
_LINE_LIMIT = 64 * 1024 * 1024


class Failed(Exception):
    """The request brought nothing: the kind of error decides what follows."""

    def __init__(self, kind: str, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.retry_after_s = retry_after_s


def ask(url: str, body: Json, timeout_s: float) -> Json:
    """The whole answer: text, tools, tokens; raises Failed."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise Failed("network_timeout", f"{url!r} is no address of a model (http://...)")
    deadline = time.monotonic() + timeout_s
    line = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout_s)
    try:
        data = json.dumps({**body, "stream": True}, ensure_ascii=False).encode()
        headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
        line.request("POST", f"{parts.path.rstrip('/')}/v1/messages", data, headers)
        answer = line.getresponse()
        if answer.status != 200:
            raise _refusal(answer)
        return _Stream(line, answer, deadline).whole()
    except TimeoutError:
        raise Failed("network_timeout", f"no answer in {timeout_s:g} s") from None
    except (http.client.HTTPException, ConnectionError) as error:
        raise Failed("network_timeout", f"{type(error).__name__}: {error}") from None
    except OSError as error:
        raise Failed("network_timeout", str(error)) from None
    finally:
        line.close()


def _refusal(answer: http.client.HTTPResponse) -> Failed:
    text = answer.read(2000).decode("utf-8", "replace")
    after = answer.headers.get("retry-after", "")
    wait_s = float(after) if after.replace(".", "", 1).isdigit() else None
    kind = _STATUSES.get(answer.status, "refused")
    return Failed(kind, f"status {answer.status}: {text[:200]}", wait_s)


class _Stream:
    """Server-sent events put together again."""

    def __init__(
        self, line: http.client.HTTPConnection, answer: http.client.HTTPResponse, deadline: float
    ) -> None:
        self._line = line
        self._answer = answer
        self._deadline = deadline
        self._text: list[str] = []
        self._tools: list[Json] = []
        self._usage = {"input_tokens": 0, "output_tokens": 0}
        self._begun = False
        self._ended = False

    def whole(self) -> Json:
        """Read to the end; an answer without its end is none."""
        while raw := self._next_line():
            line = raw.strip()
            if line.startswith(b"data:"):
                self._take(line[5:])
        if not self._ended:
            kind = "network_timeout" if self._begun else "parse_failure"
            raise Failed(
                kind, "the answer has no end" if self._begun else "it is no stream of events"
            )
        tools = [
            {"id": one["id"], "name": one["name"], "input": _arguments(one["json"])}
            for one in self._tools
        ]
        return {"text": "".join(self._text), "tools": tools, **self._usage}

    def _next_line(self) -> bytes:
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        if self._line.sock is not None:
            self._line.sock.settimeout(left_s)
        return self._answer.readline(_LINE_LIMIT)

    def _take(self, data: bytes) -> None:
        try:
            event = json.loads(data)
            self._begun = True
            self._event(event["type"], event)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise Failed("parse_failure", f"an event cannot be read: {error!r}"[:200]) from None

    def _event(self, kind: str, event: Any) -> None:
        match kind:
            case "message_start":
                self._usage["input_tokens"] = int(event["message"]["usage"]["input_tokens"])
            case "content_block_start" if event["content_block"]["type"] == "tool_use":
                block = event["content_block"]
                self._tools.append({"id": block["id"], "name": block["name"], "json": ""})
            case "content_block_delta" if event["delta"]["type"] == "text_delta":
                self._text.append(event["delta"]["text"])
            case "content_block_delta" if event["delta"]["type"] == "input_json_delta":
                self._tools[-1]["json"] += event["delta"]["partial_json"]
            case "message_delta":
                self._usage["output_tokens"] = int(event["usage"]["output_tokens"])
            case "message_stop":
                self._ended = True
            case "error":
                raise Failed("overload", str(event.get("error"))[:200])


def _arguments(text: str) -> Json:
    try:
        made = json.loads(text or "{}")
    except ValueError:
        made = None
    if not isinstance(made, dict):
        raise Failed("parse_failure", "the arguments of a tool are no JSON object")
    return made
