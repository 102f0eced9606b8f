"""Whether a target can start at all: what it needs to see, and how it looks when it saw too little.

Insight: a program whose libraries lie outside of the walls fails in its loader, before a line of its own
has run. That is nobody's broken promise, so it is told apart from a crash: by the loaders' own words, and
only as long as no command of the target has answered.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mutiny.errors import TargetMissing, TechniqueMissing
from mutiny.kit.crash import crash_in
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult

LEVELS_UP = 6
"""So far above a program its package may begin."""
PACKAGES = {"bwrap": "bubblewrap", "setpriv": "util-linux", "unshare": "util-linux"}
"""Debian's package of a program, where it has another name."""
_TARGETS = Path(__file__).parents[1]
"""Drivers that speak for a target lie in its folder `drivers`."""
_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/opt", "/etc", "/sbin")
_MARKS = (
    "pyvenv.cfg",
    "node_modules",
    "package.json",
    "pyproject.toml",
    "Gemfile",
    "composer.json",
)
_LOADER = re.compile(
    r"^.*(?:error while loading shared libraries: .*"
    r"|: bad interpreter: .*|: cannot execute: required file not found"
    r"|Cannot find module .*|ERR_MODULE_NOT_FOUND.*|can't open file .*"
    r"|cannot load such file .*|Can't locate \S+ in @INC.*"
    r"|Could not find or load main class .*|Unable to access jarfile .*"
    r"|Fatal Python error: init.*)$"
    r"|^ModuleNotFoundError: .*$|^ImportError: .*cannot open shared object file.*$",
    re.MULTILINE,
)
_NOT_FOUND = re.compile(
    r"^.*(?:not found|No such file or directory|Permission denied).*$", re.MULTILINE
)


def why_not_started(result: OperationResult) -> str | None:
    """The loader's complaint, when a command did not even come to its own first line."""
    if result.succeeded or result.exit_code is None:
        return None
    said = f"{result.stderr}\n{result.stdout}"
    found = _LOADER.search(said)
    if found is None and result.exit_code in (126, 127):
        found = _NOT_FOUND.search(said)
    return None if found is None else found[0].strip()


def broke_in_driver(result: OperationResult) -> str | None:
    """What went wrong in one of Mutiny's own drivers: that is not the target's crash."""
    crash = crash_in(result.stderr)
    if crash is None or not crash.frames:
        return None
    file = Path(crash.frames[-1].file)
    return crash.line if file.is_relative_to(_TARGETS) and "drivers" in file.parts else None


class Starting:
    """Looks at a live target's answers until the first that is really its own."""

    def __init__(self) -> None:
        self._answered = False

    def judged(self, operation: Operation, result: OperationResult) -> OperationResult:
        """The result, with Mutiny's own trouble called what it is."""
        if result.harness_error is not None or operation.kind is not Kind.COMMAND:
            return result
        trouble = broke_in_driver(result)
        if trouble is not None:
            return replace(result, harness_error=f"Mutiny's driver of this target broke: {trouble}")
        if self._answered:
            return result
        why = why_not_started(result)
        if why is None:
            self._answered = result.exit_code is not None
            return result
        text = (
            f"the target could not be started in the box: {why} (directories that it needs go "
            'into its file: mounts = ["/where/they/are"])'
        )
        return replace(result, harness_error=text)


# --- what it must see -----------------------------------------------------------------------------


def trees_of(program: Path, mounts: Sequence[str] = ()) -> tuple[Path, ...]:
    """The directories that a program needs at their own places: its own, its environment, its
    interpreter's, and those that its file names.
    """
    found: list[Path] = []
    for place in (program, program.resolve()):
        found += [place.parent, *_packages_above(place)]
    interpreter = _interpreter(program)
    for place in () if interpreter is None else (interpreter, interpreter.resolve()):
        found += [place.parent, place.parent.parent, *_packages_above(place)]
    for tree in list(found):
        found += _beside(tree)
    for text in mounts:
        path = Path(text).expanduser()
        if not path.exists():
            raise TargetMissing(f"mounts: {text} does not exist, and the target needs it")
        found.append(path)
    return tuple(dict.fromkeys(tree for tree in found if _worth_it(tree)))


def _worth_it(tree: Path) -> bool:
    return tree not in (Path("/"), Path.home()) and not str(tree).startswith(_SYSTEM)


def _packages_above(place: Path) -> Iterator[Path]:
    """Roots of packages and environments above a program."""
    for above in list(place.parents)[1:LEVELS_UP]:
        if _worth_it(above) and any((above / mark).exists() for mark in _MARKS):
            yield above


def _beside(tree: Path) -> Iterator[Path]:
    """An environment's base, and what is installed in it without being copied."""
    config = tree / "pyvenv.cfg"
    if not config.is_file():
        return
    for line in config.read_text(errors="replace").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "home":
            yield Path(value.strip()).parent
    for linked in sorted(tree.glob("lib/python*/site-packages/*.pth")):
        for line in linked.read_text(errors="replace").splitlines():
            if line.startswith("/") and Path(line.strip()).is_dir():
                yield Path(line.strip())


def _interpreter(program: Path) -> Path | None:
    """Who reads it, as its first line says."""
    try:
        with program.open("rb") as file:
            first = file.readline(512)
    except OSError:
        return None
    words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
    if words and Path(words[0]).name == "env":
        named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        found = shutil.which(named[0]) if named else None
        return None if found is None else Path(found)
    return Path(words[0]) if words else None


# --- what must be installed -----------------------------------------------------------------------


def refuse_missing(name: str, needs: Sequence[str]) -> None:
    """Refuse a target whose tools are not installed; `python:mcp` is a package of Python's."""
    missing = []
    for need in needs:
        kind, _, module = need.partition(":")
        if kind == "python" and module:
            if not _importable(module):
                missing.append(f"the Python package {module} (pip install {module})")
        elif shutil.which(need) is None:
            missing.append(f"{need} (apt install {PACKAGES.get(need, need)})")
    if missing:
        raise TechniqueMissing(
            f"target {name} needs what is not installed here: {', '.join(missing)}; "
            "nothing was tested"
        )


def _importable(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
