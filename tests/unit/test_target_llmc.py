"""LLMC's target file: it loads, knows LLMC's refusals by their real texts, fits the findings."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from mutiny.contracts.workers.operations import OPERATIONS
from mutiny.contracts.workers.rules import RULES
from mutiny.engine.replay import load
from mutiny.kit.answer import matched_classes
from mutiny.targets.registry import find_spec
from mutiny.targets.workers.spec import TargetSpec

FINDINGS = Path(__file__).parents[2] / "docs" / "findings" / "llmc"

REAL_TEXTS = [
    ("no_such_worker", "Error: Worker 'nobody' not found\nAvailable workers: alpha, beta"),
    ("no_such_worker", "Worker 'nobody' not found\nAvailable workers: none"),
    ("not_idle", "Error: Worker 'alpha' is not idle (current status: Working)"),
    ("not_needs_review", "Worker 'alpha' is in state Rebasing, not needs_review"),
    ("not_needs_review", "Error: Worker 'alpha' is in state Idle, not needs_review\nUse --force"),
    ("not_needs_review", "Worker 'alpha' is awaiting self-review (prompt not yet sent)"),
    ("not_needs_review", "Worker 'alpha' is currently performing self-review"),
    ("already_exists", "Error: Worker 'alpha' already exists."),
    ("bad_input", "Error: Invalid worker name: 'a b'"),
    ("bad_input", "Error: Rejection message cannot be empty"),
    ("bad_input", "error: unexpected argument '-s' found"),
    ("already_exists", "Error: A TMUX session named 'llmc-main' already exists."),
    ("nothing_reviewed", "Error: No previously reviewed worker found. Use 'llmc review' first."),
    (
        "nothing_reviewed",
        "Error: No worker specified and no previously reviewed worker found",
    ),
    (
        "daemon_running",
        "Error: LLMC workers are already running. Found 2 tracked TMUX sessions.",
    ),
    (
        "daemon_down",
        "Error: LLMC daemon is not running (no llmc-* TMUX sessions detected).",
    ),
    ("wrong_state", "Error: Worker 'alpha' is in state Idle, which cannot receive messages"),
    (
        "source_dirty",
        "Error: The master branch in source repository has uncommitted changes.",
    ),
    ("not_initialised", "Error: LLMC workspace not initialized. Run 'llmc init' first."),
    ("already_initialised", "Error: Target directory already exists: /box/home/llmc"),
    ("unhealthy", "Error: Health checks failed"),
    ("state_unreadable", "Error: Failed to parse state file: /box/home/llmc/state.json"),
    ("state_unreadable", "Error: Failed to read state file: /box/home/llmc/state.json"),
    (
        "state_unreadable",
        "Error: Worker 'alpha' has status needs_review but no commit_sha",
    ),
    (
        "state_unreadable",
        "Error: Worker 'alpha' has last_activity_unix timestamp in the future",
    ),
    ("busy", "Error: Failed to acquire state lock after 10.0s: held by 17"),
    (
        "session_missing",
        "Error: TMUX session 'llmc-alpha' does not exist for worker 'alpha'",
    ),
]


@pytest.mark.parametrize(("name", "text"), REAL_TEXTS, ids=lambda value: str(value)[:40])
def test_refusal_is_recognised_as_exactly_its_class(name: str, text: str) -> None:
    spec, _ = find_spec("llmc")
    assert isinstance(spec, TargetSpec)
    assert matched_classes(text, spec.rejections) == {name}


def test_every_class_of_refusals_has_a_real_text() -> None:
    spec, _ = find_spec("llmc")
    assert isinstance(spec, TargetSpec)
    assert {name for name, _ in REAL_TEXTS} == set(spec.rejections)


@pytest.mark.parametrize(
    "text",
    [
        "Error: Worktree path already exists: /box/home/llmc/.worktrees/alpha",
        "Error: Master branch was not updated after merge. This should not happen.",
    ],
)
def test_unexpected_failure_is_no_refusal(text: str) -> None:
    spec, _ = find_spec("llmc")
    assert isinstance(spec, TargetSpec)
    assert not matched_classes(text, spec.rejections)


def test_sessions_and_daemon_are_recognised() -> None:
    spec, _ = find_spec("llmc")
    assert isinstance(spec, TargetSpec)
    profile = spec.make_profile()
    assert spec.environment["LLMC_ROOT"] == "{home}/llmc", "else the sessions have another name"
    assert spec.commands["up"].background
    assert spec.commands["down"].stop_daemon == "INT", "LLMC dies raw of SIGTERM"
    assert profile.serves("Rebase") is None
    assert profile.needs_daemon == ("Start",)


def test_plain_down_differs_only_in_down() -> None:
    own = tomllib.loads(
        files("mutiny.targets.files").joinpath("llmc.toml").read_text(encoding="utf-8")
    )
    other = tomllib.loads((FINDINGS / "plain-down.toml").read_text(encoding="utf-8"))
    assert other["commands"].pop("down") != own["commands"].pop("down")
    for key in ("name", "about"):
        assert other.pop(key) != own.pop(key)
    assert other == own


@pytest.mark.parametrize("path", sorted(FINDINGS.glob("*.json")), ids=lambda path: path.stem)
def test_stored_replay_can_be_read(path: Path) -> None:
    replay = load(path, OPERATIONS, "workers")
    assert replay.expect in RULES
    assert replay.target is not None
    if replay.target.endswith(".toml"):
        TargetSpec.load(FINDINGS.parents[2] / replay.target)
    else:
        assert replay.target == "llmc"
