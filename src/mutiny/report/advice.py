"""What a broken promise can do in production, and what to do about it: by the class of the rule.

A rule may say more exactly itself; what stands here is what is true of its whole class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutiny.model.violation import Rule


@dataclass(frozen=True)
class Advice:
    """Severity, impact and recommendation."""

    severity: str
    impact: str
    recommendation: str
    touches_data: bool = False


_RACE = Advice(
    "High",
    "Two workers act on the same thing at once: work is done twice, or one result overwrites the other.",
    "Hold one lock from the read to the write, and give every owner a fencing token that is checked.",
)
_STUCK = Advice(
    "High",
    "Work stands still without anybody being told; whoever waits for it waits for ever.",
    "Find what it waits for and who was to give it; bound the wait, and say when it is over.",
)
_REFUSED = Advice(
    "High",
    "A command that is right is refused; somebody has to repair the system by hand first.",
    "Compare the reason that the command gave with what was true at that moment.",
)
_BY_CAUSE = {
    "death": "Write and sync before the answer is given, and account for every acknowledged piece at the "
    "next start.",
    "damage": "Tell a damaged or missing file from an empty one: stop and say so, or take the last good "
    "copy.",
    "refused call": "Check the result of every write before the answer is given.",
    "order": "Hold one lock from the read to the write, or refuse what was read before another change.",
}
"""What helps against lost or torn data depends on what happened to it."""
_LOST = "Follow the piece that is missing from its acknowledgement on: which step drops it?"
_VERIFY = Advice(
    "High",
    "The system does not do what the experiment says of it.",
    "Compare the symptom with the hypothesis: which of them is wrong?",
)
_SPLIT = Advice(
    "Critical",
    "Two leaders give contradicting orders at the same time.",
    "Let a lease end before a new one begins, and refuse every write that carries an old token.",
    touches_data=True,
)
_BY_CLASS = {
    "lost work": Advice(
        "Critical",
        "Work that was acknowledged disappears; nobody retries it, because everybody believes that it is "
        "safe.",
        _LOST,
        touches_data=True,
    ),
    "state corruption": Advice(
        "Critical",
        "The state no longer says what is true; every later decision is made on it.",
        "Find who wrote the last state, and whether it was ever whole; check what is read.",
        touches_data=True,
    ),
    "git corruption": Advice(
        "Critical",
        "A repository is left half-way: later work builds on it, or cannot be merged.",
        "Do each change of a repository in one step that can be repeated or taken back after a crash.",
        touches_data=True,
    ),
    "race conditions": _RACE,
    "recovery failures": Advice(
        "High",
        "After an ordinary failure somebody has to repair it by hand, at the time when it happens.",
        "Make recovery part of the normal start and of a regular check, and test it with this sequence.",
    ),
    "stuck workers": _STUCK,
    "stuck tasks": _STUCK,
    "zombie processes": Advice(
        "Medium",
        "Processes without an owner use up resources and may still write to shared files.",
        "Know every process by pid and start time, and end it with its owner.",
    ),
    "crashes": Advice(
        "High",
        "A command dies instead of saying what is wrong; nobody can tell what has happened.",
        "Catch the error at the boundary, say what was and was not done, and exit with a code for it.",
    ),
    "stuck work": _STUCK,
    "ownership": Advice(
        "Critical",
        "Two workers believe that a task is theirs: it is done twice, or a stranger's result is taken for "
        "the owner's.",
        "Give each claim a number that only grows, and refuse every command that carries another one.",
        touches_data=True,
    ),
    "order of work": Advice(
        "High",
        "Work begins before what it needs is there, or never begins at all.",
        "Check dependencies in the same locked step that makes a claim, and refuse circles when tasks are "
        "added.",
    ),
    "corrupted state": Advice(
        "Critical",
        "The board no longer says what is true; every later decision is made on it.",
        "Find who wrote the last state, and whether it was ever whole; check what is read.",
        touches_data=True,
    ),
    "leadership": _SPLIT,
    "guards": Advice(
        "Medium",
        "A burst or a failing dependency takes everything else down with it.",
        "Limit, back off with jitter, and open a breaker that also closes again.",
    ),
    "wrong answer": Advice(
        "High",
        "Whoever asked acts on an answer that is not true.",
        "Answer from the state that was saved, and say of every failure whether something has changed.",
    ),
    "split brain": _SPLIT,
    "overload": Advice(
        "Medium",
        "A burst or a failing dependency takes everything else down with it.",
        "Limit, back off with jitter, and open a breaker that also closes again.",
    ),
}
_BY_RULE = {
    "no_growth": Advice(
        "High",
        "It grows with every command until the machine has nothing left, and dies at the worst time.",
        "Find what is kept for every command, and bound it or let it go.",
    ),
    "answers_in_time": _STUCK,
    "serves_legal": _REFUSED,
    "verified": _VERIFY,
}
"""Names of rules about which more is known than about their class."""
_DATA = (
    *("kept", "lost", "readable", "exact", "invented", "corrupt", "atomic", "double"),
    *("linearizable", "once", "merged", "reachable", "completes"),
)
"""Words in a rule's name that are about data, for classes that this module does not know."""
_OTHERWISE = Advice(
    "High",
    "A promise that others rely on does not hold when something fails.",
    "Reproduce it with the regression test, and make the promise hold or take it back.",
)


def advice(rule_id: str, rule: Rule | None, cause: str = "") -> Advice:
    """What to say about a broken rule; `cause`: the kind of disturbance that came last before it."""
    said = _of_rule(rule_id, rule)
    known = said.touches_data and rule_id.rpartition(".")[2] not in _BY_RULE
    better = _BY_CAUSE.get(cause) if known and cause else None
    return said if better is None else replace(said, recommendation=better)


def _of_rule(rule_id: str, rule: Rule | None) -> Advice:
    name = rule_id.rpartition(".")[2]
    if name in _BY_RULE:
        return _BY_RULE[name]
    known = _BY_CLASS.get(rule.category.lower()) if rule is not None else None
    if known is not None:
        return known
    touched = any(word in name for word in _DATA)
    severity = "Critical" if touched else "High"
    return Advice(severity, _OTHERWISE.impact, _OTHERWISE.recommendation, touched)
