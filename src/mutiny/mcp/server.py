"""The MCP server on stdio: each call is one of Mutiny's own commands, watched, and ended with the call."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from mutiny import __version__
from mutiny.errors import UsageError
from mutiny.mcp.answers import brief
from mutiny.mcp.tools import INSTRUCTIONS, TOOLS, command_of
from mutiny.mcp.watching import Watcher
from mutiny.modes.own_command import OwnCommand

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

LOOK_S = 0.1
"""How often it is asked whether a command is over ..."""
TELL_EVERY = 5
"""... and every so many times how far it is."""


def serve(runs: Path) -> None:
    """Serve until stdin ends or a signal comes; what is under way then is asked to stop."""
    asyncio.run(_serve(runs))


async def _serve(runs: Path) -> None:
    from mcp.server.stdio import stdio_server

    server = make_server(runs)
    async with anyio.create_task_group() as group:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, group.cancel_scope.cancel)
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
    os._exit(0)  # a thread may still sit in a read of stdin; everything else is over


def make_server(runs: Path) -> Server[Any]:
    """The server with all tools."""
    from mcp import types
    from mcp.server.lowlevel import Server

    listed = types.ListToolsResult(
        tools=[
            types.Tool(name=name, description=tool.does, input_schema=tool.schema())
            for name, tool in TOOLS.items()
        ]
    )

    async def list_tools(context: object, params: object) -> types.ListToolsResult:
        return listed

    async def call_tool(
        context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        try:
            told = await _called(context, params.name, params.arguments or {}, runs)
        except UsageError as error:
            told = {"error": str(error)}
        block = types.TextContent(type="text", text=json.dumps(told, indent=1))
        return types.CallToolResult(
            content=[block], structured_content=told, is_error="error" in told
        )

    return Server(
        "mutiny",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _called(
    context: ServerRequestContext[Any, Any], name: str, given: Mapping[str, object], runs: Path
) -> dict[str, Any]:
    """Do it in a process of its own; a call that is cancelled takes its process with it."""
    words = command_of(name, given, str(runs))
    with tempfile.TemporaryDirectory(prefix="mutiny-mcp-") as scratch:
        command = OwnCommand(words, Path.cwd(), Path(scratch))
        try:
            await _watched(context, command, Watcher(runs, command.pid))
        finally:
            if not command.is_over():
                with anyio.CancelScope(shield=True):
                    command.ask_to_stop()
                    await anyio.to_thread.run_sync(command.stop)
        answer = command.answer()
    if answer.document is None:
        return {"exit_code": answer.exit_code, "error": answer.problem}
    return brief(name, answer.document)


async def _watched(
    context: ServerRequestContext[Any, Any], command: OwnCommand, watcher: Watcher
) -> None:
    """Wait for a command, and tell how far it is whenever that has changed."""
    told, looks = 0.0, 0
    while not command.is_over():
        await anyio.sleep(LOOK_S)
        looks += 1
        if looks % TELL_EVERY:
            continue
        seen = await anyio.to_thread.run_sync(watcher.look)
        if seen is not None and seen.done > told:  # the protocol asks for numbers that grow
            told = seen.done
            await context.session.report_progress(seen.done, seen.total, seen.note)
