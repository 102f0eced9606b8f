"""A program, tried once in a box: what its help says, what it makes, and what it says when it refuses."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mutiny.box.results import Command, CommandResult
from mutiny.box.startup import create_box
from mutiny.errors import TargetMissing
from mutiny.foreign import parse
from mutiny.kit.crash import crash_in
from mutiny.model.result import OperationResult
from mutiny.probes import tmux
from mutiny.probes.sources import front_matter, json_file, sqlite_tables
from mutiny.system.files import BoxPath
from mutiny.targets.discover.help_text import Usage, about_in, commands_in, plain, usage_in
from mutiny.targets.discover.records import Place, id_of, likely, no_log, places_of
from mutiny.targets.kit.hints import (
    AGENTS,
    FORCED,
    MEANT,
    NOBODY,
    OPTIONS,
    OTHER,
    SAMPLES,
    SOURCES,
    SPEAKERS,
    SPEAKING,
    UNATTENDED,
    Hint,
)
from mutiny.targets.kit.starting import trees_of, why_not_started

LIMIT_S = 30.0
AGENT_S = 8.0
MOST_ASKED = 6
MOST_OTHER = 3
"""So often a command is given again with the variables that it asks for: one may ask for ever."""
MOST_COMMANDS = 120
MOST_FILES = 2000
_QUIET = {"NO_COLOR": "1", "COLUMNS": "160", "TERM": "dumb"}
_TABLES = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
_WORKTREES = ("git", "worktree", "list", "--porcelain")
_BRANCHES = ("git", "for-each-ref", "--format=%(refname:short)", "refs/heads")


Refusals = dict[str, tuple[tuple[str, str], ...]]


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
    answer: str = ""
    """All that it printed."""


@dataclass(frozen=True)
class Source:
    """Where records are to be seen."""

    word: str
    """`file`, `sqlite`, `glob` or `command`."""
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
    refusals: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Class of refusals -> each thing that was said, and the name that was said in it."""
    made: Look = field(default_factory=Look)
    source: Source | None = None
    ready: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """What shows the work that nobody has begun, and what was printed, the likeliest first."""
    nobody: str = NOBODY
    """A name, in the form of its own, that nobody has."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that it asked for, as a target file says them."""
    followed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Commands that were given about what was made -> its record afterwards."""
    repeated: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Of these, who could give it once more: `same`, `other`."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """What they printed."""


class Discovery:
    """Looks at one program."""

    def __init__(self, program: Path, directory: Path) -> None:
        self._program = str(program)
        self._directory = directory
        self._begun: Tried | None = None
        self._help = ""
        """What it says of itself."""
        self._environment: dict[str, str] = {}
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
        text = self._help = first.stdout or first.stderr
        commands = self._read(text)
        before = self._look()  # only now: who knows no `--help` may have taken it for a name
        commands |= self._explained(commands, hints)
        found = Found(self._program, about_in(text), commands, spoken(hints, commands))
        return self._early(self._tried(found, hints, before), hints)

    # --- help --------------------------------------------------------------------------------------

    def _explained(
        self, found: Mapping[tuple[str, ...], Usage], hints: Mapping[str, Hint]
    ) -> dict[tuple[str, ...], Usage]:
        """A program that explains nothing before it was set up is set up, and asked once more."""
        silent = [
            words for words, usage in found.items() if not re.search(r"(?i)usage", usage.text)
        ]
        begin = spoken({verb: hints[verb] for verb in hints if verb == "init"}, found)
        if not silent or "init" not in begin:
            return {}
        self._begun = self._say(begin["init"], SAMPLES)
        return {words: self._usage(words, found[words]) for words in silent}

    def _usage(self, words: tuple[str, ...], listed: Usage) -> Usage:
        """How a command is spoken: by its own help, or as the list of commands says it."""
        answer = self._run(*words, "--help")
        text = answer.stdout or answer.stderr
        if text == self._help:  # it says of every command what it says of itself
            return listed
        explains = re.search(r"(?i)\busage\b", text) and not re.search(r"(?i)\berror\b", text)
        said = listed.arguments or listed.optional or listed.options
        return usage_in(text, words) if explains or not said else listed

    def _read(self, text: str) -> dict[tuple[str, ...], Usage]:
        found: dict[tuple[str, ...], Usage] = {}
        waiting: list[tuple[tuple[str, ...], Usage]] = [
            ((name,), listed) for name, listed in commands_in(text).items()
        ]
        while waiting and len(found) < MOST_COMMANDS:
            words, listed = waiting.pop(0)
            usage = self._usage(words, listed)
            found[words] = usage
            if usage.group and len(words) == 1 and usage.text != plain(text):
                below = commands_in(usage.text, words)
                waiting += [((*words, name), one) for name, one in below.items()]
        return found

    # --- trying ------------------------------------------------------------------------------------

    def _tried(self, found: Found, hints: Mapping[str, Hint], before: Look) -> Found:
        tried: dict[str, Tried] = {}
        refusals: Refusals = {}
        for verb, words in found.verbs.items():
            if hints[verb].tried:
                begun = self._begun if verb == "init" else None
                tried[verb] = begun or self._say(words, SAMPLES)
        found = self._otherwise(found, hints, tried)
        made = self._made(before)
        # Who could not even make something refuses for that reason, whatever else is said.
        works = all(one.succeeded for verb, one in tried.items() if verb != "init")
        source = self._source(found, made)
        nobody = _nobody(source)
        for verb, words in found.verbs.items() if works else ():
            hint = hints[verb]
            if hint.again and tried.get(verb) is not None and tried[verb].succeeded:
                self._refused(refusals, hint.again, self._say(words, SAMPLES), SAMPLES["worker"])
            subject = "{task}" if "task" in hint.says else "{worker}"
            if hint.nobody and subject in words:
                other = {
                    **SAMPLES,
                    **{name: nobody for name in SAMPLES if SAMPLES[name] == "probe-one"},
                }
                self._refused(refusals, hint.nobody, self._say(words, other), nobody)
        ready = {} if source is None else self._ready(found, source)
        found = self._followed(found, hints, source, refusals) if works else found
        return replace(
            found,
            tried=tried,
            refusals=refusals,
            made=made,
            source=source,
            ready=ready,
            nobody=nobody,
            environment=dict(self._environment),
        )

    def _otherwise(self, found: Found, hints: Mapping[str, Hint], tried: dict[str, Tried]) -> Found:
        """What failed is said in the program's other words for it, up to the first that go well."""
        verbs = dict(found.verbs)
        for verb in [verb for verb, one in tried.items() if not one.succeeded and verb != "init"]:
            said = {_command_in(words, found.commands) for words in verbs.values()}
            others = sayings(hints[verb], found.commands)
            fresh = dict.fromkeys(
                words for words in others if _command_in(words, found.commands) not in said
            )
            for words in list(fresh)[:MOST_OTHER]:
                once_more = self._say(words, SAMPLES)
                if once_more.succeeded:
                    verbs[verb], tried[verb] = words, once_more
                    break
        return replace(found, verbs=verbs)

    def _followed(
        self,
        found: Found,
        hints: Mapping[str, Hint],
        source: Source | None,
        refusals: Refusals,
    ) -> Found:
        """Go on with what was made: its record tells the program's words for how far it has come."""
        own = "" if source is None else id_of(source.place.record)
        followed: dict[str, Mapping[str, Any]] = {}
        repeated: dict[str, frozenset[str]] = {}
        answers: dict[str, str] = {}
        for verb, words in found.verbs.items() if own else ():
            hint = hints[verb]
            if not hint.follows:
                continue
            values = {**SAMPLES, "task": own}
            first = OTHER if hint.stranger and "{worker}" in words else SAMPLES["worker"]
            went = self._say(words, {**values, "worker": first})
            if first == OTHER and not went.succeeded:
                self._refused(refusals, hint.stranger, went, own)
                went = self._say(words, values)
            if not went.succeeded:
                continue
            answers[verb] = went.answer
            now = self._source(found, self._look())
            followed |= {} if now is None else {verb: now.place.record}
            if hint.others:
                other = self._say(words, {**values, "worker": OTHER})
                refused = hint.others if "{task}" in words else hint.empty
                self._refused(refusals, refused, other, own)
                same = self._say(words, values)
                could = {"same": same.succeeded, "other": other.succeeded}
                repeated[verb] = frozenset(who for who, well in could.items() if well)
        over = {
            verb: hints[verb].over
            for verb, words in found.verbs.items()
            if hints[verb].over and "{task}" in words
        }
        for verb, name in over.items() if "complete" in followed else ():
            once_more = self._say(found.verbs[verb], {**SAMPLES, "task": own})
            self._refused(refusals, name, once_more, own)
        return replace(found, followed=followed, repeated=repeated, answers=answers)

    def _early(self, found: Found, hints: Mapping[str, Hint]) -> Found:
        """What is refused where nothing was set up, in words that are not said afterwards."""
        asked = {verb: hints[verb].early for verb in found.verbs if hints[verb].early}
        begun = found.tried.get("init")
        if begun is None or not begun.succeeded or not asked:
            return found
        values = {**SAMPLES, "task": found.nobody}
        refusals: Refusals = {}
        with self._untouched() as untouched:
            for verb, name in asked.items():
                now = self._say(found.verbs[verb], values)
                early = untouched._say(found.verbs[verb], values)
                if early.said != now.said:
                    self._refused(refusals, name, early, found.nobody)
        return replace(found, refusals={**refusals, **found.refusals})

    def _untouched(self) -> Discovery:
        """The same program in another box, where it was never told anything."""
        other = Discovery(Path(self._program), self._directory / "untouched")
        other._environment |= self._environment
        return other

    def _ready(self, found: Found, source: Source) -> dict[tuple[str, ...], str]:
        """What shows the work that nobody has begun: the words, and what they printed."""
        status = str(source.place.record.get("status", ""))
        said: list[tuple[str, ...]] = []
        for words, usage in found.commands.items():
            form = tuple(one for one in ("--json", "--plain") if one in usage.options)[:1]
            listed = found.verbs.get("list", ())[: len(words)] == words
            if usage.arguments or not (words[-1] == "ready" or listed):
                continue
            if words[-1] == "ready":
                said.insert(0, (*words, *form))
            elif "--ready" in usage.options:
                said.append((*words, *form, "--ready"))
            elif "--status" in usage.options and status:
                said.append((*words, *form, "--status", status))
        return {words: self._run(*words).stdout for words in said}

    @staticmethod
    def _refused(refusals: Refusals, name: str, tried: Tried, subject: str) -> None:
        if (
            not tried.succeeded and tried.said and crash_in(tried.said) is None
        ):  # no words of its own
            refusals[name] = (*refusals.get(name, ()), (tried.said, subject))

    def _say(self, words: Sequence[str], values: Mapping[str, str]) -> Tried:
        """Give a command; when it asks for a variable of the environment, once more with that."""
        said = [re.sub(r"\{(\w+)\}", lambda one: values.get(one[1], "1"), word) for word in words]
        for _ in range(MOST_ASKED):
            answer = self._run(*said)
            told = (answer.stderr or answer.stdout).strip()
            asked = () if answer.exit_code == 0 else variables_asked(told)
            new = {name: value_of(name) for name in asked if name not in self._environment}
            if not new:
                break
            self._environment |= new
        return Tried(tuple(said), answer.exit_code == 0, told, answer.stdout)

    def _run(self, *words: str) -> CommandResult:
        return self._ask((self._program, *words))

    def _ask(self, argv: tuple[str, ...]) -> CommandResult:
        place = f"{self._box.inside_root}/source"
        root = self._box.inside_root
        own = {
            name: text.replace("{home}", f"{root}/home") for name, text in self._environment.items()
        }
        return self._box.run_many([Command(argv, LIMIT_S, place, {**_QUIET, **own})])[0]

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
            frozenset(self._ask(tmux.SESSIONS).stdout.splitlines()),
            frozenset(re.findall(r"(?m)^worktree (.*)$", trees)),
            frozenset(self._ask(_BRANCHES).stdout.splitlines()),
            agents,
        )

    def _made(self, before: Look) -> Look:
        """What is new; an agent in a new session is waited for a little: a shell starts it first."""
        deadline = time.monotonic() + AGENT_S
        while True:
            made = self._look().since(before)
            if made.agents or not made.sessions or time.monotonic() > deadline:
                return made
            time.sleep(0.2)

    def _source(self, found: Found, made: Look) -> Source | None:
        """The first that shows what was made: a JSON file, a database, a command that prints JSON."""
        names = frozenset((SAMPLES["worker"], SAMPLES["prompt"]))
        for name in sorted(filter(no_log, made.files), key=likely):
            path = self._box.files / name
            inside = "{" + name.replace("/", "}/", 1)
            if name.endswith((".json", ".jsonl")):
                for place in places_of(json_file(path).data, names):
                    return Source("file", inside, place)
            if name.endswith(".md"):
                rows = [{"name": path.name.rpartition(".")[0], **(front_matter(path).data or {})}]
                for place in places_of(rows, names):
                    return Source("glob", f"{inside.rpartition('/')[0]}/*.md", place)
            if name.endswith((".db", ".sqlite", ".sqlite3")):
                for table, place in self._in_tables(path, names):
                    return Source("sqlite", inside, place, table)
        for words, usage in found.commands.items():
            if (
                not usage.arguments
                and words[-1] in ("list", "ls", "status")
                and "--json" in usage.options
            ):
                said = (*words, *(("--all",) if "--all" in usage.options else ()), "--json")
                for place in places_of(_parsed(self._run(*said).stdout), names):
                    return Source("command", " ".join(said), place)
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


def variables_asked(said: str) -> tuple[str, ...]:
    """Variables of the environment that a refusal asks for: `set MINE_DB`, `$MINE_DB is not set`."""
    asked = re.findall(r"(?i:\b(?:set|export|define)\s+\$?|\$\{?)([A-Z][A-Z0-9]*_[A-Z0-9_]+)", said)
    unset = re.findall(
        r"([A-Z][A-Z0-9]*_[A-Z0-9_]+)\W+(?i:(?:is|was) (?:not set|unset|missing|required))", said
    )
    return tuple(dict.fromkeys((*asked, *unset)))


def value_of(variable: str) -> str:
    """What a variable is set to: a place below the home where its name means one, else a name."""
    kind = variable.rpartition("_")[2]
    if kind in ("DB", "DATABASE", "FILE"):
        return f"{{home}}/mine/state.{'json' if kind == 'FILE' else 'db'}"
    return "{home}/mine" if kind in ("DIR", "HOME", "ROOT", "PATH") else "planner"


def _nobody(source: Source | None) -> str:
    """Who gives numbers, alone or behind a word, is asked for a number that nobody has."""
    given = "" if source is None else id_of(source.place.record)
    number = re.fullmatch(r"(.*?)\d+", given)
    return f"{number[1]}999999" if number else NOBODY


def spoken(
    hints: Mapping[str, Hint], commands: Mapping[tuple[str, ...], Usage]
) -> dict[str, tuple[str, ...]]:
    """Each command of a contract in the program's words, as far as its help tells."""
    found: dict[str, tuple[str, ...]] = {}
    taken: set[tuple[str, ...]] = set()
    for verb, hint in hints.items():
        own_words = (
            one for one in _by_name(hint, commands) if _command_in(one, commands) not in taken
        )
        said = next(own_words, None) or next(_general(hint, commands), None)
        if said is not None:
            found[verb] = said
            taken.add(_command_in(said, commands))
    for verb, hint in hints.items():
        own = found.get(verb, ())
        usage = commands.get(_command_in(own, commands))
        if usage is not None and hint.instead and hint.instead not in found:
            option = _option("prompt", usage)
            found[verb] = (*own, option, "{prompt}") if option else own
    return found


def sayings(hint: Hint, commands: Mapping[tuple[str, ...], Usage]) -> Iterator[tuple[str, ...]]:
    """Every way in which a program may say a command, the likeliest first."""
    yield from _by_name(hint, commands)
    yield from _general(hint, commands)


def _by_name(hint: Hint, commands: Mapping[tuple[str, ...], Usage]) -> Iterator[tuple[str, ...]]:
    of_groups = [words for words in commands if words[0] in hint.groups]
    alone = [words for words in commands if len(words) == 1]
    for known in (of_groups, alone, list(commands)):
        for name in hint.words:
            for words in known:
                called = words[-1] == name or words[-1] in {f"{name}-{one}" for one in hint.groups}
                said = _said(words, commands[words], hint) if called else None
                if said is not None:
                    yield said


def _command_in(
    said: tuple[str, ...], commands: Mapping[tuple[str, ...], Usage]
) -> tuple[str, ...]:
    """The words of the command in a whole command line."""
    return max((words for words in commands if said[: len(words)] == words), key=len, default=())


def _general(hint: Hint, commands: Mapping[tuple[str, ...], Usage]) -> Iterator[tuple[str, ...]]:
    """A general command with options: `update {task} --claim`; who speaks is said where it can be."""
    for way in hint.ways:
        for words, usage in commands.items():
            wanted = {word for word in way.options if word.startswith("--")}
            if words[-1] not in way.words or usage.group or not wanted <= usage.options:
                continue
            behind = len(way.options) if not wanted else 0
            places = len(usage.arguments) + len(usage.optional)
            if behind >= max(places, 1) or not re.search(way.means, usage.text):
                continue
            who = _speaker(usage)
            unsaid = "worker" in hint.may and "{worker}" not in way.options
            speaker = (who, "{worker}") if who and unsaid else ()
            form = [] if way.names else [one for one in hint.forms if one in usage.options][:1]
            yield (*words, *(("{task}",) if way.names else ()), *way.options, *speaker, *form)


def _speaker(usage: Usage) -> str:
    """The option by which a command is told who speaks; empty when there is none."""
    known = next((one for one in SPEAKERS if one in usage.options), "")
    told = None if known else SPEAKING.search(usage.text)
    return known if told is None else told[1]


def _said(words: tuple[str, ...], usage: Usage, hint: Hint) -> tuple[str, ...] | None:
    """A command with its values: as arguments, in their order, or as options of the same name."""
    if usage.group:
        return None
    left, flags = list(hint.says), list[str]()
    while len(left) > len(usage.arguments) + len(usage.optional):
        known = [name for name in left if _option(name, usage)]
        spare = next((name for name in left if name in hint.may), known[-1] if known else None)
        if spare is None:
            return None
        left.remove(spare)
        option = _option(spare, usage)
        flags[:0] = [option, f"{{{spare}}}"] if option else []
    if len(usage.arguments) > len(left):
        return None
    arguments = [name[1:] if name.startswith("=") else f"{{{name}}}" for name in left]
    unattended = [one for one in UNATTENDED if one in usage.options] if hint.tried else []
    confirms = FORCED if re.search(r"(?i)\bconfirm", usage.text) else MEANT if hint.asks else ()
    unattended += [one for one in confirms if one in usage.options][:1]
    if hint.starts:
        flags += _agent(usage)
    source = next((one for one in SOURCES if one in usage.options), None)
    if hint.begins and source:
        flags += [source, "{source}"]
    form = next((one for one in hint.forms if one in usage.options), None)
    whole = [one for one in hint.whole if one in usage.options]
    return (*words, *arguments, *flags, *unattended, *whole, *([] if form is None else [form]))


def _agent(usage: Usage) -> list[str]:
    """The option by which a command is told which agent to start, where it has no default."""
    for line in usage.text.splitlines():
        named = next((one for one in AGENTS if re.search(rf"{one}\b", line)), None)
        if named and named in usage.options and "claude" in line and "default" not in line.lower():
            return [named, "claude"]
    return []


def _option(name: str, usage: Usage) -> str:
    """The option that says a value; empty when there is none."""
    return next((one for one in OPTIONS.get(name, (f"--{name}",)) if one in usage.options), "")


def _parsed(text: str) -> Any:
    try:
        return parse(text)
    except ValueError:
        return None


def _plain_result(answer: CommandResult) -> OperationResult:
    return OperationResult(answer.exit_code, answer.stdout, answer.stderr)
