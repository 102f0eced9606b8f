"""Look at agents that summon agents: what they wrote down, who lives, and the target's database.

In this order: whoever has acted must already stand in the database.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from mutiny.box.box import Box
from mutiny.box.results import ProcessInfo
from mutiny.contracts.spawns.observation import (
    Happened,
    Identity,
    Invocation,
    Message,
    Run,
    SpawnsSeen,
)
from mutiny.doubles.providers.install import RECEIVED_FILE, read_received
from mutiny.faults.pids import STRANGER
from mutiny.probes.records import parse_json
from mutiny.probes.sources import settled, sqlite_tables
from mutiny.system.files import BoxPath
from mutiny.targets.kit.pacing import Pacing
from mutiny.targets.spawns.links import Links, Noted, Row
from mutiny.targets.spawns.spec import KEPT, SpawnsSpec

Rows = list[dict[str, Any]]
_KEPT = "kept "
"""Before the names of the queries of what is kept."""


class Looked(Protocol):
    """What is looked at."""

    box: Box
    spec: SpawnsSpec
    pacing: Pacing

    @property
    def desk(self) -> BoxPath: ...

    @property
    def database(self) -> BoxPath: ...


class Observer:
    """Looks at one live target in one box."""

    def __init__(self, live: Looked) -> None:
        self._live = live
        self._invoked: dict[Identity, Invocation] = {}
        self._noted: dict[Identity, Noted] = {}
        self._offset = 0
        self._links = Links()
        self.names: Mapping[int, str] = {}
        """How the target calls a run, where that is not its number."""
        self.strangers = 0
        """So many processes of ours have a pid that was a run's."""

    def observe(self) -> SpawnsSeen:
        """One complete look."""
        self._read_records()
        processes = self._live.box.processes()
        living = [one for one in processes if one.state not in "ZXx"]
        alive = {(one.pid, one.start) for one in living}
        spec = self._live.spec
        queries = {**spec.tables, **{_KEPT + name: asked for name, asked in spec.kept.items()}}
        raw = settled(lambda: sqlite_tables(self._live.database, queries))
        tables: Mapping[str, Rows] = raw.data or {}
        invocations = tuple(
            replace(one, alive=one.identity in alive) for one in self._invoked.values()
        )
        messages = {row["id"]: _message(row) for row in tables.get("messages", ())}
        runs = {row["id"]: _run(row, alive) for row in tables.get("spawns", ())}
        if spec.linked:
            self._read_records()  # who posts notes it first: every message has its speaker
            rows = [_row(row, runs[row["id"]]) for row in tables.get("spawns", ())]
            linked = self._links.link(rows, messages, invocations, self._noted, living)
            messages, runs = dict(linked.messages), dict(linked.runs)
            invocations, self.names = linked.invocations, linked.names
        return SpawnsSeen(
            at=time.time(),
            error=raw.error,
            pace=self._live.pacing.now(),
            home=raw.exists,
            agents={_low(row["name"]): str(row["provider"]) for row in tables.get("agents", ())},
            channels=frozenset(_low(row["name"]) for row in tables.get("channels", ())),
            messages=messages,
            runs=runs,
            events=tuple(_event(row) for row in tables.get("events", ())),
            invocations=invocations,
            kept={
                name: {str(row[KEPT[name]]): row for row in tables[_KEPT + name]}
                for name in spec.kept
                if _KEPT + name in tables
            },
            killed=self.strangers
            - sum(STRANGER in one.argv for one in processes if one.state not in "ZXx"),
            starting=self._starting(living, runs.values()),
            strays=tuple(
                " ".join(one.argv)[:100] or one.name
                for one in living
                if not one.asked_for and STRANGER not in one.argv
            ),
        )

    def _starting(self, living: Iterable[ProcessInfo], runs: Iterable[Run]) -> tuple[str, ...]:
        pattern = self._live.spec.starting
        known = {run.supervisor for run in runs}
        said = (" ".join(one.argv) for one in living if (one.pid, one.start) not in known)
        return tuple(words[:100] for words in said if pattern and re.search(pattern, words))

    def _read_records(self) -> None:
        path = self._live.desk / RECEIVED_FILE
        if not path.exists():
            return
        records, self._offset = read_received(path, self._offset)
        for one in records:
            if one["event"] != "torn":
                identity = (int(one["pid"]), int(one["start"]))
                known = self._invoked.get(identity)
                self._invoked[identity] = _noted(known or _begun(one, identity), one)
                self._noted[identity] = _beyond(self._noted.get(identity, Noted()), one)


def _begun(record: Mapping[str, Any], identity: Identity) -> Invocation:
    return Invocation(
        _number(record.get("spawn")),
        int(record.get("attempt") or 1),
        _low(record.get("agent")),
        identity,
        at=float(record["time"]),
    )


def _noted(one: Invocation, record: Mapping[str, Any]) -> Invocation:
    """With what one line of the record tells."""
    event = record["event"]
    if event == "prompt":
        return replace(
            one,
            task=str(record.get("task", "")),
            message=_number(record.get("message")) or None,
            behaviour=str(record.get("behaviour", "")),
        )
    if event == "session":
        return replace(one, session=str(record["session"]), session_at=float(record["time"]))
    if event == "sign":
        return replace(one, session_at=float(record["time"]))
    if event == "posting":
        return replace(one, posting=one.posting + 1)
    if event == "effect" and record.get("exit_code") == 0:
        return replace(one, posts=(*one.posts, _accepted(record)))
    if event == "exit":
        return replace(one, exit_code=int(record["exit_code"]))
    return one


def _beyond(noted: Noted, record: Mapping[str, Any]) -> Noted:
    said = (str(record["text"]),) if record["event"] == "posting" else ()
    return Noted(str(record.get("spawn")), int(record.get("ppid") or 0), (*noted.said, *said))


def _row(row: Mapping[str, Any], run: Run) -> Row:
    return Row(run, str(row["name"]), int(row["pid"] or 0), bool(row["lasting"]))


def _accepted(record: Mapping[str, Any]) -> int:
    """How the target called a message that it accepted; 0: it does not say."""
    try:
        answer = parse_json(str(record.get("answer", "")))
    except ValueError:
        return 0
    return _number(answer.get("message")) if isinstance(answer, dict) else 0


def _message(row: Mapping[str, Any]) -> Message:
    return Message(
        row["id"],
        _low(row["channel"]),
        _low(row["sender"]),
        str(row["text"]),
        row["spawn"],
        int(row["attempt"] or 0),
        float(row["at"] or 0),
        _whole(row.get("root")),
    )


def _run(row: Mapping[str, Any], alive: Collection[Identity]) -> Run:
    supervisor = _identity(row["supervisor_pid"], row["supervisor_start"])
    provider = _identity(row["pid"], row["start"])
    return Run(
        id=row["id"],
        agent=_low(row["agent"]),
        channel=_low(row["channel"]),
        message=row["message"],
        status=str(row["status"]),
        reason=str(row["reason"] or ""),
        attempt=int(row["attempt"] or 0),
        stopping=bool(row["stopping"]),
        supervisor=supervisor,
        provider=provider,
        supervised=supervisor in alive,
        provided=provider in alive,
        session=str(row["session"] or ""),
        created=float(row["created_at"] or 0),
        started=float(row["started_at"] or 0),
        ended=float(row["ended_at"] or 0),
        exit_code=_whole(row.get("exit_code")),
        program=None if row.get("provider") is None else str(row["provider"]),
        root=_whole(row.get("root")),
        depth=_whole(row.get("depth")),
        parent=_whole(row["parent"] or 0) if "parent" in row else None,
    )


def _event(row: Mapping[str, Any]) -> Happened:
    return Happened(row["seq"], str(row["kind"]), row["message"], row["spawn"])


def _identity(pid: object, start: object) -> Identity | None:
    return (int(str(pid)), int(str(start))) if pid and start else None


def _number(said: object) -> int:
    text = str(said or "").lstrip("s")
    return int(text) if text.isdigit() else 0


def _whole(said: object) -> int | None:
    """A number that a query may give."""
    return said if isinstance(said, int) else None


def _low(name: object) -> str:
    return str(name or "").lower()
