"""Where to look: suggestions that follow from the evidence of one failure.

Nothing here is canned by rule alone. Each line is built from something that was seen: the
transition of the state, a line of a log, the fault that came last, what the ledger knows about a
token, a stack frame in the output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mutiny.engine.journal import Step
from mutiny.engine.loop import Outcome
from mutiny.model.operation import Kind
from mutiny.model.violation import Rule

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)|([\w/.-]+\.(?:rs|go|ts|js|py)):(\d+)')
_TROUBLE = re.compile(r"error|panic|traceback|exception|fail|fatal|warn", re.IGNORECASE)


def suggestions(outcome: Outcome, rules: Mapping[str, Rule]) -> list[str]:
    """Ordered, most telling first; never empty for a failed run."""
    step = outcome.failed_step
    if step is None:
        return []
    found = [
        *_frames(step, outcome.evidence.daemon_log),
        *_transitions(step),
        *_after_fault(outcome, step),
        *_log_lines(outcome.evidence.daemon_log),
        *_rule_lines(step, rules),
    ]
    return list(dict.fromkeys(found))[:6]


def _frames(step: Step, log: str) -> Iterator[str]:
    said = "\n".join(part.stderr for part in (step.result, *step.result.inner))
    for where, text in (
        ("the command's output", said),
        ("the daemon's log", log[-4000:]),
    ):
        frames = _FRAME.findall(text)
        if frames:
            file, line, function, other, other_line = frames[-1]
            place = f"{file}:{line} in {function}" if file else f"{other}:{other_line}"
            yield f"Look at {place}: it is the last place named in {where}."


def _transitions(step: Step) -> Iterator[str]:
    """What changed in the state over the failing operation."""
    noun, before = _subjects(step.pre_state)
    _, after = _subjects(step.post_state)
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            word = "appeared in" if old is None else "vanished from"
            who = f"{noun.capitalize()} {name!r}"
            yield f"{who} {word} the state during {step.operation.type}: find what writes that."
            continue
        changed = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
        if changed:
            shown = ", ".join(
                f"{key} {_short(old.get(key))} -> {_short(new.get(key))}" for key in changed
            )
            yield f"During {step.operation.type} {noun} {name!r} changed: {shown}. Is that one atomic step?"


def _after_fault(outcome: Outcome, failed: Step) -> Iterator[str]:
    faults = [step for step in outcome.steps if step.operation.kind is Kind.FAULT]
    if not faults:
        yield "No fault was injected: the plain sequence of commands is enough to break it."
        return
    last = faults[-1]
    distance = failed.sequence_id - last.sequence_id
    noun, state = _subjects(last.pre_state)
    shown = (
        ", ".join(f"{name} {fields.get('status')}" for name, fields in sorted(state.items()))
        or f"no {noun}s"
    )
    yield (
        f"The last fault was {last.operation} at step {last.sequence_id} ({distance} steps before, "
        f"{last.result.technique or 'unknown technique'}), with {shown}: "
        "what had been acknowledged by then but was not yet durable?"
    )


def _log_lines(log: str) -> Iterator[str]:
    lines = [line.strip() for line in log.splitlines()[-200:] if _TROUBLE.search(line)]
    if lines:
        yield f"The daemon's log says: {lines[-1][:200]!r}."


def _rule_lines(step: Step, rules: Mapping[str, Rule]) -> Iterator[str]:
    for violation in step.violations:
        rule = rules.get(violation.rule)
        if rule is not None:
            subject = f" (about {violation.subject})" if violation.subject else ""
            yield f"The broken promise{subject}: {rule.promise} Class: {rule.category}."
    for doubt in step.inconclusive:
        yield f"It could not be tested: {doubt}."


def _subjects(state: Mapping[str, object]) -> tuple[str, dict[str, dict[str, object]]]:
    """What the state of a contract is about: workers, or the tasks of a board."""
    noun = "task" if "tasks" in state else "worker"
    found = state.get(f"{noun}s")
    return noun, dict(found) if isinstance(found, dict) else {}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
