"""Five classification rules, on values.

1. non-zero exit with a known refusal that is true now: expected
2. non-zero exit with an unknown text: a bug
3. ended by a signal, a panic or a traceback: a bug
4. broken state: a bug (judged by the invariants, after this)
5. out of time: timeout

To these come the two that make refusals worth something: success where a refusal was due is a bug,
and so is a refusal where success was due.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mutiny.kit.crash import crash_of
from mutiny.kit.domains import BAD_INPUT
from mutiny.model.expectation import Expectation
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation

NO_TEXT = "(no text)"


@dataclass(frozen=True, slots=True)
class Judgement:
    """How one operation's answer is to be taken."""

    verdict: Verdict
    violation: Violation | None = None
    matched: frozenset[str] = frozenset()
    """Classes of refusals that the text matches."""


def matched_rejections(text: str, patterns: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Classes of refusals whose patterns a command's error text matches."""
    return frozenset(
        name
        for name, choices in patterns.items()
        if any(re.search(choice, text) for choice in choices)
    )


def classify(
    operation: Operation,
    result: OperationResult,
    expectation: Expectation,
    patterns: Mapping[str, Sequence[str]],
    contract: str,
    excused: Collection[str] = (),
) -> Judgement:
    """Judge an answer; invariants and ledger come on top of it.

    `excused`: rules that the target does not promise. They change what is expected: who does not promise
    to refuse may serve, and whose refusals are unclear or untrue has refused all the same.
    """
    if result.harness_error is not None:
        return Judgement(Verdict.INCONCLUSIVE)
    if operation.kind is Kind.FAULT and not result.fired:
        return Judgement(Verdict.INCONCLUSIVE)
    if result.timed_out:
        broken = Violation(
            f"{contract}.answers_in_time",
            f"{operation} did not end within its time limit ({result.duration_ms / 1000:.1f}s).",
        )
        return Judgement(Verdict.TIMEOUT, broken)
    if operation.kind in (Kind.CONTROL, Kind.FAULT, Kind.WAIT, Kind.ASSERTION):
        return Judgement(Verdict.SUCCESS if result.succeeded else Verdict.INCONCLUSIVE)
    return _classify_command(operation, result, expectation, patterns, contract, excused)


def how_it_died(operation: Operation, result: OperationResult) -> str | None:
    """A command that was ended by a signal or by a crash of its own, in one sentence."""
    if result.signal is not None:
        return f"{operation} was ended by signal {result.signal} ({_signal_name(result.signal)})."
    for text in (result.stderr, result.stdout):
        crash = crash_of(result.exit_code, text, result.argv)
        if crash is not None:
            return f"{operation} crashed: {crash.line}"
    return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _classify_command(
    operation: Operation,
    result: OperationResult,
    expectation: Expectation,
    patterns: Mapping[str, Sequence[str]],
    contract: str,
    excused: Collection[str],
) -> Judgement:
    matched = matched_rejections(result.stderr or result.stdout, patterns)

    def bug(rule: str, message: str) -> Judgement:
        evidence = {"exit_code": result.exit_code, "stderr": result.stderr[-2000:]}
        return Judgement(
            Verdict.BUG, Violation(f"{contract}.{rule}", message, "", evidence), matched
        )

    died = how_it_died(operation, result)
    if died is not None:
        return bug("no_crash", died)
    if result.exit_code == 0:
        if expectation.success or f"{contract}.rejects_illegal" in excused:
            return Judgement(Verdict.SUCCESS)
        return bug(
            "rejects_illegal",
            f"{operation} succeeded but was due to be refused: {expectation.reason}.",
        )
    if matched & expectation.rejections:
        return Judgement(Verdict.EXPECTED, None, matched)
    said = _first_line(result.stderr or result.stdout)
    if BAD_INPUT in expectation.rejections and not matched and said != NO_TEXT:
        return Judgement(Verdict.EXPECTED, None, frozenset({BAD_INPUT}))
    unclear = f"{contract}.{'rejects_truthfully' if matched else 'fails_clearly'}" in excused
    if unclear and expectation.rejections:
        return Judgement(Verdict.EXPECTED, None, matched)
    if not matched and not unclear:
        return bug(
            "fails_clearly",
            f"{operation} failed with an unknown error (exit {result.exit_code}): {said}",
        )
    if expectation.success_due:
        return bug(
            "serves_legal",
            f"{operation} was refused but was due to succeed ({expectation.reason}): {said}",
        )
    return bug(
        "rejects_truthfully", f"{operation} was refused with a reason that is not true: {said}"
    )


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else NO_TEXT
