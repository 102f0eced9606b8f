"""What executing one operation gave, before anybody judges it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutiny.model.forms import ResultForm

OWN_NAME = "own_name"
"""The detail that says what the target calls whom an operation names, where it gives names itself."""


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

    def as_json(self) -> ResultForm:
        """Four fields that are always there, then those that say something."""
        told: ResultForm = {
            "exit_code": self.exit_code,
            "stdout": self.stdout,
            "stderr": self.stderr,
            "duration_ms": round(self.duration_ms, 3),
        }
        if self.signal is not None:
            told["signal"] = self.signal
        if self.timed_out:
            told["timed_out"] = True
        if self.argv:
            told["argv"] = list(self.argv)
        if self.fired is not None:
            told["fired"] = self.fired
        if target_ms := round(self.target_ms, 3):
            told["target_ms"] = target_ms
        if self.harness_error is not None:
            told["harness_error"] = self.harness_error
        if self.details:
            told["details"] = dict(self.details)
        if self.inner:
            told["inner"] = [part.as_json() for part in self.inner]
        return told
