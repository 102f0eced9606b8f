"""What answers say of runs, messages and events, held against what the target keeps of them.

Only a target whose file has `[kept]` promises it. A run that goes on while the command looks may have been
anything in between: of it only that is compared which never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mutiny.contracts.spawns import operations as op
from mutiny.contracts.spawns.mentions import agents_in, calls_human
from mutiny.contracts.spawns.observation import STATUSES, Row, Run, SpawnsSeen
from mutiny.contracts.spawns.reading import number_of, objects
from mutiny.kit import telling
from mutiny.model.operation import Operation

FIXED = frozenset(
    {
        *("id", "agent", "provider", "channel", "message", "root", "parent", "depth"),
        "created_at",
    }
)
"""What never changes of a run."""
Untrue = tuple[str, str]
"""What is not so, and whom it is about."""


@dataclass(frozen=True)
class Command:
    """A command that was served while nothing else was done."""

    operation: Operation
    said: Mapping[str, Any]
    named: int = 0
    """The run that its command line names; 0: none."""

    def __str__(self) -> str:
        return self.operation.short()


def untrue(command: Command, before: SpawnsSeen, seen: SpawnsSeen) -> Iterator[Untrue]:
    """What an answer says and is not kept so, neither before the command nor after it."""
    told = Told(command, before, seen)
    operation = command.operation
    if isinstance(operation, op.ListSpawns | op.Await):
        final = isinstance(operation, op.Await)
        yield from told.runs(objects(command.said.get("spawns")), final=final)
    elif isinstance(operation, op.Chain):
        yield from told.chain()
    elif isinstance(operation, op.Logs):
        yield from told.logs()
    elif isinstance(operation, op.Receive):
        yield from told.messages(objects(command.said.get("messages")))
    elif isinstance(operation, op.AwaitHuman):
        yield from told.messages(objects([command.said.get("message")]))
    elif isinstance(operation, op.Spawn):
        yield from told.spawned(operation)
    elif isinstance(operation, op.Send):
        yield from told.sent(operation)
    elif isinstance(operation, op.Init | op.Register | op.CreateChannel):
        yield from told.made(operation)
    elif isinstance(operation, op.Stop | op.StopAll | op.Cleanup):
        yield from told.ended(operation)


@dataclass(frozen=True)
class Told:
    """One answer between two looks."""

    command: Command
    before: SpawnsSeen
    seen: SpawnsSeen

    # --- runs -------------------------------------------------------------------------------------------

    def runs(self, rows: Iterable[Row], *, final: bool) -> Iterator[Untrue]:
        """Each row is the run that it names; `final`: as it has ended."""
        for row in rows:
            yield from self._run(row, final=final)

    def _run(self, row: Row, *, final: bool = False) -> Iterator[Untrue]:
        name = str(row.get("id"))
        was, now = _row(self.before, "spawns", name), _row(self.seen, "spawns", name)
        run = self.seen.runs.get(number_of(name))
        if now is None or run is None:
            return
        ended = run.over and (final or row.get("status") == now.get("status"))
        moving = was != now and not ended
        lie = telling.untrue(row, was or now, now, quiet=set(now) - FIXED if moving else ())
        if lie is not None:
            yield f"{self.command} says of {run}: {lie}.", run.agent

    def _still(self, name: str) -> bool:
        """Has nothing happened to a run between the two looks?"""
        return _row(self.before, "spawns", name) == _row(self.seen, "spawns", name)

    def chain(self) -> Iterator[Untrue]:
        """Each node is its run, and the picture for people names them all."""
        text = self.command.said.get("text")
        lines = [set(line.split()) for line in text.splitlines()] if isinstance(text, str) else None
        nodes = list(objects(self.command.said.get("tree")))
        while nodes:
            node = nodes.pop()
            nodes += objects(node.get("children"))
            yield from self._run(node)
            names = [node.get("id"), node.get("agent")]
            if self._still(str(node.get("id"))):
                names.append(node.get("status"))
            words = {str(one) for one in names if one}
            if lines is not None and not any(words <= line for line in lines):
                shown = " ".join(str(one) for one in names)
                yield f"{self.command} has no line for {shown}.", str(node.get("agent"))

    def logs(self) -> Iterator[Untrue]:
        """The run that was asked for, and everything that happened to it, in its order."""
        row, events = self.command.said.get("spawn"), self.command.said.get("events")
        if isinstance(row, Mapping) and row:
            if "id" in row and number_of(row["id"]) != self.command.named:
                yield f"{self.command} tells of {row['id']}, not s{self.command.named}.", ""
            yield from self._run(row)
        if isinstance(events, list) and "events" in self.seen.kept:
            yield from self._events(list(objects(events)))

    def _events(self, rows: list[Row]) -> Iterator[Untrue]:
        run = self.seen.runs.get(self.command.named)
        told = [number_of(row.get("seq")) for row in rows]
        due = [seq for seq, _ in _events_of(self.before, self.command.named)]
        there = dict(_events_of(self.seen, self.command.named))
        agent = "" if run is None else run.agent
        if told != sorted(set(told)):
            yield f"{self.command} tells events in the order {told}.", agent
        for seq in due:
            if seq not in told:
                yield f"{self.command} does not tell event {seq} ({there.get(seq)}).", agent
        for seq, row in zip(told, rows, strict=True):
            if seq not in there:
                yield f"{self.command} tells event {seq} of {run}, which it does not have.", agent
            elif lie := telling.untrue(row, there[seq], there[seq]):
                yield f"{self.command} says of event {seq}: {lie}.", agent

    def _begun_as(self, row: Row) -> Iterator[Untrue]:
        """What somebody was told of a run that he has started is what first happened to it."""
        run = self.seen.runs.get(number_of(row.get("id")))
        first = next(iter(_events_of(self.seen, number_of(row.get("id")))), None)
        if run is None or first is None or first[1].get("kind") not in STATUSES:
            return
        due = {"status": first[1].get("kind"), "reason": first[1].get("detail")}
        lie = telling.untrue({key: row[key] for key in due if key in row}, due, due)
        if lie is not None:
            yield f"{self.command} says of {run}: {lie}.", run.agent

    # --- messages ---------------------------------------------------------------------------------------

    def messages(self, rows: Iterable[Row]) -> Iterator[Untrue]:
        """Each row is the message that it names."""
        for row in rows:
            now = _row(self.seen, "messages", str(row.get("id")))
            lie = None if now is None else telling.untrue(row, now, now)
            if lie is not None:
                yield f"{self.command} says of message {row.get('id')}: {lie}.", ""

    def spawned(self, operation: op.Spawn) -> Iterator[Untrue]:
        """The run that was started, with its message."""
        row, number = self.command.said.get("spawn"), number_of(self.command.said.get("message"))
        if not isinstance(row, Mapping):
            return
        run = self.seen.runs.get(number_of(row.get("id")))
        if "id" in row and (run is None or run.agent != operation.agent.lower()):
            yield f"{operation.short()} has started {run or row['id']}.", operation.agent.lower()
        elif run is not None and number and run.message != number:
            text = (
                f"{operation.short()} says that {run} is for message {number}, not {run.message}."
            )
            yield text, run.agent
        yield from self._run(row, final=not operation.detach)
        if operation.detach:
            yield from self._begun_as(row)

    def sent(self, operation: op.Send) -> Iterator[Untrue]:
        """What was said, whom it has started, and what else follows from it."""
        said = self.command.said
        number = number_of(said.get("message"))
        kept = _row(self.seen, "messages", str(said.get("message")))
        message = self.seen.messages.get(number)
        if kept is None or message is None:
            return
        if lie := telling.untrue({"root": said.get("root", kept.get("root"))}, kept, kept):
            yield f"{operation.short()} says of message {number}: {lie}.", ""
        yield from self._started(number)
        known = set(self.before.agents)
        due = {
            "human": calls_human(operation.text),
            "ended": message.ends and self.seen.ends.get(self.seen.root_of(number)) == number,
        }
        for name, right in due.items():
            if isinstance(said.get(name, right), bool) and said.get(name, right) is not right:
                yield f"{operation.short()} says {name}: {said[name]}, which is not so.", ""
        unknown = said.get("unknown")
        if isinstance(unknown, list) and known == set(self.seen.agents):
            nobody = {name for name in agents_in(operation.text) if name not in known}
            if {str(name).lower() for name in unknown} != nobody:
                yield f"{operation.short()} says that nobody is called {unknown}.", ""

    def _started(self, message: int) -> Iterator[Untrue]:
        rows = self.command.said.get("spawns")
        if not isinstance(rows, list):
            return
        runs = {run.id: run for run in self.seen.runs.values() if run.message == message}
        told = [number_of(row.get("id")) for row in objects(rows)]
        if sorted(told) != sorted(runs):
            names = ", ".join(str(run) for run in runs.values()) or "nobody"
            yield f"{self.command} says that it has started {told}; it is {names}.", ""
        for row in objects(rows):
            now = _row(self.seen, "spawns", str(row.get("id")))
            lie = None if now is None else telling.untrue(row, now, now, quiet=set(now) - FIXED)
            if lie is not None:
                yield f"{self.command} says of {row.get('id')}: {lie}.", ""
            yield from self._begun_as(row)

    # --- what was made, and what was ended --------------------------------------------------------------

    def made(self, operation: op.Init | op.Register | op.CreateChannel) -> Iterator[Untrue]:
        """What is new is called so, by the name and with the values that were asked for."""
        due: dict[str, object] = {}
        if isinstance(operation, op.Init):
            new = not self.before.home
        elif isinstance(operation, op.CreateChannel):
            new = operation.channel.lower() not in self.before.channels
            due = {"channel": operation.channel}
        else:
            new = operation.agent.lower() not in self.before.agents
            kept = _row(self.seen, "agents", operation.agent) or {}
            due = {**kept, "agent": operation.agent}
        for name, right in {**due, "created": new}.items():
            said = self.command.said.get(name, right)
            if _low(said) != _low(right):
                yield f"{operation.short()} says {name}: {said!r}, not {right!r}.", ""

    def ended(self, operation: op.Stop | op.StopAll | op.Cleanup) -> Iterator[Untrue]:
        """What was stopped is named, and what is named has ended so."""
        told = self.command.said.get("stopped")
        if isinstance(told, list):
            numbers = [number_of(one) for one in told]
            for run in self._stopped(operation):
                if run.id not in numbers:
                    yield f"{operation.short()} has stopped {run}, and does not say so.", run.agent
        for name in ("failed", "stopped") if isinstance(operation, op.Cleanup) else ():
            for one in self.command.said.get(name) or ():
                run_now = self.seen.runs.get(number_of(one))
                if run_now is not None and run_now.status != name:
                    text = (
                        f"{operation.short()} says that {run_now} is {name}, not {run_now.status}."
                    )
                    yield text, run_now.agent

    def _stopped(self, operation: op.Stop | op.StopAll | op.Cleanup) -> Iterator[Run]:
        """Runs that this command has surely stopped: the one that it names, or all that it means."""
        if isinstance(operation, op.Cleanup):
            return
        for was in self.before.runs.values():
            now = self.seen.runs.get(was.id)
            if now is None or now.status != "stopped" or was.over or was.stopping:
                continue
            if isinstance(operation, op.Stop):
                meant = was.id == self.command.named
            else:
                agent, channel = operation.agent.lower(), operation.channel.lower()
                meant = agent in ("", was.agent) and channel in ("", was.channel)
            if meant:
                yield now


def _row(seen: SpawnsSeen, table: str, name: str) -> Row | None:
    return seen.kept.get(table, {}).get(name)


def _events_of(seen: SpawnsSeen, run: int) -> list[tuple[int, Row]]:
    """What has happened to a run, in its order."""
    rows = seen.kept.get("events", {}).values()
    own = [row for row in rows if row.get("spawn") and number_of(row["spawn"]) == run]
    return sorted(((number_of(row.get("seq")), row) for row in own), key=lambda one: one[0])


def _low(said: object) -> object:
    return said.lower() if isinstance(said, str) else said
