"""Look at a live board: its state file, or its own `list`; its servers; its spawned workers.

The processes are looked at before the tasks: a worker that was gone then has changed nothing since.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from mutiny.contracts.board.answers import LISTED
from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.contracts.board.operations import List
from mutiny.kit.answer import Answer, answer_of, matched_classes
from mutiny.kit.crash import how_it_died
from mutiny.model.result import OperationResult
from mutiny.probes.records import Raw, Row, field_of, listed, rows_of, status_of
from mutiny.system.files import BoxPath
from mutiny.targets.board.naming import as_waiting, ours_among
from mutiny.targets.board.spec import BoardSpec
from mutiny.targets.kit.state import read_source, with_known

PASSING = frozenset({"busy", "no_space", "system"})
"""Refusals of a look that say nothing about the board."""
BUSY_S = 10.0
"""So long a look waits for its turn where one command at a time is served."""
BUSY_PAUSE_S = 0.1
TIMES = 3
"""A board that is busy so often, whenever it is asked, is not busy."""
NOT_THERE = ("server_down", "not_initialised")


@dataclass(frozen=True)
class Reading:
    """What a probe gave."""

    tasks: Mapping[str, TaskView] | None = None
    error: str | None = None
    """The board is there but cannot be read."""
    absent: bool = False
    leader: str | None = None
    token: int | None = None
    trouble: str | None = None
    """The probe itself failed."""
    crash: str | None = None
    """The board died of the question, in one sentence."""
    silent: str | None = None
    """The board was asked again and again, and said each time that it had no time."""


class BoardSource(Protocol):
    """The live board, as far as it can be looked at."""

    def ask(self, name: str) -> OperationResult:
        """A look by the board's own means."""
        ...

    def look_by(self, argv: Sequence[str]) -> OperationResult:
        """A look by a command line."""
        ...

    def filled(self, text: str) -> str: ...

    def limit(self, given_s: float) -> float: ...

    def outside(self, inside: str) -> BoxPath: ...


class BoardObserver:
    """Looks at one board."""

    def __init__(self, spec: BoardSpec, live: BoardSource) -> None:
        self._spec = spec
        self._live = live
        self._names = {key: str(value) for key, value in asdict(spec.state.fields).items()}
        self._priorities = {word: int(ours) for ours, word in spec.priorities.items()}
        self._since: dict[str, tuple[tuple[object, ...], float]] = {}
        self._known = frozenset[str]()
        """The tasks that were last seen."""
        self.was_there = False
        self.trusts_file = True
        """False after the state file was damaged: then only the board can say what is still true."""

    def observe(
        self, *, servers: int | None, living: frozenset[str], serving: bool
    ) -> BoardObservation:
        """One look."""
        began = time.monotonic()
        reading = self._whole(living) if serving else Reading(absent=not self.was_there)
        tasks = reading.tasks
        self._known = self._known if tasks is None else frozenset(tasks)
        if tasks is not None:
            self.was_there = True
            tasks = self._aged(tasks, time.monotonic())
        return BoardObservation(
            at=time.time(),
            began=began,
            ended=time.monotonic(),
            tasks=tasks,
            state_error=reading.error,
            absent=reading.absent,
            crash=reading.crash,
            silent=reading.silent,
            leader=reading.leader,
            token=reading.token,
            servers=servers,
            living=living,
            probe_errors=() if reading.trouble is None else (reading.trouble,),
        )

    def _whole(self, living: frozenset[str]) -> Reading:
        """A look; one that sees less than the last one while workers give commands is repeated: one of them
        may be writing just now, and what is missing for good is still missing afterwards.
        """
        deadline = time.monotonic() + self._live.limit(BUSY_S)
        reading = self.read()
        while living and self._sees_less(reading) and time.monotonic() < deadline:
            time.sleep(BUSY_PAUSE_S)
            reading = self.read()
        return reading

    def _sees_less(self, reading: Reading) -> bool:
        if self._spec.state.probe != "file":
            return False  # a board that is asked knows who is writing
        return reading.error is not None or not self._known <= frozenset(reading.tasks or ())

    def read(self) -> Reading:
        """The tasks, by the source that the target's file declares."""
        trusted = self.trusts_file or self._spec.texts  # a list in words says too little
        by_source = self._spec.state.probe == "file" and trusted
        return self._read_source() if by_source else self._read_list()

    def listed(self, answer: Answer) -> dict[str, dict[str, Any]] | None:
        """The tasks that an answer lists, as plain data; None when it lists none."""
        tasks = self._parsed(dict(answer.said), self._spec.state.tasks).tasks
        if tasks is None or self._spec.state.probe != "file":
            return None  # where looks are lists, there is nothing to hold them against
        shown = {
            name: {field: getattr(view, field) for field in LISTED} for name, view in tasks.items()
        }
        return {name: {**row, "depends": list(row["depends"])} for name, row in shown.items()}

    def _read_source(self) -> Reading:
        try:
            raw = self._patiently()
        except OSError as error:  # also what is no file of the box
            return Reading(trouble=f"the state cannot be looked at: {error}")
        if raw.refused and matched_classes(raw.error or "", self._spec.rejections) & set(NOT_THERE):
            return Reading(absent=not self.was_there)
        if raw.refused:
            return Reading(trouble=f"the state cannot be looked at: {raw.error}")
        if not raw.exists:
            absent = not self.was_there
            return Reading(absent=absent, error=None if absent else "the state file is gone")
        state = self._spec.state
        if raw.error is not None:
            return Reading(error=f"the state: {raw.error}")
        return self._parsed(raw.data, state.list or ("" if state.source != "file" else state.tasks))

    def _patiently(self) -> Raw:
        """What the source shows; one that answers that it is busy is asked again."""
        live, spec = self._live, self._spec
        deadline = time.monotonic() + live.limit(BUSY_S)
        while True:
            raw = read_source(spec.state, live.filled, live.outside, live.look_by)
            busy = "busy" in matched_classes(raw.error or "", spec.rejections)
            if not (raw.refused and busy) or time.monotonic() >= deadline:
                return raw
            time.sleep(BUSY_PAUSE_S)

    def _read_list(self) -> Reading:
        for _ in range(TIMES - 1):
            reading = self._ask_once()
            if reading.silent is None:
                return reading
        return self._ask_once()

    def _ask_once(self) -> Reading:
        result = self._live.ask("list")
        answer = answer_of(result, self._spec.words)
        if answer.ok:
            return self._parsed(dict(answer.said), self._spec.state.tasks)
        died = how_it_died(List(), result)
        if died is not None:
            return Reading(crash=died)
        if answer.error in NOT_THERE:
            return Reading(absent=not self.was_there)
        if answer.error == "unreadable":
            return Reading(error=answer.message or "unreadable")
        if answer.classes and not answer.classes & PASSING:
            return Reading(error=f"asked for its tasks, it says {answer.error}: {answer.message}")
        said = f"list: {answer.message or result.stderr or result.exit_code}"
        return Reading(trouble=said, silent=said if answer.classes == {"busy"} else None)

    def _parsed(self, data: Any, path: str) -> Reading:
        state = self._spec.state
        try:
            rows = rows_of(data, path, state.key or self._names["id"])
            rows = with_known(state, rows, {})
        except (KeyError, TypeError, ValueError, IndexError) as error:
            return Reading(error=f"there are no {path or 'tasks'!r} in the state: {error}")
        views = ours_among((self._task(*item) for item in rows.items()), state.names)
        tasks = {view.id: view for view in views}
        tasks = as_waiting(tasks) if state.derives_blocked else tasks
        leader = data.get(state.leader) if isinstance(data, Mapping) else None
        leader = leader if isinstance(leader, dict) else {}
        token, node = leader.get("token"), leader.get("node")
        return Reading(
            tasks,
            leader=node if isinstance(node, str) else None,
            token=token if isinstance(token, int) else None,
        )

    def _task(self, name: str, row: Row) -> TaskView:
        given: dict[str, Any] = {
            ours: field_of(row, theirs) for ours, theirs in self._names.items()
        }
        spec = self._spec
        del given["status"]
        text, own = given.pop("id"), given.pop("own")
        depends = given.pop("depends") or ()
        if isinstance(given["owner"], list):  # several may be named; without any it is nobody's
            given["owner"] = ", ".join(map(str, given["owner"])) or None
        if self._priorities:
            given["priority"] = self._priorities.get(str(given["priority"]))
        return TaskView(
            id=name if text is None else str(text),
            status=status_of(row, self._names["status"], spec.statuses, spec.state.rules),
            depends=listed(depends),
            own=None if own is None else str(own),
            **given,
        )

    def _aged(self, tasks: Mapping[str, TaskView], now: float) -> dict[str, TaskView]:
        """Since when each task has been seen like this."""
        aged = {}
        for name, view in tasks.items():
            mark = (view.status, view.owner, view.epoch)
            known, since = self._since.get(name, (None, now))
            if known != mark:
                since = now
            self._since[name] = (mark, since)
            aged[name] = replace(view, unchanged_s=round(now - since, 3))
        return aged
