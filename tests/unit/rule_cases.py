"""For every rule about state: a picture that breaks it, and what comes close.

`test_invariants.py` evaluates them; the cases of the ledger are in `ledger_cases.py`.
"""

from __future__ import annotations

from dataclasses import replace

from rule_parts import (
    ASKED,
    CHILDREN,
    CUT_OFF,
    MANY,
    MAY_BE_AWAY,
    NO_AGENT,
    ONE,
    ORPHANING,
    READY,
    TELLING,
    WORKING,
    Case,
    away,
    begun,
    beside,
    died_at,
    ready,
    rebased,
    started,
    task,
    tree,
)

from builders import (
    AT,
    BASE,
    DAEMON,
    SHA,
    agent,
    belief,
    check,
    model,
    picture,
    view,
)
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.profile import LEGAL, Profile
from mutiny.kit import operations as common

STATE_CASES: tuple[Case, ...] = (
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
        check(MAY_BE_AWAY, picture(view("alpha", "offline"), agents=(agent(),))),
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
        "workers.rebased_is_on_top",
        rebased(),
        (
            *(rebased(parents=(BASE,)), rebased(due=""), rebased(status="working")),
            *(rebased(disturbed="KillAgent"), rebased(behaviours=("late-commit:5",))),
        ),
        "alpha",
        ("worktrees", "commits"),
    ),
    Case(
        "workers.begins_on_newest",
        begun(),
        (
            *(begun(parents=(BASE,)), begun(promised=False), begun(succeeded=False)),
            begun(operation=op.Message("alpha", "x")),
        ),
        "alpha",
        ("worktrees", "commits"),
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
    Case(
        "workers.agent_as_asked",
        check(ASKED, picture(view(), agents=(started("claude", "--model", "haiku"),))),
        (
            check(ASKED, picture(view(), agents=(started("claude", "--model", "opus"),))),
            check(ASKED, picture(view(), agents=(started("claude", "--model=opus-9"),))),
            check(ASKED, picture(view(), agents=(started(),))),
            check(ASKED, picture(view(), agents=(replace(started("claude"), alive=False),))),
            check(model(belief(model="opus")), picture(view(), agents=(started("claude"),))),
            check(replace(ASKED, workers={}), picture(agents=(started("claude"),))),
        ),
        subject="alpha",
        hide=("agents",),
    ),
    Case(
        "workers.others_left_alone",
        beside(op.Down()),
        (
            beside(op.Down(), intact=True),
            beside(op.KillTmuxServer()),
            beside(common.CrashAt(op.Down(), 3)),
            replace(beside(op.Down()), before=picture(view())),
        ),
        subject="",
    ),
    Case(
        "workers.nothing_outlives",
        check(CHILDREN, picture(view(), agents=(ORPHANING,))),
        (
            check(model(belief()), picture(view(), agents=(ORPHANING,))),
            check(CHILDREN, picture(view(), agents=(replace(ORPHANING, alive=True),))),
            check(CHILDREN, picture(view(), agents=(replace(ORPHANING, left_running=()),))),
            check(CHILDREN, picture(view(), agents=(ORPHANING,), daemons=())),
        ),
        subject="alpha",
        hide=("agents",),
    ),
    *(
        Case(
            "workers.backs_off",
            died_at(*ticks),
            (
                died_at(0, 100, 200),
                died_at(0, 600, 605),
                replace(died_at(*ticks), operation=op.Up()),
                replace(died_at(*ticks), model=model(belief())),
            ),
            subject="alpha",
        )
        for ticks in ((0, 10, 20), (0, 50, 150, 350))
    ),
    Case(
        "workers.refusal_changes_nothing",
        check(
            model(belief()),
            picture(view(), view("beta", "offline")),
            before=picture(view()),
            operation=common.WrongSetting(op.Add("beta")),
            succeeded=False,
        ),
        (
            check(
                model(belief()),
                picture(view()),
                operation=common.WrongSetting(op.Add("beta")),
                succeeded=False,
            ),
            check(
                model(),
                picture(),
                before=picture(view()),
                operation=op.Nuke("alpha"),
                succeeded=False,
            ),
            check(
                replace(model(belief()), faults=("CrashAt",)),
                picture(view(), view("beta", "offline")),
                before=picture(view()),
                operation=common.WrongSetting(op.Add("beta")),
                succeeded=False,
            ),
        ),
        subject="beta",
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
        for operation in (op.Accept("alpha"), common.ExpectError(op.Accept("alpha")))
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
                replace(READY, unfinished=frozenset({"alpha"})),
                picture(ready()),
                before=tree(ready(), head=None),
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
        "workers.no_growth",
        check(replace(ONE, opened={DAEMON.identity: 8}), picture(view(), daemons=(MANY,))),
        (
            check(replace(ONE, opened={DAEMON.identity: 90}), picture(view(), daemons=(MANY,))),
            check(ONE, picture(view(), daemons=(MANY,))),
            check(replace(ONE, opened={DAEMON.identity: 8}), picture(view())),
        ),
        "daemon",
    ),
    Case(
        "workers.no_crash",
        check(ONE, picture(view(), daemon_crash="KeyError: 'alpha'")),
        (
            check(ONE, picture(view())),
            check(replace(ONE, faults=("FillDisk",)), picture(view(), daemon_crash="full")),
        ),
        "daemon",
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
    Case(  # it came and went between two looks
        "workers.live_agent_kept",
        check(ONE, picture(view(), agents=(agent(), CUT_OFF)), before=picture(view())),
        (
            check(ONE, picture(view(), agents=(agent(), replace(CUT_OFF, cut_off=False)))),
            check(
                ONE,
                picture(view(), agents=(agent(), CUT_OFF)),
                before=picture(view(), agents=(agent(), CUT_OFF)),
            ),
            check(away(), picture(view(), agents=(agent(), CUT_OFF)), before=picture(view())),
        ),
        "alpha",
    ),
    *(
        Case(
            "workers.errors_told",
            check(TELLING, picture(view_)),
            (
                check(TELLING, picture(view("alpha", "error"))),
                check(TELLING, picture(view())),
                check(TELLING, picture(view("alpha", "offline", error_reason="it broke"))),
                check(ONE, picture(view_)),
            ),
            "alpha",
        )
        for view_ in (
            view("alpha", "error", error_reason=None),
            view("alpha", "working", error_reason="it broke"),
        )
    ),
    Case(
        "workers.error_has_cause",
        check(ONE, picture(view("alpha", "error"))),
        (
            check(ONE, picture(view())),
            check(replace(ONE, faults=("KillAgent",)), picture(view("alpha", "error"))),
            check(replace(ONE, source_dirty="edit"), picture(view("alpha", "error"))),
            check(model(belief("alpha", tokens=("MT-1",))), picture(view("alpha", "error"))),
            check(model(belief("alpha", behaviours=("exit",))), picture(view("alpha", "error"))),
            check(model(belief("alpha", disturbed="KillAgent")), picture(view("alpha", "error"))),
        ),
        "alpha",
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
                check(  # what it waited for nobody could see: the state was a fault's own
                    ONE, picture(view(), agents=later), before=replace(picture(view()), workers={})
                ),
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
                check(
                    ONE,
                    picture(view(), agents=later),
                    before=picture(view(), sessions=frozenset()),
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
        check(replace(ONE, source_dirty="edit"), picture(view(), source_edit_intact=False)),
        (
            check(replace(ONE, source_dirty="edit"), picture(view(), source_edit_intact=True)),
            check(ONE, picture(view(), source_edit_intact=None)),
        ),
        "source",
        ("source_edit_intact",),
    ),
    Case(
        "workers.way_out",
        check(
            task(status="error", profile=Profile(legal={**LEGAL, "Message": ("working",)})),
            picture(view("alpha", "error")),
        ),
        (
            check(task(status="error"), picture(view("alpha", "error"))),
            check(
                model(belief("alpha", "error"), profile=Profile(legal={})),
                picture(view("alpha", "error")),
            ),
        ),
        "alpha",
    ),
    Case(
        "workers.checkout_clean",
        check(ONE, picture(view(), source_dirty=("README.md",))),
        (
            check(
                replace(ONE, source_dirty="edit"),
                picture(view(), source_edit_intact=True, source_dirty=("README.md",)),
            ),
            check(ONE, picture(view(), source_dirty=())),
        ),
        "source",
        ("source_dirty",),
    ),
    # --- the ledger
)
