"""What `mutiny serve` is made of: the list that is kept up to date, the curves, the door, the site."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mutiny.engine.progress import Progress
from mutiny.errors import UsageError
from mutiny.system.files import BoxPath
from mutiny.web.app import Dashboard
from mutiny.web.follow import Follower
from mutiny.web.guard import TOKEN_FILE, token_of
from mutiny.web.index import Index
from mutiny.web.series import Series, thinned
from mutiny.web.site import write_site
from run_folders import HOSTILE, RULE, line, living, metrics_line, written, written_replay

PORT = 7417
TOKEN = "t" * 32
HERE = {"host": f"127.0.0.1:{PORT}", "cookie": f"mutiny_{PORT}={TOKEN}"}


# --- the list ---------------------------------------------------------------------------------------------


def test_the_list_reads_only_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        written(tmp_path, f"run_{number}", "bug" if number == 3 else "success")
    (tmp_path / "latest").symlink_to("run_4")
    written(tmp_path / "points", "run_9")
    index = Index(tmp_path)
    index.refresh()
    assert sorted(index.rows) == [f"run_{number}" for number in range(5)]
    assert (index.rows["run_3"]["verdict"], index.rows["run_3"]["rule"]) == ("bug", RULE)
    reads: list[str] = []
    monkeypatch.setattr(index, "_read", reads.append)
    written(tmp_path / "sweeps", "run_5")
    index.refresh(now=True)
    assert reads == ["sweeps/run_5"]


def test_a_page_hears_of_what_is_newer_than_its_own(tmp_path: Path) -> None:
    run = written(tmp_path, "run_1", None, process=living())
    index = Index(tmp_path)
    index.refresh()
    known = index.version
    assert index.since(known) == ([], [])
    assert index.rows["run_1"]["state"] == "running"
    (run / "summary.json").write_text('{"verdict": "success", "duration_s": 1}')
    index.refresh(now=True)
    ((row,), gone) = index.since(known)
    assert (row["state"], row["verdict"], gone) == ("finished", "success", [])
    known = index.version
    shutil.rmtree(run)
    index.refresh(now=True)
    assert index.since(known) == ([], ["run_1"])


def test_a_process_that_dies_leaves_a_run_that_is_broken_off(tmp_path: Path) -> None:
    child = os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
    from mutiny.system.processes import start_ticks

    start = start_ticks(child)
    assert start is not None
    written(tmp_path, "run_1", None, process={"pid": child, "start": start})
    index = Index(tmp_path)
    index.refresh()
    assert index.rows["run_1"]["state"] == "running"
    os.kill(child, 9)
    os.waitpid(child, 0)
    index.refresh(now=True)
    assert index.rows["run_1"]["state"] == "broken off"


# --- what goes on -----------------------------------------------------------------------------------------


def test_a_follower_tells_what_is_new(tmp_path: Path) -> None:
    run = written(tmp_path, "run_1", None, process=living())
    follower = Follower(BoxPath(tmp_path) / "run_1")
    first = follower.look()
    assert first is not None
    assert [step["number"] for step in first["steps"]] == [1, 2, 3]
    assert (first["done"], first["total"], first["availability"]) == (3, 6, 1.0)
    assert first["left_s"] == pytest.approx(60, rel=0.1)
    fault = line(4, "KillDaemon", result={"fired": True}, technique="SIGKILL by handle")
    with (run / "operations.jsonl").open("a") as file:
        file.write(json.dumps(fault) + "\n" + json.dumps(line(5, classification="timeout")) + "\n")
    second = follower.look()
    assert second is not None
    assert [step["number"] for step in second["steps"]] == [4, 5]
    assert (second["faults"], second["availability"]) == (1, 3 / 4)
    shutil.rmtree(run)
    assert follower.look() is None


def test_a_series_is_followed_by_its_progress(tmp_path: Path) -> None:
    Progress(tmp_path, "exploration", "4 seeds", "longboat", unit="sequences").tell(
        2, 4, "70 operations", {"success": 1, "bug": 1}
    )
    look = Follower(BoxPath(tmp_path)).look()
    assert look is not None
    assert (look["done"], look["total"], look["unit"]) == (2, 4, "sequences")
    assert look["counts"] == {"success": 1, "bug": 1}


def test_ten_thousand_lines_are_thinned_and_no_spike_is_lost(tmp_path: Path) -> None:
    with (tmp_path / "metrics.jsonl").open("w") as file:
        file.writelines(metrics_line(number) for number in range(10_000))
    series = Series(BoxPath(tmp_path))
    while series.read_on():
        pass
    drawn = series.drawn()
    assert drawn["lines"] == 10_000
    assert len(drawn["times"]) <= 800
    assert min(drawn["columns"]["tokens_per_minute"]) == 5.0
    assert "test_coverage" not in drawn["columns"], "nobody told it"
    assert drawn["now"]["phase"] == "Core development"
    assert drawn["now"]["agents"][0]["doing"] == "q9999"
    assert not series.read_on()


def test_coverage_is_told_in_percent_and_drawn_as_a_share(tmp_path: Path) -> None:
    line = {"elapsed_seconds": 30, "test_coverage": 96.5, "test_pass_rate": 1.0}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    series = Series(BoxPath(tmp_path))
    assert series.read_on()
    drawn = series.drawn()
    assert drawn["columns"]["test_coverage"] == pytest.approx([0.965])
    assert drawn["now"]["test_coverage"] == pytest.approx(0.965)
    assert drawn["now"]["test_pass_rate"] == 1.0


def test_thinning_keeps_the_order_of_extremes_and_holes() -> None:
    nan = float("nan")
    times, columns = thinned(range(8), {"a": [1, 9, 9, 1, nan, nan, 5, 5]}, 2)
    assert times == [0, 3, 4, 7]
    assert columns["a"] == [1, 9, 5, 5]
    assert thinned([1, 2], {"a": [nan, 1.0]}) == ([1, 2], {"a": [None, 1.0]})


# --- the door ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    text: str


def ask(
    root: Path, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> Answer:
    """One request to a new dashboard."""
    bare, _, query = path.partition("?")
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http",
        "method": method,
        "path": bare,
        "raw_path": bare.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [
            (name.encode(), value.encode())
            for name, value in (HERE if headers is None else headers).items()
        ],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async def visit() -> None:
        dashboard = Dashboard(root)
        dashboard.prepare()
        await dashboard.app(TOKEN, PORT)(scope, receive, send)

    asyncio.run(visit())
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(sent[0]["status"], told, body.decode())


def test_the_token_opens_the_door_once_and_a_cookie_keeps_it_open(tmp_path: Path) -> None:
    host = {"host": HERE["host"]}
    first = ask(tmp_path, f"/?token={TOKEN}", host)
    assert (first.status, first.headers["location"]) == (303, "/")
    assert "HttpOnly" in first.headers["set-cookie"]
    cookie = first.headers["set-cookie"].partition(";")[0]
    assert ask(tmp_path, "/", {**host, "cookie": cookie}).status == 200


@pytest.mark.parametrize(
    ("path", "headers", "method", "status"),
    [
        ("/", {"host": HERE["host"]}, "GET", 403),
        ("/?token=foreign", {"host": HERE["host"]}, "GET", 403),
        ("/?token=foreign", HERE, "GET", 403),
        ("/", {**HERE, "cookie": f"mutiny_{PORT}=foreign"}, "GET", 403),
        ("/", {**HERE, "cookie": '"; ='}, "GET", 403),
        ("/events", {"host": HERE["host"]}, "GET", 403),
        ("/", {**HERE, "host": f"evil.example:{PORT}"}, "GET", 421),
        ("/", {**HERE, "host": "127.0.0.1"}, "GET", 421),
        ("/", {"cookie": HERE["cookie"]}, "GET", 421),
        ("/", HERE, "POST", 405),
        ("/nothing", HERE, "GET", 404),
        ("/run/run_9", HERE, "GET", 404),
        ("/run/../run_1", HERE, "GET", 404),
        ("/files/run_1/../secret", HERE, "GET", 404),
        ("/files/../secret", HERE, "GET", 404),
        ("/files/run_1//etc/passwd", HERE, "GET", 404),
        ("/files/run_1/out", HERE, "GET", 404),
        ("/files/run_1/box", HERE, "GET", 404),
        ("/files/.serve_token", HERE, "GET", 404),
        ("/files/run_1/pipe", HERE, "GET", 404),
        ("/static/..", HERE, "GET", 404),
        ("/static/base.html", HERE, "GET", 404),
        ("/events?run=run_9", HERE, "GET", 404),
    ],
)
def test_nobody_else_gets_in_and_nothing_gets_out(
    path: str, headers: dict[str, str], method: str, status: int, tmp_path: Path
) -> None:
    root = tmp_path / "runs"
    run = written(root, "run_1")
    token_of(root)
    (tmp_path / "secret").write_text("secret")
    (run / "out").symlink_to(tmp_path / "secret")
    (run / "box").symlink_to(tmp_path)
    os.mkfifo(run / "pipe")
    answer = ask(root, path, headers, method)
    assert answer.status == status
    assert "secret" not in answer.text.replace("/secret", "")
    assert "basic_lifecycle" not in answer.text


@pytest.mark.parametrize(
    "path", ["/", "/run/run_1", "/run/run_2", "/files/run_1/daemon.log", "/files/run_1/report.html"]
)
def test_no_page_loads_or_runs_anything_foreign(path: str, tmp_path: Path) -> None:
    run = written(tmp_path, "run_1", "bug", title=HOSTILE, message=HOSTILE)
    written(tmp_path, "run_2", None, title=HOSTILE, process=living())
    (run / "daemon.log").write_text(HOSTILE)
    (run / "report.html").write_text("<body><main>ours</main>")
    answer = ask(tmp_path, path)
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<img" not in answer.text
    assert "\x1b" not in answer.text
    scripts = re.findall(r"<script(?! type=\"application/json\")[^>]*>", answer.text)
    assert all('src="/static/' in script for script in scripts)
    assert not re.search(r"<[a-z][^>]*\s(style|on\w+)=", answer.text)
    if "/files/" not in path:
        assert "://" not in answer.text.replace("http://www.w3.org/2000/svg", "")


def test_a_file_that_is_not_ours_is_text_whatever_it_is_called(tmp_path: Path) -> None:
    run = written(tmp_path, "run_1")
    (run / "evil.html").write_text("<script>alert(1)</script>")
    answer = ask(tmp_path, "/files/run_1/evil.html")
    assert "&lt;script&gt;alert(1)" in answer.text


def test_the_token_lasts_but_not_one_that_others_could_read(tmp_path: Path) -> None:
    first = token_of(tmp_path)
    place = tmp_path / TOKEN_FILE
    assert len(first) >= 20
    assert place.stat().st_mode & 0o777 == 0o600
    assert token_of(tmp_path) == first
    place.chmod(0o644)
    assert token_of(tmp_path) != first


# --- the site ---------------------------------------------------------------------------------------------


def test_a_site_holds_every_run_and_all_its_links_lead_somewhere(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    written_replay(written(root, "run_1", "bug", title=HOSTILE))
    sweep = root / "sweeps" / "run_2"
    sweep.mkdir(parents=True)
    Progress(sweep, "crash sweep", "Accept", "longboat").tell(1, 1, verdict="bug")
    (sweep / "sweep.html").write_text('<body><a href="../../run_1/minimal_replay.json">x</a>')
    explored = root / "explorations" / "run_3"
    explored.mkdir(parents=True)
    Progress(explored, "exploration", "2 seeds", "longboat").tell(2, 2, verdict="bug")
    failures = [{"seed": 1, "verdict": "bug", "rule": RULE, "directory": "runs/run_1"}]
    (explored / "exploration.json").write_text(json.dumps({"failures": failures}))
    site = tmp_path / "site"
    assert write_site(root, site) == 3
    pages = sorted(site.rglob("*.html"))
    assert len(pages) == 4
    for page in pages:
        for link in re.findall(r'(?:href|src)="([^"#]+)"', page.read_text()):
            assert (page.parent / link).is_file(), f"{page}: {link}"
    rows = re.search(r'id="rows">(.*?)</script>', (site / "index.html").read_text())
    assert rows is not None
    for row in json.loads(rows[1])["rows"]:
        assert (site / "runs" / row["id"] / (row["page"] or "index.html")).is_file()
    assert write_site(root, site) == 3, "its own site it may write over"


def test_a_site_is_not_written_over_anything_else(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    (tmp_path / "runs").mkdir()
    with pytest.raises(UsageError, match="not empty"):
        write_site(tmp_path / "runs", tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    with pytest.raises(UsageError, match="no such folder"):
        write_site(tmp_path / "nowhere", tmp_path / "site")
