"""What the kit's judge does not know of a batch: what a killed run leaves, and what a lie is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mutiny.contracts.batch import operations as op
from mutiny.contracts.batch.forecast import forecast
from mutiny.contracts.batch.model import BatchModel
from mutiny.contracts.batch.observation import BatchSeen, RunSeen
from mutiny.contracts.batch.shown import lie_of
from mutiny.kit.answer import Answer
from mutiny.kit.beliefs import distinct
from mutiny.kit.judging import Judge, Judged, Moment
from mutiny.kit.moments import EndsCommand
from mutiny.kit.operations import KillDuring, LibraryFault, Settle, SweepPoint
from mutiny.kit.outcome import Outcome
from mutiny.kit.questions import Heard, after_step
from mutiny.model.operation import Operation, walk
from mutiny.model.result import OperationResult
from mutiny.model.violation import Violation

BREAKS = (EndsCommand, SweepPoint, KillDuring, LibraryFault, op.EngineOutage)
"""What may keep a command from hearing its agents."""


class BatchJudge(Judge[BatchModel, BatchSeen]):
    """Judges one operation between two looks."""

    def prepared(self, model: BatchModel, operation: Operation) -> BatchModel:
        """A command without a name is given the run that was the newest then."""
        run = self.before.run
        return replace(model, newest="" if run is None else run.name)

    def judge(
        self, model: BatchModel, operation: Operation, result: OperationResult
    ) -> Judged[BatchModel]:
        """Whoever was broken off may not have heard what its agents had used."""
        judged = super().judge(model, operation, result)
        if not model.lasting and not any(isinstance(part, BREAKS) for part in walk(operation)):
            return judged
        unheard = self.seen.unheard(len(self.before.attempts))
        models = tuple(replace(one, unheard=one.unheard | unheard) for one in judged.models)
        return replace(judged, models=models)

    def unknown(
        self, model: BatchModel, operation: Operation, moment: Moment[BatchSeen]
    ) -> tuple[BatchModel, ...]:
        """A run that was broken off may be anywhere on its way."""
        if not isinstance(operation, op.LONG) or not model.home or model.doubted:
            return super().unknown(model, operation, moment)
        right = self.contract.outcomes(model, operation, replace(moment, seen=None))
        driven = [one.after for one in right if one.after.run is not model.run]
        if not driven or all(one.run is None for one in driven):
            return distinct((model, *(one.after for one in right)))
        begun = model
        if isinstance(operation, op.Run):
            begun = model.begun(operation.name, moment.before)
        end = forecast(begun, moment.before)
        return distinct(
            (begun.broken_off(end.tasks, end.run), *(one.after for one in right), model)
        )

    def excuses(self, fault: Operation) -> frozenset[str] | None:
        """Somebody else's commit, or a dead agent, is no reason to fail."""
        if isinstance(
            fault,
            op.MoveMain | op.KillWorker | op.StopContainer | op.RemoveContainer | op.RunElsewhere,
        ):
            return frozenset()
        return super().excuses(fault)

    def follows(
        self, model: BatchModel, operation: Operation, moment: Moment[BatchSeen]
    ) -> Sequence[BatchModel]:
        """The beliefs after a step that is not said to the target."""
        if isinstance(operation, op.Configure):
            return (replace(model, knobs=model.knobs.set(operation.name, operation.value)),)
        if isinstance(operation, op.GateSays):
            return (replace(model, gates={**model.gates, operation.gate: operation.verdict}),)
        if isinstance(operation, op.EditSource):
            return (replace(model, edited=not operation.undo),)
        if isinstance(operation, op.EngineOutage):
            return (replace(model.fault(str(operation)), engine_out=not operation.back),)
        if isinstance(operation, Settle):  # no fault is on while it waits
            return (replace(after_step(model, operation), engine_out=False),)
        if isinstance(operation, op.KillWorker | op.StopContainer | op.RemoveContainer):
            return (replace(model.fault(str(operation)), lost=model.lost | {operation.task}),)
        if isinstance(operation, op.TruncateState):
            return (replace(model.fault(str(operation)), doubted=not operation.back),)
        if isinstance(operation, op.MoveMain | op.UseFixture | op.RunElsewhere):
            return (model,)
        return (after_step(model, operation),)

    def explain(
        self,
        model: BatchModel,
        operation: Operation,
        result: OperationResult,
        right: Sequence[Outcome[BatchModel]],
        moment: Moment[BatchSeen],
    ) -> Violation:
        """A state that nobody has cut off can be read."""
        answer = self.contract.read(result)
        if "unreadable" in answer.classes and not model.doubted:
            text = f"{operation} says that the state cannot be read: {answer.message}"
            return self.violation("state_whole", text)
        return super().explain(model, operation, result, right, moment)

    def dishonest(self, model: BatchModel, heard: Heard) -> Violation | None:
        """Exit code and status agree, and what is printed of a run is what is so."""
        operation, result, answer = heard.operation, heard.result, heard.answer
        status = answer.said.get("status")
        ends = status if isinstance(operation, op.LONG) and isinstance(status, str) else None
        if ends is not None and (ends == "complete") != (result.exit_code == 0):
            text = f"{operation} says {ends}, but ends with exit code {result.exit_code}."
            return self.violation("exit_agrees", text)
        if not heard.alone or self.seen.error is not None:
            return None
        shown = None if self.seen.run is None else self.seen.run.status
        word = self.contract.word(ends)  # type: ignore[attr-defined]
        if ends is not None and shown is not None and word != shown:
            text = f"{operation} says that the run is {ends}; it is {shown}."
            return self.violation("status_true", text)
        if lie := self._untotal(operation, answer):
            return lie
        lie = None
        if isinstance(operation, op.LogsQuery):
            lie = self._unlogged(operation, answer)
        if isinstance(operation, op.Status):
            lie = self._untrue(answer)
        return lie or self._unlike(model, heard)

    def untrue_refusal(self, model: BatchModel, heard: Heard) -> Violation | None:
        """A run that has not ended well is shown as truly as any other."""
        return self._unlike(model, heard)

    def _unlike(self, model: BatchModel, heard: Heard) -> Violation | None:
        """What is shown is what is kept, where that is promised and nothing came between the looks."""
        known = heard.alone and not model.lasting and not model.doubted
        errors = self.before.error or self.seen.error
        if not self.contract.profile.shows_kept or not known or errors:
            return None
        lie = lie_of(heard.operation, heard.answer.said, self.before, self.seen)
        return None if lie is None else self.violation(lie.rule, lie.text, lie.subject)

    def _untotal(self, operation: Operation, answer: Answer) -> Violation | None:
        """What a run is told to have used is what its tasks are told to have used in the same answer."""
        tasks, told = answer.said.get("tasks"), answer.said.get("tokens")
        if not self.contract.profile.totals or not isinstance(tasks, dict):
            return None
        parts = [one.get("tokens") if isinstance(one, dict) else None for one in tasks.values()]
        known = [one for one in parts if isinstance(one, int)]
        if not isinstance(told, int) or len(known) != len(parts) or told == sum(known):
            return None
        text = f"{operation} says that the run has used {told} tokens; its tasks have used "
        return self.violation("tokens_true", f"{text}{sum(known)}.")

    def _unlogged(self, operation: op.LogsQuery, answer: Answer) -> Violation | None:
        """A log that is shown in full, of all or of one task, is the one that was written."""
        shown, run = answer.said.get("events"), self.before.run
        whole = "events" in self.contract.profile.answers.get("LogsQuery", ())
        if not whole or not isinstance(shown, list) or run is None:
            return None
        due = self.before.logged.get((run.name, operation.task), 0)
        if len(shown) == due or self.before.logged != self.seen.logged:
            return None
        text = f"{operation} shows {len(shown)} lines of the log; {due} are about that."
        return self.violation("answers_truly", text, operation.task)

    def _untrue(self, answer: Answer) -> Violation | None:
        """What a status says that is not so."""
        run, said = self.seen.run, answer.said
        if run is None:
            told = said.get("id")
            return self.violation("status_true", f"It names a run {told}.") if told else None
        tasks = said.get("tasks")
        shown = tasks if isinstance(tasks, dict) else {}
        for name, one in run.tasks.items():
            row = shown.get(name)
            status = row.get("status") if isinstance(row, dict) else None
            status = self.contract.word(status)  # type: ignore[attr-defined]
            if status != one.status or (status == "complete") > (self.seen.landed(name) > 0):
                text = f"It says that {name} is {status}; it is {one.status}, and has come to the "
                return self.violation(
                    "status_true", f"{text}branch {self.seen.landed(name)} times.", name
                )
        return self._unbatched(run, said.get("batches"))

    def _unbatched(self, run: RunSeen, batches: object) -> Violation | None:
        """The batches that are told of are different ones, and whoever was merged was in one of them."""
        due = "batches.tasks" in self.contract.profile.answers.get("Status", ())
        if not due or not isinstance(batches, list):
            return None
        rows = [one for one in batches if isinstance(one, dict)]
        numbers = [one.get("id") for one in rows]
        twice = next((one for one in numbers if numbers.count(one) > 1), None)
        if twice is not None:
            return self.violation("answers_truly", f"It tells of two batches {twice}.")
        told = {str(task) for one in rows for task in one.get("tasks") or ()}
        for name, one in run.tasks.items():
            if one.status == "complete" and self.seen.landed(name) and name not in told:
                text = f"{name} was merged, and is in none of the batches that it tells of."
                return self.violation("answers_truly", text, name)
        return None
