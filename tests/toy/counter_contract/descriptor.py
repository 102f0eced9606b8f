"""The counter contract, described: the one thing that is registered."""

from __future__ import annotations

from mutiny.kit.descriptor import Descriptor, Lazy

DESCRIPTOR = Descriptor(
    "counter",
    "a counter",
    Lazy("counter_contract.contract:OPERATIONS"),
    Lazy("counter_contract.language:LANGUAGE"),
    Lazy("counter_contract.contract:RULES"),
    Lazy("counter_contract.contract:ABOUT"),
    Lazy("counter_contract.target:CounterFile"),
    Lazy("counter_contract.target:CounterLive"),
)
