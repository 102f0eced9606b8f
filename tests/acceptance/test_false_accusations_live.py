"""Healthy longboat is never accused: under another name, after damage to its state, without its daemon, and
when it is slow. The pure side of the same classes is in `tests/unit/test_false_accusations.py`.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mutiny_command import longboat_spec, run_mutiny
from sampling import sampled

pytestmark = pytest.mark.deep

Deed = tuple[str, dict[str, Any]]
"""An operation's name and its arguments."""
LONGBOAT = Path(sys.executable).parent / "longboat"

READY: tuple[Deed, ...] = (
    ("Reset", {}),
    ("Init", {}),
    ("Up", {}),
    ("Add", {"worker": "alpha"}),
    ("WaitForIdle", {"worker": "alpha"}),
)
END: tuple[Deed, ...] = (("Up", {}), ("Settle", {}), ("Status", {}), ("Down", {}))


def scenario(directory: Path, *operations: Deed) -> str:
    path = directory / "scenario.json"
    path.write_text(json.dumps([{"type": name, "args": args} for name, args in operations]))
    return str(path)


# --- another name ----------------------------------------------------------------------------------


def linked(program: Path, place: Path) -> None:
    place.symlink_to(program)


def copied(program: Path, place: Path) -> None:
    shutil.copy2(program, place)


def wrapped(program: Path, place: Path) -> None:
    place.write_text(f'#!/bin/sh\n{program} "$@"\n')
    place.chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize("rename", sampled([linked, copied, wrapped], every=3))
@pytest.mark.parametrize(
    "name", ["daemon_crash", pytest.param("basic_lifecycle", marks=pytest.mark.slow)]
)
def test_a_program_with_another_name_passes(
    tmp_path: Path, rename: Callable[[Path, Path], None], name: str
) -> None:
    sloop = tmp_path / "sloop"
    rename(LONGBOAT, sloop)
    ran = run_mutiny(tmp_path, "run", "--scenario", name, "--bin", str(sloop), "--no-minimise")
    assert ran.code == 0, ran.stdout + ran.stderr


def replaced(program: Path, place: Path) -> None:
    place.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    place.chmod(0o755)


@pytest.mark.parametrize("rename", sampled([wrapped, replaced], every=2))
def test_a_server_behind_a_script_is_known(
    tmp_path: Path, rename: Callable[[Path, Path], None]
) -> None:
    rename(LONGBOAT, sloop := tmp_path / "sloop")
    words = ("--target", "longboat-crew", "--scenario", "server_kill", "--bin", str(sloop))
    ran = run_mutiny(tmp_path, "run", *words, "--no-minimise")
    assert ran.code == 0, ran.stdout + ran.stderr


@pytest.mark.slow
def test_the_daemon_is_found_without_a_hint(tmp_path: Path) -> None:
    target = longboat_spec(tmp_path, (r"argv = 'longboat\S* (--home \S+ )?up( |$)'", ""))
    ran = run_mutiny(
        tmp_path, "run", "--scenario", "daemon_crash", "--target", str(target), "--no-minimise"
    )
    assert ran.code == 0, ran.stdout + ran.stderr


# --- what a fault wrote ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    sampled(
        [
            ("CorruptState", {"how": "delete"}),
            ("CorruptState", {"how": "truncate"}),
            ("DamageFile", {"how": "stale"}),
            ("DamageFile", {"how": "flip", "seed": 30}),
        ],
        every=4,
    ),
    ids=lambda damage: f"{damage[0]}-{damage[1]['how']}",
)
def test_a_damaged_state_that_nobody_could_repair_accuses_nobody(
    tmp_path: Path, damage: tuple[str, dict[str, object]]
) -> None:
    """The daemon dies before it can put the state right; the next one does."""
    steps: tuple[Deed, ...] = (*READY, damage, ("KillDaemon", {}), ("Settle", {}), *END)
    ran = run_mutiny(tmp_path, "run", "--scenario", scenario(tmp_path, *steps), "--no-minimise")
    assert ran.code == 0, ran.stdout + ran.stderr


FLIPS = range(1, 200, 9)


@pytest.mark.slow
def test_a_flipped_bit_anywhere_accuses_nobody(tmp_path: Path) -> None:
    """In names of fields, in values, in the checksum: the daemon notices, and no step says otherwise."""
    busy: tuple[Deed, ...] = (
        ("Behave", {"worker": "alpha", "turns": ["slow:60000"]}),
        ("Start", {"worker": "alpha", "prompt": "Create a.txt"}),
        ("WaitForPrompt", {"worker": "alpha"}),
    )
    flips = tuple(("DamageFile", {"how": "flip", "seed": seed}) for seed in FLIPS)
    ran = run_mutiny(
        tmp_path,
        *("run", "--scenario", scenario(tmp_path, *READY, *busy, *flips, ("Status", {}))),
        "--no-minimise",
    )
    assert ran.code == 0, ran.stdout + ran.stderr


# --- nobody is there ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_agent_may_end_its_rebase_while_the_daemon_is_dead(tmp_path: Path) -> None:
    steps: tuple[Deed, ...] = (
        *READY,
        ("Start", {"worker": "alpha", "prompt": "Create shared.txt with 'alpha was here'"}),
        ("MoveSource", {"path": "shared.txt"}),
        ("WaitForNeedsReview", {"worker": "alpha"}),
        ("Behave", {"worker": "alpha", "turns": ["resolve"]}),
        ("Accept", {"worker": "alpha"}),
        ("KillDaemon", {}),
        ("Sleep", {"seconds": 4.0}),
        *END,
    )
    ran = run_mutiny(tmp_path, "run", "--scenario", scenario(tmp_path, *steps), "--no-minimise")
    assert ran.code == 0, ran.stdout + ran.stderr


# --- slow is not stuck -------------------------------------------------------------------------------


def test_a_target_whose_every_command_is_slow_is_not_stuck(tmp_path: Path) -> None:
    """A second a command, hooks too, and limits that are shorter than one of them."""
    slow = tmp_path / "slow"
    slow.write_text(f'#!/bin/sh\nsleep 1\nexec {LONGBOAT} "$@"\n')
    slow.chmod(0o755)
    short = ("complete_s = 9.0", "complete_s = 0.5"), ("recover_s = 12.0", "recover_s = 0.5")
    target = longboat_spec(tmp_path, *short)
    ran = run_mutiny(
        tmp_path,
        *("run", "--scenario", "basic_lifecycle", "--no-minimise"),
        *("--target", str(target), "--bin", str(slow)),
    )
    assert ran.code == 0, ran.stdout + ran.stderr
