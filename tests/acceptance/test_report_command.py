"""`error_report.md` for somebody who has to fix the bug: what it says is so, what it prints works."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from mutiny_command import COMMAND, LIMIT_S, Ran, run_mutiny


def report_of(ran: Ran, root: Path) -> str:
    (found,) = root.glob("run_*/error_report.md")
    assert ran.code == 1, ran.stdout + ran.stderr
    return found.read_text(encoding="utf-8")


def printed_command(report: str) -> str:
    found = re.search(r"^- \*\*Replay\*\*: `(.+)`$", report, re.MULTILINE)
    assert found is not None, report
    return found[1]


def test_the_printed_command_repeats_the_bug_from_anywhere(tmp_path: Path) -> None:
    """Target file, program and run directory that only this call knows, with blanks in their names."""
    place = tmp_path / "some place"
    place.mkdir()
    own = files("mutiny.targets.files").joinpath("longboat-board.toml").read_text(encoding="utf-8")
    broken = own.replace("{plant}", "crash-on-missing-dependency")
    assert broken != own
    (place / "my board.toml").write_text(broken, encoding="utf-8")
    program = place / "long boat"
    shutil.copy(Path(COMMAND).parent / "longboat", program)
    ran = run_mutiny(
        *(place, "run", "--target", "./my board.toml", "--bin", str(program)),
        *("--scenario", "cycles", "--no-minimise", "--runs", "our runs"),
    )
    report = report_of(ran, place / "our runs")
    assert "- **Violated Rule**: board.no_crash" in report
    assert "- **Target**: longboat-board\n" in report
    assert f"- **Program**: {program} (longboat 0.1.0)" in report
    assert re.search(r"^- \*\*Run\*\*: scenario cycles, seed \d+, Mutiny ", report, re.MULTILINE)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    again = subprocess.run(
        printed_command(report),
        shell=True,
        cwd=elsewhere,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert again.returncode == 1, again.stdout + again.stderr
    assert "board.no_crash" in again.stdout


@pytest.mark.slow
def test_a_forced_order_is_told_in_calls_and_not_called_undisturbed(tmp_path: Path) -> None:
    ran = run_mutiny(
        *(tmp_path, "race", "--plant", "board-without-lock", "--kind", "claims", "--rounds", "0")
    )
    report = report_of(ran, tmp_path / "chaos_runs")
    assert "- **Violated Rule**: board.single_owner" in report
    assert "Also Broken" not in report, "after a wrong answer nobody knows what the state should be"
    lanes = re.findall(r"^Claim\(worker=\"w\d\", task=\"task\"\)  ([#.]+)$", report, re.MULTILINE)
    assert len(lanes) == 2
    assert len(lanes[0]) == len(lanes[1])
    assert all(one != other for one, other in zip(*lanes, strict=True)), "one moves at a time"
    assert re.search(r"is stopped before `\w+ \S*board\.json", report)
    assert "No fault" not in report
