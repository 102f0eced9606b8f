"""`longboat crew` as a program: agents, deaths, takeovers, and the plants that live there."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from board_bench import LIMIT_S, LONGBOAT, Crew, agent_command, environment, plant, runs

from longboat.board.config import Config
from longboat.board.journal_store import JournalStore
from longboat.board.values import Command, NewTask
from longboat.workers.processes import identify

Serve = Callable[..., Crew]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Crews on one directory; whatever a test does, none stays."""
    started: list[Crew] = []

    def start(*words: str, agents: int = 0, plants: str = "", **settings: object) -> Crew:
        command = agent_command(tmp_path)
        given = {"retry_base_s": 0.001, "lease_s": 60, **settings}
        crew = Crew(
            tmp_path / "c",
            *("--agents", str(agents), "--agent-command", command, *words),
            plants=plants,
            **given,
        )
        started.append(crew)
        return crew

    yield start
    for crew in started:
        if crew.process.poll() is None:
            crew.terminate()
        crew.close()


def settled(tasks: dict[str, Any]) -> bool:
    return all(task["status"] in ("done", "failed", "cancelled") for task in tasks.values())


def open_gate(tmp_path: Path, times: int = 1) -> None:
    with open(tmp_path / "gate", "r+b", buffering=0) as gate:
        gate.write(b"x" * times)


def test_agents_work_in_the_order_of_the_dependencies(tmp_path: Path, serve: Serve) -> None:
    crew = serve(agents=2, breaker_failures=100).ready()
    new = (
        NewTask("x", "c", depends=("a", "b")),
        NewTask("x", "a"),
        NewTask("x", "b", depends=("a",)),
        NewTask("crash", "d"),
        NewTask("wrong", "e", max_attempts=1),
    )
    assert crew.ask("add-batch", new=new)["ok"]
    tasks = crew.until(settled)
    assert {name: task["status"] for name, task in tasks.items()} == {
        **dict.fromkeys("abc", "done"),
        **dict.fromkeys("de", "failed"),
    }
    assert tasks["b"]["output"] == "did b"
    assert [name for name in runs(tmp_path) if name in "abc"] == ["a", "b", "c"]
    assert runs(tmp_path).count("d") == 3
    status = crew.ask("status")
    assert {agent["alive"] for agent in status["agents"].values()} == {False}  # type: ignore[attr-defined]
    second = subprocess.run(
        [*LONGBOAT, "crew", "serve", "--dir", str(tmp_path / "c")],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=environment(),
    )
    assert (second.returncode, "already" in second.stderr) == (1, True)
    shown = subprocess.run(
        [*LONGBOAT, "crew", "--dir", str(tmp_path / "c"), "list"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert "did" not in shown.stdout
    assert len(shown.stdout.splitlines()) == 5


def test_an_agent_that_cannot_start_opens_the_breaker(tmp_path: Path, serve: Serve) -> None:
    crew = serve("--agent-command", "/nowhere/agent", agents=1, breaker_open_s=600).ready()
    crew.add("a")
    tasks = crew.until(lambda tasks: tasks["a"]["attempts"] == 3)
    assert "cannot be started" in tasks["a"]["reason"]
    crew.add("b")
    refused = crew.ask("claim", worker="w")
    assert refused["error"] == "breaker_open"


def in_progress(tasks: dict[str, Any]) -> bool:
    return bool(tasks["a"]["status"] == "in_progress")


def test_a_good_end_returns_claims_untouched(tmp_path: Path, serve: Serve) -> None:
    crew = serve(agents=1).ready()
    crew.add("a", text="slow")
    crew.until(in_progress)
    assert crew.terminate() == 0
    crew = serve().ready()
    task = crew.tasks()["a"]
    assert (task["status"], task["attempts"]) == ("available", 0)


def waiting_for_two_runs(tmp_path: Path, crew: Crew) -> list[int]:
    crew.until(lambda tasks: in_progress(tasks) and len(runs(tmp_path)) == 2)
    pids = [int(line.split()[1]) for line in (tmp_path / "log").read_text().splitlines()]
    return [pid for pid in pids if identify(pid) is not None]


@pytest.mark.parametrize("plants", ["", "crew-resumes-running"])
def test_after_a_kill_no_task_runs_twice(tmp_path: Path, serve: Serve, plants: str) -> None:
    crew = serve(agents=1).ready()
    crew.add("a", text="slow")
    crew.until(lambda tasks: in_progress(tasks) and runs(tmp_path) == ["a"])
    crew.kill()
    crew = serve(agents=1, plants=plants).ready()
    living = waiting_for_two_runs(tmp_path, crew)
    assert len(living) == (2 if plants else 1)
    open_gate(tmp_path, len(living))
    tasks = crew.until(settled)
    assert (tasks["a"]["status"], tasks["a"]["completions"]) == ("done", 1)


def test_a_standby_takes_over_from_the_dead_and_from_the_sleeping(
    tmp_path: Path, serve: Serve
) -> None:
    first = serve(leader_lease_s=0.5).ready()
    assert first.add("a")["ok"]
    second = serve("--standby", leader_lease_s=0.5)
    assert second.line() == "crew is standing by"
    first.kill()
    assert set(second.ready().tasks()) == {"a"}
    third = serve("--standby", leader_lease_s=0.5)
    assert third.line() == "crew is standing by"
    second.process.send_signal(signal.SIGSTOP)
    third.ready()
    assert third.add("b")["ok"]
    second.process.send_signal(signal.SIGCONT)
    assert second.process.wait(LIMIT_S) == 1, "the fenced one stops by itself"
    assert set(third.tasks()) == {"a", "b"}


def test_a_second_crew_is_allowed_only_with_the_plant(tmp_path: Path, serve: Serve) -> None:
    serve(plants="second-crew-allowed").ready()
    second = serve()
    assert (second.line(), second.process.wait(LIMIT_S)) == ("", 1)
    serve(plants="second-crew-allowed").ready()


@pytest.mark.parametrize("plants", ["", "crew-ignores-dag"])
def test_the_order_is_ignored_only_with_the_plant(
    tmp_path: Path, serve: Serve, plants: str
) -> None:
    crew = serve(agents=1, plants=plants).ready()
    crew.ask("add-batch", new=(NewTask("x", "b", depends=("a",)), NewTask("x", "a")))
    crew.until(settled)
    assert runs(tmp_path) == (["b", "a"] if plants else ["a", "b"])


@pytest.mark.parametrize("plants", ["", "dead-agent-kept-fresh"])
def test_a_dead_agent_keeps_its_task_only_with_the_plant(
    tmp_path: Path, serve: Serve, plants: str
) -> None:
    crew = serve(agents=2, plants=plants).ready()
    crew.add("a", text="crash")
    crew.until(lambda tasks: "a" in runs(tmp_path))
    if not plants:
        assert crew.until(settled)["a"]["status"] == "failed"
        return
    crew.add("b")
    tasks = crew.until(lambda tasks: tasks["b"]["status"] == "done")
    assert (tasks["a"]["status"], tasks["a"]["attempts"]) == ("in_progress", 0)


@pytest.mark.parametrize("plants", ["", "dead-agent-reported-healthy"])
def test_a_dead_agent_is_healthy_only_with_the_plant(serve: Serve, plants: str) -> None:
    crew = serve(agents=1, plants=plants).ready()
    crew.add("a", text="crash")
    crew.until(settled)
    agents = crew.ask("status")["agents"]
    assert agents["agent-1"]["alive"] is bool(plants)  # type: ignore[index]


def test_nobody_to_ask_is_said(tmp_path: Path) -> None:
    from longboat.board.crew import ask

    assert ask(str(tmp_path), Command("status"), 1.0)["error"] == "not_running"


def test_a_deadlock_is_said_and_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = JournalStore(str(tmp_path), Config())
    plant(monkeypatch, "cycle-accepted")
    new = (NewTask("x", "a", depends=("b",)), NewTask("x", "b", depends=("a",)))
    assert store.execute(Command("add-batch", new=new))["ok"]
    plant(monkeypatch)
    store.settle_deadlock()
    assert store.execute(Command("status"))["deadlock"] == ["a", "b"]
    assert store.execute(Command("status"))["counts"]["failed"] == 2  # type: ignore[index]


# --- the journal ----------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> JournalStore:
    """A board in a journal of five lines."""
    store = JournalStore(str(tmp_path), Config())
    for name in "abcd":
        store.execute(Command("add", new=(NewTask("x", name),)))
    return store


def names(store: JournalStore) -> list[str]:
    listed = store.execute(Command("list"))
    assert listed["ok"], listed
    return [task["id"] for task in listed["tasks"]]  # type: ignore[attr-defined]


def test_a_torn_tail_is_cut_at_every_length(tmp_path: Path, store: JournalStore) -> None:
    """As a crash tears it: the mirror does not have that line yet."""
    path, mirror = tmp_path / "crew.journal", tmp_path / "crew.mirror"
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for length in range(last, len(whole), 40):
        for junk in (b"", b"\0" * 100):
            path.write_bytes(whole[:length] + junk)
            mirror.write_bytes(whole[:last])
            assert names(JournalStore(str(tmp_path), Config())) == ["a", "b", "c"]


def test_a_damaged_tail_is_made_good_at_every_length(tmp_path: Path, store: JournalStore) -> None:
    path, mirror = tmp_path / "crew.journal", tmp_path / "crew.mirror"
    whole = path.read_bytes()
    for length in range(whole.find(b"\n") + 1, len(whole), 40):
        for first, second in ((path, mirror), (mirror, path)):
            first.write_bytes(whole[:length])
            second.write_bytes(whole)
            assert names(JournalStore(str(tmp_path), Config())) == ["a", "b", "c", "d"]


def test_a_damaged_line_comes_from_the_mirror(tmp_path: Path, store: JournalStore) -> None:
    path = tmp_path / "crew.journal"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"b"', b'"B"')
    path.write_bytes(b"".join(lines))
    store = JournalStore(str(tmp_path), Config())
    assert store.execute(Command("list"))["error"] == "unreadable"
    assert store.execute(Command("repair"))["from"] == "crew.journal, crew.mirror"
    assert names(store) == ["a", "b", "c", "d"]


def test_a_lost_beginning_is_mended_from_a_backup(tmp_path: Path, store: JournalStore) -> None:
    path = tmp_path / "crew.journal"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([b"rubbish\n", *lines[1:]]))
    (tmp_path / "crew.mirror").unlink()
    store = JournalStore(str(tmp_path), Config())
    assert store.execute(Command("list"))["error"] == "unreadable"
    assert store.execute(Command("repair"))["ok"]
    assert names(store) == ["a", "b", "c", "d"]


def test_a_long_journal_is_compacted(tmp_path: Path) -> None:
    store = JournalStore(str(tmp_path), Config(compact_after=5))
    for number in range(20):
        store.execute(Command("add", new=(NewTask("x", f"t{number}"),)))
    assert len((tmp_path / "crew.journal").read_bytes().splitlines()) <= 6
    assert len(names(JournalStore(str(tmp_path), Config()))) == 20
    assert len(list((tmp_path / "backups").iterdir())) <= 3
