"""`mutiny corpus`: a bug is kept, is still broken, is mended, becomes a guard, and breaks again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mutiny_command import run_mutiny
from schemas import problems

pytestmark = pytest.mark.deep

PLANT = "cycle-accepted"


def told(place: Path, *words: str) -> dict[str, Any]:
    ran = run_mutiny(place, *words, "--json")
    document: dict[str, Any] = json.loads(ran.stdout)
    assert problems("output", document) == [], ran.stdout
    assert document["exit_code"] == ran.code
    return document


def test_from_a_bug_to_a_guard_and_back(tmp_path: Path) -> None:
    target = ("--target", "longboat-board")
    found = told(
        tmp_path, "run", *target, "--scenario", "cycles", "--plant", PLANT, "--no-minimise"
    )
    assert found["verdict"] == "bug"
    (kept,) = told(tmp_path, "corpus", "add", "chaos_runs/latest")["entries"]
    assert (kept["rule"], kept["state"]) == ("board.cycles_refused", "open")
    again = run_mutiny(tmp_path, "corpus", "add", "chaos_runs/latest")
    assert (again.code, "in the corpus already" in again.stderr) == (2, True)
    broken = told(tmp_path, "corpus", "run")
    assert (broken["verdict"], broken["entries"][0]["became"]) == ("bug", "still broken")
    passed = told(tmp_path, "corpus", "run", "--plant", "", "--times", "5")
    became = [row["became"] for row in passed["entries"]]
    assert became == [
        *(f"passed {n} of 5 times" for n in range(1, 5)),
        "mended: a guard from now on",
    ]
    (row,) = told(tmp_path, "corpus", "run", "--junit", "junit.xml")["entries"]
    assert (row["became"], row["state"]) == ("BROKEN AGAIN", "open")
    assert "BROKEN AGAIN" in (tmp_path / "junit.xml").read_text()


@pytest.mark.slow
def test_the_corpus_is_shortened_and_doubles_go(tmp_path: Path) -> None:
    words = ("--target", "longboat-board", "--scenario", "cycles", "--plant", PLANT)
    told(tmp_path, "run", *words, "--no-minimise")
    for name in ("one", "two"):
        told(tmp_path, "corpus", "add", "chaos_runs/latest", "--name", name)
    done = told(tmp_path, "corpus", "minimise", "--seconds", "20")
    shorter = [row for row in done["entries"] if "to" in row]
    assert len(shorter) == 2
    assert shorter[0]["to"] < shorter[0]["from"]
    assert [row["dropped_for"] for row in done["entries"] if "dropped_for" in row] == ["one"]
    assert not (tmp_path / "corpus" / "two.json").exists()


def test_mistakes(tmp_path: Path) -> None:
    for words, said in (
        (("corpus", "run"), "there is no corpus"),
        (("corpus", "add", "nowhere"), "nowhere"),
    ):
        ran = run_mutiny(tmp_path, *words)
        assert ran.code == 2
        assert said in ran.stderr
        assert ran.stderr.count("\n") == 1
