"""How long a command may take under the system-call engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mutiny.box.errors import BoxDied
from mutiny.box.results import Command
from mutiny.contracts.batch.operations import Run
from mutiny.kit import operations as op
from mutiny.syscalls.supervisor import Supervisor
from mutiny.system.files import BoxPath
from mutiny.targets.kit import points

LIMIT_S = 30.0


@dataclass
class Heard:
    """Stands for the engine: nothing runs, and it is written down how long it might have."""

    limits: list[float] = field(default_factory=list)

    def __call__(self, *_: Any, **more: Any) -> None:
        self.limits.append(more["timeout_s"])


@dataclass
class Box:
    """As much of a box as this asks for."""

    directory: Path


@pytest.mark.parametrize(
    ("point", "held"),
    [
        (op.PowerLossAt(Run(), 3), True),
        (op.CrashAt(Run(), 3), False),
        (op.FailAt(Run(), 3), False),
    ],
)
def test_only_who_is_held_at_every_call_may_take_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: op.SweepPoint, *, held: bool
) -> None:
    """A run of three tasks took its whole limit while its files were kept, and was accused of it."""
    heard = Heard()
    monkeypatch.setattr(Supervisor, "run_in", heard)
    home = tmp_path / "home"
    home.mkdir()
    box: Any = Box(tmp_path)
    points.break_at(point, box, (BoxPath(tmp_path, "home"),), Command(("true",), LIMIT_S))
    assert heard.limits == [LIMIT_S * points.HELD if held else LIMIT_S]


@pytest.mark.parametrize("keep", ["", "files", "synced"])
def test_a_trace_that_keeps_files_may_take_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: str
) -> None:
    """The other way to hold it at every call."""
    heard = Heard()
    monkeypatch.setattr(Supervisor, "run_in", heard)
    (tmp_path / "home").mkdir()
    box: Any = Box(tmp_path)
    with pytest.raises(BoxDied):
        points.trace(
            op.Trace(Run(), keep), box, (BoxPath(tmp_path, "home"),), Command(("true",), LIMIT_S)
        )
    assert heard.limits == [LIMIT_S * points.HELD if keep else LIMIT_S]
