"""A run without a board: operations walk through the model on a clock that nobody waits for.

Exploration chooses with it and minimisation discards with it; neither starts anything.
"""

from __future__ import annotations

from dataclasses import replace

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.background import control
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.observation import BoardObservation
from mutiny.contracts.board.outcomes import COMMANDS, learn, outcomes, server_killed
from mutiny.kit import operations as common
from mutiny.kit.answer import Answer
from mutiny.kit.beliefs import ANYTIME, Span
from mutiny.kit.domains import strange
from mutiny.model.operation import Operation

STEP_S = 0.1
"""How long a command takes, about."""


class Walk:
    """The beliefs on the way through a sequence."""

    def __init__(self, model: BoardModel) -> None:
        self.model = model
        self.now = 0.0
        self.sure = True
        """Was each outcome so far the only right one, however long everything takes?"""

    @property
    def lasting(self) -> bool:
        """Is a fault on that lasts?"""
        return bool(self.model.lasting)

    @property
    def moment(self) -> Span:
        return Span(self.now, self.now + STEP_S / 2)

    def apply(self, operation: Operation) -> None:
        """Take the first outcome that the model holds for right."""
        self.now += getattr(operation, "seconds", 0.0) + STEP_S
        if isinstance(operation, common.Reset):
            self.model, self.sure = BoardModel(self.model.profile), True
        elif isinstance(operation, COMMANDS):
            self._command(operation)
        elif isinstance(operation, common.ExpectError | common.Wrongly | common.Choice):
            return
        elif isinstance(operation, common.Parallel | common.Interleave | common.Trace):
            for part in operation.children():
                self.apply(part)
            self.sure = self.sure and isinstance(operation, common.Trace)
        elif isinstance(operation, common.SweepPoint | common.KillDuring):
            self.apply(operation.operation)
            self.sure = False
            if operation.ends_world:
                self.model = replace(self.model.all_blurred(), spawned={}, up=frozenset({False}))
        elif operation.children():
            self.apply(operation.children()[0])
            self.sure = False
            if isinstance(operation, op.KillServer):
                self.model = server_killed(self.model)
        else:
            living = frozenset(self.model.spawned)
            if isinstance(operation, op.SpawnWorker):
                living |= set(operation.names)
            seen = BoardObservation(began=self.now, ended=self.now, living=living)
            self.model = control(self.model, operation, seen)
            self.sure = self.sure and not self.model.spawned and not self.model.damaged
            if (
                isinstance(operation, common.LibraryFault)
                and operation.lasting
                and not operation.harmless
            ):
                self.model = replace(self.model, lasting=(*self.model.lasting, operation))
        if isinstance(operation, op.Settle):
            self.model = replace(self.model, faults=(), lasting=())

    def _command(self, operation: Operation) -> None:
        if isinstance(operation, op.AddTask) and strange(operation, self.model.profile.names):
            return  # whether a target takes such a name, nobody knows
        if isinstance(operation, op.AddUnnamed):
            self.sure = False  # what it is called only a board tells, and a claim may get it
        right = outcomes(self.model, operation, self.moment)
        ways = {(one.success, one.task) for one in outcomes(self.model, operation, ANYTIME)}
        self.sure = self.sure and len(ways) == 1
        taken = next((outcome for outcome in right if outcome.success), right[0])
        after = taken.after
        if taken.success:
            after = learn(after, operation, _answer(after, operation, taken.task))
        self.model = after.acknowledged(self.model)

    def first_choice(self, claim: op.Claim) -> str | None:
        """The task that a claim gets, when nothing but order decides."""
        right = outcomes(self.model, claim, self.moment)
        return next((outcome.task for outcome in right if outcome.success), None)

    def served(self, command: Operation) -> bool | None:
        """Is a command sure to be served (True), or sure to be refused (False), at whatever pace?"""
        ways = {outcome.success for outcome in outcomes(self.model, command, ANYTIME)}
        if len(ways) > 1 or (True in ways and strange(command, self.model.profile.names)):
            return None
        always = isinstance(command, op.Checkpoint | op.Status | op.List)
        # What it depends on may not be there, after a command whose outcome nobody learned.
        always |= isinstance(command, op.AddTask) and not command.depends
        return None if True in ways and not (self.sure or always) else True in ways

    def situation(self, command: Operation) -> str:
        """The state that a command meets, in a word."""
        model = self.model
        if not model.initialised:
            return "no board"
        if model.profile.server and model.serving is not True:
            return "server down"
        name = op.task_of(command)
        if name is None:
            return "nobody leads" if model.leader is None else "somebody leads"
        task = model.tasks.get(name)
        if task is None:
            return "absent"
        owner = "own" if task.owner == common.worker_of(command) else "another's"
        return f"{task.status}, {owner}" if task.held else task.status

    def certain(self, operation: Operation) -> bool | None:
        """Is a command sure to be served? False: sure to be refused; None: time decides."""
        right = outcomes(self.model, operation, self.moment)
        served = {outcome.success for outcome in right}
        return next(iter(served)) if len(served) == 1 else None


def _answer(after: BoardModel, operation: Operation, task: str | None) -> Answer:
    said: dict[str, object] = {}
    if isinstance(operation, op.Claim) and task is not None:
        said = {"task": task, "epoch": after.tasks[task].epoch}
    if isinstance(operation, op.Elect):
        said = {"token": after.top_token}
    return Answer(True, "", said)
