"""The dashboard in a real browser: Debian's chromium, driven by Playwright."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from run_folders import HOSTILE, RULE, line, metrics_line, written, written_replay
from served import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium"),
    pytest.mark.timeout(300),
]
PATIENCE_MS = 90_000
"""A busy machine is slow, not wrong."""

WRITER = """
import sys, time
from pathlib import Path
from run_folders import living, written
run = written(Path(sys.argv[1]), "run_8", None, title="goes_on", process=living())
print("written", flush=True)
sys.stdin.read()
"""
"""A process that holds a run until its input ends."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE_MS
        )
        yield made
        made.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that must not complain, nor ask anybody but the server for anything."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    made = context.new_page()
    wrong: list[str] = []
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("request", lambda one: None if "//127.0.0.1:" in one.url else wrong.append(one.url))
    made.on("dialog", lambda one: wrong.append(f"dialog: {one.message}"))
    yield made
    context.close()
    assert wrong == []


def until(page: Page, expression: str) -> None:
    """Wait until something is so in the page; asked from outside, because its policy forbids `eval`."""
    from playwright.sync_api import Error

    deadline = time.monotonic() + 60
    while True:
        try:
            if page.evaluate(expression):
                return
        except Error:  # it is being loaded anew
            pass
        assert time.monotonic() < deadline, f"{expression}: {page.inner_text('body')[:1000]}"
        page.wait_for_timeout(50)


def rows_are(count: int) -> str:
    return f"document.querySelectorAll('tbody tr').length === {count}"


def test_runs_are_listed_filtered_and_opened(tmp_path: Path, page: Page) -> None:
    for number in range(60):
        written(tmp_path, f"run_{number + 10}")
    written_replay(written(tmp_path, "run_2", "bug", title=HOSTILE, message=HOSTILE))
    written(tmp_path, "run_3", "inconclusive", contract="board", target="longboat-board")
    with serving(tmp_path) as server:
        page.goto(server.address)
        assert "token" not in page.url
        until(page, rows_are(50))
        assert page.inner_text("#place") == "1 to 50 of 62"
        page.click("#older")
        until(page, rows_are(12))
        page.select_option("#target", "longboat-board")
        until(page, rows_are(1))
        page.keyboard.press("Escape")
        until(page, rows_are(50))
        page.click("text=Bugs")
        until(page, rows_are(1))
        assert "verdict=failed" in page.url
        assert RULE in page.inner_text("tbody")
        assert HOSTILE.partition("\x1b")[0] in page.inner_text("tbody"), "it is text"
        page.keyboard.press("/")
        page.keyboard.type("no such thing")
        until(page, rows_are(0))
        page.keyboard.press("Escape")
        page.evaluate("document.activeElement.blur()")
        page.goto(f"{server.base}/?verdict=failed")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/run/run_2")
        assert page.inner_text(".badge") == "bug found"
        assert page.locator(".step").count() == 3
        page.click("text=Copy")
        until(page, "document.querySelector('[data-copy]').textContent === 'Copied'")
        page.click("text=minimal replay")
        assert '"reproduced"' in page.inner_text("pre")


def test_a_run_is_followed_killed_and_found_broken_off_after_a_restart(
    tmp_path: Path, page: Page
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        with serving(tmp_path) as server:
            page.goto(server.address)
            page.click("#now a")
            until(page, "document.querySelector('#done').textContent === '3 of 6 operations'")
            fault = line(4, "KillDaemon", result={"fired": True}, technique="SIGKILL by handle")
            with (tmp_path / "run_8" / "operations.jsonl").open("a") as file:
                file.write(json.dumps(fault) + "\n")
            until(page, "document.querySelectorAll('#faults li').length === 1")
            assert "KillDaemon" in page.inner_text("#faults")
        until(page, "document.querySelector('#said').textContent.startsWith('Not connected')")
        with serving(tmp_path, server.port):
            until(page, "document.querySelector('#said').textContent === ''")
            assert page.inner_text("#done") == "4 of 6 operations"
            writer.kill()
            writer.wait()
            until(page, "document.querySelector('.badge').textContent === 'broken off'")
            assert page.locator(".step").count() == 4
    finally:
        writer.kill()
        writer.communicate()


@pytest.mark.deep
def test_many_runs_and_a_long_session_open_at_once(tmp_path: Path, page: Page) -> None:
    """The page's own work, by its clock: how long the machine lets it wait is another matter."""
    first = written(tmp_path, "run_0000")
    for number in range(1, 2000):
        copied(first, tmp_path / f"run_{number:04}")
    soak = written(tmp_path, "run_soak", mode="soak", contract="session", title="task_queue")
    (soak / "metrics.jsonl").write_text("".join(map(metrics_line, range(10_000))))
    with serving(tmp_path) as server:
        page.goto(server.address)
        until(page, rows_are(50))
        begin = page.evaluate("performance.now()")
        assert page.evaluate("draw() || performance.now()") - begin < 1000
        page.goto(f"{server.base}/run/run_soak")
        until(page, "charts.length === 3 && charts[0].plot.data[0].at(-1) === 9999 * 30")
        assert page.evaluate("charts[0].plot.data[0].length") <= 800
        assert "cody-1" in page.inner_text("#agents")
        until(page, "events.readyState === EventSource.CLOSED")


def copied(run: Path, place: Path) -> None:
    """The same run under another name, at the price of three links."""
    place.mkdir()
    for file in run.iterdir():
        os.link(file, place / file.name)


@pytest.mark.deep
def test_no_page_is_wider_than_its_screen(tmp_path: Path, browser: Browser) -> None:
    written_replay(written(tmp_path, "run_1", "bug", message="long" * 200, title="t" * 150))
    (written(tmp_path, "run_2") / "metrics.jsonl").write_text(metrics_line(1) + metrics_line(2))
    with serving(tmp_path) as server:
        for width, scheme in ((480, "dark"), (1600, "light")):
            size: Any = {"width": width, "height": 800}
            context = browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
            context.set_default_timeout(PATIENCE_MS)
            page = context.new_page()
            page.goto(server.address)
            for path in ("/", "/run/run_1", "/run/run_2", "/files/run_1/plan.json"):
                page.goto(server.base + path)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            context.close()


def test_a_site_works_from_the_file_system(tmp_path: Path, browser: Browser) -> None:
    from mutiny.web.site import write_site

    written(tmp_path / "runs", "run_1", "bug")
    written(tmp_path / "runs", "run_2")
    write_site(tmp_path / "runs", tmp_path / "site")
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto((tmp_path / "site" / "index.html").as_uri())
    until(page, rows_are(2))
    page.click("text=Bugs")
    until(page, rows_are(1))
    page.click("tbody a")
    assert page.inner_text(".badge") == "bug found"
    page.click("nav a")
    until(page, rows_are(2))
    page.close()
