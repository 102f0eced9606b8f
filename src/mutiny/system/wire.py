"""What goes over the line between Mutiny and a box: JSON behind its length, bytes as base64.

Lean by intention: the agent in a box loads it. Each end reads and writes the JSON itself: Mutiny with
`json`, the agent with `box/lean_json.py`.
"""

from __future__ import annotations

_HEADER_BYTES = 4
_LARGEST_BYTES = 256 * 1024 * 1024


def packed(data: bytes) -> str:
    """Bytes as base64."""
    if not data:
        return ""
    from binascii import b2a_base64

    return b2a_base64(data, newline=False).decode()


def unpacked(text: str) -> bytes:
    """The bytes behind base64."""
    if not text:
        return b""
    from binascii import a2b_base64

    return a2b_base64(text)


def framed(text: str) -> bytes:
    """A message as it goes over the line: its length in 4 bytes, big-endian, and its text."""
    body = text.encode()
    return len(body).to_bytes(_HEADER_BYTES, "big") + body


def first_message(arrived: bytearray) -> str | None:
    """Take the text of the first message out of what has arrived; None while it is not complete."""
    if len(arrived) < _HEADER_BYTES:
        return None
    length = int.from_bytes(arrived[:_HEADER_BYTES], "big")
    if length > _LARGEST_BYTES:
        raise ValueError(f"a message of {length} bytes is announced, which cannot be right")
    end = _HEADER_BYTES + length
    if len(arrived) < end:
        return None
    text = arrived[_HEADER_BYTES:end].decode()
    del arrived[:end]
    return text
