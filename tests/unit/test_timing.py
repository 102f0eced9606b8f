"""Times against a baseline: what is slower is found, and neither noise nor a busy machine is."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mutiny.engine.timing import (
    LEAST,
    MOST,
    Samples,
    Timings,
    compare,
    ratio_of,
    read_baseline,
    write_baseline,
)
from mutiny.errors import FormatError, UsageError

NAMES = ("Add", "Claim", "Complete", "Status", "List")
LIMIT = 1.5


def measured(
    dice: random.Random, load: float, slow: str = "", count: int = 30
) -> dict[str, Samples]:
    """Times as they scatter on a machine with such a load; one operation may take twice as long."""
    found = {}
    for name in NAMES:
        factor = 2.5 if name == slow else 1.0
        times = tuple(50 * load * factor * dice.lognormvariate(0, 0.4) for _ in range(count))
        own = tuple(5 * load * dice.lognormvariate(0, 0.4) for _ in range(count))
        found[name] = Samples(times, own)
    return found


@pytest.mark.parametrize("load", [0.2, 1.0, 8.0])
def test_neither_noise_nor_a_busy_machine_is_a_finding(load: float) -> None:
    for seed in range(40):
        dice = random.Random(seed)
        found = compare(measured(dice, load), measured(dice, 1.0), LIMIT)
        assert found.slower == ()
        assert found.machine is not None
        assert found.machine.low < load < found.machine.high


@pytest.mark.parametrize("load", [0.2, 1.0, 8.0])
def test_what_takes_more_than_twice_as_long_is_found(load: float) -> None:
    for seed in range(20):
        dice = random.Random(seed)
        found = compare(measured(dice, load, "Claim", 60), measured(dice, 1.0, "", 60), LIMIT)
        assert [row.operation for row in found.slower] == ["Claim"]
        (row,) = found.slower
        assert row.ratio is not None
        assert row.ratio.low < 2.5 < row.ratio.high


def test_what_got_faster_is_no_finding() -> None:
    dice = random.Random(1)
    found = compare(measured(dice, 1.0, "", 60), measured(dice, 1.0, "Claim", 60), LIMIT)
    assert [row.operation for row in found.rows if row.word == "faster"] == ["Claim"]
    assert found.slower == ()


def test_too_few_samples_tell_nothing() -> None:
    few = (1.0,) * (LEAST - 1)
    assert ratio_of(few, (1.0,) * 50) is None
    slow = {"Add": Samples((1000.0,) * (LEAST - 1), (1.0,) * (LEAST - 1))}
    found = compare(slow, measured(random.Random(1), 1.0), LIMIT)
    assert [row.word for row in found.rows] == ["unknown"]
    assert compare({}, {}, LIMIT).rows == ()


def test_a_baseline_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    timings = Timings(measured(random.Random(1), 1.0, count=3 * MOST))
    write_baseline(path, "toy", timings)
    assert read_baseline(path, "toy") == timings.kept()
    assert len(timings.kept()["Add"].target) == MOST
    with pytest.raises(UsageError, match="measured on 'toy', not on 'other'"):
        read_baseline(path, "other")
    with pytest.raises(UsageError, match="run more scenarios"):
        write_baseline(path, "toy", Timings())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "expected"),
        ('{"format": 1, "target": "toy", "operations": {"Add": {"target": [0]}}}', "above 0"),
        ('{"format": 1, "target": "toy", "operations": {"Add": {"target": ["x"]}}}', "expected"),
        ('{"format": 2, "target": "toy", "operations": {}}', "format 2"),
        ('{"format": 1, "target": "toy", "operation": {}}', "did you mean 'operations'"),
    ],
)
def test_a_wrong_baseline_is_refused(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=told):
        read_baseline(path, "toy")
