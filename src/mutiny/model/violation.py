"""A broken promise, and the rule that it breaks.

A rule's id (`contract.rule`) is stable API: minimisation, replay `--expect` and reports compare
nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

from mutiny.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Rule:
    """A named promise of a contract."""

    id: str
    promise: str
    """One sentence: what holds in a correct system."""
    category: str
    """Row of the seed's table of unexpected errors, for example `Lost work`."""
    seed_invariant: str | None = None
    """The seed's own wording, where the rule comes from the seed."""


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

    def as_json(self) -> dict[str, object]:
        """The journal's form."""
        return {
            "rule": self.rule,
            "subject": self.subject,
            "message": self.message,
            "evidence": dict(self.evidence),
        }
