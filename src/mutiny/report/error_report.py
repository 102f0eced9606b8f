"""`error_report.md`: seed 000's report, for a person or a model that will fix the bug."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping

from mutiny.contracts.base import Contract
from mutiny.engine.journal import Step
from mutiny.engine.loop import Outcome
from mutiny.engine.replay import Replay, python_form
from mutiny.model.violation import Rule
from mutiny.report.investigation import suggestions

LAST_OPERATIONS = 5
LOG_LINES = 50
PANE_LINES = 100


def error_type(step: Step, rules: Mapping[str, Rule]) -> str:
    """The seed's word for the kind of error: `StateCorruption`, `LostWork`, ..."""
    if step.violations:
        rule = rules.get(step.violations[0].rule)
        if rule is not None:
            return "".join(word.capitalize() for word in rule.category.split())
    return {"timeout": "Timeout", "inconclusive": "Inconclusive"}.get(
        step.verdict.value, "UnexpectedError"
    )


def render(outcome: Outcome, contract: Contract, replay: Replay | None, target: str) -> str:
    """The report as Markdown."""
    step = outcome.failed_step
    assert step is not None, "a report is written only for a run that stopped"
    return "\n".join(_lines(outcome, step, contract, replay, target)) + "\n"


def _lines(
    outcome: Outcome, step: Step, contract: Contract, replay: Replay | None, target: str
) -> Iterator[str]:
    yield "# Mutiny Error Report"
    yield ""
    yield "## Summary"
    yield f"- **Error Type**: {error_type(step, contract.rules)}"
    yield f"- **Violated Rule**: {outcome.rule or 'none'}"
    yield f"- **Operation**: {step.operation}"
    yield f"- **Sequence ID**: {step.sequence_id}"
    yield f"- **Timestamp**: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(step.timestamp_unix))}"
    yield f"- **Classification**: {step.verdict.value}"
    yield ""
    yield "## Error Details"
    for violation in step.violations:
        yield f"{violation.message} (`{violation.rule}`)"
    for doubt in step.inconclusive:
        yield f"Could not be tested: {doubt}"
    if not step.violations and not step.inconclusive:
        yield step.result.stderr or f"{step.operation} ended as {step.verdict.value}."
    if step.expected:
        yield ""
        yield f"The model expected this outcome because: {step.expected}."
    yield ""
    yield "## Context"
    yield ""
    yield from _last_operations(outcome)
    yield from _json_block("Pre-Operation State", step.pre_state)
    yield from _json_block("Post-Operation State", step.post_state)
    yield from _output(step, target)
    yield from _logs(outcome)
    if replay is not None:
        yield f"## {replay.title} Sequence"
        yield from _fenced(
            "python",
            "# To reproduce, run these operations:\n"
            + python_form(replay.operations, mark_last=True)
            if replay.vouched
            else python_form(replay.operations, mark_last=False),
        )
        yield ""
        yield f"{len(replay.operations)} of {len(outcome.steps)} operations; {replay.standing}."
        yield ""
        yield f"`mutiny replay {outcome.directory.replay_path.name}` repeats it."
        yield ""
    yield "## Suggested Investigation"
    for number, line in enumerate(suggestions(outcome, contract.rules), 1):
        yield f"{number}. {line}"


def _last_operations(outcome: Outcome) -> Iterator[str]:
    yield f"### Last {LAST_OPERATIONS} Operations"
    yield "| Seq | Operation | Result |"
    yield "|-----|-----------|--------|"
    for step in outcome.steps[-LAST_OPERATIONS:]:
        result = "**FAILED**" if step.verdict.stops_run else step.verdict.value
        yield f"| {step.sequence_id} | {_cell(step.operation.short())} | {result} |"
    yield ""


def _cell(text: str) -> str:
    """An operation in a table, always as a call: `KillDaemon()`."""
    call = text if "(" in text else f"{text}()"
    return call.replace("|", "\\|")


def _json_block(title: str, value: object) -> Iterator[str]:
    yield f"### {title}"
    yield from _fenced("json", json.dumps(value, indent=4, ensure_ascii=False))
    yield ""


def _output(step: Step, target: str) -> Iterator[str]:
    yield f"### {target} Command Output"
    parts = step.result.inner or (step.result,)
    text = []
    for part in parts:
        if part.argv:
            program = part.argv[0].rpartition("/")[2]
            text.append("$ " + " ".join([program, *part.argv[1:]]))
        text += [part.stdout.rstrip(), part.stderr.rstrip()]
    yield from _fenced("", "\n".join(line for line in text if line) or "(no command output)")
    yield ""


def _logs(outcome: Outcome) -> Iterator[str]:
    evidence = outcome.evidence
    yield "### Relevant Log Excerpts"
    yield ""
    yield f"#### Daemon Log (last {LOG_LINES} lines)"
    yield from _fenced("", "\n".join(evidence.daemon_log.splitlines()[-LOG_LINES:]) or "(empty)")
    yield ""
    for session, text in evidence.panes.items():
        yield f"#### Worker Session Capture: {session}"
        yield from _fenced("", "\n".join(text.rstrip().splitlines()[-PANE_LINES:]) or "(empty)")
        yield ""


def _fenced(language: str, text: str) -> Iterator[str]:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence + language
    yield text
    yield fence


def write_failure(outcome: Outcome, contract: Contract, replay: Replay | None, target: str) -> None:
    """Write `error_report.md` into the run directory."""
    if outcome.failed_step is None:
        return
    directory = outcome.directory
    directory.write_text(directory.report_path, render(outcome, contract, replay, target))
