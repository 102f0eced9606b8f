"""What a person sees while a run goes on.

    [  1] Reset                           OK (0.5s)
    [ 11] Review(worker="beta")           UNEXPECTED FAILURE

Colour only on a terminal, and never when NO_COLOR is set.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from mutiny.model.verdict import Verdict
from mutiny.report.escape import plain, unobeyed
from mutiny.report.screen import CLEAR, START, columns_of, fit, is_live, wrapped

if TYPE_CHECKING:
    from pathlib import Path

    from mutiny.engine.known import Known
    from mutiny.engine.loop import Event, Outcome
    from mutiny.engine.replay import Replay
    from mutiny.kit.contract import AnyContract

WIDTH = 36
INCONCLUSIVE = "!!! Inconclusive: this could not be tested !!!"
LEAST = 16
"""So much of an operation is shown on any screen."""
_WORDS = {
    Verdict.SUCCESS: "OK",
    Verdict.EXPECTED: "EXPECTED REJECTION",
    Verdict.BUG: "UNEXPECTED FAILURE",
    Verdict.RECOVERY_BUG: "RECOVERY FAILURE",
    Verdict.TIMEOUT: "TIMEOUT",
    Verdict.INCONCLUSIVE: "INCONCLUSIVE",
}
_COLOURS = {
    Verdict.SUCCESS: "32",
    Verdict.EXPECTED: "36",
    Verdict.BUG: "1;31",
    Verdict.RECOVERY_BUG: "1;31",
    Verdict.TIMEOUT: "1;33",
    Verdict.INCONCLUSIVE: "1;33",
}
_INDENT = " " * 5
_ENDINGS = {
    Verdict.SUCCESS: "PASSED",
    Verdict.EXPECTED: "PASSED",
    Verdict.BUG: "BUG FOUND",
    Verdict.RECOVERY_BUG: "BUG FOUND",
    Verdict.TIMEOUT: "TIMEOUT",
    Verdict.INCONCLUSIVE: "INCONCLUSIVE",
}
"""How a run ends: the word of its verdict."""


class Terminal:
    """Prints runs as they happen."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._live = is_live(self._out)
        self._colour = self._live and "NO_COLOR" not in os.environ

    def header(self, target: str, title: str, seed: int, *, kind: str = "Scenario") -> None:
        """The lines above a run."""
        self._say("=== Mutiny ===")
        self._say("")
        self._say(f"Target: {target}")
        self._say(f"{kind}: {title}")
        self._say(f"Seed: {seed}")
        self._say("")

    def listen(self, event: Event) -> None:
        """Show a step; on a terminal also the one that is under way."""
        number, what = f"[{event.sequence_id:3d}]", plain(event.operation.short())
        if event.step is None:
            if self._live:
                now = fit(f"{number} {what:<{WIDTH}} ...", columns_of(self._out) - 1, "~")
                self._out.write(CLEAR + now + START)
                self._out.flush()
            return
        verdict = event.step.verdict
        word, took = _WORDS[verdict], f" ({event.step.result.duration_ms / 1000:.1f}s)"
        width = WIDTH
        if self._live:
            room = columns_of(self._out) - len(number) - len(word) - len(took) - 2
            what, width = fit(what, max(room, LEAST), "~"), min(WIDTH, max(room, LEAST))
            self._out.write(CLEAR)
        self._say(f"{number} {what:<{width}} ", self._coloured(word, verdict), took)

    def _coloured(self, word: str, verdict: Verdict) -> str:
        return f"\x1b[{_COLOURS[verdict]}m{word}\x1b[0m" if self._colour else word

    def verdict(self, outcome: Outcome, contract: AnyContract, title: str) -> None:
        """The last line of a run."""
        step = outcome.failed_step
        count = len(outcome.steps)
        at = f" at step {step.sequence_id}" if step is not None else f", {count} operations"
        rule = f": {outcome.rule}" if outcome.rule else ""
        word = self._coloured(_ENDINGS[outcome.verdict], outcome.verdict)
        self._say("")
        self._say("", word, f": {title}{rule}{at} in {outcome.duration_s:.1f}s")
        self.excused(contract)

    def row(
        self, outcome: Outcome, number: int, count: int, title: str, known: Known | None = None
    ) -> None:
        """A whole run in one line; what broke, and where to read on, below it."""
        place = f"{number:>{len(str(count))}}/{count}"
        word = _ENDINGS[outcome.verdict] if known is None else "KNOWN"
        shown = self._coloured(word, outcome.verdict) + " " * (13 - len(word))
        self._say(f"{place}  {title:<28} ", shown, f" {outcome.duration_s:6.1f}s")
        why = _why(outcome)
        if why:
            import textwrap

            for part in textwrap.wrap(why, columns_of(self._out) - len(_INDENT)):
                self._say(_INDENT + part)
        if outcome.failed_step is not None:
            self._say(_INDENT + _relative(outcome.directory.report_path))

    def failure(self, outcome: Outcome, contract: AnyContract, replay: Replay | None) -> None:
        """The block below a run that stopped, and what its verdict does not cover."""
        step = outcome.failed_step
        if step is None:
            self._untested(outcome)
            return
        titles = {
            Verdict.INCONCLUSIVE: INCONCLUSIVE,
            Verdict.TIMEOUT: "!!! Timeout !!!",
        }
        self._say("")
        self._say(titles.get(step.verdict, "!!! Error Detected !!!"))
        self._say("")
        from mutiny.report.error_report import error_type

        self._say(f"Error Type: {error_type(step, contract.rules)}")
        if outcome.rule:
            self._say(f"Rule: {outcome.rule}")
        self.prose(f"Operation: {step.operation}")
        if step.result.exit_code is not None and step.result.argv:
            self._say(f"Exit Code: {step.result.exit_code}")
        if step.result.stderr.strip():
            self._say("Stderr:")
            for line in step.result.stderr.strip().splitlines()[-8:]:
                self._say(f"  {line}")
        self._say("")
        if step.violations:
            rule = contract.rules.get(step.violations[0].rule)
            self.prose(f"Expected: {rule.promise if rule else step.expected}")
            self.prose(f"Actual: {step.violations[0].message}")
        for doubt in step.inconclusive:
            self.prose(f"Not tested: {doubt}")
        self._say("")
        self._say(f"Full report: {_shown(outcome.directory.report_path)}")
        if replay is not None:
            self._say(f"{replay.title.capitalize()}: {_shown(outcome.directory.replay_path)}")
            self.prose(f"  {replay.of(len(outcome.steps))}", 2)
        self._say("")
        self._say(f"State preserved at: {_relative(outcome.directory.box_path)}/")

    def _untested(self, outcome: Outcome) -> None:
        """Nothing broke, because nothing was tried."""
        if not outcome.untested:
            return
        self._say("")
        self._say(INCONCLUSIVE)
        for reason in outcome.untested:
            self.prose(f"Not tested: {reason}")

    def excused(self, contract: AnyContract) -> None:
        """Rules that the verdict says nothing about, whatever it is."""
        rules = [rule.partition(".")[2] for rule in contract.not_applicable]
        if rules:
            self.prose(f"Not promised by the target, not checked: {', '.join(rules)}")

    def line(self, text: str = "") -> None:
        """Any other line."""
        self._say(text)

    def prose(self, text: str, hanging: int = 4) -> None:
        """A line that may be long: on a terminal no word of it is broken."""
        for line in wrapped(unobeyed(text), self._out, hanging):
            self._say(line)

    def _say(self, text: str, ours: str = "", more: str = "") -> None:
        """One line; only what is ours may have colours."""
        self._out.write(f"{unobeyed(text)}{ours}{unobeyed(more)}\n")
        self._out.flush()


def _why(outcome: Outcome) -> str:
    """Why a run did not pass, in one sentence."""
    step = outcome.failed_step
    if step is None:
        return "; ".join(outcome.untested)
    told = [f"{one.rule}: {one.message}" for one in step.violations]
    said = [*told, *step.inconclusive, step.result.stderr.strip()[:200]]
    return f"step {step.sequence_id}, {step.operation.short()}: {said[0]}"


def _shown(path: Path) -> str:
    """As short as it can be said from where the user is; by way of `latest` when that is this run."""
    latest = path.parent.parent / "latest"
    if latest.is_symlink() and latest.resolve() == path.parent.resolve():
        path = latest / path.name
    return _relative(path)


def _relative(path: Path) -> str:
    full = str(path)
    relative = os.path.relpath(full)
    return relative if len(relative) < len(full) else full
