"""Which contracts there are: one descriptor in each folder beside this file, and those of installed
packages.

A package offers a contract through the entry-point group `mutiny.contracts`; the entry point is a
`kit.descriptor.Descriptor`. Nothing of a contract but its descriptor is loaded here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

import mutiny.contracts
from mutiny.errors import UsageError, nearest
from mutiny.kit.descriptor import Descriptor

if TYPE_CHECKING:
    from mutiny.kit.language import Language
    from mutiny.model.operation import Operation
    from mutiny.model.violation import Rule

ENTRY_POINTS = "mutiny.contracts"


@cache
def own() -> Mapping[str, Descriptor]:
    """The contracts that ship with Mutiny, by name, in the order of their rank."""
    found = [
        import_module(f"{mutiny.contracts.__name__}.{module.name}.descriptor").DESCRIPTOR
        for module in iter_modules(mutiny.contracts.__path__)
        if module.ispkg
    ]
    return _by_name(found)


@cache
def contracts() -> Mapping[str, Descriptor]:
    """All contracts by name: Mutiny's own, and those of installed packages."""
    from importlib.metadata import entry_points

    foreign = [entry.load() for entry in entry_points(group=ENTRY_POINTS)]
    return _by_name([*own().values(), *foreign])


def _by_name(found: list[Descriptor]) -> Mapping[str, Descriptor]:
    ordered = sorted(found, key=lambda one: (one.rank, one.name))
    names = [one.name for one in ordered]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two contracts are called {name!r}")
    return {one.name: one for one in ordered}


def find(name: str) -> Descriptor | None:
    """The contract of this name; packages are looked through only for a name that is none of our own."""
    return own().get(name) or contracts().get(name)


def contract_named(name: str) -> Descriptor:
    """The contract of this name; UsageError names the nearest one."""
    found = find(name)
    if found is None:
        known = list(contracts())
        raise UsageError(
            f"unknown contract {name!r}{nearest(name, known)}; known: {', '.join(known)}"
        )
    return found


def default_for(mode: str) -> Descriptor:
    """The contract that a mode takes when nobody names a target or a contract."""
    for one in own().values():
        if mode in one.default_for:
            return one
    raise UsageError(f"no contract is the default of {mode}; name a target")


def with_targets() -> Mapping[str, Descriptor]:
    """The contracts that target files can be written for."""
    return {name: one for name, one in contracts().items() if one.target_form is not None}


def operations_of(contract: str) -> Mapping[str, type[Operation]]:
    """All operations of a contract by name, and those that experiments add to every contract."""
    return contract_named(contract).all_operations()


def rules_of(contract: str) -> Mapping[str, Rule]:
    """All rules of a contract by id."""
    return contract_named(contract).all_rules()


def all_rules() -> Mapping[str, Rule]:
    """The rules of all contracts by id."""
    return {name: rule for one in contracts().values() for name, rule in one.all_rules().items()}


def scenarios_about(contract: str) -> Mapping[str, str]:
    """All scenarios of a contract by name, in one line each; a target may have fewer."""
    return contract_named(contract).all_about()


def language_of(contract: str) -> Language:
    """What experiments may say about a contract."""
    return contract_named(contract).language.load()
