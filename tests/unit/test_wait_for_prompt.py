"""Waiting for a prompt to arrive: an agent is busy with it, or has had it already."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from builders import TOKEN, agent, belief, beliefs, model, picture, receipt, view
from mutiny.contracts.workers import operations as op
from mutiny.kit.contract import StepContext
from mutiny.targets.workers.waits import wait_prompt


@pytest.mark.parametrize(
    ("agents", "receipts", "arrived"),
    [
        ((agent(busy=True),), (), True),
        ((agent(),), (receipt(),), True),
        ((agent(),), (), False),
        ((agent(),), (receipt("MT-7f3a-0"),), False),
        ((agent(pid=201),), (receipt(),), False),
        ((agent(alive=False),), (receipt(),), False),
    ],
    ids=["busy", "over already", "not yet", "an older one", "another agent had it", "who is dead"],
)
def test_a_prompt_has_arrived(agents: Any, receipts: Any, arrived: bool) -> None:
    seen = replace(picture(view()), agents=agents, receipts=receipts)
    live: Any = SimpleNamespace(
        observe=lambda: seen,
        wait_change=lambda _timeout_s: None,
        limit=lambda _given_s: 0.0,
        limits=SimpleNamespace(complete_s=0.0),
    )
    told = beliefs(model(belief(tokens=("MT-7f3a-0", TOKEN))))
    context = StepContext(str, lambda _seen: (), seen, model=told)
    assert wait_prompt(live, op.WaitForPrompt("alpha"), context).succeeded is arrived
