"""`mutiny serve`: all runs in a browser, and what runs now."""

from __future__ import annotations

from pathlib import Path

import click

from mutiny.cli.options import DEFAULT_ROOT, json_option, runs_option
from mutiny.cli.output import echo

USUAL_PORT = 7417


@click.command("serve")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"Port on loopback, 0 for any free one. Default: {USUAL_PORT}, or any when it is taken.",
)
@click.option("--open/--no-open", "browse", default=True, help="Open the page in a browser.")
@runs_option
@json_option
def command(port: int | None, browse: bool, root: Path, as_json: bool) -> int:
    """Show all runs in a browser, and follow what runs now, until Ctrl-C.

    The page is served on loopback only; its address, with the token that opens it, is printed. Nothing
    is loaded from elsewhere, and nothing can be changed.

    \b
    Examples:
      mutiny serve
      mutiny serve --port 8080 --no-open --runs chaos_runs
    """
    from mutiny.errors import TechniqueMissing, UsageError

    if root != DEFAULT_ROOT and not root.is_dir():  # rather a typing error than runs to come
        raise UsageError(f"{root}: there is no such directory; `mutiny run --runs {root}` makes it")
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        needed = "pip install 'mutiny[serve]'"
        raise TechniqueMissing(f"`mutiny serve` needs {error.name}: {needed}") from None
    from mutiny.web.server import Server

    server = Server(root, USUAL_PORT if port is None else port, is_fixed=port is not None)

    def announce() -> None:
        if as_json:
            from mutiny.cli.envelope import tell

            tell("serve", 0, {"address": server.address, "runs": str(root)})
            return
        echo(f"Mutiny is at {server.address} (Ctrl-C ends it)")
        if browse:
            click.launch(server.address)

    server.run(announce)
    return 0
