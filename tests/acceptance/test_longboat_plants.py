"""Plants show their symptoms without Mutiny too, by the shortest way; a healthy longboat does not."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from longboat.plants import WORKER_PLANTS as PLANTS
from longboat_driver import Box, is_alive

pytestmark = pytest.mark.slow
PATIENCE_S = 1.5


def soon(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
    """True as soon as the condition holds, False when it does not within the patience."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def status_soon(box: Box, name: str, status: str) -> bool:
    return soon(lambda: box.state()["workers"].get(name, {}).get("status") == status)


def in_review(box: Box) -> None:
    box.ready("alpha")
    box.start("alpha", "MT-a-1")
    box.wait_status("alpha", "needs_review")


def at_work(box: Box, behaviour: str = "slow:700") -> None:
    box.script(alpha=[behaviour, "obey"])
    box.ready("alpha")
    box.start("alpha", "MT-a-1")
    box.wait_stage("alpha", "received")


def two_in_review(box: Box, file_a: str, file_b: str) -> None:
    box.ready("alpha", "beta")
    box.start("alpha", "MT-a-1", file_a)
    box.start("beta", "MT-b-1", file_b)
    box.wait_status("alpha", "needs_review")
    box.wait_status("beta", "needs_review")


def agent(box: Box, name: str) -> int:
    pid: int = box.worker(name)["agent"]["pid"]
    return pid


# Each function returns True when the bug shows.


def state_in_place(box: Box) -> bool:
    box.init()
    box.do("add", "alpha")
    (box.home / "state.json").write_text("garbage")
    return "alpha" not in box.run("status").stdout


def lock_not_taken(box: Box) -> bool:
    box.init()
    program = str(box.root / "bin" / "longboat")
    running = [
        subprocess.Popen([program, "add", name], env=box.environment) for name in ("alpha", "beta")
    ]
    codes = [one.wait(timeout=30) for one in running]
    return codes != [0, 0] or set(box.state()["workers"]) != {"alpha", "beta"}


def sha_dropped(box: Box) -> bool:
    in_review(box)
    box.kill_daemon()
    box.do("up")
    return box.worker("alpha")["commit_sha"] is None


def idle_keeps_prompt(box: Box) -> bool:
    in_review(box)
    box.do("accept", "alpha")
    return bool(box.worker("alpha")["current_prompt"])


def refused_accept_merges(box: Box) -> bool:
    in_review(box)
    (box.source / "README").write_text("mine\n")
    box.rejected("accept", "alpha")
    return box.merged("MT-a-1") == 1


def refused_accept_loses(box: Box) -> bool:
    in_review(box)
    sha = box.worker("alpha")["commit_sha"]
    (box.source / "README").write_text("mine\n")
    box.rejected("accept", "alpha")
    return not box.git("for-each-ref", f"--contains={sha}")


def closed_without_merge(box: Box) -> bool:
    in_review(box)
    box.do("message", "alpha", "Also add b.txt MT-a-2")
    box.wait("second", lambda: bool(box.prompts("MT-a-2")))
    box.wait_status("alpha", "needs_review")
    box.do("accept", "alpha")
    return box.merged("MT-a-1") == 0


def merged_twice(box: Box) -> bool:
    in_review(box)
    box.do("accept", "alpha")
    box.kill_daemon()
    box.do("up")
    return box.merged("MT-a-1") == 2


def dirty_source_wiped(box: Box) -> bool:
    in_review(box)
    (box.source / "README").write_text("mine\n")
    box.run("accept", "alpha")
    return (box.source / "README").read_text() != "mine\n"


def conflict_dropped(box: Box) -> bool:
    two_in_review(box, "shared.txt", "shared.txt")
    box.do("accept", "alpha")
    box.do("accept", "beta")
    return bool(box.worker("beta")["status"] == "idle")


def nuke_loses(box: Box) -> bool:
    in_review(box)
    sha = box.worker("alpha")["commit_sha"]
    box.do("nuke", "alpha", "--yes")
    return not box.git("for-each-ref", f"--contains={sha}")


def dirty_ignored(box: Box) -> bool:
    box.script(alpha=["dirty"])
    box.ready("alpha")
    box.start("alpha", "MT-a-1")
    return status_soon(box, "alpha", "no_changes")


def done_before_work(box: Box) -> bool:
    at_work(box)
    return bool(box.worker("alpha")["status"] == "needs_review")


def forgotten_on_down(box: Box) -> bool:
    at_work(box)
    box.do("down")
    box.do("up")
    return status_soon(box, "alpha", "idle")


def reject_lost(box: Box) -> bool:
    in_review(box)
    box.do("review", "alpha")
    box.do("reject", "Also add b.txt MT-a-2")
    return not soon(lambda: bool(box.prompts("MT-a-2")))


def message_dropped(box: Box) -> bool:
    at_work(box)
    box.do("message", "alpha", "Also add b.txt MT-a-2")
    return not soon(lambda: bool(box.prompts("MT-a-2")))


def completion_missed(box: Box) -> bool:
    in_review(box)
    box.do("message", "alpha", "Also add b.txt MT-a-2")
    box.wait("second", lambda: bool(box.prompts("MT-a-2")))
    return not status_soon(box, "alpha", "needs_review")


def hooks_lost(box: Box) -> bool:
    at_work(box, "slow:300")
    box.kill_daemon()
    spool = box.home / "spool"
    box.wait("Stop", lambda: any(b" Stop " in p.read_bytes() for p in spool.glob("*.hook")))
    box.do("up")
    return not status_soon(box, "alpha", "needs_review")


def prompt_lost(box: Box) -> bool:
    at_work(box, "hang")
    box.tmux("kill-session", "-t", "=longboat-alpha")
    return not soon(lambda: len(box.prompts("MT-a-1")) == 2)


def semicolon_lost(box: Box) -> bool:
    box.ready("alpha")
    box.do("start", "--worker", "alpha", "--prompt", "Create a.txt MT-a-1;")
    box.wait_stage("alpha", "received")
    return not str(box.prompts("MT-a-1")[0].text).endswith(";")


def delivered_twice(box: Box) -> bool:
    at_work(box)
    box.kill_daemon()
    box.do("up")
    return soon(lambda: len(box.prompts("MT-a-1")) == 2)


def stuck_offline(box: Box) -> bool:
    box.ready("alpha")
    old = agent(box, "alpha")
    box.kill(box.tmux_server_pid())
    box.wait("noticed", lambda: (box.worker("alpha")["agent"] or {}).get("pid") != old)
    return not status_soon(box, "alpha", "idle")


def session_without_agent(box: Box) -> bool:
    box.ready("alpha")
    old = agent(box, "alpha")
    box.kill_agent("alpha")
    box.wait("healed", lambda: (box.worker("alpha")["agent"] or {"pid": old})["pid"] != old)
    box.wait("ready", lambda: box.worker("alpha")["agent"]["ready"])
    shown = box.tmux("list-panes", "-t", "=longboat-alpha:", "-F", "#{pane_current_command}")
    return shown.stdout.strip() in ("sh", "dash", "bash")


def duplicate_agent(box: Box) -> bool:
    box.ready("alpha")
    box.kill_daemon()
    box.do("up")
    return len(box.sessions()) == 2


def session_left(box: Box) -> bool:
    box.ready("alpha")
    box.do("nuke", "alpha", "--yes")
    return box.sessions() != []


def agents_left(box: Box) -> bool:
    box.ready("alpha")
    box.do("down")
    return box.sessions() != []


def prefix(box: Box) -> bool:
    box.ready("alpha")
    old = agent(box, "alpha")
    box.do("add", "al")
    soon(lambda: not is_alive(old))
    return not is_alive(old)


def all_sessions(box: Box) -> bool:
    box.ready("alpha", "beta")
    old = agent(box, "alpha")
    box.do("nuke", "beta", "--yes")
    return soon(lambda: not is_alive(old))


def reaped_on_silence(box: Box) -> bool:
    box.ready("alpha")
    old = agent(box, "alpha")
    box.kill(box.tmux_server_pid(), signal.SIGSTOP)
    return soon(lambda: not is_alive(old), 4.0)


def reaped_by_age(box: Box) -> bool:
    at_work(box, "slow:4000")
    old = agent(box, "alpha")
    return soon(lambda: not is_alive(old), 2.5)


def add_takes(box: Box) -> bool:
    box.ready("alpha")
    inode = (box.home / "worktrees" / "alpha").stat().st_ino
    box.rejected("add", "alpha")
    directory = box.home / "worktrees" / "alpha"
    return not directory.exists() or directory.stat().st_ino != inode


def stale_pid(box: Box) -> bool:
    box.ready("alpha", "beta")
    box.kill_daemon()
    box.tmux("kill-session", "-t", "=longboat-alpha")
    box.do("up")
    return not soon(lambda: "longboat-alpha" in box.sessions())


def second_daemon(box: Box) -> bool:
    box.init()
    box.do("up")
    return box.run("up").returncode == 0


def up_refused(box: Box) -> bool:
    box.init()
    box.do("up")
    box.kill_daemon()
    return box.run("up").returncode != 0


def status_lies(box: Box) -> bool:
    box.init()
    box.do("up")
    box.kill_daemon()
    return bool(json.loads(box.do("status", "--json"))["daemon_running"])


def doctor_lies(box: Box) -> bool:
    box.init()
    box.do("up")
    box.kill_daemon()
    assert json.loads(box.do("doctor", "--repair", "--json"))["repairs"]
    return box.run("doctor").returncode != 0


def rebase_left(box: Box) -> bool:
    box.script(beta=["give-up"])
    two_in_review(box, "shared.txt", "shared.txt")
    box.do("accept", "alpha")
    box.do("review", "beta")
    box.wait_status("beta", "error")
    return (box.source / ".git" / "worktrees" / "beta" / "rebase-merge").exists()


def stale_sha(box: Box) -> bool:
    two_in_review(box, "a.txt", "b.txt")
    box.do("accept", "alpha")
    box.do("review", "beta")
    return bool(box.worker("beta")["commit_sha"] != box.git("rev-parse", "longboat/beta"))


def wrong_branch(box: Box) -> bool:
    in_review(box)
    box.do("accept", "alpha")
    head = (box.source / ".git" / "worktrees" / "alpha" / "HEAD").read_text()
    return "longboat/alpha" not in head


def reused_dirty(box: Box) -> bool:
    in_review(box)
    box.do("reset", "alpha", "--yes")
    box.wait_status("alpha", "idle")
    return box.git("rev-parse", "longboat/alpha") != box.git("rev-parse", "master")


def accept_working(box: Box) -> bool:
    at_work(box)
    return box.run("accept", "alpha").returncode == 0


def exit_zero(box: Box) -> bool:
    box.init()
    return box.run("nuke", "nobody", "--yes").returncode == 0


def traceback_shown(box: Box) -> bool:
    box.init()
    return "Traceback" in box.run("message", "nobody", "x").stderr


SYMPTOMS: dict[str, Callable[[Box], bool]] = {
    "state-in-place": state_in_place,
    "lock-not-taken": lock_not_taken,
    "sha-dropped-on-daemon-death": sha_dropped,
    "idle-keeps-prompt": idle_keeps_prompt,
    "accept-half-done": refused_accept_merges,
    "branch-deleted-before-merge": refused_accept_loses,
    "closed-without-merge": closed_without_merge,
    "merged-twice-after-crash": merged_twice,
    "dirty-source-wiped": dirty_source_wiped,
    "conflict-resolved-by-dropping": conflict_dropped,
    "nuke-loses-commits": nuke_loses,
    "dirty-tree-ignored": dirty_ignored,
    "done-before-work": done_before_work,
    "task-forgotten-on-down": forgotten_on_down,
    "reject-message-lost": reject_lost,
    "message-dropped-while-working": message_dropped,
    "completion-missed": completion_missed,
    "hooks-lost-while-daemon-down": hooks_lost,
    "prompt-lost-on-session-death": prompt_lost,
    "last-semicolon-lost": semicolon_lost,
    "prompt-delivered-twice": delivered_twice,
    "worker-stuck-offline-after-tmux-server-death": stuck_offline,
    "session-without-agent": session_without_agent,
    "duplicate-agent": duplicate_agent,
    "orphan-session-after-nuke": session_left,
    "down-leaves-agents": agents_left,
    "session-prefix-match": prefix,
    "nuke-ends-all-sessions": all_sessions,
    "reaped-on-query-failure": reaped_on_silence,
    "live-work-reaped-by-age": reaped_by_age,
    "add-takes-live-worktree": add_takes,
    "stale-pid-trusted": stale_pid,
    "second-daemon-allowed": second_daemon,
    "up-refused-after-crash": up_refused,
    "status-says-healthy-when-daemon-dead": status_lies,
    "doctor-lies": doctor_lies,
    "rebase-left-half-done": rebase_left,
    "stale-sha-after-rebase": stale_sha,
    "wrong-branch-after-accept": wrong_branch,
    "worktree-reused-dirty": reused_dirty,
    "accept-ignores-status": accept_working,
    "error-exit-zero": exit_zero,
    "crash-traceback": traceback_shown,
}


def test_every_plant_has_a_symptom_or_is_shown_by_mutiny() -> None:
    known = json.loads((Path(__file__).parents[1] / "quality" / "known.json").read_text())
    swept = {plant.name for plant in PLANTS.values() if plant.sweep}
    assert set(SYMPTOMS) <= set(PLANTS)
    assert set(PLANTS) == set(SYMPTOMS) | set(known) | swept


@pytest.mark.parametrize("plant", sorted(SYMPTOMS))
def test_plant(plant: str) -> None:
    for active in (plant, ""):
        box = Box()
        try:
            box.environment["LONGBOAT_PLANT"] = active
            assert SYMPTOMS[plant](box) is bool(active), f"plant active: {bool(active)}"
        finally:
            box.close()
