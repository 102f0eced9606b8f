"""All runs as a folder of pages that needs no server: for the artefacts of a CI, or to hand on.

It has the shape of the runs' folder, so that links between pages and files are the same in both.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mutiny.engine.record import Record, read_record
from mutiny.engine.rundir import RunDirectory, storing
from mutiny.errors import UsageError
from mutiny.modes.repeating import repeat_command
from mutiny.report import page
from mutiny.report.run_page import render
from mutiny.web.index import PAGES, Index, Row
from mutiny.web.pages import is_plain, list_page, live_page, with_way_back

MARK = ".mutiny-site"
"""Only a folder that has it is written over."""
ASSETS = Path(__file__).with_name("static")
LARGEST_COPY = 32 << 20


def write_site(root: Path, place: Path) -> int:
    """Write the runs of a folder into another one; how many there are."""
    if not root.is_dir():
        raise UsageError(f"{root}: there is no such folder of runs")
    with storing(place):
        if place.exists() and any(place.iterdir()) and not (place / MARK).is_file():
            raise UsageError(f"{place}: is not empty, and no site of Mutiny; give another folder")
        place.mkdir(parents=True, exist_ok=True)
        (place / MARK).touch()
        shutil.rmtree(place / "runs", ignore_errors=True)
        (place / "assets").mkdir(exist_ok=True)
        for folder, name in (
            *((ASSETS, name) for name in ("app.css", "runs.js", "icon.svg")),
            (page.TEMPLATES, "style.css"),
        ):
            shutil.copy(folder / name, place / "assets" / name)
    index = Index(root)
    index.refresh()
    index.refresh(now=True)  # runs inside of others are found by the second look
    for name, row in index.rows.items():
        _write(root, place / "runs", name, row)
    rows = sorted(index.rows.values(), key=lambda row: str(row["id"]), reverse=True)
    RunDirectory(place).write_text(
        place / "index.html", list_page(rows, str(root), assets="assets/")
    )
    return len(rows)


def _write(root: Path, place: Path, name: str, row: Row) -> None:
    """One run: the files that are worth a look, and its page."""
    folder = Index.place(root, name)
    record = read_record(folder)
    if record is None:
        return  # it has been thrown away meanwhile
    mine = place / name
    directory = RunDirectory(mine)
    for file in {*page.FILES.values(), *PAGES}:
        try:
            data = (folder / file).read_bytes(LARGEST_COPY)
        except OSError:
            continue  # not there, or too large
        if file.endswith(".html"):
            up = "../" * (len(Path(name).parts) + 1)
            data = with_way_back(data.decode("utf-8", "replace"), f"{up}index.html").encode()
        with storing(mine):
            mine.mkdir(parents=True, exist_ok=True)
            (mine / file).write_bytes(data)
    if not row["page"]:
        directory.write_text(mine / "index.html", _page(root, place, name, record))


def _page(root: Path, place: Path, name: str, record: Record) -> str:
    here = place / name / "index.html"
    up = "../" * len(Path(name).parts)
    frame = {"home": f"{up}../index.html", "trail": name}
    links = page.links_to(place / name, here)
    if not is_plain(record):
        return live_page(name, record, lambda run: f"{up}{run}/index.html", links=links, **frame)
    assert record.plan is not None
    again = repeat_command(root / name, record.plan, Path(os.path.relpath(place / name)))
    return render(record, again, links, **frame)
