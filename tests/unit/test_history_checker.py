"""The checker against brute force, against known verdicts, within its bounds, and in time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from mutiny.history.board import BoardModel
from mutiny.history.checker import Limits, Verdict, check
from mutiny.history.events import Entry
from mutiny.history.models import KeyValue, Model, Queue, Register, State
from mutiny.history.simulate import (
    Simulated,
    SimulatedBoard,
    SimulatedRegisters,
    simulate,
    spoiled,
)
from mutiny.seeds import stream


def orders_exist(entries: Sequence[Entry], model: Model, state: State) -> bool:
    """By trying everything: some order explains all that returned, and any of the others."""
    if all(entry.returned is None for entry in entries):
        return True
    for number, entry in enumerate(entries):
        others = [*entries[:number], *entries[number + 1 :]]
        if any(other.returned is not None and other.returned < entry.invoked for other in others):
            continue
        after = model.step(state, model.action(entry))
        if after is not None and orders_exist(others, model, after):
            return True
    return False


def by_brute_force(entries: Sequence[Entry], model: Model) -> Verdict:
    parts = model.partition(entries).by_key.items()
    right = all(orders_exist(part, model, model.initial(key)) for key, part in parts)
    return Verdict.LINEARIZABLE if right else Verdict.NOT_LINEARIZABLE


def random_history(seed: int, kind: str) -> tuple[list[Entry], Model]:
    random = stream(seed, f"brute/{kind}")
    operations = random.randrange(4, 10) if kind == "register" else random.randrange(8, 15)
    lost = random.choice((0.0, 0.0, 0.2))
    target: Simulated = SimulatedRegisters(values=3)
    model: Model = Register()
    if kind == "board":
        target = SimulatedBoard(endless=random.random() < 0.7, mischief=0.3)
        model = BoardModel()
    entries = simulate(
        target, random, operations=operations, processes=random.randrange(2, 5), lost=lost
    )
    if kind == "board" and random.random() < 0.3:
        model = BoardModel.of(entries, lease_s=random.choice((0.5, 2.0)))
    return (entries if seed % 2 else spoiled(entries, random)), model


@pytest.mark.parametrize("kind", ["register", "board"])
def test_the_same_verdicts_as_brute_force(kind: str) -> None:
    count: Counter[tuple[bool, Verdict]] = Counter()
    for seed in range(500):
        entries, model = random_history(seed, kind)
        expected = by_brute_force(entries, model)
        found = check(entries, model, Limits(explained=0)).verdict
        assert found is expected, (seed, [str(entry) for entry in entries])
        count[seed % 2 == 0, found] += 1
    print(kind, {f"spoiled={key[0]} {key[1].value}": number for key, number in count.items()})
    # Right by construction is never called wrong; spoiled ones are often wrong, and not always.
    assert count[False, Verdict.NOT_LINEARIZABLE] == 0
    assert count[False, Verdict.LINEARIZABLE] == 250
    assert count[True, Verdict.NOT_LINEARIZABLE] >= 60
    assert count[True, Verdict.LINEARIZABLE] >= 40


@pytest.mark.parametrize("kind", ["register", "board"])
def test_every_contradiction_is_one_and_none_of_it_can_be_spared(kind: str) -> None:
    seen = 0
    for seed in range(0, 100, 2):
        entries, model = random_history(seed, kind)
        for part in check(entries, model).wrong:
            proof = part.contradiction
            assert proof is not None
            assert proof.smallest
            assert proof.entries
            assert 0 <= len(part.order) < part.operations
            if model.name == "register":
                assert is_minimal(proof.entries, entries, model)
            seen += 1
    assert seen > 10


def is_minimal(core: Sequence[Entry], entries: Sequence[Entry], model: Model) -> bool:
    """Brute force again: the others free to happen at any later time or never, with their answers."""

    def explained(kept: Sequence[Entry]) -> bool:
        return orders_with_free(kept, [e for e in entries if e not in kept], model, ())

    fewer = [[entry for entry in core if entry is not spared] for spared in core]
    return not explained(core) and all(explained(kept) for kept in fewer)


def orders_with_free(
    kept: Sequence[Entry], free: Sequence[Entry], model: Model, done: tuple[Entry, ...]
) -> bool:
    state: State | None = model.initial("k0")
    for entry in done:
        assert state is not None
        state = model.step(state, model.action(entry))
    if state is None:
        return False
    left = [entry for entry in kept if entry not in done]
    if all(entry.returned is None for entry in left):
        return True
    ends = [entry.returned for entry in left if entry.returned is not None]
    return any(
        orders_with_free(kept, free, model, (*done, entry))
        for entry in (*left, *(other for other in free if other not in done))
        if entry.invoked <= min(ends)
    )


# The kinds of histories that Porcupine's description and tests use, written anew.


def put(process: str, value: object, begun: float, ended: float, key: str = "k") -> Entry:
    return Entry(process, "write", {"value": value}, None, begun, ended, key)


def get(process: str, value: object, begun: float, ended: float, key: str = "k") -> Entry:
    return Entry(process, "read", {}, value, begun, ended, key)


def text(operation: str, value: str, begun: float, ended: float, key: str = "k") -> Entry:
    arguments: dict[str, object] = {} if operation == "get" else {"value": value}
    answer = value if operation == "get" else None
    return Entry(f"p{begun}", operation, arguments, answer, begun, ended, key)


KNOWN: list[tuple[str, Model, list[Entry], bool]] = [
    ("nothing happened", Register(), [], True),
    (
        "reads around a slow write see the old and the new value",
        Register(0),
        [put("a", 100, 0, 100), get("b", 0, 25, 75), get("c", 100, 30, 60)],
        True,
    ),
    (
        "reads after each other may see the write happen between them",
        Register(0),
        [put("a", 100, 0, 100), get("b", 0, 5, 35), get("b", 100, 40, 60)],
        True,
    ),
    (
        "a value that was seen is never unseen",
        Register(0),
        [put("a", 200, 0, 100), get("b", 200, 10, 30), get("c", 0, 40, 90)],
        False,
    ),
    (
        "a swap that failed although the value was there",
        Register(1),
        [Entry("a", "cas", {"old": 1, "new": 2}, False, 0, 1)],
        False,
    ),
    (
        "a swap without an answer explains a later read",
        Register(1),
        [
            Entry("a", "cas", {"old": 1, "new": 2}, None, 0, None),
            get("b", 1, 1, 2, ""),
            get("b", 2, 3, 4, ""),
        ],
        True,
    ),
    (
        "a swap without an answer happens once",
        Register(1),
        [
            Entry("a", "cas", {"old": 1, "new": 2}, None, 0, None, "k"),
            *(get("b", 2, 1, 2), put("b", 1, 3, 4), get("b", 2, 5, 6)),
        ],
        False,
    ),
    (
        "appends at once, in either order",
        KeyValue(),
        [text("append", "x", 0, 5), text("append", "y", 1, 6), text("get", "yx", 7, 8)],
        True,
    ),
    (
        "an append that was lost",
        KeyValue(),
        [text("put", "x", 0, 1), text("append", "y", 2, 3), text("get", "x", 4, 5)],
        False,
    ),
    (
        "other keys do not matter",
        KeyValue(),
        [text("put", "x", 0, 1), text("get", "", 2, 3, "other"), text("get", "x", 4, 5)],
        True,
    ),
]


@pytest.mark.parametrize(("model", "entries", "right"), [case[1:] for case in KNOWN])
def test_known_verdicts(model: Model, entries: list[Entry], right: bool) -> None:
    expected = Verdict.LINEARIZABLE if right else Verdict.NOT_LINEARIZABLE
    assert check(entries, model).verdict is expected
    assert by_brute_force(entries, model) is expected


def test_a_queue_gives_out_what_came_first() -> None:
    def line(*answers: object) -> list[Entry]:
        fill = [Entry("a", "enqueue", {"value": n}, None, n, n + 0.5) for n in (1, 2)]
        took = [
            Entry("b", "dequeue", {}, answer, 5 + n, 5.5 + n) for n, answer in enumerate(answers)
        ]
        return fill + took

    assert check(line(1, 2, None), Queue()).verdict is Verdict.LINEARIZABLE
    assert check(line(2, 1), Queue()).verdict is Verdict.NOT_LINEARIZABLE
    assert check(line(1, None), Queue()).verdict is Verdict.NOT_LINEARIZABLE


def test_a_stale_read_is_told_in_three_lines() -> None:
    entries = [
        *(put("a", 1, 0, 1), put("a", 2, 2, 3), get("b", 2, 4, 6)),
        *(get("c", 1, 4, 5), put("d", 7, 6, 9), get("b", 7, 10, 11)),
    ]
    report = check(entries, Register())
    assert report.render().splitlines()[1:] == [
        "k: 3 of 6 fit",
        "  these 3 operations cannot be ordered (at first: value None):",
        "    a [0, 1] write value=1 -> null",
        "    a [2, 3] write value=2 -> null",
        "    c [4, 5] read -> 1",
    ]


def test_an_order_is_given_and_it_is_one() -> None:
    entries = simulate(SimulatedRegisters(), stream(3, "order"), operations=300, processes=6)
    report = check(entries, Register())
    (part,) = report.parts
    model, state = Register(), Register().initial("")
    for entry in part.order:
        after = model.step(state, model.action(entry))
        assert after is not None
        state = after
    assert len(part.order) == 300
    latest = float("-inf")
    for entry in part.order:  # nobody comes after one that was called only when it was over
        assert entry.returned is not None
        assert entry.returned >= latest
        latest = max(latest, entry.invoked)


def hard(writers: int) -> list[Entry]:
    """Writers all at once, and readers that must guess in vain."""
    writes = [put(f"w{n}", n, 0, 10) for n in range(writers)]
    reads = [get(f"r{n}", n, 0, 10) for n in range(writers)]
    return [*writes, *reads, get("last", "never", 11, 12)]


def test_the_bounds_make_it_unknown() -> None:
    assert check(hard(14), Register(), Limits(steps=500)).verdict is Verdict.UNKNOWN
    assert check(hard(14), Register(), Limits(seconds=0.05)).verdict is Verdict.UNKNOWN
    with pytest.raises(TypeError):
        bool(check([], Register()))


def test_a_hard_part_does_not_hide_a_wrong_one() -> None:
    wrong = [put("a", 1, 0, 1, "other"), get("a", 2, 2, 3, "other")]
    report = check([*hard(14), *wrong], Register(), Limits(steps=2000))
    assert report.verdict is Verdict.NOT_LINEARIZABLE
    assert [part.key for part in report.wrong] == ["other"]
    assert "1 wrong, 1 unknown" in report.render()


@pytest.mark.parametrize(
    ("target", "model"),
    [
        (SimulatedBoard(), BoardModel()),
        (SimulatedBoard(endless=True), BoardModel()),
        (SimulatedRegisters(), Register()),
    ],
    ids=["many tasks", "one task", "one register"],
)
def test_ten_thousand_operations(target: Simulated, model: Model) -> None:
    entries = simulate(target, stream(9, "many"), operations=10_000, processes=8)
    assert check(entries, model).verdict is Verdict.LINEARIZABLE
