"""Exploration from declarations: sequences that are a pure function of their seed.

A contract declares which operations there are, what their arguments may be, when they make sense and
how often they are wanted (`Move`), which faults may surround a command (`Around`), how a sequence
begins and how it ends. A `Walk` says what the model believes on the way, without a target. From these
this module makes all the rest: ordinary progress, every command that must be refused, every pair of
commands at once, every command inside every fault, lasting faults and their end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mutiny.kit import operations as common
from mutiny.kit.domains import ROOTS
from mutiny.kit.surroundings import SURROUNDINGS
from mutiny.model.operation import Kind, Operation
from mutiny.model.operation import walk as walk_of
from mutiny.seeds import stream

if TYPE_CHECKING:
    import random

Value = TypeVar("Value")
TRIES = 20
"""So often another candidate is drawn when one has nothing to offer."""
ODD_WORLDS = 0.125
"""How often everything lies in a directory with an awkward name, and how often the machine is unusual."""
EARLY = 0.25
"""How often a command that must be refused is given before what has to come first."""
BEGUN = 0.3
"""How often a sequence begins like a ready one."""
FARTHEST, LONGEST_SLEEP_S = 30, 6.0
"""Ready sequences that lead no farther than that are gone on with."""
CALM = 0.35
"""How often nothing is broken in a sequence: so work comes to its end, again and again."""
TASTES = (0.3, 1.0, 1.0, 3.0)
"""In a calm sequence each kind of command is wanted so much more or less than otherwise."""
TOPICAL, FONDNESS = 0.4, 4.0
"""How often a sequence has a topic, that of a ready one, and how much more it wants what belongs to it."""
AGAIN = 2.0
"""The last command is wanted so much more than the others: what goes well once may not go well twice."""
LENT = 0.2
"""How often an operation takes its values from one of its kind in a ready sequence."""
LOOKED = 0.3
"""How often somebody looks at once at what a fault has left, before anything puts it right."""
REFUSALS, MISUSES, PAIRS, AROUND = 3.2, 0.4, 1.8, 2.2
"""How often each family is wanted; one step of ordinary progress has a weight of 0.3 to 6."""


class Walk(Protocol):
    """A run without a target: what the model believes, operation by operation."""

    @property
    def lasting(self) -> bool:
        """Is a fault on that lasts?"""

    def apply(self, operation: Operation) -> None:
        """Take an outcome that the model holds for right; where there are several, believe all."""

    def served(self, command: Operation) -> bool | None:
        """Is a command sure to be served (True), or sure to be refused (False)? None: either is right."""

    def situation(self, command: Operation) -> str:
        """The state that a command meets, in a word."""


@dataclass
class Scene:
    """What a declaration may look at when it offers an operation."""

    walk: Any
    chance: random.Random
    names: Mapping[str, tuple[str, ...]]
    """The names of this sequence, by what they name."""
    counts: dict[str, int] = field(default_factory=dict)
    """How often each type of operation was taken."""
    templates: dict[object, Operation] = field(default_factory=dict)
    """Operations that were asked for their weight, so that each is made once."""
    ready: Mapping[type[Operation], Sequence[Operation]] = field(default_factory=dict)
    """The operations of ready sequences: somebody thought of their values for a reason."""

    def pick(self, values: Sequence[Value]) -> Value:
        """One of them by chance."""
        return self.chance.choice(values)

    def taken(self, *kinds: type[Operation]) -> int:
        """How many operations of these types there are so far, also inside others."""
        return sum(self.counts.get(kind.__name__, 0) for kind in kinds)


Values = Callable[[Scene], Sequence[Any]]


@dataclass(frozen=True)
class Each:
    """An argument whose values are candidates of their own; `wrong` ones must be refused."""

    values: Values
    wrong: Values = lambda _scene: ()


@dataclass(frozen=True)
class Some:
    """An argument of which one value is drawn."""

    values: Values


def drawn(*values: Any) -> Some:
    """An argument that is one of these."""
    return Some(lambda _scene: values)


Arguments = Mapping[str, Each | Some]
"""An operation's arguments with their values, by name."""


def always(_scene: Scene, _operation: Operation) -> bool:
    """It makes sense at any time."""
    return True


@dataclass(frozen=True)
class Move:
    """One operation of a contract, as exploration may use it."""

    make: type[Operation]
    arguments: Arguments = field(default_factory=dict)
    weight: float | Callable[[Scene, Operation], float] = 1.0
    when: Callable[[Scene, Operation], bool] = always
    """Does it make sense now, as a step of ordinary progress?"""
    writes: bool = True
    """When it is served it surely changes files: a disk fault or a system call's end is felt."""
    settled: bool = True
    """After a fault hit it the beliefs know who exists and runs; if not, it is not used while one lasts."""

    @property
    def is_command(self) -> bool:
        return self.make.kind is Kind.COMMAND

    def instances(self, scene: Scene, *, wrong: bool = False) -> Iterator[Operation]:
        """One operation for each value that is a candidate of its own; the rest is drawn."""
        for template in self.templates(scene, wrong=wrong):
            yield self.drawn(scene, template)

    def templates(self, scene: Scene, *, wrong: bool = False) -> Iterator[Operation]:
        """The same, with any value where one is to be drawn: enough to ask whether it makes sense."""
        each = {name: one for name, one in self.arguments.items() if isinstance(one, Each)}
        lists = [
            (*one.values(scene), *(one.wrong(scene) if wrong else ())) for one in each.values()
        ]
        for values in itertools.product(*lists):
            key = (id(self), values)
            if key not in scene.templates:
                given = dict(zip(each, values, strict=True))
                scene.templates[key] = self.make(**given, **self._some(scene, lambda few: few[0]))
            yield scene.templates[key]

    def drawn(self, scene: Scene, template: Operation) -> Operation:
        """A template with values by chance, now and then with those of a ready operation."""
        values = self._some(scene, scene.pick)
        # How a fault lasts and what it is about go together, and it is set for its own scenario.
        ready = () if self.make.kind is Kind.FAULT else scene.ready.get(self.make, ())
        if values and ready and scene.chance.random() < LENT:
            lender = scene.pick(ready)
            values = {name: getattr(lender, name) for name in values}
        return replace(template, **values) if values else template

    def _some(self, scene: Scene, take: Callable[[Sequence[Any]], Any]) -> dict[str, Any]:
        return {
            name: take(one.values(scene))
            for name, one in self.arguments.items()
            if isinstance(one, Some)
        }

    def weight_of(self, scene: Scene, operation: Operation) -> float:
        """How much it is wanted now."""
        return (
            self.weight if isinstance(self.weight, int | float) else self.weight(scene, operation)
        )


@dataclass(frozen=True)
class Around:
    """A fault around one command."""

    fault: type[Operation]
    make: Callable[[Scene, Operation], Operation]
    certain: bool = False
    """Only around commands that are sure to be served and write: others would not feel it."""
    fits: Callable[[Scene, Operation], bool] = always
    """Can this command feel it?"""
    weight: float = 1.0


@dataclass(frozen=True)
class Explored:
    """Everything that exploration has to know of a contract."""

    opening: Callable[[Scene], Iterable[Operation]]
    """How a sequence begins, after `Reset`."""
    moves: tuple[Move, ...]
    recovery: Callable[[Scene], Iterable[Operation]]
    """Faults off: everything that is due must happen, and nothing may be missing."""
    around: tuple[Around, ...] = ()
    names: Mapping[str, Sequence[tuple[str, ...]]] = field(default_factory=dict)
    """Casts of names, by what they name; each sequence takes one."""
    follows: Callable[[Scene, Operation], Iterable[Operation]] = lambda _scene, _operation: ()
    """What must come after an operation, so that the beliefs know again what there is."""
    goes_on: Callable[[tuple[Operation, ...]], bool] = lambda _begun: True
    """May a sequence begin like this part of a ready one?"""
    first: Callable[[Scene], Operation | None] = lambda _scene: None
    """What comes before everything else now, if anything does."""
    supported: Callable[[Operation], bool] = lambda _operation: True
    """Has the target words for it?"""
    refusable: Callable[[Scene, Operation], bool] = lambda _scene, _operation: True
    """Is it known how the target says the refusal that is due? Otherwise it could not be judged."""
    hazardous: Callable[[Scene], bool] = lambda _scene: True
    """May something be broken now?"""
    pairable: Callable[[Scene, Operation, Operation], bool] = lambda _scene, _one, _other: True
    """May these two run at once, and the beliefs still be of use?"""

    refused: Callable[[Operation], Operation] = common.ExpectError
    """How a command is given that must be refused: as an expectation, or, where time may change what
    is right, as it is.
    """

    def commands(self) -> tuple[Move, ...]:
        """The moves that are commands, each type once."""
        found: dict[type[Operation], Move] = {}
        for move in self.moves:
            if move.is_command:
                found.setdefault(move.make, move)
        return tuple(found.values())


def generate(
    explored: Explored,
    walk: Walk,
    seed: int,
    length: int,
    ready: Sequence[tuple[Operation, ...]] = (),
) -> tuple[Operation, ...]:
    """`Reset`, an opening, `length` operations in all, then recovery.

    Now and then it begins like one of the `ready` sequences instead: they lead to where chance alone hardly
    comes, with settings, behaviours and damage that no move has. What is so begun does not count.
    """
    chance = stream(seed, "explore")
    names = {kind: chance.choice(list(casts)) for kind, casts in explored.names.items()}
    place = stream(seed, "root")
    root = place.choice(ROOTS) if place.random() < ODD_WORLDS else ""
    around = place.choice(tuple(SURROUNDINGS)) if place.random() < ODD_WORLDS else ""
    begun = _beginning(explored, seed, ready)
    reset = begun[0] if begun else common.Reset(root, around)
    temper = _temper(seed, explored, ready)
    maker = _Maker(explored, Scene(walk, chance, names, ready=_by_type(ready)), reset, temper)
    for operation in begun[1:]:
        maker.take(operation, follow=operation is begun[-1])
    if not begun:
        for operation in filter(explored.supported, explored.opening(maker.scene)):
            maker.take(operation)
    while len(maker.sequence) < length + max(len(begun), 1) or maker.next:
        maker.take(maker.choose())
    for operation in filter(explored.supported, explored.recovery(maker.scene)):
        maker.take(operation, follow=False)
    return tuple(maker.sequence)


@dataclass(frozen=True)
class Temper:
    """What one sequence is fond of."""

    calm: bool = False
    """Nothing is broken in it."""
    tastes: Mapping[type[Operation], float] = field(default_factory=dict)

    def taste(self, make: type[Operation]) -> float:
        """How much more than otherwise a kind of operation is wanted."""
        return self.tastes.get(make, 1.0)

    def weight(self, move: Move, weight: float) -> float:
        """How much a move is wanted in this sequence."""
        if self.calm and move.make.kind is Kind.FAULT:
            return 0.0
        return weight * self.taste(move.make)

    def families(self) -> tuple[float, float, float, float]:
        """How much refusals, misuses, pairs, and faults around commands are wanted."""
        if self.calm:
            return REFUSALS / 3, MISUSES / 3, PAIRS / 3, 0.0
        return REFUSALS, MISUSES, PAIRS, AROUND


def _temper(seed: int, explored: Explored, ready: Sequence[tuple[Operation, ...]] = ()) -> Temper:
    """Calm or not, and fond of what a ready sequence is made of: who wrote it knew what goes together."""
    chance = stream(seed, "temper")
    calm = chance.random() < CALM
    if ready and chance.random() < TOPICAL:
        topic = chance.choice(ready)
        return Temper(calm, {type(part): FONDNESS for one in topic for part in walk_of(one)})
    if calm:
        return Temper(calm, {move.make: chance.choice(TASTES) for move in explored.commands()})
    return Temper()


def _beginning(
    explored: Explored, seed: int, ready: Sequence[tuple[Operation, ...]]
) -> tuple[Operation, ...]:
    """The first part of a ready sequence, or nothing: as it stands there, so that it is right as it is."""
    chance = stream(seed, "beginning")
    if not ready or chance.random() >= BEGUN:
        return ()
    whole = chance.choice(ready)
    cut = chance.randint(max(len(whole) // 2, 1), len(whole))
    begun = whole[:cut]
    fits = explored.goes_on(begun) and all(map(explored.supported, begun))
    return begun if fits and can_go_on(begun) else ()


def _by_type(ready: Sequence[tuple[Operation, ...]]) -> Mapping[type[Operation], list[Operation]]:
    """All operations of ready sequences, by their type."""
    found: dict[type[Operation], list[Operation]] = {}
    for part in (part for sequence in ready for one in sequence for part in walk_of(one)):
        found.setdefault(type(part), []).append(part)
    return found


def can_go_on(sequence: tuple[Operation, ...]) -> bool:
    """Can exploration go on from where this leads? One box, not too far, and without a long sleep."""
    slept_s = sum(
        part.seconds for one in sequence for part in walk_of(one) if isinstance(part, common.Sleep)
    )
    resets = sum(isinstance(one, common.Reset) for one in sequence)
    return resets == 1 and len(sequence) <= FARTHEST and slept_s <= LONGEST_SLEEP_S


class _Maker:
    """A sequence that grows."""

    def __init__(self, explored: Explored, scene: Scene, reset: Operation, temper: Temper) -> None:
        self.explored = explored
        self.scene = scene
        self.temper = temper
        self.sequence: list[Operation] = [reset]
        self.next: list[Operation] = []
        """What must come next, whatever else would be sensible."""

    def take(self, operation: Operation, *, follow: bool = True) -> None:
        """Add it to the sequence, and let the beliefs follow."""
        self.sequence.append(operation)
        self.scene.walk.apply(operation)
        for part in _parts(operation):
            self.scene.counts[part.type] = self.scene.counts.get(part.type, 0) + 1
        if follow:
            wanted = self.explored.follows(self.scene, operation)
            self.next += [one for one in wanted if self.explored.supported(one)]

    def choose(self) -> Operation:
        """One operation that makes sense now."""
        if self.next:
            return self.next.pop(0)
        first = self.explored.first(self.scene)
        if first is not None:
            early = self._refusal() if self.scene.chance.random() < EARLY else None
            if early is not None and early.kind is Kind.COMMAND:
                early = common.ExpectError(early)
            return early or first
        look = self._look_at_damage()
        if look is not None:
            return look
        pool = self._pool()
        weights = [weight for weight, _ in pool]
        for _ in range(TRIES):
            operation = self.scene.chance.choices(pool, weights)[0][1]()
            if operation is not None and self.explored.supported(operation):
                return operation
        return common.Sleep(0.05)

    def _pool(self) -> list[tuple[float, Callable[[], Operation | None]]]:
        """All candidates with their weights."""
        pool: list[tuple[float, Callable[[], Operation | None]]] = []
        if self.scene.walk.lasting:
            return self._under_fault()
        last = self.sequence[-1]
        for move in self.explored.moves:
            for template in move.templates(self.scene):
                if move.when(self.scene, template):
                    weight = self.temper.weight(move, move.weight_of(self.scene, template))
                    again = AGAIN if move.is_command and isinstance(last, move.make) else 1.0
                    pool.append((weight * again, partial(move.drawn, self.scene, template)))
        refusals, misuses, pairs, around = self.temper.families()
        pool.append((refusals, self._refusal))
        pool.append((misuses, self._misuse))
        pool.append((pairs, self._pair))
        if self.explored.around and self.explored.hazardous(self.scene):
            pool.append((around, self._around))
        return [one for one in pool if one[0] > 0]

    def _under_fault(self) -> list[tuple[float, Callable[[], Operation | None]]]:
        """While a fault lasts: commands that it may hinder, looks, and its end."""
        pool: list[tuple[float, Callable[[], Operation | None]]] = [(3.0, common.Heal)]
        for move in self.explored.moves:
            if not (move.settled and move.make.kind in (Kind.COMMAND, Kind.CONTROL)):
                continue
            for template in move.templates(self.scene):
                served = move.is_command and self.scene.walk.served(template) is not False
                if served or isinstance(template, common.Sleep):
                    pool.append((0.4, partial(move.drawn, self.scene, template)))
        return pool

    # --- families --------------------------------------------------------------------------------

    def _refusal(self) -> Operation | None:
        """A command that must be refused now: each command in each wrong state as likely as any other."""
        found: dict[tuple[str, str], list[Operation]] = {}
        for state, one in refusals(self.explored, self.scene):
            found.setdefault((one.type, state), []).append(one)
        if not found:
            return None
        kinds = sorted(found)
        fond = [self.temper.taste(type(found[kind][0])) for kind in kinds]
        wrong = found[self.scene.chance.choices(kinds, fond)[0]]
        return self.explored.refused(self.scene.pick(wrong))

    def _misuse(self) -> Operation | None:
        """Some command, said wrongly."""
        commands = self.explored.commands()
        one = self._instance(self._wanted(commands)) if commands else None
        return None if one is None else common.Misuse(one, self.scene.pick(common.MISUSES))

    def _pair(self) -> Operation | None:
        """Two commands at once, at least one of which may be served."""
        commands = self.explored.commands()
        for _ in range(TRIES if commands else 0):
            first, second = self._wanted(commands), self._wanted(commands)
            one = self._instance(first)
            other = self._instance(second)
            if one is None or other is None or not self.explored.pairable(self.scene, one, other):
                continue
            if not (self.explored.supported(one) and self.explored.supported(other)):
                continue
            if self.scene.walk.served(one) is False and self.scene.walk.served(other) is False:
                continue
            return common.Parallel((one, other))
        return None

    def _around(self) -> Operation | None:
        """A command with a fault around it: first the fault by chance, then the command."""
        weights = [one.weight * self.temper.taste(one.fault) for one in self.explored.around]
        fault = self.scene.chance.choices(self.explored.around, weights)[0]
        commands = list(self.explored.commands())
        while commands:
            move = self._wanted(commands)
            commands.remove(move)
            if fault.certain and not move.writes:
                continue
            fitting = [
                one
                for one in move.instances(self.scene)
                if self._feels(fault, one) and self.explored.supported(one)
            ]
            if fitting:
                return fault.make(self.scene, self.scene.pick(fitting))
        return None

    def _feels(self, fault: Around, command: Operation) -> bool:
        served = self.scene.walk.served(command)
        return (served is True if fault.certain else served is not False) and fault.fits(
            self.scene, command
        )

    def _look_at_damage(self) -> Operation | None:
        """Now and then a command that only looks, right after something was broken."""
        broken = any(part.kind is Kind.FAULT for part in walk_of(self.sequence[-1]))
        if not broken or self.scene.walk.lasting or self.scene.chance.random() >= LOOKED:
            return None
        looks: dict[str, list[Operation]] = {}
        for one in (one for move in self.explored.commands() for one in move.instances(self.scene)):
            if one.looks and self.explored.supported(one):
                looks.setdefault(one.type, []).append(one)
        return self.scene.pick(looks[self.scene.pick(sorted(looks))]) if looks else None

    def _wanted(self, moves: Sequence[Move]) -> Move:
        """One of them by chance, rather one that this sequence is fond of."""
        return self.scene.chance.choices(moves, [self.temper.taste(one.make) for one in moves])[0]

    def _instance(self, move: Move) -> Operation | None:
        """The command with some of its values; rather one that may be served."""
        found = list(move.instances(self.scene))
        likely = [one for one in found if self.scene.walk.served(one) is not False]
        return self.scene.pick(likely or found) if found else None


def refusals(explored: Explored, scene: Scene) -> Iterator[tuple[str, Operation]]:
    """Every command that is sure to be refused now, with the state that it meets."""
    for move in explored.commands():
        for operation in move.instances(scene, wrong=True):
            due = explored.supported(operation) and scene.walk.served(operation) is False
            if due and explored.refusable(scene, operation):
                yield scene.walk.situation(operation), operation


def _parts(operation: Operation) -> Iterator[Operation]:
    yield operation
    for child in operation.children():
        yield from _parts(child)
