"""The pace of a run, asked by several threads."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from mutiny.model.pace import Pace
from mutiny.targets.kit.pacing import Pacing

ASKED = 400


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_the_probe_beside_a_step_may_ask_at_the_same_moment(hasty: None) -> None:
    pacing, failed = Pacing(lambda: 1.0), list[Exception]()

    def ask() -> None:
        try:
            for _ in range(ASKED):
                pacing.took(0.1)
                pacing.now()
        except RuntimeError as error:
            failed.append(error)

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join(timeout=60)
    assert failed == []
    assert pacing.now().crowding == 1.0


@pytest.mark.parametrize(
    ("usual_s", "given_s", "moment_s"),
    [(0.5, 0.26, 0.26), (0.06, 0.26, 0.02), (0.0, 0.26, 0.26), (0.1, 0.1, 0.0)],
)
def test_a_kill_meets_a_fast_command_too(usual_s: float, given_s: float, moment_s: float) -> None:
    assert Pace(command_s=usual_s).within(given_s) == pytest.approx(moment_s)
