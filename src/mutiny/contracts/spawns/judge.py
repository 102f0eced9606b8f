"""What the kit's judge does not know of runs: which of them a command meant, and what a lie is."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mutiny.contracts.spawns import health, kept
from mutiny.contracts.spawns import operations as op
from mutiny.contracts.spawns.model import HARMLESS, SpawnsModel
from mutiny.contracts.spawns.observation import Run, SpawnsSeen
from mutiny.contracts.spawns.reading import named, number_of, objects
from mutiny.foreign import parse
from mutiny.kit import operations as common
from mutiny.kit.answer import Answer
from mutiny.kit.beliefs import distinct
from mutiny.kit.faults import SkewClock
from mutiny.kit.judging import Judge, Judged, Moment
from mutiny.kit.outcome import Outcome
from mutiny.kit.questions import Heard, after_step
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation


class SpawnsJudge(Judge[SpawnsModel, SpawnsSeen]):
    """Judges one operation between two looks."""

    # --- answers -----------------------------------------------------------------------------------------

    def command(
        self, model: SpawnsModel, operation: Operation, result: OperationResult, **how: Any
    ) -> Judged[SpawnsModel]:
        """A command and its answer; of a stop also whether the run that it named lived."""
        judged = super().command(model, operation, result, **how)
        alone = how.get("alone", True) and not how.get("hindered", False)
        if isinstance(operation, op.Stop) and alone and judged.violation is None:
            lie = self._wrong_stop(operation, result)
        elif isinstance(operation, op.Await) and alone and judged.violation is None:
            lie = self._wrong_end(operation, result)
        elif isinstance(operation, op.AwaitHuman) and alone and judged.violation is None:
            lie = self._wrong_call(operation, result)
        else:
            return judged
        return judged if lie is None else replace(judged, verdict=Verdict.BUG, violation=lie)

    def _wrong_end(self, operation: op.Await, result: OperationResult) -> Violation | None:
        """Whoever has waited is told how all of the runs ended, not one of them."""
        answer, places = (
            self.contract.read(result),
            [(one, operation.channel) for one in operation.agents],
        )
        was = [self.before.last_of(*place) for place in places]
        now = [self.seen.last_of(*place) for place in places]
        if not all(a and b and a.id == b.id for a, b in zip(was, now, strict=True)):
            return None  # nobody can say which runs were meant
        ends = {str(run): run.status for run in now if run is not None}
        other = next((name for name, status in ends.items() if status != "completed"), "")
        if answer.ok and other:
            text = f"{operation} succeeded, but {other} is {ends[other]}."
        elif "not_completed" in answer.classes and not other:
            text = f"{operation} says that not all have completed, but they have."
        elif "timeout" in answer.classes and all(run is not None and run.over for run in was):
            text = f"{operation} has waited in vain, but all were over."
        else:
            return None
        return self.violation("answers_truly", text)

    def _wrong_call(self, operation: op.AwaitHuman, result: OperationResult) -> Violation | None:
        """Only an agent calls a human, and whoever has waited is told of the first that did."""
        answer, said = self.contract.read(result), self.contract.read(result).said.get("message")
        calls = [
            one.id
            for one in (self.before if "timeout" in answer.classes else self.seen).messages.values()
            if one.ends and one.channel == operation.channel.lower()
        ]
        told = number_of(said.get("id")) if isinstance(said, Mapping) else 0
        if answer.ok and told != min(calls, default=0):
            due = f"message {min(calls)}" if calls else "nobody"
            text = f"{operation} was told of message {told}; {due} has called a human."
        elif "timeout" in answer.classes and calls:
            text = f"{operation} has waited in vain, but message {calls[0]} had called a human."
        else:
            return None
        return self.violation("answers_truly", text)

    def _wrong_stop(self, operation: op.Stop, result: OperationResult) -> Violation | None:
        answer, number = self.contract.read(result), named(result)
        was, now = self.before.runs.get(number), self.seen.runs.get(number)
        if was is None or now is None or was.place != (operation.agent, operation.channel):
            return None
        told = answer.said.get("stopped")
        others = [one for one in told if number_of(one) != number] if isinstance(told, list) else []
        if answer.ok and others:
            text = f"{operation} has stopped {others[0]}, too."
            return self.violation("only_named", text, was.agent)
        if answer.ok and was.over and was.status != "stopped":
            text = f"{operation} succeeded, but {was} was {was.status} before."
            return self.violation("rejects_illegal", text, was.agent)
        if "no_spawn" in answer.classes or (
            "not_running" in answer.classes and not was.over and not now.over
        ):
            text = f"{operation} says {answer.error}, but {now} is {now.status}."
            return self.violation("rejects_truthfully", text, now.agent)
        return None

    def explain(
        self,
        model: SpawnsModel,
        operation: Operation,
        result: OperationResult,
        right: Sequence[Outcome[SpawnsModel]],
        moment: Moment[SpawnsSeen],
    ) -> Violation:
        """A database that nobody has hurt can be read, and one that was lost is not made up."""
        answer = self.contract.read(result)
        if model.doubted and answer.ok:
            text = f"{operation} succeeded although the database was lost: {answer.shown}"
            return self.violation("never_new", text)
        if "unreadable" in answer.classes and not model.doubted:
            text = f"{operation} says that the database cannot be read: {answer.message}"
            return self.violation("database_whole", text)
        return super().explain(model, operation, result, right, moment)

    def dishonest(self, model: SpawnsModel, heard: Heard) -> Violation | None:
        """What a command that only looks says, and is not so."""
        operation, answer = heard.operation, heard.answer
        if not heard.alone or self.seen.error is not None or self.before.error is not None:
            return None
        told: Iterator[tuple[str, str, str]] = iter(())
        if isinstance(operation, op.Health) and not model.lasting:
            told = self._health(model, answer)
        elif isinstance(operation, op.ListSpawns):
            told = self._listed(answer)
        elif isinstance(operation, op.Chain):
            told = self._chained(answer)
        elif isinstance(operation, op.Receive):
            told = self._received(model, operation, answer)
        elif isinstance(operation, op.Logs):
            told = self._logged(operation, answer, named(heard.result))
            followed = _streamed(operation, heard.result.stdout, answer)
            told = itertools.chain(told, followed)
        if self.seen.kept:
            command = kept.Command(operation, answer.said, named(heard.result))
            untrue = kept.untrue(command, self.before, self.seen)
            told = itertools.chain(told, (("answers_truly", *one) for one in untrue))
        return next((self.violation(rule, text, who) for rule, text, who in told), None)

    def untrue_refusal(self, model: SpawnsModel, heard: Heard) -> Violation | None:
        """A run that is there has a log."""
        operation, run = heard.operation, self.before.runs.get(named(heard.result))
        if not heard.alone or not isinstance(operation, op.Logs) or model.hindered or run is None:
            return None
        same = run.place == (operation.agent.lower(), operation.channel.lower())
        if not same or run.id not in self.seen.runs or self.seen.error is not None:
            return None
        text = f"{operation} says {heard.answer.shown}, but {run} is there."
        return self.violation("rejects_truthfully", text, run.agent)

    def _health(self, model: SpawnsModel, answer: Answer) -> Iterator[tuple[str, str, str]]:
        said = answer.said.get("problems")
        for run, text in health.untrue(model, self.before, self.seen, said):
            yield "health_true", f"{text[0].upper()}{text[1:]}.", "" if run is None else run.agent

    def _listed(self, answer: Answer) -> Iterator[tuple[str, str, str]]:
        said = answer.said.get("spawns")
        rows = {number_of(row.get("id")): row for row in objects(said)}
        for run in self.before.runs.values():
            row = rows.get(run.id)
            right = {run.status, *(one.status for one in [self.seen.runs.get(run.id)] if one)}
            if row is None:
                yield "answers_truly", f"The list does not have {run}.", run.agent
            elif row.get("status") not in right and not self._between(run):
                text = f"The list says that {run} is {row.get('status')}; it is {run.status}."
                yield "answers_truly", text, run.agent
            else:
                yield from self._same(row, run)
        for number in set(rows) - set(self.seen.runs):
            yield "answers_truly", f"The list has s{number}, which is nowhere.", ""

    def _same(self, row: Mapping[str, Any], run: Run) -> Iterator[tuple[str, str, str]]:
        """What a row says of who, where, how deep and by whom is what the messages tell."""
        message = self.before.messages.get(run.message)
        starter = 0 if message is None or message.spawn is None else message.spawn
        known = {"agent": run.agent, "channel": run.channel, "depth": self.before.depth_of(run)}
        for name, due in known.items():
            said = row.get(name, due)
            if (said.lower() if isinstance(said, str) else said) != due:
                yield (
                    "answers_truly",
                    f"It says that {run} has {name} {said}, not {due}.",
                    run.agent,
                )
        if "parent" in row and message is not None and number_of(row["parent"]) != starter:
            text = f"It says that {run} was started by {row['parent']}, not s{starter}."
            yield "answers_truly", text, run.agent

    def _between(self, run: Run) -> bool:
        """May it have been something else between the two looks?"""
        now = self.seen.runs.get(run.id)
        return now is not None and (now.status, now.attempt) != (run.status, run.attempt)

    def _chained(self, answer: Answer) -> Iterator[tuple[str, str, str]]:
        parents: dict[int, int | None] = {}
        waiting = [(node, None) for node in objects(answer.said.get("tree"))]
        while waiting:
            node, parent = waiting.pop()
            number = number_of(node.get("id"))
            if number in parents:
                yield "answers_truly", f"The chain has s{number} twice.", ""
                return
            parents[number] = parent
            waiting += [(child, number) for child in objects(node.get("children"))]  # type: ignore[misc]
        for run in self.before.runs.values():
            message = self.before.messages.get(run.message)
            parent = None if message is None else message.spawn
            if run.id not in parents:
                yield "answers_truly", f"The chain does not have {run}.", run.agent
            elif parents[run.id] != parent:
                text = (
                    f"The chain says that {run} was started by s{parents[run.id]}, not s{parent}."
                )
                yield "answers_truly", text, run.agent

    def _received(
        self, model: SpawnsModel, operation: op.Receive, answer: Answer
    ) -> Iterator[tuple[str, str, str]]:
        channel = operation.channel.lower()
        rows = list(objects(answer.said.get("messages")))
        got = [number_of(row.get("id")) for row in rows]
        after = model.bookmarks.get((operation.reader, channel), 0) if operation.reader else 0
        if operation.again:
            # Counted from the end when it was asked, which lies between the two looks.
            after = self.seen.before_last(channel, operation.again)
        due = [number for number in self.before.said_in(channel) if number > after]
        if operation.most:
            still = self.before.said_in(channel) == self.seen.said_in(channel)
            due = due[: operation.most] if still else []
            if len(got) > operation.most:
                yield "reader_sees_all", f"{operation} got {len(got)} messages.", ""
        missed = [number for number in due if number not in got]
        if missed:
            yield "reader_sees_all", f"{operation} did not get message {missed[0]}.", ""
        again = [number for number in got if 0 < number <= after]
        if again and not model.faults and not operation.again:
            text = f"{operation} got message {again[0]}, which this reader had got before."
            yield "reader_sees_all", text, ""
        if got != sorted(got):
            yield "reader_sees_all", f"{operation} got messages in the order {got}.", ""
        for number, row in zip(got, rows, strict=True):
            known = self.seen.messages.get(number)
            if known is None or known.text != row.get("text"):
                yield (
                    "reader_sees_all",
                    f"{operation} got message {number} otherwise than it is.",
                    "",
                )

    def _logged(
        self, operation: op.Logs, answer: Answer, number: int
    ) -> Iterator[tuple[str, str, str]]:
        """What a run said is in its log: all of it, or the end of it where the log is longer."""
        lines, run = answer.said.get("lines"), self.before.runs.get(number)
        if not isinstance(lines, list) or run is None:
            return
        if operation.tail and len(lines) > operation.tail:
            text = f"{operation} gave {len(lines)} lines."
            yield "answers_truly", text, run.agent
        shown = "\n".join(map(str, lines))
        said = [one for one in self.before.messages.values() if one.spawn == run.id]
        due = said if len(lines) < operation.tail or not operation.tail else said[-1:]
        for one in due:
            if one.text not in shown and json.dumps(one.text)[1:-1] not in shown:
                yield (
                    "answers_truly",
                    f"{operation} does not show {one.text!r} of {run}.",
                    run.agent,
                )
                return

    # --- what follows ------------------------------------------------------------------------------------

    def excuses(self, fault: Operation) -> frozenset[str] | None:
        """Who only costs time may make a command give up, and no more."""
        if isinstance(fault, op.KillSender):
            return frozenset()
        if isinstance(fault, (*HARMLESS, op.HoldDatabase)):
            return frozenset({"busy"})
        return super().excuses(fault)

    def unknown(
        self, model: SpawnsModel, operation: Operation, moment: Moment[SpawnsSeen]
    ) -> tuple[SpawnsModel, ...]:
        """It has happened or it has not. A message may be there; a stop may still come true."""
        if isinstance(operation, op.Stop | op.StopAll):
            wish = (operation.agent.lower(), operation.channel.lower())
            return (replace(model, meant=model.meant | {wish}, died=True),)
        right = self.contract.outcomes(model, operation, replace(moment, seen=None))
        said = [one.after for one in right if len(one.after.sent) > len(model.sent)]
        if said:
            return (replace(model, unsure=(*model.unsure, said[0].sent[-1]), died=True),)
        return distinct((model, *(one.after for one in right)))

    def struck(
        self, model: SpawnsModel, operation: Operation, moment: Moment[SpawnsSeen]
    ) -> SpawnsModel:
        """A point may lie in a supervisor, which the command has started."""
        hurt = model.fault(str(operation))
        only_sender = isinstance(operation, common.KillDuring) and not operation.whole
        inner = operation.children()[0] if operation.children() else operation
        if only_sender and isinstance(inner, op.Send | op.Spawn):
            return replace(hurt, died=True)
        return hurt.struck("", self.before, self.seen)

    def follows(
        self, model: SpawnsModel, operation: Operation, moment: Moment[SpawnsSeen]
    ) -> Sequence[SpawnsModel]:
        """The beliefs after a step that is not said to the target."""
        if isinstance(operation, op.Configure):
            settings = {**model.settings, operation.name: operation.value}
            retuned = model.retuned or bool(self.seen.runs)
            return (replace(model, settings=settings, retuned=retuned),)
        if isinstance(operation, op.OfRun):
            hurt = model.fault(str(operation)).struck(operation.agent, self.before, self.seen)
            kept = model.died if isinstance(operation, op.KillProvider) else True
            return (replace(hurt, died=kept),)
        if isinstance(operation, op.ProviderMissing):
            gone = {operation.provider}
            missing = model.missing - gone if operation.back else model.missing | gone
            return (replace(model.fault(str(operation)), missing=missing),)
        if isinstance(operation, op.LoseDatabase):
            return (replace(model.fault(str(operation)), doubted=not operation.back),)
        if isinstance(operation, common.LibraryFault) and not isinstance(operation, HARMLESS):
            return (after_step(model, operation).struck("", self.before, self.seen),)
        after = after_step(model, operation)
        return (replace(after, bent=after.bent or isinstance(operation, SkewClock)),)

    def overdue(
        self, model: SpawnsModel, operation: Operation, result: OperationResult
    ) -> Violation | None:
        """What should have begun or ended by now."""
        for run in model.due(self.seen):
            now = self.seen.latest(run)
            if run.status == "running" and now is not None and now.task is None:
                text = f"{run} is running, but has never received its text."
                return self.violation("text_received", text, run.agent)
            if run.status in ("pending", "queued"):
                text = f"{run} is still {run.status}, and nobody begins it."
                return self.violation("mention_runs", text, run.agent)
        if isinstance(operation, op.WaitForHuman) and not model.pending(self.seen):
            return self.violation("assertion", f"{operation}: nobody called a human.")
        return super().overdue(model, operation, result)


def _streamed(operation: op.Logs, stdout: str, answer: Answer) -> Iterator[tuple[str, str, str]]:
    """Whoever follows a run is told every line of its log once, as it comes."""
    lines = answer.said.get("lines")
    rows = [one for line in stdout.splitlines() if isinstance(one := _parsed(line), dict)]
    came = Counter(str(row["line"]) for row in rows if "line" in row)
    if not operation.follow or not came or not isinstance(lines, list):
        return
    if len(lines) >= operation.tail:
        return  # it is the end of a longer log
    due = Counter(map(str, lines))
    for line, times in (came - due).items():
        yield "answers_truly", f"{operation} showed {line!r} {times} times too often.", ""
    for line in due - came:
        yield "answers_truly", f"{operation} never showed {line!r} as it came.", ""


def _parsed(line: str) -> object:
    try:
        return parse(line)
    except ValueError:
        return None
