"""A plugin for pytest: a target's scenarios, seeds and kept replays as tests, with readable failures.

`pytest --mutiny target.toml` collects every scenario of the target as a test; `--mutiny-seeds N` adds a
bounded exploration, `--mutiny-replay DIR` every replay of a folder. What proved nothing is skipped with its
reason, never passed. A test of one's own takes the fixture `mutiny`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mutiny.engine.loop import Outcome
    from mutiny.model.operation import Operation
    from mutiny.modes.bench import Bench

FIRST_SEED = 1


def pytest_addoption(parser: pytest.Parser) -> None:
    """What can be said on pytest's command line."""
    group = parser.getgroup("mutiny", "chaos engineering for multi-agent orchestrators")
    group.addoption("--mutiny", metavar="TARGET", help="a target's name, or its TOML file")
    group.addoption("--mutiny-bin", metavar="PATH", help="the target's program")
    group.addoption("--mutiny-plant", metavar="NAME", default="", help="a bug to plant (longboat)")
    group.addoption(
        "--mutiny-scenario", metavar="NAME", action="append", help="only these; may be repeated"
    )
    group.addoption("--mutiny-seeds", metavar="N", type=int, default=0, help="explore N seeds, too")
    group.addoption(
        "--mutiny-replay", metavar="DIR", action="append", default=[], help="replays that must pass"
    )
    group.addoption(
        "--mutiny-runs", metavar="DIR", default="chaos_runs", help="where run directories go"
    )


class BrokenPromise(Exception):
    """A run that did not pass."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome

    def told(self) -> str:
        """For whoever reads the test's output."""
        outcome, directory = self.outcome, self.outcome.directory
        step = outcome.failed_step
        at = "" if step is None else f"step {step.sequence_id}, {step.operation}: "
        lines = [f"{outcome.verdict.value}: {at}{outcome.rule or ''}", outcome.reason]
        lines += [
            f"report: {directory.report_path}",
            f"replay: mutiny replay {directory.replay_path}",
        ]
        return "\n".join(lines)


class Runner:
    """What the fixture `mutiny` gives: runs against the chosen target, each in a box of its own."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def scenario(self, name: str) -> Outcome:
        """Run a scenario by its name."""
        return self.run(self.bench.target.contract().scenarios[name], name)

    def explore(self, seed: int, operations: int = 30) -> Outcome:
        """Run the sequence of a seed."""
        sequence = self.bench.target.contract().generate(seed, operations)
        return self.run(sequence, f"explore seed {seed}", seed)

    def replay(self, path: Path) -> Outcome:
        """Run a replay."""
        from mutiny.engine.replay import load

        contract = self.bench.target.contract()
        kept = load(path, contract.operations, contract=contract.name)
        return self.run(kept.operations, path.stem, kept.seed)

    def run(self, operations: tuple[Operation, ...], title: str, seed: int = FIRST_SEED) -> Outcome:
        """Run any sequence; one that did not pass fails the test, or skips it where it proved nothing."""
        from mutiny.model.verdict import Verdict
        from mutiny.modes.bench import Assignment

        outcome = self.bench.run(Assignment(tuple(operations), title, seed))
        if outcome.verdict is Verdict.INCONCLUSIVE:
            pytest.skip(f"inconclusive: {outcome.reason}")
        if outcome.verdict.stops_run:
            raise BrokenPromise(outcome)
        return outcome


def _runner(config: pytest.Config) -> Runner:
    from mutiny.cli.options import make_bench
    from mutiny.engine.minimise import Budget
    from mutiny.errors import MutinyError

    target = config.getoption("--mutiny")
    try:
        bench = make_bench(
            target or "longboat",
            config.getoption("--mutiny-bin"),
            config.getoption("--mutiny-plant"),
            "double",
            None,
            Path(config.getoption("--mutiny-runs")),
            Budget(),
        )
    except MutinyError as error:
        raise pytest.UsageError(f"mutiny: {error}") from error
    return Runner(bench)


@pytest.fixture(scope="session")
def mutiny(pytestconfig: pytest.Config) -> Runner:
    """Runs against the target of `--mutiny`."""
    return _runner(pytestconfig)


class Item(pytest.Item):
    """One run as a test."""

    def __init__(self, *, work: Callable[[], object], **given: Any) -> None:
        super().__init__(**given)
        self._work = work

    def runtest(self) -> None:
        """Run it."""
        self._work()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The finding, and where to read on; what is no finding as pytest shows it."""
        if isinstance(excinfo.value, BrokenPromise):
            return excinfo.value.told()
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """There is no line of a file to show."""
        return Path("mutiny"), None, self.name


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add what `--mutiny` asks for."""
    if config.getoption("--mutiny"):
        runner = _runner(config)
        for name, work in _wanted(runner, config):
            items.append(Item.from_parent(session, name=f"mutiny::{name}", work=work))


def _wanted(runner: Runner, config: pytest.Config) -> Iterator[tuple[str, Callable[[], object]]]:
    known = runner.bench.target.contract().scenarios
    chosen = config.getoption("--mutiny-scenario") or list(known)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise pytest.UsageError(f"mutiny: unknown scenario {unknown[0]!r}")
    for name in chosen:
        yield name, lambda name=name: runner.scenario(name)  # type: ignore[misc]
    for seed in range(FIRST_SEED, FIRST_SEED + config.getoption("--mutiny-seeds")):
        yield f"seed {seed}", lambda seed=seed: runner.explore(seed)  # type: ignore[misc]
    for folder in config.getoption("--mutiny-replay"):
        for path in sorted(Path(folder).glob("*.json")):
            yield f"replay {path.stem}", lambda path=path: runner.replay(path)  # type: ignore[misc]
