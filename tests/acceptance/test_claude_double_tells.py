"""The double of `claude` as others see its work: who did it, and that it could not be done."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mutiny.doubles.install import write_script
from mutiny.system.files import BoxPath
from test_claude_double import Box


@pytest.fixture
def box() -> Iterator[Box]:
    # Not tmp_path: a tmux socket must have a short path.
    with tempfile.TemporaryDirectory(prefix="mt") as root:
        box = Box(Path(root).resolve())
        yield box
        box.close()


@pytest.fixture
def alpha(box: Box) -> Path:
    return box.worktree("alpha")


def test_an_agent_may_sign_its_work_or_say_that_it_failed(box: Box, alpha: Path) -> None:
    write_script(BoxPath(box.doubles), {"alpha": ["signs", "obey", "fail"]})
    authors = []
    for name in ("one", "two"):
        box.print_mode(f"Create {name}.txt", cwd=alpha)
        authors.append(box.git("log", "-1", "--format=%an", cwd=alpha).strip())
    assert authors[0] == "alpha" != authors[1]
    head = box.git("rev-parse", "HEAD", cwd=alpha)
    told = box.print_mode("Create three.txt", "--output-format", "json", cwd=alpha)
    assert (json.loads(told.stdout)["is_error"], box.git("rev-parse", "HEAD", cwd=alpha)) == (
        True,
        head,
    )
