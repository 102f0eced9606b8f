"""Print how `longboat batch` grows with 20, 60 and 200 tasks in a large repository: a table in Markdown.

Insight: agents and gates that take no time leave the orchestrator's own cost. Growth is told as the
exponent between two sizes (1: linear), in processor time of the whole process tree and in memory where
there is a file system of that kind: the neighbours' load is not ours, and ten checkouts at once cost a
disk that others use twenty times as much processor time. `python benchmarks/batch.py 20 60` measures
these sizes only.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from mutiny.contracts.batch import fixtures
from mutiny.contracts.batch.tasks import read_tasks

SIZES = (20, 60, 200)
MEMORY = Path("/dev/shm")
STEPS = ("plan", "run", "logs", "clean")
_AGENT = 'mkdir -p work && echo done > "work/$TASK_ID.txt"'
_IDENTITY = {
    f"GIT_{who}_{what}": "mutiny@box.invalid"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


def spent(place: Path, *argv: str, given: bytes = b"", more: dict[str, str] | None = None) -> float:
    """Processor seconds of a command with all that it started and waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    everything = {**os.environ, **_IDENTITY, **(more or {})}
    run = subprocess.run(
        argv, cwd=place, input=given, env=everything, capture_output=True, check=False
    )
    if run.returncode != 0:
        sys.exit(f"{' '.join(argv)}: exit code {run.returncode}\n{run.stderr.decode()[-2000:]}")
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return now.ru_utime + now.ru_stime - before.ru_utime - before.ru_stime


def measure(size: int) -> dict[str, float]:
    """Processor seconds of each step for a plan of so many tasks."""
    in_memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=in_memory) as folder:
        place = Path(folder)
        spent(place, "git", "init", "-q", "-b", "master", ".")
        spent(place, "git", "commit", "-q", "--allow-empty", "-m", "First commit")
        commit = fixtures.commit_of("large-repo-sim", "master")
        spent(place, "git", "fast-import", "--quiet", given=commit)
        spent(place, "git", "reset", "-q", "--hard")
        agent = place / "agent"
        agent.write_text(f"#!/bin/sh\n{_AGENT}\n", encoding="utf-8")
        agent.chmod(0o755)
        tasks = [
            {"id": task.id, "prompt": "work", "files": [task.file]}
            for task in read_tasks(f"t1..{size}")
        ]
        plan = place / "plan.json"
        plan.write_text(json.dumps({"tasks": tasks}), encoding="utf-8")
        home = {"LONGBOAT_BATCH_HOME": str(place / "batch"), "LONGBOAT_BATCH_AGENT": str(agent)}
        longboat = (str(Path(sys.executable).parent / "longboat"), "batch")
        started = ("init", "--source", str(place), "--set", "main=master")
        spent(place, *longboat, *started, "--set", "max_parallel=10", more=home)
        return {
            "plan": spent(place, *longboat, "plan", str(plan), more=home),
            "run": spent(place, *longboat, "run", more=home),
            "logs": spent(place, *longboat, "logs", "query", "--task", "t1", more=home),
            "clean": spent(place, *longboat, "clean", "r1", "--force", more=home),
        }


def main() -> None:
    """The table: a row a size, and how each step grows from the smallest to the largest."""
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    rows = {}
    print("| tasks | plan | run | run a task | logs query | clean |")
    print("|---|---|---|---|---|---|")
    for size in sizes:
        row = rows[size] = measure(size)
        shown = (row["plan"], row["run"], row["run"] / size, row["logs"], row["clean"])
        print(f"| {size} | {' | '.join(f'{one:.2f} s' for one in shown)} |", flush=True)
    if len(sizes) > 1:
        low, high = min(sizes), max(sizes)
        grown = {
            step: math.log(rows[high][step] / rows[low][step]) / math.log(high / low)
            for step in STEPS
        }
        print("exponents:", ", ".join(f"{step} {one:.2f}" for step, one in grown.items()))


if __name__ == "__main__":
    main()
