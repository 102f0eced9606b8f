"""Promises about tasks, as parts that any contract can take.

The model counts from what was acknowledged; what the target says about itself is held against that and
never believed instead of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping


def wrong_numbers(
    subject: str, due: Mapping[str, int], shown: Mapping[str, object]
) -> Iterator[str]:
    """Numbers that are shown and are not the acknowledged ones; what is not shown is not asked."""
    for name, value in due.items():
        seen = shown.get(name)
        if seen is not None and seen != value:
            words = name.replace("_", " ")
            yield f"{subject} shows {words} {seen}, but {value} follows from what was acknowledged."


def more_attempts(task: str, before: int | None, now: int | None) -> Iterator[str]:
    """An attempt that is counted although no work on it has failed."""
    if before is not None and now is not None and now > before:
        yield f"task {task} has used {now} attempts instead of {before}, though nothing has failed."


def dead_end(
    subject: str, status: str, serves: Mapping[str, Collection[str] | None]
) -> Iterator[str]:
    """A status in which no command is served that keeps the work; None: in every status."""
    if not any(statuses is None or status in statuses for statuses in serves.values()):
        tried = ", ".join(sorted(serves))
        yield f"{subject} is {status} with work that nobody gave up, and none of {tried} leads on."
