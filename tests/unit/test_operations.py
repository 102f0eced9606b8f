"""Operations are data: they survive being written down, and read as people write them."""

from __future__ import annotations

import json

import pytest

from mutiny.codec import decode_operation
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.operations import OPERATIONS, STATUSES, awaited_status
from mutiny.contracts.workers.scenarios import SCENARIOS
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.operations import worker_of
from mutiny.model.operation import Kind, Operation, walk

SAMPLES: tuple[Operation, ...] = (
    common.Reset(),
    common.Sleep(0.25),
    op.Behave("alpha", ("slow:400", "obey")),
    common.Settle(),
    op.Init(),
    op.Up(),
    op.Down(),
    op.Add("alpha", "opus"),
    op.Nuke("alpha"),
    op.Start("alpha", "Create 'a|b'.txt\nwith \"quotes\" and ünïcode"),
    op.Message("alpha", "Use uppercase"),
    op.Attach("alpha"),
    op.Review("alpha"),
    op.Accept("alpha"),
    op.Reject("Again"),
    op.Rebase("alpha"),
    op.ResetWorker("alpha"),
    op.Doctor(repair=True, yes=True),
    op.Status(),
    op.WaitForState("alpha", "rebasing", 2.5),
    op.WaitForIdle("alpha"),
    op.WaitForNeedsReview("alpha", timeout_seconds=3.0),
    op.WaitForPrompt("alpha"),
    op.WaitForTurnEnd("alpha"),
    op.AssertState("alpha", "idle"),
    op.AssertOnTop("alpha"),
    op.AssertAuthor("alpha"),
    op.AssertWorkerExists("alpha"),
    op.AssertSessionAlive("alpha"),
    op.KillDaemon(),
    op.KillDaemon(op.Add("alpha"), 12),
    op.KillTmuxSession("alpha"),
    op.KillTmuxServer(),
    op.KillAgent("alpha"),
    op.PauseProcess("agent", 0.1, "alpha", during=op.Message("alpha", "hello")),
    op.CorruptState("truncate"),
    op.DirtySource(undo=True),
    op.MoveSource("docs/x.md"),
    common.ExpectError(op.Start("nobody", "x")),
    op.ReviewNext(),
    common.WrongSetting(op.Status(), "boolean", 1),
    op.AcceptReviewed(),
    common.Misuse(op.Nuke("alpha"), "too_few"),
    op.TypeIn("alpha", "Create x"),
    op.Neighbour(),
    common.Choice((op.Up(), op.KillTmuxSession("beta"))),
    common.Parallel((op.Accept("alpha"), op.Accept("alpha"))),
    common.Trace(op.Accept("alpha"), "files"),
    common.CrashAt(op.Accept("alpha"), 3),
    common.KillAt(op.Start("alpha", "x"), 0),
    common.FailAt(op.Accept("alpha"), 2, "EIO"),
    common.FailReadAt(op.Accept("alpha"), 2, "EACCES"),
    common.FullAt(op.Accept("alpha"), 2),
    common.TearAt(op.Accept("alpha"), 2, "short"),
    common.PowerLossAt(op.Accept("alpha"), 7),
    common.Interleave((op.Accept("alpha"), op.Nuke("alpha")), "0x1 1x2"),
    faults.FillDisk("inodes", "source", during=op.Accept("alpha")),
    faults.ReadOnlyDisk(lasting=True),
    faults.SlowFiles(5.0, during=op.Up()),
    faults.Forbid("all", seconds=0.5),
    faults.HoldLock(how="posix", during=op.Up(), seconds=0.5),
    faults.DamageFile("flip", seed=7),
    faults.SkewClock("alpha", offset_s=-3600.0, rate=2.0, lasting=True),
    faults.Partition("api", "to", "reject", 0.25, seconds=1.0),
    faults.SlowLink(kilobits_per_s=100, lasting=True),
    faults.SilentClient(lasting=True),
    faults.LowerLimit("agent", "memory", 4096, "alpha", lasting=True),
    faults.LimitProcesses(2, seconds=1.0),
    faults.StarveCpu(0.1, lasting=True),
    common.KillDuring(op.Accept("alpha"), 40.0, whole=False),
    common.Heal(),
)


def read_back(operation: Operation) -> Operation:
    text = json.dumps(operation.as_json())
    return decode_operation(json.loads(text), OPERATIONS, where="test")


def test_there_is_a_sample_of_every_operation() -> None:
    assert {sample.type for sample in SAMPLES} == set(OPERATIONS)


@pytest.mark.parametrize("operation", SAMPLES, ids=lambda sample: sample.type)
def test_survives_being_written_down(operation: Operation) -> None:
    again = read_back(operation)
    assert again == operation
    assert type(again) is type(operation)
    assert again.as_json() == operation.as_json()


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_survives_being_written_down(name: str) -> None:
    assert tuple(read_back(operation) for operation in SCENARIOS[name]) == SCENARIOS[name]


def test_defaults_are_left_out_of_the_written_form() -> None:
    assert op.Add("alpha").as_json() == {"type": "Add", "args": {"worker": "alpha"}}
    assert op.Doctor().as_json() == {"type": "Doctor", "args": {}}
    assert op.Doctor(yes=True).as_json() == {"type": "Doctor", "args": {"yes": True}}


@pytest.mark.parametrize(
    ("operation", "short"),
    [
        # As the terminal shows them.
        (common.Reset(), "Reset"),
        (op.Init(), "Init"),
        (op.Up(), "Up"),
        (op.Add("alpha"), 'Add(worker="alpha")'),
        (op.WaitForIdle("alpha"), 'WaitForIdle("alpha")'),
        (op.Start("alpha", "Create a.txt"), 'Start(worker="alpha", ...)'),
        (op.WaitForNeedsReview("alpha"), 'WaitForNeedsReview("alpha")'),
        (op.Accept("alpha"), 'Accept(worker="alpha")'),
        (op.Review("beta"), 'Review(worker="beta")'),
        # The same manners for the rest.
        (op.Add("alpha", "opus"), 'Add(worker="alpha", ...)'),
        (op.Reject("Again"), "Reject(...)"),
        (op.KillDaemon(), "KillDaemon"),
        (op.KillTmuxSession("gamma"), 'KillTmuxSession("gamma")'),
        (op.WaitForState("beta", "rebasing"), 'WaitForState("beta", status="rebasing")'),
        (op.Doctor(repair=True, yes=True), "Doctor(repair=True, yes=True)"),
        (common.Sleep(0.5), "Sleep(seconds=0.5)"),
        (common.ExpectError(op.Start("x", "test")), 'ExpectError(Start(worker="x", ...))'),
        (common.Choice((op.Up(), op.Nuke("a"))), 'Choice([Up, Nuke(worker="a")])'),
    ],
    ids=str,
)
def test_one_line_form(operation: Operation, short: str) -> None:
    assert operation.short() == short


@pytest.mark.parametrize(
    ("operation", "full"),
    [
        (common.Reset(), "Reset()"),
        (op.KillDaemon(), "KillDaemon()"),
        (
            op.Start("alpha", "Create test.txt"),
            'Start(worker="alpha", prompt="Create test.txt")',
        ),
        (op.WaitForNeedsReview("alpha"), 'WaitForNeedsReview("alpha")'),
        (op.Accept("alpha"), 'Accept(worker="alpha")'),
        (op.Behave("a", ("hang",)), 'Behave(worker="a", turns=["hang"])'),
        (
            common.ExpectError(op.Start("x", "two\nlines")),
            'ExpectError(Start(worker="x", prompt="two\\nlines"))',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else value.type,
)
def test_complete_form(operation: Operation, full: str) -> None:
    assert str(operation) == full


@pytest.mark.parametrize("operation", SAMPLES, ids=lambda sample: sample.type)
def test_the_complete_form_is_python_that_makes_the_same_operation(operation: Operation) -> None:
    made = eval(str(operation), dict(OPERATIONS))
    assert made.as_json() == operation.as_json()


@pytest.mark.parametrize("operation", SAMPLES, ids=lambda sample: sample.type)
def test_both_forms_stay_on_one_line(operation: Operation) -> None:
    assert "\n" not in str(operation)
    assert "\n" not in operation.short()


@pytest.mark.parametrize("operation", SAMPLES, ids=lambda sample: sample.type)
def test_every_operation_says_what_it_is_for(operation: Operation) -> None:
    assert (type(operation).__doc__ or "").strip()
    assert isinstance(operation.kind, Kind)


def test_walk_reaches_everything_inside() -> None:
    inner = op.PauseProcess("daemon", during=op.Up())
    whole = common.Parallel((inner, op.Down()))
    assert list(walk(whole)) == [whole, inner, op.Up(), op.Down()]


def test_worker_and_awaited_status() -> None:
    assert worker_of(op.Start("alpha", "x")) == "alpha"
    assert worker_of(op.Up()) is None
    assert worker_of(op.PauseProcess("daemon")) is None
    assert awaited_status(op.WaitForIdle("a")) == "idle"
    assert awaited_status(op.WaitForNeedsReview("a")) == "needs_review"
    assert awaited_status(op.WaitForState("a", "rebasing")) == "rebasing"
    assert awaited_status(op.AssertState("a", "idle")) is None


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_can_be_waited_for_and_asserted(status: str) -> None:
    op.WaitForState("a", status)
    op.AssertState("a", status)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: op.WaitForState("a", "idel"), "idel"),
        (lambda: op.AssertState("a", "idel"), "idel"),
        (lambda: op.PauseProcess("kernel"), "kernel"),
        (lambda: op.PauseProcess("agent"), "needs its worker"),
        (lambda: op.CorruptState("burn"), "burn"),
        (lambda: common.CrashAt(op.Up(), -2), "negative, except -1"),
        (lambda: common.KillAt(op.Up(), common.AFTER_LAST), "must not be negative"),
        (lambda: common.FailAt(op.Up(), 1, "EVERYTHING"), "EVERYTHING"),
        (lambda: op.KillDaemon(op.Up()), "both or neither"),
        (lambda: op.KillDaemon(None, 3), "both or neither"),
        (lambda: op.KillDaemon(op.Up(), 5000), "from 0 to"),
        (lambda: op.KillDaemon(op.Behave("alpha", ("obey",)), 3), "must be a command"),
        (lambda: common.TearAt(op.Up(), 1, "softly"), "softly"),
        (lambda: op.Behave("a", ()), "turn"),
        (lambda: common.Sleep(-1.0), "seconds"),
        (lambda: op.PauseProcess("daemon", -1.0), "seconds"),
        (lambda: common.Choice(()), "option"),
        (lambda: common.Parallel(()), "2 to 4"),
        (lambda: common.Parallel(tuple(op.Up() for _ in range(5))), "2 to 4"),
        # A refusal is an answer of the target; Mutiny's own steps give none.
        (lambda: common.ExpectError(op.AssertState("a", "idle")), "AssertState"),
        (lambda: common.ExpectError(op.KillDaemon()), "KillDaemon"),
    ],
)
def test_nonsense_cannot_be_made(make: object, word: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=word):
        make()


def test_a_command_can_be_said_wrongly() -> None:
    argv = ("boat", "nuke", "alpha", "--yes")
    said = {how: common.Misuse(op.Status(), how).said(argv) for how in common.MISUSES}
    assert said == {
        "unknown_option": (*argv, "--no-such-option"),
        "too_few": ("boat", "nuke", "--yes"),
        "too_many": (*argv, "one-too-many"),
        "wrong_type": (*argv, "one-too-many"),  # there is no number in it
    }
    wrong = common.Misuse(op.Status(), "wrong_type")
    assert wrong.said(("boat", "add", "-p", "5", "x")) == ("boat", "add", "-p", "many", "x")


def test_a_question_can_be_left_unanswered() -> None:
    wrong = common.Misuse(op.Nuke("alpha"), common.UNCONFIRMED)
    assert wrong.said(("boat", "nuke", "alpha", "--yes", "--json")) == (
        *("boat", "nuke", "alpha", "--json"),
    )


def test_an_option_that_lacks_its_value_takes_no_other_word_for_it() -> None:
    said = common.Misuse(op.Start("alpha", "x"), "too_few").said
    assert said(("boat", "start", "--prompt", "x", "--json")) == (
        *("boat", "start", "--json", "--prompt"),
    )
    assert said(("boat", "list", "--json")) == ("boat", "--json")
    assert said(("boat", "--json")) == ("--json",)


def test_a_tool_can_be_told_something_wrong() -> None:
    given = {"id": "a", "priority": 5, "payload": "x"}
    told = {how: common.Misuse(op.Status(), how).told(given) for how in common.MISUSES}
    assert told["too_few"] == {"id": "a", "priority": 5}
    assert told["wrong_type"] == {**given, "priority": "many"}
    assert told["unknown_option"] == {**given, "no_such_argument": "one-too-many"}
    assert common.Misuse(op.Status(), "too_few").told({}) == {"no_such_argument": "one-too-many"}


def test_a_command_that_says_no_number_is_said_wrongly_in_another_way() -> None:
    wrong = common.Misuse(op.Status(), "wrong_type")
    assert wrong.said(("boat", "claim", "w1")) == ("boat", "claim", "w1", "one-too-many")
    assert wrong.said(("boat", "claim", "7", "--json")) == ("boat", "claim", "many", "--json")
    assert wrong.told({"worker": "w1"}) == {"worker": "w1", "no_such_argument": "one-too-many"}
    assert wrong.told({"worker": "w1", "token": 7}) == {"worker": "w1", "token": "many"}
