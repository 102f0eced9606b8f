"""A journal in Chaos Toolkit's shape, for the tools that read it; the verdict in it is ours."""

from __future__ import annotations

import os
import platform
import time
from typing import TYPE_CHECKING, Any

from mutiny import __version__
from mutiny.kit.experiment import Action, Probe, Undo
from mutiny.model.verdict import Verdict

if TYPE_CHECKING:
    from mutiny.engine.journal import Step
    from mutiny.engine.loop import Outcome
    from mutiny.experiments.compile import Plan
    from mutiny.experiments.experiment import Experiment


def journal(experiment: Experiment, plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """The whole run. `deviated` and `status` follow the run's verdict, not the tool's rules."""
    phases = [item.phase for item in plan.steps]
    by_phase: dict[str, list[Step]] = {"before": [], "method": [], "after": []}
    for step in outcome.steps:
        phase = phases[step.sequence_id - 1]
        if isinstance(step.operation, Action | Probe):
            by_phase.setdefault(phase, []).append(step)
    steps = (*outcome.steps, *outcome.rollback)
    began = outcome.steps[0].timestamp_unix if outcome.steps else 0.0
    ended = max((_end(step) for step in steps), default=began)
    return {
        "chaoslib-version": f"mutiny {__version__}",
        "platform": platform.platform(),
        "node": os.uname().nodename,
        "experiment": dict(experiment.document),
        "start": _time(began),
        "status": _status(outcome),
        "deviated": outcome.verdict.is_bug,
        "steady_states": {
            "before": _steady(by_phase["before"], len(experiment.before)),
            "during": [],
            "after": _steady(by_phase["after"], len(experiment.after)),
        },
        "run": [_activity(step) for step in by_phase["method"]],
        "rollbacks": [_activity(step) for step in outcome.rollback],
        "end": _time(ended),
        "duration": round(ended - began, 6),
        "mutiny": {"verdict": outcome.verdict.value, "exit_code": outcome.verdict.exit_code},
    }


def _status(outcome: Outcome) -> str:
    if outcome.verdict is Verdict.SUCCESS:
        return "completed"
    return "failed" if outcome.verdict.is_bug else "aborted"


def _steady(steps: list[Step], planned: int) -> dict[str, Any] | None:
    if not steps:
        return None
    met = len(steps) == planned and all(step.result.succeeded for step in steps)
    return {"steady_state_met": met, "probes": [_activity(step) for step in steps]}


def _activity(step: Step) -> dict[str, Any]:
    operation, result = step.operation, step.result
    if isinstance(operation, Undo):
        operation = operation.operation
    kind = "action" if isinstance(operation, Action) else "probe"
    record: dict[str, Any] = {
        "activity": {
            "type": kind,
            "name": getattr(operation, "name", operation.type),
            "provider": _public(getattr(operation, "provider", {})),
        },
        "output": result.details.get("value"),
        "start": _time(step.timestamp_unix),
        "status": "succeeded" if result.succeeded else "failed",
        "end": _time(_end(step)),
        "duration": round(result.duration_ms / 1000, 6),
    }
    if isinstance(operation, Probe) and operation.tolerance is not None:
        record["activity"]["tolerance"] = operation.tolerance
        record["tolerance_met"] = bool(result.details.get("tolerance_met"))
    if not result.succeeded:
        record["exception"] = [result.stderr]
    return record


def _public(provider: Any) -> dict[str, Any]:
    """A provider without what the user keeps secret."""
    return {key: value for key, value in dict(provider).items() if key != "secrets"}


def _end(step: Step) -> float:
    return step.timestamp_unix + step.result.duration_ms / 1000


def _time(unix: float) -> str:
    whole, part = divmod(round(unix * 1_000_000), 1_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{part:06d}+00:00"
