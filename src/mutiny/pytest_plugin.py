"""A plugin for pytest: a target's scenarios, seeds, goals, experiments and kept replays as tests.

`pytest --mutiny target.toml` collects every scenario of the target as a test; further options add a bounded
exploration, goals, experiments and a corpus. What proved nothing is skipped with its reason, never passed;
a known finding is expected to fail, with its reason. A test of one's own takes the fixture `mutiny`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mutiny.engine.causes import Causes
    from mutiny.model.operation import Operation
    from mutiny.modes.as_tests import Suite
    from mutiny.report.junit import Case

MANY: dict[str, Any] = {"action": "append", "default": []}


def pytest_addoption(parser: pytest.Parser) -> None:
    """What can be said on pytest's command line."""
    group = parser.getgroup("mutiny", "chaos engineering for multi-agent orchestrators")
    say = group.addoption
    say("--mutiny", metavar="TARGET", help="a target's name, or its TOML file")
    say("--mutiny-bin", metavar="PATH", help="the target's program")
    say("--mutiny-plant", metavar="NAME", default="", help="a bug to plant (longboat)")
    say("--mutiny-scenario", metavar="NAME", **MANY, help="only these; may be repeated")
    say("--mutiny-seeds", metavar="N", type=int, default=0, help="explore N seeds, too")
    say(
        "--mutiny-goals", metavar="WHERE", **MANY, help="goals, too: a file, a folder, or `shipped`"
    )
    say(
        "--mutiny-experiment",
        metavar="WHAT",
        **MANY,
        help="experiments, too: a file, a folder, a name of the library, or `shipped`",
    )
    say(
        "--mutiny-corpus",
        "--mutiny-replay",
        dest="mutiny_corpus",
        metavar="DIR",
        **MANY,
        help="a folder of kept replays, which must pass",
    )
    say("--mutiny-known", metavar="FILE", help="known findings: expected to fail")
    say("--mutiny-runs", metavar="DIR", default="chaos_runs", help="where run directories go")


class BrokenPromise(Exception):
    """A run that did not pass, for whoever reads the test's output."""

    def __init__(self, case: Case) -> None:
        said = case.reason if case.reason.startswith(case.rule) else f"{case.rule}: {case.reason}"
        super().__init__(
            f"{case.verdict.value}: {said if case.rule else case.reason}\n{case.details}"
        )
        self.case = case


class Runner:
    """What the fixture `mutiny` gives: runs against the chosen target, each in a box of its own.

    Each fails the test that asks for it when a promise is broken, skips it when nothing was proved,
    and is an expected failure when the finding is known.
    """

    def __init__(self, suite: Suite) -> None:
        self.suite = suite

    def scenario(self, name: str) -> Case:
        """Run a scenario by its name."""
        return judged(self.suite.scenario(name))

    def explore(self, seed: int, operations: int = 30) -> Case:
        """Run the sequence of a seed."""
        return judged(self.suite.explore(seed, operations))

    def replay(self, path: Path) -> Case:
        """Run a replay, which must pass."""
        return judged(self.suite.replay(path))

    def goal(self, path: Path | str) -> Case:
        """Run the goal of a file."""
        (goal,) = self.suite.goals(str(path))
        return judged(self.suite.goal(goal))

    def experiment(self, name: Path | str) -> Case:
        """Run an experiment: a file, or one of the library."""
        (loaded,) = self.suite.experiments(str(name))
        return judged(self.suite.experiment(loaded))

    def run(self, operations: Sequence[Operation], title: str, seed: int = 1) -> Case:
        """Run any sequence."""
        return judged(self.suite.run(operations, title, seed))


def judged(case: Case) -> Case:
    """Tell pytest what came of a case."""
    if case.failed:
        raise BrokenPromise(case)
    if case.known:
        pytest.xfail(case.skip)
    if case.skip:
        pytest.skip(f"inconclusive: {case.skip}")
    return case


CAUSES: pytest.StashKey[Causes] = pytest.StashKey()
"""What the failing tests have in common, for the end."""


def _suite(config: pytest.Config) -> Suite:
    from mutiny.cli.options import make_bench, with_known
    from mutiny.engine.causes import Causes
    from mutiny.engine.minimise import Budget
    from mutiny.modes.as_tests import Suite

    asked = config.getoption
    name = asked("--mutiny") or "longboat"
    root, known = Path(asked("--mutiny-runs")), asked("--mutiny-known")
    bench = make_bench(
        name, asked("--mutiny-bin"), asked("--mutiny-plant"), "double", None, root, Budget()
    )
    causes = config.stash.setdefault(CAUSES, Causes())
    return Suite(replace(with_known(bench, Path(known) if known else None), causes=causes))


@pytest.fixture(scope="session")
def mutiny(pytestconfig: pytest.Config) -> Runner:
    """Runs against the target of `--mutiny`."""
    from mutiny.errors import MutinyError

    try:
        return Runner(_suite(pytestconfig))
    except MutinyError as error:
        raise pytest.UsageError(f"mutiny: {error}") from error


class Item(pytest.Item):
    """One run as a test."""

    def __init__(self, *, work: Callable[[], Case], **given: Any) -> None:
        super().__init__(**given)
        self._work = work

    def runtest(self) -> None:
        """Run it."""
        judged(self._work())

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The finding, and where to read on; what is no finding as pytest shows it."""
        if isinstance(excinfo.value, BrokenPromise):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """There is no line of a file to show."""
        return Path("mutiny"), None, self.name


@pytest.hookimpl(tryfirst=True)  # so that `-k` chooses among them, too
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add what `--mutiny` asks for."""
    if not config.getoption("--mutiny"):
        return
    from mutiny.errors import MutinyError
    from mutiny.modes.as_tests import Wanted

    asked = config.getoption
    wanted = Wanted(
        asked("--mutiny-scenario"),
        asked("--mutiny-seeds"),
        asked("--mutiny-goals"),
        asked("--mutiny-experiment"),
        [Path(one) for one in asked("mutiny_corpus")],
    )
    try:
        for name, work in _suite(config).tests(wanted):
            items.append(Item.from_parent(session, name=f"mutiny::{name}", work=work))
    except MutinyError as error:
        raise pytest.UsageError(f"mutiny: {error}") from error


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Several failing runs may have one cause: it is told once, with its shortest replay."""
    causes = config.stash.get(CAUSES, None)
    if causes is not None and causes.groups:
        count = len(causes.groups)
        terminalreporter.section(f"mutiny: {count} distinct cause{'' if count == 1 else 's'}")
        for line in causes.told():
            terminalreporter.write_line(line)
