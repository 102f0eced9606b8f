"""Experiment files: every mistake has its line and the nearest valid word."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutiny.contracts.workers import operations as op
from mutiny.errors import UsageError
from mutiny.experiments import document
from mutiny.experiments.compile import compile_experiment
from mutiny.experiments.experiment import Experiment
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.experiment import (
    Action,
    Gather,
    Probe,
    SteadyState,
    Undo,
    VerifySentence,
    Watch,
)
from mutiny.model.duration import parse_duration
from mutiny.modes.experiment_files import library, load

GOOD = """\
experiment:
  name: "Agent killed"
  hypothesis: "It comes back"
  target: longboat
  blast_radius: "one worker"
  steady_state:
    - "All tasks eventually reach DONE or FAILED"
  method:
    - kill_agent: alpha
    - wait: 500ms
    - verify: "stale task detection triggered"
  rollback:
    - "Reset any stuck tasks to AVAILABLE"
"""


def read(directory: Path, text: str, name: str = "e.yaml", target: str | None = None) -> Experiment:
    path = directory / name
    path.write_text(text)
    return load(path, target)


def refused(directory: Path, text: str, name: str = "e.yaml") -> str:
    with pytest.raises(UsageError) as caught:
        read(directory, text, name)
    assert caught.value.exit_code == 2
    return str(caught.value).replace(str(directory) + "/", "")


def test_the_short_form_compiles_to_operations(tmp_path: Path) -> None:
    plan = compile_experiment(read(tmp_path, GOOD))
    kinds = [type(step.operation) for step in plan.steps]
    assert kinds[0] is common.Reset
    assert [step.phase for step in plan.steps if step.phase == "setup"]
    middle = [step.operation for step in plan.steps if step.phase == "method"]
    assert middle == [
        op.KillAgent("alpha"),
        common.Sleep(0.5),
        VerifySentence("stale task detection triggered", 10.0),
    ]
    assert SteadyState in kinds
    assert Watch in kinds
    assert kinds.index(Watch) > kinds.index(SteadyState)
    assert plan.undoing == ()  # nobody was given a task
    assert [step.line for step in plan.steps if step.phase == "method"] == [9, 10, 11]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            "kill_agent: alpha",
            "kil_agent: alpha",
            "e.yaml:9: unknown step 'kil_agent' (did you mean",
        ),
        ("wait: 500ms", "wait: soon", "e.yaml:10: wait: 'soon' is no span of time"),
        ("wait: 500ms", "wait: 30", "e.yaml:10: wait: 30 is no span of time; did you mean '30s'?"),
        (
            "  method:",
            "  name: twice\n  method:",
            "e.yaml:8: duplicate key 'name'; it stands in line 2",
        ),
        (
            "All tasks eventually reach DONE or FAILED",
            "All tasks evntually reach DONE",
            "e.yaml:7: unknown sentence",
        ),
        (
            "hypothesis",
            "hypotesis",
            "e.yaml:3: unknown key 'hypotesis' (did you mean 'hypothesis'?)",
        ),
        (
            '"one worker"',
            '"single task"',
            "e.yaml:9: kill_agent: alpha reaches 'one worker', beyond",
        ),
        (
            '"one worker"',
            '"one wroker"',
            "e.yaml:5: unknown blast radius 'one wroker' (did you mean",
        ),
        ("target: longboat", "target: longbot", "e.yaml:4: unknown target 'longbot' (did you mean"),
        (
            '    - "Reset any stuck tasks to AVAILABLE"',
            '    - "Reset any stuk tasks"',
            "e.yaml:13: unknown rollback",
        ),
        (
            "kill_agent: alpha",
            "kill_agent: {wroker: alpha}",
            "e.yaml:9: kill_agent.wroker: unknown key (did you mean 'worker'?)",
        ),
        (
            "kill_agent: alpha",
            "start: {worker: alpha, prompt: 5}",
            "e.yaml:9: start.prompt: expected text, got 5",
        ),
    ],
)
def test_mistakes_have_a_line_and_a_hint(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    assert old in GOOD
    assert complaint in refused(tmp_path, GOOD.replace(old, new, 1))


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("wait: 500ms", "wait: soon").replace("kill_agent", "kil_agent")
    assert refused(tmp_path, text).count("e.yaml:") == 2


@pytest.mark.parametrize("key", ["steady_state", "method", "blast_radius", "name"])
def test_what_is_missing_is_named(tmp_path: Path, key: str) -> None:
    lines = GOOD.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"  {key}:"))
    end = next(
        (i for i in range(start + 1, len(lines)) if not lines[i].startswith("    ")), len(lines)
    )
    assert f"{key} is missing" in refused(tmp_path, "\n".join(lines[:start] + lines[end:]) + "\n")


def test_a_method_that_disturbs_nothing_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace("    - kill_agent: alpha\n", "")
    assert "it disturbs nothing" in refused(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "e.yaml:1: the file is empty"),
        ("experiment: [", "e.yaml:1: not valid YAML"),
        ("experiment: 5\n", "expected `experiment:` with its parts"),
        ("exprmnt: {name: x}\n", "expected `experiment:`"),
        ("experiment: &a\n  name: *a\n", "contains itself"),
        ("experiment: {name: !!python/object x}\n", "not understood"),
    ],
)
def test_files_that_are_no_experiments(tmp_path: Path, text: str, complaint: str) -> None:
    assert complaint in refused(tmp_path, text)


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the experiment"):
        load(tmp_path / "missing.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"a: \xff\xfe\n")
    with pytest.raises(UsageError, match=r"binary.yaml:1: not UTF-8"):
        load(tmp_path / "binary.yaml")


def test_yaml_words_stay_words() -> None:
    node = document._yaml("x", "a: on\nb: NO\nc: 22:30\nd: 2025-01-12\ne: 0755\nf: 0x1f\n")
    assert node.plain() == {
        "a": "on",
        "b": "NO",
        "c": "22:30",
        "d": "2025-01-12",
        "e": 755,
        "f": 31,
    }
    assert node.line_of("c") == 3


def test_aliases_cost_nothing() -> None:
    bomb = "a0: &a0 [x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
    )
    assert document._yaml("x", bomb).is_mapping


def test_every_fault_is_a_step(tmp_path: Path) -> None:
    text = GOOD.replace(
        "    - kill_agent: alpha\n",
        "    - fill_disk: {what: inodes, during: {add: {worker: beta}}}\n"
        "    - parallel: [{status: {}}, {doctor: {}}]\n"
        "    - expect_error: {start: {worker: nobody, prompt: x}}\n"
        "    - pause_process: {role: daemon, seconds: 200ms}\n",
    ).replace("one worker", "whole box")
    steps = [s.operation for s in compile_experiment(read(tmp_path, text)).steps]
    assert faults.FillDisk(what="inodes", during=op.Add("beta")) in steps
    assert common.Parallel((op.Status(), op.Doctor())) in steps
    assert common.ExpectError(op.Start("nobody", "x")) in steps
    assert op.PauseProcess("daemon", 0.2) in steps


def test_spawn_worker_and_rollbacks_speak_of_the_same_worker(tmp_path: Path) -> None:
    text = GOOD.replace("kill_agent: alpha", "spawn_worker: {id: chaos, behavior: claim-and-hang}")
    text = text.replace("Reset any stuck tasks to AVAILABLE", "Kill chaos worker if still running")
    plan = compile_experiment(read(tmp_path, text))
    assert op.Behave("chaos", ("hang",)) in plan.operations
    assert plan.undoing == (Undo(op.Nuke("chaos")),)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("10 minutes", 600), ("500ms", 0.5), ("1m30s", 90), ("2 hours", 7200)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "30", "-1s", "1 fortnight", "5x", "48h"])
def test_durations_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"span of time|longer than a day"):
        parse_duration(text)


# --- Chaos Toolkit --------------------------------------------------------------------------------

FOREIGN = """{
  "version": "1.0.0", "title": "T", "description": "D",
  "configuration": {"word": "hello", "home": {"type": "env", "key": "NO_SUCH", "default": "d"}},
  "steady-state-hypothesis": {"title": "s", "probes": [
    {"type": "probe", "name": "p", "tolerance": [0, 1],
     "provider": {"type": "process", "path": "echo", "arguments": ["${word}", "${home}"]}}]},
  "method": [
    {"type": "action", "name": "a", "background": true, "pauses": {"after": 1},
     "provider": {"type": "python", "module": "os", "func": "getcwd"}},
    {"ref": "p"}],
  "rollbacks": [{"type": "action", "name": "r",
    "provider": {"type": "http", "url": "http://127.0.0.1:1/"}}]
}
"""


def test_a_foreign_experiment_is_imported(tmp_path: Path) -> None:
    experiment = read(tmp_path, FOREIGN, "e.json")
    probe = experiment.before[0]
    assert isinstance(probe, Probe)
    assert probe.provider["arguments"] == ["hello", "d"]
    plan = compile_experiment(experiment)
    kinds = [type(step.operation) for step in plan.steps]
    assert kinds == [common.Reset, Probe, Action, Probe, Gather, Probe]
    action = plan.steps[2].operation
    assert isinstance(action, Action)
    assert action.background
    assert action.pause_after_s == 1.0
    assert experiment.targets == ("box",)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"title": "T"', '"titel": "T"', "e.json:2: unknown key 'titel' (did you mean 'title'?)"),
        (
            '"python"',
            '"pyton"',
            "e.json:9: a provider of type 'pyton' cannot be run (did you mean",
        ),
        ("${word}", "${wrod}", "e.json:6: ${wrod} is in no configuration"),
        ('"func"', '"function"', "func is missing"),
        ("[0, 1]", '{"type": "probe"}', "a tolerance of type 'probe' cannot be run"),
        ('"rollbacks"', '"controls": [{"name": "x"}], "rollbacks"', "controls are code inside"),
        ('{"ref": "p"}', '{"ref": "q"}', "ref 'q'"),
        ('"type": "action", "name": "a"', '"type": "probe", "name": "a"', "disturbs nothing"),
        ('"pauses": {"after": 1}', '"pauses": 1', "pauses: expected a mapping, got 1"),
        (
            '{"word": "hello", "home": {"type": "env", "key": "NO_SUCH", "default": "d"}}',
            '["word"]',
            "e.json:3: configuration: expected a mapping, got a list",
        ),
        ('"rollbacks"', '"secrets": "vault", "rollbacks"', "secrets: expected a mapping, got 'vau"),
        ('"rollbacks"', '"controls": {"name": "x"}, "rollbacks"', "controls are code inside"),
        ('"after": 1', '"after": "long"', "pauses.after: 'long' is no number"),
        ('"type": "env"', '"type": "vault"', "a value of type 'vault' cannot be looked up"),
        (', "default": "d"', "", "the environment has no 'NO_SUCH'"),
        ('"tolerance": [0, 1],', "", "has no tolerance"),
        ('"title": "T",', '"title": "T", "title": "U",', "e.json:2: duplicate key 'title'"),
    ],
)
def test_what_cannot_be_run_is_refused(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    assert old in FOREIGN
    assert complaint in refused(tmp_path, FOREIGN.replace(old, new, 1), "e.json")


def test_the_whole_library_is_well_formed() -> None:
    for path in library().values():
        plan = compile_experiment(load(path))
        assert plan.steps
