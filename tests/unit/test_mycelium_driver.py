"""The driver of the real Mycelium: its configuration, its planner's answer, and what its words mean."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

import pytest

from mutiny.contracts.batch.contract import BatchContract
from mutiny.contracts.batch.knobs import Knobs
from mutiny.doubles.tasks.records import Desk
from mutiny.targets.batch.spec import BatchSpec
from mutiny.targets.drivers import mycelium
from mutiny.targets.drivers.mycelium import Place

STATUS = """\
Run: 20261117-025805
Status: paused
Started: 1
Updated: 2

Batches: total=1  pending=0
Tasks: total=2  pending=1
Tasks:
  ID  Status              Attempts  Branch
  a   needs_human_review  1         agent/a-task
  b   pending             0         -
"""


def place(tmp_path: Path) -> Place:
    return Place({"SOURCE": str(tmp_path), "DESK": "/desk", "OWN": str(tmp_path / "own")})


def knobs(**changed: str) -> dict[str, str]:
    words = Knobs().__dict__
    return {name: str(value) for name, value in words.items()} | changed


def test_retries_are_told_as_attempts(tmp_path: Path) -> None:
    made = mycelium.configuration(place(tmp_path), knobs(max_retries="2"))
    assert made["max_retries"] == 3


def test_it_is_not_asked_to_stop_at_a_failure() -> None:
    """Its `fail_fast` only keeps a task from being set back; the others go on, and the run waits."""
    path = Path(str(files("mutiny.targets.files").joinpath("mycelium.toml")))
    spec = BatchSpec.load(path)
    assert "failure_policy" not in spec.knobs
    assert "stop_at_failure" not in BatchContract(spec.profile).scenarios


def test_what_is_off_is_not_mentioned(tmp_path: Path) -> None:
    made = mycelium.configuration(place(tmp_path), knobs(task_tokens="100"))
    assert "budgets" not in made
    assert "test_validator" not in made


def test_budgets_and_validators_are_told(tmp_path: Path) -> None:
    wanted = knobs(budget="block", task_tokens="100", style="block")
    made = mycelium.configuration(place(tmp_path), wanted)
    assert made["budgets"] == {"mode": "block", "max_tokens_per_task": 100}
    assert made["style_validator"]["mode"] == "block"


@pytest.mark.parametrize(("enforced", "locks"), [(True, ["task-a", "shared"]), (False, ["task-a"])])
def test_a_plan_locks_what_it_writes(tmp_path: Path, enforced: bool, locks: list[str]) -> None:
    row = {"id": "a", "name": "Task a", "prompt": "Do task a", "depends": [], "reads": []}
    rows = [{**row, "writes": [], "files": ["work/a.txt", "shared.txt"]}]
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"tasks": rows}))
    where = place(tmp_path)
    (task,) = mycelium.planned(where, str(file), enforced=enforced)["tasks"]
    assert task["locks"]["writes"] == locks
    assert where.resources()["task-a"] == ["work/a.txt", "extra/a.test.txt"]


def test_a_run_that_failed_has_failed_whatever_its_exit_code_is() -> None:
    said = "Run r1 finished with status: failed\n"
    assert mycelium.understood("run", 0, said, plain=False)[0] == 1
    assert mycelium.understood("run", 0, said, plain=True)[0] == 0


def test_a_refusal_with_exit_0_is_a_refusal() -> None:
    code, answer, refusal = mycelium.understood("resume", 0, "No runs found for boxed.", plain=True)
    assert (code, answer) == (1, "")
    assert "No runs found" in refusal


def test_a_table_of_tasks_is_read() -> None:
    code, answer, _ = mycelium.understood("status", 0, STATUS, plain=False)
    said = json.loads(answer)
    assert code == 0
    assert said["status"] == "paused"
    assert said["tasks"]["a"] == {"status": "needs_human_review"}
    assert said["tasks"]["b"] == {"status": "pending"}


@pytest.mark.parametrize(
    ("kind", "field"), [("test", "coverage_gaps"), ("architecture", "recommendations")]
)
def test_a_verdict_has_the_fields_that_its_validator_wants(kind: str, field: str) -> None:
    verdict = json.loads(mycelium._verdict('{"pass": true, "summary": "s"}', kind))
    assert verdict["pass"] is True
    assert verdict[field] == []


def test_what_is_no_verdict_stays_none() -> None:
    assert mycelium._verdict("no verdict at all", "test") == "no verdict at all"


def test_what_a_validator_cries_is_no_word_of_the_program(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    gate = tmp_path / "gate"
    gate.write_text("#!/bin/sh\necho gate: not found >&2\nexit 127\n")
    gate.chmod(0o755)
    names = {"SOURCE": str(tmp_path), "DESK": str(tmp_path), "OWN": str(tmp_path)}

    class Asked(mycelium.Model):
        place = Place(names)
        begin = staticmethod(partial(subprocess.Popen, text=True))

    with ThreadingHTTPServer(("127.0.0.1", 0), Asked) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        client = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
        client.request(
            "POST", "/", json.dumps({"messages": [{"content": next(iter(mycelium.WHICH))}]})
        )
        assert client.getresponse().status == 503
        client.close()
        thread.join(20)
    assert "not found" not in capfd.readouterr().err


@pytest.mark.parametrize("does", ["works", "fails"])
def test_its_agent_tells_what_it_used_also_when_it_fails(tmp_path: Path, does: str) -> None:
    """A budget counts what agents told; the double writes down no other tokens than it tells."""
    words = "import sys; from mutiny.doubles.tasks import codex, records;"
    words += "codex.main(records.Desk(sys.argv[1]), ['exec', '--cd', sys.argv[1]])"
    done = subprocess.run(
        [sys.executable, "-c", words, str(tmp_path)],
        input=f"Do task a [does={does} tokens=80]",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (does == "fails")
    told = [json.loads(line).get("usage", {}) for line in done.stdout.splitlines()]
    record = [json.loads(line) for line in (tmp_path / "record.jsonl").read_text().splitlines()]
    assert [one["input_tokens"] for one in told if one] == [record[-1]["tokens"]] == [80]


def test_a_moment_may_be_for_the_first_one_alone(tmp_path: Path) -> None:
    """Another command that comes to the same moment is not to wait for itself."""
    (tmp_path / "holds").mkdir()
    hold, reached = tmp_path / "holds" / "doctor", tmp_path / "holds" / "doctor.reached"
    desk = Desk(str(tmp_path))
    hold.write_text("one")
    first = threading.Thread(target=desk.hold, args=("doctor",))
    first.start()
    while not reached.exists():
        first.join(0.01)
    desk.hold("doctor")
    assert first.is_alive()
    hold.unlink()
    first.join(20)
    assert not first.is_alive()
