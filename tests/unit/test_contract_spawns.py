"""The spawns contract without a target: mentions, outcomes, and every rule with a case that trips it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from mutiny.contracts.spawns import operations as op
from mutiny.contracts.spawns.about import ABOUT
from mutiny.contracts.spawns.book import BOOK, clock_bent
from mutiny.contracts.spawns.contract import SpawnsContract
from mutiny.contracts.spawns.invariants import ORDER, SAME
from mutiny.contracts.spawns.mentions import agents_in, calls_human, names_in
from mutiny.contracts.spawns.model import Sent, SpawnsModel
from mutiny.contracts.spawns.observation import (
    Happened,
    Invocation,
    Message,
    Run,
    SpawnsSeen,
)
from mutiny.contracts.spawns.profile import SpawnsProfile
from mutiny.contracts.spawns.rules import RULES
from mutiny.contracts.spawns.scenarios import LOOK_ALIKES, SCENARIOS
from mutiny.kit.beliefs import Beliefs
from mutiny.kit.faults import SkewClock
from mutiny.kit.judging import Moment
from mutiny.kit.operations import Parallel, Settle
from mutiny.kit.rules import ANSWERS
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict

NOW = 1000.0
SENT = op.Send("dev", "@prime go")
AGENTS = {"prime": "claude", "hailot": "claude"}
TEXT = "@prime go"
SUPERVISOR, PROVIDER = (10, 100), (11, 101)
CONTRACT = SpawnsContract()


# --- mentions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@prime go", ("prime",)),
        ("(@prime), @Hailot: and @prime again", ("prime", "hailot")),
        ("ask @prime-2.", ("prime-2",)),
        ("ask @prime- now", ("prime",)),
        ("@human look", ("human",)),
        *((text, ()) for text in LOOK_ALIKES[:4]),
        ("escaped \\@prime", ()),
        ("a.@prime b-@prime c+@prime", ()),
        ("  > quoted @prime\nand @hailot", ("hailot",)),
        ("~~~\n@prime\n~~~\n@hailot", ("hailot",)),
    ],
)
def test_what_a_text_mentions(text: str, names: tuple[str, ...]) -> None:
    assert names_in(text) == names
    assert agents_in(text) == tuple(name for name in names if name != "human")
    assert calls_human(text) is ("human" in names)


# --- one healthy look, and what is wrong with it ----------------------------------------------------------


def message(number: int = 1, text: str = TEXT, **more: Any) -> Message:
    return replace(Message(number, "dev", "human", text), **more)


def running(**more: Any) -> Run:
    run = Run(
        1,
        "prime",
        "dev",
        1,
        "running",
        attempt=1,
        supervisor=SUPERVISOR,
        provider=PROVIDER,
        supervised=True,
        provided=True,
        started=NOW - 5,
    )
    return replace(run, **more)


def completed(**more: Any) -> Run:
    over = running(status="completed", supervised=False, provided=False, session="a")
    return replace(over, **more)


def invocation(**more: Any) -> Invocation:
    one = Invocation(1, 1, "prime", PROVIDER, True, TEXT, 1, "reply", "a")
    return replace(one, **more)


def ended(**more: Any) -> Invocation:
    return invocation(alive=False, exit_code=0, **more)


def seen(*runs: Run, **more: Any) -> SpawnsSeen:
    look = SpawnsSeen(
        at=NOW,
        home=True,
        agents=AGENTS,
        channels=frozenset({"dev"}),
        messages={1: message()},
        runs={run.id: run for run in runs},
    )
    return replace(look, **more)


def model(**more: Any) -> SpawnsModel:
    known = SpawnsModel(
        home=True,
        agents={name: (provider, "") for name, provider in AGENTS.items()},
        channels=frozenset({"dev"}),
        sent=(Sent("dev", "human", TEXT, "", 1),),
    )
    return replace(known, **more)


BEFORE = SpawnsSeen(at=NOW - 1, home=True, agents=AGENTS, channels=frozenset({"dev"}))
LIVE = seen(running(), invocations=(invocation(),))
DONE = seen(completed(), invocations=(ended(),))


def broken(
    now: SpawnsSeen,
    believed: SpawnsModel | None = None,
    before: SpawnsSeen = BEFORE,
    operation: Operation = SENT,
) -> set[str]:
    checked = CONTRACT.check(Beliefs((believed or model(),)), operation, True, before, now)
    assert not checked.unreadable
    return {one.rule.removeprefix("spawns.") for one in (*checked.broken, *checked.settling)}


@pytest.mark.parametrize("look", [LIVE, DONE], ids=["running", "completed"])
def test_what_is_right_is_not_accused(look: SpawnsSeen) -> None:
    assert broken(look) == set()
    assert broken(look, before=look, operation=op.Cleanup()) == set()


def posted(number: int, spawn: int, text: str, **more: Any) -> Message:
    return Message(number, "dev", "prime", text, spawn, **{"attempt": 1, **more})


def chain(deep: int) -> SpawnsSeen:
    """prime starts hailot starts prime and so on."""
    names = [("prime", "hailot")[n % 2] for n in range(deep + 1)]
    messages = {1: message()}
    runs = {}
    for n, name in enumerate(names, 1):
        runs[n] = completed(id=n, agent=name, message=n, session=f"{n}")
        text = f"@{names[n]} go" if n < len(names) else "done"
        messages[n + 1] = Message(n + 1, "dev", name, text, n, 1)
    return seen(*runs.values(), messages=messages)


ASKED_TWICE = (Sent("dev", "human", TEXT, "", 1), Sent("dev", "human", TEXT, "", 2))


def asked_twice(began: tuple[float, float], **more: Any) -> SpawnsSeen:
    """Two runs of one agent for two messages, and when each of them began."""
    runs = (completed(), completed(id=2, message=2, provider=(12, 1), session="b"))
    second = {"spawn": 2, "identity": (12, 1), "message": 2, "session": "b"}
    told = (ended(at=began[0]), ended(at=began[1], **second))
    return seen(*runs, messages={1: message(), 2: message(2)}, invocations=told, **more)


ENDED = {1: message(text="@prime @hailot go"), 2: posted(2, 1, "@human complete")}
CASES: dict[str, tuple[str, SpawnsSeen, dict[str, Any]]] = {
    "unreadable": ("database_whole", replace(LIVE, error="torn"), {}),
    "gone": ("database_whole", SpawnsSeen(at=NOW), {}),
    "agent gone": ("registered", replace(LIVE, agents={"prime": "claude"}), {}),
    "other provider": ("registered", replace(LIVE, agents={**AGENTS, "hailot": "codex"}), {}),
    "message gone": ("messages_kept", seen(messages={}), {}),
    "message changed": ("messages_kept", seen(running(), messages={1: message(text="x")}), {}),
    "message invented": (
        "messages_kept",
        replace(DONE, messages={1: message(), 2: message(2, "hello")}),
        {},
    ),
    "post gone": ("messages_kept", seen(completed(), invocations=(ended(posts=(7,)),)), {}),
    "post doubled": (
        "messages_kept",
        replace(
            DONE,
            messages={1: message(), 2: posted(2, 1, "x"), 3: posted(3, 1, "x")},
            invocations=(ended(posting=1, posts=(2,)),),
        ),
        {},
    ),
    "order": (
        "messages_ordered",
        replace(DONE, messages={1: message(), 2: message(2, "a")}),
        {
            "believed": model(
                sent=(Sent("dev", "human", "a", "", 2), Sent("dev", "human", TEXT, "", 1))
            )
        },
    ),
    "no run": ("mention_runs", seen(), {}),
    "no run of a send that was broken off": (
        "mention_runs",
        seen(),
        {
            "before": seen(),
            "operation": Settle(),
            "believed": model(sent=(Sent("dev", "human", TEXT, knew=frozenset({"prime"})),)),
        },
    ),
    "a look-alike": (
        "only_mentions",
        seen(
            completed(),
            messages={1: message(text="a@prime.org")},
            invocations=(ended(task="a@prime.org"),),
        ),
        {"believed": model(sent=(Sent("dev", "human", "a@prime.org", "", 1),))},
    ),
    "another root": ("origin_true", replace(DONE, runs={1: completed(root=4)}), {}),
    "two runs": (
        "run_once",
        seen(
            completed(),
            completed(id=2, session="b"),
            invocations=(ended(), ended(spawn=2, session="b")),
        ),
        {},
    ),
    "started twice": (
        "run_once",
        seen(completed(), invocations=(ended(), ended(identity=(12, 1)))),
        {},
    ),
    "refused and run": (
        "run_once",
        seen(completed(status="refused", reason="depth"), invocations=(ended(),)),
        {},
    ),
    "another text": ("text_received", seen(completed(), invocations=(ended(task="hm"),)), {}),
    "nobody heard it": ("text_received", seen(completed(session="")), {}),
    "effect doubled": (
        "effect_once",
        replace(
            DONE,
            runs={1: completed(attempt=2)},
            messages={1: message(), 2: posted(2, 1, "x")},
            invocations=(
                replace(ended(posting=1, posts=(2,)), exit_code=1),
                ended(attempt=2, identity=(12, 1)),
            ),
        ),
        {},
    ),
    "two live": (
        "one_live",
        seen(
            running(),
            running(id=2, message=2, provider=(13, 1), supervisor=(12, 1)),
            messages={1: message(), 2: message(2)},
        ),
        {
            "believed": model(
                sent=(Sent("dev", "human", TEXT, "", 1), Sent("dev", "human", TEXT, "", 2))
            )
        },
    ),
    "too deep": ("depth_bound", chain(4), {}),
    "too many": ("runs_bounded", chain(3), {"settings": {"max_runs": 2}}),
    "too many at once": ("running_bounded", LIVE, {"settings": {"max_running": 0}}),
    "the second came first": (
        "first_come",
        asked_twice((NOW - 1, NOW - 3)),
        {"believed": model(sent=ASKED_TWICE)},
    ),
    "given up too soon": (
        "has_its_time",
        seen(completed(status="failed", reason="timeout", ended=NOW - 4.5)),
        {"settings": {"timeout_s": 2}},
    ),
    "after the end": (
        "nothing_after_end",
        seen(
            completed(),
            completed(id=2, agent="hailot", session="b"),
            messages=ENDED,
            events=(
                Happened(1, "running", 1, 1),
                Happened(2, "message", 2, 1),
                Happened(3, "running", 1, 2),
            ),
            invocations=(ended(posting=1, posts=(2,)), ended(spawn=2, agent="hailot", session="b")),
        ),
        {},
    ),
    "tried too often": ("retries", seen(completed(attempt=3)), {}),
    "not tried again": (
        "retries",
        seen(
            completed(status="failed", reason="exit 1"),
            invocations=(replace(ended(), exit_code=1),),
        ),
        {},
    ),
    "dead supervisor": (
        "row_true",
        seen(running(supervised=False), invocations=(invocation(),)),
        {},
    ),
    "lives on": ("row_true", seen(completed(provided=True), invocations=(ended(),)), {}),
    "ended, and runs": ("times_true", seen(running(ended=NOW), invocations=(invocation(),)), {}),
    "ended at no time": ("times_true", DONE, {"before": seen(completed(ended=NOW - 2))}),
    "not well": (
        "result_true",
        seen(completed(), invocations=(replace(ended(), exit_code=1),)),
        {},
    ),
    "well, and failed": (
        "result_true",
        seen(
            completed(status="failed", reason="?", attempt=2),
            invocations=(ended(attempt=2, identity=(12, 1)),),
        ),
        {},
    ),
    "changed its end": (
        "result_kept",
        seen(completed(status="failed", reason="cleanup")),
        {"before": DONE},
    ),
    "no pid": ("pid_first", seen(running(provider=None), invocations=(invocation(),)), {}),
    "acted first": ("pid_first", seen(running(), invocations=(invocation(at=NOW - 6),)), {}),
    "posted first": (
        "pid_first",
        replace(
            DONE,
            messages={1: message(), 2: posted(2, 1, "x")},
            invocations=(ended(posting=1, posts=(2,)),),
            events=(Happened(1, "message", 2, 1), Happened(2, "running", 1, 1)),
        ),
        {},
    ),
    "session of another": (
        "session_own",
        seen(completed(session="b"), invocations=(ended(), ended(spawn=2, session="b"))),
        {},
    ),
    "fell": (
        "outlives_starter",
        seen(completed(status="failed", reason="signal 9"), invocations=(invocation(alive=False),)),
        {},
    ),
    "never begun": (
        "outlives_starter",
        seen(running(status="pending", attempt=0, provider=None, supervised=False, provided=False)),
        {},
    ),
    "stopped, and lives": (
        "stop_stops",
        seen(completed(status="stopped", provided=True), invocations=(invocation(),)),
        {"stopped": frozenset({1})},
    ),
    "nobody stopped it": ("only_named", seen(completed(status="stopped")), {"before": LIVE}),
    "a stranger killed": ("only_named", replace(DONE, killed=1), {"before": DONE}),
    "cleaned up alive": (
        "cleanup_only_dead",
        seen(completed(status="failed", reason="dead"), invocations=(invocation(),)),
        {"before": LIVE, "operation": op.Cleanup()},
    ),
    "no reason": (
        "reason_given",
        seen(completed(status="failed", attempt=2), invocations=(replace(ended(), exit_code=1),)),
        {},
    ),
    "a look that posts": (
        "looks_only",
        DONE,
        {"operation": op.Health()},
    ),
    "left running": ("nothing_left", replace(DONE, strays=("sleep 3600",)), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_is_broken_by_its_case(name: str) -> None:
    rule, now, how = CASES[name]
    believed = how.get("believed", model())
    if "settings" in how:
        believed = replace(believed, settings={**believed.settings, **how["settings"]})
    if "stopped" in how:
        believed = replace(believed, stopped=how["stopped"])
    before = how.get("before", BEFORE)
    found = broken(now, believed, before, how.get("operation", op.Send("dev", TEXT)))
    assert rule in found


def test_who_was_not_there_when_a_message_was_sent_is_not_meant() -> None:
    believed = model(sent=(Sent("dev", "human", TEXT, knew=frozenset({"hailot"})),))
    assert "mention_runs" not in broken(seen(), believed, seen(), Settle())


def test_a_silent_attempt_that_ran_out_of_time_counts() -> None:
    failed = completed(status="failed", reason="timeout", attempt=2, ended=NOW - 1)
    first = seen(failed, invocations=(replace(ended(), exit_code=None),))
    timed = model(settings={**model().settings, "timeout_s": 2})
    assert not broken(first, timed) & {"retries", "has_its_time"}


def test_an_attempt_that_ended_before_it_noted_a_word_was_one() -> None:
    failed = completed(status="failed", reason="exit 1")
    once = (replace(ended(), exit_code=1),)
    assert "retries" in broken(seen(failed, invocations=once), model())
    begun = replace(failed, provider=(12, 0))  # the row knows the next one already
    assert "retries" not in broken(seen(begun, invocations=once), model())


@pytest.mark.parametrize(
    "wanted", [{"stopped": frozenset({1})}, {"meant": frozenset({("prime", "dev")})}]
)
def test_who_was_to_stop_is_not_due_to_be_tried_again(wanted: dict[str, Any]) -> None:
    failed = completed(status="failed", reason="exit 1")
    look = seen(failed, invocations=(replace(ended(), exit_code=1),))
    assert "retries" not in broken(look, model(**wanted), LIVE, op.Stop("prime", "dev"))


def test_turns_that_are_right_are_not_accused() -> None:
    believed = model(sent=ASKED_TWICE)
    in_order = asked_twice((NOW - 4, NOW - 3))
    assert "first_come" not in broken(in_order, believed)
    hit = replace(believed, hit=frozenset({1}))
    assert "first_come" not in broken(asked_twice((NOW - 1, NOW - 3)), hit)
    one_after_the_other = seen(
        completed(ended=NOW - 4),
        running(id=2, agent="hailot", message=1, started=NOW - 3.9),
    )
    alone = replace(believed, settings={**believed.settings, "max_running": 1})
    assert "running_bounded" not in broken(one_after_the_other, alone)
    lowered = replace(believed, settings={**believed.settings, "max_running": 0})
    assert "running_bounded" not in broken(LIVE, lowered, LIVE)
    late = completed(status="failed", reason="timeout", ended=NOW - 2.9)
    timed = replace(believed, settings={**believed.settings, "timeout_s": 2})
    assert "has_its_time" not in broken(seen(late), timed)


def test_every_rule_has_a_case() -> None:
    about_answers = {row[0] for row in ANSWERS}
    judged = {"never_new", "reader_sees_all", "health_true"}
    own = {rule.removeprefix("spawns.") for rule in RULES} - about_answers - judged
    assert {rule for rule, _, _ in CASES.values()} == own
    assert {SAME.get(name, name) for name in ORDER} == own
    assert {f"spawns.{name}" for name in ORDER} == set(BOOK.rules)


def test_every_scenario_is_told_in_a_line() -> None:
    assert list(ABOUT) == list(SCENARIOS)


# --- what excuses -----------------------------------------------------------------------------------------


def test_what_was_killed_on_purpose_is_not_accused() -> None:
    dead = seen(running(supervised=False, provided=False), invocations=(invocation(alive=False),))
    assert broken(dead, before=LIVE) >= {"row_true", "outlives_starter"}
    assert broken(dead, model().struck("prime", LIVE), LIVE) == set()


def test_who_dies_by_himself_and_who_was_stopped_are_not_accused() -> None:
    fell = completed(status="failed", reason="signal 9", attempt=2)
    died = invocation(alive=False, behaviour="reply+die", attempt=2, identity=(12, 1), posting=1)
    assert broken(
        seen(fell, invocations=(died,), messages={1: message(), 2: posted(2, 1, "x", attempt=2)})
    ) <= {"pid_first"}
    stopped = seen(completed(status="stopped", session=""), invocations=(invocation(alive=False),))
    assert (
        broken(stopped, replace(model(), stopped=frozenset({1})), LIVE, op.Stop("prime", "dev"))
        == set()
    )


def test_a_self_mention_and_an_unknown_name_need_no_run() -> None:
    said = {1: message(), 2: posted(2, 1, "@prime @nobody again")}
    own = seen(completed(), messages=said, invocations=(ended(posting=1, posts=(2,)),))
    assert broken(own) == set()


def test_a_message_to_one_agent_alone_mentions_nobody() -> None:
    text = "look, and tell nobody: @hailot"
    alone = model(sent=(Sent("dev", "human", text, "prime", 1),))
    look = seen(completed(), messages={1: message(text=text)}, invocations=(ended(task=text),))
    assert broken(look, alone) == set()


def test_the_same_words_in_a_command_that_was_killed_change_no_older_message() -> None:
    said = Sent("dev", "human", "and now?", "", 1, frozenset(AGENTS))
    killed = Sent("dev", "human", "and now?", "prime", None, frozenset(AGENTS))
    look = seen(messages={1: message(text="and now?")})
    believed = model(sent=(said,), unsure=(killed,))
    assert broken(look, believed, before=look, operation=Settle()) == set()


def test_times_of_a_bent_clock_tell_no_order_also_when_all_has_settled() -> None:
    judge = CONTRACT.judge_class(CONTRACT, BEFORE, BEFORE, NOW)
    (bent,) = judge.follows(model(), SkewClock(offset_s=-60.0, during=op.Health()), Moment())
    (after,) = judge.follows(bent, Settle(), Moment())
    turned = asked_twice((NOW - 1, NOW - 3))
    assert "first_come" not in broken(turned, after, operation=Settle())
    assert "first_come" in broken(turned, operation=Settle())


# --- what is due ------------------------------------------------------------------------------------------


def test_what_never_ends_is_not_waited_for_nor_what_is_behind_it() -> None:
    silent = invocation(behaviour="silent")
    behind = Run(2, "prime", "dev", 2, "queued", "agent busy")
    look = seen(running(), behind, invocations=(silent,))
    assert model().pending(look) == ()
    short = replace(model(), settings={**model().settings, "timeout_s": 1})
    assert len(short.pending(look)) == 2
    assert len(model().pending(replace(look, invocations=(invocation(),)))) == 2


def test_nobody_is_waited_for_while_what_never_ends_has_all_the_room() -> None:
    """Seed 7300018: two such runs, and room for two."""
    waits = Run(2, "hailot", "dev", 2, "queued", "agent busy")
    look = seen(running(), waits, invocations=(invocation(behaviour="silent"),))
    assert len(model().pending(look)) == 1
    narrow = replace(model(), settings={**model().settings, "max_running": 1})
    assert narrow.pending(look) == ()
    assert len(narrow.pending(replace(look, invocations=(invocation(),)))) == 2


def test_what_died_is_due_once_somebody_has_cleaned_up() -> None:
    dead = seen(running(supervised=False, provided=False))
    assert model(died=True).pending(dead) == ()
    assert len(model().pending(dead)) == 1


def test_a_message_without_an_answer_is_there_or_not() -> None:
    unsure = replace(model(), sent=(), unsure=(Sent("dev", "human", TEXT),))
    assert broken(seen(messages={}), unsure) == set()
    there = unsure.see(DONE)
    assert (len(there.sent), there.unsure) == (1, ())
    assert broken(DONE, there) == set()


# --- answers ----------------------------------------------------------------------------------------------


def judged(
    operation: Operation,
    answer: dict[str, Any],
    now: SpawnsSeen = LIVE,
    before: SpawnsSeen | None = None,
    believed: SpawnsModel | None = None,
    argv: tuple[str, ...] = (),
) -> tuple[Verdict, str]:
    code = 0 if answer.get("ok") else 1
    result = OperationResult(code, details={"answer": answer}, argv=argv)
    told = CONTRACT.judge(
        Beliefs((believed or model(),)), operation, result, before or now, now, NOW
    )
    return told.verdict, "" if told.violation is None else told.violation.rule.removeprefix(
        "spawns."
    )


NO_SESSION = seen(
    running(started=NOW - 300), invocations=(invocation(session="", behaviour="hang"),)
)
DEAD = seen(running(supervised=False))


@pytest.mark.parametrize(
    ("look", "problems", "rule"),
    [
        (LIVE, [], ""),
        (LIVE, [{"id": "s1", "problem": "dead"}], "health_true"),
        (LIVE, [{"id": "s1", "problem": "no_session"}], "health_true"),
        (DONE, [{"id": "s1", "problem": "dead"}], "health_true"),
        (NO_SESSION, [{"id": "s1", "problem": "no_session"}], ""),
        (NO_SESSION, [], "health_true"),
        (DEAD, [{"id": "s1", "problem": "dead"}], ""),
        (DEAD, [], "health_true"),
    ],
)
def test_health_is_held_against_what_is_so(
    look: SpawnsSeen, problems: list[Any], rule: str
) -> None:
    assert judged(op.Health(), {"ok": True, "problems": problems}, look)[1] == rule


def test_a_reader_gets_everything_in_order() -> None:
    look = seen(messages={1: message(), 2: message(2, "two")})
    rows = [{"id": 1, "text": TEXT}, {"id": 2, "text": "two"}]
    both = model(sent=(Sent("dev", "human", TEXT, "", 1), Sent("dev", "human", "two", "", 2)))

    def got(*messages: Any) -> str:
        return judged(
            op.Receive("dev"), {"ok": True, "messages": list(messages)}, look, believed=both
        )[1]

    assert got(*rows) == ""
    assert got(rows[1]) == "reader_sees_all"
    assert got(*reversed(rows)) == "reader_sees_all"
    assert got({"id": 1, "text": "x"}, rows[1]) == "reader_sees_all"


def test_a_reader_who_looks_back_keeps_its_place() -> None:
    look = seen(messages={1: message(), 2: message(2, "two"), 3: message(3, "three")})
    rows = [{"id": 1, "text": TEXT}, {"id": 2, "text": "two"}, {"id": 3, "text": "three"}]
    read = model(bookmarks={("reader", "dev"): 3})

    def got(operation: op.Receive, *messages: Any) -> str:
        answer = {"ok": True, "messages": list(messages)}
        return judged(operation, answer, look, believed=read)[1]

    back = op.Receive("dev", "reader", again=2, most=1)
    assert got(back, rows[1]) == ""
    assert got(back) == "reader_sees_all"
    assert got(back, rows[1], rows[2]) == "reader_sees_all"
    assert got(op.Receive("dev", "reader", again=9), *rows) == ""
    assert got(op.Receive("dev", "reader", again=9), *rows[1:]) == "reader_sees_all"
    assert got(op.Receive("dev", "reader")) == ""
    assert got(op.Receive("dev", "reader"), rows[2]) == "reader_sees_all"
    assert [look.before_last("dev", count) for count in (1, 2, 3, 9)] == [2, 1, 0, 0]
    assert look.before_last("ops", 3) == 0
    kept = SpawnsContract(SpawnsProfile(keeps_place=True)).scenarios
    assert "reader_looks_back" in kept
    assert "reader_looks_back" not in CONTRACT.scenarios
    assert CONTRACT.fit((op.Receive("dev", "reader", again=2),)).sequence == ()


def test_who_waits_is_told_how_all_runs_ended() -> None:
    other = replace(completed(), id=2, agent="hailot", status="failed", reason="exit 1")
    both, wait = seen(completed(), other), op.Await(("prime", "hailot"), "dev")
    late = {"ok": False, "error": "timeout", "message": "not over"}
    shown = {"ok": True, "spawns": [{"id": "s2", "status": "failed"}]}
    result = OperationResult(4, details={"answer": shown})
    assert CONTRACT.read(result).error == "not_completed"
    assert judged(wait, {"ok": True}, both) == (Verdict.BUG, "answers_truly")
    not_all = {"ok": False, "error": "not_completed", "message": ""}
    assert judged(wait, not_all, both)[0] is Verdict.EXPECTED
    assert judged(wait, late, both) == (Verdict.BUG, "answers_truly")
    alone = op.Await(("prime",), "dev")
    assert judged(alone, {"ok": True}, both)[0] is Verdict.SUCCESS
    assert judged(alone, not_all, both) == (Verdict.BUG, "answers_truly")
    assert judged(alone, late, LIVE)[0] is Verdict.EXPECTED
    assert judged(alone, {"ok": True}, LIVE) == (Verdict.BUG, "answers_truly")
    assert judged(op.Await(("nobody",), "dev"), {"ok": True}, both)[0] is Verdict.BUG


def test_a_lost_database_is_never_a_new_one() -> None:
    lost = replace(model(), doubted=True)
    assert judged(op.Init(), {"ok": True}, believed=lost) == (Verdict.BUG, "never_new")
    refused = {"ok": False, "error": "unreadable", "message": "gone"}
    assert judged(op.Init(), refused, believed=lost)[0] is Verdict.EXPECTED
    assert judged(op.Init(), refused) == (Verdict.BUG, "database_whole")


def test_a_stop_is_held_against_the_run_that_it_named() -> None:
    stop, argv = op.Stop("prime", "dev"), ("longboat", "spawn", "stop", "s1")
    over = {"ok": False, "error": "not_running", "message": "over"}
    assert judged(stop, {"ok": True, "stopped": ["s1"]}, LIVE, argv=argv)[1] == ""
    assert judged(stop, {"ok": True, "stopped": ["s1"]}, DONE, argv=argv)[1] == "rejects_illegal"
    assert judged(stop, {"ok": True, "stopped": ["s1", "s2"]}, LIVE, argv=argv)[1] == "only_named"
    assert judged(stop, over, LIVE, argv=argv)[1] == "rejects_truthfully"
    assert judged(stop, over, DONE, argv=argv)[1] == ""


def test_what_is_there_may_be_refused_as_such_and_nothing_else() -> None:
    exists = {"ok": False, "error": "exists", "message": "there is one"}
    for there in (op.CreateChannel("dev"), op.Register("prime")):
        assert judged(there, exists)[0] is Verdict.EXPECTED
        assert judged(there, {"ok": True})[1] == ""
    for new in (op.CreateChannel("ops"), op.Register("auger")):
        assert judged(new, exists)[0] is Verdict.BUG


def test_a_stop_beside_others_may_have_ended_whoever_it_named() -> None:
    dead = seen(completed(status="stopped", session=""), invocations=(invocation(alive=False),))
    stop, answer = op.Stop("prime", "dev"), CONTRACT.read(OperationResult(0, "stopped"))
    beside = CONTRACT.learn(model(), model(), stop, answer, Moment(None, dead, NOW))
    assert broken(dead, model(), LIVE, Parallel((SENT, stop))) == {"outlives_starter"}
    assert broken(dead, beside, LIVE, Parallel((SENT, stop))) == set()
    alone = CONTRACT.learn(model(), model(), stop, answer, Moment(LIVE, dead, NOW))
    assert alone.stopped == {1}
    assert not alone.meant


def test_lists_and_chains_tell_what_is_so() -> None:
    right = [{"id": "s1", "status": "running", "children": []}]
    assert judged(op.ListSpawns(), {"ok": True, "spawns": right})[1] == ""
    assert judged(op.ListSpawns(), {"ok": True, "spawns": []})[1] == "answers_truly"
    wrong = [{"id": "s1", "status": "completed"}]
    assert judged(op.ListSpawns(), {"ok": True, "spawns": wrong})[1] == "answers_truly"
    assert judged(op.Chain(), {"ok": True, "tree": right})[1] == ""
    assert judged(op.Chain(), {"ok": True, "tree": []})[1] == "answers_truly"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: op.Behave("prime", ("reply", "jump")), "jump"),
        (lambda: op.Behave("prime", ()), "at least one"),
        (lambda: op.Await((), "dev"), "at least one"),
        (lambda: op.Register("prime", "llama"), "llama"),
        (lambda: op.Configure("depth", 3), "depth"),
        (lambda: op.KillSender(op.Cleanup()), "Cleanup"),
        (lambda: op.LoseDatabase("burn"), "burn"),
        (lambda: op.HoldDatabase(op.Behave("prime"), 1), "Behave"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(make: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("operation", "bent"),
    [
        (op.Send("dev", "who has seen SkewClock(offset_s=60)?"), False),
        (SkewClock(offset_s=60, during=op.Cleanup()), True),
        (Parallel((op.Cleanup(), op.HoldDatabase(op.Health(), 1.0))), False),
        (Parallel((op.Cleanup(), SkewClock(offset_s=60, during=op.Health()))), True),
    ],
)
def test_a_clock_is_bent_by_the_fault_and_not_by_its_name(operation: Operation, bent: bool) -> None:
    check = SimpleNamespace(model=SimpleNamespace(bent=False), operation=operation)
    assert clock_bent(check) is bent  # type: ignore[arg-type]
