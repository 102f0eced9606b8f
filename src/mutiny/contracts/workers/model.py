"""What must be true now: beliefs about daemon, workers and work.

The model holds *sets* of statuses, because agents finish when they like. It is pure: beliefs and an
observation in, new beliefs out. Without an observation it runs symbolically, which is how the
explorer chooses operations and how the minimiser discards sequences that make no sense, both
without starting anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.profile import Profile
from mutiny.kit.beliefs import ANYTIME, ModelBase, Span

AGENT_MOVES: Mapping[str, tuple[str, ...]] = {
    "working": ("needs_review", "no_changes"),
    "rejected": ("working", "needs_review", "no_changes"),
    "rebasing": ("needs_review",),
    "reviewing": ("needs_review",),
}
"""Status changes that happen by themselves while an agent does its turn."""

COMPLETING = frozenset(
    {"obey", "slow", "dirty", "stray", "resolve", "give-up", "ignore-ctrl-c", "garbage"}
    | {
        "reshape",
        "reshape-dirty",
        "will-not-go",
        "late-stop",
        "double-stop",
        "unfinished",
        "busy-git",
    }
)
"""Behaviours of the double that end a turn with work done."""

UNTIMELY = ("late-stop", "late-commit", "double-stop", "no-stop")
"""Behaviours whose turn ends, as the agent tells it, too early, too late, twice or never."""
STRAYING = ("die-elsewhere", "die-detached")
"""Behaviours of the double that leave the worker's branch."""

_AT_REST = ("needs_review", "no_changes")
"""Statuses in which an agent has ended its turn, and its task goes on when somebody says so."""

ADDED = "Add"
"""What disturbs a worker that is just coming up."""

STUBBORN_HITS = 2
"""After so many faults on one task a target may give up and report an error instead of trying
again.
"""


def completing(behaviour: str) -> bool:
    """Does a turn with this behaviour end with work done?"""
    return behaviour.partition(":")[0] in COMPLETING


_NOTHING_TO_REBASE = ("idle", "no_changes", "error")
"""Whoever comes to rest so is owed no rebase any more."""


@dataclass(frozen=True)
class WorkerBelief:
    """What one worker may be."""

    name: str
    statuses: frozenset[str]
    offline_allowed: bool = True
    disturbed: str | None = None
    """The last fault that hit it, until it was seen well again."""
    disturbed_at: float = 0.0
    hits: int = 0
    """Faults since the current task began."""
    behaviours: tuple[str, ...] = ("obey",)
    """The double's script from the next turn on."""
    tokens: tuple[str, ...] = ()
    """Prompts of the current task that were acknowledged."""
    due_at: float | None = None
    """Since when the agent has been due to finish; None when it is not due at all."""
    moved_at: float = 0.0
    """When something new was last seen of it."""
    standings: frozenset[tuple[Hashable, Hashable]] = frozenset()
    """How it has been seen since something was last due from it."""
    received: bool = False
    """Its agent is known to be busy with what it was told last."""
    typed: bool = False
    """Somebody has typed something to its agent: it may begin by itself."""
    waits: Span | None = None
    """When it became ready for review; None: it is not. Where nobody can tell, it is at any time."""
    model: str = ""
    """The model that its agents are to be started with; empty: nobody knows."""
    stale_base: bool = False
    """The source moved since its branch began: a rebase, perhaps a conflict, lies ahead."""
    rebase_due: str = ""
    """Where the default branch was when a rebase was taken for its task, and nothing has hit it since."""
    put_off: bool = False
    """A rebase was taken while its agent worked: it comes once the turn is over, and may conflict then."""

    def away(self, reason: str, now: float, **more: Any) -> WorkerBelief:
        """The same; something has happened, and it may be away for a while."""
        known = {"offline_allowed": True, "disturbed": reason, "disturbed_at": now}
        return replace(self, **{**known, "rebase_due": "", **more})

    def moved(self, seen: Observation) -> WorkerBelief:
        """The same after a look: when it stands as it never stood since it was due, that is progress."""
        if self.due_at is None and self.disturbed is None:
            return self
        due = (self.due_at, self.disturbed_at, self.disturbed is None)
        standing = (due, seen.standing_of(self.name))
        if standing in self.standings:
            return self
        known = frozenset(item for item in self.standings if item[0] == due)
        return replace(self, standings=known | {standing}, moved_at=seen.at)

    @property
    def in_turn(self) -> bool:
        """May its agent be in the middle of a turn?"""
        return bool(self.statuses & set(AGENT_MOVES))

    @property
    def strays(self) -> bool:
        """May its agent leave the worker's branch by itself?"""
        return any(turn in STRAYING for turn in self.behaviours)

    @property
    def ends_oddly(self) -> bool:
        """May its agent end a turn at another moment than it says?"""
        return any(turn.partition(":")[0] in UNTIMELY for turn in self.behaviours)

    @property
    def will_complete(self) -> bool:
        """Every turn of the script ends; which turn comes next is not known after a redelivery."""
        return all(completing(turn) for turn in self.behaviours)


@dataclass(frozen=True)
class Work:
    """The ledger's account of one token."""

    token: str
    kind: str
    worker: str
    fate: str = "open"
    """open, merged, discarded (the user gave it up), or unknown (the command's outcome is not
    known).
    """
    said: str = ""
    """What was said, when it is a text that every target has to take; empty: it may be changed."""
    known_to: frozenset[tuple[int, int]] | None = None
    """Agents that may have heard of it before it was given up; None: any may have, or it was not."""


@dataclass(frozen=True)
class WorkersModel(ModelBase):
    """All beliefs."""

    profile: Profile = field(default_factory=Profile)
    initialised: bool = False
    daemon: frozenset[bool] = frozenset({False})
    workers: Mapping[str, WorkerBelief] = field(default_factory=dict)
    scripts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What the doubles were told, by worker: also before a worker is there, and after it is gone.
    """
    last_reviewed: str | None = None
    review_used: bool = False
    """The reviewed task is over: a target may remember the review or forget it."""
    source_dirty: str = ""
    """What the user is in the middle of in the source repository (`operations.UNFINISHED`)."""
    daemon_killed: bool = False
    """The daemon had no chance to take its flag down."""
    daemon_told: bool = False
    """A command that should stop the daemon has failed: it may still end of that."""
    state_damaged: bool = False
    """A fault has damaged the state file, and the target has not yet had its chance to put it right."""
    repair_asked: bool = False
    """Since the damage `up` or a repair was asked for, whatever came of it: that was its chance."""
    unfinished: frozenset[str] = frozenset()
    """Who was being made, removed or reset by a command that nobody saw succeed: something of it may be
    left, or be done later, though no state shows it.
    """
    work: Mapping[str, Work] = field(default_factory=dict)
    looked_at: float = 0.0
    """When a state of the target's own was last seen."""
    opened: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """How many descriptors each daemon had open when it was first seen."""

    # --- reading -----------------------------------------------------------------------------

    @property
    def daemon_certain(self) -> bool | None:
        """True or False when it is known whether the daemon runs, else None."""
        return next(iter(self.daemon)) if len(self.daemon) == 1 else None

    @property
    def attended(self) -> bool:
        """Is somebody there who hands out work? Without a daemon the commands do it themselves."""
        return self.profile.daemonless or self.daemon_certain is True

    def due(self, belief: WorkerBelief, now: float) -> float | None:
        """Since when a worker that is given work now is due to show that it has ended; None: it is not."""
        return now if belief.will_complete and self.profile.shows_ends else None

    def closure(
        self, statuses: frozenset[str], belief: WorkerBelief | None = None
    ) -> frozenset[str]:
        """Everything that these statuses can turn into without a command."""
        reached = set(statuses)
        frontier = list(statuses)
        while frontier:
            status = frontier.pop()
            moves = (*AGENT_MOVES.get(status, ()), *self.profile.extra_moves.get(status, ()))
            if belief is not None and belief.tokens and not self.profile.start_is_immediate:
                moves += ("working",) if status == "idle" else ()
            if belief is not None and belief.typed and status != "offline":
                moves += ("working",)
            if belief is not None and status in AGENT_MOVES and self._may_give_up(belief):
                moves += ("error",)
            if belief is not None and status == "rebasing" and len(belief.tokens) > 1:
                moves += ("working",)  # a message that waited for the rebase to end
            if belief is not None and status == "needs_review" and belief.put_off:
                moves += ("rebasing",) if belief.stale_base else ()
            for move in moves:
                if move not in reached:
                    reached.add(move)
                    frontier.append(move)
        return frozenset(reached)

    @staticmethod
    def _may_give_up(belief: WorkerBelief) -> bool:
        gives_up = any(turn.startswith("give-up") for turn in belief.behaviours)
        return belief.hits >= STUBBORN_HITS or not belief.will_complete or gives_up

    def allowed(self, worker: str) -> frozenset[str]:
        """Statuses in which the worker may be seen."""
        belief = self.workers[worker]
        offline = frozenset({"offline"}) if belief.offline_allowed else frozenset()
        return self.closure(belief.statuses | offline, belief)

    def possible(self, worker: str, seen: str | None) -> frozenset[str]:
        """Statuses that a command may find, given what was seen just before it."""
        allowed = self.allowed(worker)
        if seen is None or seen not in allowed:
            return allowed
        if seen == "offline":
            return allowed
        belief = self.workers[worker]
        offline = frozenset({"offline"}) if belief.offline_allowed else frozenset()
        return self.closure(frozenset({seen}) | offline, belief) & allowed

    def agrees(self, seen: Observation) -> bool:
        """Are the same workers there?"""
        return set(self.workers) == set(seen.workers)

    def excludes(self, subject: str, status: str) -> bool:
        """Can nothing explain that a worker has this status?"""
        return (
            subject in self.workers
            and not self.doubted
            and not self.state_damaged  # an old copy tells of old statuses until it is noticed
            and status not in self.allowed(subject)
        )

    def astray(self, worker: str, seen: Observation) -> bool:
        """Has an agent perhaps left its branch, and does the target not yet say that its work is done?

        Where ends are not shown it never does.
        """
        belief = self.workers.get(worker)
        claimed = self.profile.shows_ends and seen.status_of(worker) == "needs_review"
        return belief is not None and belief.strays and not claimed

    # --- writing -----------------------------------------------------------------------------

    def with_worker(self, belief: WorkerBelief) -> WorkersModel:
        """The same with one worker's belief replaced."""
        return replace(self, workers={**self.workers, belief.name: belief})

    def with_all(self, change: Callable[[WorkerBelief], WorkerBelief]) -> WorkersModel:
        """The same with every worker's belief changed."""
        return replace(self, workers={name: change(one) for name, one in self.workers.items()})

    def without_worker(self, name: str) -> WorkersModel:
        """The same with one worker forgotten."""
        return replace(self, workers={k: v for k, v in self.workers.items() if k != name})

    def with_fate(self, tokens: tuple[str, ...], fate: str) -> WorkersModel:
        """The same with these pieces of work settled."""
        fate = "unknown" if self.doubted else fate
        changed = {
            token: replace(self.work[token], fate=fate) for token in tokens if token in self.work
        }
        return replace(self, work={**self.work, **changed})

    def with_work(
        self, token: str, kind: str, worker: str, *, sure: bool, said: str = ""
    ) -> WorkersModel:
        """The same with a new piece of work; `sure` when the target acknowledged it."""
        fate = "open" if sure and not self.doubted else "unknown"
        entry = Work(token, kind, worker, fate, said)
        return replace(self, work={**self.work, token: entry})

    def given_up(self, worker: str, agents: frozenset[tuple[int, int]] | None) -> WorkersModel:
        """The same with everything discarded that this worker has not merged."""
        tokens = tuple(
            token
            for token, work in self.work.items()
            if work.worker == worker and work.fate not in ("merged", "discarded")
        )
        model = self.with_fate(tokens, "discarded")
        told = {token: replace(model.work[token], known_to=agents) for token in tokens}
        return replace(model, work={**model.work, **told})

    def _unnoticed(self, seen: Observation) -> bool:
        """The state reads well, is not the target's own, and the target has no way to tell."""
        readable = seen.state_exists and seen.state_error is None
        return readable and not self.profile.notices_damage

    def doubting(self) -> WorkersModel:
        """The damage reads as a state and the target cannot notice it: what it does from here on may come
        from what Mutiny wrote, until the next workspace.
        """
        doubted = replace(self, doubted=True)
        return doubted.with_fate(tuple(self.work), "unknown")

    def disturb(self, reason: str, workers: tuple[str, ...], now: float) -> WorkersModel:
        """A fault hit these workers: they may be away for a while."""
        model = replace(self, faults=(*self.faults, reason))
        for name in workers:
            belief = model.workers.get(name)
            if belief is None:
                continue
            due_at = None if belief.due_at is None else now
            hit = belief.away(reason, now, hits=belief.hits + 1, due_at=due_at)
            model = model.with_worker(hit)
        return model

    def see(self, observation: Observation) -> WorkersModel:
        """Narrow the beliefs by what is seen; workers seen well are no longer disturbed."""
        model = self
        if observation.daemons is not None:
            model = replace(model, daemon=frozenset({observation.daemon_alive}))
            new = {
                one.identity: one.descriptors
                for one in observation.daemons
                if one.descriptors is not None and one.identity not in model.opened
            }
            model = replace(model, opened={**model.opened, **new}) if new else model
        if observation.state_as_left:
            return model.doubting() if model._unnoticed(observation) else model
        for name, belief in self.workers.items():
            status = observation.status_of(name)
            if status is not None and status != "offline" and status in self.allowed(name):
                well = is_well(observation, name) and not self.lasting
                belief = replace(
                    belief,
                    statuses=frozenset({status}),
                    typed=belief.typed and status not in AGENT_MOVES,
                    disturbed=None if well else belief.disturbed,
                    offline_allowed=belief.offline_allowed
                    and (name in self.unfinished or not well),
                    due_at=belief.due_at if status in AGENT_MOVES or status == "idle" else None,
                    waits=self._waits(belief, status, observation.at),
                    rebase_due="" if status in _NOTHING_TO_REBASE else belief.rebase_due,
                    put_off=belief.put_off and status not in _NOTHING_TO_REBASE,
                )
            model = model.with_worker(belief.moved(observation))
        return replace(model, looked_at=observation.at)

    def _waits(self, belief: WorkerBelief, status: str, now: float) -> Span | None:
        """Since when a worker that is seen now has been ready; only its first way there is followed."""
        if status != "needs_review":
            return None
        plain = len(belief.tokens) == 1 and not belief.hits and not belief.stale_base
        return (belief.waits or Span(self.looked_at, now)) if plain else ANYTIME

    def next_reviews(
        self, before: Observation | None, after: Observation | None = None
    ) -> tuple[tuple[str, ...], bool]:
        """Whose change a review without a name can mean, and whether there surely is one.

        Who is ready before and after the command was so all the time.
        """
        ready = frozenset(self.profile.serves("Review") or ("needs_review",))
        spans: dict[str, Span] = {}
        sure: list[str] = []
        for name, belief in self.workers.items():
            possible = self.possible(name, before.status_of(name) if before else None)
            if possible & ready:
                spans[name] = belief.waits or Span(self.looked_at, math.inf)
                stayed = all(look and look.status_of(name) in ready for look in (before, after))
                sure += [name] if possible <= ready or stayed else []
        first = min((spans[name].latest for name in sure), default=math.inf)
        oldest = self.profile.picks_review == "oldest"
        may = (name for name, span in spans.items() if span.earliest <= first or not oldest)
        return tuple(may), bool(sure)

    # --- obligations ---------------------------------------------------------------------------

    def pending(self, observation: Observation) -> tuple[str, ...]:
        """What has still to happen by itself before the system is settled, in plain words."""
        waiting: list[str] = []
        attended = self.daemon_certain is True
        damaged = self.state_damaged or observation.state_as_left
        if damaged and not attended and not self.repair_asked:
            return ()  # nobody was there who could have put it right
        if self.profile.daemonless:
            alone = () if damaged or self.doubted else self._pending_alone(observation)
            return tuple(alone)
        if observation.state_error and self.initialised:
            waiting.append(f"the state file is unreadable: {observation.state_error}")
        elif not observation.state_exists and self.workers:
            waiting.append("the state file is gone")
        elif observation.state_as_left and self.profile.notices_damage:
            waiting.append("the state file is still what the fault made of it")
        if not attended:
            return tuple(waiting)
        if not observation.daemon_alive:
            waiting.append("the daemon does not run")
        if observation.state_as_left or self.doubted:
            return tuple(waiting)
        for name, belief in self.workers.items():
            waiting.extend(self._pending_worker(name, belief, observation))
        return tuple(waiting)

    def _pending_alone(self, seen: Observation) -> Iterator[str]:
        """Without a daemon only what a command began is still to come; nobody brings back what died."""
        for name, belief in self.workers.items():
            wrong = unwell(seen, name)
            if wrong is not None and belief.disturbed == ADDED and belief.will_complete:
                yield wrong
        for name, tokens in self.undelivered(seen).items():
            yield f"worker {name} never received {', '.join(tokens)}"

    def undelivered(self, seen: Observation) -> dict[str, list[str]]:
        """What workers that are well were told and have not received."""
        found = {}
        for name, belief in self.workers.items():
            well = belief.disturbed in (None, ADDED) and is_well(seen, name)
            if well and belief.will_complete:
                found[name] = self.unheard(name, seen)
        return {name: tokens for name, tokens in found.items() if tokens}

    def unheard(self, name: str, seen: Observation) -> list[str]:
        """What a worker was told and no agent has received."""
        return [token for token in self.workers[name].tokens if not _delivered(seen, token)]

    def must_be_told(self, belief: WorkerBelief, seen: Observation) -> bool:
        """Is a worker at rest, with an agent that nothing has happened to? Then it hears what was taken for
        it, whatever it makes of that: only what it does with it is a matter of its script.
        """
        resting = seen.status_of(belief.name) in _AT_REST and belief.disturbed is None
        hindered = self.faults or self.lasting or belief.typed or belief.hits
        return resting and not hindered and is_well(seen, belief.name)

    def _pending_worker(self, name: str, belief: WorkerBelief, seen: Observation) -> list[str]:
        status = seen.status_of(name)
        if status == "error":
            return []
        if status is None:
            return [f"worker {name} is missing"]
        waiting = []
        if self.state_damaged and status not in self.allowed(name):
            waiting.append(f"the state still says that worker {name} is {status}")
        wrong = unwell(seen, name)
        if wrong is not None:
            waiting.append(wrong)
        if belief.due_at is not None and status in (*AGENT_MOVES, "idle"):
            waiting.append(f"worker {name} is still {status}")
        undelivered = self.unheard(name, seen)
        told = belief.will_complete or self.must_be_told(belief, seen)
        if undelivered and told and not waiting:
            waiting.append(f"worker {name} never received {', '.join(undelivered)}")
        return waiting


def _delivered(observation: Observation, token: str) -> bool:
    if observation.receipts is None:
        return True
    return any(token in receipt.tokens for receipt in observation.receipts)


def is_well(observation: Observation, worker: str) -> bool:
    """The worker's session is there and an agent runs in it."""
    return unwell(observation, worker) is None


def unwell(observation: Observation, worker: str) -> str | None:
    """What is wrong with a worker, in words for what was seen; None when nothing is.

    A list that could not be read says nothing about who is not on it.
    """
    view = observation.workers.get(worker)
    if view is None:
        return f"worker {worker} is missing"
    if view.status in ("offline", "error"):
        return f"worker {worker} is {view.status}"
    if observation.sessions is not None and view.session not in observation.sessions:
        return f"worker {worker} is {view.status} but its session {view.session} does not exist"
    if observation.agents is None:
        return None
    if any(agent.worker == worker and agent.alive for agent in observation.agents):
        return None
    return f"worker {worker} is {view.status} but has no running agent"
