"""Data classes that cost nothing until they are used.

Insight: `dataclasses.dataclass` compiles six functions for every class and imports `inspect`, so a command
that loads two hundred kinds of values and uses ten pays for two hundred. Here a class gets small stand-ins;
the first call of one compiles the real method and puts it in its place. To type checkers, to
`dataclasses.fields` and to `dataclasses.replace` they are ordinary data classes.
"""

from __future__ import annotations

__all__ = ["MISSING", "Field", "asdict", "dataclass", "field", "fields", "is_dataclass", "replace"]

FILLED_BY_HAND = 3
"""So many instances of a class before it is worth to compile their making."""

TYPE_CHECKING = False  # the real one would import typing, which most commands can do without
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import MISSING, Field, asdict, dataclass, field, fields, is_dataclass, replace
    from typing import Any
else:
    MISSING = type("MISSING", (), {"__repr__": lambda self: "MISSING"})()

    class Field:
        """One field of a value, with what readers of forms need to know about it."""

        __slots__ = ("compare", "default", "default_factory", "init", "kw_only", "name", "repr")

        def __init__(self, default, default_factory, init, repr, compare, kw_only):  # noqa: A002
            self.name = ""
            self.default = default
            self.default_factory = default_factory
            self.init = init
            self.repr = repr
            self.compare = compare
            self.kw_only = kw_only

    def field(
        *,
        default=MISSING,
        default_factory=MISSING,
        init=True,
        repr=True,  # noqa: A002
        compare=True,
        kw_only=None,
    ):
        """As `dataclasses.field`."""
        return Field(default, default_factory, init, repr, compare, kw_only)

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, kw_only=False):
        """As `dataclasses.dataclass`, without its price."""
        if cls is None:
            return lambda cls: _made(cls, frozen, slots, eq, kw_only)
        return _made(cls, frozen, slots, eq, kw_only)

    def fields(value):
        """The fields of a value or of its class, standard data classes included."""
        for each in (value if isinstance(value, type) else type(value)).__mro__:
            if "__value_fields__" in each.__dict__:
                return each.__value_fields__
            if "__dataclass_fields__" in each.__dict__:
                return _from_standard(each)
        raise TypeError("must be called with a dataclass type or instance")

    def is_dataclass(value):
        """As `dataclasses.is_dataclass`."""
        kind = value if isinstance(value, type) else type(value)
        return any("__dataclass_fields__" in each.__dict__ for each in kind.__mro__)

    def replace(value, /, **changes):
        """As `dataclasses.replace`."""
        for item in fields(value):
            if item.init and item.name not in changes:
                changes[item.name] = getattr(value, item.name)
        return value.__class__(**changes)

    def asdict(value):
        """As `dataclasses.asdict`; what is no value and no collection is not copied."""
        return {item.name: _as_plain(getattr(value, item.name)) for item in fields(value)}


def _as_plain(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_fields"):  # a named one takes its parts singly
        return type(value)(*(_as_plain(item) for item in value))
    if isinstance(value, list | tuple):
        return type(value)([_as_plain(item) for item in value])
    if isinstance(value, dict):
        return {key: _as_plain(item) for key, item in value.items()}
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


# --- making a class -------------------------------------------------------------------------------


def _made(cls: Any, frozen: bool, slots: bool, eq: bool, kw_only: bool) -> Any:
    found = _collect(cls, kw_only)
    if slots:
        cls = _with_slots(cls, found)
    own = cls.__dict__
    cls.__value_fields__ = tuple(found.values())
    cls.__dataclass_fields__ = _StandardFields()
    cls.__dataclass_params__ = _Parameters(frozen)
    if "__match_args__" not in own:
        names = tuple(item.name for item in found.values() if not item.kw_only)
        setattr(cls, "__match_args__", names)  # noqa: B010 - not known to be a class attribute
    _stand_in_init(cls, frozen)
    if "__repr__" not in own:
        cls.__repr__ = _repr
    if eq:
        explicit_hash = own.get("__hash__") is not None
        if "__eq__" not in own:
            _stand_in(cls, "__eq__", _eq_source, frozen)
        if frozen and not explicit_hash:
            _stand_in(cls, "__hash__", _hash_source, frozen)
        elif not explicit_hash:
            cls.__hash__ = None
    if frozen:
        cls.__setattr__ = _refuse_to_set
        cls.__delattr__ = _refuse_to_delete
        if slots:
            cls.__getstate__ = _state
            cls.__setstate__ = _restore
    return cls


def _collect(cls: Any, kw_only: bool) -> dict[str, Field[Any]]:
    """The fields of the bases, then the class's own, in the order of declaration."""
    found = {}
    for base in cls.__mro__[-1:0:-1]:
        if "__dataclass_fields__" in base.__dict__:
            found.update({item.name: item for item in fields(base)})
    for name, kind in vars(cls).get("__annotations__", {}).items():
        if kind.startswith(("ClassVar", "typing.ClassVar")):
            continue
        given = cls.__dict__.get(name, MISSING)
        item: Any = given if isinstance(given, Field) else field(default=given)
        item.name = name
        item.kw_only = kw_only if item.kw_only is None else item.kw_only
        if isinstance(item.default, list | dict | set):
            raise ValueError(f"the default of {name} would be shared by all; use default_factory")
        if item.default is not MISSING:
            setattr(cls, name, item.default)
        elif given is item:
            delattr(cls, name)
        found[name] = item
    return found


def _with_slots(cls: Any, found: dict[str, Field[Any]]) -> Any:
    """The same class once more, because slots can only be given at birth."""
    namespace = dict(cls.__dict__)
    inherited = {name for base in cls.__mro__[1:-1] for name in base.__dict__.get("__slots__", ())}
    for name in found:
        namespace.pop(name, None)
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    namespace["__slots__"] = tuple(name for name in found if name not in inherited)
    again = type(cls)(cls.__name__, cls.__bases__, namespace)
    again.__qualname__ = cls.__qualname__
    return again


# --- methods ------------------------------------------------------------------------------------


def _stand_in(
    cls: Any, name: str, source: Callable[[Any, dict[str, Any], bool], str], frozen: bool
) -> None:
    """A method that compiles the real one when it is first called."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        space: dict[str, Any] = {}
        exec(source(cls, space, frozen), space)
        real = space[name]
        real.__qualname__ = f"{cls.__qualname__}.{name}"
        real.__module__ = cls.__module__
        setattr(cls, name, real)
        return real(self, *args, **kwargs)

    method.__name__ = name
    setattr(cls, name, method)


def _stand_in_init(cls: Any, frozen: bool) -> None:
    """The first few instances are filled by hand: many a kind of value has no more than those."""
    made = 0

    def fill(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal made
        made += 1
        if made <= FILLED_BY_HAND and _fill(cls, self, args, kwargs):
            return
        _stand_in(cls, "__init__", _init_source, frozen)
        cls.__init__(self, *args, **kwargs)

    cls.__init__ = fill


def _fill(cls: Any, self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Set all fields; False, with nothing set, when only the real method can tell what is wrong."""
    values = dict(zip((item.name for item in fields(cls) if not item.kw_only), args, strict=False))
    if len(values) < len(args) or not values.keys().isdisjoint(kwargs):
        return False
    values.update(kwargs)
    known = 0
    for item in fields(cls):
        if not item.init:
            return False
        if item.name in values:
            known += 1
        elif item.default_factory is not MISSING:
            values[item.name] = item.default_factory()
        elif item.default is not MISSING:
            values[item.name] = item.default
        else:
            return False
    if known < len(args) + len(kwargs):
        return False
    for name in values:
        object.__setattr__(self, name, values[name])
    if hasattr(cls, "__post_init__"):
        self.__post_init__()
    return True


def _init_source(cls: Any, space: dict[str, Any], frozen: bool) -> str:
    space["_set"], space["_absent"] = object.__setattr__, MISSING
    head: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    for item in fields(cls):
        name = item.name
        value = name
        if item.default_factory is not MISSING:
            space[f"_make_{name}"] = item.default_factory
            value = f"_make_{name}() if {name} is _absent else {name}"
            argument = f"{name}=_absent"
            if not item.init:
                value = f"_make_{name}()"
        elif item.default is not MISSING:
            space[f"_default_{name}"] = item.default
            argument = f"{name}=_default_{name}"
            value = name if item.init else f"_default_{name}"
        else:
            argument = name
        if item.init:
            (by_name if item.kw_only else head).append(argument)
        body.append(f" _set(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    words = ", ".join(["self", *head, *(["*", *by_name] if by_name else [])])
    return f"def __init__({words}):\n" + ("\n".join(body) or " pass")


def _eq_source(cls: Any, space: dict[str, Any], frozen: bool) -> str:
    mine, others = (_tuple(cls, owner) for owner in ("self", "other"))
    return (
        "def __eq__(self, other):\n"
        " if other.__class__ is self.__class__:\n"
        f"  return {mine} == {others}\n"
        " return NotImplemented"
    )


def _hash_source(cls: Any, space: dict[str, Any], frozen: bool) -> str:
    return f"def __hash__(self):\n return hash({_tuple(cls, 'self')})"


def _tuple(cls: Any, owner: str) -> str:
    return "(" + "".join(f"{owner}.{item.name}, " for item in fields(cls) if item.compare) + ")"


def _repr(self: Any) -> str:
    parts = (f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
    return f"{self.__class__.__qualname__}({', '.join(parts)})"


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for item, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)


# --- the standard library's view ------------------------------------------------------------------


class _Parameters:
    """What the standard decorator asks its bases."""

    __slots__ = ("frozen",)

    def __init__(self, frozen: bool) -> None:
        self.frozen = frozen


class _StandardFields:
    """`__dataclass_fields__`, made when somebody from the standard library asks for it."""

    __slots__ = ()

    def __get__(self, instance: object, owner: Any) -> dict[str, Any]:
        import dataclasses

        made = []
        for item in fields(owner):
            given = {"default": item.default, "default_factory": item.default_factory}
            kept: dict[str, Any] = {
                key: value for key, value in given.items() if value is not MISSING
            }
            kept |= {"init": item.init, "repr": item.repr, "compare": item.compare}
            one: Any = dataclasses.field(**kept, kw_only=bool(item.kw_only))
            made.append((item.name, object, one))
        twin: Any = dataclasses.make_dataclass(owner.__name__, made)
        return dict(twin.__dataclass_fields__)


def _from_standard(cls: Any) -> tuple[Any, ...]:
    """The fields of a standard data class in our form."""
    import dataclasses

    found = []
    default: Any
    factory: Any
    for each in dataclasses.fields(cls):
        default, factory = (
            MISSING if value is dataclasses.MISSING else value
            for value in (each.default, each.default_factory)
        )
        item: Any = field(
            default=default,
            default_factory=factory,
            init=each.init,
            repr=each.repr,
            compare=each.compare,
            kw_only=each.kw_only,
        )
        item.name = each.name
        found.append(item)
    return tuple(found)
