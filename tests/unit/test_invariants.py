"""Every rule about state: one picture that breaks it, one close by that does not, and none that
hides a fact.

`CASES` is the whole truth of this file: a rule without a case fails the meta test at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ledger_cases import LEDGER_CASES
from rule_cases import STATE_CASES
from rule_parts import MAY_BE_AWAY, ONE, Case, task

from builders import AT, DAEMON, agent, belief, check_state, model, picture, view
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.ledger import audit
from mutiny.contracts.workers.looking import BOOK, Check, touched_workers
from mutiny.contracts.workers.operations import STATUSES
from mutiny.contracts.workers.rules import RULES
from mutiny.kit import operations as common
from mutiny.kit.checking import Unreadable
from mutiny.model.operation import Operation
from mutiny.model.violation import Violation

JUDGED_ELSEWHERE = {
    f"workers.{name}"
    for name in (
        *("longest_wait_first", "settings_checked"),
        *("rejects_illegal", "serves_legal", "rejects_truthfully", "fails_clearly"),
        *("answers_in_time", "parallel_is_serial", "assertion", "answers_truly"),
        *("status_is_honest", "health_is_honest", "repair_is_honest", "doctor_agrees"),
    )
}
"""Rules about answers: `test_classify.py` and `test_judge.py`."""

CASES = (*STATE_CASES, *LEDGER_CASES)


def evaluate(rule: str, case: Check) -> list[Violation]:
    """Only this rule; `Unreadable` passes through."""
    if rule in BOOK.rules:
        return list(BOOK.rules[rule][0](case))
    return [violation for violation, _ in audit(case) if violation.rule == rule]


def hidden(case: Check, fact: str) -> Check:
    """The same without one fact, as if its probe had failed."""
    if fact == "dirty":
        trees = {name: replace(tree, dirty=None) for name, tree in case.seen.worktrees.items()}
        return replace(case, seen=replace(case.seen, worktrees=trees))
    if fact == "worktrees":
        return replace(case, seen=replace(case.seen, worktrees={}))
    if fact.startswith("before."):
        unknown: dict[str, Any] = {fact.removeprefix("before."): None}
        return replace(case, before=replace(case.before, **unknown))
    unknown = {fact: None}
    return replace(case, seen=replace(case.seen, **unknown))


def numbered(case: Case) -> str:
    same = [other for other in CASES if other.rule == case.rule]
    return f"{case.rule.removeprefix('workers.')}-{same.index(case)}"


each_case = pytest.mark.parametrize("case", CASES, ids=numbered)


@each_case
def test_the_rule_is_broken(case: Case) -> None:
    found = evaluate(case.rule, case.broken)
    assert [violation.rule for violation in found] == [case.rule] * len(found)
    assert case.subject in [violation.subject for violation in found]
    for violation in found:
        assert violation.message
        assert violation.subject in violation.message or violation.subject == "source"


@each_case
def test_what_comes_close_is_sound(case: Case) -> None:
    for sound in case.sound:
        assert [item.message for item in evaluate(case.rule, sound)] == []


@pytest.mark.parametrize(
    ("case", "fact"),
    [(case, fact) for case in CASES for fact in case.hide],
    ids=lambda value: value if isinstance(value, str) else numbered(value),
)
def test_a_fact_that_cannot_be_read_is_never_silence(case: Case, fact: str) -> None:
    """What broke the rule is hidden: the rule must say that it cannot tell."""
    with pytest.raises(Unreadable):
        evaluate(case.rule, hidden(case.broken, fact))


@each_case
def test_the_whole_check_agrees(case: Case) -> None:
    looked = case.broken
    broken, _ = check_state(
        looked.model, looked.operation, looked.succeeded, looked.before, looked.seen, {}
    )
    touched = looked.touched or looked.all_touched or looked.daemon_touched
    assert touched or case.rule in {item.violation.rule for item in broken}


@each_case
def test_a_rule_that_does_not_apply_is_not_evaluated(case: Case) -> None:
    looked = case.broken
    broken, unreadable = check_state(
        looked.model,
        looked.operation,
        looked.succeeded,
        looked.before,
        looked.seen,
        {case.rule: "not promised"},
    )
    assert case.rule not in {item.violation.rule for item in broken}
    assert not any(text.startswith(case.rule) for text in unreadable)


# --- all rules together ---------------------------------------------------------------------------


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} == set(RULES) - JUDGED_ELSEWHERE


def test_every_rule_that_is_evaluated_is_declared_and_the_other_way_round() -> None:
    ledger = {case.rule for case in CASES} - set(BOOK.rules)
    assert set(BOOK.rules) <= set(RULES)
    assert set(BOOK.rules) | ledger | JUDGED_ELSEWHERE == set(RULES)


def test_every_rule_about_answers_is_tested_elsewhere() -> None:
    here = Path(__file__).parent
    files = (
        "test_classify.py",
        "test_judge.py",
        "test_unnamed_commands.py",
        "test_wrong_settings.py",
    )
    texts = "".join((here / name).read_text() for name in files)
    assert {rule for rule in JUDGED_ELSEWHERE if f'"{rule}"' not in texts} == set()


def test_the_seeds_thirteen_are_all_there() -> None:
    assert len([rule for rule in RULES.values() if rule.invariant]) == 13


def test_every_rule_says_what_it_promises_and_where_it_belongs() -> None:
    categories = {
        *("Crashes", "State corruption", "Stuck workers", "Lost work", "Recovery failures"),
        *("Race conditions", "Zombie processes", "Git corruption", "Wrong answer"),
    }
    for name, rule in RULES.items():
        assert rule.id == name
        assert rule.promise.endswith(".")
        assert rule.category in categories


@pytest.mark.parametrize("status", STATUSES)
def test_a_healthy_target_breaks_nothing(status: str) -> None:
    offline = status == "offline"
    believed = model(belief("alpha", "idle" if offline else status, offline_allowed=offline))
    if offline:
        believed = model(belief("alpha", disturbed="Down", disturbed_at=AT, offline_allowed=True))
    if status == "error":
        believed = replace(believed, faults=("KillAgent",))
    seen = picture(view("alpha", status), view("beta"))
    believed = believed.with_worker(belief("beta"))
    for operation in (common.Sleep(), op.Status(), common.Settle(), op.Up()):
        broken, unreadable = check_state(believed, operation, True, seen, seen, {})
        assert ([item.violation.message for item in broken], unreadable) == ([], ())


def test_a_blind_look_proves_nothing() -> None:
    """All probes failed: many rules say so, none passes by accident, none is broken."""
    blind = picture(
        view(),
        sessions=None,
        daemons=None,
        agents=None,
        commits=None,
        default_tokens=None,
        default_untold=None,
    )
    blind = replace(blind, worktrees={})
    broken, unreadable = check_state(task(), op.Down(), True, blind, blind, {})
    assert [item.violation.rule for item in broken if "idle" not in item.violation.message] == []
    said = {text.partition(":")[0] for text in unreadable}
    assert said >= {
        *("workers.session_exists", "workers.no_orphan_session", "workers.agent_running"),
        *("workers.one_agent", "workers.one_daemon", "workers.daemon_flag_true"),
        *("workers.daemon_survives", "workers.nuked_is_gone", "workers.idle_is_fresh"),
        *("workers.down_ends_all", "workers.tree_clean", "workers.on_branch"),
        *("workers.worktree_exists", "ledger"),
    }


def test_a_rule_that_crashes_is_reported_and_the_others_still_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def crash(check: Check) -> list[Violation]:
        raise KeyError("alpha")

    monkeypatch.setitem(BOOK.rules, "workers.state_readable", (crash, False))
    seen = picture(view(), state_in_place=True)
    broken, unreadable = check_state(ONE, common.Sleep(), True, seen, seen, {})
    assert [item.violation.rule for item in broken] == ["workers.state_atomic"]
    (said,) = unreadable
    assert said.startswith("workers.state_readable: ")
    assert "KeyError" in said


IMMEDIATE = {
    f"workers.{name}"
    for name in (
        *("idle_has_no_prompt", "working_has_prompt", "status_follows_model", "state_atomic"),
        *("backs_off", "recovers", "completes", "refusal_changes_nothing", "daemon_survives"),
        *(
            "live_agent_kept",
            "errors_told",
            "error_has_cause",
            "source_untouched",
            "others_left_alone",
        ),
        *(
            "delivered_once",
            "delivered_whole",
            "delivered_in_order",
            "given_up_stays_so",
            "agent_as_asked",
            "only_work_lands",
            "lands_whole",
            "merged_once",
            "nothing_invented",
            "accepted_is_merged",
        ),
        *("merged_stays", "default_moves_forward", "way_out", "no_crash"),
    )
}
"""Rules that no lag excuses; all others may be broken until the target's next patrol."""


@each_case
def test_only_some_rules_wait_for_the_targets_lag(case: Case) -> None:
    looked = case.broken
    broken, _ = check_state(
        looked.model, looked.operation, looked.succeeded, looked.before, looked.seen, {}
    )
    lags = {item.eventual for item in broken if item.violation.rule == case.rule}
    assert lags <= {case.rule not in IMMEDIATE}


def test_eventual_rules_are_marked() -> None:
    seen = picture(view(), state_in_place=True, daemons=(DAEMON, replace(DAEMON, pid=101)))
    broken, _ = check_state(ONE, common.Sleep(), True, seen, seen, {})
    assert {item.violation.rule: item.eventual for item in broken} == {
        "workers.state_atomic": False,
        "workers.one_daemon": True,
    }


def test_offline_beside_its_agent_waits_only_while_something_explains_it() -> None:
    seen = picture(view("alpha", "offline"), agents=(agent(),))
    excused, _ = check_state(MAY_BE_AWAY, common.Sleep(), True, seen, seen, {})
    assert [(item.violation.rule, item.eventual) for item in excused] == [
        ("workers.offline_has_no_agent", True)
    ]
    strange, _ = check_state(ONE, common.Sleep(), True, seen, seen, {})
    assert [(item.violation.rule, item.eventual) for item in strange] == [
        ("workers.offline_has_no_agent", False),
        ("workers.status_follows_model", False),
    ]


Touched = tuple[set[str], bool, bool]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (common.Sleep(), (set(), False, False)),
        (op.Accept("alpha"), (set(), False, False)),
        (op.Nuke("alpha"), ({"alpha"}, False, False)),
        (op.KillAgent("alpha"), ({"alpha"}, False, False)),
        (op.ResetWorker("alpha"), ({"alpha"}, False, False)),
        (op.KillTmuxServer(), (set(), True, False)),
        (op.KillDaemon(), (set(), False, True)),
        (op.Down(), (set(), True, True)),
        (common.Parallel((op.Nuke("beta"), op.Down())), ({"beta"}, True, True)),
        (op.PauseProcess("daemon", during=op.Nuke("beta")), ({"beta"}, False, False)),
        (op.Up(), (set(), False, False)),
    ],
    ids=str,
)
def test_whom_an_operation_may_end(operation: Operation, expected: Touched) -> None:
    names, everyone, daemon = touched_workers(operation, up_restarts=False)
    assert (set(names), everyone, daemon) == expected


def test_some_targets_replace_all_agents_on_up() -> None:
    ask: Callable[[bool], tuple[frozenset[str], bool, bool]] = lambda flag: touched_workers(  # noqa: E731
        op.Up(), up_restarts=flag
    )
    assert ask(True)[1] is True
    assert ask(False)[1] is False
