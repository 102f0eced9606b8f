"""`mutiny campaign` with real runs: results, JUnit, pages; and kill -9 of client, worker and scheduler."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mutiny.system.processes import all_pids, environment_of
from mutiny_command import COMMAND, run_mutiny
from schemas import problems

pytestmark = pytest.mark.deep

QUICK = ("--target", "longboat-board", "--scenario", "cycles", "--scenario", "ready_tasks")
MARK = "MUTINY_TEST_MARK"
LIMIT_S = 400.0


def journal(place: Path) -> list[dict[str, Any]]:
    found = []
    for path in place.glob("chaos_runs/campaigns/run_*/journal.jsonl"):
        for text in path.read_text().splitlines():
            try:
                found.append(json.loads(text))
            except ValueError:  # the last line of one who was killed
                continue
    return found


def require_honest(place: Path, runs: int) -> None:
    """Nothing lost in silence, nothing counted twice."""
    told = journal(place)
    started = [line["id"] for line in told if line["event"] == "started"]
    over = [line["id"] for line in told if line["event"] in ("finished", "lost")]
    finished = [line["key"] for line in told if line["event"] == "finished"]
    assert len(set(started)) == len(started)
    assert sorted(over) == sorted(started)
    assert len(finished) == len(set(finished)) == runs
    assert all(line["verdict"] == "success" for line in told if line["event"] == "finished")


@contextmanager
def started(place: Path, *argv: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, MARK: str(place), "PATH": _path()}
    with (place / "log.txt").open("ab") as log:
        process = subprocess.Popen(argv, cwd=place, stdout=log, stderr=log, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _path() -> str:
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def wait_for(what: Any, told: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < deadline, told
        time.sleep(0.02)


def marked(place: Path) -> list[int]:
    own = str(place)
    return [pid for pid in all_pids() if (environment_of(pid) or {}).get(MARK) == own]


def count(place: Path, event: str) -> int:
    return sum(line["event"] == event for line in journal(place))


@pytest.mark.slow
def test_a_matrix_gives_causes_junit_and_a_page(tmp_path: Path) -> None:
    plants = ("--plant", "", "--plant", "cycle-accepted")
    words = ("campaign", *QUICK[:4], *plants, "--junit", "campaign.xml", "--json")
    ran = run_mutiny(tmp_path, *words)
    document = json.loads(ran.stdout)
    assert problems("output", document) == []
    assert (ran.code, document["verdict"], document["finished"]) == (1, "bug", 2)
    (cause,) = document["causes"]
    assert (cause["rule"], cause["count"]) == ("board.cycles_refused", 1)
    assert Path(cause["replay"]).is_file()
    assert "board.cycles_refused" in Path(document["page"]).read_text()
    xml = (tmp_path / "campaign.xml").read_text()
    assert 'tests="2" failures="1" skipped="0"' in xml
    again = run_mutiny(tmp_path, "campaign", "--resume", "chaos_runs/campaigns/latest", "--json")
    assert json.loads(again.stdout)["finished"] == 2
    assert count(tmp_path, "started") == 2, "nothing is run again"


def test_a_killed_client_takes_its_runs_along_and_is_resumed(tmp_path: Path) -> None:
    words = (COMMAND, "campaign", *QUICK, "--seeds", "2", "--ops", "3", "--slots", "2")
    with started(tmp_path, *words) as client:
        wait_for(lambda: count(tmp_path, "finished"), "a run finishes")
        client.kill()
        client.wait()
        wait_for(lambda: not marked(tmp_path), "its commands end with it")
    ran = run_mutiny(tmp_path, "campaign", "--resume", "chaos_runs/campaigns/latest")
    assert ran.code == 0, ran.stdout + ran.stderr
    assert count(tmp_path, "leg") == 2
    require_honest(tmp_path, 4)


def test_a_campaign_that_is_asked_to_stop_says_how_to_go_on(tmp_path: Path) -> None:
    with started(tmp_path, COMMAND, "campaign", *QUICK, "--slots", "1") as client:
        wait_for(lambda: count(tmp_path, "started"), "a run starts")
        client.send_signal(signal.SIGTERM)
        assert client.wait(LIMIT_S) == 143
    assert "--resume" in (tmp_path / "log.txt").read_text()
    told = journal(tmp_path)
    assert [line["event"] for line in told].count("lost") == 1


# --- dask -------------------------------------------------------------------------------------------

MOMENTS = tuple(range(7))
RUNS = 8


@contextmanager
def cluster(place: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers as programs of their own; the scheduler first."""
    file = place / "scheduler.json"
    file.unlink(missing_ok=True)
    run = (sys.executable, "-m", "distributed.cli.dask_scheduler")
    work = (sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file))
    os.environ["DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"] = "0"
    options = (
        "--scheduler-file",
        str(file),
        "--port",
        "0",
        "--no-dashboard",
        "--host",
        "127.0.0.1",
    )
    with started(place, *run, *options) as scheduler:
        wait_for(lambda: file.exists() and file.read_text().endswith("}"), "a scheduler stands")
        address = json.loads(file.read_text())["address"]
        alone = ("--nthreads", "2", "--no-nanny", "--no-dashboard", "--local-directory", str(place))
        with started(place, *work, *alone) as one, started(place, *work, *alone) as two:
            yield address, [scheduler, one, two]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("victim", ["worker", "scheduler", "client"])
def test_kill_dash_nine_in_the_middle(victim: str, moment: int, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    words = ("--target", "longboat-board", "--seeds", str(RUNS), "--ops", "3")
    resume = ("campaign", "--resume", "chaos_runs/campaigns/latest")
    with cluster(tmp_path) as (address, (scheduler, one, _)):
        command = (COMMAND, "campaign", *words, "--scheduler", address)
        with started(tmp_path, *command) as client:
            wait_for(lambda: count(tmp_path, "finished") >= moment, f"{moment} runs finish")
            if moment == 0:
                wait_for(lambda: count(tmp_path, "started"), "a run starts")
            {"worker": one, "scheduler": scheduler, "client": client}[victim].kill()
            code = client.wait(LIMIT_S)
        if victim == "worker":
            assert code == 0, (tmp_path / "log.txt").read_text()
        elif victim == "client":
            ran = run_mutiny(tmp_path, *resume, "--scheduler", address)
            assert ran.code == 0, ran.stdout + ran.stderr
    if victim == "scheduler" and code != 0:  # it may have been over already
        assert code == 3, (tmp_path / "log.txt").read_text()
        ran = run_mutiny(tmp_path, *resume)
        assert ran.code == 0, ran.stdout + ran.stderr
    require_honest(tmp_path, RUNS)


@pytest.mark.slow
def test_what_a_worker_elsewhere_leaves_comes_home(tmp_path: Path) -> None:
    """A worker that cannot see the campaign's directory packs what its run left."""
    distributed = pytest.importorskip("distributed")
    from mutiny.modes.crew import Delivered
    from mutiny.modes.dask_crew import DaskCrew

    home = tmp_path / "campaign" / "runs"
    home.mkdir(parents=True)
    client = distributed.Client(processes=False, n_workers=1, dashboard_address=None)
    crew = DaskCrew(client, tmp_path, home, None)
    crew._mark = "another"
    words = (
        "run",
        "--target",
        "longboat-board",
        "--scenario",
        "cycles",
        "--plant",
        "cycle-accepted",
    )
    crew.start("00000.1", (*words, "--no-minimise"))
    delivered = None
    while delivered is None:
        delivered = crew.next(1.0)
    crew.close()
    assert isinstance(delivered, Delivered)
    assert delivered.answer.document is not None
    (run,) = delivered.answer.document["runs"]
    assert run["directory"].startswith(str(home / "00000.1"))
    assert (Path(run["directory"]) / "minimal_replay.json").is_file()
