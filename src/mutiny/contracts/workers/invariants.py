"""The rules about state, one function each: beliefs and what is seen in, violations out.

A rule whose facts could not be read raises `Unreadable`; the engine turns that into an inconclusive
step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.model import WorkersModel, unwell
from mutiny.contracts.workers.observation import Observation, WorkerView
from mutiny.contracts.workers.profile import LEGAL
from mutiny.kit import checking, faults
from mutiny.kit import operations as common
from mutiny.kit.checking import Found, RuleBook, Unreadable
from mutiny.kit.git_rules import has_commit, stays_clean
from mutiny.kit.task_rules import dead_end
from mutiny.kit.views import AgentView, WorktreeView
from mutiny.model.operation import Kind, Operation, walk


@dataclass(frozen=True)
class Check(checking.Check[WorkersModel, Observation]):
    """Everything that a rule may look at."""

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


_RULES: RuleBook[Check] = RuleBook("workers")
INVARIANTS = _RULES.rules
"""Who has to keep each of them is said in `applicability.py`; while nobody could, it is not asked."""

_RESTING = ("idle", "needs_review", "no_changes")
TICKS_A_SECOND = 100
"""In these Linux tells when a process began."""
SPARE_DESCRIPTORS = 16
_AGENTLESS = ("offline", "error")


@_RULES.rule(eventual=True)
def state_readable(check: Check) -> Iterator[Found]:
    seen, model = check.seen, check.model
    if not model.initialised or model.state_damaged or _on(model, faults.Forbid):
        return
    if seen.state_error:
        yield "", f"The state file is unreadable: {seen.state_error}"
    elif not seen.state_exists and model.workers:
        yield "", "The state file is gone."


@_RULES.rule(eventual=True)
def worktree_exists(check: Check) -> Iterator[Found]:
    for view in check.settled_workers():
        if not _worktree(check.seen, view.name).exists:
            yield view.name, f"{view.standing} but its worktree {view.worktree} does not exist."


@_RULES.rule(eventual=True)
def session_exists(check: Check) -> Iterator[Found]:
    sessions = _sessions(check.seen)
    for view in check.settled_workers():
        steady = check.model.workers[view.name].will_complete
        # Where nobody shows statuses, the session stays whatever the agent in it does.
        excused = view.status in _AGENTLESS if check.model.profile.shows_ends else False
        if steady and not excused and view.session not in sessions:
            text = f"{view.standing} but its session {view.session!r} does not exist."
            yield view.name, text, {"sessions": sorted(sessions)}


@_RULES.rule(eventual=True)
def offline_has_no_agent(check: Check) -> Iterator[Found]:
    for view in check.settled_workers():
        live = [agent for agent in _agents(check.seen) if agent.worker == view.name and agent.alive]
        if view.status == "offline" and live:
            yield view.name, f"{view.standing} but its agent (pid {live[0].identity[0]}) runs."


@_RULES.rule(eventual=False)
def idle_has_no_prompt(check: Check) -> Iterator[Found]:
    for view in check.seen.workers.values():
        belief = check.model.workers.get(view.name)
        taken = not check.model.profile.start_is_immediate and belief is not None and belief.tokens
        if view.status == "idle" and view.prompt and not taken:
            yield view.name, f"{view.standing} but still has the prompt {view.prompt[:60]!r}."


@_RULES.rule(eventual=False)
def working_has_prompt(check: Check) -> Iterator[Found]:
    for view in check.seen.workers.values():
        if view.status in ("working", "rejected") and not view.prompt:
            yield view.name, f"{view.standing} but has no prompt."


@_RULES.rule(eventual=True)
def review_has_commit(check: Check) -> Iterator[Found]:
    for view in check.seen.workers.values():
        if view.status != "needs_review":
            continue
        worktree = _worktree(check.seen, view.name)
        who = f"Worker {view.name!r}"
        if not view.commit_sha:
            text = f"{who} was in needs_review state but commit_sha was {view.commit_sha}."
            yield view.name, text
        elif worktree.exists and not _same(worktree.head or "", view.commit_sha):
            place = f"is at {worktree.head[:12]}" if worktree.head else "has no commit"
            yield view.name, f"{who} names commit {view.commit_sha[:12]} but its branch {place}."


def _same(full: str, given: str) -> bool:
    """Is a commit the one that is named, perhaps by the beginning of its name?"""
    return bool(full) and (full.startswith(given) or given.startswith(full))


@_RULES.rule(eventual=True)
def rebased_is_on_top(check: Check) -> Iterator[Found]:
    given, base = check.operation, check.before.default_head
    if not isinstance(given, op.Rebase) or not check.succeeded or base is None:
        return
    # Whoever works has it put off, and whoever is in a conflict is not there yet.
    if check.seen.status_of(given.worker) != "needs_review":
        return
    tree = _worktree(check.seen, given.worker)
    if check.seen.commits is None:
        raise Unreadable("the commits")
    for message in has_commit(tree.branch, tree.head, base, check.seen.commits):
        yield given.worker, message


@_RULES.rule(eventual=True)
def rebasing_is_in_rebase(check: Check) -> Iterator[Found]:
    for view in check.settled_workers():
        worktree = _worktree(check.seen, view.name)
        if not worktree.exists:
            continue
        belief = check.model.workers[view.name]
        if view.status == "rebasing" and not worktree.rebasing and belief.will_complete:
            yield view.name, f"Worker {view.name!r} is rebasing but git has no rebase in progress."
        if view.status in (*_RESTING, "error") and worktree.rebasing:
            yield view.name, f"{view.standing} but a rebase is half done in its worktree."


@_RULES.rule(eventual=True)
def on_branch(check: Check) -> Iterator[Found]:
    for view in check.settled_workers():
        worktree = _worktree(check.seen, view.name)
        if not worktree.exists or worktree.rebasing or view.status == "rebasing":
            continue
        if check.model.astray(view.name, check.seen):
            continue
        if view.branch and worktree.branch != view.branch:
            place = worktree.branch or "a detached HEAD"
            yield view.name, f"Worker {view.name!r} should be on {view.branch} but is on {place}."


@_RULES.rule(eventual=True)
def tree_clean(check: Check) -> Iterator[Found]:
    for view in check.settled_workers():
        worktree = _worktree(check.seen, view.name)
        if view.status not in ("idle", "needs_review") or not worktree.exists:
            continue
        if worktree.dirty is None:
            raise Unreadable(f"the uncommitted changes of worker {view.name!r}")
        if worktree.dirty:
            changed = ", ".join(worktree.dirty[:5])
            yield view.name, f"{view.standing} but has uncommitted changes: {changed}"


@_RULES.rule(eventual=True)
def idle_is_fresh(check: Check) -> Iterator[Found]:
    commits = check.seen.commits
    if commits is None:
        raise Unreadable("the commits of the source repository")
    merged = {commit.sha for commit in commits if commit.on_default}
    for view in check.settled_workers():
        worktree = _worktree(check.seen, view.name)
        if view.status != "idle" or view.pending_prompt or not worktree.head:
            continue
        if worktree.head not in merged:
            text = f"{view.standing} but its branch is at {worktree.head[:12]}"
            yield view.name, f"{text}, which is not on the default branch."


@_RULES.rule(eventual=True)
def daemon_flag_true(check: Check) -> Iterator[Found]:
    flag, daemons = check.seen.daemon_flag, check.seen.daemons
    if flag is None or check.model.state_damaged:
        return
    if daemons is None:
        raise Unreadable("the process list")
    if flag and not daemons and not check.model.daemon_killed:
        yield "daemon", "daemon_running is true but no daemon runs."
    if daemons and not flag:
        yield "daemon", f"daemon_running is false but the daemon runs (pid {daemons[0].pid})."


@_RULES.rule(eventual=True)
def agent_running(check: Check) -> Iterator[Found]:
    agents = _agents(check.seen)
    for view in check.settled_workers():
        belief = check.model.workers[view.name]
        if view.status in _AGENTLESS or not belief.will_complete:
            continue
        if not any(agent.worker == view.name and agent.alive for agent in agents):
            yield view.name, f"{view.standing} but no agent runs in its session."


@_RULES.rule(eventual=False)
def status_follows_model(check: Check) -> Iterator[Found]:
    if check.model.state_damaged:
        return  # an old copy tells of old statuses until the target has noticed
    for name, view in check.seen.workers.items():
        if name not in check.model.workers:
            continue
        allowed = check.model.allowed(name)
        if view.status not in allowed:
            text = f"{view.standing}; allowed now: {', '.join(sorted(allowed))}."
            yield name, text, {"error_reason": view.error_reason}


@_RULES.rule(eventual=False)
def refusal_changes_nothing(check: Check) -> Iterator[Found]:
    asked = isinstance(check.operation, common.ExpectError | common.Wrongly)
    command = asked or check.operation.kind is Kind.COMMAND
    if check.succeeded or not command or check.model.lasting:
        return
    before, seen = check.before, check.seen
    if before.default_head != seen.default_head:
        moved = _moved("the source's default branch", before.default_head, seen.default_head)
        yield "source", f"{check.operation} was refused, but {moved}"
    if not (before.state_error or seen.state_error or check.model.faults):
        for name in sorted(set(before.workers) ^ set(seen.workers)):
            change = "is there now" if name in seen.workers else "is gone"
            yield name, f"{check.operation} was refused, but worker {name!r} {change}."
    for view in check.settled_workers():
        belief = check.model.workers[view.name]
        resting = view.status in _RESTING and before.status_of(view.name) == view.status
        unseen = bool(belief.tokens) and not check.model.profile.shows_ends
        may_work = "working" in belief.statuses or unseen  # between the two looks
        if not resting or may_work or belief.stale_base:
            continue
        old, new = _worktree(before, view.name), _worktree(seen, view.name)
        if old.head != new.head:
            moved = _moved(f"the branch of worker {view.name!r}", old.head, new.head)
            yield view.name, f"{check.operation} was refused, but {moved}"


def _moved(what: str, old: str | None, new: str | None) -> str:
    return f"{what} moved from {(old or 'nothing')[:12]} to {(new or 'nothing')[:12]}."


@_RULES.rule(eventual=True)
def review_means_done(check: Check) -> Iterator[Found]:
    for view in check.settled_workers():
        busy = [a for a in _agents(check.seen) if a.worker == view.name and a.alive and a.busy]
        if view.status == "needs_review" and busy and check.model.workers[view.name].will_complete:
            who = f"Worker {view.name!r} needs review but its agent (pid {busy[0].identity[0]})"
            yield view.name, f"{who} has not ended its turn."


@_RULES.rule(eventual=True)
def worker_kept(check: Check) -> Iterator[Found]:
    if check.seen.state_error or not check.seen.state_exists or check.model.state_damaged:
        return  # a state that cannot be read says nothing about who is in it
    for name in check.model.workers:
        if name not in check.seen.workers:
            yield name, f"Worker {name!r} has vanished from the state."


@_RULES.rule(eventual=True)
def nuked_is_gone(check: Check) -> Iterator[Found]:
    for agent in _agents(check.seen):
        if agent.alive and agent.worker and agent.worker not in check.model.workers:
            who = f"An agent (pid {agent.identity[0]}) runs for {agent.worker!r}"
            yield agent.worker, f"{who}, which is no worker any more, or never was."
    # What a fault wrote is nobody's word: a worker that only the damaged file knew was never there.
    for name, view in check.before.believable().workers.items():
        gone = name not in check.model.workers and name not in check.seen.workers
        if gone and view.worktree in check.seen.registered:
            yield name, f"Worker {name!r} is gone, but git still has its worktree {view.worktree}."
    for name in check.seen.workers:
        if name not in check.model.workers and not check.model.state_damaged:
            yield name, f"Worker {name!r} is in the state, but is no worker any more, or never was."


@_RULES.rule(eventual=False)
def recovers(check: Check) -> Iterator[Found]:
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
        late = f"{check.seen.at - belief.disturbed_at:.0f}s after {belief.disturbed}"
        text = f"{wrong[:1].upper()}{wrong[1:]} {late}, and nothing has moved for {stuck_s:.0f}s."
        yield name, text


@_RULES.rule(eventual=False)
def completes(check: Check) -> Iterator[Found]:
    limit = check.seen.pace.limit(check.model.profile.limits.complete_s)
    if check.model.daemon_certain is not True or check.model.lasting:
        return
    for name, belief in check.model.workers.items():
        if belief.due_at is None or belief.disturbed is not None:
            continue
        stuck_s = check.seen.at - max(belief.due_at, belief.moved_at)
        status = check.seen.status_of(name)
        if stuck_s > limit and status in ("working", "rejected", "rebasing"):
            late = f"{check.seen.at - belief.due_at:.0f}s after it was due to finish"
            text = f"Worker {name!r} is still {status} {late}, and nothing has moved for {stuck_s:.0f}s."
            yield name, text


@_RULES.rule(eventual=False)
def state_atomic(check: Check) -> Iterator[Found]:
    if check.seen.state_in_place:
        yield "", "The state file was written in place: a crash now would have left half of it."


@_RULES.rule(eventual=False)
def no_crash(check: Check) -> Iterator[Found]:
    """A daemon that goes on after a crash of its own has crashed all the same, unless a fault was on."""
    model = check.model
    excused = model.faults or model.lasting or model.state_damaged or model.doubted
    if check.seen.daemon_crash is not None and not excused:
        yield "daemon", f"The daemon tells of a crash in its log: {check.seen.daemon_crash}"


@_RULES.rule(eventual=False)
def daemon_survives(check: Check) -> Iterator[Found]:
    if check.before.daemons is None or check.seen.daemons is None:
        raise Unreadable("the process list")
    starved = _on(check.model, faults.LowerLimit)
    touched = check.daemon_touched or check.model.daemon_told
    if check.seen.daemon_alive or touched or starved:
        return
    if check.before.daemon_alive:
        yield "daemon", "The daemon died by itself."
    elif isinstance(check.operation, op.Up) and check.succeeded:
        yield "daemon", "Up succeeded but no daemon runs."


@_RULES.rule(eventual=True)
def no_growth(check: Check) -> Iterator[Found]:
    """Some come and go, and each worker may need a few: only more than that is growth."""
    spare = SPARE_DESCRIPTORS + 4 * len(check.model.workers)
    for daemon in check.seen.daemons or ():
        first = check.model.opened.get(daemon.identity)
        if first is None or daemon.descriptors is None:
            continue
        if daemon.descriptors > first + spare:
            counts = f"{daemon.descriptors} descriptors open, and had {first}"
            yield "daemon", f"The daemon (pid {daemon.pid}) has {counts} when it was first seen."


@_RULES.rule(eventual=True)
def one_daemon(check: Check) -> Iterator[Found]:
    if check.seen.daemons is None:
        raise Unreadable("the process list")
    if len(check.seen.daemons) > 1:
        pids = ", ".join(str(process.pid) for process in check.seen.daemons)
        yield "daemon", f"Several daemons run at once: pids {pids}."


@_RULES.rule(eventual=True)
def one_agent(check: Check) -> Iterator[Found]:
    live: dict[str, list[int]] = {}
    for agent in _agents(check.seen):
        if agent.alive:
            live.setdefault(agent.worker, []).append(agent.identity[0])
    for worker, pids in live.items():
        if len(pids) > 1:
            shown = ", ".join(map(str, pids))
            yield worker, f"Worker {worker!r} has {len(pids)} agents at once: pids {shown}."


@_RULES.rule(eventual=True)
def no_orphan_session(check: Check) -> Iterator[Found]:
    if check.model.state_damaged or check.seen.state_error:
        return
    known = {view.session for view in check.seen.workers.values()}
    for session in sorted(_sessions(check.seen) - known):
        yield session, f"Session {session!r} belongs to no worker."


@_RULES.rule(eventual=True)
def nothing_outlives(check: Check) -> Iterator[Found]:
    """Somebody must be there to end it: the daemon, or a command that has just ended the agent."""
    ends = isinstance(check.operation, op.Down | op.Nuke | op.ResetWorker) and check.succeeded
    if not check.model.profile.ends_children or not (ends or check.seen.daemon_alive):
        return
    for agent in _agents(check.seen):
        if agent.left_running and not agent.alive:
            pids = ", ".join(str(pid) for pid, _ in agent.left_running)
            who = f"The agent of worker {agent.worker!r} (pid {agent.identity[0]}) is dead"
            yield agent.worker, f"{who}, but what it has started lives on: pid {pids}."


_SPARES_OTHERS = (op.KillDaemon, op.KillAgent, op.KillTmuxSession, op.CorruptState, op.MoveSource)


@_RULES.rule(eventual=False)
def others_left_alone(check: Check) -> Iterator[Found]:
    """Faults of ours that may end a session of anybody excuse its end."""
    parts = (part for part in walk(check.operation) if not isinstance(part, _SPARES_OTHERS))
    if check.model.lasting or any(part.kind is Kind.FAULT for part in parts):
        return
    for what, intact in check.seen.neighbours.items():
        if not intact and check.before.neighbours.get(what):
            yield "", f"The {what}, which is somebody else's, is gone or was changed."


QUICK_S = 5.0
"""An agent that lived shorter than this died at once."""


@_RULES.rule(eventual=False)
def backs_off(check: Check) -> Iterator[Found]:
    """Only starts that nobody asked for count: those of one step that is neither a command nor a fault, of
    agents that died before they were told anything.
    """
    profile = check.model.profile
    if check.operation.kind not in (Kind.WAIT, Kind.CONTROL):
        return
    known = {agent.identity for agent in _agents(check.before)}
    known |= {receipt.agent for receipt in check.seen.receipts or ()}  # those died of what they did
    starts: dict[str, list[int]] = {}
    for agent in _agents(check.seen):
        if agent.identity not in known and not agent.alive:
            starts.setdefault(agent.worker, []).append(agent.identity[1])
    for worker, ticks in starts.items():
        if 0 < profile.most_restarts < len(ticks):
            yield (
                worker,
                f"The agent of worker {worker!r} was started {len(ticks)} times by itself.",
            )
        for first, second, third in zip(ticks, ticks[1:], ticks[2:], strict=False):
            quick = (second - first) / TICKS_A_SECOND < QUICK_S
            pause_s = (third - second) / TICKS_A_SECOND
            if quick and pause_s < profile.restart_pause_s - 2 / TICKS_A_SECOND:
                text = f"The agent of worker {worker!r} died at once twice, and was started again"
                yield worker, f"{text} {pause_s:.2f}s after the last start."


@_RULES.rule(eventual=False)
def agent_as_asked(check: Check) -> Iterator[Found]:
    if not check.model.profile.passes_model:
        return
    for agent in _agents(check.seen):
        belief = check.model.workers.get(agent.worker)
        if belief is None or not belief.model or not agent.alive or not agent.argv:
            continue
        if not any(belief.model in word for word in agent.argv):
            words = " ".join(agent.argv)
            text = f"Worker {agent.worker!r} was added with the model {belief.model}"
            yield agent.worker, f"{text}, but its agent was started as {words!r}."


@_RULES.rule(eventual=False)
def live_agent_kept(check: Check) -> Iterator[Found]:
    if check.all_touched:
        return
    now = {agent.identity: agent for agent in _agents(check.seen)}
    for agent in _agents(check.before):
        belief = check.model.workers.get(agent.worker)
        if not agent.alive or agent.worker in check.touched or belief is None:
            continue
        if belief.disturbed is not None or not belief.will_complete or belief.hits:
            continue
        status = check.before.status_of(
            agent.worker
        )  # None: a fault's own state, which tells nothing
        waiting = status is None or status in ("working", "rejected", "rebasing")
        if waiting and not agent.busy:
            continue  # whether its prompt arrived may be unknown; then replacing it is the safe way
        if _lost_its_session(check.before, agent):
            continue  # it was already on its way out
        later = now.get(agent.identity)
        if later is None or not later.alive:
            was = f"The agent of worker {agent.worker!r} (pid {agent.identity[0]}) was alive before"
            text = f"{was} {check.operation} and is gone, though nothing named that worker."
            yield agent.worker, text, {"busy": agent.busy}


def _lost_its_session(seen: Observation, agent: AgentView) -> bool:
    """A death takes its time: an agent whose session is gone may still be seen for a moment."""
    view = seen.workers.get(agent.worker)
    return view is not None and seen.sessions is not None and view.session not in seen.sessions


@_RULES.rule(eventual=True)
def down_ends_all(check: Check) -> Iterator[Found]:
    if not isinstance(check.operation, op.Down) or not check.succeeded:
        return
    if check.seen.daemons is None:
        raise Unreadable("the process list")
    if check.seen.daemon_alive:
        yield "daemon", "Down succeeded but the daemon runs."
    for agent in _agents(check.seen):
        if agent.alive:
            yield agent.worker, f"Down succeeded but the agent of worker {agent.worker!r} runs."


@_RULES.rule(eventual=False)
def source_untouched(check: Check) -> Iterator[Found]:
    if not check.model.source_dirty:
        return
    if check.seen.source_edit_intact is None:
        raise Unreadable("the user's edit in the source repository")
    if not check.seen.source_edit_intact:
        what = op.UNFINISHED[check.model.source_dirty]
        yield "source", f"The user's {what} in the source repository was destroyed."


@_RULES.rule(eventual=False)
def way_out(check: Check) -> Iterator[Found]:
    serves = {name: check.model.profile.serves(name) for name in LEGAL}
    for view in check.settled_workers():
        open_work = bool(check.model.workers[view.name].tokens)
        if view.status not in (*_RESTING, "error") or not open_work:
            continue
        for message in dead_end(f"Worker {view.name!r}", view.status, serves):
            yield view.name, message


@_RULES.rule(eventual=True)
def checkout_clean(check: Check) -> Iterator[Found]:
    if check.model.source_dirty or check.model.lasting or check.seen.default_head is None:
        return
    if check.seen.source_dirty is None:
        raise Unreadable("the changes in the user's checkout")
    for message in stays_clean(check.seen.source_dirty, check.operation):
        yield "source", message


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
