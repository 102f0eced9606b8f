"""Puts this directory on the import path, so that all kinds of tests share `builders` and
`schemas`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import schemas
from mutiny.kit import exploring

# How long an example takes is the machine's business: a crowded one is no finding.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture
def validate_run() -> Callable[[Path], None]:
    """Check every file of a run directory against its JSON Schema."""
    return schemas.validate_run


@pytest.fixture
def by_chance_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exploration takes nothing from a ready sequence, and is never calm: what it makes up by itself."""
    for share in ("BEGUN", "CALM", "TOPICAL"):
        monkeypatch.setattr(exploring, share, 0.0)
