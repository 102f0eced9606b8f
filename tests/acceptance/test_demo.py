"""`make run`: its point on one screen, and the README shows it as it is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINES = 30
COLUMNS = 80


def steady(text: str) -> str:
    """Without what differs from run to run; on a busy machine the minimiser leaves longer texts."""
    text = re.sub(r'prompt="[^"]*"', "prompt", text)
    text = re.sub(r" +\d+\.\ds|\d+m \d\ds|\d+s in all", " T", text)
    return re.sub(r"run_\d{8}_\d{6}(_\d+)?", "run_X", text).strip()


@pytest.mark.slow
def test_the_demo_is_what_the_readme_shows(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", str(ROOT / "tools" / "demo.sh"), str(Path(sys.executable).parent)],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": str(COLUMNS)},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    rows = [row for line in done.stdout.splitlines() for row in ([line[:COLUMNS], line[COLUMNS:]])]
    assert len([row for n, row in enumerate(rows) if n % 2 == 0 or row]) <= LINES
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = next(
        block for block in re.findall(r"```\n(.*?)```", readme, re.S) if "7 scenarios" in block
    )
    assert steady(done.stdout) == steady(shown)
