"""A campaign as values: its runs, its journal, and where it stands.

Insight: whoever carries a campaign out can die at any moment, and so can every worker and the scheduler. So
nothing is true that is not a line of the journal, which only grows and is on the disk before anything
follows from it: a run is `started` under an id of its own, and that id becomes `finished` or `lost`, once.
What was started and is neither, once its campaign is dead, is lost; it is named, and run again under a
new id. A run is counted when a line says that it finished, and not otherwise.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mutiny import documents
from mutiny.codec import decode
from mutiny.engine.rundir import FORMAT, RunDirectory, storing
from mutiny.errors import FormatError, UsageError
from mutiny.model.verdict import Verdict, worst

PLAN, JOURNAL = "campaign.json", "journal.jsonl"
MOST_TRIES = 5
"""A run that was lost so often is given up: perhaps it is what kills its workers."""


@dataclass(frozen=True)
class Job:
    """One run of the matrix."""

    key: str
    """Its name: the same in every attempt."""
    target: str
    words: tuple[str, ...]
    """What Mutiny is told, without where its runs go."""


@dataclass(frozen=True)
class CauseSeen:
    """A cause as one run met it."""

    rule: str
    operation: str
    said: tuple[str, ...] = ()
    operations: int = 0
    """How long the sequence is that shows it."""
    replay: str = ""

    @property
    def same(self) -> tuple[str, str, tuple[str, ...]]:
        """What is equal for two of one cause."""
        return self.rule, self.operation, self.said

    @property
    def text(self) -> str:
        """In one line."""
        said = "; ".join(self.said)
        return f"{self.rule} at {self.operation}" + (f": {said}" if said else "")


@dataclass(frozen=True)
class KnownMet:
    """A known finding, and how often a run met it."""

    rule: str
    reason: str
    link: str = ""
    count: int = 1


@dataclass(frozen=True)
class Finished:
    """A run that came to its end."""

    id: str
    key: str
    verdict: str
    seconds: float
    at_s: float
    """When, in the campaign's own time, which stands still while no process carries it out."""
    where: str = ""
    reason: str = ""
    directory: str = ""
    causes: tuple[CauseSeen, ...] = ()
    cells: tuple[str, ...] = ()
    """What it covered: status, operation, fault and outcome."""
    known: tuple[KnownMet, ...] = ()
    """What it met that is no news."""


@dataclass(frozen=True)
class Lost:
    """An attempt whose end was not recorded."""

    id: str
    key: str
    why: str


@dataclass(frozen=True)
class Shortened:
    """A cause whose sequence was made as short as it gets."""

    rule: str
    operation: str
    said: tuple[str, ...]
    operations: int
    replay: str


@dataclass
class CauseGroup:
    """A cause, and everything that has met it."""

    first: str
    at_s: float
    shortest: CauseSeen
    count: int = 0
    minimised: bool = False

    @property
    def can_be_shorter(self) -> bool:
        """Has it not been tried yet, although it can be?"""
        return not self.minimised and bool(self.shortest.replay)

    def as_json(self) -> dict[str, object]:
        """For programs."""
        told = asdict(self.shortest)
        own = {"count": self.count, "first": self.first, "first_at_s": round(self.at_s, 1)}
        return {**told, "said": list(self.shortest.said), "minimised": self.minimised, **own}


@dataclass
class Standing:
    """Where a campaign stands: what its journal says, line by line."""

    jobs: Mapping[str, Job]
    finished: dict[str, Finished] = field(default_factory=dict)
    under_way: dict[str, str] = field(default_factory=dict)
    """Attempts by their id, and whose they are."""
    lost: list[Lost] = field(default_factory=list)
    tries: Counter[str] = field(default_factory=Counter)
    causes: dict[tuple[str, str, tuple[str, ...]], CauseGroup] = field(default_factory=dict)
    cells: set[str] = field(default_factory=set)
    known: Counter[KnownMet] = field(default_factory=Counter)
    """Known findings, each as if met once, and how often they were."""
    legs: int = 0
    elapsed_s: float = 0.0

    def take(self, line: Mapping[str, Any], where: str) -> None:
        """Take one line of the journal into account."""
        event = line.get("event")
        told = {name: value for name, value in line.items() if name not in ("event", "unix")}
        if event == "leg":
            self.legs += 1
        elif event == "started":
            id_, key = str(told["id"]), str(told["key"])
            self.under_way[id_] = key
            self.tries[key] += 1
        elif event == "lost":
            lost = decode(Lost, told, where=where)
            if self.under_way.pop(lost.id, None) is not None:
                self.lost.append(lost)
        elif event == "finished":
            done = decode(Finished, told, where=where, bounded=False)
            if self.under_way.pop(done.id, None) is not None and done.key not in self.finished:
                self._count(done)
        elif event == "minimised":
            self._shorten(decode(Shortened, told, where=where))
        else:
            raise FormatError(where, [f"unknown event {event!r}"])

    def _shorten(self, found: Shortened) -> None:
        group = self.causes.get((found.rule, found.operation, found.said))
        if group is not None:
            group.minimised = True
            group.shortest = replace(
                group.shortest, operations=found.operations, replay=found.replay
            )

    def _count(self, done: Finished) -> None:
        self.finished[done.key] = done
        self.elapsed_s = max(self.elapsed_s, done.at_s)
        self.cells.update(done.cells)
        for met in done.known:
            self.known[replace(met, count=1)] += met.count
        for cause in done.causes:
            group = self.causes.setdefault(cause.same, CauseGroup(done.key, done.at_s, cause))
            group.count += 1
            if 0 < cause.operations < (group.shortest.operations or cause.operations + 1):
                group.shortest = cause

    @property
    def waiting(self) -> list[Job]:
        """What has still to be started, the untried first."""
        busy = {*self.finished, *self.under_way.values()}
        rest = [job for key, job in self.jobs.items() if key not in busy]
        return sorted(rest, key=lambda job: self.tries[job.key])

    @property
    def verdict(self) -> Verdict:
        """The worst of all; a run that has not finished has shown nothing."""
        found = [Verdict(one.verdict) for one in self.finished.values()]
        missing = [Verdict.INCONCLUSIVE] * (len(self.jobs) - len(found))
        return worst([*found, *missing])

    @property
    def counts(self) -> Counter[str]:
        """How many runs have finished with each verdict."""
        return Counter(one.verdict for one in self.finished.values())

    @property
    def note(self) -> str:
        """What else is to be said beside how far it is."""
        return f"{len(self.causes)} causes, {len(self.lost)} lost"

    def ordered_causes(self) -> Sequence[CauseGroup]:
        """The commonest first."""
        return sorted(self.causes.values(), key=lambda one: (-one.count, one.at_s))

    def as_json(self) -> dict[str, object]:
        """For programs."""
        failed = [one for one in self.finished.values() if one.verdict not in _GOOD]
        first = min((group.at_s for group in self.causes.values()), default=None)
        return {
            "runs": len(self.jobs),
            "finished": len(self.finished),
            "verdicts": dict(self.counts),
            "seconds": round(self.elapsed_s, 1),
            "first_bug_s": None if first is None else round(first, 1),
            "cells": len(self.cells),
            "causes": [one.as_json() for one in self.ordered_causes()],
            "known": [{**asdict(one), "count": count} for one, count in self.known.most_common()],
            "lost": [asdict(one) for one in self.lost],
            "failures": [
                {
                    name: getattr(one, name)
                    for name in ("key", "id", "verdict", "reason", "directory")
                }
                for one in failed
            ],
        }


_GOOD = ("success", "expected")


class CampaignJournal:
    """The journal of a campaign that somebody carries out: nobody else can meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with storing(path):
            self._file = open(path, "ab")  # noqa: SIM115  closed by `close`
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise UsageError(
                f"{path.parent}: somebody carries this campaign out just now"
            ) from None
        if not _ends_with_a_line(path):
            self._append(b"\n")  # the last one was cut off: its writer died

    def write(self, line: Mapping[str, Any]) -> None:
        """Append a line; when this returns it is on the disk."""
        self._append(json.dumps(line, ensure_ascii=True).encode() + b"\n")

    def _append(self, data: bytes) -> None:
        with storing(self._path):
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let others have it."""
        self._file.close()


def _ends_with_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return True
        file.seek(size - 1)
        return file.read(1) == b"\n"


def write_plan(directory: RunDirectory, title: str, folder: Path, jobs: Iterable[Job]) -> None:
    """Keep what a campaign consists of; `folder`: where its commands work."""
    rows = [{"key": job.key, "target": job.target, "words": list(job.words)} for job in jobs]
    told = {"format": FORMAT, "title": title, "folder": str(folder), "jobs": rows}
    directory.write_json(directory.path / PLAN, told)


@dataclass(frozen=True)
class CampaignPlan:
    """What a campaign consists of, as it is kept."""

    format: int
    title: str
    folder: str
    jobs: tuple[Job, ...]


def read_plan(directory: Path) -> CampaignPlan:
    """What a campaign consists of; a directory of something else is refused."""
    path = directory / PLAN
    if not path.is_file():
        raise UsageError(f"{directory}: no campaign lies there: it has no {PLAN}")
    plan = decode(CampaignPlan, documents.read_json(path, "campaign"), where=str(path))
    if plan.format != FORMAT:
        raise FormatError(str(path), [f"format {plan.format}: this Mutiny reads {FORMAT}"])
    return plan


def read_standing(directory: Path, jobs: Sequence[Job]) -> Standing:
    """Where a campaign stands; a line that was cut off says nothing."""
    standing = Standing({job.key: job for job in jobs})
    path = directory / JOURNAL
    if not path.exists():
        return standing
    lines = documents.read_text(path, "journal").split("\n")
    for number, text in enumerate(lines, 1):
        try:
            line = json.loads(text) if text.strip() else None
        except ValueError:
            continue
        if isinstance(line, dict):
            standing.take(line, f"{path}, line {number}")
    return standing
