"""A campaign's matrix as data: targets times seeds, scenarios and sweeps, checked before anything runs."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mutiny import documents
from mutiny.codec import decode
from mutiny.contracts.catalogue import all_rules, default_for
from mutiny.engine.campaigns import Job
from mutiny.engine.known import load_known
from mutiny.errors import FormatError, UsageError, nearest
from mutiny.model.operation import Operation
from mutiny.modes.sweep import KINDS, split
from mutiny.targets.registry import find_spec, own

MOST_RUNS = 100_000
EVERY = "all"


@dataclass(frozen=True)
class Matrix:
    """What a campaign file says; the options of `mutiny campaign` say the same."""

    title: str = ""
    targets: tuple[str, ...] = ()
    programs: Mapping[str, str] = field(default_factory=dict)
    """The program of a target, where it is not on PATH."""
    plants: tuple[str, ...] = ()
    """Bugs to plant into longboat, each a column of its own; '' for none."""
    seeds: int = 0
    """Explorations: so many seeds for each target ..."""
    first_seed: int = 1
    ops: int = 30
    """... of so many operations."""
    scenarios: tuple[str, ...] = ()
    """Names, or `all`."""
    sweeps: tuple[str, ...] = ()
    """Each `KIND:SCENARIO:OPERATION`, perhaps with a worker or a number behind the operation."""
    points: int = 0
    """At most so many points of a sweep; 0: all."""
    known: str = ""
    """A file of known findings."""

    def problems(self) -> Iterator[str]:
        """Numbers that cannot be meant."""
        for name, least in (("seeds", 0), ("first_seed", 0), ("ops", 1), ("points", 0)):
            if not least <= getattr(self, name) <= (10_000 if name == "ops" else MOST_RUNS):
                yield f"{name}: {getattr(self, name)} is out of range"


def read_matrix(path: Path) -> Matrix:
    """A campaign file."""
    data, _ = documents.read_toml(path, "campaign file")
    matrix = decode(Matrix, data, where=str(path))
    problems = list(matrix.problems())
    if problems:
        raise FormatError(str(path), problems)
    return matrix


def jobs_of(matrix: Matrix) -> tuple[Job, ...]:
    """All runs of a matrix, those of different targets by turns; `UsageError` for what cannot be run."""
    if matrix.known:
        today = datetime.datetime.now(datetime.UTC).date()
        load_known(Path(matrix.known), today, all_rules())
    targets = matrix.targets or (default_for("run").default_target,)
    for name in matrix.programs:
        if name not in targets:
            raise UsageError(f"programs: {name!r} is none of the targets{nearest(name, targets)}")
    columns = [
        list(_of_target(matrix, target, plant))
        for target in targets
        for plant in matrix.plants or ("",)
    ]
    longest = max(len(column) for column in columns)
    jobs = tuple(
        column[place] for place in range(longest) for column in columns if place < len(column)
    )
    if not jobs:
        raise UsageError("nothing to run: give seeds, scenarios or sweeps")
    if len(jobs) > MOST_RUNS:
        raise UsageError(f"{len(jobs)} runs are more than {MOST_RUNS}")
    if len({job.key for job in jobs}) < len(jobs):
        raise UsageError("something is named twice: each target, plant, scenario and sweep once")
    return jobs


def _of_target(matrix: Matrix, target: str, plant: str) -> Iterator[Job]:
    spec, origin = find_spec(target)
    name = target if origin in map(str, own().values()) else str(Path(origin).resolve())
    known: Mapping[str, tuple[Operation, ...]] = spec.make_contract("double").scenarios
    common = ["--target", name]
    if target in matrix.programs:
        common += ["--bin", str(Path(matrix.programs[target]).resolve())]
    common += ["--plant", plant] if plant else []
    told = ["--known", str(Path(matrix.known).resolve())] if matrix.known else []
    head = f"{target}+{plant}" if plant else target
    for sweep in matrix.sweeps:
        kind, scenario, at = _swept(sweep, known)
        limit = ["--points", str(matrix.points)] if matrix.points else []
        words = ["sweep", kind, *common, "--scenario", scenario, "--at", at, "--jobs", "1", *limit]
        yield Job(f"{head} {kind} of {at} in {scenario}", target, (*words, *told))
    for scenario in _chosen(matrix.scenarios, known):
        words = ["run", *common, "--scenario", scenario, "--seed", str(matrix.first_seed)]
        yield Job(f"{head} {scenario}", target, (*words, "--no-minimise", *told))
    for seed in range(matrix.first_seed, matrix.first_seed + matrix.seeds):
        words = ["explore", *common, "--seed", str(seed), "--ops", str(matrix.ops), "--jobs", "1"]
        yield Job(f"{head} seed {seed}", target, (*words, "--no-minimise", *told))


def _chosen(names: Sequence[str], known: Mapping[str, tuple[Operation, ...]]) -> Sequence[str]:
    if EVERY in names:
        return list(known)
    for name in names:
        if name not in known:
            raise UsageError(f"unknown scenario {name!r}{nearest(name, list(known))}")
    return names


def _swept(text: str, known: Mapping[str, tuple[Operation, ...]]) -> tuple[str, str, str]:
    kind, _, rest = text.partition(":")
    scenario, _, at = rest.partition(":")
    if kind not in KINDS or not at:
        hint = nearest(kind, KINDS) if kind not in KINDS else ""
        raise UsageError(f"a sweep is KIND:SCENARIO:OPERATION, not {text!r}{hint}")
    (name,) = _chosen((scenario,), known)
    split(known[name], at)
    return kind, scenario, at
