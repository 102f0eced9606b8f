"""Which targets there are: those that ship with Mutiny, those of installed packages, and any TOML
file.

A package offers a target through the entry-point group `mutiny.targets`; the entry point is a
function without arguments that returns the path of a target file.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

from mutiny import documents
from mutiny.box.isolation import Network
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.errors import TargetMissing, UsageError, nearest
from mutiny.kit.contract import AnyContract, Live
from mutiny.targets.board.spec import BoardSpec
from mutiny.targets.kit.starting import refuse_missing
from mutiny.targets.workers.live import LiveOptions, WorkersLive
from mutiny.targets.workers.spec import TargetSpec

ENTRY_POINTS = "mutiny.targets"
_BY_RECORD = (
    *("workers.delivered_once", "workers.nothing_lost", "workers.accepted_is_merged"),
    *("workers.work_reachable", "workers.discarded_is_kept", "workers.review_means_done"),
)
"""Rules that need the doubles' own record."""


@dataclass(frozen=True)
class Target:
    """A target that can be brought to life."""

    spec: TargetSpec | BoardSpec
    program: Path
    origin: str
    options: LiveOptions

    @property
    def name(self) -> str:
        return self.spec.name

    def contract(self) -> AnyContract:
        """The contract with this target's profile and words."""
        if isinstance(self.spec, BoardSpec):
            from mutiny.contracts.board.contract import BoardContract

            return BoardContract(self.spec.profile, self.spec.words)
        profile = self.spec.make_profile()
        if self.options.agents == "real":
            silent = dict.fromkeys(_BY_RECORD, "a real agent writes down nothing that it received")
            profile = replace(profile, not_applicable={**profile.not_applicable, **silent})
        return WorkersContract(profile, self.spec.rejections)

    def make_live(self, directory: Path) -> Live:
        """Start the target in a new box."""
        if isinstance(self.spec, BoardSpec):
            from mutiny.targets.board.live import BoardLive

            return BoardLive(self.spec, directory, self.options)
        return WorkersLive(self.spec, directory, self.options)

    def apart(self) -> Target:
        """A target keeps nothing from run to run."""
        return self

    def healthy(self) -> Target | None:
        """The same target without its plant; None when it has none."""
        if not self.options.plant:
            return None
        return replace(self, options=replace(self.options, plant=""))


def shipped() -> dict[str, Path]:
    """Targets by name: Mutiny's own and those of installed packages."""
    own = Path(str(files("mutiny.targets.files")))
    found = {path.stem: path for path in sorted(own.glob("*.toml"))}
    for entry in entry_points(group=ENTRY_POINTS):
        found[entry.name] = Path(entry.load()())
    return found


def _load(path: Path) -> TargetSpec | BoardSpec:
    """A target file says itself which contract it is for."""
    contract = documents.read_toml(path, "target file")[0].get("contract")
    return BoardSpec.load(path) if contract == "board" else TargetSpec.load(path)


def find_spec(name: str) -> tuple[TargetSpec | BoardSpec, str]:
    """The specification of a target given by name or by file."""
    if name.endswith(".toml") or "/" in name:
        return _load(Path(name)), name
    known = shipped()
    if name not in known:
        raise UsageError(
            f"unknown target {name!r}{nearest(name, list(known))}; "
            f"known: {', '.join(known)}, or a TOML file"
        )
    return _load(known[name]), str(known[name])


def find_program(spec: TargetSpec | BoardSpec, given: str | None) -> Path:
    """The target's program: `--bin`, else beside this Python, else on PATH."""
    if given is not None:
        path = Path(given)
        if not path.exists():
            raise TargetMissing(f"target {spec.name}: the program {given} does not exist")
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


def spoken_again(origin: str, spec: TargetSpec | BoardSpec, program: Path) -> tuple[str, ...]:
    """The options that name a target once more, from any directory: none for one that ships with Mutiny
    and whose program is found without help.
    """
    if not origin:
        return ()  # a plain box: there is no program to name
    known = {str(path) for path in shipped().values()}
    target = () if origin in known else ("--target", str(Path(origin).absolute()))
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
