"""The parts of `longboat batch`: plans, locks, gates, state and log."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from longboat.batch import config, gates, plan, schedule, shown_plants, site, values
from longboat.batch.plants import ROWS
from longboat.batch.site import redacted
from longboat.batch.store import Events, Home, read_events, remove_tree
from longboat.batch.values import Batch, Run, StateUnreadable, Task
from longboat.errors import Rejection, UsageError
from longboat.plants import BATCH_PLANTS, PLANTS


def planned(*rows: dict[str, object]) -> list[Task]:
    return plan.parse(json.dumps({"tasks": list(rows)}), "plan")


def row(name: str, **more: object) -> dict[str, object]:
    return {"id": name, "prompt": f"do {name}", **more}


# --- plans -------------------------------------------------------------------------------------------


def test_the_order_in_a_file_changes_no_byte() -> None:
    one = plan.to_json(planned(row("b"), row("a", files=["x"])))
    other = plan.to_json(planned(row("a", files=["x"]), row("b")))
    assert json.dumps(one) == json.dumps(other)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "not empty"),
        ([row("a"), row("A")], "there twice"),
        ([row("../up")], "letters"),
        ([row("/abs")], "letters"),
        ([row("a.lock")], "letters"),
        ([row("a", depends=["z"])], "not there"),
        ([row("a", depends=["b"]), row("b", depends=["a"])], "in a circle"),
        ([row("a", files=["../x"])], "leaves the repository"),
        ([row("a", files=["x/.git/hooks"])], "leaves the repository"),
        ([row("a", wishes=1)], "unknown key"),
        ([{"id": "a"}], "prompt"),
    ],
)
def test_wrong_plans_are_refused(rows: list[dict[str, object]], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        planned(*rows)


def test_text_that_is_no_plan_is_refused() -> None:
    with pytest.raises(UsageError, match="not valid JSON"):
        plan.parse("Here is your plan:", "the planner")


# --- scheduling --------------------------------------------------------------------------------------


def test_conflicting_locks_never_share_a_batch() -> None:
    tasks = planned(row("a", writes=["core"]), row("b", reads=["core"]), row("c", writes=["docs"]))
    assert [task.id for task in schedule.pack(tasks, 3)] == ["a", "c"]
    assert [task.id for task in schedule.pack(tasks, 1)] == ["a"]


def test_readers_may_share_a_batch() -> None:
    tasks = planned(row("a", reads=["core"]), row("b", reads=["core"]))
    assert len(schedule.pack(tasks, 2)) == 2


def test_a_task_waits_until_what_it_needs_is_merged() -> None:
    tasks = {task.id: task for task in planned(row("a"), row("b", depends=["a"]))}
    for status, ready in [("validated", []), ("complete", ["b"]), ("skipped", ["b"])]:
        run = Run("r1", "main", tasks={**tasks, "a": tasks["a"]._replace(status=status)})
        assert [task.id for task in schedule.ready(run)] == ready


# --- gates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("src/a/b.py", "src/**", True),
        ("srcs/a.py", "src/**", False),
        ("src/a.py", "src/*.py", True),
        ("src/a/b.py", "src/*.py", False),
        ("README.md", "README.md", True),
    ],
)
def test_patterns_of_declared_files(name: str, pattern: str, fits: bool) -> None:
    assert gates._matches(name, pattern) is fits


def test_tokens_are_all_usages_that_were_printed() -> None:
    text = 'chatter\n{"usage": {"input_tokens": 5, "output_tokens": 7}}\n[{"usage": {"tokens": 1}}]'
    assert gates.tokens_in(text) == 13
    assert gates.tokens_in('{"usage": {"input_tokens": -4, "note": "x"}}\n{broken') == 0


def test_budgets_of_task_and_run() -> None:
    tasks = {name: Task(name, name, "p", tokens=60) for name in ("a", "b")}
    run = Run("r1", "main", tasks=tasks)
    assert gates.over_budget(config.Config(task_tokens=60, run_tokens=120), run) == ""
    assert "task a" in gates.over_budget(config.Config(task_tokens=59), run)
    assert "the run" in gates.over_budget(config.Config(run_tokens=119), run)
    assert "cost" in gates.over_budget(config.Config(run_cost=0.0001), run)


def test_secrets_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "very-secret")
    assert redacted("it is very-secret!") == "it is [SOME_API_KEY]!"


# --- settings ----------------------------------------------------------------------------------------


def test_settings_survive_their_own_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    made = config.Config(source='a "b"', doctor="make test", rescope=False)
    path.write_text(config.render(made), encoding="utf-8")
    assert config.load(str(path)) == made


@pytest.mark.parametrize("text", ["budget=maybe", "max_parallel=0", "nonsense=1", "task_cost=-1"])
def test_wrong_settings_are_refused(text: str) -> None:
    def read() -> None:
        key, value = config.parse_setting(text)
        config.checked(config.Config(**{key: value}), "here")  # type: ignore[arg-type]

    with pytest.raises(UsageError):
        read()


# --- state and log -----------------------------------------------------------------------------------


def home_with_run(tmp_path: Path) -> tuple[Home, Run]:
    home = Home(str(tmp_path))
    home.make_run("r1")
    task = Task("a", "A", "do a", depends=("b",), files=("x",), status="running", tokens=3)
    run = Run("r1", "main", tasks={"a": task}, batches=(Batch(1, ("a",)),))
    home.save(run)
    return home, run


def test_a_state_is_read_as_it_was_saved(tmp_path: Path) -> None:
    home, run = home_with_run(tmp_path)
    assert home.load("r1") == run
    assert home.run_ids() == ["r1"]
    assert home.next_run_id() == "r2"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": "r1"}', "\x00\x00"])
def test_what_is_no_state_is_refused(tmp_path: Path, text: str) -> None:
    home, _ = home_with_run(tmp_path)
    Path(home.run("r1", "state.json")).write_text(text, encoding="utf-8")
    with pytest.raises(StateUnreadable):
        home.load("r1")


def test_a_name_does_not_leave_its_directory(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    for name in ("../x", "/x", "..", "", "a b", ".hidden"):
        with pytest.raises(UsageError):
            home.run(name)
    with pytest.raises(Rejection):
        home.load("r9")


def test_a_half_written_event_is_cut_off(tmp_path: Path) -> None:
    home, _ = home_with_run(tmp_path)
    events = Events(home, "r1")
    events.say("run.start", tasks=1)
    events.close()
    log = Path(home.run("r1", "events.jsonl"))
    with log.open("ab") as file:
        file.write(b'{"ts": 1, "type": "tas')
    assert [one["type"] for one in read_events(home, "r1")] == ["run.start"]
    events = Events(home, "r1")
    events.say("task.complete", "a")
    events.close()
    found = read_events(home, "r1")
    assert [one["type"] for one in found] == ["run.start", "task.complete"]
    assert found[1]["task_id"] == "a"
    assert all(one["run_id"] == "r1" and one["ts"] > 0 for one in found)


def test_the_ledger_says_nothing_twice(tmp_path: Path) -> None:
    home, run = home_with_run(tmp_path)
    home.note_merged(run, {"a": "c1"})
    before = Path(home.file("ledger.json")).stat().st_ino
    home.note_merged(run, {"a": "c1"})
    assert Path(home.file("ledger.json")).stat().st_ino == before
    assert home.read_json("ledger.json") == {"r1/a": "c1"}


def test_a_link_is_removed_and_never_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("x", encoding="utf-8")
    (tmp_path / "link").symlink_to(kept)
    remove_tree(str(tmp_path / "link"))
    assert (kept / "file").exists()


# --- processes ---------------------------------------------------------------------------------------


def test_a_run_never_takes_the_processes_of_another_home_for_its_own(tmp_path: Path) -> None:
    """The first run of every home is called r1."""
    mine, others = Home(str(tmp_path / "mine")), Home(str(tmp_path / "others"))
    environment = {site.MARK: site.mark_of(others, "r1"), "TASK_ID": "a"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["/bin/cat"], env=environment, stdin=pipe, stdout=pipe, bufsize=0
    ) as other:
        try:
            assert other.stdin is not None
            assert other.stdout is not None
            other.stdin.write(b"there\n")
            assert other.stdout.readline() == b"there\n"  # before that its environment may be empty
            assert [one.pid for one in site.marked(others, "r1", "")] == [other.pid]
            assert [one.pid for one in site.marked(others, "r1", "a")] == [other.pid]
            assert site.marked(others, "r2", "") == site.marked(others, "r1", "b") == []
            assert site.marked(mine, "r1", "") == []
        finally:
            other.kill()


# --- plants ------------------------------------------------------------------------------------------


def test_the_table_and_the_source_name_the_same_plants() -> None:
    source = Path(values.__file__).parent
    text = "".join(path.read_text(encoding="utf-8") for path in source.glob("*.py"))
    assert len((*ROWS, *shown_plants.ROWS)) == len(BATCH_PLANTS) >= 20
    for name, one in BATCH_PLANTS.items():
        assert f'planted("{name}")' in text, name
        assert one.scenario
        assert one.rule.startswith("batch.")
        assert PLANTS[name] is one
