"""A program, tried once in a box: what its help says, what it makes, and what it says when it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutiny.box.results import Command, CommandResult
from mutiny.box.startup import create_box
from mutiny.errors import TargetMissing
from mutiny.model.result import OperationResult
from mutiny.probes.sources import json_file, sqlite_tables
from mutiny.system.files import BoxPath
from mutiny.targets.discover.help_text import Usage, commands_in, usage_in
from mutiny.targets.discover.records import Place, places_of
from mutiny.targets.kit.hints import NOBODY, SAMPLES, Hint
from mutiny.targets.kit.starting import trees_of, why_not_started

LIMIT_S = 30.0
MOST_COMMANDS = 120
MOST_FILES = 2000
_QUIET = {"NO_COLOR": "1", "COLUMNS": "160", "TERM": "dumb"}
_TABLES = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
_WORKTREES = ("git", "worktree", "list", "--porcelain")
_BRANCHES = ("git", "for-each-ref", "--format=%(refname:short)", "refs/heads")
_SESSIONS = ("tmux", "list-sessions", "-F", "#{session_name}")


@dataclass(frozen=True)
class Look:
    """What there is in the box at one moment."""

    files: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()
    worktrees: frozenset[str] = frozenset()
    branches: frozenset[str] = frozenset()
    agents: int = 0
    """Doubles that have begun."""

    def since(self, before: Look) -> Look:
        """Only what is new."""
        return Look(
            self.files - before.files,
            self.sessions - before.sessions,
            self.worktrees - before.worktrees,
            self.branches - before.branches,
            self.agents - before.agents,
        )


@dataclass(frozen=True)
class Tried:
    """One command that was really given."""

    words: tuple[str, ...]
    """As they were said, without the program."""
    succeeded: bool
    said: str


@dataclass(frozen=True)
class Source:
    """Where records are to be seen."""

    word: str
    """`file`, `sqlite` or `command`."""
    value: str
    place: Place
    table: str = ""


@dataclass(frozen=True)
class Found:
    """Everything that was found out about a program."""

    program: str
    about: str
    commands: Mapping[tuple[str, ...], Usage]
    """By their words."""
    verbs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The contract's command -> how it is said, with placeholders."""
    tried: Mapping[str, Tried] = field(default_factory=dict)
    refusals: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Class of refusals -> what was said, and the name that was said in it."""
    made: Look = field(default_factory=Look)
    source: Source | None = None


class Discovery:
    """Looks at one program."""

    def __init__(self, program: Path, directory: Path) -> None:
        self._program = str(program)
        try:
            self._box = create_box(directory, read_only=trees_of(program), doubles=True)
        except OSError as error:
            raise TargetMissing(f"{program} cannot be put into a box: {error}") from error

    def __enter__(self) -> Discovery:
        return self

    def __exit__(self, *_: object) -> None:
        self._box.close()

    def find(self, hints: Mapping[str, Hint]) -> Found:
        """Read its help, try what can be tried, and look at what that has made."""
        first = self._run("--help")
        why = why_not_started(_plain_result(first))
        if why is not None:
            raise TargetMissing(f"{self._program} could not be started in the box: {why}")
        text = first.stdout or first.stderr
        commands = self._commands(text)
        about = next(
            (
                line.strip(" │")
                for line in text.splitlines()
                if "sage:" not in line and line.strip(" │")
            ),
            "",
        )
        found = Found(self._program, about, commands, spoken(hints, commands))
        return self._tried(found, hints)

    # --- help --------------------------------------------------------------------------------------

    def _commands(self, text: str) -> dict[tuple[str, ...], Usage]:
        found: dict[tuple[str, ...], Usage] = {}
        waiting: list[tuple[str, ...]] = [(name,) for name in commands_in(text)]
        while waiting and len(found) < MOST_COMMANDS:
            words = waiting.pop(0)
            answer = self._run(*words, "--help")
            help_text = answer.stdout or answer.stderr
            usage = usage_in(help_text, words)
            found[words] = usage
            below = commands_in(help_text) if len(words) == 1 else {}
            if usage.group:
                waiting += [(*words, name) for name in below]
        return found

    # --- trying ------------------------------------------------------------------------------------

    def _tried(self, found: Found, hints: Mapping[str, Hint]) -> Found:
        before = self._look()
        tried: dict[str, Tried] = {}
        refusals: dict[str, tuple[str, str]] = {}
        for verb, words in found.verbs.items():
            if hints[verb].tried:
                tried[verb] = self._say(words, SAMPLES)
        made = self._look().since(before)
        # Who could not even make something refuses for that reason, whatever else is said.
        works = all(one.succeeded for one in tried.values())
        for verb, words in found.verbs.items() if works else ():
            hint = hints[verb]
            if hint.again and tried.get(verb) is not None and tried[verb].succeeded:
                self._refused(refusals, hint.again, self._say(words, SAMPLES), SAMPLES["worker"])
            if hint.nobody and any("{" in word for word in words):
                other = {
                    **SAMPLES,
                    **{name: NOBODY for name in SAMPLES if SAMPLES[name] == "probe-one"},
                }
                self._refused(refusals, hint.nobody, self._say(words, other), NOBODY)
        source = self._source(found, made)
        return Found(
            found.program, found.about, found.commands, found.verbs, tried, refusals, made, source
        )

    @staticmethod
    def _refused(
        refusals: dict[str, tuple[str, str]], name: str, tried: Tried, subject: str
    ) -> None:
        if not tried.succeeded and tried.said:
            refusals.setdefault(name, (tried.said, subject))

    def _say(self, words: Sequence[str], values: Mapping[str, str]) -> Tried:
        said = [re.sub(r"\{(\w+)\}", lambda one: values.get(one[1], "1"), word) for word in words]
        answer = self._run(*said)
        return Tried(tuple(said), answer.exit_code == 0, (answer.stderr or answer.stdout).strip())

    def _run(self, *words: str) -> CommandResult:
        return self._ask((self._program, *words))

    def _ask(self, argv: tuple[str, ...]) -> CommandResult:
        place = f"{self._box.inside_root}/source"
        return self._box.run_many([Command(argv, LIMIT_S, place, _QUIET)])[0]

    # --- looking -----------------------------------------------------------------------------------

    def _look(self) -> Look:
        root = self._box.files
        files: list[str] = []
        for name in ("home", "source", "tmp"):
            for path in (root / name).files():
                if ".git" not in path.parts and len(files) < MOST_FILES:
                    files.append("/".join(path.parts[len(root.parts) :]))
        trees = self._ask(_WORKTREES).stdout
        started = root / "doubles" / "received.jsonl"
        agents = (
            started.read_text(errors="replace").count('"event":"start"') if started.exists() else 0
        )
        return Look(
            frozenset(files),
            frozenset(self._ask(_SESSIONS).stdout.splitlines()),
            frozenset(re.findall(r"(?m)^worktree (.*)$", trees)),
            frozenset(self._ask(_BRANCHES).stdout.splitlines()),
            agents,
        )

    def _source(self, found: Found, made: Look) -> Source | None:
        """The first that shows what was made: a JSON file, a database, a command that prints JSON."""
        names = frozenset((SAMPLES["worker"], SAMPLES["prompt"]))
        for name in sorted(made.files, key=lambda one: (one.count("/"), one)):
            path = self._box.files / name
            inside = "{" + name.replace("/", "}/", 1)
            if name.endswith(".json"):
                for place in places_of(json_file(path).data, names):
                    return Source("file", inside, place)
            if name.endswith((".db", ".sqlite", ".sqlite3")):
                for table, place in self._in_tables(path, names):
                    return Source("sqlite", inside, place, table)
        for words, usage in found.commands.items():
            if (
                not usage.arguments
                and words[-1] in ("list", "ls", "status")
                and "--json" in usage.options
            ):
                data = _parsed(self._run(*words, "--json").stdout)
                for place in places_of(data, names):
                    return Source("command", " ".join((*words, "--json")), place)
        return None

    def _in_tables(self, path: BoxPath, names: frozenset[str]) -> list[tuple[str, Place]]:
        tables = sqlite_tables(path, {"all": _TABLES}, whole=False).data or {"all": []}
        found = []
        for row in tables["all"]:
            table = str(row["name"])
            rows = sqlite_tables(path, {"": f'select * from "{table}"'}, whole=False).data or {
                "": []
            }
            found += [(table, place) for place in places_of(rows[""], names)]
        return found


def spoken(
    hints: Mapping[str, Hint], commands: Mapping[tuple[str, ...], Usage]
) -> dict[str, tuple[str, ...]]:
    """Each command of a contract in the program's words, as far as its help tells."""
    found: dict[str, tuple[str, ...]] = {}
    taken: set[tuple[str, ...]] = set()
    for verb, hint in hints.items():
        of_groups = [words for words in commands if words[0] in hint.groups]
        plain = [words for words in commands if len(words) == 1]
        places = (of_groups, plain, list(commands))
        for name, known in ((name, known) for known in places for name in hint.words):
            fitting = [words for words in known if words[-1] == name and words not in taken]
            said = next(
                (made for words in fitting if (made := _said(words, commands[words], hint))), None
            )
            if said is not None:
                found[verb] = said
                taken.add(tuple(word for word in said if not word.startswith(("{", "-"))))
                break
    return found


def _said(words: tuple[str, ...], usage: Usage, hint: Hint) -> tuple[str, ...] | None:
    """A command with its values: as arguments, in their order, or as options of the same name."""
    if usage.group or len(usage.arguments) > len(hint.says):
        return None
    left = list(hint.says)
    by_option = [name for name in left if f"--{name}" in usage.options]
    spare = max(len(left) - len(usage.arguments) - len(usage.optional), 0)
    options = by_option[-spare:] if spare else []
    if len(options) < spare:
        return None
    arguments = [f"{{{name}}}" for name in left if name not in options]
    flags = [word for name in options for word in (f"--{name}", f"{{{name}}}")]
    return (*words, *arguments, *flags)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _plain_result(answer: CommandResult) -> OperationResult:
    return OperationResult(answer.exit_code, answer.stdout, answer.stderr)
