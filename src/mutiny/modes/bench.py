"""The test bench: one target, and the ways to run sequences against it.

All modes share this: they make operations, the bench runs them through the one loop, keeps the
evidence, minimises and writes the reports.
"""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutiny import __version__, stopping
from mutiny.engine.known import KnownFindings
from mutiny.engine.loop import Engine
from mutiny.engine.progress import this_process
from mutiny.engine.rundir import FORMAT, RunDirectory
from mutiny.model.operation import Operation
from mutiny.model.verdict import Verdict
from mutiny.report.summary import write_summary
from mutiny.system.files import BoxPath
from mutiny.targets.kit.profiling import FOLDER as PROFILE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mutiny.engine.causes import Causes
    from mutiny.engine.loop import Listener, Outcome
    from mutiny.engine.minimise import Budget, Progress
    from mutiny.engine.replay import Replay
    from mutiny.modes.subject import Subject
    from mutiny.report.origin import Origin


@dataclass(frozen=True)
class Assignment:
    """One run to do."""

    operations: tuple[Operation, ...]
    title: str
    seed: int = 0
    mode: str = "scenario"
    question: str = ""
    """What it is to show, in a sentence."""
    rollback: tuple[Operation, ...] = ()
    """Runs at the end in any case."""
    repeats: bool = False
    """A failure is tried again: it may end with a fault."""


@dataclass(frozen=True)
class Bench:
    """Runs assignments against one target."""

    target: Subject
    root: Path
    minimise_budget: Budget | None = None
    """None: no minimisation; the replay is then the whole sequence."""
    directory: RunDirectory | None = None
    """The directory of the first run, when it was made already."""
    causes: Causes | None = None
    """The causes of all failing runs so far: each is minimised once. None: every failure is."""
    known: KnownFindings = field(default_factory=KnownFindings)
    """What is known of the target already: it is not minimised again."""

    def run(
        self,
        assignment: Assignment,
        listeners: Sequence[Listener] = (),
        *,
        watch: Callable[[Progress], None] = lambda _: None,
        on_minimise: Callable[[Outcome], None] = lambda _: None,
        on_directory: Callable[[RunDirectory], None] = lambda _: None,
    ) -> Outcome:
        """Run, keep the evidence of a failure, minimise it, write summary and report."""
        with stopping.held_off():
            with stopping.let_in():
                directory = self.directory or RunDirectory.create(self.root)
                on_directory(directory)
                directory.write_json(directory.plan_path, self.plan(assignment))
                outcome = self._execute(assignment, directory, listeners)
            return self._write(outcome, assignment, on_minimise, watch)

    def _write(
        self,
        outcome: Outcome,
        assignment: Assignment,
        on_minimise: Callable[[Outcome], None],
        watch: Callable[[Progress], None],
    ) -> Outcome:
        """Everything that is kept of a run; a wish to stop only cuts the minimising short."""
        directory = outcome.directory
        self._snapshot(outcome)
        if self.target.options.profiled:
            from mutiny.system.keepsakes import Keepsake

            profile = Keepsake(BoxPath(directory.box_path) / PROFILE)
            directory.keep_copies({PROFILE: profile})
        replay = None
        if outcome.rule is not None:
            on_minimise(outcome)
            fresh = self.known.entry_for(outcome) is None and (
                self.causes is None or self.causes.is_new(outcome)
            )
            replay = self._shortest(
                assignment, outcome, watch, self.minimise_budget if fresh else None
            )
            directory.write_json(directory.replay_path, replay.as_json())
            outcome = replace(outcome, replay=replay)
        write_summary(outcome, self.target.contract(), assignment.title, assignment.seed, replay)
        if outcome.verdict is Verdict.SUCCESS:
            directory.discard_box()
        else:
            from mutiny.report.error_report import write_failure

            origin = self.origin(assignment, outcome)
            write_failure(outcome, self.target.contract(), replay, origin)
        return outcome

    def engine(self, directory: RunDirectory, seed: int) -> Engine[Any, Any]:
        """The loop, ready to run in a directory."""
        return Engine(self.target.contract(), self.target.make_live, directory, seed=seed)

    def try_once(
        self, operations: Sequence[Operation], seed: int, directory: RunDirectory
    ) -> Outcome:
        """Run a sequence in a directory that the caller keeps or throws away."""
        return self._execute(
            Assignment(tuple(operations), "trial", seed, repeats=True), directory, ()
        )

    # --- parts ---------------------------------------------------------------------------------

    def _execute(
        self, assignment: Assignment, directory: RunDirectory, listeners: Sequence[Listener]
    ) -> Outcome:
        engine = Engine(
            self.target.contract(),
            self.target.make_live,
            directory,
            seed=assignment.seed,
            listeners=listeners,
        )
        return engine.run(
            assignment.operations, always=assignment.rollback, repeats=assignment.repeats
        )

    def plan(self, assignment: Assignment) -> dict[str, object]:
        """Everything that is known before the first operation."""
        options = self.target.options
        rollback = [operation.as_json() for operation in assignment.rollback]
        return {
            "format": FORMAT,
            "mode": assignment.mode,
            "title": assignment.title,
            "contract": self.target.spec.contract,
            "target": self.target.name,
            "target_file": self.target.origin,
            "program": str(self.target.program),
            "plant": options.plant,
            "agents": options.agents,
            "seed": assignment.seed,
            "started_unix": time.time(),
            "argv": sys.argv,
            "versions": {"mutiny": __version__, "python": sys.version.split()[0]},
            "machine": {"system": platform.platform(), "isolation_asked": options.technique},
            "process": this_process(),
            "operations": [operation.as_json() for operation in assignment.operations],
            **({"rollback": rollback} if rollback else {}),
            **({"question": assignment.question} if assignment.question else {}),
        }

    def _shortest(
        self,
        assignment: Assignment,
        outcome: Outcome,
        watch: Callable[[Progress], None],
        budget: Budget | None,
    ) -> Replay:
        from mutiny.engine.replay import Replay

        executed = tuple(step.operation for step in outcome.steps)
        assert outcome.rule is not None
        whole = Replay(
            executed,
            self.target.spec.contract,
            self.target.name,
            self.target.options.plant,
            assignment.seed,
            outcome.rule,
            self.target.options.technique,
            _techniques(outcome, executed),
        )
        if budget is None:
            return replace(whole, minimised="no")
        from mutiny.modes.shrinking import shrink

        scratch = outcome.directory.path / "trials"
        try:
            with stopping.let_in():
                found = shrink(
                    self.target,
                    executed,
                    outcome.rule,
                    assignment.seed,
                    scratch,
                    budget,
                    watch,
                    shown=outcome,
                )
        except stopping.Stopped:
            return replace(whole, minimised="no")
        finally:
            RunDirectory(scratch).discard()
        return replace(whole, techniques=_techniques(outcome, found.operations), **found.told())

    def origin(self, assignment: Assignment, outcome: Outcome) -> Origin:
        """What was tested, and the command that repeats it: the replay where there is one, else the run."""
        from mutiny.report.origin import Origin, replay_command
        from mutiny.targets.registry import spoken_again

        target, directory = self.target, outcome.directory
        title, mode = assignment.title, assignment.mode
        again = directory.replay_path if directory.replay_path.exists() else directory.path
        return Origin(
            target.name,
            str(target.program),
            outcome.evidence.version,
            target.options.plant,
            assignment.seed,
            title if title.startswith(mode) else f"{mode} {title}",
            __version__,
            replay_command(again, spoken_again(target.origin, target.spec, target.program)),
        )

    def _snapshot(self, outcome: Outcome) -> None:
        """The target's state and logs as they were when the run stopped."""
        directory, evidence = outcome.directory, outcome.evidence
        if evidence.state:
            last = outcome.steps[-1].sequence_id if outcome.steps else 0
            directory.write_text(
                directory.path / "state_snapshots" / f"{last:04d}.json", evidence.state
            )
        directory.write_captures(evidence.panes)
        directory.keep_copies(evidence.files)


def _techniques(outcome: Outcome, operations: Sequence[Operation]) -> tuple[str, ...]:
    """How the faults of these kinds were done in a run, each once."""
    kinds = {operation.type for operation in operations}
    done = (step.result.technique for step in outcome.steps if step.operation.type in kinds)
    return tuple(dict.fromkeys(one for one in done if one is not None))
