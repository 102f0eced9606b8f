"""A target file proposed from a program's help and from what it made: pure parts on real forms of help."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mutiny.contracts.catalogue import contract_named, with_targets
from mutiny.errors import FormatError
from mutiny.targets.board.proposal import HINTS as BOARD_HINTS
from mutiny.targets.board.spec import BoardSpec
from mutiny.targets.discover.help_text import Usage, about_in, commands_in, usage_in
from mutiny.targets.discover.program import (
    MOST_ASKED,
    Discovery,
    Found,
    Look,
    Source,
    Tried,
    spoken,
    value_of,
    variables_asked,
)
from mutiny.targets.discover.proposal import hints_of, pattern_of, proposed, skeleton
from mutiny.targets.discover.records import Place, fields_of, likely, places_of
from mutiny.targets.kit.hints import Hint
from mutiny.targets.workers.proposal import HINTS
from mutiny.targets.workers.spec import TargetSpec

TYPER = """
 Usage: par [OPTIONS] COMMAND [ARGS]...

╭─ Options ────────────────────────────────╮
│ --version   -v   <bool>  Show version.   │
╰──────────────────────────────────────────╯
╭─ Commands ───────────────────────────────╮
│ create     Start a new git worktree.     │
│            Labels must be unique.        │
│ control-center  Open all of them.        │
╰──────────────────────────────────────────╯
"""
COBRA = """\
Usage:
  bd [flags]
  bd [command]

Working With Issues:
  create      Create a new issue
  close       Close an issue

Available Commands:
  list        List issues

Flags:
  -h, --help   help for bd
"""
ARGPARSE = """\
usage: fleet [-h] {add,rm,list} ...

positional arguments:
  {add,rm,list}
    add       add a worker
"""
COMMANDER = """\
Usage: backlog [options] [command]

Commands:
  init [options] [projectName]  initialize backlog
  task|tasks                    manage tasks
"""
METAVAR = """\
usage: tack [-h] [--db PATH] COMMAND ...

A board for agents.

positional arguments:
  COMMAND
    init      create a board
    dependents
              list the tasks that wait for one

options:
  -h, --help  show this help message and exit
"""
CAPITALS = """\
   _ __ ___
  | '_ ` _ \\|
  Worktree Session Manager

USAGE
    mux <command> [options]

COMMANDS
    new <branch> [options]      Create a worktree
        --run <claude|codex>    What is started in it
        --bg                    Open no terminal

    delete <branch> [--force]   Delete it (with confirmation)

EXAMPLES
    mux new feature             # a new one
"""
YARGS = """\
fleet <command>

Usage: fleet <command>

Commands:
  fleet add <name>   Add a worker
  fleet rm <name>    Remove a worker
"""
DOCOPT = """\
Usage:
  fate new <name>...
  fate move <name> <x> [--speed=<kn>]
  fate -h | --help

Options:
  -h --help     Show this screen.
"""
URFAVE = """\
NAME:
   mine - agents in sessions

COMMANDS:
   add, a   add a worker
   help, h  Shows a list of commands

GLOBAL OPTIONS:
   --help, -h  show help
"""
TABS = """\
Usage:

\tmine <command> [arguments]

The commands are:

\tadd         Add a worker
\trm          Remove a worker
"""
ONE_SPACE = """\
Usage: tk <command> [args]

Commands:
  create [title] [options] Create a ticket, prints ID
    -d, --description      Description text
  start <id>               Set its status
"""
PLAIN_WORDS = """\
boat - a crew of agents

  boat [--home DIR] COMMAND [--json]       home: --home, or ~/boat

Set up
  init --source REPO [--force]
                                    make a home for a repository
  remove NAME [--yes]               take a worker away

A first run
  boat init --source ~/project && boat up

Options
  --home DIR                        where it is kept
"""
NO_COMMANDS = """\
usage: solo [-h] task_id

positional arguments:
  task_id     the task that it is about
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (METAVAR, {"init", "dependents"}),
        (CAPITALS, {"new", "delete"}),
        (YARGS, {"add", "rm"}),
        (DOCOPT, {"new", "move"}),
        (URFAVE, {"add"}),
        (TABS, {"add", "rm"}),
        (ONE_SPACE, {"create", "start"}),
        (NO_COMMANDS, set()),
        (PLAIN_WORDS, {"init", "remove"}),
        (TYPER, {"create", "control-center"}),
        (COBRA, {"create", "close", "list"}),
        (ARGPARSE, {"add", "rm", "list"}),
        (COMMANDER, {"init", "task"}),
    ],
    ids=[
        *("metavar", "capitals", "yargs", "docopt", "urfave", "tabs", "one space", "no commands"),
        "plain words",
        *("typer", "cobra", "argparse", "commander"),
    ],
)
def test_commands_are_read_in_every_usual_form(text: str, names: set[str]) -> None:
    assert set(commands_in(text)) == names


def test_a_list_of_commands_says_how_each_is_spoken() -> None:
    listed = commands_in(CAPITALS)
    assert listed["new"].arguments == ("branch",)
    assert listed["new"].options == {"--run", "--bg"}
    assert listed["delete"].options == {"--force"}
    assert commands_in(DOCOPT)["move"].arguments == ("name", "x")
    created = commands_in(ONE_SPACE)["create"]
    assert (created.arguments, created.optional) == ((), ("title",))
    assert about_in(CAPITALS) == "Worktree Session Manager"
    assert about_in(METAVAR) == "A board for agents."


REPEATED = """\
usage: boat board [--dir DIR] COMMAND ...

A board in files.

  boat board init
      makes the board
  boat board add DESCRIPTION [--id V]
      adds a task
  boat board start WORKER TASK [--epoch V]
      the owner begins
"""


def test_a_group_may_say_its_own_words_before_every_command() -> None:
    found = commands_in(REPEATED, ("board",))
    assert {name: one.arguments for name, one in found.items()} == {
        "init": (),
        "add": ("description",),
        "start": ("worker", "task"),
    }


def test_a_repository_is_named_and_what_is_meant_is_said() -> None:
    commands: dict[tuple[str, ...], Usage] = {
        (name,): usage for name, usage in commands_in(PLAIN_WORDS).items()
    }
    assert spoken(HINTS, commands) == {
        "init": ("init", "--source", "{source}"),
        "nuke": ("remove", "{worker}", "--yes"),
    }


def test_a_second_copy_is_believed_last() -> None:
    names = [
        "home/x/state.bak.json",
        "home/x/state.json",
        "home/x/y/backup.json",
        "home/oldest.json",
    ]
    assert sorted(names, key=likely) == [
        *("home/oldest.json", "home/x/state.json", "home/x/state.bak.json", "home/x/y/backup.json"),
    ]


def test_an_agent_is_named_and_nobody_is_asked() -> None:
    listed: dict[tuple[str, ...], Usage] = {
        (name,): usage for name, usage in commands_in(CAPITALS).items()
    }
    assert spoken(HINTS, listed) == {
        "add": ("new", "{worker}", "--run", "claude", "--bg"),
        "nuke": ("delete", "{worker}", "--force"),
    }
    asks: dict[tuple[str, ...], Usage] = {
        ("new",): Usage(("name",), options=frozenset({"--prompt"}), text="--prompt TEXT")
    }
    assert spoken(HINTS, asks)["add"] == ("new", "{worker}", "--prompt", "{prompt}")
    sends = asks | {("send",): Usage(("name", "text"))}
    assert spoken(HINTS, sends)["add"] == ("new", "{worker}"), "the prompt has a command of its own"


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("No project. Run 'tack init --db PATH' or set TACKBOARD_DB.", ("TACKBOARD_DB",)),
        ("error: MINE_HOME is not set", ("MINE_HOME",)),
        ("export $MINE_AGENT first, then export $MINE_AGENT", ("MINE_AGENT",)),
        ("Error: the state is UNREADABLE_NOW", ()),
        ("cannot set status DONE", ()),
    ],
)
def test_a_refusal_names_the_variables_that_it_asks_for(said: str, asked: tuple[str, ...]) -> None:
    assert variables_asked(said) == asked


def test_a_variable_is_given_what_its_name_means() -> None:
    assert value_of("MINE_DB").startswith("{home}/")
    assert value_of("MINE_HOME") == "{home}/mine"
    assert value_of("MINE_AGENT") == "planner"


@pytest.mark.parametrize("name", sorted(set(with_targets()) - {"workers"}))
def test_a_file_to_fill_in_is_written_for_every_contract(name: str, tmp_path: Path) -> None:
    """It says what has to be said, and names what nobody can guess."""
    form = contract_named(name).target_form
    assert form is not None
    text = skeleton(form.load(), "mine.toml")
    data = tomllib.loads(text)
    assert data["contract"] == name
    assert set(form.load().vocabulary.required) <= set(data["commands"])
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    unsaid = re.search(r"# You also have to say: (.*) \(", text)
    problems: tuple[str, ...] = ()
    try:
        form.load().load(path)
    except FormatError as error:
        problems = error.problems
    lacking = [] if unsaid is None else unsaid[1].split(", ")
    assert sorted(one.partition(":")[0] for one in problems) == sorted(lacking)


@pytest.mark.parametrize(
    ("line", "words", "arguments", "group"),
    [
        ("Usage: par send [OPTIONS] {target} {command_to_send}", ("send",), 2, False),
        ("Usage: par start [OPTIONS] LABEL", ("start",), 1, False),
        ("Usage: bd create [title] [flags]", ("create",), 0, False),
        ("usage: fleet add [-h] <name> [<model>]", ("add",), 1, False),
        ("Usage: par workspace [OPTIONS] COMMAND [ARGS]...", ("workspace",), 0, True),
        ("Usage: par ls [OPTIONS]", ("ls",), 0, False),
        (
            "usage: mine add [-h] [--tag TAG] name\n\npositional arguments:\n  name  Its name",
            ("add",),
            1,
            False,
        ),
        (
            "usage: mine rm [-h] id [id ...]\n\npositional arguments:\n  id  Which",
            ("rm",),
            1,
            False,
        ),
    ],
)
def test_arguments_that_have_to_be_given(
    line: str, words: tuple[str, ...], arguments: int, group: bool
) -> None:
    usage = usage_in(f" {line}\n\n  --json  print JSON\n", words)
    assert (len(usage.arguments), usage.group) == (arguments, group)
    assert "--json" in usage.options


def test_a_command_is_chosen_by_its_name_and_by_what_can_be_said_to_it() -> None:
    commands: dict[tuple[str, ...], Usage] = {
        ("start",): Usage(("label",)),
        ("send",): Usage(("target", "text")),
        ("rm",): Usage(("target",)),
    }
    assert spoken(HINTS, commands) == {
        "add": ("start", "{worker}"),
        "start": ("send", "{worker}", "{prompt}"),
        "nuke": ("rm", "{worker}"),
    }
    grouped: dict[tuple[str, ...], Usage] = {
        ("milestone", "add"): Usage(("name",)),
        ("task", "create"): Usage(("title",)),
    }
    deeper: dict[tuple[str, ...], Usage] = {
        ("comments", "add"): Usage(("text",)),
        ("create",): Usage(("title",)),
    }
    plain = {"add": Hint(("add", "create"), ("description",))}
    assert spoken(plain, deeper) == {"add": ("create", "{description}")}
    in_group = {"add": Hint(("add", "create"), ("description",), groups=("task",))}
    assert spoken(in_group, grouped) == {"add": ("task", "create", "{description}")}
    by_option: dict[tuple[str, ...], Usage] = {
        ("run",): Usage(("name",), options=frozenset({"--prompt"}))
    }
    hint = {"start": Hint(("run",), ("worker", "prompt"))}
    spare: dict[tuple[str, ...], Usage] = {("new",): Usage((), ("title",), frozenset({"--text"}))}
    assert spoken({"add": Hint(("new",), ("text",))}, spare) == {"add": ("new", "{text}")}
    assert spoken(hint, by_option) == {"start": ("run", "{worker}", "--prompt", "{prompt}")}


def test_a_record_is_found_where_it_stands() -> None:
    table = {"sessions": {"probe": {"branch": "b"}}}
    assert list(places_of(table, frozenset({"probe"}))) == [Place("sessions", "", {"branch": "b"})]
    listed = {"a": {"rows": [{"id": "x", "title": "probe"}]}}
    assert [one.path for one in places_of(listed, frozenset({"probe"}))] == ["a.rows"]


def test_fields_are_known_by_what_was_seen_elsewhere() -> None:
    record = {"label": "one", "branch_name": "one", "tmux": "s-one", "state": "busy"}
    wanted = {"branch": "branch", "session": "session", "status": "status", "state": "state"}
    facts = {"branch": frozenset({"one"}), "session": frozenset({"s-one"})}
    assert fields_of(record, wanted, facts) == {"branch": "branch_name", "session": "tmux"}


def test_a_refusal_becomes_a_pattern_for_any_name_and_path() -> None:
    said = "\x1b[31mError: 'one' is in /box/home/x/one (really).\x1b[0m"
    pattern = pattern_of(said, "one")
    assert re.search(pattern, "Error: 'two' is in /elsewhere/two (really).")
    assert not re.search(pattern, "Error: something else")
    assert pattern_of("no task a; ask again", "a") == "no task .*; ask again"
    told = '{"version": 1, "error": {"code": 3, "message": "Cannot claim T-000002: not there."}}'
    assert pattern_of(told, "w1") == r"Cannot claim .*: not there\."
    assert re.search(pattern_of(told, "w1"), told.replace("T-000002", "T-000017"))


SEEN = Found(
    "/opt/par",
    "Worktrees.",
    {("start",): Usage(("label",)), ("send",): Usage(("target", "text"))},
    {"add": ("start", "{worker}"), "start": ("send", "{worker}", "{prompt}")},
    {"add": Tried(("start", "probe-one"), True, "ok")},
    {"already_exists": (("Error: 'probe-one' exists", "probe-one"),)},
    Look(sessions=frozenset({"par-x-probe-one"}), branches=frozenset({"probe-one"})),
    Source("file", "{home}/s.json", Place("sessions", "", {"session_name": "par-x-probe-one"})),
)


def test_the_proposed_file_loads(tmp_path: Path) -> None:
    path = tmp_path / "par.toml"
    path.write_text(proposed(TargetSpec, SEEN, "par.toml"), encoding="utf-8")
    spec = TargetSpec.load(path)
    assert (spec.level, spec.sessions, spec.state.file) == ("sessions", "^par-", "{home}/s.json")
    assert spec.state.fields.session == "session_name"
    assert spec.rejections["already_exists"] == ("Error: '.*' exists",)


@pytest.mark.parametrize("name", sorted(with_targets()))
def test_every_contract_gets_a_file_of_good_form(name: str) -> None:
    form = contract_named(name).target_form
    assert form is not None
    loaded = form.load()
    vocabulary = loaded.vocabulary
    hints = hints_of(vocabulary)
    assert set(hints) <= set(vocabulary.commands)
    for hint in hints.values():
        said = {one for one in hint.says if not one.startswith("=")}
        assert said <= set(vocabulary.placeholders)
        assert {hint.again, hint.nobody} - {""} <= set(vocabulary.refusals)
    nothing = Found("/opt/x y.py", "", {})
    assert tomllib.loads(proposed(loaded, nothing, "x.toml"))["contract"] == name


BOARD: dict[tuple[str, ...], Usage] = {
    ("init",): Usage(optional=("name",), options=frozenset({"--defaults"})),
    ("create",): Usage(optional=("title",), options=frozenset({"--json"})),
    ("update",): Usage(("id",), options=frozenset({"--claim", "--status", "--actor"})),
    ("close",): Usage(("id",), text="--status  one of open, in_progress, closed"),
    ("list",): Usage(options=frozenset({"--all", "--json"})),
}
MADE = {"id": "mu-7", "title": "Create probe.txt", "status": "open", "priority": 2, "assignee": ""}


def board() -> Found:
    verbs = spoken(BOARD_HINTS, BOARD)
    source = Source("command", "list --all --json", Place("", "title", MADE))
    added = Tried(("create",), True, "", '{\n  "id": "mu-7",\n  "title": "Create probe.txt"\n}')
    ready: dict[tuple[str, ...], str] = {("ready", "--json"): '[{"id": "mu-7"}]'}
    return Found(
        "bd", "", BOARD, verbs, {"add": added}, source=source, ready=ready, nobody="mu-999999"
    )


def test_commands_of_a_board_are_said_with_what_they_need() -> None:
    assert board().verbs == {
        "init": ("init", "board", "--defaults"),
        "add": ("create", "{description}", "--json"),
        "claim": ("update", "{task}", "--claim", "--actor", "{worker}"),
        "complete": ("close", "{task}"),
        "list": ("list", "--all", "--json"),
    }


def test_a_board_that_only_edits_fields_is_told_so() -> None:
    edit = Usage(("id",), options=frozenset({"--status", "--assignee"}))
    verbs = spoken(BOARD_HINTS, {("task", "edit"): edit})
    assert verbs["claim"][1:] == (
        "edit",
        "{task}",
        "--status",
        "{claimed}",
        "--assignee",
        "{worker}",
    )
    assert verbs["complete"][1:] == ("edit", "{task}", "--status", "{done}")


def test_the_file_of_a_board_says_how_its_answers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(proposed(BoardSpec, board(), "mine.toml"), encoding="utf-8")
    spec = BoardSpec.load(path)
    assert (spec.texts, spec.nobody) == (True, "mu-999999")
    assert spec.statuses == {"open": "available", "in_progress": "claimed", "closed": "done"}
    found = re.search(spec.commands["add"].answer, '  "id": "mu-31",')
    assert found is not None
    assert found["task"] == "mu-31"
    assert (spec.state.fields.id, spec.state.fields.own) == ("title", "id")
    assert spec.state.fields.owner == "assignee"
    assert spec.profile.leases is False


QUOTED = """\
USAGE:
  dex <command> [options]

COMMANDS:
  create "name" [--description "..."]  Create task
  start <id>                       Mark task as in progress
"""


def test_words_in_quotes_are_arguments() -> None:
    found = commands_in(QUOTED)
    assert (found["create"].arguments, found["start"].arguments) == (("name",), ("id",))
    usage = usage_in('USAGE:\n  dex create "name" [--description "details"]\n', ("create",))
    assert usage.arguments == ("name",)
    said = 'USAGE:\n  dex complete <task-id> --result "completion notes" [--commit <sha>]\n'
    assert usage_in(said, ("complete",)).arguments == ("task-id",)


def test_a_board_without_claims_begins_a_task_instead() -> None:
    one = Usage(("id",))
    verbs = spoken(BOARD_HINTS, {("start",): one, ("close",): one})
    assert (verbs["claim"], "start" in verbs) == (("start", "{task}"), False)
    verbs = spoken(BOARD_HINTS, {("claim",): one, ("start",): one})
    assert (verbs["claim"], verbs["start"]) == (("claim", "{task}"), ("start", "{task}"))


def test_what_was_seen_of_a_task_on_its_way_stands_in_the_file(tmp_path: Path) -> None:
    claimed = {**MADE, "status": "doing", "held_by": "probe-one"}
    seen = replace(
        board(),
        followed={"claim": claimed, "complete": {**MADE, "status": "over"}},
        repeated={"claim": frozenset({"other"})},
    )
    path = tmp_path / "mine.toml"
    path.write_text(proposed(BoardSpec, seen, "mine.toml"), encoding="utf-8")
    spec = BoardSpec.load(path)
    assert spec.statuses == {"open": "available", "doing": "claimed", "over": "done"}
    assert spec.state.fields.owner == "held_by"
    assert (spec.profile.owner_reclaims, spec.profile.claims_exclude) == (False, False)


def test_one_speaker_in_all_claims_excuses_nothing(tmp_path: Path) -> None:
    """Who is not told who speaks enters its user: the second claim was no other worker's."""
    path = tmp_path / "mine.toml"
    for owner, shown in (("root", True), (None, False)):  # the other one enters nobody at all
        claimed = {**MADE, "status": "doing", "assignee": owner}
        seen = replace(
            board(),
            followed={"claim": claimed},
            repeated={"claim": frozenset({"same", "other"})},
        )
        seen = replace(seen, verbs={**seen.verbs, "claim": ("claim", "{task}")})
        text = proposed(BoardSpec, seen, "mine.toml")
        path.write_text(text, encoding="utf-8")
        profile = BoardSpec.load(path).profile
        assert (profile.shows_owners, profile.claims_exclude) == (shown, shown)
        assert ("claim does not say who speaks, and root was entered" in text) == shown


def test_an_owner_of_a_new_task_is_whoever_made_it(tmp_path: Path) -> None:
    made = {**MADE, "owner": "me"}
    source = Source("command", "list --all --json", Place("", "title", made))
    path = tmp_path / "mine.toml"
    text = proposed(BoardSpec, replace(board(), source=source), "mine.toml")
    path.write_text(text, encoding="utf-8")
    assert BoardSpec.load(path).state.fields.owner == "assignee"


def test_an_id_in_json_is_found_by_its_key_whatever_stands_before_it(tmp_path: Path) -> None:
    answer = '{"made":"2026-11-18T00:22:26Z","id":"mu-7","title":"Create probe.txt"}'
    found = replace(board(), tried={"add": Tried(("create",), True, "", answer)})
    path = tmp_path / "mine.toml"
    path.write_text(proposed(BoardSpec, found, "mine.toml"), encoding="utf-8")
    pattern = BoardSpec.load(path).commands["add"].answer
    named = re.search(pattern, '{"made":"2027-01-01T00:00:00Z","id":"mu-31","title":"x"}')
    assert named is not None
    assert named["task"] == "mu-31"


class Program:
    """A program of three commands, asked without a box: `task create` is broken, `create` is not."""

    def __init__(self) -> None:
        self.said: list[tuple[str, ...]] = []
        self.record: dict[str, Any] = {"id": "mu-7", "title": "Create probe.txt", "status": "open"}

    def run(self, *words: str) -> Any:
        self.said.append(words)
        if words[0] == "claim" and self.record["status"] == "open":
            self.record |= {"status": "taken", "by": words[2]}
        elif words[0] != "create":
            return SimpleNamespace(exit_code=1, stderr=f"no: {words[1]}", stdout="")
        return SimpleNamespace(exit_code=0, stderr="", stdout="")


def trying(program: Program) -> Any:
    discovery: Any = Discovery.__new__(Discovery)
    discovery._environment, discovery._run = {}, program.run
    discovery._look = Look
    discovery._source = lambda found, made: Source("file", "x", Place("", "title", program.record))
    return discovery


def test_what_failed_is_said_in_other_words() -> None:
    both = {("task", "create"): Usage(("title",)), ("create",): Usage(("title",))}
    found = Found("bd", "", both, spoken(BOARD_HINTS, both))
    assert found.verbs["add"] == ("task", "create", "{description}")
    program = Program()
    discovery = trying(program)
    tried = {"add": discovery._say(found.verbs["add"], {"description": "x"})}
    assert discovery._otherwise(found, BOARD_HINTS, tried).verbs["add"] == (
        "create",
        "{description}",
    )
    assert tried["add"].succeeded


def test_a_task_is_claimed_and_claimed_again() -> None:
    claim: dict[tuple[str, ...], Usage] = {("claim",): Usage(("id", "who"))}
    found = Found("bd", "", claim, {"claim": ("claim", "{task}", "{worker}")})
    refusals: dict[str, tuple[tuple[str, str], ...]] = {}
    program = Program()
    discovery = trying(program)
    source = Source("file", "x", Place("", "title", dict(program.record)))
    now = discovery._followed(found, BOARD_HINTS, source, refusals)
    assert (now.followed["claim"]["status"], now.followed["claim"]["by"]) == ("taken", "probe-one")
    assert now.repeated == {"claim": frozenset()}
    assert refusals["task_not_available"] == (("no: mu-7", "mu-7"),)
    long = "b0cfc8ab-c393-48da"
    assert pattern_of("mu-7 is not of probe-two", "mu-7") == r".* is not of .*"
    said = "Task b0cfc8ab is held by 'probe-one'"
    assert pattern_of(said, long) == r"Task .* is held by '.*'"


@pytest.mark.parametrize("told", ["Run init first", "no: mu-9"])
def test_what_is_refused_before_the_board_was_made_has_its_own_words(told: str) -> None:
    class Untouched(Program):
        def run(self, *words: str) -> Any:
            return SimpleNamespace(exit_code=1, stderr=told, stdout="")

    class Fresh:
        def __enter__(self) -> Any:
            return trying(Untouched())

        def __exit__(self, *_: object) -> None: ...

    made = {"init": Tried(("init",), True, "")}
    verbs = {"init": ("init",), "claim": ("claim", "{task}", "{worker}")}
    found = Found("bd", "", {}, verbs, made, nobody="mu-9")
    program = Program()
    program.record["status"] = "taken"
    discovery = trying(program)
    discovery._untouched = Fresh
    refusals = discovery._early(found, BOARD_HINTS).refusals
    own = told != "no: mu-9"  # what is said afterwards, too, is about the task
    assert refusals == ({"not_initialised": ((told, "mu-9"),)} if own else {})
    assert not discovery._early(replace(found, tried={}), BOARD_HINTS).refusals


def test_usage_is_what_stands_behind_the_word_at_the_beginning_of_a_line() -> None:
    text = "Settings for invisible usage:\n  run: bd setup <claude>\n\nUsage:\n  bd init [flags]\n"
    assert usage_in(text, ("init",)).arguments == ()


def test_a_refusal_is_the_line_that_refuses() -> None:
    said = "Note: CLAW_AGENT not set\nTask #999999 does not exist"
    assert pattern_of(said, "nobody") == r"Task \#999999 does not exist"


def test_a_program_that_asks_for_ever_new_variables_is_not_asked_for_ever() -> None:
    given: list[tuple[str, ...]] = []

    def refuse(*words: str) -> Any:
        given.append(words)
        return SimpleNamespace(exit_code=1, stderr=f"set MINE_{len(given)}", stdout="")

    discovery: Any = Discovery.__new__(Discovery)
    discovery._environment, discovery._run = {}, refuse
    tried = discovery._say(("add", "{worker}"), {"worker": "alpha"})
    assert not tried.succeeded
    assert given == [("add", "alpha")] * MOST_ASKED
