"""The answers of the fake model API, in the three shapes that agents speak: messages, chat
completions, responses.

Insight: an answer is first a list of pieces (texts and tool calls) and only then bytes, so that a
plain and a streamed answer, in any of the shapes, say the same. Identifiers are counted, not
random: two runs give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mutiny.doubles.model_api.script import Step, Tool

Shape = Literal["messages", "chat", "responses"]
Json = dict[str, object]
CREATED = 1_700_000_000
"""One fixed moment: an answer must not depend on when it is given."""

SHAPES: dict[str, Shape] = {
    "/v1/messages": "messages",
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
}
ERROR_TYPES = {
    400: "invalid_request_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What to say to one request."""

    shape: Shape
    number: int
    model: str
    step: Step
    input_tokens: int
    wants_usage: bool = False

    @property
    def text(self) -> str:
        """What is said, with the calls of tools where they are said, too."""
        if not self.step.in_text:
            return self.step.text
        return "\n".join((self.step.text, *map(_spoken, self.step.tools)))

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The calls that the answer has a place of its own for."""
        return () if self.step.in_text else self.step.tools

    @property
    def output_tokens(self) -> int:
        """A plausible count."""
        return max(1, len(self.text) // 4)

    def body(self) -> bytes:
        """The whole answer as one JSON document."""
        return compact(
            {"messages": self._message, "chat": self._chat, "responses": self._response}[
                self.shape
            ]()
        )

    def events(self) -> Iterator[bytes]:
        """The answer as server-sent events, each of them complete."""
        shapes = {
            "messages": self._message_events,
            "chat": self._chat_events,
            "responses": self._response_events,
        }
        return shapes[self.shape]()

    def told(self) -> Json:
        """What the log says of it: status, and of an answer that comes whole its tokens and tools;
        of one that does not, what it would have asked for.
        """
        refused = {"429": 429, "529": 529, "500": 500}.get(self.step.fault or "")
        silent = self.step.fault in ("hang", "reset", "close")
        whole = self.step.fault in (None, "slow-start", "split-utf8")
        return {
            "status": refused or (0 if silent else 200),
            "retry_after_s": self.step.retry_after_s,
            "input_tokens": self.input_tokens if whole else 0,
            "output_tokens": self.output_tokens if whole else 0,
            "tools": [_told_tool(tool) for tool in self.step.tools] if whole else [],
            "meant": [_told_tool(tool) for tool in self.step.tools] if not whole else [],
        }

    def error_event(self) -> bytes:
        """An error in the middle of a stream."""
        error = {"type": "overloaded_error", "message": "Overloaded"}
        if self.shape == "chat":
            return event(None, {"error": error})
        return event("error", {"type": "error", "error": error})

    # --- messages

    def _message(self) -> Json:
        content: list[Json] = [{"type": "text", "text": self.text}]
        content += [
            {"type": "tool_use", "id": self._call_id(i), "name": tool.name, "input": tool.input}
            for i, tool in enumerate(self.tools)
        ]
        return {
            "id": f"msg_{self.number:08d}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": "tool_use" if self.tools else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens},
        }

    def _message_events(self) -> Iterator[bytes]:
        def tell(kind: str, **rest: object) -> bytes:
            return event(kind, {"type": kind, **rest})

        start = self._message() | {"content": [], "stop_reason": None}
        start["usage"] = {"input_tokens": self.input_tokens, "output_tokens": 1}
        yield tell("message_start", message=start)
        yield tell("content_block_start", index=0, content_block={"type": "text", "text": ""})
        yield tell("ping")
        for word in words(self.text):
            delta = {"type": "text_delta", "text": word}
            yield tell("content_block_delta", index=0, delta=delta)
        yield tell("content_block_stop", index=0)
        for index, tool in enumerate(self.tools, 1):
            block = {
                "type": "tool_use",
                "id": self._call_id(index - 1),
                "name": tool.name,
                "input": {},
            }
            yield tell("content_block_start", index=index, content_block=block)
            delta = {"type": "input_json_delta", "partial_json": arguments(tool)}
            yield tell("content_block_delta", index=index, delta=delta)
            yield tell("content_block_stop", index=index)
        reason = "tool_use" if self.tools else "end_turn"
        yield tell(
            "message_delta",
            delta={"stop_reason": reason, "stop_sequence": None},
            usage={"output_tokens": self.output_tokens},
        )
        yield tell("message_stop")

    # --- chat completions

    def _chat_calls(self) -> list[Json]:
        return [
            {
                "index": index,
                "id": self._call_id(index),
                "type": "function",
                "function": {"name": tool.name, "arguments": arguments(tool)},
            }
            for index, tool in enumerate(self.tools)
        ]

    def _chat_usage(self) -> Json:
        total = self.input_tokens + self.output_tokens
        return {
            "prompt_tokens": self.input_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": total,
        }

    def _chat_frame(self, kind: str, choices: list[Json]) -> Json:
        return {
            "id": f"chatcmpl-{self.number:08d}",
            "object": kind,
            "created": CREATED,
            "model": self.model,
            "choices": choices,
        }

    def _chat(self) -> Json:
        message: Json = {"role": "assistant", "content": self.text}
        if self.tools:
            message["tool_calls"] = self._chat_calls()
        choice: Json = {"index": 0, "message": message, "finish_reason": self._finish()}
        return self._chat_frame("chat.completion", [choice]) | {"usage": self._chat_usage()}

    def _finish(self) -> str:
        return "tool_calls" if self.tools else "stop"

    def _chat_events(self) -> Iterator[bytes]:
        def chunk(delta: Json, finish: str | None = None) -> bytes:
            choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
            return event(None, self._chat_frame("chat.completion.chunk", [choice]))

        yield chunk({"role": "assistant", "content": ""})
        for word in words(self.text):
            yield chunk({"content": word})
        for call in self._chat_calls():
            yield chunk({"tool_calls": [call]})
        yield chunk({}, self._finish())
        if self.wants_usage:
            frame = self._chat_frame("chat.completion.chunk", []) | {"usage": self._chat_usage()}
            yield event(None, frame)
        yield b"data: [DONE]\n\n"

    # --- responses

    def _text_item(self, status: str, text: str | None) -> Json:
        parts = [] if text is None else [{"type": "output_text", "text": text, "annotations": []}]
        return {
            "type": "message",
            "id": f"item_{self.number:08d}",
            "status": status,
            "role": "assistant",
            "content": parts,
        }

    def _call_items(self) -> list[Json]:
        return [
            {
                "type": "function_call",
                "id": f"fc_{self.number:08d}_{index}",
                "call_id": self._call_id(index),
                "name": tool.name,
                "arguments": arguments(tool),
                "status": "completed",
            }
            for index, tool in enumerate(self.tools)
        ]

    def _response(self, status: str = "completed") -> Json:
        complete = status == "completed"
        usage: Json = {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.input_tokens + self.output_tokens,
        }
        items = [self._text_item("completed", self.text), *self._call_items()]
        return {
            "id": f"resp_{self.number:08d}",
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "model": self.model,
            "output": items if complete else [],
            "usage": usage if complete else None,
        }

    def _response_events(self) -> Iterator[bytes]:
        counted = iter(range(1 << 30))

        def tell(kind: str, **rest: object) -> bytes:
            return event(kind, {"type": kind, "sequence_number": next(counted), **rest})

        item = f"item_{self.number:08d}"
        place: Json = {"item_id": item, "output_index": 0, "content_index": 0}
        part = {"type": "output_text", "text": self.text, "annotations": []}
        yield tell("response.created", response=self._response("in_progress"))
        yield tell("response.in_progress", response=self._response("in_progress"))
        yield tell(
            "response.output_item.added", output_index=0, item=self._text_item("in_progress", None)
        )
        yield tell("response.content_part.added", part=part | {"text": ""}, **place)
        for word in words(self.text):
            yield tell("response.output_text.delta", delta=word, **place)
        yield tell("response.output_text.done", text=self.text, **place)
        yield tell("response.content_part.done", part=part, **place)
        done = self._text_item("completed", self.text)
        yield tell("response.output_item.done", output_index=0, item=done)
        for index, call in enumerate(self._call_items(), 1):
            begun = call | {"arguments": "", "status": "in_progress"}
            at: Json = {"item_id": call["id"], "output_index": index}
            yield tell("response.output_item.added", output_index=index, item=begun)
            yield tell("response.function_call_arguments.delta", delta=call["arguments"], **at)
            yield tell("response.function_call_arguments.done", arguments=call["arguments"], **at)
            yield tell("response.output_item.done", output_index=index, item=call)
        yield tell("response.completed", response=self._response())

    def _call_id(self, index: int) -> str:
        prefix = "toolu" if self.shape == "messages" else "call"
        return f"{prefix}_{self.number:08d}_{index}"


def _spoken(tool: Tool) -> str:
    """A call of a tool in words."""
    given = json.dumps(tool.input, ensure_ascii=False)
    return f"<tool>\n<name>{tool.name}</name>\n<arguments>{given}</arguments>\n</tool>"


def _told_tool(tool: Tool) -> Json:
    """A tool call in the log: its name and path, and of a content its digest and size."""
    said: Json = {"name": tool.name, "path": tool.input.get("path")}
    content = tool.input.get("content")
    if isinstance(content, str):
        data = content.encode()
        said |= {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    return said


def error_body(status: int, message: str, shape: Shape) -> bytes:
    """The body of a refusal, as the real services write it."""
    error: Json = {"type": ERROR_TYPES.get(status, "api_error"), "message": message}
    if shape == "messages":
        return compact({"type": "error", "error": error})
    return compact({"error": error | {"param": None, "code": None}})


def models_body(names: tuple[str, ...], *, anthropic: bool) -> bytes:
    """The list of models."""
    if anthropic:
        data = [
            {
                "type": "model",
                "id": name,
                "display_name": name,
                "created_at": "2025-01-01T00:00:00Z",
            }
            for name in names
        ]
        ends = {"first_id": names[0], "last_id": names[-1]} if names else {}
        return compact({"data": data, "has_more": False, **ends})
    rows = [
        {"id": name, "object": "model", "created": CREATED, "owned_by": "mutiny"} for name in names
    ]
    return compact({"object": "list", "data": rows})


def event(kind: str | None, data: Json) -> bytes:
    """One server-sent event."""
    head = f"event: {kind}\n".encode() if kind else b""
    return head + b"data: " + compact(data) + b"\n\n"


def words(text: str) -> list[str]:
    """The text in small pieces that add up to it."""
    return re.findall(r"\S+\s*|\s+", text)


def arguments(tool: Tool) -> str:
    """The input of a tool call as a JSON text."""
    return json.dumps(tool.input, ensure_ascii=False)


# Made once: json.dumps would make a new encoder for each event.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def compact(data: Json) -> bytes:
    """JSON as the services write it: UTF-8, no spaces."""
    return _encode(data).encode()
