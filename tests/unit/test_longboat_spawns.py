"""The parts of `longboat bridge` and `longboat spawn`: mentions, bounds, queue, retries, database."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
from pathlib import Path

import pytest

from longboat.board.values import Refused, Unreadable
from longboat.errors import UsageError
from longboat.plants import SPAWN_PLANTS
from longboat.spawns import bridge, cli, database, ending, looking, runs, settings
from longboat.spawns.flow import Flow
from longboat.spawns.ledger import COMPLETED, FAILED, PENDING, QUEUED, REFUSED, RUNNING, Spawn
from longboat.spawns.mentions import mentioned
from longboat.spawns.office import Office
from longboat.spawns.providers import command_line, prompt_for, provider_for
from longboat.spawns.settings import Settings
from longboat.spawns.starting import MARK, Starter, mark_of
from longboat.workers.processes import identify

# --- mentions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@prime", ["prime"]),
        ("ask @prime, @Hailot; and @prime.", ["prime", "hailot"]),
        ("(@prime) *@hailot*", ["prime", "hailot"]),
        ("zwei\n@prime\n", ["prime"]),
        ("@sonne-lot- and @a_b", ["sonne-lot", "a_b"]),
        ("me@prime.org", []),
        ("path/@prime \\@prime -@prime @@prime", []),
        ("`@prime` and ``x ` @prime``", []),
        ("```\n@prime\n```\n@hailot", ["hailot"]),
        ("~~~ sh\n@prime\n", []),
        ("> said @prime\n  > @prime\n@hailot", ["hailot"]),
        ("@ prime, @-prime", []),
        ("ü@prime", []),
        ("", []),
    ],
)
def test_only_what_is_meant_is_a_mention(text: str, names: list[str]) -> None:
    assert mentioned(text) == names


# --- bounds, queue, retries, without a process ---------------------------------------------------------


class NoStarter(Starter):
    """Writes down whom it would have started; the supervisor of everybody is this process."""

    def __init__(self, home: str, ledger: object) -> None:
        super().__init__(home, ledger)  # type: ignore[arg-type]

    def _spawn(self, number: int) -> int:
        return os.getpid()


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    monkeypatch.delenv(MARK, raising=False)
    monkeypatch.setattr("longboat.spawns.office.Starter", NoStarter)
    home = str(tmp_path / "home")
    assert database.create(home, 30.0)
    office = Office(home, Settings(max_runs=5, max_running=4, grace_s=0.1, busy_s=30.0))
    office.database.execute("pragma synchronous=off")  # nobody cuts the power here
    bridge.create(office, "dev")
    bridge.create(office, "ops")
    for name in ("prime", "hailot", "auger"):
        runs.register(office, name, "claude", "")
    return office


def begin(office: Office, name: str) -> Spawn:
    """A run begins, as its supervisor writes it down; this process is its provider, too."""
    number = office.ledger.known(name).id
    with office.change() as flow:
        spawn = flow.ledger.fresh(number)
        myself = identify(os.getpid())
        assert myself is not None
        flow.ledger.move(
            number, RUNNING, "", attempt=spawn.attempt + 1, pid=None, start=None, began=0.0
        )
    return office.ledger.fresh(number)


def end(office: Office, name: str, problem: str = "") -> str:
    with office.change() as flow:
        return flow.after_attempt(flow.ledger.known(name), problem, 1 if problem else 0)


def say_from(
    office: Office, spawn: Spawn, text: str, monkeypatch: pytest.MonkeyPatch
) -> dict[str, object]:
    with monkeypatch.context() as inside:
        inside.setenv(MARK, mark_of(office.ledger, spawn, spawn.attempt))
        return bridge.send(office, spawn.channel, text, "")


def statuses(office: Office) -> list[tuple[str, str, str]]:
    return [(f"s{one.id}", one.status, one.reason) for one in office.ledger.spawns()]


def test_every_mention_has_a_row_in_the_same_transaction(office: Office) -> None:
    answer = bridge.send(office, "dev", "@prime @hailot @nobody @prime @human", "")
    assert [row["agent"] for row in answer["spawns"]] == ["prime", "hailot"]  # type: ignore[attr-defined]
    assert (answer["unknown"], answer["human"], answer["ended"]) == (["nobody"], True, False)
    assert statuses(office) == [("s1", PENDING, ""), ("s2", PENDING, "")]


def test_a_busy_agent_queues_by_channel(office: Office) -> None:
    for channel in ("dev", "dev", "ops", "dev"):
        bridge.send(office, channel, "@prime", "")
    assert [row[1] for row in statuses(office)] == [PENDING, QUEUED, PENDING, QUEUED]
    begin(office, "s1")
    assert end(office, "s1") == COMPLETED
    assert [row[1] for row in statuses(office)] == [COMPLETED, PENDING, PENDING, QUEUED]


def test_too_many_at_once_wait(office: Office) -> None:
    for name in ("one", "two"):
        runs.register(office, name, "claude", "")
    bridge.send(office, "dev", "@prime @hailot @auger @one @two", "")
    assert statuses(office)[-1] == ("s5", QUEUED, "too many")
    begin(office, "s2")
    end(office, "s2")
    assert statuses(office)[-1] == ("s5", PENDING, "")


def test_depth_self_and_number_are_bounded(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge.send(office, "dev", "@prime", "")
    first = begin(office, "s1")
    say_from(office, first, "@prime me", monkeypatch)
    assert statuses(office)[-1] == ("s2", REFUSED, "self")
    deep = first
    for name, other in (("s3", "hailot"), ("s4", "prime"), ("s5", "auger")):
        say_from(office, deep, f"@{other}", monkeypatch)
        if office.ledger.known(name).status == QUEUED:
            end(office, "s1")
        deep = begin(office, name)
    assert deep.depth == 3
    say_from(office, deep, "@hailot", monkeypatch)
    assert statuses(office)[-1] == ("s6", REFUSED, "depth")


def test_runs_of_one_root_are_bounded(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge.send(office, "dev", "@prime", "")
    first = begin(office, "s1")
    for _ in range(6):
        say_from(office, first, "@hailot", monkeypatch)
    found = [row[2] for row in statuses(office)]
    assert found.count("root_limit") == 2
    assert office.ledger.runs_of(1) == 5


def test_the_end_of_a_conversation(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge.send(office, "dev", "@prime @hailot", "")
    bridge.send(office, "dev", "@auger", "")
    first, other = begin(office, "s1"), begin(office, "s3")
    say_from(office, first, "@auger go on", monkeypatch)
    answer = say_from(office, first, "@human done, @hailot", monkeypatch)
    assert answer["ended"]
    assert statuses(office)[1:] == [
        ("s2", REFUSED, "ended"),
        ("s3", RUNNING, ""),
        ("s4", REFUSED, "ended"),
        ("s5", REFUSED, "ended"),
    ]
    assert end(office, "s1", "exit 1") == FAILED  # it has posted, and it is over
    assert end(office, f"s{other.id}", "exit 1") == PENDING


def test_a_failure_is_tried_again_once(office: Office) -> None:
    bridge.send(office, "dev", "@prime", "")
    begin(office, "s1")
    assert end(office, "s1", "exit 1") == PENDING
    assert begin(office, "s1").attempt == 2
    assert end(office, "s1", "timeout") == FAILED
    assert office.ledger.known("s1").reason == "timeout"


def test_what_has_posted_is_not_tried_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge.send(office, "dev", "@prime", "")
    say_from(office, begin(office, "s1"), "half of it", monkeypatch)
    assert end(office, "s1", "signal 9") == FAILED
    assert office.ledger.known("s1").reason == "signal 9; not tried again: it has posted"


def test_what_could_not_begin_fails(office: Office) -> None:
    bridge.send(office, "dev", "@prime", "")
    assert end(office, "s1", "provider missing") == FAILED


def test_a_run_that_is_over_says_nothing(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge.send(office, "dev", "@prime", "")
    first = begin(office, "s1")
    end(office, "s1", "exit 1")
    for attempt in (first, first._replace(attempt=2), first._replace(attempt=0)):
        with pytest.raises(Refused, match="is over"):
            say_from(office, attempt, "late", monkeypatch)
    begin(office, "s1")
    with pytest.raises(Refused, match="is over"):
        say_from(office, first, "from the first attempt", monkeypatch)
    assert len(office.ledger.messages("dev", 0, 100)) == 1


def test_a_run_speaks_for_itself(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge.send(office, "dev", "@prime", "")
    spawn = begin(office, "s1")
    monkeypatch.setenv(MARK, mark_of(office.ledger, spawn, 1))
    with pytest.raises(Refused, match="speaks as prime"):
        bridge.send(office, "dev", "x", "hailot")
    with pytest.raises(Refused):
        bridge.send(office, "nowhere", "x", "")
    monkeypatch.setenv(MARK, "another.s1.1")
    answer = bridge.send(office, "dev", "x", "")
    assert office.ledger.message(int(str(answer["message"]))).sender == "human"


# --- stop and heal -----------------------------------------------------------------------------------


def gone(office: Office, name: str) -> None:
    """The supervisor of this run has died: nobody has this start time."""
    with office.change() as flow:
        flow.ledger.set(flow.ledger.known(name).id, supervisor_start=1)


def test_stop_takes_only_what_was_named(office: Office) -> None:
    for _ in range(3):
        bridge.send(office, "dev", "@prime", "")
    assert ending.stop(office, ["s2"]) == ["s2"]
    gone(office, "s1")  # this process is no supervisor that may be killed
    assert ending.stop(office, ["s1"]) == ["s1"]
    assert [row[1] for row in statuses(office)] == ["stopped", "stopped", PENDING]
    with pytest.raises(Refused, match="stopped already"):
        ending.stop(office, ["s3", "s1"])
    with pytest.raises(Refused, match="no run"):
        ending.stop(office, ["s9"])
    assert office.ledger.known("s3").stopping == 0


def test_a_wish_to_stop_is_finished_by_the_next_command(office: Office) -> None:
    bridge.send(office, "dev", "@prime", "")
    begin(office, "s1")
    gone(office, "s1")
    with office.change() as flow:
        flow.ledger.set(1, stopping=1)
    bridge.send(office, "dev", "@hailot", "")
    assert statuses(office) == [("s1", "stopped", "stopped"), ("s2", PENDING, "")]


def test_the_dead_are_put_right(office: Office) -> None:
    bridge.send(office, "dev", "@prime @hailot", "")
    begin(office, "s1")
    gone(office, "s1")
    gone(office, "s2")
    assert {row["problem"] for row in looking.health(office)["problems"]} == {"dead"}  # type: ignore[attr-defined]
    went = ending.heal(office)
    assert went == {"failed": [], "retried": ["s1"], "stopped": []}
    assert [row[1] for row in statuses(office)] == [PENDING, PENDING]
    begin(office, "s1")
    gone(office, "s1")
    assert ending.heal(office)["failed"] == ["s1"]
    assert looking.health(office)["problems"] == []
    assert ending.heal(office) == {"failed": [], "retried": [], "stopped": []}


def test_what_a_dead_run_left_is_ended(office: Office) -> None:
    bridge.send(office, "dev", "@prime", "")
    spawn = begin(office, "s1")
    mark = mark_of(office.ledger, spawn, 1)
    left = os.posix_spawnp("sleep", ["sleep", "60"], {**os.environ, MARK: mark}, setsid=True)
    other = os.posix_spawnp("sleep", ["sleep", "60"], {**os.environ, MARK: f"{mark}1"})
    gone(office, "s1")
    ending.heal(office)
    assert os.waitstatus_to_exitcode(os.waitpid(left, 0)[1]) == -signal.SIGTERM
    assert identify(other) is not None
    os.kill(other, signal.SIGKILL)
    os.waitpid(other, 0)


# --- what only looks ---------------------------------------------------------------------------------


def test_the_chain_is_a_tree(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge.send(office, "dev", "@prime", "")
    say_from(office, begin(office, "s1"), "@hailot @auger", monkeypatch)
    bridge.send(office, "ops", "@hailot", "")
    text = str(looking.chain(office, "")["text"])
    shape = [line.split(" #")[0] for line in text.splitlines()]
    assert shape == ["s1 prime", "|-- s2 hailot", "`-- s3 auger", "s4 hailot"]
    assert str(looking.chain(office, "s2")["text"]).startswith("s2 hailot")
    with pytest.raises(Refused):
        looking.chain(office, "s9")


def test_health_names_the_silent(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge.send(office, "dev", "@prime @hailot @auger", "")
    for name in ("s1", "s2", "s3"):
        begin(office, name)
    monkeypatch.setattr("longboat.spawns.looking.time.monotonic", lambda: 1000.0)
    with office.change() as flow:
        flow.ledger.set(1, began=990.0, progress=990.0)
        flow.ledger.set(2, began=700.0, progress=700.0)
        flow.ledger.set(3, began=700.0, progress=710.0, session="x")
    found = {row["id"]: row["problem"] for row in looking.health(office)["problems"]}  # type: ignore[attr-defined]
    assert found == {"s2": "no_session", "s3": "stalled"}


def test_readers_lose_nothing(office: Office) -> None:
    for number in range(5):
        bridge.send(office, "dev", f"text {number}", "")
    first = bridge.receive(office, "dev", None, 2, "ann")
    again = bridge.receive(office, "dev", None, 2, "ann")
    assert first == again  # the answer was never written
    bridge.remember(office, "dev", "ann", first)
    rest = bridge.receive(office, "dev", None, -1, "ann")
    assert [row["id"] for row in rest["messages"]] == [3, 4, 5]  # type: ignore[attr-defined]
    assert len(bridge.receive(office, "dev", 0, -1, "")["messages"]) == 5  # type: ignore[arg-type]


# --- names, settings, launch forms -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "-x", "x-", "a b", "a/b", "human", "é", "x" * 41, "@x"])
def test_names_that_nobody_can_have(office: Office, name: str) -> None:
    with pytest.raises(Refused):
        runs.register(office, name, "claude", "")


def test_registering_again(office: Office) -> None:
    assert runs.register(office, "prime", "claude", "")["created"] is False
    with pytest.raises(Refused, match="already"):
        runs.register(office, "PRIME", "claude", "")
    with pytest.raises(Refused, match="already"):
        runs.register(office, "prime", "codex", "gpt-5")
    with pytest.raises(Refused, match="no provider"):
        runs.register(office, "new", "bard", "")


@pytest.mark.parametrize("text", ["", "  \n", "a\0b", "x" * 100_001])
def test_texts_that_are_none(office: Office, text: str) -> None:
    with pytest.raises(Refused, match="A text has"):
        bridge.send(office, "dev", text, "")
    assert office.ledger.messages("dev", 0, 10) == []


def test_launch_forms(office: Office) -> None:
    for model, provider, first in (
        ("gpt-5", "codex", ["codex", "exec", "--json"]),
        ("gemini-2.5-pro", "gemini", ["gemini", "--yolo"]),
        ("claude-haiku-4-5", "claude", ["claude", "--print"]),
    ):
        assert provider_for(model) == provider
        runs.register(office, f"of-{provider}", "", model)
        agent = office.ledger.agent(f"of-{provider}")
        assert agent is not None
        line = command_line(Settings(), agent)
        assert (line[: len(first)], line[-2:]) == (first, ["--model", model])


def test_a_prompt_has_the_whole_text(office: Office) -> None:
    bridge.send(office, "dev", "@prime {text} 100%\nline two", "ann")
    spawn = office.ledger.known("s1")
    prompt = prompt_for("mark", spawn, office.ledger.message(1))
    assert prompt.startswith("spawn_marker: mark\n")
    assert prompt.endswith("FROM: ann\nMESSAGE: 1\nTASK:\n@prime {text} 100%\nline two\n")


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGBOAT_SPAWNS_MAX_DEPTH", "7")
    monkeypatch.setenv("LONGBOAT_SPAWNS_TIMEOUT_S", "0.5")
    assert settings.load()[:2] == (7, 20)
    assert settings.load().timeout_s == 0.5
    for wrong in ("x", "-1"):
        monkeypatch.setenv("LONGBOAT_SPAWNS_RETRIES", wrong)
        with pytest.raises(UsageError):
            settings.load()


# --- the database ------------------------------------------------------------------------------------


def test_a_home_is_made_once(tmp_path: Path) -> None:
    home = str(tmp_path / "h")
    with pytest.raises(Refused) as told:
        database.connect(home, 0.1)
    assert told.value.error == "not_initialised"
    assert database.create(home, 30.0)
    assert not database.create(home, 30.0)
    with database.connect(home, 0.1) as opened:
        assert opened.execute("pragma journal_mode").fetchone()[0] == "wal"
        assert opened.execute("pragma synchronous").fetchone()[0] == 2


@pytest.mark.parametrize("damage", ["empty", "gone", "garbage", "other"])
def test_a_database_is_never_silently_a_new_one(tmp_path: Path, damage: str) -> None:
    home = tmp_path / "h"
    database.create(str(home), 30.0)
    path = home / "spawns.db"
    path.unlink()
    if damage == "empty":
        path.write_bytes(b"")
    elif damage == "garbage":
        path.write_bytes(b"not a database" * 1000)
    elif damage == "other":
        sqlite3.connect(path).execute("create table x (y)").connection.close()
    for does in (database.connect, database.create):
        with pytest.raises(Unreadable):
            does(str(home), 30.0)


def test_an_interrupted_init_is_repeated(tmp_path: Path) -> None:
    home = tmp_path / "h"
    database.create(str(home), 30.0)
    (home / "spawns.id").unlink()
    (home / "spawns.db.tmp").write_bytes(b"half")
    assert not database.create(str(home), 30.0)
    assert (home / "spawns.id").exists()


def test_a_held_database_is_busy(office: Office) -> None:
    holder = sqlite3.connect(Path(office.home) / "spawns.db", isolation_level=None)
    holder.execute("begin immediate")
    with pytest.raises(Refused) as told:
        bridge.send(Office(office.home, Settings(busy_s=0.1)), "dev", "@prime", "")
    assert told.value.answer()["happened"] == "no"
    assert told.value.error == "busy"
    holder.execute("rollback")
    assert office.ledger.messages("dev", 0, 10) == []


def test_nothing_of_a_failed_send_stays(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Spawn:
        raise OSError(24, "too many open files")

    monkeypatch.setattr(Flow, "mention", fails)
    with pytest.raises(OSError, match="too many"):
        bridge.send(office, "dev", "@prime", "")
    assert (office.ledger.messages("dev", 0, 10), office.ledger.spawns()) == ([], [])


# --- the command line --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("bridge", 2, "no command"),
        ("bridge nothing", 2, "unknown command"),
        ("bridge send dev", 2, "needs TEXT"),
        ("spawn stop", 2, "needs ID"),
        ("spawn run prime text", 2, "--channel"),
        ("spawn wait --timeout x", 2, "seconds"),
        ("spawn logs s1 --tail x", 2, "number"),
        ("spawn list extra", 2, "too many words"),
        ("bridge send nowhere text", 1, "no channel"),
        ("spawn run nobody text --channel dev --detach", 1, "no agent"),
        ("spawn stop s77", 1, "no run"),
        ("bridge create a/b", 1, "cannot be the name"),
    ],
)
def test_wrong_lines(
    office: Office, capsys: pytest.CaptureFixture[str], line: str, code: int, told: str
) -> None:
    words = line.split()
    assert cli.main([words[0], "--home", office.home, *words[1:]]) == code
    assert told in capsys.readouterr().err


def test_answers_are_one_line(office: Office, capsys: pytest.CaptureFixture[str]) -> None:
    for line in (
        "bridge channels",
        "bridge recv dev",
        "spawn agents",
        "spawn list",
        "spawn health",
    ):
        words = line.split()
        assert cli.main([*words, "--json", "--home", office.home]) == 0
        out = capsys.readouterr().out
        assert out.startswith('{"ok":true,')
        assert out.count("\n") == 1


# --- plants ------------------------------------------------------------------------------------------


def test_every_plant_is_somewhere_in_the_code() -> None:
    place = Path(cli.__file__).parent
    code = "".join(path.read_text() for path in place.glob("*.py") if path.name != "plants.py")
    asked = {
        name
        for names in re.findall(r"planted\(([^)]*)\)", code)
        for name in re.findall(r'"([a-z-]+)"', names)
    }
    assert asked == set(SPAWN_PLANTS)
    assert len(asked) >= 20
    assert len({plant.rule for plant in SPAWN_PLANTS.values()}) >= 20
