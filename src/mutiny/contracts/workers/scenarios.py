"""The seven classic scenarios: the ordinary way, a rejection, a conflict, crashes, and mistakes.

Waits react to events, so there are no long sleeps. `Accept` follows a `Review` or a wait that proves the
worker is ready. And faults are followed by `Settle`, which says what must be true again instead of
hoping that some time is enough.
"""

from __future__ import annotations

from mutiny.contracts.workers.fault_scenarios import FAULT_SCENARIOS
from mutiny.contracts.workers.operations import (
    Accept,
    Add,
    AssertSessionAlive,
    AssertState,
    AssertWorkerExists,
    Behave,
    Doctor,
    Down,
    Init,
    KillDaemon,
    KillTmuxSession,
    Message,
    Nuke,
    Reject,
    Review,
    Start,
    Status,
    Up,
    WaitForIdle,
    WaitForNeedsReview,
    WaitForPrompt,
    WaitForState,
)
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.short_scenarios import SHORT_SCENARIOS
from mutiny.kit.operations import Choice, ExpectError, Reset, Settle, Sleep
from mutiny.kit.recipes import everywhere, misset, said_wrongly
from mutiny.model.operation import Operation

_BEGIN: tuple[Operation, ...] = (Reset(), Init(), Up())

BASIC_LIFECYCLE: tuple[Operation, ...] = (
    *_BEGIN,
    Add("alpha"),
    WaitForIdle("alpha"),
    Start("alpha", "Create a file named test.txt with content 'hello'"),
    WaitForNeedsReview("alpha"),
    Review("alpha"),
    Accept("alpha"),
    AssertState("alpha", "idle"),
    Down(),
)

REJECTION_CYCLE: tuple[Operation, ...] = (
    *_BEGIN,
    Add("alpha"),
    WaitForIdle("alpha"),
    Start("alpha", "Create test.txt with 'hello'"),
    WaitForNeedsReview("alpha"),
    Review("alpha"),
    Reject("Please also create test2.txt"),
    WaitForNeedsReview("alpha"),
    Review("alpha"),
    Accept("alpha"),
    Down(),
)

MERGE_CONFLICT: tuple[Operation, ...] = (
    *_BEGIN,
    Add("alpha"),
    Add("beta"),
    WaitForIdle("alpha"),
    WaitForIdle("beta"),
    Start("alpha", 'Create src/shared.rs with fn hello() { println!("alpha"); }'),
    Start("beta", 'Create src/shared.rs with fn hello() { println!("beta"); }'),
    WaitForNeedsReview("alpha"),
    WaitForNeedsReview("beta"),
    Review("alpha"),
    Accept("alpha"),
    Behave("beta", ("slow:1500", "obey")),
    Review("beta"),
    WaitForState("beta", "rebasing"),
    WaitForNeedsReview("beta"),
    Accept("beta"),
    Down(),
)

DAEMON_CRASH: tuple[Operation, ...] = (
    *_BEGIN,
    Add("alpha"),
    WaitForIdle("alpha"),
    Behave("alpha", ("slow:800", "obey")),
    Start("alpha", "Create test.txt"),
    WaitForPrompt("alpha"),
    KillDaemon(),
    Sleep(0.3),
    Up(),
    AssertWorkerExists("alpha"),
    AssertSessionAlive("alpha"),
    WaitForNeedsReview("alpha"),
    Accept("alpha"),
    Settle(),
    Down(),
)

TMUX_CRASH: tuple[Operation, ...] = (
    *_BEGIN,
    Add("alpha"),
    WaitForIdle("alpha"),
    Behave("alpha", ("slow:800", "obey")),
    Start("alpha", "Create test.txt"),
    WaitForPrompt("alpha"),
    KillTmuxSession("alpha"),
    Settle(),
    Doctor(),
    AssertWorkerExists("alpha"),
    AssertSessionAlive("alpha"),
    WaitForNeedsReview("alpha"),
    Review("alpha"),
    Accept("alpha"),
    Down(),
)

MULTI_WORKER_CHAOS: tuple[Operation, ...] = (
    *_BEGIN,
    Add("alpha"),
    Add("beta"),
    Add("gamma"),
    WaitForIdle("alpha"),
    WaitForIdle("beta"),
    WaitForIdle("gamma"),
    Start("alpha", "Create alpha.txt"),
    Start("beta", "Create beta.txt"),
    Start("gamma", "Create gamma.txt"),
    Choice(
        (
            Message("alpha", "Use uppercase"),
            Message("beta", "Add a header comment"),
            KillTmuxSession("gamma"),
        )
    ),
    WaitForNeedsReview("beta"),
    Review("beta"),
    Accept("beta"),
    WaitForNeedsReview("alpha"),
    Review("alpha"),
    Reject("Also add alpha2.txt"),
    Settle(),
    Doctor(repair=True, yes=True),
    WaitForNeedsReview("alpha"),
    Review("alpha"),
    Accept("alpha"),
    Down(),
)

INVALID_OPERATIONS: tuple[Operation, ...] = (
    *_BEGIN,
    Add("alpha"),
    WaitForIdle("alpha"),
    ExpectError(Start("nonexistent", "test")),
    ExpectError(Accept("alpha")),
    ExpectError(Message("nonexistent", "test")),
    ExpectError(Add("alpha")),
    ExpectError(Reject("nothing was reviewed")),
    Behave("alpha", ("hang",)),
    Start("alpha", "Create test.txt"),
    WaitForState("alpha", "working"),
    ExpectError(Start("alpha", "Another task")),
    Down(),
)

CLASSIC_SCENARIOS: dict[str, tuple[Operation, ...]] = {
    "basic_lifecycle": BASIC_LIFECYCLE,
    "rejection_cycle": REJECTION_CYCLE,
    "merge_conflict": MERGE_CONFLICT,
    "daemon_crash": DAEMON_CRASH,
    "tmux_crash": TMUX_CRASH,
    "multi_worker_chaos": MULTI_WORKER_CHAOS,
    "invalid_operations": INVALID_OPERATIONS,
}
"""The seven that everything else grew from."""

CHECKUP: tuple[Operation, ...] = (
    *_BEGIN,
    Add("probe"),
    WaitForIdle("probe"),
    Status(),
    ExpectError(Add("probe")),
    ExpectError(Start("nobody", "Create probe.txt")),
    Start("probe", "Create probe.txt"),
    WaitForNeedsReview("probe"),
    Review("probe"),
    Accept("probe"),
    Nuke("probe"),
    ExpectError(Nuke("probe")),
    Down(),
)
"""Every ordinary command once, and the refusals that every target has: a target file is tried with it."""


def checkup(profile: Profile) -> tuple[Operation, ...]:
    """What a target is told whose file is tried."""
    return CHECKUP


SCENARIOS: dict[str, tuple[Operation, ...]] = {
    **CLASSIC_SCENARIOS,
    **FAULT_SCENARIOS,
    "said_wrongly": (
        *_BEGIN,
        Add("alpha"),
        WaitForIdle("alpha"),
        Start("alpha", "Create test.txt"),
        WaitForNeedsReview("alpha"),
        *said_wrongly(Status(), Doctor(), Add("beta"), Start("alpha", "More"), Nuke("alpha")),
        *said_wrongly(Message("alpha", "More"), Review("alpha"), Accept("alpha")),
        Settle(),
    ),
    "wrong_settings": (
        *(Reset(), Init(), Add("alpha"), *misset(Status(), 3), *misset(Add("beta"))),
        *(*misset(Up()), Up(), WaitForIdle("alpha"), Settle(), Down()),
    ),
    **everywhere(BASIC_LIFECYCLE),
    **SHORT_SCENARIOS,
}
"""All scenarios of the contract by name, the classic seven first."""
