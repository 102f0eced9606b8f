"""A history: which operation was asked by whom, from when to when, and what was answered.

The only order that counts is real time: an operation takes effect at some moment between its
invocation and its return. One that never returned may have taken effect at any later time, or never.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutiny.errors import FormatError, UsageError, nearest

TYPES = ("invoke", "ok", "fail", "info")
FIELDS = ("type", "process", "operation", "arguments", "answer", "time", "key")


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation of one process."""

    process: str
    operation: str
    arguments: Mapping[str, object]
    answer: object
    """What came back; None when nothing did, or when the operation has nothing to say."""
    invoked: float
    returned: float | None
    """None: the client crashed or gave up waiting. It may take effect at any later time or never."""
    key: str | None = None
    """The part of the state that it is about; a model may find it in arguments and answer instead."""

    def __post_init__(self) -> None:
        if self.returned is None and self.answer is not None:
            raise ValueError(f"{self.process} {self.operation}: an answer without a return")
        if self.returned is not None and not self.returned >= self.invoked:
            raise ValueError(f"{self.process} {self.operation}: returned before it was invoked")

    def __str__(self) -> str:
        words = " ".join(f"{name}={_short(value)}" for name, value in self.arguments.items())
        end = "..." if self.returned is None else f"{self.returned:.6g}"
        said = "no answer" if self.returned is None else _short(self.answer)
        return f"{self.process} [{self.invoked:.6g}, {end}] {self.operation} {words}".rstrip() + (
            f" -> {said}"
        )


def refused(answer: object) -> bool:
    """Is this an answer that says no: the operation returned and had no effect?"""
    return isinstance(answer, Mapping) and answer.get("ok") is False


def read_history(path: Path) -> list[Entry]:
    """The entries of a JSON Lines file, in the order of their invocation.

    `ok` ends an operation with its answer. `fail` says that it had no effect: with an answer (a
    refusal) the model must explain it, without one the operation is left out. `info`, and the end of
    the file, leave it open.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot read the history: {error}") from error
    return parse_history(lines, where=str(path))


def parse_history(lines: Iterable[str], *, where: str) -> list[Entry]:
    """The same from lines of text. All mistakes are reported at once, each with its line."""
    reader = _Reader()
    for number, line in enumerate(lines, 1):
        if line.strip():
            reader.line(number, line)
    if reader.problems:
        raise FormatError(where, reader.problems)
    return reader.entries()


def write_history(path: Path, entries: Sequence[Entry]) -> None:
    """Write entries so that `read_history` gives them back."""
    text = "".join(f"{line}\n" for line in history_lines(entries))
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(f"{path}: cannot write the history: {error}") from error


def history_lines(entries: Sequence[Entry]) -> list[str]:
    """Each entry as two lines; all lines in the order of time."""
    events: list[tuple[float, int, str, dict[str, object]]] = []
    end = max((entry.returned or entry.invoked for entry in entries), default=0.0)
    by_process: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.invoked):
        by_process.setdefault(entry.process, []).append(entry)
    for process, own in by_process.items():
        for place, entry in enumerate(own):
            # An open operation ends for its process when the next one begins: that is all we know.
            later = own[place + 1].invoked if place + 1 < len(own) else max(end, entry.invoked)
            first, last = _two_lines(entry, later)
            # Equal times: the place within the process keeps an invocation before its own return.
            events.append((entry.invoked, 2 * place, process, first))
            over = later if entry.returned is None else entry.returned
            events.append((over, 2 * place + 1, process, last))
    events.sort(key=lambda event: event[:3])
    return [json.dumps(line, ensure_ascii=False) for *_, line in events]


def _two_lines(entry: Entry, later: float) -> tuple[dict[str, object], dict[str, object]]:
    same: dict[str, object] = {"process": entry.process, "operation": entry.operation}
    first = {"type": "invoke", **same, "arguments": dict(entry.arguments), "time": entry.invoked}
    if entry.key is not None:
        first["key"] = entry.key
    if entry.returned is None:
        return first, {"type": "info", **same, "time": later}
    kind = "fail" if refused(entry.answer) else "ok"
    return first, {"type": kind, **same, "answer": entry.answer, "time": entry.returned}


def _short(value: object, limit: int = 60) -> str:
    """A value for people: the telling fields of an answer, and never a whole page."""
    if isinstance(value, Mapping) and isinstance(value.get("ok"), bool):
        if value["ok"] is False:
            return str(value.get("error", "refused"))
        parts = [f"{name}={_short(value[name])}" for name in ("task", "epoch") if name in value]
        return " ".join(["ok", *parts])
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else text[: limit - 3] + "..."


@dataclass
class _Open:
    number: int
    record: dict[str, Any]
    end: dict[str, Any] | None = None


@dataclass
class _Reader:
    """Pairs lines up, noting problems with their line instead of raising."""

    problems: list[str] = field(default_factory=list)
    _all: list[_Open] = field(default_factory=list)
    _open: dict[str, _Open] = field(default_factory=dict)

    def line(self, number: int, text: str) -> None:
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            self.problems.append(f"line {number}: not valid JSON: {error}")
            return
        problems = _problems(record)
        if problems:
            self.problems += [f"line {number}: {problem}" for problem in problems]
            return
        process = str(record["process"])
        if record["type"] == "invoke":
            if process in self._open:
                began = self._open[process].number
                self.problems.append(
                    f"line {number}: process {process} is still busy with line {began}"
                )
            self._open[process] = _Open(number, record)
            self._all.append(self._open[process])
        else:
            self._end(number, process, record)

    def _end(self, number: int, process: str, record: dict[str, Any]) -> None:
        begun = self._open.pop(process, None)
        if begun is None:
            self.problems.append(f"line {number}: process {process} has nothing to end")
            return
        operation = begun.record["operation"]
        if record.get("operation", operation) != operation:
            self.problems.append(
                f"line {number}: ends {record['operation']!r}, but line {begun.number} began {operation!r}"
            )
        if record["time"] < begun.record["time"]:
            self.problems.append(
                f"line {number}: earlier than its beginning in line {begun.number}"
            )
        begun.end = record

    def entries(self) -> list[Entry]:
        found = []
        for begun in self._all:
            record, end = begun.record, begun.end
            lasting = end is None or end["type"] == "info"
            if end is not None and end["type"] == "fail" and end.get("answer") is None:
                continue  # it is known to have had no effect, and said nothing to explain
            found.append(
                Entry(
                    process=str(record["process"]),
                    operation=record["operation"],
                    arguments=record.get("arguments") or {},
                    answer=None if lasting or end is None else end.get("answer"),
                    invoked=float(record["time"]),
                    returned=None if lasting or end is None else float(end["time"]),
                    key=record.get("key"),
                )
            )
        return sorted(found, key=lambda entry: entry.invoked)


def _problems(record: object) -> list[str]:
    """What is wrong with one line, taken by itself."""
    if not isinstance(record, dict):
        return ["expected an object"]
    found = [
        f"{name}: unknown field{nearest(name, FIELDS)}" for name in record if name not in FIELDS
    ]
    if record.get("type") not in TYPES:
        found.append(f"type: expected one of {', '.join(TYPES)}, got {record.get('type')!r}")
    process = record.get("process")
    if isinstance(process, bool) or not isinstance(process, str | int):
        found.append(f"process: expected a name or a number, got {process!r}")
    time = record.get("time")
    if isinstance(time, bool) or not isinstance(time, int | float) or time != time:
        found.append(f"time: expected seconds as a number, got {time!r}")
    operation = record.get("operation")
    needed = record.get("type") == "invoke"
    if not isinstance(operation, str) and (needed or operation is not None):
        found.append(f"operation: expected a name, got {operation!r}")
    if not isinstance(record.get("arguments") or {}, dict):
        found.append(f"arguments: expected an object, got {record['arguments']!r}")
    if not isinstance(record.get("key"), str | None):
        found.append(f"key: expected a text, got {record['key']!r}")
    return found
