"""Goals in YAML: statement, scope, config, given, when, then, artefacts, negative assertions, hook.

Steps and sentences are the ones of experiments. All mistakes are told at once, each with its line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from mutiny.contracts.catalogue import contract_named, language_of
from mutiny.errors import UsageError, nearest
from mutiny.experiments.document import Mistake, Mistakes, Node, read
from mutiny.experiments.steps import StepReader
from mutiny.kit.goals import LAYERS, SCOPES, TIERS, Assertion, Goal
from mutiny.model.operation import Operation

REQUIRED = (
    *("goal", "tier", "statement", "scope", "given", "when", "then"),
    *("artefacts", "negative", "hook"),
)
KEYS = (*REQUIRED, "config", "layers", "owner", "job")
ARTEFACTS = ("state", "events", "branch")
BRANCH = {"moved": "The branch has moved", "unmoved": "The branch has not moved"}
JOBS = {"container": "docker-e2e", "chaos": "chaos-nightly", "performance": "chaos-nightly"}
LOCAL_JOB = "unit-and-acceptance-local"


def shipped() -> Path:
    """The goals that ship with Mutiny."""
    return Path(str(resources.files("mutiny") / "goals"))


def load_goals(folder: Path, contract: str) -> list[Goal]:
    """All goals of a folder, or of one file, in the order of tier and id."""
    if not folder.exists():
        own = folder.parent == shipped()
        told = f"no goals ship for the contract {contract}; name yours with --goals"
        raise UsageError(told if own else f"{folder}: there is no such goal, and no such folder")
    files = sorted(folder.glob("*.yaml")) if folder.is_dir() else [folder]
    if not files:
        raise UsageError(f"{folder}: there is no goal (*.yaml) in it")
    goals: list[Goal] = []
    mistakes: list[str] = []
    for file in files:
        try:
            goals.append(read_goal(file, contract))
        except Mistakes as error:
            mistakes.append(str(error))
    double = {goal.id: goal.file for goal in goals}
    mistakes += [
        f"{goal.file}:{goal.line}: goal {goal.id} is also in {double[goal.id]}"
        for goal in goals
        if double[goal.id] != goal.file
    ]
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return sorted(goals, key=lambda goal: (goal.tier, goal.id))


def read_goal(path: Path, contract: str) -> Goal:
    """One goal; every mistake names its line."""
    root = read(path).root
    reader = _Reader(root, contract)
    goal = reader.read(str(path))
    mistakes = sorted((*reader.mistakes, *reader.steps.mistakes), key=lambda one: one.line)
    if mistakes or goal is None:
        raise Mistakes(str(path), mistakes)
    return goal


class _Reader:
    def __init__(self, root: Node, contract: str) -> None:
        self.root = root
        self.contract = contract
        self.steps = StepReader(contract_named(contract).operations.load(), language_of(contract))
        self.mistakes: list[Mistake] = []

    def fail(self, key: str, text: str) -> None:
        self.mistakes.append(Mistake(self.root.line_of(key), text))

    def read(self, path: str) -> Goal | None:
        """The whole goal, or None."""
        if not self.root.is_mapping:
            self.mistakes.append(Mistake(self.root.line, "expected `goal:` and its parts"))
            return None
        for key, line, _ in self.root.entries or ():
            if key not in KEYS:
                self.mistakes.append(Mistake(line, f"unknown key {key!r}{nearest(key, KEYS)}"))
        for key in REQUIRED:
            value = self.root.get(key)
            if value is None or (value.is_list and not value.elements):
                self.fail(key, self._missing(key))
        config = self._config()
        steps = (*config, *self._steps("given"), *self._steps("when"))
        assertions = (
            *self._sentences("then", self.root.get("then")),
            *self._artefacts(),
            *self._sentences("negative", self.root.get("negative")),
        )
        layers = self._words("layers", LAYERS) or ("local",)
        return Goal(
            self._text("goal"),
            self._tier(),
            self._text("statement"),
            self._words("scope", SCOPES),
            layers,
            steps,
            assertions,
            self._text("hook"),
            self._text("owner"),
            self._text("job") or next((JOBS[one] for one in layers if one in JOBS), LOCAL_JOB),
            path,
            self.root.line,
        )

    @staticmethod
    def _missing(key: str) -> str:
        if key == "negative":
            return "a goal has at least one negative assertion: what must not happen"
        if key == "artefacts":
            return "a goal names its artefacts: state, events and branch"
        return f"{key} is missing"

    def _text(self, key: str) -> str:
        node = self.root.get(key)
        if node is None:
            return ""
        if not isinstance(node.scalar, str):
            self.fail(key, f"{key} is a text, got {node.shown()}")
            return ""
        text = " ".join(node.scalar.split())
        if not text and key in REQUIRED:
            self.fail(key, f"{key} is missing")
        return text

    def _tier(self) -> int:
        node = self.root.get("tier")
        if node is None or node.scalar not in TIERS or isinstance(node.scalar, bool):
            if node is not None:
                self.fail("tier", f"tier is 0, 1 or 2, got {node.shown()}")
            return 0
        return int(node.scalar)

    def _words(self, key: str, known: Sequence[str]) -> tuple[str, ...]:
        node = self.root.get(key)
        if node is None:
            return ()
        if node.is_list and not node.elements:
            if key not in REQUIRED:
                self.fail(key, f"{key}: the list is empty")
            return ()
        found = []
        for one in node.elements or (node,):
            if one.scalar not in known:
                text = f"{key}: unknown word {one.shown()}{nearest(str(one.scalar), known)}"
                self.mistakes.append(Mistake(one.line, text))
            found.append(str(one.scalar))
        return tuple(found)

    def _config(self) -> tuple[Operation, ...]:
        node = self.root.get("config")
        if node is not None and not node.is_mapping and node.plain() is not None:
            self.fail("config", f"config is settings by their names, got {node.shown()}")
        found: list[Operation] = []
        for key, line, value in () if node is None else node.entries or ():
            if value.is_mapping or value.is_list or value.scalar is None:
                self.mistakes.append(Mistake(line, f"config: {key} is {value.shown()}, no value"))
                continue
            made = Node(
                line,
                entries=(("name", line, Node(line, key)), ("value", line, _as_text(value))),
            )
            found += self.steps.read(Node(line, entries=(("configure", line, made),)))
        return tuple(found)

    def _steps(self, key: str) -> tuple[Operation, ...]:
        node = self.root.get(key)
        if node is not None and not node.is_list:
            self.fail(key, f"{key} is a list of steps, got {node.shown()}")
            return ()
        parts = () if node is None else node.elements or ()
        return tuple(one for part in parts for one in self.steps.read(part))

    def _sentences(self, kind: str, node: Node | None) -> tuple[Assertion, ...]:
        found = []
        for one in () if node is None else node.elements or (node,):
            text = self.steps.sentence(one, one.line)
            if text is not None:
                found.append(Assertion(kind, text))
        return tuple(found)

    def _artefacts(self) -> tuple[Assertion, ...]:
        node = self.root.get("artefacts")
        if node is None:
            return ()
        if not node.is_mapping or not node.entries:
            self.fail("artefacts", self._missing("artefacts"))
            return ()
        found: list[Assertion] = []
        for key, line, value in node.entries:
            if key not in ARTEFACTS:
                text = f"artefacts: unknown key {key!r}{nearest(key, ARTEFACTS)}"
                self.mistakes.append(Mistake(line, text))
            elif key == "state":
                found += self._sentences("artefact", value)
            elif key == "events":
                found += self._events(value, line)
            elif value.scalar in BRANCH:
                found.append(Assertion("artefact", BRANCH[str(value.scalar)]))
            else:
                text = f"artefacts: branch is moved or unmoved, got {value.shown()}"
                self.mistakes.append(Mistake(line, text))
        return tuple(found)

    def _events(self, node: Node, line: int) -> list[Assertion]:
        wrong = [one for one in node.elements or (node,) if not _is_word(one.scalar)]
        for one in wrong:
            text = f"artefacts: an event is named by its type, got {one.shown()}"
            self.mistakes.append(Mistake(line if one is node else one.line, text))
        names = [] if wrong else [one.scalar for one in node.elements or (node,)]
        return [Assertion("artefact", f"Event {name} was logged") for name in names]


def _is_word(value: object) -> bool:
    return isinstance(value, str) and len(value.split()) == 1


def _as_text(node: Node) -> Node:
    """A setting is a text, however it is written."""
    words: Mapping[object, str] = {True: "on", False: "off"}
    value = words[node.scalar] if isinstance(node.scalar, bool) else str(node.scalar)
    return Node(node.line, value)


TEMPLATE = """\
# One goal: what an operator expects to happen. Steps and sentences are the ones of experiments.
goal: G0.99                     # stable id
tier: 0                         # 0 safety, 1 core workflow, 2 hardening
layers: [local]                 # smoke, local, container, chaos, performance
statement: >-
  This is what I expect to happen: a task whose validator says no is not merged.
scope: [run]                    # plan, run, resume, status, clean, logs
config:                         # settings that it needs
  test: block
given:                          # how things are before
  - init
  - plan: {tasks: [a]}
  - gate_says: {gate: test, verdict: fail}
when:                           # what is done
  - run
then:                           # what must be so
  - Task a is review
artefacts:                      # where it can be seen
  state: [The run is paused]
  events: [validator.block]
  branch: unmoved
negative:                       # what must not have happened
  - Task a is not merged
hook: fixture toy-repo, doubles of agent and gates
owner: nobody yet
"""
