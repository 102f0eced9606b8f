"""Options that several commands share, and how they become a bench."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from mutiny.cli import values
from mutiny.contracts.catalogue import default_for
from mutiny.system.machine import cores

if TYPE_CHECKING:
    from mutiny.engine.minimise import Budget
    from mutiny.engine.replay import Replay
    from mutiny.modes.bench import Bench

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_ROOT = Path("chaos_runs")


json_option = click.option(
    "--json", "as_json", is_flag=True, help="One JSON document on stdout instead of the text."
)
bin_option = click.option(
    "--bin", "program", metavar="PATH", help="The target's program, when it is not on PATH."
)
plant_option = click.option(
    "--plant",
    type=values.PLANT,
    default="",
    help="A bug to plant into longboat; see `mutiny plants`.",
)
isolation_option = click.option(
    "--isolation", type=values.ISOLATION, help="Force one kind of box instead of the strongest."
)
runs_option = click.option(
    "--runs",
    "root",
    type=values.FOLDER,
    default=DEFAULT_ROOT,
    show_default=True,
    help="Where run directories go.",
)


def target_for(verb: str, what: str = "A target's name") -> Callable[[F], F]:
    """`--target`, by default the one that a verb is shown with."""
    return click.option(
        "--target",
        type=values.TARGET,
        default=default_for(verb).default_target,
        show_default=True,
        help=f"{what}, or a TOML file.",
    )


_TARGET_OPTIONS = (
    target_for("run"),
    bin_option,
    plant_option,
    click.option(
        "--agents",
        type=values.Choice(["double", "real"]),
        default="double",
        show_default=True,
        help="Deterministic doubles, or the real agent program found on PATH.",
    ),
    isolation_option,
    runs_option,
)
_MINIMISE_OPTIONS = (
    click.option(
        "--minimise/--no-minimise",
        "wanted",
        default=True,
        show_default=True,
        help="Shrink the first bug to its shortest sequence.",
    ),
    click.option(
        "--minimise-runs",
        type=values.COUNT,
        default=80,
        show_default=True,
        help="At most so many trial runs.",
    ),
    click.option(
        "--minimise-seconds",
        type=values.SECONDS,
        default=120.0,
        show_default=True,
        help="At most so many seconds.",
    ),
)


@dataclass
class Chosen:
    """What was chosen by options: a target, how it is run, and where its runs are kept."""

    program: str | None
    plant: str
    isolation: str | None
    root: Path
    agents: str = "double"
    target: str | None = None

    def bench(self, target: str | None = None, budget: Budget | None = None) -> Bench:
        """The bench for a target; unless one is named, the chosen one."""
        name = target or self.target
        assert name is not None, "a target is chosen, or named"
        return make_bench(
            name, self.program, self.plant, self.agents, self.isolation, self.root, budget
        )


@dataclass
class Shrinking:
    """Whether a bug is made smaller, and for how long."""

    wanted: bool
    minimise_runs: int
    minimise_seconds: float

    def budget(self) -> Budget | None:
        """The limits; None: it stays as it is."""
        from mutiny.engine.minimise import Budget

        if not self.wanted:
            return None
        return Budget(self.minimise_runs, self.minimise_seconds, jobs=trials_at_once())


def trials_at_once() -> int:
    """How many trials of a minimisation run side by side: one a core, and not many, or they would disturb
    one another.
    """
    return min(cores(), 4)


def gathered(name: str, kind: type[Any], options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """A decorator: these options, in this order, come to the function as one value."""
    words = [one.name for one in fields(kind)]

    def decorate(function: F) -> F:
        @wraps(function)
        def gather(**given: Any) -> Any:
            value = kind(**{word: given.pop(word) for word in words if word in given})
            return function(**{name: value}, **given)

        return reduce(
            lambda decorated, option: option(decorated), reversed(options), cast(F, gather)
        )

    return decorate


bench_options = gathered(
    "chosen", Chosen, (bin_option, plant_option, isolation_option, runs_option)
)
"""`--bin`, `--plant`, `--isolation`, `--runs`."""
target_options = gathered("chosen", Chosen, _TARGET_OPTIONS)
"""`--target`, `--bin`, `--plant`, `--agents`, `--isolation`, `--runs`."""
minimise_options = gathered("shrinking", Shrinking, _MINIMISE_OPTIONS)
"""`--no-minimise`, `--minimise-runs`, `--minimise-seconds`."""


def make_bench(
    target: str,
    program: str | None,
    plant: str,
    agents: str,
    isolation: str | None,
    root: Path,
    budget: Budget | None,
) -> Bench:
    """The bench that these options describe."""
    from mutiny.modes.bench import Bench
    from mutiny.targets.plants import check_plants
    from mutiny.targets.registry import find_target

    found = find_target(target, program=program, plant=plant, agents=agents, isolation=isolation)
    check_plants(found.spec, plant)
    return Bench(found, root, budget)


junit_option = click.option(
    "--junit",
    type=values.FILE,
    help="Write JUnit XML to a file: one case a run; what proved nothing is skipped, never passed.",
)
known_option = click.option(
    "--known",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file of known findings: they are counted and shown, and the run goes on behind them. "
    "Default: NAME.known.toml beside a target file of yours.",
)


def with_known(bench: Bench, given: Path | None) -> Bench:
    """The bench with what is known of its target: by the file that was named, or the one beside it."""
    import datetime

    from mutiny.contracts.catalogue import all_rules
    from mutiny.engine.known import load_known
    from mutiny.targets.registry import own

    origin = Path(bench.target.origin)
    beside = origin.with_suffix(".known.toml")
    path = given or (beside if origin not in own().values() and beside.is_file() else None)
    if path is None:
        return bench
    today = datetime.datetime.now(datetime.UTC).date()
    return replace(bench, known=load_known(path, today, all_rules()))


def load_sequence(path: Path, target: str | None) -> Replay:
    """A journal, replay file or list of operations, read with the words of its contract."""
    from mutiny.contracts.catalogue import operations_of
    from mutiny.engine.replay import contract_of, load
    from mutiny.targets.registry import find_spec

    said = contract_of(path)
    named = find_spec(target)[0].contract if said is None and target else None
    contract = said or named or default_for("run").name
    return load(path, operations_of(contract), contract)


def default_target(replay: Replay) -> str:
    """The target of a sequence that names none: the default of its contract."""
    from mutiny.contracts.catalogue import contract_named

    return contract_named(replay.contract).default_target


def seeing(bench: Bench, replay: Replay) -> Bench:
    """The bench for a sequence: one that came from an experiment is witnessed as it was then."""
    from mutiny.kit.experiment import EXPERIMENT_OPERATIONS

    if not any(operation.type in EXPERIMENT_OPERATIONS for operation in replay.operations):
        return bench
    from mutiny.modes.experiment import instrumented

    return instrumented(bench)


def choose_seed(given: int | None) -> int:
    """The user's seed, or one from the system that is printed and stored."""
    if given is not None:
        return given
    return int.from_bytes(os.urandom(8)) % 1_000_000
