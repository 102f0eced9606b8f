"""`accept`: bring a worker's work to the default branch, all or nothing, once.

Everything before the commit point only makes objects; the commit point is one compare-and-swap of
the branch; everything after it can be repeated. So after a crash the branch alone tells whether to
finish or to forget.
"""

from __future__ import annotations

import os
import time

from longboat.errors import GitFailed, Rejection, not_in_review
from longboat.planting import planted
from longboat.workers import store, turns, worktrees
from longboat.workers.checkout import (
    bring_checkout,
    check_not_rebased,
    check_nothing_in_the_way,
    check_unmodified,
    find_checkout,
)
from longboat.workers.state import Intent, Worker, idle
from longboat.workers.transaction import Transaction

_CAS_ATTEMPTS = 5
_LOCK_WAIT_S = 0.2


def accept(transaction: Transaction, worker: Worker) -> Worker:
    """Merge a worker that needs review; returns it idle, or rebasing when there is a conflict."""
    merged = (
        task.worker for task in transaction.book.state.tasks.values() if task.state == "merged"
    )
    if planted("second-accept-believed") and worker.status == "idle" and worker.name in merged:
        return worker
    if worker.status != "needs_review" and not (
        planted("accept-ignores-status") and worker.status == "working"
    ):
        raise not_in_review(worker.name, worker.status)
    if planted("accept-half-done", "branch-deleted-before-merge"):
        return _accept_too_eagerly(transaction, worker)
    for _ in range(_CAS_ATTEMPTS):
        base = transaction.trunk_commit()
        check_not_rebased(transaction)
        checkout = "" if planted("dirty-source-wiped") else find_checkout(transaction)
        if checkout:
            check_unmodified(transaction, checkout)
        head = worktrees.settle(transaction.git, worker.worktree, worker.branch)
        if checkout:
            check_nothing_in_the_way(transaction, checkout, base, head)
        worker = turns.rebase(transaction, worker, base)
        if worker.status == "rebasing":
            return worker
        head = worker.commit_sha or head
        commit = _squash(transaction, worker, base, head)
        if checkout:
            check_nothing_in_the_way(transaction, checkout, base, commit)
        intent = Intent(
            "accept", worker.name, base=base, commit=commit, head=head, task=worker.task_id or ""
        )
        if planted("merged-before-landed"):
            _say_merged(transaction, worker)
        else:
            transaction.begin(intent)
        if _swap(transaction, intent):
            return finish(transaction, intent)
        transaction.end(worker.name)
        transaction.save()
        transaction.log(
            f"{worker.name}: {transaction.config.default_branch} moved meanwhile; again"
        )
    raise GitFailed(f"{transaction.config.default_branch} moves too fast to accept '{worker.name}'")


def _accept_too_eagerly(transaction: Transaction, worker: Worker) -> Worker:
    """Plants only: what a correct accept checks first is checked last here."""
    git, base = transaction.git, transaction.trunk_commit()
    head = worktrees.settle(git, worker.worktree, worker.branch)
    commit = _squash(transaction, worker, base, head)
    intent = Intent(
        "accept", worker.name, base=base, commit=commit, head=head, task=worker.task_id or ""
    )
    if planted("branch-deleted-before-merge"):
        worktrees.remove(git, worker.worktree, worker.branch)
        worktrees.create(git, worker.worktree, worker.branch, base)
        transaction.book.state = transaction.book.state.with_task_state(worker.task_id, "merged")
        worker = transaction.put(idle(worker))
    else:
        git.change("update-ref", transaction.trunk, commit, base)
    transaction.save()
    checkout = find_checkout(transaction)
    if checkout and git.ask("diff", "--name-only", base, at=checkout):
        raise Rejection("Source repository has uncommitted changes")
    git.change("update-ref", transaction.trunk, commit)
    return finish(transaction, intent)


def _say_merged(transaction: Transaction, worker: Worker) -> None:
    """Plants only: the state is told first, and no intent remembers what is still to be done."""
    state = transaction.book.state.with_task_state(worker.task_id, "merged")
    transaction.book.state = state.with_worker(idle(worker))
    transaction.save()


def _swap(transaction: Transaction, intent: Intent) -> bool:
    """The commit point. False when somebody else moved the branch first."""
    if planted("closed-without-merge") and _has_several_commits(transaction, intent):
        return True
    label = intent.task or intent.head[:12]
    worktrees.keep(transaction.git, intent.worker, label, intent.head)
    for _ in range(_CAS_ATTEMPTS):
        result = transaction.git.write(
            *("update-ref", "-m", f"longboat: accept {intent.worker}"),
            *(transaction.trunk, intent.commit, intent.base),
        )
        if result.ok:
            return True
        transaction.git.clear_source_locks(transaction.config.default_branch)
        if transaction.git.ref(transaction.trunk) != intent.base:
            # git may have been killed just after it was done, and somebody else may have gone on from there
            return transaction.git.contains(transaction.trunk, intent.commit)
        if ".lock" not in result.err:
            break
        time.sleep(_LOCK_WAIT_S)  # the user's own git is at work
    transaction.end(intent.worker)
    transaction.save()
    if ".lock" in result.err:
        raise Rejection(f"{transaction.config.default_branch} is locked by another git")
    raise GitFailed(f"cannot move {transaction.config.default_branch}: {result.last_words}")


def _has_several_commits(transaction: Transaction, intent: Intent) -> bool:
    return transaction.git.ahead(intent.head, intent.base) > 1


def recover(transaction: Transaction, intent: Intent) -> None:
    """After a crash: the branch has the commit, or nothing happened."""
    transaction.git.clear_source_locks(transaction.config.default_branch)
    if transaction.git.contains(transaction.trunk, intent.commit):
        transaction.log(f"{intent.worker}: finishing an interrupted accept")
        if not planted("worktree-head-not-synced"):
            _mend_worktree(transaction, transaction.book.state.workers[intent.worker])
        finish(transaction, intent)
        return
    transaction.log(f"{intent.worker}: an accept was interrupted before it began; forgotten")
    transaction.end(intent.worker)
    transaction.save()


def _mend_worktree(transaction: Transaction, worker: Worker) -> None:
    """A power cut may have emptied files of git that say where the worktree stands."""
    if not worktrees.is_sound(transaction.git, worker.worktree, worker.branch):
        from longboat.workers.lifecycle import repair_worktree

        repair_worktree(transaction, worker)


def finish(transaction: Transaction, intent: Intent) -> Worker:
    """Everything after the commit point; may be repeated from the start at any time."""
    worker = transaction.book.state.workers[intent.worker]
    checkout = find_checkout(transaction)
    if checkout and transaction.git.ref(transaction.trunk) == intent.commit:
        bring_checkout(transaction, checkout, intent)
    transaction.git.clear_source_locks(transaction.config.default_branch)
    worktrees.move_to(transaction.git, worker.worktree, worker.branch, intent.commit)
    admin = transaction.git.admin_directory(worker.worktree)
    if admin is not None and not planted("worktree-head-not-synced"):
        store.sync_files(admin)  # git does not sync where a worktree stands
    if planted("worktree-dropped-after-accept"):
        worktrees.remove(transaction.git, worker.worktree, worker.branch)
    if planted("wrong-branch-after-accept"):
        transaction.git.change("checkout", "-q", "--detach", at=worker.worktree)
    _drop_rebase_copies(transaction, intent)
    state = transaction.book.state.with_task_state(intent.task, "merged", intent.commit)
    if state.last_reviewed == worker.name:
        state = state._replace(last_reviewed=None)
    transaction.book.state = state
    worker = transaction.put(idle(worker))
    transaction.end(worker.name)
    transaction.save()
    transaction.log(f"{worker.name}: accepted as {intent.commit[:10]}")
    return worker


def merge_again(transaction: Transaction) -> None:
    """Plants only: take every accepted task for lost whose own commit is not on the branch."""
    for task in transaction.book.state.tasks.values():
        head = transaction.git.ref(f"{worktrees.ARCHIVE}/{task.worker}/{task.id}")
        if task.state != "merged" or not head or transaction.git.contains(transaction.trunk, head):
            continue
        message = transaction.git.ask("log", "-1", "--format=%B", head)
        trunk = transaction.trunk_commit()
        tree = f"{trunk}^{{tree}}"
        commit = transaction.git.change("commit-tree", tree, "-p", trunk, "-m", message)
        transaction.git.change("update-ref", transaction.trunk, commit, trunk)


def _drop_rebase_copies(transaction: Transaction, intent: Intent) -> None:
    """The copies from before rebases are not needed once the work is merged."""
    prefix = f"{worktrees.ARCHIVE}/{intent.worker}/{intent.task or 'work'}-before-rebase-"
    names = transaction.git.ask("for-each-ref", "--format=%(refname)", prefix + "*")
    for name in names.split():
        transaction.git.change("update-ref", "-d", name)


def _squash(transaction: Transaction, worker: Worker, base: str, head: str) -> str:
    """One commit on top of ``base`` with the tree of ``head``; nothing to merge gives ``base``."""
    git = transaction.git
    tree = git.ask("rev-parse", f"{head}^{{tree}}")
    if tree == git.ask("rev-parse", f"{base}^{{tree}}"):
        return base
    if planted("removed-file-comes-back"):
        tree = _with_removed(transaction, base, head)
    log = git.ask("log", "--reverse", "--format=%B%x00", f"{base}..{head}")
    messages = [text.strip() for text in log.split("\0") if text.strip()]
    message = squash_message(messages, worker.current_prompt, worker.task_id or "")
    who = git.ask("log", "-1", "--format=%an%x00%ae%x00%aI", head).split("\0")
    names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE")
    result = git.write(
        *("commit-tree", tree, "-p", base),
        stdin=message.encode(),
        environment=dict(zip(names, who, strict=True)),
    )
    if not result.ok:
        raise GitFailed(f"cannot make the squashed commit: {result.last_words}")
    return result.out.strip()


def _with_removed(transaction: Transaction, base: str, head: str) -> str:
    """Plants only: the tree of `head`, and what it has removed of `base`."""
    git = transaction.git
    removed = git.ask("diff-tree", "-r", "--diff-filter=D", base, head)
    index = {"GIT_INDEX_FILE": os.path.join(git.common_directory, "index.of-a-squash")}
    git.write("read-tree", head, environment=index)
    for line in removed.splitlines():
        mode, _, blob, _, _, path = line.lstrip(":").split(None, 5)
        entry = f"{mode},{blob},{path}"
        git.write("update-index", "--add", "--cacheinfo", entry, environment=index)
    tree = git.write("write-tree", environment=index).out.strip()
    os.unlink(index["GIT_INDEX_FILE"])
    return tree


def squash_message(messages: list[str], prompt: str, task_id: str) -> str:
    """One message from many: the first subject, all texts, and every trailer once."""
    bodies: list[str] = []
    trailers: list[str] = []
    for message in messages:
        body, own = split_trailers(message)
        trailers += [line for line in own if line not in trailers]
        if body and body != "Work in progress" and body not in bodies:
            bodies.append(body)
    if not bodies:
        bodies = [prompt.strip().splitlines()[0][:72] if prompt.strip() else "Work of an agent"]
    trailers.append(f"Longboat-Task: {task_id or 'none'}")
    return "\n\n".join([*bodies, "\n".join(trailers)]) + "\n"


def split_trailers(message: str) -> tuple[str, list[str]]:
    """The message without its trailers, and the trailers (last paragraph of ``Key: value``)."""
    head, separator, last = message.strip().rpartition("\n\n")
    lines = last.splitlines()
    if separator and lines and all(_is_trailer(line) for line in lines):
        return head.strip(), lines
    return message.strip(), []


def _is_trailer(line: str) -> bool:
    key, colon, value = line.partition(": ")
    return bool(colon and value.strip() and key and key.replace("-", "").isalnum())
