"""What one look at a board tells: the sentences that `Verify` and experiments can say.

A sentence that is not so now may become so: it is pending. What could not be looked at is unknown, neither
true nor false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.kit.sentences import (
    Finding,
    Record,
    Sentence,
    Spoken,
    Value,
    Vocabulary,
    broken,
    told,
    unknown,
)
from mutiny.model.duration import PATTERN as DURATION

HELD = ("claimed", "in_progress")
TERMINAL = ("done", "failed", "cancelled")
_STATUSES = "blocked|available|claimed|in_progress|done|failed|cancelled"
_GROUPS = {"settled": TERMINAL, "held": HELD}
"""Words for several statuses at once."""

Values = Mapping[str, Value]


def understand(text: str) -> Spoken:
    """The sentence that a text says; ValueError with the nearest one when there is none."""
    return Vocabulary(MOMENTARY).read(text)


def _unseen(seen: BoardObservation) -> Finding:
    if seen.absent:
        return unknown("there is no board")
    return unknown(seen.state_error or "the board could not be looked at")


def _statuses(word: str) -> tuple[str, ...]:
    return _GROUPS.get(word.lower(), (word.lower(),))


# --- about tasks ----------------------------------------------------------------------------------


def _none_of(bad: list[TaskView], what: str) -> Finding:
    shown = ", ".join(view.id for view in bad[:5])
    shown += f", ... ({len(bad)})" if len(bad) > 5 else ""
    return told(not bad, f"{what}: {shown}" if bad else f"none is {what}")


def _stuck(tasks: list[TaskView], values: Values) -> Finding:
    held = [one for one in tasks if one.status in _statuses(values["status"])]
    if not held:
        return told(True, f"none is {values['status']}")
    longest = max(held, key=lambda one: one.unchanged_s)
    text = f"{longest.id} is {longest.status} for {longest.unchanged_s:.1f} s"
    if longest.unchanged_s > values["limit"]:
        return broken(text, longest.id)
    return told(True, text)


def _all_are(tasks: list[TaskView], values: Values) -> Finding:
    if not tasks:  # then it is true of anything, and nothing is said
        return unknown("there is no task on the board")
    wanted = values["status"].lower()
    return _none_of([one for one in tasks if one.status not in _statuses(wanted)], f"not {wanted}")


def _none_is(tasks: list[TaskView], values: Values) -> Finding:
    wanted = values["status"].lower()
    return _none_of([one for one in tasks if one.status in _statuses(wanted)], wanted)


def _count(tasks: list[TaskView], values: Values) -> Finding:
    wanted = values.get("status", "").lower()
    found = len([one for one in tasks if not wanted or one.status in _statuses(wanted)])
    bound = values.get("bound", "").lower()
    number = int(values["number"])
    holds = {"at least": found >= number, "at most": found <= number}.get(bound, found == number)
    return told(holds, f"{found} {wanted or 'there'}")


def _named(tasks: list[TaskView], values: Values) -> TaskView | None:
    return next((one for one in tasks if one.id == values["task"]), None)


def _task_is(tasks: list[TaskView], values: Values) -> Finding:
    view = _named(tasks, values)
    if view is None:
        return told(False, f"task {values['task']} is not there")
    holds = (view.status == values["status"].lower()) != ("not" in values)
    return told(holds, f"task {view.id} is {view.status}")


def _owner_is(tasks: list[TaskView], values: Values) -> Finding:
    view = _named(tasks, values)
    if view is None:
        return told(False, f"task {values['task']} is not there")
    holds = view.status in HELD and view.owner == values["worker"]
    return told(holds, f"task {view.id} is {view.status}, owner {view.owner or 'nobody'}")


def _worker_holds(tasks: list[TaskView], values: Values) -> Finding:
    held = [one for one in tasks if one.status in HELD and one.owner == values["worker"]]
    number = 0 if values["number"].lower() in ("no", "nothing") else int(values["number"])
    return told(len(held) == number, f"{values['worker']} holds {len(held)}")


def _one_owner(tasks: list[TaskView], values: Values) -> Finding:
    bad = [one for one in tasks if one.status in HELD and not one.owner]
    return _none_of(bad, "held by nobody in particular")


def _once(tasks: list[TaskView], values: Values) -> Finding:
    if tasks and all(one.completions is None for one in tasks):
        return unknown("the board does not count completions")
    return _none_of([one for one in tasks if (one.completions or 0) > 1], "completed twice")


def _bounded(tasks: list[TaskView], values: Values) -> Finding:
    if tasks and all(one.attempts is None for one in tasks):
        return unknown("the board does not count attempts")
    bad = [one for one in tasks if one.max_attempts and (one.attempts or 0) > one.max_attempts]
    return _none_of(bad, "tried more often than allowed")


def _ordered(tasks: list[TaskView], values: Values) -> Finding:
    unfinished = {one.id for one in tasks if one.status != "done"}
    begun = [one for one in tasks if one.status in (*HELD, "done")]
    bad = [one for one in begun if unfinished.intersection(one.depends)]
    return _none_of(bad, "begun before its dependencies were done")


# --- about the board ------------------------------------------------------------------------------


def _readable(seen: BoardObservation, values: Values) -> Finding:
    if seen.state_error is not None:
        return told(False, seen.state_error)
    return _unseen(seen) if seen.tasks is None else told(True, "it was read")


def _leader(seen: BoardObservation, values: Values) -> Finding:
    if seen.tasks is None and seen.token is None:
        return _unseen(seen)
    if seen.leader is None and seen.token is None:
        return unknown("the board does not show who leads")
    wanted = values["node"].lower()
    if wanted == "nobody":
        return told(seen.leader is None, f"{seen.leader or 'nobody'} leads")
    return told(seen.leader == values["node"], f"{seen.leader or 'nobody'} leads")


def _servers(seen: BoardObservation, values: Values) -> Finding:
    if seen.servers is None:
        return unknown("the board has no server")
    wanted = values["number"].lower()
    if wanted == "at most one":
        return told(seen.servers <= 1, f"{seen.servers} run")
    number = {"no": 0, "one": 1}.get(wanted)
    return told(seen.servers == (int(wanted) if number is None else number), f"{seen.servers} run")


def _alive(seen: BoardObservation, values: Values) -> Finding:
    holds = values["worker"] in seen.living
    return told(holds, f"{values['worker']} is {'alive' if holds else 'not alive'}")


def _of_board(
    form: str,
    spelling: str,
    test: Callable[[BoardObservation, Values], Finding],
    *,
    always: bool = False,
    rule: str | None = None,
) -> Sentence:
    def check(record: Record, values: Values) -> Finding:
        return test(record.seen, values)

    meaning = "At the moment of asking."
    return Sentence(form, check, meaning, always, rule, spelling, momentary=True)


def _of_tasks(
    form: str, spelling: str, test: Callable[[list[TaskView], Values], Finding], **more: Any
) -> Sentence:
    def check(seen: BoardObservation, values: Values) -> Finding:
        return _unseen(seen) if seen.tasks is None else test(list(seen.tasks.values()), values)

    return _of_board(form, spelling, check, **more)


_NAME = r"[A-Za-z0-9._-]+"
_STATUS_WORDS = rf"{_STATUSES}|settled|held"
MOMENTARY: tuple[Sentence, ...] = (
    _of_tasks(
        "No tasks stuck in {status:status} > {limit:duration}",
        rf"no tasks? (?:is |are )?(?:stuck )?(?:in )?(?P<status>{_STATUSES}|held)"
        rf" (?:> ?|(?:for )?(?:more than|longer than) )(?P<limit>{DURATION})",
        _stuck,
        always=True,
        rule="board.no_stuck_claim",
    ),
    _of_tasks(
        "All tasks are STATUS",
        rf"(?:all tasks are|every task is) (?P<status>{_STATUS_WORDS})",
        _all_are,
    ),
    _of_tasks("No task is STATUS", rf"no tasks? (?:is|are) (?P<status>{_STATUS_WORDS})", _none_is),
    _of_tasks(
        "NUMBER tasks are STATUS",
        rf"(?:(?P<bound>at least|at most|exactly) )?(?P<number>\d+) tasks? (?:is|are)"
        rf" (?P<status>{_STATUS_WORDS})",
        _count,
    ),
    _of_tasks(
        "There are NUMBER tasks",
        r"there (?:is|are) (?:(?P<bound>at least|at most|exactly) )?(?P<number>\d+) tasks?",
        _count,
    ),
    _of_tasks(
        "Task NAME is STATUS",
        rf"task (?P<task>{_NAME}) is (?P<not>not )?(?P<status>{_STATUSES})",
        _task_is,
    ),
    _of_tasks(
        "Task NAME belongs to WORKER",
        rf"task (?P<task>{_NAME}) (?:belongs to|is owned by) (?P<worker>{_NAME})",
        _owner_is,
    ),
    _of_tasks(
        "Worker NAME holds NUMBER tasks",
        rf"worker (?P<worker>{_NAME}) holds (?P<number>\d+|no|nothing)(?: tasks?)?",
        _worker_holds,
    ),
    _of_tasks("No task has two owners", r"no tasks? (?:has|have) two owners", _one_owner),
    _of_tasks(
        "No task is completed twice", r"no tasks? (?:is|are|was|were) completed twice", _once
    ),
    _of_tasks(
        "No task is tried more often than allowed",
        r"no tasks? (?:is|are) tried more often than allowed",
        _bounded,
    ),
    _of_tasks("Dependencies are respected", r"(?:all )?dependencies are respected", _ordered),
    _of_board("The board is readable", r"the (?:board|state) is readable", _readable),
    _of_board("NODE leads", rf"(?P<node>{_NAME}) leads", _leader),
    _of_board(
        "NUMBER servers run",
        r"(?P<number>no|one|\d+|at most one) servers? (?:runs?|is running|are running)",
        _servers,
    ),
    _of_board("Worker NAME is alive", rf"worker (?P<worker>{_NAME}) is alive", _alive),
)
"""All of them; `docs/board.md` lists them."""
