"""An experiment's result as one value: `experiment.json`, from which every other form is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from mutiny.model.verdict import Verdict

FORMAT = 1
LATEST_UNIX = 32_503_680_000.0
"""The year 3000."""
RECOVERY_TARGET_S = 30.0
SEVERITIES = ("None", "Low", "Medium", "High", "Critical")


@dataclass(frozen=True)
class FindingRecord:
    """One weakness that was found."""

    title: str
    severity: str
    rule: str
    symptom: str
    root_cause: str
    impact: str
    recommendation: str
    test_case: str
    """The command that repeats it, from a file that was written."""

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"severity {self.severity[:60]!r} is none of {', '.join(SEVERITIES)}")


@dataclass(frozen=True)
class FaultRecord:
    """A fault that the method asked for."""

    at_s: float
    text: str
    technique: str
    fired: bool
    recovered_s: float | None = None
    until_s: float | None = None
    """When it was over; None: it lasted until the end."""


@dataclass(frozen=True)
class StepRecord:
    """One operation on the time line; seconds from the beginning."""

    phase: str
    text: str
    kind: str
    begin_s: float
    end_s: float
    verdict: str
    note: str = ""
    line: int = 0

    def __post_init__(self) -> None:
        known = [verdict.value for verdict in Verdict]
        if self.verdict not in known:
            raise ValueError(f"verdict {self.verdict[:60]!r} is none of {', '.join(known)}")


@dataclass(frozen=True)
class SteadyRecord:
    """One line of the steady state, at each time that it was asked."""

    text: str
    before: str
    during: str
    after: str


@dataclass(frozen=True)
class Score:
    """The resilience score; None: not known."""

    recovery_s: float | None
    recovered: bool | None
    """None: there was nothing to recover from."""
    integrity: str
    """PASS, FAIL or UNKNOWN."""
    availability: float | None
    samples: int = 0
    rate_hz: float = 0.0
    """The rate that was really reached."""
    target_s: float = RECOVERY_TARGET_S


@dataclass(frozen=True)
class SampleRecord:
    """One answer of the probe."""

    at_s: float
    ok: bool | None
    latency_ms: float
    slots: int = 1


@dataclass(frozen=True)
class ExperimentReport:
    """Everything that is told about one run of an experiment."""

    name: str
    hypothesis: str
    file: str
    form: str
    target: str
    plant: str
    seed: int
    verdict: str
    exit_code: int
    reason: str
    """Why it did not pass; empty when it did."""
    started_unix: float
    duration_s: float
    blast_radius: str
    faults: tuple[FaultRecord, ...]
    findings: tuple[FindingRecord, ...]
    steady_state: tuple[SteadyRecord, ...]
    steps: tuple[StepRecord, ...]
    samples: tuple[SampleRecord, ...]
    score: Score
    probe: str = ""
    directory: str = ""
    replay: str = ""
    """How short the replay is, and how often it failed again."""
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    """Rules that the target does not promise, and why: they were not checked."""
    changes: tuple[str, ...] = ()
    """Steps that were left out or said otherwise, because the target has no word for them."""
    format: int = FORMAT

    def __post_init__(self) -> None:
        known = {
            verdict.value: verdict.exit_code
            for verdict in Verdict
            if verdict is not Verdict.EXPECTED  # only a step can be that
        }
        if self.verdict not in known:
            raise ValueError(f"verdict {self.verdict[:60]!r} is none of {', '.join(known)}")
        if self.exit_code != known[self.verdict]:
            raise ValueError(f"{self.verdict!r} means exit code {known[self.verdict]}")
        if not 0 <= self.started_unix <= LATEST_UNIX:
            raise ValueError(f"started_unix: {self.started_unix:g} is no time of a run")

    @property
    def severity(self) -> str:
        """That of the worst finding."""
        return max((item.severity for item in self.findings), key=SEVERITIES.index, default="None")

    @property
    def fired(self) -> int:
        """How many faults really happened."""
        return sum(1 for fault in self.faults if fault.fired)

    def as_json(self) -> dict[str, Any]:
        """The form of `experiment.json`."""
        return asdict(self)


def from_json(data: object, where: str) -> ExperimentReport:
    """Read `experiment.json` again."""
    from mutiny.codec import decode

    return decode(ExperimentReport, data, where=where, bounded=False)
