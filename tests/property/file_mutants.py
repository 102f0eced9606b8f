"""Broken files made from good ones: their structure, their bytes, and what is no file at all.

Every mutant is a function of its seed, so one that breaks something can be made again.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any


def _deep(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"type": value}
    return value


def nasty(random: Random) -> Any:
    """A value that somebody did not expect."""
    return random.choice(
        (
            *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**70), 10**30, 10**400, 0.5),
            *(-0.0, 1e-320, 1e10, 1e300, -1e300, float("nan"), float("inf"), -float("inf")),
            *("", " ", "\0", "\n", "\x1b[31m", "\ud800", "é" * 300, "x" * 20_000, "../../x", "~/x"),
            *("/", "/etc/passwd", "{home}", "{nothing}", "%s", "0x7 1x99999999999", "-1", "nan"),
            *("bwrap", "longboat", "(" * 300 + ")" * 300, "(a+)+$", "a{99999999}", "[", "*"),
            *([], {}, [[]], [{}], {"": 1}, {"type": "Reset"}, _deep(30), _deep(400), _deep(5_000)),
            *({"type": "Sleep", "args": {"seconds": 1e10}}, ["a"] * 2_000, {"\ud800": "\0"}),
        )
    )


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a tree that is not too deep, as the way to it."""
    found = [path]
    if len(path) > 12:
        return found
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += places(item, (*path, index))
    return found


def changed(value: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    """The same tree with something else at one place."""
    if not path:
        return change(value)
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(copy[path[0]], path[1:], change)
    return copy


def mutate_tree(random: Random, tree: Any) -> Any:
    """One to three changes of the structure."""
    for _ in range(random.randint(1, 3)):
        way = random.choice(places(tree))
        tree = changed(tree, way, lambda old: _other(random, old))
    return tree


def _other(random: Random, old: Any) -> Any:
    kind = random.randrange(6)
    if kind == 0 and isinstance(old, dict) and old:
        gone = random.choice(list(old))
        return {key: value for key, value in old.items() if key != gone}
    if kind == 1 and isinstance(old, dict):
        return {**old, random.choice(["", "x", "type", "format", "seconds", "args"]): nasty(random)}
    if kind == 2 and isinstance(old, list) and old:
        return old[: random.randrange(len(old))]
    if kind == 3 and isinstance(old, list):
        return [*old, nasty(random)]
    if kind == 4:
        return [old]
    return nasty(random)


def dumped(tree: Any) -> bytes:
    """JSON; also of what Python itself could not walk through."""
    try:
        return json.dumps(tree).encode()
    except RecursionError:
        return b'{"a":' * 3_000 + b"1" + b"}" * 3_000
    except ValueError:  # more digits than Python writes
        return b'{"format": ' + b"9" * 5_000 + b"}"


def mutate_json(random: Random, data: bytes) -> bytes:
    """Change the tree behind a JSON file."""
    return dumped(mutate_tree(random, json.loads(data)))


def mutate_lines(random: Random, data: bytes) -> bytes:
    """Change the tree behind one line of a journal, or the lines themselves."""
    lines = data.splitlines()
    index = random.randrange(len(lines))
    if random.randrange(4):
        lines[index] = mutate_json(random, lines[index])
    else:
        lines[index : index + 1] = random.choice(([], [lines[index]] * 2, [b""], [b"null"], [b"{"]))
    return b"\n".join(lines) + b"\n"


def mutate_toml(random: Random, data: bytes) -> bytes:
    """Give one key another value, or take a line away, double it, or nest a table."""
    lines = data.decode().splitlines()
    index = random.choice([number for number, line in enumerate(lines) if "=" in line])
    key, _, value = lines[index].partition("=")
    kind = random.randrange(5)
    if kind == 0:
        del lines[index]
    elif kind == 1:
        lines.insert(index, lines[index])
    elif kind == 2 and '"' in value:
        words = json.dumps(dumped(nasty(random)).decode())
        lines[index] = key + "=" + re.sub(r'"[^"]*"', lambda _: words, value, count=1)
    elif kind == 3:
        lines[index] = random.choice(
            (f"{key}= {'[' * 2000}{']' * 2000}", f"{'.'.join(['a'] * 900)} = 1", f"{key}= 1e999")
        )
    else:
        lines[index] = f"{key}= {dumped(nasty(random)).decode()}"
    return "\n".join(lines).encode() + b"\n"


def mutate_yaml(random: Random, data: bytes) -> bytes:
    """Give one key another value, or move, double or drop a line; YAML takes JSON's values."""
    lines = data.decode().splitlines()
    index = random.choice([number for number, line in enumerate(lines) if ":" in line])
    key, _, _ = lines[index].partition(":")
    kind = random.randrange(5)
    if kind == 0:
        del lines[index]
    elif kind == 1:
        lines.insert(index, lines[index])
    elif kind == 2:
        lines[index] = "  " * random.randrange(4) + lines[index].strip()
    elif kind == 3:
        tags = ("&a [*a]", "!!python/object:os.system x", "*nobody", "? {}", "- - - -", "%YAML 9")
        lines[index] = f"{key}: {random.choice(tags)}"
    else:
        lines[index] = f"{key}: {dumped(nasty(random)).decode()}"
    return "\n".join(lines).encode() + b"\n"


def mutate_bytes(random: Random, data: bytes) -> bytes:
    """Damage that knows nothing of what it damages."""
    place = random.randrange(len(data) + 1)
    kind = random.randrange(6)
    if kind == 0:
        return data[:place]
    if kind == 1:
        return data[:place] + random.randbytes(random.randint(1, 40)) + data[place:]
    if kind == 2 and data:
        place = min(place, len(data) - 1)
        return data[:place] + bytes([data[place] ^ (1 << random.randrange(8))]) + data[place + 1 :]
    if kind == 3:
        return data + data[place:]
    if kind == 4:
        return random.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\0", b"\r\n")) + data
    return data[:place] + random.choice((b"[", b"{", b'"', b"'", b"]" * 3)) * 2_000 + data[place:]


Mutator = Callable[[Random, bytes], bytes]


def mutant(seed: int, data: bytes, structure: Mutator) -> bytes:
    """The mutant of a file with this seed."""
    random = Random(seed)
    return (mutate_bytes if random.randrange(4) == 0 else structure)(random, data)


# --- what is no file ------------------------------------------------------------------------------


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 * 2**30)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        here = Path.cwd()
        os.chdir(path.parent)  # its name may be longer than a socket's can be
        line.bind(path.name)
        os.chdir(here)


NO_FILES: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "empty": lambda path: path.write_bytes(b""),
    "blank": lambda path: path.write_bytes(b"\n \n\t\n"),
    "binary": lambda path: path.write_bytes(Random(1).randbytes(70_000)),
    "zeros": lambda path: path.write_bytes(bytes(10_000)),
    "directory": lambda path: path.mkdir(),
    "pipe": os.mkfifo,
    "socket": _socket,
    "sparse": _sparse,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "loop": lambda path: path.symlink_to(path),
    "nowhere": lambda path: path.symlink_to("nowhere"),
    "unreadable": lambda path: path.touch(mode=0),
}
"""By name: how to put it where a file is expected."""
