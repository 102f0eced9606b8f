"""The one frame of all pages: kind, title, verdict, facts, links to the run; then the page's own parts.

One self-contained HTML file each: inline style and SVG, no script, nothing is loaded from anywhere.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mutiny.report.escape import escape
from mutiny.report.page_style import STYLE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILES = {
    "error report": "error_report.md",
    "minimal replay": "minimal_replay.json",
    "chaos report (Markdown)": "chaos_report.md",
    "steps": "operations.jsonl",
    "summary": "summary.json",
    "plan": "plan.json",
}
"""What of a run is worth a look, by the words of its link."""
_BADGES = {"success": "success", "inconclusive": "unsure"}
_QUOTED = str.maketrans({"%": "%25", "#": "%23", "?": "%3F", " ": "%20", ":": "%3A"})


def document(
    *,
    kind: str,
    title: str,
    verdict: str,
    word: str,
    body: str,
    lead: str = "",
    reason: str = "",
    facts: Mapping[str, str] | None = None,
    links: Mapping[str, str] | None = None,
) -> str:
    """A whole page. `facts` and `body` are markup, everything else is text."""
    told = "".join(
        f"<li>{escape(name)} <b>{value}</b></li>" for name, value in (facts or {}).items()
    )
    parts = [
        f'<div class="kind">{escape(kind)}</div>',
        f"<h1>{escape(title)}</h1>",
        f'<p class="hypothesis">{escape(lead)}</p>' if lead else "",
        f'<span class="badge {_BADGES.get(verdict, "failed")}">{escape(word)}</span>',
        f'<p class="reason">{escape(reason)}</p>' if reason else "",
        f'<ul class="facts">{told}</ul>' if told else "",
        _links(links or {}),
        body,
    ]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}: {escape(word)}</title><style>{STYLE}</style></head>
<body><main>
{"".join(f"{part}{chr(10)}" for part in parts if part)}</main></body></html>
"""


def _links(links: Mapping[str, str]) -> str:
    items = "".join(f"<li>{link(name, place)}</li>" for name, place in links.items())
    return f'<ul class="links">{items}</ul>' if items else ""


def link(name: str, place: str) -> str:
    """A link to a file of the same machine."""
    return f'<a href="{escape(place.translate(_QUOTED))}">{escape(name)}</a>'


def links_to(run: Path, page: Path) -> dict[str, str]:
    """The files of a run that are there, as a page at its place can reach them."""
    here = page.resolve().parent
    return {
        name: os.path.relpath((run / file).resolve(), here)
        for name, file in FILES.items()
        if (run / file).is_file()
    }
