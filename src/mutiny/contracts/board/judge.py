"""What is special about judging a board: loose boards, damaged states, servers that come and go.

Everything that is the same for all contracts is in `mutiny.kit.judging`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.answers import untrue_alone, untrue_now, wrongly_listed
from mutiny.contracts.board.background import control
from mutiny.contracts.board.damage import damage_in, hurt, mended
from mutiny.contracts.board.explain import KNOWN, explain
from mutiny.contracts.board.invariants import moment_of
from mutiny.contracts.board.load import driven, went_on, wrong_with_load
from mutiny.contracts.board.model import BoardModel, BoardOutcome
from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.contracts.board.outcomes import learn, server_killed
from mutiny.contracts.board.showing import untrue_guards, untrue_list
from mutiny.contracts.board.supported import UNDER_ENGINE
from mutiny.contracts.board.tasks import Task
from mutiny.kit import operations as common
from mutiny.kit.answer import Answer
from mutiny.kit.beliefs import ANYTIME, Span, distinct
from mutiny.kit.domains import BAD_INPUT, strange
from mutiny.kit.judging import BESIDE_OTHERS, CERTAIN, Judge, Judged, Moment
from mutiny.kit.questions import Heard
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation

EXACT = (
    *(op.Init, op.Up, op.Down, op.RestartServer, op.StartSecondServer, op.AddTask, op.AddBatch),
    op.AddUnnamed,
    *(op.AddMany, op.Checkpoint, op.Elect, op.Renew, op.StepDown, op.WriteAsLeader, op.Heartbeat),
    *(op.Status, op.List),
)
"""Commands whose outcome does not depend on what others do with the tasks meanwhile."""


LIFE = (op.Init, op.Up, op.Down, op.RestartServer, op.StartSecondServer)
"""Commands about the server, not about what the board holds."""
Judgement = Judged[BoardModel]
When = Moment[BoardObservation]


def _numbered(task: Task, view: TaskView) -> Task:
    """A task with its numbers as they are seen, as far as they are shown."""
    return replace(
        task,
        priority=task.priority if view.priority is None else view.priority,
        max_attempts=view.max_attempts or task.max_attempts,
        depends=view.depends,
        status=view.status,
    )


class BoardJudge(Judge[BoardModel, BoardObservation]):
    """Judges one operation on a board."""

    certain = (*CERTAIN, "one_server", "lock_respected", "no_growth", "linearizable", "tokens_grow")

    def prepared(self, model: BoardModel, operation: Operation) -> BoardModel:
        """For the system-call engine the server was stopped, and the command has brought its own."""
        anew = isinstance(operation, UNDER_ENGINE) and model.profile.server
        return _served_anew(model) if anew else model

    def part(
        self,
        model: BoardModel,
        operation: Operation,
        result: OperationResult,
        *,
        first: bool = True,
        alone: bool = True,
    ) -> Judgement:
        """A node that is elected beside its own command shows the token that it had before."""
        judged = super().part(model, operation, result, first=first, alone=alone)
        if (
            alone
            or judged.verdict is not Verdict.BUG
            or not isinstance(operation, op.LeaderCommand)
        ):
            return judged
        given = max(model.tokens.get(operation.node, (0,))) > (self.before.token or 0)
        if given and self.contract.read(result).classes <= {"stale_token"}:
            return Judged(Verdict.EXPECTED, (model,), None, "its token is an older one")
        return judged

    def misheard(self, before: BoardModel, model: BoardModel, operation: Operation) -> BoardModel:
        """What was added with too few words has the numbers that the board gave it."""
        seen = self.seen.tasks or {}
        tasks = {
            name: task if name in before.tasks or name not in seen else _numbered(task, seen[name])
            for name, task in model.tasks.items()
        }
        return replace(model, tasks=tasks)

    def span(self, result: OperationResult) -> Span:
        """When the command was given and answered; at least, between which looks."""
        told = super().span(result)
        return moment_of(self.before, self.seen) if told is ANYTIME else told

    def special(
        self, model: BoardModel, operation: Operation, result: OperationResult
    ) -> Judgement | None:
        """Loads, histories, and a server that is killed after an answer."""
        if isinstance(operation, op.Drive):
            return self._driven(model, operation, result)
        parts = operation.children() if common.competes(operation) else ()
        if any(isinstance(part, op.Restore) and part.name in model.vague for part in parts):
            # What it held nobody knows, and what is seen now may be the work of the others.
            return Judged(Verdict.INCONCLUSIVE, (model.adopt(self.seen),))
        if isinstance(operation, op.KillServer) and operation.after is not None:
            return self._killed_after(model, operation, operation.after, result)
        if operation.kind not in (Kind.WAIT, Kind.ASSERTION):
            return None
        history = result.details.get("history")
        told = history.get("verdict") if isinstance(history, Mapping) else None
        if isinstance(history, Mapping) and told == "no":
            text = f"The history cannot be put in any order: {history.get('text')}"
            found = self.violation("linearizable", text, str(history.get("key", "")))
            return Judged(Verdict.BUG, (model,), found)
        unrepaired = model.damaged and self.seen.tasks is None  # then nothing settles
        if result.succeeded and operation.kind is Kind.WAIT and (told == "unknown" or unrepaired):
            return Judged(Verdict.INCONCLUSIVE, (model,))
        return None

    def follows(
        self, model: BoardModel, operation: Operation, moment: When
    ) -> Sequence[BoardModel]:
        """After a fault, a wait, or a step that is not said to the board."""
        if isinstance(operation, op.Settle):
            return (replace(model.see(self.seen), faults=(), lasting=()),)
        damage = damage_in(operation)
        if damage is None:
            after = control(model, operation, self.seen)
        else:
            after = model.fault(str(operation))
        if (
            isinstance(operation, common.LibraryFault)
            and operation.lasting
            and not operation.harmless
        ):
            after = replace(after, lasting=(*after.lasting, operation))
        return (after,) if damage is None else hurt(after, damage, self.seen)

    def struck(self, model: BoardModel, operation: Operation, moment: When) -> BoardModel:
        """A disk that lied, a world that ended, a server that came back."""
        hit = model.fault(str(operation))
        if isinstance(operation, common.TearAt) and operation.mode == "lie":
            written = operation.operation
            name = {written.name} if isinstance(written, op.Checkpoint) else set[str]()
            hit = replace(hit, damaged=True, spoiled=hit.spoiled | name)
        if operation.ends_world:
            # All processes are gone, and nobody knows how long that took.
            return replace(hit.all_blurred(), up=frozenset({False}), spawned={}, lasting=())
        return _served_anew(hit) if model.profile.server else hit

    def unclear(
        self, model: BoardModel, operation: Operation, answer: Answer, moment: When
    ) -> Judgement | None:
        """A fault has written what the board reads, or others work on it."""
        if model.spawned and answer.classes and answer.classes <= BESIDE_OTHERS:
            return Judged(Verdict.EXPECTED, (_at_least_heard(model, operation, moment.span),))
        if model.doubted and not isinstance(operation, LIFE):
            return self._in_the_dark(model, operation, answer)
        if model.loose and not isinstance(operation, EXACT):
            return self._loosely(model, operation, answer, moment.span)
        return None

    def dishonest(self, model: BoardModel, heard: Heard) -> Violation | None:
        """A number that does not grow, or a status that does not agree with what was seen around it."""
        answer = heard.answer
        untrue = self._backwards(model, heard.operation, answer) or self._untrue(model, heard)
        if untrue is not None or not heard.alone or not isinstance(heard.operation, op.Status):
            return untrue
        return self._shown_alive(answer) or self._miscounted(answer)

    def explain(
        self,
        model: BoardModel,
        operation: Operation,
        result: OperationResult,
        right: Sequence[BoardOutcome],
        moment: When,
    ) -> Violation:
        """The most telling promise that the answer breaks."""
        return explain(model, operation, self.contract.read(result), right, moment.span)

    def unordered(
        self,
        parts: Sequence[Operation],
        results: Sequence[OperationResult],
        deepest: Judgement,
    ) -> Violation:
        """Two workers with one task, or what was wrong in the order that came furthest."""
        assert deepest.violation is not None
        return self._claimed_twice(parts, results) or deepest.violation

    def unknown(
        self, model: BoardModel, operation: Operation, moment: When
    ) -> tuple[BoardModel, ...]:
        """It has happened or it has not; a repair may still take it back."""
        heard = _at_least_heard(model, operation, moment.span)
        after = (one.after for one in self.contract.outcomes(model, operation, moment))
        worlds = distinct((heard, *after))
        return tuple(world.or_else(worlds) for world in worlds)

    def failed(
        self, model: BoardModel, operation: Operation, answer: Answer, moment: When
    ) -> tuple[BoardModel, ...]:
        """A board that says that nothing happened is taken by its word."""
        if answer.said.get("happened") == "no":
            return (_at_least_heard(model, operation, moment.span),)
        return self.unknown(model, operation, moment)

    def proves_nothing(
        self, model: BoardModel, operation: Operation, result: OperationResult
    ) -> bool:
        """What a command has done can be asserted under a fault, too."""
        if operation.kind is Kind.ASSERTION:
            unknown = bool(result.details.get("unknown") or model.doubted)
            return unknown or self._took_too_long(model, operation)
        return super().proves_nothing(model, operation, result)

    def _took_too_long(self, model: BoardModel, operation: Operation) -> bool:
        """A lease was over before the scenario came here, and the board did right by that."""
        task = model.tasks.get(op.task_of(operation) or "")
        view = (self.seen.tasks or {}).get(task.id) if task is not None else None
        if task is None or view is None:
            return False
        as_due = view.status == task.status and (view.owner == task.owner or not task.held)
        return as_due and self.came_late(model)

    def came_late(self, model: BoardModel) -> bool:
        """Somebody's lease may be over."""
        now = moment_of(self.before, self.seen)
        return any(model.stale(worker, now) is not False for worker in model.heard)

    def overdue(
        self, model: BoardModel, operation: Operation, result: OperationResult
    ) -> Violation | None:
        """Nothing has moved for longer than the board's own figures say."""
        blind = self.seen.tasks is None and self.seen.state_error is None
        if not result.timed_out or blind:  # a look that failed shows nobody stuck
            return None
        waiting = model.pending(self.seen)
        if not waiting:
            if model.later(self.seen):  # it is not due in the time of a run
                return None
            text = f"{operation} did not come true in time: {result.stderr}"
            return self.violation("answers_in_time", text)
        held = [
            view
            for view in (self.seen.tasks or {}).values()
            if view.status in op.HELD and view.owner not in self.seen.living
        ]
        text = f"Not settled in time: {'; '.join(waiting)}."
        if held and not model.profile.leases:
            text += " This board never returns what a silent worker holds."
        rule = "no_stuck_claim" if held else "all_settle"
        return self.violation(rule, text, held[0].id if held else "")

    def under_fault(
        self, model: BoardModel, operation: Operation, result: OperationResult
    ) -> Judgement:
        """As for every contract; and no change goes on while somebody else holds the lock."""
        judged = super().under_fault(model, operation, result)
        if result.inner and not judged.verdict.stops_run:
            unlocked = went_on(operation, result, self.contract.read(result.inner[0]))
            if unlocked is not None:
                return replace(judged, verdict=Verdict.BUG, violation=unlocked)
        return judged

    # --- one command ---------------------------------------------------------------------------------

    def _in_the_dark(self, model: BoardModel, operation: Operation, answer: Answer) -> Judgement:
        """A fault has written what the board reads: what it should answer nobody knows."""
        after = model.adopt(self.seen)
        if answer.ok:
            if isinstance(operation, op.Repair | op.Restore):
                after = mended(after)
            return Judged(Verdict.SUCCESS, (learn(after, operation, answer),))
        return self._said_clearly(model, operation, answer, after)

    def _loosely(
        self, model: BoardModel, operation: Operation, answer: Answer, when: Span
    ) -> Judgement:
        """Others work on the board: which outcome is right, only the whole history can tell."""
        if answer.ok and isinstance(operation, op.Restore):
            saved = model.checkpoints.get(operation.name, model.tasks)
            return Judged(Verdict.SUCCESS, (replace(model, tasks=saved).as_seen(self.seen),))
        if answer.ok:
            worker = common.worker_of(operation)
            heard = model if worker is None else model.spoke(worker, when, sure=True)
            return Judged(Verdict.SUCCESS, (learn(heard, operation, answer),))
        return self._said_clearly(model, operation, answer, _at_least_heard(model, operation, when))

    def _said_clearly(
        self, model: BoardModel, operation: Operation, answer: Answer, after: BoardModel
    ) -> Judgement:
        odd = strange(operation) and answer.clear and answer.classes <= {BAD_INPUT}
        if odd or (answer.classes and answer.classes <= KNOWN):
            return Judged(Verdict.EXPECTED, (after,))
        text = f"{operation} failed with an unknown error: {answer.message}"
        return Judged(Verdict.BUG, (model,), self.violation("fails_clearly", text))

    def _backwards(
        self, model: BoardModel, operation: Operation, answer: Answer
    ) -> Violation | None:
        """A number that fences old owners or leaders must grow."""
        epoch, token = answer.number("epoch"), answer.number("token")
        if isinstance(operation, op.Claim) and epoch is not None:
            task = model.tasks.get(answer.task or "")
            had_before = model.top_epoch(answer.task or "")
            if task is not None and epoch <= had_before:
                had = f"task {task.id} had {had_before} before"
                text = f"{operation} was given epoch {epoch}, but {had}."
                return self.violation("tokens_grow", text, task.id)
        if isinstance(operation, op.Elect) and token is not None and token <= model.top_token:
            text = f"{operation} was given token {token}, but {model.top_token} was given before."
            return self.violation("tokens_grow", text, "leader")
        return None

    def _untrue(self, model: BoardModel, heard: Heard) -> Violation | None:
        """Something that the answer says besides is not so."""
        operation, answer = heard.operation, heard.answer
        wrong = list(untrue_alone(model, operation, answer))
        listed = heard.result.details.get("listed")
        if heard.alone and not wrong:
            wrong += untrue_now(model, operation, answer, self.before, self.seen)
            wrong += untrue_guards(model, operation, answer, self.span(heard.result))
        if heard.alone and isinstance(operation, op.List) and not wrong:
            wrong += untrue_list(model, answer.said, self.before, self.seen)
        if heard.alone and isinstance(listed, Mapping) and not wrong and not model.loose:
            wrong += wrongly_listed(listed, self.before, self.seen)
        if not wrong:
            return None
        text = f"The answer to {operation} is not true: {wrong[0]}."
        return self.violation("answers_truly", text, op.task_of(operation) or "")

    def _shown_alive(self, answer: Answer) -> Violation | None:
        """Status shows an agent as alive whose process had ended before anybody asked."""
        agents = answer.said.get("agents")
        if not isinstance(agents, dict):
            return None
        ended = {run.identity[0] for run in self.before.agents if not run.alive}
        for name, shown in agents.items():
            if isinstance(shown, dict) and shown.get("alive") and shown.get("pid") in ended:
                text = f"Status shows {name} as alive, but its process {shown['pid']} has ended."
                return self.violation("status_is_honest", text, str(name))
        return None

    def _miscounted(self, answer: Answer) -> Violation | None:
        """Status counts other tasks than were there before and after."""
        counts = answer.said.get("counts")
        steady = self.before.tasks is not None and self.before.tasks == self.seen.tasks
        if not isinstance(counts, dict) or not steady:
            return None
        for status in op.STATUSES:
            real = sum(1 for view in (self.seen.tasks or {}).values() if view.status == status)
            if counts.get(status, 0) != real:
                text = (
                    f"Status counts {counts.get(status, 0)} {status} tasks, but there are {real}."
                )
                return self.violation("status_is_honest", text, status)
        return None

    def _claimed_twice(
        self, parts: Sequence[Operation], results: Sequence[OperationResult]
    ) -> Violation | None:
        taken: dict[str, Operation] = {}
        for part, result in zip(parts, results, strict=True):
            answer = self.contract.read(result)
            if isinstance(part, op.Claim) and answer.ok and answer.task:
                other = taken.setdefault(answer.task, part)
                if other is not part and common.worker_of(other) != part.worker:
                    text = f"{other} and {part} were both given task {answer.task}."
                    return self.violation("single_owner", text, answer.task)
        return None

    # --- loads and servers ---------------------------------------------------------------------------

    def _driven(self, model: BoardModel, operation: op.Drive, result: OperationResult) -> Judgement:
        """A load: what it measured is judged, what it did is taken over as it is seen."""
        after = driven(model, operation, self.seen)
        violation = wrong_with_load(model, operation, result, self.seen)
        if violation is not None:
            return Judged(Verdict.BUG, (after,), violation)
        return Judged(Verdict.SUCCESS if result.succeeded else Verdict.INCONCLUSIVE, (after,))

    def _killed_after(
        self,
        model: BoardModel,
        operation: op.KillServer,
        first: Operation,
        result: OperationResult,
    ) -> Judgement:
        """What was answered before the kill has happened."""
        if not result.fired or not result.inner:
            return Judged(Verdict.INCONCLUSIVE, (model,))
        judged = self.command(model, first, result.inner[0])
        killed = tuple(server_killed(one).fault(str(operation)) for one in judged.models)
        return replace(judged, models=killed)


def _at_least_heard(model: BoardModel, operation: Operation, when: Span) -> BoardModel:
    """Whatever became of its command, the worker may have been heard of."""
    worker = common.worker_of(operation)
    return model if worker is None else model.spoke(worker, when, sure=False)


def _served_anew(model: BoardModel) -> BoardModel:
    """A new server came for one command: no lease is known, nor what the breaker remembers."""
    unsure = replace(model.breaker, unsure=True)
    return replace(model.all_blurred(), breaker=unsure, brings_server=True)
