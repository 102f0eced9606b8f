"""What was witnessed during one experiment: looks, deeds, samples, shocks and recoveries.

A shock is a fault that fired. It is recovered from when nothing is pending any more and the target has
answered since, the probe or a command: so the recovery time is measured, not declared.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mutiny.kit.operations import disturbs
from mutiny.kit.sentences import Deed, Look, Record, Sample, Spoken
from mutiny.model.operation import Kind

if TYPE_CHECKING:
    from mutiny.model.operation import Operation
    from mutiny.model.result import OperationResult

MOST_LOOKS = 20_000


@dataclass
class Shock:
    """A fault that fired, and when it was over it."""

    at: float
    text: str
    operation: Operation
    recovered_s: float | None = None
    ended: float | None = None
    """A lasting fault is over when it is healed; recovery is counted from then on."""

    @property
    def since(self) -> float | None:
        """From when recovery is due; None while the fault is still on."""
        return self.ended


@dataclass
class Breach:
    """A steady-state line that was seen broken while it was watched."""

    at: float
    line: str
    why: str
    rule: str | None
    subject: str = ""
    told: bool = False


@dataclass
class Recorder:
    """Written by the live target and the contract of one run, read by sentences and reports."""

    looks: deque[Look] = field(default_factory=lambda: deque(maxlen=MOST_LOOKS))
    deeds: list[Deed] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    shocks: list[Shock] = field(default_factory=list)
    breaches: list[Breach] = field(default_factory=list)
    watched: tuple[tuple[str, Spoken], ...] = ()
    chaos_until: float = float("inf")
    """When the method and the recovery were over."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def forget(self) -> None:
        """A new box: nothing has happened in it."""
        self.looks.clear()
        for part in (self.deeds, self.samples, self.shocks, self.breaches):
            part.clear()
        self.watched = ()
        self.chaos_until = float("inf")

    def did(
        self, operation: Operation, result: OperationResult, began: float, ended: float
    ) -> None:
        """An operation was carried out."""
        self.deeds.append(Deed(operation, result, began, ended))
        if disturbs(operation) and (result.fired or (result.fired is None and result.succeeded)):
            lasting = getattr(operation, "lasting", False)
            shock = Shock(began, operation.short(), operation, None, None if lasting else ended)
            self.shocks.append(shock)
        if operation.type in ("Heal", "Settle"):
            for shock in self.shocks:
                # `Settle` heals first; counting from its beginning is the stricter reading.
                shock.ended = shock.ended if shock.ended is not None else began

    def looked(self, at: float, seen: Any, pending: tuple[str, ...]) -> None:
        """The target was looked at."""
        self.looks.append(Look(at, seen, pending))
        if pending:
            return
        for shock in self.shocks:
            over = shock.since is not None and at >= shock.since
            if shock.recovered_s is None and over and self._answering(shock.since or 0.0):
                shock.recovered_s = max(at - (shock.since or 0.0), 0.0)

    def _answering(self, since: float) -> bool:
        """Has the target answered again, the probe or a command? What was said before proves nothing."""
        with self.lock:
            last = self.samples[-1] if self.samples else None
        if last is not None and last.at >= since:
            return last.ok is True
        return any(
            deed.operation.kind is Kind.COMMAND and deed.result.succeeded
            for deed in self.deeds
            if deed.began >= since
        )

    def sampled(self, sample: Sample) -> None:
        """The probe answered, or did not."""
        with self.lock:
            self.samples.append(sample)
            look = self.looks[-1] if self.looks else None
        if sample.ok and look is not None and not look.pending:
            for shock in self.shocks:
                since = shock.since
                if (
                    shock.recovered_s is None
                    and since is not None
                    and look.at >= since <= sample.at
                ):
                    shock.recovered_s = sample.at - since

    def record(self, model: Any, seen: Any, now: float, pending: tuple[str, ...]) -> Record:
        """Everything so far, for a sentence."""
        with self.lock:
            samples = tuple(self.samples)
        return Record(
            model,
            seen,
            now,
            pending,
            tuple(self.looks),
            tuple(self.deeds),
            samples,
            tuple((shock.at, shock.text) for shock in self.shocks),
            tuple(shock.recovered_s for shock in self.shocks),
            self.chaos_until,
        )
