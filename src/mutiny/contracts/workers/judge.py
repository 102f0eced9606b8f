"""What is special about judging workers: agents with a pace of their own, a daemon that comes and goes.

Everything that is the same for all contracts is in `mutiny.kit.judging`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.answers import untrue
from mutiny.contracts.workers.model import ADDED, AGENT_MOVES, WorkersModel, unwell
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.outcomes import served
from mutiny.contracts.workers.shown import unlike
from mutiny.contracts.workers.steps import follows
from mutiny.kit import operations as common
from mutiny.kit.answer import Answer
from mutiny.kit.beliefs import distinct
from mutiny.kit.judging import Judge, Judged, Moment, any_of
from mutiny.kit.operations import competes
from mutiny.kit.outcome import Outcome
from mutiny.kit.questions import Heard
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation

When = Moment[Observation]


class WorkersJudge(Judge[WorkersModel, Observation]):
    """Judges one operation on a target with workers."""

    def follows(
        self, model: WorkersModel, operation: Operation, moment: When
    ) -> Sequence[WorkersModel]:
        """After a fault, a wait, or a change by the user."""
        return (follows(model, operation, moment),)

    def struck(self, model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
        """What a point in the middle of a command does by itself."""
        assert isinstance(operation, common.SweepPoint | common.KillDuring)
        name, inner = operation.type, operation.operation
        if isinstance(operation, common.TearAt) and operation.mode == "lie":
            model = replace(model, state_damaged=True)
        if operation.ends_world:
            hit = model.disturb(name, tuple(model.workers), moment.now)
            return replace(hit, daemon=frozenset({False}), daemon_killed=True)
        worker = op.meant(inner, model.last_reviewed)
        hit = model.disturb(name, (worker,) if worker else (), moment.now)
        belief = hit.workers.get(worker or "")
        if belief is not None and isinstance(inner, op.Rebase | op.Accept | op.AcceptReviewed):
            # git could not write down where its rebase stands: the agent may not be able to end it.
            return hit.with_worker(replace(belief, behaviours=(*belief.behaviours, "give-up")))
        return hit

    def under_fault(
        self, model: WorkersModel, operation: Operation, result: OperationResult
    ) -> Judged[WorkersModel]:
        """A daemon that died somewhere in the middle: the command may have met it alive or dead.

        Whoever could not be added over a damaged state has nothing that could be broken.
        """
        worker = common.worker_of(operation)
        alone = worker is not None and not operation.children() and not result.fired
        if alone and model.state_damaged and worker not in {*model.workers, *model.unfinished}:
            return Judged(Verdict.EXPECTED, (model,), None, "nobody could be added meanwhile")
        command = operation.during if isinstance(operation, op.KillDaemon) else None
        if command is None or not result.fired or not result.inner:
            return super().under_fault(model, operation, result)
        moment = self.moment(result)
        judged = any_of(
            [
                self.command(one, command, result.inner[0], hindered=True)
                for one in (model, *self.follows(model, operation, moment))
            ]
        )
        ends = (self.follows(one, operation, moment) for one in judged.models)
        return replace(judged, models=distinct(one for several in ends for one in several))

    def excuses(self, fault: Operation) -> frozenset[str] | None:
        """While a process hangs, a command may say that it cannot."""
        hangs = isinstance(fault, op.PauseProcess)
        return frozenset({"busy", "daemon_down", "unhealthy"}) if hangs else super().excuses(fault)

    def forced(self, model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
        """What a command that is served does, whether that was due or not."""
        return served(model, operation, moment)

    def explain(
        self,
        model: WorkersModel,
        operation: Operation,
        result: OperationResult,
        right: Sequence[Outcome[WorkersModel]],
        moment: When,
    ) -> Violation:
        """Who is reviewed out of turn is named."""
        taken = self.contract.read(result).task
        if isinstance(operation, op.ReviewNext) and taken in model.workers:
            due = " or ".join(one.task for one in right if one.task) or "nobody"
            text = f"{operation} took worker {taken}, but {due} was next."
            return self.violation("longest_wait_first", text, taken or "")
        return super().explain(model, operation, result, right, moment)

    def hampered(self, model: WorkersModel, operation: Operation) -> WorkersModel:
        """Under a fault the daemon's flag may not have been written."""
        return (
            replace(model, daemon_killed=True) if isinstance(operation, op.Up | op.Down) else model
        )

    def unknown(
        self, model: WorkersModel, operation: Operation, moment: When
    ) -> tuple[WorkersModel, ...]:
        """It has happened, or it has not; of a worker that is not there something may be left, and a reset
        may be finished by whoever comes next.
        """
        found = super().unknown(model, operation, moment)
        if not isinstance(operation, op.Add | op.Nuke | op.ResetWorker):
            return found
        name = operation.worker
        reset = isinstance(operation, op.ResetWorker)
        left = (one for one in found if reset or name not in one.workers)
        return distinct(
            (*found, *(replace(one, unfinished=one.unfinished | {name}) for one in left))
        )

    def after_wrong_answer(
        self, model: WorkersModel, operation: Operation, moment: When
    ) -> tuple[WorkersModel, ...]:
        """It has happened, or it has not, or half of it: then every status is possible."""
        both = super().after_wrong_answer(model, operation, moment)
        return (*both, self._half_of_it(model, operation, moment))

    def _half_of_it(self, model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
        belief = model.workers.get(op.meant(operation, model.last_reviewed) or "")
        if belief is not None:
            anything = frozenset(op.STATUSES) - {"offline"}
            model = model.with_worker(replace(belief, statuses=anything, offline_allowed=True))
            for token in moment.tokens:
                model = model.with_work(token, "unknown", belief.name, sure=False)
        return model.fault(f"{operation.type} with unknown outcome")

    def beliefs_hold(self, operation: Operation, violation: Violation | None) -> bool:
        """What is seen of workers and git counts after a wrong answer, too."""
        return not competes(operation)

    # --- honesty -----------------------------------------------------------------------------------

    def dishonest(self, model: WorkersModel, heard: Heard) -> Violation | None:
        """What status and doctor claim must agree with what is true before and after them."""
        operation, result = heard.operation, heard.result
        wrong = next(untrue(model, heard, self.before, self.seen), None)
        if wrong is not None:
            text = f"The answer to {operation} is not true: {wrong}."
            return self.violation("answers_truly", text, common.worker_of(operation) or "")
        if model.profile.shows_kept:
            for name, wrong in unlike(model, heard, self.before, self.seen):
                rule = "status_is_honest" if isinstance(operation, op.Status) else "answers_truly"
                return self.violation(rule, f"The answer to {operation}: {wrong}.", name)
        if not heard.alone:
            return None
        if isinstance(operation, op.Start | op.Message):
            return self._said_to_nobody(model, operation, result)
        if isinstance(operation, op.Status):
            return self._daemon_told(result) or self._workers_told(result)
        if not isinstance(operation, op.Doctor):
            return None
        if "unhealthy" in self.contract.read(replace(result, exit_code=1)).classes:
            text = f"{operation} ended with exit code 0, but printed that something is wrong."
            return self.violation("doctor_agrees", text)
        wrong = self._visible_problem(operation)
        if wrong is None:
            return None
        rule = "repair_is_honest" if operation.repair else "health_is_honest"
        return self.violation(rule, f"{operation} says that all is well, but {wrong}.")

    def _said_to_nobody(
        self, model: WorkersModel, operation: op.Start | op.Message, result: OperationResult
    ) -> Violation | None:
        """Without a daemon nobody delivers later what was taken while there was no session to say it in."""
        view = self.seen.workers.get(operation.worker)
        looks = (self.before.sessions, self.seen.sessions)
        if not model.profile.daemonless or view is None or None in looks:
            return None
        gone = all(view.session not in (look or ()) for look in looks)
        received = (set(receipt.tokens) for receipt in self.seen.receipts or ())
        if not gone or any(set(result.tokens) & tokens for tokens in received):
            return None
        text = (
            f"{operation} was acknowledged, but there was no session {view.session!r} to say it in."
        )
        return self.violation("nothing_lost", text, operation.worker)

    def _daemon_told(self, result: OperationResult) -> Violation | None:
        claimed, before, seen = result.details.get("daemon_running"), self.before, self.seen
        readable = before.daemons is not None and seen.daemons is not None
        steady = readable and before.daemon_alive == seen.daemon_alive
        if not isinstance(claimed, bool) or not steady or claimed == seen.daemon_alive:
            return None
        word = "runs" if claimed else "does not run"
        truth = "a daemon runs" if seen.daemon_alive else "no daemon runs"
        text = f"Status says that the daemon {word}, but {truth}."
        return self.violation("status_is_honest", text, "daemon")

    def _workers_told(self, result: OperationResult) -> Violation | None:
        """What it tells of workers that were the same before and after."""
        told, before, seen = result.details.get("workers"), self.before, self.seen
        if told is None or before.state_error or seen.state_error or seen.state_as_left:
            return None
        if not isinstance(told, Mapping):
            return self.violation("status_is_honest", f"Status does not tell of workers: {told}")
        if set(before.workers) == set(seen.workers) != set(told):
            text = f"Status tells of {', '.join(told) or 'nobody'}, but there are "
            return self.violation("status_is_honest", text + (", ".join(seen.workers) or "none"))
        for name, view in seen.workers.items():
            steady = before.workers.get(name) == view and name in told
            if steady and told[name] != view.as_json():
                text = f"Status tells {told[name]} of worker {name!r}, but it is {view.as_json()}."
                return self.violation("status_is_honest", text, name)
        return None

    def _visible_problem(self, operation: op.Doctor) -> str | None:
        """A problem that was there before and after the check; anything that changed meanwhile does not
        count.
        """
        before, seen = self.seen if operation.repair else self.before, self.seen
        if all(look.daemon_flag and look.daemons == () for look in (before, seen)):
            return "the daemon is dead though the state says that it runs"
        if before.state_error and seen.state_error:
            return f"the state file is unreadable: {seen.state_error}"
        if before.daemons != () or seen.daemons != ():
            return None  # somebody is there who may be about to put it right
        for name in set(before.workers) & set(seen.workers):
            wrong = unwell(seen, name)
            if before.workers[name] != seen.workers[name] or unwell(before, name) != wrong:
                continue
            if wrong is not None and seen.workers[name].status not in ("offline", "error"):
                return f"{wrong}, and no daemon runs"
        return None

    # --- waits -------------------------------------------------------------------------------------

    def failed(
        self, model: WorkersModel, operation: Operation, answer: Answer, moment: When
    ) -> tuple[WorkersModel, ...]:
        """A stop that failed may have reached the daemon all the same, which takes its time."""
        models = super().failed(model, operation, answer, moment)
        told = isinstance(operation, op.Down)
        return tuple(replace(one, daemon_told=True) for one in models) if told else models

    def misheard(
        self, before: WorkersModel, model: WorkersModel, operation: Operation
    ) -> WorkersModel:
        """With which model a worker was added may be unknown, and whether its words were the ones meant."""
        model = model.with_fate(tuple(model.work.keys() - before.work.keys()), "unknown")
        name = operation.worker if isinstance(operation, op.Add) else ""
        return (
            model.with_worker(replace(model.workers[name], model=""))
            if name in model.workers
            else model
        )

    def taken(self, model: WorkersModel) -> Collection[str]:
        """Whoever was added has a good name."""
        return model.workers

    def overdue(
        self, model: WorkersModel, operation: Operation, result: OperationResult
    ) -> Violation | None:
        """What a wait waited for was due, and did not come."""
        if isinstance(operation, common.Settle):
            if not result.timed_out:
                return None
            waiting = "; ".join(model.pending(self.seen)) or result.stderr
            rule = "recovers"
            if model.profile.daemonless:  # nothing recovers by itself: a command has not done all
                rule = "nothing_lost" if model.undelivered(self.seen) else "agent_running"
            return self._late(rule, f"Not settled in time: {waiting}.", operation)
        name, status = common.worker_of(operation), op.awaited_status(operation)
        belief = model.workers.get(name or "")
        if belief is None:
            return None
        lost = model.profile.daemonless and belief.name in model.undelivered(self.seen)
        if isinstance(operation, op.WaitForPrompt) and (belief.due_at is not None or lost):
            # The agent that it had may have received it, and died: somebody was due to be told again.
            text = f"Worker {belief.name!r} was due to be told its work, but no agent of it was."
            return self._late("nothing_lost", text, operation, belief.name)
        if status is None:
            return None
        found = self._why_overdue(model, belief.name, status)
        if found is None and result.duration_ms >= 1000 * self._recovery_s(model, result):
            found = self._forsaken(model, belief.name)
        in_haste = getattr(operation, "timeout_seconds", None) is not None
        stuck = result.timed_out and not result.details.get("moving")
        if found is None and stuck and not in_haste:
            found = self._untold(model, belief.name)
        return None if found is None else self._late(*found, operation, belief.name)

    def _recovery_s(self, model: WorkersModel, waited: OperationResult) -> float:
        """So long whoever lost its agent may take to get another one, at the pace of the wait."""
        given_s, stretch = model.profile.limits.recover_s, waited.details.get("stretch")
        return given_s * stretch if isinstance(stretch, float) else self.seen.pace.limit(given_s)

    def _forsaken(self, model: WorkersModel, name: str) -> tuple[str, str] | None:
        """Nobody works on what a worker is said to work on, however its agent ended."""
        wrong, busy = unwell(self.seen, name), self.seen.status_of(name) in AGENT_MOVES
        if wrong is None or not busy or model.daemon_certain is not True:
            return None
        return "recovers", f"{wrong[:1].upper()}{wrong[1:]}, and nothing has moved."

    def _untold(self, model: WorkersModel, name: str) -> tuple[str, str] | None:
        """A worker rests, its agent is there, and was never told what the target has taken for it."""
        if model.daemon_certain is not True or not model.must_be_told(
            model.workers[name], self.seen
        ):
            return None
        left = model.unheard(name, self.seen)
        text = f"Worker {name!r} rests, and its agent was never told {', '.join(left)}."
        return ("nothing_lost", text) if left else None

    def _why_overdue(self, model: WorkersModel, name: str, status: str) -> tuple[str, str] | None:
        """The rule that says that a worker was due to reach a status, and what it is instead."""
        belief, now_status = model.workers[name], self.seen.status_of(name)
        if now_status == "error" and status != "error":
            if "error" in model.allowed(name):
                return None  # it gave up and said so, which it may: nothing is proved
            why = self.seen.workers[name].error_reason
            return "completes", f"Worker {name!r} entered error state while waiting: {why}."
        if model.profile.daemonless:
            new = belief.disturbed == ADDED and belief.will_complete and not model.faults
            away = status == "idle" and now_status == "offline"
            text = f"Worker {name!r} was added, but no agent has ever run in its session."
            return ("agent_running", text) if new and away else None
        if model.daemon_certain is not True:
            return None
        ends_turn = status not in AGENT_MOVES and status != "offline"
        moving = now_status in AGENT_MOVES
        if ends_turn and belief.due_at is not None and (moving or status != "idle"):
            text = f"was due to finish, and to reach {status}, but stays {now_status}"
            return "completes", f"Worker {name!r} {text}."
        back = status == "idle" and "idle" in belief.statuses
        if back and now_status in ("offline", None, "idle"):
            return "recovers", f"Worker {name!r} was due to become idle but stays {now_status}."
        if status in AGENT_MOVES and status in belief.statuses:
            text = f"Worker {name!r} was due to be {status} but is {now_status}."
            return "status_follows_model", text
        return None

    def _late(self, rule: str, text: str, operation: Operation, subject: str = "") -> Violation:
        return self.violation(rule, text, subject, {"operation": str(operation)})
