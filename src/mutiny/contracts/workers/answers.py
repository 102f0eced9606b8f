"""What a target with workers says in an answer, held against what is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.kit.questions import Heard
from mutiny.model.operation import Operation

_SHOWN = {"branch": "branch", "worktree": "worktree", "worktree_path": "worktree"}
_SHOWS_COMMIT = (op.Review, op.ReviewNext, op.Accept, op.AcceptReviewed)


def untrue(
    model: WorkersModel, heard: Heard, before: Observation, seen: Observation
) -> Iterator[str]:
    """Everything that is wrong in an answer of fields; one of words has none."""
    operation, said = heard.operation, heard.answer.said
    if heard.alone and isinstance(operation, op.Up | op.Status) and "daemon" in said:
        yield from _wrong_daemon(said["daemon"], before, seen)
    named = op.meant(operation, model.last_reviewed)
    if isinstance(operation, op.ReviewNext):
        named = heard.answer.task  # whether it is the right one is another promise
    if not said or named is None or seen.state_as_left or model.doubted:
        return
    told = said.get("worker")
    if isinstance(told, str) and told != named:
        yield f"it names worker {told}"
    found = said.get("previous_status")
    if heard.alone and found in op.STATUSES and named in model.workers:
        could_be = model.possible(named, before.status_of(named))
        if found not in could_be:
            yield f"it says that {named} was {found}, not {' or '.join(sorted(could_be))}"
    view = seen.workers.get(named)
    for name, shown in _SHOWN.items() if view is not None else ():
        given = said.get(name)
        if isinstance(given, str) and given != getattr(view, shown):
            yield f"it says {name} {given}, which is {getattr(view, shown)}"
    if heard.alone and isinstance(operation, _SHOWS_COMMIT) and "commit_sha" in said:
        yield from _wrong_commit(operation, named, said["commit_sha"], before, seen)


def _wrong_daemon(told: object, before: Observation, seen: Observation) -> Iterator[str]:
    """The daemon that is told of is the one that runs."""
    ran, run = ({one.pid for one in look.daemons or ()} for look in (before, seen))
    if seen.daemons is None or len(run) != 1:
        return
    if told is None and ran == run:
        yield f"it tells of no daemon, but process {min(run)} is one"
    pid = told.get("pid") if isinstance(told, Mapping) else None
    if isinstance(pid, int) and pid not in run:
        yield f"it tells of daemon {pid}, but process {min(run)} is it"


def _wrong_commit(
    operation: Operation, worker: str, commit: object, before: Observation, seen: Observation
) -> Iterator[str]:
    """The commit that is reviewed is the worker's; the one that was merged is on the default branch."""
    landed = before.default_head != seen.default_head and seen.commits is not None
    looked_at = isinstance(operation, op.Review | op.ReviewNext)
    if not commit and landed and not looked_at:
        yield "it names no commit, but something was merged"
    if not isinstance(commit, str) or not commit:
        return
    view = seen.workers.get(worker)
    waits = view.commit_sha if view is not None and view.status == "needs_review" else None
    if looked_at and waits and commit != waits:
        yield f"it names commit {commit[:12]}, but {waits[:12]} is to be reviewed"
    if not looked_at and landed:
        merged = {one.sha for one in seen.commits or () if one.on_default}
        if commit not in merged:
            yield f"it names commit {commit[:12]}, which is not on the default branch"
