"""Worktrees and branches of workers: make, settle, preserve, restore, remove.

Nothing here forgets work: whatever a worker has that the default branch has not is first kept
under ``refs/longboat/archive/``, where git never collects it.
"""

from __future__ import annotations

import os

from longboat.errors import GitFailed
from longboat.planting import planted
from longboat.workers.gitops import Git
from longboat.workers.store import Home, sync_directory, sync_file, sync_files

ARCHIVE = "refs/longboat/archive"
_REBASES = ("rebase-merge", "rebase-apply")


def create(git: Git, worktree: str, branch: str, base: str) -> None:
    """A new worktree on a new branch at ``base``."""
    git.change("worktree", "add", "-q", "-b", branch, worktree, base)


def remove(git: Git, worktree: str, branch: str) -> None:
    """Remove a worktree and its branch, however half-made or half-removed they are."""
    for admin in _admin_directories(git, worktree):
        _remove_tree(admin)
    _remove_tree(worktree)
    git.clear_worktree_locks(worktree, branch)
    if git.ref(f"refs/heads/{branch}") is not None:
        git.change("update-ref", "-d", f"refs/heads/{branch}")


def _admin_directories(git: Git, worktree: str) -> list[str]:
    """Where git keeps this worktree; includes a place that was cut off while being made."""
    parent = os.path.join(git.common_directory, "worktrees")
    try:
        names = os.listdir(parent)
    except FileNotFoundError:
        return []
    found = []
    for name in names:
        admin = os.path.join(parent, name)
        try:
            with open(os.path.join(admin, "gitdir"), encoding="utf-8") as file:
                target = file.read().strip()
        except (FileNotFoundError, NotADirectoryError):
            target = ""
        unfinished = not target and name.rstrip("0123456789") == os.path.basename(worktree).rstrip(
            "0123456789"
        )
        if target == os.path.join(worktree, ".git") or unfinished:
            found.append(admin)
    return found


def _remove_tree(path: str) -> None:
    if not os.path.lexists(path):
        return
    import shutil

    shutil.rmtree(path)


def is_sound(git: Git, worktree: str, branch: str) -> bool:
    """True when the worktree exists, is registered with git and can say where it is."""
    if git.admin_directory(worktree) is None:
        return False
    if git.ref(f"refs/heads/{branch}") is None:
        return False
    return git.read("rev-parse", "--verify", "--quiet", "HEAD^{commit}", at=worktree).ok


def settle(git: Git, worktree: str, branch: str, message: str = "Work in progress") -> str:
    """Commit whatever is not committed, on the worker's branch; returns the head."""
    if git.checked_out(worktree) != branch and not planted("branch-not-looked-at"):
        _reattach(git, worktree, branch)
    if planted("own-files-merged"):
        git.change("add", "-A", "-f", at=worktree)
    if git.is_dirty(worktree):
        git.change("add", "-A", at=worktree)
        git.change("commit", "-q", "--no-verify", "-m", message, at=worktree)
    return git.head(worktree)


def _reattach(git: Git, worktree: str, branch: str) -> None:
    """The agent left its branch: follow it when nothing is lost by that, complain otherwise."""
    here = git.head(worktree)
    tip = git.ref(f"refs/heads/{branch}")
    if tip is not None and not git.contains(here, tip):
        elsewhere = git.checked_out(worktree) or f"the detached commit {here[:10]}"
        raise GitFailed(f"{worktree} is on {elsewhere} instead of {branch}")
    git.change("update-ref", f"refs/heads/{branch}", here)
    git.change("symbolic-ref", "HEAD", f"refs/heads/{branch}", at=worktree)


def restore_branch(git: Git, worktree: str, branch: str, *, cut_off_from: str = "") -> str:
    """End whatever rebase is there, at any point it was cut, and stand on the branch as it is.

    ``git rebase --abort`` trusts files that a crash may have torn; the branch itself is the truth:
    git moves it only when a rebase is complete. ``cut_off_from`` is the commit whose files git was
    bringing into a clean worktree when it was killed: those that its index does not know yet go, too.
    """
    git.clear_worktree_locks(worktree, branch)
    admin = git.admin_directory(worktree)
    if admin is None:
        raise GitFailed(f"{worktree} is not a worktree any more")
    for name in _REBASES:
        _remove_tree(os.path.join(admin, name))
    git.change("symbolic-ref", "HEAD", f"refs/heads/{branch}", at=worktree)
    if cut_off_from:
        git.change("read-tree", "--reset", "-u", cut_off_from, at=worktree)
    if planted("conflict-left-in-files"):
        return git.head(worktree)
    at = "" if planted("rebase-undone-in-checkout") else worktree
    git.change("reset", "-q", "--hard", at=at)
    return git.head(worktree)


def sync_stopped_rebase(git: Git, worktree: str, head: str, onto: str) -> None:
    """Make a rebase that waits for somebody survive a power cut: git syncs neither what it remembers
    of it nor the files with the conflicts. What may have been written differs between the two ends.
    """
    admin = git.admin_directory(worktree)
    if admin is None:
        raise GitFailed(f"{worktree} is not a worktree any more")
    for place in (admin, *(os.path.join(admin, name) for name in _REBASES)):
        if os.path.isdir(place):
            sync_files(place)
    directories = set()
    for name in git.ask("diff", "--name-only", "-z", head, onto).split("\0"):
        path = os.path.join(worktree, name)
        if name and os.path.isfile(path) and not os.path.islink(path):
            sync_file(path)
            directories.add(os.path.dirname(path))
    for directory in sorted(directories):
        sync_directory(directory)


def move_to(git: Git, worktree: str, branch: str, commit: str) -> None:
    """Put worktree and branch at a commit; everything else there must have been preserved."""
    git.change("checkout", "-q", "-f", "-B", branch, commit, at=worktree)


def keep(git: Git, worker: str, label: str, commit: str) -> str:
    """Make a commit reachable for ever under the archive; returns the reference."""
    name = f"{ARCHIVE}/{worker}/{label}"
    git.change("update-ref", name, commit)
    return name


def preserve(git: Git, home: Home, worker: str, branch: str, label: str, trunk: str) -> list[str]:
    """Archive everything that this worker has and the trunk has not; returns the references."""
    worktree = home.worktree(worker)
    kept = []
    tips = {git.ref(f"refs/heads/{branch}")}
    sound = git.admin_directory(worktree) is not None
    head = ""
    if sound:
        result = git.read("rev-parse", "--verify", "--quiet", "HEAD^{commit}", at=worktree)
        head = result.out.strip() if result.ok else ""
        tips.add(head or None)
    for number, tip in enumerate(sorted(filter(None, tips))):
        if not git.contains(trunk, tip):
            suffix = f"-{number}" if number else ""
            kept.append(keep(git, worker, label + suffix, tip))
    if sound and head:
        kept += _preserve_files(git, home, worker, worktree, head, label)
    return kept


def _preserve_files(
    git: Git, home: Home, worker: str, worktree: str, head: str, label: str
) -> list[str]:
    """Archive uncommitted files as a commit on top of the head, without touching the index."""
    if not git.is_dirty(worktree):
        return []
    environment = {"GIT_INDEX_FILE": home.file(f"preserve-{os.getpid()}.index")}
    try:
        for arguments in (("read-tree", head), ("add", "-A")):
            result = git.write(*arguments, at=worktree, environment=environment)
            if not result.ok:
                raise GitFailed(f"cannot preserve {worktree}: {result.last_words}")
        tree = git.write("write-tree", at=worktree, environment=environment)
    finally:
        if os.path.exists(environment["GIT_INDEX_FILE"]):
            os.unlink(environment["GIT_INDEX_FILE"])
    if not tree.ok:
        raise GitFailed(f"cannot preserve {worktree}: {tree.last_words}")
    message = f"Uncommitted work of {worker}, kept by longboat"
    commit = git.change("commit-tree", tree.out.strip(), "-p", head, "-m", message)
    return [keep(git, worker, label + "-uncommitted", commit)]


def ignore_settings(git: Git, names: tuple[str, ...]) -> None:
    """Hide our settings files from git in every worktree (``info/exclude`` is not part of it)."""
    path = os.path.join(git.common_directory, "info", "exclude")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except FileNotFoundError:
        text = ""
    missing = [name for name in names if f"/{name}" not in text.splitlines()]
    if not missing:
        return
    from longboat.workers.store import replace_file

    os.makedirs(os.path.dirname(path), exist_ok=True)
    joined = text + ("" if not text or text.endswith("\n") else "\n")
    joined += "".join(f"/{name}\n" for name in missing)
    replace_file(path, joined.encode("utf-8", "surrogateescape"))
