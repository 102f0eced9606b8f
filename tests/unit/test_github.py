"""In GitHub's log: what did not pass is an annotation, and nothing that a target says is an order."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from mutiny.cli.cases import tell_cases
from mutiny.cli.main import mutiny
from mutiny.cli.output import echo, echo_json
from mutiny.model.verdict import Verdict
from mutiny.report.escape import unobeyed
from mutiny.report.github import MOST, annotated, summary
from mutiny.report.junit import Case, skipped
from mutiny.targets.registry import FILES

HOSTILE = "50%\n::set-output name=x::y\r\n|<img src=x>`##[error]"
CASES = (
    Case("good", "toy", Verdict.SUCCESS, 1.0),
    Case("doubt", "toy", Verdict.INCONCLUSIVE, 1.0, "could not look"),
    Case("bad, very", "toy", Verdict.BUG, 1.0, HOSTILE, "toy.rule", "report: x\n"),
)


def test_errors_come_first_and_every_value_is_escaped() -> None:
    first, second = annotated("mutiny run", CASES)
    assert first.startswith("::error title=mutiny run%3A toy.rule (bad%2C very)::toy: 50%25%0A")
    assert "\n" not in first
    assert "\r" not in first
    assert second == "::warning title=mutiny run%3A inconclusive (doubt)::toy: could not look"
    assert len(list(annotated("x", CASES * 20))) == MOST


def test_the_summary_is_a_table_that_nothing_in_it_ends() -> None:
    text = summary("mutiny run", CASES)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 3, "head, and what did not pass"
    assert "1 bug, 1 inconclusive, 1 success" in text
    assert "\\|" in rows[2]
    assert "<img" not in text.replace("\\<img", "")
    assert "nothing was run" in summary("x", ())


def test_only_github_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    place = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place))
    tell_cases("mutiny run", CASES, None)
    assert capsys.readouterr() == ("", "")
    assert not place.exists()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for _ in range(2):
        tell_cases("mutiny run", CASES, tmp_path / "junit.xml")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("::error") == 2
    assert place.read_text().count("### mutiny run") == 2
    assert 'tests="3" failures="1" skipped="1"' in (tmp_path / "junit.xml").read_text()


def test_a_target_gives_no_orders_to_github(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for text in ("::error::x", "  ::stop-commands::x", "a\n::add-mask::y", "b ##[command]rm"):
        lines = unobeyed(text).split("\n")
        assert not any(line.strip().startswith("::") for line in lines)
        assert not any("##[" in line for line in lines)
    echo("::error::x")
    echo_json({"said": "##[error]x"})
    said = capsys.readouterr().out
    assert not said.startswith("::")
    assert "##[" not in said
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert unobeyed("::x") == "::x"


def test_what_could_not_be_tried_is_skipped() -> None:
    (case,) = skipped({"a": "no root"}, "toy")
    assert (case.verdict, case.reason) == (Verdict.INCONCLUSIVE, "no root")


def test_every_verb_that_judges_takes_junit() -> None:
    judging = {"run", "explore", "sweep", "race", "load", "soak", "replay", "accept", "campaign"}
    judging |= {"accept drill", "experiment run", "corpus run"}
    having = {
        " ".join(words)
        for words, command in mutiny.walk()
        if any("--junit" in parameter.opts for parameter in command.params)
    }
    assert having == judging


# --- the workflow -----------------------------------------------------------------------------------


def test_the_workflow_is_yaml_with_what_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a" / "b.yml"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.toml").write_bytes((FILES / "longboat.toml").read_bytes())
    words = ["ci", "init", str(file), "--target", "my.toml", "--bin", "./my-program"]
    assert CliRunner().invoke(mutiny, words).exit_code == 0
    job = YAML(typ="safe").load(file)["jobs"]["mutiny"]
    assert (job["env"]["TARGET"], job["env"]["PROGRAM"]) == ("my.toml", "./my-program")
    commands = "\n".join(step.get("run", "") for step in job["steps"])
    for verb in ("doctor", "corpus run", "run", "explore", "report --site"):
        assert f"mutiny {verb}" in commands
    assert "@" not in job["env"]["MUTINY"]


@pytest.mark.parametrize("target", ['x"; rm', "${{ secrets.X }}", "a\nb", "$(x)", "--x"])
def test_what_a_workflow_would_obey_is_refused(target: str, tmp_path: Path) -> None:
    words = ["ci", "init", str(tmp_path / "x.yml"), f"--target={target}"]
    ran = CliRunner().invoke(mutiny, words)
    assert ran.exit_code != 0
    assert not (tmp_path / "x.yml").exists()


def test_the_action_gives_inputs_to_scripts_as_variables_only() -> None:
    action = YAML(typ="safe").load(Path(__file__).parents[2] / "action.yml")
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
    assert set(action["inputs"]) == {"target", "bin", "run", "site"}
