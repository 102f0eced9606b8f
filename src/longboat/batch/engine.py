"""A run from its first batch to its last: schedule, attempt, gate, merge; and how it goes on after a crash.

Every decision is saved before anything follows from it, so that `resume` only has to look at the state
and at main.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from longboat.batch import containers, gates, merge, schedule
from longboat.batch.site import Site, Stopped
from longboat.batch.store import remove_tree
from longboat.batch.values import DONE, Batch, Task
from longboat.batch.work import Attempt, attempt
from longboat.errors import GitFailed, LongboatError
from longboat.planting import planted

_MOST_MOVES = 5
"""So often main may move while a batch is put together."""


def drive(site: Site) -> None:
    """Run until nothing is left that could be done; the state says how it ended."""
    site.save(site.state._replace(status="running", reason=""))
    try:
        _recover(site)
        while _over_budget(site) is False:
            waiting = _unmerged(site)
            early = planted("dependency-before-merge") and schedule.ready(site.state)
            if waiting and not early:
                if not _land(site, waiting):
                    break
                continue
            tasks = schedule.pack(schedule.ready(site.state), site.config.max_parallel)
            if not tasks or (site.config.failure_policy == "stop" and _has(site, "failed")):
                break
            _work(site, tasks)
        _end(site)
    except Stopped as stop:
        site.reap()
        containers.stop(site)
        _pause(site, str(stop))
        raise
    except containers.EngineSilent as error:
        site.reap()
        _pause(site, str(error), kept=not planted("outage-forgets-container"))
        raise
    except (LongboatError, OSError) as error:
        site.reap()
        containers.stop(site)
        _pause(site, str(error))
        raise


# --- after a crash ----------------------------------------------------------------------------------


def _recover(site: Site) -> None:
    """Finish what was begun, or forget it."""
    site.reap()
    for batch in site.state.batches:
        if batch.phase == "landed":
            _tidy(site, batch)
        if batch.phase == "landing":
            if merge.landed(site, batch) or planted("resume-trusts-intent"):
                site.events.say("batch.recovered", batch_id=batch.id)
                _finish(site, batch)
            else:
                site.save(
                    site.state.with_batch(batch._replace(phase="merging", base="", target=""))
                )
    working = containers.waiting(site)
    running = [
        task
        for task in site.state.tasks.values()
        if task.status == "running" and task not in working
    ]
    if running:
        tasks = [task._replace(status="pending") for task in running]
        site.save(site.state.with_task(*tasks))
        for task in running:
            site.events.say("task.reset", task.id, reason="it was interrupted")
    for batch in site.state.batches:
        mine = [task for task in working if batch.phase == "running" and task.id in batch.tasks]
        if mine:
            _attempts(site, batch, mine, attached=True)
    if planted("complete-run-again"):
        again = [task for task in site.state.tasks.values() if task.status == "complete"][-1:]
        site.save(site.state.with_task(*(task._replace(status="pending") for task in again)))


# --- attempts ---------------------------------------------------------------------------------------


def _work(site: Site, tasks: list[Task]) -> None:
    """One batch of attempts, side by side."""
    number = max((batch.id for batch in site.state.batches), default=0) + 1
    base = site.git.ref(site.trunk)
    if base is None:
        raise GitFailed(f"{site.config.main} is not there any more")
    begun = [
        task._replace(status="running", generation=task.generation + 1, base=base) for task in tasks
    ]
    batch = Batch(number, tuple(task.id for task in tasks))
    site.save(site.state.with_task(*begun).with_batch(batch))
    site.events.say("batch.start", batch_id=number, tasks=list(batch.tasks))
    _attempts(site, batch, begun)


def _attempts(site: Site, batch: Batch, tasks: list[Task], *, attached: bool = False) -> None:
    """Attempts side by side, and what they mean for their tasks."""
    if len(tasks) == 1:
        _note(site, attempt(site, tasks[0], tasks[0].base, attached=attached))
    else:
        with ThreadPoolExecutor(len(tasks)) as pool:
            under_way = [
                pool.submit(attempt, site, task, task.base, attached=attached) for task in tasks
            ]
        for one in under_way:  # what the first of them raises ends the run, with all of them ended
            _note(site, one.result())
    done = [name for name in batch.tasks if site.state.tasks[name].status == "validated"]
    phase = "merging" if done else "failed"
    site.save(site.state.with_batch(batch._replace(phase=phase)))


def _note(site: Site, done: Attempt) -> None:
    """What an attempt means for its task."""
    task, refusal = done
    if refusal is None:
        task = task._replace(status="validated")
        site.save(site.state.with_task(task))
        site.events.say("task.validated", task.id, commit=task.commit)
        return
    failed = task.attempts + (refusal.gate != "rescope")
    if refusal.gate in ("manifest", "validator"):
        status = "needs_review"
    elif failed > site.config.max_retries and not planted("attempts-without-end"):
        status = "failed"
    else:
        status = "pending"
    text = "" if planted("failure-without-text") else refusal.text
    task = task._replace(status=status, attempts=failed, error=text)
    site.save(site.state.with_task(task))
    kind = {"pending": "task.retry"}.get(status, f"task.{status}")
    site.events.say(kind, task.id, gate=refusal.gate, text=refusal.text)


def _over_budget(site: Site) -> bool:
    """Stop before anything is merged when a limit is exceeded and limits block."""
    text = "" if site.config.budget == "off" else gates.over_budget(site.config, site.state)
    if not text:
        return False
    site.events.say(f"budget.{site.config.budget}", text=text)
    if site.config.budget == "warn":
        return False
    if planted("budget-checked-after-merge"):
        _land(site, _unmerged(site))
    site.save(site.state._replace(status="failed", reason=f"over budget: {text}"))
    return True


# --- landing ------------------------------------------------------------------------------------------


def _unmerged(site: Site) -> list[Task]:
    return [task for _, task in sorted(site.state.tasks.items()) if task.status == "validated"]


def _land(site: Site, tasks: list[Task]) -> bool:
    """Bring validated tasks to main. False: the run cannot go on."""
    batch = _batch_of(site, tasks)
    for _ in range(_MOST_MOVES):
        site.check()
        base = site.git.ref(site.trunk)
        if base is None:
            raise GitFailed(f"{site.config.main} is not there any more")
        site.events.say("batch.merging", batch_id=batch.id, tasks=[task.id for task in tasks])
        made = merge.put_together(site, batch, tasks, base)
        if made.conflicts:
            _again(site, made.conflicts)
            tasks = [task for task in tasks if task.id in made.tasks]
        if not made.tasks:
            remove_tree(site.home.run(site.state.id, f"merge-{batch.id}"))
            site.save(site.state.with_batch(batch._replace(phase="failed")))
            return True
        refusal = merge.check(site, batch)
        if refusal is not None:
            return _refused(site, batch, made.tasks, refusal.text)
        merge.keep(site, batch, made.target)
        merge.require_clean_checkout(site, base, made.target)
        site.check()
        landing = batch._replace(phase="landing", tasks=made.tasks, base=base, target=made.target)
        site.save(site.state.with_batch(landing))
        site.events.say("batch.landing", batch_id=batch.id, base=base, target=made.target)
        if merge.swap(site, landing):
            site.events.say("batch.landed", batch_id=batch.id, target=made.target)
            _finish(site, landing)
            return True
        site.events.say("batch.main_moved", batch_id=batch.id)
        batch = batch._replace(phase="merging", tasks=made.tasks)
        site.save(site.state.with_batch(batch))
    raise GitFailed(f"{site.config.main} moves too fast to merge batch {batch.id}")


def _batch_of(site: Site, tasks: list[Task]) -> Batch:
    """The batch that these tasks land with: their own, or a new one for those of several."""
    names = {task.id for task in tasks}
    for batch in site.state.batches:
        if batch.phase == "merging" and set(batch.tasks) >= names:
            return batch._replace(tasks=tuple(sorted(names)))
    number = max((batch.id for batch in site.state.batches), default=0) + 1
    return Batch(number, tuple(sorted(names)), "merging")


def _again(site: Site, names: tuple[str, ...]) -> None:
    """What does not merge is done again on what is there now; not for ever."""
    changed = []
    for name in names:
        task = site.state.tasks[name]
        conflicts = task.conflicts + 1
        often = conflicts > site.config.max_conflicts
        status = "needs_review" if often else "pending"
        text = "it does not merge with what is on the branch"
        changed.append(task._replace(status=status, conflicts=conflicts, commit="", error=text))
        site.events.say("task.conflict", name, conflicts=conflicts)
    site.save(site.state.with_task(*changed))


def _refused(site: Site, batch: Batch, names: tuple[str, ...], text: str) -> bool:
    """The whole does not work: main stays as it is, and somebody has to look."""
    tasks = [site.state.tasks[name]._replace(status="needs_review", error=text) for name in names]
    state = site.state.with_task(*tasks).with_batch(batch._replace(phase="failed", tasks=names))
    site.save(state._replace(status="failed", reason=text))
    site.events.say("batch.refused", batch_id=batch.id, text=text)
    remove_tree(site.home.run(site.state.id, f"merge-{batch.id}"))
    return False


def _finish(site: Site, batch: Batch) -> None:
    """Everything after the step; may be repeated from the start at any time."""
    merge.bring_checkout(site, batch)
    site.home.note_merged(site.state, dict.fromkeys(batch.tasks, batch.target))
    by = batch.base if planted("merged-by-its-base") else batch.target
    tasks = [
        site.state.tasks[name]._replace(status="complete", merged=by, error="")
        for name in batch.tasks
    ]
    if planted("merged-not-noted"):
        tasks = [
            task._replace(status="pending") if task.generation == 1 else task for task in tasks
        ]
    site.save(site.state.with_task(*tasks).with_batch(batch._replace(phase="landed")))
    for name in batch.tasks:
        site.events.say("task.complete", name, merged=batch.target)
    _tidy(site, batch)


def _tidy(site: Site, batch: Batch) -> None:
    """Take away what nobody needs once the batch has landed; may be repeated."""
    merge.tidy(site, batch)
    if site.config.cleanup == "on_success" and not planted("workspaces-left"):
        for name in batch.tasks:
            for number in range(1, site.state.tasks[name].generation + 1):
                remove_tree(site.home.run(site.state.id, "workspaces", f"{name}-{number}"))
    site.save(site.state.with_batch(batch._replace(phase="complete")))
    site.events.say("batch.complete", batch_id=batch.id)


# --- the end ------------------------------------------------------------------------------------------


def _has(site: Site, status: str) -> bool:
    return any(task.status == status for task in site.state.tasks.values())


def _end(site: Site) -> None:
    """How the run ends: complete when everything is, failed when something has failed, else paused."""
    if site.state.status == "running":
        statuses = {task.status for task in site.state.tasks.values()}
        if statuses <= set(DONE) or planted("complete-with-failures"):
            _clear(site)
            state = site.state._replace(status="complete", reason="")
        elif "failed" in statuses:
            first = next(task for task in site.state.tasks.values() if task.status == "failed")
            if planted("failure-forgets-merges"):
                merged = [task for task in site.state.tasks.values() if task.status == "complete"]
                site.save(site.state.with_task(*(one._replace(status="pending") for one in merged)))
            state = site.state._replace(status="failed", reason=f"task {first.id}: {first.error}")
        else:
            open_tasks = [task for task in site.state.tasks.values() if task.status not in DONE]
            shown = ", ".join(f"{task.id} is {task.status}" for task in open_tasks[:5])
            state = site.state._replace(status="paused", reason=f"somebody has to look: {shown}")
        site.save(state)
    site.events.say(f"run.{site.state.status}", reason=site.state.reason)


def _clear(site: Site) -> None:
    """What was left out has left something, too: nobody needs it once the run is complete."""
    if not planted("merge-leftovers"):
        merge.forget(site.git, site.state.id)
        for batch in site.state.batches:
            remove_tree(site.home.run(site.state.id, f"merge-{batch.id}"))
    if site.config.cleanup == "on_success" and not planted("workspaces-left"):
        remove_tree(site.home.run(site.state.id, "workspaces"))


def _pause(site: Site, reason: str, *, kept: bool = False) -> None:
    """An orderly stop: it costs nothing, and `resume` goes on from here.

    `kept`: what is under way may be at work in a container that nobody can ask for now.
    """
    under_way = [task for task in site.state.tasks.values() if task.status == "running"]
    tasks = [] if kept else under_way
    cost = 1 if planted("stop-costs-attempt") else 0
    back = [task._replace(status="pending", attempts=task.attempts + cost) for task in tasks]
    try:
        site.save(site.state.with_task(*back)._replace(status="paused", reason=reason))
        site.events.say("run.paused", reason=reason)
    except OSError:
        return  # the old state is whole, and resume understands it as well
