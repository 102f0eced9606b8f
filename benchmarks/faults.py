"""Print what the faults cost and how exact they are, on this machine, now.

Insight: every figure has its own limit beside it, and the load generator is a process of its own,
so that a server is not slowed down by the one who measures it more than two processors make it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from mutiny.doubles.model_api.api import ModelApi
from mutiny.doubles.model_api.script import Step, simple_script
from mutiny.faults.clock import PAGE_VARIABLE, ClockPage, build_shim, why_no_shim
from mutiny.faults.network import FaultProxy
from mutiny.system.files import BoxPath

PYTHON = str(Path(sys.executable).resolve())
CONNECTIONS = 32
SECONDS = 3.0
ANSWER = " ".join(f"word{number}" for number in range(16))
"""Sixteen pieces: with their frame, 22 events."""

_READ_CLOCK = """
#include <stdio.h>
#include <time.h>
int main(void) {
    struct timespec begun, now;
    double best = 1e9;
    for (int round = 0; round < 10; round++) {
        clock_gettime(CLOCK_MONOTONIC, &begun);
        for (int i = 0; i < 1000000; i++) clock_gettime(CLOCK_MONOTONIC, &now);
        double ns = ((now.tv_sec - begun.tv_sec) * 1e9 + (now.tv_nsec - begun.tv_nsec)) / 1e6;
        if (ns < best) best = ns;
    }
    printf("%f", best);
    return 0;
}
"""

_DAEMON = """
import sys, time
period, last, seen = float(sys.argv[1]), time.monotonic(), []
for _ in range(int(sys.argv[2])):
    time.sleep(period)
    now = time.monotonic()
    seen.append(now - last)
    last = now
print(*seen)
"""

_LOAD = """
import selectors, socket, sys, time
host, port, stream, count, seconds = sys.argv[1], *map(int, sys.argv[2:5]), float(sys.argv[5])
body = b'{"model":"claude-x","max_tokens":9,"stream":%s,"messages":[{"role":"user","content":"hi"}]}'
body %= b"true" if stream else b"false"
request = b"POST /v1/messages HTTP/1.1\\r\\nhost: x\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(body) + body
end = b"0\\r\\n\\r\\n" if stream else b"}}"
chosen = selectors.DefaultSelector()
began = {}
for _ in range(count):
    line = socket.create_connection((host, port))
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line.sendall(request)
    began[line] = time.perf_counter()
    chosen.register(line, selectors.EVENT_READ, bytearray())
done, latencies, started = 0, [], time.perf_counter()
while (now := time.perf_counter()) - started < seconds:
    for key, _ in chosen.select(1):
        line, buffer = key.fileobj, key.data
        buffer += line.recv(65536)
        if buffer.endswith(end):
            done += 1
            latencies.append(time.perf_counter() - began[line])
            buffer.clear()
            line.sendall(request)
            began[line] = time.perf_counter()
latencies.sort()
print(done / (now - started), latencies[len(latencies) // 2], latencies[int(len(latencies) * 0.99)])
"""


def tell(what: str, value: str, limit: str) -> None:
    print(f"{what:44} {value:34} {limit}", flush=True)


def python(program: str, *arguments: object, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [PYTHON, "-IS", "-c", program, *map(str, arguments)],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


def measure_clock(directory: Path) -> None:
    reason = why_no_shim()
    if reason is not None:
        tell("clock shim", f"not available: {reason}", "")
        return
    page = ClockPage.create(BoxPath(directory, "clock.page"))
    bent = {"LD_PRELOAD": str(build_shim()), PAGE_VARIABLE: str(page.path.host)}
    reader = directory / "reader"
    subprocess.run(["cc", "-O1", "-xc", "-", "-o", reader], input=_READ_CLOCK.encode(), check=True)
    bare, shimmed = _read_cost(reader, {}), _read_cost(reader, bent)
    tell(
        "clock_gettime, bare and under the shim",
        f"{bare:.1f} ns and {shimmed:.1f} ns, x{shimmed / bare:.2f}",
        "",
    )
    page.set(rate=60)
    for period, count in ((60, 10), (10, 20), (5, 20)):
        seen = sorted(map(float, python(_DAEMON, period, count, environment=bent).split()))
        middle = statistics.median(seen)
        tell(
            f"x60, a daemon that polls every {period} s",
            f"p50 {middle:.2f} s ({middle / period - 1:+.1%}), max {seen[-1]:.2f} s",
            "p50 within 5 %",
        )
    page.close()


def _read_cost(reader: Path, environment: dict[str, str]) -> float:
    done = subprocess.run(
        [reader], env={**os.environ, **environment}, capture_output=True, timeout=60, check=True
    )
    return float(done.stdout)


def measure_model_api(directory: Path) -> None:
    with ModelApi(simple_script(Step(text=ANSWER)), log=directory / "log.jsonl") as api:
        assert api.address is not None
        host, port = api.address
        for name, stream, limit in (("JSON", 0, "2000"), ("streamed (22 events)", 1, "500")):
            rounds = [
                [float(x) for x in python(_LOAD, host, port, stream, CONNECTIONS, SECONDS).split()]
                for _ in range(2)
            ]
            rate, middle, high = max(rounds)
            tell(
                f"model API, {name}, {CONNECTIONS} connections",
                f"{rate:.0f}/s, p50 {middle * 1000:.1f}, p99 {high * 1000:.1f} ms",
                f"at least {limit}/s",
            )


def measure_proxy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_echo, args=(server,), daemon=True).start()
        with FaultProxy(server.getsockname()[:2]) as proxy:
            straight = _round_trip(server.getsockname()[:2])
            through = _round_trip(proxy.address)
    tell(
        "TCP proxy, added to a round trip",
        f"{(through - straight) * 1e6:.0f} us ({straight * 1e6:.0f} to {through * 1e6:.0f})",
        "",
    )


def _echo(server: socket.socket) -> None:
    for _ in range(2):
        client, _ = server.accept()
        with client, contextlib.suppress(ConnectionResetError):  # the proxy ends by a reset
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := client.recv(65536):
                client.sendall(data)


def _round_trip(address: tuple[str, int]) -> float:
    with socket.create_connection(address) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = []
        for _ in range(1000):
            started = time.perf_counter()
            line.sendall(b"x")
            line.recv(1)
            times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        measure_clock(Path(directory))
        measure_model_api(Path(directory))
        measure_proxy()


if __name__ == "__main__":
    main()
