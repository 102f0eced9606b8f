"""Ctrl-C and a cancelling CI, in every mode: soon over, rolled back, told; never passed, never a bug."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from mutiny_command import COMMAND, longboat_spec, run_mutiny
from schemas import validate_run

LIMIT_S = 20.0
"""Within 3 s on a quiet machine; the suite must hold on a busy one."""
START_LIMIT_S = 240.0


def op(kind: str, **args: object) -> dict[str, object]:
    return {"type": kind, "args": args}


BEGIN = [op("Reset"), op("Init"), op("Up"), op("Add", worker="alpha")]
HANG = op("Status")


@dataclass(frozen=True)
class Case:
    """A command line, and what must stand in some journal before the signal comes."""

    words: str
    under_way: str
    sequence: tuple[dict[str, object], ...] = ()
    has_run: bool = True
    """It leaves the directory of the run that was broken off."""


def long(*last: dict[str, object]) -> tuple[dict[str, object], ...]:
    return (*BEGIN, *last)


CASES = {
    "run, sleeping": Case("run --scenario s.json", "Add", long(op("Sleep", seconds=60))),
    "run, in a command": Case("run --target changed.toml --scenario s.json", "Add", long(HANG)),
    "run, in two commands": Case(
        "run --target changed.toml --scenario s.json",
        "Add",
        long(op("Parallel", operations=[HANG, HANG])),
    ),
    "run, in a pause": Case(
        "run --target changed.toml --scenario s.json",
        "Add",
        long(op("PauseProcess", role="daemon", seconds=60, during=HANG)),
    ),
    "run, under a lasting fault": Case(
        "run --scenario s.json",
        "SlowFiles",
        long(op("SlowFiles", delay_ms=5, lasting=True), op("Sleep", seconds=60)),
    ),
    "run, many": Case("run --all-scenarios", "Start"),
    "explore": Case("explore --seed 5 --seeds 40 --jobs 2 --ops 60", "Start"),
    "explore, one": Case("explore --seed 5 --ops 200", "Start"),
    "replay": Case("replay s.json --times 50", "Add", long(op("Sleep", seconds=3))),
    "sweep": Case("sweep crash --scenario basic_lifecycle --at Accept", "Doctor", has_run=False),
    "sweep, errno": Case(
        "sweep errno --scenario basic_lifecycle --at Add", "FailAt", has_run=False
    ),
    "sweep, preempt": Case(
        "sweep preempt --scenario basic_lifecycle --at Start", "Interleave", has_run=False
    ),
    "race": Case("race --rounds 500", "Interleave", has_run=False),
    "race, rounds": Case("race --target longboat-broker --rounds 5000", "Parallel"),
    "load": Case("load --target longboat-board --shape cycles --cycles 5000", "Configure"),
    "experiment": Case("experiment run e.yaml", "WaitForPrompt"),
    "minimise": Case(
        "minimise s.json --rule workers.no_crash --plant doctor-lies", "Add", long(HANG), False
    ),
}

EXPERIMENT = """
experiment:
  name: "Stopped in the middle"
  hypothesis: "The rollback runs all the same"
  target: longboat
  seed: 1
  blast_radius: "server"
  steady_state:
    - "At most one daemon"
  method:
    - behave: {worker: alpha, turns: ["slow:800", "obey"]}
    - start: {worker: alpha, prompt: "Create a file named a.txt with content 'hello'"}
    - wait_for_prompt: alpha
    - wait: 60s
    - kill_agent: alpha
  rollback:
    - "Reset any stuck tasks to AVAILABLE"
"""


def journals(directory: Path) -> str:
    """All that was written down so far, wherever the runs are."""
    text = ""
    for folder, _, names in os.walk(
        directory / "chaos_runs"
    ):  # passes over what is just thrown away
        if "operations.jsonl" in names:
            with contextlib.suppress(OSError):
                text += Path(folder, "operations.jsonl").read_text()
    return text


def start(directory: Path, case: Case, *, ignoring: bool = False) -> subprocess.Popen[str]:
    """Start the command and wait until it is under way."""
    longboat_spec(directory, ('["{program}", "status", "--json"]', '["sleep", "60"]'))
    (directory / "s.json").write_text(json.dumps(case.sequence))
    (directory / "e.yaml").write_text(EXPERIMENT)
    wrapper = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"] if ignoring else []
    process = subprocess.Popen(
        [*wrapper, COMMAND, *case.words.split()],
        cwd=directory,
        stdout=(directory / "out").open("w"),
        stderr=(directory / "err").open("w"),
        text=True,
        start_new_session=True,
        env={**os.environ, "NO_COLOR": "1"},
        # Under nohup the suite's own children would rightly ignore a terminal that closes.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    deadline = time.monotonic() + START_LIMIT_S
    while f'"type": "{case.under_way}"' not in journals(directory):
        assert process.poll() is None, (directory / "err").read_text()
        assert time.monotonic() < deadline, "it never came so far"
        time.sleep(0.02)
    return process


def stop(process: subprocess.Popen[str], number: int) -> float:
    """Ask again and again, as impatient people do; returns the seconds until it was gone."""
    began = time.monotonic()
    while process.poll() is None:
        process.send_signal(number)
        assert time.monotonic() - began < LIMIT_S
        time.sleep(0.1)
    return time.monotonic() - began


SLOW = {
    *("run, in two commands", "run, under a lasting fault", "run, many", "explore, one"),
    *("sweep, errno", "sweep, preempt", "race", "run, in a pause", "replay", "race, rounds"),
}
"""Siblings of another case."""


QUICK = {"run, sleeping", "explore", "sweep"}
"""One command, many runs, many points."""


def tier(name: str) -> pytest.MarkDecorator | tuple[()]:
    """When this case is tried."""
    if name in SLOW:
        return pytest.mark.slow
    return () if name in QUICK else pytest.mark.deep


@pytest.mark.parametrize("name", [pytest.param(one, marks=tier(one)) for one in CASES])
def test_every_mode_ends_soon_and_tells_what_it_has(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    number = signal.SIGTERM if len(name) % 2 else signal.SIGINT
    seconds = stop_and_check(tmp_path, case, number)
    print(f"{name}: {seconds:.1f} s")


def stop_and_check(directory: Path, case: Case, number: int, *, ignoring: bool = False) -> float:
    process = start(directory, case, ignoring=ignoring)
    seconds = stop(process, number)
    errors, output = (directory / "err").read_text(), (directory / "out").read_text()
    assert process.returncode == 128 + number, output + errors
    assert errors.splitlines()[-1].startswith(f"interrupted by {signal.Signals(number).name}")
    assert "Traceback" not in errors + output
    assert "Error Detected" not in output
    runs = sorted((directory / "chaos_runs").glob("run_*"))
    if case.has_run:
        check_run(runs[-1])
    assert not list((directory / "chaos_runs").rglob("trials/*"))
    return seconds


def check_run(run: Path) -> None:
    """The run that was broken off has everything that a finished one has, and it did not pass."""
    validate_run(run)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["verdict"] == "inconclusive"
    assert summary["exit_code"] == 3
    assert "interrupted by SIG" in (run / "error_report.md").read_text()
    steps = [json.loads(line) for line in (run / "operations.jsonl").read_text().splitlines()]
    broken = [step for step in steps if step["inconclusive"]]
    assert broken[0]["inconclusive"][0].startswith("interrupted by SIG")
    assert all(step["classification"] in ("success", "expected") for step in steps[:-1]) or (
        steps[-1]["operation"]["type"] == "Undo"
    )


def test_a_parent_that_ignores_ctrl_c_does_not_take_it_away(tmp_path: Path) -> None:
    """A job in the background, and some CI runners."""
    stop_and_check(tmp_path, CASES["run, sleeping"], signal.SIGINT, ignoring=True)


def test_a_closed_terminal_is_one_way_more_to_stop(tmp_path: Path) -> None:
    stop_and_check(tmp_path, CASES["run, sleeping"], signal.SIGHUP)


# --- a program that cannot start ------------------------------------------------------------------


def own_longboat(directory: Path, *, packaged: bool) -> Path:
    """longboat in a tree that no box sees by itself, with its modules beside the program's directory."""
    import longboat

    app = directory / "app"
    shutil.copytree(Path(longboat.__file__).parent, app / "lib" / "longboat")
    program = app / "bin" / "longboat"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable} -IS\nimport sys\nsys.path.insert(0, {str(app / 'lib')!r})\n"
        "from longboat.cli import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    if packaged:
        (app / "package.json").write_text("{}")
    return program


def test_a_program_without_its_libraries_is_not_accused(tmp_path: Path) -> None:
    program = own_longboat(tmp_path, packaged=False)
    ran = run_mutiny(tmp_path, "run", "--scenario", "basic_lifecycle", "--bin", str(program))
    assert ran.code == 3, ran.stdout + ran.stderr
    assert "could not be started in the box" in ran.stdout
    assert "No module named 'longboat'" in ran.stdout


@pytest.mark.slow
def test_the_tree_of_a_program_is_found_or_named(tmp_path: Path) -> None:
    program = own_longboat(tmp_path, packaged=True)
    line = ("run", "--scenario", "basic_lifecycle", "--bin", str(program))
    ran = run_mutiny(tmp_path, *line)
    assert ran.code == 0, ran.stdout + ran.stderr
    (tmp_path / "app" / "package.json").unlink()
    named = f'format = 1\nmounts = ["{tmp_path}/app"]'
    spec = longboat_spec(tmp_path, ("format = 1", named))
    assert run_mutiny(tmp_path, *line, "--target", str(spec)).code == 0
