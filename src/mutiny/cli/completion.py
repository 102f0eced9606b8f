"""What a shell offers after TAB: the names that an option or an argument can take.

click speaks with the shell (`_MUTINY_COMPLETE`); here are only the names, each kind loaded when it is
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from click.shell_completion import CompletionItem

from mutiny.errors import MutinyError

Given = Mapping[str, Any]
"""The options that were given so far."""
Names = Iterable[tuple[str, str]]
"""Names, each with a line of help."""


def offered(kind: str, given: Given, word: str) -> list[CompletionItem]:
    """The names of a kind that begin with a word; a file where none does."""
    names = [(name, about) for name, about in KINDS[kind](given) if name.startswith(word)]
    found = [CompletionItem(name, help=about) for name, about in names]
    return found or [CompletionItem(word, type="file")]


def _targets(_: Given) -> Names:
    from mutiny.targets.registry import find_spec, shipped

    for name in shipped():
        yield name, find_spec(name)[0].about


def _scenarios(given: Given) -> Names:
    from mutiny.contracts.catalogue import default_for, scenarios_about
    from mutiny.targets.registry import find_spec

    try:
        spec, _ = find_spec(given.get("target") or default_for("run").default_target)
    except MutinyError:  # a shell has no place for complaints
        return ()
    return scenarios_about(spec.contract).items()


def _plants(_: Given) -> Names:
    from longboat.plants import PLANTS

    return ((plant.name, plant.what) for plant in PLANTS.values())


def _experiments(_: Given) -> Names:
    from mutiny.modes.experiment_files import library

    return ((name, "") for name in library())


def _rules(_: Given) -> Names:
    from mutiny.contracts.catalogue import contracts

    rules = (rule for one in contracts().values() for rule in one.all_rules().values())
    return ((rule.id, rule.promise) for rule in rules)


def _contracts(_: Given) -> Names:
    from mutiny.contracts.catalogue import with_targets

    return ((name, "") for name in with_targets())


KINDS: dict[str, Callable[[Given], Names]] = {
    "targets": _targets,
    "scenarios": _scenarios,
    "plants": _plants,
    "experiments": _experiments,
    "rules": _rules,
    "contracts": _contracts,
}
