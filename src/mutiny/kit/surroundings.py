"""What a user's machine may be like, without anything being broken: no excuse for any program.

A place far from Greenwich, a terminal that is narrow, git with a taste of its own, a call from one of git's
hooks. Each is a set of environment variables for everything that is said to the target; `{source}` is the
user's repository. A target that fails in one of these fails for some of its users every day.
"""

from __future__ import annotations

from collections.abc import Mapping

_GIT_HABITS = {
    "color.ui": "always",
    "column.ui": "always",
    "status.short": "true",
    "status.branch": "true",
    "status.showUntrackedFiles": "no",
    "branch.sort": "-committerdate",
    "diff.noprefix": "true",
    "log.decorate": "full",
    "init.defaultBranch": "trunk",
    "core.abbrev": "40",
}


def _settings(habits: Mapping[str, str]) -> dict[str, str]:
    """Settings of git as it reads them from the environment."""
    found = {"GIT_CONFIG_COUNT": str(len(habits))}
    for number, (key, value) in enumerate(habits.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


SURROUNDINGS: Mapping[str, Mapping[str, str]] = {
    "far_east": {"TZ": "<+1345>-13:45"},
    "far_west": {"TZ": "<-1130>11:30"},
    "narrow_terminal": {"COLUMNS": "20", "LINES": "5", "TERM": "dumb"},
    "no_utf8": {"LC_ALL": "C", "LANG": "C"},
    "git_habits": _settings(_GIT_HABITS),
    "git_hook": {
        "GIT_DIR": "{source}/.git",
        "GIT_INDEX_FILE": "{source}/.git/index",
        "GIT_PREFIX": "",
    },
}
"""By name: what the target finds in its environment. A hook is called with the repository's own places."""

MACHINES: Mapping[str, str] = {
    "on_far_east": "On a machine 13 hours and 45 minutes before Greenwich.",
    "on_far_west": "On a machine 11 hours and 30 minutes behind Greenwich.",
    "on_narrow_terminal": "In a terminal of 20 columns that can do nothing.",
    "on_no_utf8": "On a machine whose locale knows no UTF-8.",
    "on_git_habits": "Beside a git that has colours, columns and habits of its own.",
    "on_git_hook": "Called from one of git's hooks.",
    "in_odd_directory": "In a directory with a blank and a dot in its name.",
    "in_escaped_directory": "In a directory whose name an address would have to escape.",
}
"""The scenarios of `kit/recipes.py` on each of them, in one line each."""
