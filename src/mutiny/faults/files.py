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
    'mkdir -p -- "$(dirname -- "$1")" && case "$1" in *.json) echo "{}" > "$1" ;; '
    '.gitignore) echo "# nothing" > "$1" ;; '
    '*) printf "somebody else was here\\n" >> "$1" ;; esac && git add -f -- "$1" '
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


_BEGIN = {
    "stage": f'{EDIT} && git add -- "$1"',
    # A merge that takes nothing over: no file differs, only git's own mark says that it is not done.
    "merge": 'side=$(git commit-tree -p HEAD -m "A side of the user" "HEAD^{tree}") '
    '&& git merge -q --no-commit --no-ff -s ours "$side" >/dev/null',
    # A rebase that waits at the first commit: no file differs, and no branch is checked out.
    "rebase": 'GIT_SEQUENCE_EDITOR="sed -i s/^pick/edit/" git rebase -q -i --root 2>/dev/null',
    "untracked": '! test -e "$1" && printf "%s\\n" "$2" > "$1"',
}
_MARKS = {"merge": ".git/MERGE_HEAD", "rebase": ".git/rebase-merge/orig-head"}
_UNDO = (
    "if test -e .git/MERGE_HEAD; then git merge --abort || exit; fi; "
    # To abort it would take the branch back to where it was, with whatever has landed meanwhile.
    "if test -d .git/rebase-merge; then branch=$(cat .git/rebase-merge/head-name) "
    '&& git rebase --quit && git checkout -q "${branch#refs/heads/}" || exit; fi; '
    'git checkout -q HEAD -- "$1" || exit; '
    # Wherever an untracked file of his lies: it says nothing else.
    "git ls-files --others | while IFS= read -r one; do "
    'if test "$(cat "$one" 2>/dev/null)" = "$2"; then rm -f "$one"; fi; done'
)


def begin_in_source(
    box: Box, source: str, how: str, path: str
) -> tuple[OperationResult, tuple[BoxPath, str] | None]:
    """The user begins something in his checkout, and what is there as long as nobody has ended it."""
    touched = path if how == "untracked" else EDITED_FILE
    argv = ("sh", "-c", _BEGIN[how], "sh", touched, EDIT_MARKER)
    answer = box.run(argv, cwd=source, timeout_s=10)
    result = OperationResult(
        answer.exit_code,
        stderr=answer.stderr,
        fired=answer.exit_code == 0,
        technique=f"the user's own {how}",
    )
    if not result.fired:
        return result, None
    marked = box.files / "source" / _MARKS.get(how, touched)
    # An empty text is in every file: of a merge or a rebase only its mark is looked for.
    return result, (marked, "" if how in _MARKS else EDIT_MARKER)


def clean_source(box: Box, source: str) -> OperationResult:
    """Take back whatever the user had begun."""
    argv = ("sh", "-c", _UNDO, "sh", EDITED_FILE, EDIT_MARKER)
    answer = box.run(argv, cwd=source, timeout_s=10)
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
