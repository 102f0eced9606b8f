"""A target as one TOML file: what ships loads, and every mistake is named with its line."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from mutiny.contracts.workers.outcomes import REJECTIONS
from mutiny.contracts.workers.profile import LEGAL, NEEDS_DAEMON
from mutiny.errors import FormatError, TargetMissing, UsageError
from mutiny.kit.answer import matched_classes
from mutiny.targets.kit.files import PLACEHOLDERS, TargetFile, fill
from mutiny.targets.kit.live import spelled
from mutiny.targets.registry import find_program, find_spec, shipped
from mutiny.targets.workers.spec import VOCABULARY, TargetSpec

GOOD = """\
format = 1
name = "mine"
contract = "workers"
program = "mine"
sessions = "^mine-"

[commands]
init = { argv = ["{program}", "init"] }
up = { argv = ["{program}", "up"] }
down = { argv = ["{program}", "down"] }
add = { argv = ["{program}", "add", "{worker}"] }
nuke = { argv = ["{program}", "nuke", "{worker}"] }
start = { argv = ["{program}", "start", "{worker}", "{prompt}"] }
review = { argv = ["{program}", "review", "{worker}"] }
accept = { argv = ["{program}", "accept", "{worker}"] }
reject = { argv = ["{program}", "reject", "{message}"] }

[state]
file = "{home}/state.json"

[daemon]
argv = "mine up"

[rejections]
no_such_worker = ["not found"]

[profile]
dirty_source = "refuse"

[profile.legal]
Rebase = ["*"]

[profile.limits]
idle_s = 5

[profile.not_applicable]
"workers.daemon_flag_true" = "it has no flag"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.toml"


def put(file: Path, text: str = GOOD) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def problems(file: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(FormatError) as caught:
        TargetSpec.load(put(file, text))
    assert caught.value.where == str(file)
    return caught.value.problems


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


# --- what ships -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_shipped_target_loads(name: str) -> None:
    spec, origin = find_spec(name)
    assert spec.name == name
    assert Path(origin).is_file()
    assert isinstance(spec, TargetFile)
    assert set(spec.commands) <= set(spec.vocabulary.commands)


def test_longboat_is_complete() -> None:
    spec, _ = find_spec("longboat")
    assert isinstance(spec, TargetSpec)
    assert set(spec.commands) == set(VOCABULARY.commands)
    assert set(spec.rejections) == set(REJECTIONS)
    profile = spec.make_profile()
    assert profile.not_applicable == {}, "the reference keeps every promise"
    assert all(profile.serves(name) == statuses for name, statuses in LEGAL.items())
    assert set(profile.needs_daemon) <= set(NEEDS_DAEMON)


def test_longboat_refuses_with_the_seeds_texts() -> None:
    spec, _ = find_spec("longboat")
    assert isinstance(spec, TargetSpec)
    for text, name in {
        "Worker 'alpha' does not exist": "no_such_worker",
        "Worker 'alpha' is not idle (status: working)": "not_idle",
        "Worker 'alpha' is not in needs_review state (status: idle)": "not_needs_review",
        "Worker 'alpha' already exists": "already_exists",
        "No worker has been reviewed recently": "nothing_reviewed",
        "Daemon is already running": "daemon_running",
        "Daemon is not running": "daemon_down",
        "Cannot rebase while worker is in idle state": "wrong_state",
    }.items():
        assert matched_classes(text, spec.rejections) == {name}


def test_the_template_for_new_targets_loads(file: Path) -> None:
    text = files("mutiny.targets.files").joinpath("template.toml.txt").read_text(encoding="utf-8")
    spec = TargetSpec.load(put(file, text))
    assert set(VOCABULARY.required) <= set(spec.commands)
    assert all(f"{{{name}}}" in text for name in ("program", "home", "source", "worker"))


def test_a_good_file_loads_with_its_differences(file: Path) -> None:
    spec = TargetSpec.load(put(file))
    profile = spec.make_profile()
    assert profile.limits.idle_s == 5.0
    assert profile.serves("Rebase") is None
    assert profile.serves("Start") == ("idle",)
    assert spec.commands["add"].argv == ("{program}", "add", "{worker}")
    assert spec.git.default_branch == "master"


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ('name = "mine"', "name = 7", "name = 7", "name: expected text, got 7"),
        (
            'contract = "workers"',
            'contract = "worker"',
            "contract =",
            "contract: unknown contract 'worker' (did you mean 'workers'?)",
        ),
        (
            "up = { argv",
            "upp = { argv",
            "upp =",
            "commands.upp: unknown command (did you mean 'up'?)",
        ),
        (
            '"add", "{worker}"',
            '"add", "{wroker}"',
            "add =",
            "commands.add.argv: unknown placeholder {wroker} (did you mean 'worker'?)",
        ),
        (
            'up = { argv = ["{program}", "up"] }',
            "up = { argv = [] }",
            "up =",
            "commands.up.argv: is empty",
        ),
        (
            'down = { argv = ["{program}", "down"] }',
            'down = { argv = "mine down" }',
            "down =",
            "commands.down.argv: expected a list, got 'mine down'",
        ),
        (
            'up = { argv = ["{program}", "up"] }',
            'up = { argv = ["x"], background = true, ready = "(" }',
            "up =",
            "commands.up.ready: '(' is not a regular expression: "
            "missing ), unterminated subpattern at position 0",
        ),
        (
            'down = { argv = ["{program}", "down"] }',
            'down = { argv = ["x"], stop_daemon = "SIGINT" }',
            "down =",
            "commands.down.stop_daemon: 'SIGINT' is no signal; write INT or TERM",
        ),
        (
            'down = { argv = ["{program}", "down"] }',
            'down = { argv = ["x"], timeout_s = 0 }',
            "down =",
            "commands.down.timeout_s: must be more than 0",
        ),
        (
            "no_such_worker = ",
            "no_such_wroker = ",
            "no_such_wroker",
            "rejections.no_such_wroker: unknown class of refusals (did you mean 'no_such_worker'?)",
        ),
        (
            '["not found"]',
            '["*"]',
            "no_such_worker",
            "rejections.no_such_worker: '*' is not a regular expression: nothing to repeat at position 0",
        ),
        (
            'sessions = "^mine-"',
            'sessions = "["',
            "sessions",
            "sessions: '[' is not a regular expression: unterminated character set at position 0",
        ),
        (
            'argv = "mine up"',
            'argv = "("',
            'argv = "("',
            "daemon.argv: '(' is not a regular expression: "
            "missing ), unterminated subpattern at position 0",
        ),
        (
            "{home}/state.json",
            "{hom}/state.json",
            "file =",
            "state.file: unknown placeholder {hom} (did you mean 'home'?)",
        ),
        (
            "Rebase = ",
            "Rebsae = ",
            "Rebsae",
            "profile.legal.Rebsae: unknown command (did you mean 'Rebase'?)",
        ),
        (
            '["*"]',
            '["idel"]',
            "Rebase",
            "profile.legal.Rebase: unknown status 'idel' (did you mean 'idle'?)",
        ),
        (
            'dirty_source = "refuse"',
            'dirty_source = "no"',
            "dirty_source",
            "profile.dirty_source: is neither 'refuse' nor 'either'",
        ),
        (
            'dirty_source = "refuse"',
            'needs_daemon = ["start"]',
            "needs_daemon",
            "profile.needs_daemon: unknown command 'start' (did you mean 'Start'?)",
        ),
        (
            'dirty_source = "refuse"',
            'extra_moves = { idle = ["wroking"] }',
            "extra_moves",
            "profile.extra_moves.idle: unknown status 'wroking' (did you mean 'working'?)",
        ),
        (
            'dirty_source = "refuse"',
            'extra_moves = { idel = ["working"] }',
            "extra_moves",
            "profile.extra_moves.idel: unknown status 'idel' (did you mean 'idle'?)",
        ),
        ("idle_s = 5", "idle_s = 0", "idle_s", "profile.limits.idle_s: must be more than 0"),
        (
            "idle_s = 5",
            "idel_s = 5",
            "idel_s",
            "profile.limits.idel_s: unknown key (did you mean 'idle_s'?)",
        ),
        (
            '"workers.daemon_flag_true" =',
            '"workers.daemon_flag" =',
            "daemon_flag",
            "profile.not_applicable.workers.daemon_flag: unknown rule "
            "(did you mean 'workers.daemon_flag_true'?)",
        ),
        (
            'file = "{home}/state.json"',
            'file = "{home}/state.json"\ntasks = "tasks"',
            "tasks =",
            "state.tasks: needs `task_fates`: what became of a task, in the target's words and ours",
        ),
        (
            'file = "{home}/state.json"',
            'file = "{home}/state.json"\ntasks = "t"\ntask_fates = { done = "landed" }',
            "task_fates =",
            "state.task_fates: unknown fate 'landed'",
        ),
        (
            '= "it has no flag"',
            '= " "',
            "daemon_flag_true",
            "profile.not_applicable.workers.daemon_flag_true: say why the target does not promise it",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(
    file: Path, old: str, new: str, where: str, what: str
) -> None:
    text = changed(old, new)
    found = problems(file, text)
    assert f"line {line_of(text, where)}: {what}" in found
    assert len(found) == 1


def test_all_mistakes_are_named_at_once(file: Path) -> None:
    text = GOOD.replace('name = "mine"', "name = 7").replace("idle_s = 5", 'idle_s = "x"')
    text = text.replace("[state]", "[stat]")
    found = problems(file, text)
    assert {problem.rpartition(": ")[2] for problem in found} >= {
        "expected text, got 7",
        "expected a number, got 'x'",
        "is missing",
    }
    assert len(found) == 4


@pytest.mark.parametrize("name", VOCABULARY.required)
def test_a_missing_command_is_named_where_it_belongs(file: Path, name: str) -> None:
    line = next(line for line in GOOD.splitlines() if line.startswith(f"{name} = "))
    text = GOOD.replace(line + "\n", "")
    assert problems(file, text) == (
        f"line {line_of(text, '[commands]')}: commands.{name}: is missing",
    )


def test_a_missing_key_is_not_looked_for_in_another_table(file: Path) -> None:
    """`[state]` without file: the next file in the text belongs to somebody else."""
    text = GOOD.replace('file = "{home}/state.json"\n', "") + '\n[places]\nfile = "{home}/x"\n'
    assert problems(file, text) == (f"line {line_of(text, '[state]')}: state.file: is missing",)


def test_the_daemon_needs_no_pattern(file: Path) -> None:
    text = GOOD.replace('[daemon]\nargv = "mine up"\n', "")
    assert TargetSpec.load(put(file, text)).daemon.argv == ""


def test_a_missing_top_level_key_has_no_line(file: Path) -> None:
    text = changed('name = "mine"\n', "") + '\n[environment]\nname = "x"\n'
    assert problems(file, text) == ("name: is missing",)


def test_a_newer_format_is_refused_before_anything_else(file: Path) -> None:
    text = changed("format = 1", "format = 2") + "\n[future]\nx = 1\n"
    assert problems(file, text) == ("format 2 is newer than this Mutiny reads (1)",)


@pytest.mark.parametrize("version", ['"1"', "true", "1.5"])
def test_a_format_that_is_no_number_is_refused(file: Path, version: str) -> None:
    (found,) = problems(file, changed("format = 1", f"format = {version}"))
    assert found.startswith("line 1: format: expected a whole number")


def test_broken_toml_is_refused_with_its_place(file: Path) -> None:
    (found,) = problems(file, GOOD + "\n[daemon\n")
    assert found.startswith("not valid TOML: ")
    assert "line" in found


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path, file: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the target file: No such file"):
        TargetSpec.load(tmp_path / "nowhere.toml")
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8 text"):
        TargetSpec.load(file)


@pytest.mark.parametrize(
    "table",
    [
        '[environment]\nX = "{hoem}/x"',
        '[logs]\ndaemon = "{hoem}/x"',
        '[logs]\nfiles = ["{hoem}/x"]',
        '[git]\nrepositories = ["{hoem}/x"]',
    ],
)
def test_placeholders_are_checked_everywhere(file: Path, table: str) -> None:
    (found,) = problems(file, f"{GOOD}\n{table}\n")
    assert "unknown placeholder {hoem} (did you mean 'home'?)" in found
    assert found.startswith("line ")


def test_the_targets_own_words_for_statuses(file: Path) -> None:
    words = '\n[statuses]\n"in-progress" = "working"\n'
    assert TargetSpec.load(put(file, GOOD + words)).statuses == {"in-progress": "working"}
    wrong = '\n[statuses]\n"in-progress" = "wroking"\n'
    (found,) = problems(file, GOOD + wrong)
    assert found.endswith(
        "statuses.in-progress: unknown status 'wroking' (did you mean 'working'?)"
    )


def test_which_commands_need_the_daemon(file: Path) -> None:
    assert TargetSpec.load(put(file)).make_profile().needs_daemon == NEEDS_DAEMON
    own = changed('dirty_source = "refuse"', 'needs_daemon = ["Start"]')
    assert TargetSpec.load(put(file, own)).make_profile().needs_daemon == ("Start",)
    none = changed('dirty_source = "refuse"', "needs_daemon = []")
    assert TargetSpec.load(put(file, none)).make_profile().needs_daemon == ()


# --- finding targets ------------------------------------------------------------------------------


def test_an_unknown_target_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'longboat'\?") as caught:
        find_spec("longbaot")
    assert "or a TOML file" in str(caught.value)


def test_a_target_may_be_a_file(file: Path) -> None:
    spec, origin = find_spec(str(put(file)))
    assert (spec.name, origin) == ("mine", str(file))


def test_a_missing_program_tested_nothing(file: Path) -> None:
    spec = TargetSpec.load(put(file))
    with pytest.raises(TargetMissing, match="say where it is with --bin") as caught:
        find_program(spec, None)
    assert caught.value.exit_code == 3
    with pytest.raises(TargetMissing, match="does not exist"):
        find_program(spec, str(file.parent / "nowhere"))


def test_filling_in_leaves_other_braces_alone() -> None:
    values = {"home": "/box/home", "worker": "{prompt}"}
    assert fill("{home}/x {unknown} {Home} {} {{home}}", values) == (
        "/box/home/x {unknown} {Home} {} {/box/home}"
    )
    assert fill("{worker}", values) == "{prompt}", "what was filled in is not filled in again"


def test_every_placeholder_is_a_plain_word() -> None:
    assert all(fill(f"{{{name}}}", {name: "x"}) == "x" for name in PLACEHOLDERS)


def test_an_option_is_said_in_either_of_its_words_and_again_in_the_same() -> None:
    other = {"-d": "--depends"}
    said = [("tool", "add", name, "-d", "x") for name in "abcdefgh"]
    spoken = [spelled(one, other) for one in said]
    assert {one[3] for one in spoken} == {"-d", "--depends"}
    assert [spelled(("/other/tool", *one[1:]), other)[3] for one in said] == [
        one[3] for one in spoken
    ]
    marked = [spelled(("tool", "add", f"Do it (ref MT-0a-{n})", "-d", "x"), other) for n in (1, 22)]
    assert marked[0][3] == marked[1][3]
    assert spelled(("tool", "-d"), {}) == ("tool", "-d")
