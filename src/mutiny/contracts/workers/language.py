"""What an experiment may say about workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.observation import Observation
from mutiny.kit import operations as common
from mutiny.kit.language import HEAL_ALL, Language, RollbackLine, doing
from mutiny.kit.sentences import (
    Finding,
    Look,
    Record,
    Sentence,
    Value,
    broken,
    holds,
    pending,
    unknown,
)
from mutiny.model.operation import Kind, Operation, walk

ENDS: Mapping[str, frozenset[str]] = {
    "done": frozenset({"idle", "needs_review", "no_changes"}),
    "failed": frozenset({"error"}),
    "available": frozenset({"idle"}),
    "claimed": frozenset({"working", "rejected", "rebasing"}),
}
"""The words of a board for the statuses of a worker."""
BEHAVIOURS = {
    "healthy": "obey",
    "claim-and-die": "exit",
    "claim-and-hang": "hang",
    "deaf": "no-stop",
}


def _statuses(words: Sequence[str]) -> frozenset[str]:
    """Statuses of workers for words that may be those of a board."""
    found: set[str] = set()
    for word in words:
        found |= ENDS.get(word, frozenset({word}))
    return frozenset(found)


def _unreadable(seen: Observation) -> Finding | None:
    if seen.state_error:
        return pending(f"the state file is unreadable: {seen.state_error}")
    return None


def _all_reach(record: Record, values: Mapping[str, Value]) -> Finding:
    seen: Observation = record.seen
    unready = _unreadable(seen)
    if unready is not None:
        return unready
    wanted = _statuses(values["statuses"])
    others = [
        f"{view.name} is {view.status}"
        for view in seen.workers.values()
        if view.status not in wanted
    ]
    waiting = [*others, *record.pending]
    return pending("; ".join(waiting)) if waiting else holds()


def _none_stuck(record: Record, values: Mapping[str, Value]) -> Finding:
    statuses = _statuses((values["status"],))
    # The limit is the user's own word: a busy machine stretches it, a target's pace does not replace it.
    limit = record.seen.pace.lag(float(values["limit"]))
    longest, who = _longest(record.looks, statuses)
    text = f"longest {longest:.1f} s" + (f" ({who})" if who else "")
    return (
        broken(f"{who} was in {values['status']} for {longest:.1f} s", who)
        if longest > limit
        else holds(text)
    )


def _longest(looks: Sequence[Look], statuses: frozenset[str]) -> tuple[float, str]:
    """The longest time that one worker was seen in one of these statuses, and which worker."""
    since: dict[str, float] = {}
    longest, who = 0.0, ""
    for look in looks:
        seen: Observation = look.seen
        told = seen.believable().workers.items()
        inside = {name for name, view in told if view.status in statuses}
        for name in inside:
            start = since.setdefault(name, look.at)
            if look.at - start > longest:
                longest, who = look.at - start, name
        since = {name: start for name, start in since.items() if name in inside}
    return longest, who


def _one_daemon(record: Record, values: Mapping[str, Value]) -> Finding:
    daemons = record.seen.daemons
    if daemons is None:
        return unknown("the processes of the box could not be listed")
    if len(daemons) > 1:
        return broken(f"{len(daemons)} daemons run")
    return holds()


def _daemon_runs(record: Record, values: Mapping[str, Value]) -> Finding:
    if record.seen.daemons is None:
        return unknown("the processes of the box could not be listed")
    return holds() if record.seen.daemon_alive else pending("the daemon does not run")


_NOT_ITS_OWN = "the state file is what a fault made of it"


def _no_error(record: Record, values: Mapping[str, Value]) -> Finding:
    if record.seen.state_as_left:
        return unknown(_NOT_ITS_OWN)
    for view in record.seen.workers.values():
        if view.status == "error":
            return broken(f"{view.name}: {view.error_reason or 'error'}", view.name)
    return holds()


def _worker_is(record: Record, values: Mapping[str, Value]) -> Finding:
    wanted = _statuses((values["status"],))
    status = record.seen.status_of(values["worker"])
    if status in wanted:
        return holds(f"{values['worker']} is {status}")
    return pending(f"{values['worker']} is {status or 'missing'}")


def _noticed(record: Record, values: Mapping[str, Value]) -> Finding:
    """After a fault a worker was seen away, in error, or with another agent than before."""
    if not record.shocks:
        return pending("no fault has fired yet")
    first = record.shocks[0][0]
    before: dict[str, set[tuple[int, int]]] = {}
    for look in record.looks:
        seen: Observation = look.seen
        for agent in seen.agents or ():
            if agent.alive and look.at <= first:
                before.setdefault(agent.worker, set()).add(agent.identity)
    for look in record.looks:
        if look.at <= first:
            continue
        for view in look.seen.workers.values():
            if view.status in ("offline", "error"):
                return holds(f"{view.name} was {view.status}")
        for agent in look.seen.agents or ():
            if agent.alive and agent.identity not in before.get(agent.worker, set()):
                return holds(f"{agent.worker} got another agent")
    return pending("nothing shows that the fault was noticed")


def _redelivered(record: Record, values: Mapping[str, Value]) -> Finding:
    receipts = record.seen.receipts
    if receipts is None:
        return unknown("the doubles' record could not be read")
    agents: dict[str, set[tuple[int, int]]] = {}
    for receipt in receipts:
        if receipt.token is not None:
            agents.setdefault(receipt.token, set()).add(receipt.agent)
            if len(agents[receipt.token]) > 1:
                return holds(f"{receipt.token} went to another agent of {receipt.worker}")
    return pending("no task was given to a second agent")


def _nothing_lost(record: Record, values: Mapping[str, Value]) -> Finding:
    """Every acknowledged task was received by an agent, or is in a worker's prompt, or is merged."""
    receipts, commits = record.seen.receipts, record.seen.commits
    if receipts is None or commits is None:
        return unknown("the record or the commits could not be read")
    if record.seen.state_as_left:
        return unknown(_NOT_ITS_OWN)
    alternatives = record.model.alternatives
    open_tokens = {
        token
        for token, work in alternatives[0].work.items()
        if work.fate in ("open", "merged") and len(alternatives) == 1
    }
    known = {token for receipt in receipts for token in receipt.tokens}
    known |= {token for commit in commits for token in commit.tokens}
    prompts = " ".join(
        f"{view.prompt} {view.pending_prompt}" for view in record.seen.workers.values()
    )
    missing = sorted(token for token in open_tokens - known if token not in prompts)
    if missing and record.pending:
        return pending(f"{', '.join(missing)} not seen yet")
    return (
        broken(f"{', '.join(missing)} is nowhere", missing[0])
        if missing
        else holds(f"{len(open_tokens)} tasks accounted for")
    )


SENTENCES = (
    Sentence(
        "All tasks eventually reach {statuses:statuses}",
        _all_reach,
        "Every worker ends in one of these; DONE means idle, needs_review or no_changes, FAILED error.",
    ),
    Sentence(
        "All workers [eventually] reach {statuses:statuses}",
        _all_reach,
        "Every worker ends in one of these statuses.",
    ),
    Sentence(
        "No tasks stuck in {status:status} > {limit:duration}",
        _none_stuck,
        "No worker was seen in this status for longer.",
        always=True,
    ),
    Sentence(
        "No worker stuck in {status:status} > {limit:duration}",
        _none_stuck,
        "No worker was seen in this status for longer.",
        always=True,
    ),
    Sentence("At most one daemon", _one_daemon, "Never two daemons.", True, "workers.one_daemon"),
    Sentence("[The] daemon is running", _daemon_runs, "A daemon process of the target lives."),
    Sentence("No worker is in error", _no_error, "No worker has the status error.", always=True),
    Sentence(
        "Worker {worker:word} [eventually] is {status:status}",
        _worker_is,
        "This worker has, or gets, this status.",
    ),
    Sentence(
        "[stale] task detection triggered",
        _noticed,
        "After the fault a worker was seen offline, in error or with a new agent.",
    ),
    Sentence("[The] failure was noticed", _noticed, "The same."),
    Sentence(
        "[The] task [was] reassigned to healthy worker",
        _redelivered,
        "A task went to a second agent process.",
    ),
    Sentence(
        "No acknowledged task is lost",
        _nothing_lost,
        "Every acknowledged task was received, is waiting, or is merged.",
        rule="workers.nothing_lost",
    ),
)


def _chaos_workers(method: Sequence[Operation]) -> tuple[str, ...]:
    """Workers that the method itself brought in."""
    added = [part.worker for item in method for part in walk(item) if isinstance(part, op.Add)]
    return tuple(dict.fromkeys(added))


def _kill_chaos(values: Mapping[str, str], method: Sequence[Operation]) -> tuple[Operation, ...]:
    return tuple(op.Nuke(worker) for worker in _chaos_workers(method))


def _reset_stuck(values: Mapping[str, str], method: Sequence[Operation]) -> tuple[Operation, ...]:
    named = [
        part.worker
        for item in method
        for part in walk(item)
        if isinstance(part, op.Start | op.Message) and part.kind is Kind.COMMAND
    ]
    return tuple(op.ResetWorker(worker) for worker in dict.fromkeys(named))


ROLLBACKS = (
    RollbackLine("Kill [the] chaos worker if still running", _kill_chaos, "Remove added workers."),
    RollbackLine("Kill [the] chaos workers if still running", _kill_chaos, "The same."),
    RollbackLine(
        "Reset any stuck tasks to {status:status}", _reset_stuck, "Reset every worker with a task."
    ),
    HEAL_ALL,
    RollbackLine(
        "Start the daemon again", doing(op.Up()), "The daemon is started if it does not run."
    ),
)


def _spawn(worker: str, behaviour: str) -> tuple[Operation, ...]:
    """A worker whose agent misbehaves, with a task in its hands."""
    turn = BEHAVIOURS.get(behaviour, behaviour)
    return (
        op.Behave(worker, (turn, "obey") if turn == "exit" else (turn,)),
        op.Add(worker),
        op.WaitForIdle(worker),
        op.Start(worker, f"Create a file named {worker}.txt with content 'chaos'"),
    )


LANGUAGE = Language(
    "workers",
    SENTENCES,
    ROLLBACKS,
    setup=(op.Init(), op.Up(), op.Add("alpha"), op.WaitForIdle("alpha")),
    probe=op.Status(),
    settle=(common.Settle(),),
    spawn=_spawn,
    behaviours=(*BEHAVIOURS, "obey", "hang", "exit", "dirty", "nothing", "stray", "no-stop"),
    reaches={
        "KillDaemon": "server",
        "KillTmuxServer": "all workers",
        "CorruptState": "storage",
        "DirtySource": "storage",
        "MoveSource": "storage",
        "Down": "server",
    },
)
