"""What exploration may do with a batch orchestrator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from mutiny.contracts.batch import operations as op
from mutiny.contracts.batch.observation import UNFINISHED
from mutiny.contracts.batch.profile import BatchProfile
from mutiny.contracts.batch.supported import supported
from mutiny.kit import hazards
from mutiny.kit.exploring import Around, Each, Explored, Move, Scene, Some
from mutiny.kit.moments import At, EndsCommand, InterruptOrchestrator, KillOrchestrator
from mutiny.kit.operations import KillDuring, Settle, SweepPoint
from mutiny.model.operation import Operation, walk

PLANS: tuple[tuple[str, ...], ...] = (
    ("a",),
    ("a", "b"),
    ("a", "b needs=a"),
    ("a", "b needs=a", "c needs=a"),
    ("a writes=core", "b writes=core", "c reads=core"),
    ("a does=shares", "b does=shares"),
    ("a does=fails,works", "b needs=a"),
    ("a does=fails", "b"),
    ("a does=strays", "b"),
    ("a tokens=300", "b tokens=300 needs=a"),
    ("job", "job-2 needs=job", "job-21"),
    ("a does=leaves", "b does=tells"),
    ("a does=blurts,works", "b tokens=40", "c tokens=40"),
    ("a does=nears", "b does=counts tokens=150", "c does=pushes"),
    ("a does=meets tokens=40", "b does=meets tokens=40"),
)
NAMES = (("a", "b", "c", "d", "e"), ("job", "job-2", "job-21", "jobs", "j"))
DOES = (
    *("works", "works", "works", "fails,works", "fails", "shares", "shares", "strays", "leaves"),
    *("tells", "nears", "counts", "pushes", "blurts,works", "slowly", "deepens", "commits"),
)
LOCKS = ("core", "docs", "ui")
KNOBS = (
    *(("max_conflicts", "0"), ("max_conflicts", "1"), ("task_cost", "0.01"), ("run_cost", "0.01")),
    *(("max_parallel", "2"), ("max_parallel", "4"), ("review", "block"), ("architecture", "warn")),
    *(("max_parallel", "1"), ("max_parallel", "3"), ("max_retries", "0"), ("max_retries", "2")),
    *(("test", "block"), ("style", "warn"), ("test", "off")),
    *(("manifest", "block"), ("manifest", "off"), ("rescope", "off"), ("rescope", "on")),
    *(("budget", "block"), ("task_tokens", "200"), ("run_tokens", "500"), ("budget", "warn")),
    *(("canary", "block"), ("cleanup", "never"), ("failure_policy", "stop")),
)
SAYS = (
    *(("test", "fail"), ("test", "pass"), ("test", "crash"), ("test", "garbage")),
    *(("test", "missing"), ("test", "odd"), ("doctor", "missing"), ("doctor", "blind")),
    *(("review", "fail"), ("review", "pass"), ("architecture", "fail"), ("style", "garbage")),
    *(("lint", "fail"), ("lint", "pass"), ("doctor", "fail"), ("doctor", "pass")),
    ("style", "fail"),
)
MOMENTS = ("worker", "task_doctor", "merging", "integration_doctor", "landing", "landed")


def explored(profile: BatchProfile) -> Explored:
    """All of it, for one target."""
    known = [tasks for tasks in PLANS if supported(profile, op.Plan(tasks))]
    there = profile.neighbours
    does = [word for word in DOES if supported(profile, op.Plan((f"a does={word}",)))]

    def plans(scene: Scene) -> list[tuple[str, ...]]:
        made = [_made_up(scene, does) for _ in range(3)]
        return [*scene.chance.sample(known, min(len(known), 3)), *made]

    return Explored(
        opening=lambda scene: (op.Init(), op.Plan(scene.pick(plans(scene)))),
        moves=(
            Move(op.Init, weight=0.2),
            Move(
                op.Plan,
                {"tasks": Some(plans)},
                weight=0.8,
                when=lambda scene, _plan: profile.own_plan or _none_open(scene),
            ),
            Move(op.Run, weight=4.0, when=_may_be_served),
            Move(op.Resume, weight=3.0, when=_may_be_served),
            Move(op.Status, weight=0.7, writes=False),
            Move(op.LogsQuery, weight=0.3, writes=False),
            Move(op.LogsQuery, {"task": Each(_tasks)}, weight=0.1, writes=False),
            Move(op.LogsTimeline, weight=0.2, writes=False),
            Move(op.Clean, weight=0.5, when=_may_be_served),
            Move(op.Clean, {"name": Each(_older)}, weight=0.3, when=_may_be_served),
            Move(op.SetTaskStatus, {"task": Each(_tasks), "status": Each(_settable)}, weight=0.6),
            Move(op.Configure, {"name": Each(lambda _scene: ("max_parallel",)), **_value()}, 0.2),
            *(
                Move(op.Configure, {"name": _is(name), "value": _is(value)}, weight=0.25)
                for name, value in KNOBS
            ),
            *(
                Move(op.GateSays, {"gate": _is(gate), "verdict": _is(verdict)}, weight=0.25)
                for gate, verdict in SAYS
            ),
            Move(op.MoveMain, weight=0.3),
        ),
        around=(
            *(
                Around(At, partial(_at, moment, there), certain=True, fits=_drives, weight=1.2)
                for moment in MOMENTS
                if not profile.moments or moment in profile.moments
            ),
            *(replace(one, fits=_changes) for one in hazards.broken(profile.sure_calls)),
            *(
                replace(one, fits=_makes_files)
                for one in hazards.disks(lambda _scene, _operation: "state")
            ),
        ),
        recovery=lambda _scene: (*_calm(), op.Status(), op.Resume(), op.Status(), Settle()),
        supported=partial(supported, profile),
        pairable=_pairable,
        follows=_follows,
        refused=lambda operation: operation,
    )


def _made_up(scene: Scene, does: Sequence[str]) -> tuple[str, ...]:
    """A plan by chance: who needs whom, who reads and writes what, and what becomes of it."""
    chance, names = scene.chance, scene.pick(NAMES)
    lines: list[str] = []
    for number in range(chance.randint(2, len(names))):
        line, word = names[number], scene.pick(does)
        needed = chance.sample(names[:number], chance.choice((0, 0, 1, 2))) if number > 1 else []
        words = {
            "needs": ",".join(sorted(needed)),
            "writes": scene.pick(LOCKS) if chance.random() < 0.3 else "",
            "reads": scene.pick(LOCKS) if chance.random() < 0.2 else "",
            "does": "" if word == "works" else word,
            "tokens": scene.pick(("40", "150", "300")) if chance.random() < 0.2 else "",
        }
        lines.append(" ".join((line, *(f"{key}={text}" for key, text in words.items() if text))))
    return tuple(lines)


def _calm() -> Iterable[Operation]:
    return (op.GateSays("test"), op.GateSays("lint"), op.GateSays("doctor"))


def _is(value: str) -> Each:
    return Each(lambda _scene: (value,))


def _value() -> dict[str, Each]:
    return {"value": Each(lambda _scene: ("2",))}


def _may_be_served(scene: Scene, operation: Operation) -> bool:
    return scene.walk.served(operation) is not False


def _none_open(scene: Scene) -> bool:
    """Is there surely no run that may go on?"""
    return all(one.run is None or one.run.finished for one in scene.walk.models)


def _tasks(scene: Scene) -> tuple[str, ...]:
    names = {name for one in scene.walk.models if one.run for name in one.run.tasks}
    return (*sorted(names), "nobody")


def _older(scene: Scene) -> tuple[str, ...]:
    return tuple(sorted({run.name for one in scene.walk.models for run in one.older if run.name}))


def _settable(_scene: Scene) -> tuple[str, ...]:
    return ("pending", "skipped")


def _drives(_scene: Scene, operation: Operation) -> bool:
    """A run that is sure to end well has all moments."""
    return isinstance(operation, op.Run)


def _changes(scene: Scene, operation: Operation) -> bool:
    """To resume what is complete changes nothing."""
    if not isinstance(operation, op.Resume):
        return True
    runs = [one.run for one in scene.walk.models]
    return all(run is not None and run.status <= set(UNFINISHED) for run in runs)


def _makes_files(scene: Scene, operation: Operation) -> bool:
    """Clean only takes away, and feels no full disk."""
    return not isinstance(operation, op.Clean) and _changes(scene, operation)


def _follows(_scene: Scene, operation: Operation) -> Iterable[Operation]:
    """Whoever broke a run off goes on with it, so that the beliefs know again what there is."""
    parts = list(walk(operation))
    driven = any(isinstance(part, op.LONG) for part in parts)
    broken = any(isinstance(part, (EndsCommand, SweepPoint, KillDuring)) for part in parts)
    return (op.Resume(),) if driven and broken else ()


def _at(moment: str, neighbours: bool, scene: Scene, operation: Operation) -> Operation:
    # Other moments are held by what git is asked, also where somebody else asks it.
    names = {task.id for one in scene.walk.models for task in one.plan[:1]}
    alike = sorted(names) if neighbours and moment == "worker" else []
    then = scene.pick(
        (
            *(op.RunElsewhere(name) for name in alike),
            KillOrchestrator(),
            KillOrchestrator(alone=True),
            InterruptOrchestrator("SIGTERM"),
            InterruptOrchestrator("SIGINT"),
            op.MoveMain(),
            op.Status(),
        )
    )
    return At(moment, operation, then)


def _pairable(_scene: Scene, one: Operation, other: Operation) -> bool:
    return not (isinstance(one, op.Init) or isinstance(other, op.Init))
