"""The terminal form; colour and live lines only where a person looks."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from builders import CONTRACT, ok, outcome, refused, step
from mutiny.cli.output import echo_rows
from mutiny.contracts.workers import operations as op
from mutiny.engine.journal import Step
from mutiny.engine.loop import Event
from mutiny.engine.replay import Replay
from mutiny.kit import operations as common
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation
from mutiny.report.screen import wrapped
from mutiny.report.terminal import Terminal


class Screen(io.StringIO):
    """A terminal, as far as anybody asks."""

    def isatty(self) -> bool:
        return True


def shown(*steps: Step, out: io.StringIO | None = None) -> str:
    stream = out or io.StringIO()
    terminal = Terminal(stream)
    for item in steps:
        terminal.listen(Event(item.sequence_id, item.operation))
        terminal.listen(Event(item.sequence_id, item.operation, item))
    return stream.getvalue()


def test_one_line_a_step() -> None:
    slow = ok(duration_ms=45_230)
    text = shown(
        step(common.Reset(), sequence_id=1, result=ok(duration_ms=500)),
        step(op.Add("alpha"), sequence_id=4, result=ok(duration_ms=1_200)),
        step(op.WaitForIdle("alpha"), sequence_id=6, result=ok(duration_ms=5_000)),
        step(op.Start("alpha", "Create a.txt"), sequence_id=7, result=ok(duration_ms=1_500)),
        step(op.WaitForNeedsReview("alpha"), sequence_id=9, result=slow),
        step(op.Review("beta"), Verdict.BUG, 11, result=refused("x")),
        step(op.Up(), Verdict.EXPECTED, 123),
    )
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines == [
        "[ 1] Reset OK (0.5s)",
        '[ 4] Add(worker="alpha") OK (1.2s)',
        '[ 6] WaitForIdle("alpha") OK (5.0s)',
        '[ 7] Start(worker="alpha", ...) OK (1.5s)',
        '[ 9] WaitForNeedsReview("alpha") OK (45.2s)',
        '[ 11] Review(worker="beta") UNEXPECTED FAILURE (0.0s)',
        "[123] Up EXPECTED REJECTION (0.0s)",
    ]
    assert text.splitlines()[1].startswith('[  4] Add(worker="alpha")   ')
    columns = {line.index(word) for line, word in zip(text.splitlines(), ["OK"] * 5, strict=False)}
    assert len(columns) == 1, "the outcomes stand in one column"


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_has_a_word_and_only_a_pass_says_ok(verdict: Verdict) -> None:
    text = shown(step(op.Up(), verdict))
    assert ("OK" in text.split()) == (verdict is Verdict.SUCCESS)


def test_a_file_gets_no_colour_and_no_live_lines() -> None:
    text = shown(step(op.Up()))
    assert "\x1b" not in text
    assert "\r" not in text
    assert len(text.splitlines()) == 1


def test_a_terminal_gets_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = shown(step(op.Up()), out=Screen())
    assert "\x1b[32mOK\x1b[0m" in text
    assert "...\r" in text


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in shown(step(op.Up()), out=Screen())


def test_the_header() -> None:
    stream = io.StringIO()
    Terminal(stream).header("longboat", "merge_conflict", 12345)
    assert stream.getvalue().splitlines() == [
        "=== Mutiny ===",
        "",
        "Target: longboat",
        "Scenario: merge_conflict",
        "Seed: 12345",
        "",
    ]


def failure(tmp_path: Path, last: Step, replay: Replay | None = None) -> list[str]:
    stream = io.StringIO()
    Terminal(stream).failure(outcome(tmp_path, last), CONTRACT, replay)
    return stream.getvalue().splitlines()


def test_the_block_below_a_failure(tmp_path: Path) -> None:
    violation = Violation("workers.fails_clearly", "Review failed due to a dirty worktree.")
    result = refused("Worker 'beta' worktree has uncommitted changes", argv=("longboat", "review"))
    last = step(op.Review("beta"), Verdict.BUG, 11, violation, result=result)
    lines = failure(tmp_path, last, Replay((common.Reset(),), "workers"))
    order = [
        "!!! Error Detected !!!",
        "Error Type: Crashes",
        "Rule: workers.fails_clearly",
        'Operation: Review(worker="beta")',
        "Exit Code: 1",
        "Stderr:",
        "  Error: Worker 'beta' worktree has uncommitted changes",
        "Expected: A failure says what it is, in a known word.",
        "Actual: Review failed due to a dirty worktree.",
        "Full report: ",
        "Minimal replay: ",
        "State preserved at: ",
    ]
    places = [next(n for n, line in enumerate(lines) if line.startswith(item)) for item in order]
    assert places == sorted(places)


def test_paths_go_by_way_of_latest_when_that_is_this_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run_1", "run_2"):
        (tmp_path / "chaos_runs" / name).mkdir(parents=True)
    (tmp_path / "chaos_runs" / "latest").symlink_to("run_2")
    last = step(op.Up(), Verdict.BUG, 1, Violation("workers.no_crash", "x"))
    latest = failure(tmp_path / "chaos_runs" / "run_2", last)
    assert "Full report: chaos_runs/latest/error_report.md" in latest
    older = failure(tmp_path / "chaos_runs" / "run_1", last)
    assert "Full report: chaos_runs/run_1/error_report.md" in older


def test_what_could_not_be_tested_does_not_look_like_an_error(tmp_path: Path) -> None:
    last = step(op.KillDaemon(), Verdict.INCONCLUSIVE, 2, inconclusive=("no daemon to kill",))
    lines = failure(tmp_path, last)
    assert "!!! Inconclusive: this could not be tested !!!" in lines
    assert "Not tested: no daemon to kill" in lines
    assert not any("Minimal replay" in line for line in lines)


def test_a_run_that_passed_has_no_block(tmp_path: Path) -> None:
    assert failure(tmp_path, step(op.Up())) == []


def test_on_a_terminal_no_word_is_broken_and_a_pipe_gets_the_line_as_it_is() -> None:
    text = "Actual: " + "word " * 40 + "/a/path/that/stays/whole" * 5
    lines = wrapped(text, Screen(), hanging=4)
    assert " ".join(" ".join(lines).split()) == text
    assert max(map(len, lines[:-1])) <= 80
    assert lines[1].startswith("    word")
    assert lines[-1].strip() == "/a/path/that/stays/whole" * 5, "who copies it gets all of it"
    assert wrapped(text, io.StringIO()) == [text]


def test_what_broke_is_told_in_whole_words(tmp_path: Path) -> None:
    found = Violation("workers.nothing_lost", "a promise " * 30)
    screen = Screen()
    bad = step(op.Status(), Verdict.BUG, 3, found)
    Terminal(screen).failure(outcome(tmp_path, bad), CONTRACT, None)
    told = [line for line in screen.getvalue().splitlines() if "promise" in line]
    assert len(told) > 3
    assert max(map(len, told)) <= 80


def test_the_last_column_of_a_table_goes_on_below_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("short", "yes", "about " * 20), ("rather-long", "no", "nothing")]
    screen, pipe = Screen(), io.StringIO()
    for stream in (screen, pipe):
        monkeypatch.setattr("sys.stdout", stream)
        echo_rows(rows, indent=2)
    lines = screen.getvalue().splitlines()
    assert lines[0].startswith("  short        yes  about")
    assert lines[1].startswith(" " * 20 + "about")
    assert lines[-1] == "  rather-long  no   nothing"
    assert len(pipe.getvalue().splitlines()) == len(rows)
