"""Race mode: commands that compete, first in every order, then many times by luck.

The exhaustive part gives a proof up to its bound (all orders of the file operations with at most two
preemptions), where commands meet in files. Where they meet inside of one server process nothing can be
scheduled from outside, and only rounds are left; n rounds without a bug bound its rate, nothing more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from mutiny import stopping
from mutiny.contracts.board import operations as op
from mutiny.contracts.board.profile import BoardProfile
from mutiny.contracts.board.supported import supported
from mutiny.engine.sweeping import Sweep
from mutiny.errors import UsageError
from mutiny.kit.operations import MOST_AT_ONCE, Parallel, Reset
from mutiny.model.operation import Operation
from mutiny.model.verdict import Verdict, first_of_worst, worst
from mutiny.modes.bench import Assignment, Bench
from mutiny.modes.sweep import Sweeper
from mutiny.targets.board.spec import BoardSpec

KINDS = ("claims", "update", "lock", "toctou")
CONFIDENCE = 0.95
LONG_LEASE_S = 60.0
"""Longer than any schedule takes: a lease that ends in the middle would be another test."""
HOLD_S = 1.5
ONE_PROCESS = (
    "all commands meet in one server process: their order inside of it cannot be chosen from outside, "
    "so there is no exhaustive part"
)
Watch = Callable[[str, int, int, str], None]
"""What runs, how much of it is done, how much there is now, and a note."""


def bound(rounds: int) -> float:
    """The largest rate of a bug that n rounds without one leave possible, at 95 %."""
    return 1.0 if rounds < 1 else 1.0 - (1.0 - CONFIDENCE) ** (1.0 / rounds)


@dataclass(frozen=True)
class Contest:
    """Commands that compete, and what must be there before."""

    name: str
    before: tuple[Operation, ...]
    together: tuple[Operation, ...]


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
        """The worst of all parts; no part at all has tested nothing."""
        return worst(part.verdict for part in self.parts)

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {
            "target": self.target,
            "verdict": self.verdict.value,
            "confidence": CONFIDENCE,
            "parts": [part.as_json() for part in self.parts],
            "not_applicable": dict(self.not_applicable),
        }


# --- what competes --------------------------------------------------------------------------------


def _claims(tag: str, workers: int) -> Iterator[Contest]:
    """Everybody wants the same task."""
    task = f"task{tag}"
    names = [f"w{number}" for number in range(1, workers + 1)]
    rivals = tuple(op.Claim(name, task) for name in names)
    yield Contest(f"{workers} claims of one task", (op.AddTask(task),), rivals)


def _updates(tag: str, workers: int) -> Iterator[Contest]:
    """Different changes of the same board: the last writer must not win."""
    first, second, held = f"one{tag}", f"two{tag}", f"held{tag}"
    yield Contest("two adds", (), (op.AddTask(first), op.AddTask(second)))
    yield Contest(
        "complete against heartbeat",
        (op.AddTask(held), op.Claim("w1", held)),
        (op.Complete("w1", held), op.Heartbeat("w1")),
    )


def _toctou(tag: str, workers: int) -> Iterator[Contest]:
    """Somebody checks, somebody else changes, the first goes on."""
    wanted, saved, name = f"wanted{tag}", f"saved{tag}", f"copy{tag}"
    yield Contest(
        "cancel against claim", (op.AddTask(wanted),), (op.Cancel(wanted), op.Claim("w1", wanted))
    )
    yield Contest(
        "restore against complete",
        (op.AddTask(saved), op.Claim("w1", saved), op.Checkpoint(name)),
        (op.Restore(name), op.Complete("w1", saved)),
    )


_CONTESTS: dict[str, Callable[[str, int], Iterator[Contest]]] = {
    "claims": _claims,
    "update": _updates,
    "toctou": _toctou,
}
_BEGIN: tuple[Operation, ...] = (
    Reset(),
    op.Configure("lease_s", LONG_LEASE_S),
    op.Init(),
    op.Up(),
)


def beginning(profile: BoardProfile) -> tuple[Operation, ...]:
    """The way to an empty board, as far as this one has words for it."""
    return tuple(one for one in _BEGIN if supported(profile, one))


def contests(profile: BoardProfile, kind: str, tag: str, workers: int) -> tuple[Contest, ...]:
    """What competes in this kind of race and can be said to this board; `tag` keeps rounds apart."""
    found = _CONTESTS[kind](tag, workers) if kind in _CONTESTS else ()
    return tuple(
        contest
        for contest in (found if profile.names_tasks else map(_unnamed, found))
        if all(supported(profile, one) for one in (*contest.before, *contest.together))
    )


def _unnamed(contest: Contest) -> Contest:
    """For a board whose claims cannot name a task: they want the only one that is open."""
    before, together = (
        tuple(replace(one, task=None) if isinstance(one, op.Claim) else one for one in part)
        for part in (contest.before, contest.together)
    )
    return replace(contest, before=before, together=together)


def rounds_of(profile: BoardProfile, kind: str, rounds: int, workers: int) -> tuple[Operation, ...]:
    """One run of many rounds, each from a barrier."""
    body: list[Operation] = []
    for number in range(1, rounds + 1):
        for contest in contests(profile, kind, f"-{number}", workers):
            body += [*contest.before, Parallel(contest.together)]
    return (*beginning(profile), *body, op.Settle())


def lock_checks(profile: BoardProfile) -> tuple[Operation, ...]:
    """Changes while somebody holds the lock: they wait or say that it is taken."""
    held = (
        op.AddTask("locked-out"),
        op.Claim("w1", "first"),
        op.Complete("w1", "first"),
        op.Cancel("second"),
    )
    checks = tuple(op.HoldBoardLock(HOLD_S, one) for one in held if supported(profile, one))
    return (*beginning(profile), op.AddTask("first"), op.AddTask("second"), *checks, op.Settle())


# --- running --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Racer:
    """Runs races on one board."""

    bench: Bench
    rounds: int = 20
    workers: int = 2
    schedules: int | None = None
    """At most so many schedules of each contest; None: all of them."""
    watch: Watch = lambda *_: None
    told: Callable[[Tried], None] = lambda _: None
    """Hears of every part when it is over."""

    def run(self, kinds: Sequence[str]) -> Race:
        """Exhaustive parts first; the first bug ends the race."""
        spec = self.bench.target.spec
        if not isinstance(spec, BoardSpec):
            raise UsageError(
                f"target {self.bench.target.name} is no board; `mutiny race` needs one"
            )
        if not 2 <= self.workers <= MOST_AT_ONCE:
            raise UsageError(f"--workers must be between 2 and {MOST_AT_ONCE}, got {self.workers}")
        race = Race(self.bench.target.name)
        with contextlib.suppress(stopping.Stopped):  # what was tried is told
            for part in self._parts(kinds, spec, race):
                race.parts.append(part)
                self.told(part)
                if part.verdict.is_bug or stopping.asked():
                    break
        return race

    def _parts(self, kinds: Sequence[str], spec: BoardSpec, race: Race) -> Iterator[Tried]:
        profile = spec.profile
        competing = {kind: contests(profile, kind, "", self.workers) for kind in kinds}
        for kind in kinds:
            if kind in _CONTESTS and not competing[kind]:
                race.not_applicable[kind] = "the board has no words for its commands"
        if spec.server is not None:
            race.not_applicable["exhaustive"] = ONE_PROCESS
        else:
            for kind, found in competing.items():
                for contest in found:
                    yield self._exhaustive(kind, contest, beginning(profile))
        if "lock" in kinds:
            if "lock" not in spec.places or spec.server is not None:
                why = "its server keeps the lock" if spec.server else "no lock in [places]"
                race.not_applicable["lock"] = f"there is no lock that commands take: {why}"
            else:
                sequence = lock_checks(profile)
                held = sum(isinstance(one, op.HoldBoardLock) for one in sequence)
                yield self._plain("lock", "changes under a held lock", "held lock", sequence, held)
        for kind, found in competing.items():
            if found and self.rounds:
                sequence = rounds_of(profile, kind, self.rounds, self.workers)
                names = ", ".join(contest.name for contest in found)
                yield self._plain(kind, names, "rounds", sequence, self.rounds)

    def _exhaustive(self, kind: str, contest: Contest, begin: tuple[Operation, ...]) -> Tried:
        prefix = (*begin, *contest.before)
        sweeper = Sweeper(self.bench, prefix, Parallel(contest.together), jobs=1)
        title = f"{contest.name}, every order"

        def watch(done: int, total: int, points: object) -> None:
            self.watch(title, done, total, "schedules")

        sweep: Sweep = sweeper.run("preempt", (), self.schedules, watch)
        bad = first_of_worst(sweep.points, lambda point: point.verdict)
        directory = "" if sweep.first_bug is None else str(sweep.first_bug.directory.path)
        return Tried(
            kind,
            contest.name,
            "exhaustive",
            sweep.verdict,
            len(sweep.points),
            sweep.left_out == 0,
            bad.rule if bad else None,
            bad.message if bad else "",
            directory,
            sweep.judge_s,
        )

    def _plain(
        self, kind: str, what: str, how: str, operations: tuple[Operation, ...], count: int
    ) -> Tried:
        """One ordinary run; a bug has its report and its replay like any other."""
        total = len(operations)
        outcome = self.bench.run(
            Assignment(operations, f"race {kind}: {what}", 1, "race"),
            (lambda event: self.watch(f"{what}, {how}", event.sequence_id, total, "steps"),),
        )
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
        )
