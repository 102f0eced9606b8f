"""Print what the system-call engine costs: a trapped call, an untrapped one, states, points, schedules.

Insight: on a busy machine a mean says more about the neighbours than about the engine, so that each
single call is timed by the program that makes it and the median is shown beside the best tenth.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutiny.syscalls.policies import BeforeEach, CrashAt, Record
from mutiny.syscalls.schedules import Interleaver, Outcome
from mutiny.syscalls.snapshots import Snapshots, State
from mutiny.syscalls.starters import OnHost, Starter
from mutiny.syscalls.supervisor import Supervisor

CALLS = 4000
LIMIT_S = 120.0

TIMED_CALLS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}
static int compare(const void *a, const void *b) {
  double x = *(double *)a, y = *(double *)b;
  return x < y ? -1 : x > y;
}
#define TIME(CALL)                                                   \
  for (int i = 0; i < n; i++) { double t = now(); CALL; times[i] = now() - t; } \
  qsort(times, n, sizeof(double), compare);                          \
  printf("%.3f %.3f\n", times[n / 2], times[n / 10]);
int main(int count, char **words) {
  int n = atoi(words[2]);
  double *times = malloc(n * sizeof(double));
  char from[4096], to[4096];
  snprintf(from, sizeof from, "%s/from", words[1]);
  snprintf(to, sizeof to, "%s/to", words[1]);
  int file = open(from, O_CREAT | O_WRONLY, 0644);
  TIME(write(file, "x", 1))
  TIME(if (i & 1) rename(to, from); else rename(from, to))
  TIME(syscall(SYS_getppid))
  return 0;
}
"""

ADD_ONE = """
import json, os, sys
path = sys.argv[1]
state = json.load(open(path))
state["n"] += 1
with open(f"{path}.{os.getpid()}", "w") as file:
    json.dump(state, file)
os.replace(f"{path}.{os.getpid()}", path)
"""


def trapped_calls(place: Path) -> None:
    if shutil.which("cc") is None:
        print("trapped call        not measured: there is no cc")
        return
    (place / "timed.c").write_text(TIMED_CALLS)
    program = str(place / "timed")
    subprocess.run(["cc", "-O2", "-w", "-o", program, place / "timed.c"], check=True)
    state = place / "calls"
    state.mkdir()
    argv = [program, str(state), str(CALLS)]
    bare = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    outputs = {"bare": bare}
    for name, root in (("below a root", state), ("elsewhere", place / "nothing")):
        with Supervisor(Record(), roots=[root]) as supervisor:
            done = supervisor.run(argv, timeout_s=LIMIT_S)
            assert done is not None
            outputs[name] = done.stdout
    rows = {name: [line.split() for line in text.splitlines()] for name, text in outputs.items()}
    for place_of_row, call in enumerate(("write", "rename")):
        for name in ("bare", "below a root", "elsewhere"):
            median, best = rows[name][place_of_row]
            print(f"{call:8} {name:14} p50 {float(median):7.1f} us   p10 {float(best):7.1f} us")
    ratio = float(rows["below a root"][2][0]) / float(rows["bare"][2][0])
    print(f"untrapped call      {ratio:.2f} times its cost without a filter")


def repository(place: Path) -> Path:
    script = (
        "git init -q . && git config user.email m@box.invalid && git config user.name m"
        " && echo 1 > a && git add . && git commit -qm 1 && echo 2 > a && echo 3 > b && git add ."
    )
    place.mkdir()
    subprocess.run(["sh", "-c", script], cwd=place, check=True, capture_output=True)
    return place


def head(repository: Path) -> str:
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True, check=False
    )
    return found.stdout.strip()


def crash_states(place: Path) -> None:
    template = repository(place / "template")
    live = Path(shutil.copytree(template, place / "live", symlinks=True))
    commit = ["git", "commit", "-qm", "2"]
    snapshots = Snapshots(live, place / "store")
    spent = 0.0

    def capture(call: object) -> None:
        nonlocal spent
        started = time.perf_counter()
        snapshots.capture(call)  # type: ignore[arg-type]
        spent += time.perf_counter() - started

    started = time.perf_counter()
    with Supervisor(BeforeEach(capture), roots=[live]) as supervisor:
        supervisor.run(commit, cwd=live, timeout_s=LIMIT_S)
    elapsed = time.perf_counter() - started
    count = len(snapshots.states)
    print(f"git commit          {count} states in one pass, {count / elapsed:.0f} a second", end="")
    print(f" (copying alone: {count / spent:.0f} a second)")
    commits = {head(template), head(live)}

    def judge(numbered: tuple[int, State]) -> bool:
        """Is the repository whole, with the old commit or the new one?"""
        number, state = numbered
        there = state.materialise(place / f"state{number}")
        fsck = subprocess.run(
            ["git", "fsck", "--connectivity-only"], cwd=there, capture_output=True, check=False
        )
        return fsck.returncode == 0 and head(there) in commits

    started = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        sound = sum(pool.map(judge, enumerate(snapshots.states)))
    rate = count / (time.perf_counter() - started)
    print(
        f"judged              {rate:.0f} states a second (git fsck, HEAD); {sound} of {count} sound"
    )
    points = 12
    spent = 0.0
    for index in range(0, count, max(1, count // points)):
        copy = Path(shutil.copytree(template, place / f"point{index}", symlinks=True))
        started = time.perf_counter()
        with Supervisor(CrashAt(index), roots=[copy]) as supervisor:
            supervisor.run(commit, cwd=copy, timeout_s=LIMIT_S)
        spent += time.perf_counter() - started
    done = len(range(0, count, max(1, count // points)))
    print(f"crash points        {done / spent:.0f} a second in separate runs")


def schedules(place: Path) -> None:
    state = place / "race"

    def prepare() -> Starter:
        shutil.rmtree(state, ignore_errors=True)
        state.mkdir()
        (state / "n.json").write_text('{"n": 0}')
        return OnHost()

    def judge(outcome: Outcome) -> str | None:
        number = json.loads((state / "n.json").read_text())["n"]
        return None if number == 2 else "lost update"

    argv = [str(Path(sys.executable).resolve()), "-IS", "-c", ADD_ONE, str(state / "n.json")]
    state.mkdir()
    race = Interleaver([argv, argv], roots=[state], prepare=prepare, judge=judge)
    started = time.perf_counter()
    found = race.explore(stop_at_first=False)
    elapsed = time.perf_counter() - started
    first = found.problems[0].number if found.problems else None
    print(f"schedules           {found.schedules} with up to 2 preemptions,", end=" ")
    print(f"{found.schedules / elapsed:.1f} a second; first lost update at schedule {first}")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="mutiny-benchmark-") as directory:
        trapped_calls(Path(directory))
        crash_states(Path(directory))
        schedules(Path(directory))


if __name__ == "__main__":
    main()
