"""A contract from outside: one registration, and every mode works on it, finds its plants and passes the
healthy one.

`tests/toy` holds all of it: a program, the contract, a target file, an experiment. `docs/new-contract.md`
walks through it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mutiny_command import Ran, run_mutiny

pytestmark = pytest.mark.deep

TOY = Path(__file__).parents[1] / "toy"
CONTRACT = TOY / "counter_contract"
MOST_LINES = 250


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract's package as pip leaves it: one entry point."""
    about = tmp_path / "site" / "counter_contract-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: counter-contract\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[mutiny.contracts]\ncounter = counter_contract.descriptor:DESCRIPTOR\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{about.parent}:{TOY}")


def mutiny(directory: Path, *arguments: str, plant: str = "", seconds: float = 100.0) -> Ran:
    planted = ("--plant", plant) if plant else ()
    target = ("--target", str(TOY / "counter.toml"), "--bin", str(TOY / "counter"))
    return run_mutiny(directory, *arguments, *target, *planted, limit_s=seconds)


def test_it_is_small() -> None:
    lines = sum(len(path.read_text().splitlines()) for path in CONTRACT.glob("*.py"))
    assert lines < MOST_LINES


def test_it_is_listed_like_any_other(tmp_path: Path) -> None:
    ran = run_mutiny(tmp_path, "scenarios", "--contract", "counter")
    assert "up_and_down" in ran.stdout
    assert "counter.count_kept" in run_mutiny(tmp_path, "rules").stdout
    said = run_mutiny(tmp_path, "experiment", "list", "--sentences", "--contract", "counter")
    assert "The count is {number:number}" in said.stdout


def test_mistakes_in_its_target_file_have_lines(tmp_path: Path) -> None:
    text = (TOY / "counter.toml").read_text().replace("{amount}", "{amuont}")
    (tmp_path / "wrong.toml").write_text(text)
    ran = run_mutiny(tmp_path, "target", "check", "wrong.toml")
    assert ran.code == 2
    assert "unknown placeholder {amuont} (did you mean 'amount'?)" in ran.stderr
    assert "line " in ran.stderr


def test_scenarios_minimise_report_and_replay(tmp_path: Path) -> None:
    healthy = mutiny(tmp_path, "run", "--all-scenarios")
    assert healthy.code == 0, healthy.stdout + healthy.stderr
    found = mutiny(tmp_path, "run", "--scenario", "up_and_down", plant="takes-too-much")
    assert found.code == 1, found.stdout + found.stderr
    run = tmp_path / "chaos_runs" / "latest"
    replay = json.loads((run / "minimal_replay.json").read_text())
    assert replay["contract"] == "counter"
    assert replay["expect"] == "counter.rejects_illegal"
    assert [one["type"] for one in replay["operations"]] == ["Reset", "Init", "ExpectError"]
    assert "Take(amount=9)" in (run / "error_report.md").read_text()
    again = ("replay", str(run), "--expect", "counter.rejects_illegal")
    assert mutiny(tmp_path, *again, plant="takes-too-much").code == 0
    assert mutiny(tmp_path, *again, "--plant", "").code != 0


@pytest.mark.slow
def test_exploration(tmp_path: Path) -> None:
    words = ("explore", "--seed", "1", "--seeds", "3", "--ops", "12")
    healthy = mutiny(tmp_path, *words)
    assert healthy.code == 0, healthy.stdout + healthy.stderr
    found = mutiny(tmp_path, *words, "--no-minimise", plant="takes-too-much")
    assert found.code == 1
    assert "counter.rejects_illegal" in found.stdout


@pytest.mark.parametrize(
    ("kind", "only", "plant", "rule"),
    [
        ("crash", (), "not-atomic", "counter.state_readable"),
        pytest.param(
            *("errno", ("ENOSPC",), "not-atomic", "counter.state_readable"), marks=pytest.mark.slow
        ),
        pytest.param(
            *("errno", ("EIO",), "unreadable-is-empty", "counter.count_kept"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("torn", ("kill", "short"), "not-atomic", "counter.state_readable"),
            marks=pytest.mark.slow,
        ),
        pytest.param(*("preempt", (), "no-lock", "counter.count_kept"), marks=pytest.mark.slow),
    ],
)
def test_sweeps(tmp_path: Path, kind: str, only: tuple[str, ...], plant: str, rule: str) -> None:
    chosen = tuple(word for one in only for word in ("--only", one))
    scenario, at = ("together", "Add#2") if only == ("EIO",) else ("up_and_down", "Add")
    words = ("sweep", kind, "--scenario", scenario, "--at", at, *chosen, "--json")
    healthy = mutiny(tmp_path, *words)
    assert healthy.code == 0, healthy.stdout + healthy.stderr
    told = json.loads(healthy.stdout)
    assert len(told["points"]) >= 2
    assert {point["verdict"] for point in told["points"]} == {"success"}
    found = mutiny(tmp_path, *words, "--until-bug", plant=plant)
    assert found.code == 1, found.stdout + found.stderr
    assert rule in {point["rule"] for point in json.loads(found.stdout)["points"]}


def test_experiments(tmp_path: Path) -> None:
    words = ("experiment", "run", str(TOY / "slow_disk.yaml"))
    healthy = mutiny(tmp_path, *words)
    assert healthy.code == 0, healthy.stdout + healthy.stderr
    found = mutiny(tmp_path, *words, "--no-minimise", plant="takes-too-much")
    assert found.code == 1, found.stdout + found.stderr
    assert "counter.rejects_illegal" in found.stdout
    assert (tmp_path / "chaos_runs" / "latest" / "chaos_report.html").exists()


def test_what_it_cannot_do_is_said(tmp_path: Path) -> None:
    ran = mutiny(tmp_path, "race")
    assert ran.code == 2
    assert "is a counter; `mutiny race` needs a board" in ran.stderr
