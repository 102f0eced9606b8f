"""`mutiny serve` as an application: the list of runs, the page of each, what runs now, and files.

It only reads: everything is found in the runs' folder at the moment it is asked for, so that nothing is
lost when it is started anew. Files are opened by the opener that follows no link.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from mutiny.engine.record import RUNNING, Record, read_record
from mutiny.modes.repeating import repeat_command
from mutiny.report import page
from mutiny.report.run_page import render
from mutiny.system.files import BoxPath
from mutiny.web.follow import Follower
from mutiny.web.guard import Guard
from mutiny.web.index import PAGES, Index
from mutiny.web.pages import is_plain, list_page, live_page, with_way_back

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

STATIC = Path(__file__).with_name("static")
ASSETS = "/static/"
SHOWN_PAGES = frozenset({*PAGES, "chaos_report.html", "report.html"})
"""Pages that Mutiny wrote; every other file of a run is shown as text."""
SHOWN_BYTES = 1 << 20
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
TICK_S = 1.0
MOST_READERS = 64
"""Pages that follow at the same time."""


class Dashboard:
    """The answers to all addresses."""

    def __init__(self, root: Path) -> None:
        self.index = Index(root)
        self.closing = asyncio.Event()
        self._readers = 0

    def prepare(self) -> None:
        """Look through the folder, and make the first page, so that the first visitor does not wait."""
        self.index.refresh()
        list_page([], "", assets=ASSETS)

    def app(self, token: str, port: int) -> ASGIApp:
        """The application behind its guard."""
        inner = Starlette(
            routes=[
                Route("/", self.runs),
                Route("/run/{name:path}", self.run),
                Route("/files/{name:path}", self.file),
                Route("/events", self.events),
                Route("/static/{name}", self.static),
            ],
            exception_handlers={HTTPException: _told},
        )
        return Guard(inner, token, port, _refused)

    # --- pages ---------------------------------------------------------------------------------

    def runs(self, request: Request) -> Response:
        """All runs."""
        self.index.refresh(now=True)
        rows, _ = self.index.since(0)
        return HTMLResponse(list_page(rows, str(self.index.root), self.index.epoch, assets=ASSETS))

    def run(self, request: Request) -> Response:
        """One run: its report when it is over, and what it does while it is not."""
        name, record = self._record(request.path_params["name"])
        row = self.index.rows[name]
        if record.state != RUNNING and row["page"]:
            return RedirectResponse(f"/files/{quote(name)}/{row['page']}", 303)
        frame = {"assets": ASSETS, "home": "/", "trail": name}
        links = self._links(name, record)
        if record.state == RUNNING or not is_plain(record):
            text = live_page(name, record, _address, links=links, script="live.js", **frame)
            return HTMLResponse(text)
        assert record.plan is not None
        again = repeat_command(self.index.root / name, record.plan)
        return HTMLResponse(render(record, again, links, **frame))

    def file(self, request: Request) -> Response:
        """A file of a run: a page that Mutiny wrote, or text."""
        name = request.path_params["name"]
        place = self._place(name)
        try:
            size = place.stat().st_size
            data = place.read_end(SHOWN_BYTES)
        except OSError:
            raise HTTPException(404, "There is no such file in this run.") from None
        if place.name in SHOWN_PAGES and size <= SHOWN_BYTES:
            return _shown_page(data.decode("utf-8", "replace"))
        text = data.decode("utf-8", "replace")
        return HTMLResponse(
            page.render(
                "file.html",
                kind=f"{size:,} bytes",
                title=place.name,
                verdict="",
                word="",
                text=text,
                cut=size > SHOWN_BYTES,
                assets=ASSETS,
                home="/",
                trail="/".join(place.parts[:-1]),
            )
        )

    def static(self, request: Request) -> Response:
        """What ships with Mutiny."""
        name = request.path_params["name"]
        for folder in (STATIC, page.TEMPLATES):
            path = folder / name
            if path.suffix in TYPES and path.is_file() and path.parent == folder:
                return Response(path.read_bytes(), media_type=TYPES[path.suffix])
        raise HTTPException(404, "There is no such file.")

    # --- what goes on --------------------------------------------------------------------------

    async def events(self, request: Request) -> Response:
        """Server-sent events: rows that changed, or with `run` what happens in it."""
        if self._readers >= MOST_READERS:
            raise HTTPException(503, "Too many pages follow already.")
        name = request.query_params.get("run")
        version = request.query_params.get("version", "0")
        is_ours = request.query_params.get("epoch") == self.index.epoch
        follower = None
        if name is not None:
            name, record = await run_in_threadpool(self._record, name)
            follower = Follower(record.folder)
        since = int(version) if version.isdecimal() and is_ours else 0
        stream = self._stream(request, follower, since)
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _stream(
        self, request: Request, follower: Follower | None, version: int
    ) -> AsyncIterator[str]:
        self._readers += 1
        try:
            while not self.closing.is_set() and not await request.is_disconnected():
                if follower is not None:
                    told: Any = await run_in_threadpool(follower.look)
                else:
                    told, version = await run_in_threadpool(self._changes, version)
                yield f"data: {json.dumps(told)}\n\n" if told else ": nothing new\n\n"
                if told and told.get("more"):
                    continue
                try:
                    await asyncio.wait_for(self.closing.wait(), TICK_S)
                except TimeoutError:
                    continue
        finally:
            self._readers -= 1

    def _changes(self, version: int) -> tuple[dict[str, Any] | None, int]:
        self.index.refresh()
        rows, gone = self.index.since(version)
        now = self.index.version
        told = {"rows": rows, "gone": gone, "version": now, "epoch": self.index.epoch}
        return (told if rows or gone else None), now

    # --- places --------------------------------------------------------------------------------

    def _record(self, name: str) -> tuple[str, Record]:
        name = name.strip("/")
        if name not in self.index.rows:
            self.index.refresh(now=True)
        folder = self.index.folder(name)
        record = None if folder is None else read_record(folder)
        if record is None:
            raise HTTPException(404, "There is no such run.")
        return name, record

    def _place(self, name: str) -> BoxPath:
        """A place inside of a run that is listed."""
        parts = [part for part in name.split("/") if part]
        for count in range(len(parts), 0, -1):
            folder = self.index.folder("/".join(parts[:count]))
            if folder is not None and ".." not in parts and len(parts) > count:
                return BoxPath(folder.root, *folder.parts, *parts[count:])
        raise HTTPException(404, "There is no such file in a run.")

    @staticmethod
    def _links(name: str, record: Record) -> dict[str, str]:
        return {
            word: f"/files/{name}/{file}"
            for word, file in page.FILES.items()
            if file in record.names
        }


# --- their text --------------------------------------------------------------------------------


def _address(run: str) -> str:
    return f"/run/{quote(run)}"


def _shown_page(text: str) -> Response:
    """A page that lies in a run: it may draw, and run nothing but our own script."""
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src {page.allowed('copy.js')}; base-uri 'none'; frame-ancestors 'none'"
    )
    return HTMLResponse(with_way_back(text, "/"), headers={"content-security-policy": policy})


def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return HTMLResponse(_word_page(error.status_code, error.detail), error.status_code)


async def _refused(scope: Any, receive: Any, send: Any) -> None:
    status, word = scope["refused"]
    await HTMLResponse(_word_page(status, word), status)(scope, receive, send)


def _word_page(status: int, word: str) -> str:
    """One clear word."""
    return page.render(
        "base.html",
        kind=str(status),
        title=word,
        verdict="inconclusive",
        word="",
        assets=ASSETS,
        home="/",
    )
