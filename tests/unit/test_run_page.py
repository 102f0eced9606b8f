"""The page of a run: made of its directory alone, whatever became of it, and nothing in it lives."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

from mutiny.engine.progress import Progress
from mutiny.engine.record import BROKEN_OFF, FINISHED, RUNNING, Record, lines_since, read_record
from mutiny.modes.repeating import repeat_command
from mutiny.report.run_page import render
from mutiny.system.files import BoxPath
from run_folders import HOSTILE, RULE, line, living, written, written_replay


def record_of(run: Path) -> Record:
    record = read_record(BoxPath(run))
    assert record is not None
    return record


# --- the record -------------------------------------------------------------------------------------------


def test_what_has_no_summary_goes_on_or_is_broken_off(tmp_path: Path) -> None:
    assert record_of(written(tmp_path, "run_1")).state == FINISHED
    assert record_of(written(tmp_path, "run_2", None, process=living())).state == RUNNING
    assert record_of(written(tmp_path, "run_3", None)).state == BROKEN_OFF
    assert read_record(BoxPath(tmp_path)) is None, "a folder of runs is none"
    (tmp_path / "plan.json").write_text('{"box": {"technique": "bwrap"}}')
    assert read_record(BoxPath(tmp_path)) is None, "nor is a trial"


def test_progress_names_its_process_and_ends_with_a_verdict(tmp_path: Path) -> None:
    progress = Progress(tmp_path, "crash sweep", "Accept", "longboat", unit="points")
    progress.tell(3, 10, "0 bugs", {"success": 3})
    progress.tell(4, 10)  # too soon after the first to be written
    record = record_of(tmp_path)
    assert (record.state, record.kind) == (RUNNING, "crash sweep")
    assert record.progress is not None
    assert (record.progress["done"], record.progress["total"]) == (3, 10)
    progress.tell(10, 10, "", {"success": 10}, verdict="success")
    assert (record_of(tmp_path).state, record_of(tmp_path).verdict) == (FINISHED, "success")


def test_a_growing_file_is_read_in_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "operations.jsonl"
    path.write_bytes(b'{"a": 1}\nnonsense\n[1]\n{"a": 2')
    lines, place = lines_since(BoxPath(tmp_path, path.name), 0)
    assert [one["a"] for one in lines] == [1]
    with path.open("ab") as file:
        file.write(b"}\n" + b'{"a": "' + b"x" * 3_000_000 + b'"}\n')
    lines, place = lines_since(BoxPath(tmp_path, path.name), place)
    assert [len(str(one["a"])) for one in lines] == [1]
    lines, place = lines_since(BoxPath(tmp_path, path.name), place)
    assert [len(str(one["a"])) for one in lines] == [3_000_000], "longer than what is read at once"
    assert lines_since(BoxPath(tmp_path, path.name), place) == ([], path.stat().st_size)
    assert lines_since(BoxPath(tmp_path, "nowhere"), 7) == ([], 7)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    run = written(tmp_path, "run_1")
    secret = tmp_path / "secret"
    secret.write_text('{"title": "secret"}')
    (run / "summary.json").unlink()
    (run / "summary.json").symlink_to(secret)
    assert record_of(run).summary is None


# --- the page ---------------------------------------------------------------------------------------------


def test_a_bug_is_told_with_its_rule_its_step_and_its_replay(tmp_path: Path) -> None:
    run = written(tmp_path, "run_1", "bug")
    written_replay(run)
    text = render(record_of(run), "mutiny replay x")
    assert "bug found" in text
    assert f"<code>{RULE}</code>" in text
    assert "Lost work" in text, "its promise is known"
    assert 'href="#step-3"' in text
    assert 'id="step-3"' in text
    assert '<code id="again">mutiny replay x</code>' in text
    assert "2 operations; failed again in 3 of 3 tries; minimising finished." in text
    assert text.count("<b>step</b>") == 3, "what changed is told at each step"
    assert "daemon_running" not in text, "what did not change is not"


def test_the_only_script_is_ours_and_named_by_its_digest(tmp_path: Path) -> None:
    from base64 import b64encode
    from hashlib import sha256

    text = render(record_of(written(tmp_path, "run_1")))
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
        in unescape(text)
    )
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_everything_that_a_target_said_is_text(tmp_path: Path) -> None:
    run = written(tmp_path, "run_1", "bug", title=HOSTILE, message=HOSTILE, target=HOSTILE)
    said = {"stdout": HOSTILE, "stderr": HOSTILE, "argv": [HOSTILE]}
    state = {"post_state": {HOSTILE: HOSTILE}, "expected": HOSTILE}
    with (run / "operations.jsonl").open("a") as file:
        file.write(json.dumps(line(4, HOSTILE, args={HOSTILE: HOSTILE}, result=said, **state)))
        file.write("\n")
    text = render(record_of(run), HOSTILE, {HOSTILE: HOSTILE})
    assert "<img" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.count("</script>") == 1


@pytest.mark.parametrize("file", ["plan.json", "summary.json", "operations.jsonl"])
def test_a_damaged_run_has_a_page_all_the_same(file: str, tmp_path: Path) -> None:
    run = written(tmp_path, "run_1", "bug", operations=None, started_unix=1e99, contract="nobody's")
    if file != "plan.json":
        (run / file).write_text('{"format": 1, "error": [], "verdict": {}}\n{"operation"')
    text = render(record_of(run))
    assert text.count("<h1>") == 1


def test_a_run_that_was_broken_off_says_so(tmp_path: Path) -> None:
    text = render(record_of(written(tmp_path, "run_1", None)))
    assert "broken off" in text
    assert "3 of 6" in text


def test_the_command_names_what_it_needs(tmp_path: Path) -> None:
    run = written(tmp_path, "run 1", "bug")
    plan = {"target_file": "/nowhere/my target.toml", "program": "/opt/tool"}
    again = repeat_command(run, plan, Path("site/run 1"))
    named = "--target '/nowhere/my target.toml' --bin /opt/tool"
    assert again == f"mutiny replay 'site/run 1/operations.jsonl' {named}"
    written_replay(run)
    assert "minimal_replay.json" in repeat_command(run, plan)
    assert (
        repeat_command(run, {"argv": ["x", "experiment", "run", "a b"]})
        == "mutiny experiment run 'a b'"
    )
