"""The journal: `operations.jsonl`, the only truth about a run.

One line an operation, in the kernel's hands before the next operation starts: a Mutiny that is
killed loses nothing that has happened. A line that cannot be written whole is taken back, so a full
disk leaves a readable journal.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mutiny import documents
from mutiny.engine.rundir import FORMAT, storing
from mutiny.errors import FormatError
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mutiny.codec import Registry
    from mutiny.model.forms import JournalLine


@dataclass(frozen=True)
class Step:
    """One executed and judged operation."""

    sequence_id: int
    timestamp_unix: float
    operation: Operation
    pre_state: Mapping[str, object]
    result: OperationResult
    post_state: Mapping[str, object]
    verdict: Verdict
    violations: tuple[Violation, ...] = ()
    expected: str = ""
    inconclusive: tuple[str, ...] = ()
    """Why the step proves nothing, where it does not."""
    own_ms: float = 0.0
    """Mutiny's own cost: everything except the target's time."""
    coverage: dict[str, object] = field(default_factory=dict)

    def as_json(self) -> JournalLine:
        """The fields in the order of the schema."""
        return {
            "sequence_id": self.sequence_id,
            "timestamp_unix": round(self.timestamp_unix, 6),
            "operation": self.operation.as_json(),
            "pre_state": dict(self.pre_state),
            "result": self.result.as_json(),
            "post_state": dict(self.post_state),
            "classification": self.verdict.value,
            "violations": [violation.as_json() for violation in self.violations],
            "technique": self.result.technique,
            "tokens": list(self.result.tokens),
            "expected": self.expected,
            "inconclusive": list(self.inconclusive),
            "own_ms": round(self.own_ms, 3),
            "coverage": self.coverage,
            "format": FORMAT,
        }


class JournalWriter:
    """Appends steps to `operations.jsonl`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with storing(path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def append(self, step: Step) -> None:
        """Write one line; all of it or nothing."""
        text = json.dumps(step.as_json(), ensure_ascii=False)
        # Half a character of a target's text becomes its escape, which JSON reads again.
        line = text.encode(errors="backslashreplace") + b"\n"
        before = os.fstat(self._descriptor).st_size
        with storing(self.path):
            try:
                written = os.write(self._descriptor, line)
                if written < len(line):
                    raise OSError(28, "No space left on device", str(self.path))
            except OSError:
                os.ftruncate(self._descriptor, before)
                raise

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The journal's lines as plain data; a half last line, left by a killed Mutiny, is passed over."""
    return (record for _, record in numbered_lines(path))


def numbered_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line with its number in the file."""
    lines = documents.read_bytes(path, "journal").split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = documents.shallow(json.loads(line))
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                return
            raise FormatError(str(path), [f"line {number}: not valid JSON: {error}"]) from error
        if not isinstance(record, dict):
            raise FormatError(str(path), [f"line {number}: expected an object"])
        problem = version_problem(record.get("format", FORMAT))
        if problem is not None:
            raise FormatError(str(path), [f"line {number}: {problem}"])
        yield number, record


def version_problem(version: object) -> str | None:
    """Why a file of this format cannot be read; None when it can."""
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        return f"format: expected a whole number from 1 on, got {version!r}"
    if version > FORMAT:
        return f"format {version} is newer than this Mutiny reads ({FORMAT})"
    return None


def read_operations(path: Path, registry: Registry) -> list[Operation]:
    """The operations of a journal, in order."""
    from mutiny.codec import decode_operation

    return [
        decode_operation(record.get("operation"), registry, where=f"{path}: line {number}")
        for number, record in numbered_lines(path)
    ]
