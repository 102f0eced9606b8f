"""Jobs: what is to be done, how urgently, and how often it was tried."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["HIGHEST", "LOWEST", "Job", "backoff_s"]

HIGHEST, LOWEST = 0, 255


@dataclass(frozen=True)
class Job:
    """One piece of work."""

    id: int
    payload: str
    priority: int = 100
    not_before_s: float = 0.0
    attempts: int = 0
    max_attempts: int = 3

    def __post_init__(self) -> None:
        if not HIGHEST <= self.priority <= LOWEST:
            raise ValueError(f"priority is {HIGHEST} to {LOWEST}, not {self.priority}")

    def failed(self, now_s: float) -> Job:
        """The same job after one more failure, due again after a wait."""
        attempts = self.attempts + 1
        return replace(self, attempts=attempts, not_before_s=now_s + backoff_s(attempts))

    @property
    def exhausted(self) -> bool:
        """Has it failed too often?"""
        return self.attempts >= self.max_attempts


def backoff_s(attempts: int) -> float:
    """One second, doubled with every failure, at most a minute."""
    return float(min(60, 2 ** max(0, attempts - 1)))
