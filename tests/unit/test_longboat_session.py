"""The parts of `longboat session`: checkpoints, policy, limits, votes, projects, gates, model."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from longboat.errors import UsageError
from longboat.plants import PLANTS, SESSION_PLANTS
from longboat.session import config, gates, model, project, proving, recovery, values, votes
from longboat.session.checkpoints import (
    FIELDS,
    Checkpoints,
    Invalid,
    applied,
    changes,
    envelope,
    file_bytes,
    file_entry,
    opened,
)
from longboat.session.clock import Clock
from longboat.session.config import Config
from longboat.session.home import Home, Session
from longboat.session.limits import Window
from longboat.session.logs import Lines, read_lines
from longboat.session.policy import Tries, next_step
from longboat.session.project import Project
from longboat.session.repository import Repository
from longboat.session.saving import Saving
from longboat.session.site import first_state, payload_of
from longboat.session.tools import Tools
from longboat.session.values import CHECKS, Json, Refused
from mutiny.doubles.model_api.api import ModelApi
from mutiny.doubles.model_api.script import Step, Tool, simple_script


@pytest.fixture(scope="module")
def demo() -> Project:
    return project.read(project.find("demo"))


def payload(demo: Project, number: int = 0, **more: Any) -> Json:
    made = payload_of(first_state(demo), number, "s1", 1.0, "time", "")
    return {**made, "validation": dict.fromkeys(CHECKS, True), **more}


# --- checkpoints --------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path: Path, demo: Project) -> Checkpoints:
    """Two checkpoints, the first with two lines behind it."""
    checkpoints = Checkpoints(str(tmp_path), "s1")
    base = payload(demo)
    tip = checkpoints.write(base)
    now = base
    for count, name in enumerate(("a.py", "b.py"), 1):
        files = {**now["file_system_state"], name: file_entry(name.encode())}
        new = {**now, "file_system_state": files}
        known = {"session_id": "s1", "base": 0, "delta": count, "previous": tip, "why": "task"}
        line = {**known, "timestamp": 5, "elapsed_s": 2.0 + count, **changes(now, new)}
        tip, now = checkpoints.append(line), new
    checkpoints.write({**now, "number": 1, "elapsed_s": 9.0})
    return checkpoints


def damage(path: str, at: int = 200) -> None:
    data = bytearray(Path(path).read_bytes())
    data[at] ^= 1
    Path(path).write_bytes(bytes(data))


def test_the_last_valid_one_is_the_newest(kept: Checkpoints) -> None:
    found = kept.last_valid()
    assert found is not None
    assert (found.chain.payload["number"], found.fell_back) == (1, [])
    assert set(found.chain.payload["file_system_state"]) == {"a.py", "b.py"}


def test_a_damaged_one_falls_back_to_the_one_before_with_all_its_lines(kept: Checkpoints) -> None:
    damage(kept.path(1))
    found = kept.last_valid()
    assert found is not None
    assert (found.chain.payload["number"], found.chain.deltas) == (0, 2)
    assert set(found.chain.payload["file_system_state"]) == {"a.py", "b.py"}
    assert found.fell_back[0]["checkpoint"] == 1
    assert [row["valid"] for row in kept.survey()] == [True, False]


@pytest.mark.parametrize("ending", ["json", "delta.jsonl"])
def test_one_that_cannot_be_read_is_not_taken_for_a_damaged_one(
    kept: Checkpoints, tmp_path: Path, ending: str
) -> None:
    path = Path(kept.path(kept.numbers()[-1], ending))
    path.unlink(missing_ok=True)
    path.symlink_to(path)  # opening it fails, as without permission, and also for root
    with pytest.raises(Refused, match=r"The system refused: .*cannot be read"):
        kept.last_valid()
    session = SimpleNamespace(checkpoints=kept, name="s1")
    for number in (None, kept.numbers()[-1]):
        with pytest.raises(Refused) as refusal:
            recovery.wanted(session, number)  # type: ignore[arg-type]
        assert refusal.value.kind == "system"
    assert recovery.wanted(session, kept.numbers()[-2])  # type: ignore[arg-type]
    assert kept.survey()[-1]["valid"] is False, "whoever looks at all of them sees the others"


def test_behind_a_bad_line_nothing_counts(kept: Checkpoints) -> None:
    Path(kept.path(1)).unlink()
    damage(kept.path(0, "delta.jsonl"))
    found = kept.last_valid()
    assert found is not None
    assert (found.chain.deltas, found.chain.lines) == (0, 2)
    assert found.fell_back[0]["delta"] == 1
    assert found.chain.payload["file_system_state"] == {}


def test_an_unfinished_line_is_left_out_and_told(kept: Checkpoints) -> None:
    Path(kept.path(1)).unlink()
    path = Path(kept.path(0, "delta.jsonl"))
    path.write_bytes(path.read_bytes()[:-5])
    found = kept.last_valid()
    assert found is not None
    assert found.chain.deltas == 1
    assert "unfinished" in found.fell_back[0]["why"]


def test_when_none_is_left_nothing_is_invented(kept: Checkpoints, tmp_path: Path) -> None:
    damage(kept.path(0))
    damage(kept.path(1))
    found = kept.last_valid()
    assert found is not None
    assert found.chain.payload == {}
    session = Session(Home(str(tmp_path)), "s1")
    session.checkpoints = kept
    with pytest.raises(Refused) as refused:
        recovery.wanted(session, None)
    assert refused.value.kind == "all_invalid"
    with pytest.raises(Refused, match="no checkpoint 7"):
        recovery.wanted(session, 7)


@pytest.mark.parametrize("missing", FIELDS)
def test_a_checkpoint_without_one_of_its_fields_is_not_valid(
    tmp_path: Path, demo: Project, missing: str
) -> None:
    checkpoints = Checkpoints(str(tmp_path), "s1")
    made = payload(demo)
    del made[missing]
    Path(checkpoints.path(0)).write_bytes(envelope(made))
    with pytest.raises(Invalid, match=missing):
        checkpoints.read(0)


@pytest.mark.parametrize("check", CHECKS)
def test_a_checkpoint_that_fails_one_of_its_checks_is_not_valid(
    tmp_path: Path, demo: Project, check: str
) -> None:
    checkpoints = Checkpoints(str(tmp_path), "s1")
    checkpoints.write(payload(demo, validation={**dict.fromkeys(CHECKS, True), check: False}))
    with pytest.raises(Invalid, match=check):
        checkpoints.read(0)


def test_a_checkpoint_of_another_session_or_number_is_not_valid(
    tmp_path: Path, demo: Project
) -> None:
    Checkpoints(str(tmp_path), "s2").write(payload(demo))
    with pytest.raises(Invalid, match="session"):
        Checkpoints(str(tmp_path), "s2").read(0)
    Checkpoints(str(tmp_path), "s1").write(payload(demo, number=0))
    Path(tmp_path, "000000.json").rename(tmp_path / "000003.json")
    with pytest.raises(Invalid, match="number"):
        Checkpoints(str(tmp_path), "s1").read(3)


def test_changes_applied_give_the_new_state(demo: Project) -> None:
    old = payload(demo)
    new = json.loads(json.dumps(old))
    new["tasks"]["core-1"]["status"] = "done"
    new["working_memory"]["x"] = "y"
    new["file_system_state"] = {"a": file_entry(b"\xff\x00")}
    line = {**changes(old, new), "elapsed_s": 1.0, "timestamp": old["timestamp"]}
    assert set(line["tasks"]) == {"core-1"}
    assert applied(old, line) == new
    gone = {**changes(new, old), "elapsed_s": 1.0, "timestamp": old["timestamp"]}
    assert applied(new, gone) == old


class OnceInTrouble(Saving):
    """Its first try to write a checkpoint fails."""

    trouble: Exception | None = None

    def write(self, trigger: str) -> Json:
        trouble, self.trouble = self.trouble, None
        if trouble is not None:
            raise trouble
        return {"trigger": trigger}


@pytest.mark.parametrize(
    ("trouble", "left"),
    [(OSError(errno.ENOSPC, "full"), [1, 2]), (Invalid("it would not be valid"), [0, 1, 2])],
)
def test_only_a_full_disk_costs_old_checkpoints(
    kept: Checkpoints, demo: Project, trouble: Exception, left: list[int]
) -> None:
    kept.write(payload(demo, 2))
    quiet: Any = SimpleNamespace(active_tools=list, halted=True)
    site: Any = SimpleNamespace(
        session=SimpleNamespace(checkpoints=kept),
        state=first_state(demo),
        config=Config(),
        clock=Clock(0.0),
        phase=demo.phases[0],
        spent=SimpleNamespace(tool_calls=0, tokens=0),
        base_calls=0,
        base_tokens=0,
        say=lambda *_, **__: None,
    )
    saving = OnceInTrouble(site, quiet, quiet)
    saving.trouble = trouble
    made: list[Json] = []
    saving.want("time", made.append)
    assert made == [{"trigger": "time"}]
    assert kept.numbers() == left


def test_an_envelope_that_does_not_agree_is_refused() -> None:
    line = envelope({"a": 1})
    assert opened(line, "it")[0] == {"a": 1}
    for bad in (line.replace(b'"a":1', b'"a":2'), b"{}", b"x", b'{"sha256":1,"payload":[]}'):
        with pytest.raises(Invalid):
            opened(bad, "it")
    assert file_bytes(file_entry(b"\xff")) == b"\xff"
    with pytest.raises(Invalid):
        file_bytes({"sha256": "0", "text": "x"})


def test_lines_are_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b"')
    lines = Lines(str(path))
    lines.say({"c": 3}, sync=True)
    lines.close()
    assert list(read_lines(str(path))) == [{"a": 1}, {"c": 3}]


# --- policy, limits, votes, time ------------------------------------------------------------------------


def steps(kind: str, count: int, retry_after_s: float | None = None) -> list[tuple[str, float]]:
    tries, found = Tries(), []
    for _ in range(count):
        step = next_step(kind, tries, Config(), 0.0, retry_after_s)
        found.append((step.action, step.wait_s))
        tries = step.tries
    return found


def test_a_transient_error_is_retried_at_once_then_later_then_elsewhere_then_not() -> None:
    waits = [("backoff", wait_s) for wait_s in (5.0, 10.0, 20.0, 40.0, 60.0)]
    once = [("retry", 0.0)] * 3 + waits
    assert steps("network_timeout", 18) == [*once, ("switch", 0.0), *once, ("give_up", 0.0)]


def test_a_rate_limit_waits_as_it_was_told_but_not_for_ever() -> None:
    assert steps("rate_limit", 2, 30.0) == [("backoff", 30.0), ("backoff", 30.0)]
    assert steps("rate_limit", 1, 1.0) == [("backoff", 5.0)]
    assert steps("rate_limit", 1, 9999.0) == [("backoff", 300.0)]


def test_a_window_forgets_after_an_hour() -> None:
    window = Window()
    window.add(0.0, 60)
    window.add(1800.0, 30)
    assert window.wait_s(1800.0, 10, 100) == 0.0
    assert window.wait_s(1800.0, 20, 100) == 1800.0
    assert window.used(3600.0) == 30
    assert Window().wait_s(0.0, 500, 100) == 0.0


def test_trust_decides_and_priority_when_nobody_wins() -> None:
    ballots = {"archie": "a", "cody": "b"}
    assert votes.winner(ballots, {"archie": 0.9, "cody": 0.5}) == "a"
    assert votes.winner(ballots, {"archie": 0.5, "cody": 0.5}) is None
    assert votes.winner({}, {}) is None
    roles = {"archie": "architect", "cody": "coder"}
    assert votes.by_priority(ballots, roles) == ("a", "archie")
    assert votes.by_priority({}, roles) is None
    assert votes.ballot("I say yes.", ["yes", "no"]) == "yes"
    assert votes.ballot("yes or no", ["yes", "no"]) is None


def test_time_stands_still_while_paused() -> None:
    clock = Clock(100.0)
    done: list[str] = []
    clock.after(0.0, lambda: done.append("due"))
    clock.pause()
    at = clock.now()
    clock.run_due()
    assert (clock.now(), done, clock.next_due_s()) == (at, [], None)
    clock.resume()
    clock.run_due()
    assert done == ["due"]
    assert clock.now() >= at >= 100.0


# --- settings and projects --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "idle_s = -1",
        "nothing = 1",
        "model = 5",
        "idle_s = true",
        "deadlock = 'x'",
        "[",
        "metrics_s = 0",
    ],
)
def test_bad_settings_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"config\.toml"):
        config.load(str(path))


def test_the_environment_overrides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGBOAT_SESSION_IDLE_S", "0.5")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://x")
    made = config.load(str(tmp_path / "none.toml"))
    assert (made.idle_s, made.model_url, made.total_tokens) == (0.5, "http://x", 5_000_000)


@pytest.mark.parametrize("name", project.shipped())
def test_shipped_projects_make_sense_and_have_a_script(name: str) -> None:
    path = project.find(name)
    made = project.read(path)
    assert [phase.checkpoint_minutes for phase in made.phases] == [15, 20, 20, 10]
    assert [phase.minutes for phase in made.phases] == [60, 120, 120, 60]
    script = project.script(path)
    written = {
        tool["input"]["path"]
        for rule in script["rules"]
        for tool in rule["steps"][0].get("tools", [])
        if tool["name"] == "write_file"
    }
    place = Path(path).parent / "files"
    there = {str(one.relative_to(place)) for one in place.rglob("*") if one.is_file()}
    assert {name for name in there if "__pycache__" not in name} == written


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"name": ""}, "has a name"),
        ({"extra": 1}, "unknown key"),
        ({"tasks": [{"id": "x"}]}, "is missing"),
        ({"phases": 5}, "not a list"),
        ({"agents": [{"name": "a", "role": "king"}]}, "role"),
    ],
)
def test_a_bad_project_is_refused_with_words(change: Json, word: str) -> None:
    import tomllib

    good = tomllib.loads(Path(project.find("demo")).read_text(encoding="utf-8"))
    with pytest.raises(Refused, match=word) as refused:
        project.parse({**good, **change}, "it")
    assert refused.value.kind == "bad_project"


def test_a_project_that_leaves_its_place_or_needs_the_future_is_refused() -> None:
    import tomllib

    good = tomllib.loads(Path(project.find("demo")).read_text(encoding="utf-8"))
    good["tasks"][0]["files"] = ["../x"]
    good["tasks"][1]["needs"] = ["fin-2"]
    with pytest.raises(Refused, match="outside of the project") as refused:
        project.parse(good, "it")
    assert "no earlier task" in str(refused.value)
    with pytest.raises(Refused, match="no project"):
        project.find("nothing-like-this")


def test_names_cannot_leave_their_directory(tmp_path: Path) -> None:
    for bad in ("..", "a/b", "", "x" * 50):
        with pytest.raises(UsageError):
            values.check_name(bad, "session")
    with pytest.raises(Refused, match="no sessions"):
        Home(str(tmp_path)).session("")
    with pytest.raises(Refused, match="There is no session 'nope'"):
        Home(str(tmp_path)).session("nope")


# --- what agents do ---------------------------------------------------------------------------------------


@pytest.fixture
def api() -> Iterator[ModelApi]:
    with ModelApi() as made:
        yield made


def asked(api: ModelApi, step: Step, timeout_s: float = 5.0) -> Json:
    api.set_script(simple_script(step))
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    return model.ask(api.url, body, timeout_s)


def test_an_answer_is_text_tools_and_tokens(api: ModelApi) -> None:
    tool = Tool("write_file", {"path": "ä", "content": "x\ny"})
    said = asked(api, Step(text="Well, well.", tools=(tool,)))
    assert said["text"] == "Well, well."
    assert [(one["name"], one["input"]) for one in said["tools"]] == [(tool.name, tool.input)]
    assert said["input_tokens"] > 0
    assert said["output_tokens"] > 0


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("429", "rate_limit"),
        ("529", "overload"),
        ("500", "overload"),
        ("reset", "network_timeout"),
        ("close", "network_timeout"),
        ("close-midway", "network_timeout"),
        ("truncated", "network_timeout"),
        ("malformed-json", "parse_failure"),
        ("malformed-event", "parse_failure"),
        ("error-event", "overload"),
    ],
)
def test_every_fault_of_the_model_has_its_kind(api: ModelApi, fault: str, kind: str) -> None:
    with pytest.raises(model.Failed) as failed:
        asked(api, Step(text="a b c d e f", fault=fault, retry_after_s=7))
    assert failed.value.kind == kind
    assert failed.value.retry_after_s == (
        7.0 if kind != "parse_failure" and fault in ("429", "529", "500") else None
    )


@pytest.mark.parametrize("fault", ["hang", "stall"])
def test_silence_ends_at_the_deadline(api: ModelApi, fault: str) -> None:
    with pytest.raises(model.Failed) as failed:
        asked(api, Step(text="a b c d e f", fault=fault), 0.3)
    assert failed.value.kind == "network_timeout"


def test_tools_write_exactly_what_was_asked_and_stay_inside(tmp_path: Path) -> None:
    tools = Tools(str(tmp_path), lambda: None)

    def use(name: str, **given: object) -> Json:
        return tools.use(name, dict(given), 5.0, 5.0)

    text = "ä = 1\r\n"
    done = use("write_file", path="a/b.txt", content=text)
    assert done["ok"]
    assert (tmp_path / "a" / "b.txt").read_bytes() == text.encode()
    assert done["sha256"] == values.digest(text.encode())
    (tmp_path / "out").symlink_to("/tmp")
    for path in ("../x", "/etc/x", ".git/config", "", "out/x"):
        assert use("write_file", path=path, content="x")["error"] == "refused"
    assert use("write_file", path="bad.py", content="def (")["error"] == "refused"
    assert not (tmp_path / "bad.py").exists()
    assert use("fly")["error"] == "refused"
    assert use("run", argv=["sh", "-c", "echo hi; exit 3"])["code"] == 3
    assert tools.use("run", {"argv": ["sleep", "60"]}, 0.2, 5.0)["error"] == "timeout"


def test_coverage_is_measured(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").touch()
    source = "def sign(x):\n    if x < 0:\n        return -1\n    return 1\n"
    (tmp_path / "sign.py").write_text(source, encoding="utf-8")
    test = "import unittest\nfrom sign import sign\nclass T(unittest.TestCase):\n"
    test += "    def test_plus(self):\n        self.assertEqual(sign(1), 1)\n"
    test += "    def test_bad(self):\n        self.fail()\n"
    (tmp_path / "tests" / "test_sign.py").write_text(test, encoding="utf-8")
    argv = [sys.executable, "-m", "longboat.session.proving", str(tmp_path)]
    done = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)
    assert (done["total"], done["passed"], done["failed"], done["coverage"]) == (2, 1, 1, 75.0)
    assert proving.lines_of(str(tmp_path / "sign.py")) == {1, 2, 3, 4}


def test_a_repository_comes_back_exactly_even_without_its_objects(tmp_path: Path) -> None:
    repository = Repository(str(tmp_path / "project"))
    repository.create()
    file = tmp_path / "project" / "a.txt"
    file.write_text("one\n", encoding="utf-8")
    commit = repository.commit("one")
    files = repository.snapshot()
    file.write_text("two\n", encoding="utf-8")
    (tmp_path / "project" / "new.txt").touch()
    (tmp_path / "project" / "half.tmp").touch()
    assert not repository.is_clean()
    assert repository.put_back(files, commit) == commit
    assert (repository.paths(unfinished=True), file.read_text(encoding="utf-8")) == (
        ["a.txt"],
        "one\n",
    )
    for one in (tmp_path / "project" / ".git" / "objects").iterdir():
        if len(one.name) == 2:
            for loose in one.iterdir():
                loose.unlink()
    new = repository.put_back(files, commit)
    assert new != commit
    assert repository.is_clean()
    assert file.read_text(encoding="utf-8") == "one\n"


# --- gates and plants -------------------------------------------------------------------------------------


def test_gates_look_at_the_project_itself() -> None:
    bad = "import pickle\neval('1')\n"
    assert len(gates.security_findings({"a.py": bad, "tests/t.py": bad})) == 2
    assert gates.compiles({"a.py": "x = 1"})
    assert not gates.compiles({"a.py": "x ="})
    assert (
        gates.documented({"README.md": "x", "a.py": '"""Doc."""\ndef f():\n    """Doc."""\n'})
        == 1.0
    )
    assert gates.documented({"README.md": "x", "a.py": '"""Doc."""\ndef f(): pass\n'}) < 1.0


def test_the_table_and_the_source_name_the_same_plants() -> None:
    source = Path(values.__file__).parent
    text = "".join(path.read_text(encoding="utf-8") for path in source.glob("*.py"))
    assert len(SESSION_PLANTS) >= 20
    for name, one in SESSION_PLANTS.items():
        assert f'"{name}"' in text, name
        assert one.scenario
        assert one.rule.startswith("session.")
        assert PLANTS[name] is one
