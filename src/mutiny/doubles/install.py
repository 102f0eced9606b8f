"""Putting the doubles into a box, scripting them, and reading what they received.

This is the only module of the package that Mutiny itself uses; it never runs inside a box. The
launcher refers to the installed package, so a box costs one small file and no compilation.
"""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mutiny.doubles.agents.behaviours import (
    BEHAVIOURS,
    SCRIPT_VERSION,
    UnknownBehaviour,
    check_behaviours,
)
from mutiny.doubles.agents.records import RECEIVED_FILE, SCRIPT_FILE
from mutiny.system.files import BoxPath

__all__ = [
    "BEHAVIOURS",
    "RECEIVED_FILE",
    "SCRIPT_FILE",
    "Earlier",
    "Received",
    "UnknownBehaviour",
    "install",
    "read_received",
    "write_script",
]

_SHEBANG_LIMIT = 127
"""Older kernels cut the first line of a script after this many bytes."""

_RECORD_START = b'{"time":'

_LAUNCHER = """\
{head}
import os, sys
sys.path.append({package_root!r})
{imports}
_here = os.path.dirname(os.path.abspath(__file__))
_doubles = os.environ.get("MUTINY_DOUBLES") or os.path.normpath(os.path.join(_here, {relative!r}))
sys.exit({call})
"""


@dataclass(frozen=True, slots=True)
class Earlier:
    """An agent that had received one of a prompt's tokens before."""

    pid: int
    start: int
    alive: bool
    same_agent: bool


@dataclass(frozen=True, slots=True)
class Received:
    """One line of received.jsonl; fields that the event does not have are None or empty.

    ``event`` is one of start, prompt, wrote, shaped, commit, child, turn_end, hook, clear, exit,
    problem; or ``torn`` for a line that its writer did not live to finish (then only ``detail`` is set).
    """

    event: str
    time: float = 0.0
    pid: int = 0
    start: int = 0
    worker: str = ""
    session: str = ""
    argv: tuple[str, ...] = ()
    cwd: str | None = None
    interactive: bool | None = None
    turn: int | None = None
    behaviour: str | None = None
    tokens: tuple[str, ...] = ()
    token: str | None = None
    sha256: str | None = None
    text: str | None = None
    size: int | None = None
    kind: str | None = None
    earlier: tuple[Earlier, ...] = ()
    sha: str | None = None
    rewritten: bool = False
    outcome: str | None = None
    name: str | None = None
    exit_code: int | None = None
    duration_ms: int | None = None
    timed_out: bool = False
    new_session: str | None = None
    reason: str | None = None
    detail: str | None = None
    child: int | None = None
    child_start: int | None = None
    shape: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


_FIELDS = {field.name: str(field.type) for field in fields(Received)}
_LISTS = ("argv", "tokens", "shape", "removed")
_EARLIER = {field.name: str(field.type) for field in fields(Earlier)}
_WORDS: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
    "None": type(None),
}


def install(
    bin_dir: BoxPath,
    doubles_dir: BoxPath,
    *,
    python: str | None = None,
    names: Sequence[str] = ("claude",),
) -> None:
    """Write the launcher ``claude`` into ``bin_dir`` and make ``doubles_dir``.

    The launcher finds ``doubles_dir`` by MUTINY_DOUBLES, else relative to itself; so the two
    directories may appear under another path inside the box, as long as both move together.

    Args:
        bin_dir: A directory that comes first on the agents' PATH.
        doubles_dir: Where script.json and received.jsonl live.
        python: The interpreter; by default the real one behind the running interpreter, because
            a version manager's shim or a virtual environment may be absent in the box.
        names: Programs that the double stands for.
    """
    bin_dir.mkdir(parents=True, exist_ok=True)
    doubles_dir.mkdir(parents=True, exist_ok=True)
    relative = os.path.relpath(doubles_dir.host, bin_dir.host)
    for name in names:
        text = launcher(
            "from mutiny.doubles.agents.claude import main",
            f"main(sys.argv[1:], _doubles, {name!r})",
            relative,
            python,
        )
        (bin_dir / name).replace_bytes(text.encode(), 0o755)


def launcher(imports: str, call: str, relative: str, python: str | None) -> str:
    """The program that stands for an agent: imports a double, and calls it.

    Args:
        imports: The line that imports it.
        call: What is called; ``_doubles`` is the directory of script.json.
        relative: That directory, seen from the launcher's.
        python: The interpreter, or None for the usual one.
    """
    _compile_package()
    return _LAUNCHER.format(
        head=_head(python or os.path.realpath(sys.executable)),
        package_root=str(Path(__file__).resolve().parents[2]),
        imports=imports,
        call=call,
        relative=relative,
    )


def _head(python: str) -> str:
    """Return the first lines: a plain shebang, or a detour over sh for difficult paths."""
    shebang = f"#!{python} -IS"
    if len(os.fsencode(shebang)) < _SHEBANG_LIMIT and not any(c.isspace() for c in python):
        return shebang
    # To sh the next lines are a command and an exec; to Python they are one string.
    return f"#!/bin/sh\n''':'\nexec {shlex.quote(python)} -IS \"$0\" \"$@\"\n'''"


def _compile_package() -> None:
    """Make sure that byte code is there, because a box may see the package read-only."""
    here = Path(__file__).resolve().parent
    for source in (here.parent / "__init__.py", *here.rglob("*.py")):
        cached = Path(importlib.util.cache_from_source(str(source)))
        if cached.exists() and cached.stat().st_mtime_ns >= source.stat().st_mtime_ns:
            continue
        try:
            py_compile.compile(str(source), doraise=True)
        except PermissionError:
            # Installed for all users by another one. The double then only starts more slowly.
            return


def write_script(
    doubles_dir: BoxPath,
    workers: Mapping[str, Sequence[str]],
    default: Sequence[str] = ("obey",),
) -> None:
    """Write script.json atomically; agents that run see it at their next turn.

    Args:
        doubles_dir: The directory given to ``install``.
        workers: Behaviours by worker name, one per turn, the last one repeats; ``*`` stands for
            every worker that is not named.
        default: Behaviours of workers when neither their name nor ``*`` is there.

    Raises:
        UnknownBehaviour: A behaviour does not exist; nothing is written.
    """
    script = {
        "version": SCRIPT_VERSION,
        "default": check_behaviours(default),
        "workers": {worker: check_behaviours(names) for worker, names in workers.items()},
    }
    (doubles_dir / SCRIPT_FILE).write_text(json.dumps(script, indent=2) + "\n")


def read_received(path: BoxPath, offset: int = 0) -> tuple[list[Received], int]:
    """Read the records from a byte offset on; return them and the offset for the next call.

    A half last line is left for the next call. A missing file has no records.
    """
    records: list[Received] = []
    lines, end = whole_lines(path, offset)
    for line in lines:
        try:
            records.append(_record(json.loads(line)))
        except (ValueError, TypeError, RecursionError):  # no record: somebody else wrote it
            records.append(Received("torn", detail=line.decode("utf-8", "replace")))
    return records, end


def whole_lines(path: BoxPath, offset: int) -> tuple[list[bytes], int]:
    """The finished lines from a byte offset on, and the offset behind them; torn ones are apart."""
    try:
        data = path.read_from(offset)
    except FileNotFoundError:
        return [], offset
    complete = data[: data.rfind(b"\n") + 1]
    lines: list[bytes] = []
    for line in complete.splitlines():
        # A writer killed in the middle of a line leaves its beginning in front of the next one.
        cut = max(line.rfind(_RECORD_START), 0)
        lines += [part for part in (line[:cut], line[cut:]) if part]
    return lines, offset + len(complete)


def _record(values: object) -> Received:
    """Build a record from parsed JSON; fields of a newer double are ignored."""
    if not isinstance(values, dict):
        raise TypeError("a record is a JSON object")
    known = {name: value for name, value in values.items() if name in _FIELDS}
    for name in _LISTS:
        items = known.pop(name, None)
        known[name] = tuple(_checked({name: "str"}, {name: item})[name] for item in items or ())
    earlier = [_checked(_EARLIER, item) for item in known.pop("earlier", None) or ()]
    plain = {name: value for name, value in known.items() if not isinstance(value, tuple)}
    _checked(_FIELDS, plain)
    return Received(**known, earlier=tuple(Earlier(**item) for item in earlier))


def _checked(kinds: Mapping[str, str], values: dict[str, Any]) -> dict[str, Any]:
    """The target could write to the record, too: what has another kind than ours is no record."""
    for name, value in values.items():
        wanted = [_WORDS[word] for word in kinds[name].split(" | ")]
        if not any(isinstance(value, kind) for kind in wanted):
            raise TypeError(f"{name} is {value!r:.80}")
    return values
