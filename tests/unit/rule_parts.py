"""What the cases of rules about state are made of: a case, and pictures that many of them need."""

from dataclasses import dataclass, replace
from typing import Any

from builders import (
    BASE,
    DAEMON,
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
from mutiny.contracts.workers.looking import Check
from mutiny.contracts.workers.model import Work, WorkersModel
from mutiny.contracts.workers.observation import Observation, WorkerView
from mutiny.contracts.workers.profile import Profile
from mutiny.kit import views
from mutiny.model.operation import Operation


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


def beside(operation: Operation, *, intact: bool = False) -> Check:
    """Somebody's session, before and after an operation."""
    there = picture(view(), neighbours={"session 'notes'": True})
    now = replace(there, neighbours={"session 'notes'": intact})
    return check(model(belief()), now, before=there, operation=operation)


def rebased(
    *, parents: tuple[str, ...] = (), status: str = "needs_review", due: str = BASE, **more: Any
) -> Check:
    """A worker's branch when a rebase was taken for it: its one commit, and what that stands on."""
    shown = view("alpha", status, commit_sha=SHA)
    commits = (views.Commit(BASE, (), True), views.Commit(SHA, (), False, (), parents))
    now = replace(picture(shown), commits=commits, default_head=BASE)
    return check(model(belief("alpha", status, rebase_due=due, **more)), now)


def begun(*, promised: bool = True, parents: tuple[str, ...] = (), **more: Any) -> Check:
    """A worker that was just given a task, while the default branch is at `BASE`."""
    given, profile = op.Start("alpha", "x"), Profile(begins_on_newest=promised)
    commits = (views.Commit(BASE, (), True), views.Commit(SHA, (), False, (), parents))
    now = tree(view("alpha", "working", prompt="x"), head=SHA)
    now = replace(now, commits=commits, default_head=BASE)
    believed = replace(model(belief("alpha", "working")), profile=profile)
    return check(believed, now, before=now, **{"operation": given, **more})


def died_at(*ticks: int) -> Check:
    """Agents of one worker that began at these moments and died; nobody had asked for them."""
    dead = tuple(
        replace(agent("alpha", 300 + tick), identity=(300 + tick, tick), alive=False)
        for tick in ticks
    )
    profile = Profile(restart_pause_s=0.4, most_restarts=3)
    return check(
        replace(model(belief()), profile=profile),
        picture(view(), agents=(agent(), *dead)),
        before=picture(view()),
    )


ASKED = replace(model(belief(model="opus")), profile=Profile(passes_model=True))


def started(*argv: str) -> views.AgentView:
    return replace(agent(), argv=argv)


CHILDREN = replace(model(belief()), profile=Profile(ends_children=True))
ORPHANING = replace(agent(), alive=False, left_running=((300, 9),))
ONE = model(belief())
MAY_BE_AWAY = model(belief("alpha", offline_allowed=True))
READY = model(belief("alpha", "needs_review"))
WORKING = model(belief("alpha", "working"))
NO_AGENT = {"sessions": frozenset(), "agents": ()}
MERGED = commit(on_default=True)
ON_BRANCH = commit(on_default=False)

MANY = replace(DAEMON, descriptors=100)
CUT_OFF = replace(agent(pid=201, alive=False), cut_off=True)
TELLING = replace(ONE, profile=Profile(tells_errors=True))
