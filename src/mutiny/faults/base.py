"""The shape that every fault has: prepare, inject, heal; and a plain reason where it cannot work.

Insight: a fault that did not happen makes a run look green for nothing. So `inject` returns whether
it fired, with the technique by name, and a fault that this machine cannot do is refused before
anything is touched; it is never replaced by a weaker one.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

from mutiny.errors import UsageError
from mutiny.model.result import OperationResult


class FaultUnavailable(UsageError):
    """This machine, or this box, cannot do the fault; the text says why and what else could be
    done.
    """


@dataclass(frozen=True, slots=True)
class Availability:
    """What `mutiny doctor` says about one fault."""

    fault: str
    technique: str
    reason: str | None
    """Why it cannot be done here; None when it can."""

    @property
    def available(self) -> bool:
        """Whether it can be done here."""
        return self.reason is None


class Fault(ABC):
    """One fault. As a context manager it is prepared and injected at the start and healed at the
    end, in any case.
    """

    technique: str
    """How it is done; part of the record, so that a replay without it is refused."""
    injected: OperationResult | None = None
    """What the last injection gave."""

    def why_not(self) -> str | None:
        """Why it cannot be done here; None when it can."""
        return None

    def prepare(self) -> None:  # noqa: B027 - most faults need no preparation
        """Make what the fault needs, without any effect on the target yet. Safe to call twice."""

    @abstractmethod
    def inject(self) -> OperationResult:
        """Let it happen, and prove it: `fired` is what was seen, not what was asked for."""

    @abstractmethod
    def heal(self) -> OperationResult:
        """Take it back as far as it can be taken back. Safe to call twice, and without an
        injection.
        """

    def unfelt(self) -> str | None:
        """Why nobody can have felt it since it was injected; None when somebody can. Asked before it is
        healed, of faults that can count what they did.
        """
        return None

    def wait_until_met(self, over: threading.Event) -> None:  # noqa: B027 - most are met at once
        """Return when somebody has come upon it, or `over` is set. A fault for some time counts its time
        from here: a command that starts late, because the machine is busy, must meet it all the same.
        """

    def refuse_if_unavailable(self) -> None:
        """Raise FaultUnavailable with the reason."""
        reason = self.why_not()
        if reason is not None:
            raise FaultUnavailable(f"{self.technique} is not available: {reason}")

    def __enter__(self) -> Self:
        self.refuse_if_unavailable()
        try:
            self.prepare()
            self.injected = self.inject()
        except BaseException:
            self.heal()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()

    # --- results, said in one way

    def done(self, text: str, **details: object) -> OperationResult:
        """It happened, and this is what was seen."""
        return OperationResult(stdout=text, fired=True, technique=self.technique, details=details)

    def not_done(self, why: str, **details: object) -> OperationResult:
        """It did not happen."""
        return OperationResult(
            1, stderr=why, fired=False, technique=self.technique, details=details
        )
