"""Project files: what is to be built, by whom, in which phases, and what the model will say.

The form is that of a project definition (name, description, requirements) with the plan behind it:
phases, agents, tasks and votes. What the tasks write lies beside it: `files/` holds the finished
project, `drafts/TASK/` what a task writes first when a later one improves it.
"""

from __future__ import annotations

import os
import re
import tomllib
from typing import Any, NamedTuple

from longboat.session.values import SAFE, Json, Refused

PLAIN_CRITERIA = (
    "compiles",
    "interfaces",
    "ci",
    "architecture",
    "tests_pass",
    "integration",
    "no_security_findings",
    "reviewed",
    "performance",
    "documentation",
    "release",
    "checkpoint_valid",
    "tasks_done",
)
COVERAGE = re.compile(r"coverage>=(\d{1,3})\Z")
PRIORITY = (
    "architect",
    "reviewer",
    "security",
    "performance",
    "devops",
    "tester",
    "coder",
    "documenter",
)
"""Whose word counts when a vote cannot be won."""


class Phase(NamedTuple):
    """A part of the plan, with what must hold before the next one begins."""

    name: str
    title: str
    minutes: float
    checkpoint_minutes: float
    agents: tuple[str, ...]
    criteria: tuple[str, ...]


class Task(NamedTuple):
    """One piece of work."""

    id: str
    phase: str
    role: str
    title: str
    minutes: float
    needs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    tests: bool = False
    remember: tuple[tuple[str, str], ...] = ()


class Vote(NamedTuple):
    """A decision that the agents of a phase take together, before its work begins."""

    id: str
    phase: str
    question: str
    options: tuple[str, ...]
    winner: str


class Project(NamedTuple):
    """A project file that makes sense."""

    name: str
    description: str
    requirements: Json
    phases: tuple[Phase, ...]
    roles: dict[str, str]
    tasks: tuple[Task, ...]
    votes: tuple[Vote, ...]

    @property
    def minutes(self) -> float:
        """How long all phases take together."""
        return sum(phase.minutes for phase in self.phases)

    def components(self) -> list[str]:
        """The names of what is to be built."""
        listed = self.requirements.get("components", [])
        names = [one if isinstance(one, str) else next(iter(one), "") for one in listed]
        return [name.partition(":")[0].strip() for name in names]


def shipped() -> list[str]:
    """The projects that come with longboat."""
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "projects")
    return sorted(
        name for name in os.listdir(place) if os.path.exists(f"{place}/{name}/project.toml")
    )


def find(wanted: str) -> str:
    """The path of a project file: a shipped one by its name, or a file."""
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "projects", wanted)
    if SAFE.match(wanted) and os.path.exists(os.path.join(place, "project.toml")):
        return os.path.join(place, "project.toml")
    if os.path.isfile(wanted):
        return os.path.abspath(wanted)
    raise Refused(
        "bad_project", f"There is no project '{wanted}' (shipped: {', '.join(shipped())})"
    )


def read(path: str) -> Project:
    """Read a project file; all that is wrong with it is said at once."""
    try:
        with open(path, "rb") as file:
            return parse(tomllib.load(file), path)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused("bad_project", f"{path} cannot be read: {error}") from None


def parse(data: Json, where: str) -> Project:
    """A project from the values of its file."""
    wrong: list[str] = []
    known = {"name", "description", "requirements", "phases", "agents", "tasks", "votes"}
    wrong += [f"unknown key '{key}'" for key in sorted(set(data) - known)]
    phases = [Phase(**_fields(Phase, row, wrong)) for row in _rows(data, "phases", wrong)]
    tasks = [Task(**_fields(Task, row, wrong)) for row in _rows(data, "tasks", wrong)]
    votes = [Vote(**_fields(Vote, row, wrong)) for row in _rows(data, "votes", wrong)]
    roles = {}
    for row in _rows(data, "agents", wrong):
        if not isinstance(row.get("name"), str) or row.get("role") not in PRIORITY:
            wrong.append(f"agent {row.get('name')!r}: needs a name and a role of {PRIORITY}")
            continue
        roles[row["name"]] = row["role"]
    project = Project(
        str(data.get("name", "")),
        str(data.get("description", "")),
        data.get("requirements", {}) if isinstance(data.get("requirements", {}), dict) else {},
        tuple(phases),
        roles,
        tuple(tasks),
        tuple(votes),
    )
    wrong += _contradictions(project)
    if wrong:
        raise Refused("bad_project", f"{where}: {'; '.join(wrong[:10])}")
    return project


def _rows(data: Json, key: str, wrong: list[str]) -> list[Json]:
    rows = data.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        wrong.append(f"{key} is not a list of tables")
        return []
    return rows


def _fields(kind: Any, row: Json, wrong: list[str]) -> Json:
    """The values of one table, each of the kind that it must be."""
    what = f"{kind.__name__.lower()} {row.get('id', row.get('name', '?'))!r}"
    wrong += [f"{what}: unknown key '{key}'" for key in sorted(set(row) - set(kind._fields))]
    made: Json = {}
    for name, wanted in kind.__annotations__.items():
        value = row.get(name, kind._field_defaults.get(name))
        if value is None:
            wrong.append(f"{what}: '{name}' is missing")
        text = getattr(wanted, "__forward_arg__", str(wanted))
        if name == "remember" and isinstance(value, dict):
            value = tuple((str(key), str(text)) for key, text in value.items())
        elif text.startswith("tuple"):
            value = tuple(value) if isinstance(value, list | tuple) else ()
        elif text == "float":
            good = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
            wrong += [] if good or value is None else [f"{what}: '{name}' is no length of time"]
            value = float(value) if good and value is not None else 0.0
        elif text == "bool":
            value = bool(value)
        else:
            value = "" if value is None else str(value)
        made[name] = value
    return made


def _contradictions(project: Project) -> list[str]:
    wrong = []
    names = [phase.name for phase in project.phases]
    ids = [task.id for task in project.tasks]
    if not project.name or not project.phases or not project.tasks:
        wrong.append("a project has a name, phases and tasks")
    for name in (*names, *project.roles, *ids, *(vote.id for vote in project.votes)):
        if not SAFE.match(name):
            wrong.append(f"{name[:40]!r} is no name")
    wrong += [
        f"{one!r} is there twice" for one in sorted({one for one in ids if ids.count(one) > 1})
    ]
    for phase in project.phases:
        missing = [name for name in phase.agents if name not in project.roles]
        wrong += [f"phase {phase.name}: there is no agent {name!r}" for name in missing]
        if not phase.agents:
            wrong.append(f"phase {phase.name} has no agents")
        wrong += [
            f"phase {phase.name}: unknown criterion {one!r}"
            for one in phase.criteria
            if one not in PLAIN_CRITERIA and not COVERAGE.match(one)
        ]
    for task in project.tasks:
        if task.phase not in names:
            wrong.append(f"task {task.id}: there is no phase {task.phase!r}")
        wrong += _needs(project, task, names)
        for path in task.files:
            if os.path.isabs(path) or ".." in path.split("/") or path.startswith(".git/"):
                wrong.append(f"task {task.id}: {path!r} lies outside of the project")
    for vote in project.votes:
        if vote.phase not in names or vote.winner not in vote.options or len(vote.options) < 2:
            wrong.append(f"vote {vote.id}: needs a phase, two options, and one of them to win")
    return wrong


def _needs(project: Project, task: Task, names: list[str]) -> list[str]:
    """Tasks need earlier tasks only: those above them in the file, of this phase or an earlier one."""
    above = project.tasks[: project.tasks.index(task)]
    earlier = {one.id for one in above if one.phase in names and task.phase in names}
    earlier = {
        one.id
        for one in above
        if one.id in earlier and names.index(one.phase) <= names.index(task.phase)
    }
    return [
        f"task {task.id}: {need!r} is no earlier task" for need in task.needs if need not in earlier
    ]


# --- what the model says ------------------------------------------------------------------------------


def script(path: str) -> Json:
    """A script for the fake model API: each task by its name, each vote by its own."""
    project = read(path)
    place = os.path.dirname(path)
    rules: list[Json] = []
    for task in project.tasks:
        tools: list[Json] = [
            {"name": "write_file", "input": {"path": name, "content": _content(place, task, name)}}
            for name in task.files
        ]
        tools += [
            {"name": "remember", "input": {"key": key, "value": value}}
            for key, value in task.remember
        ]
        if task.tests:
            tools.append({"name": "run_tests", "input": {}})
        step: Json = {"text": f"{task.title}: this is what I do.", "tools": tools}
        rules.append({"last": f"*Task {task.id}:*", "steps": [step]})
    rules += [
        {"last": f"*Vote {vote.id} by *", "steps": [{"text": vote.winner}]}
        for vote in project.votes
    ]
    return {"version": 1, "rules": rules}


def _content(place: str, task: Task, name: str) -> str:
    for path in (os.path.join(place, "drafts", task.id, name), os.path.join(place, "files", name)):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
    raise Refused("bad_project", f"task {task.id}: {name} lies neither in drafts nor in files")
