"""What exploration may do with a session."""

from __future__ import annotations

from collections.abc import Iterable

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.model import NONE
from mutiny.contracts.session.observation import ENDED
from mutiny.contracts.session.profile import SessionProfile
from mutiny.contracts.session.recipes import QUICK
from mutiny.contracts.session.supported import supported
from mutiny.kit import faults, hazards
from mutiny.kit.exploring import Each, Explored, Move, Scene, Some, drawn
from mutiny.kit.operations import KillDuring, Parallel, Settle, SweepPoint
from mutiny.model.operation import Operation, walk

HOURS = 0.006
"""Long enough that a session still runs when the last operation is done."""
EARLY = 12
"""So many operations are done long before it ends, also on a machine with other work to do."""
HOURLY = ("agent_calls_hour", "agent_tokens_hour")
"""Limits with which a session comes to its end only after an hour."""
ERRORS = (
    *("rate_limit", "overload", "malformed", "reset", "server", "cut", "error_event", "split"),
    "stall",
)
KNOBS = (
    *(("interval_s", "1"), ("calls_interval", "4"), ("tokens_interval", "2000")),
    *(("retries", "1"), ("keep", "3"), ("vote_rounds", "1"), ("backoffs", "1"), ("backoffs", "2")),
    *(("context_tokens", "560"), ("max_agents", "2"), ("gate_attempts", "1")),
    *(("task_attempts", "2"), ("backoff_cap_s", "0.5"), ("deadlock", "escalate")),
)


def explored(profile: SessionProfile) -> Explored:
    """All of it, for one target."""
    project = profile.projects[0]
    return Explored(
        opening=lambda scene: (
            *(op.Configure(name, value) for name, value in QUICK.items()),
            *(op.Configure(name, value) for name, value in _knobs(scene).items()),
            op.StartSession(project=project, hours=HOURS, agents=scene.pick((2, 3))),
        ),
        moves=(
            Move(
                op.StartSession,
                {"project": _is(project), "hours": _is(HOURS), "agents": Each(lambda _s: (2, 9))},
                weight=lambda scene, _o: 0.3 if _there(scene) else 6.0,
            ),
            Move(
                op.StartSession,
                {"project": _is(project), "hours": _is(HOURS), "agents": drawn(2)},
                weight=6.0,
                when=_ended,
            ),
            # It spoils the votes of the session that comes next.
            Move(
                op.AgentDeadlock,
                {"how": drawn("split", "mute")},
                weight=6.0,
                when=lambda scene, one: _ended(scene, one) and not scene.taken(op.AgentDeadlock),
            ),
            Move(op.Checkpoint, weight=2.0, when=_may_be_served),
            Move(op.VerifyCheckpoint, weight=0.8, writes=False),
            Move(op.Restore, weight=1.0, when=_may_be_served, writes=False),
            Move(op.Restore, {"checkpoint": Some(lambda _scene: (0, 1, 50))}, weight=0.3),
            Move(op.Recover, weight=3.0, when=_down),
            Move(op.Health, weight=0.4, writes=False),
            Move(op.Metrics, {"written": drawn(False, False, True)}, 0.4, writes=False),
            Move(
                op.Status,
                {"name": Each(lambda _s: ("",), lambda _s: ("nobody",))},
                weight=0.6,
                writes=False,
            ),
            Move(op.Report, {"written": drawn(False, False, True)}, 0.3, writes=False),
            Move(op.Pause, weight=0.6, when=_may_be_served, writes=False),
            Move(op.Continue, weight=1.5, when=_paused, writes=False),
            Move(op.Stop, weight=0.2, when=_may_be_served, writes=False),
            Move(op.WaitForTasks, {"count": drawn(1, 2, 3)}, weight=1.0, when=_runs),
            *_troubles(),
        ),
        around=hazards.broken(profile.sure_calls),
        recovery=_recovery,
        goes_on=_ends_soon,
        supported=lambda operation: supported(profile, operation),
        pairable=_pairable,
        follows=_follows,
        refused=lambda operation: operation,
    )


def _troubles() -> tuple[Move, ...]:
    """What may happen to a session at work, and to one that has died."""
    return (
        Move(
            op.ModelError,
            {"error": drawn(*ERRORS), "times": drawn(1, 1, 1, 2, 3)},
            weight=1.0,
            when=_runs,
        ),
        Move(
            op.ModelError,
            {"retry_after_s": drawn(1, 2), "times": drawn(1, 2)},
            weight=0.4,
            when=_runs,
        ),
        Move(op.BadWork, {"how": drawn("raises", "slow", *op.SPOILS)}, 0.4, when=_runs),
        Move(op.OddBytes, {"what": drawn(*op.ODD)}, 0.3, when=_runs),
        Move(op.Trespass, {"where": drawn(*op.OUT_OF_BOUNDS)}, 0.2, when=_runs),
        Move(
            op.Trespass,
            {"where": drawn("above", "machine"), "reads": drawn(True)},
            weight=0.2,
            when=_runs,
        ),
        Move(op.ToolTimeout, weight=0.3, when=_runs),
        Move(op.DiskFull, {"seconds": drawn(1.0, 2.0)}, 0.3, when=_runs),
        Move(faults.FillDisk, {"lasting": drawn(True)}, 0.3, when=_runs),
        Move(op.ClockJump, {"offset_s": drawn(3600.0, -3600.0)}, 0.2, when=_runs),
        Move(op.TouchCheckpoints, weight=0.2, when=_crashed_later),
        Move(op.LetRun, {"seconds": drawn(1.0, 3.0)}, weight=0.5, when=_runs),
        Move(op.KillAgent, weight=0.6, when=_runs),
        Move(op.SystemCrash, {"alone": drawn(False, True)}, weight=1.2, when=_up),
        Move(op.SystemCrash, {"told": drawn(*op.TOLD)}, weight=0.3, when=_runs),
        Move(op.SystemCrash, {"asked": drawn(True)}, weight=0.3, when=_runs),
        Move(op.HalfDone, {"what": drawn(*op.HALVES)}, 0.5, when=_crashed),
        Move(op.CorruptCheckpoint, {"part": drawn("body", "key")}, 0.6, when=_crashed),
        Move(op.CorruptCheckpoint, {"part": drawn("delta")}, 0.3, when=_crashed_later),
    )


def _ends_soon(begun: tuple[Operation, ...]) -> bool:
    return not any(isinstance(one, op.Configure) and one.name in HOURLY for one in begun)


def _knobs(scene: Scene) -> dict[str, str]:
    """One or two settings beside the pace."""
    return dict(scene.chance.sample(KNOBS, scene.pick((1, 2))))


def _is(value: object) -> Each:
    return Each(lambda _scene: (value,))


def _statuses(scene: Scene) -> frozenset[str]:
    return frozenset[str]().union(*(model.status for model in scene.walk.models))


def _may_be_served(scene: Scene, operation: Operation) -> bool:
    return scene.walk.served(operation) is not False


def _there(scene: Scene) -> bool:
    """Is there a session already?"""
    return bool(_statuses(scene) - NONE)


def _runs(scene: Scene, _operation: Operation) -> bool:
    """Surely it runs; early in a sequence also where it might be over, for it lasts much longer."""
    return _statuses(scene) == {"running"} or ("running" in _statuses(scene) and _early(scene))


def _early(scene: Scene) -> bool:
    """It has hardly begun: it surely was, and nobody has waited for its end."""
    begun = "none" not in _statuses(scene) and not scene.taken(op.WaitForStatus)
    return begun and sum(scene.counts.values()) - scene.taken(op.Configure) < EARLY


def _ended(scene: Scene, _operation: Operation) -> bool:
    """Surely there was a session, and it is at its end."""
    return bool(_statuses(scene)) and _statuses(scene) <= set(ENDED)


def _up(scene: Scene, _operation: Operation) -> bool:
    sure = bool(_statuses(scene)) and _statuses(scene) <= {"running", "paused"}
    return sure or (bool(_statuses(scene) & {"running", "paused"}) and _early(scene))


def _paused(scene: Scene, _operation: Operation) -> bool:
    return "paused" in _statuses(scene)


def _down(scene: Scene, _operation: Operation) -> bool:
    return "interrupted" in _statuses(scene)


def _crashed(scene: Scene, operation: Operation) -> bool:
    damaged = any(model.damaged for model in scene.walk.models)
    return "interrupted" in _statuses(scene) and not damaged


def _crashed_later(scene: Scene, operation: Operation) -> bool:
    """It crashed when it had checkpoints, and tasks that were done since."""
    return _crashed(scene, operation) and bool(
        scene.taken(op.Checkpoint) and scene.taken(op.WaitForTasks)
    )


def _pairable(_scene: Scene, one: Operation, other: Operation) -> bool:
    """Two that look, or two that the beliefs can follow in either order."""
    return not any(isinstance(part, op.StartSession) for part in (one, other))


def _follows(_scene: Scene, operation: Operation) -> Iterable[Operation]:
    """Whoever broke it off brings it back, so that something runs again."""
    parts = list(walk(operation))
    if any(isinstance(part, SweepPoint | KillDuring) for part in parts):
        return (op.Status(), op.Recover())
    if isinstance(operation, Parallel):
        return (op.Status(),)
    return ()


def _recovery(scene: Scene) -> tuple[Operation, ...]:
    return (op.Status(), op.Recover(), op.Status(), Settle(), op.VerifyCheckpoint())
