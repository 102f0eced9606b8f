"""What Mutiny knows of the workers contract before it loads it."""

from __future__ import annotations

from mutiny.kit.descriptor import Descriptor, Lazy

DESCRIPTOR = Descriptor(
    "workers",
    "a fleet of workers",
    Lazy("mutiny.contracts.workers.operations:OPERATIONS"),
    Lazy("mutiny.contracts.workers.language:LANGUAGE"),
    Lazy("mutiny.contracts.workers.rules:RULES"),
    Lazy("mutiny.contracts.workers.about:ABOUT"),
    Lazy("mutiny.targets.workers.spec:TargetSpec"),
    Lazy("mutiny.targets.workers.live:WorkersLive"),
    targets=("longboat",),
    default_for=frozenset({"run"}),
    checkup=Lazy("mutiny.contracts.workers.scenarios:checkup"),
    advice=Lazy("mutiny.targets.workers.advice:advice"),
    state_form=Lazy("mutiny.contracts.workers.observation:WorkersState"),
    rank=1,
)
