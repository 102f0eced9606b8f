"""The line between Mutiny and a box: what is sent arrives, whole or not yet."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutiny.system.wire import dumps, first_message, framed, loads, packed, unpacked

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)


@given(values)
def test_json_means_the_same_to_the_standard_library(value: Any) -> None:
    assert json.loads(dumps(value)) == value
    assert loads(json.dumps(value)) == value


@given(st.binary())
def test_bytes_come_back(data: bytes) -> None:
    assert unpacked(packed(data)) == data


def test_a_message_is_taken_when_it_is_complete_and_not_before() -> None:
    first, second = {"id": 1, "text": "Grüße"}, {"id": 2}
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


@pytest.mark.parametrize("text", ["", "{", "nonsense"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|Expecting|property"):
        loads(text)
