"""Scenario mode: named lists of operations, one run each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from mutiny.contracts.catalogue import scenarios_about
from mutiny.engine.causes import Causes
from mutiny.engine.code import CodeCoverage
from mutiny.engine.known import Known
from mutiny.engine.loop import Outcome
from mutiny.engine.replay import load
from mutiny.engine.timing import Timings
from mutiny.errors import UsageError, nearest
from mutiny.model.operation import Operation
from mutiny.model.verdict import Verdict, worst
from mutiny.modes.behind import Tried, run_behind
from mutiny.modes.bench import Assignment, Bench
from mutiny.modes.side_by_side import side_by_side
from mutiny.report.junit import Case, case_of
from mutiny.report.summary import summary
from mutiny.targets.kit.profiling import FOLDER as PROFILE


class Shower(Protocol):
    """Whoever shows a run to the user."""

    @property
    def listeners(self) -> tuple[Any, ...]: ...

    def header(self, bench: Bench, title: str, seed: int, kind: str) -> None: ...

    def finish(self, bench: Bench, outcome: Outcome, title: str) -> None: ...

    def total(
        self, records: list[dict[str, Any]], causes: Causes, known: Counter[Known]
    ) -> None: ...

    def minimising(self, bench: Bench) -> Any: ...


def chosen_scenarios(
    bench: Bench, names: Sequence[str], *, everything: bool
) -> dict[str, tuple[Operation, ...]]:
    """The scenarios that the user named; all of them when none was named."""
    contract = bench.target.contract()
    known: Mapping[str, tuple[Operation, ...]] = contract.scenarios
    if everything or not names:
        return dict(known)
    chosen: dict[str, tuple[Operation, ...]] = {}
    for name in names:
        if name in known:
            chosen[name] = known[name]
        elif name.endswith((".json", ".jsonl")):
            chosen[Path(name).stem] = load(
                Path(name), contract.operations, contract=contract.name
            ).operations
        else:
            raise UsageError(_why_not(name, bench.target.name, contract.name, known))
    return chosen


def _why_not(name: str, target: str, contract: str, known: Collection[str]) -> str:
    """Why a scenario cannot be run: no contract knows it, or this target has nothing to show in it."""
    if name in scenarios_about(contract):
        return (
            f"scenario {name!r} is left out for {target}: it lacks what the scenario needs, or does "
            "not promise what it asks; a JSON file with its operations can be given all the same"
        )
    return (
        f"unknown scenario {name!r}{nearest(name, list(known))}; "
        "give one of `mutiny scenarios`, or a JSON file"
    )


def run_one(bench: Bench, assignment: Assignment, show: Shower, kind: str) -> Outcome:
    """Run one assignment and show it."""
    show.header(bench, assignment.title, assignment.seed, kind)
    with show.minimising(bench) as line:
        outcome = bench.run(assignment, show.listeners, watch=line.minimise)
    show.finish(bench, outcome, assignment.title)
    return outcome


def run_scenarios(
    bench: Bench,
    scenarios: Mapping[str, tuple[Operation, ...]],
    seed: int,
    show: Shower,
    *,
    fail_fast: bool,
    rounds: int,
    jobs: int = 1,
    code: CodeCoverage | None = None,
) -> Total:
    """Run them all, `jobs` at a time; `code` hears what each has reached of the target's own code."""
    done: dict[int, tuple[Case, dict[str, Any]]] = {}
    causes, known, timings = Causes(), Counter[Known](), Timings()
    bench = replace(bench, causes=causes)
    failed: list[str] = []

    def pieces() -> Iterator[tuple[tuple[int, Assignment], Callable[[], Tried]]]:
        rows = ((number, *one) for number in range(rounds) for one in scenarios.items())
        for place, (number, name, operations) in enumerate(rows):
            one = Assignment(operations, name, seed + number)
            yield (place, one), partial(run_behind, bench, one, shown)

    def shown(assignment: Assignment, kind: str) -> Outcome:
        return run_one(bench, assignment, show, kind or "Scenario")

    def is_over() -> bool:
        return fail_fast and bool(failed)

    for (place, one), tried in side_by_side(pieces(), jobs, is_over):
        outcome = tried.outcome
        timings.add(outcome.steps)
        if code is not None:
            code.add(one.title, outcome.directory.path / PROFILE)
        known.update(entry for entry, _ in tried.met)
        told = summary(outcome, bench.target.contract(), one.title, one.seed, outcome.replay)
        case = case_of(one.title, bench.target.name, outcome, tried.excuse)
        done[place] = case, {**told, "directory": str(outcome.directory.path)}
        if not tried.only_known:
            causes.add(one.title, outcome)
            failed += [one.title] if outcome.verdict.stops_run else []
    in_order = [done[place] for place in sorted(done)]
    cases, records = [case for case, _ in in_order], [record for _, record in in_order]
    total = Total(cases, records, causes, known, timings)
    show.total(total.records, causes, known)
    return total


@dataclass(frozen=True)
class Total:
    """What many runs came to."""

    cases: Sequence[Case]
    """Each run by its name, in the order of the scenarios; those that ended with a known finding say so."""
    records: list[dict[str, Any]]
    """Their summaries, for programs."""
    causes: Causes
    known: Counter[Known]
    timings: Timings
    """What the commands took."""

    @property
    def verdict(self) -> Verdict:
        """Of everything but the known findings: where nothing else was met, nothing new was."""
        verdicts = [case.verdict for case in self.cases if not case.known]
        return Verdict.SUCCESS if self.known and not verdicts else worst(verdicts)
