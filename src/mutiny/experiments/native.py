"""The native form: `experiment: {name, hypothesis, steady_state, method, rollback, blast_radius}`.

All mistakes of a file are reported at once, each with its line and the nearest valid word, and nothing has
been touched by then.
"""

from __future__ import annotations

from collections.abc import Callable

from mutiny.codec import Registry
from mutiny.contracts.catalogue import contract_named, default_for, language_of, with_targets
from mutiny.errors import UsageError, nearest
from mutiny.experiments.document import Document, Mistake, Mistakes, Node
from mutiny.experiments.experiment import Experiment, PlannedStep, SteadyLine
from mutiny.experiments.reach import reach
from mutiny.experiments.steps import StepReader
from mutiny.kit.experiment import DEFAULT_RATE_HZ, FASTEST_HZ
from mutiny.kit.language import RADII, RADIUS_WORDS, Language
from mutiny.kit.operations import disturbs
from mutiny.model.operation import Kind, Operation, walk

REQUIRED = ("name", "steady_state", "method", "blast_radius")
KEYS = (
    *("name", "hypothesis", "steady_state", "method", "rollback", "blast_radius"),
    *("target", "contract", "seed", "timeout", "setup", "probe", "rate", "covers", "finds"),
)
ContractOf = Callable[[str], str]
"""The contract of a target, by the target's name."""


def registry_of(contract: str) -> Registry:
    """The operations of a contract that can be steps."""
    return contract_named(contract).operations.load()


def understand(
    document: Document, contract_of: ContractOf, target: str | None = None
) -> Experiment:
    """The experiment that a document describes, for its own targets or for another one."""
    reader = _Reader(document, contract_of, target)
    experiment = reader.read()
    if reader.mistakes or experiment is None:
        raise Mistakes(document.path, sorted(reader.mistakes, key=lambda item: item.line))
    return experiment


class _Reader:
    """Reads one document."""

    def __init__(self, document: Document, contract_of: ContractOf, target: str | None) -> None:
        self._document = document
        self._contract_of = contract_of
        self._target = target
        self._own: list[Mistake] = []
        self._steps: StepReader | None = None

    @property
    def mistakes(self) -> list[Mistake]:
        return [*self._own, *(self._steps.mistakes if self._steps else ())]

    def _fail(self, line: int, text: str) -> None:
        self._own.append(Mistake(line, text))

    def read(self) -> Experiment | None:
        root = self._document.root
        body = root.get("experiment")
        if body is None or not body.is_mapping:
            keys = [key for key, _, _ in root.entries or ()]
            hint = nearest(keys[0], ["experiment"]) if keys else ""
            self._fail(root.line, f"expected `experiment:` with its parts{hint}")
            return None
        for key, line, _ in root.entries or ():
            if key != "experiment":
                self._fail(line, f"unknown key {key!r} beside `experiment`")
        for key, line, _ in body.entries or ():
            if key not in KEYS:
                self._fail(line, f"unknown key {key!r}{nearest(key, KEYS)}")
        for key in REQUIRED:
            if body.get(key) is None:
                self._fail(root.line_of("experiment"), f"{key} is missing")
        targets, contract = self._where(body)
        if contract is None:
            return None
        return self._understood(body, targets, contract)

    def _where(self, body: Node) -> tuple[tuple[str, ...], str | None]:
        """The targets, and the contract that they share."""
        named = self._texts(body, "target")
        given = self._text(body, "contract")
        if given is not None and given not in with_targets():
            line = body.line_of("contract")
            self._fail(line, f"unknown contract {given!r}{nearest(given, list(with_targets()))}")
            return (), None
        targets = (self._target,) if self._target else named
        given = given or (self._own_contract(named) if self._target else None)
        if not targets:
            contract = contract_named(given) if given else default_for("experiment")
            if contract.targets:
                return (contract.default_target,), contract.name
            self._fail(body.line, f"name a target: none of the contract {given!r} is the default")
            return (), None
        found: dict[str, str] = {}
        for target in targets:
            try:
                found[target] = self._contract_of(target)
            except UsageError as error:
                if self._target:
                    raise
                self._fail(body.line_of("target"), str(error).partition(";")[0])
                return (), None
        contracts = set(found.values())
        if len(contracts) > 1 or (given and contracts != {given}):
            shown = ", ".join(f"{name} has {contract}" for name, contract in found.items())
            wanted = (
                f"the contract is {given!r}, but " if given else "one experiment, one contract: "
            )
            self._fail(body.line_of("target"), f"{wanted}{shown}")
            return (), None
        return targets, contracts.pop()

    def _own_contract(self, named: tuple[str, ...]) -> str | None:
        """The contract of the targets that the file names itself; None: they tell nothing."""
        try:
            return self._contract_of(named[0]) if named else None
        except UsageError:
            return None  # a target that only somebody else has

    def _understood(self, body: Node, targets: tuple[str, ...], contract: str) -> Experiment | None:
        language = language_of(contract)
        steps = self._steps = StepReader(registry_of(contract), language)
        steady = self._steady_state(body, steps)
        setup = self._planned(body, "setup", steps)
        if body.get("setup") is None:
            setup = (PlannedStep("(what the contract begins with)", body.line, language.setup),)
        method = self._planned(body, "method", steps)
        rollback = self._rollback(body, steps, method)
        radius = self._radius(body)
        if radius is not None:
            self._enforce(radius, method, language)
        self._something_happens(body, method, language)
        timeout = body.get("timeout")
        return Experiment(
            self._document.path,
            self._text(body, "name") or "",
            self._text(body, "hypothesis") or "",
            contract,
            targets,
            steady,
            setup,
            method,
            rollback,
            radius or "",
            seed=self._seed(body),
            timeout_s=None
            if timeout is None
            else steps.duration(timeout, "timeout", body.line_of("timeout")),
            probe=self._probe(body, steps, language),
            rate_hz=self._rate(body),
            settle=language.settle,
            covers=self._texts(body, "covers"),
            finds=self._texts(body, "finds"),
            document=self._document.root.plain(),
        )

    # --- parts -----------------------------------------------------------------------------------

    def _text(self, body: Node, key: str) -> str | None:
        node = body.get(key)
        if node is None:
            return None
        if not isinstance(node.scalar, str) or not node.scalar.strip():
            self._fail(body.line_of(key), f"{key}: expected text, got {node.shown()}")
            return None
        return node.scalar

    def _texts(self, body: Node, key: str) -> tuple[str, ...]:
        node = body.get(key)
        if node is None:
            return ()
        if node.is_list:
            found = []
            for item in node.elements or ():
                if isinstance(item.scalar, str):
                    found.append(item.scalar)
                else:
                    self._fail(item.line, f"{key}: expected text, got {item.shown()}")
            return tuple(found)
        text = self._text(body, key)
        return () if text is None else (text,)

    def _list(self, body: Node, key: str) -> tuple[Node, ...]:
        node = body.get(key)
        if node is None:
            return ()
        if not node.is_list or not node.elements:
            self._fail(body.line_of(key), f"{key}: expected a list with at least one line")
            return ()
        return node.elements

    def _steady_state(self, body: Node, steps: StepReader) -> tuple[SteadyLine, ...]:
        found = []
        for node in self._list(body, "steady_state"):
            text = steps.sentence(node, node.line)
            if text is not None:
                found.append(SteadyLine(text, node.line))
        return tuple(found)

    def _planned(self, body: Node, key: str, steps: StepReader) -> tuple[PlannedStep, ...]:
        return tuple(
            PlannedStep(_shown(node), node.line, steps.read(node)) for node in self._list(body, key)
        )

    def _rollback(
        self, body: Node, steps: StepReader, method: tuple[PlannedStep, ...]
    ) -> tuple[PlannedStep, ...]:
        done = [operation for step in method for operation in step.operations]
        found = []
        for node in self._list(body, "rollback"):
            if isinstance(node.scalar, str) and node.scalar not in steps.words:
                try:
                    operations = steps.language.read_rollback(node.scalar, done)
                except ValueError as error:
                    self._fail(node.line, str(error))
                    continue
                found.append(PlannedStep(node.scalar, node.line, operations))
            else:
                found.append(PlannedStep(_shown(node), node.line, steps.read(node)))
        return tuple(found)

    def _radius(self, body: Node) -> str | None:
        text = self._text(body, "blast_radius")
        if text is None:
            return None
        word = " ".join(text.lower().split())
        if word not in RADIUS_WORDS:
            hint = nearest(word, list(RADIUS_WORDS))
            self._fail(
                body.line_of("blast_radius"),
                f"unknown blast radius {text!r}{hint}; known: {', '.join(RADII)}",
            )
            return None
        return RADIUS_WORDS[word]

    def _enforce(self, radius: str, method: tuple[PlannedStep, ...], language: Language) -> None:
        for step in method:
            for operation in step.operations:
                needed = reach(operation, language)
                if RADII.index(needed) > RADII.index(radius):
                    self._fail(
                        step.line,
                        f"{step.text} reaches {needed!r}, beyond the blast radius {radius!r} "
                        f"(did you mean 'blast_radius: {needed}'?)",
                    )

    def _something_happens(
        self, body: Node, method: tuple[PlannedStep, ...], language: Language
    ) -> None:
        """A method that only waits and looks would always pass."""
        if not method or self.mistakes:
            return
        for step in method:
            for operation in step.operations:
                if any(_acts(part, language) for part in walk(operation)):
                    return
        self._fail(body.line_of("method"), "the method only waits and looks: it disturbs nothing")

    def _seed(self, body: Node) -> int | None:
        node = body.get("seed")
        if node is None:
            return None
        if not isinstance(node.scalar, int) or isinstance(node.scalar, bool) or node.scalar < 0:
            self._fail(body.line_of("seed"), f"seed: expected a whole number, got {node.shown()}")
            return None
        return node.scalar

    def _rate(self, body: Node) -> float:
        node = body.get("rate")
        if node is None:
            return DEFAULT_RATE_HZ
        text = str(node.scalar).lower().removesuffix("hz").strip()
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 < value <= FASTEST_HZ:
            line = body.line_of("rate")
            self._fail(line, f"rate: expected up to {FASTEST_HZ:g} Hz, got {node.shown()}")
            return DEFAULT_RATE_HZ
        return value

    def _probe(self, body: Node, steps: StepReader, language: Language) -> Operation | None:
        node = body.get("probe")
        if node is None:
            return language.probe
        if node.scalar == "none":
            return None
        made = steps.read(node)
        if len(made) == 1 and made[0].kind is Kind.COMMAND:
            return made[0]
        if made:
            self._fail(body.line_of("probe"), f"probe: {made[0].type} is no command")
        return None


def _acts(operation: Operation, language: Language) -> bool:
    """Is something done to the target, other than asking what the probe asks anyway?"""
    if operation.kind is Kind.COMMAND:
        return type(operation) is not type(language.probe)
    return disturbs(operation) or operation.type == "Drive"


def _shown(node: Node) -> str:
    """A step as the file says it, on one line."""
    if isinstance(node.scalar, str):
        return node.scalar
    if node.is_mapping and len(node.entries or ()) == 1:
        assert node.entries is not None
        word, _, value = node.entries[0]
        return f"{word}: {_inline(value)}" if _inline(value) else word
    return _inline(node)


def _inline(node: Node) -> str:
    if node.entries is not None:
        return "{" + ", ".join(f"{key}: {_inline(value)}" for key, _, value in node.entries) + "}"
    if node.elements is not None:
        return "[" + ", ".join(_inline(item) for item in node.elements) + "]"
    return "" if node.scalar is None else str(node.scalar)
