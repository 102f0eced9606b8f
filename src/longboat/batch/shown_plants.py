"""More bugs of `longboat batch`: what it shows, or keeps of a run, is not what is so."""

from __future__ import annotations

_TRUTH = "untrue reports"
_KNOWN = "a promise of batch orchestrators"

ROWS: tuple[tuple[str, str, str, str, str, str], ...] = (
    (
        "star-crosses-folders",
        "Who declares the files of a folder may write into those below it.",
        "merge while blocked",
        _KNOWN,
        "manifest_of_files",
        "batch.declared",
    ),
    (
        "own-commits-ignored",
        "What an agent has committed itself is taken for no work at all.",
        "lost work",
        _KNOWN,
        "agent_commits",
        "batch.attempts_bounded",
    ),
    (
        "attempts-not-shown",
        "Status does not tell of the attempts that have failed.",
        _TRUTH,
        _KNOWN,
        "second_try",
        "batch.status_true",
    ),
    (
        "needs-not-shown",
        "A plan is answered without what its tasks depend on.",
        _TRUTH,
        _KNOWN,
        "dependencies",
        "batch.answers_truly",
    ),
    (
        "timeline-by-type",
        "The timeline tells what has happened in the order of its names, not in that of its times.",
        _TRUTH,
        _KNOWN,
        "one_task",
        "batch.answers_truly",
    ),
    (
        "merged-by-its-base",
        "A task that is merged is kept with the commit before the one that brought it.",
        _TRUTH,
        _KNOWN,
        "one_task",
        "batch.kept_true",
    ),
)
