"""The agents that a board starts by itself: doubles, scripted, seen and killed by what they wrote down.

The one insight: which agent works on which task nobody needs to be asked. Every double writes down its
process and its prompt, and the prompt names the task.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from mutiny.contracts.board.observation import AgentRun
from mutiny.doubles.install import write_script
from mutiny.kit.views import ProcessView
from mutiny.probes.doubles import ReceivedLog, identity
from mutiny.system.files import BoxPath
from mutiny.targets.board.spec import AgentsSpec

DEFAULT = "nothing"
"""What an agent does unless told: it answers, and touches no file. Several of them share one directory."""


class Agents:
    """The agents of one board."""

    def __init__(self, spec: AgentsSpec, doubles: BoxPath) -> None:
        self._prompt = re.compile(spec.prompt)
        self._doubles = doubles
        self._log = ReceivedLog(doubles / "received.jsonl")
        self.behave(DEFAULT)

    def behave(self, turn: str) -> None:
        """All of them do this with every task from now on."""
        write_script(self._doubles, {"*": [turn]})

    def runs(self, processes: Sequence[ProcessView]) -> tuple[AgentRun, ...]:
        """Every run so far: who had which task, and whether he still works on it."""
        alive = {process.identity for process in processes}
        found: dict[tuple[int, int], AgentRun] = {}
        for place, record in enumerate(self._log.refresh()):
            who = identity(record)
            if record.event == "prompt":
                match = self._prompt.search(record.text or "")
                if match is not None:
                    living = who in alive
                    found[who] = AgentRun(
                        *(record.worker, match["task"], who, living, living),
                        begun=place,
                        told=record.size,
                    )
            elif record.event in ("turn_end", "exit") and who in found:
                ended = place if record.event == "turn_end" else found[who].ended
                found[who] = replace(found[who], busy=False, ended=ended)
        return tuple(found.values())
