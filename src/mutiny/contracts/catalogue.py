"""Which contracts there are: their operations and rules by name, loaded when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping

from mutiny.errors import UsageError, nearest
from mutiny.kit.experiment import EXPERIMENT_OPERATIONS
from mutiny.model.operation import Operation
from mutiny.model.violation import Rule

CONTRACTS = ("workers", "board")


def operations_of(contract: str) -> Mapping[str, type[Operation]]:
    """All operations of a contract by name, and those that experiments add to every contract."""
    if contract == "workers":
        from mutiny.contracts.workers import operations as workers

        return {**workers.OPERATIONS, **EXPERIMENT_OPERATIONS}
    if contract == "board":
        from mutiny.contracts.board import operations as board

        return {**board.OPERATIONS, **EXPERIMENT_OPERATIONS}
    raise UsageError(f"unknown contract {contract!r}{nearest(contract, CONTRACTS)}")


def rules_of(contract: str) -> Mapping[str, Rule]:
    """All rules of a contract by id."""
    if contract == "workers":
        from mutiny.contracts.workers import rules as workers

        return workers.RULES
    if contract == "board":
        from mutiny.contracts.board import rules as board

        return board.RULES
    raise UsageError(f"unknown contract {contract!r}{nearest(contract, CONTRACTS)}")


def scenarios_about(contract: str) -> Mapping[str, str]:
    """All scenarios of a contract by name, in one line each; a target may have fewer."""
    if contract == "workers":
        from mutiny.contracts.workers.about import ABOUT as WORKERS

        return WORKERS
    if contract == "board":
        from mutiny.contracts.board.about import ABOUT as BOARD

        return BOARD
    raise UsageError(f"unknown contract {contract!r}{nearest(contract, CONTRACTS)}")
