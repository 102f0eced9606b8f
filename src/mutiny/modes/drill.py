"""Resume drills: every moment of a long command, in every way of going on, as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutiny.engine.rundir import RunDirectory
from mutiny.kit.abilities import Drill, Drilled
from mutiny.model.verdict import Verdict, worst
from mutiny.modes.bench import Assignment, Bench
from mutiny.modes.series import progress_of
from mutiny.modes.subject import ability
from mutiny.report import drill_page


def run_drills(
    bench: Bench, seed: int, jobs: int, watch: Callable[[Drilled], None] = lambda _: None
) -> tuple[list[Drilled], Path]:
    """Run all drills of a target, and write `drill.md` and `drill.html`."""
    wanted: tuple[Drill, ...] = ability(bench.target, "drill")
    directory = RunDirectory.create(bench.root)
    root = directory.path / "drills"
    root.mkdir()
    inner = Bench(bench.target, root)
    title = f"{len(wanted)} resume drills"
    progress = progress_of(bench, directory.path, "drills", title, "drills", seed)
    counts: Counter[str] = Counter()
    progress.tell(0, len(wanted))

    def one(drill: Drill) -> Drilled:
        outcome = inner.run(
            Assignment(drill.operations, f"{drill.moment}, {drill.way}", seed, "drill")
        )
        if outcome.verdict is Verdict.SUCCESS:
            outcome.directory.discard()
        done = Drilled(drill, outcome.verdict.value, outcome.rule or "", outcome.reason)
        counts[done.verdict] += 1
        progress.tell(counts.total(), len(wanted), drill.moment, counts)
        watch(done)
        return done

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        found = list(pool.map(one, wanted))
    name = bench.target.name
    (directory.path / "drill.md").write_text(drill_page.markdown(found, name), encoding="utf-8")
    (directory.path / "drill.html").write_text(drill_page.html(found, name), encoding="utf-8")
    verdict = worst(Verdict(one.verdict) for one in found)
    progress.tell(len(found), len(wanted), "", counts, verdict=verdict.value)
    return found, directory.path
