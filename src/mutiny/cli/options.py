"""Options that several commands share, and how they become a bench."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mutiny.cli import words

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutiny.engine.minimise import Budget
    from mutiny.engine.replay import Replay
    from mutiny.modes.bench import Bench

    F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_ROOT = Path("chaos_runs")


def target_options(function: F) -> F:
    """`--target`, `--bin`, `--plant`, `--agents`, `--isolation`, `--runs`."""
    for option in reversed(
        (
            words.option(
                "--target",
                complete="targets",
                default="longboat",
                show_default=True,
                help="A target's name, or a TOML file.",
            ),
            words.option(
                "--bin",
                "program",
                metavar="PATH",
                help="The target's program, when it is not on PATH.",
            ),
            words.option(
                "--plant",
                complete="plants",
                default="",
                help="A bug to plant into longboat; see `mutiny plants`.",
            ),
            words.option(
                "--agents",
                type=words.Choice(["double", "real"]),
                default="double",
                show_default=True,
                help="Deterministic doubles, or the real agent program found on PATH.",
            ),
            words.option(
                "--isolation",
                type=words.Choice(["bwrap", "unshare", "cgroup", "subreaper"]),
                help="Force one kind of box instead of the strongest.",
            ),
            words.option(
                "--runs",
                "root",
                type=words.Path(path_type=Path, file_okay=False),
                default=DEFAULT_ROOT,
                show_default=True,
                help="Where run directories go.",
            ),
        )
    ):
        function = option(function)
    return function


def minimise_options(function: F) -> F:
    """`--no-minimise`, `--minimise-runs`, `--minimise-seconds`."""
    for option in reversed(
        (
            words.option(
                "--minimise/--no-minimise",
                "wanted",
                default=True,
                show_default=True,
                help="Shrink the first bug to its shortest sequence.",
            ),
            words.option(
                "--minimise-runs",
                type=words.COUNT,
                default=80,
                show_default=True,
                help="At most so many trial runs.",
            ),
            words.option(
                "--minimise-seconds",
                type=words.SECONDS,
                default=120.0,
                show_default=True,
                help="At most so many seconds.",
            ),
        )
    ):
        function = option(function)
    return function


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

    check_plants(target, plant)
    found = find_target(target, program=program, plant=plant, agents=agents, isolation=isolation)
    return Bench(found, root, budget)


def load_sequence(path: Path, target: str | None) -> Replay:
    """A journal, replay file or list of operations, read with the words of its contract."""
    from mutiny.contracts.catalogue import operations_of
    from mutiny.engine.replay import contract_of, load
    from mutiny.targets.registry import find_spec

    said = contract_of(path)
    named = find_spec(target)[0].contract if said is None and target else None
    contract = said or named or "workers"
    return load(path, operations_of(contract), contract=contract)


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
