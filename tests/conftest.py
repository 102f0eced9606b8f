"""Puts this directory on the import path, so that all kinds of tests share `builders` and
`schemas`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import schemas


@pytest.fixture
def validate_run() -> Callable[[Path], None]:
    """Check every file of a run directory against its JSON Schema."""
    return schemas.validate_run
