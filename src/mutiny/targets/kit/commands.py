"""A live target without a daemon: every operation is one command of its target file.

The operation's arguments are the command's placeholders. A contract only says what a look at the
target's state means.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar

from mutiny.box.results import Command
from mutiny.doubles import speech
from mutiny.kit.contract import Evidence, SeenBase, StepContext
from mutiny.kit.operations import Settle
from mutiny.kit.views import ProcessView
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.probes.records import Raw
from mutiny.system.files import BoxPath
from mutiny.targets.kit.files import TargetFile
from mutiny.targets.kit.live import LiveTarget
from mutiny.targets.kit.options import LiveOptions
from mutiny.targets.kit.state import read_source
from mutiny.targets.kit.waits import Wait, until
from mutiny.targets.kit.watching import Changes


def settle(live: Any, operation: Operation, context: StepContext) -> OperationResult:
    """Wait until nothing is pending any more."""
    limit_s = live.spec.profile.limits.settle_s
    return until(live, limit_s, lambda seen: "; ".join(context.pending(seen)))


class DaemonlessTarget(LiveTarget):
    """One target in one box, of which nothing runs between its commands."""

    settling = Settle
    waits: ClassVar[Mapping[type[Operation], Wait]] = {Settle: settle}

    def __init__(self, spec: TargetFile, directory: Path, options: LiveOptions) -> None:
        super().__init__(spec, directory, options, doubles=False)
        self.spec = spec
        self._word_of = {operation: word for word, operation in spec.vocabulary.commands.items()}
        self.changes = Changes(self.roots)

    def command(self, operation: Operation, context: StepContext) -> OperationResult:
        """Say one command and hear its answer."""
        ready = self.sweepable(operation, context)
        return ready if isinstance(ready, OperationResult) else self.run(ready[0])

    def sweepable(
        self, operation: Operation, context: StepContext
    ) -> tuple[Command, tuple[str, ...]] | OperationResult:
        """The command that an operation means."""
        word = self._word_of.get(operation.type, "")
        template = self.spec.template(word)
        if template is None:
            return self.lacking(operation)
        argv = speech.spoken(template, {**self.values, **self.given(operation, context)})
        return self.spoken(argv, self.spec.commands[word].timeout_s), ()

    def given(self, operation: Operation, context: StepContext) -> dict[str, Any]:
        """The values of a command's placeholders: the operation's arguments, and what a contract adds."""
        return {item.name: getattr(operation, item.name) for item in fields(operation)}

    def reopen(self) -> None:
        """The world has ended; a new box goes on from the files that it left."""
        super().reopen()
        self.changes = Changes(self.roots)

    def roots(self) -> tuple[BoxPath, ...]:
        """The directory whose changes count."""
        return (self.outside(self.state_directory()),)

    def bystanders(self, operation: Operation) -> Sequence[ProcessView]:
        """Nobody else runs."""
        return ()

    def evidence(self) -> Evidence:
        """What is kept of the target when something went wrong."""
        return self.told("", {})


class CommandTarget(DaemonlessTarget):
    """One whose state is all that there is to see."""

    @abstractmethod
    def seen(self, state: Raw) -> SeenBase:
        """What the target's state means."""

    def observe(self) -> SeenBase:
        """One complete look."""

        def run(argv: tuple[str, ...]) -> OperationResult:
            return self.run(self.spoken(argv, None))

        found = self.seen(read_source(self.spec.state, self.filled, self.outside, run))
        return replace(found, at=time.time(), pace=self.pacing.now())
