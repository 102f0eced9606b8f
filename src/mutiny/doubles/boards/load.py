"""A load on a board: many commands by workers side by side, measured and written down.

Runs inside a box (`python -IS board_load.py CONFIG.json`). It judges nothing: latencies, samples of the
server's memory and descriptors, what was refused, and every command's moments go to files. Standard
library only.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 3)))

from mutiny.doubles.boards.lines import speaker

SAMPLES = 120
PORTION = 1000
IDLE_S = 0.02
KEPT = 20
"""Of each kind of trouble so many are told."""


class Load:
    """What all workers of one load share."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.lock = threading.Lock()
        self.latencies: dict[str, list[float]] = {}
        self.samples: list[dict[str, float]] = []
        self.told: dict[str, list[dict[str, Any]]] = {
            name: [] for name in ("robbed", "out_of_order", "twice", "unanswered", "refused")
        }
        self.outputs: dict[str, dict[str, Any]] = {}
        self.by_size: dict[int, list[float]] = {}
        self.bursts: dict[str, list[tuple[float, float, bool]]] = {}
        self.owners: dict[str, str] = {}
        self.beats: dict[str, float] = {}
        self.late = 0
        self.taken = 0
        self.done = 0
        self.total = int(config["count"])
        self.completing: set[str] = set()
        self.over = threading.Event()
        self.started = time.monotonic()
        self.deadline = self.started + float(config["most_s"])
        self._every = max(1, self.total // SAMPLES)
        self._history = os.open(config["history"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def note(self, lines: Sequence[dict[str, Any]]) -> None:
        """Write to the history, all lines in one piece."""
        text = "".join(json.dumps(line) + "\n" for line in lines)
        os.write(self._history, text.encode())

    def tell(self, kind: str, **what: Any) -> None:
        """Something that somebody has to judge."""
        with self.lock:
            if len(self.told[kind]) < KEPT:
                self.told[kind].append(what)

    def another(self) -> int:
        """The number of the next cycle, counted from 1; 0 when none may begin any more."""
        with self.lock:
            if self.taken >= self.total or self.over.is_set():
                return 0
            self.taken += 1
            return self.taken

    def finished(self) -> None:
        """One more cycle is over."""
        with self.lock:
            self.done += 1
            if self.done % self._every == 0 or self.done == self.total:
                self.sample()
                self.progress()

    def progress(self) -> None:
        """How far it is, for whoever watches."""
        path = self.config["progress"]
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            file.write(f"{self.done} {self.total}")
        os.replace(f"{path}.new", path)

    def sample(self) -> None:
        """What the server has, and how many files the board has."""
        one: dict[str, float] = {"cycle": self.done, "s": round(time.monotonic() - self.started, 3)}
        for pid in self.config["server"][:1]:
            one |= _of_process(pid)
        one["files"] = sum(len(files) for _, _, files in os.walk(self.config["directory"]))
        self.samples.append(one)

    def result(self) -> dict[str, Any]:
        """Everything that was measured."""
        seconds = time.monotonic() - self.started
        return {
            "seconds": round(seconds, 3),
            "done": self.done,
            "throughput": round(self.done / seconds, 2) if seconds else 0.0,
            "commands": {word: summary(times) for word, times in self.latencies.items()},
            "by_size": {str(size): summary(times) for size, times in sorted(self.by_size.items())},
            "samples": self.samples,
            "outputs": self.outputs,
            "bursts": self.bursts,
            "late_heartbeats": self.late,
            **{name: rows for name, rows in self.told.items() if rows},
        }


def _of_process(pid: int) -> dict[str, float]:
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file if ":" in line)
        return {
            "rss_kb": float(fields["VmRSS"].split()[0]),
            "descriptors": float(len(os.listdir(f"/proc/{pid}/fd"))),
        }
    except (OSError, KeyError):  # it is gone, or not ours to look at: there is nothing to sample
        return {}


def summary(times_ms: Sequence[float]) -> dict[str, float]:
    """Count, mean, and the usual percentiles (nearest rank)."""
    ordered = sorted(times_ms)

    def rank(share: float) -> float:
        return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 3)

    return {
        "count": len(ordered),
        "mean_ms": round(sum(ordered) / len(ordered), 3),
        "p50_ms": rank(0.50),
        "p90_ms": rank(0.90),
        "p99_ms": rank(0.99),
        "max_ms": round(ordered[-1], 3),
    }


class Worker:
    """One worker with its own connection."""

    def __init__(self, load: Load, name: str) -> None:
        self.load = load
        self.name = name
        self._line = speaker(load.config, name)
        self._times: dict[str, list[float]] = {}

    def close(self) -> None:
        """Hand over what was measured."""
        self._line.close()
        with self.load.lock:
            for word, times in self._times.items():
                self.load.latencies.setdefault(word, []).extend(times)

    def say(self, command: str, *, legal: bool = True, **values: Any) -> dict[str, Any]:
        """One command, measured and written down; `legal`: a refusal must be told."""
        word = command.replace("_", "-")
        known = {key: value for key, value in values.items() if value is not None}
        told = {key: value for key, value in known.items() if key not in ("output", "tasks")}
        if "tasks" in known:
            told["tasks"] = [{"id": one["id"], "depends": one["depends"]} for one in known["tasks"]]
        else:
            told["worker"] = self.name
        invoked = time.monotonic()
        answer = self._line.ask(command, {"worker": self.name, **known})
        returned = time.monotonic()
        said: dict[str, Any] = {"process": self.name, "operation": word}
        begin = {"type": "invoke", **said, "arguments": told, "time": invoked}
        end = {**said, "time": returned}
        if answer is None:
            self.load.note([begin, {**end, "type": "info"}])
            self.load.tell("unanswered", command=word, worker=self.name)
            return {"ok": False, "error": "no_answer", "at": (invoked, returned)}
        self._times.setdefault(word, []).append((returned - invoked) * 1000)
        kind = "ok" if answer.get("ok") else "fail"
        self.load.note([begin, {**end, "type": kind, "answer": _brief(answer)}])
        if legal and not answer.get("ok"):
            error, text = str(answer.get("error", "")), str(answer.get("message", ""))
            task = known.get("task", "")
            self.load.tell(
                "refused", command=word, worker=self.name, task=task, error=error, message=text
            )
        return {**answer, "at": (invoked, returned)}

    def claim(self) -> dict[str, Any] | None:
        """The next task; None when nothing is left to do."""
        load = self.load
        while not load.over.is_set() and time.monotonic() < load.deadline:
            answer = self.say("claim", legal=False)
            if answer.get("ok"):
                self._check_order(str(answer["task"]))
                return answer
            error = answer.get("error")
            if error != "nothing_to_claim":
                text = str(answer.get("message", ""))
                load.tell("refused", command="claim", worker=self.name, error=error, message=text)
                return None
            time.sleep(IDLE_S)
        return None

    def _check_order(self, task: str) -> None:
        """Everything that it depends on has at least been on its way to its completion."""
        load = self.load
        with load.lock:
            missing = [
                one for one in load.config["depends"].get(task, ()) if one not in load.completing
            ]
            first = load.owners.setdefault(task, self.name)
            twice = task in load.completing or first != self.name
        if missing:
            load.tell("out_of_order", task=task, before=missing[0])
        if twice and load.config["shape"] in ("cycles", "dag", "payloads"):
            load.tell("twice", task=task, first=first, second=self.name)

    def complete(self, claimed: dict[str, Any], output: str | None = None) -> dict[str, Any]:
        """It is done."""
        task = str(claimed["task"])
        with self.load.lock:
            self.load.completing.add(task)
        return self.say("complete", task=task, epoch=claimed.get("epoch"), output=output)

    # --- shapes ----------------------------------------------------------------------------------

    def cycles(self) -> None:
        """Claim and complete as fast as possible."""
        while self.load.another():
            claimed = self.claim()
            if claimed is None or not self.complete(claimed).get("ok"):
                self.load.over.set()
                return
            self.load.finished()

    def payloads(self) -> None:
        """The same with outputs from a kilobyte upwards, each size in its turn."""
        sizes = self.load.config["sizes"]
        while number := self.load.another():
            claimed = self.claim()
            if claimed is None:
                self.load.over.set()
                return
            size = sizes[number % len(sizes)]
            text = _text(str(claimed["task"]), size)
            answer = self.complete(claimed, text)
            begun, ended = answer["at"]
            if not answer.get("ok"):
                self.load.over.set()
                return
            with self.load.lock:
                self.load.by_size.setdefault(size, []).append((ended - begun) * 1000)
                self.load.outputs[str(claimed["task"])] = {
                    "size": len(text.encode()),
                    "sha256": hashlib.sha256(text.encode()).hexdigest(),
                }
            self.load.finished()

    def long(self) -> None:
        """Work for longer than a lease, and say so while working."""
        load = self.load
        while load.another():
            claimed = self.claim()
            if claimed is None:
                load.over.set()
                return
            task = str(claimed["task"])
            with load.lock:
                load.beats[task] = claimed["at"][0]
                load.owners[task] = self.name
            end = time.monotonic() + load.config["seconds"]
            while (left := end - time.monotonic()) > 0:
                time.sleep(min(left, load.config["beat_s"]))
                self._beat(task)
            with load.lock:
                lost = load.owners.get(task) != self.name
            answer = self.say("complete", legal=not lost, task=task, epoch=claimed.get("epoch"))
            with load.lock:
                load.owners.pop(task, None)
            if not answer.get("ok"):
                load.over.set()
            load.finished()

    def _beat(self, task: str) -> None:
        answer = self.say("heartbeat")
        if answer.get("ok"):
            with self.load.lock:
                if answer["at"][1] - self.load.beats[task] > self.load.config["lease_s"]:
                    self.load.late += 1
                self.load.beats[task] = answer["at"][0]

    def steal(self) -> None:
        """Try to get what others work on, until they have finished."""
        load = self.load
        while load.done < load.total and not load.over.wait(0.1):
            answer = self.say("claim", legal=False)
            if not answer.get("ok"):
                continue
            task, ended = str(answer["task"]), answer["at"][1]
            with load.lock:
                owner, beat = load.owners.get(task), load.beats.get(task)
                load.owners[task] = self.name
            if owner is None or beat is None:  # it was free: this one came first
                self.say("release", task=task, epoch=answer.get("epoch"))
                with load.lock:
                    load.owners.pop(task, None)
                continue
            silent_s, lease_s = ended - beat, load.config["lease_s"]
            if silent_s < lease_s - load.config["tolerance_s"]:
                robbed = {"silent_s": silent_s, "lease_s": lease_s}
                load.tell("robbed", task=task, owner=owner, thief=self.name, **robbed)
                load.over.set()
            else:
                load.late += 1

    def burst(self) -> None:
        """Claim as fast as possible, a number of times."""
        rows = []
        for _ in range(self.load.total // len(self.load.config["workers"])):
            answer = self.say("claim", legal=False)
            served = answer.get("error") != "rate_limited"
            if served and not answer.get("ok"):
                error, text = answer.get("error"), str(answer.get("message", ""))
                self.load.tell(
                    "refused", command="claim", worker=self.name, error=error, message=text
                )
            rows.append((*answer["at"], served))
            self.load.finished()
        with self.load.lock:
            self.load.bursts[self.name] = rows


def _brief(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what the history does not need."""
    return {
        key: value
        for key, value in answer.items()
        if key in ("ok", "task", "epoch", "error", "tasks", "lease_s")
    }


def _text(task: str, size: int) -> str:
    """A text of this many bytes, different for each task, with what is easily spoiled on the way."""
    seed = f'{task} "quoted" \\ back\\slash \u00fc\u00a0\u2028 \U0001f6f6 <tag> {{brace}} %s\t'
    whole = (seed * (size // len(seed.encode()) + 1)).encode()[:size]
    return whole.decode("utf-8", "ignore")


def add(load: Load) -> dict[str, Any]:
    """Add the tasks, a portion at a time."""
    worker = Worker(load, "load-adder")
    tasks = [
        {"id": name, "description": f"task {name}", "depends": list(depends)}
        for name, depends in load.config["depends"].items()
    ]
    answer: dict[str, Any] = {"ok": True}
    for begin in range(0, len(tasks), PORTION):
        portion = tasks[begin : begin + PORTION]
        answer = worker.say("add_batch", tasks=portion)
        if not answer.get("ok"):
            break
        with load.lock:
            load.done += len(portion)
            load.progress()
    worker.close()
    answer.pop("at", None)
    return {key: answer.get(key) for key in ("ok", "error", "message") if key in answer}


def drive(load: Load) -> None:
    """Let all workers run the shape."""
    shape = load.config["shape"]
    names = list(load.config["workers"])
    load.sample()
    failures: list[BaseException] = []

    def run(name: str, method: str) -> None:
        try:
            worker = Worker(load, name)
            try:
                getattr(worker, method)()
            finally:
                worker.close()
        except BaseException as error:  # noqa: BLE001  a thread must hand every failure back
            failures.append(error)
            load.over.set()

    method = "cycles" if shape == "dag" else shape
    threads = [threading.Thread(target=run, args=(name, method)) for name in names]
    if shape == "long":
        threads.append(threading.Thread(target=run, args=("load-thief", "steal")))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    load.sample()
    if failures:
        raise failures[0]


def main(path: str) -> int:
    """Run one load; what it gave goes to a file."""
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    load = Load(config)
    load.progress()
    if config["shape"] == "add":
        given = {"answer": add(load), "load": load.result()}
    else:
        drive(load)
        given = {"load": load.result()}
    with open(config["result"], "w", encoding="utf-8") as file:
        json.dump(given, file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
