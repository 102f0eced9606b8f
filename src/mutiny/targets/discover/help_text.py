"""What a program's `--help` says: its commands, their arguments and options; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_HEAD = re.compile(
    r"^(?!.*\b(?:usage|options?|flags?|arguments?|examples?|aliases|environment)\b)[A-Z][^:]*:$",
    re.I,
)
_ENTRY = re.compile(
    r"^(\s*)([a-z][\w-]*)(?:,\s*[\w-]+|\|[\w-]+)*(?:\s+(?=[\[<({A-Z]).*?)?(?:\s{2,}(\S.*))?$"
)
_CHOICES = re.compile(r"\{([a-z][\w-]*(?:,[a-z][\w-]*)+)\}")
_OPTION = re.compile(r"(?<![\w-])(--[a-z][\w-]*)")
_USAGE = re.compile(r"^\s*usage:\s*(.*?)(?:\n\s*\n|\Z)", re.IGNORECASE | re.DOTALL | re.MULTILINE)
_NO_ARGUMENTS = ("options", "flags", "command", "args", "subcommand", "commands", "global options")


@dataclass(frozen=True)
class Usage:
    """How one command is spoken."""

    arguments: tuple[str, ...] = ()
    """Those that have to be given."""
    optional: tuple[str, ...] = ()
    """Those that may be given behind them."""
    options: frozenset[str] = frozenset()
    group: bool = False
    """It only holds other commands."""
    text: str = ""
    """The whole help."""


def plain(text: str) -> str:
    """Without colours, and without the frames that some programs draw."""
    lines = []
    for line in _ANSI.sub("", text).splitlines():
        bare = line.strip()
        if bare and not bare.strip("╭╰╮╯─━│┃ ") and len(bare) > 2:
            lines.append("")
            continue
        title = re.match(r"^[╭┌]─+\s*(.*?)\s*─+[╮┐]$", bare)
        lines.append(f"{title[1]}:" if title else re.sub(r"[│┃]", " ", line).rstrip())
    return "\n".join(lines)


def commands_in(text: str) -> dict[str, str]:
    """The commands that a help text lists, each with what is said of it."""
    lines = plain(text).splitlines()
    found: dict[str, str] = {}
    for number, line in enumerate(lines):
        if _HEAD.match(line.strip()) and not line.startswith("  "):
            found.update(_listed(lines[number + 1 :]))
    for choices in _CHOICES.findall(plain(text)):
        found = {**dict.fromkeys(choices.split(","), ""), **found}
    return {name: about for name, about in found.items() if name not in ("help", "completion")}


def _listed(lines: list[str]) -> dict[str, str]:
    """The entries below a heading: those that stand furthest to the left."""
    block: list[re.Match[str]] = []
    for line in lines:
        if not line.strip() and block:
            break
        entry = _ENTRY.match(line)
        if entry is not None:
            block.append(entry)
        elif line.strip() and not line.startswith(" "):
            break
    left = min((len(entry[1]) for entry in block), default=0)
    return {entry[2]: entry[3] or "" for entry in block if len(entry[1]) == left}


def usage_in(text: str, words: tuple[str, ...]) -> Usage:
    """How the command is spoken whose help this is; `words`: its own, after the program's."""
    bare = plain(text)
    match = _USAGE.search(bare)
    line = " ".join(match[1].split()) if match else ""
    position = line.rfind(f" {words[-1]} ") if words else -1
    rest = line[position + len(words[-1]) + 1 :] if position >= 0 else line.partition(" ")[2]
    options = frozenset(_OPTION.findall(bare)) - {"--help", "--version"}
    group = bool(re.search(r"(?<![\w-])(?:COMMAND|[<[{](?:sub)?command[>\]}])(?![\w-])", rest))
    if group:
        return Usage((), (), options, group, bare)
    return Usage(_required(rest), _optional(rest), options, text=bare)


def _optional(rest: str) -> tuple[str, ...]:
    """Arguments in square brackets: one word, and none of an option."""
    found = re.findall(r"\[<?([A-Za-z][\w-]*)>?(?:\.\.\.)?\]", rest)
    return tuple(name.lower() for name in found if name.lower() not in _NO_ARGUMENTS)


def _required(rest: str) -> tuple[str, ...]:
    """The arguments that have to be given: what stands in square brackets may be left out."""
    while re.search(r"\[[^\[\]]*\]", rest):
        rest = re.sub(r"\[[^\[\]]*\]", " ", rest)
    found = re.findall(r"[{<]([\w -]+?)[}>]|(?<![\w-])([A-Z][A-Z0-9_-]+)\b", rest)
    names = (braced or capitals for braced, capitals in found)
    return tuple(name.lower() for name in names if name.lower() not in _NO_ARGUMENTS)
