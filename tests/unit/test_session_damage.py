"""Checkpoints that are damaged on purpose: each in its own way, and never valid afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mutiny.contracts.session.checkpoints import digest_of, opened, point_of
from mutiny.system.files import BoxPath
from mutiny.targets.session import damage

PAYLOAD = {
    "number": 3,
    "elapsed_s": 1.0,
    "phase": {"index": 0},
    "file_system_state": {},
    "agent_states": [],
    "working_memory": {"decision": "yes"},
}


@pytest.mark.parametrize("part", ["body", "key", "field", "newest"])
def test_a_damaged_checkpoint_is_not_valid(tmp_path: Path, part: str) -> None:
    path = tmp_path / "000003.json"
    path.write_text(json.dumps({"sha256": digest_of(PAYLOAD), "payload": PAYLOAD}))
    assert point_of(3, path.read_text(), "").valid
    damage.checkpoint(BoxPath(tmp_path) / path.name, part)
    assert not point_of(3, path.read_text(), "").valid
    only_its_form = not isinstance(opened(path.read_text()), str)
    assert only_its_form is (part == "field"), "whole, and lacks something: no digest tells of that"
