"""The figures and limits of one board, as data: leases, backoffs and breakers are judged with them."""

from __future__ import annotations

from collections.abc import Mapping

from mutiny.values import dataclass, field


@dataclass(frozen=True)
class Figures:
    """What the board is configured to do; times are seconds."""

    lease_s: float = 2.0
    leader_lease_s: float = 2.0
    retry_base_s: float = 0.2
    retry_cap_s: float = 5.0
    jitter: float = 0.1
    max_attempts: int = 3
    breaker_failures: int = 3
    breaker_open_s: float = 1.0
    breaker_half_open: int = 1
    breaker_successes: int = 1
    rate_limit: float = 0.0
    """Commands a second and worker; 0: no limit."""
    rate_burst: int = 10


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
class BoardProfile:
    """How one target differs from the contract's ideal."""

    figures: Figures = field(default_factory=Figures)
    limits: BoardLimits = field(default_factory=BoardLimits)
    server: bool = False
    """The board lives in a server that is started by `Up`."""
    breaker: bool = False
    """Claims go through a circuit breaker."""
    works: bool = False
    """The board has agents of its own that claim and complete."""
    sure_calls: int = 0
    """State-changing system calls that every changing command surely makes: exploration breaks commands
    only before these. 0: it breaks none.
    """
    lacks: tuple[str, ...] = ()
    """Operations that the target does not have."""
    names_tasks: bool = True
    """A claim may name its task."""
    fences: bool = True
    """Claims carry an epoch, so that a worker can show an old one."""
    batches: bool = True
    """It has a batch of its own, which checks all of its tasks before it takes any."""
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
    owner_reclaims: bool = False
    """Who claims what it holds already is told so, instead of being refused."""
    skips: Mapping[str, str] = field(default_factory=dict)
    """Scenarios that make no sense for this target, each with the reason."""
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    """Rules that this target does not promise, each with the reason."""
