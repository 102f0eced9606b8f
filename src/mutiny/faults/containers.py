"""A container engine of our own beside a box, as the catalogue asks for it: tried live."""

from __future__ import annotations

from mutiny.box.box import Box
from mutiny.box.engine import trial
from mutiny.faults.base import Fault
from mutiny.model.result import OperationResult


class PrivateEngine(Fault):
    """An engine that Mutiny can take away and bring back."""

    technique = "private container engine"

    def __init__(self, box: Box) -> None:
        self._box = box

    def why_not(self) -> str | None:
        """Why none can run here."""
        return trial(self._box)

    def inject(self) -> OperationResult:
        """Engines belong to a target's box, and are taken away there."""
        return OperationResult(1, stderr="it is only asked for", fired=False)

    def heal(self) -> OperationResult:
        """Nothing was done."""
        return OperationResult()
