"""Exploration: sequences that the model allows, chosen by weight, faults mixed in.

A sequence is a pure function of the seed: the model runs symbolically, so the same seed gives the
same operations on every machine, and a sequence can be shown before it runs. Chaos comes first;
then the recovery phase, where no fault is left and everything that is due must happen.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.advance import OK, REFUSED, advance
from mutiny.contracts.workers.expect import expect
from mutiny.contracts.workers.hazards import Hazards, ends_world, settles
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.profile import Profile
from mutiny.kit import faults
from mutiny.model.operation import Operation
from mutiny.seeds import stream

NAMES = ("alpha", "beta", "gamma")
FILES = ("alpha.txt", "beta.txt", "shared.txt", "src/shared.rs", "docs/notes.md")
CALM = ("obey", "obey", "slow:200", "slow:600", "stray", "garbage", "dirty")
WILD = (
    "hang",
    "nothing",
    "exit",
    "crash-in-commit",
    "swallow",
    "ignore-ctrl-c",
    "give-up",
    "no-stop",
)
MAX_HITS = 2
"""Faults that one task may have to bear before exploration leaves it in peace."""


@dataclass(frozen=True)
class _Candidate:
    weight: float
    make: Callable[[], Operation]


def generate(profile: Profile, seed: int, length: int) -> tuple[Operation, ...]:
    """Reset, Init, Up, `length` chosen operations, then recovery."""
    chooser = _Chooser(profile, stream(seed, "explore"))
    sequence: list[Operation] = [op.Reset()]
    beginning: tuple[Operation, ...] = (op.Init(), op.Up(), op.Add("alpha"))
    for operation in beginning:
        sequence.append(operation)
        chooser.apply(operation)
    while len(sequence) < length + 1 or chooser.next:
        operation = chooser.choose()
        sequence.append(operation)
        chooser.apply(operation)
    sequence.extend(chooser.recovery())
    return tuple(sequence)


class _Chooser:
    """Chooses the next operation from the beliefs."""

    def __init__(self, profile: Profile, rng: random.Random) -> None:
        self.model = WorkersModel(profile)
        self.random = rng
        self.last: Operation | None = None
        self.wild: set[str] = set()
        self.next: list[Operation] = []
        """What must come next, whatever else would be sensible."""

    def apply(self, operation: Operation) -> None:
        """Advance the beliefs symbolically."""
        if isinstance(operation, op.Parallel):
            for part in operation.operations:
                self.apply(part)
            return
        if isinstance(operation, faults.LibraryFault | faults.KillDuring | op.SweepPoint):
            self._apply_hazard(operation)
            return
        expectation = expect(self.model, operation, None)
        tokens = (
            (f"t{len(self.model.work)}",)
            if hasattr(operation, "prompt") or hasattr(operation, "message")
            else ()
        )
        outcome = OK if expectation.success else REFUSED
        if isinstance(operation, op.ExpectError):
            outcome = REFUSED
        if isinstance(operation, op.Behave):
            (self.wild.discard if operation.turns[0] in CALM else self.wild.add)(operation.worker)
        before = self.model
        self.model = advance(self.model, operation, outcome, tokens=tokens)
        if expectation.success and (expectation.rejections or before.lasting):
            self._doubt(op.worker_of(operation), before)
        self.last = operation

    def _apply_hazard(self, hazard: Operation) -> None:
        """Whether the command inside has happened, nobody knows: believe both."""
        inner = hazard.children()[0] if hazard.children() else None
        self.next += settles(hazard)
        if isinstance(hazard, faults.LibraryFault):
            self.model = advance(self.model, hazard, OK)
            # A fault that is healed before anybody asks the target anything has tested nothing.
            self.next += (op.Status(),) if hazard.lasting else ()
        if inner is not None:
            before = self.model
            self.apply(inner)
            self._doubt(op.worker_of(inner), before)
        if ends_world(hazard):
            after = self.model.disturb(str(hazard), tuple(self.model.workers), 0.0)
            self.model = replace(after, daemon=frozenset({False}))
        self.last = hazard

    def _doubt(self, name: str | None, before: WorkersModel) -> None:
        """Whether the command was served depends on the target's pace: believe both."""
        if name is None or name not in self.model.workers or name not in before.workers:
            return
        old, new = before.workers[name], self.model.workers[name]
        both = before.closure(old.statuses, old) | new.statuses
        self.model = self.model.with_worker(
            replace(new, statuses=both, tokens=new.tokens or old.tokens)
        )

    def choose(self) -> Operation:
        """One operation that makes sense now."""
        if self.next:
            return self.next.pop(0)
        candidates = [item for item in self._candidates() if item.weight > 0]
        weights = [item.weight for item in candidates]
        return self.random.choices(candidates, weights)[0].make()

    def recovery(self) -> Iterator[Operation]:
        """Faults off; everything must converge, and the work that is ready is accepted."""
        if self.model.lasting:
            yield faults.Heal()
        if self.model.source_dirty:
            yield op.DirtySource(undo=True)
        if self.model.daemon_certain is not True:
            yield op.Up()
        yield op.Settle()
        yield op.Doctor()
        yield op.Status()
        yield op.Down()

    # --- candidates ------------------------------------------------------------------------------

    def _candidates(self) -> Iterator[_Candidate]:
        running = self.model.daemon_certain is True
        tame = tuple(name for name in NAMES if name not in self.wild)
        hazards = Hazards(self.model, self.random, tame)
        if self.model.lasting:
            yield from (_Candidate(*hazard) for hazard in hazards.during())
            return
        yield from self._daemon(running)
        if self.model.workers and running:
            yield from self._work()
            yield from self._faults()
            if not any(belief.hits >= MAX_HITS for belief in self.model.workers.values()):
                yield from (_Candidate(*hazard) for hazard in hazards.calm())
        yield from self._illegal()
        yield _Candidate(0.4, op.Status)
        yield _Candidate(0.3, op.Settle)
        yield _Candidate(0.4, lambda: op.Doctor(repair=self.random.random() < 0.4, yes=True))
        yield _Candidate(0.5, lambda: op.Sleep(self.random.choice((0.05, 0.2, 0.5))))

    def _daemon(self, running: bool) -> Iterator[_Candidate]:
        if not running:
            yield _Candidate(12, op.Up)
            return
        yield _Candidate(0.5, op.Down)
        yield _Candidate(1.6, op.KillDaemon)
        if len(self.model.workers) < len(NAMES):
            name = next(name for name in NAMES if name not in self.model.workers)
            yield _Candidate(2.5, lambda: op.Add(name))

    def _work(self) -> Iterator[_Candidate]:
        for name, belief in self.model.workers.items():
            allowed = self.model.allowed(name)
            yield from self._work_of(name, allowed)
            if belief.tokens or "idle" in belief.statuses:
                yield _Candidate(0.35, lambda name=name: op.Nuke(name))  # type: ignore[misc]
                yield _Candidate(0.3, lambda name=name: op.ResetWorker(name))  # type: ignore[misc]
            if not belief.tokens:
                yield _Candidate(0.7, lambda name=name: self._behave(name))  # type: ignore[misc]

    def _work_of(self, name: str, allowed: frozenset[str]) -> Iterator[_Candidate]:
        belief = self.model.workers[name]
        busy = bool(belief.tokens) and bool(allowed & {"working", "rejected", "rebasing"})
        if belief.statuses == {"idle"}:
            if belief.offline_allowed and not isinstance(self.last, op.WaitForIdle):
                yield _Candidate(6, lambda: op.WaitForIdle(name))
            yield _Candidate(6 if not belief.offline_allowed else 1.5, lambda: self._start(name))
        certain = busy and "idle" not in allowed
        if not certain and len(belief.statuses) > 1:
            yield _Candidate(0.8, lambda: self._start(name))
            yield _Candidate(0.8, lambda: op.Accept(name))
            yield _Candidate(1.5, lambda: op.ResetWorker(name))
        if certain and "needs_review" in allowed and name not in self.wild:
            yield _Candidate(4, lambda: op.WaitForNeedsReview(name))
            yield _Candidate(1.2, lambda: op.Message(name, self._message()))
            yield _Candidate(0.4, lambda: op.Rebase(name))
        if belief.statuses == {"needs_review"}:
            yield _Candidate(5, lambda: op.Review(name))
            yield _Candidate(3, lambda: op.Accept(name))
            yield _Candidate(0.6, lambda: op.Rebase(name))
            yield _Candidate(0.8, lambda: op.Message(name, self._message()))
            if self.model.last_reviewed == name:
                yield _Candidate(2.5, lambda: op.Reject(self._message()))
                yield _Candidate(4, lambda: op.Accept(name))
            yield _Candidate(0.4, lambda: op.Parallel((op.Accept(name), op.Accept(name))))

    def _behave(self, name: str) -> Operation:
        turns = (self.random.choice(CALM if self.random.random() < 0.75 else WILD), "obey")
        return op.Behave(name, turns)

    def _start(self, name: str) -> Operation:
        file = self.random.choice((*FILES, f"{name}.txt"))
        start = op.Start(name, f"Create {file} with '{name} was here'")
        if self.random.random() < 0.08:
            return op.Parallel((start, op.Start(name, "Create other.txt")))
        return start

    def _message(self) -> str:
        return self.random.choice(
            ("Use uppercase", "Please also create extra.txt", "Add a header comment")
        )

    def _faults(self) -> Iterator[_Candidate]:
        for name, belief in self.model.workers.items():
            if belief.hits < MAX_HITS and name not in self.wild:
                yield _Candidate(0.8, lambda name=name: op.KillTmuxSession(name))  # type: ignore[misc]
                yield _Candidate(0.8, lambda name=name: op.KillAgent(name))  # type: ignore[misc]
        tired = any(belief.hits >= MAX_HITS for belief in self.model.workers.values())
        seen = any(not belief.offline_allowed for belief in self.model.workers.values())
        if not tired and seen:
            yield _Candidate(0.6, op.KillTmuxServer)
        yield _Candidate(0.6, lambda: op.PauseProcess("daemon", 0.4))
        if seen:
            yield _Candidate(0.6, lambda: op.PauseProcess("tmux", self.random.choice((0.6, 2.5))))
        yield _Candidate(0.5, lambda: op.CorruptState(self.random.choice(op.CORRUPTIONS)))
        yield _Candidate(
            0.5, lambda: op.MoveSource(self.random.choice(("upstream.txt", "shared.txt")))
        )
        if self.model.source_dirty:
            yield _Candidate(3, lambda: op.DirtySource(undo=True))
        else:
            yield _Candidate(0.5, op.DirtySource)

    def _illegal(self) -> Iterator[_Candidate]:
        """Commands that must be refused: a rejection is a promise too."""
        wrong: list[Operation] = [
            op.Start("nobody", "Create x.txt"),
            op.Message("nobody", "hello"),
            op.Accept("nobody"),
            op.Nuke("nobody"),
            *(op.Add(name) for name in self.model.workers),
        ]
        if self.model.daemon_certain is True:
            wrong.append(op.Up())
        for name in self.model.workers:
            wrong += [op.Accept(name), op.Start(name, "Create y.txt"), op.Review(name)]
        refused = [item for item in wrong if expect(self.model, item, None).rejection_due]
        if refused:
            yield _Candidate(1.2, lambda: op.ExpectError(self.random.choice(refused)))
