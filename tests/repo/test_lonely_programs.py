"""Programs that an isolated interpreter runs inside a box find everything that they import."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

SOURCE = Path(str(files("mutiny")))
DRIVERS = sorted((SOURCE / "targets" / "drivers").glob("coordination_*.py"))
assert DRIVERS
DOUBLES = [
    SOURCE / "doubles" / f"{name}.py"
    for name in ("mcp_client", "boards/once", "boards/worker", "boards/load")
]


@pytest.mark.parametrize("path", [*DRIVERS, *DOUBLES], ids=lambda path: path.stem)
def test_it_can_be_loaded_by_path_alone(path: Path) -> None:
    load = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='loaded')"
    done = subprocess.run(
        [sys.executable, "-IS", "-c", load, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
