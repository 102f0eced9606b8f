"""The system-call engine on real processes: crash points, errors, torn writes, power loss, races."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import syscalls_payload as payload
from mutiny.box.errors import CommandNotStarted
from mutiny.box.isolation import TECHNIQUES, why_not
from mutiny.box.startup import create_box
from mutiny.syscalls.calls import Call, Counted, difference
from mutiny.syscalls.durability import Durability
from mutiny.syscalls.filter import Wanted
from mutiny.syscalls.policies import (
    BeforeEach,
    CrashAt,
    DelayBelow,
    FailAt,
    FailBelow,
    KillProcessAt,
    Policy,
    Record,
    Selection,
    TearBelow,
    TearMode,
)
from mutiny.syscalls.schedules import Interleaver, Outcome
from mutiny.syscalls.snapshots import Snapshots
from mutiny.syscalls.starters import InBox, OnHost, Starter
from mutiny.syscalls.supervisor import Supervisor
from syscalls_helpers import need_box, wait_for

PYTHON = str(Path(sys.executable).resolve())
SOURCE = Path(__file__).resolve().parents[2] / "src"
LIMIT_S = 120.0


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def python(text: str, *arguments: object) -> list[str]:
    return [PYTHON, "-IS", "-c", text, *map(str, arguments)]


def verdict(directory: Path) -> str:
    """What a reader of the state file would find."""
    try:
        return f"n={json.loads((directory / 'state.json').read_text())['n']}"
    except FileNotFoundError:
        return "absent"
    except ValueError:
        return "corrupt"


def old_state(directory: Path) -> Path:
    directory.mkdir(parents=True)
    (directory / "state.json").write_text('{"n": 0}')
    return directory


def record(argv: Sequence[str], directory: Path, policy: Policy | None = None) -> tuple[Call, ...]:
    with Supervisor(policy or Record(), roots=[directory]) as supervisor:
        supervisor.run(argv, timeout_s=LIMIT_S)
        return supervisor.calls


def sweep(text: str, tmp_path: Path) -> tuple[list[str], list[str]]:
    """The verdicts of all crash points of a payload: by one run for each, and by one pass."""
    live = old_state(tmp_path / "live")
    snapshots = Snapshots(live, tmp_path / "store")
    calls = record(python(text, live), live, BeforeEach(snapshots.capture))
    states = [*snapshots.states, snapshots.finish()]
    assert len(states) == len(calls) + 1
    one_pass = [
        verdict(state.materialise(tmp_path / f"state{number}"))
        for number, state in enumerate(states)
    ]
    separate = []
    for index in range(len(calls)):
        place = old_state(tmp_path / f"run{index}")
        with Supervisor(CrashAt(index), roots=[place]) as supervisor:
            assert supervisor.run(python(text, place), timeout_s=LIMIT_S) is None
            assert [call.index for call in supervisor.fired] == [index]
            assert difference(supervisor.calls, calls[: index + 1]) is None
        separate.append(verdict(place))
    return separate, one_pass


# --- files that are only read ---------------------------------------------------------------------

READS_TWO = """
import sys
for name in ("one", "two"):
    try:
        print(open(sys.argv[1] + "/" + name).read())
    except OSError as error:
        print(error.strerror)
open(sys.argv[1] + "/three", "w").write("3")
"""


@pytest.mark.parametrize(
    ("counted", "names"),
    [
        (Counted.CHANGES, ["three", "three"]),
        (Counted.READS, ["one", "two"]),
        (Counted.BOTH, ["one", "two", "three", "three"]),
    ],
)
def test_what_reads_and_what_changes_is_counted_apart(
    tmp_path: Path, counted: Counted, names: list[str]
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    with Supervisor(roots=[tmp_path], counted=counted) as supervisor:
        supervisor.run(python(READS_TWO, tmp_path), timeout_s=LIMIT_S)
        assert [call.paths[0] for call in supervisor.calls] == names
        assert [call.reads for call in supervisor.calls] == [name != "three" for name in names]


def test_one_file_cannot_be_read(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    with Supervisor(FailAt(1, "EIO"), roots=[tmp_path], counted=Counted.READS) as supervisor:
        ran = supervisor.run(python(READS_TWO, tmp_path), timeout_s=LIMIT_S)
        assert [call.paths for call in supervisor.fired] == [("two",)]
    assert ran is not None
    assert ran.stdout.split("\n")[:2] == ["one", "Input/output error"]
    assert (tmp_path / "three").read_text() == "3"


# --- crash points ---------------------------------------------------------------------------------


def test_an_atomic_writer_survives_every_crash_point(tmp_path: Path) -> None:
    separate, one_pass = sweep(payload.ATOMIC, tmp_path)
    assert one_pass[:-1] == separate
    assert set(one_pass) == {"n=0", "n=1"}
    assert 6 <= len(separate) <= 10


def test_a_writer_in_place_is_caught(tmp_path: Path) -> None:
    separate, one_pass = sweep(payload.IN_PLACE, tmp_path)
    assert one_pass[:-1] == separate
    assert Counter(one_pass)["corrupt"] >= 2
    assert (one_pass[0], one_pass[-1]) == ("n=0", "n=1")


GIT_ENVIRONMENT = {
    "HOME": "/nonexistent",
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "m" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "m@box.invalid" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_DATE": "2025-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
}
COMMIT = ["git", "commit", "--quiet", "--message", "second"]


def git(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *words], cwd=directory, env=GIT_ENVIRONMENT, capture_output=True, text=True
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    need("git")
    place = tmp_path / "template"
    place.mkdir()
    git(place, "init", "--quiet", "--initial-branch=master")
    shutil.rmtree(place / ".git" / "hooks")
    (place / "a").write_text("1")
    git(place, "add", ".")
    git(place, "commit", "--quiet", "--message", "first")
    (place / "b").write_text("2")
    git(place, "add", ".")
    return place


def git_verdict(place: Path) -> str:
    locks = sorted(path.name for path in (place / ".git").rglob("*.lock"))
    commits = git(place, "rev-list", "--count", "HEAD").stdout.strip()
    sound = git(place, "fsck", "--connectivity-only").returncode
    return f"commits={commits} fsck={sound} locks={locks}"


@pytest.mark.slow
def test_git_commit_in_one_pass_and_in_separate_runs(tmp_path: Path, repository: Path) -> None:
    def commit(place: Path, policy: Policy) -> tuple[Call, ...]:
        with Supervisor(policy, roots=[place]) as supervisor:
            supervisor.run(COMMIT, cwd=place, env=GIT_ENVIRONMENT, timeout_s=LIMIT_S)
            return supervisor.calls

    def copy(name: str) -> Path:
        return Path(shutil.copytree(repository, tmp_path / name))

    first, live = commit(copy("first"), Record()), copy("live")
    snapshots = Snapshots(live, tmp_path / "store")
    second = commit(live, BeforeEach(snapshots.capture))
    assert difference(first, second) is None
    assert 25 <= len(first) <= 45
    assert {call.process for call in first} >= {"git commit#1"}
    one_pass = [
        git_verdict(state.materialise(tmp_path / f"state{number}"))
        for number, state in enumerate(snapshots.states)
    ]
    separate = []
    for index in range(len(first)):
        place = copy(f"run{index}")
        assert difference(commit(place, CrashAt(index)), first[: index + 1]) is None
        separate.append(git_verdict(place))
    assert Counter(one_pass) == Counter(separate)
    assert all("fsck=0" in each for each in one_pass)
    assert any("index.lock" in each for each in one_pass)


def test_only_the_one_process_is_killed(tmp_path: Path) -> None:
    child = "echo x > $0/first; true"
    script = f"sh -c '{child}' {tmp_path}; echo $? > {tmp_path}/second"
    with Supervisor(KillProcessAt(0), roots=[tmp_path]) as supervisor:
        done = supervisor.run(["sh", "-c", script], timeout_s=LIMIT_S)
        assert done is not None
        assert done.exit_code == 0
        assert [call.result for call in supervisor.fired] == ["killed: the process"]
    assert not (tmp_path / "first").exists()
    assert (tmp_path / "second").read_text() == "137\n"


# --- errors, torn writes, slow files --------------------------------------------------------------


def test_an_error_at_each_point_is_told_and_harmless(tmp_path: Path) -> None:
    place = old_state(tmp_path / "count")
    points = len(record(python(payload.ATOMIC, place), place))
    for index in range(points):
        error = ("ENOSPC", "EIO", "EACCES", "EROFS", "EMFILE")[index % 5]
        place = old_state(tmp_path / f"run{index}")
        with Supervisor(FailAt(index, error), roots=[place]) as supervisor:
            done = supervisor.run(python(payload.ATOMIC, place), timeout_s=LIMIT_S)
            assert [call.result for call in supervisor.fired] == [f"failed: {error}"]
        assert done is not None
        assert (done.exit_code, "Error: [Errno" in done.stderr) == (1, True), done
        assert verdict(place) in ("n=0", "n=1")


def test_an_interrupted_write_is_tried_again(tmp_path: Path) -> None:
    place = old_state(tmp_path / "state")
    policy = FailBelow(Selection(str(place), frozenset({"write"})), "EINTR", count=1)
    with Supervisor(policy, roots=[place]) as supervisor:
        done = supervisor.run(python(payload.ATOMIC, place), timeout_s=LIMIT_S)
        assert len(supervisor.fired) == 1
    assert done is not None
    assert (done.exit_code, verdict(place)) == (0, "n=1")


def test_a_full_subtree_leaves_the_rest_alone(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    script = f"mkdir {tmp_path}/full/x; mkdir {tmp_path}/free"
    policy = FailBelow(Selection(str(tmp_path / "full")), "ENOSPC")
    with Supervisor(policy, roots=[tmp_path]) as supervisor:
        done = supervisor.run(["sh", "-c", script], timeout_s=LIMIT_S)
    assert done is not None
    assert "No space left" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["free", "full"]


@pytest.mark.parametrize(
    ("mode", "expected"), [("kill", "corrupt"), ("short", "n=1"), ("lie", "corrupt")]
)
def test_torn_writes(tmp_path: Path, mode: TearMode, expected: str) -> None:
    place = old_state(tmp_path / "state")
    policy = TearBelow(Selection(str(place)), mode)
    with Supervisor(policy, roots=[place]) as supervisor:
        done = supervisor.run(python(payload.ONE_WRITE, place), timeout_s=LIMIT_S)
        assert len(supervisor.fired) == 1
        assert supervisor.fired[0].result.startswith("torn: 200")
    assert (done is None) == (mode == "kill")
    assert verdict(place) == expected


def test_one_path_is_slow_and_the_others_are_not(tmp_path: Path) -> None:
    policy = DelayBelow(Selection(str(tmp_path / "slow"), frozenset({"write"})), 0.02)
    with Supervisor(policy, roots=[tmp_path]) as supervisor:
        done = supervisor.run(python(payload.SLOW, tmp_path), timeout_s=LIMIT_S)
        assert len(supervisor.fired) == 5
    assert done is not None
    slow_s, _ = map(float, done.stdout.split())
    assert slow_s >= 0.1


# --- power loss -----------------------------------------------------------------------------------


def power_loss(tmp_path: Path, text: str, *words: str, strict: bool = False) -> list[str]:
    live = old_state(tmp_path / "live")
    model = Durability(live, tmp_path / "store", strict=strict)
    record(python(text, live, *words), live, BeforeEach(model.follow))
    states = [*model.states, model.finish()]
    places = [state.materialise(tmp_path / f"lost{i}") for i, state in enumerate(states)]
    assert not (places[-1] / "log.jsonl").exists() or not (places[-1] / "log.jsonl").read_text()
    return [verdict(place) for place in places]


def test_a_synced_file_survives_the_loss_of_power(tmp_path: Path) -> None:
    found = power_loss(tmp_path, payload.ATOMIC)
    assert (found[0], found[-1]) == ("n=0", "n=1")
    assert "corrupt" not in found


def test_a_rename_without_a_sync_loses_the_content(tmp_path: Path) -> None:
    assert power_loss(tmp_path, payload.ATOMIC, "nosync")[-1] == "corrupt"


def test_a_rename_without_a_sync_of_anything_may_be_lost(tmp_path: Path) -> None:
    live = old_state(tmp_path / "live")
    model = Durability(live, tmp_path / "store")
    record(python(payload.ATOMIC, live), live, BeforeEach(model.follow))
    behind = model.finish_behind()
    assert behind is not None
    assert verdict(behind.materialise(tmp_path / "lost")) == "n=0"


def test_strictly_a_rename_needs_a_sync_of_its_directory(tmp_path: Path) -> None:
    assert set(power_loss(tmp_path, payload.ATOMIC, strict=True)) == {"n=0"}


# --- races ----------------------------------------------------------------------------------------


def adding(tmp_path: Path, argv: Sequence[str], bound: int = 2) -> Interleaver:
    state = tmp_path / "state"

    def prepare() -> Starter:
        shutil.rmtree(state, ignore_errors=True)
        old_state(state)
        return OnHost()

    def judge(outcome: Outcome) -> str | None:
        assert [end.exit_code for end in outcome.ends] == [0, 0], outcome.ends
        found = verdict(state)
        return None if found == "n=2" else f"lost update: {found}"

    state.mkdir()
    commands = [argv, argv]
    return Interleaver(
        commands, roots=[state], prepare=prepare, judge=judge, preemption_bound=bound
    )


@pytest.mark.deep
def test_a_lost_update_is_found_and_replays_ten_times(tmp_path: Path) -> None:
    race = adding(tmp_path, python(payload.ADD_ONE, tmp_path / "state" / "state.json"))
    found = race.explore(limit=5)
    assert len(found.problems) == 1
    assert found.problems[0].text == "lost update: n=1"
    schedule = found.problems[0].outcome.schedule
    assert found.problems[0].outcome.preemptions == 1
    replays = [race.replay(schedule) for _ in range(10)]
    assert [text for _, text in replays] == ["lost update: n=1"] * 10
    assert {outcome.schedule for outcome, _ in replays} == {schedule}


@pytest.mark.slow
def test_with_a_lock_no_schedule_loses_anything(tmp_path: Path) -> None:
    target = str(tmp_path / "state" / "state.json")
    if shutil.which("cc") is None:
        argv = python(payload.ADD_ONE, target, "flock")
    else:
        argv = [compiled(tmp_path, payload.C_ADD_ONE), target, "flock"]
    found = adding(tmp_path, argv).explore(stop_at_first=False)
    assert (found.complete, found.problems, found.diverged) == (True, (), 0)
    assert found.schedules > 10


def test_posix_locks_are_recognised_too(tmp_path: Path) -> None:
    argv = python(payload.ADD_ONE, tmp_path / "state" / "state.json", "lockf")
    found = adding(tmp_path, argv, bound=1).explore(stop_at_first=False)
    assert (found.complete, found.problems, found.diverged) == (True, (), 0)


@pytest.mark.deep
def test_a_deadlock_is_found(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    race = Interleaver(
        [python(payload.TWO_LOCKS, one, other), python(payload.TWO_LOCKS, other, one)],
        roots=[tmp_path],
        prepare=OnHost,
        judge=lambda outcome: None,
    )
    found = race.explore(limit=10)
    assert [problem.text for problem in found.problems] == [
        "deadlock: commands 0, 1 wait for locks for ever"
    ]
    outcome, text = race.replay(found.problems[0].outcome.schedule)
    assert (outcome.ending, text) == ("deadlock", found.problems[0].text)


def test_two_trees_in_a_box_race_for_the_lock_of_git(tmp_path: Path) -> None:
    need_box()
    with create_box(tmp_path / "box", doubles=False) as box:
        source = box.directory / "source"

        def prepare() -> Starter:
            return InBox(box)

        def judge(outcome: Outcome) -> str | None:
            ends = sorted(end.exit_code or 0 for end in outcome.ends)
            return None if ends == [0, 0] else f"exit codes {ends}"

        commands = [
            ["sh", "-c", f"git commit --quiet --allow-empty --message {name}"] for name in "ab"
        ]
        race = Interleaver(commands, roots=[source], prepare=prepare, judge=judge)
        found = race.explore(limit=10)
        assert [problem.text for problem in found.problems] == ["exit codes [0, 128]"]


# --- every kind of program ------------------------------------------------------------------------


def compiled(tmp_path: Path, text: str, *options: str) -> str:
    need("cc")
    source = tmp_path / "program.c"
    source.write_text(text)
    program = tmp_path / f"program{'-'.join(options)}"
    done = subprocess.run(
        ["cc", "-w", *options, "-o", program, source], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"cc {' '.join(options)} cannot link here: {done.stderr.splitlines()[-1]}")
    return str(program)


def node_program(tmp_path: Path) -> list[str]:
    need("node")
    (tmp_path / "program.js").write_text(payload.NODE_ATOMIC)
    return ["node", str(tmp_path / "program.js")]


PROGRAMS: dict[str, Callable[[Path], list[str]]] = {
    "python": lambda path: python(
        payload.ATOMIC.replace('f"{directory}/state.json.{os.getpid()}"', '"state.new"')
    ),
    "node": node_program,
    "c-dynamic": lambda path: [compiled(path, payload.C_ATOMIC)],
    "c-static": lambda path: [compiled(path, payload.C_ATOMIC, "-static")],
}


@pytest.mark.parametrize("language", PROGRAMS)
def test_programs_of_any_language(tmp_path: Path, language: str) -> None:
    argv = PROGRAMS[language](tmp_path)
    seen: list[Call] = []
    for name in ("record", "crash"):
        place = old_state(tmp_path / name)
        index = next((call.index for call in seen if call.name.startswith("rename")), -1)
        with Supervisor(CrashAt(index), roots=[place]) as supervisor:
            done = supervisor.run([*argv, str(place)], cwd=place, timeout_s=LIMIT_S)
            calls = supervisor.calls
        if not seen:
            assert done is not None
            assert (done.exit_code, verdict(place)) == (0, "n=1"), done
            seen = list(calls)
            assert "state.new" in {call.paths[0] for call in calls if call.name == "write"}
        else:
            assert (done, verdict(place)) == (None, "n=0")
            assert difference(calls, seen[: index + 1]) is None


def test_a_crash_before_the_start_has_returned_still_ends_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fast program reaches its crash point while the thread that started it has not gone on yet."""
    place = old_state(tmp_path / "place")

    class LateToReturn(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            assert wait_for(lambda: supervisor.world_dead)

    with Supervisor(CrashAt(0), roots=[place]) as supervisor:
        monkeypatch.setattr("mutiny.syscalls.supervisor.subprocess.Popen", LateToReturn)
        done = supervisor.run(python(payload.ATOMIC, place), cwd=place, timeout_s=LIMIT_S)
        assert done is None
        again = supervisor.run(["true"], timeout_s=LIMIT_S)
        assert again is None, "nothing begins in a world that has ended"
    assert verdict(place) == "n=0"


def test_ways_around_the_engine_are_closed_or_told(tmp_path: Path) -> None:
    with Supervisor(Record(), roots=[tmp_path]) as supervisor:
        done = supervisor.run(python(payload.BLIND, tmp_path), timeout_s=LIMIT_S)
        assert done is not None
        assert done.stdout == "38\n"  # ENOSYS: there is no io_uring
        assert supervisor.blind_spots == (str(tmp_path / "mapped"),)


def test_links_into_the_directory_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "target").touch()
    (tmp_path / "real" / "inner").symlink_to(tmp_path / "real" / "target")
    with Supervisor(Record(), roots=[tmp_path / "link"]) as supervisor:
        script = f"mkdir {tmp_path}/link/../link/x; : > {tmp_path}/link/inner; mkdir ../y"
        supervisor.run(["sh", "-c", script], cwd=tmp_path / "real", timeout_s=LIMIT_S)
        assert [(call.name, call.paths) for call in supervisor.calls] == [
            ("mkdir", ("x",)),
            ("openat", ("target",)),
        ]


def test_a_program_that_cannot_start_is_not_an_exit_code(tmp_path: Path) -> None:
    with (
        Supervisor(Record(), roots=[tmp_path]) as supervisor,
        pytest.raises(CommandNotStarted, match="no-such-program"),
    ):
        supervisor.run(["no-such-program"], timeout_s=LIMIT_S)


def test_a_command_cannot_be_wrapped_twice(tmp_path: Path) -> None:
    with (
        Supervisor(Record(), roots=[tmp_path]) as supervisor,
        pytest.raises(CommandNotStarted, match="do not wrap a command twice"),
    ):
        supervisor.run(supervisor.wrap_argv(["true"]), timeout_s=LIMIT_S)


def test_writes_to_standard_output_are_seen_on_request(tmp_path: Path) -> None:
    script = f"echo x > {tmp_path}/file"
    for wanted, names in (
        (Wanted(), ["openat"]),
        (Wanted(standard_streams=True), ["openat", "write"]),
    ):
        with Supervisor(Record(), roots=[tmp_path], wanted=wanted) as supervisor:
            supervisor.run(["sh", "-c", script], timeout_s=LIMIT_S)
            assert [call.name for call in supervisor.calls] == names


def test_an_error_of_our_own_is_raised_and_not_swallowed(tmp_path: Path) -> None:
    def fail(call: Call) -> None:
        raise RuntimeError("no room for the snapshot")

    with (
        pytest.raises(RuntimeError, match="no room"),
        Supervisor(BeforeEach(fail), roots=[tmp_path]) as supervisor,
    ):
        supervisor.run(["mkdir", str(tmp_path / "x")], timeout_s=LIMIT_S)


# --- boxes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("technique", [technique.name for technique in TECHNIQUES])
def test_in_a_box_of_any_technique(tmp_path: Path, technique: str) -> None:
    need_box(technique)
    script = "mkdir made; git add --all; git commit --quiet --allow-empty --message x"
    with create_box(tmp_path / "box", technique=technique, doubles=False) as box:
        source = box.directory / "source"
        with Supervisor(Record(), roots=[source]) as supervisor:
            done = supervisor.run_in(box, ["sh", "-c", script], timeout_s=LIMIT_S)
            assert done is not None
            assert done.exit_code == 0, done
            assert (supervisor.calls[0].name, supervisor.calls[0].paths) == ("mkdir", ("made",))
            assert all(call.files[0].startswith(str(source)) for call in supervisor.calls)
            supervisor.use(CrashAt(3))
            assert supervisor.run_in(box, ["sh", "-c", script], timeout_s=LIMIT_S) is None
            assert [call.index for call in supervisor.fired] == [3]
            assert not box.alive
        assert list(box.directory.glob(".mutiny-*")) == []


def test_a_tmux_tree_in_a_box_is_one_order(tmp_path: Path) -> None:
    need("tmux", "git")
    need_box()
    inner = "git commit --quiet --allow-empty --message x; mkdir /box/source/done; sleep 1000"
    with create_box(tmp_path / "box", doubles=False) as box:
        source = box.directory / "source"
        with Supervisor(Record(), roots=[source]) as supervisor:
            done = supervisor.run_in(
                box, ["tmux", "new-session", "-d", "-s", "x", inner], timeout_s=LIMIT_S
            )
            assert done is not None
            assert done.exit_code == 0, done
            assert wait_for((source / "done").exists)
            calls = supervisor.calls
            assert [call.index for call in calls] == list(range(len(calls)))
            assert {"git commit#1", "mkdir#1"} <= {call.process for call in calls}
            # the server lives on, and so does the supervision of its next pane
            supervisor.use(CrashAt(2))
            box.spawn(["tmux", "new-window", "-t", "x", inner.replace("done", "never")])
            assert wait_for(lambda: supervisor.world_dead)
        assert wait_for(lambda: not box.alive)
        assert not (source / "never").exists()


def test_a_daemon_goes_on_when_its_command_and_its_supervisor_have_ended(tmp_path: Path) -> None:
    need_box()
    with create_box(tmp_path / "box", doubles=False) as box:
        place = box.directory / "home"
        with Supervisor(Record(), roots=[place]) as supervisor:
            argv = python(payload.DAEMON, box.inside(place))
            assert supervisor.run_in(box, argv, timeout_s=LIMIT_S) is not None
            assert wait_for(lambda: len(supervisor.calls) > 20)
            # its calls need not disturb the count of another command
            supervisor.use(Record(), only={"mine"})
            script = f"mkdir {box.inside(place)}/x; mkdir {box.inside(place)}/y"
            supervisor.run_in(box, ["sh", "-c", script], timeout_s=LIMIT_S, tag="mine")
            assert [call.paths for call in supervisor.calls] == [("x",), ("y",)]
            assert {call.command for call in supervisor.calls} == {"mine"}
        before = int((place / "beat").read_text())
        assert wait_for(lambda: int((place / "beat").read_text()) > before + 5)


# --- as a plain user ------------------------------------------------------------------------------

AS_USER = """
import sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import os
from pathlib import Path
from mutiny.box.startup import create_box
from mutiny.syscalls.policies import CrashAt, Record, Selection, TearBelow
from mutiny.syscalls.supervisor import Supervisor
place = Path(sys.argv[3])
assert os.getuid() == 65534
argv = ["sh", "-c", "mkdir a; mkdir b; mkdir c"]
with Supervisor(CrashAt(1), roots=[place]) as supervisor:
    assert supervisor.run(argv, cwd=place, timeout_s=30) is None
assert sorted(path.name for path in place.iterdir()) == ["a"]
text = "open(%r, 'w').write('x' * 100)" % str(place / "torn")
with Supervisor(TearBelow(Selection(str(place)), "kill"), roots=[place]) as supervisor:
    supervisor.run([sys.executable, "-IS", "-c", text], timeout_s=30)
assert (place / "torn").read_text() == "x" * 50
if sys.argv[4] == "box":
    with create_box(place / "box", technique="bwrap", doubles=False) as box:
        with Supervisor(CrashAt(1), roots=[box.directory / "source"]) as supervisor:
            assert supervisor.run_in(box, argv, timeout_s=30) is None
        made = [path.name for path in (box.directory / "source").iterdir()]
        assert "a" in made and "b" not in made, made
print("fine")
"""


def test_as_a_plain_user() -> None:
    need("setpriv")
    if os.geteuid() != 0:
        pytest.skip("this whole file already runs as a plain user")
    interpreter = "/usr/bin/python3"
    probe = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", interpreter]
    version = subprocess.run(
        [
            *probe,
            "-c",
            f"import sys; open({str(SOURCE)!r} + '/mutiny/errors.py'); print(sys.version_info >= (3, 11))",
        ],
        capture_output=True,
        text=True,
    )
    if version.stdout.strip() != "True":
        pytest.skip(f"no Python 3.11 that a plain user can run: {version.stderr.strip()[-200:]}")
    box = "box" if why_not("bwrap") is None else "nobox"
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "p"
        place.mkdir()
        Path(directory).chmod(0o755)
        os.chown(place, 65534, 65534)
        words = ["-IS", "-c", AS_USER, str(SOURCE), str(SOURCE.parent), str(place), box]
        done = subprocess.run(
            [*probe, *words],
            capture_output=True,
            text=True,
            timeout=60,
            cwd="/",
            env={"PATH": os.environ["PATH"], "HOME": str(place)},
        )
    assert done.stdout == "fine\n", done.stderr
