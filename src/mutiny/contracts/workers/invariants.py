"""The rules about workers, their worktrees and their statuses, one function each: beliefs and what is seen
in, violations out.
"""

from __future__ import annotations

from collections.abc import Iterator

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.looking import (
    AGENTLESS,
    BOOK,
    Check,
    agents_of,
    is_on,
    sessions_of,
    worktree_of,
)
from mutiny.contracts.workers.model import ADDED, unwell
from mutiny.contracts.workers.profile import LEGAL
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.checking import Found, Unreadable
from mutiny.kit.git_rules import has_commit, stays_clean
from mutiny.kit.task_rules import dead_end
from mutiny.model.operation import Kind

_RESTING = ("idle", "needs_review", "no_changes")


@BOOK.rule(eventual=True)
def state_readable(check: Check) -> Iterator[Found]:
    seen, model = check.seen, check.model
    if not model.initialised or model.state_damaged or is_on(model, faults.Forbid):
        return
    if seen.state_error:
        yield "", f"The state file is unreadable: {seen.state_error}"
    elif not seen.state_exists and model.workers:
        yield "", "The state file is gone."


@BOOK.rule(eventual=True)
def worktree_exists(check: Check) -> Iterator[Found]:
    for view in check.settled_workers():
        if not worktree_of(check.seen, view.name).exists:
            yield view.name, f"{view.standing} but its worktree {view.worktree} does not exist."


@BOOK.rule(eventual=True)
def session_exists(check: Check) -> Iterator[Found]:
    sessions = sessions_of(check.seen)
    for view in check.settled_workers():
        steady = check.model.workers[view.name].will_complete
        # Where nobody shows statuses, the session stays whatever the agent in it does.
        excused = view.status in AGENTLESS if check.model.profile.shows_ends else False
        if steady and not excused and view.session not in sessions:
            text = f"{view.standing} but its session {view.session!r} does not exist."
            yield view.name, text, {"sessions": sorted(sessions)}


@BOOK.rule(eventual=True)
def offline_has_no_agent(check: Check) -> Iterator[Found]:
    for view in check.settled_workers():
        live = [
            agent for agent in agents_of(check.seen) if agent.worker == view.name and agent.alive
        ]
        if view.status == "offline" and live:
            yield view.name, f"{view.standing} but its agent (pid {live[0].identity[0]}) runs."


@BOOK.rule(eventual=False)
def idle_has_no_prompt(check: Check) -> Iterator[Found]:
    for view in check.seen.workers.values():
        belief = check.model.workers.get(view.name)
        taken = not check.model.profile.start_is_immediate and belief is not None and belief.tokens
        if view.status == "idle" and view.prompt and not taken:
            yield view.name, f"{view.standing} but still has the prompt {view.prompt[:60]!r}."


@BOOK.rule(eventual=False)
def working_has_prompt(check: Check) -> Iterator[Found]:
    for view in check.seen.workers.values():
        if view.status in ("working", "rejected") and not view.prompt:
            yield view.name, f"{view.standing} but has no prompt."


@BOOK.rule(eventual=True)
def review_has_commit(check: Check) -> Iterator[Found]:
    for view in check.seen.workers.values():
        if view.status != "needs_review":
            continue
        worktree = worktree_of(check.seen, view.name)
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


@BOOK.rule(eventual=True)
def rebased_is_on_top(check: Check) -> Iterator[Found]:
    # Whoever works has it put off until the turn is over, and whoever is in a conflict is not there yet.
    for view in check.settled_workers():
        belief = check.model.workers[view.name]
        odd = belief.strays or belief.ends_oddly
        if view.status != "needs_review" or not belief.rebase_due or odd:
            continue
        tree = worktree_of(check.seen, view.name)
        if check.seen.commits is None:
            raise Unreadable("the commits")
        for message in has_commit(tree.branch, tree.head, belief.rebase_due, check.seen.commits):
            yield view.name, f"Its rebase was taken, and it needs review: {message}"


@BOOK.rule(eventual=True)
def begins_on_newest(check: Check) -> Iterator[Found]:
    given, base = check.operation, check.before.default_head
    if not check.model.profile.begins_on_newest or base is None:
        return
    if not isinstance(given, op.Start) or not check.succeeded:
        return
    belief, tree = check.model.workers.get(given.worker), worktree_of(check.seen, given.worker)
    if belief is None or belief.strays or not tree.exists:
        return
    if check.seen.commits is None:
        raise Unreadable("the commits")
    for message in has_commit(tree.branch, tree.head, base, check.seen.commits):
        yield given.worker, f"It was given a task on an old tree. {message}"


@BOOK.rule(eventual=True)
def rebasing_is_in_rebase(check: Check) -> Iterator[Found]:
    for view in check.settled_workers():
        worktree = worktree_of(check.seen, view.name)
        if not worktree.exists:
            continue
        belief = check.model.workers[view.name]
        if view.status == "rebasing" and not worktree.rebasing and belief.will_complete:
            yield view.name, f"Worker {view.name!r} is rebasing but git has no rebase in progress."
        if view.status in (*_RESTING, "error") and worktree.rebasing:
            yield view.name, f"{view.standing} but a rebase is half done in its worktree."


@BOOK.rule(eventual=True)
def on_branch(check: Check) -> Iterator[Found]:
    for view in check.settled_workers():
        worktree = worktree_of(check.seen, view.name)
        if not worktree.exists or worktree.rebasing or view.status == "rebasing":
            continue
        if check.model.astray(view.name, check.seen):
            continue
        if view.branch and worktree.branch != view.branch:
            place = worktree.branch or "a detached HEAD"
            yield view.name, f"Worker {view.name!r} should be on {view.branch} but is on {place}."


@BOOK.rule(eventual=True)
def tree_clean(check: Check) -> Iterator[Found]:
    for view in check.settled_workers():
        worktree = worktree_of(check.seen, view.name)
        if view.status not in ("idle", "needs_review") or not worktree.exists:
            continue
        if worktree.dirty is None:
            raise Unreadable(f"the uncommitted changes of worker {view.name!r}")
        if worktree.dirty:
            changed = ", ".join(worktree.dirty[:5])
            yield view.name, f"{view.standing} but has uncommitted changes: {changed}"


@BOOK.rule(eventual=True)
def idle_is_fresh(check: Check) -> Iterator[Found]:
    commits = check.seen.commits
    if commits is None:
        raise Unreadable("the commits of the source repository")
    merged = {commit.sha for commit in commits if commit.on_default}
    for view in check.settled_workers():
        worktree = worktree_of(check.seen, view.name)
        if view.status != "idle" or view.pending_prompt or not worktree.head:
            continue
        if worktree.head not in merged:
            text = f"{view.standing} but its branch is at {worktree.head[:12]}"
            yield view.name, f"{text}, which is not on the default branch."


@BOOK.rule(eventual=True)
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


@BOOK.rule(eventual=True)
def agent_running(check: Check) -> Iterator[Found]:
    agents = agents_of(check.seen)
    for view in check.settled_workers():
        belief = check.model.workers[view.name]
        if view.status in AGENTLESS or not belief.will_complete:
            continue
        if not any(agent.worker == view.name and agent.alive for agent in agents):
            yield view.name, f"{view.standing} but no agent runs in its session."


@BOOK.rule(eventual=False)
def error_has_cause(check: Check) -> Iterator[Found]:
    """Whoever was told something may have failed at it, and a fault may have hit anybody."""
    model = check.model
    if model.faults or model.lasting or model.state_damaged or model.source_dirty:
        return
    for name, view in check.seen.workers.items():
        belief = model.workers.get(name)
        if view.status != "error" or belief is None or belief.tokens or belief.typed:
            continue
        if belief.will_complete and belief.disturbed in (None, ADDED):
            why = view.error_reason or "it does not say why"
            yield (
                name,
                f"Worker {name!r} was given nothing, no fault hit it, and it is in error: {why}.",
            )


@BOOK.rule(eventual=False)
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


@BOOK.rule(eventual=False)
def errors_told(check: Check) -> Iterator[Found]:
    for view in check.seen.workers.values() if check.model.profile.tells_errors else ():
        if view.status == "error" and not view.error_reason:
            yield view.name, f"{view.standing} and does not say why."
        if view.status not in AGENTLESS and view.error_reason:
            text = f"{view.standing} but still tells of an error: {view.error_reason}"
            yield view.name, text


@BOOK.rule(eventual=False)
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
            if (name in check.model.workers) == (name in seen.workers):
                continue  # what an earlier command that was broken off has left to others came only now
            change = "is there now" if name in seen.workers else "is gone"
            yield name, f"{check.operation} was refused, but worker {name!r} {change}."
    for view in check.settled_workers():
        belief = check.model.workers[view.name]
        resting = view.status in _RESTING and before.status_of(view.name) == view.status
        unseen = bool(belief.tokens) and not check.model.profile.shows_ends
        may_work = "working" in belief.statuses or unseen  # between the two looks
        left_over = view.name in check.model.unfinished  # whoever comes next may finish it
        if not resting or may_work or left_over or belief.stale_base:
            continue
        old, new = worktree_of(before, view.name), worktree_of(seen, view.name)
        if old.head != new.head:
            moved = _moved(f"the branch of worker {view.name!r}", old.head, new.head)
            yield view.name, f"{check.operation} was refused, but {moved}"


def _moved(what: str, old: str | None, new: str | None) -> str:
    return f"{what} moved from {(old or 'nothing')[:12]} to {(new or 'nothing')[:12]}."


@BOOK.rule(eventual=True)
def review_means_done(check: Check) -> Iterator[Found]:
    for view in check.settled_workers():
        busy = [a for a in agents_of(check.seen) if a.worker == view.name and a.alive and a.busy]
        if view.status == "needs_review" and busy and check.model.workers[view.name].will_complete:
            who = f"Worker {view.name!r} needs review but its agent (pid {busy[0].identity[0]})"
            yield view.name, f"{who} has not ended its turn."


@BOOK.rule(eventual=True)
def worker_kept(check: Check) -> Iterator[Found]:
    if check.seen.state_error or not check.seen.state_exists or check.model.state_damaged:
        return  # a state that cannot be read says nothing about who is in it
    for name in check.model.workers:
        if name not in check.seen.workers:
            yield name, f"Worker {name!r} has vanished from the state."


@BOOK.rule(eventual=True)
def nuked_is_gone(check: Check) -> Iterator[Found]:
    for agent in agents_of(check.seen):
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


@BOOK.rule(eventual=False)
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


@BOOK.rule(eventual=False)
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


@BOOK.rule(eventual=False)
def state_atomic(check: Check) -> Iterator[Found]:
    if check.seen.state_in_place:
        yield "", "The state file was written in place: a crash now would have left half of it."


@BOOK.rule(eventual=False)
def no_crash(check: Check) -> Iterator[Found]:
    """A daemon that goes on after a crash of its own has crashed all the same, unless a fault was on."""
    model = check.model
    excused = model.faults or model.lasting or model.state_damaged or model.doubted
    if check.seen.daemon_crash is not None and not excused:
        yield "daemon", f"The daemon tells of a crash in its log: {check.seen.daemon_crash}"


@BOOK.rule(eventual=False)
def source_untouched(check: Check) -> Iterator[Found]:
    if not check.model.source_dirty:
        return
    if check.seen.source_edit_intact is None:
        raise Unreadable("the user's edit in the source repository")
    if not check.seen.source_edit_intact:
        what = op.UNFINISHED[check.model.source_dirty]
        yield "source", f"The user's {what} in the source repository was destroyed."


@BOOK.rule(eventual=False)
def way_out(check: Check) -> Iterator[Found]:
    serves = {name: check.model.profile.serves(name) for name in LEGAL}
    for view in check.settled_workers():
        open_work = bool(check.model.workers[view.name].tokens)
        if view.status not in (*_RESTING, "error") or not open_work:
            continue
        for message in dead_end(f"Worker {view.name!r}", view.status, serves):
            yield view.name, message


@BOOK.rule(eventual=True)
def checkout_clean(check: Check) -> Iterator[Found]:
    if check.model.source_dirty or check.model.lasting or check.seen.default_head is None:
        return
    if check.seen.source_dirty is None:
        raise Unreadable("the changes in the user's checkout")
    for message in stays_clean(check.seen.source_dirty, check.operation):
        yield "source", message
