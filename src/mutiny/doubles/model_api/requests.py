"""Requests over HTTP, cut by hand out of the bytes that come."""

from __future__ import annotations

from dataclasses import dataclass

_HEADER_LIMIT_BYTES = 64 * 1024
_BODY_LIMIT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class BadRequest(ValueError):
    """Something that is not HTTP."""


class RequestParser:
    """Cuts a stream of bytes into requests."""

    __slots__ = ("_buffer", "_told_to_go_on")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._told_to_go_on = False

    def feed(self, data: bytes) -> None:
        """Add what has arrived."""
        self._buffer += data

    def wants_go_on(self) -> bool:
        """Whether the client waits for "100 Continue" before it sends the body; True only once."""
        if self._told_to_go_on or b"100-continue" not in self._buffer.lower():
            return False
        self._told_to_go_on = b"\r\n\r\n" in self._buffer
        return self._told_to_go_on

    def next(self) -> Request | None:
        """The next complete request; None when more bytes are needed."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _HEADER_LIMIT_BYTES:
                raise BadRequest("the headers do not end")
            return None
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise BadRequest(f"not a request line: {lines[0][:80]!r}")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        found = self._body(end + 4, headers)
        if found is None:
            return None
        body, size = found
        del self._buffer[:size]
        self._told_to_go_on = False
        return Request(words[0], words[1].partition("?")[0], headers, body)

    def _body(self, start: int, headers: dict[str, str]) -> tuple[bytes, int] | None:
        """The body and where it ends; None when it is not complete yet."""
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return self._chunked(start)
        try:
            length = int(headers.get("content-length", "0"))
        except ValueError:
            raise BadRequest("content-length is not a number") from None
        if not 0 <= length <= _BODY_LIMIT_BYTES:
            raise BadRequest(f"a body of {length} bytes")
        if len(self._buffer) < start + length:
            return None
        return bytes(self._buffer[start : start + length]), start + length

    def _chunked(self, start: int) -> tuple[bytes, int] | None:
        body = bytearray()
        while (end := self._buffer.find(b"\r\n", start)) >= 0:
            try:
                size = int(bytes(self._buffer[start:end]).split(b";")[0], 16)
            except ValueError:
                raise BadRequest("a chunk without a size") from None
            start = end + 2
            if len(self._buffer) < start + size + 2:
                return None
            body += self._buffer[start : start + size]
            start += size + 2
            if size == 0:
                return bytes(body), start
        return None
