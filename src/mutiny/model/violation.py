"""A broken promise, and the rule that it breaks.

A rule's id (`contract.rule`) is stable API: minimisation, replay `--expect` and reports compare
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutiny.model.forms import ViolationForm


@dataclass(frozen=True, slots=True)
class Rule:
    """A named promise of a contract."""

    id: str
    promise: str
    """One sentence: what holds in a correct system."""
    category: str
    """The class of failure, for example `Lost work`."""
    invariant: str | None = None
    """The plain wording of an invariant of the state that the rule makes exact."""


_TELLING = (
    *("Lost work", "Ownership", "Wrong answer", "Race conditions", "Leadership", "Order of work"),
    *("Corrupted state", "State corruption", "Git corruption", "Unsafe"),
    *("Crashes", "Zombie processes", "Guards", "Recovery failures"),
    *("Stuck workers", "Stuck work"),
)
"""Classes of rules: what tells most about the cause comes first."""
_SYMPTOMS = (
    *("idle_reassigned", "no_stuck_claim", "all_settle", "completes", "recovers", "serves_legal"),
    *("answers_in_time", "numbers_are_true", "status_is_honest", "status_follows_model"),
    *("verified", "steady_state", "assertion"),
)
"""Rules that only say that something due did not come: any other broken rule may say why."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule found broken, with what was seen."""

    rule: str
    message: str
    subject: str = ""
    """Whom it is about: a worker, a token, `daemon`, or nothing in particular."""
    evidence: Mapping[str, object] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """Identity while a violation is being watched for persistence."""
        return (self.rule, self.subject)

    def as_json(self) -> ViolationForm:
        """The journal's form."""
        return {
            "rule": self.rule,
            "subject": self.subject,
            "message": self.message,
            "evidence": dict(self.evidence),
        }


def told(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    """What a reader needs of ordered violations: each once, and no symptom of what is told already."""
    found: list[Violation] = []
    for one in violations:
        symptom = one.rule.rpartition(".")[2] in _SYMPTOMS
        known = {other.key for other in found}, {other.subject for other in found}
        if one.key not in known[0] and not (symptom and one.subject in known[1]):
            found.append(one)
    return tuple(found)


def most_telling_first(
    violations: Iterable[Violation], rules: Mapping[str, Rule]
) -> tuple[Violation, ...]:
    """Lost work before a wrong owner, a wrong owner before a broken state, symptoms last. The first one
    names the failure: in titles, in replays and for the minimiser.
    """

    def place(violation: Violation) -> tuple[bool, int]:
        rule, name = rules.get(violation.rule), violation.rule.rpartition(".")[2]
        if name in _SYMPTOMS:
            return True, _SYMPTOMS.index(name)
        known = rule is not None and rule.category in _TELLING
        return False, _TELLING.index(rule.category) if rule is not None and known else len(_TELLING)

    return tuple(sorted(violations, key=place))
