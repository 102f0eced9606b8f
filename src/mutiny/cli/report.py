"""`mutiny report`: show what a run found, from its directory alone."""

from __future__ import annotations

import json
from pathlib import Path

from mutiny.cli import words


@words.command("report")
@words.argument("run", type=words.Path(path_type=Path), default=Path("chaos_runs/latest"))
@words.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
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
        from mutiny.cli.envelope import tell

        plan = _plan(run)
        tell(
            "report",
            int(data["exit_code"]),
            {"run": data, "directory": str(run)},
            verdict=data["verdict"],
            target=plan.get("target"),
            plant=plan.get("plant"),
            seed=data["seed"],
        )
    elif report.exists():
        words.echo(report.read_text(encoding="utf-8"))
    else:
        words.echo(
            f"{data['title']}: {data['verdict']}, {data['operations']} operations in {data['duration_s']}s"
        )
    return int(data["exit_code"])


def _plan(run: Path) -> dict[str, str]:
    """What the run was about; an old or damaged directory may not say it."""
    try:
        plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    known = {name: plan.get(name) for name in ("target", "plant")} if isinstance(plan, dict) else {}
    return {name: value for name, value in known.items() if isinstance(value, str)}
