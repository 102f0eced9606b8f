"""Spawned workers of a live board: one process each, started, stopped, killed and paused by handle."""

from __future__ import annotations

import json
import signal

from mutiny import stopping
from mutiny.box.results import Spawned
from mutiny.contracts.board import operations as op
from mutiny.contracts.board.background import named
from mutiny.doubles.boards import worker as board_worker
from mutiny.faults import process as process_faults
from mutiny.kit.faults import SkewClock
from mutiny.kit.views import ProcessView
from mutiny.model.result import OperationResult
from mutiny.system.files import BoxPath
from mutiny.targets.board.host import BoardHost
from mutiny.targets.kit.combinations import unable

WORDS = ("claim", "start", "complete", "fail", "heartbeat", "list")
STOP_LIMIT_S = 10.0
LONGEST_LEASE_S = 8.0
"""Workers send four heartbeats in a lease; a longer lease than this counts as this one."""


class SpawnedWorkers:
    """The workers that Mutiny has spawned in one box."""

    def __init__(self, live: BoardHost) -> None:
        self._live = live
        self._spawned: dict[str, Spawned] = {}
        self._files: list[BoxPath] = []

    def histories(self) -> list[BoxPath]:
        """What the workers wrote down."""
        return [path for path in self._files if path.exists()]

    def remember(self, history: BoxPath) -> None:
        """Somebody else has written down commands, too."""
        self._files.append(history)

    def spawn(self, operation: op.SpawnWorker) -> OperationResult:
        """Start them."""
        busy = self.living() & set(operation.names)
        if busy:
            return unable(f"worker {', '.join(sorted(busy))} runs already")
        for skew in self.skews(operation):
            bent = self._live.fault_runner.switch_on(skew)
            if not bent.fired:
                return unable(f"the clock of {skew.worker} was not bent: {bent.stderr}")
        for name in operation.names:
            self._start(name, operation.behaviour)
        return OperationResult(stdout=f"started {', '.join(operation.names)}")

    @staticmethod
    def skews(operation: op.SpawnWorker) -> list[SkewClock]:
        """The clocks that must be wrong for these workers, until the next `Settle`."""
        word, _, number = operation.behaviour.partition(":")
        if word != "skewed":
            return []
        offset_s = float(number or 3600)
        return [SkewClock(worker=name, offset_s=offset_s, lasting=True) for name in operation.names]

    def _start(self, name: str, behaviour: str) -> None:
        live = self._live
        place = live.box.files / "doubles"
        place.mkdir(exist_ok=True)
        history = place / f"history-{len(self._files)}-{name}.jsonl"
        templates = {word: live.spec.template(word) for word in WORDS}
        environment = live.environment(name)
        config = {
            "worker": name,
            "behaviour": behaviour,
            "commands": {key: value for key, value in templates.items() if value is not None},
            "values": dict(live.values),
            "environment": environment,
            "limit_s": live.limit(live.limits.command_s),
            "beat_s": min(live.profile().figures.lease_s, LONGEST_LEASE_S) / 4,
            "history": live.box.inside(history),
        }
        path = place / f"worker-{len(self._files)}-{name}.json"
        path.write_text(json.dumps(config))
        self._files.append(history)
        argv = (str(live.values["python"]), "-IS", board_worker.__file__, live.box.inside(path))
        self._spawned[name] = live.box.spawn(argv, cwd=str(live.values["source"]))

    def living(self) -> frozenset[str]:
        """Those whose process runs."""
        if not self._spawned:
            return frozenset()
        alive = {process.identity for process in process_faults.views(self._live.box)}
        return frozenset(
            name for name, one in self._spawned.items() if (one.pid, one.start) in alive
        )

    def processes(self, worker: str) -> tuple[ProcessView, ...]:
        """The processes of workers of this name, and what they have started; workers first."""
        mine = {
            (one.pid, one.start)
            for name, one in self._spawned.items()
            if name in named(dict.fromkeys(self._spawned, ""), worker)
        }
        everybody = process_faults.views(self._live.box)
        found = [process for process in everybody if process.identity in mine]
        for head in found:  # grows as it goes: children of children
            found += [process for process in everybody if process.parent == head.pid]
        return tuple(found)

    def stop(self, worker: str) -> OperationResult:
        """Ask them to end; they finish what they hold."""
        found = self.processes(worker)
        heads = [process for process in found if process.identity in self._identities()]
        for process in heads:
            self._live.box.signal(process.pid, process.start, signal.SIGTERM)
        limit_s = self._live.limit(STOP_LIMIT_S)
        gone = all(
            self._live.box.wait_gone(process.pid, process.start, limit_s) for process in heads
        )
        if not gone:
            return unable(f"worker {worker} did not end")
        return OperationResult(stdout=f"{len(heads)} ended")

    def _identities(self) -> set[tuple[int, int]]:
        return {(one.pid, one.start) for one in self._spawned.values()}

    def kill(self, worker: str) -> OperationResult:
        """Kill them with whatever command they are in.

        They stand still while it is looked for: one that they begin meanwhile would outlive them.
        """
        with process_faults.paused(self._live.box, self.processes(worker)):
            return process_faults.kill(self._live.box, self.processes(worker), f"worker {worker}")

    def pause(self, worker: str, seconds: float) -> OperationResult:
        """They stand still for some seconds."""
        found = self.processes(worker)
        with process_faults.paused(self._live.box, found) as pause:
            if not pause.fired:
                return OperationResult(1, stderr=f"no worker {worker} to pause", fired=False)
            stopping.sleep(seconds)
        return OperationResult(technique=process_faults.PAUSE, fired=True)

    def all_died(self) -> None:
        """The box has ended."""
        self._spawned.clear()
