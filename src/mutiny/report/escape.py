"""A target's words on a terminal and inside markup: shown as they are, and never obeyed.

Insight: what a target prints is a picture of the target, not an order to whoever reads it. So its control
characters (colours, cursor, reversed writing) become visible escapes, and what Markdown would bring to
life (links, images, tags) stays text. (`html` would load the names of two thousand characters for it.)
"""

from __future__ import annotations

_MARKS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})

_DEAD = {"[": r"\[", "]": r"\]", "<": r"\<", "@": r"\@", "://": r"\://", "www.": r"www\."}
_LIVE = r"(?i)[\[\]@]|<(?=[a-z/!?])|://|\bwww\."


def escape(text: str) -> str:
    """As `html.escape`, without control characters."""
    return plain(text).translate(_MARKS)


def plain(text: str) -> str:
    """For a terminal: lines and tabs stay, every other character that is not printed is spelled out."""
    if text.isprintable():
        return text
    lines = text.replace("\r\n", "\n")
    return "".join(
        char if char in "\n\t" or char.isprintable() else _spelled(char) for char in lines
    )


def unobeyed(text: str) -> str:
    """`plain` text in which GitHub finds no order: there a line that begins with `::`, or has `##[` in it,
    is one. An invisible character keeps it from being read as such.
    """
    import os

    shown = plain(text)
    if os.environ.get("GITHUB_ACTIONS") != "true" or not ("::" in shown or "##[" in shown):
        return shown
    lines = shown.replace("##[", "##\u200b[").split("\n")
    return "\n".join(f"\u200b{line}" if line.lstrip().startswith("::") else line for line in lines)


def _spelled(char: str) -> str:
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


class Verbatim(str):
    """A line of Markdown that is inside a fence: everything in it is text already."""


def fenced(language: str, text: str) -> tuple[str, ...]:
    """A block of code that nothing in it can end."""
    import re

    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return Verbatim(fence + language), Verbatim(plain(text)), Verbatim(fence)


def defused(line: str) -> str:
    """One line of Markdown that may have a target's words in it: no link, image or tag in it lives.

    Code between backquotes is text already.
    """
    import re

    if isinstance(line, Verbatim):
        return line
    parts = re.split(r"((?<!`)(`+)(?!`).+?(?<!`)\2(?!`))", plain(line).replace("\n", " "))
    outside, spans = parts[::3], parts[1::3]
    dead = [re.sub(_LIVE, lambda found: _DEAD[found[0].lower()], one) for one in outside]
    return "".join(text + span for text, span in zip(dead, [*spans, ""], strict=True))
