"""Race mode: commands that compete, first in every order, then many times by luck.

The exhaustive part gives a proof up to its bound (all orders of the file operations with at most two
preemptions), where commands meet in files. Where they meet inside of one server process nothing can be
scheduled from outside, and only rounds are left; n rounds without a bug bound its rate, nothing more.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from mutiny import stopping
from mutiny.engine.known import Known, known_as_json
from mutiny.engine.loop import Event
from mutiny.engine.sweeping import Sweep
from mutiny.errors import UsageError
from mutiny.kit.abilities import Contest, Races
from mutiny.kit.operations import MOST_AT_ONCE, Parallel
from mutiny.model.operation import Operation
from mutiny.model.verdict import Verdict, first_of_worst, worst
from mutiny.modes.behind import run_behind
from mutiny.modes.bench import Assignment, Bench
from mutiny.modes.subject import ability
from mutiny.modes.sweep import Sweeper

KINDS = ("claims", "update", "lock", "toctou")
LOCK, EXHAUSTIVE = "lock", "exhaustive"
CONFIDENCE = 0.95
Watch = Callable[[str, int, int, str], None]
"""What runs, how much of it is done, how much there is now, and a note."""


def bound(rounds: int) -> float:
    """The largest rate of a bug that n rounds without one leave possible, at 95 %."""
    return 1.0 if rounds < 1 else 1.0 - (1.0 - CONFIDENCE) ** (1.0 / rounds)


@dataclass(frozen=True)
class Tried:
    """One part of a race and what came of it."""

    kind: str
    what: str
    how: str
    """`exhaustive`, `held lock` or `rounds`."""
    verdict: Verdict
    count: int
    """Schedules, or rounds."""
    complete: bool = True
    """Exhaustive: those were all schedules."""
    rule: str | None = None
    message: str = ""
    directory: str = ""
    seconds: float = 0.0
    known: str = ""
    """It ended with a known finding: why that is no news."""
    met: tuple[Known, ...] = ()
    """The known findings on its way."""

    @property
    def rate_at_most(self) -> float | None:
        """Rounds without a bug: its rate is at most this, at 95 %."""
        return bound(self.count) if self.how == "rounds" and not self.verdict.stops_run else None

    def as_json(self) -> dict[str, object]:
        """For programs."""
        unit = "rounds" if self.how == "rounds" else "schedules"
        return {
            "kind": self.kind,
            "what": self.what,
            "how": self.how,
            unit: self.count,
            "complete": self.complete,
            "verdict": self.verdict.value,
            "rule": self.rule,
            "message": self.message,
            "rate_at_most": self.rate_at_most,
            "directory": self.directory or None,
            "known": self.known or None,
            "seconds": round(self.seconds, 2),
        }


@dataclass
class Race:
    """A finished race."""

    target: str
    parts: list[Tried] = field(default_factory=list)
    not_applicable: dict[str, str] = field(default_factory=dict)
    """What could not be tried on this target, and why."""

    @property
    def verdict(self) -> Verdict:
        """The worst of all parts but the known ones; no part at all has tested nothing."""
        news = [part.verdict for part in self.parts if not part.known]
        return Verdict.SUCCESS if self.parts and not news else worst(news)

    @property
    def known(self) -> Counter[Known]:
        """How often each known finding was met."""
        return Counter(entry for part in self.parts for entry in part.met)

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {
            "target": self.target,
            "verdict": self.verdict.value,
            "confidence": CONFIDENCE,
            "parts": [part.as_json() for part in self.parts],
            "known": known_as_json(self.known),
            "not_applicable": dict(self.not_applicable),
        }


def rounds_of(races: Races, kind: str, rounds: int, workers: int) -> tuple[Operation, ...]:
    """One run of many rounds, each from a barrier."""
    body: list[Operation] = []
    for number in range(1, rounds + 1):
        for contest in races.contests(kind, f"-{number}", workers):
            body += [*contest.before, Parallel(contest.together)]
    return (*races.beginning, *body, *races.ending)


# --- running --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Racer:
    """Runs races on one target."""

    bench: Bench
    rounds: int = 20
    workers: int = 2
    schedules: int | None = None
    """At most so many schedules of each contest; None: all of them."""
    watch: Watch = lambda *_: None
    told: Callable[[Tried], None] = lambda _: None
    """Hears of every part when it is over."""

    def run(self, kinds: Sequence[str]) -> Race:
        """Exhaustive parts first; the first bug that nobody knew of ends the race."""
        races: Races = ability(self.bench.target, "race")
        if not 2 <= self.workers <= MOST_AT_ONCE:
            raise UsageError(f"--workers must be between 2 and {MOST_AT_ONCE}, got {self.workers}")
        race = Race(self.bench.target.name)
        with contextlib.suppress(stopping.Stopped):  # what was tried is told
            for part in self._parts(kinds, races, race):
                race.parts.append(part)
                self.told(part)
                if (part.verdict.is_bug and not part.known) or stopping.asked():
                    break
        return race

    def _parts(self, kinds: Sequence[str], races: Races, race: Race) -> Iterator[Tried]:
        competing = {kind: races.contests(kind, "", self.workers) for kind in kinds}
        for kind in kinds:
            if not competing[kind] and kind != LOCK:
                race.not_applicable[kind] = "the target has no words for its commands"
        for kind, why in races.left_out.items():
            if kind in (*kinds, EXHAUSTIVE):
                race.not_applicable[kind] = why
        if EXHAUSTIVE not in races.left_out:
            for kind, found in competing.items():
                for contest in found:
                    yield self._exhaustive(kind, contest, races.beginning)
        if LOCK in kinds and races.locked:
            what = "changes under a held lock"
            yield self._plain(LOCK, what, "held lock", races.locked, races.under_lock)
        for kind, found in competing.items():
            if found and self.rounds:
                sequence = rounds_of(races, kind, self.rounds, self.workers)
                names = ", ".join(contest.name for contest in found)
                yield self._plain(kind, names, "rounds", sequence, self.rounds)

    def _exhaustive(self, kind: str, contest: Contest, begin: tuple[Operation, ...]) -> Tried:
        prefix = (*begin, *contest.before)
        sweeper = Sweeper(self.bench, prefix, Parallel(contest.together), jobs=1)
        title = f"{contest.name}, every order"

        def watch(done: int, total: int, points: object) -> None:
            self.watch(title, done, total, "schedules")

        sweep: Sweep = sweeper.run("preempt", (), self.schedules, watch)
        new = [point for point in sweep.points if not point.known]
        bad = first_of_worst(new, lambda point: point.verdict)
        directory = "" if sweep.first_bug is None else str(sweep.first_bug.directory.path)
        return Tried(
            kind,
            contest.name,
            EXHAUSTIVE,
            sweep.verdict,
            len(sweep.points),
            sweep.left_out == 0,
            bad.rule if bad else None,
            bad.message if bad else "",
            directory,
            sweep.judge_s,
            met=tuple(sweep.known.elements()),
        )

    def _plain(
        self, kind: str, what: str, how: str, operations: tuple[Operation, ...], count: int
    ) -> Tried:
        """One ordinary run; a bug has its report and its replay like any other."""
        total = len(operations)

        def tell(event: Event) -> None:
            self.watch(f"{what}, {how}", event.sequence_id, total, "steps")

        tried = run_behind(
            self.bench,
            Assignment(operations, f"race {kind}: {what}", 1, "race"),
            lambda assignment, _kind: self.bench.run(assignment, (tell,)),
        )
        outcome = tried.outcome
        if outcome.verdict is Verdict.SUCCESS:
            outcome.directory.discard()
        return Tried(
            kind,
            what,
            how,
            outcome.verdict,
            count,
            True,
            outcome.rule,
            outcome.reason,
            str(outcome.directory.path) if outcome.verdict.stops_run else "",
            outcome.duration_s,
            tried.excuse,
            tuple(entry for entry, _ in tried.met),
        )
