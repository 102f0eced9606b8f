"""Options about times: keep what each operation takes, and compare it with what it took before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mutiny.cli import values
from mutiny.cli.options import gathered
from mutiny.cli.output import echo

if TYPE_CHECKING:
    from mutiny.engine.timing import Comparison, Samples, Timings

EXIT_CODE = 5
"""A gate failed; so does one of `mutiny accept`."""


@dataclass
class Timed:
    """What is asked about times."""

    repeat: int
    save_baseline: Path | None
    baseline: Path | None
    slower: float

    def before(self, target: str) -> Mapping[str, Samples] | None:
        """The baseline, read before anything runs; None: none was given."""
        from mutiny.engine.timing import read_baseline

        return None if self.baseline is None else read_baseline(self.baseline, target)

    def finish(
        self, target: str, timings: Timings, before: Mapping[str, Samples] | None, *, quiet: bool
    ) -> Comparison | None:
        """Keep what was measured, and compare it; None: nothing to compare with."""
        from mutiny.engine.timing import compare, write_baseline

        if self.save_baseline is not None:
            write_baseline(self.save_baseline, target, timings)
        if before is None:
            return None
        found = compare(timings.kept(), before, self.slower)
        if not quiet:
            show(found)
        return found


def show(found: Comparison) -> None:
    """A line an operation, the slowest first."""
    if found.machine is None:
        echo("Times: too few commands on either side to compare any")
        return
    echo(
        f"Times against the baseline; the machine itself ({found.machine.middle:.2f} times) is taken out:"
    )
    rows = [row for row in found.rows if row.ratio is not None]
    for row in sorted(rows, key=lambda one: -(one.ratio.low if one.ratio else 0)):
        ratio = row.ratio
        assert ratio is not None
        told = f"{ratio.middle:5.2f} times ({ratio.low:.2f} to {ratio.high:.2f})"
        echo(
            f"  {row.operation:<20} {told}  {row.word.upper() if row.word == 'slower' else row.word}"
        )
    few = [row.operation for row in found.rows if row.ratio is None]
    if few:
        echo(f"  too few samples: {', '.join(few)}")


timed_options = gathered(
    "timed",
    Timed,
    (
        click.option(
            "--repeat",
            type=values.COUNT,
            default=1,
            show_default=True,
            help="Every scenario so often, each time with the next seed: more times to compare.",
        ),
        click.option("--save-baseline", type=values.FILE, help="Keep what each operation takes."),
        click.option(
            "--baseline",
            type=values.FILE,
            help="Compare what each operation takes with a kept file; exit code 5 when one is slower.",
        ),
        click.option(
            "--slower",
            type=values.NumberRange(1.0, 1000.0),
            default=1.5,
            show_default=True,
            help="So many times as long is slower, when the whole interval lies above it.",
        ),
    ),
)
"""`--repeat`, `--save-baseline`, `--baseline`, `--slower`."""
