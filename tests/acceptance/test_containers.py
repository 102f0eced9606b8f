"""Agents in real containers: an engine of Mutiny's own, an image without a registry, and nothing left.

Where no engine can be started all of it is skipped, with the reason.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from longboat.plants import BATCH_PLANTS
from mutiny.box.box import Box
from mutiny.box.engine import (
    DOCKER,
    IMAGE,
    KINDS,
    Engine,
    EngineUnavailable,
    Kind,
    remove_stale_groups,
    trial,
)
from mutiny.box.startup import create_box
from mutiny.contracts.batch.scenarios import CONTAINERS
from mutiny_command import run_mutiny

pytestmark = pytest.mark.deep

TARGET = ("--target", "longboat-batch")
PLANTS = [name for name, plant in BATCH_PLANTS.items() if plant.scenario in CONTAINERS]


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    with create_box(tmp_path / "boxes" / "box", doubles=False) as made:
        yield made


@pytest.fixture(scope="module")
def any_engine(tmp_path_factory: pytest.TempPathFactory) -> None:
    with create_box(tmp_path_factory.mktemp("b") / "boxes" / "box", doubles=False) as made:
        why = trial(made)
    if why is not None:
        pytest.skip(f"no container engine can run here: {why}")


def left_of(group: str) -> list[str]:
    """What an engine has left on the machine."""
    groups = Path("/sys/fs/cgroup")
    found = [str(one) for one in (*groups.glob(f"*{group}"), *groups.glob(group[1:]))]
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return found + [line for line in mounts if "/run/exec" in line or "/run/data" in line]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_engine_dies_comes_back_and_leaves_nothing(box: Box, kind: Kind) -> None:
    """Its containers outlive it; it ends with its walls, and so does every mount of it."""
    missing = [name for name in kind.programs if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    try:
        engine = Engine(box, kind=kind)
    except EngineUnavailable as error:
        pytest.skip(f"no {kind.name} can run here: {error}")
    try:
        words = ("run", "-d", "--name", "sleeper", "--network", "none", *engine.options, IMAGE)
        assert engine.ask(*words, "sleep", "600").exit_code == 0
        assert left_of(engine.group) != [], "this test sees the groups of a container that lives"
        assert engine.kill()
        away = box.run([*engine.client, "ps"], timeout_s=30)
        assert away.exit_code != 0
        engine.start()
        shown = box.run([*engine.client, "ps", "--format", "{{.Names}}"], timeout_s=30)
        assert shown.stdout.split() == ["sleeper"]
        engine.kill()
    finally:
        engine.close()
    assert left_of(engine.group) == []


KILLED = """\
import sys
from pathlib import Path
from mutiny.box.engine import IMAGE, Engine
from mutiny.box.startup import create_box
engine = Engine(create_box(Path(sys.argv[1]), doubles=False))
words = ("run", "-d", "--network", "none", *engine.options, IMAGE, "sleep", "600")
print(engine.ask(*words).exit_code, engine.group, flush=True)
sys.stdin.read()
"""


@pytest.mark.usefixtures("any_engine")
def test_an_engine_of_a_killed_mutiny_dies_with_it(tmp_path: Path) -> None:
    """Also its containers; their groups are taken away by whoever starts the next engine."""
    words = [sys.executable, "-c", KILLED, str(tmp_path / "boxes" / "box")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        code, group = one.stdout.readline().split()
        assert code == "0"
        one.kill()
    until = time.monotonic() + 30.0
    while left_of(group):
        assert time.monotonic() < until, "somebody in those groups still lives"
        remove_stale_groups()  # the kernel removes no group of the living


def test_a_box_with_other_paths_gets_no_engine(tmp_path: Path) -> None:
    with (
        create_box(tmp_path / "boxes" / "box", technique="subreaper", doubles=False) as weak,
        pytest.raises(EngineUnavailable, match="subreaper"),
    ):
        Engine(weak, kind=DOCKER)


def test_without_an_engine_nothing_is_covered(tmp_path: Path) -> None:
    """Never green: the matrix says what the machine lacks, and the gate fails."""
    bare = tmp_path / "bin"
    bare.mkdir()
    for name in ("bwrap", "git", "sh"):
        (bare / name).symlink_to(shutil.which(name) or name)
    wrapper = (shutil.which("env") or "env", f"PATH={bare}")
    ran = run_mutiny(tmp_path, "accept", "--layer", "container", "--json", wrapper=wrapper)
    assert ran.code == 5, ran.stdout + ran.stderr
    told = json.loads(ran.stdout)
    assert {one["status"] for one in told["goals"]} == {"not covered"}
    assert all("private container engine" in one["skipped"] for one in told["goals"])
    text = (tmp_path / "chaos_runs" / "latest" / "matrix.md").read_text(encoding="utf-8")
    assert "not covered (this machine lacks private container engine" in text


@pytest.mark.usefixtures("any_engine")
def test_a_container_that_is_stopped_is_not_merged_half_done(tmp_path: Path) -> None:
    ran = run_mutiny(tmp_path, "accept", "--goal", "G2.19", "--json")
    assert ran.code == 0, ran.stdout + ran.stderr
    assert [one["status"] for one in json.loads(ran.stdout)["goals"]] == ["green"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("any_engine")
def test_the_parity_suite_is_green(tmp_path: Path) -> None:
    ran = run_mutiny(tmp_path, "accept", "--layer", "container", "--json", limit_s=600)
    assert ran.code == 0, ran.stdout + ran.stderr
    assert {one["status"] for one in json.loads(ran.stdout)["goals"]} == {"green"}


@pytest.mark.slow
@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("name", CONTAINERS)
def test_healthy_longboat_gives_no_alarm(tmp_path: Path, name: str) -> None:
    ran = run_mutiny(tmp_path, "run", *TARGET, "--scenario", name, "--no-minimise")
    assert ran.code == 0, ran.stdout + ran.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("name", PLANTS)
def test_a_plant_is_found_by_its_rule(tmp_path: Path, name: str) -> None:
    plant = BATCH_PLANTS[name]
    ran = run_mutiny(
        tmp_path,
        *("run", *TARGET, "--plant", name, "--scenario", plant.scenario, "--no-minimise"),
    )
    assert ran.code in (1, 4), ran.stdout + ran.stderr
    assert f"Rule: {plant.rule}" in ran.stdout
