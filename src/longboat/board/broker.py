"""Board B: the verbs as tools of an MCP server, over stdio or over HTTP on this machine alone.

Each call is one transaction between two turns of the event loop, so whenever the process ends, by
request or by force, no verb is half done.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from longboat.board import codec, config, files, tools, words
from longboat.board.sqlite_store import SqliteStore
from longboat.board.values import Answer, Refused
from longboat.errors import LongboatError, UsageError

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

_HELP = """\
usage: longboat broker --stdio [--dir DIR]
       longboat broker --http PORT [--dir DIR]     (PORT 0: any free one)

A task board as an MCP server. DIR is --dir, else $LONGBOAT_BOARD, else .board here.
--http serves http://127.0.0.1:PORT/mcp and prints `broker is ready on URL`.
The end of stdin (--stdio) and SIGTERM end it.
"""


def main(arguments: list[str]) -> int:
    """Serve until told to stop."""
    line = _split(arguments)
    if line.flags:
        sys.stdout.write(_HELP)
        return 0
    port = line.option("--http")
    if port is not None and not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise UsageError(f"--http needs a port number, not {port}")
    directory = words.directory_of(line)
    try:
        files.make_directory(directory)
        lock = files.try_lock(os.path.join(directory, "broker.lock"))
        if lock is None:
            raise Refused("busy", f"A broker is running on {directory} already")
        try:
            import mcp  # noqa: F401  (only to say it clearly when it is missing)
        except ImportError as error:
            raise LongboatError(
                f"longboat broker needs the package mcp ({error}): pip install 'mutiny[mcp]'"
            ) from None
        store = SqliteStore(directory, config.load(directory))
    except OSError as error:
        raise files.refusal_of(error, "no") from None
    try:
        asyncio.run(_serve_stdio(store) if port is None else _serve_http(store, int(port)))
    finally:
        store.close()
    return 0


def _split(arguments: list[str]) -> words.Line:
    shapes = {"serve": words.Shape((), ("--http",))}
    stdio = "--stdio" in arguments
    plain = [word for word in arguments if word != "--stdio"]
    line = words.split(["serve", *plain], shapes)
    if not line.flags and stdio == (line.option("--http") is not None):
        raise UsageError("one of --stdio and --http PORT is needed")
    return line


def _make_server(store: SqliteStore) -> Server[Any]:
    from mcp import types
    from mcp.server.lowlevel import Server

    from longboat import __version__

    listed = types.ListToolsResult(
        tools=[
            types.Tool(name=name, description=tool.does, input_schema=tool.schema())
            for name, tool in tools.TOOLS.items()
        ]
    )

    async def list_tools(context: object, params: object) -> types.ListToolsResult:
        return listed

    async def call_tool(
        context: object, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        answer = _answer(store, params.name, params.arguments or {})
        block = types.TextContent(type="text", text=codec.to_json(answer))
        return types.CallToolResult(
            content=[block],
            structured_content=answer,
            is_error=not answer["ok"],
        )

    return Server(
        "longboat-broker", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool
    )


def _answer(store: SqliteStore, name: str, arguments: dict[str, object]) -> Answer:
    try:
        command = tools.to_command(name, arguments)
    except Refused as refusal:
        return refusal.answer()
    return store.execute(command)


async def _serve_stdio(store: SqliteStore) -> None:
    """Until stdin ends or SIGTERM comes. A thread sits in a read, so the end is a hard one."""
    from mcp.server.stdio import stdio_server

    def leave() -> None:
        store.close()
        os._exit(0)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave)
    server = _make_server(store)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def _serve_http(store: SqliteStore, port: int) -> None:
    """Several clients, each call on its own: a restart of the broker breaks no session."""
    import uvicorn

    app = _make_server(store).streamable_http_app(json_response=True, stateless_http=True)
    # Named as TCP, or asyncio does not switch Nagle off and every answer waits 40 ms for an ACK.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
    except OSError as error:
        raise LongboatError(f"longboat broker: cannot listen on port {port}: {error}") from None
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"

    class Announced(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Being asked to stop is a good end, so the signal is not raised again after it."""
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, setattr, self, "should_exit", True)
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            sys.stdout.write(f"broker is ready on {url}\n")
            sys.stdout.flush()

    # No grace for open connections: a call is done or not begun, there is nothing to wait for.
    settings = uvicorn.Config(app, log_level="critical", lifespan="on", timeout_graceful_shutdown=0)
    await Announced(settings).serve(sockets=[listening])
