"""A run without a target: operations walk through the beliefs, and nobody waits for anything.

Exploration chooses with it and minimisation discards with it. Where several outcomes are right the
beliefs hold all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers import outcomes
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.outcomes import expect
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.steps import follows
from mutiny.kit import operations as common
from mutiny.kit.domains import plain_name
from mutiny.kit.judging import Moment
from mutiny.model.operation import Kind, Operation, walk

CALM = ("obey", "slow", "stray", "garbage", "dirty", "reshape", "reshape-dirty")
"""Behaviours under which an agent does as it is told."""


def served(model: WorkersModel, command: Operation) -> bool | None:
    """Is a command sure to be served (True), or sure to be refused (False)?"""
    expectation = expect(model, command)
    return True if expectation.success_due else False if expectation.rejection_due else None


def outcome_taken(
    model: WorkersModel, operation: Operation, tokens: tuple[str, ...]
) -> WorkersModel:
    """The beliefs when it succeeds if it can, and is refused otherwise."""
    moment: Moment[Observation] = Moment(tokens=tokens)
    if operation.kind is not Kind.COMMAND:
        return follows(model, operation, moment)
    possible = expect(model, operation).success
    return (outcomes.served if possible else outcomes.refused)(model, operation, moment)


class Walk:
    """The beliefs on the way through a sequence."""

    def __init__(self, profile: Profile) -> None:
        self.model = WorkersModel(profile)
        self.last: Operation | None = None
        self.wild: frozenset[str] = frozenset()
        """Workers whose agents were told to misbehave."""
        self.reviewed: tuple[str, ...] = ()
        """Who may have been reviewed last, when the target has chosen whom; empty: that is known."""
        self.said = ""
        """Everything that agents were told, with the names of all files that may have come of it."""

    @property
    def lasting(self) -> bool:
        """Is a fault on that lasts?"""
        return bool(self.model.lasting)

    def served(self, command: Operation) -> bool | None:
        """Is a command sure to be served (True), or sure to be refused (False)?"""
        unclear = self.reviewed and isinstance(command, op.AcceptReviewed | op.Reject)
        return None if unclear else served(self.model, command)

    def refusals(self, command: Operation) -> frozenset[str]:
        """The refusals that would be true now."""
        return expect(self.model, command).rejections

    def situation(self, command: Operation) -> str:
        """The state that a command meets, in a word."""
        model = self.model
        if not model.initialised:
            return "no workspace"
        name = _subject(model, command)
        daemon = {True: "up", False: "down", None: "unknown"}[model.daemon_certain]
        if name is None:
            return "no daemon" if model.profile.daemonless else f"daemon {daemon}"
        if name not in model.workers:
            return "absent"
        if daemon != "up" and command.type in model.profile.needs_daemon:
            return f"daemon {daemon}"
        if isinstance(command, op.Accept | op.AcceptReviewed) and model.source_dirty:
            return "dirty source"
        statuses = model.workers[name].statuses
        return next(iter(statuses)) if len(statuses) == 1 else "unclear"

    def apply(self, operation: Operation) -> None:
        """Advance the beliefs; what nobody can know is believed both ways."""
        before, self.model = self.model, self._after(self.model, operation)
        for part in walk(operation):
            if isinstance(part, op.ReviewNext):
                self.reviewed = (*self.reviewed, *_chosen_by_target(before))
            names = [getattr(part, name, "") for name in ("prompt", "message")]
            self.said += " ".join(
                ("", *names, part.path if isinstance(part, op.MoveSource) else "")
            )
        if isinstance(operation, op.Review | common.Reset):
            self.reviewed = ()
        if isinstance(operation, op.Behave):
            calm = all(turn.partition(":")[0] in CALM for turn in operation.turns)
            self.wild = self.wild - {operation.worker} if calm else self.wild | {operation.worker}
        self.last = operation

    def _after(self, model: WorkersModel, operation: Operation) -> WorkersModel:
        if isinstance(operation, common.Reset):
            return WorkersModel(model.profile)
        if isinstance(operation, common.ExpectError | common.Wrongly):
            return model
        if isinstance(operation, common.Choice):
            return self._after(model, operation.options[0])
        if isinstance(operation, common.Parallel | common.Interleave):
            return self._at_once(model, operation.operations)
        if isinstance(operation, common.Trace):
            return self._after(model, operation.operation)
        if operation.children():
            return self._hindered(model, operation)
        return self._told(model, operation)

    def _told(
        self, model: WorkersModel, operation: Operation, reviewed: tuple[str, ...] | None = None
    ) -> WorkersModel:
        """One operation by itself, when these may have been reviewed last."""
        reviewed = self.reviewed if reviewed is None else reviewed
        if isinstance(operation, op.Add) and not plain_name(operation.worker):
            return model  # whether a target takes such a name, nobody knows
        if isinstance(operation, op.ReviewNext) and _chosen_by_target(model):
            return _any_of(model, op.Review, _chosen_by_target(model))
        if isinstance(operation, op.AcceptReviewed) and reviewed:
            return _any_of(model, op.Accept, reviewed)
        said = hasattr(operation, "message") or (
            hasattr(operation, "prompt") and (operation.prompt or not isinstance(operation, op.Add))
        )
        after = outcome_taken(model, operation, (f"t{len(model.work)}",) if said else ())
        expectation = expect(model, operation)
        if expectation.success and (expectation.rejections or model.lasting):
            return _both(after, model, _subject(model, operation))
        return after

    def _at_once(self, model: WorkersModel, parts: tuple[Operation, ...]) -> WorkersModel:
        """Commands at once have happened in some order: believe every one."""
        worlds = []
        for order in itertools.permutations(parts):
            world, reviewed = model, self.reviewed
            for part in order:
                chosen = _chosen_by_target(world) if isinstance(part, op.ReviewNext) else ()
                world, reviewed = self._told(world, part, reviewed), (*reviewed, *chosen)
            worlds.append(world)
        after = worlds[0]
        for world in worlds[1:]:
            after = replace(after, daemon=after.daemon | world.daemon)
            for name in after.workers:
                after = _both(after, world, name)
        return after

    def _hindered(self, model: WorkersModel, hazard: Operation) -> WorkersModel:
        """Whether the command inside has happened, nobody knows: believe both."""
        inner = hazard.children()[0]
        later = isinstance(hazard, op.KillDaemon)  # the command comes first, and then its end
        before = model if later or _breaks(hazard) else outcome_taken(model, hazard, ())
        after = self._told(before, inner)
        after = _both(after, before, _subject(before, inner))
        after = replace(after, daemon=after.daemon | before.daemon)
        if later:
            return outcome_taken(after, op.KillDaemon(), ())
        if not hazard.ends_world:
            return after
        after = after.disturb(str(hazard), tuple(after.workers), 0.0)
        return replace(after, daemon=frozenset({False}))


def _both(model: WorkersModel, other: WorkersModel, name: str | None) -> WorkersModel:
    """The beliefs about a worker from both worlds; who exists is said by the first."""
    if name is None or name not in model.workers or name not in other.workers:
        return model
    old, new = other.workers[name], model.workers[name]
    both = other.closure(old.statuses, old) | new.statuses
    return model.with_worker(
        replace(
            new,
            statuses=both,
            tokens=new.tokens or old.tokens,
            offline_allowed=new.offline_allowed or old.offline_allowed,
        )
    )


def _chosen_by_target(model: WorkersModel) -> tuple[str, ...]:
    """Whom a review without a name may mean, where that is not clear."""
    whom, surely = model.next_reviews(None, None)
    return whom if len(whom) > 1 or not surely else ()


def _any_of(
    model: WorkersModel, make: Callable[[str], Operation], names: tuple[str, ...]
) -> WorkersModel:
    """A command about somebody that the target chooses, or about nobody: each of them may be meant."""
    after = model
    for name in names:
        after = _both(outcome_taken(after, make(name), ()), after, name)
    return replace(after, last_reviewed=model.last_reviewed)


def _subject(model: WorkersModel, operation: Operation) -> str | None:
    """The worker that an operation is about."""
    return op.meant(operation, model.last_reviewed)


def _breaks(operation: Operation) -> bool:
    return isinstance(operation, common.SweepPoint | common.KillDuring)
