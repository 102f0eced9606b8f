"""The in-box agent by itself, without walls: its protocol byte by byte."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mutiny.box.box import _BOOT
from mutiny.box.mounts import SOURCE_ROOT
from mutiny.system.processes import is_alive, wait_gone

PYTHON = str(Path(sys.executable).resolve())
LIMIT_S = 20


class Line:
    """A bare client of the agent."""

    def __init__(self, tmp_path: Path) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(LIMIT_S)
        options = json.dumps({"scope": "subreaper"})
        with theirs:
            self.process = subprocess.Popen(
                [PYTHON, "-IS", "-c", _BOOT, str(SOURCE_ROOT), str(theirs.fileno()), options],
                pass_fds=[theirs.fileno()],
                env={"MUTINY_BOX": f"unit-{os.getpid()}", "PATH": "/usr/bin:/bin"},
                stderr=subprocess.PIPE,
            )
        self.file = self.socket.makefile("rb")
        self.cwd = str(tmp_path)

    def send(self, **request: Any) -> None:
        body = json.dumps(request).encode()
        self.socket.sendall(struct.pack(">I", len(body)) + body)

    def receive(self) -> dict[str, Any]:
        header = self.file.read(4)
        assert len(header) == 4, "the agent closed the line"
        message: dict[str, Any] = json.loads(self.file.read(struct.unpack(">I", header)[0]))
        return message

    def run(
        self, identity: int, *argv: str, stdin: bytes = b"", timeout_s: float = LIMIT_S
    ) -> None:
        encoded = base64.b64encode(stdin).decode()
        self.send(
            id=identity,
            op="run",
            argv=argv,
            cwd=self.cwd,
            env={},
            stdin=encoded,
            timeout_s=timeout_s,
        )


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    made = Line(tmp_path)
    hello = made.receive()
    assert hello["event"] == "hello"
    assert hello["pid"] == made.process.pid
    yield made
    made.file.close()
    made.socket.close()
    _, complaints = made.process.communicate(timeout=LIMIT_S)
    assert complaints == b""
    assert made.process.returncode == 0


def test_answers_carry_the_number_of_their_request(line: Line) -> None:
    line.send(id=17, op="ping")
    assert line.receive() == {"id": 17}


def test_a_request_may_arrive_in_pieces_and_two_at_once(line: Line) -> None:
    body = json.dumps({"id": 1, "op": "ping"}).encode()
    frame = struct.pack(">I", len(body)) + body
    for byte in frame:
        line.socket.sendall(bytes([byte]))
    assert line.receive() == {"id": 1}
    line.socket.sendall(frame + frame)
    assert [line.receive(), line.receive()] == [{"id": 1}, {"id": 1}]


def test_a_bad_request_is_answered_and_survived(line: Line) -> None:
    line.send(id=1, op="fly")
    assert line.receive() == {"id": 1, "error": "KeyError: 'fly'", "errno": None, "file": None}
    line.send(id=2, op="run", argv=["true"])
    assert "KeyError" in line.receive()["error"]
    line.run(3, "no-such-program")
    assert line.receive()["error"] == "no such program on PATH"
    line.send(id=4, op="ping")
    assert line.receive() == {"id": 4}


def test_answers_come_in_the_order_of_the_ends(line: Line) -> None:
    line.run(1, "cat", stdin=b"x" * 10, timeout_s=LIMIT_S)
    line.run(2, "sleep", "0.2")
    line.run(3, "true")
    order = [line.receive()["id"] for _ in range(3)]
    assert sorted(order) == [1, 2, 3]
    assert order[-1] == 2


def test_bytes_are_kept_exactly(line: Line) -> None:
    data = bytes(range(256)) * 100
    line.run(1, "cat", stdin=data)
    answer = line.receive()
    assert base64.b64decode(answer["stdout"]) == data
    assert answer["exit_code"] == 0
    assert answer["truncated"] is False


def test_a_time_out_of_zero_kills_at_once(line: Line) -> None:
    line.run(1, "sleep", "60", timeout_s=0)
    answer = line.receive()
    assert answer["timed_out"] is True
    assert answer["signal"] == signal.SIGKILL


def test_the_end_of_a_spawned_process_is_an_event(line: Line, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    line.send(
        id=1, op="spawn", argv=["sh", "-c", "echo hi; exit 4"], cwd=line.cwd, env={}, output=log
    )
    started = line.receive()
    event = line.receive()
    assert event == {
        "event": "exit",
        "pid": started["pid"],
        "start": started["start"],
        "exit_code": 4,
        "signal": None,
    }
    assert (tmp_path / "log").read_text() == "hi\n"


def test_waiting_for_the_end_of_a_process(line: Line, tmp_path: Path) -> None:
    line.send(
        id=1, op="spawn", argv=["sleep", "60"], cwd=line.cwd, env={}, output=str(tmp_path / "log")
    )
    started = line.receive()
    identity = {"pid": started["pid"], "start": started["start"]}
    line.send(id=2, op="wait_gone", **identity, timeout_s=0.01)
    assert line.receive() == {"id": 2, "gone": False}
    line.send(id=3, op="wait_gone", **identity, timeout_s=LIMIT_S)
    line.send(id=4, op="signal", **identity, signal=9)
    messages = [line.receive() for _ in range(3)]
    assert {"id": 4, "delivered": True, "reason": None} in messages
    assert {"id": 3, "gone": True} in messages
    assert messages[0]["id"] == 4


def test_the_agent_refuses_to_shoot_itself(line: Line) -> None:
    line.send(id=1, op="signal", pid=line.process.pid, start=0, signal=9)
    answer = line.receive()
    assert answer["delivered"] is False
    assert "agent" in answer["reason"]


def test_processes_are_those_of_the_box_only(line: Line, tmp_path: Path) -> None:
    line.send(
        id=1, op="spawn", argv=["sleep", "60"], cwd=line.cwd, env={}, output=str(tmp_path / "log")
    )
    started = line.receive()
    line.send(id=2, op="processes")
    rows = line.receive()["processes"]
    assert [row["pid"] for row in rows] == [started["pid"]]
    assert rows[0]["argv"] == ["sleep", "60"]
    assert rows[0]["ppid"] == line.process.pid
    assert rows[0]["sid"] == started["pid"]
    assert rows[0]["tty"] is False


def test_the_end_of_the_line_is_the_end_of_everything(tmp_path: Path) -> None:
    line = Line(tmp_path)
    line.receive()
    script = f"{PYTHON} -IS -c 'import os; os.setsid(); print(os.getpid())'; sleep 60 & echo $!"
    line.run(1, "sh", "-c", script)
    pid = int(base64.b64decode(line.receive()["stdout"]).split()[-1])
    line.send(id=2, op="processes")
    row = next(row for row in line.receive()["processes"] if row["pid"] == pid)
    assert is_alive(pid, row["start"])
    line.file.close()
    line.socket.close()
    assert wait_gone(pid, row["start"], LIMIT_S)
    assert line.process.wait(LIMIT_S) == 0
    assert line.process.stderr is not None
    line.process.stderr.close()


def test_the_agent_imports_little() -> None:
    """Every box pays for each import: the agent must not pull in the comfortable half of Python."""
    code = "import sys;sys.path.insert(0,sys.argv[1]);import mutiny.box.agent;print(*sys.modules)"
    done = subprocess.run(
        [PYTHON, "-IS", "-c", code, str(SOURCE_ROOT)], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    heavy = {"typing", "dataclasses", "subprocess", "pathlib", "threading", "socket", "inspect"}
    heavy |= {"json", "re", "enum", "signal"}
    assert loaded & heavy == set()
    own = {name for name in loaded if name.startswith("mutiny")}
    assert own == {
        "mutiny",
        "mutiny.box",
        "mutiny.box.agent",
        "mutiny.box.lean_json",
        "mutiny.system",
        "mutiny.system.procfs",
        "mutiny.system.wire",
    }
