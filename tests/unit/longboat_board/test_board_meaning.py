"""What the verbs mean, on all three boards alike."""

from __future__ import annotations

from typing import Any

import pytest
from board_bench import Bench, MakeBench

from longboat.board.values import NewTask


def error(answer: dict[str, Any]) -> str:
    """The class of a refusal."""
    assert answer["ok"] is False, answer
    assert answer["message"]
    return str(answer["error"])


def own(answer: dict[str, Any], worker: str = "w1") -> dict[str, Any]:
    """The words of the owner of what was claimed."""
    assert answer["ok"], answer
    return {"worker": worker, "task": answer["task"], "epoch": answer["epoch"]}


def test_the_life_of_a_task(bench: Bench) -> None:
    assert bench.add("a") == {"ok": True, "task": "a"}
    claim = bench.claim()
    assert (claim["task"], claim["epoch"], claim["lease_s"]) == ("a", 1, 60)
    assert bench("start", **own(claim))["ok"]
    assert error(bench("start", **own(claim))) == "wrong_status"
    assert bench("complete", **own(claim), text="result")["ok"]
    assert error(bench("complete", **own(claim))) == "wrong_status"
    task = bench.tasks()["a"]
    assert (task["status"], task["output"], task["completions"]) == ("done", "result", 1)
    assert error(bench.claim()) == "nothing_to_claim"


def test_the_most_urgent_then_the_oldest(bench: Bench) -> None:
    for name, priority in (("a", 5), ("b", 1), ("c", 5), ("d", 1)):
        bench.add(name, priority=priority)
    assert [bench.claim(f"w{n}")["task"] for n in range(4)] == ["b", "d", "a", "c"]


def test_names_are_made_and_kept_apart(bench: Bench) -> None:
    assert bench("add", new=(NewTask("x"),))["task"] == "task-1"
    assert bench.add("task-2")["ok"]
    assert bench("add", new=(NewTask("x"),))["task"] == "task-3"
    assert error(bench.add("task-3")) == "duplicate_id"
    assert error(bench.add("../x")) == "bad_input"
    assert error(bench("add", new=(NewTask("  ", "y"),))) == "bad_input"
    assert error(bench.add("z", priority=0)) == "bad_input"
    assert error(bench.claim("")) == "bad_input"


def test_only_the_owner_speaks_for_a_task(bench: Bench) -> None:
    bench.add("a")
    claim = bench.claim()
    for verb in ("start", "complete", "fail", "release"):
        assert error(bench(verb, worker="w2", task="a", epoch=1)) == "not_owner"
        assert error(bench(verb, worker="w1", task="a", epoch=2)) == "stale_epoch"
        assert error(bench(verb, worker="w1", task="b")) == "unknown_task"
    assert bench("release", **own(claim))["ok"]
    assert bench.tasks()["a"]["attempts"] == 0
    assert bench.claim("w2")["epoch"] == 2
    assert error(bench("complete", **own(claim))) == "stale_epoch"
    assert error(bench("complete", worker="w1", task="a")) == "not_owner"


def test_a_claim_by_name(bench: Bench) -> None:
    bench.add("a")
    bench.add("b", "a")
    assert error(bench.claim(task="b")) == "dependencies_open"
    assert error(bench.claim(task="x")) == "unknown_task"
    assert bench.claim(task="a")["ok"]
    assert error(bench.claim("w2", "a")) == "task_not_available"


def test_dependencies_open_when_done_and_fail_when_failed(bench: Bench) -> None:
    bench.add("a")
    bench.add("b", "a")
    bench.add("c", "b")
    bench.add("d", "a")
    assert bench("status")["counts"]["blocked"] == 3  # type: ignore[index]
    bench("complete", **own(bench.claim()))
    assert {bench.status_of(name) for name in "bd"} == {"available"}
    assert bench("cancel", task="b", text="no need")["ok"]
    task = bench.tasks()["c"]
    assert (task["status"], task["reason"]) == ("failed", "dependency b failed")
    assert bench.add("e", "c")["ok"]
    assert bench.status_of("e") == "failed"
    assert error(bench("retry", task="c")) == "dependencies_open"
    assert error(bench("cancel", task="b")) == "wrong_status"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([("a", "b"), ("b", "a")], "cycle"),
        ([("a", "a")], "cycle"),
        ([("a", ""), ("b", "c"), ("c", "d"), ("d", "b")], "cycle"),
        ([("a", ""), ("b", "x")], "dependency_missing"),
        ([("a", ""), ("a", "")], "duplicate_id"),
    ],
)
def test_a_bad_batch_adds_nothing(
    bench: Bench, wanted: list[tuple[str, str]], expected: str
) -> None:
    new = tuple(NewTask("x", name, depends=tuple(filter(None, [on]))) for name, on in wanted)
    assert error(bench("add-batch", new=new)) == expected
    assert bench.tasks() == {}


def test_a_batch_may_name_what_comes_later(bench: Bench) -> None:
    new = (NewTask("x", "a", depends=("b",)), NewTask("x", "b"))
    assert bench("add-batch", new=new) == {"ok": True, "tasks": ["a", "b"]}
    assert (bench.status_of("a"), bench.status_of("b")) == ("blocked", "available")


def test_failures_rest_longer_and_longer_and_end(bench: Bench) -> None:
    bench.add("a")
    pauses = []
    for _ in range(2):
        failed = bench("fail", **own(bench.claim()), text="broken")
        pauses.append(float(str(failed["retry_in_s"])))
        assert error(bench.claim()) == "nothing_to_claim"
        assert error(bench.claim(task="a")) == "task_not_available"
        bench.advance(pauses[-1] + 0.5)
    assert pauses == [pytest.approx(30, rel=0.11), pytest.approx(60, rel=0.11)]
    assert bench("recover")["promoted"] == ["a"]
    last = bench("fail", **own(bench.claim()), text="broken")
    assert (last["status"], last["attempts"]) == ("failed", 3)
    assert bench.tasks()["a"]["reason"] == "broken"
    assert bench("retry", task="a")["status"] == "available"
    assert error(bench("retry", task="a")) == "wrong_status"


def test_the_dead_lose_their_claims_and_the_living_never(bench: Bench) -> None:
    for name in "ab":
        bench.add(name)
    dead, living = bench.claim("dead"), bench.claim("living")
    for _ in range(3):
        bench.advance(30)
        assert bench("heartbeat", worker="living")["tasks"] == ["b"]
    assert bench("recover")["returned"] == ["a"]
    assert (bench.status_of("a"), bench.status_of("b")) == ("available", "claimed")
    assert bench.tasks()["a"]["attempts"] == 1
    assert error(bench("complete", **own(dead, "dead"))) == "not_owner"
    assert bench("complete", **own(living, "living"))["ok"]


def test_a_claim_returns_what_is_stale_and_settles_what_died_too_often(bench: Bench) -> None:
    bench.add("a", max_attempts=2)
    bench.add("b", "a")
    for expected in ("claimed", "failed"):
        bench.claim()
        bench.advance(61)
        bench.claim("w2", "b")
        assert bench.status_of("a") in ("available", expected)
    assert {task["status"] for task in bench.tasks().values()} == {"failed"}


def test_a_restore_is_exact_but_fences_stay(bench: Bench) -> None:
    bench.add("a")
    bench.add("b", priority=1)
    first = bench.claim()
    before = bench.tasks()
    assert bench("checkpoint", name="one")["ok"]
    bench("complete", **own(first))
    bench.add("later")
    bench.claim("w2", "later")
    bench("elect", name="n1")
    assert bench("restore", name="one") == {"ok": True, "tasks": 2}
    after = bench.tasks()
    assert after["a"] == before["a"]
    assert after["b"]["status"] == "available"
    changed = {"status": "", "owner": "", "history": ""}
    assert after["b"] | changed == before["b"] | changed
    assert error(bench("complete", **own(first))) == "not_owner"
    assert bench.claim("w3")["epoch"] == 2
    bench.add("later")
    assert bench.claim("w4", "later")["epoch"] == 2, "an epoch of a forgotten task is not reused"
    assert error(bench("restore", name="none")) == "unknown_checkpoint"
    bench("step-down", name="n1", token=1)
    assert bench("elect", name="n2")["token"] == 2


def test_one_leader_and_growing_tokens(bench: Bench) -> None:
    assert bench("elect", name="n1")["token"] == 1
    assert error(bench("elect", name="n2")) == "leader_exists"
    assert bench("write-as-leader", name="n1", token=1, text="x")["ok"]
    assert error(bench("write-as-leader", name="n2", token=1, text="x")) == "not_leader"
    bench.advance(40)
    if bench.kind != "A":  # A's lease is a file: the bench moves only the clock that reads it
        assert bench("renew", name="n1", token=1)["ok"]
        bench.advance(40)
        assert bench("status")["leader"] == {"node": "n1", "token": 1}
    bench.advance(61)
    assert bench("status")["leader"] is None
    assert error(bench("renew", name="n1", token=1)) == "not_leader"
    assert bench("elect", name="n2")["token"] == 2
    assert error(bench("write-as-leader", name="n1", token=1, text="y")) == "stale_token"
    assert [one["text"] for one in bench("status")["writes"]] == ["x"]  # type: ignore[attr-defined]


def test_everything_is_there_after_a_restart(bench: Bench) -> None:
    bench.add("a", payload="p" * 100_000)
    bench.add("b")
    claim = bench.claim()
    bench("elect", name="n1")
    before = bench.tasks()
    bench.restart()
    assert bench.tasks() == before
    assert bench("status")["leader"] == {"node": "n1", "token": 1}, "one full new lease"
    assert bench("recover")["returned"] == []
    assert bench("complete", **own(claim), text="\udcff\0 any text")["ok"]
    bench.restart()
    assert bench.tasks()["a"]["output"] == "\udcff\0 any text"


def test_unreadable_is_said_and_repaired(bench: Bench) -> None:
    for name in "abc":
        bench.add(name)
        bench.restart()  # B and C make their copies when they start
    bench.claim("w1", "a")
    bench.corrupt()
    assert error(bench("list")) == "unreadable"
    assert error(bench("init")) == "unreadable"
    repaired = bench("repair")
    assert repaired["repaired"] is True
    assert (bench.directory / str(repaired["aside"])).exists()
    assert set(bench.tasks()) >= {"a", "b"}
    assert int(str(bench.claim("w2", "a")["epoch"])) > 100, "no epoch of the lost time is valid"
    assert bench("repair") == {"ok": True, "repaired": False}


def test_the_limit_is_for_each_worker_and_refills(make_bench: MakeBench) -> None:
    for kind in "ABC":
        bench = make_bench(kind, kind, rate_limit=0.1, rate_burst=2)
        for name in "abcd":
            bench.add(name)
        assert [bench.claim("w-1")["ok"] for _ in range(3)] == [True, True, False]
        assert error(bench.claim("w-1")) == "rate_limited"
        assert bench.claim("w-2")["ok"]
        bench.advance(10.5)
        assert [bench.claim("w-1")["ok"] for _ in range(2)] == [True, False]


@pytest.mark.parametrize("kind", ["B", "C"])
def test_the_breaker_opens_probes_and_closes(make_bench: MakeBench, kind: str) -> None:
    bench = make_bench(kind, retry_base_s=0, max_attempts=100)
    for name in "abc":
        bench.add(name)
    for _ in range(3):
        bench("fail", **own(bench.claim()))
    assert error(bench.claim()) == "breaker_open"
    bench.advance(61)
    probe = bench.claim()
    assert error(bench.claim("w2")) == "breaker_open"
    bench("fail", **own(probe))
    assert error(bench.claim()) == "breaker_open"
    bench.advance(61)
    released = bench.claim()
    bench("release", **own(released))
    probe = bench.claim()
    assert bench("complete", **own(probe))["ok"]
    assert bench("status")["breaker"]["state"] == "closed"  # type: ignore[index]
    assert all(bench.claim(f"w{n}")["ok"] for n in range(2))
