"""What a run may measure beside its verdict: times against a baseline, and the target's own code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mutiny.cli import values
from mutiny.cli.options import gathered
from mutiny.cli.output import echo

if TYPE_CHECKING:
    from mutiny.engine.code import CodeCoverage
    from mutiny.engine.timing import Comparison, Samples, Timings
    from mutiny.modes.bench import Bench

EXIT_CODE = 5
"""A gate failed; so does one of `mutiny accept`."""


@dataclass
class Measuring:
    """What is to be measured, and then what was."""

    repeat: int
    save_baseline: Path | None
    baseline: Path | None
    slower: float
    code_coverage: bool
    before: Mapping[str, Samples] | None = None
    compared: Comparison | None = None
    code: CodeCoverage | None = None

    @property
    def compares_times(self) -> bool:
        """Runs beside each other would take longer than they do alone."""
        return self.save_baseline is not None or self.baseline is not None

    def begin(self, bench: Bench) -> Bench:
        """Read what is needed before anything runs; the bench on which it runs."""
        from mutiny.engine.timing import read_baseline

        if self.baseline is not None:
            self.before = read_baseline(self.baseline, bench.target.name)
        return self._profiled(bench) if self.code_coverage else bench

    def _profiled(self, bench: Bench) -> Bench:
        """The bench with a target that writes profiles of its own code."""
        from mutiny.engine.code import CodeCoverage, lacking
        from mutiny.errors import TechniqueMissing, UsageError
        from mutiny.targets.registry import Target

        target = bench.target
        assert isinstance(target, Target), "options choose targets from files"
        language = target.spec.coverage
        if not language:
            raise UsageError(f"target {target.name}: its file names no language (coverage = ...)")
        tool = lacking(language)
        if tool is not None:
            raise TechniqueMissing(f"--code-coverage of {language} needs {tool}")
        self.code = CodeCoverage(language, target.program)
        return replace(bench, target=target.profiled())

    def finish(self, target: str, timings: Timings, *, quiet: bool) -> int:
        """Keep and compare what was measured, and show it; the exit code of that alone."""
        from mutiny.engine.timing import compare, write_baseline

        if self.save_baseline is not None:
            write_baseline(self.save_baseline, target, timings)
        if self.before is not None:
            self.compared = compare(timings.kept(), self.before, self.slower)
        if not quiet:
            if self.compared is not None:
                show(self.compared)
            for line in () if self.code is None else self.code.told():
                echo(line)
        return EXIT_CODE if self.compared is not None and self.compared.slower else 0

    def as_json(self) -> dict[str, object]:
        """For programs: what was asked for."""
        told: dict[str, object] = {}
        if self.compared is not None:
            told["times"] = self.compared.as_json()
        if self.code is not None:
            told["code"] = self.code.as_json()
        return told


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


measuring_options = gathered(
    "measuring",
    Measuring,
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
        click.option(
            "--code-coverage",
            is_flag=True,
            help="Which of the target's own code each scenario reaches; its file names the language.",
        ),
    ),
)
"""`--repeat`, `--save-baseline`, `--baseline`, `--slower`, `--code-coverage`."""
