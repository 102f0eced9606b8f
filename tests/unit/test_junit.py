"""JUnit XML: what failed fails, and what proved nothing is skipped."""

from __future__ import annotations

from xml.etree import ElementTree

from test_causes import failed

from mutiny.contracts.workers import operations as op
from mutiny.model.verdict import Verdict
from mutiny.report.junit import Case, case_of, suite


def cases_in(text: str) -> list[tuple[str | None, list[str]]]:
    root = ElementTree.fromstring(text)
    return [(case.get("name"), [child.tag for child in case]) for case in root]


def test_every_verdict_has_its_place() -> None:
    text = suite("mutiny run", [Case(one.value, "boat", one, 1.5) for one in Verdict])
    root = ElementTree.fromstring(text)
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("6", "3", "1")
    assert dict(cases_in(text)) == {
        "success": [],
        "expected": [],
        "inconclusive": ["skipped"],
        "timeout": ["failure"],
        "recovery_bug": ["failure"],
        "bug": ["failure"],
    }


def test_a_failed_run_names_rule_report_and_replay() -> None:
    case = case_of("seed 7", "boat", failed(op.Accept("a"), "it crashed <b>\x1b[31m"))
    failure = ElementTree.fromstring(suite("mutiny explore", [case]))[0][0]
    assert failure.get("type") == "workers.no_crash"
    assert "it crashed <b>" in str(failure.get("message"))
    assert "mutiny replay" in str(failure.text)


def test_a_known_finding_is_shown_and_fails_nothing() -> None:
    case = case_of("seed 7", "boat", failed(op.Accept("a"), "it crashed"), "being mended")
    root = ElementTree.fromstring(suite("mutiny explore", [case]))
    assert (root.get("failures"), root.get("skipped")) == ("0", "1")
    assert root[0][0].get("message") == "known: being mended"
