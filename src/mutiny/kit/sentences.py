"""Sentences: promises in plain words with parameters, each a pure check over what was recorded.

`Verify`, experiments and goals ask the same sentences. A sentence has four answers, not two: *pending* is
not broken (a deadline may still heal it), and *unknown* is not held, because nobody could look.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, TypeAlias

from mutiny.model.duration import PATTERN as DURATION
from mutiny.model.duration import parse_duration
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult


class Truth(Enum):
    """What can be said of a sentence at one moment."""

    HOLDS = "holds"
    PENDING = "pending"
    """Not so yet, but nothing speaks against it."""
    BROKEN = "broken"
    UNKNOWN = "unknown"
    """It could not be looked at."""


@dataclass(frozen=True)
class Finding:
    """An answer, with the reason in words."""

    truth: Truth
    why: str = ""
    subject: str = ""

    @property
    def so(self) -> bool | None:
        """Is it so at this moment? None: it could not be looked at."""
        return None if self.truth is Truth.UNKNOWN else self.truth is Truth.HOLDS


def holds(why: str = "") -> Finding:
    """It is so."""
    return Finding(Truth.HOLDS, why)


def pending(why: str) -> Finding:
    """It is not so yet."""
    return Finding(Truth.PENDING, why)


def broken(why: str, subject: str = "") -> Finding:
    """It is not so, and waiting would not change that."""
    return Finding(Truth.BROKEN, why, subject)


def unknown(why: str) -> Finding:
    """It could not be looked at."""
    return Finding(Truth.UNKNOWN, why)


def told(is_so: bool, why: str) -> Finding:
    """It is so, or it is not so at this moment."""
    return holds(why) if is_so else pending(why)


@dataclass(frozen=True)
class Look:
    """One look at the target."""

    at: float
    seen: Any
    pending: tuple[str, ...] = ()


@dataclass(frozen=True)
class Deed:
    """One operation that was carried out."""

    operation: Operation
    result: OperationResult
    began: float
    ended: float


@dataclass(frozen=True)
class Sample:
    """One answer of the availability probe."""

    at: float
    ok: bool | None
    """None: Mutiny itself could not ask."""
    latency_ms: float
    slots: int = 1
    """How many ticks of the fixed rate this answer stands for."""
    note: str = ""
    memory_bytes: int | None = None
    descriptors: int | None = None

    def as_json(self) -> dict[str, object]:
        """One line of `availability.jsonl`."""
        record: dict[str, object] = {
            "at": round(self.at, 4),
            "ok": self.ok,
            "latency_ms": round(self.latency_ms, 2),
            "slots": self.slots,
        }
        more = {
            "note": self.note or None,
            "memory_bytes": self.memory_bytes,
            "descriptors": self.descriptors,
        }
        return {**record, **{key: value for key, value in more.items() if value is not None}}


@dataclass(frozen=True)
class Record:
    """Everything that a sentence may look at."""

    model: Any
    seen: Any
    now: float
    pending: tuple[str, ...] = ()
    """What has still to happen by itself, in the contract's words."""
    looks: Sequence[Look] = ()
    deeds: Sequence[Deed] = ()
    samples: Sequence[Sample] = ()
    shocks: Sequence[tuple[float, str]] = ()
    """When a fault fired, and which."""
    recoveries: Sequence[float | None] = ()
    """For each shock: seconds until nothing was pending and the probe answered; None: not yet."""
    chaos_until: float = float("inf")
    """When method and recovery were over; what the probe says later is about calm times."""


Value: TypeAlias = "Any"
Check = Callable[[Record, Mapping[str, Value]], Finding]


@dataclass(frozen=True)
class Sentence:
    """A promise in words. `{limit:duration}` is a parameter, `[the]` may be left out."""

    text: str
    check: Check
    meaning: str
    always: bool = False
    """It must hold at every moment; otherwise it must come true in the end."""
    rule: str | None = None
    """The contract's rule that promises the same, where there is one."""
    spelling: str = ""
    """A regular expression, where it can be written in several ways; its groups are the parameters."""
    momentary: bool = False
    """One look at the target tells it: `Verify` can ask it."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The text as a regular expression."""
        return re.compile(self.spelling or _expression(self.text), re.IGNORECASE)

    def read(self, line: str) -> dict[str, Value] | None:
        """The parameters of a line that is this sentence; None when it is another one.

        ValueError when it is this sentence with a value that cannot be.
        """
        found = self.pattern.fullmatch(" ".join(line.split()).rstrip("."))
        if found is None:
            return None
        kinds = dict(_parameters(self.text))
        return {
            name: _VALUES[kinds[name]][1](text) if name in kinds else text
            for name, text in found.groupdict().items()
            if text is not None
        }


def _percent(text: str) -> float:
    value = float(text.rstrip("% "))
    if not 0 <= value <= 100:
        raise ValueError(f"{text!r} is no percentage between 0 and 100")
    return value


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in re.split(r"\s*(?:,|\bor\b|\band\b)\s*", text) if word)


_VALUES: dict[str, tuple[str, Callable[[str], Value]]] = {
    "duration": (DURATION, parse_duration),
    "percent": (r"\d+(?:\.\d+)?\s?%", _percent),
    "number": (r"\d+", int),
    "word": (r"[\w.:-]+", str),
    "status": (r"[A-Za-z_]+", str.lower),
    "statuses": (r"[A-Za-z_]+(?:\s*(?:,|or|and)\s*[A-Za-z_]+)*", _words),
}
"""Kind of a parameter -> how it is written, and its value."""

_TOKEN = r"\{(\w+):(\w+)\}|\[([^\]]+)\]|(\s+)|([^\s{\[]+)"


def _parameters(text: str) -> list[tuple[str, str]]:
    return re.findall(r"\{(\w+):(\w+)\}", text)


def _expression(text: str) -> str:
    parts: list[str] = []
    for name, kind, optional, space, literal in re.findall(_TOKEN, text):
        if name:
            parts.append(f"(?P<{name}>{_VALUES[kind][0]})")
        elif optional:
            inner = _expression(optional)
            if parts and parts[-1] == r"\s+":
                parts[-1] = rf"(?:\s+{inner})?"
            else:
                parts.append(rf"(?:{inner}\s+)?")
        elif space:
            # A space that follows an optional first word belongs to that word.
            if parts and parts[-1].endswith(r"\s+)?"):
                continue
            parts.append(r"\s+")
        else:
            parts.append(re.escape(literal))
    return "".join(parts)


@dataclass(frozen=True)
class Spoken:
    """A line that was understood: the sentence, and its parameters."""

    sentence: Sentence
    values: Mapping[str, Value]

    def check(self, record: Record) -> Finding:
        """Ask it; a check that breaks down has found out nothing."""
        try:
            return self.sentence.check(record, self.values)
        except Exception as error:  # noqa: BLE001  a broken check must not end the run
            return unknown(f"the check broke down: {type(error).__name__}: {error}")

    def of(self, seen: Any) -> Finding:
        """Ask it of one look at the target; only momentary sentences can be asked so."""
        return self.check(Record(None, seen, getattr(seen, "at", 0.0)))


@dataclass(frozen=True)
class Vocabulary:
    """All sentences of a contract."""

    sentences: tuple[Sentence, ...] = field(default=())

    def read(self, line: str) -> Spoken:
        """Understand a line; ValueError names the nearest sentence."""
        for sentence in self.sentences:
            values = sentence.read(line)
            if values is not None:
                return Spoken(sentence, values)
        raise ValueError(f"unknown sentence {line!r}{self.nearest(line)}")

    @property
    def momentary(self) -> Vocabulary:
        """Those that one look at the target tells."""
        return Vocabulary(tuple(one for one in self.sentences if one.momentary))

    def nearest(self, line: str) -> str:
        """A hint with the sentence that is most like a line."""
        return nearest_text(line, [sentence.text for sentence in self.sentences])


def nearest_text(line: str, texts: Sequence[str]) -> str:
    """A hint ` (did you mean ...?)` that compares whole sentences without their values."""
    import difflib

    bare = {_bare(text): text for text in texts}
    close = difflib.get_close_matches(_bare(line), list(bare), n=1, cutoff=0.45)
    return f" (did you mean {bare[close[0]]!r}?)" if close else ""


def _bare(text: str) -> str:
    plain = re.sub(r"\{\w+:\w+\}", "#", text.lower()).replace("[", "").replace("]", "")
    return re.sub(r"\d+(?:\.\d+)?\s*(?:%|[a-z]+\b)?", "#", plain)
