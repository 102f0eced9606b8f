"""What a session can be told of afterwards: its report, from the files that it has left."""

from __future__ import annotations

import time
from collections.abc import Iterable

from longboat.planting import planted
from longboat.session import gates
from longboat.session.checkpoints import Chain
from longboat.session.home import Session
from longboat.session.logs import read_lines
from longboat.session.measures import lines_of_code
from longboat.session.project import Project
from longboat.session.values import ENDED, Json

_ERRORS_SHOWN = 500


def empty_metrics(name: str, project: Project, hours: float) -> Json:
    """The metrics of a session that has not begun."""
    zero = dict.fromkeys(
        (
            "life",
            "number",
            "elapsed_seconds",
            "estimated_remaining",
            "total_tokens_consumed",
            "tokens_per_minute",
            "tasks_completed",
            "test_pass_rate",
            "lines_of_code",
            "test_coverage",
            "files_modified",
            "consensus_votes_cast",
            "memory_usage_mb",
            "checkpoint_count",
            "errors_encountered",
            "tool_calls",
            "model_calls",
            "descriptors",
            "recoveries",
            "progress",
        ),
        0,
    )
    known = {"ts": round(time.time(), 3), "session": name, "phase": project.phases[0].name}
    tasks = len(project.tasks)
    more = {"tasks_remaining": tasks, "agent_utilization": [], "planned_seconds": int(hours * 3600)}
    return {**known, "status": "running", **zero, **more}


def of_checkpoint(session: Session, chain: Chain) -> Json:
    """The same as `status` of a running session, as far as a checkpoint knows."""
    payload = chain.payload
    states = [task["status"] for task in payload["tasks"].values()]
    done = states.count("done") + states.count("flagged")
    keys = ("name", "role", "status", "task", "trust", "model")
    return {
        "reason": payload["reason"],
        "project": session.about().get("title", ""),
        "phase": payload["phase"],
        "elapsed_s": payload["elapsed_s"],
        "remaining_s": payload["metrics"].get("estimated_remaining", 0),
        "agents": [{key: one[key] for key in keys} for one in payload["agent_states"]],
        "tasks": {"done": done, "left": len(states) - done, "flagged": states.count("flagged")},
        "checkpoint": payload["number"],
        "deltas": chain.deltas,
        "votes": {name: vote["status"] for name, vote in payload["votes"].items()},
        "errors": payload["counts"]["errors"],
        "recoveries": payload["counts"]["recoveries"],
        "git_commit": payload["git_commit"],
    }


def report(session: Session, now: Json) -> Json:
    """Everything that is known of a session, as one document."""
    about = session.about()
    found = session.checkpoints.last_valid()
    payload: Json = found.chain.payload if found else {}
    errors, recoveries = _errors(read_lines(session.file("events.jsonl")))
    made = {
        "session_id": session.name,
        "session": session.name,
        "project_type": about["project"],
        "duration_seconds": int(now.get("elapsed_s", 0)),
        "final_status": now["status"],
        "metrics": payload.get("metrics", {}),
        "checkpoint_history": session.checkpoints.survey(),
        "error_log": errors,
        "recoveries": recoveries,
        "agent_performance": [_agent(one, payload) for one in payload.get("agent_states", [])],
        "code_quality": _quality(payload) if payload else {},
    }
    return {**made, "recommendations": recommendations(made)}


def _errors(events: Iterable[Json]) -> tuple[list[Json], Json]:
    errors: list[Json] = []
    kinds: Json = {}
    for event in events:
        if event.get("type") == "error" and not planted("session-report-forgets"):
            errors.append({key: event[key] for key in event if key not in ("type", "session")})
            del errors[:-_ERRORS_SHOWN]
        elif event.get("type") == "recovered":
            row = kinds.setdefault(event["kind"], {"count": 0, "longest_s": 0.0})
            row["count"] += 1
            row["longest_s"] = max(row["longest_s"], event["took_s"])
        elif event.get("type") == "session.restore":
            kinds.setdefault("crash", {"count": 0, "longest_s": 0.0})["count"] += 1
    return errors, kinds


def _agent(one: Json, payload: Json) -> Json:
    done = [name for name, task in payload["tasks"].items() if task["agent"] == one["name"]]
    keys = ("name", "role", "trust", "tokens", "tool_calls", "busy_s", "restarts")
    return {**{key: one[key] for key in keys}, "tasks": sorted(done)}


def _quality(payload: Json) -> Json:
    texts = {name: one.get("text") or "" for name, one in payload["file_system_state"].items()}
    tests = payload["test_results"]
    return {
        "files": len(texts),
        "lines_of_code": lines_of_code(payload["file_system_state"]),
        "compiles": gates.compiles(texts),
        "tests": tests["total"],
        "tests_passed": tests["passed"],
        "test_coverage": tests["coverage"],
        "documentation": round(gates.documented(texts), 4),
        "security_findings": gates.security_findings(texts),
        "review_findings": sum(key.startswith("review.") for key in payload["working_memory"]),
    }


def recommendations(made: Json) -> list[str]:
    """What to look at, each for a reason that stands in the report."""
    said = []
    quality, status = made["code_quality"], made["final_status"]
    if status not in ENDED:
        said.append(f"The session is {status}: recover it, or stop it.")
    bad = [row["checkpoint"] for row in made["checkpoint_history"] if not row["valid"]]
    if bad:
        said.append(f"Checkpoints {bad} are damaged: look at the disk.")
    kinds = [row["kind"] for row in made["error_log"]]
    for kind in sorted(set(kinds)):
        if kinds.count(kind) >= 5:
            said.append(f"{kinds.count(kind)} errors of kind {kind}: tune its limits or time-outs.")
    if quality and quality["test_coverage"] < 80:
        said.append(f"Coverage is {quality['test_coverage']} %: add tests.")
    low = [one["name"] for one in made["agent_performance"] if one["trust"] < 0.8]
    if low:
        said.append(f"Agents with little trust: {', '.join(low)}.")
    return said
