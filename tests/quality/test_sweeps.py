"""Which plants only a sweep can find; `test_every_plant.py` proves that it does."""

from __future__ import annotations

from longboat.plants import PLANTS

SWEPT = {plant.name: plant.sweep for plant in PLANTS.values() if plant.sweep}


def test_there_are_ten_plants_that_need_a_sweep() -> None:
    assert len(SWEPT) >= 10
    assert {text.split()[0] for text in SWEPT.values()} == {
        *("crash", "errno", "torn", "fsync", "preempt")
    }
