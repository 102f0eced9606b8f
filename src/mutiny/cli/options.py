"""Options that several commands share, and how they become a bench."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mutiny.cli import values
from mutiny.contracts.catalogue import default_for

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
_TARGET_OPTIONS = (
    click.option(
        "--target",
        type=values.TARGET,
        default=default_for("run").default_target,
        show_default=True,
        help="A target's name, or a TOML file.",
    ),
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


def target_options(function: F) -> F:
    """`--target`, `--bin`, `--plant`, `--agents`, `--isolation`, `--runs`."""
    return _with(function, _TARGET_OPTIONS)


def minimise_options(function: F) -> F:
    """`--no-minimise`, `--minimise-runs`, `--minimise-seconds`."""
    return _with(function, _MINIMISE_OPTIONS)


def _with(function: F, options: Sequence[Callable[[F], F]]) -> F:
    """The function with these options, in this order."""
    return reduce(lambda decorated, option: option(decorated), reversed(options), function)


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
