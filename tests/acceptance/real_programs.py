"""What the tests of all real programs share: an ordinary run passes, every kept replay fails as it says.

The programs are no part of this repository; an environment variable names each, and without it its tests
are skipped. Findings hold for the revision that their page names: a newer program that keeps a promise
again makes its replay fail here, which is good news.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mutiny.engine.loop import Outcome
from mutiny.engine.replay import Replay, load
from mutiny.engine.rundir import RunDirectory
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.targets.registry import find_target

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class RealProgram:
    """A program that somebody else wrote, and the findings about it."""

    target: str
    variable: str
    """The environment variable that names the program."""
    tries: Mapping[str, int] = field(default_factory=dict)
    """How often a replay may be tried, by the beginning of its name; the others once."""

    @property
    def program(self) -> str:
        return os.environ.get(self.variable, "")

    def marks(self, mark: pytest.MarkDecorator, timeout_s: int = 300) -> list[pytest.MarkDecorator]:
        """For `pytestmark`: its own mark, its limit, and that it is skipped where it is not."""
        here = bool(self.program) and os.access(self.program, os.X_OK)
        why = f"the real {self.target} is not here: {self.variable} names no executable program"
        return [mark, pytest.mark.timeout(timeout_s), pytest.mark.skipif(not here, reason=why)]

    def replays(self, without: str = "nothing") -> list[Path]:
        """All kept replays, in order, but those whose name begins so."""
        found = sorted((ROOT / "docs" / "findings" / self.target).glob("*.json"))
        return [path for path in found if not path.name.startswith(without)]

    def run(self, replay: Replay, directory: Path, program: str = "") -> Outcome:
        """One run in a box of its own."""
        name = replay.target or self.target
        target = str(ROOT / name) if name.endswith(".toml") else name
        bench = Bench(find_target(target, program=program or self.program), directory)
        trial = RunDirectory.create(directory, latest=False)
        return bench.try_once(replay.operations, replay.seed, trial)

    def passes(self, scenario: str, directory: Path) -> None:
        """An ordinary way through it is no bug."""
        contract = find_target(self.target, program=self.program).contract()
        outcome = self.run(Replay(contract.scenarios[scenario], contract.name), directory)
        assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]

    def reproduces(self, path: Path, directory: Path, program: str = "") -> None:
        """A replay breaks the rule that it names."""
        contract = find_target(self.target, program=self.program).contract()
        replay = load(path, contract.operations, contract.name)
        tries = max(
            (n for start, n in self.tries.items() if path.name.startswith(start)), default=1
        )
        seen = []
        for _ in range(tries):
            outcome = self.run(replay, directory, program)
            seen.append(outcome.rule or outcome.verdict.value)
            if replay.expect in outcome.rules:
                return
        pytest.fail(f"{path.name}: expected {replay.expect}, got {', '.join(seen)}")
