"""What Mutiny knows of the board contract before it loads it."""

from __future__ import annotations

from mutiny.kit.descriptor import Descriptor, Lazy

DESCRIPTOR = Descriptor(
    "board",
    "a board",
    Lazy("mutiny.contracts.board.operations:OPERATIONS"),
    Lazy("mutiny.contracts.board.language:LANGUAGE"),
    Lazy("mutiny.contracts.board.rules:RULES"),
    Lazy("mutiny.contracts.board.about:ABOUT"),
    Lazy("mutiny.targets.board.spec:BoardSpec"),
    Lazy("mutiny.targets.board.live:BoardLive"),
    checkup=Lazy("mutiny.contracts.board.scenarios:checkup"),
    targets=("longboat-board", "longboat-broker", "longboat-crew"),
    default_for=frozenset({"experiment", "race", "load"}),
    abilities={
        "race": Lazy("mutiny.contracts.board.races:races"),
        "load": Lazy("mutiny.contracts.board.load_plans:loads"),
    },
    rank=2,
)
