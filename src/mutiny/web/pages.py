"""Pages that the server and the static site share: the list of runs, and whatever is more than one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mutiny.engine.record import RUNNING, Record, document, table
from mutiny.report import page
from mutiny.report.escape import escape
from mutiny.report.run_page import WORDS, title_of, utc
from mutiny.web.index import Row
from mutiny.web.series import NAME as METRICS


def list_page(rows: list[Row], folder: str, epoch: str = "", *, assets: str) -> str:
    """The page of all runs; `epoch`: of the server that keeps it up to date."""
    return page.render(
        "runs.html",
        kind="runs",
        title="Mutiny",
        verdict="",
        word="",
        rows=rows,
        folder=folder,
        epoch=epoch,
        script="runs.js",
        assets=assets,
    )


def with_way_back(text: str, home: str) -> str:
    """A page that lies in a run, with the way back to all of them."""
    way = f'<nav class="top" aria-label="Mutiny"><a href="{escape(home)}">Mutiny</a></nav>'
    return text.replace("<body>", f"<body>{way}", 1)


def is_plain(record: Record) -> bool:
    """Is it an ordinary run, all of which its own page shows?"""
    return record.plan is not None and not has_metrics(record)


def has_metrics(record: Record) -> bool:
    """Has it the figures of a long session?"""
    return METRICS in record.names


def live_page(
    name: str,
    record: Record,
    place_of: Callable[[str], str],
    *,
    links: Mapping[str, str],
    **frame: Any,
) -> str:
    """How far something is, or what came of what is no ordinary run; `place_of`: where the page of a run
    is. Without a server the page shows what it can by itself.
    """
    explored = document(record.folder / "exploration.json") or {}
    started = record.about("started_unix")
    facts = {
        "Target": record.about("target"),
        "Contract": record.about("contract"),
        "Planted": record.about("plant"),
        "Seed": record.about("seed"),
        "Started": utc(started) if isinstance(started, int | float) else "",
    }
    running = record.state == RUNNING
    return page.render(
        "live.html",
        kind=record.kind,
        title=title_of(record),
        verdict=record.verdict or ("" if running else "inconclusive"),
        word=WORDS.get(record.verdict, record.state),
        reason="" if frame.get("script") else str((record.progress or {}).get("note") or ""),
        facts={word: value for word, value in facts.items() if value not in (None, "")},
        links=links,
        run=name,
        running=running,
        session=has_metrics(record) or record.kind == "soak",
        failures=[_failure(table(one), place_of) for one in explored.get("failures") or ()],
        coverage=[table(one) for one in explored.get("coverage") or ()],
        **frame,
    )


def _failure(told: Mapping[str, Any], place_of: Callable[[str], str]) -> dict[str, Any]:
    run = str(told.get("directory") or "").rpartition("/")[2]
    return {**told, "run": run, "place": place_of(run)}
