"""What a target tells of a thing against what it keeps of it."""

from __future__ import annotations

import pytest

from mutiny.kit.telling import untrue

WAS = {"id": "r1", "status": "running", "tasks": {"a": {"tries": 0}}, "rows": [{"n": 1}, {"n": 2}]}
NOW = {"id": "r1", "status": "complete", "tasks": {"a": {"tries": 2}}, "rows": [{"n": 1}, {"n": 3}]}


@pytest.mark.parametrize("told", [WAS, NOW, {**NOW, "status": "running"}, {"more": 1}, {}])
def test_as_it_was_or_as_it_is(told: dict[str, object]) -> None:
    assert untrue(told, WAS, NOW) is None


@pytest.mark.parametrize(
    ("told", "place"),
    [
        ({"id": "r2"}, "id"),
        ({"status": "paused"}, "status"),
        ({"tasks": {"a": {"tries": 7}}}, "tasks.a.tries"),
        ({"rows": [{"n": 1}]}, "rows"),
        ({"rows": [{"n": 1}, {"n": 9}]}, "rows.1.n"),
        ({"tasks": None}, "tasks"),
    ],
)
def test_what_never_was_so(told: dict[str, object], place: str) -> None:
    found = untrue(told, WAS, NOW)
    assert found is not None
    assert found.place == place


def test_what_is_at_work_may_have_been_anything_between() -> None:
    assert untrue({"status": "paused"}, WAS, NOW, moving=True) is None
    assert untrue({"tasks": {"a": {"tries": 1}}}, WAS, NOW, moving=True) is None
    assert untrue({"id": "r2"}, WAS, NOW, moving=True) is not None


def test_what_changes_by_being_looked_at_is_left_out() -> None:
    assert (
        untrue(
            {"seen": 3, "id": "r1"},
            {"seen": 1, "id": "r1"},
            {"seen": 2, "id": "r1"},
            quiet=["seen"],
        )
        is None
    )


def test_a_thing_that_came_to_be_is_as_it_is_now() -> None:
    assert untrue({"id": "r1"}, None, {"id": "r1"}) is None
    assert untrue({"id": "r2"}, None, {"id": "r1"}) is not None
