"""The experiment log: one entry for every experiment that was run, made from the journals of the runs.

Date, question, results, observations, and the bugs that it showed: symptom, evidence, root cause as far as
it goes, status. It is made anew from all runs each time, so that it grows with every run and never says
what no journal says.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutiny.errors import UsageError
from mutiny.kit.measuring import Bar, Line, Measured
from mutiny.report.measured import measure

PASSED = "PASS"
RESULTS = {
    "success": PASSED,
    "bug": "FAIL",
    "recovery_bug": "FAIL",
    "timeout": "FAIL",
    "inconclusive": "INCONCLUSIVE",
}
MOST_ROWS = 40
"""So many results are listed."""
LONGEST = 160


@dataclass(frozen=True)
class Bug:
    """Something that a run has shown to be broken."""

    number: int
    title: str
    symptom: str
    evidence: tuple[str, ...]
    cause: str
    status: str

    @property
    def name(self) -> str:
        return f"BUG-{self.number:03d}"


@dataclass(frozen=True)
class Entry:
    """One experiment that was run."""

    number: int
    title: str
    date: str
    question: str
    target: str
    directory: str
    result: str
    duration_s: float
    columns: tuple[str, ...]
    results: tuple[tuple[str, ...], ...]
    measured: Measured | None
    observations: tuple[str, ...]
    bugs: tuple[Bug, ...]


@dataclass(frozen=True)
class _Run:
    """A run directory that holds an experiment."""

    path: Path
    plan: Mapping[str, Any]
    lines: tuple[Line, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        """What must be the same for one run to say something about another."""
        return (str(self.plan["title"]), str(self.plan["target"]), str(self.plan.get("plant", "")))

    @property
    def verdict(self) -> str:
        """Of the whole run: that of the step which stopped it."""
        last = str(self.lines[-1]["classification"]) if self.lines else "inconclusive"
        broken = [line["classification"] for line in self.lines if line["violations"]]
        found = str(broken[0]) if broken else last
        return "success" if found == "expected" else found


def entries(root: Path) -> list[Entry]:
    """Everything that the runs below a directory tell, the oldest first; runs that cannot be read are told
    as such by whoever asks.
    """
    runs = sorted(_runs(root), key=lambda run: float(run.plan["started_unix"]))
    if not runs:
        raise UsageError(f"there are no experiments in {root}; `mutiny experiment run` makes them")
    found: list[Entry] = []
    bugs = 0
    for number, run in enumerate(runs, 1):
        later = [other for other in runs[number:] if other.key == run.key]
        entry = _entry(number, run, later, bugs)
        bugs += len(entry.bugs)
        found.append(entry)
    return found


def _runs(root: Path) -> Iterator[_Run]:
    for path in sorted(root.glob("run_*")) if root.is_dir() else ():
        plan, journal = path / "plan.json", path / "operations.jsonl"
        if path.is_symlink() or not (plan.is_file() and journal.is_file()):
            continue
        try:
            told = json.loads(plan.read_text(encoding="utf-8"))
            text = journal.read_text(encoding="utf-8").splitlines()
            lines = tuple(json.loads(line) for line in text)
        except ValueError:
            continue  # it was killed while it wrote
        if told.get("mode") == "experiment":
            yield _Run(path, told, lines)


def _entry(number: int, run: _Run, later: Sequence[_Run], bugs: int) -> Entry:
    measured = measure(str(run.plan.get("contract", "")), run.lines)
    started = float(run.plan["started_unix"])
    last = run.lines[-1]["timestamp_unix"] if run.lines else started
    columns, rows = _results(run, measured)
    plant = run.plan.get("plant")
    return Entry(
        number,
        str(run.plan["title"]),
        time.strftime("%Y-%m-%d %H:%M", time.gmtime(started)),
        str(run.plan.get("question", "")),
        str(run.plan["target"]) + (f" (planted: {plant})" if plant else ""),
        run.path.name,
        RESULTS.get(run.verdict, "INCONCLUSIVE"),
        round(float(last) - started, 1),
        columns,
        rows,
        measured,
        tuple(_observations(run)),
        tuple(_bugs(run, later, bugs)),
    )


def _results(
    run: _Run, measured: Measured | None
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Who did what when, where the contract tells; else the steps."""
    if measured is not None and measured.bars:
        rows = [_lasted(bar, measured.bars) for bar in measured.bars]
        return ("Time", "Agent", "Action", "Depth"), tuple(rows[:MOST_ROWS])
    zero = run.lines[0]["timestamp_unix"] if run.lines else 0.0
    steps = [
        (f"{line['timestamp_unix'] - zero:.1f} s", _spoken(line), line["classification"])
        for line in run.lines
    ]
    return ("Time", "Step", "Outcome"), tuple(steps[:MOST_ROWS])


def _lasted(bar: Bar, bars: Sequence[Bar]) -> tuple[str, ...]:
    above = {one.id: one.parent for one in bars}
    depth, parent = 0, bar.parent
    while parent in above and depth <= len(bars):
        depth, parent = depth + 1, above[parent]
    name = {one.id: one.name for one in bars}
    by = f", summoned by {name[bar.parent]}" if bar.parent in name else ""
    note = f" ({bar.note})" if bar.note else ""
    took = "" if bar.status == "refused" else f" after {bar.end_s - bar.begin_s:.1f} s"
    return (f"{bar.begin_s:.1f} s", bar.name, f"{bar.status}{took}{note}{by}", str(depth))


def _observations(run: _Run) -> Iterator[str]:
    for line in run.lines:
        kind, result = line["operation"]["type"], line["result"]
        if kind == "VerifySentence" and line["classification"] == "success":
            yield f"{line['operation']['args'].get('sentence', '')} (step {line['sequence_id']})"
        elif result.get("fired") and line.get("technique"):
            yield f"{_spoken(line)} fired: {line['technique']}"
    for line in run.lines:
        for doubt in line["inconclusive"]:
            yield f"Could not be told: {_short(str(doubt))}"


def _bugs(run: _Run, later: Sequence[_Run], known: int) -> Iterator[Bug]:
    broken = [(line, one) for line in run.lines for one in line["violations"][:1]]
    passed = next((other.path.name for other in later if other.verdict == "success"), "")
    status = f"Not seen in {passed}, a later run of the same experiment" if passed else "Open"
    for number, (line, violation) in enumerate(broken, known + 1):
        evidence = [f"step {line['sequence_id']} of {run.path.name}: {_spoken(line)}"]
        argv = line["result"].get("argv") or ()
        if argv:
            evidence.append(_short(" ".join(map(str, argv))))
        said = str(line["result"].get("stderr") or line["result"].get("stdout") or "").strip()
        if said:
            evidence.append(_short(said))
        yield Bug(
            number,
            str(violation["rule"]),
            str(violation["message"]),
            tuple(evidence),
            _cause(run.lines, line),
            status,
        )


def _cause(lines: Sequence[Line], broken: Line) -> str:
    """As far as a journal goes: what was done to the target before, and what was expected."""
    before = [line for line in lines if line["sequence_id"] <= broken["sequence_id"]]
    fired = [_spoken(line) for line in before if line["result"].get("fired")]
    done = f"after {', '.join(fired)}" if fired else "without any fault"
    first = next(
        (_spoken(line) for line in reversed(before) if line["operation"]["type"] != "Sleep"), ""
    )
    return f"Broken {done}; it showed at {first}. The target's own code was not looked at."


def _spoken(line: Line) -> str:
    operation = line["operation"]
    given = ", ".join(f"{key}={_plain(value)}" for key, value in operation["args"].items())
    return _short(f"{operation['type']}({given})" if given else operation["type"])


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return str(value.get("type", "..."))
    return json.dumps(value, ensure_ascii=False)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else f"{flat[:LONGEST]}…"


# --- its forms --------------------------------------------------------------------------------------------


def markdown(found: Sequence[Entry], title: str) -> str:
    """The log for people, as plain text."""
    lines = [f"# {title}", "", "Experiment log, made from the journals of the runs.", ""]
    for entry in found:
        lines += [
            f"## Experiment {entry.number}: {entry.title}",
            "",
            f"**Date:** {entry.date}",
            f"**Question:** {entry.question or entry.title}",
            f"**Target:** {entry.target}",
            f"**Result:** {entry.result} in {entry.duration_s:g} s ({entry.directory})",
            "",
            "### Results",
            "",
            *_table(entry.columns, entry.results),
            "",
        ]
        if entry.measured is not None:
            lines += ["### Metrics", "", *_table(("Metric", "Value"), entry.measured.rows), ""]
            for name, rows in entry.measured.tables.items():
                lines += [f"### {name}", "", *_table(rows[0], rows[1:]), ""]
        lines += ["### Observations", ""]
        lines += [f"- {text}" for text in entry.observations] or ["- none"]
        lines += ["", "### Bugs Discovered", ""]
        for bug in entry.bugs:
            lines += [
                f"#### {bug.name}: {bug.title}",
                f"- **Symptom:** {bug.symptom}",
                *(f"- **Evidence:** `{text}`" for text in bug.evidence),
                f"- **Root cause:** {bug.cause}",
                f"- **Status:** {bug.status}",
                "",
            ]
        if not entry.bugs:
            lines += ["None.", ""]
        lines += ["---", ""]
    return "\n".join(lines)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def cells(row: Sequence[str]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |"

    return [cells(columns), "|" + "---|" * len(columns), *map(cells, rows)]


def page(found: Sequence[Entry], title: str) -> str:
    """The log as one HTML file."""
    from mutiny.report.page import render
    from mutiny.report.tree import COLOURS, tree

    failed = sum(entry.result == "FAIL" for entry in found)
    unsure = sum(entry.result == "INCONCLUSIVE" for entry in found)
    verdict = "bug" if failed else "inconclusive" if unsure else "success"
    return render(
        "log.html",
        kind="Experiment log",
        title=title,
        verdict=verdict,
        word=f"{len(found) - failed - unsure} of {len(found)} passed",
        facts={
            "Experiments": len(found),
            "Bugs": sum(len(entry.bugs) for entry in found),
            "Inconclusive": unsure,
        },
        entries=[
            (entry, tree(entry.measured.bars) if entry.measured and entry.measured.bars else None)
            for entry in found
        ],
        badges={PASSED: "success", "FAIL": "failed", "INCONCLUSIVE": "unsure"},
        tree_colours=COLOURS,
    )
