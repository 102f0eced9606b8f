"""How a command of a board is spoken: a template with values becomes a command line.

Used by Mutiny and, inside a box, by the worker doubles, so that both speak the same. Standard library
only, and little of it: a worker starts hundreds of commands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
MOST_TRIED = 20
"""So many tasks of one look are tried one after the other."""
ABOUT_TASK = frozenset({"dependencies_open", "task_not_available", "wrong_status"})
"""Refusals of a claim that say nothing about other tasks."""


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Replace `{placeholder}`s; other braces stay as they are."""
    return _PLACEHOLDER.sub(
        lambda match: str(values[match[1]]) if values.get(match[1]) is not None else match[0], text
    )


def spoken(template: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
    """The command line of one command.

    `argv` is always said; each group of `optional` only when there is a value of its name that is not in
    `defaults`, and once for each when there are several. With `tool`, the arguments become one JSON object.
    """
    for name, usual in template.get("defaults", {}).items():
        if str(values.get(name)) == usual:
            values = {**values, name: None}
    argv = [fill(word, values) for word in template["argv"]]
    if template.get("tool"):
        given = {
            name: values[source]
            for name, source in template["arguments"].items()
            if values.get(source) not in (None, "", [], ())
        }
        return [*argv, template["tool"], json.dumps(given)]
    for name, group in template.get("optional", {}).items():
        value = values.get(name)
        if value is None or value == "":
            continue
        several: Sequence[Any] = value if isinstance(value, list | tuple) else [value]
        for one in several:
            argv += [fill(word, {**values, name: one}) for word in group]
    return argv


def answered(
    template: Mapping[str, Any], code: int | None, stdout: str, stderr: str
) -> dict[str, Any] | None:
    """What a target that prints texts has answered, in the form of one that prints JSON.

    None when nobody can know: it was killed, or failed in words that no class of refusals has. A refusal
    that exits like a success is one all the same, also without a class.
    """
    text = f"{stderr}\n{stdout}".strip()
    quiet = bool(template.get("refusal")) and re.search(template["refusal"], text) is not None
    if code != 0 or quiet:
        error = refusal_class(text, template.get("rejections", {}))
        known = code == 0 or (code is not None and code > 0 and bool(error))
        return {"ok": False, "error": error, "message": text[:500]} if known else None
    if not template.get("answer"):
        return {"ok": True}
    found = re.search(template["answer"], stdout)
    if found is None:
        return {"ok": False, "unable": f"its answer is not understood: {text[:200]!r}"}
    said = {name: value for name, value in found.groupdict().items() if value is not None}
    return {"ok": True, **said}


def refusal_class(text: str, rejections: Mapping[str, Sequence[str]]) -> str:
    """The first class whose patterns a text has, with all others that list the same pattern (`a|b`): the
    program says one thing in both cases. Empty for none.
    """
    for patterns in rejections.values():
        for pattern in patterns:
            if re.search(pattern, text):
                return "|".join(name for name, known in rejections.items() if pattern in known)
    return ""


def answer_in(text: str) -> dict[str, Any] | None:
    """The last line that is a JSON object."""
    for line in reversed(text.split("\n")):  # what else ends a line may stand in a text
        if line.startswith("{"):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                return value
    return None


def looks_first(template: Mapping[str, Any]) -> bool:
    """Must a worker look for a task before it can claim one?"""
    return "pick" in template and not template["pick"]["claims"]


def unnamed(template: Mapping[str, Any]) -> Mapping[str, Any]:
    """How a claim that names no task is spoken."""
    pick = template.get("pick")
    return {**template, **pick, "optional": {}} if pick is not None else template


def shown(
    template: Mapping[str, Any], code: int | None, stdout: str, stderr: str
) -> dict[str, Any] | None:
    """What a look for a free task has answered, or a claim that took one itself; None: nobody knows."""
    said = answered({**unnamed(template), "answer": ""}, code, stdout, stderr)
    if said is None or not said["ok"]:
        return said
    found = all_shown(template, stdout)
    if not found:
        return {"ok": False, "error": "nothing_to_claim"}
    return {"ok": True, "task": found[0]}


def all_shown(template: Mapping[str, Any], stdout: str) -> tuple[str, ...]:
    """Every task that a look has shown, each once, in its order."""
    found = re.finditer(template["pick"]["answer"], stdout)
    return tuple(dict.fromkeys(one["task"] for one in found))


def about_task(error: object) -> bool:
    """Was only this task refused, so that the next one that was shown may be had?"""
    return bool(error) and set(str(error).split("|")) <= ABOUT_TASK
