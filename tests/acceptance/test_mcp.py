"""`mutiny mcp` through the official client: the whole loop of testing, progress, cancelling, mistakes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from mutiny.mcp.tools import TOOLS
from mutiny.system.processes import all_pids, environment_of
from mutiny_command import COMMAND

pytestmark = pytest.mark.deep

Call = Callable[..., Coroutine[Any, Any, tuple[dict[str, Any], bool]]]
LIMIT_S = 400.0
MARK = "MUTINY_TEST_MARK"
SCENARIO = {"target": "longboat-board", "scenarios": ["cycles"]}


def talk(place: Path, work: Callable[[Any, Call], Awaitable[None]]) -> None:
    """Start the server in a directory and let a client speak to it."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    environment = {**os.environ, MARK: str(place), "PATH": _path()}
    server = StdioServerParameters(command=COMMAND, args=["mcp"], cwd=place, env=environment)

    async def main() -> None:
        async with Client(stdio_client(server)) as client:

            async def call(
                name: str, progress: Any = None, **arguments: object
            ) -> tuple[dict[str, Any], bool]:
                answer = await client.call_tool(name, arguments, progress_callback=progress)
                told = getattr(answer.content[0], "text", "")
                assert len(told) < 8000, "answers are short"
                assert json.loads(told) == answer.structured_content
                return json.loads(told), bool(answer.is_error)

            await work(client, call)

    asyncio.run(asyncio.wait_for(main(), LIMIT_S))


def _path() -> str:
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def left_over(place: Path) -> list[int]:
    """Processes that the server has started."""
    found = []
    for pid in all_pids():
        environment = environment_of(pid)
        if environment is not None and environment.get(MARK) == str(place):
            found.append(pid)
    return found


def test_the_whole_loop(tmp_path: Path) -> None:
    async def work(client: Any, call: Call) -> None:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == list(TOOLS)
        assert "inside a box" in client.instructions
        found, wrong = await call("run", **SCENARIO, plant="cycle-accepted", quick=True)
        assert (found["verdict"], found["exit_code"], wrong) == ("bug", 1, False)
        failed = found["failed"][0]
        assert failed["rule"] == "board.cycles_refused"
        assert "board.cycles_refused" in (tmp_path / failed["report"]).read_text()
        report, _ = await call("report", run=failed["directory"])
        assert (report["verdict"], report["rule"]) == ("bug", failed["rule"])
        latest, _ = await call("report")
        assert latest["rule"] == failed["rule"]
        broken, _ = await call("replay", file=failed["replay"])
        assert (broken["verdict"], broken["same"]) == ("bug", 1)
        mended, _ = await call("replay", file=failed["replay"], plant="")
        assert (mended["verdict"], mended["exit_code"]) == ("success", 0)
        again, _ = await call("run", **SCENARIO)
        assert (again["verdict"], again["runs"]) == ("success", {"success": 1})

    talk(tmp_path, work)


def test_mistakes_are_errors_in_one_line(tmp_path: Path) -> None:
    async def work(client: Any, call: Call) -> None:
        for name, arguments, told in (
            ("run", {"scenaros": ["x"]}, "unknown argument 'scenaros' (did you mean 'scenarios'?)"),
            ("run", {"seed": "x"}, "seed: 'x' is no whole number"),
            ("sweep", {"kind": "crash"}, "the argument 'scenario' is needed"),
            ("run", {"target": "nobody"}, "nobody"),
            ("report", {"run": "nowhere"}, "there is no such run"),
            ("replay", {"file": "--help"}, "cannot read the replay file"),
            ("rnu", {}, "unknown tool 'rnu' (did you mean 'run'?)"),
        ):
            answer, wrong = await call(name, **arguments)
            assert wrong, name
            assert told in answer["error"]
            assert "\n" not in answer["error"]

    talk(tmp_path, work)


def test_a_long_call_tells_how_far_it_is_and_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    async def work(client: Any, call: Call) -> None:
        told: list[tuple[float, str]] = []
        first = asyncio.Event()

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append((done, message or ""))
            first.set()

        (server,) = left_over(tmp_path)  # before others come: pids need not grow
        long = asyncio.create_task(call("run", progress, target="longboat"))
        await asyncio.wait_for(first.wait(), LIMIT_S)
        long.cancel()
        with pytest.raises(asyncio.CancelledError):
            await long
        deadline = time.monotonic() + LIMIT_S
        while left_over(tmp_path) != [server] and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        assert left_over(tmp_path) == [server], "the command and its box are gone"
        assert told[0][0] > 0
        assert "step" in told[0][1]
        answer, wrong = await call("list_scenarios", target="longboat-board")
        assert not wrong
        assert "cycles" in answer["scenarios"]

    talk(tmp_path, work)
    assert left_over(tmp_path) == []
