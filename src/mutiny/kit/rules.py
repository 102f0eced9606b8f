"""The promises that every contract makes about answers; the kit's judge checks them for all of them."""

from __future__ import annotations

from mutiny.model.violation import Rule

ANSWERS = (
    ("serves_legal", "Wrong answer", "A command that is possible is served."),
    ("rejects_illegal", "Wrong answer", "A command that is not possible is refused."),
    ("rejects_truthfully", "Wrong answer", "A refusal is true, and has changed nothing."),
    ("answers_in_time", "Wrong answer", "Every command ends within its time."),
    ("parallel_is_serial", "Race conditions", "Commands at once end as if given in some order."),
    ("fails_clearly", "Crashes", "A failure says what it is, in a known word."),
    ("no_crash", "Crashes", "No command crashes."),
    ("recovers", "Recovery failures", "What is due happens in time once all faults are over."),
    ("assertion", "Wrong answer", "What a scenario asserts is so."),
)
"""Name, class of failure, and promise."""
BINDING = ("serves_legal", "no_crash", "answers_in_time", "assertion")
"""Rules that no target may be excused from: without them a program that does nothing would pass."""


def rules_of(contract: str, *own: tuple[str, str, str]) -> dict[str, Rule]:
    """All rules of a contract by id: its own (name, class of failure, promise), then those of answers."""
    return {
        f"{contract}.{name}": Rule(f"{contract}.{name}", promise, category)
        for name, category, promise in (*own, *ANSWERS)
    }


def binding(contract: str, *own: str) -> frozenset[str]:
    """The ids of the rules that no target of a contract may be excused from."""
    return frozenset(f"{contract}.{name}" for name in (*own, *BINDING))
