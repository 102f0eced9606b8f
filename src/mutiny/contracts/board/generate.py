"""What exploration may do with a board: each operation with its arguments, its moment and its weight.

What the commands really answer is judged with the moments at which they really ran; so a command that
must be refused is simply given, and the judge decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.profile import LONGEST_WAIT_S, BoardProfile
from mutiny.contracts.board.supported import added_again, supported
from mutiny.contracts.board.tasks import Task
from mutiny.kit import faults, hazards
from mutiny.kit import operations as common
from mutiny.kit.domains import casts, plain_name, sequence_fits, strange_names
from mutiny.kit.exploring import Arguments, Around, Each, Explored, Move, Scene, Some, drawn
from mutiny.model.operation import Operation, walk

WORKERS = ("w1", "w2", "w3")
NODES = ("n1", "n2")
MOST_TASKS = 9
MOST_CRASHES = 3
BACKGROUND = ("healthy", "slow:300", "claim-and-die", "double", "stranger", "deaf", "flood")
OWN_TURNS = ("nothing", "slow:500", "stays", "exit", "fail")
"""What agents of the board's own do with every task from then on; all of them end."""
TASKS: tuple[tuple[str, ...], ...] = (
    *(tuple(f"t{number}" for number in range(1, 200)),) * 2,
    ("job", *(f"job-{number}" for number in range(1, 200))),
    tuple(str(number) for number in range(1, 200)),
)
"""Names of tasks in the order in which they come."""
FIGURES = (
    *(("lease_s", 1.0), ("lease_s", 5.0), ("max_attempts", 1.0), ("max_attempts", 2.0)),
    *(("retry_base_s", 0.5), ("leader_lease_s", 1.0), ("jitter", 0.0)),
    *(("rate_limit", 3.0), ("rate_burst", 3.0), ("breaker_open_s", 0.5), ("breaker_open_s", 1.5)),
)
NAMED_ALIKE = 0.2
"""How often somebody names tasks as the board does."""
LIFE = (op.Init, op.Up, op.Down, op.RestartServer)
CRASHES = (common.CrashAt, common.KillAt, common.FailAt, common.KillDuring)


def explored(profile: BoardProfile) -> Explored:
    """Everything that exploration has to know of a board."""
    return Explored(
        opening=lambda scene: _opening(scene, profile),
        moves=(
            *_tasks_come(profile),
            *_of_workers(profile),
            *_of_leaders(),
            *_looks(profile),
            *_faults(profile),
            *_background(profile),
        ),
        around=tuple(_around(profile)),
        names={"worker": casts(WORKERS, profile.names), "task": _fitting(TASKS, profile.names)},
        recovery=lambda scene: _recovery(scene, profile),
        follows=lambda scene, operation: _follows(scene, operation, profile),
        goes_on=lambda begun: sequence_fits(profile.names, begun) and not _damaged_at_last(begun),
        first=lambda scene: op.Up() if profile.server and not _serving(scene) else None,
        supported=lambda operation: supported(profile, operation) and not _unasked(operation),
        hazardous=lambda scene: _calm(scene) and scene.taken(*CRASHES) < MOST_CRASHES,
        pairable=lambda scene, *pair: (
            (profile.names_new_tasks or not added_again(pair))
            and not any(
                isinstance(one, LIFE)
                or (isinstance(one, op.Restore) and one.name in _model(scene).vague)
                for one in pair
            )
        ),
        refused=lambda command: command,
    )


def _unasked(operation: Operation) -> bool:
    """A task whose name nobody hears is there under one that nobody knows; and for an agent that does not
    end nobody waits.
    """
    unheard = any(isinstance(part, op.AddUnnamed) for part in list(walk(operation))[1:])
    return unheard or (isinstance(operation, op.Behave) and operation.turn == "hang")


def _damaged_at_last(begun: Sequence[Operation]) -> bool:
    """Was the board damaged, and nothing done about it yet?"""
    damaged = False
    for one in begun:
        damaged = isinstance(one, op.CorruptBoard) or (
            damaged and not isinstance(one, op.Repair | common.Reset)
        )
    return damaged


def _fitting(wanted: Sequence[tuple[str, ...]], names: str) -> list[tuple[str, ...]]:
    fitting = [cast for cast in wanted if all(plain_name(one, names) for one in cast)]
    return fitting or [wanted[0]]


def _opening(scene: Scene, profile: BoardProfile) -> Iterator[Operation]:
    """Sometimes with other figures; sometimes a command comes before there is a board."""
    draw = scene.chance.random()
    figure = op.Configure(*scene.pick(FIGURES))
    if draw < 0.35 and supported(profile, figure):
        yield figure
    elif draw < 0.5 and not profile.server:
        early = (op.List(), op.Claim(WORKERS[0]), op.AddTask(_fresh(scene)[0]))
        first = scene.pick(early)
        yield first if profile.opens_itself else common.ExpectError(first)
    yield from (op.Init(), op.Up(), op.AddTask(_fresh(scene)[0]))
    if profile.gives_names and scene.chance.random() < NAMED_ALIKE:
        taken = (profile.gives_names.format(number) for number in (2, 3))
        yield from (op.AddTask(name) for name in taken if plain_name(name, profile.names))


# --- what a declaration may ask ---------------------------------------------------------------------


def _model(scene: Scene) -> BoardModel:
    model: BoardModel = scene.walk.model
    return model


def _serving(scene: Scene) -> bool:
    return _model(scene).serving is True


def _calm(scene: Scene, _operation: Operation | None = None) -> bool:
    """Nobody works on the board beside us, and nothing is damaged."""
    model = _model(scene)
    return not model.loose and not model.damaged


def _known(scene: Scene) -> list[str]:
    return list(_model(scene).tasks)


def _some_known(scene: Scene) -> list[str]:
    """A few of them: a board has many, and each would be a candidate of its own."""
    known = _known(scene)
    return scene.chance.sample(known, min(len(known), 4))


def _fresh(scene: Scene) -> list[str]:
    """The next name that was never used, and the one after it."""
    cast, known = scene.names["task"], set(_model(scene).tasks)
    used = sum(scene.counts.get(kind.__name__, 0) for kind in (op.AddTask, op.AddBatch)) * 2
    free = [name for name in cast[used:] if name not in known]
    return free[:2]


def _open(scene: Scene) -> int:
    return sum(1 for task in _model(scene).tasks.values() if not task.over)


def _room(scene: Scene) -> bool:
    return len(_model(scene).tasks) < MOST_TASKS * 2 and _open(scene) < MOST_TASKS


def _task(scene: Scene, operation: Operation) -> Task:
    return _model(scene).tasks[op.task_of(operation) or ""]


def _owned(scene: Scene, operation: Operation) -> bool:
    """Does this worker, as far as is known, hold this task?"""
    task = _model(scene).tasks.get(op.task_of(operation) or "")
    return task is not None and task.held and task.owner == common.worker_of(operation)


def _holders(scene: Scene) -> list[str]:
    held = {task.owner for task in _model(scene).tasks.values() if task.held and task.owner}
    return sorted(held & set(scene.names["worker"]))


# --- commands ---------------------------------------------------------------------------------------


def _tasks_come(profile: BoardProfile) -> tuple[Move, ...]:
    strange = strange_names(profile.names) if profile.names_new_tasks else ()
    removable = supported(profile, op.Cancel("t"))

    def depends(scene: Scene) -> list[tuple[str, ...]]:
        known = _known(scene)
        few = tuple(sorted(scene.chance.sample(known, min(len(known), scene.chance.randint(1, 3)))))
        return [(), (), few]

    def batches(scene: Scene) -> list[tuple[str, ...]]:
        first, second = _fresh(scene)
        known = _known(scene)
        chain, circle = (first, f"{second}:{first}"), (f"{first}:{second}", f"{second}:{first}")
        dangling = (first, f"{second}:nobody")
        again = ((first, known[0]),) if known else ()
        behind = ((first, f"{second}:{first},{scene.pick(known)}"),) if known else ()
        return [chain, chain, chain, circle, dangling, *again, *behind]

    twice = Each(_fresh_one, _some_known if profile.names_new_tasks else lambda _scene: ())
    adding: Arguments = {
        "task": twice,
        "priority": drawn(1, 2, 5, 5, 9, 10) if profile.says_priorities else drawn(5),
        "depends": Some(depends),
        "max_attempts": drawn(*[None] * 6, 1, 2) if profile.says_attempts else drawn(None),
        "size": drawn(0, 0, 0, 0, 5000, 60000),
    }
    batch = Move(op.AddBatch, {"tasks": Some(batches)}, lambda s, _o: 1.2 if _room(s) else 0.1)
    odd: Arguments = {"task": drawn(*strange)}
    return (
        Move(op.AddTask, adding, lambda s, _o: 4 if _room(s) else 0.2),
        *((batch,) if profile.batches else ()),
        *((Move(op.AddTask, odd, 0.4),) if strange and removable else ()),
        Move(op.AddUnnamed, {}, lambda s, _o: 0.5 if _room(s) and _calm(s) else 0),
    )


def _fresh_one(scene: Scene) -> list[str]:
    return _fresh(scene)[:1]


def _of_workers(profile: BoardProfile) -> tuple[Move, ...]:
    def worker(scene: Scene) -> list[str]:
        return [scene.pick(scene.names["worker"])]

    def free(scene: Scene, _operation: Operation) -> float:
        some = any(task.status == "available" for task in _model(scene).tasks.values())
        return 6 if some else 0.8

    def nobody(_scene: Scene) -> tuple[str, ...]:
        return ("nobody",)

    def retried(scene: Scene, operation: Operation) -> float:
        return 1.0 if _task(scene, operation).status == "failed" else 0.05

    def of_owner(scene: Scene, operation: Operation) -> float:
        return 3.0 if _owned(scene, operation) else 0.15

    by_anybody: Arguments = {"worker": Each(_any_worker), "task": Each(_some_known, nobody)}
    some_task = {"task": Each(_some_known, nobody)}
    stale: Arguments = {**by_anybody, "stale": drawn(True)}
    sized: Arguments = {**by_anybody, "size": drawn(0, 0, 0, 3000)}
    return (
        Move(op.Claim, {"worker": Each(worker)}, free),
        Move(op.Claim, {"worker": Each(worker), "task": Each(_some_known, nobody)}, 0.2),
        Move(op.Complete, sized, of_owner),
        Move(op.Complete, stale, lambda s, o: 0.3 if _owned(s, o) else 0.02),
        Move(op.Start, by_anybody, 1.0, _owned),
        Move(op.Fail, by_anybody, 1.0, _owned),
        Move(op.Release, by_anybody, 0.7, _owned),
        Move(op.Heartbeat, {"worker": Each(_holders)}, 1.0, writes=False),
        Move(op.Cancel, some_task, 0.1),
        Move(op.Retry, some_task, retried),
    )


def _any_worker(scene: Scene) -> Sequence[str]:
    return scene.names["worker"]


def _of_leaders() -> tuple[Move, ...]:
    node: Arguments = {"node": Each(lambda s: [s.pick(NODES)])}

    def led(scene: Scene, _operation: Operation) -> bool:
        return bool(_model(scene).tokens)

    def copied(scene: Scene, _operation: Operation) -> bool:
        return _calm(scene)

    stale: Arguments = {**node, "stale": drawn(True)}
    borrowed: Arguments = {**node, "borrowed": drawn(True)}
    return (
        Move(op.Elect, node, 0.8),
        Move(op.WriteAsLeader, node, 0.5, led),
        Move(op.WriteAsLeader, stale, 0.2, led),
        Move(op.WriteAsLeader, borrowed, 0.2, led),
        Move(op.Renew, borrowed, 0.1, led),
        Move(op.Renew, node, 0.3, led),
        Move(op.StepDown, node, 0.3, led),
        Move(op.Checkpoint, {"name": Each(lambda s: [s.pick(("c1", "c2"))])}, 0.5),
        Move(
            op.Restore,
            {"name": Each(lambda s: sorted(_model(s).checkpoints), lambda _s: ("c9",))},
            0.3,
            copied,
        ),
    )


def _looks(profile: BoardProfile) -> tuple[Move, ...]:
    lease_s, leader_s = profile.figures.lease_s, profile.figures.leader_lease_s

    def waits_for_lease(scene: Scene, _operation: Operation) -> bool:
        return bool(_holders(scene)) and profile.leases and lease_s <= LONGEST_WAIT_S

    def leads(scene: Scene, _operation: Operation) -> bool:
        return _model(scene).leader is not None and leader_s <= LONGEST_WAIT_S

    def half(seconds: float) -> float:
        """Two of them are longer than that: what is said in between must not count for another one."""
        return round(profile.past(seconds) / 2, 3)

    return (
        Move(op.Status, weight=0.5, writes=False),
        Move(op.List, weight=0.4, writes=False),
        Move(op.Recover, weight=0.8, writes=False),
        Move(op.Settle, weight=0.3),
        Move(common.Sleep, {"seconds": drawn(0.05, 0.2, 0.5)}, 0.5),
        Move(common.Sleep, {"seconds": drawn(round(lease_s + 0.5, 3))}, 0.5, waits_for_lease),
        Move(common.Sleep, {"seconds": drawn(half(lease_s))}, 0.3, waits_for_lease),
        Move(common.Sleep, {"seconds": drawn(half(leader_s))}, 0.5, leads),
    )


# --- faults and others ------------------------------------------------------------------------------


def _faults(profile: BoardProfile) -> tuple[Move, ...]:
    if profile.server:
        return (
            Move(op.KillServer, weight=0.5, when=_calm),
            Move(op.RestartServer, weight=0.3, when=_calm),
            Move(op.StartSecondServer, weight=0.2, when=_calm),
        )
    damages = ("garbage", "truncate", "flip", "middle", "empty", "delete")
    damage = {"how": drawn(*damages), "seed": drawn(*range(100))}
    return (Move(op.CorruptBoard, damage, 0.6, _calm),)


def _around(profile: BoardProfile) -> Iterator[Around]:
    """A server writes for the commands: they feel its death only."""
    if profile.server:
        yield Around(op.KillServer, lambda _s, o: op.KillServer(o), fits=_changes)
        return
    yield from hazards.broken(profile.sure_calls)
    yield Around(
        faults.FillDisk, lambda _s, o: faults.FillDisk(during=o), certain=True, fits=_needs_room
    )
    yield Around(op.HoldBoardLock, lambda _s, o: op.HoldBoardLock(0.3, o), fits=_changes)
    yield from hazards.clock()
    yield Around(faults.Forbid, lambda _s, o: faults.Forbid(during=o), fits=_changes)


def _changes(_scene: Scene, command: Operation) -> bool:
    return not isinstance(command, LIFE) and not command.looks


def _needs_room(scene: Scene, command: Operation) -> bool:
    """Who restores what is the case already writes nothing."""
    model = _model(scene)
    return not isinstance(command, op.Restore) or model.checkpoints.get(command.name) != model.tasks


def _background(profile: BoardProfile) -> tuple[Move, ...]:
    def spawnable(scene: Scene, _operation: Operation) -> bool:
        model = _model(scene)
        return not model.spawned and bool(model.tasks) and scene.taken(op.SpawnWorker) < 2

    def name(scene: Scene) -> list[str]:
        return [f"spawned{scene.taken(op.SpawnWorker) + 1}"]

    def surely_lives(scene: Scene, operation: Operation) -> bool:
        """Not if it dies by itself, as a ready sequence may have told it to."""
        return _model(scene).spawned.get(common.worker_of(operation) or "") != "claim-and-die"

    there = Each(lambda s: sorted(_model(s).spawned)[:1])
    own = Move(op.Behave, {"turn": drawn(*OWN_TURNS)}, 0.8)
    return (
        *((own,) if profile.works else ()),
        Move(
            op.SpawnWorker, {"worker": Each(name), "behaviour": drawn(*BACKGROUND)}, 0.7, spawnable
        ),
        Move(op.StopWorker, {"worker": there}, 3),
        Move(op.KillWorker, {"worker": there}, 1, surely_lives),
    )


def _follows(scene: Scene, operation: Operation, profile: BoardProfile) -> Iterable[Operation]:
    """A look after something broke; a repair after damage; the end of what nobody would end."""
    if isinstance(operation, common.LibraryFault) and operation.lasting:
        yield op.Status()
    if isinstance(operation, CRASHES):
        if profile.figures.stale_lock_s:
            yield common.Sleep(profile.figures.stale_lock_s)
        yield op.List()
    if isinstance(operation, op.SpawnWorker) and operation.behaviour == "claim-and-die":
        yield from (common.Sleep(0.5), op.StopWorker(operation.worker))
    if isinstance(operation, op.CorruptBoard):
        yield op.Claim(scene.pick(scene.names["worker"]))
        if supported(profile, op.Repair()):
            yield from (op.Repair(), op.List())
        else:  # nothing brings it back: a new board, then
            anew = op.AddTask(_fresh(scene)[0])
            yield from (op.List(), common.Reset(), op.Init(), op.Up(), anew)
    for part in walk(operation):
        if isinstance(part, op.AddTask) and not plain_name(part.task, profile.names):
            yield op.Cancel(part.task)


def _recovery(scene: Scene, profile: BoardProfile) -> Iterator[Operation]:
    """Faults off; a healthy worker comes, and every task comes to its end."""
    model = _model(scene)
    if model.lasting:
        yield common.Heal()
    if profile.server and not _serving(scene):
        yield op.Up()
    for name in sorted({name.rpartition("-")[0] or name for name in model.spawned}):
        yield op.StopWorker(name)
    if profile.works:
        yield op.Behave()
    yield from (op.Status(), op.SpawnWorker("helper"), op.Settle(), op.StopWorker("helper"))
    if profile.all_settles:
        yield op.Verify("all tasks are settled")
    if profile.counts_completions:
        yield op.Verify("no task is completed twice")
    yield op.Settle()
