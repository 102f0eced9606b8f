"""The rules about state, one function each: beliefs and what is seen in, violations out.

A rule whose facts could not be read raises `Unreadable`; the engine turns that into an inconclusive
step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.model import WorkersModel, unwell
from mutiny.contracts.workers.observation import Observation, WorkerView
from mutiny.contracts.workers.profile import LEGAL
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.checking import Unreadable
from mutiny.kit.git_rules import stays_clean
from mutiny.kit.task_rules import dead_end
from mutiny.kit.views import AgentView, WorktreeView
from mutiny.model.operation import Kind, Operation, walk
from mutiny.model.violation import Violation


@dataclass(frozen=True)
class Check:
    """Everything that a rule may look at."""

    model: WorkersModel
    """Beliefs after the operation."""
    seen: Observation
    before: Observation
    """What was seen before the operation."""
    operation: Operation
    succeeded: bool
    touched: frozenset[str] = field(default_factory=frozenset)
    """Workers whose agents a command or fault may have ended since `before`."""
    all_touched: bool = False
    daemon_touched: bool = False

    def settled_workers(self) -> Iterator[WorkerView]:
        """Workers that no recent fault or start excuses."""
        for name, view in self.seen.workers.items():
            belief = self.model.workers.get(name)
            if belief is not None and belief.disturbed is None:
                yield view


Invariant = Callable[[Check], Iterable[Violation]]
INVARIANTS: dict[str, tuple[Invariant, bool]] = {}
"""Rule id -> (function, eventual). An eventual rule may be broken for the length of the target's
lag. Who has to keep each of them is said in `applicability.py`; while nobody could, it is not asked.
"""


def _rule(name: str, *, eventual: bool) -> Callable[[Invariant], Invariant]:
    def register(function: Invariant) -> Invariant:
        INVARIANTS[f"workers.{name}"] = (function, eventual)
        return function

    return register


_RESTING = ("idle", "needs_review", "no_changes")
_AGENTLESS = ("offline", "error")


@_rule("state_readable", eventual=True)
def state_readable(check: Check) -> Iterator[Violation]:
    seen, model = check.seen, check.model
    if not model.initialised or model.state_damaged or _on(model, faults.Forbid):
        return
    if seen.state_error:
        yield Violation(
            "workers.state_readable", f"The state file is unreadable: {seen.state_error}"
        )
    elif not seen.state_exists and model.workers:
        yield Violation("workers.state_readable", "The state file is gone.")


@_rule("worktree_exists", eventual=True)
def worktree_exists(check: Check) -> Iterator[Violation]:
    for view in check.settled_workers():
        if not _worktree(check.seen, view.name).exists:
            yield Violation(
                "workers.worktree_exists",
                f"Worker {view.name!r} is {view.status} but its worktree {view.worktree} does not exist.",
                view.name,
            )


@_rule("session_exists", eventual=True)
def session_exists(check: Check) -> Iterator[Violation]:
    sessions = _sessions(check.seen)
    for view in check.settled_workers():
        steady = check.model.workers[view.name].will_complete
        if steady and view.status not in _AGENTLESS and view.session not in sessions:
            yield Violation(
                "workers.session_exists",
                f"Worker {view.name!r} is {view.status} but its session {view.session!r} does not exist.",
                view.name,
                {"sessions": sorted(sessions)},
            )


@_rule("offline_has_no_agent", eventual=True)
def offline_has_no_agent(check: Check) -> Iterator[Violation]:
    for view in check.settled_workers():
        live = [agent for agent in _agents(check.seen) if agent.worker == view.name and agent.alive]
        if view.status == "offline" and live:
            yield Violation(
                "workers.offline_has_no_agent",
                f"Worker {view.name!r} is offline but its agent (pid {live[0].identity[0]}) runs.",
                view.name,
            )


@_rule("idle_has_no_prompt", eventual=False)
def idle_has_no_prompt(check: Check) -> Iterator[Violation]:
    for view in check.seen.workers.values():
        belief = check.model.workers.get(view.name)
        taken = not check.model.profile.start_is_immediate and belief is not None and belief.tokens
        if view.status == "idle" and view.prompt and not taken:
            yield Violation(
                "workers.idle_has_no_prompt",
                f"Worker {view.name!r} is idle but still has the prompt {view.prompt[:60]!r}.",
                view.name,
            )


@_rule("working_has_prompt", eventual=False)
def working_has_prompt(check: Check) -> Iterator[Violation]:
    for view in check.seen.workers.values():
        if view.status in ("working", "rejected") and not view.prompt:
            yield Violation(
                "workers.working_has_prompt",
                f"Worker {view.name!r} is {view.status} but has no prompt.",
                view.name,
            )


@_rule("review_has_commit", eventual=True)
def review_has_commit(check: Check) -> Iterator[Violation]:
    for view in check.seen.workers.values():
        if view.status != "needs_review":
            continue
        worktree = _worktree(check.seen, view.name)
        if not view.commit_sha:
            yield Violation(
                "workers.review_has_commit",
                f"Worker {view.name!r} was in needs_review state but commit_sha was {view.commit_sha}.",
                view.name,
            )
        elif worktree.exists and not _same(worktree.head or "", view.commit_sha):
            place = f"is at {worktree.head[:12]}" if worktree.head else "has no commit"
            yield Violation(
                "workers.review_has_commit",
                f"Worker {view.name!r} names commit {view.commit_sha[:12]} but its branch {place}.",
                view.name,
            )


def _same(full: str, given: str) -> bool:
    """Is a commit the one that is named, perhaps by the beginning of its name?"""
    return bool(full) and (full.startswith(given) or given.startswith(full))


@_rule("rebasing_is_in_rebase", eventual=True)
def rebasing_is_in_rebase(check: Check) -> Iterator[Violation]:
    for view in check.settled_workers():
        worktree = _worktree(check.seen, view.name)
        if not worktree.exists:
            continue
        belief = check.model.workers[view.name]
        if view.status == "rebasing" and not worktree.rebasing and belief.will_complete:
            yield Violation(
                "workers.rebasing_is_in_rebase",
                f"Worker {view.name!r} is rebasing but git has no rebase in progress.",
                view.name,
            )
        if view.status in (*_RESTING, "error") and worktree.rebasing:
            yield Violation(
                "workers.rebasing_is_in_rebase",
                f"Worker {view.name!r} is {view.status} but a rebase is half done in its worktree.",
                view.name,
            )


@_rule("on_branch", eventual=True)
def on_branch(check: Check) -> Iterator[Violation]:
    for view in check.settled_workers():
        worktree = _worktree(check.seen, view.name)
        if not worktree.exists or worktree.rebasing or view.status == "rebasing":
            continue
        if view.branch and worktree.branch != view.branch:
            yield Violation(
                "workers.on_branch",
                f"Worker {view.name!r} should be on {view.branch} but is on "
                f"{worktree.branch or 'a detached HEAD'}.",
                view.name,
            )


@_rule("tree_clean", eventual=True)
def tree_clean(check: Check) -> Iterator[Violation]:
    for view in check.settled_workers():
        worktree = _worktree(check.seen, view.name)
        if view.status not in ("idle", "needs_review") or not worktree.exists:
            continue
        if worktree.dirty is None:
            raise Unreadable(f"the uncommitted changes of worker {view.name!r}")
        if worktree.dirty:
            yield Violation(
                "workers.tree_clean",
                f"Worker {view.name!r} is {view.status} but has uncommitted changes: "
                + ", ".join(worktree.dirty[:5]),
                view.name,
            )


@_rule("idle_is_fresh", eventual=True)
def idle_is_fresh(check: Check) -> Iterator[Violation]:
    commits = check.seen.commits
    if commits is None:
        raise Unreadable("the commits of the source repository")
    merged = {commit.sha for commit in commits if commit.on_default}
    for view in check.settled_workers():
        worktree = _worktree(check.seen, view.name)
        if view.status != "idle" or view.pending_prompt or not worktree.head:
            continue
        if worktree.head not in merged:
            yield Violation(
                "workers.idle_is_fresh",
                f"Worker {view.name!r} is idle but its branch is at {worktree.head[:12]}, "
                "which is not on the default branch.",
                view.name,
            )


@_rule("daemon_flag_true", eventual=True)
def daemon_flag_true(check: Check) -> Iterator[Violation]:
    flag, daemons = check.seen.daemon_flag, check.seen.daemons
    if flag is None or check.model.state_damaged:
        return
    if daemons is None:
        raise Unreadable("the process list")
    if flag and not daemons and not check.model.daemon_killed:
        yield Violation(
            "workers.daemon_flag_true", "daemon_running is true but no daemon runs.", "daemon"
        )
    if daemons and not flag:
        yield Violation(
            "workers.daemon_flag_true",
            f"daemon_running is false but the daemon runs (pid {daemons[0].pid}).",
            "daemon",
        )


@_rule("agent_running", eventual=True)
def agent_running(check: Check) -> Iterator[Violation]:
    agents = _agents(check.seen)
    for view in check.settled_workers():
        belief = check.model.workers[view.name]
        if view.status in _AGENTLESS or not belief.will_complete:
            continue
        if not any(agent.worker == view.name and agent.alive for agent in agents):
            yield Violation(
                "workers.agent_running",
                f"Worker {view.name!r} is {view.status} but no agent runs in its session.",
                view.name,
            )


@_rule("status_follows_model", eventual=False)
def status_follows_model(check: Check) -> Iterator[Violation]:
    if check.model.state_damaged:
        return  # an old copy tells of old statuses until the target has noticed
    for name, view in check.seen.workers.items():
        if name not in check.model.workers:
            continue
        allowed = check.model.allowed(name)
        if view.status not in allowed:
            yield Violation(
                "workers.status_follows_model",
                f"Worker {name!r} is {view.status}; allowed now: {', '.join(sorted(allowed))}.",
                name,
                {"error_reason": view.error_reason},
            )


@_rule("refusal_changes_nothing", eventual=False)
def refusal_changes_nothing(check: Check) -> Iterator[Violation]:
    command = (
        isinstance(check.operation, common.ExpectError) or check.operation.kind is Kind.COMMAND
    )
    if check.succeeded or not command or check.model.lasting:
        return
    before, seen = check.before, check.seen
    if before.default_head != seen.default_head:
        yield Violation(
            "workers.refusal_changes_nothing",
            f"{check.operation} was refused, but the source's default branch moved from "
            f"{(before.default_head or 'nothing')[:12]} to {(seen.default_head or 'nothing')[:12]}.",
            "source",
        )
    for view in check.settled_workers():
        belief = check.model.workers[view.name]
        resting = view.status in _RESTING and before.status_of(view.name) == view.status
        if not resting or belief.stale_base:
            continue
        old, new = _worktree(before, view.name), _worktree(seen, view.name)
        if old.head != new.head:
            yield Violation(
                "workers.refusal_changes_nothing",
                f"{check.operation} was refused, but the branch of worker {view.name!r} moved from "
                f"{(old.head or 'nothing')[:12]} to {(new.head or 'nothing')[:12]}.",
                view.name,
            )


@_rule("review_means_done", eventual=True)
def review_means_done(check: Check) -> Iterator[Violation]:
    for view in check.settled_workers():
        busy = [a for a in _agents(check.seen) if a.worker == view.name and a.alive and a.busy]
        if view.status == "needs_review" and busy and check.model.workers[view.name].will_complete:
            yield Violation(
                "workers.review_means_done",
                f"Worker {view.name!r} needs review but its agent (pid {busy[0].identity[0]}) "
                "has not ended its turn.",
                view.name,
            )


@_rule("worker_kept", eventual=True)
def worker_kept(check: Check) -> Iterator[Violation]:
    if check.seen.state_error or not check.seen.state_exists or check.model.state_damaged:
        return  # a state that cannot be read says nothing about who is in it
    for name in check.model.workers:
        if name not in check.seen.workers:
            yield Violation(
                "workers.worker_kept", f"Worker {name!r} has vanished from the state.", name
            )


@_rule("nuked_is_gone", eventual=True)
def nuked_is_gone(check: Check) -> Iterator[Violation]:
    for agent in _agents(check.seen):
        if agent.alive and agent.worker and agent.worker not in check.model.workers:
            yield Violation(
                "workers.nuked_is_gone",
                f"An agent (pid {agent.identity[0]}) runs for {agent.worker!r}, which is no worker "
                "any more, or never was.",
                agent.worker,
            )
    for name in check.seen.workers:
        if name not in check.model.workers and not check.model.state_damaged:
            yield Violation(
                "workers.nuked_is_gone", f"Worker {name!r} is in the state but was not added.", name
            )


@_rule("recovers", eventual=False)
def recovers(check: Check) -> Iterator[Violation]:
    limit = check.seen.pace.limit(check.model.profile.limits.recover_s)
    if check.model.daemon_certain is not True or check.model.lasting:
        return
    for name, belief in check.model.workers.items():
        stuck_s = check.seen.at - max(belief.disturbed_at, belief.moved_at)
        if belief.disturbed is None or stuck_s <= limit or check.seen.status_of(name) == "error":
            continue
        wrong = unwell(check.seen, name)
        if wrong is None:
            continue  # it is there; only its status is not one of those that were expected
        yield Violation(
            "workers.recovers",
            f"{wrong[:1].upper()}{wrong[1:]} {check.seen.at - belief.disturbed_at:.0f}s after "
            f"{belief.disturbed}, and nothing has moved for {stuck_s:.0f}s.",
            name,
        )


@_rule("completes", eventual=False)
def completes(check: Check) -> Iterator[Violation]:
    limit = check.seen.pace.limit(check.model.profile.limits.complete_s)
    if check.model.daemon_certain is not True or check.model.lasting:
        return
    for name, belief in check.model.workers.items():
        if belief.due_at is None or belief.disturbed is not None:
            continue
        stuck_s = check.seen.at - max(belief.due_at, belief.moved_at)
        status = check.seen.status_of(name)
        if stuck_s > limit and status in ("working", "rejected", "rebasing"):
            yield Violation(
                "workers.completes",
                f"Worker {name!r} is still {status} {check.seen.at - belief.due_at:.0f}s after it was "
                f"due to finish, and nothing has moved for {stuck_s:.0f}s.",
                name,
            )


@_rule("state_atomic", eventual=False)
def state_atomic(check: Check) -> Iterator[Violation]:
    if check.seen.state_in_place:
        yield Violation(
            "workers.state_atomic",
            "The state file was written in place: a crash at this moment would have left half of it.",
        )


@_rule("daemon_survives", eventual=False)
def daemon_survives(check: Check) -> Iterator[Violation]:
    if check.before.daemons is None or check.seen.daemons is None:
        raise Unreadable("the process list")
    starved = _on(check.model, faults.LowerLimit)
    if check.seen.daemon_alive or check.daemon_touched or starved:
        return
    if check.before.daemon_alive:
        yield Violation("workers.daemon_survives", "The daemon died by itself.", "daemon")
    elif isinstance(check.operation, op.Up) and check.succeeded:
        yield Violation("workers.daemon_survives", "Up succeeded but no daemon runs.", "daemon")


@_rule("one_daemon", eventual=True)
def one_daemon(check: Check) -> Iterator[Violation]:
    if check.seen.daemons is None:
        raise Unreadable("the process list")
    if len(check.seen.daemons) > 1:
        pids = ", ".join(str(process.pid) for process in check.seen.daemons)
        yield Violation(
            "workers.one_daemon", f"Several daemons run at once: pids {pids}.", "daemon"
        )


@_rule("one_agent", eventual=True)
def one_agent(check: Check) -> Iterator[Violation]:
    live: dict[str, list[int]] = {}
    for agent in _agents(check.seen):
        if agent.alive:
            live.setdefault(agent.worker, []).append(agent.identity[0])
    for worker, pids in live.items():
        if len(pids) > 1:
            yield Violation(
                "workers.one_agent",
                f"Worker {worker!r} has {len(pids)} agents at once: pids {', '.join(map(str, pids))}.",
                worker,
            )


@_rule("no_orphan_session", eventual=True)
def no_orphan_session(check: Check) -> Iterator[Violation]:
    if check.model.state_damaged or check.seen.state_error:
        return
    known = {view.session for view in check.seen.workers.values()}
    for session in sorted(_sessions(check.seen) - known):
        yield Violation(
            "workers.no_orphan_session", f"Session {session!r} belongs to no worker.", session
        )


@_rule("live_agent_kept", eventual=False)
def live_agent_kept(check: Check) -> Iterator[Violation]:
    if check.all_touched:
        return
    now = {agent.identity: agent for agent in _agents(check.seen)}
    for agent in _agents(check.before):
        belief = check.model.workers.get(agent.worker)
        if not agent.alive or agent.worker in check.touched or belief is None:
            continue
        if belief.disturbed is not None or not belief.will_complete or belief.hits:
            continue
        waiting = check.before.status_of(agent.worker) in ("working", "rejected", "rebasing")
        if waiting and not agent.busy:
            continue  # whether its prompt arrived may be unknown; then replacing it is the safe way
        later = now.get(agent.identity)
        if later is None or not later.alive:
            yield Violation(
                "workers.live_agent_kept",
                f"The agent of worker {agent.worker!r} (pid {agent.identity[0]}) was alive before "
                f"{check.operation} and is gone, though nothing named that worker.",
                agent.worker,
                {"busy": agent.busy},
            )


@_rule("down_ends_all", eventual=True)
def down_ends_all(check: Check) -> Iterator[Violation]:
    if not isinstance(check.operation, op.Down) or not check.succeeded:
        return
    if check.seen.daemons is None:
        raise Unreadable("the process list")
    if check.seen.daemon_alive:
        yield Violation("workers.down_ends_all", "Down succeeded but the daemon runs.", "daemon")
    for agent in _agents(check.seen):
        if agent.alive:
            yield Violation(
                "workers.down_ends_all",
                f"Down succeeded but the agent of worker {agent.worker!r} runs.",
                agent.worker,
            )


@_rule("source_untouched", eventual=False)
def source_untouched(check: Check) -> Iterator[Violation]:
    if not check.model.source_dirty:
        return
    if check.seen.source_edit_intact is None:
        raise Unreadable("the user's edit in the source repository")
    if not check.seen.source_edit_intact:
        yield Violation(
            "workers.source_untouched",
            "The user's uncommitted edit in the source repository was destroyed.",
            "source",
        )


@_rule("way_out", eventual=False)
def way_out(check: Check) -> Iterator[Violation]:
    serves = {name: check.model.profile.serves(name) for name in LEGAL}
    for view in check.settled_workers():
        open_work = bool(check.model.workers[view.name].tokens)
        if view.status not in (*_RESTING, "error") or not open_work:
            continue
        for message in dead_end(f"Worker {view.name!r}", view.status, serves):
            yield Violation("workers.way_out", message, view.name)


@_rule("checkout_clean", eventual=True)
def checkout_clean(check: Check) -> Iterator[Violation]:
    if check.model.source_dirty or check.model.lasting or check.seen.default_head is None:
        return
    if check.seen.source_dirty is None:
        raise Unreadable("the changes in the user's checkout")
    for message in stays_clean(check.seen.source_dirty, check.operation):
        yield Violation("workers.checkout_clean", message, "source")


def _on(model: WorkersModel, kind: type[common.LibraryFault]) -> bool:
    """Is a lasting fault of this kind on?"""
    return any(isinstance(fault, kind) for fault in model.lasting)


def _worktree(seen: Observation, worker: str) -> WorktreeView:
    if worker not in seen.worktrees:
        raise Unreadable(f"the worktree of worker {worker!r}")
    return seen.worktrees[worker]


def _sessions(seen: Observation) -> frozenset[str]:
    if seen.sessions is None:
        raise Unreadable("the list of tmux sessions")
    return seen.sessions


def _agents(seen: Observation) -> tuple[AgentView, ...]:
    if seen.agents is None:
        raise Unreadable("the list of agents")
    return seen.agents


ENDS_ALL_AGENTS = (op.Down, op.KillTmuxServer, common.Reset, op.Init)
ENDS_ONE_AGENT = (op.Nuke, op.ResetWorker, op.KillAgent, op.KillTmuxSession, op.Add)


def touched_workers(
    operation: Operation, *, up_restarts: bool
) -> tuple[frozenset[str], bool, bool]:
    """Workers whose agents an operation may end, whether that is all of them, and whether the
    daemon is meant.
    """
    names: set[str] = set()
    everyone = daemon = False
    for part in walk(operation):
        everyone |= isinstance(part, ENDS_ALL_AGENTS) or (up_restarts and isinstance(part, op.Up))
        daemon |= isinstance(part, op.Down | op.KillDaemon | common.Reset)
        if isinstance(part, common.SweepPoint | common.KillDuring):
            everyone |= part.ends_world
            daemon |= part.ends_world or isinstance(part.operation, op.Up)
        daemon |= isinstance(part, faults.LowerLimit) and part.may_kill
        name = common.worker_of(part)
        if name and isinstance(part, ENDS_ONE_AGENT):
            names.add(name)
    return frozenset(names), everyone, daemon
