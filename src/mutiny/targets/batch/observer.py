"""Look at a live batch orchestrator: its state and log, git, processes, and what the doubles wrote down."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from typing import Any, Protocol

from mutiny.box.box import Box
from mutiny.box.engine import PLACE as ENGINE_PLACE
from mutiny.box.results import Command, CommandResult
from mutiny.contracts.batch.observation import (
    Asked,
    Attempt,
    BatchRow,
    BatchSeen,
    GitSeen,
    Head,
    Line,
    RunSeen,
    TaskSeen,
)
from mutiny.contracts.batch.tasks import SHARED_FILE
from mutiny.faults.files import EDIT_MARKER, EDITED_FILE
from mutiny.foreign import lines, parse
from mutiny.probes import git
from mutiny.probes.sources import json_file, settled
from mutiny.system.files import LOOKED_THROUGH, BoxPath, UnsafeFile
from mutiny.targets.batch.containers import NEIGHBOUR, Containers
from mutiny.targets.batch.desk import SECRET, Desk
from mutiny.targets.batch.spec import BatchSpec, EventFields, RunFields
from mutiny.targets.kit.moments import matching
from mutiny.targets.kit.pacing import Pacing

PROBE_S = 20.0
MOST_BYTES = 4 << 20
MOST_BAD = 3
"""So many bad lines are told."""
WORK = "work/"


class Looked(Protocol):
    """What is looked at."""

    box: Box
    spec: BatchSpec
    desk: Desk
    pacing: Pacing
    containers: Containers | None
    values: dict[str, Any]

    def outside(self, inside: str) -> BoxPath: ...

    def filled(self, text: str) -> str: ...

    def state_directory(self) -> str: ...

    def logs(self) -> list[BoxPath]: ...


@dataclass
class Logged:
    """What the logs of all runs say."""

    bad: list[str] = field(default_factory=list)
    count: int = 0
    kinds: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)
    """Run -> why it has stopped."""
    about: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Run and task -> how many lines are about it; no task: all of the run's."""
    lines: dict[str, list[Line]] = field(default_factory=dict)


class Observer:
    """Looks at one live target in one box."""

    def __init__(self, live: Looked) -> None:
        self._live = live
        self._spec = live.spec
        self._known: tuple[str, GitSeen] | None = None
        """The repository's references, and what was seen with them."""
        self._clean: tuple[str, tuple[str, ...]] | None = None
        """The checkout, and what of it is not committed."""
        self._at_home: frozenset[str] | None = None

    def observe(self) -> BatchSeen:
        """One complete look."""
        records = self._live.desk.records()
        log = self._events()
        runs, kept, error = self._runs(log.reasons)
        plan, planned = self._plan()
        digest, told = self._home()
        engine = self._live.containers
        there = None if engine is None else engine.look()
        return BatchSeen(
            at=time.time(),
            error=error,
            pace=self._live.pacing.now(),
            home=self._live.outside(self._live.state_directory()).is_dir(),
            plan=plan,
            planned=planned,
            runs=runs,
            kept=kept,
            ledger=self._ledger(),
            git=self._git(),
            attempts=_attempts(records),
            asked=tuple(
                Asked(one["what"], one["of"], one["tree"], one["passed"], one["canary"])
                for one in records
                if "tree" in one
            ),
            bad_events=tuple(log.bad),
            events=log.count,
            logged=log.about,
            lines={run: tuple(said) for run, said in log.lines.items()},
            logs=frozenset(
                word for one in self._spec.event_fields.tells.values() for word in one.values()
            ),
            logs_starts=bool(self._spec.event_fields.begins),
            event_types=frozenset(log.kinds),
            no_events=frozenset(self._spec.event_fields.lacks),
            processes=self._processes(),
            workspaces=self._workspaces(),
            containers=None
            if there is None
            else tuple(one for one in there.values() if one.name != NEIGHBOUR),
            contained={} if engine is None else engine.known,
            neighbour=there is None or NEIGHBOUR in there,
            told=told,
            outside=self._outside(),
            digest=digest,
        )

    # --- the target's files --------------------------------------------------------------------------

    def _runs(
        self, reasons: Mapping[str, str]
    ) -> tuple[dict[str, RunSeen], dict[str, Mapping[str, Any]], str | None]:
        """Every run as the contract knows it, and as it is kept; and what cannot be read."""
        found: dict[str, RunSeen] = {}
        kept: dict[str, Mapping[str, Any]] = {}
        words = self._spec.fields
        for path in self._state_files():
            raw = settled(lambda path=path: json_file(path))  # type: ignore[misc]
            if not raw.exists:
                continue
            if raw.error is not None:
                return found, kept, f"{self._run_of(path)}: {raw.error}"
            try:
                name = str(raw.data[words.name])
                found[name] = self._run(raw.data, reasons)
                kept[name] = raw.data
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                return found, kept, f"{self._run_of(path)}: it is no state of a run: {error!r}"
        return found, kept, None

    def _run(self, data: Mapping[str, Any], reasons: Mapping[str, str]) -> RunSeen:
        words, mapped = self._spec.fields, self._spec.statuses
        rows = data[words.tasks]
        tasks = {str(name): _task(row, words, mapped) for name, row in rows.items()}
        status = mapped.get(data[words.status], data[words.status])
        name = str(data[words.name])
        reason = data.get(words.reason) if words.reason else reasons.get(name)
        batches = tuple(_batch(row, words) for row in data.get(words.batches) or ())
        return RunSeen(name, status, str(reason or ""), tasks, data.get(words.tokens), batches)

    def _run_of(self, path: BoxPath) -> str:
        """The name of the run whose state a file is: what `*` stands for."""
        for part, name in zip(
            self._spec.state.glob.split("/")[::-1], path.parts[::-1], strict=False
        ):
            before, star, after = part.partition("*")
            if star:
                return name.removeprefix(before).removesuffix(after)
        return path.name

    def _state_files(self) -> Iterator[BoxPath]:
        pattern = self._live.filled(self._spec.state.glob)
        return (
            path
            for path in matching(self._live, pattern)
            if not path.name.startswith(".") and not path.parent.name.startswith(".")
        )

    def state_path(self, seen: BatchSeen) -> BoxPath | None:
        """The state of the newest run."""
        name = self.newest(seen)
        files = list(self._state_files())
        mine = [path for path in files if self._run_of(path) == name]
        found = mine or files
        return found[-1] if found else None

    def newest(self, seen: BatchSeen) -> str:
        """The name of the newest run."""
        run = seen.run
        if run is not None:
            return run.name
        names = [] if seen.error is None else [self._run_of(path) for path in self._state_files()]
        return names[-1] if names else ""

    def _plan(self) -> tuple[str | None, Any]:
        """The bytes of the plan, as a hash, and what they say."""
        path = self._live.outside(self._live.filled(self._spec.plan))
        if not path.is_file():
            return None, None
        data = path.read_bytes()
        try:
            said = parse(data.decode())
        except ValueError:
            said = None
        return hashlib.sha256(data).hexdigest(), said

    def _ledger(self) -> frozenset[tuple[str, str]] | None:
        """What the target itself has written down as merged, for good."""
        if not self._spec.ledger:
            return None
        raw = settled(lambda: json_file(self._live.outside(self._live.filled(self._spec.ledger))))
        named = raw.data if raw.exists and isinstance(raw.data, dict) else {}
        return frozenset((run, task) for run, _, task in (key.partition("/") for key in named))

    def _events(self) -> Logged:
        """What the logs say."""
        found = Logged()
        wanted = self._spec.event_fields
        for log in self._live.logs():
            text = log.read_bytes(MOST_BYTES).decode(errors="replace")
            whole = text[: text.rfind("\n") + 1]  # the last line may just be written
            for line in lines(whole):
                found.count += 1
                said, kind, problem = _event(line, wanted)
                found.kinds.update((kind, *wanted.names.get(kind, ())))
                run, task = str(said.get("run_id", "")), str(said.get(wanted.task, ""))
                found.lines.setdefault(run, []).append(_line(said, kind, task, wanted))
                if problem:
                    found.bad += [f"{problem}: {line[:120]}"] if len(found.bad) < MOST_BAD else []
                    continue
                found.about.update({(run, ""), (run, task)})
                if kind in wanted.reasons:
                    found.reasons[run] = line[:200]
        return found

    def _home(self) -> tuple[str, tuple[str, ...]]:
        """All bytes of the home outside of workspaces, and the files in which the secret stands."""
        root = self._live.outside(self._live.state_directory())
        if not root.is_dir():
            return "", ()
        quiet = [self._live.filled(one) for one in (*self._spec.quiet, *self._spec.workspaces)]
        digest, told, total = hashlib.sha256(), [], 0
        for path, inside in _loud(root, self._live.state_directory(), quiet):
            try:
                data = path.read_bytes(MOST_BYTES)
            except OSError:
                continue  # just removed, or not ours to read
            total += len(data)
            if total > LOOKED_THROUGH:
                raise UnsafeFile(f"{root} holds more than can be looked through after every step")
            digest.update(os.fsencode(f"{inside}\0{len(data)}\0") + data)
            if SECRET.encode() in data:
                told.append(inside.removeprefix(self._live.filled("{home}/")))
        return digest.hexdigest(), tuple(told)

    def _workspaces(self) -> tuple[str, ...]:
        home = self._live.filled("{home}/")
        return tuple(
            self._live.box.inside(path).removeprefix(home)
            for text in self._spec.workspaces
            for path in matching(self._live, self._live.filled(text))
        )

    def _outside(self) -> tuple[str, ...]:
        """Names beside the home, and in the box, that were not there at the first look."""
        places = {
            name: self._live.outside(self._live.filled(name))
            for name in ("{home}", "{box}", "{tmp}")
        }
        own = self._live.outside(self._live.state_directory()).name
        known = frozenset(
            f"{word}/{name}"
            for word, place in places.items()
            for name in place.names()
            if not (word == "{home}" and (name == own or name.startswith("."))) and word != "{tmp}"
        )
        if self._at_home is None:
            self._at_home = known | {"{box}/bin", "{box}/doubles", f"{{box}}/{ENGINE_PLACE}"}
        return tuple(sorted(known - self._at_home))

    # --- what the doubles wrote down -----------------------------------------------------------------

    def _processes(self) -> tuple[str, ...]:
        return tuple(
            " ".join(one.argv)[:120] or one.name
            for one in self._live.box.processes()
            if one.state != "Z" and not one.asked_for
        )

    # --- git -----------------------------------------------------------------------------------------

    def note_foreign(self) -> None:
        """Somebody else has just moved the branch."""
        head = git.resolve(self._git_dir(), f"refs/heads/{self._spec.branch}")
        if head is not None:
            self._live.desk.note_foreign(head)

    def _git_dir(self) -> BoxPath:
        return git.repository_dir(self._live.box.files / "source")

    def _git(self) -> GitSeen | None:
        now = git.fingerprint(self._git_dir(), index=True)
        if self._known is None or self._known[0] != now:
            seen = self._asked()
            if seen is None:
                return None
            self._known = (now, seen)
        files = f"{now} {self._checkout()}"
        if self._clean is None or self._clean[0] != files:
            dirty = self._run_git(
                "--no-optional-locks", "status", "--porcelain", "--untracked-files=no"
            )
            if dirty.exit_code != 0:
                return None
            self._clean = (files, tuple(line[3:] for line in dirty.stdout.splitlines()))
        edited = self._live.box.files / "source" / EDITED_FILE
        kept = not self._live.desk.edited or EDIT_MARKER in edited.read_text(errors="replace")
        return replace(self._known[1], dirty=self._clean[1], edit_kept=kept)

    def _checkout(self) -> str:
        """Changes whenever a file of the user's checkout does."""
        source = self._live.box.files / "source"
        places = [source / name for name in source.names() if name != ".git"]
        found = []
        for path in (one for place in places for one in _files(place)):
            try:
                state = path.stat()
            except OSError:
                continue  # just removed
            found.append(f"{path}:{state.st_ino}:{state.st_size}:{state.st_ctime_ns}")
        return "\n".join(found)

    def _asked(self) -> GitSeen | None:
        """Everything that only changes with a reference."""
        branch = f"refs/heads/{self._spec.branch}"
        step = "--format=%x1e%H%x1f%T"
        asked = (
            ("log", "--first-parent", "-m", "--name-only", "--diff-filter=d", step, branch),
            ("rev-list", branch),
            ("log", "-g", "--format=%H %T", branch),
            ("ls-tree", "-r", "--name-only", branch),
            ("show", f"{branch}:{SHARED_FILE}"),
            ("for-each-ref", "--format=%(refname)"),
            ("remote",),
            ("worktree", "list", "--porcelain"),
        )
        answers = self._live.box.run_many([self._git_command(*words) for words in asked])
        steps, commits, heads, files, shared, references, remotes, trees = answers
        if any(one.exit_code != 0 for one in (steps, commits, heads, files, references)):
            return None
        listed, others = commits.stdout.split(), self._live.desk.foreign
        history = [line.split() for line in heads.stdout.splitlines()]
        foreign = {*others, history[-1][0]} if history else others
        brought = _brought(steps.stdout, others)
        return GitSeen(
            head=listed[0] if listed else None,
            commits=frozenset(listed),
            heads=tuple(Head(sha, tree, sha in foreign) for sha, tree in history),
            landed={name: len(own) for name, own in brought.items()},
            steps=_steps(steps.stdout),
            brought=brought,
            lost=tuple(sorted(others - set(listed))),
            files=frozenset(files.stdout.splitlines()),
            shared=tuple(shared.stdout.splitlines()) if shared.exit_code == 0 else (),
            left=tuple(self._left(references.stdout, remotes.stdout, trees.stdout, branch)),
        )

    def _left(self, references: str, remotes: str, trees: str, branch: str) -> Iterator[str]:
        yield from (f"the reference {name}" for name in references.split() if name != branch)
        yield from (f"the remote {name}" for name in remotes.split())
        places = [line for line in trees.splitlines() if line.startswith("worktree ")]
        yield from (f"the {line}" for line in places[1:])
        for name in ("MERGE_HEAD", "rebase-merge", "CHERRY_PICK_HEAD", "index.lock"):
            if (self._git_dir() / name).exists():
                yield f"a half-done {name}"

    def _git_command(self, *words: str) -> Command:
        source = str(self._live.values["source"])
        return Command((GIT, *git.PLAIN, "-C", source, *words), PROBE_S, source, {"PATH": PATH})

    def _run_git(self, *words: str) -> CommandResult:
        return self._live.box.run_many([self._git_command(*words)])[0]


PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Without what waits in front of git."""
GIT = shutil.which("git", path=PATH) or "git"


def _loud(place: BoxPath, inside: str, quiet: Sequence[str]) -> Iterator[tuple[BoxPath, str]]:
    """All files below a directory that are not to be passed over, with their names in the box."""
    for name in place.names():
        path, known = place / name, f"{inside}/{name}"
        if any(fnmatch(known, f"{one}*") for one in quiet):
            continue
        if path.is_dir():
            yield from _loud(path, known, quiet)
        else:
            yield path, known


def _files(place: BoxPath) -> Iterator[BoxPath]:
    """A file, or all files below a directory."""
    return place.files() if place.is_dir() else iter((place,))


def _event(line: str, wanted: EventFields) -> tuple[Mapping[str, Any], str, str]:
    """An event, its type, and what is wrong with its line; empty when nothing is."""
    try:
        event = parse(line)
    except ValueError:
        return {}, "", "it is no JSON"
    if not isinstance(event, dict):
        return {}, "", "it is no object"
    kind = str(event.get("type"))
    missing = [name for name in wanted.required if not event.get(name)]
    if kind.startswith(wanted.of_tasks) and not event.get(wanted.task):
        missing.append(wanted.task)
    more = (names for begin, names in wanted.also.items() if kind.startswith(begin))
    missing += [name for names in more for name in names if event.get(name) in (None, "")]
    return event, kind, f"it has no {missing[0]}" if missing else ""


def _task(row: Mapping[str, Any], words: RunFields, mapped: Mapping[str, str]) -> TaskSeen:
    """A task of the state, with what the target says of it."""
    return TaskSeen(
        mapped.get(row[words.task_status], row[words.task_status]),
        row.get(words.task_attempts),
        str(row.get(words.task_error) or ""),
        row.get(words.task_tokens),
        row.get(words.task_begun),
        row.get(words.task_conflicts),
        row.get(words.task_commit),
        row.get(words.task_base),
        row.get(words.task_merged),
        {name: row[name] for name in words.planned if name in row},
    )


def _batch(row: Mapping[str, Any], words: RunFields) -> BatchRow:
    """A batch of the state."""
    return BatchRow(
        row[words.batch_id],
        tuple(map(str, row[words.batch_tasks])),
        row[words.batch_status] in words.landed,
        str(row.get(words.batch_base) or ""),
        str(row.get(words.batch_target) or ""),
    )


def _line(said: Mapping[str, Any], kind: str, task: str, wanted: EventFields) -> Line:
    """A line of the log, with what it says that the state keeps, too."""
    tasks, batch = said.get(wanted.tasks), said.get(wanted.batch)
    told = wanted.tells.get(kind, {})
    return Line(
        said,
        task,
        tuple(map(str, tasks)) if isinstance(tasks, list) else (),
        "" if batch is None else str(batch),
        bool(wanted.begins) and kind == wanted.begins,
        {ours: said[theirs] for theirs, ours in told.items() if theirs in said},
    )


def _attempts(records: Sequence[Mapping[str, Any]]) -> tuple[Attempt, ...]:
    """Every agent with how it ended, whether anybody went on from there, and who was at work beside it."""
    found: dict[tuple[str, int], Attempt] = {}
    latest: dict[str, tuple[str, int]] = {}
    ends = {(one["of"], one["attempt"]) for one in records if one["what"] == "agent_end"}
    at_work: set[tuple[str, int]] = set()
    for one in records:
        task = one["of"]
        if one["what"] == "agent":
            mine = latest[task] = (task, one["number"])
            present = frozenset(name.removesuffix(".txt") for name in one["present"])
            places = list(found)
            beside = frozenset(places.index(other) for other in at_work - {mine})
            found[mine] = Attempt(*mine, present, beside=beside)
            at_work |= {mine} & ends  # of whoever was killed nobody knows when
        elif one["what"] == "agent_end":
            known = found[task, one["attempt"]]
            ended = replace(known, ended=True, code=one["code"], tokens=one["tokens"])
            found[task, one["attempt"]] = ended
            at_work.discard((task, one["attempt"]))
        elif task in latest:
            found[latest[task]] = replace(found[latest[task]], gated=True)
    return tuple(found.values())


def _brought(text: str, foreign: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Task -> the steps of the branch in which its own file changed."""
    found: dict[str, tuple[str, ...]] = {}
    for block in text.split("\x1e"):
        first, _, names = block.strip().partition("\n")
        sha = first.partition("\x1f")[0]
        if sha in foreign:
            continue
        for name in set(names.split("\n")):
            if name.startswith(WORK):
                task = name.removeprefix(WORK).removesuffix(".txt")
                found[task] = (*found.get(task, ()), sha)
    return found


def _steps(text: str) -> tuple[str, ...]:
    """The commits of the branch itself, the newest first."""
    return tuple(
        dict.fromkeys(block.strip().partition("\x1f")[0] for block in text.split("\x1e")[1:])
    )
