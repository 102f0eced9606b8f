"""Where a program is. (`shutil` would load three compressors to say so.)"""

from __future__ import annotations

import os


def find_program(name: str) -> str | None:
    """The first executable file of this name on PATH; None when there is none."""
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        candidate = f"{directory or os.curdir}/{name}"
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):  # noqa: PTH112
            return candidate
    return None
