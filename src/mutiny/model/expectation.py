"""The right outcomes of one operation, as the model sees them before it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Expectation:
    """Success, a refusal of certain classes, or either of them."""

    success: bool
    rejections: frozenset[str] = frozenset()
    """Classes of refusals that would be true."""
    reason: str = ""

    @property
    def success_due(self) -> bool:
        return self.success and not self.rejections

    @property
    def rejection_due(self) -> bool:
        return not self.success
