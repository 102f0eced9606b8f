"""A driver of the real option A (`coordination.py`): a file-based command line that speaks in texts.

    coordination_a.py PROGRAM VERB ARGUMENTS...

The program runs in this process, as `python coordination.py ...` would run it: one process a command. It
refuses with exit 0, so its words are read. It names its tasks itself; our name of a task is its
description. `elect` asks the election of the same repository (`shared/reliability`).
"""

from __future__ import annotations

import contextlib
import glob
import importlib
import io
import json
import os
import re
import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 3)))

from mutiny.targets.drivers import common
from mutiny.targets.drivers.common import Answer

DIRECTORY = ".coordination"
STATE = os.path.join(DIRECTORY, "tasks.json")
LOCK = f"{STATE}.lock"
BEFORE_RESTORE = ".mutiny-completions"
"""A restore takes completions back, but not out of the logs: what they had counted until then."""
NOT_FOUND = r"^[X✗] Task \S+ not found"


@dataclass(frozen=True)
class Phrase:
    """A success and the refusals of one command, as regular expressions of its output."""

    success: str
    refusals: dict[str, tuple[str, ...]]


PHRASES = {
    "init": Phrase(r"^✓ Initialized", {}),
    "add": Phrase(r"^✓ Added task (?P<task>\S+)", {}),
    "claim": Phrase(r"^Claimed task (?P<task>\S+)", {"nothing_to_claim": ("^No available tasks",)}),
    "start": Phrase(
        r"^✓ Started task (?P<task>\S+)",
        {"not_owner|unknown_task": (r"^✗ Cannot start .* not claimed by",)},
    ),
    "complete": Phrase(
        r"^✓ Completed task (?P<task>\S+)",
        {"not_owner": (r"^X Task \S+ not claimed by",), "unknown_task": (NOT_FOUND,)},
    ),
    "fail": Phrase(r"^✗ Task (?P<task>\S+) marked as failed", {"unknown_task": (NOT_FOUND,)}),
    "heartbeat": Phrase(r"", {}),
    "cancel": Phrase(
        r"^\+ Cancelled task (?P<task>\S+)",
        {"wrong_status": (r"^X Cannot cancel",), "unknown_task": (NOT_FOUND,)},
    ),
    "retry": Phrase(
        r"^\+ Scheduled retry .* for task (?P<task>\S+)",
        {
            "wrong_status": (r"^X Task \S+ is not failed",),
            "retries_used": (r"has exceeded max retries",),
            "unknown_task": (NOT_FOUND,),
        },
    ),
    "recover": Phrase(r"^Maintenance complete", {}),
    "checkpoint": Phrase(r"^✓ Checkpoint saved", {}),
    "restore": Phrase(
        r"^✓ Restored from checkpoint",
        {
            "unknown_checkpoint": (r"^Checkpoint not found",),
            "unreadable": (r"^Failed to restore checkpoint",),
        },
    ),
    "repair": Phrase(
        r"^✓ (?P<found>Recovery completed|No recovery needed)",
        {"unreadable": (r"^Failed to restore", r"^No backup files", r"^Invalid backup")},
    ),
    "status": Phrase(r"^Progress: ", {}),
}


def completions(ids: list[str]) -> list[int]:
    """How often each task was completed since the last restore: the board's own logs say it."""
    before: dict[str, int] = {}
    if os.path.exists(BEFORE_RESTORE):
        with open(BEFORE_RESTORE, encoding="utf-8") as file:
            before = json.load(file)
    logged = _logged()
    return [logged.get(own, 0) - before.get(own, 0) for own in ids]


def _logged() -> dict[str, int]:
    counted: dict[str, int] = {}
    for path in sorted(glob.glob(os.path.join(DIRECTORY, "logs", "*.log"))):
        with open(path, encoding="utf-8", errors="replace") as file:
            for own in re.findall(r"\] COMPLETED: (\S+)$", file.read(), re.M):
                counted[own] = counted.get(own, 0) + 1
    return counted


def begin_counting() -> None:
    """After a restore: what was completed before it may be completed again."""
    with open(BEFORE_RESTORE, "w", encoding="utf-8") as file:
        json.dump(_logged(), file)


class Unknown(Exception):
    """The state cannot be read, so nobody can say which task is meant."""


class Driver:
    """Speaks to one `coordination.py`."""

    def __init__(self, program: str) -> None:
        self._program = program

    def run(self, verb: str, *words: str) -> Answer:
        """Say one command line, and understand what it prints. A crash goes on as it is."""
        heard = io.StringIO()
        sys.argv = [self._program, *words]
        sys.path[0] = os.path.dirname(self._program)
        with contextlib.redirect_stdout(heard):
            try:
                runpy.run_path(self._program, run_name="__main__")
            except SystemExit as end:
                if end.code not in (
                    None,
                    0,
                ):  # 2 is what argparse says of words that it does not know
                    word = "bad_input" if end.code == 2 else ""
                    return common.refused(word, f"exit {end.code}: {heard.getvalue().strip()}")
            except OSError as error:
                told_so = common.hindered(error)
                if told_so is None:
                    raise
                return told_so
        phrase = PHRASES[verb]
        answer = common.understood(heard.getvalue(), phrase.success, phrase.refusals)
        if isinstance(answer.get("task"), str):
            said = re.search(r"^  Description: (?P<name>.*)$", heard.getvalue(), re.MULTILINE)
            answer["task"] = said["name"] if said else self._known().get(answer["task"])
        return answer

    def _names(self) -> dict[str, str]:
        """The board's ids and our names. Before there is a state nobody has a name."""
        if not os.path.exists(STATE):
            return {}
        found = common.state_in(
            STATE
        )  # without the lock: a command must not take more turns than it has
        if not found["ok"]:
            raise Unknown(f"the driver cannot say which task is meant: {found}")
        return common.labels(found["tasks"])

    def _known(self) -> dict[str, str]:
        """The names as far as they can be read: a board that is damaged is still asked."""
        try:
            return self._names()
        except Unknown:
            return {}

    def _own(self, name: str) -> str:
        """The board's own id of a task; a name that it does not know is said as it is."""
        return next((own for own, ours in self._names().items() if ours == name), name)

    # --- verbs -----------------------------------------------------------------------------------

    def add(self, name: str, priority: int, hints: str, depends: list[str]) -> Answer:
        """Our name is the description; two tasks of one name would be two tasks to the board."""
        if name in self._known().values():
            return common.unable("the board gives ids itself: nobody can add a task twice")
        words = ["leader", "add-task", name, "-p", str(priority)]
        if hints:
            words += ["--hints", hints]
        if depends:
            words += ["-d", *(self._own(one) for one in depends)]
        answer = self.run("add", *words)
        return {**answer, "task": name} if answer["ok"] else answer

    def batch(self, path: str) -> Answer:
        """One after the other: its own batch cannot name dependencies among new tasks."""
        for task in common.batch_in(path):
            answer = self.add(task["id"], 5, "", task["depends"])
            if not answer.get("ok"):
                return answer
        return {"ok": True}

    def show(self) -> Answer:
        """The state file in our words; reading it changes nothing."""
        if not os.path.isdir(DIRECTORY):
            return common.refused("not_initialised", "there is no board")
        found = common.state_in(STATE, LOCK)
        if found["ok"]:
            shown = common.rows(found["tasks"], owner="claimed_by", named=False)
            times = completions([str(task.get("id")) for task in found["tasks"]])
            found["tasks"] = [
                {**row, "completions": n} for row, n in zip(shown, times, strict=True)
            ]
        return found

    def elect(self, node: str, lease_s: str) -> Answer:
        """A node that was just started wants to lead."""
        shared = os.path.join(os.path.dirname(os.path.dirname(self._program)), "shared")
        sys.path[0] = os.path.join(shared, "reliability")
        library: Any = importlib.import_module("leader_election")
        os.makedirs(DIRECTORY, exist_ok=True)
        election = library.LeaderElection(
            node, library.LeaderElectionConfig(lease_duration=float(lease_s))
        )
        if election.try_become_leader():
            return {"ok": True, "token": election.term}
        return common.refused("leader_exists", f"{node} did not become leader")

    def restored(self, verb: str, *words: str) -> Answer:
        """An older state comes back, unless there is no need."""
        answer = self.run(verb, "recovery", *words)
        if answer["ok"] and not str(answer.get("found", "")).startswith("No"):
            begin_counting()
        return answer

    def speak(self, verb: str, words: list[str]) -> Answer:
        """One verb of Mutiny's."""
        try:
            return self._speak(verb, words)
        except Unknown as error:
            return common.unable(str(error))

    def _speak(self, verb: str, words: list[str]) -> Answer:
        simple: dict[str, Callable[[], Answer]] = {
            "init": lambda: self.run("init", "leader", "init", "mutiny"),
            "claim": lambda: self.run("claim", "worker", "claim", words[0]),
            "heartbeat": lambda: self.run("heartbeat", "worker", "heartbeat", words[0]),
            "recover": lambda: self.run("recover", "leader", "maintenance"),
            "checkpoint": lambda: self.run(
                "checkpoint", "recovery", "checkpoint", "--name", *words
            ),
            "restore": lambda: self.restored("restore", "restore-checkpoint", words[0]),
            "repair": lambda: self.restored("repair", "check"),
            "status": lambda: self.run("status", "leader", "status"),
            "add": lambda: self.add(*common.new_task(words)),
            "add-batch": lambda: self.batch(words[0]),
            "list": self.show,
            "elect": lambda: self.elect(words[0], words[1]),
        }
        if verb in simple:
            return simple[verb]()
        if verb in ("cancel", "retry"):
            return self.run(verb, "leader", verb, self._own(words[0]))
        worker, name, *more = words
        said = ("worker", verb, worker, self._own(name))
        if verb == "start":
            return self.run(verb, *said)
        return self.run(verb, *said, common.text_of(more))


if __name__ == "__main__":
    sys.exit(common.told(Driver(sys.argv[1]).speak(sys.argv[2], sys.argv[3:])))
