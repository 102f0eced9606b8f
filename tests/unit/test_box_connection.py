"""Mutiny's end of the line, against an agent that is played by the test."""

from __future__ import annotations

import json
import os
import queue
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mutiny.box.connection import AgentConnection
from mutiny.box.errors import BoxDied


def frame(message: dict[str, Any]) -> bytes:
    body = json.dumps(message).encode()
    return struct.pack(">I", len(body)) + body


class Stage:
    """A connection, and the other end of it in the hands of the test."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.theirs.settimeout(10)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.connection = AgentConnection(ours, self.events.put, lambda: "it was hit by a bus")

    def greet(self) -> int:
        self.theirs.sendall(frame({"event": "hello"}))
        return self.connection.greet(5)

    def receive(self) -> dict[str, Any]:
        (length,) = struct.unpack(">I", self.theirs.recv(4, socket.MSG_WAITALL))
        message: dict[str, Any] = json.loads(self.theirs.recv(length, socket.MSG_WAITALL))
        return message


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.theirs.close()
    made.connection.close()
    made.connection.close()


def call_in_thread(stage: Stage, request: dict[str, Any]) -> queue.SimpleQueue[object]:
    result: queue.SimpleQueue[object] = queue.SimpleQueue()

    def call() -> None:
        try:
            result.put(stage.connection.call(request, 10))
        except BoxDied as error:
            result.put(error)

    threading.Thread(target=call, daemon=True).start()
    return result


def test_the_kernel_names_the_sender(stage: Stage) -> None:
    assert stage.greet() == os.getpid()
    assert stage.events.get(timeout=5) == {"event": "hello"}


def test_answers_find_their_callers_in_any_order(stage: Stage) -> None:
    stage.greet()
    first = call_in_thread(stage, {"op": "a"})
    first_id = stage.receive()["id"]
    second = call_in_thread(stage, {"op": "b"})
    second_id = stage.receive()["id"]
    stage.theirs.sendall(frame({"id": second_id, "n": 2}) + frame({"id": first_id, "n": 1}))
    assert second.get(timeout=5) == {"id": second_id, "n": 2}
    assert first.get(timeout=5) == {"id": first_id, "n": 1}


def test_events_come_between_answers_and_in_pieces(stage: Stage) -> None:
    stage.greet()
    stage.events.get(timeout=5)
    answer = call_in_thread(stage, {"op": "a"})
    identity = stage.receive()["id"]
    for byte in frame({"event": "exit", "pid": 3}) + frame({"id": identity}):
        stage.theirs.sendall(bytes([byte]))
    assert stage.events.get(timeout=5) == {"event": "exit", "pid": 3}
    assert answer.get(timeout=5) == {"id": identity}


def test_the_end_of_the_line_reaches_waiting_and_later_calls(stage: Stage) -> None:
    stage.greet()
    answer = call_in_thread(stage, {"op": "a"})
    stage.receive()
    stage.theirs.close()
    error = answer.get(timeout=5)
    assert isinstance(error, BoxDied)
    assert "hit by a bus" in str(error)
    with pytest.raises(BoxDied, match="hit by a bus"):
        stage.connection.call({"op": "b"}, 5)


def test_an_expected_end_has_its_own_reason(stage: Stage) -> None:
    stage.greet()
    answer = call_in_thread(stage, {"op": "a"})
    stage.receive()
    stage.connection.expect_end("the box was killed")
    stage.theirs.close()
    assert str(answer.get(timeout=5)) == "the box was killed"


def test_rubbish_on_the_line_is_a_death_not_a_hang(stage: Stage) -> None:
    stage.greet()
    answer = call_in_thread(stage, {"op": "a"})
    stage.receive()
    stage.theirs.sendall(b"\xff\xff\xff\xff rubbish")
    error = answer.get(timeout=5)
    assert isinstance(error, BoxDied)
    assert "cannot be right" in str(error)


def test_an_agent_that_does_not_answer(stage: Stage) -> None:
    stage.greet()
    with pytest.raises(BoxDied, match=r"did not answer within 0\.0 s"):
        stage.connection.call({"op": "a"}, 0.01)


def test_no_hello(stage: Stage) -> None:
    with pytest.raises(BoxDied, match="did not say hello"):
        stage.connection.greet(0.01)


def test_an_end_before_the_hello(stage: Stage) -> None:
    stage.theirs.close()
    with pytest.raises(BoxDied, match="did not start: it was hit by a bus"):
        stage.connection.greet(5)
