"""Operators: what may be changed in one place of a Python file, as edits of its text.

An edit replaces one span of bytes and nothing else, so that the diff of a mutant is the mutant. Not
everything that an operator proposes still parses or says something else: `changes_meaning` tells. Code
that serves a plant (`if planted(...)`) is left alone: it never runs in a healthy longboat.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete)
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}


MOST_COUNTED = 50
"""What is counted is smaller: one more of a length of time or of a size is no bug that is seen."""


@dataclass(frozen=True)
class Edit:
    """One change of one file."""

    operator: str
    line: int
    start: int
    end: int
    replacement: bytes

    def apply(self, source: bytes) -> bytes:
        """The file with this change."""
        return source[: self.start] + self.replacement + source[self.end :]


class _Source:
    """A parsed file that knows where in its bytes a node stands."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._lines = [0]
        for line in text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt | ast.keyword | ast.excepthandler)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._lines[node.lineno - 1] + node.col_offset
        return start, self._lines[node.end_lineno - 1] + node.end_col_offset

    def words(self, node: ast.AST) -> bytes:
        start, end = self.span(node)
        return self.text[start:end]

    def edit(self, operator: str, node: ast.AST, replacement: bytes | str) -> Edit:
        start, end = self.span(node)
        new = replacement.encode() if isinstance(replacement, str) else replacement
        return Edit(operator, getattr(node, "lineno", 0), start, end, new)

    def without(self, operator: str, nodes: list[ast.expr], index: int) -> Edit:
        """One item of a row of items taken out, with its comma."""
        start, end = self.span(nodes[index])
        if index + 1 < len(nodes):
            end = self.span(nodes[index + 1])[0]
        elif index:
            start = self.span(nodes[index - 1])[1]
        return Edit(operator, nodes[index].lineno, start, end, b"")


def edits_of(text: bytes) -> list[Edit]:
    """Every edit that every operator proposes for a file, in the order of its text."""
    source = _Source(text)
    found = {
        edit
        for node in (source.tree, *_alive(source.tree))
        for operator in OPERATORS
        for edit in operator(source, node)
    }
    return sorted(found, key=lambda edit: (edit.start, edit.end, edit.operator, edit.replacement))


def statements_of(text: bytes) -> dict[int, int]:
    """For every line the first line of the innermost statement that it belongs to."""
    lines: dict[int, int] = {}
    for node in ast.walk(ast.parse(text)):  # from the outside to the inside
        if isinstance(node, ast.stmt):
            assert node.end_lineno is not None
            lines.update(dict.fromkeys(range(node.lineno, node.end_lineno + 1), node.lineno))
    return lines


def constant_at(text: bytes, line: int) -> str:
    """The name that a statement of the module itself gives a value to; empty: it is no such statement."""
    for node in ast.parse(text).body:
        targets = node.targets if isinstance(node, ast.Assign) else ()
        if isinstance(node, ast.AnnAssign | ast.AugAssign):
            targets = [node.target]
        if node.lineno == line and len(targets) == 1 and isinstance(targets[0], ast.Name):
            return targets[0].id
    return ""


def uses_of(text: bytes, name: str) -> Iterator[int]:
    """The first lines of statements inside functions that use a name of a module, here or by import."""
    statements = statements_of(text)
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                said = getattr(node, "id", getattr(node, "attr", ""))
                if isinstance(node, ast.Name | ast.Attribute) and said == name:
                    yield statements[node.lineno]


def changes_meaning(text: bytes, edit: Edit) -> bool:
    """True when the file still parses and says something else to whoever runs it."""
    try:
        return _said(edit.apply(text)) != _said(text)
    except (SyntaxError, ValueError):
        return False


def _said(text: bytes) -> str:
    """A file without what only a reader reads."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                setattr(node, name, [one for one in body if not _is_docstring(one)])
    return ast.dump(tree)


def _alive(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only matter to a plant, to a type checker, or to a reader."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom) or _is_docstring(child):
            continue
        if isinstance(child, ast.If) and _names(child.test) & {"planted", "TYPE_CHECKING"}:
            for part in child.orelse:
                yield from (part, *_alive(part))
            continue
        if _names_plant(child):
            continue
        yield child
        yield from _alive(child)


def _names_plant(node: ast.AST) -> bool:
    return not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) and (
        isinstance(node, ast.expr | ast.Assign | ast.Return) and "planted" in _names(node)
    )


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


# --- the operators -----------------------------------------------------------------------------------


def drop_statement(source: _Source, node: ast.AST) -> Iterator[Edit]:
    """A call whose answer nobody takes (sync, unlock, unlink), a change of a field, a deletion."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield source.edit("drop call", node, "pass")
    if isinstance(node, ast.AugAssign | ast.Delete):
        yield source.edit("drop statement", node, "pass")
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript):
        yield source.edit("drop statement", node, "pass")


def drop_lock(source: _Source, node: ast.AST) -> Iterator[Edit]:
    """`with lock:` without the lock."""
    if isinstance(node, ast.With) and all(item.optional_vars is None for item in node.items):
        start = source.span(node.items[0].context_expr)[0]
        end = source.span(node.items[-1].context_expr)[1]
        begin = source.span(node)[0]
        if source.text[begin:start].strip() == b"with":
            yield Edit("drop with", node.lineno, begin, end, b"if True")


def swap_statements(source: _Source, node: ast.AST) -> Iterator[Edit]:
    """Two neighbours in the other order."""
    for body in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
        if not isinstance(body, list):
            continue
        for first, second in itertools.pairwise(body):
            if (
                isinstance(first, _SIMPLE)
                and isinstance(second, _SIMPLE)
                and not (isinstance(node, ast.ClassDef) and _is_field(first) and _is_field(second))
            ):
                start, middle = source.span(first)
                again, end = source.span(second)
                swapped = source.words(second) + source.text[middle:again] + source.words(first)
                yield Edit("swap statements", first.lineno, start, end, swapped)


def _is_field(node: ast.stmt) -> bool:
    """A field of a value with what it usually is: such are named where they are used, in any order."""
    return isinstance(node, ast.AnnAssign) and node.value is not None


def change_condition(source: _Source, node: ast.AST) -> Iterator[Edit]:
    """A condition negated, or one of its parts forgotten."""
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield source.edit("negate condition", node.test, b"not (" + source.words(node.test) + b")")
    if isinstance(node, ast.BoolOp):
        for index in range(len(node.values)):
            rest = [
                source.words(value) for place, value in enumerate(node.values) if place != index
            ]
            joined = (b" and " if isinstance(node.op, ast.And) else b" or ").join(rest)
            yield source.edit("forget a condition", node, b"(" + joined + b")")
    if isinstance(node, ast.comprehension) and node.ifs:
        yield source.edit("forget a condition", node.ifs[0], "True")


def change_comparison(source: _Source, node: ast.AST) -> Iterator[Edit]:
    """Off by one, or the opposite."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = _COMPARISONS[type(node.ops[0])]
        left, right = source.words(node.left), source.words(node.comparators[0])
        yield source.edit("other comparison", node, left + b" " + other.encode() + b" " + right)


def change_constant(source: _Source, node: ast.AST) -> Iterator[Edit]:
    """A number that is off by one, a switch that is thrown."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield source.edit("wrong constant", node, str(not node.value))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        if isinstance(node.value, int) and abs(node.value) < MOST_COUNTED:
            yield source.edit("off by one", node, repr(node.value + 1))
        if node.value:
            yield source.edit("wrong constant", node, "0")


def swallow_error(source: _Source, node: ast.AST) -> Iterator[Edit]:
    """An error that is not raised, or handled by nothing."""
    if isinstance(node, ast.Raise):
        yield source.edit("swallow an error", node, "pass")
    if isinstance(node, ast.ExceptHandler) and not (
        len(node.body) == 1 and isinstance(node.body[0], ast.Pass)
    ):
        start, end = source.span(node.body[0])[0], source.span(node.body[-1])[1]
        yield Edit("swallow an error", node.body[0].lineno, start, end, b"pass")


def skip_one_of(source: _Source, node: ast.AST) -> Iterator[Edit]:
    """One status fewer in a collection of texts or constants."""
    if not isinstance(node, ast.Set | ast.List | ast.Tuple) or len(node.elts) < 2:
        return
    if not all(_is_constant(item) for item in node.elts):
        return
    if isinstance(node, ast.Tuple) and len(node.elts) == 2:
        for item in node.elts:
            yield source.edit("skip one of several", node, b"(" + source.words(item) + b",)")
        return
    for index in range(len(node.elts)):
        yield source.without("skip one of several", node.elts, index)


def _is_constant(node: ast.expr) -> bool:
    named = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return isinstance(node, ast.Constant) or named.isupper()


def forget_field(source: _Source, node: ast.AST) -> Iterator[Edit]:
    """A keyword of a call, or a key of a literal, that is not given."""
    if isinstance(node, ast.Call) and node.keywords and all(item.arg for item in node.keywords):
        given: list[ast.expr] = [*node.args, *node.keywords]  # type: ignore[list-item]
        for index in range(len(node.args), len(given)):
            yield source.without("forget a field", given, index)
    if isinstance(node, ast.Dict) and len(node.keys) > 1 and all(node.keys):
        for index, key in enumerate(node.keys):
            assert key is not None
            start, end = source.span(key)[0], source.span(node.values[index])[1]
            if index + 1 < len(node.keys):
                after = node.keys[index + 1]
                assert after is not None
                end = source.span(after)[0]
            yield Edit("forget a field", key.lineno, start, end, b"")


Operator = Callable[[_Source, ast.AST], Iterator[Edit]]
OPERATORS: tuple[Operator, ...] = (
    drop_statement,
    drop_lock,
    swap_statements,
    change_condition,
    change_comparison,
    change_constant,
    swallow_error,
    skip_one_of,
    forget_field,
)
