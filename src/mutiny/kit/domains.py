"""Values for the arguments of explored operations: plain ones, and those that break programs.

A *related* name is one that every program has to bear: it is made of letters, digits, `-` and `_` only,
but it begins like another one or ends in digits. A *strange* value is one that a program may refuse, as
long as it says so and changes nothing; `strange` is what the judges ask, so that no program is accused of
a clear refusal.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields

from mutiny.model.operation import Operation, walk

BAD_INPUT = "bad_input"
"""The refusal of a value that a program does not take."""

RELATED_NAMES: tuple[tuple[str, ...], ...] = (
    ("job", "job-2", "job-21"),
    ("w1", "w10", "w100"),
    ("main", "main-1", "mai"),
    ("Al", "al", "al_1"),
    ("x-1", "x-1a", "x-11"),
)
"""Casts of names that are easily mistaken for one another."""

MEANINGFUL_NAMES = ("all", "console-1", "auto-1", "HEAD")
"""Names that mean something to many programs: whoever takes one must serve it like any other."""

STRANGE_NAMES = (
    *("a b", "-zz9", "../up", "a/b", "a;b", "a'b", 'a"b', "$HOME", "a\nb", "n\u00e4me", "a.b", "."),
    *("*", "a:b", "%s", "n" * 300),
)
"""Names that a program may refuse, and that may do no harm."""

PATH_FIRST = "/src/main.rs is broken: look at 'it; please' and \"mend\" it."
"""It begins like a command of an agent's own, and is none."""

TEXTS = (
    "say \"yes\" and 'no'",
    "one; two && three | four > five",
    "$(false) `false` ${HOME} %s %d",
    "back\\slash and trailing\\",
    "one command; and another;",
    PATH_FIRST,
)
"""Texts that every program has to take: they are only awkward for a shell."""

FOREIGN = "x" + "\U0001f6a2 \u6771\u4eac " * 40
"""Long, and hardly any byte of it begins a character: whoever cuts it by bytes cuts one in two."""

CONTROL = "bell \x07, end of a paste \x1b[201~, interrupt \x03\x03, and the rest"
"""What a terminal would obey; a program may refuse it or leave it out, and does the rest."""

STRANGE_TEXTS = (
    "",
    "first line\nsecond line\n",
    "-starts with a dash",
    "Gr\u00fc\u00dfe \u2014 \u6771\u4eac \U0001f6a2",
    "long " * 2000,
    FOREIGN,
)
"""Texts that a program may refuse, or must take whole."""

ROOTS = ("crew v1.2", "it's here; $HOME", "c# 50%20?")
"""Names of the directory in which everything lies: they are only awkward for a shell, or in an address."""

_NAME_ARGUMENTS = ("worker", "task", "node", "name", "key")
_SHAPED = ("worker", "task")
_TEXT_ARGUMENTS = ("prompt", "message", "text")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_LONGEST_TEXT = 4000


def strange(operation: Operation, names: str = "", taken: Collection[str] = ()) -> bool:
    """Has it an argument that a program may refuse? `names`: how a target says that its names look;
    `taken`: names that it has taken already, and has to go on with.
    """
    for item in fields(operation):
        value = getattr(operation, item.name)
        if not isinstance(value, str) or value == item.default:  # what is not said is not strange
            continue
        named = item.name in _NAME_ARGUMENTS and value not in taken
        if named and not plain_name(value, names):
            return True
        if item.name in _TEXT_ARGUMENTS and not _plain_text(value):
            return True
    return False


def plain_name(name: str, names: str = "") -> bool:
    """Must a program take this name?"""
    if names:
        return _fits(name, names)
    return _PLAIN_NAME.fullmatch(name) is not None and name not in MEANINGFUL_NAMES


def _fits(name: str, names: str) -> bool:
    return re.fullmatch(names, name) is not None


def names_fit(names: str, *said: str) -> bool:
    """Are these names as a target says that its names look? One that says nothing has to answer for any."""
    return not names or all(_fits(one, names) for one in said)


def sequence_fits(names: str, sequence: Iterable[Operation]) -> bool:
    """Are all names in a sequence as a target says that its names look?"""
    said = (getattr(part, one, "") for item in sequence for part in walk(item) for one in _SHAPED)
    return names_fit(names, *(name for name in said if isinstance(name, str) and name))


def _plain_text(text: str) -> bool:
    printable = text.isascii() and text.isprintable() and len(text) <= _LONGEST_TEXT
    return printable and bool(text.strip()) and not text.startswith("-")


def casts(plain: Sequence[str], names: str = "") -> list[tuple[str, ...]]:
    """Names for one sequence: the plain ones as often as all related ones together."""
    wanted = len(plain)
    related = [cast[:wanted] for cast in RELATED_NAMES if len(cast) >= wanted]
    fitting = [cast for cast in related if all(not names or _fits(one, names) for one in cast)]
    return [tuple(plain)] * max(len(fitting), 1) + fitting


def strange_names(names: str = "") -> tuple[str, ...]:
    """Names that the target may refuse; none when it has said how its names look."""
    return () if names else STRANGE_NAMES


def texts(plain: Iterable[str]) -> tuple[str, ...]:
    """Texts to say: one in three is awkward or strange."""
    ordinary = tuple(plain)
    awkward = (*TEXTS, *STRANGE_TEXTS)
    return (*ordinary * (2 * len(awkward) // len(ordinary) + 1), *awkward)
