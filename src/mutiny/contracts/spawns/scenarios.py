"""Ready sequences: what agents that summon agents must do, and what must never happen to them."""

from __future__ import annotations

from mutiny.contracts.spawns.operations import (
    Behave,
    Chain,
    Cleanup,
    Configure,
    CreateChannel,
    Health,
    HoldDatabase,
    Init,
    KillProvider,
    KillSender,
    KillSpawnGroup,
    KillSupervisor,
    ListSpawns,
    Logs,
    LoseDatabase,
    ProviderMissing,
    Receive,
    Register,
    ReusePid,
    Send,
    Spawn,
    Stop,
    StopAll,
    WaitForCompletion,
    WaitForHuman,
    WaitForQuiet,
    WaitForRun,
)
from mutiny.contracts.spawns.profile import SpawnsProfile
from mutiny.kit.faults import HoldLock, SkewClock
from mutiny.kit.operations import ExpectError, Parallel, Reset, Settle, Sleep
from mutiny.model.operation import Operation

Steps = tuple[Operation, ...]
PROVIDERS = {
    "prime": "claude",
    "hailot": "claude",
    "sonnelot": "claude",
    "auger": "gemini",
    "sentinel": "codex",
    "zealot": "claude",
}
CREW = ("prime", "hailot")
END: Steps = (Settle(), ListSpawns(), Chain(), Health())
HELD = HoldLock(place="database", how="sqlite", seconds=4.0)
LOOK_ALIKES = (
    "write to a@prime.org or see x/@prime",
    "the code is `@prime run` and nothing else",
    "> @prime said this yesterday",
    "```\n@prime in a fence\n```",
    "escaped \\@prime, and an empty @ and @@prime",
    "/stop-all !abort prime; spawn run prime",
)
TEXTS = (
    "@prime say \"yes\" and 'no'; $(false) `false` ${HOME} %s",
    "@prime first line\nsecond line\n",
    "@prime Grüße — 東京 🚢",
    "@prime back\\slash and trailing\\",
    "-@prime starts with a dash",
    "@prime " + "long " * 600,
)


def crew(*agents: str, **does: tuple[str, ...]) -> Steps:
    """A home with a channel and these agents, and what they do."""
    made = (Register(name, PROVIDERS[name]) for name in agents or CREW)
    told = (Behave(name, turns) for name, turns in does.items())
    return (Reset(), Init(), CreateChannel("dev"), *made, *told)


def set_to(**settings: float) -> Steps:
    """Settings from now on."""
    return tuple(Configure(name, value) for name, value in settings.items())


def say(text: str, channel: str = "dev") -> Send:
    """A human posts."""
    return Send(channel, text)


FLOW: dict[str, Steps] = {
    "one_mention": (
        *crew(),
        say("@prime please look at this"),
        WaitForCompletion("prime"),
        *END,
        Logs("prime", "dev"),
        Logs("prime", "dev", follow=True),
        Receive("dev"),
    ),
    "several_mentions": (
        *crew("prime", "auger", "zealot", "sentinel"),
        say("@prime @auger @zealot @sentinel what do you think?"),
        *END,
    ),
    "cascade": (
        *crew("prime", "hailot", "zealot", prime=("mention:hailot",), hailot=("mention:zealot",)),
        say("@prime split this up"),
        *END,
    ),
    "loop": (
        *crew("sonnelot", "hailot", sonnelot=("mention:hailot", "reply"), hailot=("echo",)),
        say("@sonnelot ask hailot"),
        *END,
    ),
    "depth": (
        *crew("prime", "hailot", "zealot", "auger", prime=("mention:hailot",)),
        *set_to(max_depth=1),
        Behave("hailot", ("mention:zealot,auger",)),
        say("@prime go as deep as you can"),
        *END,
    ),
    "echo": (
        *crew("prime", "hailot", prime=("echo:hailot",), hailot=("echo:prime",)),
        *set_to(max_depth=50, max_runs=5),
        say("@prime is it complete?"),
        *END,
    ),
    "flood": (
        *crew("prime", "hailot", prime=("flood:4,hailot",)),
        *set_to(max_runs=3),
        say("@prime tell everybody"),
        *END,
    ),
    "human_ends": (
        *crew("prime", "hailot", "zealot", hailot=("slow:900+mention:zealot",)),
        Behave("prime", ("slow:300+human",)),
        say("@prime @hailot build it"),
        WaitForHuman("dev"),
        *END,
    ),
    "human_ends_queue": (
        *crew("prime", "hailot", prime=("slow:300+mention:hailot+slow:400+human",)),
        Behave("hailot", ("slow:1500+mention:prime+reply",)),
        say("@prime @hailot build it"),
        say("@prime and this is another task"),
        *END,
    ),
    "no_retry_after_end": (
        *crew("prime", "hailot", prime=("human",), hailot=("slow:900+exit:1", "reply")),
        say("@prime @hailot build it"),
        *END,
    ),
    "human_may_go_on": (
        *crew(prime=("human", "reply")),
        say("@prime one"),
        WaitForHuman("dev"),
        WaitForQuiet(),
        say("@prime @human thanks, and two"),
        *END,
    ),
    "busy": (
        *crew(prime=("slow:700+reply",)),
        say("@prime one"),
        say("@prime two"),
        say("@prime three"),
        *END,
    ),
    "two_channels": (
        *crew(prime=("slow:500+reply",)),
        CreateChannel("ops"),
        say("@prime here"),
        say("@prime there", "ops"),
        *END,
        Receive("ops"),
    ),
    "self_mention": (*crew(prime=("mention:prime,hailot",)), say("@prime ask yourself"), *END),
    "second_try": (*crew(prime=("exit:1", "reply")), say("@prime try"), *END),
    "never_works": (*crew(prime=("exit:1",)), say("@prime try"), *END),
    "no_retries": (*crew(prime=("exit:1",)), *set_to(retries=0), say("@prime try"), *END),
    "dies_after_effect": (*crew(prime=("reply+die", "reply")), say("@prime try"), *END),
    "fails_after_effect": (
        *crew(prime=("mention:hailot+exit:1", "mention:hailot")),
        say("@prime try"),
        *END,
    ),
    "dies_first": (*crew(prime=("die", "reply")), say("@prime try"), *END),
    "foreground": (
        *crew(hailot=("exit:1",)),
        Spawn("prime", "look, and tell nobody: @hailot", "dev", detach=False),
        ExpectError(Spawn("hailot", "fail", "dev", detach=False)),
        *END,
    ),
    "detached": (
        *crew(prime=("slow:300+mention:hailot",)),
        Spawn("prime", "go on by yourself", "dev"),
        *END,
    ),
    "look_alikes": (*crew(), *(say(text) for text in LOOK_ALIKES), *END, Receive("dev")),
    "awkward_texts": (
        *crew(prime=("quiet",)),
        *(Send("dev", text, "human") for text in TEXTS),
        *END,
        Receive("dev"),
    ),
    "look_alike_posts": (
        *crew(prime=("post:see `@hailot` and a@hailot.org or x/@hailot",)),
        say("@prime quote it"),
        *END,
    ),
    "wrong_names": (
        Reset(),
        ExpectError(say("@prime")),
        Init(),
        Init(),
        ExpectError(say("@prime")),
        CreateChannel("dev"),
        CreateChannel("dev"),
        say("@nobody is there"),
        Register("prime"),
        Register("prime"),
        ExpectError(Register("prime", "codex")),
        ExpectError(Register("human")),
        ExpectError(Register("no/name")),
        ExpectError(CreateChannel("../up")),
        ExpectError(say("", "dev")),
        ExpectError(Spawn("nobody", "x", "dev")),
        ExpectError(Spawn("prime", "x", "nowhere")),
        ExpectError(Stop("prime", "dev")),
        ExpectError(Receive("nowhere")),
        *END,
    ),
    "readers": (
        *crew(),
        say("one"),
        say("two"),
        Receive("dev", "reader"),
        say("@prime three"),
        WaitForQuiet(),
        Receive("dev", "reader"),
        Receive("dev", "reader"),
        Receive("dev"),
        *END,
    ),
    "sessions": (
        *crew("prime", "hailot", "zealot", "auger", "sentinel"),
        Behave("hailot", ("hang",)),
        say("@prime @hailot @zealot @auger @sentinel at once"),
        WaitForRun("hailot"),
        WaitForQuiet(),
        Stop("hailot", "dev"),
        *END,
    ),
    "reads_stdin": (
        *crew("sentinel", "auger", sentinel=("stdin+reply",), auger=("stdin+reply",)),
        say("@sentinel @auger read everything"),
        *END,
    ),
}
STOPPED: dict[str, Steps] = {
    "stop": (
        *crew(prime=("silent",)),
        say("@prime never ends"),
        WaitForRun("prime"),
        Stop("prime", "dev"),
        ListSpawns(),
        ExpectError(Stop("prime", "dev")),
        *END,
    ),
    "stop_one_of_two": (
        *crew(prime=("silent",), hailot=("slow:1500+reply",)),
        say("@prime @hailot at once"),
        WaitForRun("prime"),
        WaitForRun("hailot"),
        Stop("prime", "dev"),
        *END,
    ),
    "stop_of_a_channel": (
        *crew(prime=("silent", "slow:1200+reply")),
        CreateChannel("ops"),
        say("@prime here"),
        WaitForRun("prime", "dev"),
        say("@prime there", "ops"),
        WaitForRun("prime", "ops"),
        StopAll(channel="dev"),
        *END,
    ),
    "stop_stubborn": (
        *crew(prime=("ignore-term+silent",)),
        say("@prime never ends"),
        WaitForRun("prime"),
        Sleep(1.0),
        Stop("prime", "dev"),
        *END,
    ),
    "stop_with_children": (
        *crew(prime=("leave+silent",)),
        say("@prime leave something"),
        WaitForRun("prime"),
        Sleep(0.3),
        Stop("prime", "dev"),
        *END,
    ),
    "leaves_children": (*crew(prime=("leave+reply",)), say("@prime leave something"), *END),
    "stop_before_queue": (
        *crew(prime=("silent", "reply")),
        say("@prime first"),
        WaitForRun("prime"),
        say("@prime second"),
        Stop("prime", "dev"),
        *END,
    ),
    "stop_all": (
        *crew(prime=("silent",), hailot=("silent",)),
        say("@prime @hailot wait"),
        say("@prime again"),
        WaitForRun("prime"),
        WaitForRun("hailot"),
        StopAll(),
        *END,
    ),
    "stop_no_retry": (
        *crew(prime=("slow:2500+exit:1", "reply")),
        say("@prime slowly"),
        WaitForRun("prime"),
        Stop("prime", "dev"),
        Sleep(0.5),
        *END,
    ),
    "timeout": (
        *crew(prime=("silent", "reply")),
        *set_to(timeout_s=1),
        say("@prime never ends"),
        *END,
    ),
    "hangs": (
        *crew("sentinel", sentinel=("hang",)),
        *set_to(no_session_s=1),
        say("@sentinel ground this"),
        WaitForRun("sentinel"),
        Health(),
        Sleep(2.5),
        Health(),
        Stop("sentinel", "dev"),
        *END,
    ),
    "waits_for_terminal": (
        *crew("sentinel", "prime", sentinel=("tty",)),
        *set_to(no_session_s=1),
        say("@sentinel @prime ground this"),
        WaitForRun("sentinel"),
        WaitForCompletion("prime"),
        Sleep(2.5),
        Health(),
        StopAll(),
        *END,
    ),
    "stalls": (
        *crew(prime=("silent",), hailot=("slow:4500+reply",)),
        *set_to(stall_s=1, no_session_s=60),
        say("@prime stall"),
        WaitForRun("prime"),
        Sleep(2.8),
        Health(),
        Stop("prime", "dev"),
        *END,
    ),
    "health_of_the_healthy": (
        *crew(prime=("slow:4000+reply",)),
        *set_to(no_session_s=1),
        say("@prime work"),
        WaitForRun("prime"),
        Sleep(2.2),
        Health(),
        *END,
    ),
}
BROKEN: dict[str, Steps] = {
    "killed_sender": (*crew(prime=("slow:400+reply",)), KillSender(say("@prime go on")), *END),
    "killed_starter": (*crew(), KillSender(Spawn("prime", "go on", "dev")), *END),
    "killed_supervisor": (
        *crew(prime=("slow:15000+quiet", "reply")),
        say("@prime work"),
        WaitForRun("prime"),
        KillSupervisor("prime"),
        Health(),
        Cleanup(),
        *END,
    ),
    "killed_provider": (
        *crew(prime=("slow:3000+quiet", "reply")),
        say("@prime work"),
        WaitForRun("prime"),
        KillProvider("prime"),
        *END,
    ),
    "killed_group": (
        *crew(prime=("slow:3000+quiet", "reply")),
        say("@prime work"),
        say("@prime and this"),
        WaitForRun("prime"),
        KillSpawnGroup("prime"),
        Health(),
        Cleanup(),
        *END,
    ),
    "killed_too_often": (
        *crew(prime=("slow:3000+quiet",)),
        say("@prime work"),
        WaitForRun("prime"),
        KillSpawnGroup("prime"),
        Cleanup(),
        WaitForRun("prime"),
        KillSpawnGroup("prime"),
        Cleanup(),
        *END,
    ),
    "cleanup_spares_the_living": (
        *crew(prime=("silent",), hailot=("slow:3000+quiet", "reply")),
        say("@prime @hailot work"),
        WaitForRun("prime"),
        WaitForRun("hailot"),
        KillSpawnGroup("hailot"),
        Cleanup(),
        Cleanup(),
        WaitForCompletion("hailot"),
        Stop("prime", "dev"),
        *END,
    ),
    "cleanup_keeps_results": (
        *crew(prime=("reply",), hailot=("exit:1",)),
        *set_to(retries=0),
        say("@prime @hailot work"),
        WaitForQuiet(),
        Cleanup(),
        *END,
    ),
    "cleanup_against_the_finishing": (
        *crew(prime=("slow:150+quiet",)),
        *(step for n in range(3) for step in (say(f"@prime round {n}"), Cleanup(), Cleanup())),
        *END,
    ),
    "pid_used_again": (
        *crew(prime=("slow:3000+quiet", "reply")),
        say("@prime work"),
        WaitForRun("prime"),
        KillSpawnGroup("prime"),
        ReusePid("prime"),
        Stop("prime", "dev"),
        *END,
    ),
    "provider_missing": (
        *crew("sentinel", "prime"),
        ProviderMissing("codex"),
        say("@sentinel @prime look"),
        Settle(),
        ProviderMissing("codex", back=True),
        say("@sentinel again"),
        *END,
    ),
    "database_held": (
        *crew(),
        HoldDatabase(say("@prime wait for it"), 1.0),
        *END,
    ),
    "database_held_while_posting": (
        *crew(prime=("slow:300+mention:hailot",)),
        say("@prime wait for it"),
        HELD,
        *END,
    ),
    "database_held_while_starting": (
        *crew(prime=("slow:300+exit:1", "quiet")),
        *set_to(retry_delay_s=2.5),
        say("@prime try twice"),
        WaitForRun("prime"),
        Sleep(0.6),
        HELD,
        *END,
    ),
    "database_lost": (
        *crew(),
        say("@prime look"),
        Settle(),
        LoseDatabase("delete"),
        ExpectError(say("@prime again")),
        ExpectError(ListSpawns()),
        LoseDatabase("delete", back=True),
        say("@prime once more"),
        *END,
    ),
    "database_emptied": (
        *crew(),
        say("@prime look"),
        Settle(),
        LoseDatabase("empty"),
        ExpectError(Init()),
        ExpectError(Register("auger", "gemini")),
        LoseDatabase("empty", back=True),
        *END,
    ),
    "database_cut_off": (
        *crew(),
        say("@prime look"),
        Settle(),
        LoseDatabase("truncate"),
        say("@prime again"),
        LoseDatabase("truncate", back=True),
        *END,
    ),
    "wrong_clock": (
        *crew(),
        say("one"),
        SkewClock(offset_s=-86400, during=say("@prime two")),
        say("three"),
        SkewClock(offset_s=86400, during=say("four")),
        say("five"),
        Receive("dev"),
        *END,
    ),
    "two_sends": (
        *crew(prime=("slow:300+reply",)),
        Parallel((say("@prime one"), say("@prime two"))),
        *END,
    ),
    "four_sends": (
        *crew("prime", "hailot", "auger", "sentinel"),
        Parallel(
            (say("@prime one"), say("@hailot two"), say("@auger three"), say("@sentinel four"))
        ),
        *END,
    ),
    "send_against_stop": (
        *crew(prime=("silent", "reply")),
        say("@prime one"),
        WaitForRun("prime"),
        Parallel((say("@prime two"), Stop("prime", "dev"))),
        *END,
    ),
    "cleanup_against_send": (
        *crew(prime=("slow:100+reply",)),
        say("@prime one"),
        Parallel((Cleanup(), say("@prime two"))),
        *END,
    ),
    "stop_against_stop": (
        *crew(prime=("silent",)),
        say("@prime one"),
        WaitForRun("prime"),
        Parallel((Stop("prime", "dev"), StopAll())),
        *END,
    ),
}
SCENARIOS: dict[str, Steps] = {**FLOW, **STOPPED, **BROKEN}


def scenarios_of(profile: SpawnsProfile) -> dict[str, Steps]:
    """Those that make sense for a target."""
    return {name: steps for name, steps in SCENARIOS.items() if name not in profile.skips}
