"""How a target's records are looked at, as every target file may say it, and who looks.

`[state]` names one source: `file` (JSON), `command` (prints JSON), `sqlite` with `query`, or `glob` (a JSON
file each). `list` is the dotted path of the records in it, `key` the field that names one, `rules` derive a
status where the target has no word for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from mutiny.errors import nearest
from mutiny.model.result import OperationResult
from mutiny.probes.records import Raw, StatusRule, parse_json
from mutiny.probes.sources import json_file, json_files, settled, sqlite_rows
from mutiny.system.files import BoxPath
from mutiny.targets.kit.marks import Inside, Words

SOURCES = ("file", "command", "sqlite", "glob")


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
    list: str = ""
    key: str = ""
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
        if self.glob and "*" not in self.glob:
            yield "state.glob: has no *; one file is `file = ...`"
        if self.command and not (self.directory or self.file):
            yield "state.directory: say where its files lie; a command tells nobody"
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
        return settled(lambda: json_files(outside(filled(root)), f"{begin}*{rest}"))
    return settled(lambda: json_file(outside(filled(state.file))))


def _printed(result: OperationResult) -> Raw:
    if not result.succeeded:
        said = (result.stderr or result.stdout).strip()[:200]
        text = f"the state's command failed: {said or result.exit_code}"
        return Raw(exists=False, error=text, refused=True)
    try:
        return Raw(data=parse_json(result.stdout), text=result.stdout)
    except ValueError as error:
        return Raw(error=f"not valid JSON: {error}", text=result.stdout)
