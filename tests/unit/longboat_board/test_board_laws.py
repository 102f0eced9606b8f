"""Laws of the pure core under random commands: what no sequence of verbs may ever break."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from longboat.board import codec, engine
from longboat.board.config import Config
from longboat.board.ledger import Guards, MemoryLedger, Moment
from longboat.board.values import HELD, TERMINAL, Board, Command, NewTask

CONFIG = Config(lease_s=3, leader_lease_s=3, retry_base_s=1, retry_cap_s=4, max_attempts=2)
NAMES = ("a", "b", "c", "d")
WORKERS = ("w1", "w2")

names = st.sampled_from(NAMES)
workers = st.sampled_from(WORKERS)
epochs = st.none() | st.integers(0, 3)
new_tasks = st.builds(
    NewTask,
    st.just("x"),
    names,
    st.integers(1, 3),
    st.lists(names, max_size=2).map(tuple),
    st.none() | st.integers(1, 2),
)
commands = st.one_of(
    st.builds(lambda new: Command("add", new=(new,)), new_tasks),
    st.builds(
        lambda new: Command("add-batch", new=tuple(new)),
        st.lists(new_tasks, min_size=1, max_size=3),
    ),
    st.builds(lambda w: Command("claim", worker=w), workers),
    st.builds(
        lambda verb, w, t, e: Command(verb, worker=w, task=t, epoch=e),
        st.sampled_from(("start", "complete", "fail", "release", "claim", "heartbeat")),
        workers,
        names,
        epochs,
    ),
    st.builds(
        lambda verb, t: Command(verb, task=t),
        st.sampled_from(("cancel", "retry", "recover")),
        names,
    ),
    st.builds(
        lambda verb, n, t: Command(verb, name=n, token=t, text="x"),
        st.sampled_from(("elect", "renew", "step-down", "write-as-leader")),
        workers,
        st.integers(1, 4),
    ),
    st.builds(lambda verb: Command(verb, name="cp"), st.sampled_from(("checkpoint", "restore"))),
)
steps = st.lists(st.tuples(commands, st.floats(0, 2)), max_size=40)


class World:
    """A board, its clock, who was heard of, and a checkpoint."""

    def __init__(self) -> None:
        self.board = Board()
        self.now = 1000.0
        self.beats: dict[str, float] = {}
        self.leader_beat = float("-inf")
        self.saved: Board | None = None

    def moment(self) -> Moment:
        return Moment(self.now, self.beats, self.leader_beat)

    def step(self, command: Command, pause_s: float) -> bool:
        self.now += pause_s
        if engine.beats(command):
            self.beats[command.worker] = self.now
        if command.verb == "checkpoint":
            self.saved = self.board
            return True
        if command.verb == "restore":
            if self.saved is None:
                return False
            ledger = MemoryLedger(self.board, CONFIG, Guards(with_breaker=False))
            engine.restore(ledger, self.saved)
            self.board = ledger.board()
            return True
        self.board, answer = engine.apply(self.board, command, self.moment(), CONFIG)
        if answer["ok"] and engine.renews(command):
            self.leader_beat = self.now
        return bool(answer["ok"])


def check(before: Board, after: Board, command: Command, world: World) -> None:
    """What every single step keeps."""
    restored = command.verb == "restore"
    for task in after.tasks.values():
        was = before.tasks.get(task.id)
        assert (task.owner is not None) or task.status not in HELD
        assert task.completions <= 1
        assert task.attempts <= task.max_attempts
        if task.status in HELD:
            needed = [after.tasks[name].status for name in task.depends]
            assert set(needed) <= {"done"}, "runs only after what it depends on"
        if was is None:
            continue
        assert task.epoch >= was.epoch
        if was.owner != task.owner and task.status in HELD:
            assert task.epoch == was.epoch + 1, "a new owner, a new epoch"
        if was.status in TERMINAL and not restored:
            allowed = {was.status}
            if was.status == "failed" and command.verb == "retry":
                allowed = {"available", "blocked", "failed"}
            assert task.status in allowed, "terminal stays terminal"
        if (
            was.status in HELD
            and task.status == "available"
            and command.verb in ("claim", "recover")
        ):
            assert world.now - world.beats[was.owner or ""] > CONFIG.lease_s, "robbed"
    assert after.leader.token >= before.leader.token
    assert after.sequence >= before.sequence
    if before.leader.node != after.leader.node and after.leader.node is not None:
        assert after.leader.token == before.leader.token + 1
    assert codec.read_board(codec.write_board(after)) == after


@settings(max_examples=80, deadline=None)
@given(steps)
def test_no_step_breaks_a_law(steps: list[tuple[Command, float]]) -> None:
    world = World()
    for command, pause_s in steps:
        before = world.board
        accepted = world.step(command, pause_s)
        if not accepted and command.verb != "claim":
            assert world.board is before, "a refusal changes nothing"
        check(before, world.board, command, world)


@settings(max_examples=30, deadline=None)
@given(steps)
def test_everything_settles(steps: list[tuple[Command, float]]) -> None:
    world = World()
    for command, pause_s in steps:
        world.step(command, pause_s)
    for _ in range(100):
        if all(task.status in TERMINAL for task in world.board.tasks.values()):
            return
        world.step(Command("claim", worker="w9"), 5.0)
        for task in list(world.board.tasks.values()):
            if task.owner == "w9" and task.status in HELD:
                world.step(Command("complete", worker="w9", task=task.id, epoch=task.epoch), 0)
    raise AssertionError(world.board)


@settings(max_examples=30, deadline=None)
@given(steps, steps)
def test_a_restore_is_exact(
    first: list[tuple[Command, float]], second: list[tuple[Command, float]]
) -> None:
    world = World()
    for command, pause_s in first:
        if command.verb not in ("checkpoint", "restore"):
            world.step(command, pause_s)
    saved = world.board
    for command, pause_s in second:
        if command.verb not in ("checkpoint", "restore"):
            world.step(command, pause_s)
    world.saved = saved
    world.step(Command("restore", name="cp"), 0)
    assert list(world.board.tasks) == list(saved.tasks)
    for name, task in world.board.tasks.items():
        was = saved.tasks[name]
        if was.status in HELD:
            was = was._replace(status="available", owner=None, history=task.history)
        assert task == was._replace(epoch=task.epoch)
