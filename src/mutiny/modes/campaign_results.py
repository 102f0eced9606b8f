"""What a finished run of a campaign tells: its verdict, the causes that it met, what it covered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mutiny.engine.campaigns import CauseSeen, Finished, Job, KnownMet
from mutiny.engine.record import all_lines, table
from mutiny.model.verdict import Verdict
from mutiny.modes.own_command import Answer
from mutiny.system.files import BoxPath

_KNOWN = frozenset(verdict.value for verdict in Verdict)


def finished_of(
    job: Job, id_: str, answer: Answer, *, seconds: float, at_s: float, where: str, runs: Path
) -> Finished:
    """The line of the journal; a command without an answer has shown nothing."""
    document = answer.document or {}
    verdict = document.get("verdict")
    if verdict not in _KNOWN or answer.problem is not None:
        reason = answer.problem or "the command gave no verdict"
        inconclusive = Verdict.INCONCLUSIVE.value
        return Finished(
            id_, job.key, inconclusive, round(seconds, 3), round(at_s, 3), where, reason, str(runs)
        )
    causes = tuple(_causes(document))
    return Finished(
        id_,
        job.key,
        str(verdict),
        round(seconds, 3),
        round(at_s, 3),
        where,
        _reason(document, verdict),
        _directory(document) or str(runs),
        causes,
        tuple(sorted(set(_cells(document, runs)))),
        tuple(
            KnownMet(row["rule"], row["reason"], row["link"], int(row["count"]))
            for row in document.get("known") or ()
        ),
    )


def _causes(document: Mapping[str, Any]) -> Iterator[CauseSeen]:
    for row in document.get("causes") or ():
        said = tuple(map(str, row["said"]))
        length = int(row["operations"])
        yield CauseSeen(row["rule"], row["operation"], said, length, row["replay"])


def _reason(document: Mapping[str, Any], verdict: object) -> str:
    """Why it did not pass, in one line."""
    if verdict == Verdict.SUCCESS.value:
        return ""
    for row in document.get("points") or ():
        if row["verdict"] == verdict and not row.get("known"):
            return f"{row['rule'] or ''} {row['message']}".strip()
    for row in document.get("causes") or ():
        return f"{row['rule']} at {row['operation']}"
    runs = document.get("runs")
    error = table(runs[0].get("error")) if isinstance(runs, list) and runs else {}
    doubts = error.get("inconclusive") or ()
    return "; ".join(map(str, doubts)) or str(error.get("rule") or verdict)


def _directory(document: Mapping[str, Any]) -> str:
    """Where the run lies that is worth a look."""
    if document.get("first_bug"):
        return str(document["first_bug"])
    runs = document.get("runs")
    rows = [*(document.get("failures") or ()), *(runs if isinstance(runs, list) else ())]
    return next((str(row["directory"]) for row in rows if row.get("directory")), "")


def _cells(document: Mapping[str, Any], runs: Path) -> Iterator[str]:
    """What was covered: as an exploration tells it, or as the journals of the runs do."""
    rows = document.get("coverage")
    if rows is None:
        rows = [
            line["coverage"]
            for folder in sorted(runs.glob("run_*"))
            for line in all_lines(BoxPath(folder) / "operations.jsonl")
            if table(line.get("coverage"))
        ]
    for row in rows:
        yield "|".join(str(row[name]) for name in ("status", "operation", "fault", "outcome"))
