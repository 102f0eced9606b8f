"""From a step of a file to operations: every operation of a contract is a word in snake_case.

The words come from the contract's registry and the arguments from the operation's own fields, so an
operation that is added tomorrow is a step tomorrow.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Union, get_args, get_origin

from mutiny.codec import Registry, decode_operation, type_hints
from mutiny.errors import FormatError, nearest
from mutiny.experiments.document import Mistake, Node
from mutiny.kit.experiment import EXPERIMENT_OPERATIONS, VerifySentence
from mutiny.kit.language import Language
from mutiny.kit.operations import Sleep
from mutiny.model.duration import parse_duration
from mutiny.model.operation import Operation, snake_case

_HIDDEN = ("Reset", "Verify", *EXPERIMENT_OPERATIONS)
"""Not steps: the box is thrown away by nobody, and sentences have their own word."""
_ALIASES = {"behavior": "behaviour"}
VERIFY_WITHIN_S = 10.0


class StepReader:
    """Understands steps; notes mistakes with their lines instead of raising."""

    def __init__(self, registry: Registry, language: Language) -> None:
        self.registry = {**registry, **EXPERIMENT_OPERATIONS}
        self.language = language
        self.words = {snake_case(name): name for name in registry if name not in _HIDDEN}
        self.mistakes: list[Mistake] = []

    @property
    def known(self) -> list[str]:
        """All words that a step may begin with."""
        return list(dict.fromkeys(("spawn_worker", "wait", "verify", *self.words)))

    def fail(self, line: int, text: str) -> None:
        """Note a mistake."""
        self.mistakes.append(Mistake(line, text))

    def read(self, node: Node) -> tuple[Operation, ...]:
        """The operations of one step; empty when something is wrong with it."""
        if isinstance(node.scalar, str):  # `- settle` is short for `- settle: {}`
            return self._word(node.scalar, node.line, Node(node.line))
        if not node.is_mapping or len(node.entries or ()) != 1:
            self.fail(node.line, f"a step is one word with its arguments, got {node.shown()}")
            return ()
        assert node.entries is not None
        word, line, value = node.entries[0]
        return self._word(word, line, value)

    def _word(self, word: str, line: int, value: Node) -> tuple[Operation, ...]:
        if word == "wait":
            return self._wait(line, value)
        if word == "verify":
            return self._verify(line, value)
        if word == "spawn_worker" and "spawn_worker" not in self.words:
            return self._spawn(line, value)
        if word not in self.words:
            self.fail(line, f"unknown step {word!r}{nearest(word, self.known)}")
            return ()
        operation = self._operation(self.words[word], line, value)
        return () if operation is None else (operation,)

    # --- words for people -------------------------------------------------------------------------

    def _wait(self, line: int, value: Node) -> tuple[Operation, ...]:
        seconds = self.duration(value, "wait", line)
        return () if seconds is None else (Sleep(seconds),)

    def duration(self, node: Node, what: str, line: int) -> float | None:
        """A span of time; a bare number is refused, because nobody knows its unit."""
        if isinstance(node.scalar, str):
            try:
                return parse_duration(node.scalar)
            except ValueError as error:
                self.fail(line, f"{what}: {error}")
                return None
        hint = f"; did you mean '{node.scalar}s'?" if isinstance(node.scalar, int | float) else ""
        self.fail(line, f"{what}: {node.shown()} is no span of time{hint}")
        return None

    def _verify(self, line: int, value: Node) -> tuple[Operation, ...]:
        within_s = VERIFY_WITHIN_S
        sentence = value
        if value.is_mapping:
            for key, key_line, _ in value.entries or ():
                if key not in ("sentence", "within"):
                    hint = nearest(key, ["sentence", "within"])
                    self.fail(key_line, f"verify: unknown key {key!r}{hint}")
            within = value.get("within")
            if within is not None:
                within_s = self.duration(within, "within", value.line_of("within")) or 0.0
            sentence = value.get("sentence") or Node(line)
        text = self.sentence(sentence, line)
        return () if text is None else (VerifySentence(text, within_s),)

    def sentence(self, node: Node, line: int) -> str | None:
        """A line that the contract's vocabulary understands."""
        if not isinstance(node.scalar, str):
            self.fail(line, f"expected a sentence, got {node.shown()}")
            return None
        try:
            self.language.vocabulary.read(node.scalar)
        except ValueError as error:
            self.fail(line, str(error))
            return None
        return node.scalar

    def _spawn(self, line: int, value: Node) -> tuple[Operation, ...]:
        spawn = self.language.spawn
        if spawn is None:
            self.fail(line, f"the contract {self.language.contract!r} has no workers to spawn")
            return ()
        known = ("id", "behavior")
        for key, key_line, _ in value.entries or ():
            if _ALIASES.get(key, key) not in ("id", "worker", "behaviour"):
                self.fail(key_line, f"spawn_worker: unknown key {key!r}{nearest(key, known)}")
        given = value.get("id") or value.get("worker")
        behaviour_node = value.get("behavior") or value.get("behaviour")
        behaviour = "healthy" if behaviour_node is None else str(behaviour_node.scalar)
        if given is None or not isinstance(given.scalar, str):
            self.fail(line, "spawn_worker: id is missing")
            return ()
        if behaviour.partition(":")[0] not in (*self.language.behaviours, "slow"):
            assert behaviour_node is not None
            hint = nearest(behaviour, self.language.behaviours)
            self.fail(behaviour_node.line, f"spawn_worker: unknown behavior {behaviour!r}{hint}")
            return ()
        return spawn(given.scalar, behaviour)

    # --- any operation ---------------------------------------------------------------------------

    def _operation(self, name: str, line: int, value: Node) -> Operation | None:
        before = len(self.mistakes)
        data = self._plain(name, line, value)
        if len(self.mistakes) > before:
            return None
        try:
            return decode_operation(data, self.registry, where="")
        except FormatError as error:
            for problem in error.problems:
                self.fail(*self._placed(problem, name, line, value))
            return None

    def _placed(self, problem: str, name: str, line: int, value: Node) -> tuple[int, str]:
        """The line of the argument that a problem names, and the problem in the file's words."""
        path, _, rest = problem.partition(": ")
        word = path.split(".")[1].split("[")[0] if "." in path else ""
        for key, key_line, _ in value.entries or ():
            if word in (key, self._field(name, key)):
                line = key_line
        return line, f"{snake_case(name)}{'.' + word if word else ''}: {rest or problem}"

    def _plain(self, name: str, line: int, value: Node) -> dict[str, object]:
        """`{type, args}` with the file's short forms written out."""
        cls = self.registry[name]
        known = [item for item in fields(cls) if item.init]
        hints = type_hints(cls)  # type: ignore[arg-type]  # a class is hashable
        if value.is_mapping and not self._is_step_for(known, hints, value):
            entries = {self._field(name, key): node for key, _, node in value.entries or ()}
        elif value.scalar is None and not value.is_list and not value.is_mapping:
            entries = {}
        elif known:
            entries = {known[0].name: value}  # `kill_agent: alpha`, `parallel: [...]`
        else:
            self.fail(line, f"{snake_case(name)}: takes no arguments, got {value.shown()}")
            return {}
        arguments = {
            key: self._argument(hints.get(key), node, snake_case(name), key)
            for key, node in entries.items()
        }
        return {"type": name, "args": arguments}

    def _is_step_for(self, known: list[Any], hints: Mapping[str, Any], value: Node) -> bool:
        """`expect_error: {claim: ...}`: the only argument is itself a step."""
        if not known or _operation_kind(hints.get(known[0].name)) != "one":
            return False
        keys = [key for key, _, _ in value.entries or ()]
        names = {item.name for item in known}
        return len(keys) == 1 and keys[0] not in names and keys[0] in self.words

    def _field(self, name: str, key: str) -> str:
        """The operation's name for a key of the file."""
        names = [item.name for item in fields(self.registry[name])]
        word = _ALIASES.get(key, key)
        if word == "id" and "id" not in names:
            word = next((other for other in ("worker", "task", "node") if other in names), word)
        if word not in names:
            for longer in (f"{word}_s", f"{word}_seconds"):
                if longer in names:
                    return longer
        return word

    def _argument(self, hint: Any, node: Node, step: str, key: str) -> object:
        kind = _operation_kind(hint)
        if kind == "one" and node.scalar is None and not node.is_list and not node.is_mapping:
            return None
        if kind == "one":
            return self._inner(node)
        if kind == "many" and node.is_list:
            return [self._inner(item) for item in node.elements or ()]
        if _is_number(hint) and isinstance(node.scalar, str):
            return self._span(node, step, key)
        if get_origin(hint) is tuple and node.scalar is not None:
            return [node.scalar]
        return node.plain()

    def _span(self, node: Node, step: str, key: str) -> object:
        """A number that was written as a span of time, in the unit of its field."""
        seconds = self.duration(node, f"{step}.{key}", node.line)
        if seconds is None:
            return 0.0
        return seconds * 1000 if key.endswith("_ms") else seconds

    def _inner(self, node: Node) -> object:
        made = self.read(node)
        if len(made) != 1:
            if made:
                self.fail(node.line, "only one operation can stand here")
            return None
        return made[0].as_json()


def _operation_kind(hint: Any) -> str:
    """Is an argument an operation (`one`), a list of them (`many`), or something else?"""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        kinds = [_operation_kind(option) for option in get_args(hint)]
        return next((kind for kind in kinds if kind), "")
    if origin is tuple:
        return "many" if _operation_kind(get_args(hint)[0]) else ""
    return "one" if isinstance(hint, type) and issubclass(hint, Operation) else ""


def _is_number(hint: Any) -> bool:
    if get_origin(hint) in (Union, types.UnionType):
        return float in get_args(hint) and str not in get_args(hint)
    return hint is float
