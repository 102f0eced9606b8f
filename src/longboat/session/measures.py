"""What a session has spent and reached: the ledger of calls added up, and a line of metrics.

What is spent stays spent: tokens and calls are counted from the ledger, also those whose work a crash
has cost. Everything else is counted from the state.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Protocol

from longboat.planting import planted
from longboat.session.clock import Clock
from longboat.session.home import Session
from longboat.session.project import Phase, Project
from longboat.session.values import Json

NO_TESTS: Json = {
    "total": 0,
    "passed": 0,
    "failed": 0,
    "errors": 0,
    "skipped": 0,
    "coverage": 0.0,
    "duration_s": 0.0,
    "lines": 0,
}
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Site(Protocol):
    """What metrics are made of: a session at work."""

    session: Session
    project: Project
    state: Json
    clock: Clock
    hours: float
    scale: float
    life: int
    metrics_number: int

    @property
    def phase(self) -> Phase:
        """The present phase."""

    def phase_elapsed_s(self) -> float:
        """How long it has lasted."""


class Used:
    """What one agent has used."""

    __slots__ = ("model_calls", "tokens", "tool_calls")

    def __init__(self) -> None:
        self.tokens = 0
        self.tool_calls = 0
        self.model_calls = 0


class Spent:
    """What all calls have cost, and the number of the last one."""

    def __init__(self) -> None:
        self.agents: dict[str, Used] = {}
        self.last_call = 0

    @classmethod
    def of_calls(cls, lines: Iterable[Json]) -> Spent:
        """Add up a ledger."""
        spent = cls()
        for line in lines:
            spent.take(line)
        if planted("session-spending-forgotten"):
            spent.agents = {}
        return spent

    def take(self, line: Json) -> None:
        """One line of the ledger."""
        self.last_call = max(self.last_call, int(str(line.get("call", "c0"))[1:] or 0))
        used = self.agents.setdefault(str(line.get("agent", "")), Used())
        if line.get("kind") == "model" and line.get("state") == "end":
            used.tokens += int(line.get("input_tokens", 0)) + int(line.get("output_tokens", 0))
            used.model_calls += 1
        elif line.get("kind") == "tool" and line.get("state") == "begin":
            used.tool_calls += 1

    @property
    def tokens(self) -> int:
        """All tokens of all agents."""
        return sum(used.tokens for used in self.agents.values())

    @property
    def tool_calls(self) -> int:
        """All calls of tools."""
        return sum(used.tool_calls for used in self.agents.values())

    @property
    def model_calls(self) -> int:
        """All answers of models."""
        return sum(used.model_calls for used in self.agents.values())


def memory_mb(pids: list[int]) -> float:
    """What these processes hold in memory."""
    pages = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                pages += int(file.read().split()[1])
        except (OSError, ValueError, IndexError):
            continue  # it has just ended
    return pages * _PAGE / 1e6


def lines_of_code(files: Json) -> int:
    """Lines of Python that are not empty."""
    texts = [entry.get("text") or "" for name, entry in files.items() if name.endswith(".py")]
    return sum(1 for text in texts for line in text.splitlines() if line.strip())


def descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))


def line(site: Site, spent: Spent, pids: list[int] | None = None) -> Json:
    """All metrics of now."""
    state, elapsed_s = site.state, site.clock.now()
    tasks = state["tasks"].values()
    done = sum(task["status"] in ("done", "flagged") for task in tasks)
    tests = state["test_results"]
    tokens = spent.tokens
    if planted("session-output-tokens-uncounted"):
        tokens = tokens * 9 // 10
    planned_s = site.hours * 3600
    return {
        "ts": round(time.time(), 3),
        "session": site.session.name,
        "life": site.life,
        "number": site.metrics_number,
        "phase": state["phase"]["name"],
        "status": state["status"],
        "elapsed_seconds": int(elapsed_s),
        "estimated_remaining": int(max(0.0, _remaining_s(site))),
        "total_tokens_consumed": tokens,
        "tokens_per_minute": round(tokens / max(elapsed_s / 60, 1 / 60), 2),
        "tasks_completed": done,
        "tasks_remaining": len(tasks) - done,
        "test_pass_rate": round(tests["passed"] / tests["total"], 4) if tests["total"] else 0.0,
        "lines_of_code": lines_of_code(state["file_system_state"]),
        "test_coverage": tests["coverage"],
        "files_modified": len(state["file_system_state"]),
        "agent_utilization": [_utilization(one, spent, elapsed_s) for one in state["agent_states"]],
        "consensus_votes_cast": sum(one["cast"] for one in state["votes"].values()),
        "memory_usage_mb": int(memory_mb([os.getpid(), *(pids or [])])),
        "checkpoint_count": site.session.checkpoints.next_number,
        "errors_encountered": state["counts"]["errors"],
        "tool_calls": spent.tool_calls,
        "model_calls": spent.model_calls,
        "descriptors": descriptors(),
        "recoveries": state["counts"]["recoveries"],
        "progress": round(done / len(tasks), 4) if tasks else 0.0,
        "planned_seconds": int(planned_s),
    }


def _remaining_s(site: Site) -> float:
    """The length of the phases that are left, and of the rest of this one."""
    at = site.state["phase"]["index"]
    later = sum(phase.minutes for phase in site.project.phases[at + 1 :])
    if site.state["status"] == "complete":
        return 0.0
    return (later + site.phase.minutes) * 60 * site.scale - site.phase_elapsed_s()


def _utilization(one: Json, spent: Spent, elapsed_s: float) -> Json:
    used = spent.agents.get(one["name"], Used())
    if planted("session-agents-mixed-up"):
        used = next(iter(spent.agents.values()), used)
    return {
        "agent": one["name"],
        "role": one["role"],
        "doing": one["task"] or one["status"],
        "busy_s": round(one["busy_s"], 3),
        "utilization": round(min(1.0, one["busy_s"] / max(elapsed_s, 1e-9)), 4),
        "tokens": used.tokens,
        "tool_calls": used.tool_calls,
    }
