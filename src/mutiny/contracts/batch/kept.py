"""Is what a run's state and log keep of its tasks so? Held against the plan, the agents and git."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mutiny.contracts.batch import operations as op
from mutiny.contracts.batch.invariants import (
    BatchCheck,
    ended_by_itself,
    found,
    git_of,
    run_of,
)
from mutiny.contracts.batch.model import RunModel
from mutiny.contracts.batch.observation import BatchRow, GitSeen, Line, RunSeen, TaskSeen
from mutiny.contracts.batch.tasks import rows_of
from mutiny.kit.telling import untrue
from mutiny.model.operation import walk
from mutiny.model.violation import Violation

RULE = "kept_true"
WIDER = "files"
"""What a task may change may become more than was planned."""
MERGED = "merged"
COUNTED = "conflicts"
"""What the log tells whenever it changes."""


def kept_true(check: BatchCheck) -> Iterator[Violation]:
    """Tasks as planned, commits that are on the branch, attempts that were begun, and a log that agrees."""
    run, shown = run_of(check), check.seen.run
    if run is None or shown is None or run.again or run.name not in ("", shown.name):
        return
    if check.seen.error is not None or check.model.doubted:
        return
    texts = [*_as_planned(run, shown), *_brought(git_of(check), shown), *_batches(shown, run)]
    texts += _named(check.seen.lines.get(shown.name, ()), run)
    if undisturbed(check):
        texts += [*_counted(check, shown), *_logged(check, shown)]
    yield from (found(RULE, text, task) for task, text in texts)


Told = Iterator[tuple[str, str]]
"""Task, and what is wrong with it."""


def undisturbed(check: BatchCheck) -> bool:
    """Was one run, and nothing else, driven to its end, and was every agent heard?"""
    commands = [part for part in walk(check.operation) if isinstance(part, op.LONG)]
    model = check.model
    alone = commands == [check.operation] and ended_by_itself(check)
    slow = model.knobs.agent_timeout_s < LONG_ENOUGH_S  # it may be over before an agent could write
    return alone and not (model.faults or model.lost or model.contained or slow)


LONG_ENOUGH_S = 60.0


# --- the plan ----------------------------------------------------------------------------------------


def _as_planned(run: RunModel, shown: RunSeen) -> Told:
    """Every task is kept as it was planned; it may have declared more files since."""
    for row in rows_of(tuple(run.tasks.values())):
        name = row["id"]
        task = shown.tasks.get(name)
        for word, kept in {} if task is None else task.planned.items():
            due = row.get(word)
            if untrue(_as_set(kept), _as_set(due), _as_set(due)) is None:
                continue
            if word != WIDER or not isinstance(kept, list) or not set(due or ()) <= set(kept):
                yield name, f"{name} is kept with {word} {kept!r}; it was planned with {due!r}."


def _as_set(value: object) -> object:
    """Nobody promises the order of a list, nor to keep what is there twice."""
    return sorted({str(one) for one in value}) if isinstance(value, list) else value


# --- git ---------------------------------------------------------------------------------------------


def _brought(git: GitSeen, shown: RunSeen) -> Told:
    """The commits of what is merged are on the branch, and the one that brought it did."""
    steps = {sha: at for at, sha in enumerate(git.steps)}  # 0 is the newest
    for name, task in shown.tasks.items():
        if task.status != "complete" or not git.landed.get(name):
            continue
        for word, sha in (("commit", task.commit), ("merged", task.merged), ("base", task.base)):
            if sha is not None and sha not in git.commits:
                yield name, f"{name} is kept with the {word} {sha!r}, which is not on the branch."
        merged, base = steps.get(task.merged or ""), steps.get(task.base or "")
        if merged is None or not git.brought.get(name):
            continue
        brought = [steps[sha] for sha in git.brought[name] if sha in steps]
        if not any(merged <= at < (len(steps) if base is None else base) for at in brought):
            text = (
                f"{name} is said to have been merged by {(task.merged or '')[:12]}, which did not."
            )
            yield name, text
    for batch in shown.batches:
        if batch.landed and steps and _apart(batch, steps):
            text = (
                f"Batch {batch.id} is said to have brought the branch from {batch.base[:12]!r} to "
            )
            yield "", f"{text}{batch.target[:12]!r}; it never was at both in this order."


def _apart(batch: BatchRow, steps: dict[str, int]) -> bool:
    base, target = steps.get(batch.base), steps.get(batch.target)
    return base is None or target is None or target >= base


# --- batches -----------------------------------------------------------------------------------------


def _batches(shown: RunSeen, run: RunModel) -> Told:
    """Each has a number of its own; whoever was merged has landed with one of them, and with it alone."""
    rows = shown.batches
    if not rows:
        return
    numbers = [str(one.id) for one in rows]
    for number in sorted({one for one in numbers if numbers.count(one) > 1})[:1]:
        yield "", f"There are two batches {number}."
    for batch in rows:
        for name in sorted(set(batch.tasks) - run.tasks.keys())[:1]:
            yield name, f"Batch {batch.id} has {name}, which was not planned."
    for name, task in shown.tasks.items():
        mine = [one for one in rows if one.landed and name in one.tasks]
        if task.status != "complete":
            if mine:
                yield name, f"{name} is {task.status}, but batch {mine[0].id} has brought it."
        elif task.merged is not None and [one.target for one in mine] != [task.merged]:
            told = ", ".join(one.target[:12] for one in mine) or "none"
            yield (
                name,
                f"{name} was merged by {task.merged[:12]!r}; of its batches {told} has landed.",
            )


# --- the log -----------------------------------------------------------------------------------------


def _named(lines: Collection[Line], run: RunModel) -> Told:
    """Nobody is named in the log who was not planned."""
    for line in lines:
        strangers = sorted({line.task, *line.tasks} - {"", *run.tasks})
        if strangers:
            yield strangers[0], f"The log names {strangers[0]}, which was not planned: {line.short}"
            return


def _counted(check: BatchCheck, shown: RunSeen) -> Told:
    """So many attempts were begun, and have failed, as agents were started, and have failed."""
    was = check.before.runs.get(shown.name)
    new = check.seen.attempts[len(check.before.attempts) :]
    lines = new_lines(check, shown)
    for name, task in shown.tasks.items():
        before = TaskSeen("") if was is None else was.tasks.get(name, TaskSeen(""))
        mine = [one for one in new if one.task == name]
        if task.begun is not None:
            more = task.begun - (before.begun or 0)
            if more != len(mine):
                yield (
                    name,
                    f"{more} attempts at {name} were begun; {len(mine)} agents were started.",
                )
            failed = (task.attempts or 0) - (before.attempts or 0)
            sure = sum(one.ended and one.code not in (0, None) for one in mine)
            if not sure <= failed <= len(mine):
                text = f"{failed} attempts at {name} are said to have failed;"
                yield name, f"{text} {sure} agents have failed, of {len(mine)}."
        begun = sum(line.begins for line in lines if line.task == name)
        if begun != len(mine) and check.seen.logs_starts:
            text = f"The log tells of {begun} attempts at {name}; {len(mine)} agents were started."
            yield name, text


def _logged(check: BatchCheck, shown: RunSeen) -> Told:
    """What the log has told last of a task that is complete is what the state keeps of it."""
    was = check.before.runs.get(shown.name)
    lines = new_lines(check, shown)
    begun = {one.task for one in check.seen.attempts[len(check.before.attempts) :]}
    for name, task in shown.tasks.items():
        mine = [line for line in lines if line.task == name]
        # What was done in an earlier step, and only merged in this one, was told of then.
        due = check.seen.logs - {COUNTED} if name in begun else check.seen.logs & {MERGED}
        before = None if was is None else was.tasks.get(name)
        told = {word: value for line in mine for word, value in line.tells.items()}
        ended = task.status == "complete" and (before is None or before.status != "complete")
        kept = {word: getattr(task, word) for word in check.seen.logs}
        for word, value in kept.items() if ended else ():
            if value is not None and word not in told and word in due:
                yield name, f"{name} is complete, and the log does not tell its {word}."
            elif value is not None and word in told and told[word] != value:
                yield name, f"{name} has the {word} {value!r}; the log tells {told[word]!r}."
        count = kept.get(COUNTED)
        known = told.get(COUNTED, (0 if before is None else getattr(before, COUNTED)) or 0)
        if count is not None and count != known:
            yield name, f"{name} is kept with {count} {COUNTED}; the log tells of {known!r}."
    numbers = {str(one.id) for one in shown.batches}
    for line in lines:
        if line.batch and numbers and line.batch not in numbers:
            yield "", f"The log tells of batch {line.batch}, which there is not: {line.short}"


def new_lines(check: BatchCheck, shown: RunSeen) -> tuple[Line, ...]:
    """What the log says since the look before."""
    lines = check.seen.lines.get(shown.name, ())
    return lines[len(check.before.lines.get(shown.name, ())) :]
