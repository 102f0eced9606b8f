"""What a soak gave: its criteria, its account and its lines of metrics, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mutiny.engine.journal import Step
from mutiny.engine.loop import Outcome
from mutiny.kit.soaking import Account, Judged, SoakAsk, passed
from mutiny.model.verdict import Verdict, worst


@dataclass(frozen=True)
class Soaked:
    """A soak that has come to its end."""

    ask: SoakAsk
    outcome: Outcome
    account: Account
    criteria: tuple[Judged, ...]
    legs: tuple[Mapping[str, Any], ...]
    lines: tuple[Mapping[str, Any], ...]
    earlier: tuple[Mapping[str, Any], ...]
    broken: tuple[Step, ...]

    @property
    def verdict(self) -> Verdict:
        """A broken promise, a must that does not hold, or neither."""
        if self.broken:
            return worst(step.verdict for step in self.broken)
        if passed(self.criteria):
            return Verdict.SUCCESS
        must = [one for one in self.criteria if one.criterion.rank == "must"]
        return Verdict.BUG if any(one.holds is False for one in must) else Verdict.INCONCLUSIVE
