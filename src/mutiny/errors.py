"""Every error that Mutiny raises on purpose, and the exit code that each one means.

    MutinyError                      70  Mutiny itself failed
    ├── UsageError                    2  the user asked for something that does not exist or cannot be read
    │   ├── FormatError               2  a file has mistakes; all of them are listed
    │   └── NotReproducible           2  a replay needs what this machine or this version lacks
    ├── TargetMissing                 3  the target could not be started: nothing was tested
    ├── TechniqueMissing              3  this machine lacks what the run needs: nothing was tested
    ├── BoxError                     70  the walls could not be built or broke down
    └── StoreError                   70  the run directory could not be written (disk full, permissions)

A fault of the *target* is never an exception: it is a verdict (`mutiny.model.verdict`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class MutinyError(Exception):
    """Base of all errors that are shown to the user as one clear line."""

    exit_code = 70


class UsageError(MutinyError):
    """The request itself is wrong; nothing was run."""

    exit_code = 2


class FormatError(UsageError):
    """A file has mistakes. `problems` holds one line for each of them."""

    def __init__(self, where: str, problems: Sequence[str]) -> None:
        self.where = where
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{where}: {problem}" for problem in problems))


class NotReproducible(UsageError):
    """A replay cannot be repeated faithfully here, so it is refused instead of being weakened."""


class TargetMissing(MutinyError):
    """The program under test is not there or does not start: the run tested nothing."""

    exit_code = 3


class TechniqueMissing(MutinyError):
    """The run needs a technique that this machine lacks; it is refused, never done more weakly."""

    exit_code = 3


class BoxError(MutinyError):
    """The box could not be made, or died under the run."""


class StoreError(MutinyError):
    """The run directory could not be written."""


def nearest(word: str, known: Sequence[str]) -> str:
    """A hint ` (did you mean ...?)`, or nothing when no known word is close."""
    import difflib  # only a mistake needs it

    close = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
