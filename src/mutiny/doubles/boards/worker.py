"""A worker of a board without a model: one process that claims, works and completes, as it was told.

Runs inside a box (`python -IS board_worker.py CONFIG.json`), speaks to the board through the same
command lines as Mutiny, and writes every command with the moments of its invocation and its return to
a history file: only so can the commands of many workers be put in an order afterwards. Its own clock is
never skewed, the clocks of the commands that it starts may be.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import Any

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 3)))

from mutiny.doubles.speech import (
    MOST_TRIED,
    about_task,
    all_shown,
    answer_in,
    answered,
    looks_first,
    shown,
    spoken,
    unnamed,
)

IDLE_S = 0.1
"""Pause after a claim that got nothing."""
LATER = ("busy", "rate_limited")
"""Refusals that end by themselves: somebody else is at work, or this worker asks too often."""
MOST_LOOKS = 8
"""So often a worker looks for a task, when others are always faster; then it rests."""


class Stopped(Exception):
    """The worker was asked to end."""


class Worker:
    """One worker and its behaviour."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.name: str = config["worker"]
        self._commands: dict[str, Any] = config["commands"]
        self._values: dict[str, Any] = config["values"]
        self._environment: dict[str, str] = {**os.environ, **config["environment"]}
        self._limit_s: float = config["limit_s"]
        self._beat_s: float = config["beat_s"]
        self._history = os.open(config["history"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        word, _, number = str(config["behaviour"]).partition(":")
        self.behaviour = word
        self.number = float(number) if number else 0.0
        self.stopping = False
        self._last_beat = time.monotonic()

    # --- speaking --------------------------------------------------------------------------------

    def _note(self, kind: str, operation: str, **more: Any) -> None:
        line = {"type": kind, "process": self.name, "operation": operation, **more}
        os.write(self._history, (json.dumps(line) + "\n").encode())

    def say(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Give one command; its answer, or a refusal that says that there was none."""
        values = {**self._values, "worker": self.name, **arguments}
        known = {key: value for key, value in arguments.items() if value is not None}
        asked = {"worker": self.name, **known}
        template = self._commands[operation]
        free = operation == "claim" and arguments.get("task") is None
        argv = spoken(unnamed(template) if free else template, values)
        self._note("invoke", operation, arguments=asked, time=time.monotonic())
        done = self._run(argv)
        if done is None:
            self._note("info", operation, time=time.monotonic())
            return {"ok": False, "error": "no_answer"}
        returned = time.monotonic()
        answer = _heard(template, done, free=free)
        if answer is None or done.returncode < 0 or answer.get("happened") == "unknown":
            self._note("info", operation, time=returned)
            return {"ok": False, "error": "no_answer"}
        if "unable" in answer or answer.get("error") in ("system", "server_down", "no_space"):
            self._note("fail", operation, time=returned)  # it has not happened, and tells nothing
            return answer
        self._note("ok" if answer.get("ok") else "fail", operation, answer=answer, time=returned)
        return answer

    def _run(self, argv: list[str]) -> subprocess.CompletedProcess[bytes] | None:
        """One command line of the board; None when it did not end in time."""
        try:
            return subprocess.run(
                argv,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None

    def _claim(self) -> dict[str, Any]:
        """Take what is free; where a claim must name it, look first, and again when others were faster."""
        template = self._commands["claim"]
        if not looks_first(template):
            return self.say("claim")
        answer: dict[str, Any] = {"ok": False, "error": "nothing_to_claim"}
        for _ in range(MOST_LOOKS):
            done = self._run(spoken(unnamed(template), {**self._values, "worker": self.name}))
            free = None if done is None else shown(template, *_texts(done))
            if done is None or free is None or not free["ok"]:
                return answer
            for task in all_shown(template, _texts(done)[1])[:MOST_TRIED]:
                answer = self.say("claim", task=task)
                if answer.get("ok") or answer.get("error") == "no_answer":
                    return {**answer, "task": task}
                if not about_task(answer.get("error")):
                    break
        return answer

    def _work(self, seconds: float, *, beats: bool) -> None:
        """Be busy for some time, and say that one lives if so told."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, self._beat_s))
            if beats and time.monotonic() < end:
                self.say("heartbeat")

    # --- working ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Claim and work until told to stop, or until the behaviour ends it."""
        while not self.stopping:
            if self.behaviour == "stranger":
                self._interfere()
            answer = self._claim()
            if not answer.get("ok"):
                self._rest()
                continue
            self._handle(str(answer["task"]), answer.get("epoch"))

    def _rest(self) -> None:
        end = time.monotonic() + (0.0 if self.behaviour == "flood" else IDLE_S)
        while not self.stopping and time.monotonic() < end:
            time.sleep(0.02)

    def _handle(self, task: str, epoch: int | None) -> None:
        if self.behaviour == "claim-and-die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.behaviour == "claim-and-hang":
            while not self.stopping:
                time.sleep(0.05)
            return
        if "start" in self._commands:
            self._insist("start", task=task, epoch=epoch)
        if self.behaviour == "slow":
            self._work(self.number / 1000, beats=True)
        elif self.behaviour == "deaf":
            self._work(self.number or 3 * self._beat_s, beats=False)
        self._insist("complete", task=task, epoch=epoch)
        if self.behaviour == "double":
            self.say("complete", task=task, epoch=epoch)

    def _insist(self, operation: str, **arguments: Any) -> None:
        """Say it again as long as the board only says that it is not the moment."""
        while self.say(operation, **arguments).get("error") in LATER and not self.stopping:
            time.sleep(IDLE_S)

    def _interfere(self) -> None:
        """Complete what belongs to somebody else."""
        listed = self.say("list")
        for task in listed.get("tasks", []):
            if task.get("owner") not in (None, self.name) and task.get("status") != "done":
                self.say("complete", task=task["id"], epoch=task.get("epoch"))
                return


def _texts(done: subprocess.CompletedProcess[bytes]) -> tuple[int, str, str]:
    stdout, stderr = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return done.returncode, stdout, stderr


def _heard(
    template: dict[str, Any], done: subprocess.CompletedProcess[bytes], *, free: bool
) -> dict[str, Any] | None:
    """The answer, in whatever form the board gives it."""
    if free and "pick" in template:
        return shown(template, *_texts(done))
    if "rejections" in template:
        return answered(template, *_texts(done))
    return answer_in(done.stdout.decode("utf-8", "replace"))


def main(path: str) -> int:
    """Run one worker."""
    with open(path, encoding="utf-8") as file:
        worker = Worker(json.load(file))

    def stop(number: int, frame: FrameType | None) -> None:
        worker.stopping = True

    signal.signal(signal.SIGTERM, stop)
    worker.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
