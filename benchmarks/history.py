"""Print how long the history checker takes for 10,000 operations, right ones and wrong ones.

Insight: a search that is lucky on right histories can be lost on wrong ones, so that both are
timed, in processor time, because the neighbours' load is not ours. With MUTINY_PORCUPINE set to a
program that reads register histories in our JSON Lines form and prints its verdict, the same
registers are given to it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mutiny.history.board import BoardModel
from mutiny.history.checker import Limits, check
from mutiny.history.events import Entry, write_history
from mutiny.history.models import Model, Register
from mutiny.history.simulate import SimulatedBoard, SimulatedRegisters, simulate
from mutiny.seeds import stream

OPERATIONS = 10_000
PROCESSES = 8
LIMIT_S = 60.0


def claims(tasks: int) -> list[Entry]:
    """Five operations a task: add, claim, start, complete, and a second complete that is refused."""
    entries: list[Entry] = []
    random = stream(1, "claims")
    clocks = [random.random() for _ in range(PROCESSES)]
    for number in range(tasks):
        name, who = f"t{number}", number % PROCESSES
        worker = {"worker": f"p{who}", "task": name, "epoch": 1}
        claimed = {"ok": True, "task": name, "epoch": 1}
        steps: list[tuple[str, dict[str, object], dict[str, object]]] = [
            ("add", {"id": name}, {"ok": True, "task": name}),
            ("claim", {"worker": f"p{who}"}, claimed),
            ("start", dict(worker), {"ok": True}),
            ("complete", dict(worker), {"ok": True}),
            ("complete", dict(worker), {"ok": False, "error": "wrong_status"}),
        ]
        for operation, arguments, answer in steps:
            begun = clocks[who]
            clocks[who] = begun + random.random()
            entries.append(Entry(f"p{who}", operation, arguments, answer, begun, clocks[who]))
    return sorted(entries, key=lambda entry: entry.invoked)


def wrong_at_the_end(entries: Sequence[Entry], operation: str, answer: object) -> list[Entry]:
    """The same with another answer for one of the last operations of its kind."""
    chosen = [number for number, entry in enumerate(entries) if entry.operation == operation][-20]
    changed = list(entries)
    changed[chosen] = replace(entries[chosen], answer=answer)
    return changed


def cases() -> list[tuple[str, Model, list[Entry]]]:
    """What is timed."""
    many = claims(OPERATIONS // 5)
    stolen = {"ok": True, "task": "t7", "epoch": 1}
    board = simulate(
        SimulatedBoard(), stream(2, "board"), operations=OPERATIONS, processes=PROCESSES
    )
    one = simulate(
        SimulatedBoard(endless=True), stream(3, "one"), operations=OPERATIONS, processes=PROCESSES
    )
    lossy = simulate(
        SimulatedBoard(), stream(4, "lossy"), operations=OPERATIONS, processes=8, lost=0.002
    )
    register = simulate(
        SimulatedRegisters(), stream(5, "register"), operations=OPERATIONS, processes=PROCESSES
    )
    return [
        ("2,000 tasks, five operations each", BoardModel(), many),
        ("  one task claimed twice", BoardModel(), wrong_at_the_end(many, "claim", stolen)),
        ("simulated board, with mischief", BoardModel(), board),
        ("  0.2 % of the answers lost", BoardModel(), lossy),
        ("one contended task", BoardModel(), one),
        (
            "  one claim wrong, near the end",
            BoardModel(),
            wrong_at_the_end(one, "claim", {"ok": True, "task": "t1", "epoch": 17}),
        ),
        ("one contended register", Register(), register),
        ("  one read wrong, near the end", Register(), wrong_at_the_end(register, "read", 99)),
    ]


def other_checker(entries: Sequence[Entry]) -> str:
    """The verdict and the time of another program, if one is given."""
    program = os.environ.get("MUTINY_PORCUPINE")
    if not program:
        return ""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "history.jsonl")
        write_history(path, entries)
        done = subprocess.run(
            [program, str(path)], capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    return f"   other: {(done.stdout or done.stderr).strip()}"


def main() -> None:
    """Print one line a case."""
    print(f"{'history':36} {'ops':>6} {'parts':>6} {'check s':>8} {'reason s':>9}  verdict")
    for title, model, entries in cases():
        began = time.process_time()
        report = check(entries, model, Limits(explained=0, seconds=LIMIT_S))
        plain = time.process_time() - began
        began = time.process_time()
        told = check(entries, model, Limits(seconds=LIMIT_S))
        explaining = max(0.0, time.process_time() - began - plain) if told.wrong else 0.0
        same = other_checker(entries) if isinstance(model, Register) else ""
        print(
            f"{title:36} {len(entries):6} {len(report.parts):6} {plain:8.2f} {explaining:9.2f}"
            f"  {report.verdict.value}{same}"
        )
        for part in told.wrong[:1]:
            for line in part.contradiction.lines() if part.contradiction else ():
                print(f"      {line}")


if __name__ == "__main__":
    main()
