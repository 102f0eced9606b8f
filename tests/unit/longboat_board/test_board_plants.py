"""Every plant: the healthy board keeps its promise where the planted one breaks it.

What only a sweep over crash points or over the order of calls can reach stands in
`test_board_sweeps`; what needs real processes in `test_board_crew` and `test_board_broker`.
"""

from __future__ import annotations

import errno
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from board_bench import Bench, MakeBench, plant

from longboat.board.values import NewTask
from longboat.planting import planted
from longboat.plants import BOARD_PLANTS, PLANTS

Symptom = Callable[[Bench], bool]
"""True when the promise is broken."""


def own(answer: dict[str, Any], worker: str = "w1") -> dict[str, Any]:
    return {"worker": worker, "task": answer["task"], "epoch": answer["epoch"]}


def stale_kept(bench: Bench) -> bool:
    bench.add("a")
    bench.claim()
    bench.advance(61)
    bench("recover")
    return bench.status_of("a") != "available"


def heartbeat_ignored(bench: Bench) -> bool:
    bench.add("a")
    bench.claim()
    for _ in range(2):
        bench.advance(40)
        bench("heartbeat", worker="w1")
    bench("recover")
    return bench.status_of("a") != "claimed"


def stranger(bench: Bench) -> bool:
    bench.add("a")
    bench.claim()
    return bool(bench("complete", worker="w2", task="a", epoch=1)["ok"])


def double(bench: Bench) -> bool:
    bench.add("a")
    words = own(bench.claim())
    bench("complete", **words)
    bench("complete", **words)
    return bool(bench.tasks()["a"]["completions"] != 1)


def cycle(bench: Bench) -> bool:
    new = (NewTask("x", "a", depends=("b",)), NewTask("x", "b", depends=("a",)))
    return bool(bench("add-batch", new=new)["ok"])


def dependencies_ignored(bench: Bench) -> bool:
    bench.add("a")
    bench.add("b", "a", priority=1)
    return bench.claim()["task"] == "b"


def waits_for_done(bench: Bench) -> bool:
    bench.add("a")
    bench("complete", **own(bench.claim()))
    bench.add("b", "a")
    return not bench.claim()["ok"]


def two_leaders(bench: Bench) -> bool:
    return bool(bench("elect", name="n1")["ok"] and bench("elect", name="n2")["ok"])


def old_token(bench: Bench) -> bool:
    bench("elect", name="n1")
    bench("step-down", name="n1", token=1)
    bench("elect", name="n2")
    return bool(bench("write-as-leader", name="n1", token=1, text="x")["ok"])


def token_reused(bench: Bench) -> bool:
    bench("elect", name="n1")
    bench.restart()
    bench("step-down", name="n1", token=1)
    return bench("elect", name="n2")["token"] == 1


def epoch_lowered(bench: Bench) -> bool:
    bench.add("a")
    bench("checkpoint", name="one")
    first = bench.claim()
    bench("restore", name="one")
    return bench.claim("w2")["epoch"] == first["epoch"]


def restore_loses(bench: Bench) -> bool:
    bench.add("a")
    bench.claim()
    bench("checkpoint", name="one")
    bench("restore", name="one")
    return bench.status_of("a") != "available"


def done_forgotten(bench: Bench) -> bool:
    bench.add("a")
    bench("complete", **own(bench.claim()))
    bench("checkpoint", name="one")
    bench("restore", name="one")
    return bench.status_of("a") != "done"


def silent_empty(bench: Bench) -> bool:
    bench.add("a")
    bench.add("b")
    bench.corrupt()
    listed = bench("list")
    return bool(listed["ok"]) and listed["tasks"] == []


def half_added(bench: Bench) -> bool:
    bench("add-batch", new=(NewTask("x", "a"), NewTask("x", "b", depends=("z",))))
    return bench.tasks() != {}


def cancel_of_done(bench: Bench) -> bool:
    bench.add("a")
    bench("complete", **own(bench.claim()))
    bench("cancel", task="a")
    return bench.status_of("a") != "done"


def newest_first(bench: Bench) -> bool:
    bench.add("a")
    bench.add("b", priority=9)
    return bench.claim()["task"] != "a"


def no_backoff(bench: Bench) -> bool:
    bench.add("a")
    bench("fail", **own(bench.claim()))
    return bool(bench.claim()["ok"])


def for_ever(bench: Bench) -> bool:
    bench.add("a", max_attempts=1)
    bench("fail", **own(bench.claim()))
    return bench.status_of("a") != "failed"


def never_opens(bench: Bench) -> bool:
    bench.config = bench.store.config = bench.config._replace(retry_base_s=0, max_attempts=100)
    bench.add("a")
    for _ in range(3):
        bench("fail", **own(bench.claim()))
    return bench.claim().get("error") != "breaker_open"


def never_closes(bench: Bench) -> bool:
    never_opens(bench)
    bench.advance(61)
    bench("complete", **own(bench.claim()))
    return bool(bench("status")["breaker"]["state"] != "closed")  # type: ignore[index]


def half_open(bench: Bench) -> bool:
    never_opens(bench)
    bench.add("b")
    bench.advance(61)
    assert bench.claim()["ok"]
    return bool(bench.claim("w2")["ok"])


def off_by_one(bench: Bench) -> bool:
    bench.config = bench.store.config = bench.config._replace(rate_limit=0.01, rate_burst=2)
    for name in "abc":
        bench.add(name)
    return all(bench.claim()["ok"] for _ in range(3))


def shared_limit(bench: Bench) -> bool:
    bench.config = bench.store.config = bench.config._replace(rate_limit=0.01, rate_burst=1)
    for name in "ab":
        bench.add(name)
    return not (bench.claim("w-1")["ok"] and bench.claim("w-2")["ok"])


def memory_leak(bench: Bench) -> bool:
    bench.add("a")
    bench("complete", **own(bench.claim()))
    return len(bench.store._kept) > 0


def descriptor_leak(bench: Bench) -> bool:
    gc.collect()  # databases of earlier tests close now, not in the middle
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name in "abc":
        bench.add(name)
        bench("complete", **own(bench.claim()))
    return len(list(Path("/proc/self/fd").iterdir())) > before


def unsaved(bench: Bench) -> bool:
    bench.add("a")
    assert bench.add("b")["ok"]
    bench.restart()
    return "b" not in bench.tasks()


def poisoned_backups(bench: Bench) -> bool:
    bench.add("a")
    bench.add("b")
    bench.corrupt()
    for _ in range(4):
        assert bench.add("c")["error"] == "unreadable"
    return not bench("repair")["ok"]


def repair_loses(bench: Bench) -> bool:
    bench.add("a")
    bench.add("b")
    bench.corrupt()
    assert bench("repair")["ok"]
    return set(bench.tasks()) != {"a", "b"}


def others_freed(bench: Bench) -> bool:
    bench.add("a")
    bench.add("b")
    first, _ = bench.claim(), bench.claim()
    bench("complete", **own(first))
    return bench.status_of("b") != "claimed"


def output_cut(bench: Bench) -> bool:
    bench.add("a")
    bench("complete", text="x" * 2000, **own(bench.claim()))
    return bool(bench.tasks()["a"]["output"] != "x" * 2000)


def failure_kept_back(bench: Bench) -> bool:
    bench.add("a", max_attempts=1)
    bench.add("b", "a")
    bench("fail", **own(bench.claim()))
    return bench.status_of("b") != "failed"


def stolen(bench: Bench) -> bool:
    bench.add("a")
    bench.claim()
    return bool(bench.claim("w2", "a")["ok"])


def release_refused(bench: Bench) -> bool:
    bench.add("a")
    words = own(bench.claim())
    bench("start", **words)
    return not bench("release", **words)["ok"]


def started_twice(bench: Bench) -> bool:
    bench.add("a")
    words = own(bench.claim())
    bench("start", **words)
    return bool(bench("start", **words)["ok"])


def unclassed(bench: Bench) -> bool:
    return bool(bench.add("a", "nobody")["error"] != "dependency_missing")


def stale_failed(bench: Bench) -> bool:
    bench.add("a")
    bench.claim()
    bench.advance(61)
    bench("recover")
    return bench.status_of("a") == "failed"


EVERYWHERE: dict[str, Symptom] = {
    "completion-frees-worker": others_freed,
    "output-cut": output_cut,
    "failure-not-passed-on": failure_kept_back,
    "named-claim-steals": stolen,
    "release-only-before-start": release_refused,
    "start-twice": started_twice,
    "refusal-unclassed": unclassed,
    "stale-claim-failed": stale_failed,
    "stale-claim-kept": stale_kept,
    "heartbeat-ignored": heartbeat_ignored,
    "completion-by-stranger": stranger,
    "double-completion": double,
    "cycle-accepted": cycle,
    "dependencies-ignored": dependencies_ignored,
    "waits-for-what-is-done": waits_for_done,
    "two-leaders": two_leaders,
    "old-token-accepted": old_token,
    "token-reused-after-restart": token_reused,
    "restore-lowers-epoch": epoch_lowered,
    "restore-loses-claimed": restore_loses,
    "checkpoint-skips-done": done_forgotten,
    "silent-empty-start": silent_empty,
    "batch-half-added": half_added,
    "cancel-of-done": cancel_of_done,
    "newest-first": newest_first,
    "retry-without-backoff": no_backoff,
    "max-attempts-ignored": for_ever,
    "breaker-never-opens": never_opens,
    "breaker-never-closes": never_closes,
    "half-open-lets-all-through": half_open,
    "limiter-off-by-one": off_by_one,
    "limiter-shared-by-prefix": shared_limit,
    "memory-leak": memory_leak,
    "descriptor-leak": descriptor_leak,
    "answer-before-commit": unsaved,
    "acknowledged-before-journal": unsaved,
    "backup-of-corrupt": poisoned_backups,
    "second-copy-skipped": repair_loses,
    "repair-to-last-start": repair_loses,
}
ELSEWHERE = {
    *("wall-clock-leases", "disk-full-acknowledged"),  # below
    *("board-without-lock", "lock-dropped-before-write", "lock-file-removed"),
    *("board-in-place", "board-renamed-unsynced", "checkpoint-in-place"),
    *("second-crew-allowed", "crew-resumes-running", "crew-ignores-dag"),
    *("dead-agent-kept-fresh", "dead-agent-reported-healthy"),
    # what only a command of its own shows: tests/quality
    *("lock-wait-gives-up", "crash-on-missing-dependency", "claim-waits-for-work"),
    *("unknown-setting-ignored", "repair-forgets-leader", "checkpoint-sum-ignored"),
    *("old-copy-served", "bad-lines-skipped", "rest-told-in-ms", "breaker-called-closed"),
    *("agents-end-lost", "agents-end-limited"),
}


def test_every_plant_is_shown_somewhere() -> None:
    assert set(EVERYWHERE) | ELSEWHERE == set(BOARD_PLANTS)
    assert not set(EVERYWHERE) & ELSEWHERE
    assert len(BOARD_PLANTS) >= 24


def test_plants_are_off_and_explained() -> None:
    for name, one in BOARD_PLANTS.items():
        assert not planted(name)
        assert one.name == name
        assert ("Shortest: " in one.what) != ("Found by: " in one.what)
        assert one.boards in ("A", "B", "C", "BC", "ABC")
        assert one.failure_class
        assert one.source


def test_names_are_of_one_plant_only() -> None:
    workers = {name for name, one in PLANTS.items() if not one.boards}
    assert not workers & set(BOARD_PLANTS)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        # A leak shows after hundreds of commands: one board of it is enough beside the others.
        pytest.param(
            *(name, kind),
            marks=[pytest.mark.slow] if name == "descriptor-leak" and kind != "B" else [],
        )
        for name in EVERYWHERE
        for kind in BOARD_PLANTS[name].boards
    ],
)
def test_plant(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    assert not EVERYWHERE[name](make_bench(kind, "healthy"))
    plant(monkeypatch, name)
    assert EVERYWHERE[name](make_bench(kind, "planted"))


@pytest.mark.parametrize("active", [False, True])
def test_a_skewed_clock_robs_only_with_the_plant(
    tmp_path: Path, make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch, active: bool
) -> None:
    plant(monkeypatch, *(["wall-clock-leases"] if active else []))
    bench = make_bench("A")
    bench.add("a")
    bench.claim()
    with monkeypatch.context() as skewed:
        now = time.time()
        skewed.setattr("longboat.board.file_store.time.time", lambda: now + 3600)
        bench("recover")
    assert bench.status_of("a") == ("available" if active else "claimed")


@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize("kind", ["A", "C"])
def test_a_full_disk_is_acknowledged_only_with_the_plant(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch, kind: str, active: bool
) -> None:
    plant(monkeypatch, *(["disk-full-acknowledged"] if active else []))
    bench = make_bench(kind)
    bench.add("a")

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        place = "files" if kind == "A" else "journal"
        broken.setattr(f"longboat.board.{place}.os.write", full)
        answer = bench.add("b")
    assert answer["ok"] is active
    if not active:
        assert (answer["error"], answer["happened"]) == ("no_space", "no")
    assert set(bench.tasks()) == {"a"}
    assert bench.add("c")["ok"]
    bench.restart()
    assert set(bench.tasks()) == {"a", "c"}


@pytest.mark.parametrize("active", [False, True])
def test_a_full_database_is_acknowledged_only_with_the_plant(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch, active: bool
) -> None:
    plant(monkeypatch, *(["disk-full-acknowledged"] if active else []))
    bench = make_bench("B")
    bench.add("a")
    pages = bench.store._database.execute("pragma page_count").fetchone()[0]
    bench.store._database.execute(f"pragma max_page_count={pages}")
    answer = bench.add("b", payload="x" * 200_000)
    assert answer["ok"] is active, answer
    if not active:
        assert answer["error"] == "no_space"
    assert set(bench.tasks()) == {"a"}
