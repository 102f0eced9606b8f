"""The last line of metrics counts no more than was written down."""

from __future__ import annotations

import pytest
from test_contract_session import at, broken, lines, seen


@pytest.mark.parametrize("name", ["model_calls", "tool_calls", "errors_encountered"])
def test_a_counter_at_the_end_is_held_to_the_logs(name: str) -> None:
    told = {"total_tokens_consumed": 0}

    def found(count: int) -> bool:
        metrics = lines({**told, name: count})
        after = seen("session.pause", metrics=metrics)
        return "metrics_add_up" in broken(after, model=at("paused"))

    assert found(1000)
    assert not found(0)
