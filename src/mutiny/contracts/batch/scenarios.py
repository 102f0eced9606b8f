"""Ready sequences: what a batch orchestrator must do, and what must never happen to it."""

from __future__ import annotations

from mutiny.contracts.batch.operations import (
    Clean,
    Configure,
    EditSource,
    EngineOutage,
    GateSays,
    Init,
    KillWorker,
    LogsQuery,
    LogsTimeline,
    MoveMain,
    Plan,
    RemoveContainer,
    Resume,
    Run,
    RunElsewhere,
    SetTaskStatus,
    Status,
    StopContainer,
    TruncateState,
    UseFixture,
)
from mutiny.contracts.batch.profile import BatchProfile
from mutiny.contracts.batch.supported import supported
from mutiny.kit.faults import SkewClock
from mutiny.kit.moments import At, InterruptOrchestrator, KillOrchestrator
from mutiny.kit.operations import ExpectError, Parallel, Reset, Settle
from mutiny.kit.recipes import everywhere, misset, said_wrongly
from mutiny.model.operation import Operation

Steps = tuple[Operation, ...]
STALE_S = 3600.0
"""Longer than any target waits before it calls a run stale."""
_END: Steps = (Status(), Settle())


def _planned(*tasks: str) -> Steps:
    return (Reset(), Init(), Plan(tasks))


def _run_to_end(*tasks: str) -> Steps:
    return (*_planned(*tasks), Run(), *_END)


def _blocked(*tasks: str, knobs: dict[str, str], gates: dict[str, str] | None = None) -> Steps:
    """A run that something must stop; afterwards its way out."""
    settings = tuple(Configure(name, value) for name, value in knobs.items())
    said = tuple(GateSays(name, verdict) for name, verdict in (gates or {}).items())
    return (*_planned(*tasks), *settings, *said, Run(), Status())


def _killed(moment: str, *tasks: str, alone: bool = False) -> Steps:
    """A run that dies at a moment, and two resumes: the second has nothing to do."""
    died = At(moment, Run(), KillOrchestrator(alone=alone))
    return (*_planned(*tasks), died, Status(), Resume(), Resume(), *_END)


def _interrupted(moment: str, signal: str, *tasks: str) -> Steps:
    stopped = At(moment, Run(), InterruptOrchestrator(signal))
    return (*_planned(*tasks), stopped, Status(), Resume(), *_END)


TWO = ("a", "b needs=a")
FLOW: dict[str, Steps] = {
    "one_task": (*_run_to_end("a"), LogsQuery(), LogsQuery(task="a"), LogsTimeline(), Resume()),
    "dependencies": _run_to_end("a", "b needs=a", "c needs=a,b", "d"),
    "dependency_of_a_batch": (
        *_planned("a", "b", "c needs=a"),
        Configure("max_parallel", "4"),
        Run(),
        *_END,
    ),
    "locks": _run_to_end("a writes=core", "b writes=core", "c writes=docs"),
    "locks_apart": (
        *_planned("a writes=core", "b", "c writes=core"),
        Configure("max_parallel", "3"),
        Run(),
        *_END,
    ),
    "read_locks": _run_to_end("a writes=core", "b reads=core"),
    "conflict": _run_to_end("a does=shares", "b does=shares", "c does=shares"),
    "conflict_unlocked": (
        Reset(),
        Init(),
        Configure("manifest", "off"),
        Plan(("a does=shares", "b does=shares")),
        Run(),
        *_END,
    ),
    "conflict_repo": (
        *(Reset(), UseFixture("conflict-repo"), Init()),
        Plan(("a does=shares", "b does=shares")),
        Run(),
        *_END,
    ),
    "conflict_once": (
        *(Reset(), Init(), Configure("max_conflicts", "1")),
        Plan(("a does=shares", "b does=shares")),
        Run(),
        *_END,
    ),
    "conflict_set_again": (
        *(Reset(), Init(), Configure("max_conflicts", "1"), Configure("max_parallel", "4")),
        Plan(("a does=shares", "b does=shares", "c does=shares", "d does=shares")),
        *(Run(), Status(), SetTaskStatus("c"), SetTaskStatus("d"), Resume()),
        *_END,
    ),
    "conflict_beside_others": (
        *_planned("a does=shares", "b does=shares", "c", "d"),
        Configure("max_parallel", "4"),
        Run(),
        *_END,
    ),
    "large_repo": (
        *(Reset(), UseFixture("large-repo-sim"), Init()),
        Plan(("t1..2 writes=core", "last needs=t1,t2")),
        Configure("max_parallel", "4"),
        Run(),
        *_END,
    ),
    "names_alike": (
        *_run_to_end("job", "job-2 needs=job", "job-21"),
        *(LogsQuery(task="job"), LogsQuery(task="job-2"), LogsQuery(task="job-21")),
    ),
    "second_try": _run_to_end("a does=fails,works", "b needs=a"),
    "tokens_of_retries": _run_to_end("a does=fails,works tokens=40", "b tokens=30"),
    "never_works": (
        *_planned("a does=fails", "b", "c needs=a"),
        Run(),
        Status(),
        ExpectError(Resume()),
        ExpectError(SetTaskStatus("b", "pending")),
        SetTaskStatus("a", "skipped"),
        Resume(),
        *_END,
    ),
    "idle_agent": (*_planned("a does=idle"), ExpectError(Run()), Status()),
    "stop_at_failure": (
        *_planned("a does=fails", "b", "c"),
        Configure("failure_policy", "stop"),
        Configure("max_parallel", "1"),
        ExpectError(Run()),
        Status(),
    ),
    "workspaces_kept": (*_planned("a"), Configure("cleanup", "never"), Run(), *_END),
    "plan_twice": (*_planned(*TWO), Plan(TWO), Run(), *_END),
    "wrong_plans": (
        Reset(),
        Init(),
        ExpectError(Init()),
        ExpectError(Plan(())),
        ExpectError(Plan(("a", "a"))),
        ExpectError(Plan(("a needs=z",))),
        ExpectError(Plan(("a needs=b", "b needs=a"))),
        Plan(("a",)),
        Run("r7"),
        ExpectError(Run("r7")),
        *_END,
    ),
    "wrong_names": (
        Reset(),
        Init(),
        ExpectError(Plan(("../up",))),
        ExpectError(Plan(("/abs",))),
        Plan(("a",)),
        ExpectError(Run("../../../../../../up")),
        Run(),
        *_END,
    ),
    "no_home": (Reset(), ExpectError(Plan(("a",))), ExpectError(Run()), Init(), *_END),
    "nothing_to_run": (Reset(), Init(), ExpectError(Resume()), ExpectError(Run()), Status()),
    "clean": (
        *_planned("a"),
        ExpectError(Clean()),
        Run(),
        ExpectError(Clean(force=False)),
        Clean(),
        ExpectError(Clean(name="r1")),
        Run(),
        *_END,
    ),
    "clean_unfinished": (
        *_planned("a", "b"),
        At("merging", Run(), KillOrchestrator()),
        Clean(),
        Run(),
        *_END,
    ),
    "clean_the_older": (
        *_planned("a"),
        Run("r1"),
        Plan(("b",)),
        Run("r2"),
        Clean(name="r1"),
        Plan(("c",)),
        Run(),
        *_END,
    ),
    "two_runs": (
        *_planned("a does=fails,fails,fails,works", "b"),
        Run("r1"),
        SetTaskStatus("a"),
        ExpectError(Run("r2")),
        Resume(),
        Plan(("c",)),
        Run("r2"),
        Clean(name="r1"),
        *_END,
    ),
    "planned_meanwhile": (
        *_planned(*TWO),
        At("worker", Run(), KillOrchestrator()),
        Plan(("a does=fails", "b does=fails", "c")),
        Resume(),
        *_END,
    ),
    "plan_while_saving": (*_planned("a"), At("saving", Run(), Plan(("b",))), *_END),
    "tenth_run": (
        *_planned("a"),
        Run("r9"),
        Plan(("b",)),
        Run("r10"),
        Status(),
        LogsQuery(),
        Resume(),
        *_END,
    ),
    "one_at_a_time": (
        *_planned("t1..3 does=slowly"),
        Configure("max_parallel", "1"),
        Run(),
        *_END,
    ),
    "agent_hangs": (
        *_planned("a does=lingers,works", "b"),
        Configure("agent_timeout_s", "12"),
        Run(),
        *_END,
    ),
    "secret": _run_to_end("a does=tells"),
    "secret_of_a_failure": _run_to_end("a does=blurts,works"),
    "stray_processes": _run_to_end("a does=leaves", "b"),
    "agent_pushes": _run_to_end("a does=pushes", "b"),
    "agent_commits": _run_to_end("a does=commits", "b needs=a"),
    "ended_together": (
        *_planned("t1..6 does=meets tokens=40"),
        Configure("max_parallel", "6"),
        Run(),
        *_END,
    ),
    "tokens_in_parts": _run_to_end("a does=counts tokens=90", "b"),
}
BLOCKED: dict[str, Steps] = {
    "task_budget": _blocked("a tokens=500", "b", knobs={"budget": "block", "task_tokens": "100"}),
    "run_budget": _blocked(
        "a tokens=300",
        "b tokens=300 needs=a",
        "c tokens=300 needs=b",
        knobs={"budget": "block", "run_tokens": "500"},
    ),
    "task_cost": _blocked("a tokens=5000", knobs={"budget": "block", "task_cost": "0.005"}),
    "run_cost": _blocked(
        "a tokens=3000",
        "b tokens=3000 needs=a",
        knobs={"budget": "block", "run_cost": "0.01"},
    ),
    "budget_warns": (
        *_planned("a tokens=500"),
        Configure("budget", "warn"),
        Configure("task_tokens", "100"),
        Run(),
        *_END,
    ),
    "budget_of_parts": _blocked(
        "a tokens=120 does=counts", knobs={"budget": "block", "task_tokens": "100"}
    ),
    "budget_of_retries": _blocked(
        "a tokens=80 does=fails,works", knobs={"budget": "block", "task_tokens": "100"}
    ),
    "budget_of_the_left_out": (
        *_blocked(
            *("a does=fails tokens=120", "b tokens=100", "c needs=a tokens=100"),
            knobs={"budget": "block", "run_tokens": "400"},
        ),
        SetTaskStatus("a", "skipped"),
        *(Resume(), Status()),
    ),
    "validator_blocks": (
        *_blocked("a", "b", knobs={"test": "block"}, gates={"test": "fail"}),
        SetTaskStatus("a"),
        SetTaskStatus("b"),
        GateSays("test"),
        Resume(),
        *_END,
    ),
    "validator_dies": _blocked("a", knobs={"style": "block"}, gates={"style": "crash"}),
    "validator_babbles": _blocked(
        "a", knobs={"architecture": "block"}, gates={"architecture": "garbage"}
    ),
    "validator_missing": _blocked("a", knobs={"test": "block"}, gates={"test": "missing"}),
    "validator_says_it_oddly": _blocked("a", knobs={"test": "block"}, gates={"test": "odd"}),
    "validator_hangs": _blocked(
        "a", knobs={"review": "block", "gate_timeout_s": "1"}, gates={"review": "hang"}
    ),
    "validator_warns": (
        *_planned("a"),
        Configure("test", "warn"),
        GateSays("test", "fail"),
        Run(),
        *_END,
    ),
    "manifest_blocks": _blocked(
        "a does=strays", "b", knobs={"manifest": "block", "rescope": "off"}
    ),
    "manifest_of_a_folder": _blocked(
        "a does=nears", "b", knobs={"manifest": "block", "rescope": "off"}
    ),
    "manifest_of_files": _blocked(
        "a does=deepens", "b", knobs={"manifest": "block", "rescope": "off"}
    ),
    "manifest_of_deletions": _blocked(
        "a", "b does=removes needs=a", knobs={"manifest": "block", "rescope": "off"}
    ),
    "manifest_of_renames": _blocked(
        "a", "b does=renames needs=a", knobs={"manifest": "block", "rescope": "off"}
    ),
    "manifest_rescope": (
        *_planned("a does=strays"),
        Configure("manifest", "block"),
        Run(),
        *_END,
    ),
    "manifest_warns": (
        *_planned("a does=strays"),
        Configure("rescope", "off"),
        Run(),
        *_END,
    ),
    "lint_fails": _blocked("a", knobs={}, gates={"lint": "fail"}),
    "doctor_fails": _blocked("a", knobs={}, gates={"doctor": "fail"}),
    "doctor_dies": _blocked("a", knobs={}, gates={"doctor": "crash"}),
    "doctor_missing": _blocked("a", knobs={}, gates={"doctor": "missing"}),
    "lint_missing": _blocked("a", knobs={}, gates={"lint": "missing"}),
    "doctor_hangs": _blocked(
        "a", knobs={"gate_timeout_s": "1", "max_retries": "0"}, gates={"doctor": "hang"}
    ),
    "doctor_of_the_whole": (
        *_blocked("a", "b", knobs={}, gates={"doctor": "apart"}),
        GateSays("doctor"),
        SetTaskStatus("a"),
        SetTaskStatus("b"),
        Resume(),
        *_END,
    ),
    "canary": (*_planned("a"), Configure("canary", "block"), Run(), *_END),
    "stuck_doctor": _blocked(
        "a", knobs={"canary": "block", "gate_timeout_s": "2"}, gates={"doctor": "stuck"}
    ),
    "blind_doctor": _blocked("a", knobs={"canary": "block"}, gates={"doctor": "blind"}),
    "blocked_after_crash": (
        *_planned("a", "b needs=a"),
        Configure("test", "block"),
        At("worker", Run(), KillOrchestrator()),
        GateSays("test", "fail"),
        ExpectError(Resume()),
        Status(),
    ),
    "budget_after_crash": (
        *_planned("a tokens=80", "b needs=a"),
        Configure("budget", "block"),
        Configure("task_tokens", "100"),
        At("task_doctor", Run(), KillOrchestrator()),
        Resume(),
        Status(),
    ),
}
CHAOS: dict[str, Steps] = {
    "killed_in_work": _killed("worker", *TWO),
    "killed_alone": _killed("worker", "a", "b", alone=True),
    "killed_in_task_doctor": _killed("task_doctor", "a", "b"),
    "killed_merging": _killed("merging", "a", "b"),
    "killed_in_doctor": _killed("integration_doctor", "a", "b"),
    "killed_before_landing": _killed("landing", "a", "b needs=a"),
    "killed_after_landing": _killed("landed", "a", "b needs=a"),
    "set_while_landing": (
        *_planned("a", "b needs=a"),
        At("landed", Run(), KillOrchestrator()),
        SetTaskStatus("a", "skipped"),
        Resume(),
        *_END,
    ),
    "killed_between_batches": _killed("between_batches", *TWO),
    "killed_while_saving": _killed("saving", "a"),
    "killed_twice": (
        *_planned(*TWO),
        At("landed", Run(), KillOrchestrator()),
        At("worker", Resume(), KillOrchestrator()),
        Resume(),
        *_END,
    ),
    "interrupted": _interrupted("worker", "SIGINT", "a", "b"),
    "terminated": _interrupted("integration_doctor", "SIGTERM", *TWO),
    "terminated_landing": _interrupted("landing", "SIGTERM", "a"),
    "worker_killed": (*_planned("a", "b"), At("worker", Run(), KillWorker("a")), *_END),
    "worker_killed_too_often": (
        *_planned("a"),
        Configure("max_retries", "0"),
        At("worker", Run(), KillWorker("a")),
        SetTaskStatus("a"),
        Resume(),
        *_END,
    ),
    "another_home": (
        *_planned("a"),
        Configure("max_retries", "0"),
        At("worker", Run(), RunElsewhere()),
        *_END,
    ),
    "another_home_alike": (
        *_planned("a"),
        Configure("max_retries", "0"),
        At("worker", Run(), RunElsewhere("a")),
        *_END,
    ),
    "main_moves": (*_planned("a", "b"), At("landing", Run(), MoveMain()), *_END),
    "main_moves_tested": (*_planned("a"), At("integration_doctor", Run(), MoveMain()), *_END),
    "main_moves_early": (*_planned("a"), At("worker", Run(), MoveMain()), MoveMain(), *_END),
    "main_moves_after_landing": (*_planned("a"), At("landed", Run(), MoveMain()), *_END),
    "user_edits": (
        *_planned("a"),
        EditSource(),
        ExpectError(Run()),
        Status(),
        EditSource(undo=True),
        Resume(),
        *_END,
    ),
    "run_against_run": (*_planned("a"), Parallel((Run(), Run())), *_END),
    "resume_against_resume": (
        *_planned(*TWO),
        At("worker", Run(), KillOrchestrator()),
        Parallel((Resume(), Resume())),
        *_END,
    ),
    "status_against_run": (*_planned("a"), At("worker", Run(), Status()), *_END),
    "status_when_stale": (
        *_planned("a"),
        At("worker", Run(), KillOrchestrator()),
        SkewClock(offset_s=STALE_S, during=Status()),
        Resume(),
        *_END,
    ),
    "resume_against_run": (*_planned("a"), At("integration_doctor", Run(), Resume()), *_END),
    "clean_against_run": (*_planned("a"), At("worker", Run(), Clean()), *_END),
    "state_cut_off": (
        *_planned(*TWO),
        At("between_batches", Run(), KillOrchestrator()),
        TruncateState(),
        ExpectError(Status()),
        ExpectError(Resume()),
        ExpectError(Run()),
        TruncateState(back=True),
        Resume(),
        *_END,
    ),
}


def _contained(
    *steps: Operation, tasks: tuple[str, ...] = ("a",), knobs: dict[str, str] | None = None
) -> Steps:
    """A plan whose agents work in containers."""
    settings = tuple(Configure(name, value) for name, value in (knobs or {}).items())
    return (*_planned(*tasks), Configure("workers", "container"), *settings, *steps, *_END)


CONTAINERS: dict[str, Steps] = {
    "container": _contained(
        At("worker", Run(), Status()),
        LogsQuery(),
        knobs={"memory_mb": "64", "pids": "50"},
    ),
    "container_in_odd_place": (
        Reset(root='it\'s:two, "three"'),
        *_contained(At("worker", Run(), Status()))[1:],
    ),
    "container_stopped": _contained(At("work_half_done", Run(), StopContainer("a"))),
    "container_removed": _contained(At("work_half_done", Run(), RemoveContainer("a"))),
    "container_killed": _contained(
        At("worker", Run(), KillWorker("a")), knobs={"max_retries": "0"}
    ),
    "container_outlives_run": _contained(
        At("worker", Run(), KillOrchestrator()), Status(), Resume(), Resume(), tasks=("a", "b")
    ),
    "container_unwanted": _contained(
        At("worker", Run(), KillOrchestrator()),
        SetTaskStatus("a", "skipped"),
        SetTaskStatus("b", "pending"),
        Resume(),
        tasks=("a", "b"),
    ),
    "container_interrupted": _contained(
        At("worker", Run(), InterruptOrchestrator("SIGTERM")), Status(), Resume()
    ),
    "container_cleaned": _contained(
        At("worker", Run(), KillOrchestrator()), Clean(force=True), Status()
    ),
    "engine_outage": _contained(
        At("worker", Run(), EngineOutage()),
        Status(),
        Resume(),
        ExpectError(Clean(force=True)),
        EngineOutage(back=True),
        Resume(),
    ),
}
SCENARIOS: dict[str, Steps] = {
    **FLOW,
    **BLOCKED,
    **CHAOS,
    **CONTAINERS,
    "said_wrongly": (
        *_planned(*TWO),
        *said_wrongly(Status(), Plan(("c",)), LogsQuery(), Run()),
        Run(),
        *said_wrongly(Resume(), SetTaskStatus("a", "pending"), Clean(force=True)),
        *_END,
    ),
    "wrong_settings": (*_planned("a"), *misset(Plan(("b",)), 2), *misset(Run()), Run(), *_END),
    **everywhere(FLOW["dependencies"]),
}


def scenarios_of(profile: BatchProfile) -> dict[str, Steps]:
    """Those that make sense for this target, and that it can be told whole: each has one thing to show."""
    return {
        name: steps
        for name, steps in SCENARIOS.items()
        if name not in profile.skips and all(supported(profile, one) for one in steps)
    }
