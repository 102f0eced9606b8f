"""The batch contract without a target: tasks, knobs, forecasts, outcomes, and every rule with its case."""

from __future__ import annotations

import json
import os
import random
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mutiny.contracts.batch import container_rules, fixtures, generate, invariants
from mutiny.contracts.batch import operations as op
from mutiny.contracts.batch.about import ABOUT
from mutiny.contracts.batch.contract import BatchContract
from mutiny.contracts.batch.forecast import forecast
from mutiny.contracts.batch.invariants import within_budget
from mutiny.contracts.batch.model import BatchModel
from mutiny.contracts.batch.observation import (
    Asked,
    Attempt,
    BatchSeen,
    ContainerSeen,
    GitSeen,
    Head,
    RunSeen,
    TaskSeen,
)
from mutiny.contracts.batch.profile import BatchProfile
from mutiny.contracts.batch.rules import RULES
from mutiny.contracts.batch.scenarios import SCENARIOS, scenarios_of
from mutiny.contracts.batch.supported import supported
from mutiny.contracts.batch.tasks import in_circle, read_task, read_tasks
from mutiny.doubles.tasks import agent, records
from mutiny.doubles.tasks.records import Desk
from mutiny.kit.answer import Words
from mutiny.kit.beliefs import Beliefs
from mutiny.kit.checking import Check
from mutiny.kit.exploring import Scene
from mutiny.kit.judging import Moment
from mutiny.kit.moments import At, InterruptOrchestrator, KillOrchestrator
from mutiny.kit.operations import Parallel, Reset
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation

CONTRACT = BatchContract()
STATE_RULES = (*container_rules.RULES, *invariants.RULES)


def begun(*tasks: str, knobs: Mapping[str, str] = {}, gates: Mapping[str, str] = {}) -> BatchModel:
    model = BatchModel(home=True, plan=op.Plan(tasks).parsed(), gates=dict(gates))
    for name, value in knobs.items():
        model = replace(model, knobs=model.knobs.set(name, value))
    return model.begun("", None)


# --- tasks and knobs ---------------------------------------------------------------------------------


def test_a_task_in_one_line() -> None:
    task = read_task("b needs=a,c writes=core does=fails,works tokens=500")
    assert (task.id, task.needs, task.writes, task.tokens) == ("b", ("a", "c"), ("core",), 500)
    assert [task.behaviour(number) for number in (1, 2, 3)] == ["fails", "works", "works"]


@pytest.mark.parametrize("line", ["a does=dances", "a needs", "a tokens=many", "a wants=b"])
def test_a_wrong_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is none of"):
        op.Plan((line,))


@pytest.mark.parametrize(
    ("name", "value"), [("budget", "maybe"), ("bugdet", "block"), ("max_retries", "few")]
)
def test_a_wrong_knob_is_refused(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=name):
        op.Configure(name, value)


def test_circles() -> None:
    assert in_circle([read_task("a needs=b"), read_task("b needs=a"), read_task("c")])
    assert not in_circle([read_task("a"), read_task("b needs=a")])


# --- forecasts ---------------------------------------------------------------------------------------

FORECASTS = [
    (("a", "b needs=a"), {}, {}, {"a": "complete", "b": "complete"}, "complete"),
    (("a does=fails", "b needs=a"), {}, {}, {"a": "failed", "b": "pending"}, "failed"),
    (("a does=fails,works",), {}, {}, {"a": "complete"}, "complete"),
    (("a does=fails,works",), {"max_retries": "0"}, {}, {"a": "failed"}, "failed"),
    (("a",), {"test": "block"}, {"test": "crash"}, {"a": "review"}, "paused"),
    (("a",), {"test": "warn"}, {"test": "fail"}, {"a": "complete"}, "complete"),
    (("a does=strays",), {"manifest": "block", "rescope": "off"}, {}, {"a": "review"}, "paused"),
    (("a does=strays",), {"manifest": "block"}, {}, {"a": "complete"}, "complete"),
    (("a",), {}, {"lint": "fail"}, {"a": "failed"}, "failed"),
    (("a",), {}, {"doctor": "hang"}, {"a": "failed"}, "failed"),
]


@pytest.mark.parametrize(("tasks", "knobs", "gates", "ends", "run"), FORECASTS)
def test_forecasts(
    tasks: tuple[str, ...],
    knobs: dict[str, str],
    gates: dict[str, str],
    ends: dict[str, str],
    run: str,
) -> None:
    found = forecast(begun(*tasks, knobs=knobs, gates=gates), None)
    assert found.tasks == {name: frozenset({word}) for name, word in ends.items()}
    assert found.run == {run}


def test_where_a_failure_stops_the_run_others_that_would_fail_may_not_begin() -> None:
    knobs = {"failure_policy": "stop"}
    found = forecast(begun("a", "b", knobs=knobs, gates={"doctor": "missing"}), None)
    assert {name: "pending" in one for name, one in found.tasks.items()} == {"a": True, "b": True}
    assert "complete" not in found.tasks["a"] | found.tasks["b"]
    alone = forecast(begun("a", knobs=knobs, gates={"doctor": "missing"}), None)
    assert alone.tasks == {"a": frozenset({"failed"})}


def test_over_a_budget_the_run_fails_and_the_task_is_not_merged() -> None:
    model = begun("a tokens=500", "b", knobs={"budget": "block", "task_tokens": "100"})
    found = forecast(model, None)
    assert found.run == {"failed"}
    assert "complete" not in found.tasks["a"]
    assert "complete" in found.tasks["b"]  # it may have landed before


def test_a_budget_that_warns_stops_nothing() -> None:
    model = begun("a tokens=500", knobs={"budget": "warn", "task_tokens": "100"})
    assert forecast(model, None).run == {"complete"}


def test_what_an_older_run_used_does_not_count() -> None:
    knobs = {"budget": "block", "task_tokens": "100", "run_tokens": "100"}
    planned = begun("a tokens=80", knobs=knobs)
    older = BatchSeen(attempts=(Attempt("a", 1, frozenset(), True, 0, 80),))
    run = planned.begun("", older)
    assert forecast(run, older).run == {"complete"}
    assert forecast(planned, older).run == {"failed"}
    again = seen(attempts=(*older.attempts, Attempt("a", 2, frozenset(), True, 0, 80)))
    for model, found in ((run, set()), (planned, {"batch.within_budget"})):
        check = Check(model, again, BEFORE, op.Run())
        assert {one.rule for one in within_budget(check)} == found


def test_what_nobody_heard_of_counts_or_does_not() -> None:
    """The run died between an agent's last word and whoever waited for it."""
    model = begun("a tokens=80", knobs={"budget": "block", "task_tokens": "100"})
    first = Attempt("a", 1, frozenset(), True, 0, 80)
    before = BatchSeen(attempts=(first,))
    assert before.unheard(0) == {0}
    assert BatchSeen(attempts=(replace(first, gated=True),)).unheard(0) == frozenset()
    assert forecast(model, before).run == {"failed"}
    unheard = replace(model, unheard=before.unheard(0))
    assert forecast(unheard, before).run == {"failed", "complete"}
    after = seen(attempts=(first, Attempt("a", 2, frozenset(), True, 0, 80)))
    for one, found in ((model, {"batch.within_budget"}), (unheard, set())):
        check = Check(one, after, BEFORE, op.Resume())
        assert {each.rule for each in within_budget(check)} == found


def test_clean_beside_a_run_is_given_the_run_that_was_there() -> None:
    older = begun("a")
    assert older.run is not None
    known = replace(older, run=replace(older.run, name="r1", status=frozenset({"complete"})))
    both = replace(known.begun("r2", None), newest="r1")
    (outcome,) = CONTRACT.outcomes(both, op.Clean(), Moment())
    assert outcome.success
    assert outcome.after.run is both.run
    assert outcome.after.older == ()
    nothing_yet = replace(begun("a"), newest="", run=replace(older.run, name="r1"))
    assert not served(nothing_yet, op.Clean())


# --- outcomes ----------------------------------------------------------------------------------------


def served(model: BatchModel, operation: Operation) -> bool:
    return any(one.success for one in CONTRACT.outcomes(model, operation, Moment()))


def test_what_is_refused() -> None:
    empty, home = BatchModel(), BatchModel(home=True)
    assert not served(empty, op.Plan(("a",)))
    assert not served(home, op.Init())
    assert not served(home, op.Run())
    assert not served(home, op.Resume())
    assert not served(home, op.Plan(("../up",)))
    assert not served(home, op.Plan(("a needs=b", "b needs=a")))
    running = begun("a")
    assert not served(running, op.Run())
    assert not served(running, op.Clean(force=False))
    assert not served(running, op.SetTaskStatus("nobody"))
    assert served(running, op.SetTaskStatus("a"))
    assert served(running, op.Resume())
    assert not served(replace(running, doubted=True), op.Resume())


def test_a_plan_that_is_merged_already_may_be_called_none() -> None:
    planned = BatchModel(home=True, plan=read_tasks("a"))

    def refusals(model: BatchModel, before: BatchSeen) -> set[str]:
        right = CONTRACT.outcomes(model, op.Run(), Moment(before=before))
        assert any(one.success for one in right)
        return {name for one in right for name in one.refusals}

    assert "no_plan" in refusals(planned, seen())
    assert "no_plan" not in refusals(planned, BEFORE)
    more = replace(planned, plan=op.Plan(("a", "b")).parsed())
    assert "no_plan" not in refusals(more, seen())


def test_what_landed_before_a_clean_is_not_forgotten_by_a_run_beside_another_command() -> None:
    cleaned = BatchModel(home=True, plan=read_tasks("a")).see(seen(runs={}))
    begun = cleaned.begun("", None)  # nobody looked between the two commands
    assert begun.run is not None
    assert begun.run.before == {"a": 1}


def test_what_agents_used_before_a_run_beside_another_command_is_not_its_own() -> None:
    looked = begun("a").ended({"a": frozenset({"complete"})}, frozenset({"complete"})).see(seen())
    beside = looked.begun("", None).run
    assert beside is not None
    assert beside.began == len(seen().attempts)
    told = seen(
        runs=run_with("complete", TaskSeen("complete", 0, "", 0)),
        attempts=(*ONE, Attempt("a", 2, frozenset(), True, 0, 0)),
    )
    two = Parallel((op.Run(), op.SetTaskStatus("nobody")))
    assert "tokens_true" not in broken(told, two, seen(runs={}), run=beside)
    assert "tokens_true" in broken(told, two, seen(runs={}))
    assert "tokens_true" not in broken(told, Parallel((op.Run(), op.Resume())), seen(runs={}))


def test_after_a_command_that_never_ended_beside_another_nothing_is_believed() -> None:
    judge = CONTRACT.judge_class(CONTRACT, seen(), seen(), 0.0)
    late = Violation("batch.answers_in_time", "Run() did not end.")
    assert judge.beliefs_hold(op.Run(), late)
    assert judge.beliefs_hold(At("worker", op.Run(), op.KillWorker("a")), late)
    assert not judge.beliefs_hold(At("worker", op.Run(), op.Resume()), late)


# --- rules -------------------------------------------------------------------------------------------

LANDED = Head("c1", "t1")


def seen(**changes: object) -> BatchSeen:
    """After a run of one task that went well."""
    git = GitSeen(
        head="c1",
        commits=frozenset({"c0", "c1"}),
        heads=(LANDED, Head("c0", "t0", True)),
        landed={"a": 1},
        files=frozenset({"work/a.txt", "README.md"}),
    )
    whole = BatchSeen(
        home=True,
        plan="p",
        runs={"r1": RunSeen("r1", "complete", "", {"a": TaskSeen("complete", 0)})},
        git=git,
        attempts=(Attempt("a", 1, frozenset(), True, 0, 50),),
        asked=(Asked("doctor", "", "t1", True),),
        digest="d",
    )
    of_git = {key: value for key, value in changes.items() if key in vars(git)}
    others = {key: value for key, value in changes.items() if key not in of_git}
    return replace(whole, git=replace(git, **of_git), **others)  # type: ignore[arg-type]


BEFORE = BatchSeen(
    home=True,
    plan="p",
    git=GitSeen(head="c0", commits=frozenset({"c0"}), heads=(Head("c0", "t0", True),)),
    digest="d",
)


def broken(
    after: BatchSeen,
    operation: Operation = op.Run(),  # noqa: B008  a value
    before: BatchSeen = BEFORE,
    **changes: Any,
) -> set[str]:
    model = begun("a")
    ended = model.ended({"a": frozenset({"complete"})}, frozenset({"complete"}))
    knobs = changes.pop("knobs", {})
    for name, value in knobs.items():
        ended = replace(ended, knobs=ended.knobs.set(name, value))
    check = Check(replace(ended, **changes), after, before, operation)
    return {found.rule.removeprefix("batch.") for rule in STATE_RULES for found in rule(check)}


def test_a_good_run_breaks_nothing() -> None:
    assert broken(seen()) == set()


def run_with(status: str, task: TaskSeen, reason: str = "why") -> dict[str, RunSeen]:
    return {"r1": RunSeen("r1", status, reason, {"a": task})}


ONE = (Attempt("a", 1, frozenset(), True, 0, 50),)
BOX = ContainerSeen("c", "r1", "a", True, "none")
CASES = [
    ("within_budget", seen(), {"knobs": {"budget": "block", "task_tokens": "49"}}),
    ("within_budget", seen(), {"knobs": {"budget": "block", "run_tokens": "49"}}),
    ("within_budget", seen(), {"knobs": {"budget": "block", "run_cost": "0.00001"}}),
    ("validated", seen(), {"knobs": {"test": "block"}}),
    (
        "declared",
        seen(files=frozenset({"work/a.txt", "extra/a.txt"})),
        {"knobs": {"manifest": "block", "rescope": "off"}},
    ),
    ("no_text_lost", seen(shared=("<<<<<<< ours",)), {}),
    ("main_is_tested", seen(asked=()), {}),
    ("main_is_tested", seen(asked=(Asked("doctor", "", "t1", True, canary=True),)), {}),
    ("state_whole", seen(error="cut off"), {}),
    ("only_forward", seen(commits=frozenset({"c1"})), {}),
    ("complete_is_merged", seen(landed={}), {}),
    ("merged_once", seen(landed={"a": 2}), {}),
    ("merged_is_complete", seen(runs=run_with("paused", TaskSeen("pending"))), {}),
    ("as_due", seen(runs=run_with("failed", TaskSeen("failed", 1, "x"))), {}),
    ("attempts_bounded", seen(attempts=tuple(Attempt("a", n, frozenset()) for n in range(9))), {}),
    (
        "parallel_bounded",
        seen(attempts=(*ONE, Attempt("b", 1, frozenset(), True, beside=frozenset({0})))),
        {"knobs": {"max_parallel": "1"}},
    ),
    ("tokens_true", seen(runs=run_with("complete", TaskSeen("complete", 0, "", 49))), {}),
    ("nothing_left", seen(left=("the remote x",)), {}),
    ("nothing_left", seen(workspaces=("runs/r1/workspaces/a-1",)), {}),
    ("processes_end", seen(processes=("sleep 3600",)), {}),
    ("failure_has_text", seen(runs=run_with("failed", TaskSeen("failed"), "")), {}),
    ("events_whole", seen(bad_events=("it is no JSON",)), {}),
    ("no_secret", seen(told=("a.log",)), {}),
    ("own_files_out", seen(files=frozenset({".agent/state.json"})), {}),
    ("stays_inside", seen(outside=("{home}/up",)), {}),
    ("checkout_follows", seen(dirty=("work/a.txt",)), {}),
    ("edit_kept", seen(edit_kept=False), {"edited": True}),
    ("ended_work_only", seen(attempts=(Attempt("a", 1, frozenset()),)), {}),
    ("containers_end", seen(containers=(BOX,)), {"knobs": {"workers": "container"}}),
    ("others_containers_stay", seen(neighbour=False), {}),
    ("container_labelled", seen(contained={"c": replace(BOX, task="")}), {}),
    ("container_labelled", seen(contained={"c": replace(BOX, run="r7")}), {}),
    ("container_walled", seen(contained={"c": replace(BOX, network="host")}), {}),
    ("container_walled", seen(contained={"c": BOX}), {"knobs": {"memory_mb": "64"}}),
    ("container_walled", seen(contained={"c": BOX}), {"knobs": {"pids": "50"}}),
    ("container_mounts", seen(contained={"c": replace(BOX, writes=("source",))}), {}),
    ("container_mounts", seen(contained={"c": replace(BOX, stranger="0:0")}), {}),
]


@pytest.mark.parametrize(("rule", "after", "changes"), CASES)
def test_each_rule_finds_its_case(rule: str, after: BatchSeen, changes: dict[str, Any]) -> None:
    assert rule in broken(after, **changes)


def test_who_was_left_over_is_not_counted_and_what_nobody_heard_may_be() -> None:
    beside = Attempt("b", 1, frozenset(), True, beside=frozenset({0}))
    after = seen(attempts=(*ONE, beside))
    alone = {"max_parallel": "1"}
    assert "parallel_bounded" not in broken(after, before=seen(), knobs=alone)
    assert "parallel_bounded" not in broken(after, knobs={"max_parallel": "2"})
    told = seen(runs=run_with("complete", TaskSeen("complete", 0, "", 0)))
    assert "tokens_true" not in broken(told, unheard=frozenset({0}))


@pytest.mark.parametrize(("lines", "right"), [(2, True), (3, False), (0, False)])
def test_the_log_of_a_task_is_its_own(lines: int, right: bool) -> None:
    look = seen(logged={("r1", ""): 5, ("r1", "a"): 2})
    profile = BatchProfile(answers={"LogsQuery": ("events",)})
    said = json.dumps({"events": [{}] * lines})
    result = OperationResult(exit_code=0, stdout=said)
    judged = BatchContract(profile).judge(
        Beliefs((begun("a"),)), op.LogsQuery("a"), result, look, look, 0.0
    )
    assert (judged.verdict is Verdict.SUCCESS) is right


def test_looking_changes_nothing() -> None:
    assert broken(seen(digest="other"), op.Status(), seen()) == {"looks_only"}
    assert broken(seen(digest="other"), op.Resume(), seen()) == set()


def test_to_resume_a_complete_run_changes_nothing() -> None:
    again = (*seen().attempts, Attempt("a", 2, frozenset({"a"})))
    assert broken(seen(attempts=again), op.Resume(), seen()) == {"not_run_again"}
    assert "resume_repeats" in broken(
        seen(head="c2", commits=frozenset({"c0", "c1", "c2"})), op.Resume(), seen()
    )


def test_a_refused_run_is_not_held_to_what_one_before_it_left() -> None:
    """The disk was full when it was to be written down; whoever resumes it finishes it."""
    left = seen(runs=run_with("paused", TaskSeen("validated", 0)))
    assert "merged_is_complete" in broken(left, op.Run())
    may = {"a": frozenset({"validated"})}
    paused = begun("a").ended(may, frozenset({"paused"})).run
    assert broken(left, op.Run(), left, run=paused) == set()


def test_clean_deletes_what_it_names() -> None:
    gone = seen(runs={}, plan=None)
    assert "clean_as_named" in broken(gone, op.Clean(), seen(), run=None)
    assert "clean_as_named" in broken(seen(runs={}), op.Clean(force=False), seen(), run=None)
    assert broken(seen(runs={}), op.Clean(), seen(), run=None) == set()


def test_what_is_merged_or_cleaned_leaves_nothing_where_that_is_promised() -> None:
    tasks = {"a": TaskSeen("complete", 0), "b": TaskSeen("failed", 1, "why")}
    attempts = (*ONE, Attempt("b", 1, frozenset(), True, 1))
    mine, others = "runs/r1/workspaces/a-1", "runs/r1/workspaces/b-1"

    def left(*places: str, **changes: Any) -> bool:
        runs = {"r1": RunSeen("r1", "failed", "why", tasks)}
        after = seen(runs=runs, attempts=attempts, workspaces=places)
        model = begun("a", "b")
        ended = model.ended({"a": frozenset({"complete"}), "b": frozenset({"failed"})}, frozenset())
        return "nothing_left" in broken(after, run=ended.run, **{"tidy": True, **changes})

    assert left(mine, others)
    assert not left(others)
    assert not left(mine, others, tidy=False)
    assert not left(mine, others, knobs={"cleanup": "never"})
    reference = seen(runs={}, left=("the reference refs/x/r1/a",))
    assert "nothing_left" in broken(reference, op.Clean(), seen(), run=None, tidy=True)
    assert "nothing_left" not in broken(reference, op.Clean(), seen(), run=None)
    assert "nothing_left" not in broken(reference, op.Status(), seen(), run=None, tidy=True)


def test_what_lies_beside_a_declared_folder_is_not_declared() -> None:
    task = read_task("a does=nears")
    assert task.declared == ("work/a.txt", "extra/a/**")
    assert task.stray == "extra/a-old/part.txt"
    strict = {"manifest": "block", "rescope": "off"}
    assert forecast(begun("a does=nears", knobs=strict), None).tasks == {"a": frozenset({"review"})}


@pytest.mark.parametrize(
    ("word", "promise"),
    [
        ("nears", "folders"),
        ("counts", "adds_up"),
        ("pushes", "walled"),
        ("removes", "deletions"),
        ("renames", "renames"),
    ],
)
def test_an_agent_does_only_what_a_target_has_promised_to_bear(word: str, promise: str) -> None:
    plan = op.Plan((f"a does={word}",))
    assert not supported(BatchProfile(), plan)
    more: dict[str, Any] = {promise: True}
    assert supported(BatchProfile(**more), plan)


def test_an_agent_that_counts_tells_all_that_it_has_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert agent.main(Desk(str(tmp_path)), ["Do task a. [does=counts tokens=90]"]) == 0
    lines = [json.loads(line)["usage"] for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 2
    assert sum(sum(one.values()) for one in lines) == 90


def test_agents_that_meet_end_together_and_wait_for_nobody_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prompt = "Do task {} now. [does=meets tokens=3 with=2]"
    first = threading.Thread(target=agent.attempt, args=(Desk(str(tmp_path)), prompt.format("a")))
    first.start()
    assert agent.attempt(Desk(str(tmp_path)), prompt.format("b")) == (0, 3)
    first.join(5.0)
    whats = [json.loads(line)["what"] for line in (tmp_path / "record.jsonl").open()]
    assert whats.index("agent_end") > max(n for n, one in enumerate(whats) if one == "meets")
    assert whats.count("agent_end") == 2
    monkeypatch.setattr(records, "LONGEST_MEETING_S", 0.05)
    lonely = "Do task c now. [does=meets tokens=3 with=9]"
    assert agent.attempt(Desk(str(tmp_path)), lonely) == (0, 3)


def test_an_agent_that_pushes_reaches_whatever_its_workspace_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, place = tmp_path / "source", tmp_path / "place"
    make = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(source)]
    subprocess.run(["git", "init", "-q", str(source)], check=True)
    subprocess.run([*make, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run(["git", "clone", "-q", str(source), str(place)], check=True)
    monkeypatch.chdir(place)
    assert agent.act("a", 1, "pushes", "") == 0
    listed = subprocess.run([*make, "branch", "--list", "agent-a"], capture_output=True, check=True)
    assert b"agent-a" in listed.stdout
    subprocess.run(["git", "remote", "remove", "origin"], check=True)
    assert agent.act("b", 1, "pushes", "") == 0


# --- containers ----------------------------------------------------------------------------------------

IN_CONTAINERS = {"workers": "container"}
AT_WORK = Attempt("a", 1, frozenset())
DONE_IN_IT = replace(AT_WORK, ended=True, code=0)


def resumed(
    first: Attempt, *more: Attempt, was: BatchSeen | None = None, **changes: Any
) -> set[str]:
    """What is broken when a run with a container was resumed, and these attempts are known then."""
    before = was or replace(BEFORE, attempts=(AT_WORK,), containers=(BOX,), contained={"c": BOX})
    after = seen(attempts=(first, *more), containers=(), contained={"c": BOX})
    return broken(after, op.Resume(), before, **{"knobs": IN_CONTAINERS, **changes})


def test_resume_waits_for_the_container_that_is_there() -> None:
    again = Attempt("a", 2, frozenset(), True, 0)
    assert resumed(DONE_IN_IT) == set()
    assert resumed(AT_WORK, again) == {"reattached"}
    assert resumed(DONE_IN_IT, again) == {"reattached"}


def test_who_tries_again_for_a_reason_is_not_accused() -> None:
    again = Attempt("a", 2, frozenset(), True, 0)
    assert resumed(replace(AT_WORK, ended=True, code=1), again) == set()
    assert resumed(replace(DONE_IN_IT, gated=True), again) == set()
    nobody = replace(BEFORE, attempts=(AT_WORK,), containers=())
    assert resumed(AT_WORK, again, was=nobody) == set()
    silent = replace(nobody, containers=None)
    assert resumed(AT_WORK, again, was=silent) == set()
    assert resumed(AT_WORK, again, set_anew=frozenset({"a"})) == set()
    assert resumed(AT_WORK, again, knobs={"workers": "local"}) == set()


def test_who_sets_a_task_back_does_not_wait_for_its_container() -> None:
    model = begun("a").broken_off({"a": frozenset({"complete"})}, frozenset({"complete"}))
    command = op.SetTaskStatus("a", "pending")
    (done, *_) = CONTRACT.outcomes(model, command, Moment(before=BEFORE))
    assert done.after.set_anew == {"a"}
    assert done.after.begun("", None).set_anew == set()


def test_a_container_may_outlive_who_was_killed_and_who_lost_the_engine() -> None:
    left = seen(containers=(BOX,), contained={"c": BOX}, runs=run_with("paused", TaskSeen("x")))
    for then in (KillOrchestrator(), op.EngineOutage()):
        at = At("worker", op.Run(), then)
        assert "containers_end" not in broken(left, at, knobs=IN_CONTAINERS)
    stopped = At("worker", op.Run(), InterruptOrchestrator("SIGTERM"))
    assert "containers_end" in broken(left, stopped, knobs=IN_CONTAINERS)


def test_clean_takes_the_containers_of_its_run_along() -> None:
    gone = seen(runs={}, containers=(BOX,), contained={"c": BOX})
    was = seen(containers=(BOX,), contained={"c": BOX})
    ended = {"run": None, "knobs": IN_CONTAINERS}
    assert broken(gone, op.Clean(), was, **ended) == {"containers_end"}
    others = replace(
        gone, containers=(replace(BOX, run="r2"),), runs={"r2": RunSeen("r2", "paused", "x")}
    )
    assert "containers_end" not in broken(others, op.Clean(), was, **ended)


def test_an_engine_that_is_away_is_a_reason_to_stop_and_one_that_answers_is_none() -> None:
    contract = BatchContract(words=Words(rejections={"engine": ("does not answer",)}))
    refused = OperationResult(1, stderr="the container engine does not answer")
    paused = replace(BEFORE, runs=run_with("paused", TaskSeen("running", 0)))
    model = begun("a", knobs={"workers": "container"})
    stopped = model.broken_off({"a": frozenset({"complete"})}, frozenset({"complete"}))

    def judged(operation: Operation, *, out: bool) -> Verdict:
        beliefs = replace(contract.initial(), alternatives=(replace(stopped, engine_out=out),))
        return contract.judge(beliefs, operation, refused, paused, paused, 1.0).verdict

    for command in (op.Resume(), op.Clean()):
        assert judged(command, out=True) is Verdict.EXPECTED
        assert judged(command, out=False) is Verdict.BUG


def test_faults_of_containers_are_only_for_targets_that_have_them() -> None:
    steps = SCENARIOS["engine_outage"]
    local = BatchContract(profile=BatchProfile(settable=("budget",)))
    assert local.fit(steps).nothing_left
    assert not BatchContract(profile=BatchProfile(settable=("workers",))).fit(steps).changes


# --- a run that is ended at a moment ------------------------------------------------------------------


def ended_at(then: Operation, answer: OperationResult, after: BatchSeen) -> Verdict:
    planned = BatchModel(home=True, plan=op.Plan(("a",)).parsed())
    beliefs = replace(CONTRACT.initial(), alternatives=(planned,))
    operation = At("worker", op.Run(), then)
    result = OperationResult(fired=True, inner=(answer, OperationResult(fired=True)))
    judged = CONTRACT.judge(beliefs, operation, result, BEFORE, after, 1.0)
    if judged.verdict.stops_run:
        return judged.verdict
    checked = CONTRACT.check(judged.model, operation, True, BEFORE, after)
    return Verdict.BUG if checked.broken else judged.verdict


HALF = replace(BEFORE, runs=run_with("running", TaskSeen("running", 0), ""))
STOPPED = replace(BEFORE, runs=run_with("paused", TaskSeen("pending", 0)))


def test_a_killed_run_may_be_anywhere_on_its_way() -> None:
    dead = OperationResult(None, signal=9)
    for after in (BEFORE, HALF, STOPPED, seen()):
        assert ended_at(KillOrchestrator(), dead, after) is Verdict.SUCCESS
    wrong = replace(BEFORE, runs=run_with("complete", TaskSeen("complete", 0), ""))
    assert ended_at(KillOrchestrator(), dead, wrong) is Verdict.BUG


def test_an_orderly_stop_costs_no_attempt() -> None:
    stopped = OperationResult(143, '{"status": "paused"}')
    then = InterruptOrchestrator("SIGTERM")
    assert ended_at(then, stopped, STOPPED) is Verdict.SUCCESS
    counted = replace(BEFORE, runs=run_with("paused", TaskSeen("pending", 1, "x")))
    assert ended_at(then, stopped, counted) is Verdict.BUG
    hangs = OperationResult(None, timed_out=True)
    assert ended_at(then, hangs, STOPPED) is Verdict.TIMEOUT


def test_a_state_that_cannot_be_read_is_told_as_such() -> None:
    contract = BatchContract(words=Words(rejections={"unreadable": ("cannot be read",)}))
    beliefs = replace(contract.initial(), alternatives=(begun("a"),))
    answer = OperationResult(1, stderr="state.json cannot be read: it ends too early")
    told = contract.judge(beliefs, op.Status(), answer, BEFORE, seen(), 1.0)
    assert told.violation is not None
    assert told.violation.rule == "batch.state_whole"
    cut = replace(beliefs, alternatives=(replace(begun("a"), doubted=True),))
    told = contract.judge(cut, op.Status(), answer, BEFORE, seen(), 1.0)
    assert told.verdict is Verdict.EXPECTED


def test_a_moment_that_never_came_shows_nothing() -> None:
    beliefs = replace(
        CONTRACT.initial(), alternatives=(BatchModel(home=True, plan=op.Plan(("a",)).parsed()),)
    )
    result = OperationResult(1, fired=False, inner=(OperationResult(0), OperationResult(1)))
    operation = At("worker", op.Run(), KillOrchestrator())
    judged = CONTRACT.judge(beliefs, operation, result, BEFORE, seen(), 1.0)
    assert judged.verdict is Verdict.INCONCLUSIVE


def test_at_takes_commands_and_faults_only() -> None:
    with pytest.raises(ValueError, match="only a command"):
        At("worker", op.MoveMain(), op.Status())
    with pytest.raises(ValueError, match="neither"):
        At("worker", op.Run(), op.Configure("budget", "off"))


# --- scenarios ---------------------------------------------------------------------------------------


def test_every_scenario_is_explained_and_begins_afresh() -> None:
    assert list(ABOUT) == list(SCENARIOS)
    assert all(isinstance(steps[0], Reset) for steps in SCENARIOS.values())


def test_every_rule_about_state_has_a_row() -> None:
    assert {f"batch.{rule.__name__}" for rule in STATE_RULES} <= set(RULES)


def test_exploration_is_a_pure_function_of_its_seed() -> None:
    assert CONTRACT.generate(5, 20) == CONTRACT.generate(5, 20)
    assert len({CONTRACT.generate(seed, 12) for seed in range(6)}) == 6


def test_nobody_plans_beside_a_run_that_has_no_plan_of_its_own() -> None:
    idle = BatchModel(home=True, plan=read_tasks("a"))
    under_way = idle.begun("", None)
    over = under_way.ended({"a": frozenset({"complete"})}, frozenset({"complete"}))

    def may_plan(model: BatchModel, *, own_plan: bool) -> bool:
        moves = generate.explored(BatchProfile(own_plan=own_plan)).moves
        move = next(one for one in moves if one.make is op.Plan)
        scene = Scene(SimpleNamespace(models=(model,)), random.Random(1), {})
        return move.when(scene, op.Plan(("b",)))

    assert [may_plan(one, own_plan=True) for one in (idle, under_way, over)] == [True, True, True]
    assert [may_plan(one, own_plan=False) for one in (idle, under_way, over)] == [True, False, True]


def test_a_scenario_is_offered_where_all_of_it_can_be_said() -> None:
    whole = set(scenarios_of(BatchProfile()))
    assert {"run_budget", "canary", "main_moves"} <= whole
    few = set(
        scenarios_of(BatchProfile(settable=("test",), moments=("worker",), lacks=("Misuse",)))
    )
    assert {"one_task", "validator_blocks", "killed_in_work"} <= few
    assert not few & {"run_budget", "canary", "main_moves", "container", "said_wrongly"}


# --- fixtures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", fixtures.NAMES)
def test_a_fixture_is_the_same_commit_every_time(tmp_path: Path, name: str) -> None:
    heads = []
    for number in (1, 2):
        place = tmp_path / str(number)
        environment = {
            **os.environ,
            **{
                f"GIT_{who}_{what}": "x"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
            **{f"GIT_{who}_DATE": "2025-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
        }

        def git(*words: str, given: bytes = b"") -> str:
            run = subprocess.run(
                ["git", "-C", str(place), *words],  # noqa: B023
                input=given,
                env=environment,  # noqa: B023
                capture_output=True,
                check=True,
            )
            return run.stdout.decode().strip()

        place.mkdir()
        git("init", "-q", "-b", "master")
        git("commit", "-q", "--allow-empty", "-m", "First commit")
        git("fast-import", "--quiet", given=fixtures.commit_of(name, "master"))
        heads.append(git("rev-parse", "master"))
        listed = git("ls-tree", "-r", "--name-only", "master").splitlines()
        assert listed == sorted(path for path, _ in fixtures.files_of(name))
    assert heads[0] == heads[1]


def test_a_row_of_tasks() -> None:
    names = [task.id for task in op.Plan(("t1..3 writes=core", "last needs=t1")).parsed()]
    assert names == ["t1", "t2", "t3", "last"]
    assert [task.id for task in read_tasks("../up")] == ["../up"]
    with pytest.raises(ValueError, match="a row has"):
        op.Plan(("t9..2",))
    with pytest.raises(ValueError, match="none of toy-repo"):
        op.UseFixture("my-repo")
