"""What git knows, read as cheaply as it can be told: plain files first, the git program only where
it must.

HEAD, branch heads and a rebase in progress are files that can be read from outside the box without
starting anything. `git` itself is asked (inside the box, without taking locks) only for uncommitted
changes, and for the commits when a ref has changed since the last look.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable

from mutiny.kit.views import Commit, WorktreeView
from mutiny.system.files import BoxPath

TOKEN = re.compile(r"MT-[0-9a-z]+-[0-9]+")
_LARGEST = 8 << 20
"""Of packed refs, the longest of the files that are read here."""
Outside = Callable[[str], BoxPath]

_SETTINGS = (
    *("core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false"),
    *("color.ui=false", "color.grep=false", "grep.lineNumber=false", "grep.column=false"),
    *("grep.fullName=false", "grep.patternType=default", "diff.noprefix=false"),
    *("diff.mnemonicPrefix=false", "log.follow=false", "core.quotePath=true"),
)
PLAIN = tuple(word for one in _SETTINGS for word in ("-c", one))
"""A repository's own settings change how git answers, and what it starts for that. To Mutiny it says the
same of every repository.
"""
_STATUS = ("git", *PLAIN, "--no-optional-locks", "status", "--porcelain")
STATUS_ARGV = (*_STATUS, "--no-branch", "--untracked-files=normal")
CHECKOUT_ARGV = (*_STATUS, "--no-branch", "--untracked-files=no")
"""Of a user's own checkout only tracked files count: what lies beside them is his business."""


def log_argv(repository: str, *, added_lines: bool = False, heads: bool = True) -> tuple[str, ...]:
    """Every commit that any ref reaches, with its parents, its message and, when wanted, the lines that it
    adds. The heads of the worktrees are left out when one of them is half made: git then refuses them all.
    """
    reach = "--all" if heads else "--glob=refs/*"
    argv = ("git", *PLAIN, "-C", repository, "log", reach, "--format=%x1e%H %P%x1f%B")
    shown = ("-p", "-U0", "--no-color", "--no-ext-diff", "--no-textconv")
    return (*argv, *shown) if added_lines else argv


def default_argv(repository: str, branch: str) -> tuple[str, ...]:
    """Every commit of the default branch, newest first."""
    return ("git", *PLAIN, "-C", repository, "rev-list", f"refs/heads/{branch}")


def tokens_argv(repository: str, branch: str) -> tuple[str, ...]:
    """Every token in the files of the default branch; exit code 1 when there is none."""
    pattern = "MT-[0-9a-z]+-[0-9]+"
    return (
        "git",
        *PLAIN,
        "-C",
        repository,
        "grep",
        "-hoE",
        "--no-textconv",
        pattern,
        f"refs/heads/{branch}",
    )


def untold_argv(repository: str, branch: str) -> tuple[str, ...]:
    """Every file of the default branch that has no token; exit code 1 when all have one."""
    return _files_argv(repository, branch, "-LE", "MT-[0-9a-z]+-[0-9]+")


def conflicted_argv(repository: str, branch: str) -> tuple[str, ...]:
    """Every file of the default branch with the marks of a conflict; exit code 1 when none has."""
    return _files_argv(repository, branch, "-lE", "^(<<<<<<<|>>>>>>>) ")


def shape_argv(repository: str, branch: str, folders: Iterable[str]) -> tuple[str, ...]:
    """Every file of the default branch in some folders, with its mode and size."""
    tree = ("ls-tree", "-r", "-l", "-z", f"refs/heads/{branch}", "--")
    return ("git", *PLAIN, "-C", repository, *tree, *(f"{folder}/" for folder in folders))


def parse_tree(output: str) -> frozenset[str]:
    """`MODE SIZE PATH` of each file."""
    found = (entry.partition("\t") for entry in output.split("\0") if entry)
    return frozenset(f"{words.split()[0]} {words.split()[3]} {path}" for words, _, path in found)


def _files_argv(repository: str, branch: str, how: str, pattern: str) -> tuple[str, ...]:
    place = ("-C", repository)
    return ("git", *PLAIN, *place, "grep", how, "--no-textconv", pattern, f"refs/heads/{branch}")


def worktree(directory: BoxPath, outside: Outside) -> WorktreeView:
    """Branch, head and rebase state of a worktree, from its files. One that git has only begun to
    make is none: git itself does not work in it.
    """
    if not directory.is_dir():
        return WorktreeView(exists=False)
    git_dir = _git_dir(directory, outside)
    if git_dir is None:
        return WorktreeView(exists=False)
    rebasing = (git_dir / "rebase-merge").exists() or (git_dir / "rebase-apply").exists()
    head = _read(git_dir / "HEAD")
    if head is None or not head.strip("0") or _half_made(git_dir):
        return WorktreeView(exists=False)
    if not head.startswith("ref: "):
        return WorktreeView(True, None, head, rebasing)
    reference = head.removeprefix("ref: ")
    common = _common_dir(git_dir)
    return WorktreeView(
        True, reference.removeprefix("refs/heads/"), resolve(common, reference), rebasing
    )


def resolve(git_dir: BoxPath, reference: str) -> str | None:
    """The commit that a ref names: loose file first, then packed refs."""
    loose = _read(git_dir / reference)
    if loose:
        return loose
    packed = _read(git_dir / "packed-refs") or ""
    for line in packed.splitlines():
        sha, _, name = line.partition(" ")
        if name == reference:
            return sha
    return None


def fingerprint(git_dir: BoxPath, *, index: bool = False) -> str:
    """Changes whenever a ref changes (or the index), so that unchanged repositories are not asked again."""
    digest = hashlib.sha256()
    for name in ("HEAD", "packed-refs", *(("index",) if index else ())):
        digest.update((_read(git_dir / name) or "").encode())
    refs = git_dir / "refs"
    for path in refs.files() if refs.is_dir() else ():
        digest.update(f"{path}={_read(path)}\n".encode(errors="replace"))
    return digest.hexdigest()


def parse_log(output: str, default: frozenset[str], *, squashes: bool = True) -> tuple[Commit, ...]:
    """Commits with the tokens in their messages, and in the lines that they add if the log has them: where
    a target squashes, the messages alone do not tell whose work is in them.
    """
    commits = []
    for block in output.split("\x1e"):
        names, separator, text = block.strip().partition("\x1f")
        if separator:
            sha, *parents = names.split()
            message, _, patch = text.partition("\ndiff --git ")
            added = [line for line in patch.splitlines() if line.startswith("+")]
            in_files = _tokens("\n".join(added))
            tokens = _tokens("\n".join((message, *added))) if squashes else _tokens(message)
            commits.append(Commit(sha, tokens, sha in default, in_files, tuple(parents)))
    return tuple(commits)


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(TOKEN.findall(text)))


def repository_dir(repository: BoxPath) -> BoxPath:
    """The git directory of a repository, bare or not."""
    nested = repository / ".git"
    return nested if nested.is_dir() else repository


def registered(git_dir: BoxPath) -> frozenset[str]:
    """The directories of the worktrees that a repository knows of beside its own checkout."""
    known = git_dir / "worktrees"
    try:
        marks = [_read(known / name / "gitdir") for name in known.names()]
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    return frozenset(mark.removesuffix("/.git") for mark in marks if mark)


def is_begun(git_dir: BoxPath) -> bool:
    """A clone that git has begun and not finished: there is nothing to ask yet."""
    if git_dir.name != ".git":
        return False  # whatever it is, git has to say it
    head = bool(_read(git_dir / "HEAD"))
    return not (head and (git_dir / "objects").is_dir() and (git_dir / "refs").is_dir())


def _git_dir(directory: BoxPath, outside: Outside) -> BoxPath | None:
    pointer = directory / ".git"
    if pointer.is_dir():
        return pointer
    text = _read(pointer)
    if text is None or not text.startswith("gitdir: "):
        return None
    return outside(text.removeprefix("gitdir: "))


def _half_made(git_dir: BoxPath) -> bool:
    return git_dir.parent.name == "worktrees" and not _read(git_dir / "commondir")


def _common_dir(git_dir: BoxPath) -> BoxPath:
    relative = _read(git_dir / "commondir")
    return (git_dir / relative) if relative else git_dir


def _read(path: BoxPath) -> str | None:
    try:
        return path.read_text(errors="replace", limit=_LARGEST).strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
