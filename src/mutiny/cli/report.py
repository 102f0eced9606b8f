"""`mutiny report`: show what a run found, from its directory alone."""

from __future__ import annotations

import json
from pathlib import Path

from mutiny.cli import words


@words.command("report")
@words.argument("run", type=words.Path(path_type=Path), default=Path("chaos_runs/latest"))
@words.option("--json", "as_json", is_flag=True, help="The summary as JSON.")
def command(run: Path, as_json: bool) -> int:
    """Show the report of RUN (default: chaos_runs/latest) again."""
    from mutiny.errors import UsageError

    summary = run / "summary.json"
    try:
        data = json.loads(summary.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{summary}: cannot read it: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{summary}: not valid JSON: {error}") from error
    report = run / "error_report.md"
    if as_json:
        words.echo_json(data)
    elif report.exists():
        words.echo(report.read_text(encoding="utf-8"))
    else:
        words.echo(
            f"{data['title']}: {data['verdict']}, {data['operations']} operations in {data['duration_s']}s"
        )
    return int(data["exit_code"])
