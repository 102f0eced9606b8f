"""What tests of the system-call engine share: a box or a reason, and a wait with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from mutiny.box.isolation import why_not

LIMIT_S = 10.0


def need_box(technique: str = "bwrap") -> None:
    reason = why_not(technique)
    if reason is not None:
        pytest.skip(f"no {technique} box here: {reason}")


def wait_for(check: Callable[[], bool]) -> bool:
    """Until it is so; False when that takes too long."""
    deadline = time.monotonic() + LIMIT_S
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
