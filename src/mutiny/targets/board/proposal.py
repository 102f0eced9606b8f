"""What only the file of a board says, from what was seen of its program; how its commands are called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mutiny.targets.kit.hints import Hint, OwnLines, Way

if TYPE_CHECKING:
    from mutiny.targets.discover.program import Found

_TASKS = ("task", "tasks", "issue", "issues")
_GENERAL = ("update", "edit", "set")
_FORMS = ("--json", "--plain")


def _changed(status: str, *more: str) -> Way:
    """A board on which every change is an edit of a field."""
    return Way(_GENERAL, ("--status", status, *more))


HINTS = {
    "init": Hint(("init", "setup"), ("=board",), may=("=board",), tried=True),
    "add": Hint(
        ("add", "create", "new"), ("description",), groups=_TASKS, forms=_FORMS, tried=True
    ),
    "claim": Hint(
        ("claim", "take", "pick"),
        ("worker", "task"),
        may=("worker",),
        groups=_TASKS,
        forms=_FORMS,
        ways=(
            Way(_GENERAL, ("--claim",)),
            _changed("{claimed}", "--assignee", "{worker}"),
        ),
    ),
    "start": Hint(("start", "begin"), ("worker", "task"), may=("worker",), groups=_TASKS),
    "complete": Hint(
        ("done", "complete", "close", "finish"),
        ("worker", "task"),
        may=("worker",),
        nobody="unknown_task",
        groups=_TASKS,
        forms=_FORMS,
        ways=(_changed("{done}"),),
    ),
    "fail": Hint(("fail",), ("task",), groups=_TASKS),
    "release": Hint(("release", "unclaim", "drop"), ("task",), groups=_TASKS),
    "cancel": Hint(("cancel",), ("task",), groups=_TASKS),
    "heartbeat": Hint(("heartbeat", "renew", "ping"), ("worker",)),
    "status": Hint(("status", "stats", "overview")),
    "list": Hint(("list", "ls"), groups=_TASKS, forms=_FORMS, whole=("--all",)),
}

_WORDS = {
    "claimed": ("In Progress", "in_progress", "in-progress", "doing", "started"),
    "done": ("Done", "closed", "completed", "resolved"),
}
"""What boards call a task that somebody has, and one that is over."""


def own_lines(found: Found) -> OwnLines:
    """How answers in words are read, how a worker finds a task, and what such a board does not promise."""
    record: Mapping[str, Any] = {} if found.source is None else found.source.place.record
    own = next((key for key in ("id", "key", "number") if record.get(key) not in (None, "")), "")
    status = str(record.get("status", ""))
    head = ["texts = true  # it answers in words"]
    words = {status: "available"} if status else {}
    called = _called(found, status)
    words |= {name: meaning for meaning, name in called.items()}
    told = ", ".join(f'"{name}" = "{meaning}"' for name, meaning in words.items())
    head += [f"statuses = {{ {told} }}  # as far as its help tells"] if words else []
    head += [f'nobody = "{found.nobody}"  # an id that no task has'] if own else []
    subject = str(record.get(own, ""))
    added = found.tried.get("add")
    answer = "" if added is None or not subject else _naming(subject, added.answer)
    state: list[str] = []
    if found.source is not None and own:
        unsaid = {"priority": ""} if "priority" in record else {}  # nobody tells it ours
        named = {"id": found.source.place.key, "own": own, **unsaid, **dict(_others(record))}
        shown = ", ".join(f'{field} = "{key}"' for field, key in named.items())
        state = ["names = '^task (?P<name>.+)$'", f"fields = {{ {shown} }}", ""]
    tail = [*_pick(found, subject), *_profile(found)]
    spoken = {f"{{{meaning}}}": called.get(meaning, meaning) for meaning in _WORDS}
    answers = {"add": answer} if answer else {}
    return OwnLines(tuple(head), tuple(tail), answers, tuple(state), spoken)


def _called(found: Found, status: str) -> dict[str, str]:
    """The program's words, where its help names them beside the one that was seen."""
    lines = [
        line
        for usage in found.commands.values()
        for line in usage.text.splitlines()
        if status and re.search(rf"\b{re.escape(status)}\b", line)
    ]
    return {
        meaning: word
        for meaning, names in _WORDS.items()
        for word in names
        if any(re.search(rf"\b{re.escape(word)}\b", line) for line in lines)
    }


def _others(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Who has it, and what it waits for, by their usual names."""
    owners = ("owner", "assignee", "assignees", "assigned_to", "claimed_by")
    waits = ("depends", "dependencies", "depends_on", "blocked_by")
    for field, names in (("owner", owners), ("depends", waits)):
        key = next((one for one in names if one in record), None)
        if key is not None and key != field:
            yield field, key


def _id(subject: str) -> str:
    """A pattern of ids like this one."""
    begin = re.match(r"(.*[-_#])?", subject)
    prefix = begin[0] if begin else ""
    rest = subject[len(prefix) :]
    return re.escape(prefix).replace("\\-", "-") + (r"\d+" if rest.isdigit() else r"[\w.]+")


def _naming(subject: str, text: str) -> str:
    """Where an answer names a task: the line's own words before the id; empty when it does not."""
    for line in text.splitlines():
        at = re.search(rf"(?<![\w]){re.escape(subject)}(?![\w])", line)
        if at is not None:
            before = line[: at.start()]
            known = re.escape(before.lstrip()).replace("\\ ", " ")
            lead = rf"^\s*{known}" if before.lstrip() else "^"
            return f"(?m){lead}(?P<task>{_id(subject)})".replace("'", ".")
    return ""


def _pick(found: Found, subject: str) -> Iterator[str]:
    for words, text in found.ready.items():
        answer = _naming(subject, text) if subject else ""
        if answer:
            argv = ", ".join(f'"{word}"' for word in ("{program}", *words))
            yield "[pick]  # how a worker finds a task that nobody has"
            yield f"argv = [{argv}]"
            yield f"answer = '{answer}'"
            yield ""
            return
    yield "# [pick]  # a claim names its task: say which command shows those that nobody has"
    yield ""


def _profile(found: Found) -> Iterator[str]:
    yield "[profile]"
    yield 'picks = "any"'
    yield "names_new_tasks = false  # ids come from the answer"
    yield "owner_speaks = false"
    yield "owner_reclaims = true"
    if "heartbeat" not in found.verbs:
        yield "leases = false"
        yield "fences = false"
    yield "batches = false"
    yield "counts_completions = false"
    if "heartbeat" not in found.verbs:
        yield "[profile.not_applicable]"
        yield '"board.no_stuck_claim" = "there are no leases: nothing is ever returned"'
