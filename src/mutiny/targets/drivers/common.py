"""What the drivers share: texts become answers, the target's rows become ours. Standard library only."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

READ_WITHIN_S = 2.0
"""So long a state that makes no sense is read again."""
HELD = ("claimed", "in_progress")
Answer = dict[str, Any]


def refused(error: str, message: str = "") -> Answer:
    """A refusal of a class of the contract."""
    return {"ok": False, "error": error, "message": message}


def unable(why: str) -> Answer:
    """The driver could not even ask: whatever this is, it is no answer of the target."""
    return {"ok": False, "unable": why}


def hindered(error: OSError) -> Answer | None:
    """The refusal that an error of the operating system is; None for one that is the program's own.

    How far the program had come when it met the error, the driver does not know.
    """
    doubt = {"happened": "unknown"}
    if error.errno == errno.ENOSPC:
        return {**refused("no_space", str(error)), **doubt}
    own = (errno.EIO, errno.EACCES, errno.EROFS, errno.EMFILE, errno.EINTR, errno.EDQUOT)
    return {**refused("system", str(error)), **doubt} if error.errno in own else None


def understood(text: str, success: str, refusals: Mapping[str, Sequence[str]]) -> Answer:
    """What a text says: success, a class of refusals, or nothing that is known (an empty class).

    Refusals are looked for first: a command may print how far it came before it says that it failed.
    """
    for name, patterns in refusals.items():
        for pattern in patterns:
            match = re.search(pattern, text, re.MULTILINE)
            if match is not None:
                return refused(name, _line_of(text, match.start()))
    match = re.search(success, text, re.MULTILINE)
    if match is None:
        return refused("", text.strip().partition("\n")[0])
    answer: Answer = {"ok": True}
    answer.update({key: value for key, value in match.groupdict().items() if value is not None})
    return answer


def _line_of(text: str, place: int) -> str:
    begin = text.rfind("\n", 0, place) + 1
    return text[begin:].partition("\n")[0].strip()


def labels(tasks: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The board's own id -> our name, for boards that name their tasks themselves: our name is the
    description.
    """
    return {str(task.get("id")): str(task.get("description")) for task in tasks}


def rows(tasks: Sequence[Mapping[str, Any]], *, owner: str, named: bool) -> list[dict[str, object]]:
    """A board's tasks in our words.

    `named`: its ids are our names. A task whose dependencies are not done is called `available` by
    these boards although nobody can claim it: we call it blocked.
    """
    names = {} if named else labels(tasks)
    done = {str(task.get("id")) for task in tasks if task.get("status") == "done"}
    shown = []
    for task in tasks:
        own, status = str(task.get("id")), str(task.get("status"))
        depends = [str(one) for one in task.get("dependencies") or ()]
        if status in ("available", "pending") and not done.issuperset(depends):
            status = "blocked"
        shown.append(
            {
                "id": names.get(own, own),
                "status": status,
                "owner": task.get(owner) if status in HELD else None,
                "priority": task.get("priority"),
                "depends": [names.get(one, one) for one in depends],
                "output": _output(task.get("result")) if status == "done" else None,
            }
        )
    return shown


def _output(result: object) -> str | None:
    if isinstance(result, Mapping):
        result = result.get("output")
    return result if isinstance(result, str) else None


def state_in(path: str, lock: str | None = None) -> Answer:
    """The tasks in a state file, or why it cannot be read.

    Read under the target's own lock where it has one, else again until it makes sense: what is seen while
    somebody writes is not the state. Only what stays unreadable is.
    """
    deadline = time.monotonic() + READ_WITHIN_S
    while True:
        with _shared(lock, deadline) as held:
            found = _parsed(path)
        if found["ok"] or time.monotonic() >= deadline:
            return found if held or found["ok"] else unable("somebody holds the target's lock")
        if lock is not None and held:
            return found  # nobody can be writing it
        time.sleep(0.05)


@contextlib.contextmanager
def _shared(path: str | None, deadline: float) -> Iterator[bool]:
    """The lock of a target, shared with other readers; False when nobody lets go of it in time."""
    if path is None or not os.path.exists(path):
        yield True
        return
    with open(path, "rb") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                held = True
                break
            except BlockingIOError:
                held = False
            if time.monotonic() >= deadline:
                break
            time.sleep(0.02)
        yield held


def _parsed(path: str) -> Answer:
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except FileNotFoundError:
        return refused("unreadable", "the state file is not there")
    except (OSError, ValueError, RecursionError) as error:
        return refused("unreadable", f"the state file cannot be read: {error}")
    tasks = data.get("tasks") if isinstance(data, dict) else None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        return refused("unreadable", "there are no tasks in the state file")
    return {"ok": True, "tasks": tasks}


def batch_in(path: str) -> list[dict[str, Any]]:
    """The tasks of a batch that Mutiny wrote down: `id` and `depends`."""
    with open(path, encoding="utf-8") as file:
        tasks: list[dict[str, Any]] = json.load(file)["tasks"]
    return tasks


def new_task(words: Sequence[str]) -> tuple[str, int, str, list[str]]:
    """`NAME PRIORITY [--payload FILE] [--depends NAME]...`: name, priority, payload, dependencies."""
    name, priority, *more = words
    given = list(zip(more[::2], more[1::2], strict=True))
    payload = "".join(text_of(["@" + value]) for flag, value in given if flag == "--payload")
    return name, int(priority), payload, [value for flag, value in given if flag == "--depends"]


def text_of(words: Sequence[str]) -> str:
    """The output of a completion: the text itself, or `@FILE`."""
    text = words[0] if words else "done"
    if text.startswith("@"):
        with open(text[1:], encoding="utf-8") as file:
            return file.read()
    return text


def told(answer: Answer) -> int:
    """Print an answer; the exit code says the same."""
    print(json.dumps(answer), flush=True)
    return 0 if answer.get("ok") else 1
