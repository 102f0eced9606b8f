"""Plans: how the rows of a question are found."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass

from tinybase.btree import BTree
from tinybase.rows import Row, Schema, SchemaError, Value

__all__ = ["Plan", "make_plan", "rows_of"]

_TESTS = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Plan:
    """`lookup` of one key, `range` of keys, or `scan` of everything; then what must hold."""

    kind: str
    low: Value = None
    high: Value = None
    test: tuple[str, str, Value] | None = None


def make_plan(schema: Schema, where: tuple[str, str, Value] | None) -> Plan:
    """The cheapest way."""
    if where is None:
        return Plan("scan")
    column, comparison, value = where
    if column not in dict(schema.columns):
        raise SchemaError(f"{schema.name} has no column {column}")
    if column != schema.key or value is None:
        return Plan("scan", test=where)
    if comparison == "=":
        return Plan("lookup", value, value)
    low, high = (value, None) if comparison.startswith(">") else (None, value)
    return Plan("range", low, high, where)


def rows_of(tree: BTree, plan: Plan) -> Iterator[Row]:
    """The rows that a plan finds."""
    if plan.kind == "lookup":
        row = tree.get(plan.low)
        if row is not None:
            yield row
        return
    for _, row in tree.items(plan.low, plan.high):
        if plan.test is None or _holds(row, plan.test):
            yield row


def _holds(row: Row, test: tuple[str, str, Value]) -> bool:
    column, comparison, value = test
    found = row[column]
    if found is None or value is None:
        return comparison == "=" and found is value
    return bool(_TESTS[comparison](found, value))
