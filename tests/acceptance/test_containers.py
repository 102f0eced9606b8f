"""longboat's agents in real containers: a private engine, an image without a registry.

Where no engine can be started all of it is skipped, with the reason.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]  # an engine takes a minute to come up
PATIENCE_S = 60.0
IMAGE = "mutiny-agent:local"
AGENT = """\
#!/bin/sh
# Says that it has begun, waits until it may go on, and does its task.
echo begun >> {desk}/record
while [ -e {desk}/hold ]; do sleep 0.05; done
mkdir -p work && echo done > work/$TASK_ID.txt
"""


class Engine:
    """A private dockerd: its own socket, its own data, nothing of the machine's."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.host = f"unix://{place}/d.sock"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers; skip where it cannot run."""
        words = ["--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=vfs"]
        where = ["--data-root", f"{self.place}/data", "--exec-root", f"{self.place}/exec"]
        (self.place / "d.pid").unlink(missing_ok=True)
        self.process = subprocess.Popen(
            ["dockerd", "-H", self.host, *where, "-p", f"{self.place}/d.pid", *words],
            stdout=subprocess.DEVNULL,
            stderr=(self.place / "log").open("ab"),
        )
        until = time.monotonic() + PATIENCE_S
        while self.docker("version", check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > until:
                self.stop()
                last = (self.place / "log").read_text(errors="replace").strip().splitlines()
                pytest.skip(f"no container engine can run here: {last[-1] if last else 'silent'}")
            time.sleep(0.2)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it; its containers may live on."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(30)

    def docker(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """One command of its client."""
        return subprocess.run(
            ["docker", "-H", self.host, *words], capture_output=True, text=True, check=check
        )

    def containers(self) -> list[dict[str, Any]]:
        """All that there are, in full."""
        names = self.docker("ps", "-aq").stdout.split()
        return json.loads(self.docker("inspect", *names).stdout) if names else []


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    for program in ("dockerd", "docker"):
        if shutil.which(program) is None:
            pytest.skip(f"no container engine can run here: {program} is not installed")
    if os.getuid() != 0:
        pytest.skip("no container engine can run here: a private one needs root")
    made = Engine(tmp_path_factory.mktemp("e"))
    made.start()
    image = made.place / "image.tar"
    with tarfile.open(image, "w") as tar:
        for name in ("usr", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
        for name in ("bin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(link)
    made.docker("import", str(image), IMAGE)
    yield made
    for one in made.docker("ps", "-aq", check=False).stdout.split():
        made.docker("rm", "-f", one, check=False)
    made.stop()
    # A daemon that was killed leaves mounts behind: its data, and the network of each container.
    for left in (made.place / "data", *(made.place / "exec" / "netns").glob("*")):
        while subprocess.run(["umount", left], capture_output=True).returncode == 0:
            pass


class Batch:
    """A home with one planned task whose agent runs in a container."""

    def __init__(self, place: Path, engine: Engine) -> None:
        self.engine, self.desk, self.source = engine, place / "desk", place / "source"
        self.desk.mkdir()
        (self.desk / "agent").write_text(AGENT.format(desk=self.desk))
        (self.desk / "agent").chmod(0o755)
        for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "one"]):
            who = ["-c", "user.name=u", "-c", "user.email=u@example.org"]
            subprocess.run(["git", *who, *words], cwd=_made(self.source), check=True)
        seen = f"-v /usr:/usr:ro -v {self.desk}:{self.desk}"
        self.environment = {
            **os.environ,
            "LONGBOAT_BATCH_HOME": str(place / "home"),
            "LONGBOAT_BATCH_AGENT": f"{self.desk}/agent",
            "LONGBOAT_BATCH_CONTAINER_ENGINE": f"docker -H {engine.host}",
            "LONGBOAT_BATCH_CONTAINER_IMAGE": IMAGE,
            "LONGBOAT_BATCH_CONTAINER_MEMORY_MB": "64",
            "LONGBOAT_BATCH_CONTAINER_PIDS": "50",
            "LONGBOAT_BATCH_CONTAINER_OPTIONS": seen,
        }
        plan = place / "plan.json"
        task = {"id": "a", "name": "Task a", "prompt": "Do it", "files": ["work/a.txt"]}
        plan.write_text(json.dumps({"tasks": [task]}))
        self.say("init", "--source", str(self.source), "--set", "main=main")
        self.say("plan", str(plan))

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """A command of longboat."""
        program = Path(sys.executable).with_name("longboat")
        return subprocess.Popen(
            [str(program), "batch", "--json", *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def say(self, *words: str) -> dict[str, Any]:
        """One that must succeed."""
        command = self.begin(*words)
        out, err = command.communicate(timeout=120)
        assert command.returncode == 0, err
        said: dict[str, Any] = json.loads(out)
        return said

    def hold(self) -> None:
        """Agents wait from now on."""
        (self.desk / "hold").touch()

    def release(self) -> None:
        """They may go on."""
        (self.desk / "hold").unlink()

    @property
    def begun(self) -> int:
        """How many agents have begun."""
        record = self.desk / "record"
        return len(record.read_text().split()) if record.exists() else 0

    def run_until_begun(self) -> subprocess.Popen[str]:
        """A run whose agent waits in its container."""
        self.hold()
        command = self.begin("run")
        until = time.monotonic() + PATIENCE_S
        while not self.begun:
            assert command.poll() is None, command.communicate()
            assert time.monotonic() < until, "no agent has begun"
            time.sleep(0.05)
        return command

    @property
    def merged(self) -> str:
        """The files on the branch."""
        words = ["git", "ls-tree", "-r", "--name-only", "main"]
        return subprocess.run(words, cwd=self.source, capture_output=True, text=True).stdout


def _made(place: Path) -> Path:
    place.mkdir(exist_ok=True)
    return place


@pytest.fixture
def batch(tmp_path: Path, engine: Engine) -> Batch:
    return Batch(tmp_path, engine)


def test_a_container_is_as_it_was_wanted(batch: Batch) -> None:
    """Labels and discovery, network none, mounts and ownership, limits; gone when its task is done."""
    command = batch.run_until_begun()
    (shown,) = batch.engine.containers()
    batch.release()
    assert command.wait(120) == 0
    labels, limits = shown["Config"]["Labels"], shown["HostConfig"]
    assert labels["longboat.batch.task"] == "a"
    assert labels["longboat.batch.run"] in shown["Name"]
    assert limits["NetworkMode"] == "none"
    assert (limits["Memory"], limits["PidsLimit"]) == (64 << 20, 50)
    assert any("/workspaces/a-1:" in bind for bind in limits["Binds"])
    assert shown["Config"]["User"] == f"{os.getuid()}:{os.getgid()}"
    assert "work/a.txt" in batch.merged
    assert batch.engine.containers() == []


def test_resume_waits_for_the_container_that_lives(batch: Batch) -> None:
    command = batch.run_until_begun()
    command.kill()
    command.wait()
    (before,) = batch.engine.containers()
    assert before["State"]["Running"]
    batch.release()
    assert batch.say("resume")["status"] == "complete"
    assert batch.begun == 1, "the agent was started again"
    assert batch.engine.containers() == []


@pytest.mark.parametrize("words", [("rm", "-f"), ("stop", "-t", "0")], ids=["removed", "stopped"])
def test_a_container_that_is_taken_away_is_tried_again(
    batch: Batch, words: tuple[str, ...]
) -> None:
    command = batch.run_until_begun()
    (shown,) = batch.engine.containers()
    batch.release()
    batch.hold()
    batch.engine.docker(*words, shown["Id"])
    batch.release()
    out, err = command.communicate(timeout=120)
    assert json.loads(out)["status"] == "complete", err
    assert batch.begun == 2
    assert batch.engine.containers() == []


def test_an_orderly_stop_takes_the_container_along(batch: Batch) -> None:
    command = batch.run_until_begun()
    command.send_signal(signal.SIGTERM)
    command.wait(60)
    assert batch.engine.containers() == []
    batch.release()
    assert batch.say("resume")["status"] == "complete"


def test_an_engine_that_goes_away_and_returns(batch: Batch) -> None:
    """The run pauses and says why; when the engine is back it goes on, and nothing is left."""
    command = batch.run_until_begun()
    batch.engine.stop(signal.SIGKILL)
    _, err = command.communicate(timeout=180)
    assert command.returncode != 0
    assert "the container engine does not answer" in err
    assert batch.merged == ""
    batch.release()
    batch.engine.start()
    assert batch.say("resume")["status"] == "complete"
    assert "work/a.txt" in batch.merged
    assert batch.engine.containers() == []
