"""What commands print: a target's words are shown and never obeyed, and every line is sent at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence


class Documents:
    """How many JSON documents were printed: a program that listens gets exactly one."""

    printed = 0


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print and flush: a reader at the other end of a pipe sees it now."""
    from mutiny.report.escape import unobeyed

    stream = sys.stderr if err else sys.stdout
    shown = unobeyed(text)
    stream.write(f"{shown}\n" if nl else shown)
    stream.flush()


def echo_wrapped(text: str, hanging: int = 4) -> None:
    """Print prose; on a terminal no word is broken, and what goes on stands further to the right."""
    from mutiny.report.screen import wrapped

    for line in wrapped(text, sys.stdout, hanging):
        echo(line)


def echo_rows(rows: Iterable[Sequence[str]], *, indent: int = 0) -> None:
    """Print a table: each column but the last as wide as its widest cell. On a terminal the last one goes
    on below itself; a file or a pipe gets one line a row.
    """
    table = [tuple(row) for row in rows]
    heads = [row[:-1] for row in table]
    widths = [max(map(len, column)) for column in zip(*heads, strict=True)]
    start = indent + sum(widths) + 2 * len(widths)
    for row in table:
        head = "".join(f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=False))
        echo_wrapped(f"{'':<{indent}}{head}{row[-1]}".rstrip(), start)


def echo_json(value: object) -> None:
    """Print one JSON document; also in it nothing is an order to GitHub."""
    Documents.printed += 1
    echo(json.dumps(value, indent=2).replace("##[", r"##\u005b"))
