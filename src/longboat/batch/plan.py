"""From a plan file, or a model's answer, to checked tasks: the same input gives the same bytes."""

from __future__ import annotations

import json
from typing import Any

from longboat.batch.values import Task, check_name
from longboat.errors import LongboatError, UsageError

_LISTS = ("depends", "reads", "writes", "files")
_KEYS = {"id", "name", "prompt", *_LISTS}


def read_plan(path: str) -> list[Task]:
    """The tasks of a plan file."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise UsageError(f"The plan {path} cannot be read: {error.strerror}") from None
    return parse(text, path)


def ask_model(url: str, text: str) -> list[Task]:
    """The tasks that a model makes of a text; whatever is no plan is refused."""
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    body = {
        "model": "planner",
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": f"Answer with a plan in JSON only.\n\n{text}"}],
    }
    request = Request(
        f"{url.rstrip('/')}/v1/messages",
        json.dumps(body).encode(),
        {"content-type": "application/json", "anthropic-version": "2023-06-01"},
    )
    try:
        with urlopen(request, timeout=60) as answer:
            said = json.load(answer)
    except (URLError, OSError, ValueError) as error:
        raise LongboatError(f"The planner at {url} gave no answer: {error}") from None
    content = said.get("content") if isinstance(said, dict) else None
    parts = [part.get("text", "") for part in content or [] if isinstance(part, dict)]
    return parse("".join(parts), f"the planner at {url}")


def parse(text: str, where: str) -> list[Task]:
    """Checked tasks in the order of their ids."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{where} is not valid JSON: {error}") from None
    rows = data.get("tasks") if isinstance(data, dict) else None
    if not isinstance(rows, list) or not rows:
        raise UsageError(f"{where}: a plan is an object with a list 'tasks' that is not empty")
    tasks = [_task(row, f"{where}: task {number}") for number, row in enumerate(rows, 1)]
    _check_together(tasks, where)
    return sorted(tasks, key=lambda task: task.id)


def _task(row: Any, where: str) -> Task:
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        raise UsageError(f"{where}: a task is an object with an 'id'")
    unknown = sorted(set(row) - _KEYS)
    if unknown:
        raise UsageError(f"{where}: unknown key '{unknown[0]}' (known: {', '.join(sorted(_KEYS))})")
    name = check_name(row["id"], f"{where}: id")
    texts = {key: row.get(key, "") for key in ("name", "prompt")}
    if not all(isinstance(text, str) for text in texts.values()) or not texts["prompt"]:
        raise UsageError(f"{where}: 'prompt' is a text that is not empty, 'name' a text")
    lists = {key: row.get(key, []) for key in _LISTS}
    for key, value in lists.items():
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise UsageError(f"{where}: '{key}' is a list of texts")
    for pattern in lists["files"]:
        if (
            pattern.startswith(("/", "-"))
            or ".." in pattern.split("/")
            or ".git" in pattern.split("/")
        ):
            raise UsageError(f"{where}: 'files' has {pattern!r}, which leaves the repository")
    made = {key: tuple(dict.fromkeys(value)) for key, value in lists.items()}
    return Task(name, texts["name"] or name, texts["prompt"])._replace(**made)  # type: ignore[arg-type]


def _check_together(tasks: list[Task], where: str) -> None:
    names = [task.id for task in tasks]
    folded = [name.casefold() for name in names]
    double = next((name for name in names if folded.count(name.casefold()) > 1), None)
    if double is not None:
        raise UsageError(f"{where}: task '{double}' is there twice")
    for task in tasks:
        missing = next((name for name in task.depends if name not in names), None)
        if missing is not None:
            raise UsageError(
                f"{where}: task '{task.id}' depends on '{missing}', which is not there"
            )
    circle = _circle({task.id: task.depends for task in tasks})
    if circle:
        raise UsageError(f"{where}: tasks depend on each other in a circle: {' -> '.join(circle)}")


def _circle(depends: dict[str, tuple[str, ...]]) -> list[str]:
    """One circle of dependencies, or nothing."""
    done: set[str] = set()
    for start in depends:
        path: list[str] = []
        stack = [(start, iter(depends[start]))] if start not in done else []
        while stack:
            name, others = stack[-1]
            if not path or path[-1] != name:
                path.append(name)
            step = next((one for one in others if one not in done), None)
            if step is None:
                done.add(name)
                path.pop()
                stack.pop()
            elif step in path:
                return [*path[path.index(step) :], step]
            else:
                stack.append((step, iter(depends[step])))
    return []


def to_json(tasks: list[Task]) -> dict[str, Any]:
    """The form of `plan.json`."""
    rows = [
        {"id": task.id, "name": task.name, "prompt": task.prompt}
        | {key: list(getattr(task, key)) for key in _LISTS}
        for task in tasks
    ]
    return {"tasks": rows}
