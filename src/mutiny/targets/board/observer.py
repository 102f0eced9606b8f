"""Look at a live board: its state file, or its own `list`; its servers; its spawned workers.

The processes are looked at before the tasks: a worker that was gone then has changed nothing since.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.kit.answer import answer_of
from mutiny.model.result import OperationResult
from mutiny.system.files import BoxPath
from mutiny.targets.board.spec import BoardSpec

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


class BoardObserver:
    """Looks at one board."""

    def __init__(
        self,
        spec: BoardSpec,
        state_file: Callable[[], BoxPath],
        ask: Callable[[str], OperationResult],
    ) -> None:
        self._spec = spec
        self._state_file = state_file
        self._ask = ask
        self._names = {key: str(value) for key, value in asdict(spec.state.fields).items()}
        self._since: dict[str, tuple[tuple[object, ...], float]] = {}
        self.was_there = False
        self.trusts_file = True
        """False after the state file was damaged: then only the board can say what is still true."""

    def observe(
        self, *, servers: int | None, living: frozenset[str], serving: bool
    ) -> BoardObservation:
        """One look."""
        began = time.monotonic()
        reading = self.read() if serving else Reading(absent=not self.was_there)
        tasks = reading.tasks
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
            leader=reading.leader,
            token=reading.token,
            servers=servers,
            living=living,
            probe_errors=() if reading.trouble is None else (reading.trouble,),
        )

    def read(self) -> Reading:
        """The tasks, by the probe that the target's file declares."""
        by_file = self._spec.state.probe == "file" and self.trusts_file
        return self._read_file() if by_file else self._read_list()

    def _read_file(self) -> Reading:
        try:
            data = json.loads(self._state_file().read_bytes())
        except FileNotFoundError:
            if not self.was_there:
                return Reading(absent=True)
            return Reading(error="the state file is gone")
        except NotADirectoryError as error:
            return Reading(error=str(error))
        except (ValueError, RecursionError) as error:
            return Reading(error=f"the state file is not JSON: {error}")
        except OSError as error:  # also what is no file of the box
            return Reading(trouble=f"the state file cannot be looked at: {error}")
        if not isinstance(data, dict):
            return Reading(error="the state file is no JSON object")
        return self._parsed(data)

    def _read_list(self) -> Reading:
        result = self._ask("list")
        answer = answer_of(result, self._spec.words)
        if answer.ok:
            return self._parsed(dict(answer.said))
        if answer.error in NOT_THERE:
            return Reading(absent=not self.was_there)
        if answer.error == "unreadable":
            return Reading(error=answer.message or "unreadable")
        return Reading(trouble=f"list: {answer.message or result.stderr or result.exit_code}")

    def _parsed(self, data: Mapping[str, Any]) -> Reading:
        rows = data.get(self._spec.state.tasks)
        listed = list(rows.values()) if isinstance(rows, dict) else rows
        if not isinstance(listed, list):
            return Reading(error=f"there are no {self._spec.state.tasks!r} in the state")
        tasks = {}
        for row in listed:
            if not isinstance(row, dict):
                return Reading(error=f"a task is no JSON object: {row!r:.80}")
            view = self._task(row)
            tasks[view.id] = view
        leader = data.get(self._spec.state.leader)
        leader = leader if isinstance(leader, dict) else {}
        token, node = leader.get("token"), leader.get("node")
        return Reading(
            tasks,
            leader=node if isinstance(node, str) else None,
            token=token if isinstance(token, int) else None,
        )

    def _task(self, row: Mapping[str, Any]) -> TaskView:
        given: dict[str, Any] = {ours: row.get(theirs) for ours, theirs in self._names.items()}
        status = str(given.pop("status"))
        depends = given.pop("depends") or ()
        return TaskView(
            id=str(given.pop("id")),
            status=self._spec.statuses.get(status, status),
            depends=tuple(str(one) for one in depends),
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
