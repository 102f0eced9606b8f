"""The one boundary between text (JSON, TOML) and our frozen dataclasses.

`decode` checks everything before it builds anything and reports *all* mistakes with their place,
because a user who fixes one mistake at a time gives up at the third.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

from mutiny.errors import FormatError, nearest
from mutiny.model.domain import misfit
from mutiny.model.operation import Operation

LARGEST = 2**63 - 1
"""Of all numbers in all files: clocks, sizes and seeds beyond it mean nothing to any machine."""
T = TypeVar("T")
Registry = Mapping[str, type[Operation]]


def decode(
    cls: type[T],
    data: object,
    *,
    where: str,
    registry: Registry | None = None,
    bounded: bool = True,
) -> T:
    """Build a `cls` from plain data or raise one `FormatError` that lists every mistake.

    `bounded`: numbers are what somebody asks for, and must be possible; what was measured is as it is.
    """
    reader = _Reader(registry or {}, bounded=bounded)
    value = reader.read(cls, data, "")
    if reader.problems:
        raise FormatError(where, reader.problems)
    return value  # type: ignore[no-any-return]


def decode_operation(data: object, registry: Registry, *, where: str) -> Operation:
    """Build one operation from `{type, args}`."""
    return decode(Operation, data, where=where, registry=registry)


@cache
def type_hints(cls: Any) -> dict[str, Any]:
    """The declared types of a value's fields."""
    # The modules of values do not load `typing` only to say that.
    return get_type_hints(cls, localns={"Any": Any, "ClassVar": ClassVar})


class _Reader:
    """Reads a value of a declared type, noting problems with their path instead of raising."""

    def __init__(self, registry: Registry, *, bounded: bool) -> None:
        self.registry = registry
        self.bounded = bounded
        self.problems: list[str] = []

    def fail(self, path: str, message: str) -> None:
        self.problems.append(f"{path}: {message}" if path else message)

    def read(self, kind: Any, data: object, path: str) -> Any:
        if kind is Any or kind is object:
            return data
        origin = get_origin(kind)
        if origin in (Union, types.UnionType):
            return self._union(get_args(kind), data, path)
        if origin is tuple:
            return self._sequence(get_args(kind)[0], data, path)
        if origin is not None and issubclass(origin, Mapping):
            return self._mapping(get_args(kind)[1], data, path)
        if isinstance(kind, type) and issubclass(kind, Operation):
            return self._operation(data, path)
        if is_dataclass(kind):
            return self._dataclass(kind, data, path)
        return self._scalar(kind, data, path)

    def _union(self, options: tuple[Any, ...], data: object, path: str) -> Any:
        if data is None and type(None) in options:
            return None
        remaining = [option for option in options if option is not type(None)]
        if len(remaining) == 1:
            return self.read(remaining[0], data, path)
        for option in remaining:
            attempt = _Reader(self.registry, bounded=self.bounded)
            value = attempt.read(option, data, path)
            if not attempt.problems:
                return value
        names = " or ".join(_type_name(option) for option in remaining)
        self.fail(path, f"expected {names}, got {_shown(data)}")
        return None

    def _sequence(self, item: Any, data: object, path: str) -> tuple[Any, ...]:
        if not isinstance(data, list | tuple):
            self.fail(path, f"expected a list, got {_shown(data)}")
            return ()
        return tuple(self.read(item, value, f"{path}[{index}]") for index, value in enumerate(data))

    def _mapping(self, item: Any, data: object, path: str) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            self.fail(path, f"expected a table, got {_shown(data)}")
            return {}
        return {
            str(key): self.read(item, value, _join(path, str(key))) for key, value in data.items()
        }

    def _operation(self, data: object, path: str) -> Any:
        if not isinstance(data, Mapping) or not isinstance(data.get("type"), str):
            self.fail(
                path, 'expected an operation {"type": ..., "args": {...}}, got ' + _shown(data)
            )
            return None
        name = str(data["type"])
        cls = self.registry.get(name)
        if cls is None:
            self.fail(path, f"unknown operation {name!r}{nearest(name, list(self.registry))}")
            return None
        for key in data:
            if key not in ("type", "args"):
                self.fail(path, f"unknown key {key!r} beside type and args")
        return self._dataclass(cls, data.get("args", {}), _join(path, name))

    def _dataclass(self, cls: Any, data: object, path: str) -> Any:
        if not isinstance(data, Mapping):
            self.fail(path, f"expected a table, got {_shown(data)}")
            return None
        hints = type_hints(cls)
        known = {item.name: item for item in fields(cls) if item.init}
        before = len(self.problems)
        for key in data:
            if key not in known:
                self.fail(_join(path, str(key)), f"unknown key{nearest(str(key), list(known))}")
        values = {}
        for name, item in known.items():
            if name in data:
                values[name] = self.read(hints[name], data[name], _join(path, name))
                self._fit(name, values[name], path)
            elif item.default is MISSING and item.default_factory is MISSING:
                self.fail(_join(path, name), "is missing")
        if len(self.problems) > before:
            return None
        try:
            return cls(**values)
        except ValueError as error:  # a dataclass may refuse a combination in __post_init__
            self.fail(path, str(error))
            return None

    def _fit(self, name: str, value: object, path: str) -> None:
        if self.bounded and isinstance(value, int | float) and not isinstance(value, bool):
            problem = misfit(name, value)
            if problem is not None:
                self.fail(_join(path, name), problem)

    def _scalar(self, kind: Any, data: object, path: str) -> Any:
        if isinstance(data, int | float) and not abs(data) <= LARGEST:
            self.fail(path, f"expected {_type_name(kind)} that can be, got {_shown(data)}")
            return None
        if kind is float and isinstance(data, int) and not isinstance(data, bool):
            return float(data)
        if isinstance(data, str) and not _writable(data):
            self.fail(path, f"has characters that are no Unicode text: {_shown(data)}")
            return None
        if isinstance(data, kind) and not (kind is int and isinstance(data, bool)):
            return data
        self.fail(path, f"expected {_type_name(kind)}, got {_shown(data)}")
        return None


def _join(path: str, name: str) -> str:
    shown = name if name and name.isprintable() else ascii(name)
    return f"{path}.{shown}" if path else shown


def _writable(text: str) -> bool:
    """False for lone surrogates: JSON can carry them, but no file and no command line can."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _type_name(kind: Any) -> str:
    return {str: "text", int: "a whole number", float: "a number", bool: "true or false"}.get(
        kind, getattr(kind, "__name__", str(kind))
    )


def _shown(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 60 else text[:57] + "..."
