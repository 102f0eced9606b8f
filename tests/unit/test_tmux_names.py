"""Sessions and windows of a real tmux are named exactly: a name that begins alike is somebody else."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mutiny.probes import tmux

Ask = Callable[..., str]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """A server of our own with a session of three windows, and another session."""
    environment = {**os.environ, "TMUX_TMPDIR": str(tmp_path)}
    environment.pop("TMUX", None)

    def asked(*argv: str) -> str:
        answer = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=20)
        return answer.stdout or answer.stderr

    asked("tmux", "new-session", "-d", "-s", "team", "-n", "job", "sleep 1000")
    for name in ("job-2", "job.3"):
        asked("tmux", "new-window", "-d", "-t", "=team:", "-n", name, "sleep 1000")
    asked("tmux", "new-session", "-d", "-s", "team-2", "-n", "job", "sleep 1000")
    yield asked
    asked("tmux", "kill-server")


def test_windows_are_listed_with_their_sessions(ask: Ask) -> None:
    names = {"team:job", "team:job-2", "team:job.3", "team-2:job"}
    assert set(ask(*tmux.listing(windows=True)).split()) == names
    assert set(ask(*tmux.listing(windows=False)).split()) == {"team", "team-2"}
    pids = tmux.pids(ask(*tmux.PANES))
    assert set(pids) == {*names, "team", "team-2"}
    assert pids["team"] == pids["team:job"] > 0
    assert len({pids[name] for name in names}) == 4


@pytest.mark.parametrize("name", ["team:job", "team:job-2", "team-2:job"])
def test_only_the_window_that_was_named_is_ended(ask: Ask, name: str) -> None:
    before = set(ask(*tmux.listing(windows=True)).split())
    ask(*tmux.killing(name))
    assert before - set(ask(*tmux.listing(windows=True)).split()) == {name}


def test_only_the_session_that_was_named_is_ended(ask: Ask) -> None:
    assert "can't find" in ask(*tmux.killing("tea"))
    ask(*tmux.killing("team"))
    assert ask(*tmux.SESSIONS).split() == ["team-2"]


@pytest.mark.parametrize("name", ["team", "team:job-2", "team-2:job"])
def test_what_is_typed_comes_to_the_pane_that_was_meant(ask: Ask, name: str) -> None:
    shown = ask("tmux", "display-message", "-p", "-t", tmux.pane(name), "#{pane_pid}")
    assert int(shown) == tmux.pids(ask(*tmux.PANES))[name]


def test_what_has_a_dot_is_nobody_rather_than_somebody_else(ask: Ask) -> None:
    """tmux takes what follows the dot for a pane."""
    before = ask(*tmux.PANES)
    assert "can't find" in ask(*tmux.killing("team:job.3"))
    assert ask(*tmux.PANES) == before


def test_without_a_server_nobody_is_there(tmp_path: Path) -> None:
    environment = {**os.environ, "TMUX_TMPDIR": str(tmp_path)}
    asked = subprocess.run(tmux.SESSIONS, env=environment, capture_output=True, text=True)
    assert tmux.SILENT.search(asked.stderr)
