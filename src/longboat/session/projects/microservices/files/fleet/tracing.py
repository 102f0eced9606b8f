"""Distributed tracing: which call belongs to which, across services."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["Span", "Tracer", "parse_header"]


@dataclass
class Span:
    """One piece of work with its beginning and end."""

    trace: int
    id: int
    parent: int | None
    name: str
    began_s: float
    ended_s: float | None = None
    tags: dict[str, str] = field(default_factory=dict)

    def header(self) -> str:
        """What goes along with a request."""
        return f"{self.trace:08x}-{self.id:08x}"


def parse_header(text: str) -> tuple[int, int] | None:
    """Trace and span of a request; None when it carries none that can be read."""
    trace, dash, span = text.partition("-")
    try:
        return (int(trace, 16), int(span, 16)) if dash else None
    except ValueError:
        return None


class Tracer:
    """Keeps the spans of one service."""

    def __init__(self, clock: Callable[[], float], limit: int = 1000) -> None:
        self._clock = clock
        self._numbers = itertools.count(1)
        self._limit = limit
        self.finished: list[Span] = []

    @contextmanager
    def span(self, name: str, header: str = "") -> Iterator[Span]:
        """A span around some work; an error is noted and goes on."""
        origin = parse_header(header)
        number = next(self._numbers)
        trace, parent = origin if origin else (number, None)
        span = Span(trace, number, parent, name, self._clock())
        try:
            yield span
        except Exception as error:
            span.tags["error"] = type(error).__name__
            raise
        finally:
            span.ended_s = self._clock()
            self.finished.append(span)
            del self.finished[: -self._limit]
