"""`error_report.md`: its sections in their order, for a person or a model that will fix
it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from builders import CONTRACT, ok, outcome, refused, step
from mutiny.contracts.workers import operations as op
from mutiny.engine.loop import Outcome
from mutiny.engine.replay import Replay
from mutiny.kit import operations as common
from mutiny.kit.contract import Evidence
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation
from mutiny.report.error_report import error_type, render, write_failure
from mutiny.report.origin import Origin
from mutiny.report.story import stops_of, turns_of
from mutiny.report.summary import summary, write_summary

READY = {"workers": {"alpha": {"status": "needs_review", "commit_sha": "abc123"}}}
BROKEN = {"workers": {"alpha": {"status": "needs_review", "commit_sha": None}}}
VIOLATION = Violation(
    "workers.review_has_commit",
    "Worker 'alpha' was in needs_review state but commit_sha was None.",
    "alpha",
)
LOG = "\n".join(f"[14:30:{n:02d}] line {n}" for n in range(60))
REPLAY = Replay((common.Reset(), op.KillDaemon(), op.Accept("alpha")), "workers", target="longboat")

ORIGIN = Origin(
    "longboat",
    "/opt/x/longboat",
    "longboat 0.1.0",
    "sha-dropped-on-daemon-death",
    7,
    "scenario review_survives_daemon",
    "0.1.0",
    "mutiny replay /runs/run_1/minimal_replay.json",
)

SEED_SECTIONS = [
    "# Mutiny Error Report",
    "## Summary",
    "## Error Details",
    "## Context",
    "### Last 5 Operations",
    "### What Changed",
    "### Pre-Operation State",
    "### Post-Operation State",
    "### longboat Command Output",
    "### Relevant Log Excerpts",
    "#### Daemon Log (last 50 lines)",
    "#### Worker Session Capture: longboat-alpha",
    "## Minimal Replay Sequence",
    "## Suggested Investigation",
]


def failed(directory: Path, **changes: object) -> Outcome:
    """Accept after the daemon was killed loses the commit."""
    operations: list[Operation] = [
        common.Reset(),
        op.Start("alpha", "Create a.txt"),
        op.WaitForNeedsReview("alpha"),
        op.Review("alpha"),
        op.KillDaemon(),
    ]
    steps = [step(item, sequence_id=42 + n) for n, item in enumerate(operations)]
    fields: dict[str, object] = {
        "result": refused(
            "Failed to accept worker alpha", argv=("/opt/x/longboat", "accept", "alpha")
        ),
        "pre_state": READY,
        "post_state": BROKEN,
        "expected": "worker alpha is needs_review",
        **changes,
    }
    last = step(op.Accept("alpha"), Verdict.RECOVERY_BUG, 47, VIOLATION, **fields)  # type: ignore[arg-type]
    evidence = Evidence(
        state="{}",
        daemon_log=LOG,
        panes={"longboat-alpha": "\n".join(f"pane {n}" for n in range(120)) + "\n\n"},
    )
    return outcome(directory, *steps, last, evidence=evidence)


@pytest.fixture
def text(tmp_path: Path) -> str:
    return render(failed(tmp_path), CONTRACT, REPLAY, ORIGIN)


def headings(text: str) -> list[str]:
    """Headings outside of fenced blocks."""
    plain = re.sub(r"(?ms)^(`{3,}).*?^\1$", "", text)
    return [line for line in plain.splitlines() if line.startswith("#")]


def section(text: str, heading: str) -> str:
    level = heading.split()[0]
    body = text.split(f"{heading}\n", 1)[1]
    return re.split(rf"(?m)^#{{1,{len(level)}}} ", body)[0]


def test_the_seeds_sections_in_the_seeds_order(text: str) -> None:
    assert headings(text) == SEED_SECTIONS


def test_the_summary_has_the_seeds_four_lines(text: str) -> None:
    lines = section(text, "## Summary").strip().splitlines()
    assert "- **Error Type**: StateCorruption" in lines
    assert '- **Operation**: Accept(worker="alpha")' in lines
    assert "- **Sequence ID**: 47" in lines
    assert "- **Timestamp**: 2025-01-12T14:30:52Z" in lines
    assert "- **Violated Rule**: workers.review_has_commit" in lines


def test_the_summary_says_what_was_tested_and_how_to_repeat_it(text: str) -> None:
    lines = section(text, "## Summary").strip().splitlines()
    assert "- **Target**: longboat, planted: sha-dropped-on-daemon-death" in lines
    assert "- **Program**: /opt/x/longboat (longboat 0.1.0)" in lines
    assert "- **Run**: scenario review_survives_daemon, seed 7, Mutiny 0.1.0" in lines
    assert "- **Replay**: `mutiny replay /runs/run_1/minimal_replay.json`" in lines


def test_the_details_say_what_came_and_what_was_promised(text: str) -> None:
    details = section(text, "## Error Details")
    assert VIOLATION.message in details
    assert f"The promise: {CONTRACT.rules[VIOLATION.rule].promise}" in details
    assert "What the model knew" not in details, "the answer itself was not wrong"


def test_a_wrong_answer_is_told_with_what_the_model_knew(tmp_path: Path) -> None:
    wrong = Violation("workers.serves_legal", "It was refused.")
    last = step(op.Up(), Verdict.BUG, 1, wrong, expected="no daemon runs")
    text = render(outcome(tmp_path, last), CONTRACT, None, ORIGIN)
    assert "What the model knew: no daemon runs." in section(text, "## Error Details")


def test_each_broken_promise_is_told_once(tmp_path: Path) -> None:
    last = step(op.Up(), Verdict.BUG, 1, VIOLATION, VIOLATION, Violation("workers.completes", "x"))
    text = render(outcome(tmp_path, last), CONTRACT, None, ORIGIN)
    assert section(text, "## Error Details").count(VIOLATION.message) == 1
    assert "- **Also Broken**: workers.completes" in text


def test_the_fields_that_changed(text: str) -> None:
    assert section(text, "### What Changed").strip() == (
        '- `workers.alpha.commit_sha`: "abc123" -> null'
    )


def test_of_a_long_state_only_what_matters_is_shown(tmp_path: Path) -> None:
    many = {f"w{n}": {"status": "idle", "commit_sha": None, "branch": f"b{n}"} for n in range(50)}
    before = {"workers": {**many, **READY["workers"]}, "daemon_running": True}
    after = {"workers": {**many, **BROKEN["workers"]}, "daemon_running": True}
    text = render(failed(tmp_path, pre_state=before, post_state=after), CONTRACT, None, ORIGIN)
    for heading, state in (("Pre", READY), ("Post", BROKEN)):
        block = section(text, f"### {heading}-Operation State")
        shown = json.loads(block.split("```json\n")[1].split("\n```")[0])
        assert shown == {**state, "daemon_running": True}
        assert "50 entries that did not change are left out" in block


@pytest.mark.parametrize(
    ("verdict", "word"),
    [
        (Verdict.BUG, "FAILED"),
        (Verdict.RECOVERY_BUG, "FAILED"),
        (Verdict.TIMEOUT, "TIMEOUT"),
        (Verdict.INCONCLUSIVE, "INCONCLUSIVE"),
    ],
)
def test_only_a_broken_promise_is_called_a_failure(
    tmp_path: Path, verdict: Verdict, word: str
) -> None:
    text = render(outcome(tmp_path, step(op.Up(), verdict)), CONTRACT, None, ORIGIN)
    assert f"| 1 | Up() | **{word}** |" in text


def test_a_schedule_is_told_in_calls(tmp_path: Path) -> None:
    turns = [
        {"command": 0, "calls": 3, "first": "start", "last": "openat state.json"},
        {"command": 1, "calls": 6, "first": "start", "last": "rename state.tmp -> state.json"},
        {"command": 0, "calls": 2, "first": "rename x.tmp -> state.json", "last": "openat log"},
    ]
    result = OperationResult(inner=(ok(), ok()), details={"turns": turns})
    both = common.Interleave((op.Accept("a"), op.Nuke("b")), "0x3 1x6 0x2")
    last = step(both, Verdict.BUG, 1, VIOLATION, result=result)
    text = render(outcome(tmp_path, last), CONTRACT, None, ORIGIN)
    told = section(text, "### Order of the Calls in Step 1")
    assert 'Accept(worker="a")  ###......##\nNuke(worker="b")    ...######..' in told
    assert "is stopped before `rename x.tmp -> state.json`." in told
    assert '2. `Nuke(worker="b")` begins, makes 6 calls' in told
    assert list(stops_of(both, turns_of(result))) == [
        'Accept(worker="a") stopped before rename x.tmp -> state.json'
    ]
    hints = section(text, "## Suggested Investigation")
    assert "was stopped before `rename x.tmp -> state.json`" in hints
    assert "No fault" not in hints


def test_the_last_five_operations_as_the_seed_tabulates_them(text: str) -> None:
    rows = section(text, "### Last 5 Operations").strip().splitlines()
    assert rows == [
        "| Seq | Operation | Result |",
        "|-----|-----------|--------|",
        '| 43 | Start(worker="alpha", ...) | success |',
        '| 44 | WaitForNeedsReview("alpha") | success |',
        '| 45 | Review(worker="alpha") | success |',
        "| 46 | KillDaemon() | success |",
        '| 47 | Accept(worker="alpha") | **FAILED** |',
    ]


def test_both_states_are_json(text: str) -> None:
    for heading, state in (("Pre", READY), ("Post", BROKEN)):
        block = section(text, f"### {heading}-Operation State")
        assert json.loads(block.split("```json\n")[1].split("\n```")[0]) == state


def test_the_command_and_what_it_said(text: str) -> None:
    block = section(text, "### longboat Command Output")
    assert "$ longboat accept alpha\nError: Failed to accept worker alpha" in block


def test_the_ends_of_the_logs(text: str) -> None:
    log = section(text, "#### Daemon Log (last 50 lines)")
    assert "line 59" in log
    assert "line 10" in log
    assert "line 9\n" not in log
    pane = section(text, "#### Worker Session Capture: longboat-alpha")
    assert "pane 119" in pane
    assert "pane 19\n" not in pane
    assert "pane 20\n" in pane


def test_the_replay_as_the_seed_prints_it(text: str) -> None:
    block = text.split("## Minimal Replay Sequence\n")[1]
    assert (
        "```python\n# To reproduce, run these operations:\nReset()\nKillDaemon()\n"
        'Accept(worker="alpha")  # <- Error occurs here\n```' in block
    )
    assert f"`{ORIGIN.again}` runs it again." in block


def test_the_investigation_is_a_numbered_list(text: str) -> None:
    lines = section(text, "## Suggested Investigation").strip().splitlines()
    hints, evidence = lines[::2], lines[1::2]
    assert [line.split(". ")[0] for line in hints] == [str(n) for n in range(1, len(hints) + 1)]
    assert len(hints) == len(evidence) > 0
    assert all(line.startswith("   - Evidence: ") for line in evidence)


def test_without_a_replay_its_section_is_left_out(tmp_path: Path) -> None:
    text = render(failed(tmp_path), CONTRACT, None, ORIGIN)
    assert headings(text) == [item for item in SEED_SECTIONS if "Replay" not in item]


@pytest.mark.parametrize("rubbish", ["```\n# no heading\n```", "````\n# no heading\n````", "`" * 9])
def test_no_output_of_a_target_breaks_out_of_its_block(tmp_path: Path, rubbish: str) -> None:
    run = failed(tmp_path, result=OperationResult(1, stdout=rubbish, stderr=rubbish))
    assert headings(render(run, CONTRACT, REPLAY, ORIGIN)) == SEED_SECTIONS


def test_a_bar_in_an_operation_stays_in_its_cell(tmp_path: Path) -> None:
    last = step(op.Nuke("a|b"), Verdict.BUG, 1, VIOLATION)
    text = render(outcome(tmp_path, last), CONTRACT, None, ORIGIN)
    assert '| 1 | Nuke(worker="a\\|b") | **FAILED** |' in text


def test_combined_operations_show_every_output(tmp_path: Path) -> None:
    both = OperationResult(inner=(ok(argv=("x", "one")), refused("no", argv=("x", "two"))))
    last = step(
        common.Parallel((op.Accept("a"), op.Accept("a"))), Verdict.BUG, 1, VIOLATION, result=both
    )
    text = render(outcome(tmp_path, last), CONTRACT, None, ORIGIN)
    assert "$ x one\ndone\n$ x two\nError: no" in section(text, "### longboat Command Output")


def test_what_could_not_be_tested_is_told_as_that(tmp_path: Path) -> None:
    last = step(
        op.KillDaemon(),
        Verdict.INCONCLUSIVE,
        3,
        inconclusive=("no daemon to kill",),
        result=refused("x"),
    )
    text = render(outcome(tmp_path, last), CONTRACT, None, ORIGIN)
    assert "- **Error Type**: Inconclusive" in text
    assert "Could not be tested: no daemon to kill" in section(text, "## Error Details")


@pytest.mark.parametrize(
    ("violations", "verdict", "word"),
    [
        ((VIOLATION,), Verdict.BUG, "StateCorruption"),
        ((Violation("workers.nothing_lost", "x"), VIOLATION), Verdict.BUG, "LostWork"),
        ((Violation("workers.no_crash", "x"),), Verdict.BUG, "Crashes"),
        ((Violation("other.rule", "x"),), Verdict.BUG, "UnexpectedError"),
        ((), Verdict.TIMEOUT, "Timeout"),
        ((), Verdict.INCONCLUSIVE, "Inconclusive"),
    ],
)
def test_the_seeds_word_for_the_kind_of_error(
    violations: tuple[Violation, ...], verdict: Verdict, word: str
) -> None:
    assert error_type(step(op.Up(), verdict, 1, *violations), CONTRACT.rules) == word


def test_the_report_is_written_only_for_a_run_that_stopped(tmp_path: Path) -> None:
    write_failure(outcome(tmp_path, step(op.Up())), CONTRACT, None, ORIGIN)
    assert list(tmp_path.iterdir()) == []
    write_failure(failed(tmp_path), CONTRACT, REPLAY, ORIGIN)
    assert (tmp_path / "error_report.md").read_text().startswith("# Mutiny Error Report\n")


# --- summary --------------------------------------------------------------------------------------


def test_the_summary_of_a_failure(tmp_path: Path) -> None:
    run = failed(tmp_path)
    write_summary(run, CONTRACT, "daemon_crash", 7, REPLAY)
    told = json.loads((tmp_path / "summary.json").read_text())
    assert told["verdict"] == "recovery_bug"
    assert told["exit_code"] == 1
    assert told["operations"] == 6
    assert told["counts"] == {"success": 5, "recovery_bug": 1}
    assert told["seed"] == 7
    assert told["error"]["rule"] == "workers.review_has_commit"
    assert told["error"]["sequence_id"] == 47
    assert told["error"]["minimal_length"] == 3
    assert told["error"]["operation"] == op.Accept("alpha").as_json()


def test_the_summary_of_a_success(tmp_path: Path) -> None:
    run = outcome(tmp_path, step(common.Reset()), step(op.Up(), Verdict.EXPECTED, 2))
    told = summary(run, CONTRACT, "x", 0, None)
    assert told["verdict"] == "success"
    assert told["error"] is None
    assert told["exit_code"] == 0
    assert told["own_ms_mean"] == 3.25, "the box of the first step is not counted"


def test_the_summary_of_nothing(tmp_path: Path) -> None:
    told = summary(outcome(tmp_path), CONTRACT, "x", 0, None)
    assert told["verdict"] == "inconclusive"
    assert told["exit_code"] == 3
    assert told["own_ms_mean"] is None


def test_an_outcome_knows_its_first_broken_rule(tmp_path: Path) -> None:
    assert failed(tmp_path).rule == "workers.review_has_commit"
    assert outcome(tmp_path, step(op.Up())).rule is None
    assert outcome(tmp_path, step(op.Up(), Verdict.INCONCLUSIVE)).rule is None
