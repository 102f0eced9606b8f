"""What every line of a batch's event log has to say."""

from __future__ import annotations

import json

import pytest

from mutiny.targets.batch.observer import _event
from mutiny.targets.batch.spec import EventFields

WANTED = EventFields(of_tasks=("task.",), also={"batch.": ("batch_id",)})
BASE = {"ts": "2027-01-01T00:00:00Z", "run_id": "r1"}


@pytest.mark.parametrize(
    ("event", "wrong"),
    [
        ({**BASE, "type": "run.paused"}, ""),
        ({**BASE, "type": "task.reset", "task_id": "a"}, ""),
        ({**BASE, "type": "task.reset"}, "it has no task_id"),
        ({**BASE, "type": "batch.start", "batch_id": 0}, ""),
        ({**BASE, "type": "batch.start"}, "it has no batch_id"),
        ({"ts": "now", "type": "run.paused"}, "it has no run_id"),
        ([], "it is no object"),
    ],
)
def test_a_line_has_what_its_type_promises(event: object, wrong: str) -> None:
    assert _event(json.dumps(event), WANTED)[2] == wrong


def test_a_line_that_is_cut_off_is_no_event() -> None:
    assert _event('{"ts": "now', WANTED)[2] == "it is no JSON"
