"""What Mutiny knows of the session contract before it loads it."""

from __future__ import annotations

from mutiny.kit.descriptor import Descriptor, Lazy

DESCRIPTOR = Descriptor(
    "session",
    "a long session",
    Lazy("mutiny.contracts.session.operations:OPERATIONS"),
    Lazy("mutiny.contracts.session.language:LANGUAGE"),
    Lazy("mutiny.contracts.session.rules:RULES"),
    Lazy("mutiny.contracts.session.about:ABOUT"),
    Lazy("mutiny.targets.session.spec:SessionSpec"),
    Lazy("mutiny.targets.session.live:SessionLive"),
    targets=("longboat-session",),
    default_for=frozenset({"soak"}),
    abilities={"soak": Lazy("mutiny.contracts.session.soak:soaks")},
    rank=4,
)
