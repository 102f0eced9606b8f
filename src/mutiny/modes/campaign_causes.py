"""The causes of a campaign made as short as they get: each once, not once a run that met it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

from mutiny import stopping
from mutiny.engine.campaigns import CauseGroup, Job, Shortened, Standing
from mutiny.engine.minimise import Budget
from mutiny.modes.own_command import OwnCommand
from mutiny.system.machine import cores

LOOK_S = 0.5
TOLD = ("--target", "--bin", "--plant")
"""What a run was told that its minimising must be told, too."""


def shorten(
    standing: Standing, folder: Path, budget: Budget, tell: Callable[[Shortened], None]
) -> None:
    """Minimise every cause that is not yet, side by side; `tell` hears of each, in this thread."""
    groups = [group for group in standing.ordered_causes() if group.can_be_shorter]
    with ThreadPoolExecutor(max_workers=cores()) as pool:
        work = [
            pool.submit(_shorten, group, standing.jobs[group.first], folder, budget)
            for group in groups
        ]
        for future in work:
            found = future.result()
            if found is not None:
                tell(found)


def _shorten(group: CauseGroup, job: Job, folder: Path, budget: Budget) -> Shortened | None:
    """By `mutiny minimise`; None when it came to nothing."""
    cause = group.shortest
    place = Path(cause.replay).parent
    if stopping.asked() or not place.is_dir():
        return None
    limits = ("--trials", str(budget.runs), "--seconds", str(budget.seconds))
    words = ["minimise", str(place), "--rule", cause.rule, *limits, *_again(job.words)]
    with tempfile.TemporaryDirectory(prefix="mutiny-minimise-") as scratch:
        command = OwnCommand(words, folder, Path(scratch))
        while not command.wait(LOOK_S):
            if stopping.asked():
                command.stop()
        answer = command.answer()
    if answer.problem is not None or answer.document is None:
        return None
    length = int(answer.document["to"])
    return Shortened(cause.rule, cause.operation, cause.said, length, str(answer.document["file"]))


def _again(words: Sequence[str]) -> list[str]:
    return [word for pair in pairwise(words) if pair[0] in TOLD for word in pair]
