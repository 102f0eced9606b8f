"""`mutiny report`: show what a run found, from its directory alone; as text, as a page, or as a site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mutiny.cli import values
from mutiny.cli.options import DEFAULT_ROOT, json_option, runs_option
from mutiny.cli.output import echo

if TYPE_CHECKING:
    from mutiny.engine.record import Record

UNTOLD = 3
"""A run without a summary has shown nothing."""


@click.command("report")
@click.argument("run", type=values.PATH, default=DEFAULT_ROOT / "latest")
@click.option("--html", "as_page", is_flag=True, help="Write the run as a page, report.html in it.")
@click.option("--site", type=values.FOLDER, help="Write all runs of --runs as pages into DIR.")
@runs_option
@json_option
def command(run: Path, as_page: bool, site: Path | None, root: Path, as_json: bool) -> int:
    """Show the report of RUN (default: chaos_runs/latest) again.

    \b
    Examples:
      mutiny report
      mutiny report chaos_runs/latest --html
      mutiny report --site public
    """
    if site is not None:
        return _site(root, site, as_json=as_json)
    return _page(run, as_json=as_json) if as_page else _text(run, as_json=as_json)


def _text(run: Path, *, as_json: bool) -> int:
    from mutiny import documents
    from mutiny.errors import UsageError

    summary = run / "summary.json"
    if not run.is_dir():
        raise UsageError(f"{run}: there is no such run; `mutiny run` makes one below chaos_runs")
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


def _page(run: Path, *, as_json: bool) -> int:
    """The page of one run, whatever became of it."""
    from mutiny.engine.record import read_record
    from mutiny.engine.rundir import RunDirectory
    from mutiny.errors import UsageError
    from mutiny.modes.repeating import repeat_command
    from mutiny.report.page import links_to
    from mutiny.report.run_page import render
    from mutiny.system.files import BoxPath

    record = read_record(BoxPath(run)) if run.is_dir() else None
    if record is None or record.plan is None:
        raise UsageError(f"{run}: no run lies there: it has no plan.json")
    place = run / "report.html"
    text = render(record, repeat_command(run, record.plan), links_to(run, place))
    RunDirectory(run).write_text(place, text)
    code = _code_of(record)
    if as_json:
        from mutiny.cli.envelope import tell

        own = {"run": dict(record.summary or {}), "directory": str(run), "page": str(place)}
        tell("report", code, own, verdict=record.verdict or "inconclusive")
    else:
        echo(f"Page: {place}")
    return code


def _code_of(record: Record) -> int:
    from mutiny.model.verdict import Verdict

    known = {verdict.value: verdict.exit_code for verdict in Verdict}
    return known.get(record.verdict, UNTOLD)


def _site(root: Path, place: Path, *, as_json: bool) -> int:
    """All runs as pages that need no server."""
    from mutiny.web.site import write_site

    count = write_site(root, place)
    if as_json:
        from mutiny.cli.envelope import tell

        tell("report", 0, {"site": str(place), "pages": count})
    else:
        echo(f"Site: {place / 'index.html'}, {count} runs")
    return 0


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
