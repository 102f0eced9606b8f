"""The seed's five classification rules, on values.

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
from collections.abc import Mapping, Sequence

from mutiny.model.expectation import Expectation
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation
from mutiny.values import dataclass

CRASH_TEXTS = (
    r"Traceback \(most recent call last\)",
    r"thread '.*' panicked at",
    r"panic: ",
    r"Segmentation fault",
    r"UnhandledPromiseRejection",
)
_CRASH = re.compile("|".join(CRASH_TEXTS))


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
) -> Judgement:
    """Judge an answer; invariants and ledger come on top of it."""
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
    return _classify_command(operation, result, expectation, patterns, contract)


def _classify_command(
    operation: Operation,
    result: OperationResult,
    expectation: Expectation,
    patterns: Mapping[str, Sequence[str]],
    contract: str,
) -> Judgement:
    matched = matched_rejections(result.stderr or result.stdout, patterns)

    def bug(rule: str, message: str) -> Judgement:
        evidence = {"exit_code": result.exit_code, "stderr": result.stderr[-2000:]}
        return Judgement(
            Verdict.BUG, Violation(f"{contract}.{rule}", message, "", evidence), matched
        )

    if result.signal is not None:
        return bug("no_crash", f"{operation} was ended by signal {result.signal}.")
    if result.exit_code != 0 and _CRASH.search(result.stderr):
        return bug("no_crash", f"{operation} crashed: {_crash_line(result.stderr)}")
    if result.exit_code == 0:
        if expectation.success:
            return Judgement(Verdict.SUCCESS)
        return bug(
            "rejects_illegal",
            f"{operation} succeeded but was due to be refused: {expectation.reason}.",
        )
    if matched & expectation.rejections:
        return Judgement(Verdict.EXPECTED, None, matched)
    said = _first_line(result.stderr or result.stdout)
    if not matched:
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
    return lines[0] if lines else "(no text)"


def _crash_line(text: str) -> str:
    """The line that names the crash: the last of a traceback, the first of a panic."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):
        return lines[-1]
    return next((line for line in lines if _CRASH.search(line)), lines[0] if lines else "")
