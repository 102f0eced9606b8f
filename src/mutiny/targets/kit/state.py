"""How a target's records are looked at, as every target file may say it, and who looks.

`[state]` names one source: `file` (JSON), `command` (prints JSON), `sqlite` with `query`, `glob` (a JSON
or Markdown file each), `tmux` (a session each) or `worktrees` (of git). `list` is the dotted path of the
records in it, `key` the field that names one; `known` adds fields that follow from the name, and `rules`
derive a status that is said nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from mutiny.doubles.speech import fill
from mutiny.errors import nearest
from mutiny.model.result import OperationResult
from mutiny.probes import tmux
from mutiny.probes.records import Raw, Row, StatusRule, parse_json
from mutiny.probes.sources import json_file, record_files, settled, sqlite_rows
from mutiny.system.files import BoxPath
from mutiny.targets.kit.marks import Inside, Pattern, Words

SOURCES = ("file", "command", "sqlite", "glob", "tmux", "worktrees")


@dataclass(frozen=True, kw_only=True)
class StateSource:
    """Where a target's records are to be seen."""

    directory: Inside = ""
    """Where its files lie; by default where the file or the database lies."""
    file: Inside = ""
    command: tuple[Words, ...] = ()
    sqlite: Inside = ""
    query: str = ""
    glob: Inside = ""
    tmux: Pattern = ""
    """Regular expression of a session's name; its group `name` is the record's."""
    worktrees: Pattern = ""
    """Regular expression of the path of a worktree of {source}; its group `name` is the record's."""
    list: str = ""
    key: str = ""
    known: Mapping[str, Words] = field(default_factory=dict)
    """Fields that the source does not show, with `{worker}` or `{task}` for the record's name."""
    rules: tuple[StatusRule, ...] = ()

    @property
    def source(self) -> str:
        """Which one it is: the file is also what faults damage, so that any other comes first."""
        return next((one for one in SOURCES[1:] if getattr(self, one)), "file")

    @property
    def stored(self) -> str:
        """The one file that faults mean by `state`; a name that nobody has when there is none."""
        return self.file or self.sqlite or f"{self.place}/no-single-file"

    @property
    def place(self) -> str:
        """The directory of its files, as the target's file says it."""
        if self.directory:
            return self.directory
        lies = self.file or self.sqlite or self.glob.partition("*")[0] + "x"
        return str(PurePosixPath(lies).parent)

    def problems(self, statuses: Collection[str]) -> Iterator[str]:
        """What is wrong with it."""
        given = [one for one in SOURCES[1:] if getattr(self, one)]
        if len(given) > 1:
            yield f"state: give one of {', '.join(given)}"
        if bool(self.sqlite) != bool(self.query):
            yield "state.query: sqlite and query belong together"
        if not given and not self.file:
            yield "state.file: is missing"
        for word, pattern in (("tmux", self.tmux), ("worktrees", self.worktrees)):
            if pattern and "(?P<name>" not in pattern:
                yield f"state.{word}: needs a group (?P<name>...) for the record's name"
        if self.glob and "*" not in self.glob:
            yield "state.glob: has no *; one file is `file = ...`"
        elsewhere = self.command or self.tmux or self.worktrees
        if elsewhere and not (self.directory or self.file):
            yield f"state.directory: say where its files lie; {self.source} does not tell"
        for rule in self.rules:
            if rule.status not in statuses:
                hint = nearest(rule.status, list(statuses))
                yield f"state.rules: unknown status {rule.status!r}{hint}"


def read_source(
    state: StateSource,
    filled: Callable[[str], str],
    outside: Callable[[str], BoxPath],
    run: Callable[[tuple[str, ...]], OperationResult],
) -> Raw:
    """One look at a target's source."""
    if state.source == "command":
        return _printed(run(tuple(filled(word) for word in state.command)))
    if state.source == "sqlite":
        return settled(lambda: sqlite_rows(outside(filled(state.sqlite)), state.query))
    if state.source == "glob":
        base, _, rest = state.glob.partition("*")
        root, _, begin = base.rpartition("/")
        return settled(lambda: record_files(outside(filled(root)), f"{begin}*{rest}"))
    if state.source == "tmux":
        return _sessions(run(tmux.SESSIONS), state.tmux)
    if state.source == "worktrees":
        argv = ("git", "-C", filled("{source}"), "worktree", "list", "--porcelain")
        return _worktrees(run(argv), state.worktrees)
    return settled(lambda: json_file(outside(filled(state.file))))


def with_known(
    state: StateSource, rows: Mapping[str, Row], values: Mapping[str, str]
) -> dict[str, Row]:
    """The records with what follows from their names."""
    if not state.known:
        return dict(rows)
    return {
        name: {
            **{
                key: fill(text, {**values, "worker": name, "task": name})
                for key, text in state.known.items()
            },
            **row,
        }
        for name, row in rows.items()
    }


def _sessions(result: OperationResult, pattern: str) -> Raw:
    """A record for each session; without a server there is none."""
    if not result.succeeded and not tmux.SILENT.search(result.stderr):
        return Raw(exists=False, error=f"tmux: {result.stderr.strip()[:200]}", refused=True)
    found = (re.search(pattern, line) for line in result.stdout.splitlines())
    return Raw(data=[{"name": one["name"], "session": one.string} for one in found if one])


def _printed(result: OperationResult) -> Raw:
    if not result.succeeded:
        said = (result.stderr or result.stdout).strip()[:200]
        text = f"the state's command failed: {said or result.exit_code}"
        return Raw(exists=False, error=text, refused=True)
    try:
        return Raw(data=parse_json(result.stdout), text=result.stdout)
    except ValueError as error:
        return Raw(error=f"not valid JSON: {error}", text=result.stdout)


def _worktrees(result: OperationResult, pattern: str) -> Raw:
    """A record for each worktree that git knows."""
    if not result.succeeded:
        return Raw(exists=False, error=f"git: {result.stderr.strip()[:200]}", refused=True)
    rows = []
    for block in result.stdout.split("\n\n"):
        facts = dict(line.partition(" ")[::2] for line in block.splitlines())
        match = re.search(pattern, facts.get("worktree", ""))
        if match is not None:
            branch = facts.get("branch", "").removeprefix("refs/heads/")
            rows.append({"name": match["name"], "worktree": match.string, "branch": branch})
    return Raw(data=rows)
