"""What experiments and goals may say about a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mutiny.contracts.batch.observation import BatchSeen, ContainerSeen
from mutiny.contracts.batch.operations import Init, Plan, Run, Status
from mutiny.kit.language import Language
from mutiny.kit.operations import Settle
from mutiny.kit.sentences import Check, Finding, Record, Sentence, Value, told, unknown


def _seen(record: Record) -> BatchSeen:
    seen: BatchSeen = record.seen
    return seen


def _run_is(record: Record, values: Mapping[str, Value]) -> Finding:
    seen = _seen(record)
    if seen.error is not None:
        return unknown(seen.error)
    status = "not there" if seen.run is None else seen.run.status
    return told(status == values["status"], f"the run is {status}")


def _task_is(record: Record, values: Mapping[str, Value]) -> Finding:
    run = _seen(record).run
    if _seen(record).error is not None:
        return unknown(str(_seen(record).error))
    known = None if run is None else run.tasks.get(str(values["task"]))
    status = "not there" if known is None else known.status
    return told(status == values["status"], f"{values['task']} is {status}")


def _merged(record: Record, values: Mapping[str, Value]) -> Finding:
    if _seen(record).git is None:
        return unknown("the repository could not be read")
    times = _seen(record).landed(str(values["task"]))
    return told(times > 0, f"it came to the branch {times} times")


def _not_merged(record: Record, values: Mapping[str, Value]) -> Finding:
    if _seen(record).git is None:
        return unknown("the repository could not be read")
    times = _seen(record).landed(str(values["task"]))
    return told(times == 0, f"it came to the branch {times} times")


def _tried(record: Record, values: Mapping[str, Value]) -> Finding:
    tries = len(_seen(record).attempts_of(str(values["task"])))
    return told(tries == values["number"], f"it was tried {tries} times")


def _nothing_runs(record: Record, values: Mapping[str, Value]) -> Finding:
    left = _seen(record).processes
    return told(not left, f"{len(left)} processes run" if left else "nothing runs")


def _logged(record: Record, values: Mapping[str, Value]) -> Finding:
    kinds = _seen(record).event_types
    if values["type"] in _seen(record).no_events:
        return unknown("the target has no such event")
    return told(values["type"] in kinds, f"the log has {len(kinds)} types of events")


def _not_logged(record: Record, values: Mapping[str, Value]) -> Finding:
    kinds = _seen(record).event_types
    return told(values["type"] not in kinds, f"the log has {len(kinds)} types of events")


def _moved(record: Record, values: Mapping[str, Value]) -> Finding:
    git = _seen(record).git
    if git is None:
        return unknown("the repository could not be read")
    own = [head for head in git.heads if not head.foreign]
    return told(bool(own), f"it was moved {len(own)} times")


def _not_moved(record: Record, values: Mapping[str, Value]) -> Finding:
    git = _seen(record).git
    if git is None:
        return unknown("the repository could not be read")
    own = [head for head in git.heads if not head.foreign]
    return told(not own, f"it was moved {len(own)} times")


def _nothing_left(record: Record, values: Mapping[str, Value]) -> Finding:
    seen = _seen(record)
    if seen.git is None:
        return unknown("the repository could not be read")
    left = [*seen.workspaces, *seen.git.left]
    return told(not left, f"there is {left[0]}" if left else "nothing is left")


def _no_secret(record: Record, values: Mapping[str, Value]) -> Finding:
    found = _seen(record).told
    return told(not found, f"it stands in {found[0]}" if found else "it stands nowhere")


def _log_whole(record: Record, values: Mapping[str, Value]) -> Finding:
    seen = _seen(record)
    if not seen.events:
        return told(False, "there is no log")
    return told(not seen.bad_events, "; ".join(seen.bad_events) or f"{seen.events} lines")


def _no_container(record: Record, values: Mapping[str, Value]) -> Finding:
    left = _seen(record).containers
    if left is None:
        return unknown("no container engine answers")
    return told(not left, f"there is {left[0].name}" if left else "there is none")


def _neighbour(record: Record, values: Mapping[str, Value]) -> Finding:
    if _seen(record).containers is None:
        return unknown("no container engine answers")
    return told(_seen(record).neighbour, "as the engine tells")


def _of_container(says: Callable[[ContainerSeen, Mapping[str, Value]], tuple[bool, str]]) -> Check:
    """A sentence about all containers that a task ever had."""

    def check(record: Record, values: Mapping[str, Value]) -> Finding:
        known = _seen(record).contained.values()
        mine = [one for one in known if one.task == values["task"]]
        if not mine:
            return unknown(f"no container of {values['task']} was seen")
        heard = [says(one, values) for one in mine]
        wrong = [text for right, text in heard if not right]
        return told(not wrong, wrong[0] if wrong else heard[0][1])

    return check


def _labelled(one: ContainerSeen, values: Mapping[str, Value]) -> tuple[bool, str]:
    return bool(one.run), f"it is one of task {one.task} and run {one.run!r}"


def _network(one: ContainerSeen, values: Mapping[str, Value]) -> tuple[bool, str]:
    return one.network == values["network"], f"its network is {one.network}"


def _memory(one: ContainerSeen, values: Mapping[str, Value]) -> tuple[bool, str]:
    return one.memory == int(values["number"]) << 20, f"it has {one.memory >> 20} MB"


def _processes(one: ContainerSeen, values: Mapping[str, Value]) -> tuple[bool, str]:
    return one.pids == values["number"], f"it may have {one.pids} processes"


def _mounts(one: ContainerSeen, values: Mapping[str, Value]) -> tuple[bool, str]:
    return not one.writes, f"it may change {one.writes[0]}" if one.writes else "nothing else"


def _user(one: ContainerSeen, values: Mapping[str, Value]) -> tuple[bool, str]:
    return not one.stranger, f"it works as {one.stranger or 'the one who started the run'}"


def _now(text: str, check: Check, meaning: str) -> Sentence:
    return Sentence(text, check, meaning, momentary=True)


_INSPECTED = "Of each that was seen, as the engine tells."
LANGUAGE = Language(
    "batch",
    (
        _now("[The] run is {status:word}", _run_is, "In the target's state."),
        _now("Task {task:word} is merged", _merged, "As git tells."),
        _now("Task {task:word} is not merged", _not_merged, "As git tells."),
        _now("Task {task:word} is {status:word}", _task_is, "In the target's state."),
        _now("Task {task:word} was tried {number:number} times", _tried, "As its agents say."),
        _now("Event {type:word} was logged", _logged, "In the target's event log."),
        _now("Event {type:word} was not logged", _not_logged, "In the target's event log."),
        _now("[The] branch has moved", _moved, "By the target."),
        _now("[The] branch has not moved", _not_moved, "By the target."),
        _now("Nothing is left running", _nothing_runs, "In the box."),
        _now("Nothing is left behind", _nothing_left, "Workspaces, references, half merges."),
        _now("No container is left", _no_container, "As the engine tells."),
        _now("Somebody else's container is still there", _neighbour, "As the engine tells."),
        *(
            _now(f"[The] container of {{task:word}} {text}", _of_container(says), _INSPECTED)
            for text, says in (
                ("is labelled", _labelled),
                ("has network {network:word}", _network),
                ("has {number:number} MB of memory", _memory),
                ("may have {number:number} processes", _processes),
                ("changes its workspace alone", _mounts),
                ("works as its user", _user),
            )
        ),
        _now("No secret is written down", _no_secret, "In any file of the home."),
        _now("[The] log is well-formed", _log_whole, "Every line, with its fields."),
    ),
    setup=(Init(), Plan(("a", "b needs=a")), Run()),
    probe=Status(),
    settle=(Settle(),),
)
