"""The traceability matrix, made from what ran: goal, text, scenario, assertions, flake risk, job, owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mutiny.kit.goals import Gate, Row
from mutiny.report import page

HEAD = (
    *("goal", "tier", "text", "status", "assertions", "flake risk (95 %)", "CI job", "owner"),
    "test",
)


def cells(row: Row) -> tuple[str, ...]:
    """One line of the matrix."""
    goal = row.goal
    asked = max((one.evaluated for one in row.runs), default=0)
    risk = f"{row.failures} of {len(row.runs)} failed, below {row.flake_bound:.1%}"
    why = row.skipped or (row.quarantined and f"quarantined: {row.quarantined}")
    status = f"{row.status} ({why})" if why else row.status
    return (
        goal.id,
        str(goal.tier),
        goal.statement,
        status,
        f"{asked} of {len(goal.assertions)}",
        risk,
        goal.job,
        goal.owner or "-",
        Path(goal.file).name,
    )


def markdown(rows: Sequence[Row], gates: Sequence[Gate], facts: Mapping[str, object]) -> str:
    """The matrix and the gates as Markdown."""
    lines = ["# Traceability matrix", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    lines += ["", "| gate | | why |", "|---|---|---|"]
    for gate in gates:
        lines.append(f"| {gate.name} | {'passed' if gate.passed else 'FAILED'} | {gate.text} |")
    lines += ["", f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    for row in rows:
        shown = [text.replace("|", "\\|").replace("\n", " ") for text in cells(row)]
        lines.append(f"| {' | '.join(shown)} |")
    broken = [(row, one) for row in rows for one in row.runs if one.message]
    if broken:
        lines += ["", "## What was broken", ""]
        for row, one in broken:
            lines.append(f"- {row.goal.id}: {one.rule} {one.message} ({one.directory})")
    return "\n".join(lines) + "\n"


def html(rows: Sequence[Row], gates: Sequence[Gate], facts: Mapping[str, object]) -> str:
    """The same as a page."""
    passed = all(gate.passed for gate in gates)
    return page.render(
        "matrix.html",
        kind="Acceptance",
        title="Traceability matrix",
        verdict="success" if passed else "bug",
        word="ALL GATES PASSED" if passed else "A GATE FAILED",
        facts=facts,
        gates=gates,
        head=HEAD,
        rows=[(row.status, cells(row)) for row in rows],
    )


def as_json(rows: Sequence[Row], gates: Sequence[Gate]) -> dict[str, Any]:
    """`gates.json`."""
    return {
        "format": 1,
        "passed": all(gate.passed for gate in gates),
        "gates": [
            {"name": one.name, "passed": one.passed, "text": one.text, "goals": list(one.goals)}
            for one in gates
        ],
        "goals": [
            {
                "id": row.goal.id,
                "tier": row.goal.tier,
                "status": row.status,
                "assertions": len(row.goal.assertions),
                "evaluated": max((one.evaluated for one in row.runs), default=0),
                "runs": len(row.runs),
                "failures": row.failures,
                "flake_bound": round(row.flake_bound, 4),
                "rules": sorted({one.rule for one in row.runs if one.rule}),
                "quarantined": row.quarantined,
                "skipped": row.skipped,
                "seconds": round(min((one.seconds for one in row.runs), default=0.0), 3),
            }
            for row in rows
        ],
    }
