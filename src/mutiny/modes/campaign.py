"""A campaign: every run of a matrix once, whoever dies on the way.

The journal is written before anything follows from it (`engine/campaigns.py` says why). A crew that is gone
for good ends this leg, not the campaign: `resume` goes on with what is still to be done.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mutiny import stopping
from mutiny.engine.campaigns import (
    JOURNAL,
    MOST_TRIES,
    CampaignJournal,
    Finished,
    Job,
    Shortened,
    Standing,
    read_standing,
)
from mutiny.engine.minimise import Budget
from mutiny.model.verdict import Verdict
from mutiny.modes.campaign_causes import shorten
from mutiny.modes.campaign_results import finished_of
from mutiny.modes.crew import Crew, CrewGone, Delivered, Missing

LOOK_S = 0.2
RUNS = "runs"
Watch = Callable[[Standing, Finished | None], None]


class Campaign:
    """One leg of a campaign: from now until everything is done, or somebody stops it."""

    def __init__(self, directory: Path, jobs: tuple[Job, ...], watch: Watch) -> None:
        self._directory, self._watch = directory, watch
        self._journal = CampaignJournal(directory / JOURNAL)
        self.standing = read_standing(directory, jobs)
        self._before_s = self.standing.elapsed_s
        self._began = time.monotonic()

    def __enter__(self) -> Campaign:
        self._tell({"event": "leg"})
        for id_ in list(self.standing.under_way):
            self._lose(id_, "whoever carried the campaign out died meanwhile")
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()

    @property
    def elapsed_s(self) -> float:
        """How long the campaign has been carried out, in all."""
        return self._before_s + time.monotonic() - self._began

    def run(self, crew: Crew) -> None:
        """Let the crew do what is still to be done."""
        with stopping.held_off():  # a line is written whole, and whatever is under way is ended
            try:
                while (self.standing.waiting or self.standing.under_way) and not stopping.asked():
                    self._start_some(crew)
                    event = crew.next(LOOK_S)
                    if event is not None:
                        self._take(event)
            except CrewGone as gone:
                self._lose_all(str(gone))
                raise
            finally:
                crew.close()
                self._lose_all("the campaign was stopped")

    def shorten(self, folder: Path, budget: Budget) -> None:
        """Minimise each cause once, when everything is done; a cause that does not show again stays."""
        if self.standing.waiting or self.standing.under_way or stopping.asked():
            return

        def tell(found: Shortened) -> None:
            self._tell({"event": "minimised", **asdict(found)})

        with stopping.held_off():
            shorten(self.standing, folder, budget, tell)

    def _start_some(self, crew: Crew) -> None:
        for job in self.standing.waiting[: max(crew.slots - len(self.standing.under_way), 0)]:
            number = self.standing.tries[job.key] + 1
            if number > MOST_TRIES:
                self._give_up(job)
                continue
            id_ = f"{list(self.standing.jobs).index(job.key):05d}.{number}"
            self._tell({"event": "started", "id": id_, "key": job.key})
            crew.start(id_, job.words)

    def _take(self, event: Delivered | Missing) -> None:
        key = self.standing.under_way.get(event.id)
        if key is None:
            return  # it was named lost already, and another attempt is counted
        why = event.why if isinstance(event, Missing) else event.answer.broken_off
        if isinstance(event, Missing) or why is not None:
            self._lose(event.id, why or "")
            return
        done = finished_of(
            self.standing.jobs[key],
            event.id,
            event.answer,
            seconds=event.seconds,
            at_s=self.elapsed_s,
            where=event.where,
            runs=self._directory / RUNS / event.id,
        )
        self._tell({"event": "finished", **asdict(done)})
        self._watch(self.standing, done)

    def _give_up(self, job: Job) -> None:
        """It was lost too often: it has shown nothing, and that is said."""
        id_ = f"{list(self.standing.jobs).index(job.key):05d}.0"
        reason = f"lost {MOST_TRIES} times, given up"
        at_s = round(self.elapsed_s, 3)
        done = Finished(id_, job.key, Verdict.INCONCLUSIVE.value, 0.0, at_s, "", reason)
        self._tell({"event": "started", "id": id_, "key": job.key})
        self._tell({"event": "finished", **asdict(done)})
        self._watch(self.standing, done)

    def _lose_all(self, why: str) -> None:
        for id_ in list(self.standing.under_way):
            self._lose(id_, why)

    def _lose(self, id_: str, why: str) -> None:
        key = self.standing.under_way[id_]
        self._tell({"event": "lost", "id": id_, "key": key, "why": why})
        self._watch(self.standing, None)

    def _tell(self, line: dict[str, Any]) -> None:
        """First the journal, then what follows from it."""
        self._journal.write({**line, "unix": round(time.time(), 3)})
        self.standing.take(line, str(self._directory / JOURNAL))
