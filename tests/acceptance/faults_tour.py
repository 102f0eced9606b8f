"""Every fault once, in one real box, as whoever runs this: did it fire, was it felt inside, was it
healed?

Prints one JSON object. The tests run it twice: as they are, and as a user without any privilege.
"""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

from mutiny.box.box import Box
from mutiny.box.startup import create_box
from mutiny.doubles.model_api.api import ModelApi
from mutiny.faults import disk, locks, network, resources
from mutiny.faults.base import Fault
from mutiny.faults.catalogue import survey
from mutiny.faults.clients import SilentClient
from mutiny.faults.clock import BoxClocks, SkewClock
from mutiny.faults.namespaces import host_pid
from mutiny.kit.views import ProcessView

PYTHON = str(Path(sys.executable).resolve())
LIMIT_S = 120.0

VICTIM = """
import os, sys
place = sys.argv[1]
os.mkfifo(place + ".in")
answers = os.open(place + ".out", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
orders = os.open(place + ".in", os.O_RDWR)
held = []
os.write(answers, b"ready\\n")
while True:
    order = os.read(orders, 100).decode().strip()
    try:
        if order == "open":
            held.append(os.open("/dev/null", os.O_RDONLY))
        elif order == "memory":
            held.append(bytearray(64 << 20))
        elif order == "write":
            with open(place + ".file", "wb", buffering=0) as file:
                for _ in range(3):  # the second is short, the third refused
                    file.write(b"x" * 1000)
        elif order == "fork":
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        told = "ok"
    except MemoryError:
        told = "MemoryError"
    except OSError as error:
        told = os.strerror(error.errno)
    os.write(answers, told.encode() + b"\\n")
"""

CLIENT = """
import socket, sys, time
size = int(sys.argv[2])
line = socket.socket()
end = time.monotonic() + float(sys.argv[3])
line.settimeout(float(sys.argv[3]))
try:
    line.connect(("127.0.0.1", int(sys.argv[1])))
    line.sendall(b"x" * size)
    while size > 0:
        line.settimeout(max(0.001, end - time.monotonic()))
        got = len(line.recv(65536))
        size -= got
        if not got:
            print("closed")
            break
    else:
        print("ok")
except OSError as error:
    print(type(error).__name__)
"""

ONE_AT_A_TIME = """
import os, socket, sys
os.chdir(sys.argv[1])
unix = sys.argv[2] == "unix"
kind, address = (socket.AF_UNIX, "door") if unix else (socket.AF_INET, ("127.0.0.1", 7070))
door = socket.socket(kind)
door.bind(address)
door.listen(8)
open("open-" + sys.argv[2], "w").close()
while True:
    line, _ = door.accept()
    try:
        while data := line.recv(100):
            line.sendall(data)
    except OSError:
        pass  # whoever was kept waiting has left
"""

CALLER = """
import os, socket, sys
os.chdir(sys.argv[1])
unix = sys.argv[2] == "unix"
kind, address = (socket.AF_UNIX, "door") if unix else (socket.AF_INET, ("127.0.0.1", 7070))
line = socket.socket(kind)
line.settimeout(float(sys.argv[3]))
line.connect(address)
line.sendall(b"served")
try:
    print(line.recv(100).decode())
except TimeoutError:
    print("kept waiting")
"""


class Tour:
    """One box, and what was seen in it."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.root = box.inside_root
        self.seen: dict[str, dict[str, object]] = {}

    def shell(self, script: str) -> str:
        """What a shell of the box says."""
        done = self.box.run(["sh", "-c", script], timeout_s=LIMIT_S)
        return (done.stdout + done.stderr).strip()

    def visit(
        self, name: str, fault: Fault, feel: Callable[[], str], expected: str, healthy: str
    ) -> None:
        """Inject, feel, heal, feel again."""
        reason = fault.why_not()
        if reason is not None:
            self.seen[name] = {"unavailable": reason}
            return
        begun = time.monotonic()
        with fault:
            assert fault.injected is not None
            felt = feel()
        after = feel()
        self.seen[name] = {
            "fired": fault.injected.fired,
            "technique": fault.injected.technique,
            "took_s": round(time.monotonic() - begun, 2),
            "said": fault.injected.stdout + fault.injected.stderr,
            "felt": felt if expected not in felt else True,
            "healed": after if healthy not in after else True,
        }


def visit_disk(tour: Tour) -> None:
    root = tour.root
    tour.shell(f"mkdir {root}/home/small {root}/home/fixed && echo old > {root}/home/small/old")
    tour.shell(f": > {root}/home/file && : > {root}/home/base")
    small = disk.SmallDisk(tour.box, f"{root}/home/small", size_bytes=1 << 20, inodes=100)
    fill = f"head -c 20000 /dev/zero > {root}/home/small/new && cat {root}/home/small/old"
    full = "No space left on device"
    tour.visit("full, bytes", disk.FillDisk(small), lambda: tour.shell(fill), full, "old")
    make = f"cd {root}/home/small && rm -f a b && : > a && : > b && echo made"
    tour.visit(
        "full, inodes",
        disk.FillDisk(small, "inodes", spare=1),
        lambda: tour.shell(make),
        full,
        "made",
    )
    small.collect()
    assert (tour.box.directory / "home/small/old").read_text() == "old\n"
    for place in ("small", "fixed"):
        write = f"echo x > {root}/home/{place}/x && echo written"
        fault = disk.ReadOnly(tour.box, f"{root}/home/{place}")
        tour.visit(f"read-only, {place}", fault, partial(tour.shell, write), "Read-only", "written")
    use = f"cat {root}/home/file && echo read"
    forbidden = disk.Forbid(tour.box, f"{root}/home/file")
    tour.visit("permission", forbidden, lambda: tour.shell(use), "Permission denied", "read")
    lock = f"flock -n {root}/home/file echo locked || echo busy"
    held = locks.HoldLock(tour.box, f"{root}/home/file", "flock")
    tour.visit("lock, flock", held, lambda: tour.shell(lock), "busy", "locked")
    posix = (
        "import fcntl,sys\nf=open(sys.argv[1],'r+')\n"
        "try:\n fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB);print('locked')\n"
        "except OSError: print('busy')"
    )
    sqlite = (
        "import sqlite3,sys\nd=sqlite3.connect(sys.argv[1],timeout=0)\n"
        "try:\n d.execute('create table if not exists t(a)');print('locked')\n"
        "except sqlite3.OperationalError as e: print('busy', e)"
    )
    kinds: tuple[tuple[Literal["posix", "sqlite"], str, str], ...]
    kinds = (("posix", posix, "file"), ("sqlite", sqlite, "base"))
    for kind, program, name in kinds:
        argv = [PYTHON, "-IS", "-c", program, f"{root}/home/{name}"]
        holder = locks.HoldLock(tour.box, f"{root}/home/{name}", kind)
        tour.visit(
            f"lock, {kind}",
            holder,
            lambda argv=argv: tour.box.run(argv, timeout_s=LIMIT_S).stdout,  # type: ignore[misc]
            "busy",
            "locked",
        )


def visit_clock(tour: Tour) -> None:
    clocks = BoxClocks(tour.box, ["alpha"])

    def ahead(worker: str) -> str:
        return f"{round((clocks.seen_s(worker) - time.time()) / 100)}"

    tour.visit("clock, offset", SkewClock(clocks, offset_s=500), lambda: ahead("default"), "5", "0")
    tour.visit(
        "clock, one worker",
        SkewClock(clocks, "alpha", jump_s=-700),
        lambda: f"{ahead('alpha')} {ahead('default')}",
        "-7 0",
        "0 0",
    )

    def nap() -> str:
        program = ["sh", "-c", "sleep 0.5; timeout 0.5 sleep 600"]
        done = tour.box.run(program, env=clocks.environment, timeout_s=LIMIT_S)
        return "fast" if done.duration_s < 0.5 else "slow"

    tour.visit("clock, rate", SkewClock(clocks, rate=60), nap, "fast", "slow")
    clocks.close()


def visit_network(tour: Tour) -> None:
    box = tour.box
    echo = socket.create_server(("127.0.0.1", 0))
    for listener in (echo, network.listen_inside(box, 8080)):
        threading.Thread(target=_echo, args=(listener,), daemon=True).start()

    def talk(port: int, size: int = 10, limit_s: float = 0.3) -> str:
        argv = [PYTHON, "-IS", "-c", CLIENT, str(port), str(size), str(limit_s)]
        return box.run(argv, timeout_s=LIMIT_S).stdout

    api = network.Party("api", "127.0.0.1", 8080)
    cut: dict[str, tuple[network.Partition, str]] = {
        "partition": (network.Partition(box, api), "TimeoutError"),
        "partition, to": (network.Partition(box, api, direction="to"), "TimeoutError"),
        "partition, from": (network.Partition(box, api, direction="from"), "TimeoutError"),
        "partition, reject": (network.Partition(box, api, how="reject"), "ConnectionRefusedError"),
        "loss, all": (network.Partition(box, api, loss=1), "TimeoutError"),
    }
    for name, (partition, felt) in cut.items():
        tour.visit(name, partition, lambda: talk(8080), felt, "ok")
    narrow = network.SlowLink(box, kilobits_per_s=100)
    tour.visit("slow link", narrow, lambda: talk(8080, 200_000, 0.5), "TimeoutError", "ok")
    door = network.listen_inside(box, 9000)
    with network.FaultProxy(echo.getsockname()[:2], listener=door) as proxy:
        for name, rules, felt in (
            ("proxy, latency", network.LinkRules(latency_s=0.5), "TimeoutError"),
            ("proxy, rate", network.LinkRules(bytes_per_s=1000), "TimeoutError"),
            ("proxy, stall", network.LinkRules(stalled="both"), "TimeoutError"),
            ("proxy, one-way", network.LinkRules(stalled="down"), "TimeoutError"),
            ("proxy, refuse", network.LinkRules(refuse=True), "ConnectionRefusedError"),
            ("proxy, reset", network.LinkRules(reset_after_bytes=100), "ConnectionResetError"),
        ):
            link = network.DegradeLink(proxy, rules)
            tour.visit(name, link, lambda: talk(9000, 2000), felt, "ok")
        tour.seen["proxy, counted"] = {"fired": proxy.affected >= 5}
    with ModelApi() as model:
        model.listen(network.listen_inside(box, 8081))
        ask = (
            "import urllib.request as u;print(u.urlopen(u.Request('http://127.0.0.1:8081/v1/messages',"
            'b\'{"model":"m","messages":[{"role":"user","content":"hi"}]}\')).read().decode())'
        )
        told = box.run([PYTHON, "-IS", "-c", ask], timeout_s=LIMIT_S)
        tour.seen["model API in a box"] = {"fired": "Done." in told.stdout}
    echo.close()


def visit_clients(tour: Tour) -> None:
    """A server that serves one after the other is held up by a client that says nothing."""
    place = f"{tour.root}/tmp"
    for kind in ("unix", "tcp"):
        server = tour.box.spawn([PYTHON, "-IS", "-c", ONE_AT_A_TIME, place, kind])
        sign = f"{place}/open-{kind}"
        tour.shell(f"for i in $(seq 400); do test -e {sign} && break; sleep 0.05; done")
        view = ProcessView(server.pid, server.start, 1, ())
        # The first caller must be kept waiting, however long it waits; the second must be served.
        limits = iter(("0.3", str(LIMIT_S)))

        def call(kind: str = kind, limits: Iterator[str] = limits) -> str:
            argv = [PYTHON, "-IS", "-c", CALLER, place, kind, next(limits)]
            return tour.box.run(argv, timeout_s=2 * LIMIT_S).stdout

        client = SilentClient(tour.box, [view], place)
        tour.visit(f"silent client, {kind}", client, call, "kept waiting", "served")
        tour.box.signal(server.pid, server.start, 9)
        assert tour.box.wait_gone(server.pid, server.start, LIMIT_S)
        nobody = SilentClient(tour.box, [view], place).inject()
        tour.seen[f"silent client, {kind}, nobody listens"] = {"fired": not nobody.succeeded}


def _echo(listener: socket.socket) -> None:
    def serve(line: socket.socket) -> None:
        try:
            while data := line.recv(65536):
                line.sendall(data)
        except OSError:
            pass  # a broken link is what this is about
        line.close()

    while True:
        try:
            line, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=(line,), daemon=True).start()


def visit_resources(tour: Tour) -> None:
    box = tour.box
    victim = box.spawn([PYTHON, "-IS", "-c", VICTIM, f"{tour.root}/tmp/victim"])
    answers = box.directory / "tmp" / "victim.out"
    count = 0

    def answer() -> str:
        nonlocal count
        count += 1
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            lines = answers.read_text().splitlines() if answers.exists() else []
            if len(lines) >= count:
                return lines[count - 1]
            time.sleep(0.005)
        return "no answer"

    def order(text: str) -> str:
        (box.directory / "tmp" / "victim.in").write_text(text)
        return answer()

    assert answer() == "ready"
    who = (box, victim.pid, victim.start)
    for name, fault, text, felt in (
        ("descriptors", resources.LowerLimit(*who, "descriptors"), "open", "Too many open files"),
        ("memory", resources.LowerLimit(*who, "memory", spare=1 << 20), "memory", "MemoryError"),
        ("file size", resources.LowerLimit(*who, "file_size", to=1500), "write", "File too large"),
        ("processes", resources.LimitProcesses(box), "fork", "Resource temporarily unavailable"),
    ):
        tour.visit(name, fault, partial(order, text), felt, "ok")
    busy = box.spawn([PYTHON, "-IS", "-c", "while True: pass"])
    number = host_pid(box, busy.pid, busy.start)
    assert number is not None
    for way in ("cgroup", "signals"):
        starve = resources.StarveCpu(box, 0.1, way=way)
        if starve.why_not() is not None:
            tour.seen[f"processor, {way}"] = {"unavailable": starve.why_not()}
            continue
        with starve:
            took = resources.wait_for_cpu(number, 0.15, LIMIT_S)
            held_up = starve.throttled()
        assert starve.injected is not None
        slow = took is not None and took > 0.3 and held_up > 0
        tour.seen[f"processor, {way}"] = {
            "fired": starve.injected.fired,
            "felt": slow or f"{took} s, held up {held_up} times",
            "healed": resources.wait_for_cpu(number, 0.05, LIMIT_S) is not None,
        }
    box.signal(busy.pid, busy.start, 9)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        create_box(Path(directory) / "boxes" / "box", doubles=False) as box,
    ):
        tour = Tour(box)
        catalogue = {item.fault: item.reason for item in survey(box)}
        visit_disk(tour)
        visit_clock(tour)
        visit_network(tour)
        visit_clients(tour)
        visit_resources(tour)
    print(json.dumps({"seen": tour.seen, "catalogue": catalogue}))


if __name__ == "__main__":
    main()
