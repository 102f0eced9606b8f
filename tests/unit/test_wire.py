"""The line between Mutiny and a box: what is sent arrives, whole or not yet; the agent's JSON is JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutiny.box import lean_json
from mutiny.system.wire import first_message, framed, packed, unpacked

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)


@given(values)
def test_the_agents_json_is_the_standard_librarys(value: Any) -> None:
    assert lean_json.dumps(value) == json.dumps(value)
    assert lean_json.loads(json.dumps(value, indent=1)) == value
    assert lean_json.loads(json.dumps(value).encode()) == value


@pytest.mark.parametrize("text", ["", "{", "nul", "nonsense", '"\x01"'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        lean_json.loads(text)


def test_the_agents_json_refuses_what_json_refuses() -> None:
    with pytest.raises(TypeError, match="bytes"):
        lean_json.dumps({"a": b""})


@given(st.binary())
def test_bytes_come_back(data: bytes) -> None:
    assert unpacked(packed(data)) == data


def test_a_message_is_taken_when_it_is_complete_and_not_before() -> None:
    first, second = "Grüße", "{}"
    line = framed(first) + framed(second)
    arrived = bytearray()
    taken = []
    for byte in line:
        arrived.append(byte)
        while (message := first_message(arrived)) is not None:
            taken.append(message)
    assert taken == [first, second]
    assert not arrived


def test_a_length_that_cannot_be_right_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be right"):
        first_message(bytearray(b"\xff\xff\xff\xff"))
