"""The containers of one box: an engine of its own, what is seen of them, and what is done to them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutiny.box.box import Box
from mutiny.box.engine import IMAGE, Engine, EngineUnavailable
from mutiny.contracts.batch.observation import ContainerSeen
from mutiny.foreign import parse
from mutiny.model.result import OperationResult
from mutiny.targets.kit.marks import Words

NEIGHBOUR = "somebody-elses"
"""A container beside those of the target, which it has no business with."""
TECHNIQUE = "private container engine"
LOOKS = 3
"""So often is asked when a container goes away while it is looked at."""


@dataclass(frozen=True, kw_only=True)
class ContainerWords:
    """How the target is told to use containers, and how it marks its own."""

    environment: Mapping[str, Words] = field(default_factory=dict)
    """`{engine}`: the command line of the client, `{image}`, `{options}`: more words for `create`."""
    run_label: str = ""
    task_label: str = ""


class Containers:
    """A running engine beside a box; it ends with it."""

    def __init__(
        self, box: Box, words: ContainerWords, read_only: Sequence[Path], writable: Sequence[str]
    ) -> None:
        self._words = words
        self._writable = tuple(writable)
        self._inside = box.inside_root
        self._known: dict[str, ContainerSeen] = {}
        self._engine = Engine(box, read_only)
        made = self._engine.ask(
            *("create", "--name", NEIGHBOUR, "--network", "none", *self._engine.options),
            *(IMAGE, "true"),
        )
        if made.exit_code != 0:  # a neighbour that never was must not be missed later
            self._engine.close()
            raise EngineUnavailable(f"create {NEIGHBOUR}: {made.stderr.strip()}")

    def values(self, desk: str) -> dict[str, str]:
        """The placeholders of the target's environment; whoever is in a container sees the desk."""
        name = desk.replace('"', '""')  # of one row of CSV, so that any name will do
        seen = ("--mount", f'type=bind,"source={name}","target={name}"')
        return {
            "engine": shlex.join(self._engine.client),
            "image": IMAGE,
            "options": shlex.join((*self._engine.options, *seen)),
        }

    @property
    def engine(self) -> str:
        """Which engine it is."""
        return self._engine.kind.name

    # --- looking ---------------------------------------------------------------------------------------

    @property
    def known(self) -> Mapping[str, ContainerSeen]:
        """All that were ever seen, as they were when they were seen last."""
        return dict(self._known)

    def look(self) -> dict[str, ContainerSeen] | None:
        """All that there are, the neighbour too; None when the engine does not answer."""
        rows = None
        for _ in range(LOOKS):
            rows = self._rows()
            if rows is not None or self._engine.out:
                break
        if rows is None:
            return None
        found = {one.name: one for one in map(self._seen, rows)}
        self._known |= {name: one for name, one in found.items() if name != NEIGHBOUR}
        return found

    def _rows(self) -> list[Mapping[str, Any]] | None:
        """What the engine tells of each; None: one went away between two questions, or it is silent."""
        if self._engine.out:
            return None
        listed = self._engine.ask("ps", "-aq", "--no-trunc")
        names = listed.stdout.split()
        told = self._engine.ask("inspect", *names) if names else listed
        if listed.exit_code != 0 or told.exit_code != 0:
            return None
        rows: list[Mapping[str, Any]] = parse(told.stdout) if names else []
        return rows

    def _seen(self, row: Mapping[str, Any]) -> ContainerSeen:
        labels, host = row["Config"].get("Labels") or {}, row["HostConfig"]
        user = row["Config"].get("User") or ""
        return ContainerSeen(
            row["Name"].removeprefix("/"),
            labels.get(self._words.run_label, ""),
            labels.get(self._words.task_label, ""),
            bool(row["State"]["Running"]),
            host["NetworkMode"],
            host.get("Memory") or 0,
            host.get("PidsLimit") or 0,
            "" if user == f"{os.getuid()}:{os.getgid()}" else user or "nobody named",
            tuple(self._foreign(row.get("Mounts") or ())),
        )

    def _foreign(self, mounts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Where it may write, and should not."""
        for one in mounts:
            place = os.path.normpath(str(one.get("Source", "")))
            own = any(f"{place}/".startswith(known) for known in self._writable)
            if one.get("RW") and not own:
                yield place.removeprefix(f"{self._inside}/")

    # --- faults ----------------------------------------------------------------------------------------

    def end(self, task: str, *words: str) -> OperationResult:
        """Say words about the container of a task."""
        known = (self.look() or {}).values()
        mine = [one.name for one in known if one.task == task and one.running]
        if not mine:
            why = f"no container of {task} runs"
            return OperationResult(1, stderr=why, fired=False, technique=TECHNIQUE)
        done = self._engine.ask(*words, mine[0])
        hit = done.exit_code == 0
        return OperationResult(0 if hit else 1, stderr=done.stderr, fired=hit, technique=TECHNIQUE)

    def outage(self) -> OperationResult:
        """The engine dies."""
        if not self._engine.kill():
            return OperationResult(1, stderr="the engine is away already", fired=False)
        return OperationResult(fired=True, technique=TECHNIQUE)

    def back(self) -> OperationResult:
        """The engine answers again; one that was never away does."""
        if self._engine.out:
            self._engine.start()
        return OperationResult(fired=True, technique=TECHNIQUE)

    def close(self) -> None:
        """End the engine and all of its containers."""
        self._engine.close()
