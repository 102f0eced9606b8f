"""Loads: what they measure is judged by pure functions, and each of them can say no."""

from __future__ import annotations

import hashlib
from random import Random
from typing import Any

import pytest

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.load import growths, most_in_window, slope, went_on, wrong_with_load
from mutiny.contracts.board.load_plans import plans
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.contracts.board.profile import BoardProfile, Figures
from mutiny.contracts.board.tasks import has_cycle
from mutiny.doubles.boards.load import _text, summary
from mutiny.engine.loading import Loaded, LoadReport
from mutiny.history.board import Silence
from mutiny.kit.abilities import Sizes
from mutiny.kit.answer import Answer
from mutiny.kit.operations import OUTLASTED
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.modes.load import SHAPES
from mutiny.report.curves import Axis, Series, axis, chart
from mutiny.report.load_page import render
from mutiny.targets.board.load import _sizes
from mutiny.targets.board.spec import BoardSpec
from mutiny.targets.registry import find_spec


def spec_of(name: str) -> BoardSpec:
    spec = find_spec(name)[0]
    assert isinstance(spec, BoardSpec)
    return spec


def samples(rss_kb: float = 0.0, descriptors: float = 0.0, count: int = 40) -> list[dict[str, Any]]:
    """What a server looks like over the cycles that grows by so much each."""
    return [
        {"cycle": n, "rss_kb": 20_000 + rss_kb * n, "descriptors": 9 + descriptors * n, "files": 5}
        for n in range(0, count * 10, 10)
    ]


def wrong(measured: dict[str, Any], shape: str = "cycles", **more: Any) -> str | None:
    """The rule that a load breaks."""
    figures = more.pop("figures", Figures())
    model = BoardModel(BoardProfile(figures=figures))
    result = OperationResult(details={"load": measured})
    found = wrong_with_load(model, op.Drive(shape), result, BoardObservation(**more))
    return None if found is None else found.rule


def test_a_slope_is_the_least_squares_line() -> None:
    assert slope([(0, 1), (1, 3), (2, 5)]) == pytest.approx(2.0)
    assert slope([(0, 4), (1, 6), (2, 4), (3, 6)]) == pytest.approx(0.4)
    assert slope([(1, 1)]) == 0.0
    assert slope([(1, 1), (1, 9)]) == 0.0


def test_growth_needs_a_slope_above_the_limit_and_more_than_noise() -> None:
    assert not any(one.too_much for one in growths(samples()))
    assert [one.what for one in growths(samples(rss_kb=36)) if one.too_much] == ["rss_kb"]
    assert [one.what for one in growths(samples(descriptors=1)) if one.too_much] == ["descriptors"]
    assert not any(one.too_much for one in growths(samples(rss_kb=3)))
    assert not any(one.too_much for one in growths(samples(rss_kb=36, count=8)))
    assert growths(samples(rss_kb=900)[:4]) == ()


def test_growth_of_a_load_breaks_its_rule_only_where_nothing_may_be_kept() -> None:
    assert wrong({"samples": samples(rss_kb=40)}) == "board.no_growth"
    assert wrong({"samples": samples(rss_kb=40)}, "payloads") is None


@pytest.mark.parametrize(
    ("measured", "rule"),
    [
        (
            {
                "robbed": [
                    {"task": "a", "owner": "w", "thief": "x", "silent_s": 0.3, "lease_s": 2.0}
                ]
            },
            "board.live_worker_kept",
        ),
        ({"out_of_order": [{"task": "b", "before": "a"}]}, "board.dependencies_respected"),
        ({"twice": [{"task": "a", "first": "x", "second": "y"}]}, "board.single_owner"),
        ({"unanswered": [{"command": "claim", "worker": "x"}]}, "board.answers_in_time"),
        (
            {"refused": [{"command": "claim", "worker": "x", "error": "busy", "message": "later"}]},
            "board.serves_legal",
        ),
        ({}, None),
    ],
)
def test_what_a_load_tells_breaks_a_rule(measured: dict[str, Any], rule: str | None) -> None:
    assert wrong(measured, "long") == rule


def test_a_graph_that_does_not_settle_is_told() -> None:
    open_tasks = {"a": TaskView("a", "done"), "b": TaskView("b", "blocked", depends=("a",))}
    assert wrong({}, "dag", tasks=open_tasks) == "board.all_settle"
    assert wrong({}, "dag", tasks={"a": TaskView("a", "done")}) is None


def test_an_output_must_come_back_unchanged() -> None:
    text = _text("t-1", 1000)
    given = {"t-1": {"size": 1000, "sha256": hashlib.sha256(text.encode()).hexdigest()}}
    same = {"t-1": TaskView("t-1", "done", output=text)}
    cut = {"t-1": TaskView("t-1", "done", output=text[:-1])}
    assert wrong({"outputs": given}, "payloads", tasks=same) is None
    assert wrong({"outputs": given}, "payloads", tasks=cut) == "board.completion_kept"


def test_outputs_have_their_size_and_differ() -> None:
    assert len(_text("t-1", 4000).encode()) in range(3997, 4001)
    assert _text("t-1", 100) != _text("t-2", 100)
    assert _sizes(1_000_000) == [1000, 4000, 16000, 64000, 256000, 1_000_000]
    assert _sizes(1000) == [1000]


def test_a_limit_is_judged_in_every_window() -> None:
    at_once = [(n * 0.01, n * 0.01 + 0.01) for n in range(5)]
    assert most_in_window(at_once, 0.5, 5) is None
    found = most_in_window([*at_once, (0.05, 0.06)], 0.5, 5)
    assert found is not None
    assert found[0] == 6
    assert found[1] == pytest.approx(0.06)
    assert most_in_window([*at_once, (1.99, 2.0)], 0.5, 5) is None
    late = [*at_once, (10.0, 10.1), (10.1, 10.2)]
    assert most_in_window(late, 0.5, 5) is None


def test_a_limiter_that_lets_too_many_or_too_few_through() -> None:
    figures = Figures(rate_limit=0.5, rate_burst=2)
    many = {"bursts": {"x": [(0.0, 0.1, True), (0.1, 0.2, True), (0.2, 0.3, True)]}}
    few = {"bursts": {"x": [(0.0, 0.1, True), (0.1, 0.2, False), (0.2, 0.3, False)]}}
    right = {"bursts": {"x": [(0.0, 0.1, True), (0.1, 0.2, True), (0.2, 0.3, False)]}}
    assert wrong(many, "burst", figures=figures) == "board.rate_limit_holds"
    assert wrong(few, "burst", figures=figures) == "board.rate_limit_holds"
    assert wrong(right, "burst", figures=figures) is None


@pytest.mark.parametrize(
    ("command", "outlasted", "ok", "broken"),
    [
        (op.AddTask("a"), True, True, True),
        (op.AddTask("a"), False, True, False),
        (op.AddTask("a"), True, False, False),
        (op.List(), True, True, False),
    ],
)
def test_a_change_under_a_held_lock_waits(
    command: Any, outlasted: bool, ok: bool, broken: bool
) -> None:
    held = op.HoldBoardLock(1.5, command)
    result = OperationResult(details={OUTLASTED: outlasted})
    found = went_on(held, result, Answer(ok))
    assert (found is not None) == broken


@pytest.mark.parametrize("count", [1, 7, 120, 1000])
def test_a_graph_depends_on_earlier_tasks_only(count: int) -> None:
    named = op.AddMany(count, "dag").named
    assert len(named) == count
    assert not has_cycle(named)
    places = {name: place for place, name in enumerate(named)}
    assert all(places[one] < places[name] for name, needs in named.items() for one in needs)
    if count >= 120:
        assert max(len(needs) for needs in named.values()) == 3
        assert sum(1 for needs in named.values() if not needs) > 10


@pytest.mark.parametrize(
    "make",
    [
        lambda: op.AddMany(0),
        lambda: op.AddMany(5, "heap"),
        lambda: op.Drive("party"),
        lambda: op.Drive("cycles", workers=0),
        lambda: op.Drive("long", seconds=-1),
    ],
)
def test_impossible_loads_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"must be|none of|neither|not be"):
        make()


def test_percentiles_are_by_nearest_rank() -> None:
    told = summary([float(n) for n in range(1, 101)])
    assert (told["p50_ms"], told["p90_ms"], told["p99_ms"], told["max_ms"]) == (50, 90, 99, 100)
    assert summary([7.0])["p99_ms"] == 7.0


@pytest.mark.parametrize("name", ["longboat-board", "longboat-broker", "longboat-crew"])
def test_every_shape_is_a_short_sequence(name: str) -> None:
    found = list(plans(spec_of(name), SHAPES, Sizes(tasks=(100, 1000))))
    assert [plan.shape for plan in found] == ["cost", *SHAPES]
    for plan in found:
        assert plan.operations[0].type == "Reset"
        assert plan.operations[-1].type == "Settle"
        assert len(plan.operations) <= 12
    assert found[1].tasks == 1000


def report() -> LoadReport:
    figures = {"p50_ms": 3.0, "p99_ms": 9.0}
    cost = [
        Loaded("A", "cost", n, 1, Verdict.SUCCESS, measured={"commands": {"claim": figures}})
        for n in (1000, 100)
    ]
    grown = {"what": "rss_kb", "name": "memory", "unit": "KB", "per_cycle": 36.0, "limit": 4.0}
    cycles = Loaded(
        *("A", "cycles", 400, 4, Verdict.BUG, "", "board.no_growth", "Growth of <memory>"),
        measured={"samples": samples(rss_kb=36), "done": 400, "throughput": 25.0},
        growth=({**grown, "samples": 30, "too_much": True},),
    )
    return LoadReport([*cost, cycles])


def test_costs_are_in_the_order_of_the_sizes() -> None:
    assert report().costs() == {"A": [(100, 3.0, 9.0), (1000, 3.0, 9.0)]}
    assert report().verdict is Verdict.BUG
    assert LoadReport().verdict is Verdict.INCONCLUSIVE


def test_the_page_shows_curves_and_is_self_contained() -> None:
    page = render(report())
    assert page.count("<polyline") == 4  # cost; memory, descriptors and files
    assert "+36 KB a cycle" in page
    assert "Growth of &lt;memory&gt;" in page
    assert "<script" not in page
    assert "src=" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_axes_have_round_ticks() -> None:
    assert Axis("", 80, 12500, log=True).ticks() == [100, 1000, 10000]
    assert Axis("", 0, 100).ticks() == [0, 25, 50, 75, 100]
    assert Axis("", 2.4, 3.75, log=True).ticks() == [2.5, 3.0, 3.5], "no decade lies in it"
    flat = axis("", [5.0, 5.0])
    assert flat.low < 5.0 < flat.high
    assert chart([Series("a", ((1, 5.0), (2, 5.0)), "red")], axis("", [1, 2]), flat)["lines"]


def test_the_first_silence_is_the_same_as_by_looking_at_every_sign() -> None:
    """A history of thousands of claims is looked through once, not once for each claim."""
    for seed in range(200):
        random = Random(seed)
        spans = sorted(
            (begun, begun + random.random()) for begun in (random.uniform(0, 12) for _ in range(9))
        )
        silence = Silence(1.5, {"w": spans})
        for since in (*(begun for begun, _ in spans), random.uniform(0, 12)):
            starts = (since, *(begun for begun, _ in spans if begun >= since))
            naive = (
                start + 1.5
                for start in starts
                if not any(start < begun and ended < start + 1.5 for begun, ended in spans)
            )
            assert silence.first("w", since) == next(naive)
