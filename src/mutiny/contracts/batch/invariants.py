"""The rules about state, each a small function from a `Check` to violations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from mutiny.contracts.batch import fixtures
from mutiny.contracts.batch import operations as op
from mutiny.contracts.batch.model import BatchModel, RunModel
from mutiny.contracts.batch.observation import DONE, BatchSeen, GitSeen, RunSeen
from mutiny.contracts.batch.tasks import REMOVING, SHARED_FILE, STRAYING
from mutiny.kit import git_rules, task_rules
from mutiny.kit import operations as common
from mutiny.kit.checking import Check, Unreadable
from mutiny.kit.faults import SkewClock
from mutiny.kit.moments import EndsCommand, InterruptOrchestrator, KillOrchestrator
from mutiny.model.operation import Kind, walk
from mutiny.model.violation import Violation

BatchCheck = Check[BatchModel, BatchSeen]
StateRule = Callable[[BatchCheck], Iterator[Violation]]
_OWN_PLACES = ("work/", "extra/", "old/", fixtures.PLACE)
"""Where tasks write, and what the repository has from its first commit on."""
_OWN_FILES = (SHARED_FILE, "README.md", ".gitignore")


def found(rule: str, text: str, subject: str = "") -> Violation:
    """A broken rule of this contract."""
    return Violation(f"batch.{rule}", text, subject)


def git_of(check: BatchCheck) -> GitSeen:
    """What git tells; without it nothing can be said."""
    if check.seen.git is None:
        raise Unreadable("the repository")
    return check.seen.git


def run_of(check: BatchCheck) -> RunModel | None:
    """The run that is judged."""
    return check.model.run


def new_landings(check: BatchCheck) -> list[str]:
    """Tasks whose work came to the branch in this step."""
    run = run_of(check)
    if run is None:
        return []
    now = git_of(check).landed
    return [name for name in run.tasks if now.get(name, 0) > check.before.landed(name)]


def landed(check: BatchCheck, run: RunModel, task: str) -> int:
    """How often a task came to the branch in this run."""
    return git_of(check).landed.get(task, 0) - run.before.get(task, 0)


# --- tier 0: never merge when blocked --------------------------------------------------------------------


def within_budget(check: BatchCheck) -> Iterator[Violation]:
    """Tokens are counted from what the agents themselves wrote down."""
    knobs, run, new = check.model.knobs, run_of(check), new_landings(check)
    if knobs.budget != "block" or run is None or not new:
        return
    price = check.model.cost_per_1k / 1000
    for name in new:
        tokens = check.seen.tokens_of(name, run.began, check.model.unheard)
        if knobs.task_tokens and tokens > knobs.task_tokens:
            text = f"{name} was merged with {tokens} tokens; {knobs.task_tokens} are allowed."
            yield found("within_budget", text, name)
        if knobs.task_cost and tokens * price > knobs.task_cost:
            text = f"{name} was merged at a cost of {tokens * price:g}; {knobs.task_cost:g} is allowed."
            yield found("within_budget", text, name)
    merged = [name for name in run.tasks if landed(check, run, name) > 0]
    total = sum(check.seen.tokens_of(name, run.began, check.model.unheard) for name in merged)
    if knobs.run_tokens and total > knobs.run_tokens:
        text = (
            f"What is merged has used {total} tokens; {knobs.run_tokens} are allowed for the run."
        )
        yield found("within_budget", text)
    if knobs.run_cost and total * price > knobs.run_cost:
        text = (
            f"What is merged has cost {total * price:g}; {knobs.run_cost:g} is allowed for the run."
        )
        yield found("within_budget", text)


def validated(check: BatchCheck) -> Iterator[Violation]:
    """Every blocking validator must have said yes to what is merged."""
    for name in new_landings(check):
        for validator in check.model.knobs.blocking:
            said = [
                one.passed for one in check.seen.asked if (one.gate, one.task) == (validator, name)
            ]
            if not said or not said[-1]:
                word = "has not passed it" if said else "was never asked"
                text = f"{name} was merged, and the {validator} validator, which blocks, {word}."
                yield found("validated", text, name)


def declared(check: BatchCheck) -> Iterator[Violation]:
    """A file that a task had not declared; to remove it is a change as well."""
    knobs, run = check.model.knobs, run_of(check)
    if run is None or knobs.manifest != "block" or knobs.rescope == "on":
        return
    for name in new_landings(check):
        stray, removed = run.tasks[name].stray, bool(REMOVING & set(run.tasks[name].does))
        if stray and (stray in git_of(check).files) is not removed:
            how = "without" if removed else "with"
            text = f"{name} was merged {how} {stray}, which it never declared."
            yield found("declared", text, name)


def no_text_lost(check: BatchCheck) -> Iterator[Violation]:
    """Everybody's line is in the file that several tasks write, once, without marks of a conflict."""
    run, git = run_of(check), git_of(check)
    if run is None:
        return
    if any(line.startswith(("<<<<<<<", ">>>>>>>")) for line in git.shared):
        yield found("no_text_lost", f"{SHARED_FILE} came to the branch with marks of a conflict.")
    for name in new_landings(check):
        task = run.tasks[name]
        if "shares" in task.does and f"line of {name}" not in git.shared:
            text = f"{name} was merged, but its line is not in {SHARED_FILE}."
            yield found("no_text_lost", text, name)
    if check.before.git is not None:
        gone = [line for line in check.before.git.shared if line not in git.shared]
        if gone:
            yield found("no_text_lost", f"{SHARED_FILE} no longer has {gone[0]!r}.")


def main_is_tested(check: BatchCheck) -> Iterator[Violation]:
    """The doctor itself wrote down which trees it has passed."""
    passed = {
        one.tree
        for one in check.seen.asked
        if one.gate == "doctor" and one.passed and not one.canary
    }
    known = {head.sha for head in check.before.git.heads} if check.before.git is not None else set()
    for head in git_of(check).heads:
        if not head.foreign and head.sha not in known and head.tree not in passed:
            text = f"The branch was at {head.sha[:12]}, which the doctor has not passed."
            yield found("main_is_tested", text)


def state_whole(check: BatchCheck) -> Iterator[Violation]:
    """The state can be read."""
    if check.seen.error is not None and not check.model.doubted:
        yield found("state_whole", f"The state cannot be read: {check.seen.error}")


def only_forward(check: BatchCheck) -> Iterator[Violation]:
    """No commit leaves the branch."""
    now, before = git_of(check), check.before.git
    for sha in now.lost:
        text = f"After {check.operation.short()} somebody else's commit {sha[:12]} is not on the branch."
        yield found("only_forward", text)
    if before is None or before.head is None:
        return
    was, is_now = (git_rules.Branch(one.head, one.commits) for one in (before, now))
    for text in git_rules.only_forward(was, is_now, check.operation):
        yield found("only_forward", text)


# --- tier 1: the flow ------------------------------------------------------------------------------------


def complete_is_merged(check: BatchCheck) -> Iterator[Violation]:
    """A task that is called complete lies on the branch."""
    run, shown = run_of(check), check.seen.run
    if run is None or shown is None or check.model.doubted:
        return
    for name, one in shown.tasks.items():
        if one.status == "complete" and name in run.tasks and landed(check, run, name) < 1:
            text = f"{name} is called complete, but its work is not on the branch."
            yield found("complete_is_merged", text, name)
    rest = [name for name, one in shown.tasks.items() if one.status not in DONE]
    if shown.status == "complete" and rest:
        text = f"The run is called complete, but {rest[0]} is {shown.tasks[rest[0]].status}."
        yield found("complete_is_merged", text, rest[0])


def merged_once(check: BatchCheck) -> Iterator[Violation]:
    """No task comes to the branch twice in a run."""
    run = run_of(check)
    if run is None or run.again:
        return
    for name in run.tasks:
        if landed(check, run, name) > 1:
            yield found("merged_once", f"{name} was merged {landed(check, run, name)} times.", name)


def merged_is_complete(check: BatchCheck) -> Iterator[Violation]:
    """When a run has been driven to its end, what lies on the branch is called complete."""
    run, shown = run_of(check), check.seen.run
    if run is None or shown is None or not ended_by_itself(check):
        return
    for name, one in shown.tasks.items():
        if name not in run.tasks or landed(check, run, name) < 1:
            continue
        if one.status not in DONE:
            text = f"{name} is {one.status}, but its work is on the branch already."
            yield found("merged_is_complete", text, name)
        elif check.seen.ledger is not None and (shown.name, name) not in check.seen.ledger:
            text = f"{name} is merged, but the list of what was merged does not have it."
            yield found("merged_is_complete", text, name)


def dependency_first(check: BatchCheck) -> Iterator[Violation]:
    """The work of all dependencies lies in the workspace when an agent begins."""
    run, shown = run_of(check), check.seen.run
    if run is None or shown is None:
        return
    for attempt in check.seen.attempts[max(run.began, len(check.before.attempts)) :]:
        task = run.tasks.get(attempt.task)
        for other in () if task is None else task.needs:
            skipped = other in shown.tasks and shown.tasks[other].status == "skipped"
            if other not in attempt.present and not skipped:
                text = f"{attempt.task} was begun before {other}, which it needs, was merged."
                yield found("dependency_first", text, attempt.task)


def not_run_again(check: BatchCheck) -> Iterator[Violation]:
    """No agent is started for what was on the branch before."""
    run = run_of(check)
    if run is None or run.began > len(check.before.attempts):
        return
    for attempt in check.seen.attempts[len(check.before.attempts) :]:
        before = check.before.landed(attempt.task) - run.before.get(attempt.task, 0)
        if attempt.task in run.tasks and before > 0:
            text = f"{attempt.task} was merged already, and was run again."
            yield found("not_run_again", text, attempt.task)


def as_due(check: BatchCheck) -> Iterator[Violation]:
    """Runs and tasks are what plan, settings and gates make of them."""
    run, shown = run_of(check), check.seen.run
    if check.seen.error is not None or check.model.doubted:
        return
    if run is None or shown is None:
        if (run is None) != (shown is None):
            yield found("as_due", "There is a run." if run is None else "The run is gone.")
        return
    if run.name and run.name != shown.name:
        yield found("as_due", f"The run is called {shown.name}, not {run.name}.")
    for name, may in run.may.items():
        one = shown.tasks.get(name)
        if one is None or one.status not in may:
            status = "gone" if one is None else one.status
            text = f"{name} is {status}, but should be {' or '.join(sorted(may))}."
            yield found("as_due", text, name)
    if shown.status not in run.status:
        due = " or ".join(sorted(run.status))
        yield found("as_due", f"The run is {shown.status}, but should be {due}.")


def locks_kept(check: BatchCheck) -> Iterator[Violation]:
    """Of two tasks that conflict, whichever came later has begun on the work of the other."""
    run = run_of(check)
    if run is None:
        return
    new = check.seen.attempts[max(run.began, len(check.before.attempts)) :]
    # A file that a task takes away again tells nobody any more on whose work he has begun.
    gone = {one.needs[0] for one in run.tasks.values() if REMOVING & set(one.does) and one.needs}
    new = tuple(one for one in new if one.task not in gone)
    for one in new:
        for other in new:
            tasks = run.tasks.get(one.task), run.tasks.get(other.task)
            if one.task >= other.task or tasks[0] is None or tasks[1] is None:
                continue
            both = landed(check, run, one.task) > 0 and landed(check, run, other.task) > 0
            blind = other.task not in one.present and one.task not in other.present
            last = all(
                each.number == max(a.number for a in check.seen.attempts_of(each.task))
                for each in (one, other)
            )
            if both and blind and last and tasks[0].conflicts(tasks[1]):
                text = f"{one.task} and {other.task} use the same thing, and shared a batch."
                yield found("locks_kept", text, one.task)


def attempts_bounded(check: BatchCheck) -> Iterator[Violation]:
    """No task is tried more often than retries, rescopes and conflicts allow."""
    run, knobs = run_of(check), check.model.knobs
    if run is None or not check.gave(op.LONG):
        return
    most = knobs.max_retries + 1 + knobs.max_conflicts + 1 + len(check.model.lost)
    most *= _runs(check)
    for name in run.tasks:
        tries = len(check.seen.attempts_of(name)) - len(check.before.attempts_of(name))
        if tries > most:
            text = f"{name} was tried {tries} times in one command; at most {most} are due."
            yield found("attempts_bounded", text, name)
    yield from _done_again(check, run)


def _runs(check: BatchCheck) -> int:
    """So many commands at once may each have begun a run, one after the other."""
    return sum(isinstance(part, op.LONG) for part in walk(check.operation))


def _done_again(check: BatchCheck, run: RunModel) -> Iterator[Violation]:
    """Work that went well, and that nothing stands against, is done once, whatever becomes of others."""
    model = check.model
    disturbed = model.faults or model.lost or set(model.gates.values()) - {"pass"}
    if not model.done_once or disturbed or not ended_by_itself(check):
        return
    for name, task in run.tasks.items():
        new = check.seen.attempts_of(name)[len(check.before.attempts_of(name)) :]
        well = [one for one in new if one.ended and one.code == 0]
        if len(well) > _runs(check) and not {*STRAYING, "shares", "idle"} & set(task.does):
            text = f"{name} was done well, conflicts with nobody, and was done again."
            yield found("attempts_bounded", text, name)


def parallel_bounded(check: BatchCheck) -> Iterator[Violation]:
    """By what the agents wrote down themselves: who began while others had not ended."""
    most, begun = check.model.knobs.max_parallel, len(check.before.attempts)
    for one in check.seen.attempts[begun:] if check.gave(op.LONG) else ():
        beside = [place for place in one.beside if place >= begun]
        if len(beside) >= most:
            text = f"{one.task} was begun beside {len(beside)} others; {most} may work at once."
            yield found("parallel_bounded", text, one.task)


def tokens_true(check: BatchCheck) -> Iterator[Violation]:
    """Where the target tells tokens, they add up; what nobody may have heard counts, or does not."""
    run, shown = run_of(check), check.seen.run
    if run is None or shown is None or not ended_by_itself(check) or run.again:
        return
    if sum(isinstance(part, op.LONG) for part in walk(check.operation)) > 1:
        return  # nobody can say for which of the runs an agent was started
    parts = [one.tokens for one in shown.tasks.values() if one.tokens is not None]
    if shown.tokens is not None and len(parts) == len(shown.tasks) and shown.tokens != sum(parts):
        text = (
            f"The run is said to have used {shown.tokens} tokens; its tasks have used {sum(parts)}."
        )
        yield found("tokens_true", text)
    for name, one in shown.tasks.items():
        most = check.seen.tokens_of(name, run.began)
        least = check.seen.tokens_of(name, run.began, check.model.unheard)
        if one.tokens is not None and not least <= one.tokens <= most:
            text = f"{name} is said to have used {one.tokens} tokens; its agents told {least}."
            yield found("tokens_true", text, name)


"""So often work that does not merge may be done again."""


def looks_only(check: BatchCheck) -> Iterator[Violation]:
    """Commands that look change nothing, also when much time has passed."""
    operation = check.operation
    asked = operation.during if isinstance(operation, SkewClock) else operation
    if asked is None or not asked.looks or asked.kind is not Kind.COMMAND:
        return
    before, now = check.before, check.seen
    if before.digest and before.digest != now.digest:
        yield found("looks_only", f"{operation} has changed files of the home.")
    if before.git is not None and before.git.head != git_of(check).head:
        yield found("looks_only", f"{operation} has moved the branch.")


def resume_repeats(check: BatchCheck) -> Iterator[Violation]:
    """A complete run stays as it is."""
    was = check.before.run
    if not isinstance(check.operation, op.Resume) or was is None or was.status != "complete":
        return
    before = check.before.git
    if before is not None and before.head != git_of(check).head:
        yield found("resume_repeats", "To resume a complete run has moved the branch.")
    if check.seen.run != was:
        yield found("resume_repeats", "To resume a complete run has changed its state.")


# --- tier 2 ----------------------------------------------------------------------------------------------


FORCED = (EndsCommand, common.SweepPoint, common.KillDuring, common.LibraryFault)
"""What ends a command, or hinders it."""


def ended_by_itself(check: BatchCheck) -> bool:
    """Was a run driven to an end that nobody forced? One that was refused has done nothing."""
    before, seen = check.before, check.seen
    if before.events == seen.events and before.run == seen.run:
        return False
    return (
        check.gave(op.LONG)
        and not check.gave(FORCED)
        and not check.model.lasting
        and check.seen.run is not None
        and check.seen.run.status != "running"
    )


def stop_costs_nothing(check: BatchCheck) -> Iterator[Violation]:
    """Who was stopped from outside has not failed."""
    if not any(isinstance(part, EndsCommand) for part in walk(check.operation)):
        return
    run, shown, was = run_of(check), check.seen.run, check.before.run
    if run is None or shown is None:
        return
    for name, one in shown.tasks.items():
        ended = [a for a in check.seen.attempts_of(name) if a.ended and a.code != 0]
        due = len([a for a in ended if a.number > 0])
        before = was.tasks[name].attempts if was is not None and name in was.tasks else 0
        base = max(before or 0, due)
        if any(word not in ("works", "leaves", "meets") for word in run.tasks[name].does):
            continue
        for text in task_rules.more_attempts(name, base, one.attempts):
            yield found("stop_costs_nothing", text, name)


def nothing_left(check: BatchCheck) -> Iterator[Violation]:
    """After a complete run everything that it only needed on the way is gone."""
    if check.model.tidy:
        yield from _untidy(check)
    shown = check.seen.run
    if not ended_by_itself(check) or shown is None or shown.status != "complete":
        return
    left = [one for one in git_of(check).left if not _of_another_run(check, shown.name, one)]
    if left:
        yield found("nothing_left", f"The run is complete, but the repository still has {left[0]}.")
    own = [place for place in check.seen.workspaces if shown.name in place.split("/")]
    if check.model.knobs.cleanup == "on_success" and own:
        yield found("nothing_left", f"The run is complete, but {own[0]} is still there.")


def _of_another_run(check: BatchCheck, name: str, left: str) -> bool:
    """Does it belong to another run, which may be gone on with? Either it says so, or it was there before
    and does not say whose it is.
    """
    others = {run.name for run in check.seen.runs.values() if run.status != "complete"} - {name}
    words, before = set(re.split(r"[/\s]", left)), check.before.git
    old = before is not None and left in before.left
    return bool(words & others) or (bool(others) and old and name not in words)


def _untidy(check: BatchCheck) -> Iterator[Violation]:
    """What was merged needs no workspace, also when others have failed; what was cleaned needs nothing."""
    run, shown, model = run_of(check), check.seen.run, check.model
    if model.lasting or check.gave(FORCED):
        return
    if not check.seen.runs and check.gave((*op.LONG, op.Clean)):
        for left in git_of(check).left[:1]:
            yield found("nothing_left", f"There is no run any more, but the repository has {left}.")
    if run is None or shown is None or not ended_by_itself(check) or model.faults or run.again:
        return
    if model.knobs.cleanup != "on_success" or _has(shown, "validated", "running"):
        return
    # What somebody has left out is not merged, either: its attempts may be looked at.
    rest = [name for name, one in shown.tasks.items() if one.status != "complete"]
    begun = check.seen.attempts[run.began :]
    own = [place for place in check.seen.workspaces if shown.name in place.split("/")]
    if len(own) > sum(one.task in rest for one in begun):
        text = f"{len(own)} workspaces are left ({own[-1]}), more than what is not merged has had."
        yield found("nothing_left", text)


def _has(shown: RunSeen, *statuses: str) -> bool:
    return any(one.status in statuses for one in shown.tasks.values())


def processes_end(check: BatchCheck) -> Iterator[Violation]:
    """What a command has started ends with it."""
    if not check.seen.processes or not (ended_by_itself(check) or was_stopped(check)):
        return
    text = f"{check.operation.short()} has ended, but {check.seen.processes[0]} still runs."
    yield found("processes_end", text)


def was_stopped(check: BatchCheck) -> bool:
    """Was a run asked to stop, and nothing worse?"""
    return check.gave(InterruptOrchestrator) and not check.gave(KillOrchestrator)


def failure_has_text(check: BatchCheck) -> Iterator[Violation]:
    """Whoever failed says why."""
    shown = check.seen.run
    if shown is None or check.model.doubted:
        return
    if shown.status in ("failed", "paused") and not shown.reason:
        yield found("failure_has_text", f"The run is {shown.status} and does not say why.")
    if check.model.forgets_errors and shown.status == "complete" and shown.reason:
        text = f"The run is complete, and still says why it was not: {shown.reason[:200]}"
        yield found("failure_has_text", text)
    for name, one in shown.tasks.items():
        if one.status in ("failed", "review") and not one.error:
            yield found("failure_has_text", f"{name} is {one.status} and does not say why.", name)
        if check.model.forgets_errors and one.status == "complete" and one.error:
            text = f"{name} is complete, and still says what went wrong: {one.error[:200]}"
            yield found("failure_has_text", text, name)


def events_whole(check: BatchCheck) -> Iterator[Violation]:
    """The log can be read line by line."""
    if check.seen.bad_events:
        yield found("events_whole", f"The log has a bad line: {check.seen.bad_events[0]}")


def no_secret(check: BatchCheck) -> Iterator[Violation]:
    """The value of a secret is in no file."""
    if check.seen.told:
        yield found("no_secret", f"A secret stands in {check.seen.told[0]}.")


def own_files_out(check: BatchCheck) -> Iterator[Violation]:
    """Nothing but the tasks' own files is on the branch."""
    for name in sorted(git_of(check).files):
        if not name.startswith(_OWN_PLACES) and name not in _OWN_FILES:
            yield found("own_files_out", f"{name} came to the branch, and no task has written it.")


def stays_inside(check: BatchCheck) -> Iterator[Violation]:
    """Nothing appeared beside the home."""
    if check.seen.outside:
        yield found("stays_inside", f"{check.seen.outside[0]} was written outside of the home.")


def clean_as_named(check: BatchCheck) -> Iterator[Violation]:
    """Other runs, the plan and the branch survive."""
    if not isinstance(check.operation, op.Clean):
        return
    before, now = check.before, check.seen
    gone = set(before.runs) - set(now.runs)
    named = check.operation.name or ("" if before.run is None else before.run.name)
    if gone - ({named} if check.operation.force else set()):
        yield found("clean_as_named", f"Clean has deleted {sorted(gone)[0]}.")
    if before.plan is not None and now.plan is None:
        yield found("clean_as_named", "Clean has deleted the plan.")
    if before.git is not None and before.git.head != git_of(check).head:
        yield found("clean_as_named", "Clean has moved the branch.")


def checkout_follows(check: BatchCheck) -> Iterator[Violation]:
    """The user's checkout is at the tip of its branch."""
    if check.model.edited or not (ended_by_itself(check) or check.gave(op.Status)):
        return
    if check.gave(op.LONG):
        for text in git_rules.stays_clean(git_of(check).dirty, check.operation.short()):
            yield found("checkout_follows", text)


def edit_kept(check: BatchCheck) -> Iterator[Violation]:
    """The user's edit is still in the file."""
    if check.model.edited and not git_of(check).edit_kept:
        yield found("edit_kept", f"{check.operation} has overwritten an edit of the user.")


def plan_repeats(check: BatchCheck) -> Iterator[Violation]:
    """The same plan gives the same bytes."""
    if not isinstance(check.operation, op.Plan) or not check.succeeded or not check.model.same_plan:
        return
    if check.before.plan is not None and check.before.plan != check.seen.plan:
        yield found("plan_repeats", "The same plan was written differently.")


RULES: tuple[StateRule, ...] = (
    *(state_whole, only_forward, validated, within_budget, declared, no_text_lost),
    *(main_is_tested, edit_kept, not_run_again, merged_once, complete_is_merged),
    *(dependency_first, locks_kept, parallel_bounded, attempts_bounded, tokens_true),
    *(merged_is_complete, clean_as_named, as_due),
    *(looks_only, resume_repeats, stop_costs_nothing, checkout_follows, nothing_left),
    *(processes_end, failure_has_text, events_whole, no_secret, own_files_out, stays_inside),
    plan_repeats,
)
"""In the order in which they tell most."""
OF_BELIEFS = frozenset({as_due})
"""Those that only hold if what is believed is so."""
HEALING: frozenset[StateRule] = frozenset()
"""Those that may be broken for a moment."""
