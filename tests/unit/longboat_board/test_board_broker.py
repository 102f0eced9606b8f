"""`longboat broker` as a program, asked by the official client over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from board_bench import LIMIT_S, LONGBOAT, environment

from longboat.board.cli import main

if find_spec("mcp") is None:
    pytest.skip("the extra `mcp` is not installed", allow_module_level=True)


async def call(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    """One tool call; the text, the structure and the flag must agree."""
    result = await client.call_tool(tool, arguments)
    answer: dict[str, Any] = json.loads(result.content[0].text)
    assert result.structured_content == answer
    assert result.is_error is not answer["ok"]
    return answer


def test_over_stdio(tmp_path: Path) -> None:
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    words = [*LONGBOAT, "broker", "--stdio", "--dir", str(tmp_path / "b")]
    server = StdioServerParameters(command=words[0], args=words[1:], env=environment())

    async def talk() -> None:
        async with Client(stdio_client(server)) as client:
            listed = await client.list_tools()
            assert {"add_batch", "claim", "write_as_leader"} <= {one.name for one in listed.tools}
            assert (await call(client, "status"))["error"] == "not_initialised"
            await call(client, "init")
            await call(client, "add", description="x", id="a", priority=1)
            tasks = [{"description": "y", "id": "b", "depends": ["a"]}]
            assert (await call(client, "add_batch", tasks=tasks))["tasks"] == ["b"]
            claimed = await call(client, "claim", worker="w1")
            assert (claimed["task"], claimed["epoch"]) == ("a", 1)
            done = await call(client, "complete", worker="w1", task="a", epoch=1, output="o")
            assert done["ok"]
            again = await call(client, "complete", worker="w1", task="a", epoch=1)
            assert again["error"] == "wrong_status"
            for tool, arguments in (
                ("nonsense", {}),
                ("claim", {}),
                ("claim", {"worker": 3}),
                ("add_batch", {"tasks": [{"id": "x"}]}),
                ("claim", {"worker": "w", "other": 1}),
            ):
                assert (await call(client, tool, **arguments))["error"] == "bad_input"
            assert (await call(client, "status"))["counts"]["available"] == 1

    asyncio.run(asyncio.wait_for(talk(), LIMIT_S))


def start(place: Path) -> tuple[subprocess.Popen[str], str]:
    """A broker on a free port."""
    broker = subprocess.Popen(
        [*LONGBOAT, "broker", "--http", "0", "--dir", str(place)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(lease_s=60),
    )
    assert broker.stdout is not None
    said = broker.stdout.readline().split()
    assert said[:4] == ["broker", "is", "ready", "on"]
    return broker, said[-1]


@pytest.mark.slow
def test_over_http_with_two_clients_a_kill_and_an_end(tmp_path: Path) -> None:
    from mcp.client.client import Client

    async def first(url: str) -> None:
        async with Client(url) as one, Client(url) as other:
            await call(one, "init")
            tasks = [{"description": "x"} for _ in range(20)]
            await call(one, "add_batch", tasks=tasks)
            claims = [
                call(client, "claim", worker=f"w{number}")
                for number in range(10)
                for client in (one, other)
            ]
            given = [answer["task"] for answer in await asyncio.gather(*claims)]
            assert len(set(given)) == 20
            second = await asyncio.to_thread(
                subprocess.run,
                [*LONGBOAT, "broker", "--stdio", "--dir", str(tmp_path / "b")],
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                timeout=LIMIT_S,
            )
            assert second.returncode == 1
            assert "already" in second.stderr

    async def after_the_kill(url: str) -> None:
        async with Client(url) as client:
            status = await call(client, "status")
            assert status["counts"]["claimed"] == 20
            assert (await call(client, "recover"))["returned"] == [], "a new lease"
            await call(client, "complete", worker="w0", task="task-1", epoch=1)

    broker, url = start(tmp_path / "b")
    try:
        asyncio.run(asyncio.wait_for(first(url), LIMIT_S))
        os.kill(broker.pid, signal.SIGKILL)
        broker.communicate(timeout=LIMIT_S)
        broker, url = start(tmp_path / "b")
        asyncio.run(asyncio.wait_for(after_the_kill(url), LIMIT_S))
        broker.terminate()
        assert broker.wait(LIMIT_S) == 0
    finally:
        broker.kill()
        broker.communicate(timeout=LIMIT_S)


def test_the_end_of_stdin_ends_it(tmp_path: Path) -> None:
    words = [*LONGBOAT, "broker", "--dir", str(tmp_path / "b"), "--stdio"]
    done = subprocess.run(words, input="", capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("words", [[], ["--stdio", "--http", "0"], ["--http", "x"], ["x"]])
def test_wrong_words(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", *words]) == 2
    assert "longboat broker: " in capsys.readouterr().err
