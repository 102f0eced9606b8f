"""Progress: a bar for a person, a line now and then for a log, nothing for a program."""

from __future__ import annotations

import io

import pytest

from mutiny.cli import show


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(show, "time", made)
    return made


def test_a_log_gets_a_line_every_half_minute(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with show.progress("Exploring", 100) as line:
        for done in range(1, 71):
            clock.now += 1.0
            line.update(done, "0 bugs")
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "Exploring: 30/100  1.0/s  70s left  0 bugs",
        "Exploring: 60/100  1.0/s  40s left  0 bugs",
    ]


def test_a_person_sees_every_step_and_the_line_goes_away(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    with show.progress("Exploring", 4) as line:
        clock.now += 1.0
        line.update(1, "0 bugs")
    assert "1/4" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_a_program_hears_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with show.progress("Exploring", 4, quiet=True) as line:
        clock.now += 60.0
        line.update(1, "0 bugs")
    assert capsys.readouterr().err == ""
