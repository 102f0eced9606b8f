"""Which targets there are: those that ship with Mutiny, those of installed packages, and any TOML
file.

A package offers a target through the entry-point group `mutiny.targets`; the entry point is a
function without arguments that returns the path of a target file.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from mutiny import documents
from mutiny.box.isolation import Network
from mutiny.contracts.catalogue import contract_named, default_for, find, with_targets
from mutiny.errors import FormatError, TargetMissing, UsageError, nearest
from mutiny.kit.contract import AnyContract, Live
from mutiny.kit.descriptor import TargetForm
from mutiny.kit.operations import USUAL_WORLD, Reset
from mutiny.targets.kit.checks import with_line
from mutiny.targets.kit.files import base_file
from mutiny.targets.kit.options import LiveOptions
from mutiny.targets.kit.starting import refuse_missing

ENTRY_POINTS = "mutiny.targets"
FILES = Path(__file__).with_name("files")


@dataclass(frozen=True)
class Target:
    """A target that can be brought to life."""

    spec: TargetForm
    program: Path
    origin: str
    options: LiveOptions

    @property
    def name(self) -> str:
        return self.spec.name

    def contract(self) -> AnyContract:
        """The contract with this target's profile and words."""
        return self.spec.make_contract(self.options.agents)

    def make_live(self, directory: Path, reset: Reset = USUAL_WORLD) -> Live:
        """Start the target in a new box."""
        live = contract_named(self.spec.contract).live
        assert live is not None, "a contract with target files has a live target"
        return live.load()(
            self.spec,
            directory,
            replace(self.options, root=reset.root, surroundings=reset.surroundings),
        )

    def profiled(self) -> Target:
        """The same target, writing profiles of its own code."""
        return replace(self, options=replace(self.options, profiled=True))

    def apart(self) -> Target:
        """A target keeps nothing from run to run."""
        return self

    def healthy(self) -> Target | None:
        """The same target without its plant; None when it has none."""
        if not self.options.plant:
            return None
        return replace(self, options=replace(self.options, plant=""))


def own() -> dict[str, Path]:
    """The files of Mutiny's own targets by name."""
    return {path.stem: path for path in sorted(FILES.glob("*.toml"))}


def shipped() -> dict[str, Path]:
    """Targets by name: Mutiny's own and those of installed packages."""
    from importlib.metadata import entry_points  # slow to load, and seldom needed

    foreign = entry_points(group=ENTRY_POINTS)
    return own() | {entry.name: Path(entry.load()()) for entry in foreign}


def load_target(path: Path) -> TargetForm:
    """Read and check a target file of any contract; the file says itself which one it is for."""
    data, text = documents.read_toml(path, "target file")
    name = _contract_named_in(path, data)
    known = find(name)
    form = None if known is None else known.target_form
    if form is None:
        problem = f"contract: unknown contract {name!r}{nearest(name, list(with_targets()))}"
        raise FormatError(str(path), [with_line(text, problem)])
    return form.load().load(path)


def _contract_named_in(path: Path, data: Mapping[str, object]) -> str:
    """The file's own word, that of the file it extends, or the default."""
    named, base = data.get("contract"), data.get("extends")
    if named is None and isinstance(base, str):
        above = documents.read_toml(base_file(path, base), "target file")[0]
        named = above.get("contract")
    return default_for("run").name if named is None else str(named)


def find_spec(name: str) -> tuple[TargetForm, str]:
    """The specification of a target given by name or by file."""
    if name.endswith(".toml") or "/" in name:
        return load_target(Path(name)), name
    known = own()
    if name not in known:
        known = shipped()
    if name not in known:
        if os.path.isdir(name):  # noqa: PTH112  that of a path fails for a name that is too long
            raise UsageError(f"{name} is a directory, not a target; a target's file ends in .toml")
        raise UsageError(
            f"unknown target {name!r}{nearest(name, list(known))}; "
            f"known: {', '.join(known)}, or a TOML file"
        )
    return _installed(known[name]), str(known[name])


@cache
def _installed(path: Path) -> TargetForm:
    """A file that was installed stays as it is while a process lives, and many ask for the same one."""
    return load_target(path)


def find_program(spec: TargetForm, given: str | None) -> Path:
    """The target's program: `--bin`, else beside this Python, else on PATH."""
    if given is not None:
        path = Path(given)
        if not path.exists():
            raise TargetMissing(f"target {spec.name}: the program {given} does not exist")
        if path.is_dir():
            raise TargetMissing(f"target {spec.name}: {given} is a directory, not a program")
        return path.absolute()
    beside = Path(sys.executable).parent / spec.program
    if beside.exists():
        return beside
    found = shutil.which(spec.program)
    if found is None:
        raise TargetMissing(
            f"target {spec.name}: the program {spec.program!r} is not on PATH; "
            "say where it is with --bin PATH"
        )
    return Path(found).absolute()


def program_at(given: str) -> Path:
    """A program by its path or by its name."""
    path = Path(given)
    found = path if path.exists() else Path(shutil.which(given) or path)
    if not found.exists():
        raise TargetMissing(f"the program {given} does not exist and is not on PATH")
    if found.is_dir() or not os.access(found, os.X_OK):
        raise TargetMissing(f"{given} is no program: it cannot be executed")
    return found.absolute()


def spoken_again(origin: str, spec: TargetForm, program: Path) -> tuple[str, ...]:
    """The options that name a target once more, from any directory: none for one that ships with Mutiny
    and whose program is found without help.
    """
    if not origin:
        return ()  # a plain box: there is no program to name
    known = origin in map(str, own().values()) or origin in map(str, shipped().values())
    target = () if known else ("--target", str(Path(origin).absolute()))
    try:
        found = find_program(spec, None) == program
    except TargetMissing:
        found = False
    return target if found else (*target, "--bin", str(program))


def find_target(
    name: str,
    *,
    program: str | None = None,
    plant: str = "",
    agents: str = "double",
    isolation: str | None = None,
) -> Target:
    """A target, ready to be brought to life."""
    spec, origin = find_spec(name)
    path = find_program(spec, program)
    refuse_missing(spec.name, spec.needs)
    network: Network = "none" if agents == "double" else "host"
    return Target(spec, path, origin, LiveOptions(path, plant, agents, isolation, network))
