"""What Mutiny knows of the spawns contract before it loads it."""

from __future__ import annotations

from mutiny.kit.descriptor import Descriptor, Lazy

DESCRIPTOR = Descriptor(
    "spawns",
    "agents that summon agents",
    Lazy("mutiny.contracts.spawns.operations:OPERATIONS"),
    Lazy("mutiny.contracts.spawns.language:LANGUAGE"),
    Lazy("mutiny.contracts.spawns.rules:RULES"),
    Lazy("mutiny.contracts.spawns.about:ABOUT"),
    Lazy("mutiny.targets.spawns.spec:SpawnsSpec"),
    Lazy("mutiny.targets.spawns.live:SpawnsLive"),
    targets=("longboat-spawns",),
    abilities={"measure": Lazy("mutiny.contracts.spawns.metrics:measure")},
    rank=4,
)
