"""A rule that no plant breaks is broken by a changed copy of longboat: one or two edits, one scenario."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mutiny.engine.rundir import RunDirectory
from mutiny.modes.bench import Bench
from mutiny.targets.registry import find_target
from sampling import sampled

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from mutation.reach import program_of  # noqa: E402

pytestmark = pytest.mark.deep

Edit = tuple[str, str, str]


@dataclass(frozen=True)
class Mutant:
    """A rule, the target and scenario that show it, and edits: file, old text, new text."""

    rule: str
    target: str
    scenario: str
    edits: tuple[Edit, ...]


_CLOSED = """\
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
"""
MUTANTS = (
    Mutant(
        "workers.default_moves_forward",
        "longboat",
        "commit_after_review",
        (
            (
                "workers/landing.py",
                "worker = turns.rebase(transaction, worker, base)",
                'base = transaction.git.ask("merge-base", base, head)',
            ),
            (
                "workers/landing.py",
                "*(transaction.trunk, intent.commit, intent.base)",
                "*(transaction.trunk, intent.commit)",
            ),
        ),
    ),
    Mutant(
        "workers.checkout_clean",
        "longboat",
        "basic_lifecycle",
        (("workers/landing.py", "bring_checkout(transaction, checkout, intent)", "pass"),),
    ),
    Mutant(
        "workers.doctor_agrees",
        "longboat",
        "honest_doctor",
        (("workers/doctor.py", "1 if problems else 0)", "0)"),),
    ),
    Mutant(
        "board.numbers_are_true",
        "longboat-board",
        "retry_backoff",
        (("board/transitions.py", "attempts = task.attempts + 1", "attempts = task.attempts + 2"),),
    ),
    Mutant(
        "board.answers_truly",
        "longboat-board",
        "ready_tasks",
        (("board/transitions.py", '"description": taken.description,', ""),),
    ),
    Mutant(
        "board.no_crash",
        "longboat-crew",
        "ready_tasks",
        (
            (
                "board/crew.py",
                "    answer = json.loads(received)\n",
                '    answer = json.loads(received)\n    assert command.verb != "list"\n',
            ),
        ),
    ),
    Mutant(
        "workers.answers_truly",
        "longboat",
        "basic_lifecycle",
        (("workers/commands.py", '"status": worker.status, "commit_sha": head,', ""),),
    ),
    Mutant(
        "workers.no_crash",
        "longboat",
        "basic_lifecycle",
        (("workers/tick.py", "memory.first = False", "memory.first = memory.nothing"),),
    ),
    Mutant(
        "workers.no_growth",
        "longboat",
        "multi_worker_chaos",
        (("workers/store.py", _CLOSED, "    os.fsync(os.open(path, os.O_RDONLY))\n"),),
    ),
    Mutant(
        "workers.nuked_is_gone",
        "longboat",
        "nuke_and_return",
        (
            (
                "workers/worktrees.py",
                "        _remove_tree(admin)\n    _remove_tree",
                "        pass\n    _remove_tree",
            ),
        ),
    ),
    Mutant(
        "workers.repair_is_honest",
        "longboat",
        "doctor_sees_dead_agent",
        (("workers/doctor.py", "not daemon_alive and agents.is_dead(worker)", "False"),),
    ),
    Mutant(
        "workers.status_is_honest",
        "longboat",
        "honest_doctor",
        (("workers/view.py", '"commit_sha": worker.commit_sha', '"commit_sha": "1" * 40'),),
    ),
    Mutant(
        "board.stop_costs_nothing",
        "longboat-fleet",
        "crew_stopped",
        (("board/daemon.py", 'self._say("release", taken)', 'self._say("fail", taken, "down")'),),
    ),
)


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A box hides what lies in temporary directories: programs lie beside the project."""
    directory = ROOT / ".mutants" / "tests" / str(request.node.name)
    shutil.rmtree(directory, ignore_errors=True)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.parametrize("mutant", sampled(MUTANTS, every=7), ids=lambda mutant: mutant.rule)
def test_the_rule_finds_it(mutant: Mutant, place: Path, tmp_path: Path) -> None:
    program = program_of(ROOT / "src" / "longboat", place)
    for name, old, new in mutant.edits:
        file = place / "longboat" / name
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, old
        file.write_text(text.replace(old, new), encoding="utf-8")
    bench = Bench(find_target(mutant.target, program=str(program)), tmp_path)
    sequence = bench.target.contract().scenarios[mutant.scenario]
    trial = RunDirectory.create(tmp_path, latest=False)
    outcome = bench.try_once(sequence, 1, trial)
    assert outcome.rule == mutant.rule, outcome.steps[-1]
