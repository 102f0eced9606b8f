"""Look at a live session: checkpoints, logs, processes, its project's git, and the model's API."""

from __future__ import annotations

import hashlib
import os
import re
import time
import tomllib
from collections.abc import Mapping
from typing import Any, Protocol

from mutiny.box.box import Box
from mutiny.box.results import Command, ProcessInfo
from mutiny.contracts.session.checkpoints import Point, point_of
from mutiny.contracts.session.observation import (
    GitSeen,
    Plan,
    Processes,
    SessionSeen,
    SessionView,
)
from mutiny.foreign import parse
from mutiny.probes import git
from mutiny.system.files import LOOKED_THROUGH, BoxPath, UnsafeFile
from mutiny.targets.kit.pacing import Pacing
from mutiny.targets.session import damage
from mutiny.targets.session.model_api import ModelApi
from mutiny.targets.session.notes import Notes
from mutiny.targets.session.spec import SessionSpec
from mutiny.targets.session.tails import Tail

PROBE_S = 20.0
MOST_BYTES = 32 << 20
MEGABYTE = 1 << 20
HALF_FILE = "half-written.txt"
_NUMBER = re.compile(r"(\d+)\.json$")


class Looked(Protocol):
    """What is looked at."""

    box: Box
    spec: SessionSpec
    api: ModelApi
    pacing: Pacing
    notes: Notes
    built: Mapping[str, Any] | None
    heedless_s: float

    @property
    def rate(self) -> float: ...

    def outside(self, inside: str) -> BoxPath: ...

    def filled(self, text: str) -> str: ...


class Observer:
    """Looks at one live target in one box."""

    def __init__(self, live: Looked) -> None:
        self._live = live
        self._files: dict[str, _Files] = {}
        self._met: list[str] = []
        """Sessions in the order in which they came to be seen."""

    def observe(self) -> SessionSeen:
        """One complete look."""
        names = self.names()
        error, session = None, None
        if names:
            try:
                session = self._session(names[-1])
            except (OSError, ValueError, KeyError, TypeError) as wrong:
                error = f"session {names[-1]}: {wrong!r}"
        return SessionSeen(
            at=time.time(),
            error=error,
            pace=self._live.pacing.now(),
            names=names,
            session=session,
            api=self._live.api.requests,
            asked=self._live.api.said,
            damaged=self._live.notes.spoiled,
            rate=self._live.rate,
            built=self._live.built,
            heedless_s=self._live.heedless_s,
        )

    def place(self) -> BoxPath:
        """Where the sessions lie."""
        return self._live.outside(self._live.filled(self._live.spec.sessions))

    def names(self) -> tuple[str, ...]:
        """All sessions, the newest last."""
        place = self.place()
        if not place.is_dir():
            return ()
        begun = {
            name: self._begun(place / name) for name in place.names() if (place / name).is_dir()
        }
        return self._in_order({name: at for name, at in begun.items() if at is not None})

    def _in_order(self, begun: Mapping[str, float]) -> tuple[str, ...]:
        """As they came to be seen: a clock may have been set. What they say of their beginning tells those
        apart that are seen together for the first time.
        """
        known = [name for name in self._met if name in begun]
        new = sorted(set(begun) - set(known), key=lambda name: (begun[name], name))
        self._met = [*known, *new]
        return tuple(self._met)

    def events(self, name: str) -> tuple[Mapping[str, Any], ...]:
        """What a session has written down."""
        return self.files(name).events.rows()

    def metrics(self, name: str) -> tuple[Mapping[str, Any], ...]:
        """The figures that a session has written down."""
        return self.files(name).metrics.rows()

    def damage(self, name: str, part: str) -> tuple[str, ...]:
        """Damage a part of a session's checkpoints; the names of what was damaged."""
        files = self.files(name)
        whole = [point for point in files.points() if point.valid]
        if part == "delta":
            whole = [point for point in whole[-1:] if len(point.states) > 1]
            for point in whole:
                damage.last_line(files.place / "checkpoints" / f"{point.number:06d}.delta.jsonl")
            return tuple(f"{point.number}.delta" for point in whole)
        whole = whole if part == "all" else whole[-1:]
        for point in whole:
            damage.checkpoint(files.place / "checkpoints" / f"{point.number:06d}.json", part)
        return tuple(str(point.number) for point in whole)

    def touch(self, name: str) -> int:
        """Let all valid checkpoints but the newest look newer than it; how many they are."""
        files = self.files(name)
        older = [point for point in files.points() if point.valid][:-1]
        for point in older:
            path = files.place / "checkpoints" / f"{point.number:06d}.json"
            path.overwrite(path.read_bytes())
        return len(older)

    def leave_half(self, name: str, what: str) -> bool:
        """Leave what somebody leaves who dies in the middle of something; False: there is no place."""
        files = self.files(name)
        admin = files.place / "project" / ".git"
        if what != "line":
            left = admin / "index.lock" if what == "lock" else files.place / "project" / HALF_FILE
            if admin.is_dir():
                left.replace_bytes(b"" if what == "lock" else b"It was to say m")
            return bool(admin.is_dir())
        logs = [files.place / f"{log}.jsonl" for log in ("events", "calls", "metrics")]
        for path in (one for one in logs if one.is_file()):
            data = path.read_bytes()
            last = data[data.rstrip(b"\n").rfind(b"\n") + 1 :]
            path.overwrite(data + last[: len(last) // 2])
        return any(path.is_file() for path in logs)

    def _begun(self, directory: BoxPath) -> float | None:
        files = self._files_of(directory)
        if files.facts is None:
            try:
                files.facts = parse((directory / "session.json").read_text())
            except (OSError, ValueError):
                return None
        started = files.facts.get("started") if isinstance(files.facts, dict) else None
        return float(started) if isinstance(started, int | float) else 0.0

    def _files_of(self, directory: BoxPath) -> _Files:
        known = self._files.get(directory.name)
        if known is None or known.place != directory:
            known = self._files[directory.name] = _Files(directory)
        return known

    def files(self, name: str) -> _Files:
        """What is known of a session's files."""
        return self._files_of(self.place() / name)

    # --- one session ---------------------------------------------------------------------------------

    def _session(self, name: str) -> SessionView:
        files = self.files(name)
        facts = files.facts or {}
        processes = self.processes(name)
        # Processes first: what a session that has ended writes afterwards nobody has to wait for.
        events, calls, metrics = files.events.rows(), files.calls.rows(), files.metrics.rows()
        points = files.points()
        return SessionView(
            name=name,
            project=str(facts.get("project", "")),
            agents=int(facts.get("agents") or 0),
            hours=float(facts.get("hours") or 0),
            plan=files.plan(),
            points=points,
            events=events,
            calls=calls,
            metrics=metrics,
            bad_lines=(*files.events.bad, *files.calls.bad, *files.metrics.bad),
            git=self._git(files, points),
            processes=processes,
            size_mb=files.size() / MEGABYTE,
            digest="" if processes.supervisors else files.digest(self._live.spec.quiet),
        )

    def processes(self, name: str = "") -> Processes:
        """What runs in the box."""
        found = [
            one
            for one in self._live.box.processes()
            if one.state != "Z" and one.pid != self._live.api.pid and not one.asked_for
        ]
        drivers, agents = self.of_role(found, "daemon"), self.of_role(found, "agent")
        known = {one.pid for one in (*drivers, *agents)}
        family = set(known)
        for _ in found:
            family |= {one.pid for one in found if one.parent_pid in family}
        others = tuple(" ".join(one.argv)[:120] for one in found if one.pid not in family)
        by_agents = {one.pid for one in agents}
        tools = sum(one.parent_pid in by_agents for one in found)
        return Processes(self.driving(drivers, name), len(agents), others, tools=tools)

    def driving(self, drivers: list[ProcessInfo], name: str) -> int:
        """How many of them drive this session: all, where there is one at a time."""
        return len(drivers)

    def of_role(self, found: list[ProcessInfo], role: str) -> list[ProcessInfo]:
        """The processes of a role; a child that was just forked bears its parent's arguments for a moment,
        and is none.
        """
        pattern = self._live.spec.supervisor if role == "daemon" else self._live.spec.agent
        fitting = [one for one in found if pattern and re.search(pattern, " ".join(one.argv))]
        pids = {one.pid for one in fitting}
        return [one for one in fitting if one.parent_pid not in pids]

    def _git(self, files: _Files, points: tuple[Point, ...]) -> GitSeen | None:
        directory = files.place / "project"
        if not (directory / ".git").is_dir():
            return None
        head = git.resolve(directory / ".git", "refs/heads/main")
        wanted = {point.commit for point in points if point.valid and point.commit}
        new = sorted(wanted - set(files.trees))
        if new:
            inside = f"{self._live.filled(self._live.spec.sessions)}/{files.place.name}/project"
            asked = [
                Command(("git", "-C", inside, "ls-tree", "-r", commit), PROBE_S) for commit in new
            ]
            for commit, answer in zip(new, self._live.box.run_many(asked), strict=True):
                if answer.exit_code == 0:
                    files.trees[commit] = dict(map(_entry, answer.stdout.splitlines()))
        return GitSeen(head, (), dict(files.trees))


def _entry(line: str) -> tuple[str, str]:
    facts, _, name = line.partition("\t")
    return name, facts.split()[2]


class _Files:
    """The files of one session, read again only where they have changed."""

    def __init__(self, directory: BoxPath) -> None:
        self.place = directory
        self.facts: Mapping[str, Any] | None = None
        self.events = Tail(directory / "events.jsonl", ("type",))
        self.calls = Tail(directory / "calls.jsonl", ("state", "call", "kind"))
        self.metrics = Tail(directory / "metrics.jsonl", ("elapsed_seconds",), regular=True)
        self.trees: dict[str, dict[str, str]] = {}
        self._points: dict[int, tuple[object, Point]] = {}
        self._plan: Plan | None = None

    def points(self) -> tuple[Point, ...]:
        """The checkpoints, by number."""
        place = self.place / "checkpoints"
        found: dict[int, tuple[object, Point]] = {}
        for name in place.names() if place.is_dir() else ():
            number = _NUMBER.fullmatch(name)
            if number is None:
                continue
            base, deltas = place / name, place / name.replace(".json", ".delta.jsonl")
            stamp = (stamp_of(base), stamp_of(deltas))
            known = self._points.get(int(number[1]))
            if known is None or known[0] != stamp:
                known = (stamp, point_of(int(number[1]), text_of(base), text_of(deltas)))
            found[int(number[1])] = known
        self._points = found
        return tuple(point for _, (_, point) in sorted(found.items()))

    def plan(self) -> Plan:
        """What the project is to become."""
        if self._plan is None:
            try:
                data = tomllib.loads((self.place / "project.toml").read_text())
            except (OSError, ValueError):
                return Plan()
            phases = data.get("phases", [])
            self._plan = Plan(
                tuple(str(one["name"]) for one in phases),
                tuple(float(one.get("minutes", 0)) for one in phases),
                tuple(float(one.get("checkpoint_minutes", 10)) for one in phases),
                tuple(tuple(one.get("criteria", ())) for one in phases),
                {str(one["id"]): one for one in data.get("tasks", [])},
                {str(one["id"]): one for one in data.get("votes", [])},
                tuple(str(one["name"]) for one in data.get("agents", [])),
                {str(one["name"]): str(one.get("role", "")) for one in data.get("agents", [])},
            )
        return self._plan

    def size(self) -> int:
        """How much room all of it takes on the disk."""
        total = 0
        for path in self.place.files():
            try:
                total += path.stat().st_blocks * 512
            except OSError:
                continue  # just removed
        return total

    def digest(self, quiet: tuple[str, ...]) -> str:
        """All bytes, without names that change by looking."""
        found, total = hashlib.sha256(), 0
        for path in self.place.files():
            if path.name in quiet or ".git" in path.parts:
                continue
            try:
                data = path.read_bytes(MOST_BYTES)
            except OSError:
                continue
            total += len(data)
            if total > LOOKED_THROUGH:
                raise UnsafeFile(f"{self.place} holds more than can be looked through")
            found.update(os.fsencode(f"{path}\0{len(data)}\0") + data)
        return found.hexdigest()


def stamp_of(path: BoxPath) -> tuple[int, int, int] | None:
    """What changes when a file does; None: it is not there."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return (seen.st_ino, seen.st_size, seen.st_mtime_ns)


def text_of(path: BoxPath) -> str:
    """All that a file says; nothing when it cannot be read."""
    try:
        return path.read_bytes(MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
