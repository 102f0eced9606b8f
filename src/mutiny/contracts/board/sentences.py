"""What one look at a board tells: the sentences that `Verify` and experiments can say.

A sentence that is not so now may become so: it is pending. What could not be looked at is unknown, neither
true nor false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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

Test = Callable[[BoardObservation, Mapping[str, Value]], Finding]


def understand(text: str) -> Spoken:
    """The sentence that a text says; ValueError with the nearest one when there is none."""
    return Vocabulary(MOMENTARY).read(text)


def _tasks(seen: BoardObservation) -> list[TaskView] | None:
    return None if seen.tasks is None else list(seen.tasks.values())


def _unseen(seen: BoardObservation) -> Finding:
    if seen.absent:
        return unknown("there is no board")
    return unknown(seen.state_error or "the board could not be looked at")


def _names(views: list[TaskView]) -> str:
    shown = ", ".join(view.id for view in views[:5])
    return f"{shown}, ... ({len(views)})" if len(views) > 5 else shown


def _none_of(bad: list[TaskView], what: str) -> Finding:
    return told(not bad, f"{what}: {_names(bad)}" if bad else f"none is {what}")


def _stuck(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unseen(seen)
    statuses = _GROUPS.get(values["status"], (values["status"],))
    held = [one for one in tasks if one.status in statuses]
    if not held:
        return told(True, f"none is {values['status']}")
    longest = max(held, key=lambda one: one.unchanged_s)
    text = f"{longest.id} is {longest.status} for {longest.unchanged_s:.1f} s"
    if longest.unchanged_s > values["limit"]:
        return broken(text, longest.id)
    return told(True, text)


def _all_are(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unseen(seen)
    if not tasks:  # then it is true of anything, and nothing is said
        return unknown("there is no task on the board")
    wanted = values["status"].lower()
    statuses = _GROUPS.get(wanted, (wanted,))
    return _none_of([one for one in tasks if one.status not in statuses], f"not {wanted}")


def _none_is(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unseen(seen)
    wanted = values["status"].lower()
    statuses = _GROUPS.get(wanted, (wanted,))
    return _none_of([one for one in tasks if one.status in statuses], wanted)


def _count(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unseen(seen)
    wanted = values.get("status", "").lower()
    statuses = _GROUPS.get(wanted, (wanted,))
    found = len([one for one in tasks if not wanted or one.status in statuses])
    bound = values.get("bound", "").lower()
    number = int(values["number"])
    holds = {"at least": found >= number, "at most": found <= number}.get(bound, found == number)
    return told(holds, f"{found} {wanted or 'there'}")


def _task_is(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    if seen.tasks is None:
        return _unseen(seen)
    view = seen.tasks.get(values["task"])
    if view is None:
        return told(False, f"task {values['task']} is not there")
    negated = "not" in values
    holds = (view.status == values["status"].lower()) != negated
    return told(holds, f"task {view.id} is {view.status}")


def _owner_is(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    if seen.tasks is None:
        return _unseen(seen)
    view = seen.tasks.get(values["task"])
    if view is None:
        return told(False, f"task {values['task']} is not there")
    holds = view.status in HELD and view.owner == values["worker"]
    return told(holds, f"task {view.id} is {view.status}, owner {view.owner or 'nobody'}")


def _worker_holds(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unseen(seen)
    held = [one for one in tasks if one.status in HELD and one.owner == values["worker"]]
    number = 0 if values["number"].lower() in ("no", "nothing") else int(values["number"])
    return told(len(held) == number, f"{values['worker']} holds {len(held)}")


def _one_owner(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unseen(seen)
    bad = [one for one in tasks if one.status in HELD and not one.owner]
    return _none_of(bad, "held by nobody in particular")


def _once(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unseen(seen)
    if tasks and all(one.completions is None for one in tasks):
        return unknown("the board does not count completions")
    return _none_of([one for one in tasks if (one.completions or 0) > 1], "completed twice")


def _bounded(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unseen(seen)
    if tasks and all(one.attempts is None for one in tasks):
        return unknown("the board does not count attempts")
    bad = [one for one in tasks if one.max_attempts and (one.attempts or 0) > one.max_attempts]
    return _none_of(bad, "tried more often than allowed")


def _ordered(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    if seen.tasks is None:
        return _unseen(seen)
    bad = [
        one
        for one in seen.tasks.values()
        if one.status in (*HELD, "done")
        and any(seen.status_of(other) not in ("done", None) for other in one.depends)
    ]
    return _none_of(bad, "begun before its dependencies were done")


def _readable(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    if seen.state_error is not None:
        return told(False, seen.state_error)
    return _unseen(seen) if seen.tasks is None else told(True, "it was read")


def _leader(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    if seen.tasks is None and seen.token is None:
        return _unseen(seen)
    if seen.leader is None and seen.token is None:
        return unknown("the board does not show who leads")
    wanted = values["node"].lower()
    if wanted == "nobody":
        return told(seen.leader is None, f"{seen.leader or 'nobody'} leads")
    return told(seen.leader == values["node"], f"{seen.leader or 'nobody'} leads")


def _servers(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    if seen.servers is None:
        return unknown("the board has no server")
    wanted = values["number"].lower()
    if wanted == "at most one":
        return told(seen.servers <= 1, f"{seen.servers} run")
    number = {"no": 0, "one": 1}.get(wanted)
    return told(seen.servers == (int(wanted) if number is None else number), f"{seen.servers} run")


def _alive(seen: BoardObservation, values: Mapping[str, Value]) -> Finding:
    holds = values["worker"] in seen.living
    return told(holds, f"{values['worker']} is {'alive' if holds else 'not alive'}")


def _sentence(
    form: str, spelling: str, test: Test, *, always: bool = False, rule: str | None = None
) -> Sentence:
    def check(record: Record, values: Mapping[str, Value]) -> Finding:
        return test(record.seen, values)

    meaning = "At the moment of asking."
    return Sentence(form, check, meaning, always, rule, spelling, momentary=True)


_NAME = r"[A-Za-z0-9._-]+"
_STATUS_WORDS = rf"{_STATUSES}|settled|held"
MOMENTARY: tuple[Sentence, ...] = (
    _sentence(
        "No tasks stuck in {status:status} > {limit:duration}",
        rf"no tasks? (?:is |are )?(?:stuck )?(?:in )?(?P<status>{_STATUSES}|held)"
        rf" (?:> ?|(?:for )?(?:more than|longer than) )(?P<limit>{DURATION})",
        _stuck,
        always=True,
        rule="board.no_stuck_claim",
    ),
    _sentence(
        "All tasks are STATUS",
        rf"(?:all tasks are|every task is) (?P<status>{_STATUS_WORDS})",
        _all_are,
    ),
    _sentence("No task is STATUS", rf"no tasks? (?:is|are) (?P<status>{_STATUS_WORDS})", _none_is),
    _sentence(
        "NUMBER tasks are STATUS",
        rf"(?:(?P<bound>at least|at most|exactly) )?(?P<number>\d+) tasks? (?:is|are)"
        rf" (?P<status>{_STATUS_WORDS})",
        _count,
    ),
    _sentence(
        "There are NUMBER tasks",
        r"there (?:is|are) (?:(?P<bound>at least|at most|exactly) )?(?P<number>\d+) tasks?",
        _count,
    ),
    _sentence(
        "Task NAME is STATUS",
        rf"task (?P<task>{_NAME}) is (?P<not>not )?(?P<status>{_STATUSES})",
        _task_is,
    ),
    _sentence(
        "Task NAME belongs to WORKER",
        rf"task (?P<task>{_NAME}) (?:belongs to|is owned by) (?P<worker>{_NAME})",
        _owner_is,
    ),
    _sentence(
        "Worker NAME holds NUMBER tasks",
        rf"worker (?P<worker>{_NAME}) holds (?P<number>\d+|no|nothing)(?: tasks?)?",
        _worker_holds,
    ),
    _sentence("No task has two owners", r"no tasks? (?:has|have) two owners", _one_owner),
    _sentence(
        "No task is completed twice", r"no tasks? (?:is|are|was|were) completed twice", _once
    ),
    _sentence(
        "No task is tried more often than allowed",
        r"no tasks? (?:is|are) tried more often than allowed",
        _bounded,
    ),
    _sentence("Dependencies are respected", r"(?:all )?dependencies are respected", _ordered),
    _sentence("The board is readable", r"the (?:board|state) is readable", _readable),
    _sentence("NODE leads", rf"(?P<node>{_NAME}) leads", _leader),
    _sentence(
        "NUMBER servers run",
        r"(?P<number>no|one|\d+|at most one) servers? (?:runs?|is running|are running)",
        _servers,
    ),
    _sentence("Worker NAME is alive", rf"worker (?P<worker>{_NAME}) is alive", _alive),
)
"""All of them; `docs/board.md` lists them."""
