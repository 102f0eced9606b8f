"""A target as one TOML file: which words to say, where the state lies, what its refusals sound
like.

A new orchestrator needs no Python: `mutiny target init` writes a commented file, `mutiny target
check` names every mistake with its line. longboat's and LLMC's own adapters are such files
(`targets/*.toml`).
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from mutiny import documents
from mutiny.codec import decode
from mutiny.contracts.workers.expect import REJECTIONS
from mutiny.contracts.workers.operations import OPERATIONS, STATUSES
from mutiny.contracts.workers.profile import LEGAL, NEEDS_DAEMON, Limits, Profile
from mutiny.contracts.workers.rules import BINDING, RULES
from mutiny.errors import FormatError, nearest
from mutiny.model.operation import Kind
from mutiny.targets.kit.checks import (
    check_excuses,
    check_inside,
    check_mounts,
    check_regex,
    with_line,
)

FORMAT = 1

COMMANDS = (
    *("init", "up", "down", "add", "nuke", "start", "message", "attach", "review"),
    *("accept", "reject", "rebase", "reset", "doctor", "repair", "status"),
)
REQUIRED_COMMANDS = ("init", "up", "down", "add", "nuke", "start", "review", "accept", "reject")
PLACEHOLDERS = (
    "program",
    "box",
    "home",
    "source",
    "tmp",
    "worker",
    "prompt",
    "message",
    "model",
    "plant",
)


@dataclass(frozen=True)
class CommandSpec:
    """How one command is spoken."""

    argv: tuple[str, ...]
    stdin: str = ""
    timeout_s: float | None = None
    background: bool = False
    """The command stays in the foreground for ever: it is started and left running."""
    ready: str = ""
    """Regular expression in the background command's output that means: it is up."""
    stop_daemon: str = ""
    """Signal (INT, TERM) to the daemon process before the command, for targets whose `down` leaves
    it running.
    """
    then: tuple[tuple[str, ...], ...] = ()
    """Commands that follow a success, for example to set intervals for the test."""


@dataclass(frozen=True)
class StateFields:
    """Names of a worker's fields in the target's state file."""

    status: str = "status"
    branch: str = "branch"
    worktree: str = "worktree"
    session: str = "session"
    prompt: str = "current_prompt"
    pending_prompt: str = ""
    commit_sha: str = "commit_sha"
    error_reason: str = "error_reason"


@dataclass(frozen=True)
class StateSpec:
    """Where the target keeps its state and how to read it."""

    file: str
    workers: str = "workers"
    daemon_flag: str = ""
    fields: StateFields = field(default_factory=StateFields)


@dataclass(frozen=True)
class DaemonSpec:
    """The daemon is what `up` leaves running (`daemons.py`); it is always killed by handle."""

    argv: str = ""
    """A hint: processes whose command line matches this regular expression are the daemon, too."""


@dataclass(frozen=True)
class GitSpec:
    """Repositories in which work lives."""

    repositories: tuple[str, ...] = ("{source}",)
    default_branch: str = "master"
    squashes: bool = False
    """Accept squashes a branch and keeps only the last message: tokens are also looked for in what
    commits add.
    """


@dataclass(frozen=True)
class LogSpec:
    """Files worth keeping with a bug."""

    daemon: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProfileSpec:
    """Where the target differs from the contract's ideal."""

    legal: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needs_daemon: tuple[str, ...] | None = None
    restarts_agents_on_up: bool = False
    start_is_immediate: bool = True
    extra_moves: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dirty_source: str = "refuse"
    keeps_discarded: bool = False
    notices_damage: bool = False
    sure_calls: int = 0
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class TargetSpec:
    """Everything that Mutiny needs to know about a workers target."""

    format: int
    name: str
    contract: str
    program: str
    commands: Mapping[str, CommandSpec]
    state: StateSpec
    rejections: Mapping[str, tuple[str, ...]]
    sessions: str
    """Regular expression of the session names that belong to the target."""
    daemon: DaemonSpec = field(default_factory=DaemonSpec)
    about: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    statuses: Mapping[str, str] = field(default_factory=dict)
    """The target's word -> the contract's word, where they differ."""
    git: GitSpec = field(default_factory=GitSpec)
    logs: LogSpec = field(default_factory=LogSpec)
    status_daemon: str = ""
    """Key in the JSON answer of `status` that claims whether the daemon runs."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Files and directories that faults may name, beyond `state`, `source` and `home`."""
    parties: Mapping[str, str] = field(default_factory=dict)
    """Addresses (`127.0.0.1:8080`) that network faults may name, beyond `network`."""
    mounts: tuple[str, ...] = ()
    """Directories of this machine that the program must see, beyond those that are found from it."""
    needs: tuple[str, ...] = ("git", "tmux")
    """Programs that must be installed; `python:NAME` is a package."""
    profile: ProfileSpec = field(default_factory=ProfileSpec)

    def make_profile(self) -> Profile:
        """The contract's profile of this target."""
        own = self.profile
        return Profile(
            legal={**LEGAL, **own.legal},
            needs_daemon=NEEDS_DAEMON if own.needs_daemon is None else own.needs_daemon,
            restarts_agents_on_up=own.restarts_agents_on_up,
            start_is_immediate=own.start_is_immediate,
            extra_moves=own.extra_moves,
            dirty_source=own.dirty_source,
            keeps_discarded=own.keeps_discarded,
            notices_damage=own.notices_damage,
            has_lock="lock" in self.places,
            sure_calls=own.sure_calls,
            not_applicable=own.not_applicable,
            limits=own.limits,
        )


def load_spec(path: Path) -> TargetSpec:
    """Read and check a target file; all mistakes are reported at once, each with its line."""
    data, text = documents.read_toml(path, "target file")
    newer = data.get("format")
    if isinstance(newer, int) and newer > FORMAT:
        raise FormatError(str(path), [f"format {newer} is newer than this Mutiny reads ({FORMAT})"])
    try:
        spec = decode(TargetSpec, data, where=str(path))
    except FormatError as error:
        raise FormatError(
            str(path), [with_line(text, problem) for problem in error.problems]
        ) from error
    problems = _check(spec)
    if problems:
        raise FormatError(str(path), [with_line(text, problem) for problem in problems])
    return spec


def _check(spec: TargetSpec) -> list[str]:
    """What types cannot say."""
    problems: list[str] = []
    if spec.contract != "workers":
        problems.append(
            f"contract: unknown contract {spec.contract!r}{nearest(spec.contract, ['workers'])}"
        )
    for name in spec.commands:
        if name not in COMMANDS:
            problems.append(f"commands.{name}: unknown command{nearest(name, COMMANDS)}")
    problems += [
        f"commands.{name}: is missing" for name in REQUIRED_COMMANDS if name not in spec.commands
    ]
    for name, command in spec.commands.items():
        problems += _check_command(f"commands.{name}", command)
    problems += _check_places(spec)
    problems += check_mounts(spec.mounts)
    for name, patterns in spec.rejections.items():
        if name not in REJECTIONS:
            problems.append(
                f"rejections.{name}: unknown class of refusals{nearest(name, list(REJECTIONS))}"
            )
        for pattern in patterns:
            problems += check_regex(f"rejections.{name}", pattern)
    for theirs, ours in spec.statuses.items():
        if ours not in STATUSES:
            problems.append(f"statuses.{theirs}: unknown status {ours!r}{nearest(ours, STATUSES)}")
    problems += check_regex("daemon.argv", spec.daemon.argv)
    problems += check_regex("sessions", spec.sessions)
    problems += _check_profile(spec.profile)
    return problems


def _check_command(where: str, command: CommandSpec) -> list[str]:
    problems: list[str] = []
    words = (*command.argv, command.stdin, *(word for argv in command.then for word in argv))
    for text in words:
        problems += _check_placeholders(where, text)
    if not command.argv:
        problems.append(f"{where}.argv: is empty")
    if command.ready:
        problems += check_regex(f"{where}.ready", command.ready)
    if command.stop_daemon and f"SIG{command.stop_daemon}" not in signal.Signals.__members__:
        problems.append(
            f"{where}.stop_daemon: {command.stop_daemon!r} is no signal; write INT or TERM"
        )
    if command.timeout_s is not None and command.timeout_s <= 0:
        problems.append(f"{where}.timeout_s: must be more than 0")
    return problems


def _check_places(spec: TargetSpec) -> list[str]:
    """Placeholders outside of the commands, and files that must lie in the box."""
    paths = {
        "state.file": (spec.state.file,),
        "logs.daemon": (spec.logs.daemon,) if spec.logs.daemon else (),
        "logs.files": spec.logs.files,
        "git.repositories": spec.git.repositories,
        **{f"places.{name}": (value,) for name, value in spec.places.items()},
    }
    problems = [
        problem
        for where, values in paths.items()
        for value in values
        for problem in _check_placeholders(where, value) or check_inside(where, value)
    ]
    for name, value in spec.environment.items():
        problems += _check_placeholders(f"environment.{name}", value)
    return problems


def _check_profile(profile: ProfileSpec) -> list[str]:
    problems = []
    commands = [name for name, cls in OPERATIONS.items() if cls.kind is Kind.COMMAND]
    problems += [
        f"profile.needs_daemon: unknown command {name!r}{nearest(name, commands)}"
        for name in profile.needs_daemon or ()
        if name not in commands
    ]
    problems += [
        f"profile.extra_moves.{status}: unknown status {word!r}{nearest(word, STATUSES)}"
        for status, moves in profile.extra_moves.items()
        for word in (status, *moves)
        if word not in STATUSES
    ]
    for command, statuses in profile.legal.items():
        if command not in LEGAL:
            problems.append(
                f"profile.legal.{command}: unknown command{nearest(command, list(LEGAL))}"
            )
        problems += [
            f"profile.legal.{command}: unknown status {status!r}{nearest(status, STATUSES)}"
            for status in statuses
            if status not in (*STATUSES, "*")
        ]
    problems += check_excuses(profile.not_applicable, RULES, BINDING)
    if profile.dirty_source not in ("refuse", "either"):
        problems.append("profile.dirty_source: is neither 'refuse' nor 'either'")
    for item in fields(profile.limits):
        if getattr(profile.limits, item.name) <= 0:
            problems.append(f"profile.limits.{item.name}: must be more than 0")
    return problems


def _check_placeholders(where: str, text: str) -> list[str]:
    return [
        f"{where}: unknown placeholder {{{name}}}{nearest(name, PLACEHOLDERS)}"
        for name in re.findall(r"\{([a-z_]+)\}", text)
        if name not in PLACEHOLDERS
    ]


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace `{placeholder}`s; other braces stay as they are."""
    return re.sub(r"\{([a-z_]+)\}", lambda match: values.get(match[1], match[0]), text)
