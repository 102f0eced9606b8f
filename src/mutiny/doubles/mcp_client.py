"""A client of an MCP server in a few lines: one tool call, its answer as one JSON line.

    mcp_client.py call ENDPOINT TOOL ARGUMENTS     ENDPOINT: http://HOST:PORT/PATH, or a socket's path;
                                                   ARGUMENTS: a JSON object, or @FILE with one
    mcp_client.py bridge DIRECTORY COMMAND...      runs a server on pipes, and serves calls on a socket

Exit 0: done, 1: refused or nobody there. Standard library only, raw on purpose: an SDK would hide what
the server really says, and would cost more than the call.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from types import FrameType
from typing import Any

LIMIT_S = 30.0
CONNECT_S = 3.0
"""On loopback a server that is there and can be reached is reached at once; cut off, never."""
END_S = 1.0
"""How long a bridge waits for its server to end."""
PROTOCOL = "2025-06-18"
READY = "bridge is ready on"


def _request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _down(why: str) -> dict[str, Any]:
    return {"ok": False, "error": "server_down", "message": why}


def _cut_off(why: str) -> dict[str, Any]:
    return {"ok": False, "error": "server_down", "message": why, "happened": "unknown"}


def answer_in(message: dict[str, Any]) -> dict[str, Any]:
    """What a tool answered: the JSON object in its text."""
    if "error" in message:
        text = str(message["error"].get("message", "refused"))
        return {"ok": False, "error": "bad_input", "message": text}
    result = message.get("result") or {}
    texts = [block.get("text", "") for block in result.get("content", [])]
    try:
        said = json.loads(texts[0]) if texts else {}
    except ValueError:
        said = {"message": texts[0]}
    if not isinstance(said, dict):
        said = {"value": said}
    marked = result.get("isError", False)
    return {"ok": not marked, **said, "isError": marked}


# --- over HTTP ------------------------------------------------------------------------------------


def call_http(endpoint: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """One call, one connection."""
    host, _, path = endpoint.removeprefix("http://").partition("/")
    name, _, port = host.partition(":")
    body = json.dumps(_request(1, "tools/call", {"name": tool, "arguments": arguments})).encode()
    head = (
        f"POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\n"
        f"MCP-Protocol-Version: {PROTOCOL}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    try:
        line = socket.create_connection((name, int(port or 80)), timeout=CONNECT_S)
    except OSError as error:
        return _down(f"nobody answers at {endpoint}: {error}")
    line.settimeout(LIMIT_S)
    try:
        with line:
            line.sendall(head.encode() + body)
            heard = b""
            while block := line.recv(65536):
                heard += block
    except OSError as error:
        return _cut_off(f"the answer was cut off: {error}")
    return _from_http(heard)


def _from_http(heard: bytes) -> dict[str, Any]:
    head, _, body = heard.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head.lower():
        body = _unchunked(body)
    text = body.decode("utf-8", "replace").strip()
    if text.startswith(("event:", "data:")):
        text = next((line[5:] for line in text.splitlines() if line.startswith("data:")), "")
    try:
        return answer_in(json.loads(text))
    except ValueError:
        first = head.decode("utf-8", "replace").partition("\r\n")[0]
        return _cut_off(f"the answer was cut off ({first or 'nothing came'})")


def _unchunked(body: bytes) -> bytes:
    whole = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size or b"0", 16)
        whole, body = whole + body[:length], body[length + 2 :]
    return whole


# --- over pipes, shared through a socket ------------------------------------------------------------


def call_socket(path: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """One call to a bridge."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.settimeout(LIMIT_S)
    try:
        line.connect(path)
    except OSError as error:
        return _down(f"nobody answers at {path}: {error}")
    with line, line.makefile("rwb") as file:
        try:
            file.write(json.dumps({"name": tool, "arguments": arguments}).encode() + b"\n")
            file.flush()
            heard = file.readline()
            return answer_in(json.loads(heard))
        except (OSError, ValueError) as error:
            return _cut_off(f"the answer was cut off: {error}")


class Bridge:
    """A server on pipes with many clients, one call at a time."""

    def __init__(self, command: list[str]) -> None:
        to_server, self._to = os.pipe()
        self._from, from_server = os.pipe()
        actions = [
            (os.POSIX_SPAWN_DUP2, to_server, 0),
            (os.POSIX_SPAWN_DUP2, from_server, 1),
        ]
        self.pid = os.posix_spawnp(command[0], command, dict(os.environ), file_actions=actions)
        os.close(to_server)
        os.close(from_server)
        self._reader = os.fdopen(self._from, "rb")
        self._number = 0

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """One request and its answer; None when the server is gone."""
        self._number += 1
        try:
            self._send(_request(self._number, method, params))
        except OSError:
            return None
        for line in self._reader:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict) and message.get("id") == self._number:
                return message
        return None

    def greet(self) -> bool:
        """The handshake that the protocol asks for."""
        hello = {
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "mutiny", "version": "1"},
        }
        if self.ask("initialize", hello) is None:
            return False
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return True

    def _send(self, message: dict[str, Any]) -> None:
        left = json.dumps(message).encode() + b"\n"
        while left:  # a pipe takes less than a long message
            left = left[os.write(self._to, left) :]

    def end(self) -> None:
        """The end of its input or a signal ends a server; one that goes on is killed."""
        os.close(self._to)
        os.kill(self.pid, signal.SIGTERM)
        end = time.monotonic() + END_S
        while time.monotonic() < end:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                return
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def bridge(directory: str, command: list[str]) -> int:
    """Serve calls on a socket until the server ends or SIGTERM comes."""
    server = Bridge(command)

    def leave(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        server.end()
        os._exit(0)

    def left_alone(number: int, frame: FrameType | None) -> None:
        os._exit(1)  # whoever waits for an answer hears that there is none

    signal.signal(signal.SIGTERM, leave)
    if not server.greet():
        _, status = os.waitpid(server.pid, 0)
        return os.waitstatus_to_exitcode(status) or 1
    signal.signal(signal.SIGCHLD, left_alone)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = os.path.join(directory, f"bridge-{os.getpid()}-{time.time_ns()}")
    listening.bind(path)
    listening.listen(64)
    print(f"{READY} {path}", flush=True)
    while True:
        line, _ = listening.accept()
        with line, line.makefile("rwb") as file:
            try:
                asked = json.loads(file.readline())
            except ValueError:
                continue
            answer = server.ask("tools/call", asked)
            if answer is None:
                return 1
            try:
                file.write(json.dumps(answer).encode() + b"\n")
            except OSError:
                continue  # this client is gone


def main(arguments: list[str]) -> int:
    """One call, or a bridge."""
    if arguments[0] == "bridge":
        return bridge(arguments[1], arguments[2:])
    _, endpoint, tool, given = arguments
    if given.startswith("@"):
        with open(given[1:], encoding="utf-8") as file:
            given = file.read()
    call = call_http if endpoint.startswith("http://") else call_socket
    answer = call(endpoint, tool, json.loads(given))
    print(json.dumps(answer), flush=True)
    return 0 if answer.get("ok") else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
