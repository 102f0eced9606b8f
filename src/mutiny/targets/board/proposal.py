"""What only the file of a board says, from what was seen of its program; how its commands are called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mutiny.targets.discover.records import id_key
from mutiny.targets.kit.hints import SAMPLES, Hint, OwnLines, Way

if TYPE_CHECKING:
    from mutiny.targets.discover.program import Found

_TASKS = ("task", "tasks", "issue", "issues")
_GENERAL = ("update", "edit", "set")
_FORMS = ("--json", "--plain")
_OWNERS = ("owner", "assignee", "assignees", "assigned_to", "claimed_by")


def _changed(status: str, *more: str) -> Way:
    """A board on which every change is an edit of a field."""
    return Way(_GENERAL, ("--status", status, *more))


def _ends(*words: str) -> Hint:
    """What can be done to a task in hand; not to one that is done, or that nobody has added."""
    return Hint(words, ("task",), nobody="unknown_task", over="wrong_status", groups=_TASKS)


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
            Way(("set-status",), ("{claimed}",)),
            Way(("next", "claim-next", "pop", "pull"), names=False, means=r"(?i)\bclaim"),
            Way(("start", "begin")),
        ),
        follows=True,
        others="task_not_available",
        empty="nothing_to_claim",
        nobody="unknown_task",
        over="task_not_available",
        early="not_initialised",
    ),
    "start": Hint(("start", "begin"), ("worker", "task"), may=("worker",), groups=_TASKS),
    "complete": Hint(
        ("done", "complete", "close", "finish"),
        ("worker", "task"),
        may=("worker",),
        nobody="unknown_task",
        over="wrong_status",
        stranger="not_owner",
        groups=_TASKS,
        forms=_FORMS,
        ways=(
            _changed("{done}"),
            *(Way(_GENERAL, (option,)) for option in ("--complete", "--done", "--close")),
            Way(("set-status",), ("{done}",)),
        ),
        follows=True,
    ),
    "fail": _ends("fail"),
    "release": _ends("release", "unclaim", "drop"),
    "cancel": _ends("cancel"),
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
    own = id_key(record)
    status = str(record.get("status", ""))
    head = ["texts = true  # it answers in words"]
    words = {status: "available"} if status else {}
    called = {**_called(found, status), **_seen(found, status)}
    words |= {name: meaning for meaning, name in called.items()}
    told = ", ".join(f'"{name}" = "{meaning}"' for name, meaning in words.items())
    head += [f"statuses = {{ {told} }}  # {_whence(found)}"] if words else []
    head += [f'nobody = "{found.nobody}"  # an id that no task has'] if own else []
    subject = str(record.get(own, ""))
    added = found.tried.get("add")
    answer = "" if added is None or not subject else _naming(subject, added.answer, own)
    state: list[str] = []
    if found.source is not None and own:
        unsaid = {"priority": ""} if "priority" in record else {}  # nobody tells it ours
        named = {
            "id": found.source.place.key,
            "own": own,
            **unsaid,
            **dict(_others(record)),
            **_owner(found, record),
        }
        shown = ", ".join(f'{field} = "{key}"' for field, key in named.items())
        state = ["names = '^task (?P<name>.+)$'", f"fields = {{ {shown} }}", ""]
    tail = [*_pick(found, subject), *_profile(found)]
    spoken = {f"{{{meaning}}}": called.get(meaning, meaning) for meaning in _WORDS}
    claimed = "" if _named_by_claims(found) or not subject else found.answers.get("claim", "")
    told_by = {"add": answer, "claim": _naming(subject, claimed, own)}
    answers = {verb: one for verb, one in told_by.items() if one}
    return OwnLines(tuple(head), tuple(tail), answers, tuple(state), spoken)


def _seen(found: Found, status: str) -> dict[str, str]:
    """The program's words, as the record had them after each command."""
    verbs = {"claimed": "claim", "done": "complete"}
    shown = {what: found.followed.get(verb, {}).get("status") for what, verb in verbs.items()}
    return {what: str(word) for what, word in shown.items() if word and word != status}


def _whence(found: Found) -> str:
    return "as they were seen" if found.followed else "as far as its help tells"


def _owner(found: Found, before: Mapping[str, Any]) -> dict[str, str]:
    """The field that had the worker's name after the claim, and not before."""
    after = found.followed.get("claim", {})
    mine = (key for key, one in after.items() if one == SAMPLES["worker"] != before.get(key))
    key = next(mine, None)
    return {} if key in (None, "owner") else {"owner": str(key)}


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
    waits = ("depends", "dependencies", "depends_on", "blocked_by")
    for field, names in (("owner", _OWNERS), ("depends", waits)):
        key = next((one for one in names if one in record and not record[one]), None)
        if key is not None and key != field:
            yield field, key
    if record.get("owner"):  # nobody has claimed it yet: it is whoever made it
        yield "owner", next((one for one in _OWNERS if one in record and not record[one]), "")


def _id(subject: str) -> str:
    """A pattern of ids like this one."""
    begin = re.match(r"(.*[-_#])?", subject)
    prefix = begin[0] if begin else ""
    rest = subject[len(prefix) :]
    return re.escape(prefix).replace("\\-", "-") + (r"\d+" if rest.isdigit() else r"[\w.]+")


def _naming(subject: str, text: str, own: str) -> str:
    """Where an answer names a task: its key in JSON, or the line's own words before the id; empty when it
    does not; `own`: the key in its record, for others may have the same value.
    """
    keys = (own, r"\w*_?id", r"\w+")
    found = (re.search(rf'"({key})":( ?)"?{re.escape(subject)}"?(?=[,}}\s])', text) for key in keys)
    keyed = next((one for one in found if one), None)
    if keyed is not None:
        pattern = rf'"{keyed[1]}":\s*"?(?P<task>[^",}}\s]+)'
        first = re.search(pattern, text)
        if first is not None and first["task"] == subject:
            return pattern
    for line in text.splitlines():
        at = re.search(rf"(?<![\w]){re.escape(subject)}(?![\w])", line)
        if at is not None:
            before = line[: at.start()]
            known = re.escape(before.lstrip()).replace("\\ ", " ")
            lead = rf"^\s*{known}" if before.lstrip() else "^"
            return f"(?m){lead}(?P<task>{_id(subject)})".replace("'", ".")
    return ""


def _pick(found: Found, subject: str) -> Iterator[str]:
    if not _named_by_claims(found):
        return
    own = id_key({} if found.source is None else found.source.place.record)
    for words, text in found.ready.items():
        answer = _naming(subject, text, own) if subject else ""
        if answer:
            argv = ", ".join(f'"{word}"' for word in ("{program}", *words))
            yield "[pick]  # how a worker finds a task that nobody has"
            yield f"argv = [{argv}]"
            yield f"answer = '{answer}'"
            yield ""
            return
    yield "# [pick]  # a claim names its task: say which command shows those that nobody has"
    yield ""


def _named_by_claims(found: Found) -> bool:
    """A claim says which task it wants, as far as it was found."""
    return "claim" not in found.verbs or "{task}" in found.verbs["claim"]


def _profile(found: Found) -> Iterator[str]:
    yield "[profile]"
    if _named_by_claims(found):
        yield 'picks = "any"'
    else:
        yield "names_tasks = false  # a claim finds its task itself"
    yield "names_new_tasks = false  # ids come from the answer"
    if "not_owner" not in found.refusals:
        yield "owner_speaks = false"
    yield from _claims(found)
    if "heartbeat" not in found.verbs:
        yield "leases = false"
        yield "fences = false"
    yield "batches = false"
    yield "counts_completions = false"
    if "heartbeat" not in found.verbs:
        yield "[profile.not_applicable]"
        yield '"board.no_stuck_claim" = "there are no leases: nothing is ever returned"'


def _claims(found: Found) -> Iterator[str]:
    """What claims promise, as far as two workers could be told apart."""
    again = found.repeated.get("claim", frozenset({"same"}))
    yield from ("owner_reclaims = true",) if "same" in again else ()
    nameless = _entered_itself(found)
    if nameless:  # both claims were those of one worker: nothing was seen of another
        yield f"# claim does not say who speaks, and {nameless} was entered: say {{worker}} in it,"
        yield '# by an option or by ["env", "VARIABLE={worker}", "{program}", ...]'
        return
    after = found.followed.get("claim")
    if after and SAMPLES["worker"] not in after.values():
        yield "shows_owners = false  # after a claim its record did not name the worker"
    if "other" in again:
        yield "claims_exclude = false  # tried: somebody else could claim it, too"


def _entered_itself(found: Found) -> str:
    """Whom a claim without a worker's name has made the owner; empty when it was told, or made nobody."""
    if found.source is None or "{worker}" in found.verbs.get("claim", ()):
        return ""
    before, after = found.source.place.record, found.followed.get("claim", {})
    return next((str(after[key]) for key in _OWNERS if after.get(key) and not before.get(key)), "")
