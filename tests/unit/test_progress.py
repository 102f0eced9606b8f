"""Progress: a line for a person that fits, a line now and then for a log, nothing for a program."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutiny.cli import progress
from mutiny.cli.progress import ProgressLine, minimising, span
from mutiny.engine.minimise import Budget, Progress
from mutiny.report.screen import CLEAR, cells, fit


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Screen(io.StringIO):
    """A terminal, as far as anybody asks."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        return self.getvalue().split(CLEAR)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    made = Screen()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=made))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return made


def test_a_log_gets_a_line_every_half_minute(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with ProgressLine("Exploring", 100) as line:
        for done in range(1, 71):
            clock.now += 1.0
            line.update(done, "0 bugs")
    assert capsys.readouterr().err.splitlines() == [
        "Exploring: 30/100  1.0/s  1m 10s left  0 bugs",
        "Exploring: 60/100  1.0/s  40s left  0 bugs",
    ]


def test_a_person_sees_it_from_the_first_moment_and_the_line_goes_away(
    clock: Clock, screen: Screen
) -> None:
    with ProgressLine("Exploring", 4) as line:
        assert "0/4" in screen.getvalue()
        clock.now += 1.0
        line.update(1, "0 bugs")
    assert "1/4" in screen.getvalue()
    assert screen.getvalue().endswith(CLEAR)


def test_what_is_drawn_too_often_is_left_out(clock: Clock, screen: Screen) -> None:
    line = ProgressLine("Exploring", 1000)
    for done in range(1000):
        clock.now += 0.001
        line.update(done)
    assert len(screen.lines) <= 25


@pytest.mark.parametrize("quiet", [True, False])
def test_a_program_hears_nothing(
    quiet: bool, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with ProgressLine("Exploring", 4, quiet=quiet) as line:
        clock.now += 60.0
        line.update(1, "0 bugs")
    assert (capsys.readouterr().err == "") is quiet


def test_a_dumb_terminal_is_a_log(
    clock: Clock, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with ProgressLine("Exploring", 4) as line:
        line.update(1)
    assert screen.getvalue() == ""


# --- the time left ----------------------------------------------------------------------------------


def figures(line: ProgressLine, clock: Clock) -> str:
    return line.text(clock.now, "", 200)


def test_the_time_left_is_unknown_until_something_is_done(clock: Clock) -> None:
    line = ProgressLine("", 4, quiet=True)
    clock.now += 20.0
    line.update(0)
    assert "time left unknown" in figures(line, clock)
    line.update(1)
    assert "1m 00s left" in figures(line, clock)


def test_no_estimate_from_the_first_moment(clock: Clock) -> None:
    line = ProgressLine("", 4000, quiet=True)
    clock.now += 0.01
    line.update(1)
    assert "time left unknown" in figures(line, clock)


def test_where_more_may_turn_up_nothing_is_promised(clock: Clock) -> None:
    line = ProgressLine("", 18, quiet=True)
    line.is_open = True
    clock.now += 10.0
    line.update(9)
    assert "9/18+" in figures(line, clock)
    assert "time left unknown" in figures(line, clock)


def test_a_budget_is_an_upper_bound_and_its_seconds_count_too(clock: Clock) -> None:
    line = minimising(Budget(100, 60.0), quiet=True)
    assert "at most 1m 00s left" in figures(line, clock)
    clock.now += 10.0
    line.minimise(Progress(runs=2, best=7))
    assert "2/100" in figures(line, clock)
    assert "at most 50s left" in figures(line, clock)
    line.minimise(Progress(runs=50, best=7))
    assert "at most 10s left" in figures(line, clock)


def test_something_else_is_counted_with_a_clock_of_its_own(clock: Clock) -> None:
    line = ProgressLine("slow", 10, quiet=True)
    clock.now += 100.0
    line.update(10)
    line.anew("quick", 10)
    clock.now += 2.0
    line.update(2)
    assert "1.0/s  8s left" in figures(line, clock)


def test_spans() -> None:
    assert [span(s) for s in (0.2, 59.4, 61, 3599, 3600, 90_000)] == [
        *("0s", "59s", "1m 01s", "59m 59s", "1h 00m", "25h 00m"),
    ]


# --- the width --------------------------------------------------------------------------------------


@given(
    st.text(max_size=60),
    st.text(max_size=60),
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.booleans(),
    st.integers(10, 200),
)
def test_no_line_is_ever_wider_than_asked(
    title: str, note: str, done: int, total: int, is_open: bool, columns: int
) -> None:
    line = ProgressLine(title, total, quiet=True)
    line.is_open = is_open
    line.update(done)
    text = line.text(line._started + 2.0, note, columns)
    assert cells(text) <= columns
    assert text.isprintable()


def test_the_figures_outlive_the_title_and_the_note(clock: Clock) -> None:
    line = ProgressLine("longboat-board claims of one task, every order", 30, quiet=True)
    clock.now += 4.0
    line.update(16)
    assert "16/30  4.0/s  4s left" in line.text(clock.now, "a note that is long", 40)


def test_a_screen_without_these_characters_gets_others(
    clock: Clock, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Screen, "encoding", "latin-1")
    line = ProgressLine("Exploring", 4)
    clock.now += 2.0
    line.update(2)
    assert screen.getvalue().isascii()
    assert "####" in screen.getvalue()


def test_wide_characters_take_two_columns() -> None:
    assert fit("漢字漢字", 5) == "漢字…"
    assert fit("a\x1b[2Jb\nc", 20) == "a [2Jb c"
