"""What a program's `--help` says: its commands, their arguments and options; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NO_COMMANDS = re.compile(
    r"\b(?:usage|options?|flags?|arguments?|examples?|aliases|environment|config\w*|variables)\b",
    re.I,
)
_HEAD = re.compile(r"^(?:[A-Za-z][^:]*:|[A-Z][A-Z ]+[A-Z])$")
"""A line that says what is listed below it: with a colon, or in capitals."""
FEWEST = 3
"""So many lines that begin alike are a list, and no examples."""
MOST_WORDS = 10
"""A heading says no more."""
_POSITIONAL = re.compile(r"^(?:positional )?arguments:$", re.I)
_ENTRY = re.compile(
    r'^(\s*)([a-z][\w-]*)(?:,\s*[\w-]+|\|[\w-]+)*( (?=[\[<({"A-Z]|--[a-z]).*?)?(?:\s{2,}(\S.*))?$'
)
_SAID = re.compile(
    r'(?:\s*(?:\[[^\]]*\]|<[^>]*>|\{[^}]*\}|\([^)]*\)|"[^"]*"|[A-Z][A-Z0-9_-]+\b)(?:\.{3})?)*'
)
"""The arguments at the beginning of what stands behind a command in a list."""
_CHOICES = re.compile(r"\{([a-z][\w-]*(?:,[a-z][\w-]*)+)\}")
_OPTION = re.compile(r"(?<![\w-])(--[a-z][\w-]*)")
_VALUE = re.compile(r'(?<![\w-])--?[a-z][\w-]*[ =](?:<[^>]*>|"[^"]*"|\{[^}]*\})')
_USAGE = re.compile(r"^\s*usage:\s*(.*?)(?:\n\s*\n|\Z)", re.IGNORECASE | re.DOTALL | re.MULTILINE)
_NO_ARGUMENTS = (
    "options",
    "opts",
    "flags",
    "command",
    "args",
    "subcommand",
    "commands",
    "global options",
)


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
    for line in _ANSI.sub("", text).expandtabs().splitlines():
        bare = line.strip()
        if bare and not bare.strip("╭╰╮╯─━│┃ ") and len(bare) > 2:
            lines.append("")
            continue
        title = re.match(r"^[╭┌]─+\s*(.*?)\s*─+[╮┐]$", bare)
        lines.append(f"{title[1]}:" if title else re.sub(r"[│┃]", " ", line).rstrip())
    return "\n".join(lines)


def about_in(text: str) -> str:
    """What a program says it is: its first line of words, below any picture of letters."""
    lines = (line.strip() for line in plain(text).splitlines())
    told = (line for line in lines if len(re.findall(r"(?<![<[-])\b[A-Za-z]{3,}", line)) > 1)
    no_prose = re.compile(r"(?i)^usage\b|^[\[<-]|\S\s{2,}\S")
    return next((line for line in told if not no_prose.search(line)), "")


def commands_in(text: str, group: tuple[str, ...] = ()) -> dict[str, Usage]:
    """The commands that a help text lists, each with how it is spoken as far as the list says it; `group`:
    the words of the group whose help it is.
    """
    lines = plain(text).splitlines()
    program = " ".join((_program(lines), *group)).strip()
    found: dict[str, Usage] = {}
    for number, line in enumerate(lines):
        head = line.strip()
        if line.startswith("  ") or not _HEAD.match(head):
            continue
        below = [_without(program, one) for one in _block(lines[number + 1 :])]
        if _POSITIONAL.match(head):
            found.update(_listed(_nested(below)))
        elif not _NO_COMMANDS.search(head):
            found.update(_listed(below))
    for choices in _CHOICES.findall(plain(text)):
        found = {**dict.fromkeys(choices.split(","), Usage()), **found}
    found = found or _repeated(lines, program) or _below_plain_words(lines)
    found = found or _in_usage(lines, program)
    return {name: usage for name, usage in found.items() if name not in ("help", "completion")}


def _repeated(lines: list[str], program: str) -> dict[str, Usage]:
    """Commands in a list without a heading, each behind the words that come before all of them."""
    mine = [line for line in lines if re.match(rf"\s+{re.escape(program)} [a-z]", line)]
    if not program or len(mine) < FEWEST:
        return {}
    return _listed([f"  {_without(program, line).strip()}" for line in mine])


def _below_plain_words(lines: list[str]) -> dict[str, Usage]:
    """Commands below headings that nothing marks as such: a few words, and an entry right below them."""
    found: dict[str, Usage] = {}
    for number, line in enumerate(lines[:-1]):
        entry = _ENTRY.match(lines[number + 1])
        listed = entry and entry[1] and (entry[3] or entry[4])
        few = line[:1].strip() and len(line.split()) <= MOST_WORDS and not line.endswith(".")
        if listed and few and not _NO_COMMANDS.search(line):
            found.update(_listed(_block(lines[number + 1 :])))
    return found


def _program(lines: list[str]) -> str:
    """The program's own name: the first word that its usage says."""
    said = re.search(r"(?im)^\s*usage:?\s+(?:\$ )?([\w./-]+)", "\n".join(lines))
    return said[1].rpartition("/")[2] if said else ""


def _without(program: str, line: str) -> str:
    """An entry without the program's name, which some lists repeat in every line."""
    return re.sub(rf"^(\s*){re.escape(program)} (?=[a-z])", r"\1", line) if program else line


def _block(lines: list[str]) -> list[str]:
    """What stands below a heading: up to the next line that begins as far left as it does."""
    end = next((at for at, line in enumerate(lines) if line.strip() and line[0] != " "), len(lines))
    return lines[:end]


def _nested(lines: list[str]) -> list[str]:
    """What stands below an argument that only means "one of these", as argparse lists commands."""
    first = next((at for at, line in enumerate(lines) if line.strip()), None)
    if first is None or len(lines[first].split()) > 1:
        return []
    left = _depth(lines[first])
    return [line for line in lines[first + 1 :] if line.strip() and _depth(line) > left]


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _listed(lines: list[str]) -> dict[str, Usage]:
    """The entries of a list: those that stand furthest to the left, with the options below each."""
    entries = [(at, entry) for at, line in enumerate(lines) if (entry := _ENTRY.match(line))]
    left = min((len(entry[1]) for _, entry in entries), default=0)
    chosen = [(at, entry) for at, entry in entries if len(entry[1]) == left]
    found = {}
    ends = [*(at for at, _ in chosen), len(lines)][1:]
    for (at, entry), end in zip(chosen, ends, strict=True):
        arguments = _SAID.match(entry[3] or "")
        said = "" if arguments is None else arguments[0]
        below = "\n".join(lines[at:end])
        options = frozenset(_OPTION.findall(below)) - {"--help", "--version"}
        found[entry[2]] = Usage(_required(said), _optional(said), options, text=below)
    return found


def _in_usage(lines: list[str], program: str) -> dict[str, Usage]:
    """Commands that are only named in lines of usage: `mine add NAME`, one below the other."""
    begin = next((at for at, line in enumerate(lines) if re.match(r"(?i)\s*usage", line)), None)
    if begin is None or not program:
        return {}
    said = [re.sub(r"(?i)^\s*usage:?\s*", "  ", line) for line in lines[begin:]]
    end = next((at for at, line in enumerate(said) if at > 1 and not line.strip()), len(said))
    mine = [line for line in said[:end] if re.match(rf"\s*{re.escape(program)} [a-z]", line)]
    return _listed([f"  {_without(program, line).strip()}" for line in mine])


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
    required = _required(rest, _explained(bare))
    optional = (name for name in _optional(rest) if name not in required)  # `name [name ...]`
    return Usage(required, tuple(optional), options, text=bare)


def _explained(text: str) -> frozenset[str]:
    """The names that a list of arguments explains, one a line: argparse writes them in small letters."""
    lines = text.splitlines()
    found: set[str] = set()
    for number, line in enumerate(lines):
        if _POSITIONAL.match(line.strip()):
            below = [one for one in _block(lines[number + 1 :]) if one.strip()]
            left = min((_depth(one) for one in below), default=0)
            found |= {one.split()[0] for one in below if _depth(one) == left}
    return frozenset(found)


def _optional(rest: str) -> tuple[str, ...]:
    """Arguments in square brackets: one word, and none of an option."""
    found = re.findall(r"\[<?([A-Za-z][\w-]*)>?(?: ?\.\.\.)?\]", rest)
    return tuple(name.lower() for name in found if name.lower() not in _NO_ARGUMENTS)


def _required(rest: str, explained: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The arguments that have to be given: what stands in square brackets may be left out, and what stands
    behind an option is its value; `explained`: words that are arguments as they stand.
    """
    rest = _VALUE.sub(" ", rest)
    while re.search(r"\[[^\[\]]*\]", rest):
        rest = re.sub(r"\[[^\[\]]*\]", " ", rest)
    found = re.findall(r'[{<"]([\w -]+?)[}>"]|(?<![\w-])([A-Z][A-Z0-9_-]+)\b|([\w-]+)', rest)
    names = (
        braced or capitals or word
        for braced, capitals, word in found
        if braced or capitals or word in explained
    )
    return tuple(name.lower() for name in names if name.lower() not in _NO_ARGUMENTS)
