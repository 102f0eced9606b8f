"""`mutiny report`: show what a run found, from its directory alone."""

from __future__ import annotations

from pathlib import Path

import click

from mutiny.cli import values
from mutiny.cli.options import json_option
from mutiny.cli.output import echo


@click.command("report")
@click.argument("run", type=values.PATH, default=Path("chaos_runs/latest"))
@json_option
def command(run: Path, as_json: bool) -> int:
    """Show the report of RUN (default: chaos_runs/latest) again."""
    from mutiny import documents

    summary = run / "summary.json"
    data = documents.read_json(summary, "summary")
    code = _exit_code(data, summary)
    report = run / "error_report.md"
    if as_json:
        from mutiny.cli.envelope import tell

        plan = _plan(run)
        tell(
            "report",
            code,
            {"run": data, "directory": str(run)},
            verdict=data["verdict"],
            target=plan.get("target"),
            plant=plan.get("plant"),
            seed=data.get("seed"),
        )
    elif report.exists():
        echo(documents.read_text(report, "report"))
    else:
        echo(
            f"{data['title']}: {data['verdict']}, {data['operations']} operations in {data['duration_s']}s"
        )
    return code


def _exit_code(data: object, path: Path) -> int:
    """What the run exited with; a file that does not say it is no summary of a run."""
    from mutiny.errors import FormatError
    from mutiny.model.verdict import Verdict

    names = ("title", "verdict", "operations", "duration_s", "exit_code")
    if not isinstance(data, dict):
        raise FormatError(str(path), ["expected an object: the summary of a run"])
    missing = [f"{name}: is missing" for name in names if name not in data]
    if missing:
        raise FormatError(str(path), missing)
    known = {verdict.value: verdict.exit_code for verdict in Verdict}
    verdict, code = data["verdict"], data["exit_code"]
    if not isinstance(verdict, str) or verdict not in known:
        raise FormatError(str(path), [f"verdict: {verdict!r} is none of {', '.join(known)}"])
    if code != known[verdict] or not isinstance(code, int):
        problem = f"exit_code: {verdict!r} means {known[verdict]}, not {code!r}"
        raise FormatError(str(path), [problem])
    return code


def _plan(run: Path) -> dict[str, str]:
    """What the run was about; an old or damaged directory may not say it."""
    from mutiny import documents
    from mutiny.errors import UsageError

    try:
        plan = documents.read_json(run / "plan.json", "plan")
    except UsageError:
        return {}
    known = {name: plan.get(name) for name in ("target", "plant")} if isinstance(plan, dict) else {}
    return {name: value for name, value in known.items() if isinstance(value, str)}
