"""What Mutiny knows of the contract of a box with nothing in it before it loads it."""

from __future__ import annotations

from mutiny.kit.descriptor import Descriptor, Lazy

DESCRIPTOR = Descriptor(
    "plain",
    "a plain box",
    Lazy("mutiny.contracts.plain.operations:OPERATIONS"),
    Lazy("mutiny.contracts.plain.language:LANGUAGE"),
    bare_target=Lazy("mutiny.targets.plain.target:plain_target"),
    targets=("box",),
    default_for=frozenset({"foreign experiment"}),
    rank=3,
)
