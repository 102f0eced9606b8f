"""How a command of a board is spoken: a template with values becomes a command line.

Used by Mutiny and, inside a box, by the worker doubles, so that both speak the same. Standard library
only, and little of it: a worker starts hundreds of commands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Replace `{placeholder}`s; other braces stay as they are."""
    return _PLACEHOLDER.sub(
        lambda match: str(values[match[1]]) if values.get(match[1]) is not None else match[0], text
    )


def spoken(template: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
    """The command line of one command.

    `argv` is always said; each group of `optional` only when there is a value of its name, and once for
    each when there are several. With `tool`, the arguments become one JSON object.
    """
    argv = [fill(word, values) for word in template["argv"]]
    if template.get("tool"):
        given = {
            name: values[source]
            for name, source in template["arguments"].items()
            if values.get(source) not in (None, "", [], ())
        }
        return [*argv, template["tool"], json.dumps(given)]
    for name, group in template.get("optional", {}).items():
        value = values.get(name)
        if value is None or value == "":
            continue
        several: Sequence[Any] = value if isinstance(value, list | tuple) else [value]
        for one in several:
            argv += [fill(word, {**values, name: one}) for word in group]
    return argv


def answer_in(text: str) -> dict[str, Any] | None:
    """The last line that is a JSON object."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                return value
    return None
