"""What executing one operation gave, before anybody judges it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OperationResult:
    """Plain facts of one execution.

    `exit_code` is None when the process was ended by a signal or by its time limit. Waits,
    assertions and faults have no process: they use 0 for done and 1 for not done, and say why in
    `stderr`.
    """

    exit_code: int | None = 0
    stdout: str = ""
    stderr: str = ""
    duration_ms: float = 0.0
    signal: int | None = None
    timed_out: bool = False
    argv: tuple[str, ...] = ()
    technique: str | None = None
    """How a fault was done; None for everything that is not a fault."""
    fired: bool | None = None
    """For faults: did it really happen? None for everything else."""
    tokens: tuple[str, ...] = ()
    """Markers of the work that this operation handed to the target."""
    target_ms: float = 0.0
    """The part of the duration that the target itself took."""
    inner: tuple[OperationResult, ...] = ()
    """Results of the parts of a combined operation."""
    harness_error: str | None = None
    """Mutiny could not carry the operation out: the step is inconclusive, whatever the rest says.
    """
    details: Mapping[str, object] = field(default_factory=dict)
    kept: object | None = field(default=None, compare=False, repr=False)
    """What stays in memory for whoever asked for the operation: the states that a trace kept. It is not
    written down.
    """

    @property
    def succeeded(self) -> bool:
        """The command itself claims success."""
        return self.exit_code == 0 and not self.timed_out and self.harness_error is None

    def as_json(self) -> dict[str, object]:
        """Four fields that are always there, then those that say something."""
        record: dict[str, object] = {
            "exit_code": self.exit_code,
            "stdout": self.stdout,
            "stderr": self.stderr,
            "duration_ms": round(self.duration_ms, 3),
        }
        optional: dict[str, object] = {
            "signal": self.signal,
            "timed_out": self.timed_out or None,
            "argv": list(self.argv) or None,
            "fired": self.fired,
            "target_ms": round(self.target_ms, 3) or None,
            "harness_error": self.harness_error,
            "details": dict(self.details) or None,
            "inner": [part.as_json() for part in self.inner] or None,
        }
        record.update({key: value for key, value in optional.items() if value is not None})
        return record
