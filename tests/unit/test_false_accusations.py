"""Nothing is said that is not so: pictures of a correct target in which a rule could point at it by
mistake, class by class. Next to each stands what must still be found.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from ledger_cases import LEDGER_CASES
from rule_cases import STATE_CASES
from rule_parts import Case

from builders import (
    AT,
    CONTRACT,
    DAEMON,
    OK,
    REFUSED,
    TOKEN,
    advance,
    agent,
    belief,
    beliefs,
    check_state,
    model,
    ok,
    picture,
    refused,
    view,
    worktree,
)
from mutiny.box.agent import Agent, Command
from mutiny.box.results import ProcessInfo
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.applicability import KEPT_BY, KeptBy, is_kept
from mutiny.contracts.workers.looking import BOOK
from mutiny.contracts.workers.model import Work, WorkersModel, unwell
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.outcomes import served
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.rules import RULES
from mutiny.contracts.workers.steps import follows
from mutiny.kit import base, faults
from mutiny.kit import operations as common
from mutiny.kit.beliefs import GIVEN_UP, distinct
from mutiny.kit.judging import Moment
from mutiny.kit.views import AgentView
from mutiny.model.operation import Operation
from mutiny.model.pace import BOUND, MOST_CROWDING, MOST_LAG, Pace, Patience
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.system.machine import crowding
from mutiny.targets.kit import waits
from mutiny.targets.kit.daemons import Daemons
from mutiny.targets.kit.pacing import Pacing, at_pace
from mutiny.targets.workers.live import WorkersLive

CASES = (*STATE_CASES, *LEDGER_CASES)


def accused(believed: WorkersModel, seen: Observation, **how: object) -> set[str]:
    """The rules that some picture breaks."""
    operation = how.get("operation", common.Sleep())
    assert isinstance(operation, Operation)
    broken, _ = check_state(believed, operation, True, seen, seen, {})
    return {item.violation.rule for item in broken}


# --- somebody must be there to keep a rule true ---------------------------------------------------


def test_every_rule_that_is_judged_by_looking_has_a_keeper() -> None:
    assert set(KEPT_BY) == {case.rule for case in CASES}
    assert set(BOOK.rules) <= set(KEPT_BY) <= set(RULES)


DEAD: dict[str, Any] = {"daemons": (), "daemon_flag": True}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule.removeprefix("workers."))
def test_what_the_daemon_keeps_is_not_asked_while_it_is_dead(case: Case) -> None:
    looked = case.broken
    dead = replace(looked.seen, daemons=())
    broken, _ = check_state(
        looked.model, looked.operation, looked.succeeded, looked.before, dead, {}
    )
    found = {item.violation.rule for item in broken}
    assert not {rule for rule in found if KEPT_BY[rule] is KeptBy.DAEMON}


def test_an_agent_that_ends_its_rebase_while_the_daemon_is_dead_is_nobodys_fault() -> None:
    rebasing = view("alpha", "rebasing")
    believed = model(belief("alpha", "rebasing"), daemon=frozenset({False}), daemon_killed=True)
    ended = {"alpha": worktree(rebasing, rebasing=False, branch=rebasing.branch)}
    seen = picture(rebasing, worktrees=ended)
    assert accused(believed, replace(seen, **DEAD)) == set()
    assert accused(replace(believed, daemon=frozenset({True})), seen) == {
        "workers.rebasing_is_in_rebase"
    }


def test_without_a_process_list_the_rule_is_asked_and_the_step_is_inconclusive() -> None:
    blind = picture(view(), daemons=None)
    assert all(is_kept(rule, model(belief()), blind) for rule in KEPT_BY)


@pytest.mark.parametrize(
    ("what", "excused"), [("memory", True), ("file_size", True), ("descriptors", False)]
)
def test_a_daemon_that_the_kernel_ended_for_a_limit_did_not_die_by_itself(
    what: str, excused: bool
) -> None:
    limit = faults.LowerLimit(what=what, seconds=0.4)
    alive, dead = picture(view()), picture(view(), **DEAD)
    after = advance(model(belief()), limit, OK, seen=dead)
    broken, _ = check_state(after, limit, True, alive, dead, {})
    assert ([item.violation.rule for item in broken] == []) is excused


def test_a_state_that_is_gone_says_nothing_about_who_is_in_it() -> None:
    gone = picture(state_exists=False, daemon_flag=None)
    assert accused(model(belief()), gone) == {"workers.state_readable"}


# --- what a fault wrote is not what the target said ----------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule.removeprefix("workers."))
def test_no_rule_about_the_state_is_asked_of_what_a_fault_wrote(case: Case) -> None:
    looked = case.broken
    seen = replace(looked.seen, state_as_left=True)
    hurt = replace(looked.model, state_damaged=True)
    broken, _ = check_state(hurt, looked.operation, looked.succeeded, looked.before, seen, {})
    assert {item.violation.rule for item in broken} <= {
        rule for rule, keeper in KEPT_BY.items() if keeper is KeptBy.ALWAYS
    }


DAMAGES = (
    *(op.CorruptState(how) for how in op.CORRUPTIONS),
    *(faults.DamageFile(how) for how in faults.DAMAGES),
)
FLIPPED = view("alpha", "working", prompt="")  # one wrong bit in the name of the field


@pytest.mark.parametrize("damage", DAMAGES, ids=str)
@pytest.mark.parametrize(
    "left",
    [
        picture(FLIPPED, state_as_left=True),
        picture(view("alpha", "needs_review"), state_as_left=True),
        picture(state_as_left=True),
        picture(state_as_left=True, state_exists=False, daemon_flag=None),
        picture(state_as_left=True, state_error="not valid JSON", daemon_flag=None),
    ],
    ids=["field", "old", "nobody", "gone", "junk"],
)
@pytest.mark.parametrize("notices", [True, False])
def test_a_damage_accuses_nobody_whatever_follows_at_once(
    damage: Operation, left: Observation, notices: bool
) -> None:
    profile = Profile(notices_damage=notices)
    contract = replace(CONTRACT, profile=profile)
    busy = belief("alpha", "working", tokens=(TOKEN,))
    believed = model(busy, work=(Work(TOKEN, "task", "alpha"),), profile=profile)
    before = picture(view("alpha", "working"))
    current, was = beliefs(believed), before
    # The daemon dies at once: nobody is there who could put anything right.
    dead = replace(left, daemons=())
    for operation, seen in ((damage, left), (op.KillDaemon(), dead), (common.Settle(), dead)):
        done = ok(fired=True)
        answered = contract.judge(current, operation, done, was, seen, AT)
        checked = contract.check(answered.model, operation, True, was, seen)
        assert (answered.violation, checked.broken, checked.settling) == (None, (), ())
        assert checked.model is not None
        current, was = checked.model, seen
    assert contract.pending(current, dead) == ()


def test_a_damage_that_the_daemon_does_not_repair_is_still_a_failure() -> None:
    hurt = advance(model(belief()), op.CorruptState("delete"), OK)
    gone = picture(state_as_left=True, state_exists=False, daemon_flag=None)
    assert hurt.pending(gone) == ("the state file is gone",)
    settled = advance(hurt, common.Settle(), OK)
    assert accused(settled, gone) == {"workers.state_readable"}


@pytest.mark.parametrize("repair", [op.Up(), op.Doctor(repair=True, yes=True)], ids=str)
def test_a_repair_that_was_asked_for_and_refused_is_a_failure_without_a_daemon_too(
    repair: Operation,
) -> None:
    junk = picture(state_as_left=True, state_error="not valid JSON", daemon_flag=None, daemons=())
    nobody = model(belief(), daemon=frozenset({False}), daemon_killed=True)
    hurt = advance(nobody, op.CorruptState("garbage"), OK, seen=junk)
    assert hurt.pending(junk) == ()
    asked = advance(hurt, repair, REFUSED, seen=junk)
    assert asked.pending(junk) == ("the state file is unreadable: not valid JSON",)
    again = advance(asked, op.CorruptState("garbage"), OK, seen=junk)
    assert again.pending(junk) == ()


def test_a_target_with_a_checksum_must_write_its_state_again() -> None:
    profile = Profile(notices_damage=True)
    hurt = advance(model(belief(), profile=profile), faults.DamageFile("flip"), OK)
    assert hurt.pending(picture(view(), state_as_left=True)) == (
        "the state file is still what the fault made of it",
    )
    # What it then wrote is its own.
    own = picture(view("alpha", "working", prompt=""))
    assert "workers.working_has_prompt" in accused(advance(hurt, common.Settle(), OK), own)


def test_what_a_target_without_a_checksum_makes_of_it_is_not_known() -> None:
    believed = model(belief("alpha", "working", tokens=(TOKEN,)), work=(Work(TOKEN, "t", "alpha"),))
    hurt = advance(
        believed, faults.DamageFile("flip"), OK, seen=picture(FLIPPED, state_as_left=True)
    )
    assert hurt.doubted
    later = picture(view("alpha", "working", prompt=""), view("alphb", "idle"))
    assert accused(hurt, later) == set()
    assert hurt.pending(later) == ()
    # Its daemon may not die of it, though, and no command may crash.
    assert accused(hurt, replace(later, daemons=(DAEMON, replace(DAEMON, pid=7)))) == {
        "workers.one_daemon"
    }
    for answer in (ok(), refused("Worker 'alpha' does not exist")):
        judged = CONTRACT.judge(beliefs(hurt), op.Nuke("alpha"), answer, later, later, AT)
        assert judged.violation is None


def test_a_damaged_state_does_not_narrow_the_beliefs() -> None:
    believed = model(belief("alpha", "idle", "working"))
    assert believed.see(picture(view("alpha", "idle"), state_as_left=True)).workers == (
        believed.workers
    )


# --- worlds that were given up -------------------------------------------------------------------


def test_parallel_commands_leave_every_order_possible() -> None:
    both = common.Parallel((op.Start("alpha", "Create a.txt"), op.ResetWorker("alpha")))
    answers = ok(inner=(ok(tokens=(TOKEN,)), ok()))
    before = picture(view())
    ends = {
        "idle": picture(view("alpha", "idle")),
        "working": picture(view("alpha", "working"), agents=(agent(busy=True),)),
    }
    for status, seen in ends.items():
        answered = CONTRACT.judge(beliefs(model(belief())), both, answers, before, seen, AT)
        assert answered.violation is None
        checked = CONTRACT.check(answered.model, both, True, before, seen)
        assert (checked.broken, checked.settling) == ((), ()), status
    odd = picture(view("alpha", "rejected"))
    answered = CONTRACT.judge(beliefs(model(belief())), both, answers, before, odd, AT)
    assert CONTRACT.check(answered.model, both, True, before, odd).broken


def test_worlds_that_were_dropped_mean_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "distinct", lambda models: distinct(models, 1))
    start = op.Start("alpha", "Create a.txt")
    both = common.Parallel((start, op.ResetWorker("alpha")))
    before = picture(view())
    kept_idle = picture(view("alpha", "working"), agents=(agent(busy=True),))
    answered = CONTRACT.judge(
        beliefs(model(belief())),
        both,
        ok(inner=(ok(tokens=(TOKEN,)), ok())),
        before,
        picture(view("alpha", "idle")),
        AT,
    )
    assert answered.model.guessed
    checked = CONTRACT.check(answered.model, common.Sleep(), True, before, kept_idle)
    assert (checked.broken, checked.settling) == ((), ())
    assert GIVEN_UP in checked.unreadable[0]
    refusal = refused("Worker 'alpha' is not idle")
    judged = CONTRACT.judge(answered.model, start, refusal, before, before, AT)
    assert (judged.verdict, judged.violation) == (Verdict.INCONCLUSIVE, None)
    # What is wrong in every world stays wrong.
    crash = replace(refused("boom"), exit_code=None, signal=11)
    judged = CONTRACT.judge(answered.model, start, crash, before, before, AT)
    assert judged.violation is not None


# --- switches of the profile -----------------------------------------------------------------------


@pytest.mark.parametrize("prompt", ["", "Create a.txt"])
def test_where_start_only_takes_the_task_an_idle_worker_may_have_one(prompt: str) -> None:
    later = Profile(start_is_immediate=False)
    taken = belief("alpha", "idle", tokens=(TOKEN,), due_at=AT)
    work = (Work(TOKEN, "task", "alpha"),)
    seen = picture(view("alpha", "idle", prompt=prompt), at=AT + 5)
    assert accused(model(taken, work=work, profile=later), seen) == set()
    assert accused(model(taken, work=work), seen) >= {"workers.nothing_lost"}
    late = replace(seen, at=AT + 100)
    assert accused(model(taken, work=work, profile=later), late) == {"workers.nothing_lost"}


@pytest.mark.parametrize(("status", "sure"), [("working", False), ("needs_review", True)])
def test_who_was_forbidden_everything_at_its_work_may_never_say_that_it_has_ended(
    status: str, sure: bool
) -> None:
    at_work = model(belief("alpha", status, tokens=(TOKEN,), due_at=AT))
    forbidden = faults.Forbid("all", during=op.Nuke("beta"))
    after = follows(at_work, forbidden, Moment(now=AT))
    assert after.workers["alpha"].will_complete is sure


def test_a_child_that_a_killed_daemon_has_just_forked_is_waited_for() -> None:
    """Until it starts its own program it looks like the daemon, which would seem to run on."""
    looks = [(DAEMON,), (DAEMON,), ()]
    live: Any = SimpleNamespace(observer=SimpleNamespace(daemons=lambda: looks.pop(0)))
    killed = OperationResult(fired=True)
    assert WorkersLive._daemon_gone(live, killed) is killed
    assert looks == []
    WorkersLive._daemon_gone(live, OperationResult(fired=False))  # nobody was killed: no look


def test_nobody_hands_out_a_message_while_the_daemon_is_dead() -> None:
    told = belief("alpha", "needs_review", tokens=(TOKEN,), due_at=AT)
    work = (Work(TOKEN, "message", "alpha"),)
    seen = picture(view("alpha", "needs_review"))
    assert accused(model(told, work=work), seen) == {"workers.nothing_lost"}
    nobody = model(told, work=work, daemon=frozenset({False}), daemon_killed=True)
    assert accused(nobody, replace(seen, **DEAD)) == set()


# --- slow is not stuck ---------------------------------------------------------------------------


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_limit_grows_with_the_machine_and_with_the_targets_own_commands() -> None:
    assert Pace().limit(15.0) == 15.0
    assert Pace(crowding=2.0).limit(15.0) == 30.0
    assert Pace(crowding=0.2).limit(15.0) == 15.0
    assert Pace(crowding=1000.0).limit(15.0) == 15.0 * MOST_CROWDING
    assert Pace(command_s=2.7).limit(15.0) == 10 * 2.7
    assert Pace(command_s=0.2).limit(15.0) == 15.0
    assert Pace(crowding=1000.0, command_s=2.7).lag(3.0) == 3.0 * MOST_LAG


def test_a_flag_that_only_tells_of_a_crash_may_stay_over_a_down() -> None:
    for crash_flag in (True, False):
        killed = model(belief(), daemon=frozenset({False}), daemon_killed=True)
        killed = replace(killed, profile=replace(killed.profile, crash_flag=crash_flag))
        after = served(killed, op.Down(), Moment(None))
        assert after.daemon_killed is crash_flag


def test_where_every_command_is_slow_one_more_does_not_hang() -> None:
    assert Pace().answer(20.0) == 20.0
    assert Pace(crowding=1000.0, command_s=0.2).answer(20.0) == 20.0 * MOST_LAG
    assert Pace(crowding=9.0, command_s=6.0).answer(20.0) == 60.0
    assert Pace(crowding=9.0, command_s=12.0).answer(20.0) == 20.0 * BOUND, "never for ever"


@pytest.mark.parametrize(("status", "late"), [(0, False), (1 << 8, False), (9, True)])
def test_who_had_ended_when_its_time_was_up_did_not_hang(status: int, late: bool) -> None:
    sent: list[dict[str, object]] = []
    agent = object.__new__(Agent)
    agent.send = sent.append  # type: ignore[method-assign, assignment]
    silent = [SimpleNamespace(is_open=False, chunks=[], truncated=False) for _ in range(2)]
    command = Command(1, 1, 1, b"", silent)  # type: ignore[arg-type]
    command.timed_out = True
    agent.command_ended(command, status)
    assert [one["timed_out"] for one in sent] == [late]


@pytest.mark.parametrize(
    ("turn", "crowding", "told"),
    [
        ("slow:900", 1.0, "slow:900"),
        ("slow:900", 3.0, "slow:2700"),
        ("slow:900", 1000.0, f"slow:{900 * MOST_CROWDING:.0f}"),
        ("obey", 3.0, "obey"),
        ("slow", 3.0, "slow"),
    ],
)
def test_a_slow_agent_is_slower_where_everything_is(turn: str, crowding: float, told: str) -> None:
    assert at_pace(turn, Pace(crowding)) == told


def test_the_pace_is_measured() -> None:
    clock, crowd = Clock(), [1.0]
    pacing = Pacing(lambda: crowd[0], clock)
    assert pacing.now() == Pace(1.0, 0.0)
    for took in (0.1, 2.7, 2.9):
        pacing.took(took)
    assert pacing.now() == Pace(1.0, 2.7)
    crowd[0] = 5.0
    for _ in range(5):
        clock.now += 1
        pacing.now()
    crowd[0] = 1.0
    clock.now += 50
    assert pacing.now().crowding == 5.0  # what is late now was held up then
    clock.now += 12
    assert pacing.now().crowding == 1.0
    assert crowding() >= 1.0


def test_one_crowded_moment_among_many_proves_nothing() -> None:
    clock, crowd = Clock(), [1.0]
    pacing = Pacing(lambda: crowd[0], clock)
    for second in range(20):
        crowd[0] = 9.0 if second == 3 else 1.0
        clock.now += 1
        pacing.now()
    assert pacing.now().crowding == 1.0
    crowd[0] = 9.0
    for _ in range(10):  # many looks at one moment are one
        clock.now += 0.01
        assert pacing.now().crowding == 1.0


def test_what_moves_is_waited_for_up_to_the_bound_and_is_then_slow() -> None:
    clock = Clock()
    patience = Patience(10.0, clock)
    for second in range(4 * 10):
        assert not patience.over
        patience.saw(second // 6)  # something new every six seconds
        clock.now += 1
    assert patience.over
    assert not patience.stuck
    assert patience.left_s == 0


@pytest.mark.parametrize("wait", [waits.until, waits.until_glanced])
def test_a_wait_on_a_machine_that_gets_busier_lasts_longer(
    monkeypatch: pytest.MonkeyPatch, wait: Any
) -> None:
    clock = Clock()
    monkeypatch.setattr(waits, "Patience", partial(Patience, clock=clock))
    monkeypatch.setattr(waits, "time", SimpleNamespace(monotonic=clock))

    class Live:
        def observe(self) -> Any:
            return SimpleNamespace(standing=lambda: "still")

        def wait_change(self, timeout_s: float) -> None:
            clock.now += 1

        def limit(self, given_s: float) -> float:
            return given_s * (2 if clock.now > began + 5 else 1)

    began = clock.now
    ended = wait(Live(), 10.0, lambda *_: "nothing came")
    assert (ended.timed_out, clock.now - began) == (True, 20)
    assert ended.details == {"stretch": 2.0}


@pytest.mark.parametrize("circle", [1, 2, 3])
def test_what_does_not_move_is_stuck_and_a_circle_is_no_progress(circle: int) -> None:
    clock = Clock()
    patience = Patience(10.0, clock)
    for second in range(12 + circle):
        patience.saw(second % circle)
        clock.now += 1
    assert patience.stuck
    assert patience.over


@pytest.mark.parametrize("rule", ["recovers", "completes"])
def test_the_rules_about_time_count_from_the_last_progress(rule: str) -> None:
    hit = {"disturbed": "KillAgent", "disturbed_at": AT - 100, "offline_allowed": True}
    state = {"recovers": "offline", "completes": "working"}[rule]
    dues: dict[str, dict[str, Any]] = {"recovers": hit, "completes": {"due_at": AT - 100}}
    due = dues[rule]
    seen = picture(view("alpha", state))
    stuck = model(belief("alpha", "idle" if rule == "recovers" else state, **due))
    assert f"workers.{rule}" in accused(stuck, seen)
    moving = stuck.see(seen)  # it was never seen like this: something has moved
    assert f"workers.{rule}" not in accused(moving, seen)
    later = replace(seen, at=AT + 20)
    assert f"workers.{rule}" in accused(moving.see(later), later)
    crowded = replace(later, pace=Pace(crowding=4.0))
    assert f"workers.{rule}" not in accused(moving.see(crowded), crowded)
    assert moving.see(later).workers["alpha"].moved_at == AT


@pytest.mark.parametrize(
    "wait", [op.WaitForNeedsReview("alpha"), common.Settle(), op.WaitForPrompt("alpha")], ids=str
)
def test_a_wait_that_runs_out_while_things_move_is_inconclusive(wait: Operation) -> None:
    due = model(belief("alpha", "working", tokens=(TOKEN,), due_at=0.0))
    seen = picture(view("alpha", "working"))
    late = OperationResult(None, stderr="not yet", timed_out=True)
    moving = replace(late, details={"moving": True})
    assert CONTRACT.judge(beliefs(due), wait, moving, seen, seen, AT).violation is None
    assert CONTRACT.judge(beliefs(due), wait, late, seen, seen, AT).violation is not None


# --- a rule says only what was looked at ---------------------------------------------------------


def test_a_wait_for_a_prompt_does_not_say_what_an_agent_that_died_has_received() -> None:
    hit = {"disturbed": "KillAgent", "disturbed_at": AT - 100, "due_at": AT - 100}
    due = model(belief("alpha", "working", tokens=(TOKEN,), **hit))
    seen = picture(view("alpha", "working"), agents=())
    late = OperationResult(None, stderr="not yet", timed_out=True)
    found = CONTRACT.judge(beliefs(due), op.WaitForPrompt("alpha"), late, seen, seen, AT).violation
    assert found is not None
    assert found.rule == "workers.nothing_lost"
    assert "never received" not in found.message


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (picture(), "worker alpha is missing"),
        (picture(view("alpha", "offline")), "worker alpha is offline"),
        (picture(view(), sessions=frozenset()), "session longboat-alpha does not exist"),
        (picture(view(), agents=()), "worker alpha is idle but has no running agent"),
        (picture(view(), agents=None), None),
        (picture(view(), sessions=None), None),
        (picture(view()), None),
    ],
)
def test_what_is_wrong_with_a_worker_is_what_was_seen(seen: Observation, said: str | None) -> None:
    found = unwell(seen, "alpha")
    assert found is None if said is None else said in (found or "")
    away = model(belief("alpha", disturbed="KillAgent", disturbed_at=0.0, offline_allowed=True))
    broken, _ = check_state(away, common.Sleep(), True, seen, seen, {})
    texts = [i.violation.message for i in broken if i.violation.rule == "workers.recovers"]
    assert len(texts) == (said is not None)
    assert all((said or "") in text.lower() for text in texts)


# --- the daemon is what `up` left ------------------------------------------------------------------


def process(pid: int, *argv: str, parent: int = 1, **marks: Any) -> ProcessInfo:
    plain = ProcessInfo(pid, parent, 1, "S", argv[0], argv, pid, False, of_target=True)
    return replace(plain, **marks)


@pytest.mark.parametrize(
    "argv", [("longboat", "up"), ("python", "/x/sloop", "up"), ("/bin/sh", "wrap", "up"), ("d",)]
)
@pytest.mark.parametrize("hint", ["", "longboat up"])
def test_the_daemon_is_known_by_what_was_started(argv: tuple[str, ...], hint: str) -> None:
    daemons = Daemons(hint)
    running = process(50, *argv)
    others = (
        process(60, "tmux", "new-session"),
        process(61, "claude", parent=60, in_pane=True),
        process(62, "claude", in_pane=True),  # its server was killed
        process(51, "git", "fetch", parent=50),
        process(52, *argv, parent=50),  # just forked
        process(70, *argv[:-1], "status", asked_for=True),
        process(71, "helper", parent=70),
        process(80, "git", "log", of_target=False, asked_for=True),
    )
    daemons.learn((running, *others))
    assert daemons.among((running, *others)) == (running,)
    orphan = process(51, "git", "fetch")  # it outlives the daemon that started it
    assert daemons.among((*others[:3], orphan)) == ()
    again = process(90, *argv)
    assert daemons.among((*others[:3], again)) == (again,)
    assert daemons.among((running, again)) == (running, again)
    assert daemons.among((replace(running, state="Z"),)) == ()


def test_a_daemon_behind_a_script_that_hands_on_its_words_is_the_program() -> None:
    daemons = Daemons()
    daemons.started((50, 1))
    script = process(50, "/bin/sh", "/x/sloop", "serve", "--port", "0")
    program = process(51, "python3", "/y/longboat", "serve", "--port", "0", parent=50)
    inner = process(52, "python3", "-c", "worker", parent=51)
    assert daemons.among((script, program, inner)) == (program,)
    assert daemons.among((script, process(51, "sleep", "1", parent=50))) == (script,)
    assert daemons.among((script, process(51, *script.argv, parent=50))) == (script,), "just forked"


def test_a_bridge_that_starts_the_server_is_not_the_server() -> None:
    daemons = Daemons("^node /x/index.js$")
    daemons.started((50, 1))
    bridge = process(50, "python3", "-IS", "/y/client.py", "bridge", "/tmp", "node", "/x/index.js")
    server = process(51, "node", "/x/index.js", parent=50)
    assert daemons.among((bridge, server)) == (server,)
    assert daemons.among((bridge,)) == (bridge,)
    assert daemons.among((process(51, "node", "/x/index.js"),)), "an orphan of it runs on"


def test_a_daemon_that_mutiny_started_itself_is_known_at_once() -> None:
    daemons = Daemons()
    daemons.started((50, 1))
    running = process(50, "llmc-manual", "up", asked_for=True)
    assert daemons.among((running, process(51, "git", parent=50))) == (running,)
    assert daemons.among((replace(running, start=2),)) == ()


# --- what was before comes again --------------------------------------------------------------------


@pytest.mark.parametrize("asked", [op.Up(), op.Doctor(repair=True)], ids=str)
def test_an_old_copy_of_the_state_tells_of_a_turn_that_has_ended(asked: Operation) -> None:
    ready = belief("alpha", "needs_review", tokens=(TOKEN,))
    again = picture(view("alpha", "working"))
    restored = advance(model(ready, state_damaged=True), asked, OK, seen=again)
    assert "working" in restored.allowed("alpha")
    undamaged = advance(model(ready), asked, OK, seen=again)
    assert "working" not in undamaged.allowed("alpha")


def test_who_was_given_up_is_at_work_again_after_a_new_start() -> None:
    given_up = belief("alpha", "error", tokens=(TOKEN,))
    assert "working" in advance(model(given_up), op.Up(), OK).allowed("alpha")
    assert "idle" in advance(model(belief("alpha", "error")), op.Up(), OK).allowed("alpha")


@pytest.mark.parametrize("status", ["idle", "working"])
@pytest.mark.parametrize("known", [None, agent(pid=201), agent(pid=201, busy=True)])
def test_who_was_cut_off_and_takes_its_time_to_die_is_told_of_once(
    known: AgentView | None, status: str
) -> None:
    def told(*agents: AgentView, before: tuple[AgentView, ...]) -> list[str]:
        first, then = (picture(view("alpha", status), agents=each) for each in (before, agents))
        believed = model(belief("alpha", status))
        broken, _ = check_state(believed, common.Sleep(), True, first, then, {})
        rules = [one.violation.rule for one in broken]
        return [rule for rule in rules if rule == "workers.live_agent_kept"]

    dying = replace(agent(pid=201), cut_off=True)
    dead = replace(dying, alive=False)
    earlier = () if known is None else (known,)
    assert told(dying, agent(), before=(*earlier, agent())), "what ended it came in this step"
    assert not told(dead, agent(), before=(dying, agent())), "and not in the next one"


def test_a_worker_that_only_a_damaged_file_named_never_was() -> None:
    beta = view("beta")
    renamed = picture(replace(beta, name="reta"), state_as_left=True, registered={beta.worktree})
    seen = picture(beta, registered={beta.worktree})
    broken, _ = check_state(model(belief("beta")), common.Sleep(), True, renamed, seen, {})
    assert not broken
    told = replace(renamed, state_as_left=False)
    broken, _ = check_state(model(belief("beta")), common.Sleep(), True, told, seen, {})
    assert [item.violation.rule for item in broken] == ["workers.nuked_is_gone"]


def test_a_command_said_wrongly_and_taken_otherwise_leaves_its_worker_open() -> None:
    """`start --prompt --json`: the option was taken for the prompt, so that no text of ours arrived."""
    wrong = common.Misuse(op.Start("alpha", "Create a.txt"), "too_few")
    taken = OperationResult(0, stdout="started", inner=(OperationResult(0, stdout="started"),))
    idle, busy = picture(view()), picture(view(status="working"))
    answered = CONTRACT.judge(beliefs(model(belief())), wrong, taken, idle, busy, AT)
    assert answered.verdict is Verdict.SUCCESS
    assert any(one.faults for one in answered.model.alternatives), "nobody knows what was done"
    assert all(one.misled for one in answered.model.alternatives)


def test_what_a_wrongly_said_command_told_an_agent_is_unknown() -> None:
    wrong = common.Misuse(op.Start("alpha", "Create a.txt"), "too_few")
    taken = replace(ok(tokens=(TOKEN,)), inner=(ok(tokens=(TOKEN,)),))
    idle = picture(view())
    told = CONTRACT.judge(beliefs(model(belief())), wrong, taken, idle, idle, AT).model
    assert {work.fate for one in told.alternatives for work in one.work.values()} == {"unknown"}


def test_where_a_wrongly_said_command_was_served_a_sequence_expects_wrong_refusals() -> None:
    expected, served = common.ExpectError(op.Message("alpha", "more")), replace(ok(), inner=(ok(),))
    busy, seen = model(belief("alpha", "working")), picture(view(status="working"))

    def verdict(known: WorkersModel) -> Verdict:
        return CONTRACT.judge(beliefs(known), expected, served, seen, seen, AT).verdict

    assert verdict(busy) is Verdict.BUG
    assert verdict(replace(busy, misled=True)) is Verdict.SUCCESS
