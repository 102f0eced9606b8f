"""The one form of everything that `--json` prints: what a program reads first is the same for every verb.

`format`, `verb`, `verdict`, `exit_code`, `target`, `plant`, `seed` and `error` are always there, null where
they mean nothing; the verb's own fields stand beside them. `schemas/output.schema.json` says it exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutiny import stopping
from mutiny.cli.output import echo_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutiny.model.verdict import Verdict
    from mutiny.modes.bench import Bench

FORMAT = 1
JSON = "--json"
_KINDS = {2: "usage", 3: "inconclusive", 130: "interrupted", 143: "interrupted"}
"""What an error is, by its exit code; every other one is Mutiny's own failure."""


def tell(
    verb: str,
    exit_code: int,
    own: Mapping[str, object],
    *,
    verdict: str | None = None,
    target: str | None = None,
    plant: str | None = None,
    seed: int | None = None,
    error: str | None = None,
) -> None:
    """Print the one document of a command; what it says of itself in `own` goes first."""
    if stopping.asked():
        exit_code, error = stopping.exit_code(), error or stopping.reason()
    told = None if error is None else {"kind": _KINDS.get(exit_code, "failure"), "message": error}
    echo_json(
        {
            "format": FORMAT,
            "verb": verb,
            "verdict": verdict,
            "exit_code": exit_code,
            "target": target,
            "plant": plant or None,
            "seed": seed,
            "error": told,
            **own,
        }
    )


def tell_tried(
    verb: str,
    bench: Bench,
    verdict: Verdict,
    own: Mapping[str, object],
    seed: int | None = None,
    *,
    exit_code: int | None = None,
) -> None:
    """Print what came of trying a target; the exit code is that of the verdict, unless a gate failed."""
    plant = bench.target.options.plant
    tell(
        verb,
        verdict.exit_code if exit_code is None else exit_code,
        own,
        verdict=verdict.value,
        target=bench.target.name,
        plant=plant,
        seed=seed,
    )


def tell_error(verb: str, exit_code: int, message: str) -> None:
    """Print why a command gave no answer."""
    verdict = "inconclusive" if exit_code == 3 else None
    tell(verb, exit_code, {}, verdict=verdict, error=message.removeprefix("mutiny: "))
