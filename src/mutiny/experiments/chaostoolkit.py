"""Chaos Toolkit's experiments, imported: the same file, run inside the box, with honest verdicts.

Providers `process`, `http` and `python` run. What has no meaning outside that tool's own process (controls,
vaults, tolerances with code) is refused with its line, never passed over.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutiny.contracts.catalogue import default_for, language_of
from mutiny.errors import nearest
from mutiny.experiments.document import Mistake, Mistakes
from mutiny.experiments.experiment import CHAOS_TOOLKIT, Experiment, PlannedStep
from mutiny.experiments.tolerance import problem
from mutiny.kit.experiment import Action, Gather, Probe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mutiny.experiments.document import Document, Node
    from mutiny.model.operation import Operation

KEYS = (
    *("version", "title", "description", "tags", "contributions", "configuration", "secrets"),
    *("controls", "steady-state-hypothesis", "method", "rollbacks", "runtime", "extensions", "dry"),
)
_ACTIVITY_KEYS = (
    *("type", "name", "provider", "tolerance", "background", "pauses", "configuration", "secrets"),
    *("controls", "ref", "dry"),
)
_PROVIDERS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "process": (("path",), ("arguments", "timeout", "env", "secrets", "configuration")),
    "http": (
        ("url",),
        (
            *("method", "headers", "arguments", "timeout", "verify_tls", "max_retries"),
            *("secrets", "configuration", "expected_status"),
        ),
    ),
    "python": (("module", "func"), ("arguments", "secrets", "configuration", "timeout")),
}
"""Provider -> what it needs, and what it may have."""
_VARIABLE = r"\$\{([^}]+)\}"


def understand(
    document: Document, contract_of: Callable[[str], str], target: str | None
) -> Experiment:
    """The experiment that a document describes; `target`: in whose box it runs."""
    reader = _Reader(document, contract_of)
    experiment = reader.read(target)
    if reader.mistakes:
        raise Mistakes(document.path, sorted(reader.mistakes, key=lambda item: item.line))
    return experiment


class _Reader:
    def __init__(self, document: Document, contract_of: Callable[[str], str]) -> None:
        self._document = document
        self._contract_of = contract_of
        self.mistakes: list[Mistake] = []
        self._configuration: dict[str, Any] = {}
        self._secrets: dict[str, dict[str, Any]] = {}
        self._named: dict[str, Node] = {}

    def _fail(self, line: int, text: str) -> None:
        self.mistakes.append(Mistake(line, text))

    def read(self, target: str | None) -> Experiment:
        root = self._document.root
        for key, line, _ in root.entries or ():
            if key not in KEYS:
                self._fail(line, f"unknown key {key!r}{nearest(key, KEYS)}")
        for key in ("title", "method"):
            if root.get(key) is None:
                self._fail(root.line, f"{key} is missing")
        controls = root.get("controls")
        if controls is not None and controls.plain():
            self._fail(
                root.line_of("controls"),
                "controls are code inside Chaos Toolkit's own process and cannot be run here",
            )
        self._read_configuration(root)
        self._read_secrets(root)
        for node in (*self._list(root, "method"), *self._probes(root)):
            name = node.get("name")
            if name is not None:
                self._named[str(name.scalar)] = node
        probes = self._hypothesis(root)
        method = self._method(root)
        rollback = self._activities(self._list(root, "rollbacks"))
        bare = default_for("foreign experiment")
        contract = bare.name
        setup: tuple[PlannedStep, ...] = ()
        if target is not None and target not in bare.targets:
            contract = self._contract_of(target)
            setup = (
                PlannedStep("(what the contract begins with)", 0, language_of(contract).setup),
            )
        title = root.get("title")
        described = root.get("description")
        return Experiment(
            self._document.path,
            "" if title is None else str(title.scalar),
            "" if described is None else str(described.scalar or ""),
            contract,
            (target or bare.default_target,),
            (),
            setup,
            method,
            rollback,
            "whole box",
            form=CHAOS_TOOLKIT,
            before=tuple(_at(probe, "before") for probe in probes),
            after=tuple(_at(probe, "after") for probe in probes),
            document=root.plain(),
        )

    # --- values ------------------------------------------------------------------------------------

    def _read_configuration(self, root: Node) -> None:
        for name, line, value in self._table(root, "configuration"):
            self._configuration[name] = self._value(value, line, name)

    def _read_secrets(self, root: Node) -> None:
        for scope, line, values in self._table(root, "secrets"):
            if not values.is_mapping:
                self._fail(line, f"secrets.{scope}: expected a mapping")
                continue
            self._secrets[scope] = {
                name: self._value(value, at, f"{scope}.{name}")
                for name, at, value in values.entries or ()
            }

    def _value(self, node: Node, line: int, name: str) -> Any:
        """A plain value, or one from the environment."""
        kind = node.get("type")
        if kind is None:
            return node.plain()
        if kind.scalar != "env":
            self._fail(
                line, f"{name}: a value of type {kind.scalar!r} cannot be looked up; use 'env'"
            )
            return None
        key = node.get("key")
        variable = "" if key is None else str(key.scalar)
        if variable in os.environ:
            return os.environ[variable]
        default = node.get("default")
        if default is None:
            self._fail(
                line, f"{name}: the environment has no {variable!r}, and there is no default"
            )
            return None
        return default.plain()

    def _filled(self, value: Any, scopes: tuple[str, ...], line: int) -> Any:
        """`${name}` replaced by configuration and by the secrets that the activity asked for."""
        if isinstance(value, dict):
            return {key: self._filled(item, scopes, line) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item, scopes, line) for item in value]
        if not isinstance(value, str):
            return value
        known = dict(self._configuration)
        for scope in scopes:
            known.update(self._secrets.get(scope, {}))
        whole = re.fullmatch(_VARIABLE, value)
        if whole and whole[1] in known:
            return known[whole[1]]

        def fill(found: re.Match[str]) -> str:
            if found[1] not in known:
                hint = nearest(found[1], list(known))
                self._fail(line, f"${{{found[1]}}} is in no configuration and no secret{hint}")
                return found[0]
            return str(known[found[1]])

        return re.sub(_VARIABLE, fill, value)

    def _table(self, node: Node, key: str) -> tuple[tuple[str, int, Node], ...]:
        """The entries of a part that is a mapping when it is there."""
        part = node.get(key)
        if part is not None and part.plain() is not None and not part.is_mapping:
            self._fail(node.line_of(key), f"{key}: expected a mapping, got {part.shown()}")
        return () if part is None else part.entries or ()

    # --- activities --------------------------------------------------------------------------------

    def _list(self, root: Node, key: str) -> tuple[Node, ...]:
        node = root.get(key)
        if node is None:
            return ()
        if not node.is_list:
            self._fail(root.line_of(key), f"{key}: expected a list")
            return ()
        return node.elements or ()

    def _probes(self, root: Node) -> tuple[Node, ...]:
        node = root.get("steady-state-hypothesis")
        probes = None if node is None else node.get("probes")
        return () if probes is None else probes.elements or ()

    def _hypothesis(self, root: Node) -> list[Probe]:
        nodes = self._probes(root)
        if not nodes:
            line = root.line_of("steady-state-hypothesis")
            self._fail(
                line, "steady-state-hypothesis with probes is missing: nothing would be tested"
            )
        found = []
        for node in nodes:
            made = self._activity(node)
            if made is None:
                continue
            if not isinstance(made, Probe):
                self._fail(node.line, "the steady state is made of probes")
            elif node.get("tolerance") is None:
                self._fail(node.line, f"probe {made.name!r} has no tolerance")
            else:
                found.append(made)
        return found

    def _method(self, root: Node) -> tuple[PlannedStep, ...]:
        steps = self._activities(self._list(root, "method"))
        operations = [operation for step in steps for operation in step.operations]
        if not self.mistakes and not any(isinstance(item, Action) for item in operations):
            self._fail(root.line_of("method"), "the method has no action: it disturbs nothing")
        if any(isinstance(item, Action | Probe) and item.background for item in operations):
            steps = (*steps, PlannedStep("(wait for the background)", 0, (Gather(),)))
        return steps

    def _activities(self, nodes: tuple[Node, ...]) -> tuple[PlannedStep, ...]:
        found = []
        for node in nodes:
            made = self._activity(node)
            if made is not None:
                found.append(PlannedStep(made.name, node.line, (made,)))
        return tuple(found)

    def _activity(self, node: Node) -> Action | Probe | None:
        reference = node.get("ref")
        if reference is not None:
            name = str(reference.scalar)
            if name not in self._named:
                self._fail(node.line, f"ref {name!r}{nearest(name, list(self._named))} is unknown")
                return None
            node = self._named[name]
        if not node.is_mapping:
            self._fail(node.line, f"expected an activity, got {node.shown()}")
            return None
        before = len(self.mistakes)
        for key, line, value in node.entries or ():
            if key not in _ACTIVITY_KEYS:
                self._fail(line, f"unknown key {key!r}{nearest(key, _ACTIVITY_KEYS)}")
            if key == "controls" and value.plain():
                self._fail(line, "controls cannot be run here")
        kind = node.get("type")
        word = None if kind is None else kind.scalar
        if word not in ("probe", "action"):
            hint = nearest(str(word), ["probe", "action"])
            self._fail(node.line_of("type"), f"type: {word!r} is neither probe nor action{hint}")
        name_node = node.get("name")
        name = "" if name_node is None else str(name_node.scalar)
        provider = self._provider(node, name)
        pause_before, pause_after = self._pauses(node)
        background = node.get("background")
        in_background = background is not None and background.scalar is True
        if len(self.mistakes) > before or provider is None:
            return None
        if word == "action":
            return Action(name, provider, in_background, pause_before, pause_after)
        return Probe(
            name, provider, in_background, pause_before, pause_after, self._tolerance(node)
        )

    def _provider(self, node: Node, name: str) -> dict[str, object] | None:
        provider = node.get("provider")
        if provider is None or not provider.is_mapping:
            self._fail(node.line, f"activity {name!r} has no provider")
            return None
        kind = provider.get("type")
        word = "" if kind is None else str(kind.scalar)
        if word not in _PROVIDERS:
            hint = nearest(word, list(_PROVIDERS))
            self._fail(provider.line_of("type"), f"a provider of type {word!r} cannot be run{hint}")
            return None
        needed, allowed = _PROVIDERS[word]
        for key in needed:
            if provider.get(key) is None:
                self._fail(provider.line, f"provider {word}: {key} is missing")
        for key, line, _ in provider.entries or ():
            if key not in ("type", *needed, *allowed):
                self._fail(line, f"provider {word}: unknown key {key!r}{nearest(key, allowed)}")
        scopes = self._scopes(provider) or self._scopes(node)
        filled: dict[str, object] = {
            key: self._filled(value.plain(), scopes, line)
            for key, line, value in provider.entries or ()
            if key not in ("secrets", "configuration")
        }
        if word == "python":
            filled["path"] = [str(Path(self._document.path).resolve().parent)]
            filled["configuration"] = self._configuration
            filled["secrets"] = {
                k: v for scope in scopes for k, v in self._secrets.get(scope, {}).items()
            }
        timeout = filled.get("timeout")
        if timeout is not None and (not isinstance(timeout, int | float) or timeout <= 0):
            self._fail(provider.line_of("timeout"), f"timeout: {timeout!r} is no number of seconds")
        return filled

    @staticmethod
    def _scopes(node: Node) -> tuple[str, ...]:
        names = node.get("secrets")
        return () if names is None else tuple(str(item.scalar) for item in names.elements or ())

    def _pauses(self, node: Node) -> tuple[float, float]:
        found = {"before": 0.0, "after": 0.0}
        for key, line, value in self._table(node, "pauses"):
            seconds = self._filled(value.plain(), (), line)
            if key not in found:
                self._fail(line, f"pauses: unknown key {key!r}{nearest(key, list(found))}")
            elif isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0:
                self._fail(line, f"pauses.{key}: {seconds!r} is no number of seconds")
            else:
                found[key] = float(seconds)
        return found["before"], found["after"]

    def _tolerance(self, node: Node) -> object:
        given = node.get("tolerance")
        if given is None:
            return None
        line = node.line_of("tolerance")
        value = self._filled(given.plain(), (), line)
        wrong = problem(value)
        if wrong is not None:
            self._fail(line, f"tolerance: {wrong}")
        return value


def _at(probe: Probe, when: str) -> Operation:
    return Probe(
        probe.name,
        probe.provider,
        False,
        probe.pause_before_s,
        probe.pause_after_s,
        probe.tolerance,
        when,
    )
