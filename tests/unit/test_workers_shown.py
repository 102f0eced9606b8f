"""What a target shows of workers is what it keeps of them and what was asked; nobody is accused wrongly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from builders import CONTRACT, agent, belief, model, picture, view
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.judge import WorkersJudge
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.observation import Observation, TaskView
from mutiny.contracts.workers.shown import kept_at
from mutiny.kit.faults import SilentClient
from mutiny.kit.operations import Parallel
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult

ROW: dict[str, Any] = {
    "name": "alpha",
    "status": "idle",
    "model": "haiku",
    "task_id": None,
    "worktree": "/w/alpha",
    "inbox": [],
    "inflight": {"stage": "typed"},
}
DOCUMENT: dict[str, Any] = {
    "last_reviewed": "alpha",
    "daemon": {"pid": 7, "start": 70},
    "daemon_running": True,
}
SHOWN = {
    "worktree_path": "worktree",
    "queued": "#inbox",
    "delivery": "inflight.stage",
}
PROMISED = replace(CONTRACT.profile, shows_kept="workers", shown_as=SHOWN)


def look(row: Mapping[str, Any] = ROW, status: str = "idle", **changes: Any) -> Observation:
    """A look at one worker, of whom this is kept."""
    known = {"kept": {"alpha": row}, "document": DOCUMENT, **changes}
    return replace(picture(view(status=status), agents=(agent(),)), **known)


def told(
    operation: Operation,
    said: Mapping[str, Any],
    before: Observation | None = None,
    after: Observation | None = None,
    believed: WorkersModel | None = None,
    *,
    promised: bool = True,
    **details: Any,
) -> str | None:
    """The rule that an answer breaks."""
    status = "idle" if before is None else before.status_of("alpha") or "idle"
    profile = PROMISED if promised else CONTRACT.profile
    known = replace(believed or model(belief("alpha", status)), profile=profile)
    looks = before or look(), after or before or look()
    result = OperationResult(0, json.dumps(said), details=details)
    judge = WorkersJudge(replace(CONTRACT, profile=profile), *looks, 2000.0)
    judged = judge.judge(known, operation, result)
    return judged.violation.rule.removeprefix("workers.") if judged.violation else None


def status(row: Mapping[str, Any] = {}, **changes: Any) -> dict[str, Any]:
    """What status shows."""
    worker: dict[str, Any] = {"name": "alpha", "status": "idle", "model": "haiku", "task_id": None}
    worker |= {"worktree_path": "/w/alpha", "queued": 0, "delivery": "typed", **row}
    known = {"last_reviewed": "alpha", "workers": [worker]}
    return {**known, **changes}


def test_status_shows_what_is_kept() -> None:
    assert told(op.Status(), status()) is None
    for name, lie in (("model", "opus"), ("task_id", "t9"), ("queued", 1), ("delivery", "sent")):
        assert told(op.Status(), status({name: lie})) == "status_is_honest", name
        assert told(op.Status(), status({name: lie}), promised=False) is None, name
    assert told(op.Status(), status({"worktree_path": "/w/b"})) == "status_is_honest"
    assert told(op.Status(), status(workers=[])) == "status_is_honest"
    assert told(op.Status(), status(last_reviewed="beta")) == "status_is_honest"


def test_a_worker_that_moves_may_be_shown_in_between() -> None:
    moved = look({**ROW, "inbox": [{}]})
    assert told(op.Status(), status({"queued": 7}), look(), moved) is None
    assert told(op.Status(), status(last_reviewed="beta"), look(), moved) == "status_is_honest"
    later = replace(moved, document={**DOCUMENT, "last_reviewed": "beta"})
    assert told(op.Status(), status(last_reviewed="beta"), look(), later) is None
    assert told(op.Status(), status(last_reviewed="gamma"), look(), later) == "status_is_honest"


def test_what_is_not_shown_or_not_kept_is_no_lie() -> None:
    assert told(op.Status(), status({"mood": "good"})) is None
    bare = [{"name": "alpha"}]
    assert told(op.Status(), status(workers=bare)) is None
    assert told(op.Status(), {"workers": bare}) is None


def test_the_daemon_that_is_told_of_is_the_one_that_is_kept() -> None:
    both: dict[str, Any] = {"daemon_running": True, "daemon": {"pid": 7, "start": 70}}
    wrong: dict[str, Any] = {"daemon_running": True, "daemon": {"pid": 7, "start": 71}}
    blank = replace(look(), daemons=None)  # which processes there are was not to be seen
    assert told(op.Status(), status(**both), blank) is None
    assert told(op.Status(), status(**wrong), blank) == "status_is_honest"
    assert told(op.Status(), status(**{**both, "daemon": None}), blank) == "status_is_honest"
    new = replace(blank, document={**DOCUMENT, "daemon": {"pid": 8, "start": 80}})
    assert told(op.Status(), status(**wrong), blank, new) is None, "another one has begun"
    dead: dict[str, Any] = {"daemon_running": False, "daemon": None}
    assert told(op.Status(), status(**dead), blank) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"state_error": "cut off"},
        {"state_as_left": True},
        {"document": None},
    ],
    ids=["unreadable", "as a fault left it", "of another shape"],
)
def test_a_damaged_state_tells_nothing(changes: dict[str, Any]) -> None:
    assert told(op.Status(), status({"model": "opus"}), look(**changes)) is None


def test_beside_others_and_under_a_lasting_fault_nothing_is_compared() -> None:
    hit = replace(model(belief()), lasting=(SilentClient(lasting=True),))
    assert told(op.Status(), status({"model": "opus"}), believed=hit) is None
    doubted = replace(model(belief()), doubted=True)
    assert told(op.Status(), status({"model": "opus"}), believed=doubted) is None
    known = replace(model(belief()), profile=PROMISED)
    answer = OperationResult(0, json.dumps(status({"model": "opus"})))
    both = Parallel((op.Status(), op.Status()))
    judge = WorkersJudge(replace(CONTRACT, profile=PROMISED), look(), look(), 2000.0)
    assert judge.judge(known, both, OperationResult(0, inner=(answer, answer))).violation is None


def test_a_review_shows_the_files_that_git_names() -> None:
    waits = look(status="needs_review")
    said: dict[str, Any] = {
        "worker": "alpha",
        "status": "needs_review",
        "changed_files": ["a", "b"],
    }
    alike = [["b", "a"], ["b", "a"]]
    assert told(op.Review("alpha"), said, waits, changed=alike) is None
    assert told(op.Review("alpha"), said, waits, changed=[["a"], ["a", "b"]]) is None, "renamed"
    less = {**said, "changed_files": ["a"]}
    assert told(op.Review("alpha"), less, waits, changed=alike) == "answers_truly"
    assert told(op.Review("alpha"), less, waits) is None, "git did not answer"
    assert told(op.Review("alpha"), less, waits, promised=False, changed=alike) is None


def test_a_command_tells_how_it_has_left_its_worker() -> None:
    waits = look(status="needs_review")
    said: dict[str, Any] = {"worker": "alpha", "status": "needs_review"}
    assert told(op.Review("alpha"), said, waits) is None
    assert told(op.Review("alpha"), {**said, "status": "working"}, waits) == "answers_truly"
    conflict: dict[str, Any] = {**said, "status": "rebasing"}
    assert told(op.Review("alpha"), conflict, waits) == "answers_truly", "and says no conflict"
    conflict["needs_conflict_resolution"] = True
    assert told(op.Review("alpha"), conflict, waits) is None
    late = {"worker": "alpha", "status": "working", "deferred": True}
    works = look(status="working")
    assert told(op.Rebase("alpha"), late, works) is None
    assert told(op.Rebase("alpha"), {**late, "deferred": False}, works) == "answers_truly"


def test_a_task_that_is_named_is_the_one_that_was_begun_or_waited() -> None:
    before = look(tasks=(TaskView("t1", "merged"),))
    after = look(status="working", tasks=(TaskView("t1", "merged"), TaskView("t2", "open")))
    said: dict[str, Any] = {"worker": "alpha", "status": "working", "task_id": "t2"}
    start = op.Start("alpha", "Create a.txt")
    assert told(start, said, before, after) is None
    assert told(start, {**said, "task_id": "t1"}, before, after) == "answers_truly"
    assert told(start, {**said, "task_id": "t1"}, look(), look(status="working")) is None
    row = {**ROW, "status": "needs_review", "task_id": "t2"}
    waits = look(row, "needs_review", tasks=(TaskView("t2", "open"),))
    done = look(tasks=(TaskView("t2", "merged"),))
    accepted = {"worker": "alpha", "status": "idle", "task_id": "t2"}
    assert told(op.Accept("alpha"), accepted, waits, done) is None
    assert told(op.Accept("alpha"), {**accepted, "task_id": "t1"}, waits, done) == "answers_truly"


def test_whoever_was_at_rest_is_named_as_stopped() -> None:
    after = look(status="offline")
    assert told(op.Down(), {"stopped": ["alpha"]}, look(), after) is None
    assert told(op.Down(), {"stopped": ["alpha", "zeta"]}, look(), after) == "answers_truly"
    assert told(op.Down(), {"stopped": []}, look(), after) == "answers_truly"
    dies = model(replace(belief(), behaviours=("crash",)))
    assert told(op.Down(), {"stopped": []}, look(), after, dies) is None
    struck = replace(model(belief()), faults=("KillAgent",))
    assert told(op.Down(), {"stopped": []}, look(), after, struck) is None
    gone = replace(look(), agents=(agent(alive=False),))
    assert told(op.Down(), {"stopped": []}, gone, after) is None


def test_a_part_of_what_is_kept() -> None:
    assert [kept_at(ROW, at) for at in ("worktree", "#inbox", "inflight.stage", "none.such")] == [
        "/w/alpha",
        0,
        "typed",
        None,
    ]
