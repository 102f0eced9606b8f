"""The fault library in real boxes: fired, felt inside, healed; as root and as a plain user."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from mutiny.box.isolation import why_not
from mutiny.box.startup import create_box
from mutiny.faults.base import FaultUnavailable
from mutiny.faults.catalogue import survey
from mutiny.faults.disk import FillDisk, ReadOnly, SmallDisk
from mutiny.faults.holders import Holder, python_argv
from mutiny.faults.locks import HoldLock
from mutiny.faults.network import Partition, Party

ROOT = Path(__file__).parents[2]
TOUR = Path(__file__).with_name("faults_tour.py")
PAGES = sorted((ROOT / "docs" / "faults").glob("*.md"))
OWN_PAGES = (
    *("clock.md", "network.md", "model-api.md", "resources.md", "disk.md"),
    *("process.md", "files.md"),
)
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
LIMIT_S = 400
MAY_BE_MISSING = {
    "partition": "nft",
    "partition, to": "nft",
    "partition, from": "nft",
    "partition, reject": "nft",
    "loss, all": "nft",
    "slow link": "tc",
}


def need_box() -> None:
    if why_not("bwrap") is not None:
        pytest.skip("needs a box with namespaces of its own")


def tour(prefix: list[str], python: str, directory: Path) -> dict[str, Any]:
    done = subprocess.run(
        [*prefix, python, str(TOUR)],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "TMPDIR": str(directory),
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(seen: dict[str, dict[str, Any]], *, also_missing: tuple[str, ...] = ()) -> None:
    for name, facts in seen.items():
        if "unavailable" in facts:
            tool = MAY_BE_MISSING.get(name)
            lacking = tool is not None and shutil.which(tool) is None
            assert lacking or name in also_missing, (name, facts)
            continue
        assert facts["fired"], (name, facts)
        assert facts.get("felt", True) is True, (name, facts)
        assert facts.get("healed", True) is True, (name, facts)


@pytest.mark.deep
def test_every_fault_fires_is_felt_and_is_healed(tmp_path: Path) -> None:
    need_box()
    found = tour([], sys.executable, tmp_path)
    check(found["seen"], also_missing=("processor, cgroup", "processes"))
    assert len(found["seen"]) >= 25


OPENS_LATE = "import sys, time; time.sleep(0.4); open(sys.argv[1]).close()"


@pytest.mark.parametrize("open_already", [False, True])
def test_a_held_lock_counts_its_time_from_when_somebody_comes_upon_it(
    tmp_path: Path, open_already: bool
) -> None:
    """So that a command that starts late meets it; who has the file open already is not waited for."""
    need_box()
    over = threading.Event()
    with create_box(tmp_path / "box", doubles=False) as box:
        (box.files / "home" / "lock").write_text("")
        inside = f"{box.inside_root}/home/lock"
        if open_already:
            opener = "import sys, time; kept = open(sys.argv[1]); print(flush=True); time.sleep(60)"
            assert Holder(box).take(python_argv(opener, inside)) == ""
        with HoldLock(box, inside, "flock") as held:
            assert held.injected is not None
            assert held.injected.fired
            waiting = threading.Thread(target=held.wait_until_met, args=(over,), daemon=True)
            waiting.start()
            waiting.join(0.2)
            assert waiting.is_alive() is not open_already
            box.run(python_argv(OPENS_LATE, inside), timeout_s=LIMIT_S)
            waiting.join(LIMIT_S)
            assert not waiting.is_alive()


def a_python_for_everybody() -> str | None:
    """An interpreter that a user without privileges can start, and that can read Mutiny."""
    # setpriv may start more than the user itself could, so the interpreter asks for itself.
    test = (
        "import os, sys, mutiny.faults.catalogue\n"
        "sys.exit(sys.version_info < (3, 11) or not os.access(sys.argv[1], os.X_OK))"
    )
    for python in (str(Path(sys.executable).resolve()), "/usr/bin/python3"):
        done = subprocess.run(
            [*NOBODY, python, "-c", test, python],
            env={
                "PYTHONPATH": str(ROOT / "src"),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PATH": os.environ["PATH"],
            },
            capture_output=True,
            check=False,
            timeout=LIMIT_S,
            cwd="/",
        )
        if done.returncode == 0:
            return python
    return None


@pytest.mark.slow
def test_without_root_at_least_four_of_five_faults_work(tmp_path: Path) -> None:
    need_box()
    if os.geteuid() == 0:
        python = a_python_for_everybody()
        if python is None:
            pytest.skip("no interpreter here that another user may start")
        place = Path("/tmp") / f"mutiny-test-{os.getpid()}"
        place.mkdir(mode=0o777)
        place.chmod(0o777)
        try:
            found = tour(NOBODY, python, place)
        finally:
            shutil.rmtree(place)
    else:
        found = tour([], sys.executable, tmp_path)
    check(found["seen"], also_missing=("processor, cgroup",))
    catalogue = found["catalogue"]
    works = [name for name, reason in catalogue.items() if reason is None]
    assert len(works) >= 0.8 * len(catalogue), catalogue


def test_a_box_without_walls_says_what_cannot_be_done_and_nothing_is_touched(
    tmp_path: Path,
) -> None:
    with create_box(tmp_path / "box", technique="subreaper", doubles=False) as box:
        home = f"{box.inside_root}/home"
        before = Path("/proc/self/mountinfo").read_text()
        for fault in (
            FillDisk(SmallDisk(box, home)),
            ReadOnly(box, home),
            Partition(box, Party("api", "127.0.0.1", 80)),
        ):
            with (
                pytest.raises(FaultUnavailable, match=r"namespace of its own|not installed"),
                fault,
            ):
                raise AssertionError("it was let in")
        assert Path("/proc/self/mountinfo").read_text() == before
        reasons = {item.fault: item.reason for item in survey(box)}
        assert "system-call engine" in (reasons["disk: full, bytes"] or "")


def test_a_disk_is_not_put_over_a_directory_in_use(tmp_path: Path) -> None:
    need_box()
    with create_box(tmp_path / "box", doubles=False) as box:
        sleeper = box.spawn(["sleep", "60"], cwd=f"{box.inside_root}/home")
        with pytest.raises(FaultUnavailable, match=f"pid {sleeper.pid} .* before the target"):
            SmallDisk(box, f"{box.inside_root}/home").mount()


def test_a_file_open_for_writing_keeps_the_disk_writable_and_that_is_said(tmp_path: Path) -> None:
    need_box()
    with create_box(tmp_path / "box", doubles=False) as box:
        fault = ReadOnly(box, f"{box.inside_root}/home")
        fault.prepare()
        script = 'exec 3> "$HOME/open"; echo ready; exec sleep 60'
        holder = box.spawn(["sh", "-c", script], output=f"{box.inside_root}/tmp/holder")
        log = box.directory / "tmp" / "holder"
        assert box.wait_ended(holder, 0.2) is None
        assert log.read_text() == "ready\n"
        result = fault.inject()
        assert (result.fired, "open for writing" in result.stderr) == (False, True)


def test_every_family_has_its_page() -> None:
    assert set(OWN_PAGES) <= {page.name for page in PAGES}


@pytest.mark.parametrize("name", OWN_PAGES)
def test_the_examples_of_a_page_run_as_written(name: str, tmp_path: Path) -> None:
    need_box()
    text = (ROOT / "docs" / "faults" / name).read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```\n+(?:```text\n(.*?)```)?", text, re.DOTALL)
    assert examples
    for program, expected in examples:
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if "not available" in done.stderr and shutil.which("nft") is None:
            pytest.skip(done.stderr.strip().splitlines()[-1])
        assert done.returncode == 0, done.stderr
        if expected:
            assert done.stdout == expected
