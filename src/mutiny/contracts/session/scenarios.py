"""Ready sequences: what a session must do, how it recovers, and how its limits are kept."""

from __future__ import annotations

from mutiny.contracts.session.about import ABOUT
from mutiny.contracts.session.operations import (
    AgentDeadlock,
    BadWork,
    BuildProject,
    Checkpoint,
    ClockJump,
    Configure,
    Continue,
    CorruptCheckpoint,
    DiskFull,
    FreezeAgent,
    HalfDone,
    Health,
    KillAgent,
    LetRun,
    MemoryPressure,
    Metrics,
    ModelError,
    OddBytes,
    Pause,
    Recover,
    Report,
    Restore,
    StartSession,
    Status,
    Stop,
    SystemCrash,
    ToolTimeout,
    TouchCheckpoints,
    Trespass,
    VerifyCheckpoint,
    WaitForCheckpoints,
    WaitForPhase,
    WaitForStatus,
    WaitForTasks,
)
from mutiny.contracts.session.profile import SessionProfile
from mutiny.kit.operations import (
    AFTER_LAST,
    ExpectError,
    Parallel,
    PowerLossAt,
    Reset,
    Settle,
    Sleep,
)
from mutiny.kit.recipes import misset, said_wrongly
from mutiny.model.operation import Operation

Steps = tuple[Operation, ...]
QUICK = {
    "metrics_s": "0.5",
    "backoff_s": "0.05",
    "model_timeout_s": "1.5",
    "tool_timeout_s": "2",
    "idle_s": "8",
    "test_time_s": "20",
    "backoff_cap_s": "5",
    "gate_wait_s": "1",
    "vote_wait_s": "1",
}
"""Real numbers are minutes long; the same promises hold in seconds."""
SLOW_H = 0.004
_AFTER: Steps = (WaitForStatus("complete"), VerifyCheckpoint(), Status(), Report())


def _begun(hours: float = 0.002, agents: int = 3, **knobs: str) -> Steps:
    """A session of the smallest project has begun."""
    settings = tuple(Configure(name, value) for name, value in {**QUICK, **knobs}.items())
    return (Reset(), *settings, StartSession(agents=agents, hours=hours))


def _through(*faults: Operation, **knobs: str) -> Steps:
    """A session that goes through some trouble by itself, to its end."""
    return (*_begun(0.002, 3, **knobs), *faults, *_AFTER, Settle())


def _split(**knobs: str) -> Steps:
    """A session whose first vote nobody wins: while all are trusted alike."""
    first = _begun(0.002, 2, vote_wait_s="0.2", **knobs)
    return (*first, Stop(), AgentDeadlock(), StartSession(agents=2))


def _muted() -> Steps:
    """A session in which somebody gives no ballot that can be counted."""
    return (*_begun(0.002, 2), Stop(), AgentDeadlock("mute"), StartSession(agents=2))


def _crashed(*faults: Operation) -> Steps:
    """A session that dies in the middle, with its checkpoints in some state."""
    return (*_begun(SLOW_H), WaitForTasks(2), Checkpoint(), WaitForTasks(3), SystemCrash(), *faults)


def _from_the_first(error: Operation) -> Steps:
    """The very first answer that a session gets is an error."""
    *settings, start = _begun()
    return (*settings, error, start, *_AFTER, Settle())


def _in_one_go(project: str) -> Steps:
    """A session from its beginning to its end; with a brief project all of it is one command."""
    return (Reset(), StartSession(project=project), Status(), Settle())


FLOW: dict[str, Steps] = {
    "in_one_go": _in_one_go("demo"),
    "whole_session": (
        *_begun(),
        Status(),
        Metrics(),
        Health(),
        *_AFTER,
        BuildProject(),
        Settle(),
    ),
    "level": (*_begun(0.01, metrics_s="0.05"), *_AFTER, Settle()),
    "one_agent": (*_begun(SLOW_H, 1), WaitForTasks(1), Status(), LetRun(2), Status(), Stop()),
    "stopped": (
        *_begun(SLOW_H),
        WaitForTasks(1),
        Checkpoint(),
        Stop(),
        ExpectError(Continue()),
        ExpectError(Restore()),
        ExpectError(Checkpoint()),
        Status(),
        VerifyCheckpoint(),
        Settle(),
    ),
    "stopped_short": (
        *_begun(SLOW_H, calls_interval="50"),
        WaitForTasks(1),
        LetRun(2),
        Stop(),
        Status(),
        Settle(),
    ),
    "finished": (*_begun(), WaitForStatus("complete"), ExpectError(Recover()), Status(), Settle()),
    "nobody": (
        Reset(),
        ExpectError(Recover(name="nobody")),
        *(Configure(name, value) for name, value in QUICK.items()),
        StartSession(hours=SLOW_H),
        WaitForTasks(1),
        SystemCrash(),
        ExpectError(Recover(name="nobody")),
        ExpectError(Recover(name="../up")),
        ExpectError(Report(name="nobody")),
        Recover(),
        *_AFTER[:1],
        Settle(),
    ),
    "recovered_while_paused": (
        *_begun(SLOW_H),
        WaitForTasks(1),
        *(Checkpoint(),) * 3,
        Pause(),
        Recover(),
        *_AFTER,
        Settle(),
    ),
    "paused": (
        *_begun(SLOW_H),
        WaitForTasks(1),
        ExpectError(Continue()),
        Pause(),
        Sleep(2.0),
        Status(),
        Metrics(),
        ExpectError(Pause()),
        ExpectError(Restore()),
        Checkpoint(),
        Continue(),
        *_AFTER,
        Settle(),
    ),
    "unknown_session": (
        Reset(),
        ExpectError(Status()),
        ExpectError(Recover()),
        ExpectError(VerifyCheckpoint()),
        *(Configure(name, value) for name, value in QUICK.items()),
        StartSession(name="first", hours=SLOW_H),
        ExpectError(Restore(name="nobody")),
        ExpectError(Recover(name="nobody")),
        ExpectError(Status(name="nobody")),
        ExpectError(VerifyCheckpoint(checkpoint=99)),
        ExpectError(StartSession(name="second")),
        SystemCrash(),
        ExpectError(Restore(name="nobody")),
        ExpectError(Restore(checkpoint=99)),
        ExpectError(Checkpoint()),
        ExpectError(Pause()),
        ExpectError(Health()),
        Status(),
        Recover(),
        Stop(),
        ExpectError(StartSession(name="first")),
    ),
    "newest_is_meant": (
        Reset(),
        *(Configure(name, value) for name, value in QUICK.items()),
        StartSession(name="old", hours=SLOW_H),
        Stop(),
        StartSession(name="new", hours=SLOW_H),
        WaitForTasks(1),
        Status(),
        Checkpoint(),
        Stop(),
        Status(),
        VerifyCheckpoint(),
        Report(),
    ),
    "wrong_input": (
        Reset(),
        ExpectError(StartSession(project="nothing")),
        ExpectError(StartSession(project="../demo")),
        ExpectError(StartSession(agents=0)),
        ExpectError(StartSession(agents=9)),
        ExpectError(StartSession(name="../up")),
        ExpectError(Status()),
        Configure("max_agents", "2"),
        ExpectError(StartSession(agents=3)),
        StartSession(agents=2),
        Stop(),
    ),
    "said_wrongly": (
        *_begun(0.05),
        *said_wrongly(Status(), Checkpoint(), Restore()),
        *misset(Status(), 2),
        *misset(Checkpoint()),
        Stop(),
        Status(),
    ),
    "two_sessions": (
        *_begun(SLOW_H),
        WaitForTasks(1),
        Stop(),
        StartSession(hours=0.002),
        *_AFTER,
        Settle(),
    ),
    "by_time": (
        *_begun(
            0.008, agents=2, interval_s="1", calls_interval="900000", tokens_interval="900000000"
        ),
        WaitForCheckpoints(4),
        Stop(),
    ),
    "by_calls": (
        *_begun(
            0.003, agents=1, interval_s="9000", calls_interval="1", tokens_interval="900000000"
        ),
        *_AFTER,
        Settle(),
    ),
    "by_tokens": (
        *_begun(0.003, agents=1, interval_s="9000", calls_interval="900000", tokens_interval="100"),
        *_AFTER,
        Settle(),
    ),
    "by_phase": (
        *_begun(interval_s="9000", calls_interval="900000", tokens_interval="900000000"),
        WaitForPhase(3),
        *_AFTER,
        Settle(),
    ),
}
RECOVERY: dict[str, Steps] = {
    "tool_timeout": _through(ToolTimeout()),
    "tool_is_ended": (*_begun(0.02), ToolTimeout(), LetRun(4), Status(), Stop()),
    "tool_times_out_again": _through(ToolTimeout(2)),
    "rate_limited": _through(ModelError("rate_limit", 2, retry_after_s=1)),
    "overloaded": _through(ModelError("overload", 3)),
    "server_error": _through(ModelError("server", 2)),
    "malformed_answer": _through(ModelError("malformed", 2)),
    "stalled_answer": _through(ModelError("stall", 1)),
    "no_answer": _through(ModelError("hang", 1)),
    "connection_reset": _through(ModelError("reset", 3)),
    "answer_cut_off": _through(ModelError("cut", 2)),
    "error_in_the_answer": _through(ModelError("error_event", 2)),
    "answer_byte_by_byte": _through(ModelError("split", 3)),
    "overloaded_at_first": _from_the_first(ModelError("overload")),
    "server_error_at_first": _from_the_first(ModelError("server")),
    "malformed_at_first": _from_the_first(ModelError("malformed")),
    "reset_at_first": _from_the_first(ModelError("reset")),
    "odd_markup": _through(OddBytes("markup")),
    "odd_lines": _through(OddBytes("lines")),
    "odd_letters": _through(OddBytes("letters")),
    "out_of_bounds": _through(Trespass("git"), Trespass("above"), Trespass("machine")),
    "uncompilable": _through(BadWork("uncompilable")),
    "memory_pressure": _through(MemoryPressure()),
    "memory_short": (*_begun(0.05), MemoryPressure(), Status(), Stop()),
    "deadlock": (*_split(), *_AFTER, Settle()),
    "few_kept": (
        *_begun(SLOW_H, keep="2"),
        WaitForTasks(1),
        Checkpoint(),
        WaitForTasks(2),
        Checkpoint(),
        WaitForTasks(3),
        Checkpoint(),
        SystemCrash(),
        CorruptCheckpoint("body"),
        Recover(),
        *_AFTER[:1],
        Settle(),
    ),
    "deadlock_escalated": (
        *_split(deadlock="escalate"),
        WaitForStatus("paused"),
        Status(),
        Continue(decide="first"),
        *_AFTER,
        Settle(),
    ),
    "mute_voter": (*_muted(), *_AFTER, Settle()),
    "crash_while_a_vote_waits": (
        *_split(deadlock="escalate"),
        *(WaitForStatus("paused"), Status(), SystemCrash(), Recover(), Status()),
        *(Continue(decide="first"), *_AFTER, Settle()),
    ),
    "crash_when_told": (
        *(*_begun(SLOW_H, interval_s="0.5"), WaitForTasks(1)),
        *(step for _ in range(5) for step in (SystemCrash(told="task.done"), Recover())),
        *(*_AFTER, Settle()),
    ),
    "crash_in_a_thought": (
        *(*_begun(0.08, agents=2), LetRun(14), Checkpoint(), SystemCrash(), Recover()),
        *(WaitForTasks(1), Status(), Stop()),
    ),
    "system_crash": (*_crashed(), ExpectError(Health()), Status(), Recover(), *_AFTER, Settle()),
    "crash_in_a_line": (*_crashed(HalfDone("line")), Recover(), *_AFTER, Settle()),
    "crash_in_a_file": (*_crashed(HalfDone("file")), Recover(), *_AFTER, Settle()),
    "crash_in_git": (*_crashed(HalfDone("lock")), Recover(), *_AFTER, Settle()),
    "crash_of_the_driver": (
        *_begun(SLOW_H),
        WaitForTasks(2),
        SystemCrash(alone=True),
        Recover(),
        *_AFTER,
        Settle(),
    ),
    "crash_over_a_call": (
        *_begun(SLOW_H, model_timeout_s="120", idle_s="150"),
        WaitForTasks(1),
        ModelError("hang", 1),
        SystemCrash(alone=True),
        Recover(),
        *_AFTER,
        Settle(),
    ),
    "crash_twice": (
        *_crashed(),
        Recover(),
        SystemCrash(),
        Restore(),
        VerifyCheckpoint(),
        Recover(),
        *_AFTER,
        Settle(),
    ),
    "power_cut_after_restore": (
        *_crashed(),
        PowerLossAt(Restore(), AFTER_LAST),
        Recover(),
        *_AFTER,
        Settle(),
    ),
    "crash_after_a_vote": (
        *_begun(0.05, agents=2),
        LetRun(6),
        SystemCrash(),
        Recover(),
        LetRun(3),
        Status(),
        Stop(),
    ),
    "crash_while_paused": (
        *_begun(SLOW_H),
        WaitForTasks(2),
        Pause(),
        SystemCrash(),
        Status(),
        Recover(),
        Status(),
        Recover(),
        Stop(),
    ),
    "crash_after_a_pause": (
        *_begun(SLOW_H),
        WaitForTasks(1),
        Pause(),
        Continue(),
        SystemCrash(),
        Recover(),
        *_AFTER,
        Settle(),
    ),
    "agent_killed": _through(KillAgent()),
    "agent_frozen": (*_begun(0.006, idle_s="2"), FreezeAgent(), *_AFTER, Settle()),
    "agent_frozen_at_a_gate": (
        *_begun(0.002, idle_s="6"),
        BadWork("slow"),
        FreezeAgent("gate"),
        *_AFTER,
        Settle(),
    ),
    "agent_killed_while_it_waits": (
        *_begun(0.002, 1),
        ModelError("rate_limit", retry_after_s=4),
        KillAgent(),
        *_AFTER,
        Settle(),
    ),
    "short_silence": (
        *_begun(0.006, idle_s="60"),
        FreezeAgent(),
        LetRun(2),
        Status(),
        Stop(),
    ),
}
RISKS: dict[str, Steps] = {
    "model_is_down": _through(ModelError("overload", 1000, model="claude-sonnet-4-5")),
    "endless_tool": (
        *_begun(tool_timeout_s="0.3", task_attempts="1"),
        ToolTimeout(1000),
        WaitForStatus("paused"),
        Status(),
        Stop(),
    ),
    "endless_errors": (
        *_begun(
            retries="1", backoffs="2", task_attempts="1", backoff_s="0.02", backoff_cap_s="0.1"
        ),
        ModelError("overload", 100_000),
        WaitForStatus("paused"),
        Status(),
        Health(),
        Stop(),
    ),
    "disk_full": (*_begun(SLOW_H), WaitForTasks(1), DiskFull(), Recover(), *_AFTER, Settle()),
    "scope_creep": (
        *_begun(backoff_cap_s="0.5", gate_wait_s="0.2"),
        BadWork(),
        WaitForStatus("paused"),
        Status(),
        VerifyCheckpoint(),
        Stop(),
    ),
    "endless_tests": (
        *_begun(test_time_s="1", tool_timeout_s="15", gate_wait_s="0.2"),
        BadWork("endless"),
        WaitForStatus("paused"),
        Status(),
        Stop(),
    ),
    "tests_endless_later": (
        *_begun(test_time_s="4", gate_wait_s="0.2", gate_attempts="2"),
        BadWork("later"),
        WaitForStatus("paused"),
        Status(),
        Stop(),
    ),
    "cost_overrun": (
        *_begun(SLOW_H, total_tokens="3000"),
        WaitForStatus("paused"),
        Status(),
        Configure("total_tokens", "5000000"),
        Recover(),
        *_AFTER,
        Settle(),
    ),
}
for _name, _how in (
    ("dangerous_code", "dangerous"),
    *((_how, _how) for _how in ("undocumented", "unreleased", "unreviewed")),
):
    RISKS[_name] = (
        *_begun(gate_wait_s="0.2", gate_attempts="2"),
        BadWork(_how),
        WaitForStatus("paused"),
        Status(),
        Stop(),
    )
for _part in ("body", "key", "field", "newest", "delta"):
    RISKS[f"corrupt_{_part}"] = (
        *_crashed(CorruptCheckpoint(_part)),
        Status(),
        Recover(),
        *_AFTER[:1],
        Status(),
        Settle(),
    )
RISKS["times_changed"] = (*_crashed(TouchCheckpoints()), Status(), Recover(), *_AFTER, Settle())
RISKS["corrupt_delta"] = (
    *_begun(SLOW_H),
    WaitForTasks(3),
    SystemCrash(),
    CorruptCheckpoint("delta"),
    *RISKS["corrupt_delta"][-5:],
)
for _part in ("body", "delta"):
    RISKS[f"resumed_with_damaged_{_part}"] = (
        *_begun(SLOW_H),
        WaitForTasks(3),
        SystemCrash(),
        CorruptCheckpoint(_part),
        Recover(),
        *_AFTER[:1],
        Settle(),
    )
RISKS["damaged_and_looked_at"] = (*_crashed(CorruptCheckpoint("body")), Report(), Report())
RISKS["corrupt_all"] = (
    *_crashed(CorruptCheckpoint("all")),
    ExpectError(VerifyCheckpoint()),
    ExpectError(Restore()),
    ExpectError(Recover()),
    Status(),
)
RISKS["corrupt_named"] = (
    *_crashed(CorruptCheckpoint("body")),
    ExpectError(VerifyCheckpoint()),
    Restore(checkpoint=0),
    Recover(),
    WaitForStatus("complete"),
    Settle(),
)
LIMITS: dict[str, Steps] = {
    "agent_tokens": (*_begun(SLOW_H, agent_tokens_hour="700"), LetRun(6), Status(), Stop()),
    "settings_spoiled": (
        *_begun(
            0.008, agents=2, interval_s="1", calls_interval="900000", tokens_interval="900000000"
        ),
        *(LetRun(10, misset=True), Status(), Stop()),
    ),
    "agent_calls_used": (
        *_begun(SLOW_H, agent_calls_hour="2", calls_interval="50"),
        LetRun(6),
        Status(),
        Stop(),
    ),
    "agent_calls": (*_begun(SLOW_H, agent_calls_hour="1"), LetRun(6), Status(), Stop()),
    "context": (*_begun(context_tokens="560"), *_AFTER, Settle()),
    "disk": (
        *_begun(SLOW_H, disk_mb="0.3", interval_s="0.1"),
        LetRun(10),
        Status(),
        Stop(),
    ),
}
CLOCK: dict[str, Steps] = {
    "clock_forward": (*_begun(SLOW_H), WaitForTasks(1), ClockJump(7200), *_AFTER, Settle()),
    "clock_back": (*_begun(SLOW_H), WaitForTasks(1), ClockJump(-7200), *_AFTER, Settle()),
}
AT_ONCE: dict[str, Steps] = {
    "two_starts": (
        Reset(),
        Parallel((StartSession(name="a", hours=SLOW_H), StartSession(name="b", hours=SLOW_H))),
        Status(),
        Stop(),
    ),
    "two_recoveries": (
        *_crashed(),
        Parallel((Recover(), Recover())),
        Status(),
        *_AFTER[:1],
        Settle(),
    ),
    "two_checkpoints": (
        *_begun(SLOW_H),
        WaitForTasks(1),
        Parallel((Checkpoint(), Checkpoint())),
        VerifyCheckpoint(),
        Stop(),
    ),
    "checkpoint_against_stop": (
        *_begun(SLOW_H),
        WaitForTasks(1),
        Parallel((Checkpoint(), Stop())),
        Status(),
        VerifyCheckpoint(),
    ),
    "restore_against_recover": (
        *_crashed(),
        Parallel((Restore(), Recover())),
        Status(),
        Recover(),
        *_AFTER[:1],
        Settle(),
    ),
}
SCENARIOS: dict[str, Steps] = {**FLOW, **RECOVERY, **RISKS, **LIMITS, **CLOCK, **AT_ONCE}


def scenarios_of(profile: SessionProfile) -> dict[str, Steps]:
    """Those that make sense for a target, in the order in which they are listed."""
    known = {**SCENARIOS, "in_one_go": _in_one_go(profile.brief or profile.projects[0])}
    return {name: known[name] for name in ABOUT if name not in profile.skips}
