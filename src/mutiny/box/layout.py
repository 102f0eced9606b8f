"""The directories and the environment of a box.

Insight: a target must find a complete little world of its own (home, git identity, temporary
directory, repository) and nothing of the user's, and find the same one each time. Hence the
environment is built from nothing instead of being inherited, and the first commit has a fixed date,
so that its hash never changes.
"""

from __future__ import annotations

import os
import shlex
import shutil
from typing import TYPE_CHECKING

from mutiny.doubles.agents.shapes import OLD_FILES
from mutiny.system.files import BoxPath

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DIRECTORIES = ("home", "tmp", "source")
OF_DOUBLES = ("bin", "doubles")
_SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_TOOLS = ("git", "tmux", "sh", "bash")

_GIT_CONFIG = """\
[user]
\tname = Mutiny
\temail = mutiny@box.invalid
[init]
\tdefaultBranch = master
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""

FIRST_COMMIT_SCRIPT = (
    "git init --quiet --initial-branch=master . && git add --all"
    " && git commit --quiet --message 'First commit'"
)
FIRST_COMMIT_ENVIRONMENT = {
    "GIT_AUTHOR_DATE": "2025-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2025-01-01T00:00:00Z",
}


def make_layout(
    directory: Path, inside_root: str, *, doubles: bool = True, source: bool = True
) -> None:
    """Make the directories and files of a box on the host; what is already there is kept."""
    # A box may go on from the files of another one, which a target has left: a link in the place of a
    # directory would put walls around something else.
    root = BoxPath(directory)
    for name in DIRECTORIES + OF_DOUBLES if doubles else DIRECTORIES:
        (root / name).mkdir(exist_ok=True)
    # A login shell (tmux starts one in each pane) resets PATH in /etc/profile; this line wins it
    # back.
    path_line = _path_line(inside_root)
    files = {
        "home/.gitconfig": _GIT_CONFIG,
        "home/.bash_profile": path_line,
        "home/.profile": path_line,
    }
    if source and needs_first_commit(directory):
        files["source/.gitignore"] = ".claude/\n.serena/\n"
        files |= {f"source/{name}": text for name, text in OLD_FILES.items()}
        files["source/README.md"] = "# Source\n\nThe repository that the workers work on.\n"
        (root / "source/old").mkdir(exist_ok=True)
    for name, text in files.items():
        (root / name).create(text.encode(), 0o666)


def _path_line(inside_root: str) -> str:
    return f'export PATH={shlex.quote(f"{inside_root}/bin")}:"$PATH"\n'


def forget_path(directory: Path, inside_root: str) -> None:
    """Take back what ``make_layout`` wrote about a root that the box will not have after all."""
    for name in (".bash_profile", ".profile"):
        path = BoxPath(directory, "home", name)
        if path.is_file() and path.read_text() == _path_line(inside_root):
            path.unlink()


def needs_first_commit(directory: Path) -> bool:
    """Say whether the source repository has still to be made."""
    return not BoxPath(directory, "source", ".git").exists()


def box_environment(box_id: str, inside_root: str, extra: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of the processes in a box; nothing of Mutiny's own gets in."""
    user = _user_name()
    return {
        "HOME": f"{inside_root}/home",
        "TMPDIR": f"{inside_root}/tmp",
        "TMUX_TMPDIR": f"{inside_root}/tmp",
        "PATH": f"{inside_root}/bin:{_search_path()}",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "SHELL": shutil.which("bash")
        or "/bin/sh",  # else tmux asks the user data base for the shell
        "USER": user,
        "LOGNAME": user,
        "EDITOR": "true",
        "GIT_EDITOR": "true",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "MUTINY_BOX": box_id,
        "MUTINY_DOUBLES": f"{inside_root}/doubles",
        **extra,
    }


def _search_path() -> str:
    """The usual directories, and those of the few tools that every run needs."""
    found = (shutil.which(tool) for tool in _TOOLS)
    elsewhere = [os.path.dirname(path) for path in found if path is not None]  # noqa: PTH120
    return ":".join(dict.fromkeys([*_SYSTEM_PATH, *elsewhere]))


def _user_name() -> str:
    named = (os.environ.get(key) for key in ("LOGNAME", "USER", "LNAME", "USERNAME"))
    # Not from the user data base: slow, and a uid without an entry there is usual in containers.
    return next((name for name in named if name), f"user{os.getuid()}" if os.getuid() else "root")
