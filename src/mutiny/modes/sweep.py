"""Sweeps: one operation broken at every point.

The scenario runs up to the operation. Then, for a crash sweep, the operation runs once under the
system-call engine and the box's files are kept before each of its state-changing calls: one pass
gives every crash state, and each of them is recovered by the target's own means in a box of its own
and judged with all rules and the ledger. Errors and torn writes need a run a point. The first point
of each cause is run once more as an ordinary sequence with its exact point, so it has a report, a
replay and a journal like any other. Behind a known finding the sweep goes on.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import MISSING, fields, replace
from functools import partial
from typing import Any

from mutiny import stopping
from mutiny.engine.causes import Cause, cause_of, kind_of
from mutiny.engine.journal import Step
from mutiny.engine.known import Known, without_trigger
from mutiny.engine.loop import Outcome
from mutiny.engine.rundir import RunDirectory
from mutiny.engine.signature import names_in
from mutiny.engine.sweeping import Point, Sweep
from mutiny.errors import UsageError, nearest
from mutiny.kit import operations as op
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict, first_of_worst
from mutiny.modes.behind import Tried, run_behind
from mutiny.modes.bench import Assignment, Bench
from mutiny.modes.sweep_ways import ways_on
from mutiny.report.story import stops_of, turns_of
from mutiny.syscalls import tables
from mutiny.targets.kit.crash_states import KeptStates

TRIES = 4
MOST_KNOWN = 8
"""So many known findings before the operation are passed by."""
MOST_CHANGES = 200
"""So many changes of files are watched for, when a daemon dies after each."""
MOST_SHOWN = 12
"""So many causes are run again for their replays."""
KINDS = ("crash", "errno", "torn", "fsync", "daemon", "preempt")


def split(operations: Sequence[Operation], at: str) -> tuple[tuple[Operation, ...], Operation]:
    """The operations before the one that is swept, and that one. `at` is a type, perhaps with a
    worker (`Start:beta`) and with a number when there are several (`Doctor#2`).
    """
    place, _, number = at.partition("#")
    name, _, worker = place.partition(":")
    left = int(number) if number.isdigit() else 1
    for index, operation in enumerate(operations):
        if operation.type == name and worker in ("", getattr(operation, "worker", "")):
            left -= 1
            if left == 0:
                return tuple(operations[:index]), operation
    known = dict.fromkeys(operation.type for operation in operations)
    hint = nearest(name, list(known))
    raise UsageError(f"the scenario has no operation {at!r}{hint}; it has {', '.join(known)}")


def rival(
    operations: Sequence[Operation], against: str, known: Mapping[str, type[Operation]]
) -> Operation:
    """What a preempt sweep runs against: an operation of the scenario, or what somebody else does
    meanwhile and needs no arguments (`MoveSource`: a commit to the default branch).
    """
    made = known.get(against)
    said = any(item.type == against for item in operations)
    if made is None or made.kind is not Kind.FAULT or said:
        return split(operations, against)[1]
    if any(one.default is MISSING and one.default_factory is MISSING for one in fields(made)):
        raise UsageError(f"{against} needs arguments: put it into a scenario")
    return made()


Watch = Callable[[int, int, Sequence[Point]], None]


class Sweeper:
    """Sweeps one operation of one scenario."""

    def __init__(
        self,
        bench: Bench,
        prefix: Sequence[Operation],
        at: Operation,
        *,
        jobs: int,
        against: Operation | None = None,
        until_bug: bool = False,
    ) -> None:
        self._bench = bench
        self._together = at.operations if isinstance(at, op.Parallel) else (at, against or at)
        self._prefix = tuple(prefix)
        self.at = at
        self._jobs = jobs
        self._until_bug = until_bug
        self._recovery = bench.target.contract().recovery
        self._meanwhile = bench.target.contract().meanwhile(at)

    def run(self, kind: str, choices: Sequence[str], limit: int | None, watch: Watch) -> Sweep:
        """Trace once, judge every point, and run one of each cause again as an ordinary sequence."""
        sweep = Sweep(kind, self._bench.target.name, self.at)
        check_choices(kind, choices)
        if kind != "preempt" and isinstance(self.at, op.Parallel):
            raise UsageError(f"a {kind} sweep breaks one command; {self.at.type} has several")
        if kind == "preempt":
            self._schedules(sweep, limit, watch)
        elif kind in ("crash", "fsync"):
            self._one_pass(sweep, "files" if kind == "crash" else "synced", limit, watch)
        elif kind == "daemon":
            self._deaths(sweep, limit, watch)
        else:
            self._point_by_point(sweep, kind, choices, limit, watch)
        self._show(sweep)
        return sweep

    def _show(self, sweep: Sweep) -> None:
        """One ordinary run for each cause, the first bug's last: it is the one that is looked at."""
        new = [point for point in sweep.points if not point.known]
        bug = first_of_worst(new, lambda point: point.verdict)
        firsts = [points[0] for points in sweep.by_cause().values()]
        others = [point for point in firsts if bug is None or point.cause != bug.cause]
        chosen = [*others[: MOST_SHOWN - 1], *([] if bug is None else [bug])]
        title = f"sweep {sweep.kind} at {self.at.type}"
        for point in stopping.unless_asked(chosen):
            if point.cause is None:
                continue
            outcome = self._bench.run(Assignment(point.sequence, title, 1, "sweep"))
            is_known = self._relabel(sweep, point.cause, outcome)
            if point is bug and not is_known:
                sweep.first_bug = outcome

    def _relabel(self, sweep: Sweep, cause: Cause, outcome: Outcome) -> bool:
        """Give points the cause that the ordinary run of one of them has: it is the one that others see.

        Tells whether that one is known.
        """
        found = cause_of(outcome)
        changes: dict[str, Any] = {}
        if found is None or found.failure.rule != cause.failure.rule:
            found = cause  # it did not show again
        elif entry := self._bench.known.entry_for(outcome):
            changes = {"known": entry.reason, "met": (entry,)}
        sweep.shown.setdefault(found, outcome)
        sweep.points = [
            replace(point, cause=found, **changes)
            if point.cause == cause and not point.known
            else point
            for point in sweep.points
        ]
        return bool(changes)

    def sequence(self, point: Operation) -> tuple[Operation, ...]:
        """The whole run that goes through one point."""
        world = point.ends_world
        lied = isinstance(point, op.TearAt) and point.mode == "lie"
        return (*self._prefix, point, *self._recovery(self.at, world_ended=world, damaged=lied))

    def _traced(self, sweep: Sweep, trace: Operation) -> Outcome | None:
        """The unbroken run up to the operation, which is watched; None when it did not pass.

        A known finding before the operation is passed by: the scenario is swept without its step.
        """
        while True:
            directory = RunDirectory.create(self._bench.root, latest=False)
            started = time.monotonic()
            outcome = self._bench.engine(directory, 1).run((*self._prefix, trace))
            sweep.trace_s = time.monotonic() - started
            if outcome.verdict is Verdict.SUCCESS:
                return outcome
            directory.discard()  # a bug is run again, with a report
            known = self._bench.known.entry_for(outcome)
            rest = None if known is None else without_trigger(outcome, (*self._prefix, trace))
            if known is not None:
                sweep.passed_by[known] += 1
            if rest is None or sweep.passed_by.total() >= MOST_KNOWN or stopping.asked():
                sequence = self.sequence(self.at)
                sweep.points.append(_failed_trace(self.at, outcome, known, sequence))
                return None
            self._prefix = rest[:-1]

    # --- one pass ------------------------------------------------------------------------------

    def _one_pass(self, sweep: Sweep, keep: str, limit: int | None, watch: Watch) -> None:
        outcome = self._traced(sweep, op.Trace(self.at, keep))
        if outcome is None:
            return
        result = outcome.steps[-1].result
        sweep.calls = list(result.details["calls"])  # type: ignore[call-overload]
        states = result.kept
        assert isinstance(states, KeptStates)
        candidates = [
            point
            for index in range(len(sweep.calls) + 1)
            for point in self._world_ends(keep, states, index, len(sweep.calls))
        ]
        points = _chosen(candidates, sweep.calls, limit)
        ways = ways_on(points, self._meanwhile, each=limit is None)
        sweep.left_out = len(candidates) - len(points)
        self._judge_all(
            sweep,
            [
                partial(self._judge_state, states, point, outcome, sweep.calls, between)
                for point, between in ways
            ],
            watch,
        )
        outcome.directory.discard()

    def _judge_all(
        self, sweep: Sweep, judgements: Sequence[Callable[[], Point]], watch: Watch
    ) -> None:
        """Side by side, in their order; a bug ends it when only the first one is wanted."""
        started = time.monotonic()
        with ThreadPoolExecutor(self._jobs) as pool:
            jobs = [pool.submit(judgement) for judgement in judgements]
            for done, job in enumerate(jobs, 1):
                try:
                    sweep.points.append(job.result())
                    watch(done, len(jobs), sweep.points)
                except (stopping.Stopped, CancelledError):
                    sweep.left_out += 1
                    for each in jobs[done:]:
                        each.cancel()
                    continue
                if self._until_bug and sweep.points[-1].is_news:
                    sweep.left_out += sum(1 for each in jobs[done:] if each.cancel())
                    break
        sweep.judge_s = time.monotonic() - started

    def _world_ends(
        self, keep: str, states: KeptStates, index: int, count: int
    ) -> Iterator[op.SweepPoint]:
        """The ways in which the world can end before one of `count` calls, or behind them: those whose
        states were kept.
        """
        call = index if index < count else op.AFTER_LAST
        if keep == "files":
            yield op.CrashAt(self.at, call)
            return
        yield op.PowerLossAt(self.at, call)
        if states.has_names_to_lose(index):
            yield op.PowerLossAt(self.at, call, "lost")

    def _judge_state(
        self,
        states: KeptStates,
        point: op.SweepPoint,
        traced: Outcome,
        calls: Sequence[dict[str, Any]],
        between: tuple[Operation, ...] = (),
    ) -> Point:
        """Recover one kept state in a box of its own, after what somebody else does `between`."""
        started = time.monotonic()
        index = len(calls) if point.call == op.AFTER_LAST else point.call
        lost = isinstance(point, op.PowerLossAt) and point.names == "lost"
        whole = traced.steps[-1].result
        cut_off = OperationResult(None, signal=9, tokens=whole.tokens)
        # After its last call the command has answered, and its word counts.
        inner = cut_off if index < len(calls) else whole.inner[0]
        broken = OperationResult(0, fired=True, inner=(inner,), tokens=whole.tokens)
        world = next((one for one in self._prefix if isinstance(one, op.Reset)), op.USUAL_WORLD)

        def recovered(assignment: Assignment, _kind: str) -> Outcome:
            directory = RunDirectory.create(self._bench.root / "points", latest=False)
            try:
                states.write(index, directory.box_path, names_lost=lost)
                engine = self._bench.engine(directory, 1)
                return engine.resume(
                    traced.before_last, point, broken, assignment.operations, world, traced.steps
                )
            finally:
                directory.discard()

        steps = (*between, *self._recovery(self.at, world_ended=True))
        recovery = Assignment(steps, "recovery", 1)
        names = names_in((*self._prefix, point))

        def entry_for(outcome: Outcome) -> Known | None:
            # What the first look of the recovery shows an ordinary run would have shown at the point.
            also = kind_of(point) if len(outcome.steps) == 1 else ""
            return self._bench.known.entry_for(outcome, names, also)

        tried = run_behind(self._bench, recovery, recovered, entry_for=entry_for)
        tried = replace(tried, operations=(*self._prefix, point, *tried.operations))
        label = str(calls[index]["text"]) if index < len(calls) else "(after the last call)"
        label += " (names lost)" if lost else ""
        label += "".join(f" (then {one.type})" for one in between)
        process = str(calls[index]["process"]) if index < len(calls) else ""
        seconds = time.monotonic() - started
        return _point(point, index, label, process, tried, seconds, names)

    # --- the daemon dies ----------------------------------------------------------------------

    def _deaths(self, sweep: Sweep, limit: int | None, watch: Watch) -> None:
        """Whoever works for the command dies after each change that the two make to files."""
        daemon_deaths = self._bench.target.contract().daemon_deaths
        whole = daemon_deaths(self.at, MOST_CHANGES)
        if not whole:
            raise UsageError(
                f"{self._bench.target.name} has no process that works on after {self.at.type}, "
                "or Mutiny cannot end it: there is nothing to sweep"
            )
        outcome = self._traced(sweep, whole[0][0])
        if outcome is None:
            return
        changes: list[str] = list(outcome.steps[-1].result.details["changes"])  # type: ignore[call-overload]
        outcome.directory.discard()
        sweep.calls = [
            {"index": index, "name": "", "text": text, "process": "files", "reads": False}
            for index, text in enumerate(changes)
        ]
        deaths = [
            (index, ending)
            for index in range(len(changes))
            for ending in daemon_deaths(self.at, index + 1)
        ]
        chosen = [deaths[place] for place in _spread(len(deaths), limit or len(deaths))]
        sweep.left_out = len(deaths) - len(chosen)
        self._judge_all(
            sweep,
            [partial(self._judge_death, index, changes[index], end) for index, end in chosen],
            watch,
        )

    def _judge_death(self, index: int, label: str, ending: tuple[Operation, ...]) -> Point:
        started = time.monotonic()
        tried = self._tried((*self._prefix, *ending), lambda _outcome: True)
        seconds = time.monotonic() - started
        label = f"{label} (then {ending[1].type})"
        return _point(ending[0], index, label, "files", tried, seconds)

    # --- a run a point -------------------------------------------------------------------------

    def _point_by_point(
        self, sweep: Sweep, kind: str, choices: Sequence[str], limit: int | None, watch: Watch
    ) -> None:
        outcome = self._traced(sweep, op.Trace(self.at, reads=kind == "errno"))
        if outcome is None:
            return
        sweep.calls = list(outcome.steps[-1].result.details["calls"])  # type: ignore[call-overload]
        outcome.directory.discard()
        if kind == "torn" and not choices and not self._bench.target.contract().notices_damage:
            choices = [mode for mode in op.TEARS if mode != "lie"]
        candidates = list(_points(kind, self.at, sweep.calls, choices))
        chosen = _chosen(candidates, sweep.calls, limit)
        sweep.left_out = len(candidates) - len(chosen)
        self._judge_all(
            sweep, [partial(self._judge_run, point, sweep.calls) for point in chosen], watch
        )

    def _judge_run(self, point: op.SweepPoint, calls: Sequence[dict[str, Any]]) -> Point:
        """One run through one point. Some commands make a call more or less from run to run (git
        refreshes an index that is too young to be trusted), so a point that was missed is tried again.
        """
        started = time.monotonic()
        place = len(self._prefix)
        tried = self._through(point, lambda outcome: not _missed(outcome, place))
        reads = isinstance(point, op.FailReadAt)
        place, call = next(
            (place, call)
            for place, call in enumerate(calls)
            if (call["reads"], call["index"]) == (reads, point.call)
        )
        seconds = time.monotonic() - started
        return _point(point, place, str(call["text"]), str(call["process"]), tried, seconds)

    def _through(self, point: Operation, counts: Callable[[Outcome], bool]) -> Tried:
        """An ordinary run through a point, and recovery from it."""
        return self._tried(self.sequence(point), counts)

    def _tried(self, sequence: tuple[Operation, ...], counts: Callable[[Outcome], bool]) -> Tried:
        """An ordinary run, again until it counts; behind known findings of its recovery."""

        def run(assignment: Assignment, _kind: str) -> Outcome:
            for _ in range(TRIES):
                directory = RunDirectory.create(self._bench.root / "points", latest=False)
                outcome = self._bench.try_once(assignment.operations, 1, directory)
                directory.discard()
                if counts(outcome):
                    break
            return outcome

        assignment = Assignment(sequence, "point", 1, repeats=True)
        return run_behind(self._bench, assignment, run, first=len(self._prefix) + 1)

    # --- schedules -----------------------------------------------------------------------------

    def _schedules(self, sweep: Sweep, limit: int | None, watch: Watch) -> None:
        """Every order of the file operations of two commands, fewest preemptions first."""
        waiting: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, ())]
        pushed = 0
        cut = 0
        known: set[object] = set()
        started = time.monotonic()
        with ThreadPoolExecutor(self._jobs) as pool:
            while waiting and not cut and (limit is None or len(sweep.points) < limit):
                place = len(sweep.points)
                room = self._jobs if limit is None else min(self._jobs, limit - place)
                chosen = [heapq.heappop(waiting) for _ in range(min(room, len(waiting)))]
                jobs = [
                    pool.submit(self._judge_schedule, place + number, preemptions, schedule)
                    for number, (preemptions, _, schedule) in enumerate(chosen)
                ]
                for job in jobs:
                    try:
                        point, details = job.result()
                    except stopping.Stopped:
                        cut += 1
                        continue
                    sweep.points.append(point)
                    watch(len(sweep.points), len(sweep.points) + len(waiting), sweep.points)
                    if point.verdict is Verdict.INCONCLUSIVE or details.get("equivalence") in known:
                        continue  # what can follow from it follows from its twin as well
                    known.add(details.get("equivalence"))
                    for cost, other in details.get("alternatives", ()):
                        pushed += 1
                        heapq.heappush(waiting, (int(cost), pushed, tuple(other)))
                if any(point.is_news for point in sweep.points[place:]):
                    break
                if stopping.asked():
                    break
        sweep.judge_s = time.monotonic() - started
        sweep.left_out = len(waiting) + cut

    def _judge_schedule(
        self, number: int, preemptions: int, schedule: tuple[int, ...]
    ) -> tuple[Point, dict[str, Any]]:
        """One run in one order. git makes a call more or less now and then; then the order cannot be
        followed to its end, says nothing, and is tried again.
        """
        started = time.monotonic()
        point = op.Interleave(self._together, _runs(schedule))
        place = len(self._prefix)

        def at_point(outcome: Outcome) -> Step:
            return outcome.steps[place] if place < len(outcome.steps) else outcome.steps[-1]

        tried = self._through(point, lambda done: at_point(done).result.harness_error is None)
        step = at_point(tried.outcome)
        details = dict(step.result.details)
        whole = tuple(details.get("schedule", ())) or schedule  # type: ignore[arg-type]
        exact = op.Interleave(self._together, _runs(whole))
        many = f"{preemptions} preemption" + ("" if preemptions == 1 else "s")
        stops = "; ".join(stops_of(exact, turns_of(step.result)))
        label = f"{many}: {stops or 'one after the other'} ({_runs(whole)})"
        steps = (*tried.operations[:place], exact, *tried.operations[place + 1 :])
        exactly = replace(tried, operations=steps)
        return _point(exact, number, label, "", exactly, time.monotonic() - started), details


def check_choices(kind: str, choices: Sequence[str]) -> None:
    """Refuse what a kind of sweep does not know."""
    known = {"errno": (*op.ERRNOS, op.FULL), "torn": op.TEARS}.get(kind, ())
    if choices and not known:
        raise UsageError(f"a {kind} sweep has nothing to choose with --only; errno and torn have")
    for word in choices:
        if word not in known:
            raise UsageError(
                f"--only {word}: the {kind} sweep knows {', '.join(known)}{nearest(word, known)}"
            )


def _runs(schedule: Sequence[int]) -> str:
    """A schedule in short: `0x7 1x12 0x3`."""
    return " ".join(f"{who}x{len(list(group))}" for who, group in itertools.groupby(schedule))


def _points(
    kind: str, at: Operation, calls: Sequence[dict[str, Any]], choices: Sequence[str]
) -> Iterator[op.SweepPoint]:
    for call in calls:
        index = int(call["index"])
        if kind == "errno" and call["reads"]:
            for name in op.READ_ERRNOS:
                if name in (choices or op.READ_ERRNOS):
                    yield op.FailReadAt(at, index, name)
        elif kind == "errno":
            for name in choices or (*op.ERRNOS, op.FULL):
                if name != op.FULL:
                    yield op.FailAt(at, index, name)
                elif call["name"] in tables.TAKES_BYTES:
                    yield op.FullAt(at, index)
        elif kind == "torn" and _can_be_torn(call):
            # git keeps one copy of an object: a disk that lies about it cannot be survived by anybody.
            honest = str(call["process"]).startswith("git ")
            for mode in choices or op.TEARS:
                if not (honest and mode == "lie"):
                    yield op.TearAt(at, index, mode)


def _missed(outcome: Outcome, place: int) -> bool:
    """The fault at this place did not happen."""
    return place < len(outcome.steps) and outcome.steps[place].result.fired is False


def _can_be_torn(call: dict[str, Any]) -> bool:
    if call["name"] in ("writev", "pwritev"):
        return True  # its length counts vectors
    return call["name"] in ("write", "pwrite64") and int(call["length"]) > 1


MARKS = ("rename", "link", "sync", "unlink", "rmdir")
"""Calls beside which a command decides what is kept: a point just before or after one counts most."""


def _chosen(
    points: Sequence[op.SweepPoint], calls: Sequence[dict[str, Any]], limit: int | None
) -> list[op.SweepPoint]:
    """All points, or `limit` of them in their order: up to a third are disks that fill up (few, and what
    happens most), then those beside syncs, renames and the acknowledgement at the end and files that
    cannot be read, then those in the middle of a row of such calls that are alike (a tree that is removed),
    then others; each evenly spread.
    """
    if limit is None:
        return list(points)
    changes = [call for call in calls if not call["reads"]]
    kinds = [(call.get("process"), call["name"]) for call in changes]
    alike = {index for index in range(1, len(kinds)) if kinds[index - 1] == kinds[index]}
    marked = {
        place
        for index, (_, name) in enumerate(kinds)
        if any(word in str(name) for word in MARKS)
        for place in (index, index + 1)
    }
    telling = marked - alike | {0, len(changes) - 1, len(changes), op.AFTER_LAST}

    def rank(point: op.SweepPoint) -> int:
        if isinstance(point, op.FullAt):
            return 0
        if isinstance(point, op.FailReadAt) or point.call in telling:
            return 1
        return 2 if point.call in marked else 3

    chosen: list[int] = []
    others = sum(1 for point in points if rank(point))
    full = max((limit + 2) // 3, limit - others)
    for wanted, most in ((0, full), (1, limit), (2, limit), (3, limit)):
        ranked = [place for place, point in enumerate(points) if rank(point) == wanted]
        count = min(most, limit - len(chosen))
        chosen += [ranked[place] for place in _spread(len(ranked), count)]
    return [points[place] for place in sorted(chosen)]


def _spread(count: int, limit: int) -> list[int]:
    """All places, or `limit` of them evenly spread from the first to the last."""
    if limit >= count:
        return list(range(count))
    return sorted({round(i * (count - 1) / max(limit - 1, 1)) for i in range(limit)})


def _point(
    operation: Operation,
    index: int,
    label: str,
    process: str,
    tried: Tried,
    seconds: float,
    names: Iterable[str] = (),
) -> Point:
    outcome = tried.outcome
    return Point(
        operation,
        index,
        label,
        process,
        outcome.verdict,
        outcome.rule,
        outcome.reason,
        seconds,
        cause_of(outcome, names),
        tuple(entry for entry, _ in tried.met),
        tried.excuse,
        tried.operations,
    )


def _failed_trace(
    at: Operation, outcome: Outcome, known: Known | None, sequence: tuple[Operation, ...]
) -> Point:
    """The unbroken run did not pass. Where that is known, nothing was broken: the sweep shows nothing."""
    label = "the unbroken run did not pass"
    tried = Tried(outcome, operations=sequence)
    point = _point(at, -1, label, "", tried, outcome.duration_s)
    if known is None:
        return point
    why = f"it ends with a known finding ({known.reason}): {outcome.reason}"
    return replace(point, verdict=Verdict.INCONCLUSIVE, rule=None, message=why, cause=None)
