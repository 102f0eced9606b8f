"""How sessions are soaked: the plan by its schedule and seed, the criteria, and what a session came to."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.accounts import tokens
from mutiny.contracts.session.knobs import HOUR_S
from mutiny.contracts.session.looking import ends, failed
from mutiny.contracts.session.observation import Row, SessionSeen, SessionView, at_of
from mutiny.kit.operations import Settle
from mutiny.kit.soaking import SCHEDULES, Account, Criterion, SoakAsk, Soaks, Table
from mutiny.model.operation import Operation
from mutiny.seeds import stream

WINDOW_S = 1800.0
"""Chaos and quiet take turns of this length."""
CHUNK_S = 300.0
"""At least so often everything is looked at: what stands still is noticed."""
RECORD_S = 30.0
KINDS_ASKED = 3
"""From so many kinds of errors a session should recover."""
SHOWN = 400
JUMP_S = 5400.0
BUDGET_TOKENS = 5_000_000

Troubles = Callable[[random.Random], tuple[Operation, ...]]


def _crash(_: random.Random) -> tuple[Operation, ...]:
    """The one trouble that always has its moment, and from which a session must come back."""
    return (op.SystemCrash(), op.Recover())


FAULTS: tuple[Troubles, ...] = (
    _crash,
    lambda chance: (op.ModelError("rate_limit", chance.randint(1, 3), retry_after_s=20),),
    lambda _: (op.ToolTimeout(),),
    lambda _: (op.KillAgent(),),
    lambda chance: (op.ModelError(chance.choice(("malformed", "reset", "stall"))),),
    lambda _: (op.MemoryPressure(),),
    lambda chance: (op.ModelError("overload", chance.randint(2, 6)),),
    lambda _: (op.AgentDeadlock(),),
    lambda chance: (
        op.SystemCrash(),
        op.CorruptCheckpoint(chance.choice(("body", "key", "newest"))),
        op.Recover(),
    ),
    lambda _: (op.ClockJump(JUMP_S), op.Checkpoint(), op.ClockJump(-JUMP_S)),
    lambda _: (op.FreezeAgent(),),
)
"""What may happen; all of it before anything happens twice, and the crash first."""
CRITERIA = (
    Criterion("must", "No promise is broken", "broken_promises", "==", 0),
    Criterion("must", "The session completes without a fatal error", "completed", "==", 1),
    Criterion("must", "All checkpoints are created and valid", "checkpoints_lost", "==", 0),
    Criterion("must", "It recovers from at least one failure", "recoveries", ">=", 1),
    Criterion("must", "The code compiles and passes its tests", "builds", "==", 1),
    Criterion("must", "The documentation is complete", "documented", "==", 1),
    Criterion("should", "Test coverage is at least 80 %", "coverage", ">=", 80),
    Criterion("should", "All critical bugs are fixed", "tests_failing", "==", 0),
    Criterion("should", "Performance is within the target", "performance", "==", 1),
    Criterion("should", "The security scan finds nothing", "secure", "==", 1),
    Criterion(
        "should",
        "It recovers from three kinds of errors or more",
        "recovery_kinds",
        ">=",
        KINDS_ASKED,
    ),
    Criterion("nice", "Test coverage is at least 90 %", "coverage", ">=", 90),
    Criterion("nice", "Nobody had to step in", "interventions", "==", 0),
    Criterion("nice", "Every agent keeps a trust of more than 0.8", "least_trust", ">", 0.8),
    Criterion("nice", "It stays 20 % under its budget", "budget_used", "<=", 0.8),
)


def soaks(spec: Any) -> Soaks:
    """How one target is soaked."""
    return Soaks(
        projects=tuple(spec.profile.projects),
        begin=begin,
        middle=middle,
        end=lambda _ask: (
            op.WaitForStatus("complete"),
            op.VerifyCheckpoint(),
            op.Health(),
            op.BuildProject(),
            op.Status(),
            op.Metrics(),
            op.Report(),
            Settle(),
        ),
        again=lambda ask: (op.Record(RECORD_S, ask.rate), op.Status(), op.Recover()),
        died=op.SystemCrash(),
        criteria=CRITERIA,
        account=account,
        hourly={"Metrics": "metrics_hour_{hour}.json", "Status": "status_hour_{hour}.json"},
    )


# --- the plan ---------------------------------------------------------------------------------------------


def begin(ask: SoakAsk) -> tuple[Operation, ...]:
    """A session that runs, and is recorded."""
    start = op.StartSession(ask.project, ask.agents, ask.hours)
    return (start, op.Record(RECORD_S, ask.rate))


def middle(ask: SoakAsk) -> tuple[Operation, ...]:
    """By turns quiet and chaos; at every hour what a user would look at."""
    moments = sorted(
        [*_faults(ask), *_looks(ask), *_waits(ask)], key=lambda moment: (moment[0], moment[1])
    )
    made: list[Operation] = []
    for at_s, _, operations in moments:
        made += [op.RunUntil(at_s), *operations]
    return tuple(made)


Moment = tuple[float, int, tuple[Operation, ...]]


def _faults(ask: SoakAsk) -> Iterator[Moment]:
    """In every second window, spread over it by the seed."""
    chance = stream(ask.seed, "soak")
    length = ask.hours * HOUR_S
    window = min(WINDOW_S, length / 4)
    every = SCHEDULES[ask.schedule].faults_an_hour * 2 * window / HOUR_S
    bag: list[Troubles] = []
    start = window
    while start + window / 2 <= length:
        for _ in range(max(1, round(every))):
            if not bag:
                bag = list(FAULTS)
                chance.shuffle(bag)
                if start == window:  # a soak of any length shows what its first criterion asks for
                    bag.remove(_crash)
                    bag.append(_crash)
            at_s = start + chance.uniform(0.05, 0.9) * min(window, length - start)
            yield (round(at_s, 1), 1, bag.pop()(chance))
        start += 2 * window


def _looks(ask: SoakAsk) -> Iterator[Moment]:
    hours = int(ask.hours)
    looks = (op.VerifyCheckpoint(), op.Metrics(), op.Health(), op.Recover(), op.Status())
    for hour in range(1, hours + 1):
        yield (min(hour * HOUR_S, ask.hours * HOUR_S - 1), 2, looks)


def _waits(ask: SoakAsk) -> Iterator[Moment]:
    at_s = CHUNK_S
    while at_s < ask.hours * HOUR_S:
        yield (at_s, 0, ())
        at_s += CHUNK_S


# --- the account ------------------------------------------------------------------------------------------


def account(seen: SessionSeen, fired: Sequence[Operation]) -> Account:
    """What a session came to, from everything that was written down."""
    one = seen.session
    if one is None:
        return Account({"completed": 0, "broken_promises": None})
    facts = _facts(one, seen)
    return Account(
        facts,
        _report(one, facts),
        tuple(_tables(one, seen, fired, facts)),
        tuple(_recommended(one, seen, facts)),
    )


def _gate(one: SessionView, *words: str) -> float | None:
    """Did a criterion hold when it was asked last? None: it was never asked."""
    found = [
        bool(row.get("criteria", {})[word])
        for row in one.of("phase.gate")
        for word in words
        if word in (row.get("criteria") or {})
    ]
    return float(found[-1]) if found else None


def _facts(one: SessionView, seen: SessionSeen) -> dict[str, float | None]:
    errors, recovered = list(one.of("error")), list(one.of("recovered"))
    restores = list(one.of("session.restore"))
    kinds = {str(row.get("kind")) for row in recovered} | ({"crash"} if restores else set())
    met = {str(row.get("kind")) for row in errors} | kinds
    valid = [point for point in one.points if point.valid]
    announced = {row.get("checkpoint") for row in one.of("checkpoint.written")}
    spoiled = {int(part) for part in seen.damaged if part.isdigit()}
    lost = announced - {point.number for point in valid} - spoiled
    last = one.metrics[-1] if one.metrics else {}
    used = sum(tokens(row) for row in ends(one.calls, "model"))
    tools = len(ends(one.calls, "tool"))
    lines, coverage = last.get("lines_of_code"), valid[-1].coverage if valid else None
    return {
        "completed": float(one.told == "complete"),
        "fatal_errors": float(sum(row.get("severity") == "fatal" for row in errors)),
        "checkpoints": float(len(valid)),
        "checkpoints_lost": float(len(lost)),
        # Where nothing went wrong there was nothing to recover from: that proves nothing either way.
        "recoveries": float(len(recovered) + len(restores)) if met else None,
        "recovery_kinds": float(len(kinds)) if len(met) >= KINDS_ASKED else None,
        "errors": float(len(errors)),
        "builds": None if seen.built is None else float(bool(seen.built.get("ok"))),
        "documented": _gate(one, "documentation"),
        "performance": _gate(one, "performance"),
        "secure": _gate(one, "no_security_findings"),
        "coverage": coverage,
        "tests_failing": None if not valid else float(valid[-1].failing),
        "flagged": float(len(list(one.of("task.flagged")))),
        "interventions": float(len(list(one.of("vote.escalated", "vote.decided")))),
        "least_trust": min(_trusts(one), default=None),
        "budget_used": used / BUDGET_TOKENS,
        "tokens": float(used),
        "tool_calls": float(tools),
        "tasks_done": float(len(one.done)),
        "lines_of_code": None if lines is None else float(lines),
        "elapsed_s": one.elapsed_s,
        "tokens_per_line": used / lines if lines else None,
        "calls_per_task": tools / len(one.done) if one.done else None,
        "checkpoints_an_hour": len(valid) / (one.elapsed_s / HOUR_S) if one.elapsed_s else None,
        "votes": float(len(list(one.of("vote.ballot")))),
        "deadlocks": float(len(list(one.of("vote.deadlock")))),
        "utilization": _utilization(last),
        "peak_memory_mb": max(
            (float(row.get("memory_usage_mb") or 0) for row in one.metrics), default=None
        ),
        "recovery_p50_s": _median(recovered),
    }


def _trusts(one: SessionView) -> list[float]:
    ballots = {row.get("agent"): row.get("trust") for row in one.of("vote.ballot")}
    return [float(trust) for trust in ballots.values() if isinstance(trust, int | float)]


def _utilization(last: Row) -> float | None:
    shares = [float(one.get("utilization") or 0) for one in last.get("agent_utilization") or ()]
    return statistics.mean(shares) if shares else None


def _median(rows: Sequence[Row]) -> float | None:
    took = [float(row["took_s"]) for row in rows if isinstance(row.get("took_s"), int | float)]
    return statistics.median(took) if took else None


def _report(one: SessionView, facts: dict[str, float | None]) -> dict[str, Any]:
    """The fields of the plan's report."""
    last = one.metrics[-1] if one.metrics else {}
    return {
        "session_id": one.name,
        "project_type": one.project,
        "duration_seconds": round(one.elapsed_s),
        "final_status": one.status,
        "metrics": last,
        "checkpoint_history": [
            {
                "checkpoint": point.number,
                "trigger": point.trigger,
                "at_s": point.state.elapsed_s if point.valid else None,
                "valid": point.valid,
            }
            for point in one.points
        ],
        "error_log": [dict(row) for row in one.of("error")],
        "agent_performance": list(last.get("agent_utilization") or ()),
        "code_quality": {
            name: facts[name] for name in ("coverage", "lines_of_code", "tests_failing", "flagged")
        },
    }


def _tables(
    one: SessionView, seen: SessionSeen, fired: Sequence[Operation], facts: dict[str, float | None]
) -> Iterator[Table]:
    groups = {
        "Efficiency": ("tokens_per_line", "calls_per_task", "elapsed_s", "checkpoints_an_hour"),
        "Quality": ("coverage", "tests_failing", "flagged", "documented"),
        "System": (
            *("recoveries", "recovery_kinds", "recovery_p50_s", "utilization"),
            *("votes", "deadlocks", "peak_memory_mb"),
        ),
    }
    for title, names in groups.items():
        rows = tuple((name.replace("_", " "), facts.get(name)) for name in names)
        yield Table(title, ("figure", "value"), rows)
    yield Table(
        "Faults that fired",
        ("fault", "times"),
        tuple(sorted(_counted(str(one.type) for one in fired).items())),
    )
    recovered = [
        (str(row.get("kind")), row.get("by"), row.get("took_s")) for row in one.of("recovered")
    ]
    restored = [
        ("crash", f"checkpoint {row.get('checkpoint')}", None) for row in one.of("session.restore")
    ]
    yield Table("Recoveries", ("from", "by", "took, s"), tuple((*recovered, *restored)[:SHOWN]))
    history = tuple(
        (point.number, point.trigger, round(point.state.elapsed_s), len(point.states) - 1, "valid")
        if point.valid
        else (point.number, "", "", "", _why(point.number, point.why, seen))
        for point in one.points
    )
    yield Table("Checkpoint history", ("number", "trigger", "at, s", "deltas", ""), history[:SHOWN])
    errors = tuple(
        (
            round(at_of(row)),
            row.get("kind"),
            row.get("severity"),
            row.get("agent"),
            row.get("action"),
        )
        for row in one.of("error")
    )
    yield Table("Error log", ("at, s", "kind", "severity", "agent", "action"), errors[:SHOWN])
    last = one.metrics[-1] if one.metrics else {}
    agents = tuple(
        (
            row.get("agent"),
            row.get("role"),
            row.get("utilization"),
            row.get("tokens"),
            row.get("tool_calls"),
        )
        for row in last.get("agent_utilization") or ()
    )
    yield Table("Agents", ("agent", "role", "utilization", "tokens", "tool calls"), agents)


def _why(number: int, why: str, seen: SessionSeen) -> str:
    return "damaged on purpose" if str(number) in seen.damaged else why


def _counted(words: Iterator[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return found


def _recommended(
    one: SessionView, seen: SessionSeen, facts: dict[str, float | None]
) -> Iterator[str]:
    """Only what something that was seen calls for."""
    gaps = [
        (later.state.elapsed_s - first.state.elapsed_s, later.number)
        for first, later in zip(one.points, one.points[1:], strict=False)
        if first.valid and later.valid
    ]
    if gaps and max(gaps)[0] > 2 * statistics.median(gap for gap, _ in gaps) > 0:
        length, number = max(gaps)
        yield (
            f"Look at what came before checkpoint {number}: {length:.0f} s passed without one, twice "
            "as long as usual."
        )
    retried = _counted(str(row.get("kind")) for row in one.of("error"))
    if retried:
        kind = max(retried, key=lambda word: retried[word])
        if retried[kind] >= 5:
            yield f"Errors of the kind {kind} came {retried[kind]} times: its limits may be too tight."
    reached = _counted(str(row.get("limit")) for row in one.of("limit.reached"))
    for limit, times in sorted(reached.items()):
        yield f"The limit {limit} was reached {times} times: raise it, or give agents less."
    if facts.get("utilization") is not None and (facts["utilization"] or 0) < 0.3:
        yield f"Agents worked {100 * (facts['utilization'] or 0):.0f} % of the time: fewer would do."
    if facts.get("flagged"):
        yield f"{facts['flagged']:.0f} tasks were flagged for review: read them before a release."
    if facts.get("deadlocks"):
        yield f"{facts['deadlocks']:.0f} votes were not won: their questions need a clearer owner."
    refused = sum(failed(request) for request in seen.api)
    if seen.api and refused > len(seen.api) / 10:
        yield f"{refused} of {len(seen.api)} requests to the model failed: a second provider would help."
