"""The engine: statements to changes, changes to the log, the log to tables."""

from __future__ import annotations

from typing import Any

from tinybase.btree import BTree
from tinybase.planner import make_plan, rows_of
from tinybase.rows import Row, Schema, SchemaError
from tinybase.sql import Create, Delete, Insert, Select, parse
from tinybase.transactions import Transaction, Transactions
from tinybase.wal import Log

__all__ = ["Database"]

_CATALOGUE = "*"


class Database:
    """Tables, and the log that they can be made of again."""

    def __init__(self, data: bytes = b"") -> None:
        self.log = Log(data)
        self._schemas: dict[str, Schema] = {}
        self._trees: dict[str, BTree] = {}
        self._transactions = Transactions(self.log)
        for change in self.log.committed():
            self._apply(change)

    def run(self, *texts: str) -> list[list[Row]]:
        """Statements as one transaction: all of them, or none."""
        transaction = self._transactions.begin()
        answers = [self._execute(text, transaction) for text in texts]
        for change in self._transactions.commit(transaction):
            self._apply(change)
        return answers

    def _execute(self, text: str, transaction: Transaction) -> list[Row]:
        statement = parse(text)
        if isinstance(statement, Create):
            if statement.table in self._schemas:
                raise SchemaError(f"there is a table {statement.table} already")
            columns = [list(column) for column in statement.columns]
            transaction.note(_CATALOGUE, statement.table, columns)
            return []
        schema, tree = self._table(statement.table)
        if isinstance(statement, Insert):
            names = [name for name, _ in schema.columns]
            if len(statement.values) != len(names):
                raise SchemaError(f"{schema.name} has {len(names)} columns")
            row = schema.check(dict(zip(names, statement.values, strict=True)))
            if tree.get(row[schema.key]) is not None:
                raise SchemaError(f"{schema.name} has a row {row[schema.key]!r} already")
            transaction.note(schema.name, row[schema.key], row)
            return []
        found = list(rows_of(tree, make_plan(schema, statement.where)))
        if isinstance(statement, Delete):
            for row in found:
                transaction.note(schema.name, row[schema.key], None)
            return []
        assert isinstance(statement, Select)
        names = [name for name, _ in schema.columns]
        wanted = names if statement.columns == ("*",) else list(statement.columns)
        missing = [name for name in wanted if name not in names]
        if missing:
            raise SchemaError(f"{schema.name} has no column {missing[0]}")
        return [{name: row[name] for name in wanted} for row in found]

    def _table(self, name: str) -> tuple[Schema, BTree]:
        if name not in self._schemas:
            raise SchemaError(f"there is no table {name}")
        return self._schemas[name], self._trees[name]

    def _apply(self, change: dict[str, Any]) -> None:
        name, key, row = change["table"], change["key"], change["row"]
        if name == _CATALOGUE:
            self._schemas[key] = Schema(key, tuple((one, kind) for one, kind in row))
            self._trees[key] = BTree()
        elif row is None:
            self._trees[name].delete(key)
        else:
            self._trees[name].put(key, row)
