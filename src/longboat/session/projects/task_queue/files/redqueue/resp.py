"""RESP, the protocol of Redis: values to bytes and back, in pieces of any size."""

from __future__ import annotations

__all__ = ["Incomplete", "ProtocolError", "decode", "encode", "encode_error"]

Value = int | str | None | list["Value"]


class Incomplete(Exception):
    """More bytes are needed."""


class ProtocolError(ValueError):
    """These bytes are not RESP."""


def encode(value: Value) -> bytes:
    """A value as RESP: texts as bulk strings."""
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, str):
        data = value.encode()
        return b"$%d\r\n%b\r\n" % (len(data), data)
    return b"*%d\r\n" % len(value) + b"".join(map(encode, value))


def encode_error(text: str) -> bytes:
    """A refusal: one line."""
    return b"-ERR %b\r\n" % " ".join(text.split()).encode()


def decode(data: bytes, at: int = 0) -> tuple[Value, int]:
    """The value that begins at a place, and where the next one does."""
    end = data.find(b"\r\n", at)
    if end < 0:
        raise Incomplete
    kind, head = data[at : at + 1], data[at + 1 : end]
    if kind in (b"+", b"-"):
        return head.decode(), end + 2
    if kind not in (b":", b"$", b"*"):
        raise ProtocolError(f"unknown type {kind!r}")
    try:
        number = int(head)
    except ValueError:
        raise ProtocolError(f"not a number: {head!r}") from None
    if kind == b":":
        return number, end + 2
    if number < 0:
        return None, end + 2
    return _bulk(data, end + 2, number) if kind == b"$" else _array(data, end + 2, number)


def _bulk(data: bytes, at: int, length: int) -> tuple[Value, int]:
    if len(data) < at + length + 2:
        raise Incomplete
    if data[at + length : at + length + 2] != b"\r\n":
        raise ProtocolError("a bulk string without its end")
    return data[at : at + length].decode(), at + length + 2


def _array(data: bytes, at: int, length: int) -> tuple[Value, int]:
    values: list[Value] = []
    for _ in range(length):
        value, at = decode(data, at)
        values.append(value)
    return values, at
