"""A batch comes to main: put together aside, tested there, then moved in one step.

Everything before the step only makes commits. The step is one compare-and-swap of the branch, written
down before it happens; everything after it can be repeated. After a crash the branch alone tells
whether to finish or to begin again.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from longboat.batch import gates
from longboat.batch.gates import Refusal
from longboat.batch.site import Site
from longboat.batch.store import remove_tree
from longboat.batch.values import Batch, Task
from longboat.errors import GitFailed, Rejection
from longboat.planting import planted
from longboat.workers import checkout
from longboat.workers.gitops import Git
from longboat.workers.state import Intent
from longboat.workers.store import sync_directory, sync_file


class Merged(NamedTuple):
    """A batch put together on top of `base`."""

    base: str
    target: str
    tasks: tuple[str, ...]
    conflicts: tuple[str, ...]


def put_together(site: Site, batch: Batch, tasks: list[Task], base: str) -> Merged:
    """Merge the tasks one after another in a clone; those that do not fit are left out."""
    place = site.home.run(site.state.id, f"merge-{batch.id}")
    remove_tree(place)
    git = site.git
    git.change("clone", "-q", "--no-hardlinks", "--no-tags", "--no-checkout", git.source, place)
    git.change("checkout", "-q", "--detach", base, at=place)
    merged, conflicts = [], []
    for task in tasks:
        site.check()
        git.change("fetch", "-q", "--no-tags", git.source, task.commit, at=place)
        text = f"Merge {task.id}: {task.name}\n\nLongboat-Batch: {site.state.id}/{task.id}\n"
        over = ("-X", "theirs") if planted("conflict-written-over") else ()
        result = git.write(
            "merge", "-q", "--no-ff", *over, "--no-verify", "-m", text, task.commit, at=place
        )
        if result.ok:
            merged.append(task.id)
            site.events.say("task.merged", task.id, batch_id=batch.id)
            continue
        git.change("reset", "-q", "--hard", at=place)
        conflicts.append(task.id)
        site.events.say(
            "batch.merge_conflict", task.id, batch_id=batch.id, text=result.last_words[:300]
        )
    return Merged(base, git.head(place), tuple(merged), tuple(conflicts))


def check(site: Site, batch: Batch) -> Refusal | None:
    """The doctor's word about the whole, and whether the doctor can say no at all."""
    place = site.home.run(site.state.id, f"merge-{batch.id}")
    if planted("merged-before-doctor"):
        return None
    refusal = gates.check_command(site, "doctor", place)
    if refusal is not None:
        return refusal
    if site.config.canary == "off" or not site.config.doctor:
        return None
    command = ["sh", "-c", site.config.doctor]
    result = site.program(command, place, site.config.gate_timeout_s, more={"LONGBOAT_CANARY": "1"})
    if not result.ok and not result.timed_out:
        site.events.say("canary.pass", batch_id=batch.id)
        return None
    site.events.say(f"canary.{site.config.canary}", batch_id=batch.id)
    if site.config.canary == "warn" or planted("canary-ignored"):
        return None
    return Refusal("canary", "the doctor passes although it was told to fail: it tests nothing")


def keep(site: Site, batch: Batch, target: str) -> None:
    """The tested commit into the source, below a name of ours."""
    place = site.home.run(site.state.id, f"merge-{batch.id}")
    name = site.kept(f"merge-{batch.id}")
    site.git.change("fetch", "-q", "--no-tags", "--no-write-fetch-head", place, f"+{target}:{name}")


def require_clean_checkout(site: Site, base: str, target: str) -> None:
    """Refuse while the user is in the middle of something where main is checked out."""
    aside = site.checkout_site
    place = checkout.find_checkout(aside)  # type: ignore[arg-type]
    if place and not planted("dirty-checkout-overwritten"):
        try:
            checkout.check_unmodified(aside, place)  # type: ignore[arg-type]
        except Rejection:
            if planted("edit-put-aside"):
                site.git.change("stash", at=place)
            raise
        checkout.check_nothing_in_the_way(aside, place, base, target)  # type: ignore[arg-type]


def swap(site: Site, batch: Batch) -> bool:
    """The step. False: somebody else moved main first."""
    text = f"longboat batch: {site.state.id}, batch {batch.id}"
    old = () if planted("main-moved-ignored") else (batch.base,)
    result = site.git.write("update-ref", "-m", text, site.trunk, batch.target, *old)
    if result.ok:
        return True
    site.git.clear_source_locks(site.config.main)
    now = site.git.ref(site.trunk)
    if now != batch.base:
        return now == batch.target  # git may have been killed just after it was done
    raise GitFailed(f"cannot move {site.config.main}: {result.last_words}")


def landed(site: Site, batch: Batch) -> bool:
    """After a crash: did the step happen?"""
    site.git.clear_source_locks(site.config.main)
    return site.git.contains(site.trunk, batch.target)


def bring_checkout(site: Site, batch: Batch) -> None:
    """The user's checkout of main follows; may be repeated."""
    aside = site.checkout_site
    place = checkout.find_checkout(aside)  # type: ignore[arg-type]
    if place and _is_untouched(site, batch) and not planted("checkout-left-behind"):
        name = f"{site.state.id}-{batch.id}"
        intent = Intent("batch", name, base=batch.base, commit=batch.target, task=name)
        checkout.bring_checkout(aside, place, intent)  # type: ignore[arg-type]
        _sync_checkout(site, place, batch)
    site.git.clear_source_locks(site.config.main)


def _is_untouched(site: Site, batch: Batch) -> bool:
    """Is what has landed still the newest of all its files? Somebody may have committed on top of it."""
    if site.git.ref(site.trunk) == batch.target:
        return True
    if not site.git.contains(site.trunk, batch.target):
        return False
    ours, theirs = (
        set(site.git.ask("diff", "--name-only", "-z", "--no-renames", *pair).split("\0")) - {""}
        for pair in ((batch.base, batch.target), (batch.target, site.trunk))
    )
    return not ours & theirs


def _sync_checkout(site: Site, place: str, batch: Batch) -> None:
    """What git wrote into the user's checkout, onto the disk: git itself syncs no working tree."""
    raw = site.git.ask("diff", "--name-only", "-z", "--no-renames", batch.base, batch.target)
    folders = {place}
    for name in filter(None, raw.split("\0")):
        path = os.path.join(place, name)
        if os.path.isfile(path) and not os.path.islink(path):
            sync_file(path)
        parent = os.path.dirname(path)
        while parent.startswith(place + os.sep):
            folders.add(parent)
            parent = os.path.dirname(parent)
    for folder in folders:
        if os.path.isdir(folder):
            sync_directory(folder)


def tidy(site: Site, batch: Batch) -> None:
    """What only the merge needed."""
    if planted("merge-leftovers"):
        return
    remove_tree(site.home.run(site.state.id, f"merge-{batch.id}"))
    for name in (f"merge-{batch.id}", *batch.tasks):
        task = site.state.tasks.get(name)
        if task is None or task.status == "complete":
            site.git.change("update-ref", "-d", site.kept(name))


def forget(git: Git, run_id: str) -> None:
    """No reference of a run is needed any more."""
    names = git.ask("for-each-ref", "--format=%(refname)", f"refs/longboat/batch/{run_id}/")
    for name in names.split():
        git.change("update-ref", "-d", name)
