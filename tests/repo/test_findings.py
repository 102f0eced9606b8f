"""What the pages of findings say of scenarios is still so: a scenario that a finding is shown by is run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mutiny.contracts.catalogue import scenarios_about
from mutiny.targets.registry import find_target

FINDINGS = Path(__file__).parents[2] / "docs" / "findings"
SHOWN = (
    *(("coordination", "coordination-a", "## Found by", r"\| A \|"),),
    *(("coordination", "coordination-b", "## Found by", r"\| B \|"),),
    *(("coordination", "coordination-c", "## Found by", r"\| C \|"),),
    *(("llmc", "llmc", "## Found by default", r"(- |  )"),),
    *(("mycelium", "mycelium", "## Scenarios", r"\| (passed|finding \d+) \|"),),
)
"""The page, the target, the heading, and how the lines begin that name the scenarios of this target."""


def section(page: str, heading: str) -> str:
    """What stands below a heading, up to the next one."""
    text = (FINDINGS / f"{page}.md").read_text(encoding="utf-8")
    return text[text.index(f"\n{heading}") + 1 :].partition("\n## ")[0]


@pytest.mark.parametrize(("page", "target", "heading", "begins"), SHOWN, ids=lambda one: str(one))
def test_what_shows_a_finding_is_run(page: str, target: str, heading: str, begins: str) -> None:
    contract = find_target(target, program="/bin/true").contract()
    lines = [line for line in section(page, heading).splitlines() if re.match(begins, line)]
    words = {word for line in lines for word in re.findall(r"`([a-z0-9_]+)`", line)}
    named = words & set(scenarios_about(contract.name))
    assert len(named) > 5
    assert sorted(named - set(contract.scenarios)) == []
