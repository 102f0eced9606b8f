"""The run directory: its layout, whole files or none, and one clear line when the disk
refuses.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mutiny.engine.journal import JournalWriter
from mutiny.engine.rundir import RunDirectory, storing
from mutiny.errors import StoreError
from mutiny.system.files import BoxPath
from mutiny.system.keepsakes import Keepsake


def test_the_name_is_the_seeds(tmp_path: Path) -> None:
    made = RunDirectory.create(tmp_path / "chaos_runs")
    assert re.fullmatch(r"run_\d{8}_\d{6}", made.path.name)
    assert made.path.is_dir()
    assert made.journal_path.name == "operations.jsonl"
    assert made.report_path.name == "error_report.md"


def test_latest_points_to_the_newest_run(tmp_path: Path) -> None:
    first = RunDirectory.create(tmp_path)
    second = RunDirectory.create(tmp_path)
    assert first.path != second.path
    assert os.readlink(tmp_path / "latest") == second.path.name  # noqa: PTH115
    third = RunDirectory.create(tmp_path, latest=False)
    assert (tmp_path / "latest").resolve() == second.path.resolve() != third.path.resolve()


def test_many_runs_begin_in_the_same_second(tmp_path: Path) -> None:
    """Explorations make run directories from several threads at once."""
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: RunDirectory.create(tmp_path), range(64)))
    assert len({run.path for run in made}) == 64
    assert (tmp_path / "latest").resolve() in {run.path.resolve() for run in made}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_two_threads_point_latest_at_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_made = threading.Barrier(2)
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        both_made.wait(timeout=10)
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: RunDirectory.create(tmp_path), range(2)))
    assert (tmp_path / "latest").resolve() in {run.path.resolve() for run in made}


def test_a_document_is_replaced_as_a_whole(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.write_json(run.summary_path, {"text": "ünï", "n": 1})
    before = run.summary_path.stat().st_ino
    run.write_json(run.summary_path, {"n": 2})
    assert run.summary_path.stat().st_ino != before
    assert json.loads(run.summary_path.read_text(encoding="utf-8")) == {"n": 2}
    assert run.summary_path.read_text(encoding="utf-8").endswith("}\n")


def test_a_failed_write_leaves_the_old_document_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(tmp_path)
    run.write_json(run.summary_path, {"n": 1})

    def full(self: Path, *args: object, **kwargs: object) -> int:
        with self.open("w") as stream:
            stream.write("half")
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(StoreError, match="No space left on device"):
        run.write_json(run.summary_path, {"n": 2})
    monkeypatch.undo()
    assert json.loads(run.summary_path.read_text(encoding="utf-8")) == {"n": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]


def test_the_plan_grows(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.write_json(run.plan_path, {"seed": 7})
    run.add_to_plan({"box": {"technique": "bwrap"}})
    assert json.loads(run.plan_path.read_text()) == {"seed": 7, "box": {"technique": "bwrap"}}
    alone = RunDirectory(tmp_path / "other")
    alone.add_to_plan({"box": {}})
    assert json.loads(alone.plan_path.read_text()) == {"box": {}}


def test_directories_are_made_when_they_are_needed(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.write_text(tmp_path / "state_snapshots" / "0007.json", "{}")
    assert (tmp_path / "state_snapshots" / "0007.json").read_text() == "{}"


# --- copies of the evidence -----------------------------------------------------------------------


def test_files_and_directories_are_kept(tmp_path: Path) -> None:
    source = tmp_path / "home"
    (source / "logs").mkdir(parents=True)
    (source / "logs" / "a.log").write_text("a")
    (source / "logs" / "link").symlink_to("nowhere")
    (source / "state.json").write_text("{}")
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    run.keep_copies(
        {
            "target_logs/logs": Keepsake(BoxPath(source, "logs")),
            "daemon.log": Keepsake(BoxPath(source, "state.json")),
            "missing": Keepsake(BoxPath(source, "missing")),
        }
    )
    assert (run.path / "target_logs" / "logs" / "a.log").read_text() == "a"
    assert not os.path.lexists(run.path / "target_logs" / "logs" / "link")
    told = (run.path / "target_logs" / "logs.left_out.txt").read_text()
    assert told == "logs/link: no regular file\n"
    assert (run.path / "daemon.log").read_text() == "{}"
    assert not (run.path / "missing").exists()


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize("make", [make_socket, os.mkfifo], ids=["socket", "fifo"])
def test_sockets_and_fifos_among_the_evidence_do_no_harm(
    tmp_path: Path, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`files = ["{home}/mine"]`, as the template says, takes a whole home with its control socket."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "state.json").write_text("{}")
    monkeypatch.chdir(home)  # socket paths are short
    make(Path("control.sock"))
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    both = {
        "target_logs/home": BoxPath(tmp_path, "home"),
        "daemon.log": BoxPath(home, "control.sock"),
    }
    run.keep_copies({name: Keepsake(place) for name, place in both.items()})
    kept = run.path / "target_logs" / "home"
    assert [path.name for path in kept.iterdir()] == ["state.json"]


def test_discarding(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, latest=False)
    run.box_path.mkdir()
    (run.box_path / "x").write_text("x")
    run.discard_box()
    assert run.path.exists()
    assert not run.box_path.exists()
    run.discard_box()
    run.discard()
    assert not run.path.exists()
    run.discard()


# --- when the disk refuses ------------------------------------------------------------------------


def test_a_file_where_the_root_should_be(tmp_path: Path) -> None:
    (tmp_path / "chaos_runs").write_text("")
    with pytest.raises(StoreError, match=r"cannot write .*chaos_runs: File exists"):
        RunDirectory.create(tmp_path / "chaos_runs")


def test_a_disk_without_room_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(tmp_path)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=0))
    with pytest.raises(StoreError, match="No space left on device"):
        run.require_room()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=2**40))
    run.require_room()


def test_something_else_called_latest(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    with pytest.raises(StoreError, match="latest"):
        RunDirectory.create(tmp_path)


def test_the_error_names_the_file_and_the_reason(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught, storing(tmp_path / "plan.json"):
        raise OSError(28, "No space left on device")
    assert str(caught.value) == f"cannot write {tmp_path / 'plan.json'}: No space left on device"
    assert caught.value.exit_code == 70


def test_other_errors_pass_through(tmp_path: Path) -> None:
    with pytest.raises(KeyError), storing(tmp_path):
        raise KeyError("not about the disk")


def test_a_document_has_a_line_a_field_and_a_line_an_element(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path)
    value = {
        "title": "Grüße",
        "empty": [],
        "none": {},
        "operations": [{"type": "Add", "args": {"worker": "a", "deep": [1, [2]]}}, "text"],
        "counts": {"success": 4, "odd": None},
    }
    run.write_json(run.plan_path, value)
    text = run.plan_path.read_text(encoding="utf-8")
    assert json.loads(text) == value
    assert (
        '    {"type": "Add", "args": {"worker": "a", "deep": [1, [2]]}},\n    "text"\n  ],' in text
    )
    assert '  "title": "Grüße",\n  "empty": [],\n' in text
    assert text.endswith("}\n")


def test_a_directory_that_was_deleted_under_the_run_is_named(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "runs")
    shutil.rmtree(tmp_path / "runs")
    with pytest.raises(StoreError, match="cannot write"):
        directory.require_room()
    with pytest.raises(StoreError):
        JournalWriter(directory.journal_path)
