"""What the parts of a running session share: its files, settings, plan, state, clock and logs.

The state is one plain value, the same that a checkpoint holds: what is restored is what was saved.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable
from typing import Any

from longboat.complaints import complain
from longboat.errors import UsageError
from longboat.planting import planted
from longboat.session import config as settings
from longboat.session import measures
from longboat.session.checkpoints import FORMAT, changes
from longboat.session.clock import Clock
from longboat.session.home import Session
from longboat.session.logs import Lines, read_lines
from longboat.session.project import Phase, Project, Vote
from longboat.session.repository import Repository
from longboat.session.values import Json

TRUST = 0.9
"""How much a new agent is trusted."""


def first_state(project: Project) -> Json:
    """The state before anything has happened."""
    return {
        "status": "running",
        "reason": "",
        "phase": {"name": project.phases[0].name, "index": 0, "elapsed_s": 0.0},
        "agent_states": [],
        "working_memory": {},
        "file_system_state": {},
        "test_results": dict(measures.NO_TESTS),
        "metrics": {},
        "git_commit": "",
        "tasks": {
            task.id: {"status": "waiting", "agent": "", "attempts": 0, "phase": task.phase}
            for task in project.tasks
        },
        "votes": {},
        "errors": [],
        "counts": {"errors": 0, "recoveries": 0},
    }


def payload_of(
    state: Json, number: int, session: str, elapsed_s: float, trigger: str, previous: str
) -> Json:
    """A checkpoint of a state; what its checks say is added by who can look."""
    return {
        "format": FORMAT,
        "number": number,
        "session_id": session,
        "timestamp": int(time.time()),
        "elapsed_s": round(elapsed_s, 3),
        "trigger": trigger,
        "validation": {},
        "previous": previous,
        "restored_from": None,
        **copy.deepcopy(state),
    }


def lives(session: Session) -> int:
    """How many supervisors a session has had."""
    events = read_lines(session.file("events.jsonl"))
    return sum(1 for event in events if event.get("type") == "supervisor.start")


class Site:
    """One session at work."""

    def __init__(self, session: Session, project: Project, about: Json, lock: int | None) -> None:
        self.session = session
        self.project = project
        hours = float(about["hours"])
        self.most_agents = int(about["agents"])
        self.scale = hours * 60 / project.minutes if project.minutes else 0.0
        self.hours = hours
        self.config_path = session.home.file("config.toml")
        self._config_stamp = self._stamp()
        self.config = settings.load(self.config_path)
        self.repository = Repository(session.file("project"), lock)
        found = session.checkpoints.last_valid()
        assert found is not None
        self._saved = found.chain.payload
        self._tip = found.chain.tip
        self.base_digest = found.chain.digest
        self._base = int(self._saved["number"])
        self._delta = found.chain.deltas
        self.state: Json = {
            key: copy.deepcopy(value)
            for key, value in self._saved.items()
            if key in first_state(project)
        }
        self.clock = Clock(float(self._saved["elapsed_s"]))
        self.events = Lines(session.file("events.jsonl"))
        self.calls = Lines(session.file("calls.jsonl"))
        self.metrics = Lines(session.file("metrics.jsonl"))
        self.metrics_number = sum(1 for _ in read_lines(session.file("metrics.jsonl")))
        self.spent = measures.Spent.of_calls(read_lines(session.file("calls.jsonl")))
        self.life = lives(session) + 1
        self.before_saving: Callable[[], None] = lambda: None
        self._dropped = 0
        self._phase_began_s = self.clock.now() - float(self.state["phase"]["elapsed_s"])
        self.base_at_s = self.clock.now()
        self.base_calls, self.base_tokens = self.spent.tool_calls, self.spent.tokens

    # --- the plan -------------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """The present phase."""
        index: int = self.state["phase"]["index"]
        return self.project.phases[index]

    def phase_elapsed_s(self) -> float:
        """How long the present phase has lasted."""
        return self.clock.now() - self._phase_began_s

    def enter(self, index: int) -> None:
        """Another phase begins."""
        name = self.project.phases[index].name
        self.state["phase"] = {"name": name, "index": index, "elapsed_s": 0.0}
        self._phase_began_s = self.clock.now()

    def phase_tasks(self) -> dict[str, Json]:
        """The tasks of the present phase."""
        tasks: dict[str, Json] = self.state["tasks"]
        return {name: task for name, task in tasks.items() if task["phase"] == self.phase.name}

    def phase_votes(self) -> list[Vote]:
        """The decisions of the present phase."""
        return [vote for vote in self.project.votes if vote.phase == self.phase.name]

    def agent(self, name: str) -> Json:
        """What is known of an agent; a new one begins with nothing."""
        for one in self.state["agent_states"]:
            if one["name"] == name:
                known: Json = one
                return known
        fresh: Json = {
            "name": name,
            "role": self.project.roles[name],
            "status": "idle",
            "task": "",
            "trust": TRUST,
            "tokens": 0,
            "tool_calls": 0,
            "model": self.config.model,
            "busy_s": 0.0,
            "restarts": 0,
            "context": [],
        }
        self.state["agent_states"].append(fresh)
        return fresh

    # --- settings -------------------------------------------------------------------------------------

    def _stamp(self) -> tuple[int, int] | None:
        try:
            stat = os.stat(self.config_path)
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_ino

    def reread_config(self) -> None:
        """Take new settings; bad ones are said and not taken."""
        stamp = self._stamp()
        if stamp == self._config_stamp:
            return
        self._config_stamp = stamp
        try:
            self.config = settings.load(self.config_path)
        except UsageError as error:
            self.say("config.refused", text=str(error))

    # --- logs -----------------------------------------------------------------------------------------

    def say(self, event: str, /, **more: Any) -> None:
        """One event. A full disk must not stop the work that is told about: the loss is told later."""
        known = {"ts": round(time.time(), 3), "at": round(self.clock.now(), 3)}
        line = {**known, "life": self.life, "session": self.session.name, "type": event, **more}
        if self._dropped:
            line["dropped_before"] = self._dropped
        try:
            self.events.say(line)
            self._dropped = 0
        except OSError as error:
            self._dropped += 1
            complain(f"event not written ({error}): {event} {more}")
            if planted("session-complaint-ends-it"):
                raise

    def note_call(self, line: Json) -> None:
        """One line of the ledger of calls, and what it has cost."""
        self.calls.say({"at": round(self.clock.now(), 3), "life": self.life, **line})
        self.spent.take(line)

    # --- saving ---------------------------------------------------------------------------------------

    def present(self, trigger: str, number: int, previous: str) -> Json:
        """The state as a checkpoint of now."""
        self.before_saving()
        self.state["phase"]["elapsed_s"] = round(self.phase_elapsed_s(), 3)
        for one in self.state["agent_states"]:
            used = self.spent.agents.get(one["name"], measures.Used())
            one["tokens"], one["tool_calls"] = used.tokens, used.tool_calls
        self.state["metrics"] = measures.line(self, self.spent)
        name = self.session.name
        return payload_of(self.state, number, name, self.clock.now(), trigger, previous)

    @property
    def numbers(self) -> tuple[int, int]:
        """The newest checkpoint, and how many lines follow it."""
        return self._base, self._delta

    def rebase(self, payload: Json, written: str) -> None:
        """A new checkpoint was written: lines follow this one from now on."""
        self._saved, self._tip, self.base_digest = payload, written, written
        self._base, self._delta = payload["number"], 0
        self.base_at_s = self.clock.now()
        self.base_calls, self.base_tokens = self.spent.tool_calls, self.spent.tokens

    def save(self, why: str) -> None:
        """What has changed since the last line, on the disk when this returns."""
        if planted("session-deltas-skipped"):
            return
        payload = self.present("", self._base, "")
        delta = {
            "session_id": self.session.name,
            "base": self._base,
            "delta": self._delta + 1,
            "previous": self._tip,
            "timestamp": payload["timestamp"],
            "elapsed_s": payload["elapsed_s"],
            "why": why,
            **changes(self._saved, payload),
        }
        if planted("session-line-counted-first"):
            self._delta, self._saved = self._delta + 1, payload
            self._tip = self.session.checkpoints.append(delta)
            return
        self._tip = self.session.checkpoints.append(delta)
        self._delta += 1
        self._saved = payload
