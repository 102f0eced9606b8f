"""Does Mutiny find what it promises to find, and does its minimal replay show the plant itself?

Every plant with every scenario, sweep and experiment that is said to find it: found, minimised to its known
length, and the minimal replay fails with the plant and passes without it. `conftest.py` prints the table.
"""

from __future__ import annotations

import pytest

from plants import MINIMAL, SHORTER, proved_once
from prove import Case, cases, prove

KNOWN = (*proved_once(SHORTER), *proved_once(MINIMAL))
NEVER_PROVED_FIRST = sorted(cases(), key=lambda case: case.id in KNOWN)
"""A suite that is broken off has then done what nobody did before it."""
pytestmark = pytest.mark.slow


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case.id for case in cases()]
    assert len(set(names)) == len(names) > 200


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", NEVER_PROVED_FIRST, ids=lambda case: case.id)
def test_its_minimal_replay_fails_with_it_and_passes_without_it(case: Case) -> None:
    row = prove(case)
    assert not row.problem, f"{row.text}\n" + "\n".join(row.operations)
