"""JSON for the agent in a box: lean by intention, because it starts thousands of times.

`import json` brings `re` and `enum` with it, which costs the agent as much as an interpreter. The two
C functions behind it need neither; where they are missing, `json` does it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the real one would import typing
if TYPE_CHECKING:
    from typing import Any


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is no JSON")


class _Rules:
    """How the C scanner is to read: plainly."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner empties it after each text


def _python_half() -> tuple[Any, Any]:
    import json

    return json.loads, json.dumps


try:
    from _json import encode_basestring_ascii, make_encoder, make_scanner
except ImportError:
    loads, dumps = _python_half()
else:
    _rules: Any = _Rules
    _scan = make_scanner(_rules)
    _encode = make_encoder(
        None, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, True
    )

    def loads(text: str | bytes) -> Any:
        """The value that a JSON text stands for; `ValueError` when it is none."""
        if not isinstance(text, str):
            text = text.decode()
        try:
            return _scan(text, 0)[0]
        except StopIteration:
            raise ValueError("no JSON") from None

    def dumps(value: object) -> str:
        """A value as a JSON text."""
        return "".join(_encode(value, 0))
