"""Look at a live workers target: state file, processes, tmux, git, and what the doubles wrote.

One look is one batch of concurrent questions into the box; what has not changed is not asked again.
A question that fails leaves its fact unknown and says so.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from mutiny.box.box import Box
from mutiny.box.errors import CommandNotStarted
from mutiny.box.results import Command, CommandResult, ProcessInfo
from mutiny.contracts.workers.observation import Observation, WorkerView
from mutiny.doubles.agents.shapes import FOLDERS
from mutiny.doubles.install import Received
from mutiny.faults.process import view_of
from mutiny.kit.crash import crash_in
from mutiny.kit.views import AgentView, Commit, ProcessView, Receipt, WorktreeView
from mutiny.model.result import OperationResult
from mutiny.probes import doubles, git, tmux
from mutiny.probes.records import Raw, Row
from mutiny.system.files import BoxPath
from mutiny.system.inotify import Event
from mutiny.targets.kit.combinations import as_result
from mutiny.targets.kit.daemons import Daemons
from mutiny.targets.kit.files import fill
from mutiny.targets.kit.naming import Names
from mutiny.targets.kit.pacing import Pacing
from mutiny.targets.kit.state import read_source, with_known
from mutiny.targets.kit.watching import Changes
from mutiny.targets.workers.spec import TargetSpec
from mutiny.targets.workers.state_file import StateReading, interpret

PROBE_TIMEOUT_S = 10.0
LOOKS = 3


class Observer:
    """Looks at one live target in one box."""

    def __init__(
        self,
        box: Box,
        spec: TargetSpec,
        values: Mapping[str, str],
        *,
        double_agents: bool,
        outside: Callable[[str], BoxPath] | None = None,
        known_daemons: Daemons | None = None,
        pacing: Pacing | None = None,
        environment: Callable[[], Mapping[str, str]] = dict,
        names: Names | None = None,
    ) -> None:
        self._box = box
        self.names = names or Names()
        self.places: dict[str, str] = {}
        """The name of a worktree's directory, by which the doubles call themselves -> the worker's."""
        self._whose: dict[doubles.Identity, str] = {}
        """Whose an agent is: also when somebody else has its directory's name by now."""
        self.strangers: tuple[str, ...] = ()
        """Records that may be any of several workers."""
        self._environment = environment
        self._outside = outside or box.outside
        """The host path of a file of the box; asked anew each time: a disk may be put over it."""
        self._spec = spec
        self._double_agents = double_agents
        self.known_daemons = known_daemons or Daemons(spec.daemon.argv)
        self._words = replace(spec.state.words, statuses=spec.statuses, rules=spec.status_rules)
        self._values = values
        self._state_file = fill(spec.state.stored, values)
        self._repositories = tuple(fill(text, values) for text in spec.git.repositories)
        self._source = values["source"]
        self.received = doubles.ReceivedLog(box.files / "doubles" / "received.jsonl")
        self.pacing = pacing or Pacing()
        self.changes = Changes(lambda: (self.state_path.parent, box.files / "doubles"), self._note)
        self._written_in_place = False
        self._log_read = 0
        """So much of the daemon's log is known."""
        self._left: tuple[bytes | None] | None = None
        """What a fault made of the state file (None inside: it is gone), until the target wrote it."""
        self._commit_cache: dict[str, tuple[str, tuple[Commit, ...]]] = {}
        self._default_tokens: frozenset[str] | None = None
        self._default_untold: frozenset[str] | None = None
        self._default_shape: frozenset[str] | None = None
        self._default_conflicted: frozenset[str] | None = None
        self._source_dirty: tuple[str, tuple[str, ...] | None] = ("", None)
        """The changed files of the user's checkout, and the state of the repository that showed them."""
        self.neighbour: tuple[str, str, str] | None = None
        """What somebody else has: a session, a branch, and the commit that it is at."""
        self.edit_marker: tuple[BoxPath, str] | None = None
        """The user's uncommitted edit: file and a text that must stay in it."""

    @property
    def state_path(self) -> BoxPath:
        """Where the state file is now."""
        return self._outside(self._state_file)

    # --- waiting -------------------------------------------------------------------------------

    def state(self) -> StateReading:
        """Only the state: cheap enough to look at on every change."""
        raw = read_source(self._spec.state, self._filled, self._outside, self._ask)
        return interpret(raw, self._words, self._completed)

    def _completed(self, rows: Mapping[str, Row]) -> Mapping[str, Row]:
        """The records with what follows from their names, and with what rules may ask of git and agents;
        by our names.
        """
        rows = with_known(self._spec.state, self._called(rows), self._values)
        self.strangers = self.names.shown(rows)
        rows = {self.names.ours(n): row for n, row in rows.items() if n not in self.strangers}
        place = self._words.fields["worktree"]
        for name, row in rows.items() if self._left is None else ():
            self.places[PurePosixPath(str(row.get(place) or name)).name] = name
        if not any(name.startswith("@") for rule in self._words.rules for name in rule.where):
            return rows
        records = self.received.refresh() if self._double_agents else []
        # Asked after the record was read: who wrote it and has left since is not taken for alive.
        doing = doubles.conditions(records, self._living())
        agents = {self.worker_at(one): condition for one, condition in doing.items()}
        default = self._default_head()
        asked = self._ask(tmux.listing(windows=self._spec.windows))
        sessions = asked.stdout.splitlines()
        known = asked.succeeded or tmux.SILENT.search(asked.stderr)
        derived = {}
        for name, row in rows.items():
            head = self._tree_at(str(row.get(place) or "")).head
            state = "none" if head is None else "same" if head == default else "other"
            there = row.get(self._words.fields["session"]) in sessions
            derived[name] = {
                **row,
                "@agent": agents.get(name, "none"),
                "@head": state,
                "@session": "alive" if there else "gone" if known else "unknown",
            }
        return derived

    def _called(self, rows: Mapping[str, Row]) -> Mapping[str, Row]:
        """The records by what commands call them; what each was called there is its field `@key`."""
        if not self._spec.state.names:
            return rows
        found = ((re.search(self._spec.state.names, key), row) for key, row in rows.items())
        return {one["name"]: {"@key": one.string, **row} for one, row in found if one is not None}

    def worker_at(self, place: str) -> str:
        """Whose agent works in a directory of this name; "" for one of several whose names are not told."""
        untold = self.names.untold
        if place in self.places or not untold:
            return self.places.get(place, place)
        return untold[0] if len(untold) == 1 else ""

    def _worker_of(self, agent: doubles.Identity, place: str) -> str:
        """Whose agent this is, by its directory when it was first seen with a record."""
        if place in self.places:
            self._whose.setdefault(agent, self.places[place])
        return self._whose.get(agent) or self.worker_at(place)

    def told_of(self, data: object, path: str) -> dict[str, object] | str:
        """The workers that an answer lists, or what is wrong with that list."""
        words = replace(self._words, workers=path, daemon_flag="", tasks=None)
        reading = interpret(Raw(exists=True, data=data), words, self._completed)
        if reading.error is not None:
            return reading.error
        return {name: view.as_json() for name, view in reading.workers.items()}

    def _filled(self, text: str) -> str:
        return fill(text, self._values)

    def _ask(self, argv: tuple[str, ...]) -> OperationResult:
        command = Command(
            argv, timeout_s=PROBE_TIMEOUT_S, cwd=self._source, env=self._environment()
        )
        return as_result(self._box.run_many([command])[0], argv)

    def _note(self, event: Event) -> None:
        mine = self._spec.state.source == "file" and event.name == self.state_path.name
        if mine and "modify" in event.masks:
            self._written_in_place = True

    def forgive_writes(self) -> None:
        """Forget what the watch saw: Mutiny itself has just damaged the file."""
        self.changes.forget()
        self._written_in_place = False

    def left_damaged(self, left: bytes | None) -> None:
        """Mutiny has made this of the state file; until it is something else nobody else wrote it."""
        self._left = (left,)

    def noticed_as_left(self) -> bool:
        """The state is what a fault made of it, and the target is due to notice that."""
        return self._spec.profile.notices_damage and self.as_left()

    def as_left(self) -> bool:
        """Is the state file still what a fault made of it?

        Asked before the file is read: what is read later is then at least as new as the answer.
        """
        if self._left is not None and _content(self.state_path) != self._left[0]:
            self._left = None
        return self._left is not None

    # --- looking -------------------------------------------------------------------------------

    def observe(self) -> Observation:
        """One complete look; a worktree that vanishes between two questions means: look again."""
        for _ in range(LOOKS - 1):
            try:
                return self._look()
            except CommandNotStarted:
                self.changes.wait(0.05)
        return self._look()

    def _look(self) -> Observation:
        errors: list[str] = []
        self.changes.catch_up()
        as_left = self.as_left()
        reading = self.state()
        records = self.received.refresh() if self._double_agents else []
        worktrees = {name: self._worktree(view) for name, view in reading.workers.items()}
        commands, roles = self._questions(reading, worktrees)
        answers = self._box.run_many(commands)
        by_role = dict(zip(roles, answers, strict=True))
        panes = _panes(by_role.pop("tmux"), errors)
        processes = self._processes(errors)
        for role, answer in by_role.items():
            if role.startswith("dirty:"):
                name = role.removeprefix("dirty:")
                worktrees[name] = replace(worktrees[name], dirty=_dirty(answer, errors))
        commits = self._commits(by_role, errors)
        if "checkout" in by_role:
            self._source_dirty = (self._source_dirty[0], _dirty(by_role["checkout"], errors))
        if "tokens" in by_role:
            self._default_tokens = _tokens(by_role["tokens"], errors)
            self._default_untold = _tokens(by_role["untold"], errors)
            self._default_conflicted = _tokens(by_role["conflicted"], errors)
            self._default_shape = _shape(by_role["shape"], errors)
        if self.strangers:
            who, which = " or ".join(self.names.untold), ", ".join(self.strangers)
            errors.append(f"nobody was told whether {who} is what the target calls {which}")
            panes = None  # nor whose its sessions are
        in_place, self._written_in_place = self._written_in_place, False
        pattern = re.compile(self._spec.sessions)
        return Observation(
            at=time.time(),
            state_exists=reading.exists,
            state_error=reading.error,
            state_in_place=in_place,
            state_as_left=as_left,
            daemon_flag=reading.daemon_flag,
            workers=reading.workers,
            kept=reading.rows,
            document=reading.document,
            tasks=reading.tasks,
            sessions=None
            if panes is None
            else frozenset(
                name
                for name in panes
                if tmux.is_window(name) is self._spec.windows and pattern.search(name)
            ),
            daemons=None
            if processes is None
            else tuple(map(view_of, self.known_daemons.among(processes))),
            agents=self._agents(records, processes, panes, reading),
            worktrees=worktrees,
            registered=self._registered(),
            receipts=self._receipts(records),
            commits=commits,
            default_head=self._default_head(),
            default_tokens=self._default_tokens,
            default_untold=self._default_untold,
            default_conflicted=self._default_conflicted,
            default_shape=self._default_shape,
            source_dirty=self._source_dirty[1],
            source_edit_intact=self._edit_intact(),
            neighbours=self._neighbours(panes),
            probe_errors=tuple(errors),
            pace=self.pacing.now(),
            daemon_crash=self._daemon_crash(),
        )

    def _neighbours(self, panes: Mapping[str, int] | None) -> dict[str, bool]:
        """What cannot be seen just now is not spoken of."""
        if self.neighbour is None:
            return {}
        session, branch, commit = self.neighbour
        git_dir = git.repository_dir(self._outside(self._source))
        found = {f"branch {branch!r}": git.resolve(git_dir, f"refs/heads/{branch}") == commit}
        return found if panes is None else {f"session {session!r}": session in panes, **found}

    def _daemon_crash(self) -> str | None:
        """The crash that the daemon's log tells of since the last look."""
        if not self._spec.logs.daemon:
            return None
        path = self._outside(fill(self._spec.logs.daemon, self._values))
        try:
            text = path.read_text(errors="replace")
        except FileNotFoundError:
            text = ""
        except OSError:  # it is no file that ends, or may not be read: it tells nothing now
            return None
        start, self._log_read = self._log_read, len(text)
        crash = crash_in(text[start if start <= len(text) else 0 :])
        return None if crash is None else crash.line

    def _questions(
        self, reading: StateReading, worktrees: Mapping[str, WorktreeView]
    ) -> tuple[list[Command], list[str]]:
        commands = [Command(tmux.PANES, timeout_s=PROBE_TIMEOUT_S)]
        roles = ["tmux"]
        for name, view in reading.workers.items():
            if view.status in ("idle", "needs_review") and worktrees[name].exists:
                commands.append(
                    Command(git.STATUS_ARGV, cwd=view.worktree, timeout_s=PROBE_TIMEOUT_S)
                )
                roles.append(f"dirty:{name}")
        if self._checkout_may_differ():
            commands.append(Command(git.CHECKOUT_ARGV, cwd=self._source, timeout_s=PROBE_TIMEOUT_S))
            roles.append("checkout")
        for repository in self._repositories:
            git_dir = git.repository_dir(self._outside(repository))
            if not git_dir.is_dir() or git.is_begun(git_dir):
                continue
            mark = git.fingerprint(git_dir)
            if self._commit_cache.get(repository, ("", ()))[0] == mark:
                continue
            self._commit_cache[repository] = (mark, self._commit_cache.get(repository, ("", ()))[1])
            branch = self._spec.git.default_branch
            commands.append(self._log(repository))
            roles.append(f"log:{repository}")
            if repository == self._source:
                for role, argv in (
                    ("default", git.default_argv(repository, branch)),
                    ("tokens", git.tokens_argv(repository, branch)),
                    ("untold", git.untold_argv(repository, branch)),
                    ("conflicted", git.conflicted_argv(repository, branch)),
                    ("shape", git.shape_argv(repository, branch, FOLDERS)),
                ):
                    commands.append(Command(argv, timeout_s=PROBE_TIMEOUT_S))
                    roles.append(role)
        return commands, roles

    def _checkout_may_differ(self) -> bool:
        """Must git be asked about the user's checkout? Not as long as it was clean and nothing moved."""
        git_dir = self._outside(self._source) / ".git"
        if not git_dir.is_dir() or git.is_begun(git_dir):
            self._source_dirty = ("", ())  # a bare repository has no checkout
            return False
        mark, dirty = git.fingerprint(git_dir, index=True), self._source_dirty[1]
        clean = mark == self._source_dirty[0] and dirty == ()
        self._source_dirty = (mark, dirty)
        return not clean

    def _log(self, repository: str, *, heads: bool = True) -> Command:
        lines = self._spec.git.squashes or self._spec.profile.keeps_uncommitted
        argv = git.log_argv(repository, added_lines=lines, heads=heads)
        return Command(argv, timeout_s=PROBE_TIMEOUT_S)

    def _worktree(self, view: WorkerView) -> WorktreeView:
        return self._tree_at(view.worktree)

    def _tree_at(self, path: str) -> WorktreeView:
        """A worktree by the name that the state has for it; a damaged state may name one that cannot be."""
        try:
            place = self._outside(path) if path else None
        except ValueError:
            if not path.startswith("/"):
                raise
            place = None
        return WorktreeView(exists=False) if place is None else git.worktree(place, self._outside)

    def _commits(
        self, answers: Mapping[str, CommandResult], errors: list[str]
    ) -> tuple[Commit, ...] | None:
        for repository in self._repositories:
            log = answers.get(f"log:{repository}")
            default = answers.get("default") if repository == self._source else None
            if log is None:
                continue
            if log.exit_code != 0:
                log = self._box.run_many([self._log(repository, heads=False)])[0]
            failed = next((a for a in (log, default) if a is not None and a.exit_code != 0), None)
            if failed is not None:
                errors.append(f"git log in {repository} failed: {failed.stderr.strip()[:200]}")
                self._commit_cache.pop(repository, None)
                continue
            shas = frozenset(default.stdout.split()) if default is not None else frozenset()
            mark = self._commit_cache[repository][0]
            self._commit_cache[repository] = (
                mark,
                git.parse_log(log.stdout, shas, squashes=self._spec.git.squashes),
            )
        known = [self._commit_cache.get(repository) for repository in self._repositories]
        if self._source in self._repositories and self._commit_cache.get(self._source) is None:
            return None
        merged: dict[str, Commit] = {}
        for entry in known:
            for commit in entry[1] if entry else ():
                if commit.sha not in merged or commit.on_default:
                    merged[commit.sha] = commit
        return tuple(merged.values())

    def _registered(self) -> frozenset[str]:
        places = (git.repository_dir(self._outside(one)) for one in self._repositories)
        found = (git.registered(place) for place in places if place.is_dir())
        return frozenset[str]().union(*found)

    def _default_head(self) -> str | None:
        git_dir = git.repository_dir(self._outside(self._source))
        return git.resolve(git_dir, f"refs/heads/{self._spec.git.default_branch}")

    def _processes(self, errors: list[str]) -> tuple[ProcessInfo, ...] | None:
        try:
            return self._box.processes()
        except CommandNotStarted as error:
            errors.append(f"process list: {error}")
            return None

    def _living(self) -> frozenset[doubles.Identity] | None:
        processes = self._processes([])
        if processes is None:
            return None
        return frozenset((one.pid, one.start) for one in processes if one.state != "Z")

    def daemons(self) -> tuple[ProcessView, ...]:
        """The daemon processes now."""
        return tuple(map(view_of, self.known_daemons.among(self._box.processes())))

    def learn_daemon(self) -> None:
        """`up` has just ended well: what it has left running is the daemon."""
        self.known_daemons.learn(self._box.processes())

    def _agents(
        self,
        records: list[Received],
        processes: tuple[ProcessInfo, ...] | None,
        panes: Mapping[str, int] | None,
        reading: StateReading,
    ) -> tuple[AgentView, ...] | None:
        if processes is None:
            return None
        living = {p.pid: p for p in processes if p.state != "Z"}
        if self._double_agents:
            found = doubles.agents(records, frozenset((p.pid, p.start) for p in living.values()))
            return tuple(
                replace(one, worker=self._worker_of(one.identity, one.worker)) for one in found
            )
        if panes is None or self._left is not None:
            return None
        seen = []
        for name, view in reading.workers.items():
            process = living.get(panes.get(view.session, -1))
            if process is not None:
                identity = process.pid, process.start
                seen.append(AgentView(name, identity, alive=True, busy=False))
        return tuple(seen)

    def _receipts(self, records: list[Received]) -> tuple[Receipt, ...] | None:
        if not self._double_agents:
            return None
        found = doubles.receipts(records)
        return tuple(replace(one, worker=self._worker_of(one.agent, one.worker)) for one in found)

    def _edit_intact(self) -> bool | None:
        if self.edit_marker is None:
            return None
        path, marker = self.edit_marker
        try:
            return marker in path.read_text(errors="replace")
        except FileNotFoundError:
            return False


def _content(path: BoxPath) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _panes(answer: CommandResult, errors: list[str]) -> dict[str, int] | None:
    """Names of sessions and windows -> pid of the first pane; None when tmux gave no usable answer."""
    if answer.exit_code != 0 and tmux.SILENT.search(answer.stderr):
        return {}
    if answer.exit_code != 0:
        errors.append(f"tmux: {answer.stderr.strip() or 'no answer'}")
        return None
    return tmux.pids(answer.stdout)


def _dirty(answer: CommandResult, errors: list[str]) -> tuple[str, ...] | None:
    if answer.exit_code != 0:
        errors.append(f"git status: {answer.stderr.strip()[:200]}")
        return None
    return tuple(line[3:] for line in answer.stdout.splitlines() if line)


def _shape(answer: CommandResult, errors: list[str]) -> frozenset[str] | None:
    if answer.exit_code != 0:
        errors.append(f"git ls-tree: {answer.stderr.strip()[:200]}")
        return None
    return git.parse_tree(answer.stdout)


def _tokens(answer: CommandResult, errors: list[str]) -> frozenset[str] | None:
    if answer.exit_code not in (0, 1):
        errors.append(f"git grep: {answer.stderr.strip()[:200]}")
        return None
    return frozenset(answer.stdout.splitlines())
