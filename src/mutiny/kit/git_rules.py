"""Promises about a user's git repository, as parts that any contract can take.

Each part takes what was seen before and after an operation and gives messages; the contract adds its own
rule, and says when nobody could keep it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from mutiny.kit.views import Commit

SHOWN = 3


@dataclass(frozen=True)
class Branch:
    """The branch that everybody shares, at one look."""

    head: str | None
    commits: Collection[str]
    """Everything that it reaches."""


def only_forward(before: Branch, now: Branch, operation: object) -> Iterator[str]:
    """The branch only moves forward: no commit that was on it leaves it, whoever made it."""
    if before.head == now.head:
        return
    gone = sorted(set(before.commits) - set(now.commits))
    if gone:
        shown = ", ".join(sha[:12] for sha in gone[:SHOWN])
        head = (now.head or "nothing")[:12]
        yield (
            f"After {operation} the default branch is at {head}, and no longer has {len(gone)} of the "
            f"commits that it had ({shown})."
        )


def has_commit(
    branch: str | None, head: str | None, wanted: str, commits: Collection[Commit]
) -> Iterator[str]:
    """A branch contains a commit; `commits` are all that any branch reaches."""
    if head is not None and not _contains(commits, head, wanted):
        yield f"The branch {branch} is at {head[:12]}, which does not contain {wanted[:12]}."


def _contains(commits: Collection[Commit], head: str, wanted: str) -> bool:
    parents = {commit.sha: commit.parents for commit in commits}
    waiting, seen = [head], {head}
    while waiting:
        for parent in parents.get(waiting.pop(), ()):
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return wanted in seen


def stays_clean(dirty: Collection[str], operation: object) -> Iterator[str]:
    """A checkout that nobody has edited shows no changes: it is at the tip of its branch."""
    if dirty:
        shown = ", ".join(sorted(dirty)[:SHOWN])
        yield f"After {operation} the user's checkout, which nobody edited, shows changes: {shown}."
