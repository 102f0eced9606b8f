"""Beliefs about a board: what each task is, who was heard of when, who leads.

A board does what it is told, so the beliefs are exact; only time blurs them. A moment is known as a
span of our own clock, from before a command was given until after it was answered, so that "the
lease is over" has three answers: yes, no, and too close to tell.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.contracts.board.operations import HELD, TERMINAL
from mutiny.contracts.board.profile import LONGEST_WAIT_S, BoardProfile
from mutiny.contracts.board.tasks import (
    Breaker,
    Bucket,
    Leader,
    Task,
    Tasks,
    hopeless,
    hull,
    join_breakers,
    join_buckets,
    join_leaders,
    join_tasks,
    number_used,
)
from mutiny.kit.beliefs import ANYTIME, ModelBase, Span, older
from mutiny.kit.outcome import Outcome

FINISHING = ("healthy", "slow", "skewed", "double", "stranger", "flood", "deaf")
"""Behaviours of spawned workers that complete what they claim."""

MOST_UNDECIDED = 8


@dataclass(frozen=True)
class BoardModel(ModelBase):
    """All beliefs."""

    profile: BoardProfile = field(default_factory=BoardProfile)
    initialised: bool = False
    up: frozenset[bool] = frozenset({False})
    """Does the server run? A board without a server needs none."""
    brings_server: bool = False
    """Each command brings a server of its own: it may find that of another command there."""
    tasks: Tasks = field(default_factory=dict)
    heard: Mapping[str, Span] = field(default_factory=dict)
    """When each worker last showed that it lives."""
    given: Mapping[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    """Epochs that a worker was given for a task, in their order."""
    leader: Leader | None = None
    top_token: int = 0
    tokens: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Leader tokens that a node was given, in their order."""
    writes: tuple[tuple[str, int, str], ...] | None = ()
    """What leaders have written last: who, with which token, what; None: nobody knows."""
    checkpoints: Mapping[str, Tasks] = field(default_factory=dict)
    undecided: tuple[Tasks, ...] = ()
    """What the tasks would be if the commands that nobody answered had gone the other way. A repair may
    bring these back: it has to keep what was acknowledged, and only that.
    """
    breaker: Breaker = field(default_factory=Breaker)
    buckets: Mapping[str, Bucket] = field(default_factory=dict)
    spawned: Mapping[str, str] = field(default_factory=dict)
    """Workers that run in the background, with their behaviour."""
    at_stop: Mapping[str, int] = field(default_factory=dict)
    """Attempts of the tasks that its own agents held when the board was last stopped in good order."""
    unruly: bool = False
    """Agents of the board's own were told to fail: an attempt may end at any moment."""
    damaged: bool = False
    """The state was damaged, and nobody has repaired it yet."""
    vague: frozenset[str] = frozenset()
    """Checkpoints that were taken while others worked: nobody knows how far they had come."""
    spoiled: frozenset[str] = frozenset()
    """Checkpoints that a lying disk took: no repair brings them back."""

    # --- reading ---------------------------------------------------------------------------------

    @property
    def serving(self) -> bool | None:
        """Is there somebody to answer? None when that is not known."""
        if not self.profile.server:
            return True
        return next(iter(self.up)) if len(self.up) == 1 else None

    @property
    def loose(self) -> bool:
        """Somebody else works on the board: tasks change by themselves."""
        return bool(self.spawned) or self.profile.works

    def next_order(self) -> int:
        """Later than all tasks that are there."""
        return 1 + max((task.order for task in self.tasks.values()), default=0)

    def top_epoch(self, task: str) -> int:
        """The newest epoch that this task, or one of its name that a restore removed, was claimed with."""
        known = (epochs[-1] for (_, name), epochs in self.given.items() if name == task and epochs)
        now = self.tasks.get(task)
        return max((0 if now is None else now.epoch, *known))

    def epoch_used(self, worker: str, task: str, *, stale: bool) -> int | None:
        """The epoch that a worker names; None when it was never given one."""
        return number_used(self.given.get((worker, task), ()), stale=stale)

    def token_used(self, node: str, *, stale: bool, borrowed: bool = False) -> int:
        """The token that a node shows; `borrowed`: the newest of all."""
        if borrowed:
            return max((number for given in self.tokens.values() for number in given), default=0)
        return number_used(self.tokens.get(node, ()), stale=stale) or 0

    def stale(self, owner: str | None, when: Span) -> bool | None:
        """Is this owner's lease over at that moment? None when that is too close to tell."""
        if not self.profile.leases:
            return False
        heard = self.heard.get(owner or "", ANYTIME)
        figures, tolerance_s = self.profile.figures, self.profile.limits.tolerance_s
        over = older(when, heard, figures.lease_s, tolerance_s)
        if over is False and figures.shortest_lease_s:
            early = older(when, heard, figures.shortest_lease_s, tolerance_s)
            return False if early is False else None
        return over

    def leader_gone(self, when: Span) -> bool | None:
        """Is the leader's lease over?"""
        if self.leader is None:
            return True
        lease_s = self.profile.figures.leader_lease_s
        return older(when, self.leader.renewed, lease_s, self.profile.limits.tolerance_s)

    def rested(self, task: Task, when: Span) -> bool | None:
        """Has the task rested long enough?"""
        if task.rest is None or when.earliest > task.rest.latest:
            return True
        return False if when.latest < task.rest.earliest else None

    # --- writing ---------------------------------------------------------------------------------

    def with_task(self, task: Task) -> BoardModel:
        """With this task as it is now."""
        return replace(self, tasks={**self.tasks, task.id: task})

    def spoke(self, worker: str, when: Span, *, sure: bool) -> BoardModel:
        """A worker was heard of; `sure`: so that no board can have missed it."""
        old = self.heard.get(worker)
        latest = when.latest if old is None else max(when.latest, old.latest)
        earliest = when.earliest if sure else (-math.inf if old is None else old.earliest)
        return replace(self, heard={**self.heard, worker: Span(earliest, latest)})

    def all_blurred(self, *, leases_kept: bool = False) -> BoardModel:
        """The world stood still or began anew: no lease is known any more.

        `leases_kept`: a lease that was promised may last longer from here on, but is not over earlier.
        """
        owners = {task.owner for task in self.tasks.values() if task.owner} | set(self.heard)

        def blurred(known: Span) -> Span:
            return Span(known.earliest, math.inf) if leases_kept else ANYTIME

        leader = self.leader and replace(self.leader, renewed=blurred(self.leader.renewed))
        rests = {
            name: replace(task, rest=None if task.rest is None else Span(-math.inf, math.inf))
            for name, task in self.tasks.items()
        }
        buckets = {
            name: Bucket(0.0, float(self.profile.figures.rate_burst), ANYTIME)
            for name in self.buckets
        }
        return replace(
            self,
            heard={owner: blurred(self.heard.get(owner, ANYTIME)) for owner in owners},
            leader=leader,
            tasks=rests,
            buckets=buckets,
        )

    def acknowledged(self, before: BoardModel) -> BoardModel:
        """A change was confirmed: it and all that it was built on has to survive a repair."""
        same = before.tasks == self.tasks and before.leader == self.leader
        return self if same or not self.undecided else replace(self, undecided=())

    def or_else(self, others: Iterable[BoardModel]) -> BoardModel:
        """Nobody knows whether this has happened or one of the others; a look may tell, a repair
        may still take it back.
        """
        tasks = [*self.undecided]
        for other in others:
            if other.tasks != self.tasks and other.tasks not in tasks:
                tasks.append(other.tasks)
        guessed = self.guessed or len(tasks) > MOST_UNDECIDED
        return replace(self, undecided=tuple(tasks[-MOST_UNDECIDED:]), guessed=guessed)

    # --- looking ---------------------------------------------------------------------------------

    def as_seen(self, seen: BoardObservation) -> BoardModel:
        """The same tasks, as far on as they are seen."""
        tasks = dict(self.tasks)
        for name, view in (seen.tasks or {}).items():
            if name in tasks:
                mine = tasks[name]
                tasks[name] = replace(
                    mine,
                    status=view.status,
                    owner=self._holder(mine, view),
                    attempts=mine.attempts if view.attempts is None else view.attempts,
                    rest=ANYTIME,
                )
        return replace(self, tasks=tasks)

    def _holder(self, mine: Task, view: TaskView) -> str | None:
        """Who holds a task as it is seen; where no record says it, whoever was believed to."""
        seen = view.owner if self.profile.shows_owners else mine.owner
        return seen if view.status in HELD else None

    def adopt(self, seen: BoardObservation) -> BoardModel:
        """The board as it is seen, whatever was believed before; nothing is known about leases."""
        if seen.tasks is None:
            return replace(self.all_blurred(), writes=None)
        tasks = {}
        for order, (name, view) in enumerate(seen.tasks.items(), 1):
            mine = self.tasks.get(name, Task(name, order=order))
            tasks[name] = replace(
                mine,
                status=view.status,
                owner=self._holder(mine, view),
                epoch=mine.epoch if view.epoch is None else view.epoch,
                attempts=mine.attempts if view.attempts is None else view.attempts,
                max_attempts=view.max_attempts or mine.max_attempts,
                priority=mine.priority if view.priority is None else view.priority,
                depends=view.depends,
                output=view.output,
                rest=ANYTIME,
            )
        token = self.top_token if seen.token is None else seen.token
        leader = None if seen.leader is None else Leader(seen.leader, token, ANYTIME)
        known = replace(
            self, tasks=tasks, leader=leader, top_token=token, undecided=(), writes=None
        )
        return known.all_blurred()

    def see(self, seen: BoardObservation) -> BoardModel:
        """Take over what only the board knows: epochs; and, when others work on it, everything."""
        taken = replace(self._take_over(seen), brings_server=False)
        return taken.without(frozenset(self.spawned) - seen.living, seen.began)

    def _rest_seen(self, mine: Task, status: str, attempts: int) -> Span | None:
        """What others left available may rest, after an attempt or a retry."""
        if status != "available":
            return None
        if mine.status == "available" and mine.rest is not None:
            return mine.rest
        return ANYTIME if attempts or self.profile.retry_rests else None

    def without(self, gone: frozenset[str], now: float) -> BoardModel:
        """These spawned workers have ended; they may have been heard of until now."""
        if not gone:
            return self
        left = {name: how for name, how in self.spawned.items() if name not in gone}
        heard = {**self.heard, **dict.fromkeys(gone, Span(-math.inf, now))}
        return replace(self, spawned=left, heard=heard)

    def _take_over(self, seen: BoardObservation) -> BoardModel:
        if seen.tasks is None:
            return self
        tasks = dict(self.tasks)
        for name, view in seen.tasks.items():
            mine = tasks.get(name)
            if mine is None:
                continue
            epoch = mine.epoch if view.epoch is None else max(mine.epoch, view.epoch)
            mine = replace(mine, epoch=epoch)
            if self.loose:
                attempts = mine.attempts if view.attempts is None else view.attempts
                owner = self._holder(mine, view) if view.status in HELD else mine.owner
                rest = self._rest_seen(mine, view.status, attempts)
                mine = replace(mine, status=view.status, owner=owner, rest=rest, attempts=attempts)
            tasks[name] = mine
        heard = self.heard
        if self.loose:
            known = {task.owner for task in tasks.values() if task.held and task.owner}
            heard = {**heard, **dict.fromkeys(known & set(self.spawned), ANYTIME)}
        token = self.top_token if seen.token is None else max(self.top_token, seen.token)
        return replace(self, tasks=tasks, heard=heard, top_token=token)

    # --- what is due -----------------------------------------------------------------------------

    def pending(self, seen: BoardObservation) -> tuple[str, ...]:
        """What has still to happen by itself: with healthy workers every task comes to its end."""
        if seen.tasks is None:
            trouble = seen.state_error or "the board cannot be looked at"
            due = self.serving is True and self.initialised and not self.damaged
            return (trouble,) if due else ()
        if not self._hands(seen) and not self.profile.works:
            return ()
        waiting = self.later(seen)
        return tuple(
            f"task {view.id} is {view.status}" + (f" by {view.owner}" if view.owner else "")
            for view in seen.tasks.values()
            if view.status not in TERMINAL and view.id not in waiting
        )

    def _hands(self, seen: BoardObservation) -> frozenset[str]:
        """Spawned workers that live and finish what they claim."""
        return frozenset(
            name
            for name, how in self.spawned.items()
            if how.partition(":")[0] in FINISHING and name in seen.living
        )

    def later(self, seen: BoardObservation) -> frozenset[str]:
        """Tasks that the board, by its own figures, leaves for longer than a run lasts."""
        tasks = seen.tasks or {}
        found = {view.id for view in tasks.values() if self._put_off(seen, view)}
        never = {"failed", "cancelled"} - {*hopeless(self.profile)}  # until somebody decides
        grown = True
        while grown:
            behind = {
                view.id
                for view in tasks.values()
                if view.status == "blocked"
                and any(one in found or seen.status_of(one) in never for one in view.depends)
            }
            grown = not behind <= found
            found |= behind
        return frozenset(found)

    def _put_off(self, seen: BoardObservation, view: TaskView) -> bool:
        profile, figures = self.profile, self.profile.figures
        if view.status in HELD:
            finishes = view.owner in self._hands(seen)
            long = profile.leases and figures.lease_s > LONGEST_WAIT_S
            return not finishes and (long or profile.keeps_claims)
        if view.status == "available" and figures.longest_rest_s > LONGEST_WAIT_S:
            mine = self.tasks.get(view.id)
            retried = profile.retry_rests and mine is not None and mine.rest is not None
            return bool(view.attempts) or retried
        return False

    # --- several at once -------------------------------------------------------------------------

    def outline(self) -> Hashable:
        """What tells most worlds apart, and can be looked up."""
        tasks = frozenset(
            (task.id, task.status, task.owner, task.epoch, task.attempts)
            for task in self.tasks.values()
        )
        leader = self.leader and (self.leader.node, self.leader.token)
        return tasks, leader, self.up, self.damaged, self.doubted

    def join(self, other: BoardModel) -> BoardModel | None:
        """One that is less sure of moments, when the two differ in nothing else."""
        if self._timeless() != other._timeless():
            return None
        both = set(self.heard) & set(other.heard)
        fresh = (tasks for tasks in other.undecided if tasks not in self.undecided)
        return replace(
            self,
            tasks={name: join_tasks(task, other.tasks[name]) for name, task in self.tasks.items()},
            leader=join_leaders(self.leader, other.leader),
            breaker=join_breakers(self.breaker, other.breaker),
            heard={name: hull(self.heard[name], other.heard[name]) for name in both},
            buckets=join_buckets(self.buckets, other.buckets),
            undecided=(*self.undecided, *fresh),
            guessed=self.guessed or other.guessed,
        )

    def _timeless(self) -> BoardModel:
        tasks = {name: replace(task, rest=None) for name, task in self.tasks.items()}
        leader = None if self.leader is None else replace(self.leader, renewed=ANYTIME)
        breaker = replace(self.breaker, opened=self.breaker.opened and ANYTIME)
        return replace(
            self,
            tasks=tasks,
            leader=leader,
            breaker=breaker,
            heard={},
            buckets={},
            undecided=(),
            guessed=False,
        )


BoardOutcome = Outcome[BoardModel]
"""One right outcome of a command said to a board."""
