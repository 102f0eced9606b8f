"""The box keeps its promises: real namespaces, real tmux, real kills."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mutiny.box.box import Box
from mutiny.box.errors import BoxDied, CommandNotStarted, TechniqueUnavailable
from mutiny.box.isolation import TECHNIQUES, own_cgroup, why_not
from mutiny.box.results import Command, ProcessInfo
from mutiny.box.startup import begin, create_box
from mutiny.system import procfs
from mutiny.system.processes import all_pids

PAYLOAD = Path(__file__).with_name("box_payload.py")
PYTHON = str(Path(sys.executable).resolve())
NAMES = [technique.name for technique in TECHNIQUES]
WITH_PID_NAMESPACE = ("bwrap", "unshare")


def need(technique: str) -> None:
    reason = why_not(technique)
    if reason is not None:
        pytest.skip(f"the technique {technique} is not available here: {reason}")


def make(directory: Path, technique: str, **options: Any) -> Box:
    need(technique)
    return create_box(directory, technique=technique, doubles=False, **options)


@pytest.fixture(params=NAMES)
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Box]:
    with make(tmp_path / "box", request.param) as made:
        yield made


@pytest.fixture
def strong_box(tmp_path: Path) -> Iterator[Box]:
    with make(tmp_path / "box", "bwrap") as made:
        yield made


def everybody_dead(directory: Path) -> bool:
    """Whether nobody holds the lock that each process of the payload holds while it lives."""
    with open(directory / "tmp" / "alive.lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def start_payload(box: Box) -> None:
    (box.directory / "tmp" / "payload.py").write_text(PAYLOAD.read_text())
    done = box.run([PYTHON, "-IS", f"{box.inside_root}/tmp/payload.py", "all"], timeout_s=30)
    assert (done.exit_code, done.stdout) == (0, "ready\n"), done
    assert not everybody_dead(box.directory)


def wait_until(check: Callable[[], bool], timeout_s: float = 10.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


# --- killing ------------------------------------------------------------------------------------


def test_kill_leaves_no_survivor(box: Box) -> None:
    start_payload(box)
    box.kill()
    assert everybody_dead(box.directory)
    assert procfs.tagged_with(box.box_id) == []
    assert not box.alive
    box.kill()
    with pytest.raises(BoxDied, match="was killed"):
        box.run(["true"], timeout_s=20)


MUTINY_TO_BE_KILLED = """
import signal, sys
from pathlib import Path
from mutiny.box.startup import create_box
box = create_box(Path(sys.argv[1]), technique=sys.argv[2], doubles=False)
(box.directory / "tmp" / "payload.py").write_text(Path(sys.argv[3]).read_text())
done = box.run([sys.argv[4], "-IS", box.inside_root + "/tmp/payload.py", "all"], timeout_s=30)
print(done.stdout.strip(), box.box_id, box.inside_root, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("technique", NAMES)
def test_box_dies_when_mutiny_is_killed(technique: str, tmp_path: Path) -> None:
    need(technique)
    directory = tmp_path / "box"
    arguments = [str(directory), technique, str(PAYLOAD), PYTHON]
    mutiny = subprocess.Popen(
        [sys.executable, "-c", MUTINY_TO_BE_KILLED, *arguments], stdout=subprocess.PIPE, text=True
    )
    assert mutiny.stdout is not None
    with mutiny, mutiny.stdout:
        try:
            word, box_id, inside_root = mutiny.stdout.readline().split()
            assert word == "ready"
            assert not everybody_dead(directory)
        finally:
            mutiny.kill()
    try:
        assert wait_until(lambda: everybody_dead(directory)), "something outlived Mutiny"
        assert wait_until(lambda: procfs.tagged_with(box_id) == [])
    finally:
        if technique != "bwrap":  # what a killed Mutiny cannot take away itself
            Path(inside_root).unlink(missing_ok=True)
        if technique == "cgroup":
            parent = own_cgroup()
            assert parent is not None
            (parent / f"mutiny-{box_id}").rmdir()


def test_a_box_made_in_a_thread_outlives_the_thread(tmp_path: Path) -> None:
    """The kernel ties "die with the parent" to the thread that started the process."""
    need("bwrap")
    made: list[Box] = []
    thread = threading.Thread(target=lambda: made.append(make(tmp_path / "box", "bwrap")))
    thread.start()
    thread.join()
    with made[0] as box:
        assert box.run(["echo", "still here"], timeout_s=20).stdout == "still here\n"


@pytest.mark.parametrize("technique", WITH_PID_NAMESPACE)
def test_the_target_cannot_kill_the_agent(technique: str, tmp_path: Path) -> None:
    with make(tmp_path / "box", technique) as box:
        box.run(["sh", "-c", "kill -KILL 1; kill -STOP 1; kill -KILL -1"], timeout_s=20)
        assert box.run(["echo", "alive"], timeout_s=20).stdout == "alive\n"


def test_sudden_death_is_told_to_everybody_who_waits(box: Box) -> None:
    spawned = box.spawn(["sleep", "60"])
    told: list[str] = []

    def wait_for_a_long_command() -> None:
        with pytest.raises(BoxDied) as raised:
            box.run(["sleep", "60"], timeout_s=60)
        told.append(str(raised.value))

    thread = threading.Thread(target=wait_for_a_long_command)
    thread.start()
    assert wait_until(lambda: sum(p.name == "sleep" for p in box.processes()) == 2)
    assert box.agent_host_pid is not None
    os.kill(box.agent_host_pid, signal.SIGKILL)
    with pytest.raises(BoxDied, match="ended before"):
        box.wait_ended(spawned, 10)
    thread.join(10)
    assert len(told) == 1
    assert "ended unexpectedly" in told[0]
    assert not box.alive
    box.kill()
    assert procfs.tagged_with(box.box_id) == []


def test_a_box_that_cannot_start_says_why(tmp_path: Path) -> None:
    need("bwrap")
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "tmp").write_text("a file where a directory is needed")
    with pytest.raises(OSError, match="tmp"):
        make(tmp_path / "box", "bwrap")


def test_walls_that_do_not_stand_are_replaced_by_weaker_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bubblewrap is not tried out first; when its start fails, the next technique takes its place."""
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "bwrap"
    fake.write_text("#!/bin/sh\necho no walls today >&2; exit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    why_not.cache_clear()
    try:
        rising = begin(tmp_path / "box")
        with rising.stand() as box:
            assert box.technique != "bwrap"
            profile = (tmp_path / "box" / "home" / ".profile").read_text()
            assert f"{box.inside_root}/bin" in profile
            assert box.run(["true"], timeout_s=10).exit_code == 0
        with pytest.raises(TechniqueUnavailable, match="no walls today"):
            create_box(tmp_path / "other", technique="bwrap")
    finally:
        why_not.cache_clear()


def test_an_agent_that_cannot_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("bwrap")
    monkeypatch.setattr("mutiny.box.box._BOOT", "raise SystemExit('no agent today')")
    with pytest.raises(BoxDied, match=r"did not start.*exit code 1.*no agent today"):
        make(tmp_path / "box", "bwrap")


@pytest.mark.parametrize("technique", NAMES)
def test_an_agent_that_never_says_hello_is_killed(
    technique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = f"silent-{os.getpid()}-{technique}"
    monkeypatch.setattr("mutiny.box.box._BOOT", f"import time; time.sleep(600)  # {marker}")
    monkeypatch.setattr("mutiny.box.box.START_LIMIT_S", 0.2)
    with pytest.raises(BoxDied, match="did not say hello"):
        make(tmp_path / "box", technique)
    for pid in all_pids():
        with contextlib.suppress(OSError):  # ended while we looked
            assert marker not in Path(f"/proc/{pid}/cmdline").read_text(errors="replace")


# --- walls --------------------------------------------------------------------------------------

LOOK_FOR_HOLES = r"""
import os
for line in open("/proc/self/mounts"):
    _, place, _, options, *_ = line.split()
    if "rw" in options.split(","):
        print("mount", place)
for place in ("/", "/etc", "/usr", "/var", "/home", "/root", "/sys", "/opt", "/sys/fs/cgroup"):
    if os.access(place, os.W_OK):
        print("writable", place)
for top in os.listdir("/proc"):
    if top.isdigit() or os.path.islink("/proc/" + top):
        continue
    for place, _, files in os.walk("/proc/" + top):
        for name in files:
            if os.access(os.path.join(place, name), os.W_OK):
                print("writable", os.path.join(place, name))
    if os.path.isfile("/proc/" + top) and os.access("/proc/" + top, os.W_OK):
        print("writable", "/proc/" + top)
"""


def test_nothing_outside_is_writable(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("untouched")
    with make(tmp_path / "box", "bwrap", read_only=[outside]) as box:
        found = box.run([PYTHON, "-IS", "-c", LOOK_FOR_HOLES], timeout_s=30)
        assert (found.exit_code, found.stderr) == (0, "")
        lines = found.stdout.splitlines()
        mounts = [line.split()[1] for line in lines if line.startswith("mount")]
        own = re.compile(r"/proc|/dev(/.*)?|/run|/tmp|/var/tmp|/box")
        assert [place for place in mounts if not own.fullmatch(place)] == []
        assert [line for line in lines if line.startswith("writable")] == []
        tried = box.run(["sh", "-c", f"cat {outside}/file; echo x > {outside}/file"], timeout_s=20)
        assert tried.stdout == "untouched"
        assert "Read-only" in tried.stderr
    assert (outside / "file").read_text() == "untouched"


def test_hidden_places_are_empty_and_needed_ones_are_there(tmp_path: Path) -> None:
    neighbour = tmp_path / "neighbour" / "secret"
    neighbour.parent.mkdir()
    neighbour.write_text("not for you")
    hidden = Path(__file__).resolve().parent
    with make(tmp_path / "box", "bwrap", hidden=[hidden]) as box:
        seen = box.run(
            ["sh", "-c", f"ls -A {tmp_path} {hidden}; cat {neighbour}; ls -A /run"], timeout_s=20
        )
        assert "not for you" not in seen.stdout
        assert "neighbour" not in seen.stdout
        assert Path(__file__).name not in seen.stdout
        assert box.run([PYTHON, "-IS", "-c", "print(1)"], timeout_s=20).stdout == "1\n"


def test_environment_and_files_of_the_box(box: Box) -> None:
    root = box.inside_root
    shown = box.run(["env"], timeout_s=20).stdout.splitlines()
    environment = dict(line.split("=", 1) for line in shown)
    assert environment["HOME"] == f"{root}/home"
    assert environment["TMPDIR"] == environment["TMUX_TMPDIR"] == f"{root}/tmp"
    assert environment["PATH"].split(":")[0] == f"{root}/bin"
    assert environment["MUTINY_BOX"] == box.box_id
    assert "TMUX" not in environment
    assert "PYTEST_CURRENT_TEST" not in environment
    login = box.run(["bash", "-lc", "echo $PATH; pwd"], timeout_s=20).stdout.split()
    assert login[0].split(":")[0] == f"{root}/bin"
    log = box.run(["git", "log", "--format=%an %D %s"], timeout_s=20)
    assert log.stdout == "Mutiny HEAD -> master First commit\n"
    assert box.run(["git", "status", "--porcelain"], timeout_s=20).stdout == ""
    assert (box.directory / "source" / ".gitignore").read_text() == ".claude/\n.serena/\n"


def test_first_commit_is_the_same_in_every_box(tmp_path: Path) -> None:
    hashes = set()
    for number in range(2):
        with make(tmp_path / str(number) / "box", "bwrap") as box:
            hashes.add(box.run(["git", "rev-parse", "HEAD"], timeout_s=20).stdout)
    assert len(hashes) == 1


def test_a_box_continues_from_files_that_are_there(tmp_path: Path) -> None:
    with make(tmp_path / "box", "bwrap") as first:
        first.run(["git", "commit", "--allow-empty", "-qm", "second"], timeout_s=20)
        first.run(["sh", "-c", "echo mine > $HOME/.gitconfig.local"], timeout_s=20)
    with make(tmp_path / "box", "bwrap") as again:
        counted = again.run(["git", "rev-list", "--count", "HEAD"], timeout_s=20)
        assert counted.stdout == "2\n"
        assert (again.directory / "home" / ".gitconfig.local").read_text() == "mine\n"


def test_paths_are_translated_both_ways(box: Box) -> None:
    (box.directory / "tmp" / "here").write_text("x")
    inside = box.inside(box.directory / "tmp" / "here")
    assert box.run(["cat", inside], timeout_s=20).stdout == "x"
    assert box.outside(inside).host == box.directory / "tmp" / "here"
    if box.technique == "bwrap":
        assert inside == "/box/tmp/here"
        assert box.outside("/tmp/here").host == box.directory / "tmp" / "here"
        assert box.run(["cat", "/tmp/here"], timeout_s=20).stdout == "x"
    for path in ("/etc/passwd", "/boxes", f"{box.inside_root}/../etc"):
        with pytest.raises(ValueError, match="not a path of the box"):
            box.outside(path)
    with pytest.raises(ValueError, match="is not in the box"):
        box.inside(box.directory.parent)


def test_short_path_goes_away_with_the_box(tmp_path: Path) -> None:
    with make(tmp_path / "box", "subreaper") as box:
        link = Path(box.inside_root)
        assert link.resolve() == box.directory
        assert len(box.inside_root) < 40
    assert not os.path.lexists(link)


# --- side by side -------------------------------------------------------------------------------

OCCUPY = """
import os, socket, sys, time
line = socket.create_server(("127.0.0.1", 8080))
open(os.environ["TMPDIR"] + "/listening", "w").write(sys.argv[1])
time.sleep(600)
"""


def test_twenty_boxes_do_not_see_each_other(tmp_path: Path) -> None:
    need("bwrap")
    with contextlib.ExitStack() as stack:
        with ThreadPoolExecutor(4) as pool:
            boxes = list(pool.map(lambda n: make(tmp_path / f"{n}" / "box", "bwrap"), range(20)))
        for box in boxes:
            stack.enter_context(box)
        for number, box in enumerate(boxes):
            box.spawn([PYTHON, "-IS", "-c", OCCUPY, str(number)])
            box.run(["tmux", "new-session", "-d", "-s", "same", "sleep 600"], timeout_s=20)
        for number, box in enumerate(boxes):
            listening = box.directory / "tmp" / "listening"
            assert wait_until(listening.exists), "the port of another box was in the way"
            assert box.run(["cat", "/tmp/listening"], timeout_s=20).stdout == str(number)
            sessions = box.run(["tmux", "list-sessions", "-F", "#S"], timeout_s=20)
            assert sessions.stdout == "same\n"
            own = sorted(process.argv[0] for process in box.processes())
            assert own == [PYTHON, "sleep", "tmux"]
            neighbours = box.run(["ls", str(tmp_path)], timeout_s=20)
            assert neighbours.exit_code != 0
        boxes[0].kill()
        assert boxes[1].run(["tmux", "has-session", "-t", "same"], timeout_s=20).exit_code == 0
        assert all(box.alive for box in boxes[1:])


def test_network_of_its_own_has_loopback_and_nothing_else(tmp_path: Path) -> None:
    for technique in WITH_PID_NAMESPACE:
        with make(tmp_path / technique / "box", technique) as box:
            devices = box.run(["cat", "/proc/net/dev"], timeout_s=20).stdout
            assert re.findall(r"^\s*(\w+):", devices, re.M) == ["lo"]
            routes = box.run(["cat", "/proc/net/fib_trie"], timeout_s=20).stdout
            assert "127.0.0.1" in routes
            assert box.facts()["network"] == "none"


def test_host_network_on_request(tmp_path: Path) -> None:
    with make(tmp_path / "box", "bwrap", network="host") as box:
        inside = box.run(["readlink", "/proc/self/ns/net"], timeout_s=20).stdout.strip()
        assert inside == str(Path("/proc/self/ns/net").readlink())
        assert box.facts()["network"] == "host"


# --- commands -----------------------------------------------------------------------------------


def test_exit_codes_outputs_and_input(box: Box) -> None:
    done = box.run(
        ["sh", "-c", "cat; echo err >&2; echo $WORD; pwd; exit 7"],
        stdin=b"typed\n",
        env={"WORD": "given"},
        cwd=f"{box.inside_root}/home",
        timeout_s=20,
    )
    assert done.exit_code == 7
    assert done.signal is None
    assert done.stdout == f"typed\ngiven\n{box.inside_root}/home\n"
    assert done.stderr == "err\n"
    assert not done.timed_out
    assert not done.truncated
    assert done.pid > 1
    assert done.start > 0
    killed = box.run(["sh", "-c", "kill -KILL $$"], timeout_s=20)
    assert (killed.exit_code, killed.signal) == (None, signal.SIGKILL)


def test_default_signals_reach_the_command(strong_box: Box) -> None:
    """Python ignores SIGPIPE and the agent ignores more: a command must not inherit that."""
    piped = strong_box.run(["bash", "-c", "yes | head -n 1; echo ${PIPESTATUS[0]}"], timeout_s=20)
    assert piped.stdout == "y\n141\n"
    masks = strong_box.run(["grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"], timeout_s=20)
    # Signals 32 and 33 belong to the C library, whose posix_spawn leaves them ignored.
    numbers = [int(line.split()[1], 16) for line in masks.stdout.splitlines()]
    assert [number & ~0x1_8000_0000 for number in numbers] == [0, 0]


def test_large_input_and_output(strong_box: Box) -> None:
    data = os.urandom(3_000_000)
    summed = strong_box.run(["sha256sum"], stdin=data, timeout_s=20)
    assert summed.stdout.split()[0] == hashlib.sha256(data).hexdigest()
    unread = strong_box.run(["true"], stdin=data, timeout_s=20)
    assert unread.exit_code == 0
    text = strong_box.run(["sh", "-c", "yes 0123456 | head -c 3000000"], timeout_s=20)
    assert len(text.stdout) == 3_000_000
    assert not text.truncated
    much = strong_box.run(["sh", "-c", "yes | head -c 6000000; echo end >&2"], timeout_s=20)
    assert much.exit_code == 0
    assert len(much.stdout) == 4 * 1024 * 1024
    assert much.truncated
    assert much.stderr == "end\n"


def test_output_that_is_not_text(strong_box: Box) -> None:
    done = strong_box.run(["printf", r"caf\303\251 \377\n"], timeout_s=20)
    assert done.stdout == "café \\xff\n"


def test_time_out_kills_the_group(box: Box) -> None:
    done = box.run(["sh", "-c", "echo before; sleep 61 & sleep 62"], timeout_s=0.2)
    assert done.timed_out
    assert done.signal == signal.SIGKILL
    assert done.stdout == "before\n"
    assert 0.2 <= done.duration_s < 5
    assert wait_until(lambda: not sleepers(box))


def sleepers(box: Box) -> list[ProcessInfo]:
    return [process for process in box.processes() if process.name == "sleep"]


def test_a_daemon_that_keeps_the_pipe_does_not_hang_the_command(box: Box) -> None:
    wait = "until [ -e $TMPDIR/go ]; do sleep 0.01; done"
    script = f"({wait}; echo late; exec sleep 60) & echo started"
    done = box.run(["sh", "-c", script], timeout_s=20)
    assert (done.exit_code, done.stdout, done.timed_out) == (0, "started\n", False)
    assert done.duration_s < 10
    # It now writes into a pipe that nobody waits for, and must not die of it.
    (box.directory / "tmp" / "go").touch()
    assert wait_until(lambda: any(p.argv == ("sleep", "60") for p in box.processes()))


def test_a_program_that_is_not_there(box: Box) -> None:
    with pytest.raises(CommandNotStarted, match=r"'no-such-program'.*no such program on PATH"):
        box.run(["no-such-program"], timeout_s=20)
    with pytest.raises(CommandNotStarted, match="No such file"):
        box.run(["/no/such/program"], timeout_s=20)
    with pytest.raises(CommandNotStarted, match="/no/such/place"):
        box.run(["true"], cwd="/no/such/place", timeout_s=20)
    with pytest.raises(CommandNotStarted, match="Permission denied"):
        box.run([f"{box.inside_root}/source/README.md"], timeout_s=20)
    assert box.run(["true"], timeout_s=20).exit_code == 0


def test_commands_at_the_same_time(box: Box) -> None:
    """Three commands that wait for each other end only if they run together."""
    script = "touch $TMPDIR/$0; until [ -e $TMPDIR/1 -a -e $TMPDIR/2 -a -e $TMPDIR/3 ]; do :; done"
    results = box.run_many(
        [Command(["sh", "-c", f"{script}; echo $0", str(n)], timeout_s=20) for n in (1, 2, 3)]
    )
    assert [result.stdout for result in results] == ["1\n", "2\n", "3\n"]
    assert box.run_many([]) == []


def test_many_threads_share_one_box(strong_box: Box) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = pool.map(lambda n: strong_box.run(["echo", str(n)], timeout_s=20), range(60))
        assert [result.stdout for result in results] == [f"{n}\n" for n in range(60)]


# --- processes ----------------------------------------------------------------------------------


def test_background_processes_are_followed(box: Box) -> None:
    spawned = box.spawn(["sh", "-c", "echo out; echo err >&2; sleep 0.1; exit 3"])
    ending = box.wait_ended(spawned, 10)
    assert ending is not None
    assert (ending.exit_code, ending.signal) == (3, None)
    assert box.outside(spawned.output).read_text() == "out\nerr\n"
    lasting = box.spawn(["sleep", "60"], output=f"{box.inside_root}/tmp/log")
    assert box.wait_ended(lasting, 0.01) is None
    with pytest.raises(CommandNotStarted):
        box.spawn(["no-such-program"])


def test_signals_reach_exactly_the_process_that_is_meant(box: Box) -> None:
    spawned = box.spawn(["sleep", "60"])
    wrong = box.signal(spawned.pid, spawned.start + 1, signal.SIGKILL)
    assert not wrong.delivered
    assert wrong.reason == "another process has this pid now"
    assert not box.wait_gone(spawned.pid, spawned.start, 0.01)
    assert box.signal(spawned.pid, spawned.start, signal.SIGTERM).delivered
    assert box.wait_gone(spawned.pid, spawned.start, 10)
    ending = box.wait_ended(spawned, 10)
    assert ending is not None
    assert ending.signal == signal.SIGTERM
    late = box.signal(spawned.pid, spawned.start, signal.SIGKILL)
    assert (late.delivered, late.reason) == (False, "no such process")
    assert box.wait_gone(spawned.pid, spawned.start, 0)


def test_a_stopped_process_is_seen_and_continues(box: Box) -> None:
    spawned = box.spawn(["sleep", "60"])
    assert box.signal(spawned.pid, spawned.start, signal.SIGSTOP).delivered
    assert wait_until(lambda: [p.state for p in sleepers(box)] == ["T"])
    assert box.signal(spawned.pid, spawned.start, signal.SIGCONT).delivered
    assert wait_until(lambda: [p.state for p in sleepers(box)] == ["S"])


def test_processes_show_daemons_and_panes(box: Box) -> None:
    start_payload(box)
    found = box.processes()
    names = [process.name for process in found]
    assert "tmux: server" in names
    pane = next(process for process in found if process.argv[-2:] == ("hold", "pane"))
    assert pane.has_terminal
    assert pane.start > 0
    server = next(process for process in found if process.name == "tmux: server")
    assert pane.parent_pid == server.pid
    assert not server.has_terminal
    assert box.agent_host_pid not in [process.pid for process in found]


def test_facts_name_the_technique(box: Box) -> None:
    facts = box.facts()
    assert facts["technique"] == box.technique
    assert facts["inside"] == box.inside_root
    assert facts["outside_writable"] == (box.technique != "bwrap")
    assert box.ping() < 5
