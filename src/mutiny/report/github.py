"""What GitHub shows of a run: annotations in the log and a summary of the job, everything escaped.

A line of a log that begins with `::` is an order to GitHub. Whatever a target has said is a value in such a
line, and never one of its own (`escape.unobeyed` sees to the rest of the output).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from mutiny.report.escape import defused, plain
from mutiny.report.junit import Case

MOST = 10
"""GitHub shows no more of them for one step."""
MOST_TEXT = 500
MOST_ROWS = 200


def annotated(name: str, cases: Sequence[Case]) -> Iterator[str]:
    """One line for each case that did not pass: errors first, then what proved nothing."""
    failed = [case for case in cases if _kind(case) == "error"]
    doubtful = [case for case in cases if _kind(case) == "warning"]
    for case in [*failed, *doubtful][:MOST]:
        title = f"{name}: {case.rule or case.verdict.value} ({case.name})"
        text = f"{case.group}: {case.skip or case.reason}\n{case.details}".strip()[:MOST_TEXT]
        yield f"::{_kind(case)} title={_property(title)}::{_data(text)}"


def summary(name: str, cases: Sequence[Case]) -> str:
    """Markdown for the page of the job: the sum, and a row for each case that did not pass."""
    counts = Counter("known" if case.known else case.verdict.value for case in cases)
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    lines = [f"### {name}: {told or 'nothing was run'}", ""]
    rows = [case for case in cases if _kind(case)]
    if rows:
        lines += ["| verdict | what | rule | said |", "|---|---|---|---|"]
    for case in rows[:MOST_ROWS]:
        said = case.skip or case.reason
        said = said if len(said) <= MOST_TEXT else f"{said[:MOST_TEXT]}..."
        cells = (case.verdict.value, f"{case.group}: {case.name}", case.rule, said)
        lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    if len(rows) > MOST_ROWS:
        lines.append(f"\n{len(rows) - MOST_ROWS} more are not shown.")
    return "\n".join([*lines, "", ""])


def _kind(case: Case) -> str:
    """`error`, `warning`, or nothing for a case that passed."""
    if case.failed:
        return "error"
    return "warning" if case.skip else ""


def _data(text: str) -> str:
    safe = plain(text).replace("%", "%25")
    return safe.replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _cell(text: str) -> str:
    return defused(text).replace("`", "\\`").replace("|", "\\|")
