"""Known findings: bugs that somebody has looked at and wants to be told of, but not to be stopped by.

A file of `[[known]]` entries: the rule, what was said (all of these clauses must be), the kind of step, a
reason, perhaps a link, and the day on which it expires. A known finding is counted and shown, never hidden;
the run goes on behind it. An entry that has expired is refused: somebody has to look again.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutiny import documents
from mutiny.codec import decode
from mutiny.engine.causes import Cause, cause_of
from mutiny.engine.loop import Outcome
from mutiny.errors import FormatError, nearest
from mutiny.kit.operations import Settle
from mutiny.kit.rules import canonical
from mutiny.kit.supported import undemanding
from mutiny.model.operation import Operation

HEAD = "[[known]]"


@dataclass(frozen=True, kw_only=True)
class Known:
    """One known finding."""

    rule: str
    reason: str
    expires: str
    """The day after which it is no excuse any more: `2027-01-31`."""
    said: tuple[str, ...] = ()
    """Clauses of the message, without names and numbers; empty: whatever is said."""
    operation: str = ""
    """The kind of step that shows it, such as `CrashAt(Accept)`; empty: any."""
    link: str = ""

    def covers(self, cause: Cause, also: str = "") -> bool:
        """Is this the finding? `also`: another kind of step that has the same right to be its place."""
        return (
            canonical(self.rule) == cause.failure.rule
            and self.operation in ("", cause.operation, also)
            and set(self.said) <= cause.failure.said
        )

    def names_the_same(self, other: Known) -> bool:
        """Do both mean the same finding, whatever is told about it?"""
        mine = (canonical(self.rule), self.operation, frozenset(self.said))
        return mine == (canonical(other.rule), other.operation, frozenset(other.said))

    def problem(self, today: datetime.date) -> str | None:
        """Why it cannot be used; None when it can."""
        try:
            last = datetime.date.fromisoformat(self.expires)
        except ValueError:
            return f"expires: {self.expires!r} is no day like 2027-01-31"
        if last < today:
            return f"it expired on {last}: look again, and give it another day or take it out"
        return None if self.reason.strip() else "a reason is needed"


@dataclass(frozen=True)
class KnownFindings:
    """Everything that is known of a target."""

    entries: tuple[Known, ...] = ()

    def entry_for(
        self, outcome: Outcome, names: Iterable[str] = (), also: str = ""
    ) -> Known | None:
        """The entry that explains why a run failed; None: it is news.

        `names`: as for `cause_of`; `also`: as for `covers`.
        """
        cause = cause_of(outcome, names)
        found = (one for one in self.entries if cause is not None and one.covers(cause, also))
        return next(found, None)


def load_known(path: Path, today: datetime.date, rules: Collection[str]) -> KnownFindings:
    """Read a file; every mistake is told with its line, also a rule that is none of `rules`: such an entry
    would never cover anything.
    """
    data, text = documents.read_toml(path, "file of known findings")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.strip() == HEAD]
    rows = data.get("known", [])
    problems = [
        f"unknown table {key!r}; entries begin with {HEAD}" for key in data if key != "known"
    ]
    if not isinstance(rows, list) or len(lines) != len(rows):
        raise FormatError(str(path), [f"entries begin with a line {HEAD}", *problems])
    entries: list[Known] = []
    for line, row in zip(lines, rows, strict=True):
        day = row.get("expires")
        given = {**row, "expires": day.isoformat()} if isinstance(day, datetime.date) else row
        try:
            entry = decode(Known, given, where=str(path))
        except FormatError as error:
            problems += [f"line {line}: {problem}" for problem in error.problems]
            continue
        problem = entry.problem(today)
        if problem is None and canonical(entry.rule) not in rules:
            problem = f"there is no such rule{nearest(entry.rule, list(rules))}"
        if problem is not None:
            problems.append(f"line {line}: {entry.rule}: {problem}")
        entries.append(entry)
    if problems:
        raise FormatError(str(path), problems)
    return KnownFindings(tuple(entries))


def written(entry: Known) -> str:
    """An entry as it stands in a file."""
    lines = [HEAD, f"rule = {_quoted(entry.rule)}", f"reason = {_quoted(entry.reason)}"]
    if entry.operation:
        lines.append(f"operation = {_quoted(entry.operation)}")
    if entry.said:
        lines.append(f"said = [{', '.join(map(_quoted, entry.said))}]")
    if entry.link:
        lines.append(f"link = {_quoted(entry.link)}")
    return "\n".join([*lines, f"expires = {_quoted(entry.expires)}", ""])


def _quoted(text: str) -> str:
    """A basic string of TOML: the same escapes as JSON's."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def without_trigger(
    outcome: Outcome, planned: Sequence[Operation], first: int = 1
) -> tuple[Operation, ...] | None:
    """The sequence without the step that showed a finding; None: nothing comes behind it.

    What the sequence itself had expected of the steps behind it is not asked any more. The steps before
    `first` have to stay: the beginning, or what a run is about.
    """
    place = len(outcome.steps) - 1
    if place < first or place >= len(planned) - 1:
        return None
    settle = next((one for one in planned if one.type == Settle.__name__), Settle())
    behind = (undemanding(settle, one) for one in planned[place + 1 :])
    return (*planned[:place], *(one for one in behind if one is not None))


def known_as_json(met: Counter[Known]) -> list[dict[str, object]]:
    """How often each known finding was met, for programs."""
    return [
        {"rule": one.rule, "reason": one.reason, "link": one.link, "count": count}
        for one, count in met.most_common()
    ]


def known_told(met: Mapping[Any, int]) -> list[str]:
    """The same for people: a line a finding, the commonest first; whatever has a rule and a reason."""
    return [
        f"known, {'once' if count == 1 else f'{count} times'}: {one.rule}: {one.reason}"
        for one, count in sorted(met.items(), key=lambda item: -item[1])
    ]
