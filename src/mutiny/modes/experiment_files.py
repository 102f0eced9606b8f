"""Experiment files: find, read, refuse. Either form, and those that ship with Mutiny."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mutiny.errors import UsageError, nearest
from mutiny.experiments import document as documents

if TYPE_CHECKING:
    from mutiny.experiments.experiment import Experiment

SUFFIXES = (".yaml", ".yml", ".json")


def library() -> dict[str, Path]:
    """The experiments that ship with Mutiny, by name."""
    own = Path(documents.__file__).parent / "library"
    return {path.stem: path for path in sorted(own.rglob("*.yaml"))}


def find(name: str) -> Path:
    """An experiment's file: a path, or the name of one that ships with Mutiny."""
    path = Path(name)
    if path.suffix in SUFFIXES or path.exists():
        return path
    known = library()
    if name not in known:
        raise UsageError(
            f"unknown experiment {name!r}{nearest(name, list(known))}; "
            "give a file, or see `mutiny experiment list`"
        )
    return known[name]


def contract_of(target: str) -> str:
    """The contract of a target."""
    from mutiny.targets.registry import find_spec

    return str(find_spec(target)[0].contract)


def load(path: Path, target: str | None = None) -> Experiment:
    """Read and check an experiment of either form; a mistake is told with its line."""
    document = documents.read(path, precise=False)
    try:
        return _understand(document, target)
    except documents.Mistakes:
        if document.precise:
            raise
        return _understand(documents.read(path, precise=True), target)


def _understand(document: documents.Document, target: str | None) -> Experiment:
    if documents.is_foreign(document.root):
        from mutiny.experiments import chaostoolkit

        return chaostoolkit.understand(document, contract_of, target)
    from mutiny.experiments import native

    return native.understand(document, contract_of, target)


def load_foreign(path: Path) -> Experiment | None:
    """The experiment, when it is a foreign one without mistakes."""
    try:
        document = documents.read(path, precise=False)
        return _understand(document, None) if documents.is_foreign(document.root) else None
    except documents.Mistakes:
        return None
