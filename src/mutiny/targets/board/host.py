"""What the parts of a live board (server, workers, loads, waits) ask of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from mutiny.box.box import Box
from mutiny.box.results import Spawned
from mutiny.contracts.board.observation import BoardObservation
from mutiny.contracts.board.profile import BoardLimits, BoardProfile
from mutiny.model.result import OperationResult
from mutiny.system.files import BoxPath
from mutiny.targets.board.history import History
from mutiny.targets.board.spec import BoardSpec


class BoardHost(Protocol):
    """A live board, seen from one of its parts."""

    spec: BoardSpec
    box: Box
    values: dict[str, Any]
    limits: BoardLimits
    history: History
    spawned: Any
    server: Any

    @property
    def fault_runner(self) -> Any: ...

    @property
    def has_board(self) -> bool: ...

    @property
    def time_to_pass_s(self) -> float: ...

    def filled(self, text: str, quoted: Callable[[str], str] = str) -> str: ...

    def environment(self, worker: str | None = None) -> Mapping[str, str]: ...

    def limit(self, given_s: float) -> float: ...

    def figure(self, name: str) -> float: ...

    def profile(self) -> BoardProfile: ...

    def observe(self) -> BoardObservation: ...

    def wait_change(self, timeout_s: float) -> None: ...

    def ask(self, name: str) -> OperationResult: ...

    def found_at(self, endpoint: str) -> None: ...

    def start(
        self, argv: Sequence[str], ready: str, limit_s: float, log: BoxPath
    ) -> tuple[Spawned, OperationResult]: ...
