"""One contract, described: its names, and references to its parts that load when they are asked for.

A contract's folder has a `descriptor.py` with one `DESCRIPTOR`; `contracts/catalogue.py` finds it. That is
all the rest of Mutiny knows of a contract, so that nothing outside its folders has to name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from mutiny.kit.contract import AnyContract, Live
    from mutiny.kit.language import Language
    from mutiny.model.operation import Operation
    from mutiny.model.violation import Rule

T = TypeVar("T")


@dataclass(frozen=True)
class Lazy(Generic[T]):
    """A value by the place where it stands, `package.module:NAME`; imported when it is asked for."""

    place: str

    def __post_init__(self) -> None:
        module, colon, name = self.place.partition(":")
        if not (colon and module and name.isidentifier()):
            raise ValueError(f"{self.place!r} is no place; write package.module:NAME")

    def load(self) -> T:
        """The value itself."""
        module, _, name = self.place.partition(":")
        value: T = getattr(import_module(module), name)
        return value


class TargetForm(Protocol):
    """A target file of any contract, read and checked."""

    vocabulary: ClassVar[Any]
    """What such files may say: a `targets.kit.files.Vocabulary`."""

    @property
    def name(self) -> str: ...

    @property
    def contract(self) -> str: ...

    @property
    def about(self) -> str: ...

    @property
    def program(self) -> str: ...

    @property
    def needs(self) -> tuple[str, ...]: ...

    @property
    def environment(self) -> Mapping[str, str]: ...

    @property
    def coverage(self) -> str:
        """The language whose profiles tell which of its code was reached; empty: none does."""

    @property
    def profile(self) -> Any:
        """How the target differs from the contract's ideal: a `kit.profile.TargetProfile`."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Commands of the contract that the target lacks."""

    @classmethod
    def load(cls, path: Path) -> TargetForm:
        """Read and check a file; all mistakes are reported at once, each with its line."""

    def make_contract(self, agents: str) -> AnyContract:
        """The contract with this target's profile and words; `agents` is `double` or `real`."""


MakeLive = Callable[[Any, Path, Any], "Live"]
"""From a target's form, a directory and the options of a run to a target in its box."""


@dataclass(frozen=True)
class Descriptor:
    """What Mutiny knows of a contract before it loads anything of it."""

    name: str
    """As target files, replays and experiments write it."""
    noun: str
    """What one target is called in a sentence: `a board`."""
    operations: Lazy[Mapping[str, type[Operation]]]
    """All operations by name."""
    language: Lazy[Language]
    """What experiments may say."""
    rules: Lazy[Mapping[str, Rule]] | None = None
    """All promises by id; None: it promises nothing."""
    about: Lazy[Mapping[str, str]] | None = None
    """All scenarios by name, each in one line; a target may have fewer."""
    target_form: Lazy[type[TargetForm]] | None = None
    """What a target file says (a `targets.kit.files.TargetFile`); None: there are no target files."""
    live: Lazy[MakeLive] | None = None
    """Brings a target to life."""
    bare_target: Lazy[Callable[..., Any]] | None = None
    """Makes the target of a contract that has no target files."""
    targets: tuple[str, ...] = ()
    """Targets that ship with Mutiny as references; the first is used when nobody names one."""
    default_for: frozenset[str] = frozenset()
    """Modes (`run`, `experiment`, `foreign experiment`, `race`, `load`, `accept`) that take this contract
    when neither a target nor a contract is named.
    """
    abilities: Mapping[str, Lazy[Callable[[Any], Any]]] = field(default_factory=dict)
    """What only some contracts can do, `race` and `load`: from a target's form to the values of
    `kit/abilities.py`.
    """
    checkup: Lazy[Callable[[Any], Sequence[Operation]]] | None = None
    """What is said to a target when its file is tried; None: the first scenario without faults."""
    advice: Lazy[Callable[[Any, Any, Any], Iterator[Any]]] | None = None
    """From a live target, an operation and its result to what has to be changed in the file: values of
    `targets/kit/advice.py`.
    """
    state_form: Lazy[type[Any]] | None = None
    """What a journal says of an observation, a `TypedDict`; None: any object."""
    rank: int = 100
    """Where it stands in lists; ties by name."""

    @property
    def default_target(self) -> str:
        """The target when nobody names one."""
        return self.targets[0]

    def all_operations(self) -> dict[str, type[Operation]]:
        """Its operations, and those that experiments add to every contract."""
        from mutiny.kit.experiment import EXPERIMENT_OPERATIONS

        return {**self.operations.load(), **EXPERIMENT_OPERATIONS}

    def all_rules(self) -> Mapping[str, Rule]:
        """Its promises by id."""
        return {} if self.rules is None else self.rules.load()

    def all_about(self) -> Mapping[str, str]:
        """Its scenarios by name, each in one line."""
        return {} if self.about is None else self.about.load()
