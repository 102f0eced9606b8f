"""What a run has shown in figures: for `summary.json`, as a page, and for whoever reads a journal again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutiny.kit.measuring import Line, Measured

if TYPE_CHECKING:
    from mutiny.engine.loop import Outcome

PAGE = "run_report.html"


def measure(contract: str, lines: Sequence[Line]) -> Measured | None:
    """The figures of a journal; None: its contract measures nothing, or there was nothing to measure."""
    from mutiny.contracts.catalogue import contracts

    known = contracts().get(contract)
    if known is None or "measure" not in known.abilities:
        return None
    found: Measured | None = known.abilities["measure"].load()(lines)
    return found


def of_outcome(contract: str, outcome: Outcome) -> Measured | None:
    """The figures of a run that has just ended."""
    return measure(contract, [step.as_json() for step in (*outcome.steps, *outcome.rollback)])


def of_run(directory: Path) -> Measured | None:
    """The figures of a run that is kept; None: it measures nothing, or is not all there."""
    try:
        plan = json.loads((directory / "plan.json").read_text(encoding="utf-8"))
        text = (directory / "operations.jsonl").read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
    except (OSError, ValueError):
        return None
    return measure(str(plan.get("contract", "")), lines)


def shown(measured: Measured | None) -> dict[str, Any]:
    """What a page's template needs of it."""
    if measured is None:
        return {"measured": None, "forest": None, "tree_colours": {}}
    from mutiny.report.tree import COLOURS, tree

    forest = tree(measured.bars) if measured.bars else None
    return {"measured": measured, "forest": forest, "tree_colours": COLOURS}


def page(
    title: str, verdict: str, measured: Measured, facts: Mapping[str, object], run: Path
) -> str:
    """A page of its own for a run that is no experiment."""
    from mutiny.report.page import links_to, render

    links = links_to(run, run / PAGE)
    word = verdict.replace("_", " ").upper() if verdict != "success" else "PASSED"
    return render(
        "figures.html",
        kind="Run",
        title=title,
        verdict=verdict,
        word=word,
        facts=facts,
        links=links,
        **shown(measured),
    )
