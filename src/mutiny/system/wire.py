"""What goes over the line between Mutiny and a box, in a form that costs nothing to load.

Messages are JSON behind their length (4 bytes, big-endian); bytes travel as base64.

Insight: `import json` brings `re` and `enum` with it, which costs the in-box agent as much as the whole
interpreter. The two C functions behind it need neither; where they are missing, `json` does it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the real one would import typing
if TYPE_CHECKING:
    from typing import Any

_HEADER_BYTES = 4
_LARGEST_BYTES = 256 * 1024 * 1024


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is no JSON")


class _Rules:
    """How the C scanner is to read: plainly."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner empties it after each text


def _python_half() -> tuple[Any, Any]:
    import json

    return json.loads, json.dumps


try:
    from _json import encode_basestring_ascii, make_encoder, make_scanner
except ImportError:
    loads, dumps = _python_half()
else:
    _rules: Any = _Rules
    _scan = make_scanner(_rules)
    _encode = make_encoder(
        None, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, True
    )

    def loads(text: str | bytes) -> Any:
        """The value that a JSON text stands for; `ValueError` when it is none."""
        if not isinstance(text, str):
            text = text.decode()
        try:
            return _scan(text, 0)[0]
        except StopIteration:
            raise ValueError("no JSON") from None

    def dumps(value: object) -> str:
        """A value as a JSON text."""
        return "".join(_encode(value, 0))


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


def framed(message: dict[str, Any]) -> bytes:
    """A message as it goes over the line."""
    body: bytes = dumps(message).encode()
    return len(body).to_bytes(_HEADER_BYTES, "big") + body


def first_message(arrived: bytearray) -> dict[str, Any] | None:
    """Take the first message out of what has arrived; None while it is not complete."""
    if len(arrived) < _HEADER_BYTES:
        return None
    length = int.from_bytes(arrived[:_HEADER_BYTES], "big")
    if length > _LARGEST_BYTES:
        raise ValueError(f"a message of {length} bytes is announced, which cannot be right")
    end = _HEADER_BYTES + length
    if len(arrived) < end:
        return None
    message: dict[str, Any] = loads(bytes(arrived[_HEADER_BYTES:end]))
    del arrived[:end]
    return message
