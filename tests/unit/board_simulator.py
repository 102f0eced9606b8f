"""longboat's board without processes: its own pure core under the contract, on a clock that jumps.

So a hundred sequences cost a second, and the contract's model is held against another
implementation of the same meaning.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from longboat.board import engine as core
from longboat.board.config import Config
from longboat.board.ledger import Guards, Moment
from longboat.board.values import Board, Command, NewTask
from mutiny.contracts.board import operations as op
from mutiny.contracts.board.contract import BoardContract
from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.contracts.board.outcomes import COMMANDS
from mutiny.contracts.board.profile import BoardProfile
from mutiny.contracts.board.sentences import understand
from mutiny.contracts.board.tasks import number_used
from mutiny.contracts.board.texts import UNNAMED, output_of
from mutiny.kit import operations as common
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation

STEP_S = 0.05


@dataclass
class Simulator:
    """A board in memory that is given operations one after the other."""

    config: Config
    board: Board = field(default_factory=Board)
    guards: Guards = field(default_factory=lambda: Guards(with_breaker=False))
    made: bool = False
    """`Init` or `Up` has made the board."""
    now: float = 1000.0
    beats: dict[str, float] = field(default_factory=dict)
    leader_beat: float = float("-inf")
    saved: dict[str, Board] = field(default_factory=dict)
    epochs: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    tokens: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def say(self, operation: Operation) -> dict[str, object]:
        """One command, one answer."""
        if not self.made:
            return {"ok": False, "error": "not_initialised", "message": "There is no board here"}
        command = self._command(operation)
        if core.beats(command):
            self.beats[command.worker] = self.now
        if command.verb == "checkpoint":
            self.saved[command.name] = core.for_checkpoint(self.board)
            return {"ok": True}
        if command.verb == "restore":
            return self._restore(command.name)
        moment = Moment(self.now, dict(self.beats), self.leader_beat)
        self.board, answer = core.apply(self.board, command, moment, self.config, self.guards)
        if answer["ok"] and core.renews(command):
            self.leader_beat = self.now
        self._remember(operation, answer)
        return answer

    def _restore(self, name: str) -> dict[str, object]:
        from longboat.board.ledger import MemoryLedger

        if name not in self.saved:
            return {"ok": False, "error": "unknown_checkpoint", "message": name}
        ledger = MemoryLedger(self.board, self.config, self.guards)
        answer = core.restore(ledger, self.saved[name])
        self.board = ledger.board()
        return answer

    def _remember(self, operation: Operation, answer: dict[str, object]) -> None:
        epoch, token = answer.get("epoch"), answer.get("token")
        if isinstance(operation, op.Claim) and isinstance(epoch, int):
            key = (operation.worker, str(answer["task"]))
            self.epochs[key] = (*self.epochs.get(key, ()), epoch)
        if isinstance(operation, op.Elect) and isinstance(token, int):
            self.tokens[operation.node] = (*self.tokens.get(operation.node, ()), token)

    def _command(self, operation: Operation) -> Command:
        verb = _VERBS.get(operation.type, operation.type.lower())
        command = Command(
            verb,
            worker=common.worker_of(operation) or "",
            task=op.task_of(operation) or "",
            name=str(getattr(operation, "node", getattr(operation, "name", ""))),
        )
        if isinstance(operation, op.AddTask):
            new = NewTask(
                f"task {operation.task}",
                operation.task,
                operation.priority,
                operation.depends,
                operation.max_attempts,
                "." * operation.size or None,
            )
            return command._replace(new=(new,))
        if isinstance(operation, op.AddUnnamed):
            return command._replace(new=(NewTask(f"task {UNNAMED}"),))
        if isinstance(operation, op.AddBatch):
            pairs = [op.split_new_task(text) for text in operation.tasks]
            wanted = tuple(NewTask(f"task {one}", one, depends=needs) for one, needs in pairs)
            return command._replace(new=wanted)
        if isinstance(operation, op.OwnerCommand):
            known = self.epochs.get((operation.worker, operation.task), ())
            command = command._replace(epoch=number_used(known, stale=operation.stale))
        if isinstance(operation, op.Complete):
            command = command._replace(text=output_of(operation))
        if isinstance(operation, op.LeaderCommand):
            known = self.tokens.get(operation.node, ())
            command = command._replace(token=number_used(known, stale=operation.stale) or 0)
        return command

    def look(self) -> BoardObservation:
        """What can be seen."""
        tasks = {
            task.id: TaskView(
                task.id,
                task.status,
                task.owner,
                task.epoch,
                task.attempts,
                task.max_attempts,
                task.priority,
                task.depends,
                task.completions,
                task.output,
                task.reason,
            )
            for task in self.board.tasks.values()
        }
        leader = self.board.leader
        return BoardObservation(
            self.now, self.now, self.now, tasks, None, False, leader.node, leader.token
        )


_VERBS = {
    "AddTask": "add",
    "AddUnnamed": "add",
    "AddBatch": "add-batch",
    "StepDown": "step-down",
    "WriteAsLeader": "write-as-leader",
}
SILENT = (op.Init, op.Up, op.Down, op.RestartServer)
LEFT_OUT = (
    *(op.CorruptBoard, op.Repair, op.HoldBoardLock, op.SpawnWorker, op.StopWorker, op.KillWorker),
    *(op.PauseWorker, op.KillServer, op.StartSecondServer, common.LibraryFault),
)


def simulate(
    sequence: Sequence[Operation], profile: BoardProfile, contract: BoardContract | None = None
) -> tuple[Operation, Violation] | None:
    """Run a sequence; the first broken promise and where it was broken."""
    contract = contract or BoardContract(profile)
    figures = profile.figures
    config = Config(**{name: getattr(figures, name) for name in op.SETTINGS})
    board = Simulator(config, guards=Guards(with_breaker=profile.breaker))
    beliefs = contract.initial()
    seen = contract.nothing_seen()
    for operation in sequence:
        if isinstance(operation, (*LEFT_OUT, common.Reset, common.Choice)):
            continue
        if isinstance(operation, common.KillDuring | common.SweepPoint):
            operation = operation.operation
        result = _execute(board, operation)
        before, seen = seen, board.look()
        answered = contract.judge(beliefs, operation, result, before, seen, board.now)
        if answered.violation is not None:
            return operation, answered.violation
        assert answered.verdict is not Verdict.INCONCLUSIVE, (operation, result)
        checked = contract.check(answered.model, operation, result.succeeded, before, seen)
        assert not checked.unreadable, checked.unreadable
        if checked.broken:
            return operation, checked.broken[0]
        assert checked.model is not None
        beliefs = checked.model
    return None


def _execute(board: Simulator, operation: Operation) -> OperationResult:
    if isinstance(operation, common.Sleep):
        board.now += operation.seconds
        return OperationResult()
    if isinstance(operation, op.Configure):
        kind = type(getattr(board.config, operation.name))
        board.config = board.config._replace(**{operation.name: kind(operation.value)})
        return OperationResult()
    if isinstance(operation, common.ExpectError):
        inner = _execute(board, operation.inner)
        return replace(inner, inner=(inner,))
    if isinstance(operation, common.Parallel):
        parts = tuple(_execute(board, part) for part in operation.operations)
        return OperationResult(inner=parts)
    if isinstance(operation, SILENT):
        board.made = True
        return OperationResult()
    if isinstance(operation, op.Verify):
        finding = understand(operation.sentence).of(board.look())
        return OperationResult(0 if finding.so else 1, stderr=finding.why)
    if isinstance(operation, op.AssertStatus | op.AssertOwner):
        view = (board.look().tasks or {}).get(operation.task)
        wanted = getattr(operation, "status", None) or getattr(operation, "worker", None)
        good = view is not None and wanted in (view.status, view.owner)
        return OperationResult(0 if good else 1, stderr=f"{view}")
    if not isinstance(operation, COMMANDS):
        return OperationResult()
    invoked = board.now
    board.now += STEP_S
    answer = board.say(operation)
    board.now += STEP_S
    details = {"answer": answer, "invoked": invoked, "returned": board.now}
    said = str(answer.get("message", ""))
    return OperationResult(0 if answer["ok"] else 1, stderr=said, details=details)


def finished(sequence: Sequence[Operation]) -> tuple[Operation, ...]:
    """A generated sequence up to its recovery, which needs real workers."""
    return tuple(itertools.takewhile(lambda one: getattr(one, "worker", "") != "helper", sequence))
