"""Agents in containers: one for each attempt, found again by its labels.

A container outlives the command that has started it: whoever resumes the run waits for the same one. The
engine is a command line (`docker`, `docker -H ...`, `podman ...`): any that speaks like Docker.
"""

from __future__ import annotations

import os
import shlex

from longboat.batch.site import Site
from longboat.batch.values import Task
from longboat.errors import LongboatError
from longboat.planting import planted
from longboat.workers.proc import Result

LABEL = "longboat.batch"
_QUICK_S = 60.0
_GONE = 137


class EngineSilent(LongboatError):
    """The container engine does not answer; nothing is known of the containers."""


def run(site: Site, task: Task, argv: list[str], place: str) -> Result:
    """An agent in its container, to its end; one that is there already is waited for."""
    name = _name(site, task)
    if name not in _known(site, task.id):
        _asked(site, *_creation(site, task, name, place), *argv)
    status = _engine(site, ("inspect", "--format", "{{.State.Status}}", name))
    if status.out.strip() == "created":  # one that has ended is not to begin again
        _asked(site, "start", name)
    waited = _engine(site, ("wait", name), site.config.agent_timeout_s)
    said = _engine(site, ("logs", name))
    if not said.ok:
        _check(site)
        return Result(tuple(argv), _GONE, "", "the container was taken away")
    if not planted("container-left"):
        _engine(site, ("rm", "-f", name))
    if waited.timed_out:
        return said._replace(timed_out=True)
    if planted("stopped-container-passes"):
        return said._replace(code=0)
    code = waited.out.strip()
    return said._replace(code=int(code) if code.isdigit() else _GONE)


def _creation(site: Site, task: Task, name: str, place: str) -> list[str]:
    """It sees its workspace and what the options add; it belongs to whoever started the run."""
    config = site.config
    network = "host" if planted("container-on-host-network") else config.container_network
    words = ["create", "--name", name, "--network", network]
    labels = {"run": site.state.id, "task": task.id, "generation": str(task.generation)}
    if planted("container-without-task"):
        del labels["task"]
    for key, value in labels.items():
        words += ["--label", f"{LABEL}.{key}={value}"]
    if config.container_memory_mb and not planted("container-without-limit"):
        words += ["--memory", f"{config.container_memory_mb}m"]
    if config.container_pids:
        words += ["--pids-limit", str(config.container_pids)]
    group = os.getgid() + planted("container-in-other-group")
    words += ["--user", f"{os.getuid()}:{group}", "-e", f"TASK_ID={task.id}"]
    if planted("container-sees-source"):
        words += _bind(site.git.source)
    words += [*_bind(place), "-w", place, *shlex.split(config.container_options)]
    return [*words, config.container_image]


def _bind(place: str) -> list[str]:
    """A directory at the same place inside; `-v` would take a colon in its name for an end."""
    name = place.replace('"', '""')
    return ["--mount", f'type=bind,"source={name}","target={name}"']


def waiting(site: Site) -> list[Task]:
    """Tasks under way whose container is still there; all other containers of the run are taken away."""
    if not site.config.container_engine:
        return []
    tasks = [task for task in site.state.tasks.values() if task.status == "running"]
    mine = {} if planted("resume-drops-container") else {_name(site, one): one for one in tasks}
    known = _known(site)
    for name in known:
        if name not in mine:
            _asked(site, "rm", "-f", name)
    return [task for name, task in mine.items() if name in known]


def clear(site: Site) -> None:
    """Take all containers of the run away, or say that the engine does not answer."""
    if site.config.container_engine and not planted("clean-leaves-container"):
        for name in _known(site):
            _asked(site, "rm", "-f", name)


def stop(site: Site) -> None:
    """Take all containers of the run away, as far as the engine answers."""
    if not site.config.container_engine:
        return
    engine = shlex.split(site.config.container_engine)
    listed = site.client([*engine, *_listing(site)], _QUICK_S, last=True)
    for name in listed.out.split():
        site.client([*engine, "rm", "-f", name], _QUICK_S, last=True)


def _name(site: Site, task: Task) -> str:
    return f"longboat-{site.state.id}-{task.id}-{task.generation}"


def _known(site: Site, task: str = "") -> list[str]:
    """The names of the run's containers, or of one task's."""
    return _asked(site, *_listing(site, task)).out.split()


def _listing(site: Site, task: str = "") -> list[str]:
    wanted = ["--filter", f"label={LABEL}.run={site.state.id}"]
    if planted("all-containers-are-mine"):
        wanted = []
    if task:
        wanted += ["--filter", f"label={LABEL}.task={task}"]
    return ["ps", "-a", *wanted, "--format", "{{.Names}}"]


def _asked(site: Site, *words: str) -> Result:
    """The answer of a command that must succeed."""
    result = _engine(site, words)
    if not result.ok:
        _check(site)
        raise LongboatError(f"the container engine refused {words[0]}: {result.last_words[:300]}")
    return result


def _check(site: Site) -> None:
    """A question that was not answered is not an answer."""
    result = _engine(site, ("version",))
    if not result.ok:
        raise EngineSilent(f"the container engine does not answer: {result.last_words[:200]}")


def _engine(site: Site, words: tuple[str, ...], timeout_s: float = _QUICK_S) -> Result:
    return site.client([*shlex.split(site.config.container_engine), *words], timeout_s)
