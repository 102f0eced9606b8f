"""The files of a run keep to their JSON Schemas, and the schemas refuse what is not theirs."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import make_schemas
import pytest

import schemas
from builders import CONTRACT, agent, ok, outcome, picture, refused, step, view
from mutiny.box.isolation import TECHNIQUES
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.operations import STATUSES
from mutiny.contracts.workers.scenarios import SCENARIOS
from mutiny.engine.journal import JournalWriter, Step
from mutiny.engine.loop import Outcome
from mutiny.engine.replay import MINIMISED, Replay
from mutiny.engine.rundir import FORMAT, RunDirectory
from mutiny.kit import operations as common
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation
from mutiny.modes.bench import Assignment, Bench
from mutiny.report.summary import summary
from mutiny.targets.kit.options import LiveOptions
from mutiny.targets.registry import Target, find_spec

VIOLATION = Violation("workers.nothing_lost", "It is gone.", "MT-7f3a-1", {"kind": "task"})
REPLAY = Replay(
    (common.Reset(), op.Up()), "workers", target="longboat", expect="workers.one_daemon"
)
BOX = {
    "technique": "bwrap",
    "guarantee": "all of them",
    "network": "none",
    "outside_writable": False,
    "directory": "chaos_runs/run/box",
    "inside": "/box",
    "box_id": "7f3a",
}


def rich_step() -> Step:
    """A step that uses every field."""
    before = picture(view(), view("beta", "error"), probe_errors=("tmux: no answer",))
    after = picture(view("alpha", "needs_review"), state_error="not valid JSON", agents=(agent(),))
    part = ok(argv=("longboat", "accept"), target_ms=12.3456, details={"unparsed": True})
    result = OperationResult(
        None,
        "out",
        "err",
        12.0,
        signal=9,
        timed_out=True,
        argv=("longboat",),
        technique="SIGKILL by handle",
        fired=True,
        tokens=("MT-7f3a-1",),
        target_ms=1.0,
        inner=(part, refused("no")),
        harness_error="no",
        details={"a": [1]},
    )
    return step(
        common.Parallel((op.Start("alpha", "x"), op.KillDaemon())),
        Verdict.RECOVERY_BUG,
        3,
        VIOLATION,
        result=result,
        pre_state=before.as_json(),
        post_state=after.as_json(),
        inconclusive=("a doubt",),
        expected="something else",
    )


def target() -> Target:
    spec, origin = find_spec("longboat")
    return Target(spec, Path("longboat"), origin, LiveOptions(Path("longboat")))


def plan() -> dict[str, Any]:
    bench = Bench(target(), Path("chaos_runs"))
    assignment = Assignment(SCENARIOS["racing_commands"], "racing_commands", 7)
    made = json.loads(json.dumps(bench.plan(assignment)))
    return {**made, "box": BOX}


def failed(directory: Path) -> Outcome:
    return outcome(directory, step(common.Reset()), rich_step())


def examples(directory: Path) -> dict[str, Any]:
    """One example of each kind, as the code writes it."""
    made = {
        "journal-line": rich_step().as_json(),
        "summary": summary(failed(directory), CONTRACT, "x", 7, REPLAY),
        "plan": plan(),
        "replay": REPLAY.as_json(),
    }
    loaded: dict[str, Any] = json.loads(json.dumps(made))
    return loaded


# --- the schemas themselves -----------------------------------------------------------------------


def test_every_schema_is_packaged_and_there_is_no_other() -> None:
    directory = Path(schemas.__file__).parents[1] / "src" / "mutiny" / "schemas"
    assert {path.name for path in directory.iterdir()} == {
        f"{name}.schema.json" for name in (*schemas.NAMES, schemas.OUTPUT)
    }


def test_the_schemas_are_those_that_the_types_give() -> None:
    """`python tools/make_schemas.py` writes them anew."""
    made = make_schemas.schemas()
    assert set(made) == {*schemas.NAMES, schemas.OUTPUT}
    for name, schema in made.items():
        assert schemas.schema(name) == schema, name


@pytest.mark.parametrize("name", schemas.NAMES)
def test_every_schema_is_of_this_format_and_says_what_it_is(name: str) -> None:
    schema = schemas.schema(name)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"urn:mutiny:schema:{name}:{FORMAT}"
    assert schema["title"]
    body = schema["$defs"]["ReplayForm"] if name == "replay" else schema
    assert body["properties"]["format"] == {"const": FORMAT}
    assert body["additionalProperties"] is False


def test_the_words_are_those_of_the_code() -> None:
    worker = schemas.schema("journal-line")["$defs"]["WorkerState"]["properties"]
    assert tuple(worker["status"]["enum"]) == STATUSES
    names = [technique.name for technique in TECHNIQUES]
    box = schemas.schema("plan")["$defs"]["BoxForm"]["properties"]
    assert box["technique"]["enum"] == names
    replay = schemas.schema("replay")["$defs"]["ReplayForm"]["properties"]
    assert replay["isolation"]["enum"] == [*names, None]
    assert replay["minimised"]["enum"] == [*MINIMISED, None]


# --- what is written ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", schemas.NAMES)
def test_what_the_code_writes_is_valid(name: str, tmp_path: Path) -> None:
    assert schemas.problems(name, examples(tmp_path)[name]) == []


@pytest.mark.parametrize("verdict", Verdict)
def test_a_plain_line_of_every_verdict_is_valid(verdict: Verdict) -> None:
    line = json.loads(json.dumps(step(common.Reset(), verdict).as_json()))
    assert schemas.problems("journal-line", line) == []


def test_summaries_of_every_outcome_are_valid(tmp_path: Path) -> None:
    for verdict in Verdict:
        made = summary(outcome(tmp_path, step(op.Up(), verdict)), CONTRACT, "x", 1, None)
        assert schemas.problems("summary", json.loads(json.dumps(made))) == []
    nothing = summary(outcome(tmp_path), CONTRACT, "x", 1, None)
    assert schemas.problems("summary", json.loads(json.dumps(nothing))) == []


def test_every_scenario_is_a_valid_replay() -> None:
    for scenario in SCENARIOS.values():
        assert schemas.problems("replay", Replay(scenario, "workers").as_json()) == []
        assert schemas.problems("replay", [item.as_json() for item in scenario]) == []


def test_a_plan_without_its_box_is_valid() -> None:
    assert schemas.problems("plan", {k: v for k, v in plan().items() if k != "box"}) == []


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", schemas.NAMES)
def test_every_field_is_required_or_known_to_be_optional(name: str, tmp_path: Path) -> None:
    example = examples(tmp_path)[name]
    optional = {
        "plan": {"box", "process"},
        "replay": set(example) - {"format", "operations"},
    }.get(name, set())
    for key in example:
        without = {k: v for k, v in example.items() if k != key}
        assert bool(schemas.problems(name, without)) == (key not in optional), key


@pytest.mark.parametrize("name", schemas.NAMES)
def test_unknown_fields_and_newer_formats_are_refused(name: str, tmp_path: Path) -> None:
    example = examples(tmp_path)[name]
    assert schemas.problems(name, {**example, "surprise": 1})
    assert schemas.problems(name, {**example, "format": 2})
    assert schemas.problems(name, {**example, "format": "1"})


Change = Callable[[Any], object]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("journal-line", lambda v: v.update(classification="fine")),
        ("journal-line", lambda v: v.update(sequence_id=0)),
        ("journal-line", lambda v: v.update(tokens=["t1"])),
        ("journal-line", lambda v: v["operation"].update(extra=1)),
        ("journal-line", lambda v: v["operation"].pop("args")),
        ("journal-line", lambda v: v["result"].update(surprise=1)),
        ("journal-line", lambda v: v["result"].pop("exit_code")),
        ("journal-line", lambda v: v["result"]["inner"][0].pop("stderr")),
        ("journal-line", lambda v: v["violations"][0].update(rule="nothing_lost")),
        ("journal-line", lambda v: v["pre_state"]["workers"]["alpha"].update(status="dancing")),
        ("journal-line", lambda v: v["pre_state"].pop("daemon_running")),
        ("summary", lambda v: v.update(verdict="success")),
        ("summary", lambda v: v.update(verdict="expected")),
        ("summary", lambda v: v.update(exit_code=0)),
        ("summary", lambda v: v["counts"].update(bug=0)),
        ("summary", lambda v: v["error"].update(surprise=1)),
        ("plan", lambda v: v.update(agents="none")),
        ("plan", lambda v: v["box"].update(technique="hope")),
        ("plan", lambda v: v["operations"].append("Reset")),
        ("replay", lambda v: v.update(operations=[])),
        ("replay", lambda v: v.update(contract="")),
        ("replay", lambda v: v.update(minimised="nearly")),
        ("replay", lambda v: v.update(reproduced={"failed": 1})),
        ("replay", lambda v: v.update(expect="everything")),
        ("replay", lambda v: v["operations"].append({"args": {}})),
    ],
)
def test_what_is_wrong_inside_is_refused(name: str, change: Change, tmp_path: Path) -> None:
    example = copy.deepcopy(examples(tmp_path)[name])
    change(example)
    assert schemas.problems(name, example)


# --- a whole run ----------------------------------------------------------------------------------


def write_run(directory: Path) -> RunDirectory:
    run = RunDirectory(directory)
    writer = JournalWriter(run.journal_path)
    writer.append(step(common.Reset()))
    writer.append(rich_step())
    writer.close()
    made = examples(directory)
    run.write_json(run.plan_path, made["plan"])
    run.write_json(run.summary_path, made["summary"])
    run.write_json(run.replay_path, made["replay"])
    return run


def test_a_whole_run_is_valid(tmp_path: Path, validate_run: Callable[[Path], None]) -> None:
    write_run(tmp_path)
    validate_run(tmp_path)


def test_every_mistake_of_a_run_is_found(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    run.plan_path.unlink()
    run.write_json(run.summary_path, {"format": 1})
    run.write_json(run.replay_path, {"format": 9})
    with run.journal_path.open("a") as stream:
        stream.write('{"format": 1}\n')
    with pytest.raises(AssertionError) as caught:
        schemas.validate_run(tmp_path)
    told = str(caught.value)
    for part in (
        "operations.jsonl line 3: ",
        "plan.json: is missing",
        "summary.json: ",
        "minimal_replay.json: ",
    ):
        assert part in told
