"""Plants: bugs that longboat can be asked to have, one per known way that orchestrators fail.

``LONGBOAT_PLANT=name[,name]`` switches them on (`longboat.planting`). Each is a small change of a real
code path, and can be reached without any luck by the operations that stand behind "Shortest:".
"""

from __future__ import annotations

from typing import NamedTuple

from longboat.batch import plants as batch_plants
from longboat.batch import shown_plants
from longboat.board.plants import ROWS
from longboat.session import plants as session_plants
from longboat.spawns import plants as spawn_plants
from longboat.workers import process_plants, sweep_plants, work_plants


class Plant(NamedTuple):
    """One bug: what it does and how it is reached, which kind it is, and where it was seen.

    ``boards`` names the task boards (A, B, C) that can have it; ``part`` is `pipeline` for those of
    `longboat batch`, `session` for those of `longboat session`, `spawns` for those of `longboat spawn`;
    neither: it is one of the workers'.
    """

    name: str
    what: str
    failure_class: str
    source: str
    sweep: str = ""
    """For a bug that only a sweep finds reliably: its kind, scenario and operation."""
    boards: str = ""
    part: str = ""
    scenario: str = ""
    """The scenario that finds it, where its table says one."""
    rule: str = ""
    """The rule that it breaks there."""


_BY_SCENARIOS = (*work_plants.ROWS, *process_plants.ROWS)
WORKER_PLANTS: dict[str, Plant] = {
    row[0]: Plant(*row) for row in (*_BY_SCENARIOS, *sweep_plants.ROWS)
}
BOARD_PLANTS: dict[str, Plant] = {row[0]: Plant(*row[:4], boards=row[4]) for row in ROWS}


def _of(part: str, row: tuple[str, str, str, str, str, str]) -> Plant:
    name, what, kind, source, found_by, rule = row
    swept = found_by.startswith("sweep ")
    sweep = found_by.removeprefix("sweep ") if swept else ""
    scenario = sweep.split()[1] if swept else found_by
    return Plant(name, what, kind, source, sweep, part=part, scenario=scenario, rule=rule)


BATCH_PLANTS: dict[str, Plant] = {
    row[0]: _of("pipeline", row) for row in (*batch_plants.ROWS, *shown_plants.ROWS)
}
SPAWN_PLANTS: dict[str, Plant] = {row[0]: _of("bridge", row) for row in spawn_plants.ROWS}
SESSION_PLANTS: dict[str, Plant] = {row[0]: _of("session", row) for row in session_plants.ROWS}
PLANTS: dict[str, Plant] = {
    **WORKER_PLANTS,
    **BOARD_PLANTS,
    **BATCH_PLANTS,
    **SPAWN_PLANTS,
    **SESSION_PLANTS,
}
