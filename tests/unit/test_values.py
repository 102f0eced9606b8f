"""Values behave as standard data classes, to us and to the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, ClassVar, NamedTuple

import pytest

from mutiny import values
from mutiny.values import asdict, dataclass, field, fields, is_dataclass, replace


@dataclass(frozen=True)
class Plain:
    name: str
    size: int = 1
    tags: tuple[str, ...] = ()
    seen: dict[str, int] = field(default_factory=dict, compare=False)
    kind: ClassVar[str] = "plain"


@dataclass(frozen=True)
class Derived(Plain):
    extra: float = 0.5


@dataclass(frozen=True, slots=True)
class Slotted:
    left: int
    right: Plain | None = None


@dataclass
class Mutable:
    items: list[int] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Named:
    first: int
    second: int = 2


@dataclass(frozen=True)
class Checked:
    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("negative")


@dataclasses.dataclass(frozen=True)
class Standard(Plain):
    more: int = 3


MANY = range(values.FILLED_BY_HAND + 3)
"""Through the filling by hand, the compiling, and the compiled method."""


def test_construction_by_place_and_by_name() -> None:
    for _ in MANY:
        made = Derived("a", 2, extra=1.5)
        assert (made.name, made.size, made.tags, made.seen, made.extra) == ("a", 2, (), {}, 1.5)
        assert made.seen is not Derived("a").seen
        assert made == Derived("a", 2, (), {"not": 1}, 1.5)
        assert made != Plain("a", 2)
        assert hash(made) == hash(Derived("a", 2, extra=1.5))
        assert Named(first=1) == Named(first=1, second=2)
    assert repr(Plain("a")) == "Plain(name='a', size=1, tags=(), seen={})"


@pytest.mark.parametrize("count", [0, len(MANY)])
@pytest.mark.parametrize(
    ("args", "given", "text"),
    [
        ((), {}, "missing 1 required positional argument: 'name'"),
        (("a",), {"name": "b"}, "multiple values for argument 'name'"),
        (("a",), {"nmae": 1}, "unexpected keyword argument 'nmae'"),
        (("a", 1, (), {}, 5), {}, "positional arguments but 6 were given"),
    ],
)
def test_wrong_arguments_are_told_as_always(
    count: int, args: tuple[Any, ...], given: dict[str, Any], text: str
) -> None:
    @dataclass(frozen=True)
    class Fresh(Plain):
        pass

    for _ in range(count):
        Fresh("a")
    with pytest.raises(TypeError, match=text):
        Fresh(*args, **given)


def test_checks_of_a_class_are_made_every_time() -> None:
    for _ in MANY:
        with pytest.raises(ValueError, match="negative"):
            Checked(-1)


def test_a_frozen_value_stays() -> None:
    for made in (Plain("a"), Slotted(1)):
        name = fields(made)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, name, "b")
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(made, name)
    assert not hasattr(Slotted(1), "__dict__")
    changing = Mutable()
    changing.items.append(1)
    assert Mutable().items == []
    with pytest.raises(TypeError):
        hash(changing)


def test_copies() -> None:
    made = Slotted(1, Derived("a", seen={"x": 1}))
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.deepcopy(made) == made
    assert replace(made, left=2) == Slotted(2, made.right)
    assert dataclasses.replace(made, left=2) == Slotted(2, made.right)
    right = {"name": "a", "size": 1, "tags": (), "seen": {"x": 1}, "extra": 0.5}
    assert asdict(made) == dataclasses.asdict(made) == {"left": 1, "right": right}


def test_the_standard_library_sees_data_classes() -> None:
    assert is_dataclass(Plain)
    assert dataclasses.is_dataclass(Plain)
    assert not is_dataclass(int)
    seen = dataclasses.fields(Derived)
    assert [item.name for item in seen] == ["name", "size", "tags", "seen", "extra"]
    assert seen[0].default is dataclasses.MISSING
    assert seen[1].default == 1
    assert seen[3].default_factory is dict


def test_a_standard_data_class_may_build_upon_one() -> None:
    made = Standard("a", more=4)
    assert (made.size, made.more) == (1, 4)
    assert [item.name for item in fields(Standard)][-2:] == ["seen", "more"]
    assert fields(Standard)[0].default is values.MISSING
    assert replace(made, more=5) == Standard("a", more=5)


def test_patterns_match_by_place() -> None:
    match Slotted(1, Plain("a")):
        case Slotted(left, Plain(name)):
            assert (left, name) == (1, "a")
        case _:
            pytest.fail("it did not match")


class Pair(NamedTuple):
    left: int
    right: int


@dataclass(frozen=True)
class HasPair:
    pair: Pair


def test_a_named_tuple_stays_one() -> None:
    assert asdict(HasPair(Pair(1, 2))) == {"pair": Pair(1, 2)}


def test_a_default_that_all_would_share_is_refused() -> None:
    with pytest.raises(ValueError, match="default_factory"):

        @dataclass
        class Shared:
            items: list[int] = []  # noqa: RUF012 - just that is refused
