"""The operations of a plain box: time passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutiny.kit.operations import Reset, Sleep

if TYPE_CHECKING:
    from mutiny.model.operation import Operation

OPERATIONS: dict[str, type[Operation]] = {cls.__name__: cls for cls in (Reset, Sleep)}
"""All operations by name."""
