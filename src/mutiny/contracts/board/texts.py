"""The texts that tasks are added and completed with."""

from __future__ import annotations

from mutiny.contracts.board import operations as op

UNNAMED = "without a name"
"""Instead of its name in the description of a task that nobody has named."""


def description_of(task: str) -> str:
    """The description that a task is added with, `UNNAMED` for one that nobody named."""
    return f"task {task}"


def payload_of(size: int) -> str:
    """The payload that a task is added with."""
    return "." * size


def output_of(operation: op.Complete) -> str:
    """The output that a completion carries."""
    text = f"{operation.worker} did {operation.task}"
    return text + "." * max(0, operation.size - len(text))
