"""`mutiny mcp`: Mutiny's verbs as tools for agents."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

import click

from mutiny.cli import values
from mutiny.cli.options import json_option, runs_option
from mutiny.cli.output import echo


@click.command("mcp")
@click.option("--list", "only_list", is_flag=True, help="Show the tools and serve nothing.")
@click.option(
    "--skill",
    type=values.FOLDER,
    metavar="DIR",
    help="Write the skill that teaches the testing protocol to DIR/mutiny/SKILL.md; serve nothing.",
)
@runs_option
@json_option
def command(only_list: bool, skill: Path | None, root: Path, as_json: bool) -> int:
    """Serve Mutiny's verbs as MCP tools on stdin and stdout, until stdin ends.

    For agents that test the orchestrator that they write: run until something breaks, read the report,
    fix, replay, go on. Each call is one of Mutiny's own commands in a process of its own; long ones tell
    how far they are and end when the call is cancelled. Everything that is tested runs inside a box.
    With --json the tools are shown, because stdout belongs to the client otherwise.

    \b
    Examples:
      mutiny mcp --list
      mutiny mcp --skill .claude/skills
      claude mcp add mutiny -- mutiny mcp
    """
    from mutiny.cli.envelope import tell
    from mutiny.errors import TechniqueMissing
    from mutiny.mcp.tools import INSTRUCTIONS, TOOLS

    if skill is not None:
        place = _write_skill(skill)
        if as_json:
            tell("mcp", 0, {"file": str(place)})
        else:
            echo(f"wrote {place}")
        return 0
    if as_json:
        rows = [
            {"name": name, "about": tool.does, "arguments": tool.schema()}
            for name, tool in TOOLS.items()
        ]
        tell("mcp", 0, {"tools": rows, "instructions": INSTRUCTIONS})
        return 0
    if only_list:
        import shutil
        import textwrap

        width = max(shutil.get_terminal_size().columns, 40)
        lines = [
            line
            for name, tool in TOOLS.items()
            for line in (
                (name, tool.does),
                *(
                    (f"  {word}", f"{one.does}{' (needed)' if one.needed else ''}")
                    for word, one in tool.parameters.items()
                ),
            )
        ]
        for name, does in lines:
            echo(
                textwrap.fill(
                    does, width, initial_indent=f"{name:<15} ", subsequent_indent=" " * 16
                )
            )
        return 0
    try:
        import mcp  # noqa: F401  (only to say it clearly when it is missing)
    except ModuleNotFoundError as error:
        needed = "pip install 'mutiny[mcp]'"
        raise TechniqueMissing(f"`mutiny mcp` needs {error.name}: {needed}") from None
    from mutiny.mcp.server import serve

    if sys.stdin.isatty():
        echo("An MCP client speaks here on stdin; `mutiny mcp --list` shows the tools.", err=True)
    serve(root)
    return 0


def _write_skill(folder: Path) -> Path:
    from mutiny.engine.rundir import RunDirectory

    text = files("mutiny.mcp").joinpath("SKILL.md").read_text(encoding="utf-8")
    place = folder / "mutiny" / "SKILL.md"
    RunDirectory(place.parent).write_text(place, text)
    return place
