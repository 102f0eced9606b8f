"""What explored sequences take from ready ones (beginnings, topics, values), and calm ones."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
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


@pytest.mark.parametrize("target", TARGETS)
def test_a_topic_is_wanted_more_than_the_rest(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the commands that a topic is about there are more than of the same commands without it."""
    for share in ("BEGUN", "CALM", "LENT"):
        monkeypatch.setattr(exploring, share, 0.0)
    explored, ready = contract(target).explored(), tuple(contract(target).scenarios.values())
    commands = {move.make for move in explored.commands()}

    def counted(topical: float) -> int:
        monkeypatch.setattr(exploring, "TOPICAL", topical)
        return sum(
            type(part) in topics[seed]
            for seed in topics
            for one in contract(target).generate(seed, 3 * LENGTH)
            for part in walk(one)
        )

    monkeypatch.setattr(exploring, "TOPICAL", 1.0)
    topics = {seed: commands & set(_tastes(explored, seed, ready)) for seed in SEEDS[:6]}
    assert all(topics.values())
    assert counted(1.0) > 1.1 * counted(0.0)


def _tastes(explored: Any, seed: int, ready: Any) -> Any:
    return exploring._temper(seed, explored, ready).tastes


def test_damage_is_looked_at_before_it_is_put_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead daemon, and what the program's own health check says of that."""
    monkeypatch.setattr(exploring, "BEGUN", 0.0)
    monkeypatch.setattr(exploring, "LOOKED", 1.0)
    looked = {
        after.type
        for seed in SEEDS
        for one, after in pairwise(contract("longboat").generate(seed, 3 * LENGTH))
        if one.type == "KillDaemon" and not one.children()
    }
    assert {"Doctor", "Status"} <= looked <= {"Doctor", "Status", "Up"}  # at the end it comes up


def test_values_are_lent_by_ready_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole plans of the scenarios come up in sequences that nothing else has in common with them."""
    monkeypatch.setattr(exploring, "BEGUN", 0.0)
    of_batch = contract("longboat-batch")

    def plans() -> set[tuple[str, ...]]:
        made = (of_batch.generate(seed, 3 * LENGTH) for seed in SEEDS)
        return {one.tasks for made_one in made for one in made_one if one.type == "Plan"}

    ready = {one.tasks for s in of_batch.scenarios.values() for one in s if one.type == "Plan"}
    monkeypatch.setattr(exploring, "LENT", 0.0)
    before = plans() & ready
    monkeypatch.setattr(exploring, "LENT", 1.0)
    assert len(plans() & ready) > len(before)


def test_what_was_done_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two messages in a row are more than one message."""
    monkeypatch.setattr(exploring, "BEGUN", 0.0)

    def repeated(again: float) -> int:
        monkeypatch.setattr(exploring, "AGAIN", again)
        made = (contract("longboat").generate(seed, 5 * LENGTH) for seed in SEEDS)
        pairs = (pair for sequence in made for pair in pairwise(sequence))
        return sum(one.type == other.type for one, other in pairs if one.kind is Kind.COMMAND)

    assert repeated(8.0) > repeated(1.0)
