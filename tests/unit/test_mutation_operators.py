"""Mutants: every operator proposes what it promises, and an edit is the whole difference."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from mutation.operators import changes_meaning, constant_at, edits_of, uses_of

CASES = [
    ("drop call", "def f(a):\n    a.sync()\n", "def f(a):\n    pass\n"),
    ("drop statement", "def f(a):\n    a.x = 1\n", "def f(a):\n    pass\n"),
    ("drop statement", "def f(a):\n    del a[0]\n", "def f(a):\n    pass\n"),
    ("drop with", "with lock():\n    go()\n", "if True:\n    go()\n"),
    ("swap statements", "a = 1\nb = a\n", "b = a\na = 1\n"),
    ("negate condition", "if a:\n    go()\n", "if not (a):\n    go()\n"),
    ("forget a condition", "x = a and b\n", "x = (a)\n"),
    ("forget a condition", "x = [i for i in y if i]\n", "x = [i for i in y if True]\n"),
    ("other comparison", "x = a < b\n", "x = a <= b\n"),
    ("off by one", "x = 3\n", "x = 4\n"),
    ("wrong constant", "x = True\n", "x = False\n"),
    ("swallow an error", "def f():\n    raise Bad\n", "def f():\n    pass\n"),
    (
        "swallow an error",
        "try:\n    go()\nexcept OSError:\n    undo()\n",
        "try:\n    go()\nexcept OSError:\n    pass\n",
    ),
    ("skip one of several", 'S = ("idle", "busy")\n', 'S = ("idle", )\n'),
    ("forget a field", "x = f(a, b=1)\n", "x = f(a)\n"),
    ("forget a field", 'x = {"a": 1, "b": 2}\n', 'x = {"b": 2}\n'),
]


@pytest.mark.parametrize(("operator", "before", "after"), CASES)
def test_an_operator_does_what_its_name_says(operator: str, before: str, after: str) -> None:
    made = [
        edit.apply(before.encode())
        for edit in edits_of(before.encode())
        if edit.operator == operator
    ]
    assert ast.dump(ast.parse(after)) in [ast.dump(ast.parse(text)) for text in made]


def test_what_serves_a_plant_or_a_reader_is_left_alone() -> None:
    text = (
        b'"""Words."""\nimport os\nTYPE_CHECKING = False\n'
        b"if TYPE_CHECKING:\n    import sys\n"
        b'if planted("x"):\n    os.remove("a")\nelse:\n    os.sync()\n'
    )
    assert {edit.line for edit in edits_of(text)} == {3, 9}


def test_what_cannot_be_told_apart_is_not_made() -> None:
    assert not any(
        edit.operator == "off by one" for edit in edits_of(b"WAIT_S = 3.0\nMOST = 4096\n")
    )
    fields = b'class V(NamedTuple):\n    a: int = 1\n    """Words."""\n    b: str = ""\n'
    swaps = [edit for edit in edits_of(fields) if edit.operator == "swap statements"]
    assert not any(changes_meaning(fields, edit) for edit in swaps)


def test_an_edit_that_says_the_same_or_nothing_is_no_mutant() -> None:
    text = b"x = (a)\n"
    same = next(edit for edit in edits_of(b"x = 1\n"))
    assert changes_meaning(b"x = 1\n", same)
    assert not changes_meaning(text, type(same)("none", 1, 4, 7, b"a"))
    assert not changes_meaning(text, type(same)("none", 1, 4, 7, b"("))


def test_a_constant_is_reached_where_it_is_used() -> None:
    text = b"WORDS = (1, 2)\nOTHER: int = 3\n\ndef f():\n    x = 1\n    return (\n        WORDS\n    )\n"
    assert (constant_at(text, 1), constant_at(text, 2), constant_at(text, 5)) == (
        "WORDS",
        "OTHER",
        "",
    )
    assert list(uses_of(text, "WORDS")) == [6], "the statement, not the line inside it"
    assert list(uses_of(b"import m\n\ndef g():\n    m.WORDS\n", "WORDS")) == [4]
    assert list(uses_of(text, "OTHER")) == []
