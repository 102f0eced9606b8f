"""The spawns contract: its parts for one target's profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mutiny.contracts.spawns import generate, operations, outcomes
from mutiny.contracts.spawns.book import BOOK, SpawnsCheck
from mutiny.contracts.spawns.invariants import ORDER, SAME
from mutiny.contracts.spawns.judge import SpawnsJudge
from mutiny.contracts.spawns.model import SpawnsModel
from mutiny.contracts.spawns.observation import SpawnsSeen
from mutiny.contracts.spawns.profile import SETTINGS, SpawnsProfile
from mutiny.contracts.spawns.reading import number_of
from mutiny.contracts.spawns.rules import RULES
from mutiny.contracts.spawns.scenarios import scenarios_of
from mutiny.contracts.spawns.supported import fit
from mutiny.kit.answer import Answer, Words, answer_of
from mutiny.kit.base import ContractBase
from mutiny.kit.checking import StateRule
from mutiny.kit.exploring import Explored
from mutiny.kit.judging import Moment
from mutiny.kit.operations import Settle
from mutiny.kit.outcome import Outcome
from mutiny.kit.supported import Fitted, worth_running
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.violation import Violation

Ask = Callable[[SpawnsCheck], Iterator[Violation]]


@dataclass(frozen=True)
class SpawnsContract(ContractBase[SpawnsModel, SpawnsSeen]):
    """Operations, model, rules and scenarios, for one target's profile."""

    profile: SpawnsProfile = field(default_factory=SpawnsProfile)
    words: Words = field(default_factory=Words)

    name = "spawns"
    operations = operations.OPERATIONS
    rules = RULES
    judge_class = SpawnsJudge
    model_class = SpawnsModel
    seen_class = SpawnsSeen

    @property
    def scenarios(self) -> Mapping[str, tuple[Operation, ...]]:
        """Those that make sense for this target, in words that it has."""
        return worth_running(scenarios_of(self.profile), self.fit, telling=("Configure",))

    def first_model(self) -> SpawnsModel:
        """No home yet."""
        return SpawnsModel(settings={name: self.profile.setting(name) for name in SETTINGS})

    def outcomes(
        self, model: SpawnsModel, operation: Operation, moment: Moment[SpawnsSeen]
    ) -> Sequence[Outcome[SpawnsModel]]:
        """Every right outcome of a command."""
        return outcomes.outcomes(model, operation)

    def read(self, result: OperationResult) -> Answer:
        """What the target answered."""
        answer = answer_of(result, self.words)
        shown = (answer.said.get("spawn"), *_listed(answer.said.get("spawns")))
        ends = {run.get("status") for run in shown if isinstance(run, Mapping)}
        if result.exit_code and not answer.error and ends - {"completed"}:
            return replace(answer, ok=False, error="not_completed")
        return answer

    def learn(
        self,
        model: SpawnsModel,
        after: SpawnsModel,
        operation: Operation,
        answer: Answer,
        moment: Moment[SpawnsSeen],
    ) -> SpawnsModel:
        """How the target calls what was sent, what it has stopped, and how far a reader is."""
        if len(after.sent) > len(model.sent):
            number = number_of(answer.said.get("message"))
            sent = replace(after.sent[-1], id=number or None)
            after = replace(after, sent=(*after.sent[:-1], sent))
        if answer.ok and operation.type in self.profile.heals:
            after = replace(after, died=False)
        if answer.ok and isinstance(operation, operations.Stop | operations.StopAll):
            ids = frozenset(number_of(one) for one in _listed(answer.said.get("stopped")))
            if "stopped" not in answer.said:
                ids = _meant(operation, moment)
                if moment.before is None:  # beside others nobody saw which run it was
                    wish = (operation.agent.lower(), operation.channel.lower())
                    after = replace(after, meant=after.meant | {wish})
            ids -= _others(operation, moment)  # what it stopped beside those nobody has asked for
            after = replace(after, stopped=after.stopped | ids)
        if answer.ok and isinstance(operation, operations.Receive) and operation.reader:
            rows = _listed(answer.said.get("messages"))
            got = [number_of(row.get("id")) for row in rows if isinstance(row, dict)]
            key = (operation.reader, operation.channel.lower())
            mark = max([after.bookmarks.get(key, 0), *got])
            after = replace(after, bookmarks={**after.bookmarks, key: mark})
        return after

    def state_rules(self, check: SpawnsCheck) -> Iterator[StateRule]:
        """All of them, in the order in which they tell most; of a database that was lost none is asked."""
        if check.model.doubted:
            return
        readable = check.seen.error is None
        for name in ORDER if readable else ORDER[:1]:
            ask, eventual = BOOK.rules[f"spawns.{name}"]
            yield StateRule(name, _renamed(ask, SAME.get(name, name)), eventual)

    def subject_of(self, operation: Operation, model: SpawnsModel) -> str | None:
        """The agent that a command is about."""
        agent = getattr(operation, "agent", None)
        return agent if isinstance(agent, str) and agent else None

    def status_of(self, seen: SpawnsSeen, subject: str) -> str | None:
        """How its run stands."""
        run = seen.last_of(subject)
        return None if run is None else run.status

    def recovery(
        self, broken: Operation, *, world_ended: bool, damaged: bool = False
    ) -> tuple[Operation, ...]:
        """Whoever saw it fail tries again and cleans up; then everything must be as it is said."""
        return (broken, operations.Cleanup(), operations.ListSpawns(), Settle())

    def fit(self, sequence: Sequence[Operation]) -> Fitted:
        """The sequence in the words of this target."""
        return fit(self.profile, sequence)

    def explored(self) -> Explored:
        """What exploration may do."""
        return generate.explored(self.profile)


def _others(
    operation: operations.Stop | operations.StopAll, moment: Moment[SpawnsSeen]
) -> frozenset[int]:
    """The runs that a stop has not named."""
    agent, channel = operation.agent.lower(), operation.channel.lower()
    known = {} if moment.seen is None else moment.seen.runs
    return frozenset(
        run.id
        for run in known.values()
        if agent not in ("", run.agent) or channel not in ("", run.channel)
    )


def _meant(
    operation: operations.Stop | operations.StopAll, moment: Moment[SpawnsSeen]
) -> frozenset[int]:
    """The run that lived before the stop, for a target that does not say what it has stopped."""
    if moment.before is None or isinstance(operation, operations.StopAll):
        return frozenset()
    run = moment.before.last_of(operation.agent, operation.channel)
    return frozenset() if run is None or run.over else frozenset({run.id})


def _renamed(ask: Ask, name: str) -> Ask:
    def asked(check: SpawnsCheck) -> Iterator[Violation]:
        for one in ask(check):
            yield replace(one, rule=f"spawns.{name}")

    return asked


def _listed(said: object) -> list[object]:
    return said if isinstance(said, list) else []
