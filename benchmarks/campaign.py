"""Print what a campaign gains where waits dominate: one after another, on local slots, on dask.

Every run is the scenario `election` on longboat's board, which waits for a lease most of its time. The
sequence of the three is the same each time, so a neighbour's load may hit any of them: look at `uptime`.
`python benchmarks/campaign.py 24 8` measures 24 runs on 8 slots.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from mutiny.engine.campaigns import Job, write_plan
from mutiny.engine.rundir import RunDirectory
from mutiny.modes.campaign import RUNS, Campaign
from mutiny.modes.crew import Crew, LocalCrew

WORDS = ("run", "--target", "longboat-board", "--scenario", "election", "--no-minimise")


def measured(name: str, count: int, make: Callable[[Path], Crew]) -> float:
    """Seconds that a campaign takes, from its first run to its last."""
    jobs = tuple(
        Job(f"election {number}", "longboat-board", (*WORDS, "--seed", str(number)))
        for number in range(count)
    )
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        write_plan(RunDirectory(directory), name, directory, jobs)
        crew = make(directory)
        began = time.monotonic()
        with Campaign(directory, jobs, lambda *_: None) as campaign:
            campaign.run(crew)
            took = campaign.standing.elapsed_s
            verdicts = dict(campaign.standing.counts)
        ended = time.monotonic() - began
    print(f"{name:<24} {count} runs in {took:6.1f} s ({ended:.1f} s with clean-up): {verdicts}")
    return took


def on_dask(slots: int) -> Callable[[Path], Crew]:
    """Two workers with half of the slots each, started before the clock is."""

    def make(directory: Path) -> Crew:
        from mutiny.modes.dask_crew import connect

        return connect(None, 2, slots, directory, directory / RUNS)

    return make


def main() -> None:
    count, slots = (int(word) for word in [*sys.argv[1:], "24", "8"][:2])
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{os.cpu_count()} cores, load {load}")
    alone = measured("one after another", count, lambda d: LocalCrew(d, d / RUNS, 1))
    local = measured(f"{slots} local slots", count, lambda d: LocalCrew(d, d / RUNS, slots))
    dask = measured("dask, 2 workers", count, on_dask(slots))
    print(f"local slots: {alone / local:.1f} times as fast; dask against them: {dask / local:.2f}")


if __name__ == "__main__":
    main()
