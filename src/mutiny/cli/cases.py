"""What a CI hears of a command: JUnit where it is asked for, annotations where GitHub listens."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutiny.report.junit import Case

GITHUB, SUMMARY = "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"


def tell_cases(name: str, cases: Sequence[Case], junit: Path | None) -> None:
    """Tell a CI what came of a command. Annotations go to stderr: stdout may be a program's."""
    if junit is not None:
        from mutiny.report.junit import write_junit

        write_junit(junit, name, cases)
    if os.environ.get(GITHUB) != "true":
        return
    from mutiny.engine.rundir import storing
    from mutiny.report.github import annotated, summary

    for line in annotated(name, cases):
        sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
    place = os.environ.get(SUMMARY)
    if place:
        with storing(Path(place)), open(place, "a", encoding="utf-8") as file:
            file.write(summary(name, cases))
