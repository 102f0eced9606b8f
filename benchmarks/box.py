"""Print what a box costs: start, one command, kill; for each technique that this machine has.

Insight: the median says what a run pays, the 95th percentile what a loaded machine does to it; the
first box of a process is left out, because it also pays for probing the technique.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from mutiny.box.box import Box
from mutiny.box.isolation import TECHNIQUES, why_not
from mutiny.box.startup import create_box

BOXES = 20
COMMANDS = 200


def milliseconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


def summary(values: list[float]) -> str:
    ordered = sorted(values)
    high = ordered[round(0.95 * (len(ordered) - 1))]
    return f"p50 {statistics.median(ordered):6.2f} ms   p95 {high:6.2f} ms"


def measure(technique: str, directory: Path) -> None:
    starts: list[float] = []
    kills: list[float] = []
    commands: list[float] = []
    pings: list[float] = []
    for number in range(BOXES + 1):
        made: list[Box] = []
        place = directory / str(number) / "box"
        start = milliseconds(
            lambda: made.append(create_box(place, technique=technique, doubles=False))  # noqa: B023
        )
        with made[0] as box:
            if number == 0:
                run = lambda: box.run(["/bin/true"], timeout_s=10)  # noqa: E731
                commands = [milliseconds(run) for _ in range(COMMANDS)]
                pings = [milliseconds(box.ping) for _ in range(COMMANDS)]
                continue
            starts.append(start)
            kills.append(milliseconds(box.kill))
    print(f"{technique:10} start      {summary(starts)}")
    print(f"{'':10} ping       {summary(pings)}")
    print(f"{'':10} /bin/true  {summary(commands)}")
    print(f"{'':10} kill       {summary(kills)}")


def main() -> None:
    for technique in sys.argv[1:] or [each.name for each in TECHNIQUES]:
        reason = why_not(technique)
        if reason is not None:
            print(f"{technique:10} not available: {reason}")
            continue
        with tempfile.TemporaryDirectory(prefix="mutiny-benchmark-") as directory:
            measure(technique, Path(directory))


if __name__ == "__main__":
    main()
