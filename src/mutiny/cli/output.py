"""What commands print: a target's words are shown and never obeyed, and every line is sent at once."""

from __future__ import annotations

import json
import sys


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
    if not sys.stdout.isatty():
        echo(text)
        return
    import textwrap

    from mutiny.report.screen import columns_of

    width = max(columns_of(sys.stdout), hanging + 20)
    shape = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    shape.subsequent_indent = " " * hanging
    for line in shape.wrap(text):
        echo(line)


def echo_json(value: object) -> None:
    """Print one JSON document; also in it nothing is an order to GitHub."""
    Documents.printed += 1
    echo(json.dumps(value, indent=2).replace("##[", r"##\u005b"))
