"""Ready sequences: what a session must do, how it recovers, and how its limits are kept."""

from __future__ import annotations

from mutiny.contracts.session.about import ABOUT
from mutiny.contracts.session.operations import (
    BadWork,
    BuildProject,
    Checkpoint,
    ClockJump,
    Configure,
    Continue,
    CorruptCheckpoint,
    DiskFull,
    Health,
    LetRun,
    Metrics,
    ModelError,
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
    VerifyCheckpoint,
    WaitForCheckpoints,
    WaitForPhase,
    WaitForStatus,
    WaitForTasks,
)
from mutiny.contracts.session.profile import SessionProfile
from mutiny.contracts.session.recipes import (
    QUICK,
    SLOW_H,
    TO_THE_END,
    Steps,
    begun,
    crashed,
    in_one_go,
    through,
)
from mutiny.contracts.session.recovery_scenarios import RECOVERY
from mutiny.kit.faults import FillDisk
from mutiny.kit.operations import (
    ExpectError,
    Heal,
    Parallel,
    Reset,
    Settle,
    Sleep,
)
from mutiny.kit.recipes import misset, said_wrongly

FLOW: dict[str, Steps] = {
    "in_one_go": in_one_go("demo"),
    "whole_session": (
        *begun(),
        Status(),
        Metrics(),
        Health(),
        WaitForTasks(1),  # by now somebody is at work
        Status(),
        Metrics(),
        *TO_THE_END,
        Metrics(),
        BuildProject(),
        Settle(),
    ),
    "level": (*begun(0.01, metrics_s="0.05"), *TO_THE_END, Settle()),
    "one_agent": (*begun(SLOW_H, 1), WaitForTasks(1), Status(), LetRun(2), Status(), Stop()),
    "stopped": (
        *begun(SLOW_H),
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
        *begun(SLOW_H, calls_interval="50"),
        WaitForTasks(1),
        LetRun(2),
        Stop(),
        Status(),
        Settle(),
    ),
    "finished": (*begun(), WaitForStatus("complete"), ExpectError(Recover()), Status(), Settle()),
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
        *TO_THE_END[:1],
        Settle(),
    ),
    "recovered_while_paused": (
        *begun(SLOW_H),
        WaitForTasks(1),
        *(Checkpoint(),) * 3,
        Pause(),
        Recover(),
        *TO_THE_END,
        Settle(),
    ),
    "paused": (
        *begun(SLOW_H),
        WaitForTasks(1),
        ExpectError(Continue()),
        Pause(),
        Sleep(5.0),
        Status(),
        Metrics(),
        ExpectError(Pause()),
        ExpectError(Restore()),
        Checkpoint(),
        Continue(),
        *TO_THE_END,
        Settle(),
    ),
    "answers_in_files": (
        *(*begun(SLOW_H), WaitForTasks(1), Metrics(written=True), Report(written=True)),
        *(Stop(), Metrics(written=True), Report(written=True), Settle()),
    ),
    "machine_goes_down": (
        *(
            *begun(SLOW_H),
            WaitForTasks(2),
            SystemCrash(asked=True),
            Status(),
            ExpectError(Health()),
        ),
        *(Recover(), Status(), *TO_THE_END, Settle()),
    ),
    "checkpoint_without_room": (
        *begun(0.02, 2, calls_interval="900", interval_s="9000"),
        *(WaitForTasks(1), FillDisk(lasting=True), Checkpoint(), Checkpoint(), Status(), Heal()),
        *(Recover(), WaitForTasks(2), Status(), Metrics(), Stop(), Settle()),
    ),
    "corrupt_delta_of_the_named": (
        *(*begun(SLOW_H), WaitForTasks(3), SystemCrash(), CorruptCheckpoint("delta")),
        *(Restore(checkpoint=1), Status(), Recover(), *TO_THE_END, Settle()),
    ),
    "gone_back_to_the_first": (
        *crashed(Restore(checkpoint=0), Status(), VerifyCheckpoint(), Metrics(), Report()),
        *(Recover(), Status(), Metrics(), Report(), *TO_THE_END, Metrics(), Settle()),
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
        *begun(0.05),
        *said_wrongly(Status(), Checkpoint(), Restore()),
        *misset(Status(), 2),
        *misset(Checkpoint()),
        Stop(),
        Status(),
    ),
    "two_sessions": (
        *begun(SLOW_H),
        WaitForTasks(1),
        Stop(),
        StartSession(hours=0.002),
        *TO_THE_END,
        Settle(),
    ),
    "by_time": (
        *begun(
            0.008, agents=2, interval_s="1", calls_interval="900000", tokens_interval="900000000"
        ),
        WaitForCheckpoints(4),
        Stop(),
    ),
    "by_calls": (
        *begun(0.003, agents=1, interval_s="9000", calls_interval="1", tokens_interval="900000000"),
        *TO_THE_END,
        Settle(),
    ),
    "by_tokens": (
        *begun(0.003, agents=1, interval_s="9000", calls_interval="900000", tokens_interval="100"),
        *TO_THE_END,
        Settle(),
    ),
    "by_phase": (
        *begun(interval_s="9000", calls_interval="900000", tokens_interval="900000000"),
        WaitForPhase(3),
        *TO_THE_END,
        Settle(),
    ),
}
RISKS: dict[str, Steps] = {
    "model_is_down": through(ModelError("overload", 1000, model="claude-sonnet-4-5")),
    "endless_tool": (
        *begun(tool_timeout_s="0.3", task_attempts="1"),
        ToolTimeout(1000),
        WaitForStatus("paused"),
        Status(),
        Stop(),
    ),
    "endless_errors": (
        *begun(retries="1", backoffs="2", task_attempts="1", backoff_s="0.02", backoff_cap_s="0.1"),
        ModelError("overload", 100_000),
        WaitForStatus("paused"),
        Status(),
        Health(),
        Stop(),
    ),
    "disk_full": (*begun(SLOW_H), WaitForTasks(1), DiskFull(), Recover(), *TO_THE_END, Settle()),
    "commands_without_room": (
        *begun(0.02, 2, calls_interval="900", interval_s="9000"),
        *(WaitForTasks(1), FillDisk(lasting=True), *((Pause(), Continue()) * 20), Heal()),
        *(Recover(), LetRun(2), Pause(), VerifyCheckpoint(), SystemCrash(), Recover()),
        *(Status(), Stop(), Settle()),
    ),
    "scope_creep": (
        *begun(backoff_cap_s="0.5", gate_wait_s="0.2"),
        BadWork(),
        WaitForStatus("paused"),
        Status(),
        VerifyCheckpoint(),
        Stop(),
    ),
    "endless_tests": (
        *begun(test_time_s="1", tool_timeout_s="15", gate_wait_s="0.2"),
        BadWork("endless"),
        WaitForStatus("paused"),
        Status(),
        Stop(),
    ),
    "tests_endless_later": (
        *begun(test_time_s="4", gate_wait_s="0.2", gate_attempts="2"),
        BadWork("later"),
        WaitForStatus("paused"),
        Status(),
        Stop(),
    ),
    "cost_overrun": (
        *begun(SLOW_H, total_tokens="3000"),
        WaitForStatus("paused"),
        Status(),
        Configure("total_tokens", "5000000"),
        Recover(),
        *TO_THE_END,
        Settle(),
    ),
}
for _name, _how in (
    ("dangerous_code", "dangerous"),
    *((_how, _how) for _how in ("undocumented", "unreleased", "unreviewed")),
):
    RISKS[_name] = (
        *begun(gate_wait_s="0.2", gate_attempts="2"),
        BadWork(_how),
        WaitForStatus("paused"),
        Status(),
        Stop(),
    )
for _part in ("body", "key", "field", "newest", "delta"):
    RISKS[f"corrupt_{_part}"] = (
        *crashed(CorruptCheckpoint(_part)),
        Status(),
        Recover(),
        *TO_THE_END[:1],
        Status(),
        Settle(),
    )
RISKS["times_changed"] = (*crashed(TouchCheckpoints()), Status(), Recover(), *TO_THE_END, Settle())
RISKS["corrupt_delta"] = (
    *begun(SLOW_H),
    WaitForTasks(3),
    SystemCrash(),
    CorruptCheckpoint("delta"),
    *RISKS["corrupt_delta"][-5:],
)
for _part in ("body", "delta"):
    RISKS[f"resumed_with_damaged_{_part}"] = (
        *begun(SLOW_H),
        WaitForTasks(3),
        SystemCrash(),
        CorruptCheckpoint(_part),
        Recover(),
        *TO_THE_END[:1],
        Settle(),
    )
RISKS["damaged_and_looked_at"] = (*crashed(CorruptCheckpoint("body")), Report(), Report())
RISKS["corrupt_all"] = (
    *crashed(CorruptCheckpoint("all")),
    ExpectError(VerifyCheckpoint()),
    ExpectError(Restore()),
    ExpectError(Recover()),
    Status(),
)
RISKS["corrupt_named"] = (
    *crashed(CorruptCheckpoint("body")),
    ExpectError(VerifyCheckpoint()),
    Restore(checkpoint=0),
    Recover(),
    WaitForStatus("complete"),
    Settle(),
)
LIMITS: dict[str, Steps] = {
    "agent_tokens": (*begun(SLOW_H, agent_tokens_hour="700"), LetRun(6), Status(), Stop()),
    "settings_spoiled": (
        *begun(
            0.008, agents=2, interval_s="1", calls_interval="900000", tokens_interval="900000000"
        ),
        *(LetRun(10, misset=True), Status(), Stop()),
    ),
    "agent_calls_used": (
        *begun(SLOW_H, agent_calls_hour="2", calls_interval="50"),
        LetRun(6),
        Status(),
        Stop(),
    ),
    "agent_calls": (*begun(SLOW_H, agent_calls_hour="1"), LetRun(6), Status(), Stop()),
    "context": (*begun(context_tokens="560"), *TO_THE_END, Settle()),
    "disk": (
        *begun(SLOW_H, disk_mb="0.3", interval_s="0.1"),
        LetRun(10),
        Status(),
        Stop(),
    ),
}
CLOCK: dict[str, Steps] = {
    "clock_forward": (*begun(SLOW_H), WaitForTasks(1), ClockJump(7200), *TO_THE_END, Settle()),
    "clock_back": (*begun(SLOW_H), WaitForTasks(1), ClockJump(-7200), *TO_THE_END, Settle()),
}
AT_ONCE: dict[str, Steps] = {
    "two_starts": (
        Reset(),
        Parallel((StartSession(name="a", hours=SLOW_H), StartSession(name="b", hours=SLOW_H))),
        Status(),
        Stop(),
    ),
    "two_recoveries": (
        *crashed(),
        Parallel((Recover(), Recover())),
        Status(),
        *TO_THE_END[:1],
        Settle(),
    ),
    "two_checkpoints": (
        *begun(SLOW_H),
        WaitForTasks(1),
        Parallel((Checkpoint(), Checkpoint())),
        VerifyCheckpoint(),
        Stop(),
    ),
    "checkpoint_against_stop": (
        *begun(SLOW_H),
        WaitForTasks(1),
        Parallel((Checkpoint(), Stop())),
        Status(),
        VerifyCheckpoint(),
    ),
    "restore_against_recover": (
        *crashed(),
        Parallel((Restore(), Recover())),
        Status(),
        Recover(),
        *TO_THE_END[:1],
        Settle(),
    ),
}
SCENARIOS: dict[str, Steps] = {**FLOW, **RECOVERY, **RISKS, **LIMITS, **CLOCK, **AT_ONCE}


def scenarios_of(profile: SessionProfile) -> dict[str, Steps]:
    """Those that make sense for a target, in the order in which they are listed."""
    known = {**SCENARIOS, "in_one_go": in_one_go(profile.brief or profile.projects[0])}
    return {name: known[name] for name in ABOUT if name not in profile.skips}
