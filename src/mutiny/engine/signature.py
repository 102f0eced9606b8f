"""What failed, as something that two runs can be compared by.

The one insight: the same rule is not the same failure. `Reset; Verify("a task was returned")` breaks
the rule of a run in which a worker died with its task, and says nothing about it. Two failures are
the same when rule, sentence and what was said are, with names, numbers and texts taken out; a
shorter sequence may show less of it, never something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mutiny.engine.loop import Outcome
from mutiny.model.operation import Kind, Operation, walk
from mutiny.model.result import OWN_NAME, OperationResult

NAMED = ("worker", "task", "node", "name", "tasks", "depends", "names")
"""Arguments that hold names: minimising may give things other ones."""
_CALL = re.compile(r"\b([A-Z]\w+)\((?:[^()]|\n)*\)")
_ASIDE = re.compile(r"\s*\([^()]*\)")
_QUOTED = re.compile(r"(?<!\w)'[^'\n]*'(?!\w)|\"[^\"\n]*\"")
_ABSTRACT = (
    (re.compile(r"\bMT-\w+-\d+"), "·"),
    (re.compile(r"(?<![\w.])/[^\s,;:]+"), "·"),
    (re.compile(r"\b[0-9a-f]{7,40}\b"), "#"),
    (re.compile(r"\d+(?:\.\d+)?"), "#"),
    (re.compile(r"·(?:[-_.]?[·#])+"), "·"),
)


@dataclass(frozen=True)
class Failure:
    """One broken rule without whatever differs from run to run."""

    rule: str
    sentence: str = ""
    """The user's own words, where they were found untrue."""
    said: frozenset[str] = frozenset()
    asserted: bool = False
    """An assertion of the scenario failed: no model says that it had to be true."""

    def covers(self, other: Failure | None) -> bool:
        """Is the other one the same, or a part of it?"""
        return (
            other is not None
            and (other.rule, other.sentence) == (self.rule, self.sentence)
            and other.said <= self.said
        )

    def joined(self, other: Failure) -> Failure:
        """What either of two runs of one sequence showed."""
        return Failure(self.rule, self.sentence, self.said | other.said, self.asserted)


def failure_of(outcome: Outcome, names: Iterable[str] = ()) -> Failure | None:
    """What stopped a run; None when no rule was broken."""
    step, rule = outcome.failed_step, outcome.rule
    if step is None or rule is None:
        return None
    violation = next(one for one in step.violations if one.rule == rule)
    sentence = violation.evidence.get("sentence", "")
    asserted = bool(sentence) or step.operation.kind is Kind.ASSERTION
    known = {*names, *names_in(one.operation for one in outcome.steps)}
    known |= {name for one in outcome.steps for name in _own_names(one.result)}
    return Failure(rule, str(sentence), clauses_of(violation.message, known), asserted)


def _own_names(result: OperationResult) -> Iterator[str]:
    """What the target calls those of ours that it names itself: other names in every run."""
    own = result.details.get(OWN_NAME)
    if isinstance(own, str) and own:
        yield own
    for part in result.inner:
        yield from _own_names(part)


def names_in(operations: Iterable[Operation]) -> frozenset[str]:
    """Everything that has a name in a sequence."""
    found: set[str] = set()
    for part in (part for operation in operations for part in walk(operation)):
        for argument in NAMED:
            value = getattr(part, argument, None)
            several = value if isinstance(value, tuple) else (value,)
            found |= {one for one in several if isinstance(one, str) and one}
    return frozenset(found)


def clauses_of(message: str, names: Iterable[str] = ()) -> frozenset[str]:
    """A message in its clauses, with everything abstract that is only this run's."""
    text = message.splitlines()[0] if message else ""
    text = _QUOTED.sub("·", text)
    while (plainer := _CALL.sub(r"\1", text)) != text:
        text = plainer
    text = _ASIDE.sub("", text)
    if ordered := sorted(names, key=len, reverse=True):
        choices = "|".join(re.escape(name) for name in ordered)
        text = re.sub(rf"(?<![\w-])(?:{choices})(?![\w-])", "·", text)
    for pattern, sign in _ABSTRACT:
        text = pattern.sub(sign, text)
    clauses = (clause.strip(" .") for clause in re.split(r"[;,] ", text))
    return frozenset(clause for clause in clauses if clause)
