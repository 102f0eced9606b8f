"""Where to look: hints that follow from the evidence of one failure.

Each hint is a function of something that was seen, and carries it: a crash in an output, a field that
changed, a fault that fired, the turns of a schedule, a line of a log. What was not seen gives no hint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mutiny.engine.journal import Step
from mutiny.engine.loop import Outcome
from mutiny.kit.crash import Crash, crash_in
from mutiny.kit.operations import USUAL_WORLD, FailAt, FailReadAt, FullAt, Reset, SweepPoint
from mutiny.model.operation import Kind, walk
from mutiny.model.violation import Rule
from mutiny.report.changes import Change, changes, last_change
from mutiny.report.story import Turn, disturbances, missed, turns_of

MOST = 6
MOST_CHANGES = 3
_TROUBLE = re.compile(
    r"\b(error|panic\w*|traceback|exception|fail\w*|fatal|warn\w*)\b"
    # A field that says that there was none: `"error": ""`, `failed=0`.
    r"(?!\"?\s*[:=]\s*(?:\"\"|null\b|none\b|false\b|0\b|\[\]|\{\}))",
    re.IGNORECASE,
)
_WRITTEN = re.compile(r" (?:p?write(?:v|64)?|ftruncate|truncate) (\S+)$")
_LATE = ("completes", "recovers", "serves_legal", "answers_in_time")
"""Rules that say that something due did not come."""
_DATA = ("Lost work", "State corruption", "Corrupted state", "Git corruption")
"""Classes of rules about what was written down."""


@dataclass(frozen=True)
class Hint:
    """Something to look at, and what was seen that says so."""

    text: str
    evidence: str


def suggestions(
    outcome: Outcome, rules: Mapping[str, Rule], own_names: Sequence[str] = ()
) -> list[Hint]:
    """Ordered, most telling first; never empty for a failed run. `own_names`: how the target's code is
    called, to tell its frames from those of libraries.
    """
    step = outcome.failed_step
    if step is None:
        return []
    found = [
        *_crashes(step, outcome.evidence.daemon_log, own_names),
        *_orders(outcome.steps),
        *_changes(outcome.steps, step),
        *_faults(outcome.steps, step),
        *_durability(outcome.steps, step, rules),
        *_swallowed(outcome.steps),
        *_in_place(outcome.steps, step, rules),
        *_sessions(outcome.evidence.panes, step),
        *_undisturbed(outcome.steps),
        *_log_lines(outcome.evidence.daemon_log),
        *_doubts(step),
    ]
    distinct = {hint.text: hint for hint in reversed(found)}
    return list(reversed(distinct.values()))[:MOST] or [_nothing_more(step)]


def subjects(step: Step) -> tuple[str, ...]:
    """Whom a failure is about: what its violations name, else whom its operation names."""
    named = [violation.subject for violation in step.violations if violation.subject]
    parts = (
        getattr(part, word, None) for part in walk(step.operation) for word in ("worker", "task")
    )
    return tuple(dict.fromkeys(named)) or tuple(
        dict.fromkeys(name for name in parts if isinstance(name, str) and name)
    )


def _crashes(step: Step, log: str, own_names: Sequence[str]) -> Iterator[Hint]:
    """The place of a crash in the target's own code."""
    parts = (step.result, *step.result.inner)
    texts = [("the command's output", text) for p in parts for text in (p.stderr, p.stdout)]
    for where, text in (*texts, ("the daemon's log", log[-20_000:])):
        crash = crash_in(text, tuple(word for part in parts for word in part.argv))
        if crash is not None:
            yield _crash(crash, where, own_names)


def _crash(crash: Crash, where: str, own_names: Sequence[str]) -> Hint:
    place = crash.place(own_names)
    seen = f"{where}: {crash.line}"
    if place is None:
        return Hint(f"It crashed ({crash.language}); no place in its code is named.", seen)
    whose = "innermost place, in a library" if place.foreign else "innermost place in its own code"
    return Hint(f"Look at {place}: the {whose} that the crash names.", seen)


def _orders(steps: Sequence[Step]) -> Iterator[Hint]:
    """Commands that ran at once: what happened between which calls."""
    for step in reversed(steps):
        turns = turns_of(step.result)
        names = [f"`{part.short()}`" for part in step.operation.children()]
        for place, turn in enumerate(turns):
            earlier = [one for one in turns[:place] if one.command == turn.command]
            if earlier:
                between = [one for one in turns[:place] if one.command != turn.command]
                after = [one for one in turns[place:] if one.command == turn.command]
                yield _order(step, names, earlier, between, after)
                return


def _order(
    step: Step,
    names: Sequence[str],
    earlier: Sequence[Turn],
    between: Sequence[Turn],
    after: Sequence[Turn],
) -> Hint:
    """One command was stopped, others went on: which files had it read that they changed?"""
    who = names[after[0].command]
    others = " and ".join(dict.fromkeys(names[one.command] for one in between))
    stopped = f"{who} was stopped before `{after[0].first}`"
    calls = sum(one.calls for one in between)
    read = {name for one in earlier for name in one.read}
    stale = sorted(read & {name for one in between for name in one.changed})
    if not stale:
        text = f"The order makes it: {stopped}, and {others} made {calls} calls in between."
        return Hint(text, f"the turns of step {step.sequence_id}")
    files = ", ".join(f"`{name}`" for name in stale[:MOST_CHANGES])
    again = {name for one in after for name in one.changed} & {*stale}
    then = f", and {who} changed it afterwards" if again else ""
    text = f"{who} had read {files} when it was stopped; {others} changed it in between{then}."
    return Hint(
        f"{text} Does it look again before it goes on?",
        f"{stopped}; the turns of step {step.sequence_id}",
    )


def _changes(steps: Sequence[Step], step: Step) -> Iterator[Hint]:
    """What changed about whom it is about, in the failing step or the last time before it."""
    names = subjects(step)
    now = list(changes(step.pre_state, step.post_state))
    about = [change for change in now if change.about(names)] if names else now
    if about:
        yield _changed(f"During `{step.operation.short()}` this changed", about, step)
        return
    earlier = last_change(steps[:-1], names) if names else None
    if earlier is not None:
        when, found = earlier
        text = (
            f"Nothing about {_named(names)} changed in the failing step; the last change was in step "
            f"{when.sequence_id}, `{when.operation.short()}`"
        )
        yield _changed(text, found, when)


def _changed(text: str, found: Sequence[Change], step: Step) -> Hint:
    shown = "; ".join(str(change) for change in found[:MOST_CHANGES])
    more = f"; and {len(found) - MOST_CHANGES} more" if len(found) > MOST_CHANGES else ""
    return Hint(f"{text}: {shown}{more}.", f"the states before and after step {step.sequence_id}")


def _named(names: Sequence[str]) -> str:
    return " or ".join(repr(name) for name in names[:3])


def _faults(steps: Sequence[Step], failed: Step) -> Iterator[Hint]:
    """The last fault that fired, and how far it is from the failure."""
    fired = [one for one in disturbances(steps) if not one.forced_order]
    if fired:
        last = fired[-1]
        distance = failed.sequence_id - last.step.sequence_id
        near = {0: "in the failing step itself", 1: "one step before"}
        yield Hint(
            f"The last fault: {last.text}, {near.get(distance, f'{distance} steps before')}.",
            f"step {last.step.sequence_id} of the journal: fired",
        )
    for step in missed(steps):
        yield Hint(
            f"`{step.operation.short()}` was asked for and did not happen: do not count on it.",
            f"step {step.sequence_id}: {step.result.stderr.strip() or 'did not fire'}",
        )


def _durability(steps: Sequence[Step], failed: Step, rules: Mapping[str, Rule]) -> Iterator[Hint]:
    """Something acknowledged is gone after a death: was it written and synced before the answer?"""
    rule = rules.get(failed.violations[0].rule) if failed.violations else None
    deaths = [one.step for one in disturbances(steps) if _kills(one.step)]
    if rule is None or rule.category not in _DATA or not deaths:
        return
    death = deaths[-1]
    lost = last_change(steps, subjects(failed))
    if lost is None or lost[0] is not death:
        return  # it was still there after the death: something else took it
    done = [
        step
        for step in steps
        if step.sequence_id < death.sequence_id
        and step.operation.kind is Kind.COMMAND
        and step.result.succeeded
        and set(subjects(step)) & {*subjects(failed)}
    ]
    if done:
        yield Hint(
            f"What `{done[-1].operation.short()}` (step {done[-1].sequence_id}) had acknowledged did not "
            f"outlive step {death.sequence_id}: see what it had written and synced before its answer, and "
            "what the next start reads.",
            f"exit 0 in step {done[-1].sequence_id}, and in step {death.sequence_id} {lost[1][0]}",
        )


def _in_place(steps: Sequence[Step], failed: Step, rules: Mapping[str, Rule]) -> Iterator[Hint]:
    """It died in the middle of writing a file, and what was written down is broken since."""
    rule = rules.get(failed.violations[0].rule) if failed.violations else None
    for one in reversed(disturbances(steps)):
        step = one.step
        where = (
            _WRITTEN.search(step.result.stdout) if isinstance(step.operation, SweepPoint) else None
        )
        if where is None or rule is None or rule.category not in _DATA:
            continue
        if "tmp" not in where[1] and "temp" not in where[1]:
            yield Hint(
                f"`{where[1]}` was being written in place when it was broken off: write another file and "
                "rename it.",
                f"step {step.sequence_id}: {step.result.stdout.strip()}",
            )
        return


def _swallowed(steps: Sequence[Step]) -> Iterator[Hint]:
    """A call failed, or took only a part, and the command answered success all the same."""
    for step in reversed(steps):
        operation = step.operation
        told = (
            isinstance(operation, FailAt | FailReadAt | FullAt)
            or getattr(operation, "mode", "") == "short"
        )
        if not isinstance(operation, SweepPoint) or not told or not step.result.fired:
            continue
        if step.result.inner and step.result.inner[0].exit_code == 0:
            yield Hint(
                f"`{operation.operation.short()}` answered success although one of its calls did not do "
                "what it was asked for: is what that call returns looked at?",
                f"exit 0 in step {step.sequence_id}; {step.result.stdout.strip()}",
            )
        return


def _kills(step: Step) -> bool:
    operation = step.operation
    if isinstance(operation, SweepPoint):
        return operation.ends_world or operation.type == "KillAt"
    return operation.type.startswith("Kill")


def _undisturbed(steps: Sequence[Step]) -> Iterator[Hint]:
    if disturbances(steps) or missed(steps):
        return
    commands = sum(1 for step in steps if step.operation.kind is Kind.COMMAND)
    machines = [one.operation for one in steps if isinstance(one.operation, Reset)]
    special = next((one for one in machines if one != USUAL_WORLD), None)
    text = "No fault and no forced order was needed: "
    if special is None:
        text += "the plain sequence of commands breaks it."
    else:
        text += f"the machine on which it runs is special (`{special}`)."
    yield Hint(text, f"{commands} commands, no fault in {len(steps)} steps")


def _sessions(panes: Mapping[str, str], failed: Step) -> Iterator[Hint]:
    """What the agent of a worker that stands still did last, as its session shows it."""
    late = failed.violations and failed.violations[0].rule.rpartition(".")[2] in _LATE
    for session, text in panes.items() if late else ():
        said = [line.strip() for line in text.splitlines() if line.strip(" >\t")]
        if said and any(session.endswith(name) for name in subjects(failed)):
            text = "The session shows what the agent did last: does the target know of it?"
            yield Hint(text, f"{session}: {said[-1][:160]}")


def _log_lines(log: str) -> Iterator[Hint]:
    lines = [line.strip() for line in log.splitlines()[-200:] if _TROUBLE.search(line)]
    if lines:
        yield Hint("The target's log tells of trouble.", lines[-1][:200])


def _doubts(step: Step) -> Iterator[Hint]:
    for doubt in step.inconclusive:
        yield Hint(f"It could not be tested: {doubt}", f"step {step.sequence_id}")


def _nothing_more(step: Step) -> Hint:
    seen = step.violations[0].message if step.violations else f"it ended as {step.verdict.value}"
    return Hint(f"See what `{step.operation.short()}` does here; nothing else was seen.", seen)
