"""Rules that mean the same in every contract: name, class and sentence, once.

They are those about answers; the kit's judge checks them for all contracts. Ids are stable API: a rule that
had another name once can still be read (`canonical`).
"""

from __future__ import annotations

from collections.abc import Collection

from mutiny.model.violation import Rule

ANSWER = "Wrong answer"
CRASH = "Crashes"
ANSWERS = (
    ("serves_legal", ANSWER, "A command that is legal now is served."),
    ("rejects_illegal", ANSWER, "A command that is not legal now is refused."),
    (
        "rejects_truthfully",
        ANSWER,
        "A refusal gives a reason that is true, and has changed nothing.",
    ),
    ("answers_in_time", ANSWER, "Every command ends within its time limit."),
    ("parallel_is_serial", "Race conditions", "Commands at once end as if given in some order."),
    ("answers_truly", ANSWER, "What an answer says is so, and it says all that it should."),
    ("fails_clearly", CRASH, "A failure says what it is, in a known word."),
    ("no_crash", CRASH, "No command ends by a signal, a panic or a traceback."),
    (
        "recovers",
        "Recovery failures",
        "After faults stop, everything comes back by itself in time.",
    ),
    ("assertion", ANSWER, "What a scenario asserts is so."),
)
"""Name, class of failure, and promise."""
SETTINGS = (
    "settings_checked",
    ANSWER,
    "A setting of a wrong type or name is refused, and the refusal names it.",
)
"""For contracts whose targets tell of their settings."""
BINDING = ("serves_legal", "no_crash", "answers_in_time", "assertion")
"""Rules that no target may be excused from: without them a program that does nothing would pass, or the
beliefs could not follow what it does.
"""
_EARLIER = {"accepts_legal": "serves_legal"}
"""Names that rules had once -> their names now."""


def rules_of(
    contract: str, *own: tuple[str, ...], without: Collection[str] = ()
) -> dict[str, Rule]:
    """All rules of a contract by id: its own, then those about answers.

    A row is name, class, promise, and perhaps the plain wording of an invariant. `without`: rules about
    answers that the contract says in words of its own.
    """
    common = (row for row in ANSWERS if row[0] not in without)
    found = {}
    for name, category, promise, *invariant in (*own, *common):
        found[f"{contract}.{name}"] = Rule(f"{contract}.{name}", promise, category, *invariant)
    return found


def binding(contract: str, *own: str) -> frozenset[str]:
    """The ids of the rules that no target of a contract may be excused from."""
    return frozenset(f"{contract}.{name}" for name in (*own, *BINDING))


def canonical(rule: str) -> str:
    """The id under which a rule is known today."""
    contract, _, name = rule.rpartition(".")
    return f"{contract}.{_EARLIER[name]}" if name in _EARLIER else rule
