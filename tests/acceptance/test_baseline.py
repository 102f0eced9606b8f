"""`mutiny run --baseline`: a command that got slower is found, and nothing else is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mutiny_command import run_mutiny

NAMES = ("ready_tasks", "dependencies", "ownership", "priority")
WORDS = ("run", "--target", "longboat-board", *(w for n in NAMES for w in ("--scenario", n)))
LONGBOAT = Path(sys.executable).with_name("longboat")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_command_that_got_slower_is_found(tmp_path: Path) -> None:
    repeat = ("--repeat", "3")
    kept = run_mutiny(tmp_path, *WORDS, *repeat, "--save-baseline", "times.json", limit_s=300)
    assert kept.code == 0, kept.stderr
    same = run_mutiny(tmp_path, *WORDS, *repeat, "--baseline", "times.json", "--json", limit_s=300)
    assert same.code == 0, same.stdout
    slow = tmp_path / "slow-longboat"
    slow.write_text(
        f'#!/bin/sh\ncase " $* " in *" claim "*) sleep 1;; esac\nexec {LONGBOAT} "$@"\n'
    )
    slow.chmod(0o755)
    words = (*WORDS, "--bin", str(slow), *repeat, "--baseline", "times.json", "--json")
    late = run_mutiny(tmp_path, *words, limit_s=300)
    assert late.code == 5, late.stdout
    rows = json.loads(late.stdout)["times"]["operations"]
    assert [row["operation"] for row in rows if row["became"] == "slower"] == ["Claim"]


def test_a_baseline_that_is_none_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "times.json").write_text('{"format": 1, "target": "other", "operations": {}}')
    ran = run_mutiny(tmp_path, *WORDS, "--baseline", "times.json")
    assert ran.code == 2
    assert "it was measured on 'other'" in ran.stderr
    assert not (tmp_path / "chaos_runs").exists()
