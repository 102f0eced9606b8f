"""Schedules and everybody else: what a command leaves behind, and what it waits for."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

import syscalls_payload as payload
from mutiny.box.startup import create_box
from mutiny.syscalls.schedules import Interleaver, Outcome
from mutiny.syscalls.starters import InBox, OnHost, Starter
from syscalls_helpers import need_box, wait_for

PYTHON = str(Path(sys.executable).resolve())


def let_through_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "let-through"}


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def beat(place: Path) -> int:
    return int((place / "beat").read_text() or 0) if (place / "beat").exists() else 0


@pytest.mark.parametrize("end", ["the daemons stop", "the box ends"])
def test_daemons_survive_their_schedule_and_leave_nothing(tmp_path: Path, end: str) -> None:
    need_box()
    others = let_through_threads()
    with create_box(tmp_path / "box", doubles=False) as box:
        before = open_descriptors()
        places = [box.directory / "home" / name for name in ("one", "two")]
        for place in places:
            place.mkdir()
        race = Interleaver(
            [(PYTHON, "-IS", "-c", payload.DAEMON, box.inside(place)) for place in places],
            roots=[box.directory / "home"],
            prepare=lambda: InBox(box),
            judge=lambda outcome: None,
        )
        outcome, problem = race.replay(())
        assert (outcome.ending, problem) == ("done", None)
        assert [found.exit_code for found in outcome.ends] == [0, 0], outcome.ends
        for place in places:
            seen = beat(place)

            def beats_on(place: Path = place, seen: int = seen) -> bool:
                return beat(place) > seen + 20

            assert wait_for(beats_on), place
        assert len(let_through_threads() - others) == 1
        if end == "the daemons stop":
            for place in places:
                (place / "stop").touch()
            assert wait_for(lambda: let_through_threads() <= others)
            assert wait_for(lambda: open_descriptors() <= before)
            assert list(box.directory.glob(".mutiny-*")) == []
    assert wait_for(lambda: let_through_threads() <= others)


def test_commands_that_leave_nobody_need_no_thread(tmp_path: Path) -> None:
    need_box()
    others = let_through_threads()
    with create_box(tmp_path / "box", doubles=False) as box:
        before = open_descriptors()
        race = Interleaver(
            [("mkdir", box.inside(box.directory / "home" / name)) for name in ("a", "b")],
            roots=[box.directory / "home"],
            prepare=lambda: InBox(box),
            judge=lambda outcome: None,
        )
        for _ in range(3):
            assert race.replay(())[0].ending == "done"
        assert wait_for(lambda: let_through_threads() <= others)
        assert wait_for(lambda: open_descriptors() <= before)


WAITS_FOR_A_NAME = """
import os, sys, time
deadline = time.monotonic() + 5
while True:
    try:
        os.close(os.open(sys.argv[1], os.O_RDONLY))
        break
    except FileNotFoundError:
        if time.monotonic() > deadline:
            sys.exit("nobody made it")
        time.sleep(0.002)
"""


@pytest.mark.slow
def test_a_command_that_polls_does_not_starve_the_one_it_waits_for(tmp_path: Path) -> None:
    place = tmp_path / "state"
    made = place / "made"

    def prepare() -> Starter:
        made.unlink(missing_ok=True)
        return OnHost()

    def judge(outcome: Outcome) -> str | None:
        ends = [end.exit_code for end in outcome.ends]
        return None if ends == [0, 0] else f"{ends}"

    place.mkdir()
    race = Interleaver(
        [(PYTHON, "-IS", "-c", WAITS_FOR_A_NAME, str(made)), ("touch", str(made))],
        roots=[place],
        prepare=prepare,
        judge=judge,
        preemption_bound=1,
    )
    found = race.explore(stop_at_first=False)
    assert (found.complete, found.problems, found.diverged) == (True, (), 0)
    assert found.schedules > 2
