"""Every rule about state: one picture that breaks it, one close by that does not, and none that
hides a fact.

`CASES` is the whole truth of this file: a rule without a case fails the meta test at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from builders import (
    AT,
    BASE,
    DAEMON,
    HISTORY,
    SHA,
    TOKEN,
    agent,
    belief,
    check,
    commit,
    model,
    picture,
    receipt,
    view,
    worktree,
)

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.invariants import INVARIANTS, Check, Unreadable, touched_workers
from mutiny.contracts.workers.judge import check_state
from mutiny.contracts.workers.ledger import audit
from mutiny.contracts.workers.model import Work, WorkersModel
from mutiny.contracts.workers.observation import Observation, WorkerView
from mutiny.contracts.workers.operations import STATUSES
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.rules import RULES
from mutiny.model.operation import Operation
from mutiny.model.violation import Violation

JUDGED_ELSEWHERE = {
    f"workers.{name}"
    for name in (
        *("rejects_illegal", "serves_legal", "rejects_truthfully", "fails_clearly", "no_crash"),
        *("answers_in_time", "parallel_is_serial", "assertion"),
        *("status_is_honest", "health_is_honest", "repair_is_honest"),
    )
}
"""Rules about answers: `test_classify.py` and `test_judge.py`."""


@dataclass(frozen=True)
class Case:
    """A rule, what breaks it, what comes close, and the facts without which nobody could tell."""

    rule: str
    broken: Check
    sound: tuple[Check, ...]
    subject: str
    hide: tuple[str, ...] = ()


def ready(**changes: object) -> WorkerView:
    return view("alpha", "needs_review", **changes)


def tree(view_: WorkerView, **changes: object) -> Observation:
    """A healthy picture of one worker with something odd in its worktree."""
    return picture(view_, worktrees={view_.name: worktree(view_, **changes)})


def away(**changes: object) -> WorkersModel:
    """One idle worker that a fault hit at time 0."""
    return model(belief("alpha", disturbed="KillAgent", offline_allowed=True, **changes))


def task(fate: str = "open", *, status: str = "working", **changes: object) -> WorkersModel:
    """One worker with one acknowledged task."""
    worker = belief("alpha", status, tokens=(TOKEN,))
    return model(worker, work=(Work(TOKEN, "task", "alpha", fate),), **changes)


def delivered(status: str, *commits: object, **changes: object) -> Observation:
    """The agent received the task and committed it; these commits are reachable."""
    return picture(view("alpha", status), receipts=(receipt(),), commits=commits, **changes)


ONE = model(belief())
READY = model(belief("alpha", "needs_review"))
WORKING = model(belief("alpha", "working"))
NO_AGENT = {"sessions": frozenset(), "agents": ()}
MERGED = commit(on_default=True)
ON_BRANCH = commit(on_default=False)

CASES: tuple[Case, ...] = (
    Case(
        "workers.state_readable",
        check(ONE, picture(view(), state_error="not valid JSON")),
        (
            check(ONE, picture(view())),
            check(model(initialised=False), picture(state_error="not valid JSON")),
            check(replace(ONE, state_damaged=True), picture(state_error="not valid JSON")),
        ),
        "",
    ),
    Case(
        "workers.state_readable",
        check(ONE, picture(state_exists=False)),
        (check(model(), picture(state_exists=False)),),
        "",
    ),
    Case(
        "workers.worktree_exists",
        check(ONE, tree(view(), exists=False)),
        (check(ONE, picture(view())), check(away(), tree(view(), exists=False))),
        "alpha",
        ("worktrees",),
    ),
    Case(
        "workers.session_exists",
        check(ONE, picture(view(), sessions=frozenset({"longboat-al", "longboat-alphabet"}))),
        (
            check(ONE, picture(view())),
            check(model(belief("alpha", "error")), picture(view("alpha", "error"))),
            check(away(), picture(view(), **NO_AGENT)),
        ),
        "alpha",
        ("sessions",),
    ),
    Case(
        "workers.offline_has_no_agent",
        check(ONE, picture(view("alpha", "offline"), agents=(agent(),))),
        (
            check(ONE, picture(view("alpha", "offline"), agents=(agent(alive=False),))),
            check(ONE, picture(view("alpha", "offline"), agents=(agent("beta"),))),
            check(ONE, picture(view())),
        ),
        "alpha",
        ("agents",),
    ),
    Case(
        "workers.idle_has_no_prompt",
        check(ONE, picture(view(prompt="Create a.txt"))),
        (check(ONE, picture(view())), check(READY, picture(ready()))),
        "alpha",
    ),
    *(
        Case(
            "workers.working_has_prompt",
            check(WORKING, picture(view("alpha", status, prompt=""))),
            (check(WORKING, picture(view("alpha", status))),),
            "alpha",
        )
        for status in ("working", "rejected")
    ),
    Case(
        "workers.review_has_commit",
        check(READY, picture(ready(commit_sha=None))),
        (check(READY, picture(ready())), check(ONE, picture(view(commit_sha=None)))),
        "alpha",
    ),
    Case(
        "workers.review_has_commit",
        check(READY, tree(ready(), head=BASE)),
        (check(READY, picture(ready(commit_sha=SHA[:10]))),),
        "alpha",
        ("worktrees",),
    ),
    Case(  # HEAD names a branch that no ref holds any more
        "workers.review_has_commit",
        check(READY, tree(ready(), head=None)),
        (check(READY, tree(ready(), exists=False, head=None)),),
        "alpha",
    ),
    Case(
        "workers.rebasing_is_in_rebase",
        check(
            model(belief("alpha", "rebasing")),
            tree(view("alpha", "rebasing"), rebasing=False),
        ),
        (
            check(model(belief("alpha", "rebasing")), picture(view("alpha", "rebasing"))),
            check(
                model(belief("alpha", "rebasing", behaviours=("hang",))),
                tree(view("alpha", "rebasing"), rebasing=False),
            ),
        ),
        "alpha",
        ("worktrees",),
    ),
    *(
        Case(
            "workers.rebasing_is_in_rebase",
            check(
                model(belief("alpha", status)),
                tree(view("alpha", status), rebasing=True),
            ),
            (
                check(model(belief("alpha", status)), picture(view("alpha", status))),
                check(WORKING, tree(view("alpha", "working"), rebasing=True)),
            ),
            "alpha",
            ("worktrees",),
        )
        for status in ("idle", "needs_review", "no_changes")
    ),
    *(
        Case(
            "workers.on_branch",
            check(ONE, tree(view(), branch=branch)),
            (
                check(ONE, picture(view())),
                check(ONE, tree(view(), branch=None, rebasing=True)),
                check(ONE, tree(view(branch=""), branch="anything")),
                check(away(), tree(view(), branch=branch)),
            ),
            "alpha",
            ("worktrees",),
        )
        for branch in ("master", "longboat/alphabet", None)
    ),
    *(
        Case(
            "workers.tree_clean",
            check(model(belief("alpha", status)), tree(view("alpha", status), dirty=("a.txt",))),
            (
                check(model(belief("alpha", status)), picture(view("alpha", status))),
                check(WORKING, tree(view("alpha", "working"), dirty=("a.txt",))),
            ),
            "alpha",
            ("worktrees", "dirty"),
        )
        for status in ("idle", "needs_review")
    ),
    Case(
        "workers.idle_is_fresh",
        check(ONE, tree(view(), head=SHA)),
        (
            check(ONE, picture(view())),
            check(ONE, tree(view(pending_prompt="next"), head=SHA)),
            check(READY, picture(ready())),
            check(away(), tree(view(), head=SHA)),
        ),
        "alpha",
        ("worktrees", "commits"),
    ),
    Case(
        "workers.daemon_flag_true",
        check(ONE, picture(view(), daemons=())),
        (
            check(ONE, picture(view())),
            check(ONE, picture(view(), daemons=(), daemon_flag=False)),
            check(replace(ONE, daemon_killed=True), picture(view(), daemons=())),
            check(replace(ONE, state_damaged=True), picture(view(), daemons=())),
        ),
        "daemon",
        ("daemons",),
    ),
    Case(
        "workers.daemon_flag_true",
        check(replace(ONE, daemon_killed=True), picture(view(), daemon_flag=False)),
        (check(ONE, picture(view(), daemon_flag=None)),),
        "daemon",
        ("daemons",),
    ),
    Case(
        "workers.agent_running",
        check(ONE, picture(view(), agents=(agent("beta"), agent(alive=False)))),
        (
            check(ONE, picture(view())),
            check(model(belief("alpha", "error")), picture(view("alpha", "error"))),
            check(model(belief("alpha", behaviours=("exit",))), picture(view(), agents=())),
            check(away(), picture(view(), **NO_AGENT)),
        ),
        "alpha",
        ("agents",),
    ),
    Case(
        "workers.status_follows_model",
        check(ONE, picture(ready())),
        (
            check(WORKING, picture(ready())),
            check(ONE, picture(view("beta", "error"))),
            check(away(), picture(view("alpha", "offline"))),
        ),
        "alpha",
    ),
    Case(
        "workers.status_follows_model",
        check(ONE, picture(view("alpha", "offline"))),
        (check(ONE, picture(view())),),
        "alpha",
    ),
    Case(
        "workers.worker_kept",
        check(model(belief(), belief("beta")), picture(view())),
        (
            check(ONE, picture(view())),
            check(ONE, picture(state_error="unreadable")),
            check(replace(ONE, state_damaged=True), picture()),
        ),
        "beta",
    ),
    Case(
        "workers.nuked_is_gone",
        check(ONE, picture(view(), agents=(agent(), agent("beta", 300)))),
        (check(ONE, picture(view(), agents=(agent(), agent("beta", 300, alive=False)))),),
        "beta",
        ("agents",),
    ),
    Case(
        "workers.nuked_is_gone",
        check(ONE, picture(view(), view("beta", "offline"))),
        (
            check(ONE, picture(view())),
            check(replace(ONE, state_damaged=True), picture(view(), view("beta", "offline"))),
        ),
        "beta",
        ("agents",),
    ),
    Case(
        "workers.completes",
        check(
            model(belief("alpha", "working", due_at=AT - 15.1)), picture(view("alpha", "working"))
        ),
        (
            check(
                model(belief("alpha", "working", due_at=AT - 14.9)),
                picture(view("alpha", "working")),
            ),
            check(
                model(belief("alpha", "working", due_at=AT - 99, disturbed="KillAgent")),
                picture(view("alpha", "working")),
            ),
            check(
                model(belief("alpha", "working", due_at=AT - 99), daemon=frozenset({False})),
                picture(view("alpha", "working")),
            ),
            check(model(belief("alpha", "working")), picture(view("alpha", "working"))),
            check(model(belief("alpha", "working", due_at=AT - 99)), picture(ready())),
        ),
        "alpha",
    ),
    Case(
        "workers.recovers",
        check(away(disturbed_at=AT - 15.1), picture(view("alpha", "offline"))),
        (
            check(away(disturbed_at=AT - 14.9), picture(view("alpha", "offline"))),
            check(away(disturbed_at=AT - 99), picture(view("alpha", "error"))),
            check(
                replace(away(disturbed_at=AT - 99), daemon=frozenset({False})),
                picture(view("alpha", "offline")),
            ),
            check(ONE, picture(view())),
        ),
        "alpha",
    ),
    *(
        Case(
            "workers.refusal_changes_nothing",
            check(
                READY,
                picture(ready(), default_head=SHA),
                before=picture(ready()),
                operation=operation,
                succeeded=False,
            ),
            (
                check(READY, picture(ready()), operation=operation, succeeded=False),
                check(
                    READY,
                    picture(ready(), default_head=SHA),
                    before=picture(ready()),
                    operation=operation,
                ),
                check(
                    READY,
                    picture(ready(), default_head=SHA),
                    before=picture(ready()),
                    operation=op.MoveSource(),
                    succeeded=False,
                ),
            ),
            "source",
        )
        for operation in (op.Accept("alpha"), op.ExpectError(op.Accept("alpha")))
    ),
    Case(
        "workers.refusal_changes_nothing",
        check(
            READY,
            picture(ready()),
            before=tree(ready(), head=BASE),
            operation=op.Accept("alpha"),
            succeeded=False,
        ),
        (
            check(
                model(belief("alpha", "needs_review", stale_base=True)),
                picture(ready()),
                before=tree(ready(), head=BASE),
                operation=op.Accept("alpha"),
                succeeded=False,
            ),
            check(
                WORKING,
                picture(ready()),
                before=tree(view("alpha", "working"), head=BASE),
                operation=op.Accept("alpha"),
                succeeded=False,
            ),
        ),
        "alpha",
        ("worktrees",),
    ),
    Case(
        "workers.review_means_done",
        check(READY, picture(ready(), agents=(agent(busy=True),))),
        (
            check(READY, picture(ready())),
            check(READY, picture(ready(), agents=(agent(alive=False, busy=True), agent(pid=201)))),
            check(WORKING, picture(view("alpha", "working"), agents=(agent(busy=True),))),
            check(
                model(belief("alpha", "needs_review", behaviours=("no-stop",))),
                picture(ready(), agents=(agent(busy=True),)),
            ),
        ),
        "alpha",
        ("agents",),
    ),
    Case(
        "workers.state_atomic",
        check(ONE, picture(view(), state_in_place=True)),
        (check(ONE, picture(view())),),
        "",
    ),
    Case(
        "workers.daemon_survives",
        check(ONE, picture(view(), daemons=()), before=picture(view())),
        (
            check(ONE, picture(view())),
            check(ONE, picture(view(), daemons=()), before=picture(view()), daemon_touched=True),
            check(ONE, picture(view(), daemons=())),
        ),
        "daemon",
        ("daemons", "before.daemons"),
    ),
    Case(
        "workers.daemon_survives",
        check(ONE, picture(view(), daemons=()), operation=op.Up()),
        (
            check(ONE, picture(view(), daemons=()), operation=op.Up(), succeeded=False),
            check(ONE, picture(view()), operation=op.Up(), before=picture(view(), daemons=())),
        ),
        "daemon",
        ("daemons", "before.daemons"),
    ),
    Case(
        "workers.one_daemon",
        check(ONE, picture(view(), daemons=(DAEMON, replace(DAEMON, pid=101)))),
        (check(ONE, picture(view())), check(ONE, picture(view(), daemons=()))),
        "daemon",
        ("daemons",),
    ),
    Case(
        "workers.one_agent",
        check(ONE, picture(view(), agents=(agent(), agent(pid=201)))),
        (
            check(ONE, picture(view(), agents=(agent(), agent(pid=201, alive=False)))),
            check(ONE, picture(view(), agents=(agent(), agent("beta", 201)))),
        ),
        "alpha",
        ("agents",),
    ),
    Case(
        "workers.no_orphan_session",
        check(ONE, picture(view(), sessions=frozenset({"longboat-alpha", "longboat-al"}))),
        (
            check(ONE, picture(view())),
            check(replace(ONE, state_damaged=True), picture(sessions=frozenset({"longboat-al"}))),
            check(ONE, picture(state_error="no", sessions=frozenset({"longboat-al"}))),
        ),
        "longboat-al",
        ("sessions",),
    ),
    *(
        Case(
            "workers.live_agent_kept",
            check(ONE, picture(view(), agents=later), before=picture(view())),
            (
                check(ONE, picture(view())),
                check(
                    ONE,
                    picture(view(), agents=later),
                    before=picture(view()),
                    touched=frozenset({"alpha"}),
                ),
                check(ONE, picture(view(), agents=later), before=picture(view()), all_touched=True),
                check(away(), picture(view(), agents=later), before=picture(view())),
                check(model(), picture(agents=later), before=picture(view())),
                check(
                    model(belief("alpha", behaviours=("exit",))),
                    picture(view(), agents=later),
                    before=picture(view()),
                ),
                check(
                    ONE,
                    picture(view(), agents=later),
                    before=picture(view(), agents=(agent(alive=False),)),
                ),
            ),
            "alpha",
            ("agents", "before.agents"),
        )
        for later in ((), (agent(alive=False),), (agent(pid=999),))
    ),
    Case(
        "workers.down_ends_all",
        check(ONE, picture(view("alpha", "offline")), operation=op.Down()),
        (
            check(ONE, picture(view("alpha", "offline"), daemons=()), operation=op.Down()),
            check(ONE, picture(view()), operation=op.Down(), succeeded=False),
            check(ONE, picture(view()), operation=op.Nuke("alpha")),
        ),
        "daemon",
        ("daemons",),
    ),
    Case(
        "workers.down_ends_all",
        check(ONE, picture(view(), daemons=()), operation=op.Down()),
        (
            check(
                ONE, picture(view(), daemons=(), agents=(agent(alive=False),)), operation=op.Down()
            ),
        ),
        "alpha",
        ("agents",),
    ),
    Case(
        "workers.source_untouched",
        check(replace(ONE, source_dirty=True), picture(view(), source_edit_intact=False)),
        (
            check(replace(ONE, source_dirty=True), picture(view(), source_edit_intact=True)),
            check(ONE, picture(view(), source_edit_intact=None)),
        ),
        "source",
        ("source_edit_intact",),
    ),
    # --- the ledger
    # ----------------------------------------------------------------------------------
    *(
        Case(
            "workers.delivered_once",
            check(
                task(),
                picture(
                    view("alpha", "working"),
                    receipts=(receipt(), receipt(earlier_alive=True, same_agent=same)),
                ),
            ),
            (
                check(task(), picture(view("alpha", "working"), receipts=(receipt(), receipt()))),
                check(
                    task(),
                    picture(
                        view("alpha", "working"),
                        receipts=(receipt(token=None, tokens=(), earlier_alive=True),),
                    ),
                ),
            ),
            TOKEN,
        )
        for same in (True, False)
    ),
    Case(
        "workers.merged_once",
        check(task("merged"), delivered("idle", MERGED, commit(on_default=True, sha="d" * 40))),
        (
            check(
                task("merged"), delivered("idle", MERGED, commit(on_default=False, sha="d" * 40))
            ),
            check(task("merged"), delivered("idle", commit(TOKEN, TOKEN, on_default=True))),
        ),
        TOKEN,
        ("commits",),
    ),
    *(
        Case(
            "workers.nothing_invented",
            check(task(fate), delivered("needs_review", MERGED)),
            (
                check(task("merged"), delivered("needs_review", MERGED)),
                check(task("unknown"), delivered("needs_review", MERGED)),
                check(task(fate), delivered("needs_review", ON_BRANCH)),
                check(
                    model(belief()), delivered("needs_review", commit("MT-0-9", on_default=True))
                ),
            ),
            TOKEN,
            ("commits",),
        )
        for fate in ("open", "discarded")
    ),
    Case(
        "workers.accepted_is_merged",
        check(task("merged"), delivered("idle", ON_BRANCH)),
        (
            check(task("merged"), delivered("idle", MERGED)),
            check(task("open"), delivered("idle", ON_BRANCH)),
            check(
                task("merged"),
                picture(view(), receipts=(receipt(committed=False),), commits=HISTORY),
            ),
        ),
        TOKEN,
        ("commits",),
    ),
    Case(
        "workers.merged_stays",
        check(
            task("merged"),
            delivered("idle", MERGED, default_tokens=frozenset()),
            before=delivered("idle", MERGED, default_tokens=frozenset({TOKEN})),
        ),
        (
            check(task("merged"), delivered("idle", MERGED, default_tokens=frozenset({TOKEN}))),
            check(
                task("merged"),
                delivered("idle", MERGED, default_tokens=frozenset({TOKEN})),
                before=delivered("idle", MERGED, default_tokens=frozenset()),
            ),
        ),
        TOKEN,
        ("default_tokens", "before.default_tokens"),
    ),
    Case(
        "workers.discarded_is_kept",
        check(task("discarded", profile=Profile(keeps_discarded=True)), delivered("idle")),
        (
            check(
                task("discarded", profile=Profile(keeps_discarded=True)),
                delivered("idle", ON_BRANCH),
            ),
            check(task("discarded"), delivered("idle")),
            check(
                task("discarded", profile=Profile(keeps_discarded=True)),
                picture(view(), receipts=(receipt(committed=False),), commits=()),
            ),
        ),
        TOKEN,
        ("commits",),
    ),
    Case(  # given up silently
        "workers.nothing_lost",
        check(task(), delivered("idle", ON_BRANCH)),
        (
            check(task("merged"), delivered("idle", MERGED)),
            check(task("discarded"), delivered("idle", ON_BRANCH)),
            check(task(), delivered("error", ON_BRANCH)),
            check(
                task(),
                picture(
                    view(pending_prompt="Create a.txt"), receipts=(receipt(),), commits=(ON_BRANCH,)
                ),
            ),
        ),
        TOKEN,
        ("commits",),
    ),
    Case(  # ready without ever having been told
        "workers.nothing_lost",
        check(task(), picture(ready(), receipts=(receipt("MT-0-9"),))),
        (
            check(
                task(),
                picture(ready(), receipts=(receipt("MT-0-9"), receipt()), commits=(ON_BRANCH,)),
            ),
        ),
        TOKEN,
        ("commits",),
    ),
    Case(  # settled without ever having been told
        "workers.nothing_lost",
        check(task(), picture(view("alpha", "working")), operation=op.Settle()),
        (
            check(task(), picture(view("alpha", "working"))),
            check(
                model(
                    belief("alpha", "working", tokens=(TOKEN,), behaviours=("swallow",)),
                    work=(Work(TOKEN, "task", "alpha"),),
                ),
                picture(view("alpha", "working")),
                operation=op.Settle(),
            ),
        ),
        TOKEN,
        ("commits",),
    ),
    *(
        Case(
            "workers.work_reachable",
            check(task(fate), delivered(status)),
            (
                check(task(fate), delivered(status, ON_BRANCH)),
                check(
                    task(fate), picture(view("alpha", status), receipts=(receipt(committed=False),))
                ),
                check(
                    task(fate),
                    picture(
                        view("alpha", "rebasing"),
                        receipts=(receipt(),),
                        commits=(),
                    ),
                ),
            ),
            TOKEN,
            ("commits",),
        )
        for fate, status in (("open", "needs_review"), ("merged", "idle"))
    ),
)


def evaluate(rule: str, case: Check) -> list[Violation]:
    """Only this rule; `Unreadable` passes through."""
    if rule in INVARIANTS:
        return list(INVARIANTS[rule][0](case))
    return [violation for violation, _ in audit(case) if violation.rule == rule]


def hidden(case: Check, fact: str) -> Check:
    """The same without one fact, as if its probe had failed."""
    if fact == "dirty":
        trees = {name: replace(tree, dirty=None) for name, tree in case.seen.worktrees.items()}
        return replace(case, seen=replace(case.seen, worktrees=trees))
    if fact == "worktrees":
        return replace(case, seen=replace(case.seen, worktrees={}))
    if fact.startswith("before."):
        field = fact.removeprefix("before.")
        return replace(case, before=replace(case.before, **{field: None}))
    return replace(case, seen=replace(case.seen, **{fact: None}))


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


# --- all rules together
# --------------------------------------------------------------------------------


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} == set(RULES) - JUDGED_ELSEWHERE


def test_every_rule_that_is_evaluated_is_declared_and_the_other_way_round() -> None:
    ledger = {case.rule for case in CASES} - set(INVARIANTS)
    assert set(INVARIANTS) <= set(RULES)
    assert set(INVARIANTS) | ledger | JUDGED_ELSEWHERE == set(RULES)


def test_every_rule_about_answers_is_tested_elsewhere() -> None:
    here = Path(__file__).parent
    texts = "".join((here / name).read_text() for name in ("test_classify.py", "test_judge.py"))
    assert {rule for rule in JUDGED_ELSEWHERE if f'"{rule}"' not in texts} == set()


def test_the_seeds_thirteen_are_all_there() -> None:
    assert len([rule for rule in RULES.values() if rule.seed_invariant]) == 13


def test_every_rule_says_what_it_promises_and_where_it_belongs() -> None:
    categories = {
        *("Crashes", "State corruption", "Stuck workers", "Lost work", "Recovery failures"),
        *("Race conditions", "Zombie processes", "Git corruption"),
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
    seen = picture(view("alpha", status), view("beta"))
    believed = believed.with_worker(belief("beta"))
    for operation in (op.Sleep(), op.Status(), op.Settle(), op.Up()):
        broken, unreadable = check_state(believed, operation, True, seen, seen, {})
        assert ([item.violation.message for item in broken], unreadable) == ([], ())


def test_a_blind_look_proves_nothing() -> None:
    """All probes failed: many rules say so, none passes by accident, none is broken."""
    blind = picture(
        view(), sessions=None, daemons=None, agents=None, commits=None, default_tokens=None
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

    monkeypatch.setitem(INVARIANTS, "workers.state_readable", (crash, False))
    seen = picture(view(), state_in_place=True)
    broken, unreadable = check_state(ONE, op.Sleep(), True, seen, seen, {})
    assert [item.violation.rule for item in broken] == ["workers.state_atomic"]
    (said,) = unreadable
    assert said.startswith("workers.state_readable: ")
    assert "KeyError" in said


def test_eventual_rules_are_marked() -> None:
    seen = picture(view(), state_in_place=True, daemons=(DAEMON, replace(DAEMON, pid=101)))
    broken, _ = check_state(ONE, op.Sleep(), True, seen, seen, {})
    assert {item.violation.rule: item.eventual for item in broken} == {
        "workers.state_atomic": False,
        "workers.one_daemon": True,
    }


Touched = tuple[set[str], bool, bool]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (op.Sleep(), (set(), False, False)),
        (op.Accept("alpha"), (set(), False, False)),
        (op.Nuke("alpha"), ({"alpha"}, False, False)),
        (op.KillAgent("alpha"), ({"alpha"}, False, False)),
        (op.ResetWorker("alpha"), ({"alpha"}, False, False)),
        (op.KillTmuxServer(), (set(), True, False)),
        (op.KillDaemon(), (set(), False, True)),
        (op.Down(), (set(), True, True)),
        (op.Parallel((op.Nuke("beta"), op.Down())), ({"beta"}, True, True)),
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
