"""Policies are pure: a call in, an action out."""

from __future__ import annotations

import errno

import pytest

from mutiny.syscalls.calls import Call
from mutiny.syscalls.policies import (
    BeforeEach,
    Continue,
    CrashAt,
    Delay,
    DelayBelow,
    Fail,
    FailAt,
    FailBelow,
    FullFrom,
    KillProcess,
    KillProcessAt,
    KillWorld,
    Perform,
    Policy,
    Record,
    Selection,
    Tear,
    TearAt,
    TearBelow,
    is_below,
)


def call(index: int, name: str = "write", file: str = "/state/a", length: int = 10) -> Call:
    return Call(index, 1, "x#1", name, (file,), (file,), length=length)


def test_policies_at_one_place_act_there_only() -> None:
    pairs: list[tuple[Policy, object]] = [
        (CrashAt(3), KillWorld()),
        (KillProcessAt(3), KillProcess()),
        (FailAt(3, "ENOSPC"), Fail(errno.ENOSPC)),
        (TearAt(3, "short"), Tear("short")),
    ]
    for policy, action in pairs:
        assert policy.decide(call(3), 0) == action
        assert policy.decide(call(2), 0) == policy.decide(call(4), 1) == Continue()


def test_a_disk_that_fills_up_refuses_every_write_from_there_on() -> None:
    policy = FullFrom(3)
    assert policy.decide(call(2), 0) == policy.decide(call(9, "rename"), 5) == Continue()
    assert policy.decide(call(3), 0) == policy.decide(call(4), 1) == Fail(errno.ENOSPC)


def test_recording_changes_nothing() -> None:
    assert Record().decide(call(0), 0) == Continue()


def test_selection_by_subtree_and_name() -> None:
    policy = FailBelow(Selection("/state/sub", frozenset({"write", "fsync"})), "EROFS")
    assert policy.decide(call(0, "write", "/state/sub/x"), 5) == Fail(errno.EROFS)
    assert policy.decide(call(0, "write", "/state/subway"), 0) == Continue()
    assert policy.decide(call(0, "rename", "/state/sub/x"), 0) == Continue()


def test_a_failing_subtree_may_heal_after_some_calls() -> None:
    policy = FailBelow(Selection("/state"), "EIO", count=2)
    assert policy.decide(call(0), 1) == Fail(errno.EIO)
    assert policy.decide(call(0), 2) == Continue()


def test_only_writes_of_two_bytes_and_more_can_be_torn_and_only_once() -> None:
    assert TearAt(0, "kill").decide(call(0, "rename"), 0) == Continue()
    assert TearAt(0, "kill").decide(call(0, length=1), 0) == Continue()
    policy = TearBelow(Selection("/state"), "lie")
    assert policy.decide(call(4), 0) == Tear("lie")
    assert policy.decide(call(5), 1) == Continue()


def test_delay_and_effects() -> None:
    assert DelayBelow(Selection("/state/a"), 0.5).decide(call(0), 9) == Delay(0.5)
    seen: list[Call] = []
    action = BeforeEach(seen.append).decide(call(0), 0)
    assert isinstance(action, Perform)
    assert seen == []  # deciding does nothing by itself


@pytest.mark.parametrize("name", ["ENOSUCH", "errorcode", "28"])
def test_unknown_errors_are_refused_at_once(name: str) -> None:
    with pytest.raises(ValueError, match="unknown error name"):
        FailAt(0, name)


def test_below_is_not_a_prefix_of_text() -> None:
    assert is_below("/a/b", "/a/b")
    assert is_below("/a/b/c", "/a/b")
    assert not is_below("/a/bc", "/a/b")
