"""Explored sequences that begin like ready ones, and calm ones, in which nothing is broken."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from mutiny.kit import exploring
from mutiny.kit import operations as common
from mutiny.model.operation import Kind, Operation, walk
from mutiny.targets.registry import find_target

TARGETS = (
    *("longboat", "longboat-board", "longboat-crew", "longboat-batch", "longboat-spawns"),
    "longboat-session",
)
LENGTH = 8
SEEDS = range(24)


@cache
def contract(target: str) -> Any:
    return find_target(target).contract()


@cache
def beginnings(target: str) -> dict[int, tuple[Operation, ...]]:
    """The seeds whose sequences begin like a ready one, and how far they do."""
    explored, ready = contract(target).explored(), tuple(contract(target).scenarios.values())
    found = {seed: exploring._beginning(explored, seed, ready) for seed in SEEDS}
    return {seed: begun for seed, begun in found.items() if begun}


@pytest.mark.parametrize("target", TARGETS)
def test_some_sequences_begin_like_ready_ones_and_go_on(target: str) -> None:
    assert 1 <= len(beginnings(target)) < 0.6 * len(SEEDS)
    for seed, begun in beginnings(target).items():
        sequence = contract(target).generate(seed, LENGTH)
        assert sequence[: len(begun)] == begun
        assert len(sequence) >= len(begun) + LENGTH
        assert contract(target).generate(seed, LENGTH) == sequence
        assert contract(target).plausible(sequence, ())


@pytest.mark.parametrize("target", TARGETS)
def test_what_leads_too_far_is_not_gone_on_with(target: str) -> None:
    for begun in beginnings(target).values():
        assert sum(isinstance(one, common.Reset) for one in begun) == 1
        assert len(begun) <= exploring.FARTHEST
        parts = (part for one in begun for part in walk(one))
        slept_s = sum(part.seconds for part in parts if isinstance(part, common.Sleep))
        assert slept_s <= exploring.LONGEST_SLEEP_S


def test_two_boxes_a_long_sleep_and_a_long_way_are_too_far() -> None:
    reset, sleep = common.Reset(), common.Sleep(exploring.LONGEST_SLEEP_S)
    assert exploring.can_go_on((reset, sleep))
    assert not exploring.can_go_on((reset, sleep, common.Sleep(0.1)))
    assert not exploring.can_go_on((reset, reset))
    assert not exploring.can_go_on((reset, *(common.Settle(),) * exploring.FARTHEST))


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_broken_in_a_calm_sequence(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploring, "BEGUN", 0.0)
    explored = contract(target).explored()
    tempers = {seed: exploring._temper(seed, explored) for seed in SEEDS}
    calm = [seed for seed, temper in tempers.items() if temper.calm]
    assert 0.1 * len(SEEDS) < len(calm) < 0.7 * len(SEEDS)
    for seed in calm[:4]:
        chaos = contract(target).generate(seed, 2 * LENGTH)
        assert not any(part.kind is Kind.FAULT for one in chaos for part in walk(one)), seed
