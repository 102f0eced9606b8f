"""A board as one TOML file: how its commands are spoken, where its state lies, which figures it keeps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from mutiny import documents
from mutiny.codec import decode
from mutiny.contracts.board.answers import Words
from mutiny.contracts.board.explain import KNOWN
from mutiny.contracts.board.operations import OPERATIONS, SETTINGS, STATUSES
from mutiny.contracts.board.profile import BoardProfile
from mutiny.contracts.board.rules import BINDING, RULES
from mutiny.errors import FormatError, nearest
from mutiny.targets.kit.checks import (
    check_all_inside,
    check_excuses,
    check_inside,
    check_mounts,
    check_regex,
    with_line,
)

FORMAT = 1
COMMANDS = {
    "init": "Init",
    "add": "AddTask",
    "add_batch": "AddBatch",
    "claim": "Claim",
    "start": "Start",
    "complete": "Complete",
    "fail": "Fail",
    "heartbeat": "Heartbeat",
    "release": "Release",
    "cancel": "Cancel",
    "retry": "Retry",
    "recover": "Recover",
    "checkpoint": "Checkpoint",
    "restore": "Restore",
    "elect": "Elect",
    "renew": "Renew",
    "step_down": "StepDown",
    "write_as_leader": "WriteAsLeader",
    "status": "Status",
    "list": "List",
    "repair": "Repair",
}
"""The target file's name of each command, and the operation that it carries out."""
REQUIRED = ("add", "claim", "complete", "list")
PLACEHOLDERS = (
    *(
        "program",
        "box",
        "home",
        "source",
        "tmp",
        "plant",
        "python",
        "client",
        "drivers",
        "endpoint",
    ),
    *("task", "description", "priority", "depends", "max_attempts", "payload", "tasks", "batch"),
    *("worker", "epoch", "output", "output_file", "reason", "name", "node", "token", "text"),
)


@dataclass(frozen=True)
class SpokenCommand:
    """How one command is spoken: a command line, or a tool of an MCP server."""

    argv: tuple[str, ...] = ()
    optional: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Words that are only said when there is a value of this name; once for each of several."""
    tool: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """The tool's argument -> our value."""
    timeout_s: float | None = None

    def template(self, client: tuple[str, ...]) -> dict[str, object]:
        """The form that `doubles/boards/speech.py` speaks."""
        return {
            "argv": list(client if self.tool else self.argv),
            "optional": {name: list(group) for name, group in self.optional.items()},
            "tool": self.tool,
            "arguments": dict(self.arguments),
        }


@dataclass(frozen=True)
class ServerSpec:
    """The board's server: how it is started, when it is ready, how it is recognised and stopped."""

    argv: tuple[str, ...]
    ready: str
    """Regular expression in its output; a group `endpoint` says where clients find it."""
    process: str
    """Regular expression of its command line."""
    stop: str = "TERM"
    then: tuple[str, ...] = ()
    """Commands that make the board when its first server is ready."""


@dataclass(frozen=True)
class LinesSpec:
    """A socket on which a JSON object a line is asked and answered: loads use it instead of processes."""

    socket: str
    messages: Mapping[str, Mapping[str, str]]
    """Command -> the object's fields; `"{worker}"` is the value itself, and is left out without one."""


@dataclass(frozen=True)
class AgentsSpec:
    """The board starts agents of its own: doubles stand in for them."""

    prompt: str
    """Regular expression of a prompt; its group `task` is the task's name."""


@dataclass(frozen=True)
class StateFields:
    """Names of a task's fields where the target shows them."""

    id: str = "id"
    status: str = "status"
    owner: str = "owner"
    epoch: str = "epoch"
    attempts: str = "attempts"
    max_attempts: str = "max_attempts"
    priority: str = "priority"
    depends: str = "depends"
    completions: str = "completions"
    output: str = "output"
    reason: str = "reason"


@dataclass(frozen=True)
class StateSpec:
    """How the board is looked at: its state file, or its own `list`."""

    directory: str
    """Where its files lie."""
    file: str = ""
    """What `CorruptBoard` damages; with `probe = "file"` also what is read."""
    probe: str = "file"
    tasks: str = "tasks"
    leader: str = "leader"
    fields: StateFields = field(default_factory=StateFields)


@dataclass(frozen=True)
class BoardSpec:
    """Everything that Mutiny needs to know about a board."""

    format: int
    name: str
    contract: str
    program: str
    commands: Mapping[str, SpokenCommand]
    state: StateSpec
    about: str = ""
    script: bool = False
    """The program is read by an interpreter, and need not be executable itself."""
    environment: Mapping[str, str] = field(default_factory=dict)
    client: tuple[str, ...] = ()
    """The command line before a tool's name and its arguments."""
    server: ServerSpec | None = None
    lines: LinesSpec | None = None
    agents: AgentsSpec | None = None
    configure: Mapping[str, str] = field(default_factory=dict)
    """Figure -> environment variable that sets it."""
    statuses: Mapping[str, str] = field(default_factory=dict)
    """The target's word -> the contract's word, where they differ."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """The target's class of refusals -> the contract's, where they differ."""
    rejections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Class of refusals -> regular expressions, where the target has only texts."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The target's name of an answer's field -> the contract's."""
    places: Mapping[str, str] = field(default_factory=dict)
    parties: Mapping[str, str] = field(default_factory=dict)
    logs: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    """Directories of this machine that the program must see, beyond those that are found from it."""
    needs: tuple[str, ...] = ("git",)
    """Programs that must be installed; `python:NAME` is a package."""
    profile: BoardProfile = field(default_factory=BoardProfile)

    @property
    def words(self) -> Words:
        """How its answers are read."""
        return Words(self.errors, self.rejections, self.names)

    def template(self, command: str) -> dict[str, object] | None:
        """How a command is spoken; None when the target has none."""
        spec = self.commands.get(command)
        return None if spec is None else spec.template(self.client)


def load_board_spec(path: Path) -> BoardSpec:
    """Read and check a target file; all mistakes are reported at once."""
    data, text = documents.read_toml(path, "target file")
    if isinstance(data.get("extends"), str):
        base = path.with_name(f"{data.pop('extends')}.toml")
        data = _merged(documents.read_toml(base, "target file")[0], data)
    newer = data.get("format")
    if isinstance(newer, int) and newer > FORMAT:
        raise FormatError(str(path), [f"format {newer} is newer than this Mutiny reads ({FORMAT})"])
    try:
        spec = decode(BoardSpec, data, where=str(path))
        problems = _check(spec)
    except FormatError as error:
        problems = list(error.problems)
    if problems:
        raise FormatError(str(path), [with_line(text, problem) for problem in problems])
    return spec


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A target that differs from another one in a few words: tables are merged, the rest is replaced."""
    both = dict(base)
    for name, value in changes.items():
        mine = both.get(name)
        if isinstance(mine, dict) and isinstance(value, dict):
            both[name] = _merged(mine, value)
        else:
            both[name] = value
    return both


def _check(spec: BoardSpec) -> list[str]:
    """What types cannot say."""
    problems = [
        f"commands.{name}: unknown command{nearest(name, list(COMMANDS))}"
        for name in spec.commands
        if name not in COMMANDS
    ]
    problems += [f"commands.{name}: is missing" for name in REQUIRED if name not in spec.commands]
    for name, command in spec.commands.items():
        problems += _check_command(f"commands.{name}", command, spec)
    problems += [
        f"configure.{name}: unknown figure{nearest(name, SETTINGS)}"
        for name in spec.configure
        if name not in SETTINGS
    ]
    problems += [
        f"statuses.{theirs}: unknown status {ours!r}{nearest(ours, STATUSES)}"
        for theirs, ours in spec.statuses.items()
        if ours not in STATUSES
    ]
    for table in (spec.errors.values(), spec.rejections):
        problems += [
            f"unknown class of refusals {word!r}{nearest(word, sorted(KNOWN))}"
            for word in table
            if word not in KNOWN
        ]
    for name, patterns in spec.rejections.items():
        for pattern in patterns:
            problems += check_regex(f"rejections.{name}", pattern)
    if spec.server is not None:
        problems += check_regex("server.ready", spec.server.ready)
        problems += check_regex("server.process", spec.server.process)
    if spec.agents is not None:
        problems += check_regex("agents.prompt", spec.agents.prompt)
    if spec.profile.works != (spec.agents is not None):
        problems.append("profile.works: must be true with [agents], and only then")
    if spec.profile.server != (spec.server is not None):
        problems.append("profile.server: must be true with [server], and only then")
    if spec.state.probe not in ("file", "list"):
        problems.append(f"state.probe: {spec.state.probe!r} is neither 'file' nor 'list'")
    if spec.state.probe == "file" and not spec.state.file:
        problems.append("state.file: is missing")
    problems += check_all_inside("state.file", filter(None, [spec.state.file]))
    for name, text in spec.places.items():
        problems += check_inside(f"places.{name}", text)
    problems += check_all_inside("logs", spec.logs)
    problems += check_mounts(spec.mounts)
    return problems + _check_profile(spec.profile)


def _check_command(where: str, command: SpokenCommand, spec: BoardSpec) -> list[str]:
    problems: list[str] = []
    if bool(command.argv) == bool(command.tool):
        problems.append(f"{where}: give either argv or tool")
    if command.tool and not spec.client:
        problems.append(f"{where}: a tool needs the command line of a client: `client = [...]`")
    words = (*command.argv, *(word for group in command.optional.values() for word in group))
    for text in words:
        problems += [
            f"{where}: unknown placeholder {{{name}}}{nearest(name, PLACEHOLDERS)}"
            for name in re.findall(r"\{([a-z_]+)\}", text)
            if name not in PLACEHOLDERS
        ]
    problems += [
        f"{where}: unknown value {name!r}{nearest(name, PLACEHOLDERS)}"
        for name in (*command.optional, *command.arguments.values())
        if name not in PLACEHOLDERS
    ]
    return problems


def _check_profile(profile: BoardProfile) -> list[str]:
    problems: list[str] = []
    problems += check_excuses(profile.not_applicable, RULES, BINDING)
    problems += [
        f"profile.lacks: unknown operation {name!r}{nearest(name, list(OPERATIONS))}"
        for name in profile.lacks
        if name not in OPERATIONS
    ]
    problems += [
        f"profile.limits.{item.name}: must be more than 0"
        for item in fields(profile.limits)
        if getattr(profile.limits, item.name) <= 0
    ]
    return problems
