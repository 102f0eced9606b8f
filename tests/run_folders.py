"""Folders of runs as Mutiny writes them, without running anything: for whoever reads them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mutiny.engine.progress import this_process

RULE = "workers.nothing_lost"
HOSTILE = "</script><img src=x onerror=alert(1)><b>\x1b[2J\u202e"
GONE = {"pid": os.getpid(), "start": 1}
"""A process that is no more: its pid means another one now."""


def violation(message: str = "It is gone.", rule: str = RULE) -> dict[str, Any]:
    """A broken promise as a summary tells it."""
    return {"rule": rule, "subject": "MT-7f3a-1", "message": message, "evidence": {"kind": "task"}}


def line(number: int, kind: str = "Up", **more: Any) -> dict[str, Any]:
    """One line of a journal."""
    result = {"exit_code": 0, "stdout": "", "stderr": "", "duration_ms": 250.0}
    made = {
        "sequence_id": number,
        "timestamp_unix": 1_790_000_000.0 + number,
        "operation": {"type": kind, "args": more.pop("args", {})},
        "pre_state": {"daemon_running": False, "step": number},
        "result": {**result, **more.pop("result", {})},
        "post_state": {"daemon_running": False, "step": number + 1},
        "classification": "success",
        "violations": [],
        "technique": None,
        "expected": "",
        "inconclusive": [],
    }
    return {**made, **more}


def written(
    root: Path,
    name: str,
    verdict: str | None = "success",
    *,
    title: str = "basic_lifecycle",
    message: str = "It is gone.",
    process: Mapping[str, int] | None = None,
    lines: int = 3,
    **plan: Any,
) -> Path:
    """A run directory; without a verdict it has no summary."""
    run = root / name
    run.mkdir(parents=True)
    told = {
        "format": 1,
        "mode": "scenario",
        "title": title,
        "contract": "workers",
        "target": "longboat",
        "target_file": "",
        "plant": "",
        "seed": 7,
        "started_unix": time.time() - 60,
        "argv": ["mutiny", "run", "--scenario", "basic_lifecycle"],
        "process": dict(GONE if process is None else process),
        "operations": [{"type": "Up", "args": {}}] * 6,
        **plan,
    }
    (run / "plan.json").write_text(json.dumps(told))
    journal = [line(number) for number in range(1, lines + 1)]
    if verdict in ("bug", "recovery_bug"):
        journal[-1] |= {"classification": verdict, "violations": [violation(message)]}
    (run / "operations.jsonl").write_text("".join(json.dumps(one) + "\n" for one in journal))
    if verdict is not None:
        error = None
        if verdict in ("bug", "recovery_bug"):
            error = {"sequence_id": lines, "operation": {"type": "Up", "args": {}}, "rule": RULE}
            error |= {"violations": [violation(message)], "inconclusive": [], "expected": "x"}
        summary = {"title": title, "verdict": verdict, "duration_s": 2.5, "error": error}
        (run / "summary.json").write_text(json.dumps(summary))
    return run


def written_replay(run: Path) -> None:
    """The shortest sequence of a run."""
    replay = {
        "format": 1,
        "contract": "workers",
        "operations": [{"type": "Reset"}, {"type": "Up", "args": {}}],
        "reproduced": {"failed": 3, "tries": 3},
        "minimised": "finished",
    }
    (run / "minimal_replay.json").write_text(json.dumps(replay))


def metrics_line(number: int) -> str:
    """One line of a session's figures; a single dip at line 5000."""
    figures = {
        "elapsed_seconds": number * 30,
        "tokens_per_minute": 5.0 if number == 5000 else 12_000.0 + number % 7,
        "test_pass_rate": 1.0,
        "tasks_completed": number // 10,
        "tasks_remaining": 40,
        "agent_utilization": [{"agent": "cody-1", "role": "coder", "doing": f"q{number}"}],
        "phase": {"name": "Core development", "index": 1},
    }
    return json.dumps(figures) + "\n"


def living() -> Mapping[str, int]:
    """A process that lives: this one."""
    told = this_process()
    return {"pid": told["pid"], "start": told["start"]}
