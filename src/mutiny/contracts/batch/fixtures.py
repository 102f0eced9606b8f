"""Repositories to run batches on, each a generator that always gives the same bytes.

toy-repo        what every box begins with: a README, and nothing else to wait for
conflict-repo   a file that several tasks write, with text that must survive them
large-repo-sim  many files in many packages, for how times grow
"""

from __future__ import annotations

from collections.abc import Iterator

from mutiny.contracts.batch.tasks import SHARED_FILE

NAMES = ("toy-repo", "conflict-repo", "large-repo-sim")
PLACE = "repo/"
"""Where the files of fixtures lie; no task writes there."""
LARGE = 600
"""So many files has the large one."""
_IN_A_PACKAGE = 50
_BORN = 1735689600
"""The first second of 2025: a commit that is made again is the same commit."""


def files_of(name: str, size: int = LARGE) -> Iterator[tuple[str, str]]:
    """The files of a fixture beside what every box has."""
    if name == "conflict-repo":
        yield SHARED_FILE, "".join(f"text {number} of the project\n" for number in range(1, 4))
    if name == "large-repo-sim":
        for number in range(size):
            package, module = divmod(number, _IN_A_PACKAGE)
            yield f"{PLACE}package_{package:03}/module_{module:02}.py", _module(number)


def _module(number: int) -> str:
    """A module that looks like one; about a kilobyte, no two alike."""
    functions = (
        f"def step_{number}_{each}(value: int) -> int:\n"
        f'    """Step {each} of module {number}."""\n'
        f"    return value * {number + 1} + {each}\n"
        for each in range(8)
    )
    return f'"""Module {number}."""\n\n\n' + "\n\n".join(functions)


def commit_of(name: str, branch: str) -> bytes:
    """One commit with the fixture's files on top of a branch, as `git fast-import` reads it."""
    parts = [
        f"commit refs/heads/{branch}\n"
        f"committer Mutiny <mutiny@box.invalid> {_BORN} +0000\n"
        f"{_data(f'Fixture {name}')}"
        f"from refs/heads/{branch}^0\n"
    ]
    parts += [f"M 100644 inline {path}\n{_data(text)}" for path, text in files_of(name)]
    return "".join(parts).encode()


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"
