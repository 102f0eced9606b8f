"""Loads on a live board: one double in the box does many commands in one step, and brings figures back."""

from __future__ import annotations

import json
from typing import Any

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.load_plans import PROGRESS
from mutiny.doubles.boards import load as board_load
from mutiny.model.result import OperationResult
from mutiny.targets.board.host import BoardHost
from mutiny.targets.kit.combinations import unable

WORDS = ("add_batch", "claim", "complete", "heartbeat", "release")
SMALLEST = 1000
LONGEST_S = 3600.0
"""A load that takes longer than this has hung."""


class Loads:
    """The loads of one box."""

    def __init__(self, live: BoardHost) -> None:
        self._live = live
        self._count = 0
        self._depends: dict[str, tuple[str, ...]] = {}

    def add(self, operation: op.AddMany) -> OperationResult:
        """Add many tasks."""
        named = operation.named
        self._depends |= named
        given = self._run("add", operation.count, ("load-adder",), depends=named)
        if isinstance(given, OperationResult):
            return given
        answer = given["answer"]
        code = 0 if answer.get("ok") else 1
        details = {"answer": answer, "load": _brief(given["load"])}
        return OperationResult(code, stdout=f"{operation.count} tasks", details=details)

    def drive(self, operation: op.Drive) -> OperationResult:
        """Many commands in one step."""
        count = len(self._depends) if operation.shape == "dag" else operation.count
        if operation.shape == "burst":
            count = operation.count * operation.workers
        given = self._run(
            operation.shape,
            count,
            operation.names,
            depends=self._depends,
            seconds=operation.seconds,
            sizes=_sizes(operation.size),
        )
        if isinstance(given, OperationResult):
            return given
        measured = _brief(given["load"])
        if measured["done"] < count and not _told(measured):
            late = f"; {measured['late_heartbeats']} late" if measured["late_heartbeats"] else ""
            text = f"only {measured['done']} of {count} were done{late}"
            return OperationResult(1, stderr=text, details={"load": measured})
        return OperationResult(
            stdout=f"{measured['done']} in {measured['seconds']:.1f} s", details={"load": measured}
        )

    def _run(
        self, shape: str, count: int, workers: tuple[str, ...], **more: Any
    ) -> dict[str, Any] | OperationResult:
        live = self._live
        self._count += 1
        place = live.box.files / "doubles"
        place.mkdir(exist_ok=True)
        history = place / f"history-load-{self._count}.jsonl"
        result = place / f"load-{self._count}-result.json"
        templates = {word: live.spec.template(word) for word in WORDS}
        lines, profile = live.spec.lines, live.spec.profile
        config = {
            "shape": shape,
            "count": count,
            "workers": list(workers),
            "commands": {word: one for word, one in templates.items() if one is not None},
            "socket": live.filled(lines.socket) if lines is not None else "",
            "messages": {} if lines is None else {k: dict(v) for k, v in lines.messages.items()},
            "values": dict(live.values),
            "environment": live.environment(),
            "limit_s": live.limits.command_s,
            "most_s": LONGEST_S,
            "lease_s": live.figure("lease_s"),
            "beat_s": live.figure("lease_s") / 4,
            "tolerance_s": profile.limits.tolerance_s,
            "server": [process.pid for process in live.server.processes()],
            "directory": live.filled(live.spec.state.directory),
            "scratch": str(live.values["tmp"]),
            "history": live.box.inside(history),
            "progress": live.box.inside(place / PROGRESS),
            "result": live.box.inside(result),
            **more,
        }
        path = place / f"load-{self._count}.json"
        path.write_text(json.dumps(config))
        argv = (str(live.values["python"]), "-IS", board_load.__file__, live.box.inside(path))
        live.spawned.remember(history)
        done = live.box.run(argv, cwd=str(live.values["source"]), timeout_s=LONGEST_S)
        if done.exit_code != 0 or not result.exists():
            return unable(f"the load broke down: {done.stderr.strip()[-500:] or done.exit_code}")
        found: dict[str, Any] = json.loads(result.read_bytes())
        return found


def _told(measured: dict[str, Any]) -> bool:
    kinds = ("robbed", "out_of_order", "twice", "unanswered", "refused")
    return any(measured.get(kind) for kind in kinds)


def _brief(measured: dict[str, Any]) -> dict[str, Any]:
    """Without what says nothing."""
    optional = ("by_size", "samples", "outputs", "bursts")
    return {key: value for key, value in measured.items() if value or key not in optional}


def _sizes(largest: int) -> list[int]:
    """From a kilobyte to the largest, four times as much each, and the largest itself."""
    sizes = []
    size = SMALLEST
    while size < largest:
        sizes.append(size)
        size *= 4
    return [*sizes, largest]
