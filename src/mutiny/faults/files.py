"""File faults: a damaged state file, and a user who edits or moves the source repository meanwhile."""

from __future__ import annotations

from mutiny.box.box import Box
from mutiny.faults import content
from mutiny.model.result import OperationResult
from mutiny.system.files import BoxPath

EDIT_MARKER = "an edit of the user that nobody committed"
EDITED_FILE = "README.md"


def corrupt(path: BoxPath, how: str) -> tuple[OperationResult, bytes | None]:
    """Damage a file for good, and what is left of it; fired means that its content really changed."""
    fault = content.DeleteFile(path) if how == "delete" else content.damage(path, how)
    return fault.inject(), fault.left


COMMIT = (
    'printf "somebody else was here\\n" >> "$1" && git add -- "$1" '
    '&& git commit -qm "Upstream change" -- "$1"'
)
EDIT = 'printf "%s\\n" "$2" >> "$1"'


def commit_argv(path: str) -> tuple[str, ...]:
    """Somebody else's commit to the default branch, as a command line."""
    return ("sh", "-c", COMMIT, "sh", path)


def edit_argv() -> tuple[str, ...]:
    """The user's edit of a tracked file, as a command line."""
    return ("sh", "-c", EDIT, "sh", EDITED_FILE, EDIT_MARKER)


def dirty_source(source: BoxPath) -> tuple[OperationResult, tuple[BoxPath, str]]:
    """Edit a tracked file of the user's checkout without committing."""
    path = source / EDITED_FILE
    path.append_text(EDIT_MARKER + "\n")
    return OperationResult(stdout=f"{EDITED_FILE} edited", fired=True, technique="file edited"), (
        path,
        EDIT_MARKER,
    )


def clean_source(box: Box, source: str) -> OperationResult:
    """Take the user's edit back."""
    answer = box.run(("git", "checkout", "--", EDITED_FILE), cwd=source, timeout_s=10)
    return OperationResult(
        answer.exit_code,
        stderr=answer.stderr,
        fired=answer.exit_code == 0,
        technique="git checkout",
    )


def move_source(box: Box, source: str, path: str) -> OperationResult:
    """Commit something to the default branch, as a colleague would."""
    answer = box.run(commit_argv(path), cwd=source, timeout_s=10)
    return OperationResult(
        answer.exit_code, stderr=answer.stderr, fired=answer.exit_code == 0, technique="git commit"
    )
