"""The acceptance programme: run goals side by side, and hold what came of them against the gates."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mutiny import documents, stopping
from mutiny.engine.loop import Outcome
from mutiny.engine.rundir import RunDirectory
from mutiny.errors import FormatError, UsageError
from mutiny.experiments.goals import load_goals, shipped
from mutiny.kit.experiment import VerifySentence
from mutiny.kit.goals import Gate, Goal, Row, Tried
from mutiny.kit.operations import Reset
from mutiny.model.verdict import Verdict, worst
from mutiny.modes.bench import Assignment, Bench
from mutiny.modes.experiment import instrumented
from mutiny.modes.series import progress_of
from mutiny.report import matrix
from mutiny.report.junit import Case, read_on
from mutiny.system.machine import runs_at_once
from mutiny.targets.kit.requirements import left_out

WITHIN_S = 3.0
TIER_1_SHARE = 0.8
LONGEST_QUARANTINE = datetime.timedelta(days=7)
FILED_WITHIN = datetime.timedelta(hours=24)
MEASURED_AGAIN = 2
"""So often a goal that seems slow is timed once more: a neighbour's load is no regression."""
BASELINE = "baseline.json"
"""Seconds of the goals that ship, beside them; only their ratios count."""
EXIT_CODE = 5
TABLE, HEAD = "quarantine", "[[quarantine]]"


@dataclass(frozen=True)
class Quarantine:
    """A goal whose failures are not counted until a day."""

    goal: str
    owner: str
    reason: str
    hypothesis: str
    seen: datetime.date
    filed: datetime.date
    expires: datetime.date
    place: str = ""
    """The file and line in which it stands."""

    def expired(self, today: datetime.date) -> bool:
        """Is its time over? Then it excuses nothing, and has to be looked at."""
        return today > self.expires

    def problem(self, goals: Collection[str]) -> str:
        """Why such an entry cannot be; empty when it can."""
        words = (self.goal, self.owner, self.reason, self.hypothesis)
        days = (self.seen, self.filed, self.expires)
        if not all(isinstance(word, str) and word.strip() for word in words):
            return "goal, owner, reason and hypothesis are texts that say something"
        if not all(type(day) is datetime.date for day in days):
            return "seen, filed and expires are dates: 2026-01-31"
        if self.goal not in goals:
            return f"there is no goal {self.goal!r}"
        if not self.seen <= self.filed <= self.expires:
            return f"the quarantine of {self.goal}: first it is seen, then filed, then it expires"
        if self.filed - self.seen > FILED_WITHIN:
            told = f"it was filed later than 24 h after it was seen ({self.seen})"
            return f"the quarantine of {self.goal}: {told}"
        if self.expires - self.filed > LONGEST_QUARANTINE:
            told = f"it lasts longer than 7 days (until {self.expires})"
            return f"the quarantine of {self.goal}: {told}"
        return ""


def load_quarantine(path: Path | None, known: Iterable[str]) -> list[Quarantine]:
    """The entries `[[quarantine]]` of a TOML file; one that is wrong is refused."""
    if path is None:
        return []
    data, text = documents.read_toml(path, "quarantine file")
    goals = set(known)
    found: list[Quarantine] = []
    problems = [f"unknown {key!r}: entries begin with {HEAD}" for key in data if key != TABLE]
    rows = data.get(TABLE, [])
    heads = [line.partition("#")[0].strip() == HEAD for line in text.splitlines()]
    lines = [number for number, is_head in enumerate(heads, 1) if is_head]
    if not isinstance(rows, list) or len(rows) != len(lines):  # an entry would be left out
        raise FormatError(str(path), [*problems, f"every entry begins with a line {HEAD}"])
    for line, row in zip(lines, rows, strict=True):
        try:
            entry = Quarantine(**{**row, "place": f"{path}:{line}"})
        except TypeError as error:
            problems.append(f"line {line}: quarantine: {str(error).partition(') ')[2]}")
            continue
        told = entry.problem(goals)
        if not told and entry.goal in (one.goal for one in found):
            told = f"there is an entry for {entry.goal} already"
        if told:
            problems.append(f"line {line}: {told}")
        found.append(entry)
    if problems:
        raise FormatError(str(path), problems)
    return found


@dataclass(frozen=True)
class Wish:
    """What is asked of the programme."""

    seed: int = 0
    goals: Path | None = None
    ids: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    flake_runs: int = 1
    quarantine: Path | None = None
    baseline: Path | None = None
    slower: float = 200.0
    jobs: int | None = None


@dataclass(frozen=True)
class Done:
    """What became of it."""

    rows: tuple[Row, ...]
    gates: tuple[Gate, ...]
    found: Mapping[str, Any]
    directory: Path

    @property
    def passed(self) -> bool:
        """Did all gates pass?"""
        return all(gate.passed for gate in self.gates)


def programme(
    bench: Bench, wish: Wish, watch: Callable[[Goal, Tried], None] = lambda _goal, _tried: None
) -> Done:
    """Run the goals, and write the matrix and what became of the gates."""
    contract = bench.target.spec.contract
    known = load_goals(wish.goals or shipped() / contract, contract)
    picked = chosen(known, wish.ids, wish.layers)
    today = datetime.datetime.now(datetime.UTC).date()
    entries = load_quarantine(wish.quarantine, [goal.id for goal in known])
    over = [entry for entry in entries if entry.expired(today)]
    before = _baseline(wish, shipped() / contract)
    directory = RunDirectory.create(bench.root)
    inner = _below(bench, directory)
    jobs = wish.jobs or runs_at_once()
    progress = progress_of(
        bench, directory.path, "acceptance", f"{len(picked)} goals", "runs", wish.seed
    )
    options = bench.target.options
    lacking = left_out({goal.id: goal.steps for goal in picked}, options.technique)
    able = [goal for goal in picked if goal.id not in lacking]
    runs = sum(wish.flake_runs if goal.tier == 0 else 1 for goal in able)
    counts: Counter[str] = Counter()
    progress.tell(0, runs)

    def seen(goal: Goal, one: Tried) -> None:
        counts[one.verdict] += 1
        progress.tell(counts.total(), runs, goal.id, counts)
        watch(goal, one)

    tried = try_goals(inner, able, wish.seed, jobs=jobs, flake_runs=wish.flake_runs, watch=seen)
    every = with_skipped(picked, tried, lacking)
    rows = with_quarantine(every, [entry for entry in entries if entry not in over])
    late = None
    if before is not None:
        rows, late = _remeasured(inner, rows, before, wish)
    held = gates(rows, wish.flake_runs, late, selected=bool(wish.ids or wish.layers))
    if entries:
        held.append(quarantine_gate(entries, over))
    facts = {"target": bench.target.name, "seed": wish.seed, "goals": len(rows)}
    found = matrix.as_json(rows, held)
    directory.write_json(directory.path / "gates.json", found)
    for name, text in (
        ("matrix.md", matrix.markdown(rows, held, facts)),
        ("matrix.html", matrix.html(rows, held, facts)),
    ):
        (directory.path / name).write_text(text, encoding="utf-8")
    done = Done(tuple(rows), tuple(held), found, directory.path)
    failed = [gate.name for gate in held if not gate.passed]
    note = f"failed: {', '.join(failed)}" if failed else f"{len(held)} gates passed"
    verdict = Verdict.BUG if failed else Verdict.SUCCESS
    progress.tell(counts.total(), runs, note, counts, verdict=verdict.value)
    return done


def chosen(goals: Sequence[Goal], ids: Sequence[str], layers: Sequence[str]) -> list[Goal]:
    """The goals that were asked for."""
    unknown = [name for name in ids if name not in {goal.id for goal in goals}]
    if unknown:
        known = ", ".join(goal.id for goal in goals)
        raise UsageError(f"there is no goal {unknown[0]!r}; known: {known}")
    found = [
        goal
        for goal in goals
        if (not ids or goal.id in ids) and (not layers or set(goal.layers) & set(layers))
    ]
    if not found:
        raise UsageError(f"no goal is in the layer {' or '.join(layers)}")
    return found


# --- running --------------------------------------------------------------------------------------------


def try_goals(
    bench: Bench,
    goals: Sequence[Goal],
    seed: int,
    *,
    jobs: int = 1,
    flake_runs: int = 1,
    watch: Callable[[Goal, Tried], None] = lambda _goal, _tried: None,
) -> list[Row]:
    """Run every goal; those of tier 0 as often as the flake gate wants, in boxes side by side."""
    work = [
        (goal, seed + number)
        for goal in goals
        for number in range(flake_runs if goal.tier == 0 else 1)
    ]
    found: dict[str, list[Tried]] = {goal.id: [] for goal in goals}

    def one(item: tuple[Goal, int]) -> None:
        if stopping.asked():
            return
        goal, its_seed = item
        tried = try_goal(bench, goal, its_seed)
        found[goal.id].append(tried)
        watch(goal, tried)

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for _ in pool.map(one, work):
            pass
    return [Row(goal, tuple(found[goal.id])) for goal in goals]


def try_goal(bench: Bench, goal: Goal, seed: int) -> Tried:
    """One run of a goal in a box of its own."""
    asked = [VerifySentence(one.sentence, WITHIN_S) for one in goal.assertions]
    operations = (Reset(), *goal.steps, *asked)
    fitted = bench.target.contract().fit(operations)
    if fitted.changes:
        return Tried("inconclusive", 0, "", f"the target lacks a word: {fitted.changes[0]}")
    seeing = instrumented(bench)
    outcome = seeing.run(Assignment(operations, goal.id, seed, "accept"))
    evaluated = sum(
        isinstance(step.operation, VerifySentence) and step.verdict is Verdict.SUCCESS
        for step in outcome.steps
    )
    if outcome.verdict is Verdict.SUCCESS:
        outcome.directory.discard()
        return Tried("success", evaluated, seconds=outcome.duration_s)
    return Tried(
        outcome.verdict.value,
        evaluated,
        outcome.rule or "",
        _message(outcome),
        str(outcome.directory.path),
        outcome.duration_s,
    )


def case_of(row: Row, target: str) -> Case:
    """A goal as a test case; one that is excused or could not be asked is skipped."""
    verdict = worst(Verdict(one.verdict) for one in row.runs)
    excuse = row.skipped or row.quarantined
    first = next((one for one in row.runs if one.verdict == verdict.value), None)
    said, rule = ("", "") if first is None else (first.message, first.rule)
    where = (
        "" if first is None or not first.directory else read_on(RunDirectory(Path(first.directory)))
    )
    if excuse or (row.status == "not covered" and not verdict.stops_run):
        verdict, said = Verdict.INCONCLUSIVE, excuse or "not all of it was asked"
    seconds = sum(one.seconds for one in row.runs)
    return Case(row.goal.id, f"{target}: goals", verdict, seconds, said, rule, where)


def _message(outcome: Outcome) -> str:
    step = outcome.failed_step
    if step is None:
        return outcome.reason
    return step.violations[0].message if step.violations else outcome.reason


def with_skipped(
    goals: Sequence[Goal], rows: Sequence[Row], lacking: Mapping[str, str]
) -> list[Row]:
    """All goals in their order; those that this machine cannot try say what it lacks."""
    known = {row.goal.id: row for row in rows}
    return [
        known.get(goal.id) or Row(goal, (), skipped=f"this machine lacks {lacking[goal.id]}")
        for goal in goals
    ]


def with_quarantine(rows: Sequence[Row], entries: Sequence[Quarantine]) -> list[Row]:
    """Rows whose failures are excused for now say so."""
    reasons = {one.goal: one for one in entries}
    return [
        replace(row, quarantined=f"{reasons[row.goal.id].reason} ({reasons[row.goal.id].owner})")
        if row.goal.id in reasons
        else row
        for row in rows
    ]


def _below(bench: Bench, directory: RunDirectory) -> Bench:
    """The same bench; its runs lie in the directory of the programme."""
    root = directory.path / "goals"
    root.mkdir()
    return replace(bench, root=root)


def _baseline(wish: Wish, beside: Path) -> dict[str, float] | None:
    """What times are held against: a file that was named; for all shipped goals the one beside them."""
    ours = wish.goals is None and not wish.ids and not wish.layers
    path = wish.baseline
    if path is None and ours and (beside / BASELINE).is_file():
        path = beside / BASELINE
    return None if path is None else _seconds(documents.read_json(path, "baseline"), path)


def _seconds(data: Any, path: Path) -> dict[str, float]:
    """Seconds by goal, from an earlier `gates.json`."""
    try:
        found = {str(one["id"]): float(one["seconds"]) for one in data["goals"]}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{path}: the baseline is no gates.json: {error!r}") from None
    wrong = [name for name, took in found.items() if not 0 <= took < math.inf]
    if wrong:
        raise UsageError(f"{path}: goal {wrong[0]} took {found[wrong[0]]} seconds, which cannot be")
    return found


# --- gates ----------------------------------------------------------------------------------------------


def gates(
    rows: Sequence[Row],
    flake_runs: int,
    slower: Mapping[str, float] | None = None,
    *,
    selected: bool = False,
) -> list[Gate]:
    """Every gate with what stands in its way; `selected`: only those that the chosen goals are about."""
    counted = [row for row in rows if not row.quarantined and not (row.skipped and row.goal.tier)]
    safety = [row for row in counted if row.goal.tier == 0]
    core = [row for row in counted if row.goal.tier == 1]
    found = [
        gate
        for gate, asked in (
            (_all_green("no-merge safety", safety), safety),
            (_tier_1(core), core),
            (_all_green("resume correctness", _of(counted, "resume")), _of(counted, "resume")),
            (_all_green("artefact schema", _of(counted, "logs")), _of(counted, "logs")),
            (_flakes(safety, flake_runs), safety),
            (_all_green("clean-up and idempotency", _of(counted, "clean")), _of(counted, "clean")),
        )
        if asked or not selected
    ]
    others = [row for row in counted if row.goal.tier == 2]
    if selected and others and not found:
        found.append(_all_green("chosen goals", others))
    if rows and all(row.skipped for row in rows):
        found.append(Gate("chosen goals", False, f"none could be tried: {rows[0].skipped}"))
    if slower is not None:
        late = [f"{name} ({ratio:.2f} times)" for name, ratio in slower.items()]
        text = (
            f"slower than the baseline allows: {', '.join(late)}" if late else "as fast as before"
        )
        found.append(Gate("performance", not late, text, tuple(slower)))
    return found


def _of(rows: Sequence[Row], scope: str) -> list[Row]:
    return [row for row in rows if scope in row.goal.scope]


def _all_green(name: str, rows: Sequence[Row]) -> Gate:
    wrong = [row for row in rows if row.status != "green"]
    if not rows:
        return Gate(name, False, "no goal of this gate was run")
    if wrong:
        first = wrong[0]
        told = f"{len(wrong)} of {len(rows)} are not green; {first.goal.id} is {first.status}"
        return Gate(name, False, told, tuple(row.goal.id for row in wrong))
    return Gate(name, True, f"{len(rows)} goals are covered and green")


def _tier_1(rows: Sequence[Row]) -> Gate:
    green = sum(row.status == "green" for row in rows)
    share = green / len(rows) if rows else 0.0
    wrong = tuple(row.goal.id for row in rows if row.status != "green")
    text = f"{green} of {len(rows)} goals of tier 1 are green; {TIER_1_SHARE:.0%} are wanted"
    return Gate("tier 1", bool(rows) and share >= TIER_1_SHARE, text, wrong)


def _flakes(rows: Sequence[Row], flake_runs: int) -> Gate:
    wrong = tuple(row.goal.id for row in rows if row.failures)
    runs = sum(len(row.runs) for row in rows)
    bound = max((row.flake_bound for row in rows), default=1.0)
    text = (
        f"{len(wrong)} goals of tier 0 have failed in {runs} runs ({flake_runs} each); "
        f"with 95 % confidence each fails less often than {bound:.1%}"
    )
    return Gate("flakes", bool(rows) and not wrong, text, wrong)


def quarantine_gate(entries: Sequence[Quarantine], over: Sequence[Quarantine]) -> Gate:
    """Fails when the time of an entry is over."""
    told = [
        f"{one.place}: the quarantine of {one.goal} has expired on {one.expires}" for one in over
    ]
    text = "; ".join(told) if over else f"none of {len(entries)} entries has expired"
    return Gate("quarantine", not over, text, tuple(one.goal for one in over))


def _remeasured(
    bench: Bench, rows: Sequence[Row], before: Mapping[str, float], wish: Wish
) -> tuple[list[Row], dict[str, float]]:
    """The rows, and the goals that are slower than before: each is timed again before it is told."""
    found = list(rows)
    for _ in range(MEASURED_AGAIN):
        late = regressions(found, before, wish.slower)
        for place, row in enumerate(found):
            if row.goal.id in late and not stopping.asked():
                more = try_goal(bench, row.goal, wish.seed)
                found[place] = replace(row, runs=(*row.runs, more))
    return found, regressions(found, before, wish.slower)


def regressions(
    rows: Sequence[Row], baseline: Mapping[str, Any], most_percent: float
) -> dict[str, float]:
    """Goals that take longer than their share of the whole did, by more than so many percent.

    Shares, not seconds: the same baseline holds on a slow machine.
    """
    now = {row.goal.id: min(one.seconds for one in row.runs) for row in rows if row.runs}
    both = {name: float(baseline[name]) for name in now if name in baseline}
    if not both or not sum(both.values()):
        return {}
    pace = sum(now[name] for name in both) / sum(both.values())
    ratios = {name: now[name] / (was * pace) for name, was in both.items() if was}
    return {name: ratio for name, ratio in ratios.items() if ratio > 1 + most_percent / 100}
