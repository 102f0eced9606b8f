"""All pages have one frame: by day and by night, narrow and wide, nothing loaded, nothing believed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from test_experiment_values import REPORT

from mutiny.contracts.board import operations as op
from mutiny.engine.loading import Loaded, LoadReport
from mutiny.engine.sweeping import Point, Sweep
from mutiny.kit.operations import Interleave
from mutiny.model.verdict import Verdict
from mutiny.report import experiment_page, load_page, sweep_page
from mutiny.report.experiment import ExperimentReport
from mutiny.report.page import links_to, render

HOSTILE = "<script>alert(1)</script>\"'&"
TOGETHER = (op.Claim("w1"), op.Claim("w2"))


def schedule(index: int, text: str, verdict: Verdict = Verdict.SUCCESS) -> Point:
    return Point(Interleave(TOGETHER, text), index, HOSTILE, "", verdict, None, HOSTILE)


def preempt() -> Sweep:
    points = [schedule(0, "0x7 1x5"), schedule(1, "0x3 1x5 0x4", Verdict.BUG)]
    return Sweep("preempt", HOSTILE, op.Claim("w1"), points=points)


def crash() -> Sweep:
    calls = [{"index": n, "process": HOSTILE, "text": HOSTILE, "reads": False} for n in range(3)]
    point = Point(op.Claim("w1"), 1, HOSTILE, "p", Verdict.SUCCESS)
    return Sweep("crash", "longboat", op.Claim("w1"), calls=calls, points=[point])


def load() -> LoadReport:
    report = LoadReport()
    report.loads.append(
        Loaded(HOSTILE, "dag", 5, 2, Verdict.BUG, HOSTILE, "board.no_growth", HOSTILE, "", {}, ())
    )
    return report


def experiment() -> ExperimentReport:
    return REPORT


PAGES = {
    "preempt": lambda: sweep_page.render(preempt()),
    "crash": lambda: sweep_page.render(crash()),
    "load": lambda: load_page.render(load()),
    "nothing": lambda: load_page.render(LoadReport()),
    "experiment": lambda: experiment_page.page(experiment()),
}


@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_the_frame(name: str) -> None:
    text = PAGES[name]()
    assert text.startswith("<!doctype html>")
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    assert text.count("<main>") == text.count("</main>") == text.count("<h1>") == 1
    assert 'class="badge ' in text
    for tag in ("div", "section", "table", "svg", "ul", "p", "tr", "td"):
        opened = len(re.findall(rf"<{tag}[ >]", text))
        assert opened == text.count(f"</{tag}>"), tag


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_loaded_and_nothing_runs(name: str) -> None:
    text = PAGES[name]().replace("http://www.w3.org/2000/svg", "")
    assert "://" not in text
    assert "<script" not in text
    assert not re.search(r"\b(src|on\w+)=|@import|url\(", text)


@pytest.mark.parametrize("name", PAGES)
def test_colours_follow_the_day(name: str) -> None:
    """A colour outside of the variables would be the same in the dark."""
    body = PAGES[name]().partition("</style>")[2]
    assert re.findall(r"#[0-9a-fA-F]{6}\b", body) == []


def test_a_schedule_has_a_lane_a_command_and_a_line_a_switch() -> None:
    text = sweep_page.render(preempt())
    rows = re.findall(r'<rect x="([\d.]+)" y="(\d+)" width="([\d.]+)"', text)
    first, second = rows[:2], rows[2:]
    assert [len(first), len(second)] == [2, 3]
    assert len({y for _, y, _ in first}) == 2
    assert second[0][1] == second[2][1] != second[1][1]
    assert text.count('class="stop"') == 1 + 2
    widths = [float(width) for _, _, width in first]
    assert widths[0] / widths[1] == pytest.approx(7 / 5, rel=0.05)
    assert text.count("Claim(") >= 4


def test_links_lead_to_what_is_there(tmp_path: Path) -> None:
    run = tmp_path / "run 1"
    run.mkdir()
    (run / "error_report.md").touch()
    page = tmp_path / "sweeps" / "x" / "sweep.html"
    assert links_to(run, page) == {"error report": "../../run 1/error_report.md"}
    assert links_to(tmp_path / "nowhere", page) == {}
    links = {**links_to(run, page), "x": 'a"b#c?d', "y": "javascript:alert(1)"}
    shown = render("base.html", kind="k", title="t", verdict="bug", word="BUG", links=links)
    assert 'href="../../run%201/error_report.md"' in shown
    assert '<a href="a%22b%23c%3Fd">x</a>' in shown
    assert '<a href="javascript%3Aalert%281%29">y</a>' in shown


def test_control_characters_are_spelled_out_and_what_is_forgotten_is_an_error() -> None:
    shown = render("base.html", kind="\x1b[2J", title="t\u202e", verdict="bug", word="<b>")
    assert "\\x1b[2J" in shown
    assert "\\u202e" in shown
    assert "&lt;b&gt;" in shown
    with pytest.raises(UndefinedError):
        render("sweep.html", kind="k", title="t", verdict="bug", word="w")
