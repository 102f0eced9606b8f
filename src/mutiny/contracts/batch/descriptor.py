"""What Mutiny knows of the batch contract before it loads it."""

from __future__ import annotations

from mutiny.kit.descriptor import Descriptor, Lazy

DESCRIPTOR = Descriptor(
    "batch",
    "a batch orchestrator",
    Lazy("mutiny.contracts.batch.operations:OPERATIONS"),
    Lazy("mutiny.contracts.batch.language:LANGUAGE"),
    Lazy("mutiny.contracts.batch.rules:RULES"),
    Lazy("mutiny.contracts.batch.about:ABOUT"),
    Lazy("mutiny.targets.batch.spec:BatchSpec"),
    Lazy("mutiny.targets.batch.live:BatchLive"),
    targets=("longboat-batch",),
    default_for=frozenset({"accept"}),
    abilities={"drill": Lazy("mutiny.contracts.batch.drills:drills")},
    rank=3,
)
