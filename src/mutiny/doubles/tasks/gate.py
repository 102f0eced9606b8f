"""A user's lint, doctor or validator: `gate KIND [CANARY]`, in the directory that it is asked about.

It says what the script wants, and writes down what it was asked about: which tree, for which task.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

from mutiny.doubles.tasks.agent import leave
from mutiny.doubles.tasks.records import Desk

NOT_FOUND = 127
"""What a shell says of a program that is not there."""
VALIDATORS = {"doctor": "review"}
"""A target's word for a validator -> ours, where they differ."""


def main(desk: Desk, arguments: list[str]) -> int:
    """Say what the script wants."""
    kind = arguments[0]
    validates = kind == "validate"
    gate = VALIDATORS.get(arguments[-1], arguments[-1]) if validates else kind
    verdict = str(desk.script().get("gates", {}).get(gate, "pass"))
    present = sorted(os.listdir("work")) if os.path.isdir("work") else []
    alone = len(present) < 2
    canary = not validates and len(arguments) > 1 and bool(os.environ.get(arguments[1]))
    if verdict == "apart":
        verdict = "pass" if alone else "fail"
    wanted = {"blind": "pass", "stuck": "hang"}.get(verdict, "fail") if canary else verdict
    shown = {"blind": "pass", "stuck": "pass"}.get(wanted, wanted)
    passed = shown in ("pass", "leaves")
    task = os.environ.get("TASK_ID", "")
    tree = said("git", "rev-parse", "HEAD^{tree}")
    desk.write(gate, task, tree=tree, passed=passed, canary=canary)
    desk.hold(gate if task else f"{gate}-whole")
    if shown == "hang":
        time.sleep(3600)
    if shown == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if shown == "leaves":
        leave()
    if shown == "missing":
        sys.stderr.write("sh: gate: not found\n")
        return NOT_FOUND
    if not validates:
        if not passed:
            sys.stderr.write(f"{gate}: this was meant to fail\n")
        return 0 if passed else 1
    told = "false" if shown == "odd" else passed
    answer = {"pass": told, "summary": f"{gate}: as the script wants it"}
    print("no verdict at all" if shown == "garbage" else json.dumps(answer))
    return 0


def said(*argv: str) -> str:
    """What a command prints."""
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()
