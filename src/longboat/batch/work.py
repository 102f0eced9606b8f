"""One attempt at a task: a workspace of its own, an agent, a commit, the gates."""

from __future__ import annotations

import os
import shlex
from typing import NamedTuple

from longboat.batch import containers, gates
from longboat.batch.gates import Refusal
from longboat.batch.site import Site
from longboat.batch.store import make_directory, remove_tree
from longboat.batch.values import Task
from longboat.errors import GitFailed
from longboat.planting import planted
from longboat.workers.proc import Result
from longboat.workers.store import replace_file


class Attempt(NamedTuple):
    """What an attempt has brought."""

    task: Task
    refusal: Refusal | None = None


def attempt(site: Site, task: Task, base: str, *, attached: bool = False) -> Attempt:
    """Let an agent do a task in a fresh workspace; what passes all gates is kept for good.

    `attached`: it is at work already, in its container.
    """
    place = site.home.run(site.state.id, "workspaces", f"{task.id}-{task.generation}")
    if not attached:
        _make_workspace(site, place, base)
    site.events.say("worker.attach" if attached else "worker.start", task.id, at=task.generation)
    argv = [*shlex.split(site.config.agent), task.prompt]
    if site.config.container_engine:
        result = containers.run(site, task, argv, place)
    else:
        result = site.program(argv, place, site.config.agent_timeout_s, task.id)
    _keep_output(site, task, result)
    before = 0 if planted("tokens-of-the-last-attempt") else task.tokens
    task = task._replace(tokens=before + gates.tokens_in(result.out), base=base, error="")
    site.note_tokens(task)
    if not result.ok and not (planted("agent-timeout-passes") and result.timed_out):
        site.events.say("worker.fail", task.id, text=result.last_words[:300])
        return Attempt(task, Refusal("worker", f"the agent failed: {result.last_words[:300]}"))
    head = _commit(site, task, place, base)
    site.events.say("worker.complete", task.id, commit=head, tokens=task.tokens)
    if head == base:
        return Attempt(task, Refusal("worker", "the agent changed nothing"))
    return _gated(site, task, place, base, head)


def _gated(site: Site, task: Task, place: str, base: str, head: str) -> Attempt:
    for gate in ("lint", "doctor"):
        refusal = gates.check_command(site, gate, place, task.id)
        if refusal is not None:
            return Attempt(task, refusal)
    names = [] if site.config.manifest == "off" else gates.undeclared(site, task, place, base, head)
    if names and site.config.rescope and not task.rescoped:
        wider = task._replace(files=(*task.files, *names), rescoped=True)
        site.events.say("task.rescope", task.id, files=names[:50])
        return Attempt(wider, Refusal("rescope", f"now declared: {', '.join(names[:5])}"))
    refusal = gates.check_manifest(site, task, names)
    refusal = refusal or gates.check_validators(site, task, place, base, head)
    if refusal is not None:
        return Attempt(task, refusal)
    _keep_commit(site, task, place, head)
    return Attempt(task._replace(commit=head))


def _make_workspace(site: Site, place: str, base: str) -> None:
    """A clone of its own, cut off from where it came: nothing that an agent does there reaches further."""
    make_directory(os.path.dirname(place))
    remove_tree(place)
    git = site.git
    git.change("clone", "-q", "--no-hardlinks", "--no-tags", "--no-checkout", git.source, place)
    git.change("checkout", "-q", "-B", f"batch/{os.path.basename(place)}", base, at=place)
    git.change("remote", "remove", "origin", at=place)
    if planted("notes-in-workspace"):
        replace_file(os.path.join(place, "longboat-notes.json"), b"{}\n")


def _commit(site: Site, task: Task, place: str, base: str) -> str:
    """Everything that lies in the workspace, as a commit on top of where it began."""
    git = site.git
    git.change("add", "-A", at=place)
    if git.ask("diff", "--cached", "--name-only", at=place):
        message = f"{task.name}\n\nLongboat-Batch: {site.state.id}/{task.id}\n"
        git.change("commit", "-q", "--no-verify", "-m", message, at=place)
    elif planted("own-commits-ignored"):
        return base
    head = git.head(place)
    if git.read("merge-base", "--is-ancestor", base, head, at=place).code != 0:
        raise GitFailed(f"{place}: its history no longer begins at {base[:12]}")
    return head


def _keep_commit(site: Site, task: Task, place: str, head: str) -> None:
    """Into the source, below a name of ours: the workspace may be lost now."""
    if planted("work-kept-in-workspace-only"):
        return
    site.git.change(
        *(
            "fetch",
            "-q",
            "--no-tags",
            "--no-write-fetch-head",
            place,
            f"+{head}:{site.kept(task.id)}",
        )
    )


def _keep_output(site: Site, task: Task, result: Result) -> None:
    """What the agent said."""
    folder = site.home.run(site.state.id, "tasks")
    make_directory(folder)
    make_directory(os.path.join(folder, task.id))
    text = f"{result.out}\n--- stderr ---\n{result.err}\n--- exit code {result.code} ---\n"
    path = os.path.join(folder, task.id, f"attempt-{task.generation}.log")
    replace_file(path, text.encode("utf-8", "surrogateescape"))
