"""A box with nothing in it, as a target: where foreign experiments run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mutiny import stopping
from mutiny.box.plain import plain_box
from mutiny.contracts.plain.contract import Nothing, PlainContract
from mutiny.contracts.plain.descriptor import DESCRIPTOR
from mutiny.kit.contract import Evidence
from mutiny.kit.operations import USUAL_WORLD, Reset, Sleep
from mutiny.model.result import OperationResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutiny.box.box import Box
    from mutiny.box.startup import Startup
    from mutiny.kit.contract import StepContext
    from mutiny.model.operation import Operation


@dataclass(frozen=True)
class PlainOptions:
    """What a run writes down about its target."""

    plant: str = ""
    agents: str = "none"
    technique: str | None = None
    profiled: bool = False


@dataclass(frozen=True)
class PlainSpec:
    """What a target file would say."""

    contract: str = DESCRIPTOR.name


class PlainLive:
    """Only the walls."""

    def __init__(self, box: Box) -> None:
        self.box = box

    def prepare(self, operations: Sequence[Operation]) -> None:
        """Nothing is needed."""

    def execute(self, operation: Operation, context: StepContext) -> OperationResult:
        """Time passes; there is nothing else to do here."""
        if isinstance(operation, Sleep):
            stopping.sleep(operation.seconds)
            return OperationResult()
        text = f"a plain box has no {operation.type}"
        return OperationResult(1, stderr=text, harness_error=text)

    def observe(self) -> Nothing:
        """Nothing to see."""
        return Nothing()

    def wait_change(self, timeout_s: float) -> None:
        """Nothing changes."""

    def evidence(self) -> Evidence:
        """Nothing is kept."""
        return Evidence()

    def facts(self) -> dict[str, object]:
        """What plan.json says about the box."""
        return self.box.facts()

    def close(self) -> None:
        """Kill everything in the box; its files stay."""
        self.box.close()


@dataclass(frozen=True)
class PlainTarget:
    """A target without a program."""

    options: PlainOptions = field(default_factory=PlainOptions)
    spec: PlainSpec = field(default_factory=PlainSpec)
    name: str = DESCRIPTOR.default_target
    origin: str = ""
    program: Path = Path()
    visible: Path = Path()
    """The experiment's directory: its own modules and scripts can be read in the box."""

    ahead: list[Startup] = field(default_factory=list)
    """A box that was begun ahead of its run."""

    def contract(self) -> PlainContract:
        """No promises."""
        return PlainContract()

    def apart(self) -> PlainTarget:
        """Nothing is kept from run to run."""
        return self

    def healthy(self) -> None:
        """Nothing is planted."""

    def make_live(self, directory: Path, reset: Reset = USUAL_WORLD) -> PlainLive:
        """The box that was begun already, or a new one."""
        for rising in self.ahead:
            self.ahead.remove(rising)
            if rising.directory == directory.resolve():
                return PlainLive(rising.stand())
            rising.abandon()
        return PlainLive(plain_box(directory, self.options.technique, self.visible).stand())


def plain_target(
    technique: str | None, visible: Path, ahead: Sequence[Startup] = ()
) -> PlainTarget:
    """A box whose programs can read the directory `visible`; `ahead`: a box that was begun already."""
    return PlainTarget(PlainOptions(technique=technique), visible=visible, ahead=list(ahead))
