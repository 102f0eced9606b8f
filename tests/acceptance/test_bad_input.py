"""Bad input and trouble inside Mutiny: one clear line that says what and where, the right code."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from mutiny.system.inotify import DirectoryWatch
from mutiny.system.processes import all_pids
from mutiny_command import COMMAND, longboat_spec, run_mutiny

RESET = {"type": "Reset", "args": {}}


def test_unknown_scenario_names_the_nearest(tmp_path: Path) -> None:
    ran = run_mutiny(tmp_path, "run", "--scenario", "basic_lifecycel")
    assert ran.code == 2
    assert "unknown scenario 'basic_lifecycel' (did you mean 'basic_lifecycle'?)" in ran.stderr
    assert not (tmp_path / "chaos_runs").exists(), "nothing was run"


def test_a_scenario_that_a_target_leaves_out_is_not_called_unknown(tmp_path: Path) -> None:
    words = ("--target", "llmc", "--bin", "/bin/true", "--scenario", "nuke_finished_work")
    ran = run_mutiny(tmp_path, "run", *words)
    assert ran.code == 2
    assert "scenario 'nuke_finished_work' is left out for llmc" in ran.stderr


def test_unknown_plant_and_target_name_the_nearest(tmp_path: Path) -> None:
    ran = run_mutiny(tmp_path, "run", "--plant", "doctor-lie")
    assert ran.code == 2
    assert "did you mean 'doctor-lies'?" in ran.stderr
    ran = run_mutiny(tmp_path, "run", "--target", "longbot")
    assert ran.code == 2
    assert "did you mean 'longboat'?" in ran.stderr


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        ("run --target here", 2, "here is a directory, not a target"),
        ("run --bin here", 3, "here is a directory, not a program"),
        ("report gone", 2, "gone: there is no such run"),
        ("race --target longboat", 2, "needs a board, for example --target longboat-board"),
        ("plants --target longbot", 2, "did you mean 'longboat'?"),
        ("rules --contract x", 2, "unknown contract 'x'; known: "),
        ("soak --project task_que", 2, "did you mean 'task_queue'?"),
        ("sweep crash --scenario basic_lifecycle --at Acept", 2, "did you mean 'Accept'?"),
    ],
)
def test_what_is_not_there_is_told_before_anything_runs(
    tmp_path: Path, words: str, code: int, complaint: str
) -> None:
    (tmp_path / "here").mkdir()
    ran = run_mutiny(tmp_path, *words.split())
    assert ran.code == code
    assert complaint in ran.stderr
    assert not (tmp_path / "chaos_runs").exists(), "nothing was run"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"{", "line 1: not valid JSON"),
        (b"\xff\xfe\x00", "not UTF-8 text"),
        (b'{"format": 99, "operations": []}', "format 99 is newer than this Mutiny reads (1)"),
        (b'{"format": 1, "operations": [{"type": "Strat", "args": {}}]}', "did you mean 'Start'?"),
        (
            b'{"format": 1, "operations": [{"type": "Start", "args": {"worker": 3}}]}',
            "Start.prompt: is missing",
        ),
        (b'{"format": 1, "wat": 1, "operations": []}', "wat: unknown key"),
        (b"[]", "at least one operation"),
    ],
)
def test_a_replay_file_that_cannot_be_repeated_is_refused(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    path = tmp_path / "replay.json"
    path.write_bytes(content)
    ran = run_mutiny(tmp_path, "replay", str(path))
    assert ran.code == 2
    assert complaint in ran.stderr
    assert str(path) in ran.stderr
    assert not (tmp_path / "chaos_runs").exists()


@pytest.mark.parametrize(
    "words",
    [("report",), ("replay",), ("run", "--target"), ("run", "--bin"), ("experiment", "run")],
)
def test_a_name_that_no_file_can_have_is_a_mistake_of_its_user(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    ran = run_mutiny(tmp_path, *words, "x" * 5000)
    assert ran.code == 2, ran.stderr
    assert len(ran.stderr) < 1000 or "unknown target" in ran.stderr


def test_a_missing_replay_file_is_named(tmp_path: Path) -> None:
    ran = run_mutiny(tmp_path, "replay", "nowhere.json")
    assert ran.code == 2
    assert (
        ran.stderr
        == "mutiny: nowhere.json: cannot read the replay file: No such file or directory\n"
    )


def test_a_target_file_with_mistakes_lists_them_all_with_lines(tmp_path: Path) -> None:
    spec = longboat_spec(
        tmp_path,
        (
            'add = { argv = ["{program}", "add", "{worker}"',
            'add = { argv = ["{program}", "add", "{wroker}"',
        ),
        ("not_idle = [", "not_idel = ["),
        ("lag_s = 3.0", 'lag_s = "three"'),
    )
    ran = run_mutiny(tmp_path, "target", "check", str(spec))
    assert ran.code == 2
    assert "lag_s: expected a number, got 'three'" in ran.stderr
    spec = longboat_spec(
        tmp_path,
        (
            'add = { argv = ["{program}", "add", "{worker}"',
            'add = { argv = ["{program}", "add", "{wroker}"',
        ),
        ("not_idle = [", "not_idel = ["),
    )
    ran = run_mutiny(tmp_path, "run", "--target", str(spec))
    assert ran.code == 2
    lines = ran.stderr.splitlines()
    text = spec.read_text().splitlines()
    add = next(i for i, line in enumerate(text, 1) if line.startswith("add ="))
    idle = next(i for i, line in enumerate(text, 1) if line.startswith("not_idel"))
    assert any(f"line {add}: " in line and "did you mean 'worker'?" in line for line in lines)
    assert any(f"line {idle}: " in line and "did you mean 'not_idle'?" in line for line in lines)


def small_disk(directory: Path, size: str) -> tuple[str, ...]:
    """A wrapper that puts a small file system over a directory, in a mount namespace of its own."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed: no small disk can be made")
    script = f'mount -t tmpfs -o size={size} tmpfs "{directory}" && exec "$@"'
    wrapper = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh")
    probe = subprocess.run([*wrapper, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        pytest.skip(f"no small disk can be made here: {probe.stderr.strip()}")
    return wrapper


def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    keep = tmp_path / "kept"
    wrapper = small_disk(runs, "200k")
    script = (
        *wrapper[:-2],
        wrapper[-2].replace('exec "$@"', f'"$@"; code=$?; cp -r "{runs}" "{keep}"; exit $code'),
        "sh",
    )
    ran = run_mutiny(tmp_path, "run", "--all-scenarios", "--runs", str(runs), wrapper=script)
    assert ran.code == 70, ran.stdout + ran.stderr
    last = ran.stderr.strip().splitlines()[-1]
    assert last.startswith("mutiny: ")
    assert "No space left on device" in last
    assert str(runs) in last
    for journal in keep.rglob("operations.jsonl"):
        for line in journal.read_text().splitlines():
            json.loads(line)


def start_and_wait_for(directory: Path, operation: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a run and wait until its journal has reached an operation."""
    process = subprocess.Popen(
        [COMMAND, *arguments],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if operation in line:
            return process
    raise AssertionError(f"{operation} never came: {process.communicate()[1]}")


def box_processes(directory: Path) -> list[int]:
    """Processes of the run's box, as the host sees them: all of them carry the box's id."""
    plan = json.loads((directory / "chaos_runs" / "latest" / "plan.json").read_text())
    mark = f"MUTINY_BOX={plan['box']['box_id']}".encode()
    found = []
    for pid in all_pids():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if mark in environment.split(b"\0"):
            found.append(pid)
    return found


def wait_until_empty(directory: Path) -> None:
    with DirectoryWatch([directory]) as watch:
        for _ in range(200):
            if not box_processes(directory):
                return
            watch.wait(0.05)
    raise AssertionError(f"still alive: {box_processes(directory)}")


LONG = ("run", "--scenario", "long_work", "--no-minimise")


def test_a_killed_mutiny_loses_nothing_and_leaves_nobody(tmp_path: Path) -> None:
    process = start_and_wait_for(tmp_path, "Start(", *LONG)
    assert box_processes(tmp_path), "there must be somebody to leave behind"
    process.kill()
    process.wait()
    wait_until_empty(tmp_path)
    journal = tmp_path / "chaos_runs" / "latest" / "operations.jsonl"
    with journal.open("a") as stream:
        stream.write('{"half": ')
    ran = run_mutiny(tmp_path, "replay", str(journal))
    assert ran.code == 0, ran.stdout + ran.stderr


def test_ctrl_c_ends_the_box_and_says_so(tmp_path: Path) -> None:
    process = start_and_wait_for(tmp_path, "Start(", *LONG)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in errors
    wait_until_empty(tmp_path)


def test_corrupt_journal_line_is_named(tmp_path: Path) -> None:
    journal = tmp_path / "operations.jsonl"
    good = json.dumps({"operation": RESET})
    journal.write_text(f"{good}\nnot json\n{good}\n")
    ran = run_mutiny(tmp_path, "replay", str(journal))
    assert ran.code == 2
    assert "line 2: not valid JSON" in ran.stderr


def test_confirm_needs_a_fraction(tmp_path: Path) -> None:
    path = tmp_path / "replay.json"
    path.write_text(json.dumps([RESET]))
    ran = run_mutiny(tmp_path, "minimise", str(path), "--confirm", "often")
    assert ran.code == 2
    assert "K/N" in ran.stderr
