"""A task of a plan in one line: `b needs=a writes=core does=fails,works tokens=500`.

What the agent does with it is part of the line, so that a sequence says everything that happens in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

FRUITLESS = ("fails", "blurts", "idle", "waits", "lingers")
"""What an agent may do at an attempt that brings nothing: fail; fail, and print a secret; change nothing;
wait until it is killed, before it has done anything or when it has.
"""
STRAYING = ("strays", "nears", "deepens", "removes", "renames")
"""What an agent may do to a file which it has not declared: write it, anywhere, beside a folder that it has
declared, with a name that begins like it, or in a folder below the one whose files it has declared; or take
away what a task has written that it needs, by removing or by renaming it.
"""
REMOVING = frozenset({"removes", "renames"})
BEHAVIOURS = (
    *("works", "slowly", *FRUITLESS, *STRAYING, "shares", "tells", "leaves"),
    *("counts", "pushes", "meets", "commits"),
)
"""What else an agent may do: its work, at once or in a second; also add a line to a file that others write;
print a secret; leave a process running; tell what it has used in two parts; push to wherever it can; end in
the same moment as all others of the plan that meet; commit its work itself.
"""
LISTS = ("needs", "reads", "writes", "does")
SHARED_FILE = "shared.txt"
ROW = re.compile(r"([A-Za-z_-]+)(\d{1,4})\.\.(\d{1,4})")
MOST_IN_A_ROW = 500


@dataclass(frozen=True)
class Task:
    """One task as it is planned."""

    id: str
    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    does: tuple[str, ...] = ("works",)
    """At each attempt; the last one for all that follow."""
    tokens: int = 0
    """What the agent says that each attempt used."""

    @property
    def file(self) -> str:
        """The file that only this task writes."""
        return f"work/{self.id}.txt"

    @property
    def stray(self) -> str:
        """The file that it has not declared."""
        if REMOVING & set(self.does):
            return f"work/{self.needs[0]}.txt" if self.needs else ""
        place = {"nears": "-old/part", "deepens": "/below/part"}
        where = next((place[word] for word in self.does if word in place), "")
        return f"extra/{self.id}{where}.txt"

    @property
    def declared(self) -> tuple[str, ...]:
        """The files that its plan names."""
        shared = (SHARED_FILE,) if "shares" in self.does else ()
        folder = (f"extra/{self.id}/**",) if "nears" in self.does else ()
        files = (f"extra/{self.id}/*",) if "deepens" in self.does else ()
        return (self.file, *shared, *folder, *files)

    def behaviour(self, attempt: int) -> str:
        """What the agent does at an attempt, counted from 1."""
        return self.does[min(attempt, len(self.does)) - 1]

    def conflicts(self, other: Task) -> bool:
        """May they not share a batch?"""
        mine, others = set(self.writes), set(other.writes)
        return bool(mine & (others | set(other.reads)) or others & set(self.reads))


@cache
def read_task(line: str) -> Task:
    """A task from its line; ValueError says what is wrong with it."""
    name, *words = line.split(" ")
    values: dict[str, object] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key in LISTS and value:
            values[key] = tuple(value.split(","))
        elif key == "tokens" and value.isdigit():
            values[key] = int(value)
        else:
            raise ValueError(f"task {line!r}: {word!r} is none of needs=, reads=, writes=, does=")
    task = Task(name, **values)  # type: ignore[arg-type]
    unknown = [word for word in task.does if word not in BEHAVIOURS]
    if unknown:
        raise ValueError(f"task {line!r}: {unknown[0]!r} is none of {', '.join(BEHAVIOURS)}")
    return task


def read_tasks(line: str) -> tuple[Task, ...]:
    """The tasks of a line: one, or those of a row of names, `t1..60 does=works`."""
    name, _, rest = line.partition(" ")
    row = ROW.fullmatch(name)
    if row is None:
        return (read_task(line),)
    first, last = int(row[2]), int(row[3])
    if not first <= last < first + MOST_IN_A_ROW:
        raise ValueError(f"task {line!r}: a row has at least one and at most {MOST_IN_A_ROW} names")
    return tuple(
        read_task(f"{row[1]}{number} {rest}".rstrip()) for number in range(first, last + 1)
    )


def rows_of(tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """The tasks as they stand in a plan file.

    What an agent does stands in its prompt, so that it follows the plan that was taken, whichever that is.
    """
    meeting = sum("meets" in task.does for task in tasks)
    others = f" with={meeting}"
    return [
        {
            "id": task.id,
            "name": f"Task {task.id}",
            "prompt": f"Do task {task.id} and nothing else. "
            f"[does={','.join(task.does)} tokens={task.tokens}"
            f"{others if 'meets' in task.does else ''}]",
            "depends": list(task.needs),
            "reads": list(task.reads),
            "writes": list(task.writes),
            "files": list(task.declared),
        }
        for task in tasks
    ]


def in_circle(tasks: Iterable[Task]) -> bool:
    """Do tasks depend on each other in a circle?"""
    left = {task.id: set(task.needs) for task in tasks}
    while free := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in free:
            del left[name]
    return bool(left)
