"""Plants: bugs that longboat can be asked to have, one per known way that orchestrators fail.

``LONGBOAT_PLANT=name[,name]`` switches them on (`longboat.planting`). Each is a small change of a real
code path, and can be reached without any luck by the operations that stand behind "Shortest:".
"""

from __future__ import annotations

from typing import NamedTuple

from longboat.board.plants import ROWS
from longboat.workers import process_plants, sweep_plants, work_plants


class Plant(NamedTuple):
    """One bug: what it does and how it is reached, which kind it is, and where it was seen.

    ``boards`` names the task boards (A, B, C) that can have it; none: it is one of the workers'.
    """

    name: str
    what: str
    failure_class: str
    source: str
    sweep: str = ""
    """For a bug that only a sweep finds reliably: its kind, scenario and operation."""
    boards: str = ""


_BY_SCENARIOS = (*work_plants.ROWS, *process_plants.ROWS)
WORKER_PLANTS: dict[str, Plant] = {
    row[0]: Plant(*row) for row in (*_BY_SCENARIOS, *sweep_plants.ROWS)
}
BOARD_PLANTS: dict[str, Plant] = {row[0]: Plant(*row[:4], boards=row[4]) for row in ROWS}
PLANTS: dict[str, Plant] = {**WORKER_PLANTS, **BOARD_PLANTS}
