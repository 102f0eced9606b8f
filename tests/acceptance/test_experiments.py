"""Experiments end to end: what was not shown never passes, and rollbacks always run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from mutiny_command import COMMAND, run_mutiny

NATIVE = """\
experiment:
  name: "Agent killed in mid-task"
  hypothesis: "The task is given to a new agent and is finished"
  target: longboat
  seed: 1
  blast_radius: "server"
  steady_state:
    - "All tasks eventually reach DONE or FAILED"
    - "At most one daemon"
  method:
    - behave: {worker: alpha, turns: ["slow:60000", "obey"]}
    - start: {worker: alpha, prompt: "Create a file named a.txt with content 'hello'"}
    - wait_for_prompt: alpha
    - kill_agent: alpha
    - verify: "task reassigned to healthy worker"
    - wait_for_needs_review: alpha
    - verify: "No acknowledged task is lost"
  rollback:
    - "Reset any stuck tasks to AVAILABLE"
"""


def result(directory: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((directory / "chaos_runs/latest/experiment.json").read_text())
    return data


def native(directory: Path, text: str = NATIVE, *more: str) -> tuple[int, str]:
    (directory / "e.yaml").write_text(text)
    ran = run_mutiny(directory, "experiment", "run", "e.yaml", "--no-minimise", *more)
    return ran.code, ran.stdout + ran.stderr


def test_a_killed_agent_is_replaced(tmp_path: Path) -> None:
    code, output = native(tmp_path, NATIVE, "--junit", "all.xml")
    assert code == 0, output
    report = result(tmp_path)
    assert report["verdict"] == "success"
    assert [fault["fired"] for fault in report["faults"]] == [True]
    assert report["score"]["integrity"] == "PASS"
    assert report["score"]["recovered"] is True
    assert report["score"]["recovery_s"] < 30
    run = tmp_path / "chaos_runs/latest"
    samples = [json.loads(line) for line in (run / "availability.jsonl").read_text().splitlines()]
    assert len(samples) >= report["score"]["samples"] > 0
    assert {step["phase"] for step in report["steps"]} == {
        *("setup", "before", "method", "recovery", "after", "rollback"),
    }
    assert 'tests="1" failures="0" skipped="0"' in (tmp_path / "all.xml").read_text()
    again = run_mutiny(tmp_path, "experiment", "report", "--format", "html")
    assert again.code == 0
    assert again.stdout == (run / "chaos_report.html").read_text()


@pytest.mark.slow
def test_a_planted_bug_is_found_told_and_replayed(tmp_path: Path) -> None:
    text = NATIVE.replace("No acknowledged task is lost", "worker alpha is idle")
    code, output = native(tmp_path, text)
    assert code == 1, output
    report = result(tmp_path)
    finding = report["findings"][0]
    assert finding["rule"] == "experiment.verified"
    assert "KillAgent" in finding["root_cause"]
    replay = finding["test_case"].rpartition("mutiny replay ")[2]
    assert Path(tmp_path, replay).exists()
    assert report["steps"][-1]["phase"] == "rollback"
    again = run_mutiny(tmp_path, "replay", replay, "--expect", "experiment.verified")
    assert again.code == 0, again.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_minimising_changes_nothing_that_is_told_of_the_run(tmp_path: Path) -> None:
    """Trials inject faults and ask probes, too; none of that is the run's."""
    text = NATIVE.replace("No acknowledged task is lost", "worker alpha is idle")
    (tmp_path / "e.yaml").write_text(text)
    ran = run_mutiny(tmp_path, "experiment", "run", "e.yaml", "--minimise-runs", "6", limit_s=600.0)
    assert ran.code == 1, ran.stdout + ran.stderr
    report, run = result(tmp_path), tmp_path / "chaos_runs/latest"
    journal = [json.loads(line) for line in (run / "operations.jsonl").read_text().splitlines()]
    fired = [line for line in journal if line["result"].get("fired")]
    assert [fault["fired"] for fault in report["faults"]] == [True] * len(fired) == [True]
    asked = (run / "availability.jsonl").read_text().splitlines()
    assert len(report["samples"]) == len(asked) > 0
    assert report["score"]["availability"] is not None
    replay = json.loads((run / "minimal_replay.json").read_text())
    assert replay["reproduced"]["failed"] > 0
    assert "failed again in" in report["replay"]
    kept = {step["type"] for step in replay["operations"]}
    assert {"Behave", "Start", "KillAgent", "VerifySentence"} <= kept, "the sentence is about them"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        pytest.param(
            *("kill_agent: alpha", "kill_agent: nobody", "a fault did not happen (line 14)"),
            marks=pytest.mark.slow,
        ),
        # What never comes true is waited for as long as a steady state may take: half a minute.
        pytest.param("At most one daemon", "Worker ghost is idle", "", marks=pytest.mark.slow),
        ("At most one daemon", "No worker stuck in idle > 1 ms", "not met before the method"),
    ],
)
def test_false_passes(tmp_path: Path, old: str, new: str, reason: str) -> None:
    code, output = native(tmp_path, NATIVE.replace(old, new))
    assert code != 0, output
    report = result(tmp_path)
    assert report["verdict"] != "success"
    assert reason in report["reason"]
    if "before the method" in reason:
        assert code == 3
        assert not [step for step in report["steps"] if step["phase"] == "method"]


@pytest.mark.slow
def test_a_verification_that_cannot_be_made_is_inconclusive(tmp_path: Path) -> None:
    text = NATIVE.replace('"No acknowledged task is lost"', '"Memory does not grow"')
    text = text.replace('verify: "Mem', 'verify: {within: 1s, sentence: "Mem').replace(
        'grow"', 'grow"}'
    )
    code, _ = native(tmp_path, text + "  probe: none\n")
    assert code != 0


def test_the_blast_radius_is_enforced_before_anything_is_touched(tmp_path: Path) -> None:
    code, output = native(tmp_path, NATIVE.replace('"server"', '"single task"'))
    assert code == 2
    assert "e.yaml:14: kill_agent: alpha reaches 'one worker'" in output
    assert not (tmp_path / "chaos_runs").exists()


def test_one_bad_file_stops_all(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(NATIVE.replace("kill_agent", "kil_agent"))
    (tmp_path / "good.yaml").write_text(NATIVE)
    ran = run_mutiny(tmp_path, "experiment", "run", "good.yaml", "bad.yaml")
    assert ran.code == 2
    assert "bad.yaml:14: unknown step 'kil_agent' (did you mean 'kill_agent'?)" in ran.stderr
    assert not (tmp_path / "chaos_runs").exists()
    checked = run_mutiny(tmp_path, "experiment", "check", "good.yaml", "bad.yaml")
    assert checked.code == 2
    assert "good.yaml: 'Agent killed in mid-task' is well-formed" in checked.stdout


def test_rollbacks_run_after_an_interrupt(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(
        NATIVE.replace("    - kill_agent", "    - wait: 60s\n    - kill_agent")
    )
    process = subprocess.Popen(
        [COMMAND, "experiment", "run", "e.yaml"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    journal = tmp_path / "chaos_runs/latest/operations.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if journal.exists() and "WaitForPrompt" in journal.read_text():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    last = json.loads(journal.read_text().splitlines()[-1])
    assert last["operation"]["type"] == "Undo"


# --- Chaos Toolkit --------------------------------------------------------------------------------


def foreign(directory: Path, **changes: Any) -> tuple[int, dict[str, Any], str]:
    """One probe, one action, one rollback that leaves a mark."""
    probe = {
        "type": "probe",
        "name": "file-is-there",
        "tolerance": 0,
        "provider": {"type": "process", "path": "test", "arguments": ["-e", "/box/tmp/there"]},
    }
    action = {
        "type": "action",
        "name": "touch",
        "provider": {"type": "process", "path": "touch", "arguments": ["/box/tmp/other"]},
    }
    experiment = {
        "version": "1.0.0",
        "title": "T",
        "description": "D",
        "steady-state-hypothesis": {
            "title": "s",
            "probes": [{**probe, "provider": {"type": "process", "path": "true"}}],
        },
        "method": [action],
        "rollbacks": [{**action, "name": "back"}],
    }
    experiment.update(changes)
    (directory / "e.json").write_text(json.dumps(experiment))
    ran = run_mutiny(directory, "experiment", "run", "e.json")
    journal = directory / "chaos_runs/latest/journal.json"
    data = json.loads(journal.read_text()) if journal.exists() else {}
    return ran.code, data, ran.stdout + ran.stderr


def process(kind: str, path: str, *arguments: str, **more: object) -> dict[str, object]:
    provider = {"type": "process", "path": path, "arguments": list(arguments)}
    return {"type": kind, "name": f"{kind}-{path}", "provider": provider, **more}


def test_a_foreign_experiment_passes(tmp_path: Path) -> None:
    code, journal, output = foreign(tmp_path)
    assert code == 0, output
    assert journal["status"] == "completed"
    assert journal["deviated"] is False
    assert journal["steady_states"]["before"]["steady_state_met"] is True
    assert [entry["status"] for entry in journal["run"]] == ["succeeded"]
    assert [entry["activity"]["name"] for entry in journal["rollbacks"]] == ["back"]


def test_a_failed_action_is_no_pass(tmp_path: Path) -> None:
    code, journal, _ = foreign(tmp_path, method=[process("action", "false")])
    assert code == 3
    assert journal["status"] == "aborted"
    assert journal["run"][0]["status"] == "failed"
    assert len(journal["rollbacks"]) == 1


def test_an_action_that_does_not_exist_is_no_pass(tmp_path: Path) -> None:
    assert foreign(tmp_path, method=[process("action", "no-such-program")])[0] == 3


def test_a_failed_action_in_the_background_is_no_pass(tmp_path: Path) -> None:
    code, _, output = foreign(tmp_path, method=[process("action", "false", background=True)])
    assert code == 3
    assert "in the background failed" in output


def test_a_steady_state_that_is_not_met_before_stops_it(tmp_path: Path) -> None:
    steady = {"title": "s", "probes": [process("probe", "false", tolerance=0)]}
    code, journal, _ = foreign(tmp_path, **{"steady-state-hypothesis": steady})
    assert code == 3
    assert journal["run"] == []
    assert journal["steady_states"]["before"]["steady_state_met"] is False
    assert len(journal["rollbacks"]) == 1


def test_a_deviation_is_found(tmp_path: Path) -> None:
    probe = process("probe", "test", "!", "-e", "/box/tmp/other", tolerance=0)
    code, journal, _ = foreign(tmp_path, **{"steady-state-hypothesis": {"probes": [probe]}})
    assert code == 1
    assert journal["deviated"] is True
    finding = result(tmp_path)["findings"][0]
    assert finding["test_case"] == f"mutiny experiment run {tmp_path / 'e.json'}"
    assert journal["status"] == "failed"


def test_python_and_http_activities_run_inside_the_box(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def answer(configuration=None):\n    return configuration['number'] + 1\n"
    )
    serve = ["-m", "http.server", "8099", "--bind", "127.0.0.1"]
    shell = f"({' '.join(['python3', *serve])} >/dev/null 2>&1 &) ; sleep 2"
    code, journal, output = foreign(
        tmp_path,
        configuration={"number": 41},
        method=[
            process("action", "sh", "-c", shell),
            {
                "type": "probe",
                "name": "page",
                "tolerance": 200,
                "provider": {"type": "http", "url": "http://127.0.0.1:8099/", "timeout": 5},
            },
            {
                "type": "probe",
                "name": "answer",
                "tolerance": 42,
                "provider": {"type": "python", "module": "mine", "func": "answer"},
            },
        ],
    )
    assert code == 0, output
    assert [entry["tolerance_met"] for entry in journal["run"][1:]] == [True, True]
    assert journal["run"][2]["output"] == 42
