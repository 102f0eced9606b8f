"""What the modes need of a target, and what only some targets can be used for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mutiny.contracts.catalogue import contract_named, contracts
from mutiny.errors import UsageError
from mutiny.kit.operations import USUAL_WORLD, Reset

if TYPE_CHECKING:
    from mutiny.kit.contract import AnyContract, Live
    from mutiny.targets.kit.options import LiveOptions


class Subject(Protocol):
    """A target that can be brought to life, as the bench needs it."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> Any: ...

    @property
    def program(self) -> Path: ...

    @property
    def origin(self) -> str: ...

    @property
    def options(self) -> LiveOptions: ...

    def contract(self) -> AnyContract: ...

    def make_live(self, directory: Path, reset: Reset = USUAL_WORLD) -> Live: ...

    def apart(self) -> Subject:
        """The same target for trials: whatever they do, this one has seen nothing of it."""

    def healthy(self) -> Subject | None:
        """The same target without its plant; None when it has none."""


def ability(target: Subject, name: str) -> Any:
    """What the target's contract brings for a mode that not every contract can be used in; UsageError when
    it has no such ability.
    """
    contract = contract_named(target.spec.contract)
    if name not in contract.abilities:
        able = [one for one in contracts().values() if name in one.abilities]
        nouns, examples = " or ".join(one.noun for one in able), [one.targets[0] for one in able]
        raise UsageError(
            f"target {target.name} is {contract.noun}; `mutiny {name}` needs {nouns}, "
            f"for example --target {examples[0]}"
        )
    return contract.abilities[name].load()(target.spec)
