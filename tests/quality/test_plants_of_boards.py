"""Every planted bug of longboat's boards is found by what `board_known.json` names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

KNOWN: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("board_known.json").read_text(encoding="utf-8")
)
COMMAND = str(Path(sys.executable).parent / "mutiny")


def arguments(known: dict[str, Any]) -> list[str]:
    """The command line that finds a plant."""
    chosen = ["--target", known["target"], "--plant", known["plant"], "--json"]
    chosen += ["--scenario", known["scenario"]]
    if "sweep" in known:
        return ["sweep", known["sweep"], *chosen, "--at", known["at"], "--until-bug"]
    return ["run", *chosen, "--no-minimise"]


@pytest.mark.slow
@pytest.mark.parametrize("known", KNOWN, ids=lambda one: f"{one['target']}-{one['plant']}")
def test_a_plant_is_found(tmp_path: Path, known: dict[str, Any]) -> None:
    ran = subprocess.run(
        [COMMAND, *arguments(known)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == 1, ran.stdout[-2000:] + ran.stderr
    assert f'"rule": "{known["rule"]}"' in ran.stdout
