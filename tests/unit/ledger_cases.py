"""For every rule of the ledger: a picture that breaks it, and what comes close."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rule_parts import MERGED, ON_BRANCH, Case, delivered, ready, task

from builders import (
    HISTORY,
    SHA,
    TOKEN,
    belief,
    check,
    commit,
    model,
    picture,
    receipt,
    view,
)
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.looking import Check
from mutiny.contracts.workers.model import Work, WorkersModel
from mutiny.contracts.workers.observation import Observation, TaskView
from mutiny.contracts.workers.profile import Profile
from mutiny.kit import operations as common
from mutiny.kit.views import Commit
from mutiny.model.operation import Operation

LATER = "MT-0-2"
ACCEPT = op.Accept("alpha")


def _said(text: str) -> WorkersModel:
    """One worker was given a task in these words."""
    return replace(task(), work={TOKEN: Work(TOKEN, "task", "alpha", said=text)})


def _heard(text: str | None, kind: str = "task") -> Observation:
    """Its agent has received these."""
    return picture(view("alpha", "working"), receipts=(receipt(text=text, kind=kind),))


def _accounted(fate: str, *kept: TaskView, kind: str = "task", status: str = "working") -> Check:
    """One task, and the account that the target keeps."""
    believed = replace(task(), work={TOKEN: Work(TOKEN, kind, "alpha", fate)})
    look = picture(view("alpha", status), commits=(MERGED,), tasks=kept)
    return check(believed, look)


GIVEN_UP = TaskView("t1", "given_up", f"Create a.txt ({TOKEN})")


def _two_said(fate: str = "open", later: str = "open", worker: str = "alpha") -> WorkersModel:
    """A task, and then a message."""
    first, second = Work(TOKEN, "task", "alpha", fate), Work(LATER, "message", worker, later)
    return replace(task(), work={TOKEN: first, LATER: second})


def _heard_in(*tokens: str) -> Observation:
    """Agents have received these, in this order."""
    told = tuple(receipt(token=token, tokens=(token,)) for token in tokens)
    return picture(view("alpha", "working"), receipts=told)


def _heard_by(*told: tuple[int, str], kind: str = "task") -> Observation:
    """These agents have received these, in this order."""
    received = tuple(
        receipt(token=token, tokens=(token,), agent=(pid, 1), kind=kind) for pid, token in told
    )
    return picture(view("alpha", "working"), receipts=received)


SHAPED = "100755 20 shapes/a file"


def _unfinished(*, keeps_uncommitted: bool = True) -> WorkersModel:
    """A task that was given up, of a target that keeps what was not committed."""
    promises = Profile(keeps_discarded=True, keeps_uncommitted=keeps_uncommitted)
    return task("discarded", profile=promises)


def _written(commits: tuple[Commit, ...] = (), *, wrote: bool = True) -> Observation:
    """Its agent had written files, and had committed nothing."""
    told = receipt(committed=False, finished=False, wrote=wrote)
    return picture(view(), receipts=(told,), commits=commits)


def _given_up(agents: frozenset[tuple[int, int]] | None, fate: str = "discarded") -> WorkersModel:
    """A task that only these agents can know of."""
    return replace(task(), work={TOKEN: Work(TOKEN, "task", "alpha", fate, known_to=agents)})


def _landed(*untold: str, conflicted: tuple[str, ...] = (), by: Operation = ACCEPT) -> Check:
    """An accept, or something else, and the files without a token, or with the marks of a conflict, that
    are there after it.
    """
    known, old = frozenset({"main:README.md"}), frozenset({"main:docs/conflicts.md"})
    now = {"default_untold": known | set(untold), "default_conflicted": old | set(conflicted)}
    seen = delivered("idle", MERGED, **now)
    before = delivered("idle", MERGED, default_untold=known, default_conflicted=old)
    return check(task("merged"), seen, before=before, operation=by)


def _shaped(*tree: str, shape: tuple[str, ...] = (SHAPED,), **changes: Any) -> Check:
    """Work that was accepted, with what the agent did beside lines of text, and the branch's tree."""
    told = receipt(shape=shape, removed=("old/notes.md",), **changes)
    seen = replace(delivered("idle", MERGED, default_shape=frozenset(tree)), receipts=(told,))
    return check(task("merged"), seen)


LEDGER_CASES: tuple[Case, ...] = (
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
        "workers.delivered_whole",
        check(_said("Create a.txt;"), _heard("Preamble. Create a.txt (ref MT-0-1)")),
        (
            check(_said("Create a.txt;"), _heard("Preamble. Create a.txt (ref MT-0-1);")),
            check(_said("Create a.txt; b"), _heard("Create\ra.txt; b (ref MT-0-1)")),
            check(_said("Create a.txt;"), _heard(None)),
            check(_said(""), _heard("Create a.txt (ref MT-0-1)")),
            check(_said("Create a.txt;"), _heard("conflict (ref MT-0-1)", kind="conflict")),
        ),
        TOKEN,
    ),
    Case(
        "workers.delivered_whole",
        check(_said("/a b c d.txt"), _heard("/abcd.txt (ref MT-0-1)")),
        (check(_said("/a b c d.txt"), _heard("Preamble. /a  b\nc d.txt (ref MT-0-1)")),),
        TOKEN,
    ),
    Case(
        "workers.delivered_in_order",
        check(_two_said(), _heard_in(LATER, TOKEN)),
        (
            check(_two_said(), _heard_in(TOKEN, LATER)),
            check(_two_said(), _heard_in(TOKEN, LATER, TOKEN)),
            check(_two_said(), _heard_in(TOKEN)),
            check(_two_said("unknown"), _heard_in(LATER, TOKEN)),
            check(_two_said("discarded"), _heard_in(LATER)),
            check(_two_said(later="unknown"), _heard_in(LATER, TOKEN)),
            check(_two_said(worker="beta"), _heard_in(LATER, TOKEN)),
        ),
        LATER,
    ),
    Case(  # the agent that came after one that died
        "workers.delivered_in_order",
        check(_two_said(), _heard_by((1, TOKEN), (2, LATER), (2, TOKEN))),
        (
            check(_two_said(), _heard_by((1, TOKEN), (2, TOKEN), (2, LATER))),
            check(_two_said(), _heard_by((1, TOKEN), (2, LATER))),
            check(_two_said("merged"), _heard_by((1, TOKEN), (2, LATER), (2, TOKEN))),
            check(_two_said(), _heard_by((1, TOKEN), (2, LATER), (2, TOKEN), kind="conflict")),
        ),
        LATER,
    ),
    Case(
        "workers.given_up_stays_so",
        check(_given_up(frozenset({(7, 7)})), _heard_in(TOKEN)),
        (
            check(_given_up(frozenset({receipt().agent})), _heard_in(TOKEN)),
            check(_given_up(None), _heard_in(TOKEN)),
            check(_given_up(frozenset({(7, 7)}), fate="open"), _heard_in(TOKEN)),
            check(_given_up(frozenset({(7, 7)})), _heard_in()),
        ),
        TOKEN,
    ),
    *(
        Case(
            "workers.tasks_accounted",
            _accounted("merged", kept),
            (
                _accounted(
                    "merged", TaskView("t1", "merged", f"Create a.txt ({TOKEN})", MERGED.sha)
                ),
                _accounted("open", TaskView("t1", "open", f"Create a.txt ({TOKEN})")),
                _accounted(
                    "merged",
                    TaskView("t1", "merged", f"Create a.txt ({TOKEN})", MERGED.sha),
                    TaskView("t10", "open", f"Create j.txt ({TOKEN}0)"),
                ),
                _accounted("unknown"),
                _accounted("merged", kind="message"),
            ),
            TOKEN,
        )
        for kept in (
            TaskView("t1", "merged", "Create b.txt (MT-0-9)", MERGED.sha),
            TaskView("t1", "open", f"Create a.txt ({TOKEN})"),
            TaskView("t1", "merged", f"Create a.txt ({TOKEN})", "f" * 40),
        )
    ),
    Case(
        "workers.tasks_accounted",
        _accounted("open", GIVEN_UP),
        (
            _accounted("open", TaskView("t1", "open", f"Create a.txt ({TOKEN})")),
            _accounted("open", GIVEN_UP, status="error"),
            _accounted("open", GIVEN_UP, status="offline"),
        ),
        TOKEN,
    ),
    Case(
        "workers.only_work_lands",
        _landed("main:.agent/settings.json"),
        (
            _landed(),
            _landed("main:README.md"),
            _landed("main:upstream.txt", by=op.MoveSource("upstream.txt")),
        ),
        "source",
        ("default_untold", "before.default_untold"),
    ),
    Case(
        "workers.only_work_lands",
        _landed(conflicted=("main:shared.txt",)),
        (_landed(), _landed(conflicted=("main:shared.txt",), by=op.MoveSource("shared.txt"))),
        "source",
        ("default_conflicted", "before.default_conflicted"),
    ),
    *(
        Case(
            "workers.lands_whole",
            _shaped(*tree),
            (_shaped(SHAPED), _shaped(SHAPED, "100644 9 old/other.md"), _shaped(shape=())),
            TOKEN,
            ("default_shape",),
        )
        for tree in (
            (SHAPED, "100644 28 old/notes.md"),
            (SHAPED.replace("100755", "100644"),),
            (SHAPED.replace(" 20 ", " 19 "),),
            (),
        )
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
        "workers.default_moves_forward",
        check(
            task(),
            delivered("working", ON_BRANCH, default_head=SHA),
            before=delivered("working", MERGED),
        ),
        (
            check(
                task("merged"),
                delivered("idle", MERGED, default_head=SHA),
                before=delivered("idle", ON_BRANCH),
            ),
            check(task("merged"), delivered("idle", MERGED), before=delivered("idle", MERGED)),
        ),
        "source",
        ("commits", "before.commits"),
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
    Case(  # written, not committed, and nuked or reset
        "workers.discarded_is_kept",
        check(_unfinished(), _written()),
        (
            check(_unfinished(), _written(commits=(Commit(SHA, (), False, (TOKEN,)),))),
            check(_unfinished(keeps_uncommitted=False), _written()),
            check(_unfinished(), _written(wrote=False)),
        ),
        TOKEN,
        ("commits",),
    ),
    Case(  # done and committed, and called nothing
        "workers.nothing_lost",
        check(task(status="no_changes"), delivered("no_changes", ON_BRANCH)),
        (
            check(task("merged", status="no_changes"), delivered("no_changes", ON_BRANCH)),
            *(
                check(
                    task(status="no_changes"),
                    picture(
                        view("alpha", "no_changes"),
                        receipts=(told,),
                        commits=(ON_BRANCH,),
                    ),
                )
                for told in (receipt(committed=False), receipt(finished=False))
            ),
            check(
                model(
                    belief("alpha", "no_changes", tokens=(TOKEN, LATER)),
                    work=(Work(TOKEN, "task", "alpha"),),
                ),
                delivered("no_changes", ON_BRANCH),
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
        check(task(), picture(view("alpha", "working")), operation=common.Settle()),
        (
            check(task(), picture(view("alpha", "working"))),
            check(
                model(
                    belief("alpha", "working", tokens=(TOKEN,), behaviours=("swallow",)),
                    work=(Work(TOKEN, "task", "alpha"),),
                ),
                picture(view("alpha", "working")),
                operation=common.Settle(),
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
