"""The user's own checkout of the default branch: look first, touch only what must change.

The user's files are not ours. A change of theirs in our way refuses the accept before anything has
happened; one that appears in the middle is copied to ``rescued/`` before it is touched.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from longboat.errors import GitFailed, Rejection
from longboat.planting import planted
from longboat.workers.state import Intent
from longboat.workers.store import sync_directory, sync_file
from longboat.workers.transaction import Transaction

_UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-apply")
_BUSY = "Source repository has uncommitted changes (an unfinished merge or rebase)"


class Change(NamedTuple):
    """One path that differs between two commits; a blob of "" means that it does not exist."""

    path: str
    old_blob: str
    new_mode: str
    new_blob: str


def find_checkout(transaction: Transaction) -> str:
    """Where the default branch is checked out, or nothing (bare source, or on another branch)."""
    ours = transaction.home.file("worktrees") + os.sep
    for path, branch in transaction.git.worktrees():
        if branch == transaction.config.default_branch and not path.startswith(ours):
            return path
    return ""


def check_not_rebased(transaction: Transaction) -> None:
    """Refuse while the user rebases the default branch, which is checked out nowhere then: git would find
    it moved at the end of the rebase, and give that up.
    """
    ours = transaction.home.file("worktrees") + os.sep
    for path, branch in transaction.git.worktrees():
        if branch or path.startswith(ours) or planted("unfinished-merge-ignored"):
            continue
        if _rebased_branch(transaction.git.admin_directory(path)) == transaction.trunk:
            raise Rejection(_BUSY)


def _rebased_branch(admin: str | None) -> str:
    """The ref that waits for the end of a rebase, or nothing."""
    for name in ("rebase-merge", "rebase-apply"):
        try:
            with open(os.path.join(admin or "", name, "head-name"), encoding="utf-8") as file:
                return file.read().strip()
        except (FileNotFoundError, NotADirectoryError):
            continue
    return ""


def check_unmodified(transaction: Transaction, checkout: str) -> None:
    """Refuse while the user is in the middle of something there."""
    git = transaction.git
    admin = git.admin_directory(checkout) or transaction.git.common_directory
    marks = () if planted("unfinished-merge-ignored") else _UNFINISHED
    if any(os.path.exists(os.path.join(admin, name)) for name in marks):
        raise Rejection(_BUSY)
    changed = git.ask("status", "--porcelain", "--untracked-files=no", at=checkout)
    if changed:
        first = changed.splitlines()[0].strip()
        if planted("edit-left-in-stash"):
            git.change("stash", at=checkout)
        raise Rejection(f"Source repository has uncommitted changes ({first})")


def check_nothing_in_the_way(
    transaction: Transaction, checkout: str, base: str, commit: str
) -> None:
    """Refuse when an untracked file is where accepted work would go."""
    for change in changes_between(transaction, base, commit):
        if not change.old_blob and _in_the_way(checkout, change.path):
            if _blob_on_disk(transaction, checkout, change.path) == change.new_blob:
                continue
            raise Rejection(
                f"Source repository has uncommitted changes (untracked {change.path} is in the way)"
            )


def _in_the_way(checkout: str, path: str) -> bool:
    """True when a new path would fall on an existing file, or below a file."""
    if os.path.lexists(os.path.join(checkout, path)):
        return True
    parent = os.path.dirname(path)
    while parent:
        full = os.path.join(checkout, parent)
        if os.path.lexists(full):
            return os.path.islink(full) or not os.path.isdir(full)
        parent = os.path.dirname(parent)
    return False


def changes_between(transaction: Transaction, base: str, commit: str) -> list[Change]:
    """The paths that differ, with what they were and what they become."""
    raw = transaction.git.ask("diff-tree", "-r", "-z", "--no-renames", base, commit)
    fields = raw.split("\0")
    changes = []
    for meta, path in zip(fields[0::2], fields[1::2], strict=False):
        _, new_mode, old_blob, new_blob, _ = meta.lstrip(":").split(" ")
        changes.append(
            Change(
                path, old_blob.strip("0") and old_blob, new_mode, new_blob.strip("0") and new_blob
            )
        )
    return changes


def bring_checkout(transaction: Transaction, checkout: str, intent: Intent) -> None:
    """Bring the user's checkout from base to commit; safe to repeat after any crash."""
    git = transaction.git
    if planted("dirty-source-wiped"):
        git.change("reset", "-q", "--hard", intent.commit, at=checkout)
        return
    quick = git.write("read-tree", "-m", "-u", intent.base, intent.commit, at=checkout)
    changes = changes_between(transaction, intent.base, intent.commit)
    if not quick.ok or _any_differs(transaction, checkout, changes):
        git.clear_source_locks(transaction.config.default_branch)
        _bring_each(transaction, checkout, changes, intent)
    _sync(checkout, changes)


def _any_differs(transaction: Transaction, checkout: str, changes: list[Change]) -> bool:
    """Is one of these files not what the index says? A power cut may have kept only the index."""
    differing = transaction.git.ask("diff-files", "-z", "--name-only", at=checkout).split("\0")
    return not {change.path for change in changes}.isdisjoint(differing)


def _bring_each(
    transaction: Transaction, checkout: str, changes: list[Change], intent: Intent
) -> None:
    """File by file, with whatever else is found there kept elsewhere."""
    git = transaction.git
    for change in changes:
        _rescue(transaction, checkout, change, intent)
    lines = [
        f"{c.new_mode} {c.new_blob}\t{c.path}" if c.new_blob else f"0 {'0' * 40}\t{c.path}"
        for c in changes
    ]
    git.change("update-index", "-z", "--index-info", at=checkout, stdin=_joined(lines))
    files = [c.path for c in changes if c.new_blob and c.new_mode != "160000"]
    if files:
        git.change("checkout-index", "-f", "-z", "--stdin", at=checkout, stdin=_joined(files))
    for change in changes:
        if not change.new_blob:
            _remove_file(checkout, change.path)
    git.write("update-index", "-q", "--refresh", at=checkout)


def _sync(checkout: str, changes: list[Change]) -> None:
    """git does not sync the files of a checkout; the accept is over only when they are on the disk."""
    if planted("checkout-not-synced"):
        return
    places = set()
    for change in changes:
        full = os.path.join(checkout, change.path)
        if os.path.isfile(full) and not os.path.islink(full):
            sync_file(full)
        places.add(os.path.dirname(full))
    for place in sorted(places):
        if os.path.isdir(place):
            sync_directory(place)


def _joined(lines: list[str]) -> bytes:
    return "".join(line + "\0" for line in lines).encode("utf-8", "surrogateescape")


def _rescue(transaction: Transaction, checkout: str, change: Change, intent: Intent) -> None:
    """Move away whatever is there that is neither the old nor the new content."""
    full = os.path.join(checkout, change.path)
    expected = {change.old_blob, change.new_blob} - {""}
    parent = os.path.dirname(change.path)
    while parent:
        obstacle = os.path.join(checkout, parent)
        if os.path.islink(obstacle) or os.path.isfile(obstacle):
            _move_away(transaction, obstacle, parent, intent)
        parent = os.path.dirname(parent)
    if not os.path.lexists(full):
        return
    if os.path.isdir(full) and not os.path.islink(full):
        if change.new_blob and change.new_mode != "160000":
            _move_away(transaction, full, change.path, intent)
        return
    if _blob_on_disk(transaction, checkout, change.path) not in expected:
        _move_away(transaction, full, change.path, intent)


def _move_away(transaction: Transaction, full: str, path: str, intent: Intent) -> None:
    import shutil

    target = transaction.home.file("rescued", intent.task or intent.commit[:12], path)
    while os.path.lexists(target):
        target += "~"
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.move(full, target)
    transaction.log(f"{intent.worker}: {full} was in the way of accepted work; kept as {target}")


def _blob_on_disk(transaction: Transaction, checkout: str, path: str) -> str:
    """The blob name that a file would have in git (symbolic links count as their target)."""
    full = os.path.join(checkout, path)
    if os.path.islink(full):
        text = os.readlink(full).encode("utf-8", "surrogateescape")
        result = transaction.git.read("hash-object", "--stdin", at=checkout, stdin=text or b"\0")
    elif os.path.isfile(full):
        result = transaction.git.read("hash-object", "--", path, at=checkout)
    else:
        return ""
    if not result.ok:
        raise GitFailed(f"cannot look at {full}: {result.last_words}")
    return result.out.strip()


def _remove_file(checkout: str, path: str) -> None:
    """Remove a deleted file and the directories that became empty by it."""
    try:
        os.unlink(os.path.join(checkout, path))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return
    parent = os.path.dirname(path)
    while parent:
        try:
            os.rmdir(os.path.join(checkout, parent))
        except OSError:
            return
        parent = os.path.dirname(parent)
