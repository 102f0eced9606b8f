"""A driver of the real option C in file mode: its public Python API, one process a command.

    PYTHON coordination_c.py DIRECTORY VERB ARGUMENTS...     PYTHON has the package `orchestrator`

There is no command line for these verbs; `orchestrate` only runs everything at once. Nothing is imported
for `list`, because opening the board would already write to it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 3)))

from mutiny.targets.drivers import common
from mutiny.targets.drivers.common import Answer

REFUSALS = {
    "unknown_task": ("^Task not found",),
    "task_not_available": ("^Task not available",),
    "dependencies_open": ("^Dependencies not satisfied",),
    "wrong_status": ("^Task not assigned",),
    "duplicate_id": ("^Duplicate task ID",),
    "dependency_missing": ("^Dependency not found",),
    "cycle": ("^Dependency cycle detected",),
}


def show(directory: str) -> Answer:
    """The state file in our words."""
    if not os.path.isdir(directory):
        return common.refused("not_initialised", "there is no board")
    found = common.state_in(os.path.join(directory, "tasks.json"), os.path.join(directory, ".lock"))
    if found["ok"]:
        found["tasks"] = common.rows(found["tasks"], owner="assigned_to", named=True)
    return found


def claimed(board: Any, worker: str, wanted: str | None) -> Answer:
    """The best of the available tasks, or this one; another worker may be faster."""
    if wanted is not None:
        return {"ok": True, "task": board.claim_task(wanted, worker)["id"]}
    for task in board.get_available_tasks():
        try:
            return {"ok": True, "task": board.claim_task(task["id"], worker)["id"]}
        except Exception as error:
            if str(error) != "Task not available":
                raise
    return common.refused("nothing_to_claim", "no task is available")


def beaten(board: Any, worker: str) -> Answer:
    """A sign of life; who is not registered is registered first."""
    if board.get_agent(worker) is None:
        board.register_agent(worker)
    else:
        board.agent_heartbeat(worker)
    return {"ok": True}


def added(board: Any, tasks: list[dict[str, Any]]) -> Answer:
    """One after the other: there is no batch."""
    for task in tasks:
        board.add_task_with_id(
            task["id"], task["description"], int(task["priority"]), task["depends"]
        )
    return {"ok": True, **({"task": tasks[0]["id"]} if len(tasks) == 1 else {})}


def another_lease(config: Any) -> str:
    """Why its leases are not those of the target's file; empty when they are, or it has none."""
    said = os.environ.get("ORCHESTRATOR_HEARTBEAT_TIMEOUT", "")
    real = getattr(config, "DEFAULT_HEARTBEAT_TIMEOUT", None)
    if not said or real is None or float(real) == float(said):
        return ""
    return f"its heartbeat timeout is {real} s, the target's file says {said} s"


def speak(directory: str, verb: str, words: list[str]) -> Answer:
    """One verb of Mutiny's."""
    if verb == "list":
        return show(directory)
    package: Any = importlib.import_module("orchestrator")
    other = another_lease(importlib.import_module("orchestrator.config"))
    if other:
        return common.unable(other)
    refusal: type[Exception] = importlib.import_module(
        "orchestrator.orchestrator"
    ).OrchestrationError

    def one_task() -> list[dict[str, Any]]:
        name, priority, payload, depends = common.new_task(words)
        about = f"task {name} {payload}"
        return [{"id": name, "description": about, "priority": priority, "depends": depends}]

    def many() -> list[dict[str, Any]]:
        return [{"description": "-", "priority": 5, **task} for task in common.batch_in(words[0])]

    def recovered(board: Any) -> Answer:
        board.get_available_tasks()
        return {"ok": True}

    verbs: dict[str, Callable[[Any], Answer]] = {
        "init": lambda board: {"ok": True},
        "status": lambda board: {"ok": True},
        "add": lambda board: added(board, one_task()),
        "add-batch": lambda board: added(board, many()),
        "claim": lambda board: claimed(board, words[0], words[1] if words[1:] else None),
        "complete": lambda board: {
            "ok": True,
            "task": board.complete_task(words[1], common.text_of(words[2:]))["id"],
        },
        "fail": lambda board: {"ok": True, "task": board.fail_task(words[1], "failed")["id"]},
        "heartbeat": lambda board: beaten(board, words[0]),
        "recover": recovered,
    }
    try:
        return verbs[verb](package.Orchestrator(coordination_dir=directory))
    except refusal as error:
        return common.understood(str(error), r"(?!)", REFUSALS)
    except OSError as error:
        told_so = common.hindered(error)
        if told_so is None:
            raise
        return told_so
    except (json.JSONDecodeError, UnicodeDecodeError) as error:  # of its own files: we give it text
        return common.refused("unreadable", str(error))
    except ValueError as error:
        return common.understood(str(error), r"(?!)", REFUSALS)


if __name__ == "__main__":
    sys.exit(common.told(speak(sys.argv[1], sys.argv[2], sys.argv[3:])))
