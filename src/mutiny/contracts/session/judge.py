"""What the kit's judge does not know of a session: who dies in a crash, and what a lie is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.accounts import account_of, logs_kept
from mutiny.contracts.session.checkpoints import TORN
from mutiny.contracts.session.model import SessionModel
from mutiny.contracts.session.observation import SessionSeen, SessionView, at_of
from mutiny.contracts.session.telling import UNSEEN, Told, lies
from mutiny.kit.answer import Answer
from mutiny.kit.faults import DamageFile
from mutiny.kit.judging import Judge, Moment
from mutiny.kit.operations import LibraryFault
from mutiny.kit.questions import Heard, after_step
from mutiny.model.operation import Operation
from mutiny.model.violation import Violation

LATE = 2
"""Lines that may have been written between an answer and the look after it."""


class SessionJudge(Judge[SessionModel, SessionSeen]):
    """Judges one operation between two looks."""

    def follows(
        self, model: SessionModel, operation: Operation, moment: Moment[SessionSeen]
    ) -> Sequence[SessionModel]:
        """The beliefs after a step that is not said to the target."""
        if isinstance(operation, op.Configure):
            return (model.configured(operation.name, operation.value),)
        if isinstance(operation, op.SystemCrash):
            return (model.fault(str(operation)).died(),)
        if isinstance(operation, op.MemoryPressure):
            squeezed = model.configured("memory_mb", "1")
            return (replace(squeezed.fault(str(operation)), knobs=model.knobs),)
        if isinstance(operation, op.TouchCheckpoints | op.HalfDone):
            return (model,)  # it excuses nothing
        if isinstance(operation, op.CorruptCheckpoint):
            return (replace(model.fault(str(operation)), damaged=True),)
        if isinstance(operation, op.ClockJump):
            return (replace(model.fault(str(operation)), jumped=True),)
        if isinstance(operation, DamageFile):
            return (replace(after_step(model, operation), damaged=True),)
        if isinstance(operation, op.DiskFull | LibraryFault):
            return (replace(after_step(model, operation), cramped=True),)
        return (after_step(model, operation),)

    def struck(
        self, model: SessionModel, operation: Operation, moment: Moment[SessionSeen]
    ) -> SessionModel:
        """Where the world ends, whatever drives a session ends with it."""
        hit = model.fault(str(operation))
        if operation.ends_world:
            return hit.died()
        begins = any(isinstance(one, op.StartSession | op.Recover) for one in operation.children())
        return (
            replace(hit, killed=True) if begins else hit
        )  # what was to drive it may never have begun

    def dishonest(self, model: SessionModel, heard: Heard) -> Violation | None:
        """What is printed of a session is what is so, before the answer or after it."""
        one = self.seen.session
        if not heard.alone or one is None or self.seen.error is not None:
            return None
        name = getattr(heard.operation, "name", "")
        if name and name != one.name:
            return None
        before = self.before.session
        first = before if before is not None and before.name == one.name else one
        lie = self._known_lie(model, heard, first, one)
        return self._untold(model, heard, first, one) if lie is None else lie

    def _untold(
        self, model: SessionModel, heard: Heard, first: SessionView, one: SessionView
    ) -> Violation | None:
        """A part of an answer that never was so."""
        operation = heard.operation
        if operation.type not in self.contract.profile.answers:
            return None
        told = Told(
            operation,
            heard.answer.said,
            first,
            one,
            sure=logs_kept(model.faults)
            and not (model.cramped or model.jumped or model.lasting or self.seen.damaged),
            written=heard.result.details.get("written", UNSEEN),
            slack_s=self._slack_s(model),
        )
        rule, text = next(lies(told), ("", ""))
        return self.violation(rule, text, one.name) if rule else None

    def _slack_s(self, model: SessionModel) -> float:
        """A log is as old as the last line of metrics, and a crowded machine is slow."""
        spans = 2 * max((knobs.metrics_s for knobs in model.settings), default=0.0) or 60.0
        return spans + self.seen.pace.stretched(2.0) * max(1.0, self.seen.rate)

    def _known_lie(
        self, model: SessionModel, heard: Heard, first: SessionView, one: SessionView
    ) -> Violation | None:
        operation, answer = heard.operation, heard.answer
        if isinstance(operation, op.Status):
            return self._status(model, answer, first, one)
        if isinstance(operation, op.VerifyCheckpoint):
            return self._verified(answer, first, one)
        if isinstance(operation, op.Health):
            dead = first.alive is False and one.alive is False and one.told not in op.STATUSES[2:5]
            if dead:
                return self.violation("health_true", "It says that all is well; nothing runs.")
            errors = list(one.of("error"))
            if (
                first.told == one.told == "paused"
                and errors
                and errors[-1].get("action") == "pause"
            ):
                text = f"It says that all is well; it was paused: {errors[-1].get('text')}"
                return self.violation("health_true", text, one.name)
        if isinstance(operation, op.Metrics):
            return self._metrics(answer, first, one)
        if isinstance(operation, op.Report):
            return self._reported(answer, first, one)
        if isinstance(operation, op.Checkpoint):
            return self._checkpointed(answer, one)
        if isinstance(operation, op.Recover):
            return self._fell_back(answer, first)
        return None

    def untrue_refusal(self, model: SessionModel, heard: Heard) -> Violation | None:
        """Health that says what is not well says that truly, too."""
        one, before = self.seen.session, self.before.session
        checks = heard.answer.said.get("checks")
        asked = isinstance(heard.operation, op.Health) and heard.alone
        if not asked or one is None or before is None or not isinstance(checks, Mapping):
            return None
        name = getattr(heard.operation, "name", "") or one.name
        if self.seen.error is not None or {name, before.name} != {one.name}:
            return None
        rows = [("supervisor", before.alive, one.alive)]
        if one.alive is False:  # of one that runs it may mean whether it is on time
            rows += [("checkpoint", before.last_valid is not None, one.last_valid is not None)]
        for what, was, now in rows:
            told = checks.get(what)
            if isinstance(told, bool) and was == now == (not told):
                text = f"It says that {what} is {'well' if told else 'not well'}; that is not so."
                return self.violation("health_true", text, one.name)
        return None

    def _fell_back(self, answer: Answer, first: SessionView) -> Violation | None:
        """What is left out of the newest checkpoint is said to whoever brings the session back."""
        newest = first.points[-1] if first.points and first.alive is False else None
        told = bool(answer.said.get("fell_back"))
        whole = newest is not None and newest.valid and newest.cut in ("", TORN)
        if newest is None or told or whole:  # of a line that was never whole nobody was told before
            return None
        why = newest.cut or newest.why
        text = f"The newest checkpoint was left out ({why}), and that is not told."
        return self.violation("fallback_told", text, first.name)

    def _status(
        self, model: SessionModel, answer: Answer, first: SessionView, one: SessionView
    ) -> Violation | None:
        said = answer.said
        words = set(str(said.get("status")).split("|"))  # a word may leave it open
        lost = _lost(one, said.get("status"))
        if not words & {first.status, one.status, "running"} and not lost:
            text = f"It says that the session is {said.get('status')}; it is {one.status}."
            return self.violation("status_true", text, one.name)
        if words == {"running"} and {first.status, one.status} <= {"interrupted"}:
            return self.violation("status_true", "It says running; nothing runs.", one.name)
        # Who tells of each task when it is done is never ahead of that; others may be by one.
        ahead, tells = one.status == "running", self.contract.profile.logs_events
        most_done = len(one.done | one.told_done) if tells else len(one.done)
        rows = (
            ("checkpoint", said.get("checkpoint"), _usable(first), _newest(one)),
            ("tasks done", _inside(said, "tasks", "done"), len(first.done), most_done),
            ("tasks left", _inside(said, "tasks", "left"), _left(one) - ahead, _left(first)),
            ("phase", _phase_told(said), _earliest(first), _place(one)),
        )
        for what, told, least, most in rows:
            exact = what == "tasks done" and tells
            if isinstance(told, int) and not least <= told <= most + (ahead and not exact):
                text = f"It says {what} {told}; it was {least} before and is {most} now."
                return self.violation("status_true", text, one.name)
        wrong = next(_contradictions(said, one), _phase_too_long(said, one))
        if wrong is None and model.keeps_phase:
            wrong = _phase_too_short(said, one)
        return None if wrong is None else self.violation("status_true", wrong, one.name)

    def _verified(self, answer: Answer, first: SessionView, one: SessionView) -> Violation | None:
        was = {point.number: point.valid for point in first.points}
        now = {point.number: point.valid for point in one.points}
        rows = answer.said.get("checkpoints")
        for row in rows if isinstance(rows, list) else ():
            number, valid = row.get("checkpoint"), row.get("valid")
            if number in was and was[number] == now.get(number) != valid:
                text = f"It says that checkpoint {number} is {'' if valid else 'not '}valid"
                return self.violation("verify_true", f"{text}; that is not so.", one.name)
        return None

    def _metrics(self, answer: Answer, first: SessionView, one: SessionView) -> Violation | None:
        for name in ("total_tokens_consumed", "tasks_completed", "checkpoint_count"):
            least, most = _counted(first, name), _counted(one, name)
            if name == "checkpoint_count":
                least -= 1  # what a checkpoint says is older than itself
                # Those that were taken may be counted, or those that were kept.
                most = max((most, *(point.number + 1 for point in one.points)))
            told = answer.said.get(name)
            if one.alive is False and told in _once(one, name):
                continue  # of what nothing drives there is only what was written before
            if isinstance(told, int) and not least <= told <= most:
                text = f"It says {name} {told}; what was written down makes {least} to {most}."
                return self.violation("metrics_add_up", text, one.name)
        return None

    def _reported(self, answer: Answer, first: SessionView, one: SessionView) -> Violation | None:
        rows = (
            ("checkpoint_history", len(first.points), len(one.points)),
            ("error_log", len(list(first.of("error"))), len(list(one.of("error")))),
            # A damaged checkpoint lost what it knew of agents; who came later stands in the next one.
            ("agent_performance", 0 if self.seen.damaged else _kept_agents(first), _agents(one)),
        )
        for name, least, most in rows:
            told = answer.said.get(name)
            if not isinstance(told, list):
                return self.violation("report_true", f"There is no {name} in it.", one.name)
            if not least <= len(told) <= most + LATE * (one.status == "running"):
                text = f"Its {name} has {len(told)} entries; there are {most}."
                return self.violation("report_true", text, one.name)
        said = answer.said.get("final_status")
        if said not in {first.status, one.status} and not _lost(one, said):
            text = f"It says {said}; the session is {one.status}."
            return self.violation("report_true", text, one.name)
        return None

    def _checkpointed(self, answer: Answer, one: SessionView) -> Violation | None:
        number = answer.number("checkpoint")
        found = [point for point in one.points if point.number == number]
        if not found or not found[0].valid:
            text = f"It says that checkpoint {number} is written; there is no valid one."
            return self.violation("checkpoint_whole", text, one.name)
        return None


def _newest(one: SessionView) -> int:
    return max((point.number for point in one.points), default=0)


def _usable(one: SessionView) -> int:
    return 0 if one.last_valid is None else one.last_valid.number


def _agents(one: SessionView) -> int:
    """How many agents it has had."""
    return len({row.get("agent") for row in one.of("agent.start")})


def _kept_agents(one: SessionView) -> int:
    """How many agents its last valid checkpoint knows."""
    return 0 if one.last_valid is None else len(one.last_valid.agents)


def _left(one: SessionView) -> int:
    """How many tasks of its plan are not done."""
    return max(0, len(one.plan.tasks) - len(one.done))


def _inside(said: Mapping[str, Any], name: str, key: str) -> Any:
    value = said.get(name)
    return value.get(key) if isinstance(value, Mapping) else None


def _place(one: SessionView) -> int:
    """The place of its phase; a session that is complete is still in its last."""
    return max(0, min(one.phase, len(one.plan.phases)) - 1)


def _contradictions(said: Mapping[str, Any], one: SessionView) -> Iterator[str]:
    """What cannot be so at any time, by the plan of the project and by the rest of the answer."""
    done, left, flagged = (_inside(said, "tasks", key) for key in ("done", "left", "flagged"))
    whole = len(one.plan.tasks)
    if whole and isinstance(done, int) and isinstance(left, int) and done + left != whole:
        yield f"It says {done} tasks done and {left} left; the project has {whole}."
    if isinstance(done, int) and isinstance(flagged, int) and flagged > done:
        yield f"It says {flagged} tasks flagged of {done} that are done."
    listed = said.get("agents")
    rows = [row for row in listed if isinstance(row, Mapping)] if isinstance(listed, list) else []
    names = [row.get("name") for row in rows]
    strange = [name for name in names if one.plan.agents and name not in one.plan.agents]
    if strange or len(names) != len(set(names)):
        yield f"It lists the agents {', '.join(map(str, names))}; the project has others."
    tasks = [row["task"] for row in rows if row.get("task")]
    unknown = [task for task in tasks if whole and task not in one.plan.tasks]
    if unknown:
        yield f"It says that somebody works on {unknown[0]}; the project has no such task."


_ROUNDED_S = 0.1


def _phase_too_long(said: Mapping[str, Any], one: SessionView) -> str | None:
    """A phase cannot last longer than since the one before it was complete. After a restore that may have
    happened twice: the earlier time counts.
    """
    lasted, whole = _inside(said, "phase", "elapsed_s"), said.get("elapsed_s")
    name, phases = _inside(said, "phase", "name"), one.plan.phases
    if not isinstance(lasted, int | float) or not isinstance(whole, int | float):
        return None
    if name not in phases[1:]:
        return None
    before = phases[phases.index(name) - 1]
    ends = [at_of(row) for row in one.of("phase.complete") if row.get("phase") == before]
    if not ends or lasted <= whole - min(ends) + _ROUNDED_S:
        return None
    text = f"It says that phase {name} has lasted {lasted:g} s of {whole:g} s"
    return f"{text}; phase {before} was complete at {min(ends):g} s."


def _phase_too_short(said: Mapping[str, Any], one: SessionView) -> str | None:
    """A phase has lasted since it was first begun, however often it was gone on with. Where a restore has
    led to several beginnings the latest counts: which of them it went back behind does not matter then.
    """
    lasted, whole = _inside(said, "phase", "elapsed_s"), said.get("elapsed_s")
    name = _inside(said, "phase", "name")
    if not isinstance(lasted, int | float) or not isinstance(whole, int | float):
        return None
    if name not in one.plan.phases:
        return None
    place = one.plan.phases.index(name)
    begun, waiting = list[float](), place == 0
    for row in one.of("phase.start", "phase.complete"):
        if row["type"] == "phase.complete":
            waiting = waiting or (place > 0 and row.get("phase") == one.plan.phases[place - 1])
        elif waiting and row.get("phase") == name:
            begun.append(at_of(row))
            waiting = False
    if not begun or lasted >= whole - max(begun) - _ROUNDED_S:
        return None
    text = f"It says that phase {name} has lasted {lasted:g} s of {whole:g} s"
    return f"{text}; it was begun at {max(begun):g} s."


def _earliest(one: SessionView) -> int:
    """The same; what nothing drives is also where it would go on from: a restore may have been cut off."""
    stands = one.last_valid if one.status == "interrupted" else None
    return _place(one) if stands is None else min(_place(one), stands.phase)


def _phase_told(said: Mapping[str, Any]) -> Any:
    return _inside(said, "phase", "index")


def _once(one: SessionView, name: str) -> set[object]:
    """What a line of metrics or a checkpoint has said of it, at its time."""
    said = {row.get(name) for row in one.metrics}
    return said | {point.tokens for point in one.points if name == "total_tokens_consumed"}


def _counted(one: SessionView, name: str) -> int:
    if name == "total_tokens_consumed":
        return account_of(one).whole[name]
    if name == "tasks_completed":
        return len(one.done)
    return len(one.points)


def _lost(one: SessionView, said: object) -> bool:
    """Is it said that nothing can be read of a session, and is there nothing?"""
    return one.last_valid is None and said == "unreadable"
