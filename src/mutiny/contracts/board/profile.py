"""The figures and limits of one board, as data: leases, backoffs and breakers are judged with them."""

from __future__ import annotations

from dataclasses import dataclass, field

from mutiny.kit.profile import TargetProfile

LONGEST_WAIT_S = 30.0
"""Nobody waits for what the board itself puts off for longer: then it is not due in a run."""


@dataclass(frozen=True)
class Figures:
    """What the board is configured to do; times are seconds."""

    lease_s: float = 2.0
    shortest_lease_s: float = 0.0
    """Some claims may run out as early as that; 0: all after `lease_s`."""
    stale_lock_s: float = 0.0
    """So long the lock of a command that was killed may keep others out."""
    leader_lease_s: float = 2.0
    retry_base_s: float = 0.2
    retry_cap_s: float = 5.0
    jitter: float = 0.1
    max_attempts: int = 3
    max_retries: int = 0
    """So often a task may be retried by hand; 0: as often as anybody likes."""
    breaker_failures: int = 3
    breaker_open_s: float = 1.0
    breaker_half_open: int = 1
    breaker_successes: int = 1
    rate_limit: float = 0.0
    """Commands a second and worker; 0: no limit."""
    rate_burst: int = 10
    agent_timeout_s: float = 0.0
    """An agent of the board's own that works for so long is ended, and its task fails; 0: no promise."""

    @property
    def longest_rest_s(self) -> float:
        """After a failed attempt, or a retry by hand."""
        plain_s = self.retry_base_s * 2.0 ** min(max(0, self.max_attempts - 1), 60)
        return min(self.retry_cap_s, plain_s) * (1 + self.jitter)


@dataclass(frozen=True)
class BoardLimits:
    """Seconds that a correct board may take; the deadline of each obligation."""

    command_s: float = 20.0
    up_s: float = 15.0
    status_s: float = 10.0
    """Until a status that is due is reached."""
    settle_s: float = 15.0
    lag_s: float = 1.0
    """How long what is seen may lag behind what is true."""
    stop_s: float = 10.0
    """Until a server that was asked to end has ended."""
    tolerance_s: float = 0.25
    """How far the board's clock and ours may disagree about the length of a span of time."""


@dataclass(frozen=True)
class BoardProfile(TargetProfile):
    """How one target differs from the contract's ideal."""

    figures: Figures = field(default_factory=Figures)
    limits: BoardLimits = field(default_factory=BoardLimits)
    server: bool = False
    """The board lives in a server that is started by `Up`."""
    breaker: bool = False
    """Claims go through a circuit breaker."""
    works: bool = False
    """The board has agents of its own that claim and complete."""
    settable: tuple[str, ...] | None = None
    """Figures that can be configured; None: all of them."""
    urgencies: tuple[int, ...] = ()
    """The priorities that it has words for; none named: any number."""
    names_tasks: bool = True
    """A claim may name its task."""
    fences: bool = True
    """Claims carry an epoch, so that a worker can show an old one."""
    batches: bool = True
    """It has a batch of its own, which checks all of its tasks before it takes any."""
    names_new_tasks: bool = True
    """Who adds a task says its id. False: the board gives it one, so that nobody can add a task twice."""
    says_dependencies: bool = True
    """A new task can be told what it waits for. False: its file has no words for that."""
    says_priorities: bool = True
    """A new task can be told how urgent it is. False: its file has no words for that, and all are alike."""
    says_attempts: bool = True
    """A new task can be told how often it may be tried. False: all have the board's own number."""
    adds_dependencies: bool = True
    """One command adds a task with its dependencies. False: it takes several, which no sweep breaks."""
    counts_completions: bool = True
    """It shows how often a task was completed."""
    leases: bool = True
    """Claims run out. False: nothing is ever returned, so that `no_stuck_claim` is not kept."""
    fail_is_final: bool = False
    """A task that failed stays so until somebody retries it; what is returned counts no attempt."""
    dependants_wait: bool = False
    """A failed dependency may be retried: its dependants wait for that instead of failing with it."""
    retry_rests: bool = False
    """A retry by hand has a backoff, too."""
    restore_keeps_claims: bool = False
    """A restore brings claims back as they were, instead of freeing them."""
    cancels_failed: bool = False
    """A failed task may still be cancelled."""
    cancels_held: bool = True
    """What a worker holds may be cancelled by anybody. False: only what nobody holds."""
    cancelled_block: bool = False
    """What waits for a cancelled task waits on until somebody decides, instead of failing with it."""
    opens_itself: bool = False
    """Whoever comes first makes the board: a command before `Init` may be served like any other."""
    has_init: bool = True
    """Something makes the board. False: with `opens_itself`, its first task does."""
    lists_files: bool = False
    """What it lists is read from its files: no server has to run for that."""
    owner_reclaims: bool = False
    """Who claims what it holds, or starts what it has begun, is told so instead of being refused."""
    picks: str = "oldest"
    """What a claim that names no task gets: the `oldest` of the most urgent, any `urgent` one, or `any`."""
    claims_exclude: bool = True
    """What is held or over cannot be claimed. False: a claim is an edit that takes whatever it names."""
    shows_owners: bool = True
    """Its records say who holds a task."""
    frees_owner: bool = False
    """What waits for a worker belongs to nobody any more; False: the last owner may be told."""
    gives_names: str = ""
    """What it calls a task that was added without a name, with {} for a number; empty: not told."""
    keeps_writes: bool = False
    """Its status tells what leaders have written, each with its node and token, the newest last."""
    names_leader: bool = False
    """A leader is its token and its name: whoever shows another one's token is refused."""
    owner_speaks: bool = True
    """Only its owner completes or releases a task. False: whoever says so has done it."""

    tells_guards: bool = False
    """Its status tells how its breaker, its limit, its leader and its workers are (`breaker.state`,
    `limiter.rate`, `token`, `workers.w1.alive` and so on), a failure how long the task rests, a leader's
    command with which token it was served, and a list with which texts each task was added.
    """
    keeps_reasons: bool = False
    """It shows with a task why it was failed or cancelled, in the words that were given."""
    tells_payload: bool = False
    """What was given with a task is told to the agent of the board's own that gets it, all of it."""
    has_backups: bool = False
    """It keeps copies of its state (the place `backup`), and a repair passes over one that is damaged."""
    sums_checkpoints: bool = False
    """A checkpoint has a sum (the place `checkpoint`): one that does not fit is refused."""
    heartbeat_files: bool = False
    """A file shows when a worker was heard of (the place `heartbeat`: that of w1); who has lost it is not
    robbed.
    """

    def past(self, seconds: float) -> float:
        """Long enough that a span is over beyond all doubt."""
        return round(seconds + self.limits.tolerance_s + 0.15, 3)

    @property
    def made_by_first(self) -> bool:
        """Is there no board as long as there is no task?"""
        return self.opens_itself and not self.has_init

    @property
    def keeps_claims(self) -> bool:
        """Nothing is ever returned, and nobody promised that it would be."""
        return not self.leases and "board.no_stuck_claim" in self.not_applicable

    @property
    def time_to_pass_s(self) -> float:
        """What may have to pass by the board's own figures before anything moves again."""
        figures = self.figures
        waits_s = [figures.longest_rest_s, figures.breaker_open_s if self.breaker else 0.0]
        waits_s += [figures.lease_s if self.leases else 0.0, figures.agent_timeout_s]
        return sum(wait_s for wait_s in waits_s if wait_s <= LONGEST_WAIT_S)

    @property
    def all_settles(self) -> bool:
        """Does every task come to its end within the time of a run, without help by hand?"""
        figures = self.figures
        rests = self.retry_rests and figures.longest_rest_s > LONGEST_WAIT_S
        held = self.leases and figures.lease_s > LONGEST_WAIT_S
        waits = self.dependants_wait or self.cancelled_block
        return not (rests or held or waits or self.keeps_claims)
