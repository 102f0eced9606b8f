"""`--json`: one document of one form from every verb, for errors, too."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import click
import pytest

from mutiny.cli.main import mutiny
from mutiny_command import COMMAND, run_mutiny
from sampling import sampled
from schemas import problems, schema

EXPERIMENT = str(Path(__file__).parents[1] / "unit" / "trivial_experiment.json")
RUN = ("run", "--scenario", "basic_lifecycle", "--seed", "4")
QUICK = {
    "scenarios": ("scenarios", "--target", "longboat-broker"),
    "plants": ("plants",),
    "rules": ("rules",),
    "target list": ("target", "list"),
    "target check": ("target", "check", "llmc"),
    "target init": ("target", "init", "mine.toml"),
    "mcp": ("mcp", "--list"),
    "ci init": ("ci", "init"),
    "accept init": ("accept", "init", "goal.yaml"),
    "experiment list": ("experiment", "list", "--contract", "board"),
    "experiment check": ("experiment", "check", "killed-agent", EXPERIMENT),
    "experiment run": ("experiment", "run", EXPERIMENT),
    "explore": ("explore", "--seed", "5", "--print"),
}
JUNIT = ("--junit", "junit.xml")
REAL = {
    "doctor": ("doctor",),
    "run": RUN,
    "explore": ("explore", "--seed", "5", "--ops", "2"),
    "sweep": (
        "sweep",
        "crash",
        "--scenario",
        "basic_lifecycle",
        "--at",
        "Init",
        "--points",
        "1",
        *JUNIT,
    ),
    "race": ("race", "--kind", "claims", "--schedules", "1", "--rounds", "0", *JUNIT),
    "load": ("load", "--target", "longboat-crew", "--shape", "dag", "--graph", "5", *JUNIT),
}


def told(directory: Path, *arguments: str) -> dict[str, Any]:
    """The one document that a command printed, checked."""
    ran = run_mutiny(directory, *arguments, "--json")
    document: dict[str, Any] = json.loads(ran.stdout)
    assert problems("output", document) == [], ran.stdout[:2000]
    assert document["exit_code"] == ran.code
    return document


@pytest.mark.parametrize("verb", [*QUICK, *sampled((f"real {name}" for name in REAL), every=5)])
def test_every_verb_has_the_one_form(verb: str, tmp_path: Path) -> None:
    name = verb.removeprefix("real ")
    words = REAL[name] if verb.startswith("real ") else QUICK[name]
    document = told(tmp_path, *words)
    if "--junit" in words:
        assert 'failures="0" skipped="0"' in (tmp_path / "junit.xml").read_text()
    assert document["verb"] == name
    assert document["error"] is None
    assert document["exit_code"] == 0


@pytest.mark.slow
def test_a_bug_its_report_its_replay_and_its_shortest_form(tmp_path: Path) -> None:
    plant = ("--plant", "state-in-place")
    found = told(tmp_path, *RUN, *plant, "--no-minimise")
    assert (found["verdict"], found["exit_code"], found["seed"]) == ("bug", 1, 4)
    assert (found["target"], found["plant"]) == ("longboat", "state-in-place")
    report = told(tmp_path, "report")
    for name in ("verdict", "exit_code", "target", "plant", "seed"):
        assert report[name] == found[name]
    replay = told(tmp_path, "replay", "chaos_runs/latest/minimal_replay.json", *JUNIT)
    assert '<failure type="workers.state_atomic"' in (tmp_path / "junit.xml").read_text()
    assert (replay["same"], replay["plant"]) == (1, "state-in-place")
    known = told(tmp_path, "known", "add", "chaos_runs/latest", "--reason", "it is being mended")
    assert told(tmp_path, "known", "list", "known.toml")["entries"] == known["entries"]
    behind = told(tmp_path, *RUN, *plant, "--known", "known.toml")
    assert behind["known"][0]["count"] == 1
    shortest = told(tmp_path, "minimise", "chaos_runs/latest", "--trials", "1")
    assert shortest["rule"] == "workers.state_atomic"


def test_a_finished_experiment_is_reported_again(tmp_path: Path) -> None:
    ran = told(tmp_path, "experiment", "run", EXPERIMENT)
    again = told(tmp_path, "experiment", "report")
    assert len(told(tmp_path, "experiment", "log")["entries"]) == 1
    assert again["experiments"] == ran["experiments"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("verb", ["accept", "accept drill"])
def test_goals_and_drills_have_the_one_form(verb: str, tmp_path: Path) -> None:
    document = told(tmp_path, *verb.split())
    assert (document["verb"], document["exit_code"]) == (verb, 0), document
    rows = document["goals"] if verb == "accept" else document["drills"]
    assert len(rows) > 30


def test_every_verb_is_covered_here() -> None:
    verbs = set()
    for words, command in mutiny.walk():
        if not isinstance(command, click.Group) or command.invoke_without_command:
            verbs.add(" ".join(words))
            assert any("--json" in parameter.opts for parameter in command.params), verbs
    assert set(schema("output")["properties"]["verb"]["enum"]) == verbs | {""}
    here = {"replay", "minimise", "report", "experiment report", "known add", "known list"}
    here |= {"accept", "accept drill", "campaign"}  # the latter: test_campaign.py
    here |= {"corpus add", "corpus run", "corpus minimise"}  # test_corpus_command.py
    here |= {"experiment log", "soak"}  # the latter takes minutes: test_session.py
    here |= {"serve"}  # which does not end: test_serve.py
    assert verbs == {*QUICK, *REAL, *here}


MISTAKES = (
    (("run", "--target", "nobody"), 2, "run"),
    (("run", "--seed", "x"), 2, "run"),
    (("run", "--bogus"), 2, "run"),
    (("nonsense",), 2, ""),
    (("run", "--target", "llmc", "--bin", "/nowhere"), 3, "run"),
    (("replay", "nowhere.json"), 2, "replay"),
    (("shrink", "nowhere.json"), 2, "minimise"),
    (("report", "nowhere"), 2, "report"),
    (("experiment", "run", "nobody"), 2, "experiment run"),
    (("experiment", "report", "nowhere"), 2, "experiment report"),
    (("target", "check", "nobody"), 2, "target check"),
    (("sweep", "crash"), 2, "sweep"),
    (("scenarios", "--contract", "nobody"), 2, "scenarios"),
)


@pytest.mark.parametrize(("arguments", "code", "verb"), MISTAKES)
def test_mistakes_are_told_to_programs(
    arguments: tuple[str, ...], code: int, verb: str, tmp_path: Path
) -> None:
    document = told(tmp_path, *arguments)
    assert (document["exit_code"], document["verb"]) == (code, verb)
    assert document["error"]["kind"] == {2: "usage", 3: "inconclusive"}[code]
    assert document["error"]["message"]


def test_files_with_mistakes_are_told_with_their_lines(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("experiment:\n  name: x\n  nonsense: 1\n")
    document = told(tmp_path, "experiment", "check", "bad.yaml", "killed-agent")
    assert document["exit_code"] == 2
    assert [bool(row["mistakes"]) for row in document["files"]] == [True, False]


def test_an_interrupted_command_says_so(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [COMMAND, "run", "--all-scenarios", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        runs = tmp_path / "chaos_runs"
        while process.poll() is None and not list(runs.glob("*/operations.jsonl")):
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    document = json.loads(output)
    assert problems("output", document) == []
    assert document["exit_code"] == process.returncode == 143
    assert document["error"]["kind"] == "interrupted"
