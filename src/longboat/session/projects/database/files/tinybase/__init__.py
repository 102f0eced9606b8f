"""TinyBase: a small database engine."""

__all__ = ["btree", "engine", "planner", "rows", "sql", "transactions", "wal", "wire"]
