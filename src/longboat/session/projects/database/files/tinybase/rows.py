"""Rows and tables: what is stored, and what a table must look like."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Row", "Schema", "SchemaError", "Value"]

Value = int | str | None
Row = dict[str, Value]


class SchemaError(ValueError):
    """A row that does not fit its table."""


@dataclass(frozen=True)
class Schema:
    """A table: its columns with their kinds; the first is the key."""

    name: str
    columns: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """The column by which rows are found."""
        return self.columns[0][0]

    def check(self, row: Row) -> Row:
        """The row with all columns, or a complaint."""
        unknown = set(row) - {name for name, _ in self.columns}
        if unknown:
            raise SchemaError(f"{self.name} has no column {sorted(unknown)[0]}")
        whole: Row = {}
        for name, kind in self.columns:
            value = row.get(name)
            wanted = int if kind == "int" else str
            if value is not None and not isinstance(value, wanted):
                raise SchemaError(f"{self.name}.{name} is {kind}, not {value!r}")
            whole[name] = value
        if whole[self.key] is None:
            raise SchemaError(f"{self.name}.{self.key} must not be empty")
        return whole
