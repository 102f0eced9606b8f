"""The management tool: what to say to a server, and what it said."""

from __future__ import annotations

from redqueue.resp import decode, encode

__all__ = ["main", "render"]


def render(data: bytes) -> str:
    """An answer as text."""
    value, _ = decode(data)
    if value is None:
        return "(nothing)"
    if isinstance(value, list):
        return "\n".join(str(one) for one in value)
    return str(value)


def main(words: list[str], send: object) -> str:
    """One command: `send` takes bytes and gives the answer's."""
    if not words:
        return "usage: redqueue PUT|TAKE|DONE|FAIL|STATS ..."
    return render(send(encode(list(words))))  # type: ignore[operator]
