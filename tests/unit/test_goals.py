"""Goals in YAML, their gates, the quarantine and the matrix."""

from __future__ import annotations

import datetime
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from mutiny.contracts.catalogue import default_for
from mutiny.errors import UsageError
from mutiny.experiments.document import Mistakes
from mutiny.experiments.goals import TEMPLATE, load_goals, read_goal, shipped
from mutiny.kit.abilities import Drill, Drilled
from mutiny.kit.goals import Gate, Goal, Row, Tried, upper_bound
from mutiny.modes import accept
from mutiny.modes.subject import ability
from mutiny.report import drill_page, matrix
from mutiny.targets.registry import find_target

CONTRACT = default_for("accept").name
CONFIG = "config:                         # settings that it needs"


@cache
def shipped_goals() -> list[Goal]:
    return load_goals(shipped() / CONTRACT, CONTRACT)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "goal.yaml"
    path.write_text(text, encoding="utf-8")
    return path


# --- reading -------------------------------------------------------------------------------------------


def test_the_goals_that_ship_are_whole() -> None:
    goals = shipped_goals()
    assert len(goals) >= 36
    assert {goal.tier for goal in goals} == {0, 1, 2}
    for goal in goals:
        kinds = {one.kind for one in goal.assertions}
        assert kinds == {"then", "artefact", "negative"}, goal.id
        assert goal.statement.startswith("This is what I expect to happen")


def test_the_template_is_a_goal(tmp_path: Path) -> None:
    goal = read_goal(written(tmp_path, TEMPLATE), CONTRACT)
    assert goal.id == "G0.99"
    assert [str(step.type) for step in goal.steps][:2] == ["Configure", "Init"]
    assert goal.job == "unit-and-acceptance-local"


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("tier: 0", "tier: 9", 3, "tier is 0, 1 or 2"),
        ("scope: [run]", "scope: [rum]", 7, "unknown word 'rum'"),
        ("test: block", "tset: block", 9, "unknown knob 'tset'"),
        ("- run", "- runn", 15, "unknown step 'runn'"),
        ("Task a is review", "Tusk a reviews", 17, "unknown sentence"),
        ("branch: unmoved", "branch: sideways", 21, "moved or unmoved"),
        ("  - Task a is not merged", "  []", 22, "at least one negative assertion"),
        ("goal: G0.99", "gaol: G0.99", 2, "unknown key 'gaol'"),
        ("goal: G0.99", "goal: ''", 2, "goal is missing"),
        (
            f"{CONFIG}\n  test: block",
            "config: [test, block]",
            8,
            "settings by their names, got a list",
        ),
        (f"{CONFIG}\n  test: block", "config: test", 8, "settings by their names, got 'test'"),
        ("test: block", "test: [block]", 9, "config: test is a list, no value"),
        ("test: block", "test:", 9, "config: test is None, no value"),
        ("[validator.block]", "[]", 20, "named by its type, got a list"),
        ("[validator.block]", "{validator: block}", 20, "named by its type, got a mapping"),
        ("[validator.block]", "[[validator.block]]", 20, "named by its type, got a list"),
        ("[validator.block]", "", 20, "named by its type, got None"),
        ("layers: [local]", "layers: []", 4, "layers: the list is empty"),
    ],
)
def test_mistakes_name_their_line(tmp_path: Path, old: str, new: str, line: int, told: str) -> None:
    assert old in TEMPLATE
    path = written(tmp_path, TEMPLATE.replace(old, new, 1))
    with pytest.raises(Mistakes) as error:
        read_goal(path, CONTRACT)
    assert any(one.line == line and told in one.text for one in error.value.found), error.value


def test_a_goal_without_artefacts_is_refused(tmp_path: Path) -> None:
    begin = TEMPLATE.index("artefacts:")
    end = TEMPLATE.index("negative:")
    path = written(tmp_path, TEMPLATE[:begin] + TEMPLATE[end:])
    with pytest.raises(Mistakes, match="names its artefacts"):
        read_goal(path, CONTRACT)


def test_an_id_is_of_one_goal_only(tmp_path: Path) -> None:
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / name).write_text(TEMPLATE, encoding="utf-8")
    with pytest.raises(UsageError, match="is also in"):
        load_goals(tmp_path, CONTRACT)


def test_goals_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such goal"):
        load_goals(tmp_path / "missing", CONTRACT)
    with pytest.raises(UsageError, match="no goals ship for the contract plain"):
        load_goals(shipped() / "plain", "plain")


def test_goals_can_be_chosen() -> None:
    goals = shipped_goals()
    assert [goal.id for goal in accept.chosen(goals, ["G0.1"], [])] == ["G0.1"]
    assert all("smoke" in goal.layers for goal in accept.chosen(goals, [], ["smoke"]))
    with pytest.raises(UsageError, match="no goal 'G7'"):
        accept.chosen(goals, ["G7"], [])


# --- gates ---------------------------------------------------------------------------------------------


def rows(**changes: Tried) -> list[Row]:
    """Every goal ran well, except for those that are named."""
    found = []
    for goal in shipped_goals():
        good = Tried("success", len(goal.assertions), seconds=1.0)
        found.append(Row(goal, (changes.get(goal.id.replace(".", "_"), good),)))
    return found


def failed(found: list[Gate]) -> set[str]:
    return {gate.name for gate in found if not gate.passed}


def test_all_gates_pass_when_all_is_well() -> None:
    assert failed(accept.gates(rows(), 1, {})) == set()


def test_what_this_machine_cannot_try_is_not_covered_and_never_green() -> None:
    every = rows()
    lacking = {row.goal.id: "an engine" for row in every if "container" in row.goal.layers}
    assert len(lacking) >= 7
    tried = [row for row in every if row.goal.id not in lacking]
    found = accept.with_skipped([row.goal for row in every], tried, lacking)
    skipped = [row for row in found if row.skipped]
    assert [row.goal for row in found] == [row.goal for row in every]
    assert {row.status for row in skipped} == {"not covered"}
    assert "not covered (this machine lacks an engine)" in matrix.markdown(found, [], {})
    assert failed(accept.gates(found, 1)) == set()
    alone = accept.gates(skipped, 1, selected=True)
    assert failed(alone) == {"chosen goals"}
    assert "this machine lacks an engine" in alone[0].text
    safety = [replace(row, runs=(), skipped="it cannot") for row in every if row.goal.tier == 0]
    assert "no-merge safety" in failed(accept.gates(safety, 1))


@pytest.mark.parametrize(
    ("goal", "tried", "gates"),
    [
        ("G0_1", Tried("bug", 0, "batch.within_budget"), {"no-merge safety", "flakes"}),
        ("G0_1", Tried("success", 1), {"no-merge safety"}),
        ("G0_1", Tried("inconclusive", 0), {"no-merge safety", "flakes"}),
        ("G1_5", Tried("recovery_bug", 2), {"resume correctness"}),
        ("G1_9", Tried("bug", 0), {"artefact schema"}),
        ("G1_10", Tried("bug", 0), {"clean-up and idempotency"}),
    ],
)
def test_each_gate_fails_for_its_goals(goal: str, tried: Tried, gates: set[str]) -> None:
    assert failed(accept.gates(rows(**{goal: tried}), 1)) == gates


def test_tier_1_may_miss_a_fifth() -> None:
    bad = Tried("bug", 0)
    some = {"G1_1": bad, "G1_2": bad}
    assert "tier 1" not in failed(accept.gates(rows(**some), 1))
    assert "tier 1" in failed(accept.gates(rows(**some, G1_4=bad), 1))


def test_a_selection_asks_only_its_gates() -> None:
    one = [row for row in rows() if row.goal.id == "G0.2"]
    assert [gate.name for gate in accept.gates(one, 1, selected=True)] == [
        "no-merge safety",
        "flakes",
    ]
    assert failed(accept.gates(one, 1)) == {
        *("tier 1", "resume correctness", "artefact schema", "clean-up and idempotency")
    }


def test_a_slower_goal_fails_the_performance_gate() -> None:
    now = rows(G1_1=Tried("success", 5, seconds=9.0))
    before = {row.goal.id: 2.0 for row in now}
    slower = accept.regressions(now, before, 50)
    assert set(slower) == {"G1.1"}
    assert "performance" in failed(accept.gates(now, 1, slower))
    assert accept.regressions(rows(), before, 50) == {}  # all of it is faster alike


def test_the_bound_of_flakes() -> None:
    assert upper_bound(0, 50) == pytest.approx(1 - 0.05 ** (1 / 50), abs=1e-6)
    assert upper_bound(0, 1) == pytest.approx(0.95, abs=1e-6)
    assert 0.05 < upper_bound(1, 50) < 0.1
    assert upper_bound(3, 3) == 1.0


# --- quarantine ----------------------------------------------------------------------------------------

ENTRY = """\
[[quarantine]]
goal = "G2.7"
owner = "anna"
reason = "slow machines"
hypothesis = "the lock"
seen = 2026-01-10
filed = 2026-01-10
expires = 2026-01-15
"""


def quarantine(tmp_path: Path, text: str) -> list[accept.Quarantine]:
    path = tmp_path / "quarantine.toml"
    path.write_text(text, encoding="utf-8")
    return accept.load_quarantine(path, [goal.id for goal in shipped_goals()])


def test_a_quarantined_goal_is_shown_and_does_not_count(tmp_path: Path) -> None:
    entries = quarantine(tmp_path, ENTRY.replace("G2.7", "G0.1"))
    found = accept.with_quarantine(rows(G0_1=Tried("bug", 0, "r", "m")), entries)
    assert failed(accept.gates(found, 1)) == set()
    text = matrix.markdown(found, accept.gates(found, 1), {})
    assert "quarantined: slow machines (anna)" in text


def test_an_expired_entry_fails_its_gate_and_excuses_nothing(tmp_path: Path) -> None:
    (entry,) = quarantine(tmp_path, ENTRY)
    assert not entry.expired(entry.expires)
    assert entry.expired(entry.expires + datetime.timedelta(days=1))
    gate = accept.quarantine_gate([entry], [entry])
    assert not gate.passed
    assert gate.goals == ("G2.7",)
    assert "quarantine.toml:1: the quarantine of G2.7 has expired on 2026-01-15" in gate.text
    assert accept.quarantine_gate([entry], []).passed


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("2026-01-15", "2026-02-15", "longer than 7 days"),
        ("filed = 2026-01-10", "filed = 2026-01-12", "later than 24 h"),
        ("G2.7", "G7.7", "no goal 'G7.7'"),
        ('owner = "anna"\n', "", "owner"),
        ("2026-01-15", '"soon"', "are dates"),
        ("seen = 2026-01-10", "seen = 2026-01-10T10:00:00Z", "line 1: seen, filed and expires are"),
        ("seen = 2026-01-10", "seen = 2026-01-11", "first it is seen, then filed"),
        ("2026-01-15", "2026-01-09", "first it is seen, then filed, then it expires"),
        ('owner = "anna"', 'owner = " "', "texts that say something"),
        ('reason = "slow machines"', "reason = 7", "texts that say something"),
        ("[[quarantine]]", "[quarantine]", "every entry begins with a line"),
        ("[[quarantine]]", "[[quarantines]]", "unknown 'quarantines'"),
        ("[[quarantine]]", '[["quarantine"]]', "every entry begins with a line"),
        ("2026-01-15\n", f"2026-01-15\n{ENTRY}", "line 9: there is an entry for G2.7 already"),
    ],
)
def test_a_wrong_entry_is_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        quarantine(tmp_path, ENTRY.replace(old, new, 1))


def test_an_entry_may_have_a_remark_behind_its_head(tmp_path: Path) -> None:
    text = ENTRY.replace("[[quarantine]]", "# as [[quarantine]] says\n[[quarantine]]  # of Anna")
    (entry,) = quarantine(tmp_path, text)
    assert entry.place.endswith(":2")


@pytest.mark.parametrize(
    ("goals", "told"),
    [
        ("[]", "no gates.json"),
        ('{"goals": [{"id": "G0.1", "seconds": "soon"}]}', "no gates.json"),
        ('{"goals": [{"id": "G0.1", "seconds": NaN}]}', "goal G0.1 took nan seconds"),
        ('{"goals": [{"id": "G0.1", "seconds": -1}]}', "goal G0.1 took -1.0 seconds"),
        ('{"goals": [{"id": "G0.1", "seconds": 1e999}]}', "goal G0.1 took inf seconds"),
    ],
)
def test_a_baseline_that_cannot_be_is_refused_with_its_file(
    tmp_path: Path, goals: str, told: str
) -> None:
    path = tmp_path / "old.json"
    path.write_text(goals, encoding="utf-8")
    with pytest.raises(UsageError, match=rf"old\.json: .*{told}"):
        accept._baseline(accept.Wish(baseline=path), tmp_path)


# --- the matrix ----------------------------------------------------------------------------------------


def test_the_matrix_is_made_from_what_ran() -> None:
    bad = Tried("bug", 2, "batch.validated", "<b>a was | merged</b>", "chaos_runs/x")
    found = rows(G0_2=bad)
    found[5] = replace(found[5], runs=(Tried("success", 0),))
    held = accept.gates(found, 1)
    text = matrix.markdown(found, held, {"target": "t"})
    assert "| G0.2 | 0 |" in text
    assert "not covered" in text
    assert "batch.validated" in text
    assert len([line for line in text.splitlines() if line.startswith("| G")]) == len(found)
    page = matrix.html(found, held, {"target": "t"})
    assert "A GATE FAILED" in page
    told = matrix.as_json(found, held)
    assert told["passed"] is False
    assert {one["id"] for one in told["goals"] if one["status"] == "red"} == {"G0.2"}


# --- resume drills ---------------------------------------------------------------------------------------


def test_drills_are_every_moment_in_every_way() -> None:
    target = find_target(default_for("accept").default_target)
    found: tuple[Drill, ...] = ability(target, "drill")
    moments = {one.moment for one in found}
    assert len(moments) >= 8
    assert len(found) == 4 * len(moments)
    done = [Drilled(one, "success") for one in found]
    assert "ALL GREEN" in drill_page.html(done, "t")
    bad = [replace(done[0], verdict="bug", rule="batch.merged_once", reason="twice"), *done[1:]]
    text = drill_page.markdown(bad, "t")
    assert "bug batch.merged_once" in text
    assert text.count("kept") == len(found) - 1
    assert "NOT ALL GREEN" in drill_page.html(bad, "t")
