"""Runs of a target that does not write down what started them, put together from what the agents noted.

Such a target has rows, and its agents note the row that they were started for, the text that they got and
what they posted. From that follow the message of a run, the run of a message, attempts and turns: a row
that is used again for the next mention is one run for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mutiny.box.results import ProcessInfo
from mutiny.contracts.spawns.observation import Identity, Invocation, Message, Run

TURNS = 1000
"""A run's number is that of its row times this, and its turn."""
MOST_TEXT = 3500


@dataclass(frozen=True)
class Row:
    """A row of runs as the target keeps it, and how the target calls it."""

    run: Run
    name: str
    pid: int = 0
    lasting: bool = False
    """It stays for the next mention: what has ended is one turn of it."""


@dataclass(frozen=True)
class Noted:
    """What an agent noted beyond its invocation."""

    name: str = ""
    """The row that it was started for, as the target calls it."""
    parent: int = 0
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class Linked:
    """Everything as the contract knows it."""

    messages: Mapping[int, Message]
    runs: Mapping[int, Run]
    invocations: tuple[Invocation, ...]
    names: Mapping[int, str]
    """How the target calls a run."""


class Links:
    """Puts looks at one target together; remembers what it has seen to be over."""

    def __init__(self) -> None:
        self._over: set[int] = set()
        self._begun: set[int] = set()

    def link(
        self,
        rows: Sequence[Row],
        messages: Mapping[int, Message],
        invoked: Sequence[Invocation],
        noted: Mapping[Identity, Noted],
        living: Iterable[ProcessInfo],
    ) -> Linked:
        """One look."""
        alive = {one.pid: one for one in living}
        runs: dict[int, Run] = {}
        names: dict[int, str] = {}
        invocations: list[Invocation] = []
        made: dict[str, int] = {}
        for row in rows:
            own = [one for one in invoked if noted[one.identity].name == row.name]
            turns = list(self._turns(row, own))
            for run, turn in turns:
                parents = {noted[one.identity].parent for one in turn[-1:]}
                pid = row.pid if run is turns[-1][0] else 0
                runs[run.id] = _attended(run, pid, turn, parents, alive)
                names[run.id] = row.name
                for number, one in enumerate(turn, 1):
                    new = made.setdefault(one.session, run.id) == run.id
                    session = one.session if new else ""
                    invocations.append(replace(one, spawn=run.id, attempt=number, session=session))
                resumed = {one.session for one in turn if made[one.session] != run.id}
                if run.session in resumed:
                    runs[run.id] = replace(runs[run.id], session="")
        said = _speakers(messages, invocations, noted)
        return Linked(said, _started(runs, said, invocations), tuple(invocations), names)

    def _turns(
        self, row: Row, own: Sequence[Invocation]
    ) -> Iterable[tuple[Run, tuple[Invocation, ...]]]:
        turns: list[list[Invocation]] = []
        for one in own:
            last = turns[-1][-1] if turns else None
            again = last is not None and last.exit_code != 0 and one.task in (None, last.task)
            if again:
                turns[-1].append(one)
            else:
                turns.append([one])
        first = row.run.id * TURNS
        if not turns:
            yield replace(row.run, id=first + 1), ()
            return
        for number, turn in enumerate(turns[:-1], 1):
            well = turn[-1].exit_code == 0
            status = "completed" if well else "running" if turn[-1].alive else "failed"
            yield replace(row.run, id=first + number, status=status), tuple(turn)
        newest = replace(row.run, id=first + len(turns))
        if newest.id in self._over and newest.status != "completed":
            yield replace(newest, status="completed"), tuple(turns[-1])
            begins, after = row.run.status in ("pending", "running"), newest.id + 1
            if begins:
                self._begun.add(after)
            if after in self._begun:  # also when it has ended before its agent noted a word
                status = "pending" if begins else row.run.status
                yield replace(row.run, id=after, status=status), ()
            return
        if row.lasting and newest.status == "completed":
            self._over.add(newest.id)
        yield newest, tuple(turns[-1])


def _attended(
    run: Run,
    pid: int,
    turn: Sequence[Invocation],
    parents: set[int],
    alive: Mapping[int, ProcessInfo],
) -> Run:
    """With the processes of its last attempt: the pid that was written down, and who started it. A row has
    one pid: of what was there before its newest turn it says nothing any more.
    """
    latest = turn[-1] if turn else None
    provider = None if latest is None or pid else latest.identity
    if latest is not None and pid:
        same = [one.identity for one in turn if one.identity[0] == pid]
        provider = same[-1] if same else (pid, 0)
    watching = [
        (one.pid, one.start)
        for one in (alive.get(parent) for parent in parents)
        if one is not None and "run" in one.argv
    ]
    return replace(
        run,
        attempt=len(turn),
        provider=provider,
        provided=latest is not None and latest.identity == provider and latest.alive,
        supervisor=watching[0] if watching else None,
        supervised=bool(watching),
        session=run.session if run.id % TURNS == 1 else "",
    )


def _speakers(
    messages: Mapping[int, Message],
    invocations: Iterable[Invocation],
    noted: Mapping[Identity, Noted],
) -> dict[int, Message]:
    """The run of each message that an agent has noted to post, in its order."""
    waiting: dict[tuple[str, str], list[Invocation]] = {}
    for one in sorted(invocations, key=lambda each: each.at):
        for text in noted[one.identity].said:
            waiting.setdefault((one.agent, text.strip()), []).append(one)
    found: dict[int, Message] = {}
    for number, message in messages.items():
        posts = waiting.get((message.sender, message.text.strip()))
        speaker = posts.pop(0) if posts else None
        if speaker is not None:
            message = replace(message, spawn=speaker.spawn, attempt=speaker.attempt)
        found[number] = message
    return found


def _started(
    runs: Mapping[int, Run], messages: Mapping[int, Message], invocations: Iterable[Invocation]
) -> dict[int, Run]:
    """The message of each run: the first with the text that it got, which no other run has; of a run that
    has got nothing yet, the first that mentions it and that no other run has.
    """
    tasks: dict[int, str] = {}
    for one in invocations:
        if one.task is not None:
            tasks.setdefault(one.spawn, one.task.strip()[:MOST_TEXT])
    taken: set[tuple[str, int]] = set()
    found: dict[int, int] = {}
    for run in sorted(runs.values(), key=lambda each: each.id not in tasks):
        near = [one for one in messages.values() if one.channel == run.channel]
        if run.id in tasks:
            fit = [one.id for one in near if one.text.strip()[:MOST_TEXT] == tasks[run.id]]
        else:
            fit = [one.id for one in near if f"@{run.agent}" in one.text.lower()]
        free = [number for number in fit if (run.agent, number) not in taken]
        if free or (fit and run.id in tasks):
            found[run.id] = (free or fit)[0]
            taken.add((run.agent, found[run.id]))
    return {number: replace(run, message=found.get(number, 0)) for number, run in runs.items()}
