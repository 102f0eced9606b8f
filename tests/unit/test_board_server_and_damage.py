"""A server whose file is replaced by another one may end rather than write into that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_contract_board_rules import HELD, of

from mutiny.contracts.board.damage import hurt
from mutiny.kit.faults import DamageFile


@pytest.mark.parametrize(
    ("server", "up", "file", "serving"),
    [
        (True, True, "state", None),
        (True, False, "state", False),
        (False, False, "state", True),  # it needs none
        (True, True, "heartbeat", True),
    ],
)
def test_whether_it_still_runs(server: bool, up: bool, file: str, serving: bool | None) -> None:
    profile = replace(HELD.profile, server=server)
    before = replace(HELD, profile=profile, up=frozenset({up}))
    damage = DamageFile("garbage", file=file)
    assert {one.serving for one in hurt(before, damage, of(before))} == {serving}
