"""What exploration may do with workers: each operation with its arguments, its moment and its weight."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.model import ADDED, WorkerBelief, WorkersModel
from mutiny.contracts.workers.outcomes import REJECTIONS
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.supported import supported
from mutiny.kit import exploring, faults, hazards
from mutiny.kit import operations as common
from mutiny.kit.domains import BAD_INPUT, casts, plain_name, sequence_fits, strange_names, texts
from mutiny.kit.exploring import Each, Explored, Move, Scene, Some, drawn
from mutiny.model.operation import Operation, walk

NAMES = ("alpha", "beta", "gamma")
FILES = ("shared.txt", "src/shared.rs", "docs/notes.md", "other.txt")
CALM = (
    *("obey", "obey", "slow:200", "slow:600", "stray", "garbage", "dirty", "unfinished:600"),
    *("reshape", "reshape-dirty"),
)
WILD = (
    *("hang", "nothing", "exit", "crash-in-commit", "swallow", "ignore-ctrl-c", "give-up"),
    *("no-stop", "late-stop:600", "late-commit:500", "die-dirty", "die-elsewhere", "die-detached"),
    *("die-locked", "busy-git:1500"),
)
TURNS = (
    *((turn, "obey") for turn in (*CALM * 3, *WILD)),
    *((turn, "hang") for turn in WILD if turn.startswith("die-")),
)
PROMPTS = texts(f"Create {file} with 'done'" for file in FILES)
MESSAGES = texts(("Use uppercase", "Please also create extra.txt", "Add a header comment"))
BUSY = frozenset({"working", "rejected", "rebasing"})
CHANGES = tuple(range(2, 26, 2))
"""Moments in what a command and then its daemon do to the state's files."""
LONGEST_TURN_MS = 10_000
GOES_ON = 0.5
"""How often somebody else commits between a crash in an accept and the next start."""
MAX_HITS = 2
"""Faults that one task may have to bear before exploration leaves it in peace."""


def explored(profile: Profile, refusals: Collection[str] = REJECTIONS) -> Explored:
    """Everything that exploration has to know of workers; `refusals`: those of known text."""
    names = profile.names
    known = frozenset(refusals) | {BAD_INPUT}
    return Explored(
        opening=lambda scene: _opening(scene, early="not_initialised" in known),
        refusable=lambda scene, command: bool(scene.walk.refusals(command) & known),
        moves=(
            *_commands(names, prompt_with_add=profile.prompt_with_add),
            *_progress(profile),
            *_faults(profile),
        ),
        around=(
            *hazards.broken(profile.sure_calls),
            *hazards.disks(_place),
            *hazards.clock(),
            *hazards.resources(),
            *(hazards.lock() if profile.has_lock else ()),
            exploring.Around(op.PauseProcess, _paused),
            exploring.Around(op.KillDaemon, _bereft, fits=_works_for, weight=2.0),
        ),
        names={"worker": casts(NAMES, names)},
        recovery=_recovery,
        follows=_follows,
        goes_on=lambda begun: sequence_fits(names, begun),
        supported=lambda operation: supported(profile, operation) and not _endless(operation),
        hazardous=lambda scene: _running(scene) and not _tired(scene),
    )


def _endless(operation: Operation) -> bool:
    """Is an agent told to take longer than anybody waits? Scenarios end such turns themselves."""
    turns = operation.turns if isinstance(operation, op.Behave) else ()
    times = (turn.partition(":")[2] for turn in turns)
    return any(int(one) > LONGEST_TURN_MS for one in times if one.isdigit())


def _opening(scene: Scene, *, early: bool) -> Iterator[Operation]:
    """Sometimes a command comes too early: before there is a workspace, or before the daemon runs."""
    name, profile = scene.names["worker"][0], _model(scene).profile
    start = op.Start(name, "Create a.txt")
    add = op.Add(name, prompt=start.prompt if profile.prompt_with_add else "")
    draw = scene.chance.random()
    if draw < 0.3 and early:
        others = (op.Accept, op.Nuke, op.Review, op.Rebase, op.ResetWorker, op.Attach)
        given = (
            add if profile.prompt_with_add else start,
            op.Message(name, "x"),
            op.Reject("x"),
            *(make(name) for make in others),
        )
        yield common.ExpectError(scene.pick(given))
    yield op.Init()
    if draw > 0.85 and not profile.daemonless:
        yield from (add, common.ExpectError(start), op.Up())
    else:
        yield from (op.Up(), add)


# --- what a declaration may ask ---------------------------------------------------------------------


def _model(scene: Scene) -> WorkersModel:
    model: WorkersModel = scene.walk.model
    return model


def _running(scene: Scene, _operation: Operation | None = None) -> bool:
    return _model(scene).attended


def _comes_back(scene: Scene, operation: Operation) -> bool:
    """Is the worker there, or will somebody bring it back? Without a daemon nobody does."""
    model = _model(scene)
    if not model.profile.daemonless:
        return True
    lost = model.state_damaged or model.doubted
    return not lost and _belief(scene, operation).disturbed in (None, ADDED)


def _tired(scene: Scene) -> bool:
    return any(belief.hits >= MAX_HITS for belief in _model(scene).workers.values())


def _belief(scene: Scene, operation: Operation) -> WorkerBelief:
    return _model(scene).workers[common.worker_of(operation) or ""]


def _known(scene: Scene) -> list[str]:
    return list(_model(scene).workers)


def _new(scene: Scene) -> list[str]:
    free = [name for name in scene.names["worker"] if name not in _model(scene).workers]
    return free[:1]


def _review_is(*statuses: str) -> Callable[[Scene, Operation], bool]:
    """The worker is surely in one of these, and the daemon runs."""

    def holds(scene: Scene, operation: Operation) -> bool:
        return _running(scene) and _belief(scene, operation).statuses <= set(statuses)

    return holds


def _works(scene: Scene, operation: Operation) -> bool:
    """The worker has a task that it surely has not ended, and it will."""
    belief = _belief(scene, operation)
    allowed = _model(scene).allowed(belief.name)
    busy = bool(belief.tokens) and bool(allowed & BUSY) and "idle" not in allowed
    tame = belief.name not in scene.walk.wild
    return _running(scene) and busy and "needs_review" in allowed and tame


def _startable(scene: Scene, operation: Operation) -> bool:
    belief = _belief(scene, operation)
    return _running(scene) and (belief.statuses == {"idle"} or _unclear(scene, operation))


def _unclear(scene: Scene, operation: Operation) -> bool:
    """Nobody can tell what the worker does now."""
    belief = _belief(scene, operation)
    allowed = _model(scene).allowed(belief.name)
    sure = bool(belief.tokens) and bool(allowed & BUSY) and "idle" not in allowed
    return not sure and len(belief.statuses) > 1


def _start_weight(scene: Scene, operation: Operation) -> float:
    if _unclear(scene, operation):
        return 0.8
    return 1.5 if _belief(scene, operation).offline_allowed else 6.0


def _accept_weight(scene: Scene, operation: Operation) -> float:
    if _unclear(scene, operation):
        return 0.8
    return 7.0 if _model(scene).last_reviewed == common.worker_of(operation) else 3.0


def _doctor_weight(scene: Scene, _operation: Operation) -> float:
    """Whoever finds it broken asks what is wrong, before or instead of starting it again."""
    return 0.4 if _running(scene) and not _model(scene).state_damaged else 3.0


def _resettable(scene: Scene, operation: Operation) -> bool:
    belief = _belief(scene, operation)
    return _running(scene) and (bool(belief.tokens) or "idle" in belief.statuses)


def _reviewed(scene: Scene, _operation: Operation) -> bool:
    model = _model(scene)
    belief = model.workers.get(model.last_reviewed or "")
    return _running(scene) and belief is not None and belief.statuses == {"needs_review"}


def _somebody_waits(scene: Scene, _operation: Operation) -> bool:
    waits = (one.statuses == {"needs_review"} for one in _model(scene).workers.values())
    return _running(scene) and any(waits)


# --- commands ---------------------------------------------------------------------------------------


def _commands(names: str, *, prompt_with_add: bool) -> tuple[Move, ...]:
    strange = strange_names(names)

    def wrong(scene: Scene) -> tuple[str, ...]:
        return ("nobody", scene.pick(strange)) if strange else ("nobody",)

    def new_and_strange(scene: Scene) -> list[str]:
        return [*_new(scene), *([scene.pick(strange)] if strange else ())]

    def addable(scene: Scene, operation: Operation) -> bool:
        return _running(scene)

    def add_weight(scene: Scene, operation: Operation) -> float:
        if not plain_name(common.worker_of(operation) or "", names):
            return 0.25
        return 2.5 if _known(scene) else 12.0

    worker = Each(_known, wrong)
    prompt, message = drawn(*PROMPTS), drawn(*MESSAGES)
    added: dict[str, Each | Some] = {"worker": Each(new_and_strange, _known)}
    if prompt_with_add:
        added["prompt"] = prompt
    reviewed = _review_is("needs_review")
    return (
        Move(op.Init, weight=0, writes=False, settled=False),
        Move(op.Up, weight=12, when=lambda s, _o: not _running(s), settled=False),
        Move(op.Down, weight=0.5, when=_running, writes=False, settled=False),  # its daemon writes
        Move(op.Add, added, add_weight, addable, settled=False),
        Move(op.Nuke, {"worker": worker}, 0.35, _resettable, settled=False),
        Move(op.Start, {"worker": worker, "prompt": prompt}, _start_weight, _startable),
        Move(
            op.Message,
            {"worker": worker, "message": message},
            1.0,
            lambda s, o: _works(s, o) or reviewed(s, o),
        ),
        Move(op.Attach, {"worker": worker}, 0.15, writes=False),
        Move(op.Review, {"worker": worker}, 5, reviewed),
        Move(
            op.Accept,
            {"worker": worker},
            _accept_weight,
            lambda s, o: reviewed(s, o) or (_running(s) and _unclear(s, o)),
        ),
        Move(op.Reject, {"message": message}, 2.5, _reviewed),
        Move(
            op.Rebase,
            {"worker": worker},
            0.5,
            lambda s, o: _works(s, o) or reviewed(s, o),
            writes=False,
        ),
        Move(
            op.ResetWorker,
            {"worker": worker},
            lambda s, o: 1.5 if _unclear(s, o) else 0.3,
            _resettable,
        ),
        Move(op.Doctor, {"repair": drawn(False, False, True)}, _doctor_weight, writes=False),
        Move(op.Status, weight=0.4, writes=False),
        Move(op.ReviewNext, {}, 1.5, _somebody_waits),
        Move(op.AcceptReviewed, {}, 1.5, _reviewed),
    )


def _progress(profile: Profile) -> tuple[Move, ...]:
    """Waits, scripts and time."""
    worker = Each(_known)
    turns = (*TURNS, ("will-not-go", "obey")) if profile.ends_children else TURNS
    return (
        Move(
            op.WaitForIdle,
            {"worker": worker},
            6,
            lambda s, o: (
                _review_is("idle")(s, o)
                and _comes_back(s, o)
                and _belief(s, o).offline_allowed
                and not isinstance(s.walk.last, op.WaitForIdle)
            ),
        ),
        Move(op.WaitForNeedsReview, {"worker": worker}, 4, _works),
        Move(
            op.Behave,
            {"worker": worker, "turns": drawn(*turns)},
            0.7,
            lambda s, o: _running(s) and not _belief(s, o).tokens,
        ),
        Move(
            op.TypeIn,
            {
                "worker": worker,
                "message": drawn("Create typed.txt", "Please also create extra.txt"),
            },
            0.7,
            lambda s, o: _review_is("needs_review")(s, o) and not _belief(s, o).offline_allowed,
        ),
        Move(op.Neighbour, weight=0.2, when=_running),
        Move(common.Settle, weight=0.3),
        Move(common.Sleep, {"seconds": drawn(0.05, 0.2, 0.5)}, 0.5),
    )


# --- faults -----------------------------------------------------------------------------------------


def _faults(profile: Profile) -> tuple[Move, ...]:
    def bearable(scene: Scene, operation: Operation) -> bool:
        belief = _belief(scene, operation)
        tame = belief.hits < MAX_HITS and belief.name not in scene.walk.wild
        return _running(scene) and tame and _comes_back(scene, operation)

    def seen(scene: Scene, _operation: Operation) -> bool:
        """Somebody's session is surely there."""
        there = any(not belief.offline_allowed for belief in _model(scene).workers.values())
        return _running(scene) and there

    def manned(scene: Scene, _operation: Operation) -> bool:
        return _running(scene) and bool(_model(scene).workers)

    def calm(scene: Scene, operation: Operation) -> bool:
        return manned(scene, operation) and not _tired(scene)

    def can_commit(scene: Scene, operation: Operation) -> bool:
        return manned(scene, operation) and _model(scene).source_dirty not in ("merge", "rebase")

    def lies_nowhere(scene: Scene, operation: Operation) -> bool:
        """Where the user puts a file, none may lie that an agent has made and somebody has merged."""
        assert isinstance(operation, op.DirtySource)
        made = operation.how == "untracked" and operation.path in scene.walk.said
        return manned(scene, operation) and (operation.undo or not made)

    worker = Each(_known)
    undo = Some(lambda s: (bool(_model(s).source_dirty),))
    return (
        Move(op.KillDaemon, weight=1.6, when=_running),
        Move(op.KillTmuxSession, {"worker": worker}, 0.8, bearable),
        Move(op.KillAgent, {"worker": worker}, 0.8, bearable),
        Move(op.KillTmuxServer, weight=0.6, when=lambda s, o: seen(s, o) and not _tired(s)),
        Move(op.PauseProcess, {"role": drawn("daemon"), "seconds": drawn(0.4)}, 0.6, manned),
        Move(op.PauseProcess, {"role": drawn("tmux"), "seconds": drawn(0.6, 2.5)}, 0.6, seen),
        Move(op.CorruptState, {"how": drawn(*op.CORRUPTIONS)}, 0.5, manned),
        Move(op.MoveSource, {"path": drawn("upstream.txt", "shared.txt")}, 0.5, can_commit),
        Move(
            op.DirtySource,
            {
                "undo": undo,
                "how": drawn("edit", "stage", "merge", "rebase", "untracked"),
                "path": drawn("test.txt", "other.txt", "shared.txt"),
            },
            lambda s, _o: 3.0 if _model(s).source_dirty else 0.5,
            lies_nowhere,
        ),
        Move(faults.SilentClient, {"lasting": drawn(True)}, 0.3, _running),
        *hazards.beside(when=calm, has_lock=profile.has_lock),
    )


def _place(scene: Scene, command: Operation) -> str:
    """Only an accept surely touches the user's repository; the others would feel nothing there."""
    return (
        scene.pick(("state", "source"))
        if isinstance(command, op.Accept | op.AcceptReviewed)
        else "state"
    )


def _bereft(scene: Scene, command: Operation) -> Operation:
    return op.KillDaemon(command, scene.pick(CHANGES))


def _works_for(scene: Scene, command: Operation) -> bool:
    """There is a daemon, which may do something about this command."""
    return _running(scene) and not isinstance(command, op.Up | op.Down | op.Doctor)


def _paused(scene: Scene, command: Operation) -> Operation:
    return op.PauseProcess("daemon", 0.3, during=command)


def _follows(scene: Scene, operation: Operation) -> Iterable[Operation]:
    """What settles who exists, and that a fault was on while the target was asked something."""
    if isinstance(operation, common.LibraryFault) and operation.lasting:
        yield op.Status()
        if operation.harmless:
            # The model does not keep it in mind, and some faults do not go with others.
            yield common.Heal()
    if operation.ends_world:
        accepts = any(isinstance(part, op.Accept | op.AcceptReviewed) for part in walk(operation))
        if accepts and not _model(scene).source_dirty and scene.chance.random() < GOES_ON:
            yield op.MoveSource(while_dead=True)  # somebody goes on from what the accept has left
        yield op.Up()
    if isinstance(operation, op.Add) and not plain_name(operation.worker):
        yield op.Nuke(operation.worker)
    inside = list(walk(operation))[1:]
    if isinstance(operation, common.ExpectError):
        return
    for part in inside:
        if isinstance(part, op.Add | op.Nuke):
            yield part
            break


def _recovery(scene: Scene) -> Iterator[Operation]:
    """Faults off; everything must converge, and the work that is ready is accepted."""
    model = _model(scene)
    if model.lasting:
        yield common.Heal()
    if model.source_dirty:
        yield op.DirtySource(undo=True)
    if not model.attended:
        yield op.Up()
    yield from (common.Settle(), op.Doctor(), op.Status(), op.Down())
