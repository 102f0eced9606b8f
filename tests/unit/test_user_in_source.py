"""What the user begins in the source repository is taken back whatever it was, and nothing else is."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mutiny.faults import files
from mutiny.system.files import BoxPath


def box_of(place: Path) -> Any:
    """A box as far as this needs one: commands run in a directory."""

    def run(argv: tuple[str, ...], cwd: str, timeout_s: float) -> Any:
        done = subprocess.run(
            argv, cwd=cwd, timeout=timeout_s, capture_output=True, text=True, check=False
        )
        said: Any = SimpleNamespace(exit_code=done.returncode, stderr=done.stderr)
        return said

    return SimpleNamespace(run=run, files=BoxPath(place))


@pytest.mark.parametrize("how", ["edit", "stage", "merge", "rebase", "untracked"])
@pytest.mark.parametrize("path", ["test.txt", "other.txt"])
def test_it_is_taken_back_wherever_it_lies(tmp_path: Path, how: str, path: str) -> None:
    """Also when nobody says where (seed 6100009: the file stayed, and an accept was called wrong)."""
    source = tmp_path / "source"
    source.mkdir()

    def git(*words: str) -> str:
        who = ("-c", "user.name=u", "-c", "user.email=u@example.org")
        done = subprocess.run(
            ["git", *who, *words], cwd=source, capture_output=True, text=True, check=True
        )
        return done.stdout

    git("init", "-q", "-b", "main")
    git("config", "user.name", "u")
    git("config", "user.email", "u@example.org")
    (source / files.EDITED_FILE).write_text("hello\n")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    (source / "mine.txt").write_text("the user's own\n")
    box = box_of(tmp_path)
    if how == "edit":
        files.dirty_source(BoxPath(source))
    else:
        begun, _ = files.begin_in_source(box, str(source), how, path)
        assert begun.fired, begun.stderr
    assert files.clean_source(box, str(source)).fired
    assert git("status", "--porcelain").split() == ["??", "mine.txt"]
    assert git("symbolic-ref", "--short", "HEAD").strip() == "main"
