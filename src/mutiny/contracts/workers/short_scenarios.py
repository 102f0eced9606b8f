"""One promise each, as short as it can be: a target that breaks several shows them all.

A longer scenario ends at its first bug and hides what comes after it. What must be refused is simply
said here: the model knows whether a refusal is due.
"""

from __future__ import annotations

from mutiny.contracts.workers.operations import (
    IGNORED,
    PROJECT_SETTINGS,
    USUAL_NAMES,
    Accept,
    AcceptReviewed,
    Add,
    AssertState,
    Behave,
    CorruptState,
    DirtySource,
    Doctor,
    Down,
    Init,
    KillAgent,
    KillDaemon,
    KillTmuxSession,
    Message,
    MoveSource,
    Neighbour,
    Nuke,
    Rebase,
    Reject,
    ResetWorker,
    Review,
    ReviewNext,
    Start,
    Status,
    TypeIn,
    Up,
    WaitForIdle,
    WaitForNeedsReview,
    WaitForPrompt,
    WaitForState,
    WaitForTurnEnd,
)
from mutiny.contracts.workers.profile import LEGAL
from mutiny.kit.domains import CONTROL, FOREIGN, MEANINGFUL_NAMES, PATH_FIRST
from mutiny.kit.faults import DamageFile, FillDisk, Forbid, ReadOnlyDisk, SilentClient, SkewClock
from mutiny.kit.operations import ExpectError, Heal, Parallel, Reset, Settle, Sleep
from mutiny.kit.recipes import unconfirmed
from mutiny.model.operation import Operation

Sequence_ = tuple[Operation, ...]
FOREIGN_NAME = "n\u00e4me"
_BEGIN: Sequence_ = (Reset(), Init(), Up())
_IDLE: Sequence_ = (*_BEGIN, Add("alpha"), WaitForIdle("alpha"))
_TWO: Sequence_ = (*_IDLE, Add("beta"), WaitForIdle("beta"))
_READY: Sequence_ = (*_IDLE, Start("alpha", "Create test.txt"), WaitForNeedsReview("alpha"))
_BOTH_READY: Sequence_ = (
    *(*_TWO, Start("beta", "Create other.txt"), WaitForNeedsReview("beta")),
    *(Start("alpha", "Create test.txt"), WaitForNeedsReview("alpha")),
)
"""Who was added last has waited longest."""
_WITH_CHILD: Sequence_ = (
    *(*_IDLE, Behave("alpha", ("leave-child", "obey")), Start("alpha", "Create test.txt")),
    WaitForNeedsReview("alpha"),
)
_MERGED: Sequence_ = (
    *(WaitForNeedsReview("alpha"), Review("alpha"), Accept("alpha"), Settle(), Down()),
)


_ASTRAY: Sequence_ = (
    *(*_IDLE, Behave("alpha", ("die-detached", "hang", "obey"))),
    *(Start("alpha", "Create test.txt"), WaitForPrompt("alpha"), Sleep(2.0)),
    WaitForPrompt("alpha"),
)
"""Its first agent has died off its branch; the next one is at work there."""


def _refused(status: str) -> Sequence_:
    """Everything that a worker in this status is not to be told."""
    asked = (
        *(Start("alpha", "Create more.txt"), Message("alpha", "Also create more.txt")),
        *(Review("alpha"), Accept("alpha"), Rebase("alpha"), Add("alpha")),
    )
    return tuple(ExpectError(one) for one in asked if status not in LEGAL.get(one.type, ()))


def _typed(text: str) -> Sequence_:
    """Typed to the agent, which has it; the daemon hears of it a moment later."""
    return (TypeIn("alpha", text), WaitForPrompt("alpha"), Sleep(1.0))


_LOOKS: Sequence_ = (Status(), Status(), Status())

SHORT_SCENARIOS: dict[str, Sequence_] = {
    "second_daemon": (*_BEGIN, Up(), Settle(), Down()),
    "start_at_once": (*_BEGIN, Add("alpha"), Start("alpha", "Create test.txt"), Settle(), Down()),
    "start_without_daemon": (
        *(*_IDLE, KillDaemon(), Start("alpha", "Create test.txt"), Up(), Settle(), Down()),
    ),
    "daemon_dies_at_work": (
        *(*_BEGIN, KillDaemon(Add("alpha"), 16), Down(), Up(), Settle()),
        *(KillDaemon(Add("beta"), 20), Up(), Settle()),
        *(KillDaemon(Start("alpha", "Create test.txt"), 9), Up(), Settle()),
        *(KillDaemon(Start("beta", "Create other.txt"), 13), Up(), Settle()),
        *(WaitForNeedsReview("alpha"), Review("alpha"), KillDaemon(Accept("alpha"), 9), Up()),
        *(Settle(), KillDaemon(ResetWorker("beta"), 6), Down(), Up(), Settle(), Down()),
    ),
    "start_after_session_died": (
        *(*_TWO, KillTmuxSession("alpha"), Start("alpha", "Create test.txt"), Settle(), Down()),
    ),
    "message_in_review": (*_READY, Message("alpha", "Create more.txt"), Settle(), *_MERGED),
    "repaired_when_well": (
        *(*_IDLE, Doctor(repair=True, yes=True), Status(), Doctor()),
        *(Start("alpha", "Create test.txt"), *_MERGED),
    ),
    "state_repaired": (
        *(*_IDLE, KillDaemon(), CorruptState("garbage"), Doctor(repair=True, yes=True)),
        *(Up(), Settle(), Down()),
    ),
    "upstream_while_down": (
        *(*_READY, Down(), MoveSource("upstream.txt"), Add("beta"), Up(), Settle(), *_MERGED),
    ),
    "nuke_beside_looks": (
        *(*_IDLE, Parallel((Nuke("alpha"), *_LOOKS)), Add("beta"), WaitForIdle("beta")),
        *(Parallel((Nuke("beta"), *_LOOKS)), Settle(), Down()),
    ),
    "foreign_words": (
        *(*_IDLE, Start("alpha", f"Create test.txt: {FOREIGN}"), Status()),
        *(WaitForNeedsReview("alpha"), Review("alpha"), Reject(FOREIGN), Settle(), *_MERGED),
    ),
    "shorter_name_first": (
        *(*_BEGIN, Add("job"), WaitForIdle("job"), Add("job-2"), WaitForIdle("job-2")),
        *(KillTmuxSession("job"), Nuke("job"), Settle(), Start("job-2", "Create test.txt")),
        *(Settle(), Down()),
    ),
    "untimely_hooks": (
        *(*_IDLE, Behave("alpha", ("late-stop:600", "double-stop", "obey"))),
        *(Start("alpha", "Create test.txt"), WaitForNeedsReview("alpha"), Review("alpha")),
        *(Reject("Please also create second.txt"), Settle(), *_MERGED),
    ),
    "edit_through_it_all": (
        *(*_IDLE, DirtySource(), Start("alpha", "Create shared.txt with 'alpha'")),
        *(WaitForNeedsReview("alpha"), Review("alpha"), Reject("Please also create second.txt")),
        *(Settle(), WaitForNeedsReview("alpha"), MoveSource("shared.txt")),
        *(Behave("alpha", ("give-up", "obey")), Rebase("alpha"), WaitForState("alpha", "error")),
        *(ResetWorker("alpha"), WaitForIdle("alpha"), KillDaemon(), Up(), Settle()),
        *(Start("alpha", "Create other.txt"), WaitForNeedsReview("alpha")),
        *(Doctor(repair=True, yes=True), Nuke("alpha"), DirtySource(undo=True), Down()),
    ),
    "lost_hook": (
        *(*_IDLE, Behave("alpha", ("no-stop", "obey")), Start("alpha", "Create test.txt")),
        *(Settle(), ResetWorker("alpha"), WaitForIdle("alpha")),
        *(Start("alpha", "Create other.txt"), *_MERGED),
    ),
    "died_with_a_dirty_tree": (
        *(*_IDLE, Behave("alpha", ("die-dirty", "obey")), Start("alpha", "Create test.txt")),
        *_MERGED,
    ),
    "died_elsewhere": (
        *(*_IDLE, Behave("alpha", ("die-elsewhere", "obey")), Start("alpha", "Create test.txt")),
        *_MERGED,
    ),
    "died_detached": (
        *(*_IDLE, Behave("alpha", ("die-detached", "obey")), Start("alpha", "Create test.txt")),
        *_MERGED,
    ),
    "died_with_a_lock": (
        *(*_IDLE, Behave("alpha", ("die-locked", "obey")), Start("alpha", "Create test.txt")),
        *_MERGED,
    ),
    "child_left_by_nuke": (*_WITH_CHILD, Nuke("alpha"), Settle(), Down()),
    "child_left_by_down": (*_WITH_CHILD, Down()),
    "child_left_by_death": (*_WITH_CHILD, KillAgent("alpha"), Settle(), Down()),
    "agent_will_not_go": (
        *(*_IDLE, Behave("alpha", ("will-not-go", "obey")), Start("alpha", "Create test.txt")),
        *(WaitForNeedsReview("alpha"), Nuke("alpha"), Settle(), Add("alpha")),
        *(WaitForIdle("alpha"), Behave("alpha", ("will-not-go", "obey"))),
        *(Start("alpha", "Create other.txt"), WaitForNeedsReview("alpha"), Down()),
    ),
    "dies_at_once": (
        *(*_IDLE, Behave("alpha", ("slow:60000", "exit-at-start"))),
        *(Start("alpha", "Create test.txt"), WaitForPrompt("alpha"), KillAgent("alpha")),
        *(WaitForState("alpha", "error"), Behave("alpha", ("obey",)), ResetWorker("alpha")),
        *(WaitForIdle("alpha"), Start("alpha", "Create other.txt"), *_MERGED),
    ),
    "given_up_and_restarted": (
        *(*_IDLE, Behave("alpha", ("slow:60000", "exit-at-start"))),
        *(Start("alpha", "Create test.txt"), WaitForPrompt("alpha"), KillAgent("alpha")),
        *(WaitForState("alpha", "error"), Behave("alpha", ("obey",)), Down(), Up()),
        *(KillDaemon(), Up(), Settle(), Down()),
    ),
    "commit_after_done": (
        *(*_IDLE, Behave("alpha", ("late-commit:500", "obey")), Start("alpha", "Create test.txt")),
        *_MERGED,
    ),
    "said_in_order": (
        *(*_IDLE, Behave("alpha", ("slow:1200", "obey")), Start("alpha", "Create test.txt")),
        *(WaitForPrompt("alpha"), Message("alpha", "Create one.txt")),
        *(Message("alpha", "Create two.txt"), Message("alpha", "Create three.txt"), Settle()),
        *_MERGED,
    ),
    "typed_by_hand": (
        *(*_IDLE, *_typed("Create test.txt"), WaitForNeedsReview("alpha")),
        *(*_typed("Create more.txt"), *_MERGED[:-1]),
        *(Behave("alpha", ("nothing", "obey")), Start("alpha", "Create third.txt")),
        *(WaitForState("alpha", "no_changes"), *_typed("Do it, create third.txt"), *_MERGED),
    ),
    "unfinished_work_nuked": (
        *(*_IDLE, Behave("alpha", ("unfinished:60000", "obey"))),
        *(Start("alpha", "Create test.txt"), WaitForPrompt("alpha"), Sleep(1.0), Nuke("alpha")),
        *(Settle(), Down()),
    ),
    "detached_work_nuked": (*_ASTRAY, Nuke("alpha"), Settle(), Down()),
    "detached_work_reset": (
        *(*_ASTRAY, ResetWorker("alpha"), WaitForIdle("alpha")),
        *(Start("alpha", "Create other.txt"), *_MERGED),
    ),
    "begins_with_a_slash": (
        *(*_IDLE, Start("alpha", f"{PATH_FIRST} Create test.txt"), WaitForNeedsReview("alpha")),
        *(Message("alpha", f"{PATH_FIRST} Create more.txt"), *_MERGED),
    ),
    "unfinished_work_reset": (
        *(*_IDLE, Behave("alpha", ("unfinished:60000", "obey"))),
        *(Start("alpha", "Create test.txt"), WaitForPrompt("alpha"), Sleep(1.0)),
        *(ResetWorker("alpha"), WaitForIdle("alpha"), Start("alpha", "Create other.txt"), *_MERGED),
    ),
    "said_again_in_order": (
        *(*_IDLE, Behave("alpha", ("slow:60000", "obey")), Start("alpha", "Create test.txt")),
        *(WaitForPrompt("alpha"), Message("alpha", "Create one.txt"), KillAgent("alpha")),
        *(Settle(), *_MERGED),
    ),
    "given_up_by_reset": (
        *(*_IDLE, Behave("alpha", ("slow:5000", "obey")), Start("alpha", "Create test.txt")),
        *(WaitForPrompt("alpha"), Message("alpha", "Create one.txt"), ResetWorker("alpha")),
        *(WaitForIdle("alpha"), Start("alpha", "Create other.txt"), Settle(), *_MERGED),
    ),
    "given_up_by_nuke": (
        *(*_IDLE, Behave("alpha", ("slow:5000", "obey")), Start("alpha", "Create test.txt")),
        *(WaitForPrompt("alpha"), Message("alpha", "Create one.txt"), Nuke("alpha")),
        *(Add("alpha"), WaitForIdle("alpha"), Start("alpha", "Create other.txt"), Settle()),
        *_MERGED,
    ),
    "model_is_kept": (
        *(*_BEGIN, Add("alpha", model="opus"), WaitForIdle("alpha"), KillAgent("alpha")),
        *(Settle(), ResetWorker("alpha"), WaitForIdle("alpha"), Down(), Up(), Settle(), Down()),
    ),
    "works_on_after_commit": (
        *(*_IDLE, Behave("alpha", ("late-stop:3500", "obey"))),
        *(Start("alpha", "Create test.txt"), WaitForPrompt("alpha"), Sleep(2.5), Status()),
        *_MERGED,
    ),
    "cannot_start": (
        *(Reset(), Init(), ReadOnlyDisk(during=Up()), Forbid(during=Up()), Up(), Add("alpha")),
        *(WaitForIdle("alpha"), Down(), FillDisk("inodes", during=Up()), Settle(), Down()),
    ),
    "last_character": (
        *(*_IDLE, Start("alpha", "Create test.txt; then stop;"), WaitForPrompt("alpha")),
        *_MERGED,
    ),
    "silent_client": (
        *(*_IDLE, SilentClient(lasting=True), Start("alpha", "Create test.txt"), Status()),
        *(WaitForNeedsReview("alpha"), Review("alpha"), Accept("alpha"), Down()),
    ),
    "staged_source": (
        *(
            *_READY,
            DirtySource(how="stage"),
            Accept("alpha"),
            DirtySource(undo=True),
            Settle(),
            Down(),
        ),
    ),
    "rebase_in_source": (
        *(*_READY, DirtySource(how="rebase"), Accept("alpha")),
        *(DirtySource(undo=True), Settle(), Down()),
    ),
    "merge_in_source": (
        *(
            *_READY,
            DirtySource(how="merge"),
            Accept("alpha"),
            DirtySource(undo=True),
            Settle(),
            Down(),
        ),
    ),
    "file_in_the_way": (
        *(*_READY, DirtySource(how="untracked", path="test.txt"), Accept("alpha"), Settle()),
        *(DirtySource(undo=True, path="test.txt"), Settle(), Down()),
    ),
    "longest_wait_first": (
        *(*_BOTH_READY, ReviewNext(), Accept("beta"), ReviewNext(), Accept("alpha")),
        *(ExpectError(ReviewNext()), Settle(), Down()),
    ),
    "longest_wait_over_restart": (
        *(*_BOTH_READY, Down(), Up(), Settle(), ReviewNext(), Accept("beta"), Settle(), Down()),
    ),
    "accept_what_was_reviewed": (
        *(*_BOTH_READY, Review("alpha"), AcceptReviewed(), AssertState("beta", "needs_review")),
        *(Review("beta"), AcceptReviewed(), ExpectError(AcceptReviewed()), Settle(), Down()),
    ),
    "reviewed_is_gone": (
        *(*_READY, Review("alpha"), Nuke("alpha"), ExpectError(AcceptReviewed()), Settle(), Down()),
    ),
    "reviewed_and_over": (
        *(*_READY, Review("alpha"), Accept("alpha"), Start("alpha", "Create other.txt")),
        *(WaitForNeedsReview("alpha"), AcceptReviewed(), Settle(), Review("alpha")),
        *(ResetWorker("alpha"), WaitForIdle("alpha"), Start("alpha", "Create third.txt")),
        *(WaitForNeedsReview("alpha"), AcceptReviewed(), Settle(), Down()),
    ),
    "given_up_and_told": (
        *(*_IDLE, Behave("alpha", (*("slow:60000",) * 4, "obey"))),
        *(Start("alpha", "Create test.txt"), WaitForPrompt("alpha"), KillAgent("alpha")),
        *(step for _ in range(2) for step in (WaitForPrompt("alpha"), KillAgent("alpha"))),
        *(WaitForState("alpha", "error"), Message("alpha", "Go on, create more.txt")),
        *(WaitForPrompt("alpha"), KillAgent("alpha"), Settle(), *_MERGED),
    ),
    "damaged_hook": (
        *(*_TWO, Behave("alpha", ("slow:900", "no-stop")), Start("alpha", "Create test.txt")),
        *(
            WaitForPrompt("alpha"),
            KillDaemon(),
            WaitForTurnEnd("alpha"),
            DamageFile("empty", file="inbox"),
        ),
        *(Up(), Start("beta", "Create other.txt"), WaitForNeedsReview("beta"), Review("beta")),
        *(Accept("beta"), Settle(), Down()),
    ),
    "project_has_settings": (
        *(*_BEGIN, MoveSource(PROJECT_SETTINGS), Add("alpha"), WaitForIdle("alpha")),
        *(Start("alpha", "Create test.txt"), *_MERGED),
    ),
    "project_ignores_nothing": (
        *(*_BEGIN, MoveSource(IGNORED), Add("alpha"), WaitForIdle("alpha"), Settle()),
        *(Start("alpha", "Create test.txt"), *_MERGED),
    ),
    "project_has_usual_names": (
        *(Reset(), *(MoveSource(name) for name in USUAL_NAMES), Init(), Up(), Add("alpha")),
        *(WaitForIdle("alpha"), Start("alpha", "Create test.txt"), *_MERGED),
    ),
    "git_is_busy": (
        *(*_IDLE, Behave("alpha", ("busy-git:2500", "obey")), Start("alpha", "Create test.txt")),
        *(Settle(), ResetWorker("alpha"), WaitForIdle("alpha")),
        *(Start("alpha", "Create other.txt"), *_MERGED),
    ),
    "untidy_on_git_habits": (
        *(Reset(surroundings="git_habits"), *_IDLE[1:], Behave("alpha", ("dirty", "obey"))),
        *(Start("alpha", "Create test.txt"), *_MERGED),
    ),
    "control_characters": (
        *(*_IDLE, Start("alpha", f"Create test.txt {CONTROL}"), Settle()),
        *(Message("alpha", f"Create more.txt {CONTROL}"), *_MERGED),
    ),
    "words_as_names_used": (
        *(*_BEGIN, Add("all"), Settle(), Start("all", "Create a.txt"), Settle()),
        *(Add("auto-1"), Settle(), Start("auto-1", "Create b.txt"), Settle(), Down()),
    ),
    "foreign_name": (
        *(*_BEGIN, Add(FOREIGN_NAME), Settle(), Add("alpha"), WaitForIdle("alpha")),
        *(Nuke(FOREIGN_NAME), Start("alpha", "Create test.txt"), *_MERGED),
    ),
    "no_rights_for_moments": (
        *_IDLE,
        *(step for _ in range(4) for step in (Forbid(lasting=True), Status(), Heal())),
        *(Settle(), Start("alpha", "Create test.txt"), *_MERGED),
    ),
    "words_as_names_removed": (
        *_BEGIN,
        *(step for name in MEANINGFUL_NAMES for step in (Add(name), Settle(), Nuke(name))),
        *(Settle(), Down()),
    ),
    "stopped_often": (
        *(
            *_IDLE,
            Behave("alpha", ("slow:60000", "slow:60000", "slow:60000", "slow:60000", "obey")),
        ),
        *(Start("alpha", "Create test.txt"), WaitForPrompt("alpha")),
        *(step for _ in range(3) for step in (Down(), Up(), WaitForPrompt("alpha"))),
        *(Down(), Up(), *_MERGED),
    ),
    "neighbours": (
        *(Reset(), Init(), Neighbour(), Up(), Add("alpha"), WaitForIdle("alpha"), Add("beta")),
        *(WaitForIdle("beta"), Start("alpha", "Create test.txt"), WaitForNeedsReview("alpha")),
        *(Review("alpha"), Accept("alpha"), Settle(), KillTmuxSession("beta"), Nuke("beta")),
        *(Doctor(repair=True, yes=True), Down(), Up(), Settle(), Down()),
    ),
    "asks_first": (
        *(*_READY, *unconfirmed(Nuke("alpha")), AssertState("alpha", "needs_review")),
        *(*unconfirmed(ResetWorker("alpha")), AssertState("alpha", "needs_review"), *_MERGED),
    ),
    "long_turn": (
        *(*_IDLE, Behave("alpha", ("slow:7000", "obey")), Start("alpha", "Create test.txt")),
        *_MERGED,
    ),
    "refused_in_every_state": (
        *(*_IDLE, *_refused("idle"), Behave("alpha", ("nothing", "obey", "hang", "obey"))),
        *(Start("alpha", "Create test.txt"), WaitForState("alpha", "no_changes")),
        *(*_refused("no_changes"), ResetWorker("alpha"), WaitForIdle("alpha")),
        *(Start("alpha", "Create test.txt"), WaitForNeedsReview("alpha")),
        *(*_refused("needs_review"), ResetWorker("alpha"), WaitForIdle("alpha")),
        *(Start("alpha", "Create test.txt"), WaitForPrompt("alpha"), *_refused("working")),
        *(Nuke("alpha"), *_refused("gone")[:-1], Down()),
    ),
    "refused_in_error": (
        *(*_READY, MoveSource("test.txt"), Behave("alpha", ("give-up", "obey")), Rebase("alpha")),
        *(WaitForState("alpha", "error"), *_refused("error"), Settle(), Down()),
    ),
    "told_while_rebasing": (
        *(*_READY, MoveSource("test.txt"), Behave("alpha", ("slow:2500", "obey")), Rebase("alpha")),
        *(WaitForState("alpha", "rebasing"), Message("alpha", "Also create more.txt")),
        *(Rebase("alpha"), Settle(), *_MERGED),
    ),
    "odd_models": (
        *(*_BEGIN, Add("alpha", model="opus[1m]"), Add("beta", model="a model's $HOME")),
        *(WaitForIdle("alpha"), WaitForIdle("beta"), KillAgent("alpha"), Settle(), Down()),
    ),
    "every_shape": (
        *(*_TWO, Behave("alpha", ("reshape", "obey")), Behave("beta", ("reshape-dirty", "obey"))),
        *(Start("beta", "Create other.txt"), WaitForNeedsReview("beta")),
        *(Start("alpha", "Create test.txt"), WaitForNeedsReview("alpha")),
        *(Accept("beta"), Settle(), WaitForNeedsReview("alpha"), Accept("alpha"), Settle()),
        *(Start("alpha", "Create third.txt"), *_MERGED),
    ),
    "clock_set_back": (
        *(*_READY, SkewClock(offset_s=-3600, lasting=True), Status(), Review("alpha"), Heal()),
        *(Settle(), *_MERGED),
    ),
}
"""By name; `mutiny run --all-scenarios` runs them last."""
