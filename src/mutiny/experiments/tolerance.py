"""Chaos Toolkit's tolerances: is the value of a probe within them?

What this module does not understand is refused when the file is read, so a probe is never judged by a
tolerance that was skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

KINDS = ("range", "regex", "jsonpath")
_PATH = r"\.([A-Za-z_][\w-]*)|\[(\d+)\]|\[['\"]([^'\"]+)['\"]\]"


def problem(tolerance: object) -> str | None:
    """Why a tolerance cannot be used; None when it can."""
    if isinstance(tolerance, bool | int | float | str):
        return None
    if isinstance(tolerance, list):
        plain = tolerance and all(isinstance(item, bool | int | float | str) for item in tolerance)
        return None if plain else "a list tolerance needs plain values"
    if not isinstance(tolerance, Mapping):
        return "a tolerance is a value, a list of values, or a mapping with `type`"
    kind = tolerance.get("type")
    if kind == "range":
        bounds = tolerance.get("range")
        good = (
            isinstance(bounds, list)
            and len(bounds) == 2
            and all(isinstance(b, int | float) and not isinstance(b, bool) for b in bounds)
        )
        return None if good else "range: expected [lowest, highest]"
    if kind == "regex":
        try:
            re.compile(str(tolerance["pattern"]))
        except KeyError:
            return "regex: pattern is missing"
        except re.error as error:
            return f"regex: {error}"
        return None
    if kind == "jsonpath":
        path = str(tolerance.get("path", ""))
        if not _steps(path):
            return f"jsonpath: {path!r} is not understood; plain paths such as $.a.b[0] are"
        return (
            None if "expect" in tolerance or "count" in tolerance else "jsonpath: expect is missing"
        )
    return f"a tolerance of type {kind!r} cannot be run; known: {', '.join(KINDS)}"


def _steps(path: str) -> list[str | int] | None:
    rest = path.removeprefix("$")
    if not rest:
        return None
    if rest[0] not in ".[":
        rest = "." + rest
    steps: list[str | int] = []
    place = 0
    for found in re.finditer(_PATH, rest):
        if found.start() != place:
            return None
        place = found.end()
        steps.append(int(found[2]) if found[2] is not None else found[1] or found[3])
    return steps if place == len(rest) else None


def within(tolerance: Any, value: Any) -> tuple[bool, str]:
    """Is the value within the tolerance, and what was compared."""
    if isinstance(tolerance, Mapping):
        return _typed(tolerance, value)
    seen = value.get("status", value) if isinstance(value, Mapping) else value
    if isinstance(tolerance, list):
        return _same_in(seen, tolerance), f"{_short(seen)} against {tolerance}"
    if isinstance(tolerance, str) and isinstance(value, Mapping):
        seen = str(value.get("stdout", value.get("body", ""))).strip()
    return _same(seen, tolerance), f"{_short(seen)} against {tolerance!r}"


def _same(left: object, right: object) -> bool:
    # True == 1 in Python, but an exit status of 1 is no `true`.
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _same_in(value: object, options: list[object]) -> bool:
    return any(_same(value, option) for option in options)


def _typed(tolerance: Mapping[str, Any], value: Any) -> tuple[bool, str]:
    kind = tolerance["type"]
    picked = _picked(tolerance, value)
    if kind == "range":
        low, high = tolerance["range"]
        try:
            number = float(picked)
        except (TypeError, ValueError):
            return False, f"{_short(picked)} is no number"
        return low <= number <= high, f"{number:g} in [{low:g}, {high:g}]"
    if kind == "regex":
        text = picked if isinstance(picked, str) else json.dumps(picked)
        return bool(re.search(str(tolerance["pattern"]), text)), f"{_short(text)}"
    found = _follow(_steps(str(tolerance["path"])) or [], picked)
    if "count" in tolerance:
        return len(found) == tolerance["count"], f"{len(found)} found"
    expected = tolerance["expect"]
    wanted = expected if isinstance(expected, list) else [expected]
    return found == wanted, f"{_short(found)} against {_short(wanted)}"


def _picked(tolerance: Mapping[str, Any], value: Any) -> Any:
    """The part of a value that a tolerance is about."""
    target = tolerance.get("target")
    if isinstance(value, Mapping):
        for name in (target, "stdout", "body", "status") if target else ("stdout", "body"):
            if name in value:
                value = value[name]
                break
    if tolerance["type"] == "jsonpath" and isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value.strip() if tolerance["type"] == "range" and isinstance(value, str) else value


def _follow(steps: list[str | int], value: Any) -> list[Any]:
    for step in steps:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return []
            value = value[step]
        elif not isinstance(value, Mapping) or step not in value:
            return []
        else:
            value = value[step]
    return [value]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
