"""Transactions: changes that happen together or not at all."""

from __future__ import annotations

import itertools
from typing import Any

from tinybase.wal import Log

__all__ = ["Transaction", "Transactions"]


class Transaction:
    """Changes that wait for their commit."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.changes: list[dict[str, Any]] = []
        self.open = True

    def note(self, table: str, key: Any, row: Any) -> None:
        """One change; a row of None is a deletion."""
        if not self.open:
            raise ValueError("the transaction is over")
        known = {"kind": "change", "id": self.number, "table": table}
        self.changes.append({**known, "key": key, "row": row})


class Transactions:
    """Writes to the log first; only then a transaction counts."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._numbers = itertools.count(1)

    def begin(self) -> Transaction:
        """A new transaction."""
        return Transaction(next(self._numbers))

    def commit(self, transaction: Transaction) -> list[dict[str, Any]]:
        """Make it last; the changes to apply."""
        for change in transaction.changes:
            self._log.append(change)
        self._log.append({"kind": "commit", "id": transaction.number})
        self._log.sync()
        transaction.open = False
        return transaction.changes
