"""`summary.json`: what a program wants to know about a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutiny.engine.causes import cause_of
from mutiny.engine.rundir import FORMAT
from mutiny.report.measured import PAGE, of_outcome, page

if TYPE_CHECKING:
    from mutiny.engine.loop import Outcome
    from mutiny.engine.replay import Replay
    from mutiny.kit.contract import AnyContract
    from mutiny.kit.measuring import Measured
    from mutiny.model.forms import ErrorForm, SummaryForm


def summary(
    outcome: Outcome,
    contract: AnyContract,
    title: str,
    seed: int,
    replay: Replay | None,
    measured: Measured | None = None,
) -> SummaryForm:
    """The whole outcome in one object."""
    counts: dict[str, int] = {}
    for step in outcome.steps:
        counts[step.verdict.value] = counts.get(step.verdict.value, 0) + 1
    return {
        "format": FORMAT,
        "title": title,
        "seed": seed,
        "verdict": outcome.verdict.value,
        "exit_code": outcome.verdict.exit_code,
        "duration_s": round(outcome.duration_s, 3),
        "operations": len(outcome.steps),
        "counts": counts,
        "untested": list(outcome.untested),
        "not_applicable": dict(contract.not_applicable),
        "own_ms_mean": _mean_own_ms(outcome),
        "error": _error(outcome, replay),
        "metrics": None if measured is None else dict(measured.figures),
    }


def _error(outcome: Outcome, replay: Replay | None) -> ErrorForm | None:
    step = outcome.failed_step
    if step is None:
        return None
    told: ErrorForm = {
        "sequence_id": step.sequence_id,
        "operation": step.operation.as_json(),
        "classification": step.verdict.value,
        "rule": outcome.rule,
        "violations": [violation.as_json() for violation in step.violations],
        "inconclusive": list(step.inconclusive),
        "expected": step.expected,
        "report": outcome.directory.report_path.name,
        "minimal_replay": outcome.directory.replay_path.name if replay else None,
        "minimal_length": len(replay.operations) if replay else None,
        "state_preserved_at": str(outcome.directory.box_path),
    }
    cause = cause_of(outcome)
    if cause is not None:
        told["cause"] = {"operation": cause.operation, "said": sorted(cause.failure.said)}
    return {**told, **replay.standing_as_json()} if replay else told


def _mean_own_ms(outcome: Outcome) -> float | None:
    costs = [step.own_ms for step in outcome.steps[1:]]
    return round(sum(costs) / len(costs), 3) if costs else None


def write_summary(
    outcome: Outcome, contract: AnyContract, title: str, seed: int, replay: Replay | None
) -> None:
    """Write `summary.json` into the run directory, and a page where there are figures to show."""
    directory = outcome.directory
    measured = of_outcome(contract.name, outcome)
    told = summary(outcome, contract, title, seed, replay, measured)
    directory.write_json(directory.summary_path, told)
    if measured is not None:
        facts = {
            "Operations": told["operations"],
            "Duration": f"{told['duration_s']} s",
            "Seed": seed,
        }
        text = page(title, told["verdict"], measured, facts, directory.path)
        directory.write_text(directory.path / PAGE, text)
