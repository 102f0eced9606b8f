"""The clock shim and its page, without a box: every way to wait, jumps, and programs that do not
listen.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mutiny.faults.base import FaultUnavailable
from mutiny.faults.clock import (
    PAGE_VARIABLE,
    ClockPage,
    build_shim,
    why_no_shim,
    why_not_affected,
)
from mutiny.system.files import BoxPath

PYTHON = str(Path(sys.executable).resolve())
WAITS = Path(__file__).parents[1] / "acceptance" / "clock_waits.c"
LIMIT_S = 120

PYTHON_WAITS = """
import asyncio, queue, select, signal, subprocess, sys, threading, time
def none(*_): pass
signal.signal(signal.SIGALRM, none)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})  # one that rings early is not missed
def process():
    try:
        subprocess.run(["sleep", "600"], timeout=6)
    except subprocess.TimeoutExpired:
        pass
def empty():
    try:
        queue.Queue().get(timeout=6)
    except queue.Empty:
        pass
held = threading.Lock()
held.acquire()
timer = lambda: (signal.setitimer(signal.ITIMER_REAL, 6), signal.sigwait({signal.SIGALRM}))
for name, wait in {
    "sleep": lambda: time.sleep(6),
    "event": lambda: threading.Event().wait(6),
    "queue": empty,
    "lock": lambda: held.acquire(timeout=6),
    "select": lambda: select.select([], [], [], 6),
    "epoll": lambda: select.epoll().poll(6),
    "asyncio": lambda: asyncio.run(asyncio.sleep(6)),
    "subprocess": process,
    "setitimer": timer,
}.items():
    begun = time.monotonic()
    wait()
    print(name, time.monotonic() - begun)
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reason = why_no_shim()
    if reason is not None:
        pytest.skip(reason)
    return build_shim()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[ClockPage]:
    made = ClockPage.create(BoxPath(tmp_path, "clock.page"))
    yield made
    made.close()


def under(shim: Path, place: Path, *argv: str, **more: str) -> str:
    done = subprocess.run(
        argv,
        env={**os.environ, "LD_PRELOAD": str(shim), PAGE_VARIABLE: str(place), **more},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    return done.stdout


def taken(output: str) -> dict[str, float]:
    return {name: float(value) for name, value in (line.split() for line in output.splitlines())}


def test_every_wait_of_the_c_library_is_shortened(
    shim: Path, page: ClockPage, tmp_path: Path
) -> None:
    program = tmp_path / "waits"
    subprocess.run(["cc", "-O1", "-o", program, WAITS], check=True, timeout=LIMIT_S)
    page.set(rate=600)  # six seconds are ten milliseconds
    seen = taken(under(shim, page.path.host, str(program)))
    assert len(seen) == 29
    assert {name: value for name, value in seen.items() if value < 5.99} == {}, "woken early"


def test_every_wait_of_python_is_shortened(shim: Path, page: ClockPage) -> None:
    page.set(rate=600)
    seen = taken(under(shim, page.path.host, PYTHON, "-IS", "-c", PYTHON_WAITS))
    assert len(seen) == 9
    assert {name: value for name, value in seen.items() if value < 5.99} == {}


def test_a_polling_daemon_keeps_its_period_at_rate_60(shim: Path, page: ClockPage) -> None:
    page.set(rate=60)
    program = (  # a busy machine wakes late, never early: one that is on time is enough
        "import time\nlast = time.monotonic()\nfor _ in range(200):\n    time.sleep(12)\n"
        "    now = time.monotonic()\n    print(now - last)\n    if now - last < 12.6: break\n    last = now"
    )
    periods = [*map(float, under(shim, page.path.host, PYTHON, "-IS", "-c", program).split())]
    assert min(periods) == pytest.approx(12, rel=0.05)


def test_a_jump_is_seen_by_a_process_that_runs_and_time_never_goes_back(
    shim: Path, page: ClockPage
) -> None:
    program = (
        "import sys, time\nfor _ in sys.stdin:\n"
        "    print(time.time(), time.monotonic(), flush=True)"
    )
    with subprocess.Popen(
        [PYTHON, "-IS", "-c", program],
        env={**os.environ, "LD_PRELOAD": str(shim), PAGE_VARIABLE: str(page.path.host)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def ask() -> tuple[float, float]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            wall, mono = process.stdout.readline().split()
            return float(wall) - time.time(), float(mono)

        assert ask()[0] == pytest.approx(0, abs=0.5)
        page.jump(3600)
        ahead, first = ask()
        assert ahead == pytest.approx(3600, abs=0.5)
        page.jump(-86400)
        behind, second = ask()
        assert behind == pytest.approx(3600 - 86400, abs=0.5)
        assert 0 <= second - first < 10, "the monotonic clock does not jump"
        page.jump(100, monotonic=True)
        assert ask()[1] - second >= 100
        process.stdin and process.stdin.close()


def test_the_monotonic_clock_never_goes_back_when_the_rate_falls(
    shim: Path, page: ClockPage
) -> None:
    program = (
        "import time\nlast = time.monotonic_ns(); worst = 0; print('go', flush=True)\n"
        "end = time.perf_counter_ns() + 10**12\n"
        "while last < end and not worst:\n"
        "    now = time.monotonic_ns()\n    worst = min(worst, now - last)\n    last = now\n"
        "print(worst)"
    )
    page.set(rate=1000)
    with subprocess.Popen(
        [PYTHON, "-IS", "-c", program],
        env={**os.environ, "LD_PRELOAD": str(shim), PAGE_VARIABLE: str(page.path.host)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        for _ in range(20):
            page.set(rate=1)
            page.set(rate=5000)
        assert process.communicate(timeout=LIMIT_S)[0] == "0\n"


def test_each_worker_has_its_own_clock(shim: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    names = ("default", "alpha", "beta")
    clocks = {name: ClockPage.create(BoxPath(pages, f"{name}.page")) for name in names}
    clocks["alpha"].jump(1000)
    clocks["beta"].set(offset_s=-1000)
    (tmp_path / "beta").mkdir()
    real = time.time()
    told = [
        float(under(shim, pages, "date", "+%s")),
        float(under(shim, pages, "date", "+%s", MUTINY_WORKER="alpha")),
        float(under(shim, pages, "sh", "-c", 'cd "$1" && date +%s', "sh", str(tmp_path / "beta"))),
    ]
    assert [round((value - real) / 1000) for value in told] == [0, 1, -1]


def test_a_missing_page_changes_nothing(shim: Path, tmp_path: Path) -> None:
    for place in (tmp_path / "missing", tmp_path):
        assert float(under(shim, place, "date", "+%s")) == pytest.approx(time.time(), abs=5)


def test_the_page_tells_what_it_does_and_refuses_nonsense(page: ClockPage) -> None:
    page.drift(500)
    assert page.rate == pytest.approx(1.0005)
    page.set(rate=1, offset_s=7200)
    assert page.offset_s == pytest.approx(7200)
    page.heal()
    assert (page.rate, page.offset_s) == (1.0, 0.0)
    for wrong in (0, -1, 1e9):
        with pytest.raises(ValueError, match="rate"):
            page.set(rate=wrong)
    with pytest.raises(ValueError, match="never goes back"):
        page.jump(-1, monotonic=True)


def test_without_a_compiler_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FaultUnavailable, match="no C compiler"):
        build_shim(tmp_path)


def test_static_and_go_programs_and_scripts_are_recognised(tmp_path: Path) -> None:
    source = tmp_path / "main.c"
    source.write_text("int main(void) { return 0; }")
    for flags in ((), ("-static",)):
        subprocess.run(["cc", *flags, "-o", tmp_path / f"p{len(flags)}", source], check=True)
    assert why_not_affected(tmp_path / "p0") is None
    assert "static binary" in (why_not_affected(tmp_path / "p1") or "")
    script = tmp_path / "script"
    script.write_text(f"#!{tmp_path / 'p1'}\n")
    assert "static binary" in (why_not_affected(script) or "")
    script.write_text("#!/usr/bin/env sh\n")
    assert why_not_affected(script) is None
    dynamic_go = tmp_path / "go"
    shutil.copyfile(tmp_path / "p0", dynamic_go)
    with dynamic_go.open("ab") as file:
        file.write(b"\xff Go buildinf:")
    assert "Go program" in (why_not_affected(dynamic_go) or "")
