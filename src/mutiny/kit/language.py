"""What an experiment may say about any contract: shared sentences, and what each contract adds.

A `Language` is all that experiments know of a contract: its sentences, what a rollback line means,
what stands before the method when the file says nothing, and which command shows that it is available.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mutiny.kit.operations import Heal
from mutiny.kit.sentences import (
    Sentence,
    Vocabulary,
    broken,
    holds,
    nearest_text,
    pending,
    unknown,
)
from mutiny.model.duration import show_duration
from mutiny.model.operation import Operation

if TYPE_CHECKING:
    from mutiny.kit.sentences import Deed, Finding, Record, Sample, Value

RADII = ("single task", "one worker", "all workers", "server", "storage", "whole box")
"""Blast radii from the smallest to the largest; each one includes those before it."""
RADIUS_WORDS = {**{word: word for word in RADII}, "single worker": "one worker"}

FEW_SAMPLES = 5
GROWTH = 1.25
MEMORY_SLACK_BYTES = 8 * 1024 * 1024
DESCRIPTOR_SLACK = 8


def median(values: Sequence[float]) -> float:
    """The middle one. (`statistics` would load exact fractions for it.)"""
    return sorted(values)[len(values) // 2]


def availability(samples: Sequence[Sample]) -> float | None:
    """The part of all ticks at which the probe answered, in percent; None when it is not known."""
    known = sum(sample.slots for sample in samples if sample.ok is not None)
    everything = sum(sample.slots for sample in samples)
    if not known or known < 0.8 * everything:
        return None
    return 100.0 * sum(sample.slots for sample in samples if sample.ok) / known


def of_chaos(
    samples: Sequence[Sample], deeds: Sequence[Deed], until: float = float("inf")
) -> tuple[Sample, ...]:
    """The samples that availability counts: those of the chaos, without the times for which the method
    itself had stopped the target.
    """
    stopped: list[tuple[float, float]] = []
    down: float | None = None
    for deed in deeds:
        if deed.operation.type == "Down" and down is None:
            down = deed.began
        elif deed.operation.type == "Up" and down is not None and deed.result.succeeded:
            stopped.append((down, deed.ended))
            down = None
    if down is not None:
        stopped.append((down, float("inf")))
    return tuple(
        sample
        for sample in samples
        if sample.at <= until
        and not any(
            a <= sample.at + sample.latency_ms / 1000 and sample.at <= b for a, b in stopped
        )
    )


def _settles(record: Record, values: Mapping[str, Value]) -> Finding:
    if record.pending:
        return pending("; ".join(record.pending))
    return holds("nothing is pending")


def _available(record: Record, values: Mapping[str, Value]) -> Finding:
    samples = of_chaos(record.samples, record.deeds, record.chaos_until)
    if len(samples) < FEW_SAMPLES:
        return pending(f"only {len(samples)} samples so far")
    share = availability(samples)
    if share is None:
        return unknown("the probe could not be asked")
    text = f"available at {share:.1f} % of {sum(s.slots for s in samples)} ticks"
    return holds(text) if share >= values["share"] else broken(text)


def _recovers(record: Record, values: Mapping[str, Value]) -> Finding:
    limit = float(values["limit"])
    if not record.shocks:
        return pending("no fault has fired yet")
    slowest = 0.0
    for (at, what), took in zip(record.shocks, record.recoveries, strict=True):
        elapsed = record.now - at if took is None else took
        slowest = max(slowest, elapsed)
        if elapsed > limit:
            verb = "has not recovered" if took is None else "took"
            return broken(f"{what}: {verb} {'after ' if took is None else ''}{elapsed:.1f} s", what)
    if any(took is None for took in record.recoveries):
        return pending(f"not recovered yet after {slowest:.1f} s")
    return holds(f"slowest recovery {slowest:.1f} s")


def _grows(
    record: Record,
    read: Callable[[Sample], int | None],
    slack: float,
    shown: Callable[[float], str],
) -> Finding:
    values = [value for sample in record.samples if (value := read(sample)) is not None]
    if len(values) < 2 * FEW_SAMPLES:
        return pending(f"only {len(values)} measurements so far")
    quarter = max(len(values) // 4, 1)
    # The first quarter still starts up; growth is judged from the second to the last.
    early = median(values[quarter : 2 * quarter])
    late = median(values[-quarter:])
    text = f"from {shown(early)} to {shown(late)}"
    grew = late > early * GROWTH and late - early > slack
    return broken(f"grew {text}") if grew else holds(text)


def _memory(record: Record, values: Mapping[str, Value]) -> Finding:
    return _grows(
        record,
        lambda sample: sample.memory_bytes,
        MEMORY_SLACK_BYTES,
        lambda value: f"{value / 1e6:.1f} MB",
    )


def _descriptors(record: Record, values: Mapping[str, Value]) -> Finding:
    return _grows(
        record,
        lambda sample: sample.descriptors,
        DESCRIPTOR_SLACK,
        lambda value: f"{value:.0f} descriptors",
    )


def _fired(record: Record, values: Mapping[str, Value]) -> Finding:
    if not record.shocks:
        return broken("no fault has fired")
    return holds(", ".join(what for _, what in record.shocks))


def _answers(record: Record, values: Mapping[str, Value]) -> Finding:
    limit = float(values["limit"])
    if len(record.samples) < FEW_SAMPLES:
        return pending(f"only {len(record.samples)} samples so far")
    slowest = max((s.latency_ms for s in record.samples if s.ok), default=0.0) / 1000
    text = f"slowest answer {show_duration(slowest)}"
    return holds(text) if slowest <= limit else broken(text)


COMMON = (
    Sentence("[The] system settles", _settles, "Nothing that is due is still outstanding."),
    Sentence("Everything settles", _settles, "Nothing that is due is still outstanding."),
    Sentence(
        "Availability stays above {share:percent}",
        _available,
        "The probe answered at this part of all ticks of its fixed rate.",
    ),
    Sentence(
        "Recovery within {limit:duration}",
        _recovers,
        "After every fault: so long until nothing was pending and the probe answered again.",
    ),
    Sentence(
        "[The] probe answers within {limit:duration}",
        _answers,
        "No answer of the availability probe took longer.",
    ),
    Sentence("Memory does not grow", _memory, "Resident memory of the lasting processes is level."),
    Sentence(
        "[File] Descriptors do not grow",
        _descriptors,
        "Open descriptors of the lasting processes are level.",
    ),
    Sentence("[The] fault fired", _fired, "At least one fault really happened."),
)

Undo = Callable[[Mapping[str, str], Sequence[Operation]], tuple[Operation, ...]]
"""From a line's words and the method's operations to what takes them back."""


@dataclass(frozen=True)
class RollbackLine:
    """A rollback in words."""

    text: str
    undo: Undo
    meaning: str

    def read(self, line: str, method: Sequence[Operation]) -> tuple[Operation, ...] | None:
        """What the line means after this method; None when it is another line."""
        found = Sentence(self.text, lambda _w, _v: holds(), "").read(line)
        return None if found is None else self.undo(found, method)


def doing(*operations: Operation) -> Undo:
    """These, whatever the method was."""
    return lambda _values, _method: operations


HEAL_ALL = RollbackLine("Heal all faults", doing(Heal()), "Take every lasting fault back.")


@dataclass(frozen=True)
class Language:
    """Everything that experiments need to know of one contract."""

    contract: str
    sentences: tuple[Sentence, ...]
    rollbacks: tuple[RollbackLine, ...] = ()
    setup: tuple[Operation, ...] = ()
    """What stands before the method when the file has no `setup`."""
    probe: Operation | None = None
    """The command that shows that the target is available."""
    settle: tuple[Operation, ...] = ()
    """The recovery phase."""
    spawn: Callable[[str, str], tuple[Operation, ...]] | None = None
    """`spawn_worker` for a contract that has no such operation: id and behaviour."""
    behaviours: tuple[str, ...] = ()
    reaches: Mapping[str, str] = field(default_factory=dict)
    """Operation -> blast radius, where it cannot be derived."""

    @property
    def vocabulary(self) -> Vocabulary:
        """All sentences, the contract's own first."""
        return Vocabulary((*self.sentences, *COMMON))

    def read_rollback(self, line: str, method: Sequence[Operation]) -> tuple[Operation, ...]:
        """What a rollback line means; ValueError names the nearest one."""
        for known in self.rollbacks:
            operations = known.read(line, method)
            if operations is not None:
                return operations
        hint = nearest_text(line, [known.text for known in self.rollbacks])
        raise ValueError(f"unknown rollback {line!r}{hint}")
