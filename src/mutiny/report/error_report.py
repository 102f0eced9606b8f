"""`error_report.md`, for a person or a model that will fix the bug."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping

from mutiny.engine.journal import Step
from mutiny.engine.loop import Outcome
from mutiny.engine.replay import Replay, python_form
from mutiny.kit.contract import AnyContract
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Rule, told
from mutiny.report.changes import changes, excerpt
from mutiny.report.escape import defused, fenced
from mutiny.report.investigation import subjects, suggestions
from mutiny.report.origin import Origin
from mutiny.report.story import lanes, schedule_lines, turns_of

LAST_OPERATIONS = 5
LOG_LINES = 50
PANE_LINES = 100
MOST_CHANGES = 30
_STOPPED = {
    Verdict.BUG: "**FAILED**",
    Verdict.RECOVERY_BUG: "**FAILED**",
    Verdict.TIMEOUT: "**TIMEOUT**",
    Verdict.INCONCLUSIVE: "**INCONCLUSIVE**",
}
_ANSWERS = (
    *("serves_legal", "rejects_illegal", "rejects_truthfully", "fails_clearly"),
    *("parallel_is_serial", "no_crash"),
)
"""Rules about what a command answered."""


def error_type(step: Step, rules: Mapping[str, Rule]) -> str:
    """The word for the kind of error: `StateCorruption`, `LostWork`, ..."""
    if step.violations:
        rule = rules.get(step.violations[0].rule)
        if rule is not None:
            return "".join(word.capitalize() for word in rule.category.split())
    return {"timeout": "Timeout", "inconclusive": "Inconclusive"}.get(
        step.verdict.value, "UnexpectedError"
    )


def render(outcome: Outcome, contract: AnyContract, replay: Replay | None, origin: Origin) -> str:
    """The report as Markdown."""
    step = outcome.failed_step
    assert step is not None, "a report is written only for a run that stopped"
    lines = _lines(outcome, step, contract, replay, origin)
    return "\n".join(map(defused, lines)) + "\n"


def _lines(
    outcome: Outcome, step: Step, contract: AnyContract, replay: Replay | None, origin: Origin
) -> Iterator[str]:
    yield "# Mutiny Error Report"
    yield ""
    yield from _summary(outcome, step, contract, origin)
    yield "## Error Details"
    yield from _details(step, contract)
    yield ""
    yield "## Context"
    yield ""
    yield from _last_operations(outcome)
    yield from _orders(outcome)
    yield from _states(step)
    yield from _output(step, origin.target)
    yield from _logs(outcome)
    if replay is not None:
        yield f"## {replay.title} Sequence"
        yield from fenced(
            "python",
            "# To reproduce, run these operations:\n"
            + python_form(replay.operations, mark_last=True)
            if replay.vouched
            else python_form(replay.operations, mark_last=False),
        )
        yield ""
        yield f"{replay.of(len(outcome.steps))}."
        yield ""
    if origin.again:
        yield f"`{origin.again}` runs it again."
        yield ""
    yield "## Suggested Investigation"
    for number, hint in enumerate(suggestions(outcome, contract.rules, origin.names), 1):
        yield f"{number}. {hint.text}"
        yield f"   - Evidence: {hint.evidence}"


def _summary(outcome: Outcome, step: Step, contract: AnyContract, origin: Origin) -> Iterator[str]:
    yield "## Summary"
    yield f"- **Error Type**: {error_type(step, contract.rules)}"
    yield f"- **Violated Rule**: {outcome.rule or 'none'}"
    others = dict.fromkeys(one.rule for one in told(step.violations) if one.rule != outcome.rule)
    if others:
        yield f"- **Also Broken**: {', '.join(others)}"
    plant = f", planted: {origin.plant}" if origin.plant else ""
    yield f"- **Target**: {origin.target}{plant}"
    if origin.program:
        yield f"- **Program**: {origin.program} ({origin.version or 'version unknown'})"
    by = f", Mutiny {origin.mutiny}" if origin.mutiny else ""
    yield f"- **Run**: {origin.title or 'one sequence'}, seed {origin.seed}{by}"
    yield f"- **Operation**: {step.operation}"
    yield f"- **Sequence ID**: {step.sequence_id}"
    yield f"- **Timestamp**: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(step.timestamp_unix))}"
    yield f"- **Classification**: {step.verdict.value}"
    if contract.not_applicable:
        yield f"- **Not Checked** (not promised by the target): {', '.join(contract.not_applicable)}"
    if origin.again:
        yield f"- **Replay**: `{origin.again}`"
    yield ""


def _details(step: Step, contract: AnyContract) -> Iterator[str]:
    for violation in told(step.violations):
        rule = contract.rules.get(violation.rule)
        yield f"{violation.message} (`{violation.rule}`)"
        if rule is not None:
            yield f"The promise: {rule.promise}"
    for doubt in step.inconclusive:
        yield f"Could not be tested: {doubt}"
    if not step.violations and not step.inconclusive:
        yield f"{step.operation} ended as {step.verdict.value}."
        if step.result.stderr:
            yield from fenced("", step.result.stderr)
    if step.expected and any(_about_answer(violation.rule) for violation in step.violations):
        yield ""
        yield f"What the model knew: {step.expected}."


def _about_answer(rule: str) -> bool:
    """Is it the answer that was wrong? Only then the reason of what was due is worth reading."""
    return rule.rpartition(".")[2] in _ANSWERS


def _orders(outcome: Outcome) -> Iterator[str]:
    """Commands that ran in one exact order, a lane for each and a sentence for each turn."""
    for step in outcome.steps:
        turns = turns_of(step.result)
        if turns:
            yield f"### Order of the Calls in Step {step.sequence_id}"
            yield from fenced("", "\n".join(lanes(step.operation, turns)))
            yield ""
            for number, line in enumerate(schedule_lines(step.operation, turns), 1):
                yield f"{number}. {line}"
            yield ""


def _states(step: Step) -> Iterator[str]:
    """What changed, then both states: whole when they are short, else the part that matters."""
    names = subjects(step)
    found = list(changes(step.pre_state, step.post_state))
    yield "### What Changed"
    for change in found[:MOST_CHANGES]:
        yield f"- {change}"
    if len(found) > MOST_CHANGES:
        yield f"- and {len(found) - MOST_CHANGES} more fields"
    if not found:
        yield "Nothing that can be seen from outside."
    yield ""
    for title, state in (
        ("Pre-Operation State", step.pre_state),
        ("Post-Operation State", step.post_state),
    ):
        shown, left_out = excerpt(state, found, names)
        yield from _json_block(title, shown)
        if left_out:
            yield f"{left_out} entries that did not change are left out; `operations.jsonl` has them all."
            yield ""


def _last_operations(outcome: Outcome) -> Iterator[str]:
    yield f"### Last {LAST_OPERATIONS} Operations"
    yield "| Seq | Operation | Result |"
    yield "|-----|-----------|--------|"
    for step in outcome.steps[-LAST_OPERATIONS:]:
        result = _STOPPED.get(step.verdict, step.verdict.value)
        yield f"| {step.sequence_id} | {_cell(step.operation.short())} | {result} |"
    yield ""


def _cell(text: str) -> str:
    """An operation in a table, always as a call: `KillDaemon()`."""
    call = text if "(" in text else f"{text}()"
    return call.replace("|", "\\|")


def _json_block(title: str, value: object) -> Iterator[str]:
    yield f"### {title}"
    yield from fenced("json", json.dumps(value, indent=4, ensure_ascii=False))
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
    yield from fenced("", "\n".join(line for line in text if line) or "(no command output)")
    yield ""


def _logs(outcome: Outcome) -> Iterator[str]:
    evidence = outcome.evidence
    yield "### Relevant Log Excerpts"
    yield ""
    yield f"#### Daemon Log (last {LOG_LINES} lines)"
    yield from fenced("", "\n".join(evidence.daemon_log.splitlines()[-LOG_LINES:]) or "(empty)")
    yield ""
    for session, text in evidence.panes.items():
        yield f"#### Worker Session Capture: {session}"
        yield from fenced("", "\n".join(text.rstrip().splitlines()[-PANE_LINES:]) or "(empty)")
        yield ""


def write_failure(
    outcome: Outcome, contract: AnyContract, replay: Replay | None, origin: Origin
) -> None:
    """Write `error_report.md` into the run directory."""
    if outcome.failed_step is None:
        return
    directory = outcome.directory
    directory.write_text(directory.report_path, render(outcome, contract, replay, origin))
