"""Plants: bugs that longboat can be asked to have, one per known way that orchestrators fail.

``LONGBOAT_PLANT=name[,name]`` switches them on. Each is a small change of a real code path, and can
be reached without any luck by the operations that stand behind "Shortest:".
"""

from __future__ import annotations

import os
from typing import NamedTuple

from longboat.board.plants import ROWS

_ACTIVE = frozenset(filter(None, os.environ.get("LONGBOAT_PLANT", "").split(",")))


def planted(*names: str) -> bool:
    """True when one of these bugs was asked for."""
    return not _ACTIVE.isdisjoint(names)


class Plant(NamedTuple):
    """One bug: what it does and how it is reached, which kind it is, and where it was seen.

    ``boards`` names the task boards (A, B, C) that can have it; none: it is one of the workers'.
    """

    name: str
    what: str
    failure_class: str
    source: str
    sweep: str = ""
    """For a bug that only a sweep finds reliably: its kind, scenario and operation."""
    boards: str = ""


_SEED = "seed 000, unexpected errors"
_LLMC = "observed in a real orchestrator of this kind"
_IN_REVIEW = "Init Up Add WaitForIdle Start WaitForNeedsReview"
_TWO_IN_REVIEW = (
    "Init Up Add(alpha) Add(beta) WaitForIdle(alpha) WaitForIdle(beta) Start(alpha) Start(beta) "
    "WaitForNeedsReview(alpha) WaitForNeedsReview(beta)"
)
_AT_WORK = "Init Up Add WaitForIdle Start[slow]"

_ALL = (
    Plant(
        "state-in-place",
        "State is overwritten in place and the backup is never refreshed, so one corrupt file "
        "loses the workers. Shortest: Init Add CorruptState AssertWorkerExists",
        "state corruption",
        f"{_SEED}; gascity#1933, claude-code#29143",
        "crash basic_lifecycle Start",
    ),
    Plant(
        "lock-not-taken",
        "Commands read, change and write the state without the lock, so the last writer wins.",
        "race conditions",
        f"{_SEED}; Agent-Bridge#16, crewAI#6125",
        "preempt racing_adds Parallel",
    ),
    Plant(
        "sha-dropped-on-daemon-death",
        "The commit that waits for review is forgotten when the daemon comes up again. "
        f"Shortest: {_IN_REVIEW} KillDaemon Up",
        "state corruption",
        _SEED,
    ),
    Plant(
        "idle-keeps-prompt",
        f"The prompt of the accepted task stays with the idle worker. Shortest: {_IN_REVIEW} "
        "Accept",
        "state corruption",
        f"{_SEED}; {_LLMC}",
    ),
    Plant(
        "accept-half-done",
        "The branch is moved first, the user's checkout is looked at afterwards: a refused accept "
        f"has merged. Shortest: {_IN_REVIEW} DirtySource Accept",
        "git corruption",
        f"{_SEED}; {_LLMC}",
    ),
    Plant(
        "branch-deleted-before-merge",
        "The branch is deleted and the task closed before the merge is known to work. Shortest: "
        f"{_IN_REVIEW} DirtySource Accept",
        "lost work",
        "gastown#2028",
    ),
    Plant(
        "closed-without-merge",
        "A task of several commits is reported as merged although the branch never moved. "
        f"Shortest: {_IN_REVIEW} Message WaitForNeedsReview Accept",
        "lost work",
        "gascity-packs PR#172, taskplane#102",
    ),
    Plant(
        "merged-twice-after-crash",
        "At start the daemon merges again what it cannot find by commit id, which a squash never "
        f"keeps. Shortest: {_IN_REVIEW} Accept KillDaemon Up",
        "lost work",
        "seed 000, merge once; AI-Employee#695",
    ),
    Plant(
        "dirty-source-wiped",
        "accept brings the user's checkout to the new commit with a hard reset. Shortest: "
        f"{_IN_REVIEW} DirtySource Accept",
        "lost work",
        f"{_SEED}; {_LLMC}",
    ),
    Plant(
        "conflict-resolved-by-dropping",
        "Conflicts are settled by keeping one side only. Shortest: two workers on the same file: "
        f"{_TWO_IN_REVIEW} Accept(alpha) Accept(beta)",
        "lost work",
        "overstory#84",
    ),
    Plant(
        "nuke-loses-commits",
        f"nuke removes the branch without archiving it. Shortest: {_IN_REVIEW} Nuke",
        "lost work",
        f"{_SEED}; gastown#2028",
    ),
    Plant(
        "dirty-tree-ignored",
        "Uncommitted work at the end of a turn is not committed, the turn counts as empty. "
        "Shortest: Init Up Add WaitForIdle Start[dirty] WaitForState(no_changes)",
        "lost work",
        f"{_SEED}; gastown PR#3203",
    ),
    Plant(
        "done-before-work",
        "A turn counts as done when the prompt arrives, not when it ends. Shortest: "
        f"{_AT_WORK} WaitForNeedsReview",
        "lost work",
        "gastown PR#3203",
    ),
    Plant(
        "task-forgotten-on-down",
        f"down forgets what the workers were doing. Shortest: {_AT_WORK} Down Up WaitForIdle",
        "lost work",
        f"{_SEED}; taskplane#102",
    ),
    Plant(
        "reject-message-lost",
        f"reject changes the status and loses the text. Shortest: {_IN_REVIEW} Review Reject",
        "stuck workers",
        _SEED,
    ),
    Plant(
        "message-dropped-while-working",
        "A message to a busy agent is acknowledged and dropped. Shortest: "
        "Init Up Add WaitForIdle Start[slow] Message WaitForNeedsReview",
        "lost work",
        _SEED,
    ),
    Plant(
        "completion-missed",
        "The end of a turn is noticed only for tasks, not for messages, rejections and conflicts. "
        f"Shortest: {_IN_REVIEW} Message WaitForNeedsReview",
        "stuck workers",
        f"{_SEED}; {_LLMC}",
    ),
    Plant(
        "hooks-lost-while-daemon-down",
        "Hooks that came while the daemon was dead are thrown away at its start. Shortest: "
        f"{_AT_WORK} KillDaemon Sleep Up WaitForNeedsReview",
        "recovery failures",
        f"{_SEED}; {_LLMC}",
    ),
    Plant(
        "prompt-lost-on-session-death",
        "The prompt of an agent that died is not delivered again. Shortest: "
        f"{_AT_WORK} KillTmuxSession WaitForNeedsReview",
        "recovery failures",
        f"{_SEED}; vibe-kanban#1571",
    ),
    Plant(
        "prompt-delivered-twice",
        "A restarted daemon delivers again what a living agent is still working on. Shortest: "
        f"{_AT_WORK} KillDaemon Up",
        "recovery failures",
        "AI-Employee#695, agent-orchestrator#1168",
    ),
    Plant(
        "worker-stuck-offline-after-tmux-server-death",
        "Workers go offline with the tmux server and are never started again. Shortest: "
        "Init Up Add WaitForIdle KillTmuxServer WaitForIdle",
        "recovery failures",
        "agent-orchestrator#695",
    ),
    Plant(
        "session-without-agent",
        "After an agent died its session is made again with a shell in it, and counts as healthy. "
        "Shortest: Init Up Add WaitForIdle KillAgent",
        "zombie processes",
        "agent-orchestrator#2702",
    ),
    Plant(
        "duplicate-agent",
        "A restarted daemon starts a second agent beside the one that lives. Shortest: "
        "Init Up Add WaitForIdle KillDaemon Up",
        "zombie processes",
        "agent-orchestrator#356, agent-orchestrator#3537",
    ),
    Plant(
        "orphan-session-after-nuke",
        "nuke forgets the session, its agent lives on in a deleted worktree. Shortest: "
        "Init Up Add WaitForIdle Nuke",
        "zombie processes",
        f"{_SEED}; agent-orchestrator#3537",
    ),
    Plant(
        "down-leaves-agents",
        "down stops the daemon and leaves the sessions. Shortest: Init Up Add WaitForIdle Down",
        "zombie processes",
        f"{_SEED}; {_LLMC}",
    ),
    Plant(
        "session-prefix-match",
        "Sessions are addressed by prefix, so one worker's end is another's too. Shortest: "
        "Init Up Add(alpha) WaitForIdle(alpha) Add(al) WaitForIdle(al)",
        "live agent killed",
        f"{_LLMC}; overdeck#1820",
    ),
    Plant(
        "nuke-ends-all-sessions",
        "nuke ends the whole tmux server. Shortest: "
        "Init Up Add(alpha) Add(beta) WaitForIdle(alpha) WaitForIdle(beta) Nuke(beta)",
        "live agent killed",
        "overdeck#3539",
    ),
    Plant(
        "reaped-on-query-failure",
        "A tmux that does not answer is taken for a dead one, and the agent is ended. Shortest: "
        "Init Up Add WaitForIdle PauseProcess(tmux server)",
        "live agent killed",
        "overdeck PR#2787, agi-cli PR#2650, orch#2913",
    ),
    Plant(
        "live-work-reaped-by-age",
        "An agent without a commit after one second counts as stuck and is ended. Shortest: "
        "Init Up Add WaitForIdle Start[slow:4000] WaitForNeedsReview",
        "live agent killed",
        "aidevops#18090, claude-code#78350",
    ),
    Plant(
        "add-takes-live-worktree",
        "add makes room under the name before it sees that the worker exists. Shortest: "
        "Init Up Add WaitForIdle ExpectError(Add)",
        "live work reaped",
        "claude-code#77268",
    ),
    Plant(
        "stale-pid-trusted",
        "After a restart the agents in the state are believed to live without a look. Shortest: "
        "Init Up Add WaitForIdle KillDaemon KillTmuxSession Up AssertSessionAlive",
        "recovery failures",
        "gastown#1681, agentcad#70",
    ),
    Plant(
        "second-daemon-allowed",
        "The lock of a living daemon stops nobody. Shortest: Init Up ExpectError(Up)",
        "duplicate daemon",
        f"{_LLMC}; catalyst#3651",
    ),
    Plant(
        "up-refused-after-crash",
        "A daemon.json that a killed daemon left behind refuses the next one. Shortest: "
        "Init Up KillDaemon Up",
        "recovery failures",
        f"{_SEED}; {_LLMC}",
    ),
    Plant(
        "status-says-healthy-when-daemon-dead",
        "status repeats what the state says instead of asking the kernel. Shortest: "
        "Init Up KillDaemon Status",
        "recovery failures",
        "catalyst#3651",
    ),
    Plant(
        "doctor-lies",
        "doctor --repair reports repairs that it did not do. Shortest: "
        "Init Up KillDaemon Doctor(repair) Doctor",
        "recovery failures",
        _SEED,
    ),
    Plant(
        "rebase-left-half-done",
        "A conflict that the agent gave up stays in the worktree. Shortest: two workers on the "
        f"same file, beta gives up: {_TWO_IN_REVIEW} Accept(alpha) Review(beta) "
        "WaitForState(beta, error)",
        "git corruption",
        _SEED,
    ),
    Plant(
        "stale-sha-after-rebase",
        "A clean rebase does not update the commit that waits for review. Shortest: two workers "
        f"on different files: {_TWO_IN_REVIEW} Accept(alpha) Review(beta)",
        "git corruption",
        _LLMC,
    ),
    Plant(
        "wrong-branch-after-accept",
        f"accept leaves the worktree on a detached head. Shortest: {_IN_REVIEW} Accept",
        "git corruption",
        _SEED,
    ),
    Plant(
        "worktree-reused-dirty",
        f"reset leaves the old commits in the worktree. Shortest: {_IN_REVIEW} Reset WaitForIdle",
        "git corruption",
        f"{_SEED}; claude-code#77268",
    ),
    Plant(
        "accept-ignores-status",
        f"accept takes a worker that is still working. Shortest: {_AT_WORK} ExpectError(Accept)",
        "wrong acceptance",
        "bernstein#3254",
    ),
    Plant(
        "error-exit-zero",
        "Rejections are printed but the exit code is 0. Shortest: Init ExpectError(Nuke)",
        "wrong acceptance",
        _SEED,
    ),
    Plant(
        "crash-traceback",
        "A message to a worker that does not exist ends in an unhandled exception. Shortest: "
        "Init ExpectError(Message)",
        "crashes",
        _SEED,
    ),
)

_CRASH = "crash consistency"
_RARE = "a window of microseconds that random kills miss"
_SWEPT = (
    Plant(
        "no-sync-before-rename",
        "State files are renamed into place before their data is on the disk: after a power cut both "
        "copies are empty.",
        _CRASH,
        _RARE,
        "fsync basic_lifecycle Start",
    ),
    Plant(
        "rename-not-synced",
        "The directory is not synced after the rename, and there is no second copy: a power cut takes "
        "back what was acknowledged.",
        _CRASH,
        _RARE,
        "fsync basic_lifecycle Start",
    ),
    Plant(
        "unlink-before-rename",
        "The old state is removed before the new one is there, and the backup is from the first day.",
        _CRASH,
        _RARE,
        "crash basic_lifecycle Start",
    ),
    Plant(
        "lock-file-by-hand",
        "Writing is guarded by a file that stands for a lock; a crash leaves it behind for ever.",
        _CRASH,
        "gastown and others: stale lock files after a crash",
        "crash basic_lifecycle Start",
    ),
    Plant(
        "git-lock-left",
        "Locks that a killed git left behind are never removed.",
        _CRASH,
        _SEED,
        "crash basic_lifecycle Accept",
    ),
    Plant(
        "merged-before-landed",
        "accept writes `merged` into the state before the branch moves, two places without an order.",
        _CRASH,
        _SEED,
        "crash basic_lifecycle Accept",
    ),
    Plant(
        "archived-after-removal",
        "nuke removes the branch before the work is archived.",
        _CRASH,
        _SEED,
        "crash nuke_finished_work Nuke",
    ),
    Plant(
        "lock-dropped",
        "The lock is let go between reading and writing the state: the last writer wins.",
        "race conditions",
        "Agent-Bridge#16, crewAI#6125",
        "preempt racing_adds Parallel",
    ),
    Plant(
        "short-write-ignored",
        "The count that write() returns is not looked at: half a file is renamed into place.",
        _CRASH,
        _RARE,
        "torn basic_lifecycle Start",
    ),
    Plant(
        "full-disk-acknowledged",
        "An error while the state is written is swallowed, and the command says that it is done.",
        _CRASH,
        "gascity#2158",
        "errno basic_lifecycle Start",
    ),
    Plant(
        "intents-not-synced",
        "What is about to be done is written down without a sync, because it is only for a moment: a "
        "power cut keeps the deed and loses the note.",
        _CRASH,
        _RARE,
        "fsync basic_lifecycle Accept",
    ),
    Plant(
        "worktree-head-not-synced",
        "git does not sync where a worktree stands, and accept does not do it either: after a power cut "
        "the interrupted accept cannot be finished.",
        _CRASH,
        "an earlier longboat, found by its fsync sweep",
        "fsync basic_lifecycle Accept",
    ),
    Plant(
        "temporary-blocks",
        "The file next to the state into which it is written first has one fixed name and must be new: "
        "the one of a killed writer stops everybody for ever.",
        _CRASH,
        "gastown and others: stale lock files after a crash",
        "crash basic_lifecycle Start",
    ),
    Plant(
        "git-not-synced",
        "git runs with its defaults, which do not sync references: after a power cut a branch that was "
        "moved is an empty file.",
        _CRASH,
        _RARE,
        "fsync basic_lifecycle Accept",
    ),
    Plant(
        "archive-error-swallowed",
        "nuke goes on when the work cannot be archived, and removes its only copy.",
        _CRASH,
        "gascity#2158",
        "errno nuke_finished_work Nuke",
    ),
    Plant(
        "stale-when-free",
        "The state is read before the lock is taken, and once more only when somebody had the lock: "
        "whoever came and went in between is overwritten.",
        "race conditions",
        _RARE,
        "preempt racing_adds Parallel",
    ),
)

WORKER_PLANTS: dict[str, Plant] = {plant.name: plant for plant in (*_ALL, *_SWEPT)}
BOARD_PLANTS: dict[str, Plant] = {row[0]: Plant(*row[:4], boards=row[4]) for row in ROWS}
PLANTS: dict[str, Plant] = {**WORKER_PLANTS, **BOARD_PLANTS}
