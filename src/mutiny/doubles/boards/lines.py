"""Ways to speak to a board many times: a process a command, or one connection that stays open.

What a load measures is the board, so the cheapest way that the target's transport allows is taken. All
of them give the same: the answer as an object, or None when there was none.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
from collections.abc import Mapping
from typing import Any

from mutiny.doubles import mcp_client
from mutiny.doubles.speech import answer_in, fill, spoken

LONG_TEXT = 1000
"""Longer outputs go through a file where a command line is spoken."""


class Processes:
    """A process a command, as everybody who uses a command line does it."""

    def __init__(self, config: Mapping[str, Any], name: str) -> None:
        self._config = config
        self._environment = {**os.environ, **config["environment"]}
        self._scratch = os.path.join(config["scratch"], f"text-{name}")

    def ask(self, command: str, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """Say one command."""
        given = {**self._config["values"], **values}
        if command == "add_batch":
            given["batch"] = self._file(json.dumps({"tasks": values["tasks"]}))
        output = values.get("output")
        if isinstance(output, str) and len(output) > LONG_TEXT:
            given |= {"output": None, "output_file": self._file(output)}
        argv = spoken(self._config["commands"][command], given)
        try:
            done = subprocess.run(
                argv,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._config["limit_s"],
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        return answer_in(done.stdout.decode("utf-8", "replace")) if done.returncode >= 0 else None

    def _file(self, text: str) -> str:
        with open(self._scratch, "w", encoding="utf-8") as file:
            file.write(text)
        return self._scratch

    def close(self) -> None:
        """Nothing stays open."""


def _arguments(template: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: values[source]
        for name, source in template["arguments"].items()
        if values.get(source) not in (None, "", [], ())
    }


class Tools:
    """Calls of an MCP server's tools over one HTTP connection."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        place, _, path = str(config["values"]["endpoint"]).removeprefix("http://").partition("/")
        self._path = f"/{path}"
        self._line = http.client.HTTPConnection(place, timeout=config["limit_s"])
        self._number = 0

    def ask(self, command: str, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """One call."""
        template = self._config["commands"][command]
        self._number += 1
        call = {"name": template["tool"], "arguments": _arguments(template, values)}
        body = {"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": call}
        head = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": mcp_client.PROTOCOL,
        }
        try:
            self._line.request("POST", self._path, json.dumps(body).encode(), head)
            text = self._line.getresponse().read().decode("utf-8", "replace").strip()
            if text.startswith(("event:", "data:")):
                text = next(line[5:] for line in text.splitlines() if line.startswith("data:"))
            return mcp_client.answer_in(json.loads(text))
        except (OSError, ValueError, http.client.HTTPException, StopIteration):
            self._line.close()
            return None

    def close(self) -> None:
        """Give the connection up."""
        self._line.close()


class Calls:
    """Calls of an MCP server on pipes, through its bridge: a connection a call."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config

    def ask(self, command: str, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """One call."""
        template = self._config["commands"][command]
        endpoint = str(self._config["values"]["endpoint"])
        answer = mcp_client.call_socket(endpoint, template["tool"], _arguments(template, values))
        return None if answer.get("error") == "server_down" else answer

    def close(self) -> None:
        """Nothing stays open."""


class Lines:
    """A JSON object a line, and one back, over one socket."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._line.settimeout(config["limit_s"])
        self._line.connect(config["socket"])
        self._file = self._line.makefile("rwb")

    def ask(self, command: str, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """One line and its answer."""
        message = {}
        for name, text in self._config["messages"][command].items():
            whole = text[1:-1] if text.startswith("{") and text.endswith("}") else ""
            value = values.get(whole) if whole else fill(text, values)
            if value is not None:
                message[name] = value
        try:
            self._file.write(json.dumps(message).encode() + b"\n")
            self._file.flush()
            answer = json.loads(self._file.readline())
        except (OSError, ValueError):
            return None
        return answer if isinstance(answer, dict) else None

    def close(self) -> None:
        """Give the connection up."""
        self._file.close()
        self._line.close()


Speaker = Processes | Tools | Calls | Lines


def speaker(config: Mapping[str, Any], name: str) -> Speaker:
    """The cheapest way that this target's transport allows."""
    commands = config["commands"]
    if config.get("socket") and all(word in config["messages"] for word in commands):
        return Lines(config)
    if commands["claim"].get("tool"):
        endpoint = str(config["values"].get("endpoint", ""))
        return Tools(config) if endpoint.startswith("http://") else Calls(config)
    return Processes(config, name)
