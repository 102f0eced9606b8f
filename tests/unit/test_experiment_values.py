"""Sentences, tolerances, availability, reports: pure values."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from mutiny import __version__
from mutiny.contracts.board import operations as board
from mutiny.contracts.catalogue import language_of
from mutiny.contracts.workers import operations as op
from mutiny.experiments.reach import reach
from mutiny.experiments.tolerance import problem, within
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.language import COMMON, availability
from mutiny.kit.sentences import Record, Sample, Sentence, Truth, Vocabulary, holds
from mutiny.model.operation import Operation
from mutiny.report.experiment import (
    ExperimentReport,
    FaultRecord,
    FindingRecord,
    SampleRecord,
    Score,
    SteadyRecord,
    StepRecord,
    from_json,
)
from mutiny.report.experiment_markdown import junit, markdown
from mutiny.report.experiment_page import page


def test_a_sentence_has_parameters_and_optional_words() -> None:
    sentence = Sentence("[The] thing [really] takes {limit:duration}", lambda _w, _v: holds(), "")
    assert sentence.read("The thing takes 30 s") == {"limit": 30.0}
    assert sentence.read("thing really takes 2 minutes.") == {"limit": 120.0}
    assert sentence.read("A thing takes 30 s") is None


def test_statuses_are_lists() -> None:
    read = language_of("board").vocabulary.read(
        "All tasks eventually reach DONE, FAILED or CANCELLED"
    )
    assert read.values == {"statuses": ("done", "failed", "cancelled")}


def test_the_nearest_sentence_is_named() -> None:
    with pytest.raises(ValueError, match="did you mean 'Availability stays above"):
        Vocabulary(COMMON).read("Availabilty stay above 90%")


def record(*samples: Sample, shocks: tuple[float, ...] = (), **more: object) -> Record:
    return Record(
        None,
        None,
        100.0,
        samples=samples,
        shocks=tuple((at, "Fault") for at in shocks),
        recoveries=tuple(more.get("recoveries", ())),  # type: ignore[arg-type]
    )


def ask(line: str, seen: Record) -> Truth:
    return Vocabulary(COMMON).read(line).check(seen).truth


def test_availability_counts_ticks_and_not_answers() -> None:
    quick = [Sample(float(i), True, 10.0) for i in range(10)]
    hung = Sample(11.0, False, 3000.0, slots=30)
    assert availability(quick) == 100.0
    assert availability([*quick, hung]) == 25.0
    assert availability([Sample(0.0, None, 1.0)]) is None
    assert ask("Availability stays above 90%", record(*quick)) is Truth.HOLDS
    assert ask("Availability stays above 90%", record(*quick, hung)) is Truth.BROKEN
    assert ask("Availability stays above 90%", record()) is Truth.PENDING


def test_recovery_is_measured_from_each_fault() -> None:
    line = "Recovery within 30 s"
    assert ask(line, record()) is Truth.PENDING
    assert ask(line, record(shocks=(90.0,), recoveries=(2.0,))) is Truth.HOLDS
    assert ask(line, record(shocks=(90.0,), recoveries=(None,))) is Truth.PENDING
    assert ask(line, record(shocks=(60.0,), recoveries=(None,))) is Truth.BROKEN
    assert ask(line, record(shocks=(10.0, 60.0), recoveries=(31.0, 1.0))) is Truth.BROKEN


def test_memory_that_grows_is_seen() -> None:
    level = [Sample(float(i), True, 1.0, memory_bytes=50_000_000) for i in range(40)]
    growing = [Sample(float(i), True, 1.0, memory_bytes=(30 + i) * 1_000_000) for i in range(40)]
    assert ask("Memory does not grow", record(*level)) is Truth.HOLDS
    assert ask("Memory does not grow", record(*growing)) is Truth.BROKEN
    assert ask("Memory does not grow", record()) is Truth.PENDING


def test_a_check_that_breaks_down_has_found_out_nothing() -> None:
    wrong = Sentence("It works", lambda _w, _v: 1 / 0, "")  # type: ignore[arg-type,return-value]
    assert Vocabulary((wrong,)).read("It works").check(record()).truth is Truth.UNKNOWN


@pytest.mark.parametrize(
    ("operation", "radius"),
    [
        (op.KillAgent("a"), "one worker"),
        (op.KillTmuxServer(), "all workers"),
        (op.KillDaemon(), "server"),
        (op.CorruptState(), "storage"),
        (faults.FillDisk(lasting=True), "storage"),
        (faults.FillDisk(during=op.Add("a")), "one worker"),
        (faults.StarveCpu(seconds=1), "whole box"),
        (common.CrashAt(op.Add("a"), 1), "whole box"),
        (common.KillAt(op.Add("a"), 1), "one worker"),
        (op.PauseProcess("agent", 1, "a"), "one worker"),
        (op.Start("a", "x"), "single task"),
    ],
)
def test_reach_of_workers(operation: Operation, radius: str) -> None:
    assert reach(operation, language_of("workers")) == radius


@pytest.mark.parametrize(
    ("operation", "radius"),
    [
        (board.SpawnWorker("w", "claim-and-die"), "single task"),
        (board.SpawnWorker("w", "flood"), "all workers"),
        (board.KillWorker("w"), "one worker"),
        (board.KillServer(), "server"),
        (board.CorruptBoard(), "storage"),
        (board.Claim("w"), "single task"),
    ],
)
def test_reach_of_boards(operation: Operation, radius: str) -> None:
    assert reach(operation, language_of("board")) == radius


@pytest.mark.parametrize(
    ("tolerance", "value", "good"),
    [
        (0, {"status": 0, "stdout": ""}, True),
        (0, {"status": 1, "stdout": ""}, False),
        (True, {"status": 1}, False),
        (True, True, True),
        ("ok", {"status": 0, "stdout": "ok\n"}, True),
        ([200, 204], {"status": 204, "body": ""}, True),
        ({"type": "range", "range": [1, 5]}, {"status": 0, "stdout": " 3\n"}, True),
        ({"type": "range", "range": [1, 5]}, {"status": 0, "stdout": "x"}, False),
        ({"type": "regex", "pattern": "^a", "target": "stderr"}, {"stderr": "abc"}, True),
        (
            {"type": "jsonpath", "path": "$.a[1].b", "expect": 2},
            {"body": '{"a":[1,{"b":2}]}'},
            True,
        ),
        ({"type": "jsonpath", "path": "$.x", "count": 0}, {"body": "{}"}, True),
    ],
)
def test_tolerances(tolerance: object, value: object, good: bool) -> None:
    assert problem(tolerance) is None
    assert within(tolerance, value)[0] is good


@pytest.mark.parametrize(
    "tolerance",
    [
        None,
        [],
        {"type": "range", "range": [1]},
        {"type": "regex", "pattern": "("},
        {"type": "jsonpath", "path": "$..a", "expect": 1},
        {"type": "probe"},
    ],
)
def test_tolerances_that_cannot_be_used(tolerance: object) -> None:
    assert problem(tolerance) is not None


REPORT = ExperimentReport(
    "Name <b>",
    "It & that",
    "e.yaml",
    "mutiny",
    "longboat",
    "",
    7,
    "bug",
    1,
    "it broke \x1b[0m",
    1000.0,
    12.5,
    "one worker",
    (FaultRecord(2.0, 'KillAgent("a")', "SIGKILL", True, 1.5, 2.1),),
    (FindingRecord("T", "High", "workers.x", "S `c`", "R", "I", "Do", "mutiny replay x.json"),),
    (SteadyRecord("All is well", "holds: yes", "kept", "broken: no"),),
    (StepRecord("method", 'KillAgent("a")', "fault", 2.0, 2.1, "success"),),
    (SampleRecord(1.0, True, 20.0), SampleRecord(2.0, False, 900.0), SampleRecord(3.0, None, 1.0)),
    Score(1.5, True, "FAIL", 66.7, 3, 9.9),
    probe="Status()",
)


def test_the_report_has_the_seeds_form() -> None:
    text = markdown(REPORT)
    for line in (
        "## Chaos Report: Name \\<b>",
        "- **Duration**: 12.5 s",
        "- **Faults Injected**: 1",
        "- **Failures Found**: 1",
        "- **Severity**: High",
        "#### Finding 1: T",
        "- **Symptom**: S `c`",
        "- **Root Cause**: R",
        "- **Impact**: I",
        "- **Recommendation**: Do",
        "- **Test Case**: `mutiny replay x.json` (breaks `workers.x`)",
        "- Recovery Time: 1.5 seconds (target: <30s)",
        "- Data Integrity: FAIL",
        "- Availability: 66.7% during chaos (3 samples at 9.9 Hz)",
    ):
        assert line in text


def test_the_report_is_read_again_as_it_was_written() -> None:
    assert from_json(json.loads(json.dumps(REPORT.as_json())), "x") == REPORT


def test_junit_never_passes_what_was_not_tested() -> None:
    unsure = replace(REPORT, verdict="inconclusive", exit_code=3, findings=())
    passed = replace(REPORT, verdict="success", exit_code=0, findings=(), reason="")
    root = ElementTree.fromstring(junit([REPORT, unsure, passed]))
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("3", "1", "1")
    children = [[child.tag for child in case] for case in root]
    assert children == [["failure"], ["skipped"], []]


class _Outside(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "img", "iframe"):
            self.found.append(tag)
        self.found += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href")]


def test_the_page_loads_nothing_and_escapes_everything() -> None:
    text = page(REPORT)
    outside = _Outside()
    outside.feed(text)
    assert outside.found == []
    assert "url(" not in text
    assert "@import" not in text
    assert (
        "<b>" not in text.partition("<body>")[2].replace("<b>12.5", "").split("Name &lt;b&gt;")[0]
    )
    assert "Name &lt;b&gt;" in text
    assert (text.count("<svg width"), text.count('role="img"')) == (3, 1), (
        "scores, and the time line"
    )


def test_a_page_without_anything_is_a_page() -> None:
    empty = replace(
        REPORT, faults=(), findings=(), steady_state=(), steps=(), samples=(), reason=""
    )
    assert "</html>" in page(replace(empty, score=Score(None, None, "UNKNOWN", None)))


def test_the_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert __version__ == version("mutiny")
