"""What the real API refuses in a conversation: results that answer no call, calls that nobody answers.

Runs inside the box: standard library only.
"""

from __future__ import annotations

from typing import Any


def check_conversation(asked: dict[str, Any]) -> None:
    """A ValueError that says where: each result of a tool names a call of the message before it, each call
    is answered in the message behind it, and nothing that is said is empty.
    """
    messages = asked.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ValueError("messages: at least one message is required")
    open_calls: set[str] = set()
    for place, message in enumerate(messages):
        blocks = _blocks(message)
        results = {
            _named(f"messages.{place}.content.{number}.tool_result.tool_use_id", block)
            for number, block in enumerate(blocks)
            if block.get("type") == "tool_result"
        }
        if results - open_calls:
            known = ", ".join(sorted(results - open_calls))
            raise ValueError(f"messages.{place}: tool_result of {known}, which nobody called")
        if open_calls - results:
            left = ", ".join(sorted(open_calls - results))
            raise ValueError(f"messages.{place}: tool_use {left} without its tool_result")
        if not blocks or any(_is_empty(block) for block in blocks):
            raise ValueError(f"messages.{place}: content must not be empty")
        open_calls = {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}


def _blocks(message: Any) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)]


def _named(where: str, block: dict[str, Any]) -> str:
    if not block.get("tool_use_id"):
        raise ValueError(f"{where}: Field required")
    return str(block["tool_use_id"])


def _is_empty(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and not str(block.get("text", "")).strip()
