"""What workers can be made to get wrong about work: prompts, turns, commits, merges.

Plain rows for `longboat.plants`: name, what it does and how it is reached, kind, where it was seen.
"""

from __future__ import annotations

_KNOWN = "a known class of failure"
_INVARIANTS = "an invariant of the state"
_LLMC = "observed in a real orchestrator of this kind"
_IN_REVIEW = "Init Up Add WaitForIdle Start WaitForNeedsReview"
_TWO_IN_REVIEW = (
    "Init Up Add(alpha) Add(beta) WaitForIdle(alpha) WaitForIdle(beta) Start(alpha) Start(beta) "
    "WaitForNeedsReview(alpha) WaitForNeedsReview(beta)"
)
_AT_WORK = "Init Up Add WaitForIdle Start[slow]"

ROWS: tuple[tuple[str, str, str, str], ...] = (
    (
        "sha-dropped-on-daemon-death",
        "The commit that waits for review is forgotten when the daemon comes up again. "
        f"Shortest: {_IN_REVIEW} KillDaemon Up",
        "state corruption",
        _KNOWN,
    ),
    (
        "idle-keeps-prompt",
        f"The prompt of the accepted task stays with the idle worker. Shortest: {_IN_REVIEW} "
        "Accept",
        "state corruption",
        f"{_KNOWN}; {_LLMC}",
    ),
    (
        "task-not-accounted",
        "A task is given to its worker, and not written into the account of all tasks. Shortest: "
        "Init Up Add WaitForIdle Start",
        "lost work",
        "every piece of work is accounted for",
    ),
    (
        "long-turn-cut-off",
        "The time in which a prompt has to be acknowledged also ends agents that are at work. "
        "Shortest: Init Up Add WaitForIdle Start[slow] WaitForNeedsReview",
        "lost work",
        "aidevops#18090",
    ),
    (
        "old-error-told",
        "A worker that goes on still tells of the error that it was in. Shortest: "
        "Init Up Add WaitForIdle Start[slow] KillAgent (three times) WaitForState(error) Message",
        "wrong answer",
        _KNOWN,
    ),
    (
        "accept-half-done",
        "The branch is moved first, the user's checkout is looked at afterwards: a refused accept "
        f"has merged. Shortest: {_IN_REVIEW} DirtySource Accept",
        "git corruption",
        f"{_KNOWN}; {_LLMC}",
    ),
    (
        "branch-deleted-before-merge",
        "The branch is deleted and the task closed before the merge is known to work. Shortest: "
        f"{_IN_REVIEW} DirtySource Accept",
        "lost work",
        "gastown#2028",
    ),
    (
        "closed-without-merge",
        "A task of several commits is reported as merged although the branch never moved. "
        f"Shortest: {_IN_REVIEW} Message WaitForNeedsReview Accept",
        "lost work",
        "gascity-packs PR#172, taskplane#102",
    ),
    (
        "merged-twice-after-crash",
        "At start the daemon merges again what it cannot find by commit id, which a squash never "
        f"keeps. Shortest: {_IN_REVIEW} Accept KillDaemon Up",
        "lost work",
        "merge once; AI-Employee#695",
    ),
    (
        "dirty-source-wiped",
        "accept brings the user's checkout to the new commit with a hard reset. Shortest: "
        f"{_IN_REVIEW} DirtySource Accept",
        "lost work",
        f"{_KNOWN}; {_LLMC}",
    ),
    (
        "conflict-resolved-by-dropping",
        "Conflicts are settled by keeping one side only. Shortest: two workers on the same file: "
        f"{_TWO_IN_REVIEW} Accept(alpha) Accept(beta)",
        "lost work",
        "overstory#84",
    ),
    (
        "nuke-loses-commits",
        f"nuke removes the branch without archiving it. Shortest: {_IN_REVIEW} Nuke",
        "lost work",
        f"{_KNOWN}; gastown#2028",
    ),
    (
        "dirty-tree-ignored",
        "Uncommitted work at the end of a turn is not committed, the turn counts as empty. "
        "Shortest: Init Up Add WaitForIdle Start[dirty] WaitForState(no_changes)",
        "lost work",
        f"{_KNOWN}; gastown PR#3203",
    ),
    (
        "done-before-work",
        "A turn counts as done when the prompt arrives, not when it ends. Shortest: "
        f"{_AT_WORK} WaitForNeedsReview",
        "lost work",
        "gastown PR#3203",
    ),
    (
        "task-forgotten-on-down",
        f"down forgets what the workers were doing. Shortest: {_AT_WORK} Down Up WaitForIdle",
        "lost work",
        f"{_KNOWN}; taskplane#102",
    ),
    (
        "reject-message-lost",
        f"reject changes the status and loses the text. Shortest: {_IN_REVIEW} Review Reject",
        "stuck workers",
        _KNOWN,
    ),
    (
        "message-dropped-while-working",
        "A message to a busy agent is acknowledged and dropped. Shortest: "
        "Init Up Add WaitForIdle Start[slow] Message WaitForNeedsReview",
        "lost work",
        _KNOWN,
    ),
    (
        "own-files-merged",
        "The settings that longboat puts into a worktree are committed with the work. Shortest: "
        f"{_IN_REVIEW} Accept",
        "git corruption",
        "a mutant of longboat that nothing found",
    ),
    (
        "messages-newest-first",
        "A message to a busy agent goes to the front of what waits for it. Shortest: "
        "Init Up Add WaitForIdle Start[slow] Message Message Settle",
        "race conditions",
        "a bug written by hand that nothing found",
    ),
    (
        "reset-keeps-messages",
        "A reset gives the task up, and keeps the messages that wait for its agent. Shortest: "
        "Init Up Add WaitForIdle Start[slow] Message ResetWorker WaitForIdle Start Settle",
        "lost work",
        "a bug written by hand that nothing found",
    ),
    (
        "completion-missed",
        "The end of a turn is noticed only for tasks, not for messages, rejections and conflicts. "
        f"Shortest: {_IN_REVIEW} Message WaitForNeedsReview",
        "stuck workers",
        f"{_KNOWN}; {_LLMC}",
    ),
    (
        "hooks-lost-while-daemon-down",
        "Hooks that came while the daemon was dead are thrown away at its start. Shortest: "
        f"{_AT_WORK} KillDaemon Sleep Up WaitForNeedsReview",
        "recovery failures",
        f"{_KNOWN}; {_LLMC}",
    ),
    (
        "prompt-lost-on-session-death",
        "The prompt of an agent that died is not delivered again. Shortest: "
        f"{_AT_WORK} KillTmuxSession WaitForNeedsReview",
        "recovery failures",
        f"{_KNOWN}; vibe-kanban#1571",
    ),
    (
        "last-semicolon-lost",
        "A text is typed as an argument of tmux, which takes a semicolon at its end for its own. "
        "Shortest: Init Up Add WaitForIdle Start[ends in ;] WaitForPrompt",
        "lost work",
        _LLMC,
    ),
    (
        "prompt-delivered-twice",
        "A restarted daemon delivers again what a living agent is still working on. Shortest: "
        f"{_AT_WORK} KillDaemon Up",
        "recovery failures",
        "AI-Employee#695, agent-orchestrator#1168",
    ),
    (
        "rebase-left-half-done",
        "A conflict that the agent gave up stays in the worktree. Shortest: two workers on the "
        f"same file, beta gives up: {_TWO_IN_REVIEW} Accept(alpha) Review(beta) "
        "WaitForState(beta, error)",
        "git corruption",
        _KNOWN,
    ),
    (
        "conflict-left-in-files",
        "A rebase that was given up is taken back, but the files keep the marks of the conflict. "
        "Shortest: Init Up Add WaitForIdle Start WaitForNeedsReview MoveSource Behave(give-up) Rebase "
        "WaitForState(error) Message WaitForNeedsReview Review Accept",
        "git corruption",
        _KNOWN,
    ),
    (
        "rebase-undone-in-checkout",
        "What a rebase left behind is thrown away in the user's checkout instead of the worktree. "
        "Shortest: Init Up Add WaitForIdle DirtySource Start WaitForNeedsReview MoveSource "
        "Behave(give-up) Rebase WaitForState(error)",
        "git corruption",
        _KNOWN,
    ),
    (
        "removed-file-comes-back",
        "A squash takes over what was added and changed, and forgets what was removed. Shortest: "
        "Init Up Add WaitForIdle Behave(reshape) Start WaitForNeedsReview Accept",
        "lost work",
        "a merge by copying files",
    ),
    (
        "rebase-only-said",
        "A rebase is answered and not done. Shortest: "
        "Init Up Add WaitForIdle Start WaitForNeedsReview MoveSource Rebase",
        "git corruption",
        _KNOWN,
    ),
    (
        "rebase-forgotten",
        "A rebase that was put off until the end of a turn is not done then. Shortest: Init Up Add "
        "WaitForIdle Behave(slow) Start MoveSource Rebase WaitForNeedsReview AssertOnTop",
        "git corruption",
        _KNOWN,
    ),
    (
        "stale-sha-after-rebase",
        "A clean rebase does not update the commit that waits for review. Shortest: two workers "
        f"on different files: {_TWO_IN_REVIEW} Accept(alpha) Review(beta)",
        "git corruption",
        _LLMC,
    ),
    (
        "review-takes-anybody",
        "A review without a name takes whoever is first in the state. Shortest: two workers, the "
        "second is ready first: Init Up Add(alpha) Add(beta) WaitForIdle(beta) Start(beta) "
        "WaitForNeedsReview(beta) WaitForIdle(alpha) Start(alpha) WaitForNeedsReview(alpha) ReviewNext",
        "wrong answers",
        _LLMC,
    ),
    (
        "accept-takes-the-next",
        "An accept without a name merges whoever has waited longest, whoever was reviewed. Shortest: "
        f"two workers: {_TWO_IN_REVIEW} Review(beta) AcceptReviewed",
        "wrong acceptance",
        _KNOWN,
    ),
    (
        "branch-not-looked-at",
        "What an agent committed to another branch than its own is taken as it lies there. Shortest: "
        "Init Up Add WaitForIdle Start[die-elsewhere, obey] WaitForNeedsReview",
        "git corruption",
        "a mutant of longboat that nothing found",
    ),
    (
        "wrong-branch-after-accept",
        f"accept leaves the worktree on a detached head. Shortest: {_IN_REVIEW} Accept",
        "git corruption",
        _KNOWN,
    ),
    (
        "worktree-reused-dirty",
        f"reset leaves the old commits in the worktree. Shortest: {_IN_REVIEW} Reset WaitForIdle",
        "git corruption",
        f"{_KNOWN}; claude-code#77268",
    ),
    (
        "task-begins-on-old-tree",
        "A task is begun where its worker has rested, however far others have come since. Shortest: "
        f"{_IN_REVIEW} Add(beta) WaitForIdle(beta) Review Accept Start(beta)",
        "git corruption",
        "a bug written by hand that nothing found",
    ),
    (
        "prompt-only-queued",
        "The prompt of a task is only in the queue, the worker itself does not know what it works "
        "on. Shortest: Init Up Add WaitForIdle Start",
        "state corruption",
        _INVARIANTS,
    ),
    (
        "worktree-dropped-after-accept",
        "accept removes the worktree to save space, the next task is to make it again. Shortest: "
        f"{_IN_REVIEW} Accept",
        "git corruption",
        f"{_INVARIANTS}; claude-code#78350",
    ),
    (
        "reset-keeps-files",
        "reset puts the branch back and leaves the files of the old task in the worktree. Shortest: "
        f"{_IN_REVIEW} ResetWorker WaitForIdle",
        "git corruption",
        f"{_INVARIANTS}; claude-code#77268",
    ),
    (
        "rejection-never-sent",
        "reject says that the worker goes back to work, and changes nothing. Shortest: "
        f"{_IN_REVIEW} Review Reject",
        "lost work",
        _KNOWN,
    ),
    (
        "rejection-starts-over",
        "reject puts the branch back to the default branch, as a new task does: the commits are "
        f"gone. Shortest: {_IN_REVIEW} Review Reject",
        "lost work",
        "gastown#2028",
    ),
    (
        "fast-forward-the-wrong-way",
        "A branch that is up to date is fast-forwarded in the wrong direction: the default branch "
        f"comes to it, and nobody accepted it. Shortest: {_IN_REVIEW} Review",
        "wrong acceptance",
        "bernstein#3254, apexyard#1338",
    ),
    (
        "edit-left-in-stash",
        "accept stashes the user's changes before it refuses them, and does not bring them back. "
        f"Shortest: {_IN_REVIEW} DirtySource Accept",
        "lost work",
        _KNOWN,
    ),
    (
        "unfinished-merge-ignored",
        "accept looks only for files that differ, and goes on in the middle of a merge of the user. "
        f"Shortest: {_IN_REVIEW} DirtySource(merge) Accept",
        "wrong acceptance",
        "observed in a real orchestrator of this kind",
    ),
    (
        "end-lost-to-busy-git",
        "When git is busy as a turn ends, the daemon does not wait, and never looks at the turn again. "
        "Shortest: Init Up Add WaitForIdle Start[busy-git] WaitForNeedsReview",
        "stuck workers",
        "observed in a real orchestrator of this kind",
    ),
    (
        "settings-shown-to-git",
        "The settings that carry our hooks are not hidden from git: every worktree is dirty from the "
        "beginning, and they are committed. Shortest: Init Up MoveSource(.gitignore) Add WaitForIdle",
        "git corruption",
        "observed in a real orchestrator of this kind",
    ),
    (
        "review-hides-a-file",
        f"The last of the files that a review should show is not shown. Shortest: {_IN_REVIEW} Review",
        "wrong answers",
        _KNOWN,
    ),
    (
        "status-hides-task",
        f"Status does not tell which task a worker has. Shortest: {_IN_REVIEW} Status",
        "wrong answers",
        _KNOWN,
    ),
    (
        "settings-in-the-way",
        "A worker of a project that has settings of agents of its own is in error from the beginning. "
        "Shortest: Init Up MoveSource(.claude/settings.json) Add",
        "stuck workers",
        "observed in a real orchestrator of this kind",
    ),
)
