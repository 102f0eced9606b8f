"""What was not tested is never green: no way to get exit code 0 without having tested something."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from idle_targets import IDLE, excused_spec, idle_program
from mutiny.experiments.document import Mistakes
from mutiny.modes.experiment_files import load
from mutiny_command import Ran, longboat_spec, run_mutiny
from sampling import sampled_rows


def scenario(directory: Path, *operations: dict[str, object]) -> str:
    path = directory / "scenario.json"
    path.write_text(json.dumps(list(operations)))
    return str(path)


def summary(ran: Ran) -> dict[str, object]:
    data: dict[str, object] = json.loads(
        (ran.directory / "chaos_runs/latest/summary.json").read_text()
    )
    return data


RESET: dict[str, object] = {"type": "Reset", "args": {}}
INIT: dict[str, object] = {"type": "Init", "args": {}}
UP: dict[str, object] = {"type": "Up", "args": {}}


def test_a_target_that_is_not_there_is_inconclusive(tmp_path: Path) -> None:
    ran = run_mutiny(tmp_path, "run", "--scenario", "basic_lifecycle", "--bin", "/no/such/program")
    assert ran.code == 3
    assert ran.stderr.count("\n") == 1
    assert "/no/such/program does not exist" in ran.stderr


def test_a_file_that_is_no_program_is_inconclusive(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("not a program")
    ran = run_mutiny(tmp_path, "run", "--scenario", "basic_lifecycle", "--bin", str(plain))
    assert ran.code == 3
    assert "is no executable program" in ran.stderr


@pytest.mark.parametrize(
    ("fault", "complaint"),
    sampled_rows(
        [
            ({"type": "KillDaemon", "args": {}}, "no daemon to kill"),
            ({"type": "KillAgent", "args": {"worker": "alpha"}}, "no agent to kill"),
            ({"type": "KillTmuxServer", "args": {}}, "no tmux server to kill"),
            ({"type": "KillTmuxSession", "args": {"worker": "alpha"}}, "has no session"),
            ({"type": "PauseProcess", "args": {"role": "daemon"}}, "no daemon to pause"),
        ],
        every=2,
    ),
)
def test_a_fault_that_cannot_fire_is_inconclusive(
    tmp_path: Path, fault: dict[str, object], complaint: str
) -> None:
    # A short recovery limit: the fault waits that long for something to hit.
    spec = longboat_spec(tmp_path, ("recover_s = 12.0", "recover_s = 0.3"))
    ran = run_mutiny(
        tmp_path, "run", "--target", str(spec), "--scenario", scenario(tmp_path, RESET, INIT, fault)
    )
    assert ran.code == 3
    assert "Inconclusive" in ran.stdout
    assert complaint in ran.stdout


def test_an_oracle_that_cannot_look_is_inconclusive(tmp_path: Path) -> None:
    spec = longboat_spec(
        tmp_path,
        ("[logs]", '[git]\nrepositories = ["{source}", "{home}"]\n\n[logs]'),
        ("lag_s = 3.0", "lag_s = 0.3"),
    )
    ran = run_mutiny(
        tmp_path, "run", "--target", str(spec), "--scenario", scenario(tmp_path, RESET, INIT, UP)
    )
    assert ran.code == 3
    assert "git log in" in ran.stdout


def test_an_empty_sequence_proves_nothing(tmp_path: Path) -> None:
    ran = run_mutiny(tmp_path, "run", "--scenario", scenario(tmp_path))
    assert ran.code == 2
    assert "at least one operation" in ran.stderr


@pytest.mark.deep
def test_one_bad_scenario_among_good_ones_decides_the_exit_code(tmp_path: Path) -> None:
    inconclusive = scenario(tmp_path, RESET, INIT, {"type": "KillDaemon", "args": {}})
    ran = run_mutiny(
        tmp_path, "run", "--scenario", inconclusive, "--scenario", "basic_lifecycle", "--json"
    )
    assert ran.code == 3
    runs = json.loads(ran.stdout)["runs"]
    assert [run["verdict"] for run in runs] == ["inconclusive", "success"]


@pytest.mark.deep
def test_a_wait_for_what_is_not_due_is_inconclusive_not_a_pass(tmp_path: Path) -> None:
    path = scenario(
        tmp_path,
        RESET,
        INIT,
        UP,
        {"type": "Add", "args": {"worker": "alpha"}},
        {"type": "WaitForIdle", "args": {"worker": "alpha"}},
        {"type": "WaitForNeedsReview", "args": {"worker": "alpha", "timeout_seconds": 0.2}},
    )
    ran = run_mutiny(tmp_path, "run", "--scenario", path, "--no-minimise")
    assert ran.code == 3
    assert "nothing has moved for" in ran.stdout
    assert summary(ran)["verdict"] == "inconclusive"


# --- programs that do nothing ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "name", "how"),
    [
        *(("longboat", "basic_lifecycle", how) for how in list(IDLE)[::3]),
        *(("longboat-board", "ready_tasks", how) for how in ("says yes in JSON", "says no")),
    ],
)
def test_a_program_that_does_nothing_passes_nothing_whatever_it_is_excused_from(
    tmp_path: Path, target: str, name: str, how: str
) -> None:
    program = str(idle_program(tmp_path, how))
    spec = str(excused_spec(tmp_path, target))
    aimed = ("--target", spec, "--bin", program, "--no-minimise")
    ran = run_mutiny(tmp_path, "run", *aimed, "--scenario", name)
    assert ran.code in (1, 3, 4), ran.stdout
    assert "Not promised by the target, not checked: " in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize("how", IDLE)
@pytest.mark.parametrize("target", ["longboat", "longboat-board"])
def test_a_program_that_does_nothing_passes_not_one_scenario_or_seed(
    tmp_path: Path, how: str, target: str
) -> None:
    program = str(idle_program(tmp_path, how))
    spec = str(excused_spec(tmp_path, target))
    aimed = ("--target", spec, "--bin", program, "--no-minimise", "--json")
    runs = json.loads(run_mutiny(tmp_path, "run", *aimed, "--all-scenarios").stdout)["runs"]
    assert [run["title"] for run in runs if run["verdict"] == "success"] == []
    explored = run_mutiny(
        tmp_path, "explore", *aimed, "--seed", "1", "--seeds", "5", "--keep-going"
    )
    assert "success" not in json.loads(explored.stdout)["verdicts"]


def test_an_excuse_from_what_proves_that_anything_happened_is_refused(tmp_path: Path) -> None:
    path = excused_spec(tmp_path, "longboat")
    path.write_text(path.read_text() + '"workers.completes" = "it never does"\n')
    line = len(path.read_text().splitlines())
    ran = run_mutiny(tmp_path, "run", "--target", str(path), "--scenario", "basic_lifecycle")
    assert ran.code == 2
    assert f"{path.name}: line {line}: " in ran.stderr
    assert "nobody is excused from this rule" in ran.stderr


# --- sequences in which nothing is asked ---------------------------------------------------------------

SLEEP = {"type": "Sleep", "args": {"seconds": 0.01}}
STARVED = {"type": "StarveCpu", "args": {"share": 0.3, "lasting": True}}
STATUS = {"type": "Status", "args": {}}
KILLED_LATE = {"operation": STATUS, "after_ms": 60_000, "whole": False}


@pytest.mark.parametrize(
    ("operations", "reason"),
    sampled_rows(
        [
            ([SLEEP], "no command of the target ran"),
            ([{"type": "DirtySource", "args": {}}, SLEEP], "no command of the target ran"),
            ([{"type": "Heal", "args": {}}], "no command of the target ran"),
            ([INIT, UP, {"type": "KillDaemon", "args": {}}], "after KillDaemon"),
            ([INIT, UP, STARVED, SLEEP, {"type": "Heal", "args": {}}, STATUS], "was on"),
            (
                [INIT, {"type": "SkewClock", "args": {"offset_s": 60, "seconds": 0.1}}, STATUS],
                "running",
            ),
            ([INIT, {"type": "KillDuring", "args": KILLED_LATE}, STATUS], "nothing was killed"),
            ([INIT, {"type": "DamageFile", "args": {"how": "stale"}}, STATUS], "nothing that"),
            (
                [INIT, {"type": "Add", "args": {"worker": "alpha", "prompt": "Create a.txt"}}],
                "takes no prompt with",
            ),
        ],
        every=2,
    ),
)
def test_a_sequence_that_tests_nothing_is_inconclusive(
    tmp_path: Path, operations: list[dict[str, object]], reason: str
) -> None:
    path = scenario(tmp_path, RESET, *operations)
    program = ("--bin", "/bin/false") if INIT not in operations else ()
    ran = run_mutiny(tmp_path, "run", "--scenario", path, *program)
    assert ran.code == 3, ran.stdout
    assert reason in ran.stdout
    assert summary(ran)["verdict"] == "inconclusive"


METHODS = (
    "[heal]",
    "[{wait: 10ms}]",
    "[status]",
    '[{verify: "No worker is in error"}]',
    "[heal, {wait: 10ms}, status]",
)


@pytest.mark.parametrize("method", METHODS)
def test_an_experiment_that_does_nothing_is_refused(tmp_path: Path, method: str) -> None:
    path = tmp_path / "idle.yaml"
    path.write_text(
        "experiment:\n  name: idle\n  blast_radius: whole box\n"
        f'  steady_state: ["No worker is in error"]\n  method: {method}\n'
    )
    with pytest.raises(Mistakes, match=r"5: the method only waits and looks"):
        load(path, "longboat")


# --- verbs that are asked to do nothing ----------------------------------------------------------------

NOTHING = (
    ("replay", "{replay}", "--times", "0"),
    ("replay", "{replay}", "--times", "0", "--expect", "workers.no_crash"),
    ("replay", "{replay}", "--times", "-1"),
    ("explore", "--ops", "-1"),
    ("explore", "--ops", "0"),
    ("explore", "--seeds", "0"),
    ("explore", "--seeds", "2", "--minutes", "nan"),
    ("explore", "--seeds", "2", "--minutes", "0"),
    ("explore", "--seeds", "2", "--jobs", "-1"),
    ("explore", "--seeds", "2", "--jobs", "0"),
    ("run", "--until-error", "--rounds", "0"),
    ("sweep", "crash", "--scenario", "basic_lifecycle", "--at", "Init", "--points", "0"),
    ("race", "--target", "longboat-broker", "--kind", "lock", "--rounds", "0"),
    ("race", "--schedules", "0"),
    ("load", "--claims", "0"),
    ("load", "--cycles", "0"),
    ("load", "--tasks", ""),
    ("minimise", "{replay}", "--trials", "0"),
    ("minimise", "{replay}", "--confirm", "0/0"),
)


@pytest.mark.parametrize("words", NOTHING, ids=" ".join)
def test_no_verb_succeeds_in_doing_nothing(
    tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    from mutiny.cli.main import main

    replay = scenario(tmp_path, RESET, INIT)
    argv = [word.format(replay=replay) for word in words]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert main(argv) in (2, 3)
    said = capsys.readouterr()
    assert said.err or "Not tried" in said.out
