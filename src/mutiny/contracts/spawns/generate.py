"""What exploration may do with agents that summon agents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from mutiny.contracts.spawns import operations as op
from mutiny.contracts.spawns.profile import SpawnsProfile
from mutiny.contracts.spawns.supported import supported
from mutiny.kit import hazards
from mutiny.kit.domains import casts
from mutiny.kit.exploring import Around, Each, Explored, Move, Scene, Some, drawn
from mutiny.kit.operations import KillDuring, Settle, Sleep, SweepPoint
from mutiny.model.operation import Operation, walk

Turns = Callable[[Scene], list[tuple[str, ...]]]
CHANNELS = ("dev", "ops")
AGENTS = ("prime", "hailot", "auger", "sentinel")
PROVIDERS = ("claude", "claude", "gemini", "codex")
CALM = ("reply", "quiet", "slow:200+reply", "slow:600+quiet", "stdin+reply")
WILD = (
    *("exit:1", "die", "reply+die", "reply+exit:1", "silent", "hang", "leave+reply", "human"),
    "ignore-term+leave+reply",
    *("echo", "flood:3", "ignore-term+slow:500+reply", "bytes+reply", "busy:900+reply"),
    *("slow:200+human", "human+slow:600+exit:1", "slow:300+exit:1", "slow:900+die"),
)
FIGURES = (
    *(("max_depth", 1.0), ("max_depth", 2.0), ("max_runs", 3.0), ("max_runs", 8.0)),
    *(("max_running", 1.0), ("max_running", 2.0), ("retries", 0.0), ("retries", 2.0)),
    *(("timeout_s", 3.0), ("stall_s", 1.5), ("no_session_s", 1.5), ("retry_delay_s", 0.1)),
)
"""Settings that a home may have from its beginning; every second one has some."""
MOST_FIGURES = 3
WORDS = ("please look", "go on", "and now?", 'say "yes"; $(false) %s', "a@b.org and `@prime`")


_LOOKS_BACK = {
    "reader": Each(lambda _scene: ("reader",)),
    "again": Each(lambda _scene: (0, 3)),
    "most": Each(lambda _scene: (1, 2)),
}


def explored(profile: SpawnsProfile) -> Explored:
    """All of it, for one target."""
    agent, channel = Each(_agents, _strangers), Each(lambda _scene: CHANNELS)
    turns = partial(_turns, profile.roams)
    return Explored(
        opening=partial(_opening, turns),
        names={"agent": casts(AGENTS[:3])},
        moves=(
            Move(op.Send, {"channel": channel, "text": Some(_texts)}, 4.0),
            Move(op.Spawn, {"agent": agent, "text": Some(_plain), "channel": channel}, 0.3),
            Move(op.Behave, {"agent": Each(_agents), "does": Some(turns)}, 0.4),
            Move(op.Stop, {"agent": agent, "channel": channel}, 0.25),
            Move(op.StopAll, weight=0.2, writes=False),  # there may be nothing to stop
            Move(op.StopAll, {"channel": channel}, 0.1, writes=False),
            Move(op.StopAll, {"agent": Each(_agents)}, 0.2, writes=False),
            Move(op.Cleanup, weight=0.8, writes=False),  # nor anything to clean up
            Move(op.Health, weight=0.6, writes=False),
            Move(op.ListSpawns, weight=0.3, writes=False),
            Move(op.Chain, weight=0.3, writes=False),
            Move(op.Receive, {"channel": channel, "reader": Some(_readers)}, 0.3, writes=False),
            Move(op.Logs, {"agent": agent, "channel": channel}, 0.2, writes=False),
            Move(op.Receive, {"channel": channel, **_LOOKS_BACK}, 0.2, writes=False),
            Move(op.Await, {"agents": Some(_groups), "channel": channel}, 0.4, writes=False),
            Move(op.AwaitHuman, {"channel": channel}, 0.1, writes=False),
            Move(op.Register, {"agent": agent}, 0.1, writes=False),  # it is there already
            Move(op.Register, {"agent": agent, "model": drawn("another")}, 0.1, writes=False),
            Move(op.CreateChannel, {"channel": channel}, 0.1, writes=False),  # so is this
            Move(op.WaitForQuiet, weight=0.7),
            Move(Sleep, {"seconds": Some(lambda _scene: (0.1, 0.4))}, 0.5),
        ),
        around=(
            Around(op.KillSender, lambda _s, o: op.KillSender(o), True, _sends, 2.0),
            Around(op.HoldDatabase, lambda s, o: op.HoldDatabase(o, s.pick((0.2, 0.8)))),
            *hazards.broken(profile.sure_calls),
            *hazards.disks(lambda _scene, _operation: "state", full=("bytes",)),  # a database
            *hazards.clock(),
        ),
        recovery=lambda _scene: (op.Cleanup(), op.StopAll(), *_end()),
        supported=lambda operation: supported(profile, operation) and _followed(operation),
        follows=_follows,
        refused=lambda operation: operation,
        pairable=lambda _scene, one, other: (
            not isinstance(one, op.Init | op.Register)
            and not isinstance(other, op.Init | op.Register)
        ),
    )


def _end() -> tuple[Operation, ...]:
    return (Settle(), op.ListSpawns(), op.Health(), Settle())


def _opening(turns: Turns, scene: Scene) -> Iterable[Operation]:
    yield op.Init()
    if scene.chance.random() < 0.5:
        some = scene.chance.sample(FIGURES, scene.chance.randint(1, MOST_FIGURES))
        yield from (op.Configure(name, value) for name, value in dict(some).items())
    yield from (op.CreateChannel(name) for name in CHANNELS)
    for name, provider in zip(_agents(scene), PROVIDERS, strict=False):
        yield op.Register(name, provider)
        yield op.Behave(name, scene.pick(turns(scene)))


def _agents(scene: Scene) -> tuple[str, ...]:
    """Names compare without case, so that no two may differ only in that."""
    return tuple({name.lower(): name for name in scene.names["agent"]}.values())


def _strangers(_scene: Scene) -> tuple[str, ...]:
    return ("nobody",)


def _texts(scene: Scene) -> list[str]:
    agents = _agents(scene)
    calls = [f"@{one}" for one in agents]
    calls += [f"@{one} @{other}" for one in agents for other in agents if one != other]
    calls += ["", " ".join(f"@{one}" for one in agents), f"see a@{agents[0]}.org", "@nobody"]
    return [f"{call} {scene.pick(WORDS)}".strip() for call in calls]


def _plain(_scene: Scene) -> tuple[str, ...]:
    return WORDS


def _turns(roams: bool, scene: Scene) -> list[tuple[str, ...]]:
    agents = _agents(scene)
    summons = [f"mention:{one}" for one in agents] + [f"mention:{','.join(agents)}"]
    summons += [  # what happens meanwhile comes between the two
        f"mention:{one}+slow:900+mention:{other}" for one in agents for other in agents
    ]
    if roams:
        summons += [f"in:{place}+mention:{one}" for place in CHANNELS for one in agents]
    first = [scene.pick(CALM), scene.pick(WILD), scene.pick(summons)]
    return [(scene.pick(first), scene.pick(CALM)), (scene.pick(CALM),), (scene.pick(first),)]


def _groups(scene: Scene) -> list[tuple[str, ...]]:
    agents = _agents(scene)
    return [agents[:1], agents[:2], agents]


def _readers(_scene: Scene) -> tuple[str, ...]:
    return ("", "reader")


def _sends(_scene: Scene, operation: Operation) -> bool:
    return isinstance(operation, op.Send | op.Spawn)


def _followed(operation: Operation) -> bool:
    """A run in the foreground may wait for ever, and a look at its log, too."""
    return not any(isinstance(part, op.Spawn) and not part.detach for part in walk(operation))


def _follows(_scene: Scene, operation: Operation) -> Iterable[Operation]:
    """Whoever broke something off cleans up, so that what is said is so again."""
    broken = any(isinstance(part, SweepPoint | KillDuring) for part in walk(operation))
    return (op.Cleanup(),) if broken else ()
