"""Replay files: a journal, a `minimal_replay.json`, or a bare list of operations.

    {"format": 1, "contract": CONTRACT, "target": TARGET, "plant": "", "seed": 7,
     "expect": RULE, "isolation": "bwrap", "techniques": ["SIGKILL by handle"],
     "reproduced": {"failed": 3, "tries": 3}, "minimised": "finished",
     "operations": [{"type": "Reset", "args": {}}, ...]}

A bare list `[{type, args}, ...]` is the form in which a user may write a scenario. What cannot be
repeated faithfully (a newer format, another contract, an unknown operation) is refused, never
weakened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutiny import documents
from mutiny.codec import Registry, decode, decode_operation
from mutiny.engine import journal
from mutiny.engine.minimise import Pass
from mutiny.engine.rundir import FORMAT
from mutiny.errors import FormatError, NotReproducible, UsageError
from mutiny.kit.rules import canonical
from mutiny.model.forms import Minimised, ReplayForm, StandingForm, TriesForm
from mutiny.model.operation import Operation

MINIMISED = {
    "finished": "minimising finished",
    "budget": "minimising ran out of its budget: a shorter one may exist",
    "no": "it was not minimised",
}
"""How far minimising came, and how that is said."""


@dataclass(frozen=True)
class Tries:
    """How often a sequence failed in the same way, out of how many runs of it."""

    failed: int
    tries: int

    def __post_init__(self) -> None:
        if not 0 <= self.failed <= self.tries:
            raise ValueError(f"{self.failed} of {self.tries} tries cannot be")

    def __str__(self) -> str:
        return f"{self.failed} of {self.tries} tries"

    def as_json(self) -> TriesForm:
        """As it is written."""
        return {"failed": self.failed, "tries": self.tries}


@dataclass(frozen=True)
class Replay:
    """A sequence together with what it takes to repeat it."""

    operations: tuple[Operation, ...]
    contract: str
    target: str | None = None
    plant: str = ""
    seed: int = 0
    expect: str | None = None
    isolation: str | None = None
    techniques: tuple[str, ...] = ()
    """How its faults were done when it was found; a machine that lacks one of them refuses it."""
    reproduced: Tries | None = None
    """How often it failed again; None: nobody tried."""
    without_plant: Tries | None = None
    """The same without the plant, where there is one."""
    minimised: Minimised | None = None
    """How far minimising came, a word of `MINIMISED`; None: the file does not say."""
    passes: Mapping[str, Pass] = field(default_factory=dict)
    """What each pass of minimising took and won, by name."""

    @property
    def vouched(self) -> bool:
        """Has it shown the failure again? What never did is no reproduction."""
        return self.reproduced is None or self.reproduced.failed > 0

    @property
    def title(self) -> str:
        """What it may be called."""
        return "Minimal Replay" if self.vouched else "Replay of the Whole Run"

    @property
    def standing(self) -> str:
        """In one line: how sure it is, and how short."""
        parts = []
        if not self.vouched:
            parts.append(f"no reproduction: failed again in {self.reproduced}")
        elif self.reproduced is not None:
            parts.append(f"failed again in {self.reproduced}")
        if self.without_plant is not None:
            parts.append(f"without the plant in {self.without_plant}")
        if self.minimised is not None:
            parts.append(MINIMISED[self.minimised])
        return "; ".join(parts)

    def of(self, whole: int) -> str:
        """The same with its length, and that of the run that it comes from."""
        return f"{len(self.operations)} of {whole} operations; {self.standing}"

    def as_json(self) -> ReplayForm:
        """The form of `minimal_replay.json`."""
        return {
            "format": FORMAT,
            "contract": self.contract,
            "target": self.target,
            "plant": self.plant,
            "seed": self.seed,
            "expect": self.expect,
            "isolation": self.isolation,
            "techniques": list(self.techniques),
            **self.standing_as_json(),
            "operations": [{**operation.as_json()} for operation in self.operations],
        }

    def standing_as_json(self) -> StandingForm:
        """How sure it is and how far minimising came, where anybody knows."""
        told: StandingForm = {}
        if self.reproduced is not None:
            told["reproduced"] = self.reproduced.as_json()
        if self.without_plant is not None:
            told["without_plant"] = self.without_plant.as_json()
        if self.minimised is not None:
            told["minimised"] = self.minimised
        if self.passes:
            told["passes"] = {
                name: {"trials": one.trials, "won": one.won} for name, one in self.passes.items()
            }
        return told


@dataclass(frozen=True)
class _Document:
    """A replay file as it is written."""

    format: int
    operations: Any
    contract: str | None = None
    target: str | None = None
    plant: str = ""
    seed: int = 0
    expect: str | None = None
    isolation: str | None = None
    techniques: tuple[str, ...] = ()
    reproduced: Tries | None = None
    without_plant: Tries | None = None
    minimised: str | None = None
    passes: Mapping[str, Pass] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.minimised is not None and self.minimised not in MINIMISED:
            known = ", ".join(MINIMISED)
            raise ValueError(f"minimised {self.minimised!r} is none of {known}")


@dataclass(frozen=True)
class _Origin:
    """What a journal's plan says about where it comes from."""

    contract: str | None = None
    target: str | None = None
    plant: str = ""
    seed: int = 0


def load(path: Path, registry: Registry, contract: str) -> Replay:
    """Read any of the three forms; a directory means the run in it. What names no contract is for the given
    one.
    """
    if path.is_dir():
        replay = _load_run(path, registry, contract)
    elif path.name.endswith(".jsonl"):
        replay = _from_journal(path, registry, contract)
    else:
        replay = _load_json(path, registry, contract)
    if replay.contract != contract:
        raise NotReproducible(
            f"{path}: it is for the contract {replay.contract!r}; this Mutiny replays {contract!r}"
        )
    return replay


def contract_of(path: Path) -> str | None:
    """The contract that a run, a journal or a replay file is for; None when nothing says it."""
    if path.is_dir() or path.name.endswith(".jsonl"):
        found = _plan_of(path / "operations.jsonl" if path.is_dir() else path)
    else:
        document = documents.read_json(path, "replay file")
        found = document if isinstance(document, dict) else {}
    contract = found.get("contract")
    return contract if isinstance(contract, str) else None


def _load_run(path: Path, registry: Registry, contract: str) -> Replay:
    for name in ("minimal_replay.json", "operations.jsonl"):
        if (path / name).exists():
            read = _from_journal if name.endswith(".jsonl") else _load_json
            return read(path / name, registry, contract)
    raise UsageError(f"{path}: no minimal_replay.json and no operations.jsonl in this directory")


def _from_journal(path: Path, registry: Registry, contract: str) -> Replay:
    operations = tuple(journal.read_operations(path, registry))
    if not operations:
        raise UsageError(f"{path}: the journal has no operation")
    plan = _plan_of(path)
    known = {key: plan[key] for key in ("contract", "target", "plant", "seed") if key in plan}
    origin = decode(_Origin, known, where=str(path.parent / "plan.json"))
    box = plan.get("box")
    technique = box.get("technique") if isinstance(box, dict) else None
    return Replay(
        operations,
        origin.contract or contract,
        origin.target,
        origin.plant,
        origin.seed,
        _broken_rule(path),
        technique if isinstance(technique, str) else None,
        _techniques(path),
    )


def _techniques(path: Path) -> tuple[str, ...]:
    """How the faults of a journal were done, each once."""
    found = (record.get("technique") for _, record in journal.numbered_lines(path))
    return tuple(dict.fromkeys(one for one in found if isinstance(one, str)))


def _broken_rule(path: Path) -> str | None:
    """The first rule that the journal tells of."""
    for number, record in journal.numbered_lines(path):
        violations = record.get("violations") or []
        if not isinstance(violations, list):
            raise FormatError(str(path), [f"line {number}: violations: expected a list"])
        for violation in violations:
            rule = violation.get("rule") if isinstance(violation, dict) else None
            if not isinstance(rule, str):
                raise FormatError(str(path), [f"line {number}: a violation names no rule"])
            return canonical(rule)
    return None


def _plan_of(path: Path) -> dict[str, Any]:
    """The plan beside a journal; a journal that was taken elsewhere has none."""
    plan = path.parent / "plan.json"
    if not plan.exists():
        return {}
    data = documents.read_json(plan, "plan")
    if not isinstance(data, dict):
        raise FormatError(str(plan), ["expected an object"])
    problem = journal.version_problem(data.get("format", FORMAT))
    if problem is not None:
        raise FormatError(str(plan), [problem])
    return data


def _load_json(path: Path, registry: Registry, contract: str) -> Replay:
    data = documents.read_json(path, "replay file")
    if isinstance(data, list):
        return Replay(_operations(data, registry, path), contract)
    if not isinstance(data, dict):
        raise FormatError(str(path), ["expected an object or a list of operations"])
    problem = journal.version_problem(data["format"]) if "format" in data else None
    if problem is not None:
        raise FormatError(str(path), [problem])
    document = decode(_Document, data, where=str(path))
    return Replay(
        _operations(document.operations, registry, path),
        document.contract or contract,
        document.target,
        document.plant,
        document.seed,
        None if document.expect is None else canonical(document.expect),
        document.isolation,
        document.techniques,
        document.reproduced,
        document.without_plant,
        document.minimised,
        document.passes,
    )


def _operations(data: object, registry: Registry, path: Path) -> tuple[Operation, ...]:
    if not isinstance(data, list) or not data:
        raise FormatError(str(path), ["operations: expected a list with at least one operation"])
    problems: list[str] = []
    operations: list[Operation] = []
    for index, item in enumerate(data, 1):
        try:
            operations.append(decode_operation(item, registry, where=f"operation {index}"))
        except FormatError as error:
            problems.extend(f"operation {index}: {problem}" for problem in error.problems)
    if problems:
        raise FormatError(str(path), problems)
    return tuple(operations)


def python_form(operations: Sequence[Operation], *, mark_last: bool) -> str:
    """The sequence for people: one call a line, the last one marked."""
    lines = [str(operation) for operation in operations]
    if mark_last and lines:
        lines[-1] += "  # <- Error occurs here"
    return "\n".join(lines)
