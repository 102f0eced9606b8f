"""What each command of `longboat batch` does; every function returns what `--json` prints and a text."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

from longboat.batch import config as settings
from longboat.batch import containers, engine, merge
from longboat.batch import plan as plans
from longboat.batch.config import Config
from longboat.batch.site import Site, Stopped, marked
from longboat.batch.store import Home, make_directory, read_events
from longboat.batch.values import DONE, Run, check_name, to_json
from longboat.errors import Rejection, UsageError
from longboat.planting import planted
from longboat.workers.gitops import Git, open_source
from longboat.workers.store import replace_file

EXIT_CODES = {"complete": 0, "failed": 1, "paused": 3, "running": 4}
SETTABLE = ("pending", "skipped")


class Answer(NamedTuple):
    """What a command says."""

    data: Any
    text: str
    exit_code: int = 0


def init(home: Home, source: str, given: list[str]) -> Answer:
    """A new home for batches of one repository."""
    if os.path.lexists(home.file("config.toml")):
        raise Rejection(f"There is a batch home at {home.path} already")
    values = dict(map(settings.parse_setting, given))
    config = Config(**{"source": os.path.abspath(source), **values})  # type: ignore[arg-type]
    settings.checked(config, "init")
    open_source(config.source, config.main)
    os.makedirs(home.path, exist_ok=True)
    make_directory(home.file("runs"))
    replace_file(home.file("config.toml"), settings.render(config).encode())
    return Answer({"home": home.path}, f"A batch home for {config.source} is at {home.path}")


def plan(home: Home, config: Config, source: str) -> Answer:
    """Read a plan, or have one made, check it, and keep it."""
    if config.planner_url:
        try:
            with open(source, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{source} cannot be read: {error}") from None
        tasks = plans.ask_model(config.planner_url, text)
    else:
        tasks = plans.read_plan(source)
    with home.locked(config.lock_timeout_s):
        _sweep(home)
        dated = {"planned": time.time()} if planted("plan-with-date") else {}
        home.write_json("plan.json", {**plans.to_json(tasks), **dated})
    shown = [task._replace(depends=()) for task in tasks] if planted("needs-not-shown") else tasks
    return Answer(plans.to_json(shown), f"{len(tasks)} tasks planned")


def run(home: Home, config: Config, run_id: str) -> Answer:
    """Begin a run of the plan."""
    with home.locked(config.lock_timeout_s) as lock:
        git = _git(home, config, lock)
        data = home.read_json("plan.json")
        if data is None:
            raise Rejection("There is no plan yet. Run `longboat batch plan FILE` first")
        unfinished = [
            name for name in home.run_ids() if home.load(name).status in ("running", "paused")
        ]
        if unfinished and not planted("second-run-allowed"):
            raise Rejection(f"Run {unfinished[0]} is not finished. Resume it, or clean it")
        name = check_name(run_id, "run") if run_id else home.next_run_id()
        if os.path.lexists(home.run(name, "state.json")):
            raise Rejection(f"There is a run {name} already")
        tasks = plans.parse(_text(data), home.file("plan.json"))
        state = Run(name, config.main, tasks={task.id: task for task in tasks})
        home.make_run(name)
        home.save(state)
        return _drive(Site(home, config, git, state), "run.start")


def resume(home: Home, config: Config, run_id: str) -> Answer:
    """Go on with a run that was stopped, that died, or that waits for somebody."""
    with home.locked(config.lock_timeout_s) as lock:
        git = _git(home, config, lock)
        state = home.load(_chosen(home, run_id))
        if state.status in ("complete", "failed"):
            text = f"Run {state.id} is {state.status}; there is nothing to resume"
            if state.status == "complete":
                if planted("resume-writes-again"):
                    home.save(state._replace(reason="resumed"))
                return Answer(to_json(state), text)
            raise Rejection(f"{text}. Set a task to pending first")
        if planted("plan-of-now"):
            state = _planned_anew(home, state)
        return _drive(Site(home, config, git, state), "run.resume")


def _planned_anew(home: Home, state: Run) -> Run:
    """Plants only: what was begun goes on with the plan that there is now."""
    plan = {one.id: one for one in plans.parse(_text(home.read_json("plan.json")), "plan.json")}
    tasks = [
        task._replace(prompt=plan[name].prompt)
        for name, task in state.tasks.items()
        if name in plan
    ]
    return state.with_task(*tasks)


def _drive(site: Site, kind: str) -> Answer:
    site.listen()
    try:
        site.events.say(kind, tasks=len(site.state.tasks))
        engine.drive(site)
    except Stopped as stop:
        text = f"Run {site.state.id} was {stop}; `longboat batch resume` goes on"
        return Answer(to_json(site.state), text, 128 + stop.number)
    finally:
        site.events.close()
    if planted("log-beside-home"):
        replace_file(os.path.join(os.path.dirname(site.home.path), "batch.log"), b"ended\n")
    state = site.state
    reason = f": {state.reason}" if state.reason else ""
    code = 0 if planted("failed-run-exits-zero") else EXIT_CODES[state.status]
    return Answer(to_json(state), f"Run {state.id} is {state.status}{reason}", code)


def status(home: Home, config: Config, run_id: str) -> Answer:
    """What is so; nothing is changed."""
    names = home.run_ids()
    if not names and not run_id:
        return Answer({"runs": []}, "There are no runs yet")
    state = home.load(_chosen(home, run_id))
    data = to_json(state)
    if planted("status-rounds-up"):
        failed = [one for one in data["tasks"].values() if one["status"] == "failed"]
        for one in failed:
            one["status"] = "complete"
    if planted("attempts-not-shown"):
        for one in data["tasks"].values():
            one["attempts"] = 0
    if planted("status-kept-in-file"):
        home.write_json("status.json", data)
    if planted("status-crashes-on-review"):
        assert all(task.status != "needs_review" for task in state.tasks.values())
    if state.status == "running" and not home.somebody_works():
        data["status"] = "interrupted"
        data["reason"] = "nobody works on it; `longboat batch resume` goes on"
    rows = [
        f"  {task.id:<16} {task.status:<13} attempts {task.attempts}  {task.error}".rstrip()
        for task in state.tasks.values()
    ]
    reason = f" ({data['reason']})" if data["reason"] else ""
    return Answer(data, "\n".join([f"Run {state.id}: {data['status']}{reason}", *rows]))


def logs(home: Home, run_id: str, task: str, kind: str) -> Answer:
    """The events of a run, all or some."""
    found = [
        one
        for one in read_events(home, _chosen(home, run_id))
        if (not task or (one.get("task_id") == task) is not planted("log-of-the-others"))
        and (not kind or str(one.get("type", "")).startswith(kind))
    ]
    return Answer({"events": found}, "\n".join(_text(one) for one in found))


def timeline(home: Home, run_id: str) -> Answer:
    """When what began and ended, a line each."""
    events = read_events(home, _chosen(home, run_id))
    zero = events[0]["ts"] if events else 0.0
    if planted("timeline-by-type"):
        events.sort(key=lambda one: str(one["type"]))
    rows = [
        f"{one['ts'] - zero:9.3f}s  {one['type']:<22} {one.get('task_id', '')}".rstrip()
        for one in events
    ]
    return Answer({"events": events}, "\n".join(rows))


def clean(home: Home, config: Config, run_id: str, *, force: bool) -> Answer:
    """Take the files of one run away; what it merged stays merged, and stays in the ledger."""
    with home.locked(config.lock_timeout_s) as lock:
        git = _git(home, config, lock)
        state = home.load(check_name(run_id, "run"))
        open_tasks = [task.id for task in state.tasks.values() if task.status not in DONE]
        if not force and not planted("clean-without-force"):
            left = f", unfinished: {', '.join(open_tasks)}" if open_tasks else ""
            raise Rejection(
                f"Nothing was deleted: run {run_id} has {len(state.tasks)} tasks{left}. Use --force"
            )
        for one in marked(home, state.id, ""):
            raise Rejection(
                f"A process of run {run_id} is still at work (pid {one.pid}); resume or stop it first"
            )
        containers.clear(Site(home, config, git, state))
        for name in home.run_ids() if planted("clean-takes-all") else [run_id]:
            home.doom(name)
            _forget(home, git, name)
    return Answer({"cleaned": run_id}, f"Run {run_id} is gone")


def set_status(home: Home, config: Config, run_id: str, task: str, status: str) -> Answer:
    """The way out of review and failure: try a task again, or leave it out."""
    if status not in SETTABLE:
        raise UsageError(f"a task can be set to {' or '.join(SETTABLE)}, not to {status!r}")
    with home.locked(config.lock_timeout_s) as lock:
        _git(home, config, lock)
        state = home.load(_chosen(home, run_id))
        known = state.tasks.get(task)
        if known is None:
            raise Rejection(f"Run {state.id} has no task '{task}'")
        if known.status == "needs_review" and planted("no-way-out-of-review"):
            raise Rejection(f"Task '{task}' is needs_review; only pending tasks can be changed")
        if known.status == "complete":
            raise Rejection(f"Task '{task}' is merged; that is not taken back")
        if any(batch.phase == "landing" for batch in state.batches):
            raise Rejection(f"Run {state.id} was interrupted while it landed; resume it first")
        attempts = known.attempts if planted("attempts-kept-when-set") else 0
        changed = known._replace(status=status, conflicts=0, commit="", error="")
        changed = changed._replace(attempts=attempts)
        state = state.with_task(changed)._replace(
            status="paused", reason=f"{task} was set to {status}"
        )
        home.save(state)
    return Answer(to_json(state), f"Task '{task}' is {status}")


# --- parts ----------------------------------------------------------------------------------------------


def _chosen(home: Home, run_id: str) -> str:
    """The run that was named, or the newest one."""
    if run_id:
        return check_name(run_id, "run")
    names = home.run_ids()
    if not names:
        raise Rejection("There are no runs yet")
    return names[-1]


def _git(home: Home, config: Config, lock: int) -> Git:
    """Git for the source; what a killed command left is put right first."""
    git = open_source(config.source, config.main, lock)
    git.clear_reference_locks()
    for name in home.doomed():
        _forget(home, git, name)
    _sweep(home)
    return git


def _sweep(home: Home) -> None:
    """Unfinished files of writers that were killed; only with the lock held."""
    places = [home.path, *(home.run(name) for name in home.run_ids())]
    for place in places:
        for name in os.listdir(place):
            if name.endswith(".tmp"):
                os.unlink(os.path.join(place, name))


def _forget(home: Home, git: Git, run_id: str) -> None:
    """The references first: as long as files are left, somebody knows that there is something to do."""
    merge.forget(git, run_id)
    home.bury(run_id)


def _text(value: Any) -> str:
    import json

    return json.dumps(value)
