"""What an agent is told: a few lines of what a command printed, with the files to read on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MOST_ROWS = 10
MOST_TEXT = 400
Told = dict[str, Any]
_HEAD = ("verdict", "exit_code", "target", "plant", "seed")


def brief(tool: str, document: Mapping[str, Any]) -> Told:
    """The answer of a tool."""
    head = {name: document[name] for name in _HEAD if document.get(name) is not None}
    error = document.get("error")
    if isinstance(error, dict):
        return {**head, "error": _short(error.get("message"))}
    return {**head, **_OWN[tool](document)}


def _short(text: object) -> str:
    told = str(text or "")
    return told if len(told) <= MOST_TEXT else f"{told[:MOST_TEXT]}..."


def _rows(rows: Sequence[Told], name: str) -> Told:
    """The first of them, and how many there are when that is not all."""
    more = {f"{name}_in_all": len(rows)} if len(rows) > MOST_ROWS else {}
    return {name: list(rows[:MOST_ROWS]), **more}


def _files(directory: str) -> Told:
    """Where to read on after a failure."""
    return {
        "directory": directory,
        "report": f"{directory}/error_report.md",
        "replay": f"{directory}/minimal_replay.json",
    }


def _failure(run: Mapping[str, Any], directory: str) -> Told:
    """A run that did not pass: what broke, and where to read on."""
    error = run.get("error") or {}
    violations = error.get("violations") or [{}]
    doubts = "; ".join(error.get("inconclusive") or ())
    step = error.get("operation") or {}
    told = {
        "title": run.get("title"),
        "verdict": run.get("verdict"),
        "rule": error.get("rule"),
        "said": _short(violations[0].get("message") or doubts),
        "step": step.get("type"),
        "minimal_length": error.get("minimal_length"),
        **_files(directory),
    }
    if not error.get("minimal_replay"):
        del told["replay"]
    return {name: value for name, value in told.items() if value not in (None, "")}


def _causes(document: Mapping[str, Any]) -> Told:
    causes = [
        {**one, "said": _short("; ".join(one["said"]))} for one in document.get("causes") or ()
    ]
    known = document.get("known")
    return {**_rows(causes, "causes"), **({"known": known} if known else {})}


def _of_run(document: Mapping[str, Any]) -> Told:
    runs = document["runs"]
    failed = [_failure(run, run["directory"]) for run in runs if run["verdict"] != "success"]
    counts = Counter(run["verdict"] for run in runs)
    return {"runs": dict(counts), **_rows(failed, "failed"), **_causes(document), **_next(failed)}


def _next(failed: Sequence[Mapping[str, Any]]) -> Told:
    place = next((one["replay"] for one in failed if "replay" in one), None)
    if place is None:
        return {}
    return {"next": f"read the report, fix the program, then replay {place} until it passes"}


def _of_explore(document: Mapping[str, Any]) -> Told:
    failed = [
        {**{name: one[name] for name in ("seed", "verdict", "rule")}, **_files(one["directory"])}
        for one in document.get("failures") or ()
    ]
    told = {name: document.get(name) for name in ("runs", "operations", "verdicts", "cells")}
    return {**told, **_rows(failed, "failed"), **_causes(document), **_next(failed)}


def _of_sweep(document: Mapping[str, Any]) -> Told:
    points = document["points"]
    bugs = [
        {name: _short(point[name]) for name in ("index", "call", "verdict", "rule", "message")}
        for point in points
        if point["verdict"] not in ("success", "expected") and not point.get("known")
    ]
    counts = Counter("known" if point.get("known") else point["verdict"] for point in points)
    first = document.get("first_bug")
    return {
        "points": dict(counts),
        "left_out": document["left_out"],
        "page": document["page"],
        **_rows(bugs, "failed"),
        **_causes(document),
        **(_files(first) if first else {}),
    }


def _of_report(document: Mapping[str, Any]) -> Told:
    run = document["run"]
    told = {name: run.get(name) for name in ("title", "operations", "duration_s", "counts")}
    failure = _failure(run, document["directory"]) if run.get("error") else {}
    return {**told, "directory": document["directory"], **failure}


def _of_replay(document: Mapping[str, Any]) -> Told:
    told = {name: document[name] for name in ("file", "times", "expect", "same")}
    return {**told, **_rows(document["runs"], "runs")}


def _of_minimise(document: Mapping[str, Any]) -> Told:
    return {name: document[name] for name in ("rule", "from", "to", "runs", "complete", "file")}


def _of_doctor(document: Mapping[str, Any]) -> Told:
    missing = [
        {"name": one["name"], "detail": _short(one["detail"])}
        for one in document["probes"]
        if not one["available"]
    ]
    told = {name: document[name] for name in ("able", "box", "faults_available", "faults_known")}
    return {**told, **_rows(missing, "missing")}


def _of_targets(document: Mapping[str, Any]) -> Told:
    words = ("name", "contract", "about", "program")
    return {"targets": [{word: one[word] for word in words} for one in document["targets"]]}


def _of_scenarios(document: Mapping[str, Any]) -> Told:
    return {"scenarios": {one["name"]: one["about"] for one in document["scenarios"]}}


_OWN: dict[str, Callable[[Mapping[str, Any]], Told]] = {
    "list_targets": _of_targets,
    "list_scenarios": _of_scenarios,
    "run": _of_run,
    "explore": _of_explore,
    "sweep": _of_sweep,
    "report": _of_report,
    "replay": _of_replay,
    "minimise": _of_minimise,
    "doctor": _of_doctor,
}
