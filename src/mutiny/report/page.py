"""Pages as self-contained HTML files: templates in `templates/`, escaped by jinja2, one frame for all.

Inline style and SVG, nothing is loaded from anywhere; the only script is ours, named by its digest. What a
target has said is text in them, its control characters spelled out. `mutiny serve` shows the same pages
with style and script beside them (`assets`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from mutiny.report.escape import plain

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).with_name("templates")
FILES = {
    "chaos report": "chaos_report.html",
    "final report": "final_report.html",
    "sweep": "sweep.html",
    "matrix": "matrix.html",
    "drills": "drill.html",
    "load": "load.html",
    "campaign": "campaign.html",
    "spawn tree": "tree.html",
    "error report": "error_report.md",
    "minimal replay": "minimal_replay.json",
    "chaos report (Markdown)": "chaos_report.md",
    "steps": "operations.jsonl",
    "summary": "summary.json",
    "run report": "run_report.html",
    "plan": "plan.json",
}
"""What of a run is worth a look, by the words of its link."""
_BARE = {"lead": "", "reason": "", "assets": "", "home": "", "script": "", "trail": ""}
"""The frame of a page that stands alone: no assets beside it, no server, no script."""
_BADGES = {"success": "success", "inconclusive": "unsure", "": "quietly"}


def render(
    template: str,
    *,
    kind: str,
    title: str,
    verdict: str,
    word: str,
    facts: Mapping[str, object] | None = None,
    links: Mapping[str, str] | None = None,
    **own: object,
) -> str:
    """A whole page: what the frame shows, and the page's `own` values for its template."""
    frame = {"kind": kind, "title": title, "word": word, "badge": _BADGES.get(verdict, "failed")}
    given = {"facts": facts or {}, "links": links or {}, **frame, **own}
    return _environment().get_template(template).render({**_BARE, **given})


def allowed(script: str) -> str:
    """The word of a content security policy that lets one of our scripts run inside a page."""
    from base64 import b64encode
    from hashlib import sha256

    source = (TEMPLATES / script).read_bytes().removesuffix(b"\n")  # as jinja2 does
    return f"'sha256-{b64encode(sha256(source).digest()).decode()}'"


def links_to(run: Path, page: Path) -> dict[str, str]:
    """The files of a run that are there, as a page at its place can reach them."""
    here = page.resolve().parent
    return {
        name: os.path.relpath((run / file).resolve(), here)
        for name, file in FILES.items()
        if (run / file).is_file() and (run / file).resolve() != page.resolve()
    }


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined

    compiled = TEMPLATES / "__pycache__"
    with suppress(OSError):
        compiled.mkdir(exist_ok=True)
    kept = os.access(compiled, os.W_OK) and not sys.dont_write_bytecode
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=FileSystemBytecodeCache(str(compiled)) if kept else None,
        finalize=_spelled_out,
    )
    environment.filters["quoted"] = quote
    environment.globals["allowed"] = allowed
    return environment


def _spelled_out(value: object) -> object:
    """Text without control characters; what is markup already stays as it is."""
    return plain(value) if type(value) is str else value
