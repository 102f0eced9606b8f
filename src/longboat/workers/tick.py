"""One tick of the daemon: hear the hooks, heal the workers, hand out the prompts.

The order is the point. Death is looked at first, hooks are read after it: so a hook that an agent
left before it died is always known before its death is acted upon.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from longboat.errors import LongboatError
from longboat.planting import planted
from longboat.workers import agents, delivery, landing, lifecycle, processes, spool, tmuxctl, turns
from longboat.workers.config import Config
from longboat.workers.opening import opened
from longboat.workers.state import CLEARED, CLEARING, RECEIVED, TYPED, TYPING, Daemon, Task, Worker
from longboat.workers.store import Home, sweep_leftovers, write_log
from longboat.workers.tmuxctl import Listing
from longboat.workers.transaction import Transaction

DELIVERABLE = ("working", "rejected", "rebasing")
_QUICK_DEATH_S = 5.0
_BACKOFF_LIMIT_S = 30.0
_SECOND_LOOK_S = 0.3


class Typing(NamedTuple):
    """A text that is recorded as being typed; the typing itself happens without the lock."""

    worker: str
    prompt_id: str
    pane: str
    pid: int
    text: str


class Memory:
    """What the daemon may forget when it dies."""

    def __init__(self) -> None:
        self.first = True
        self.tmux_answers = True
        self.quick_deaths: dict[str, int] = {}
        self.buried: dict[str, processes.Identity] = {}
        self.not_before: dict[str, float] = {}
        self.quiet: dict[str, tuple[str, float]] = {}
        self.quiet_looked: dict[str, float] = {}
        self.since = time.monotonic()

    def trusted(self, workers: Iterable[Worker]) -> set[str]:
        """Plants only: workers whose agent was there before this daemon."""
        return {w.name for w in workers if w.agent is not None and w.agent.since < self.since}


def tick(
    home: Home, config: Config, memory: Memory, me: Daemon, *, patrol: bool
) -> list[processes.Identity]:
    """Do everything that is to be done now; returns the agents whose death is of interest.

    Raises only what concerns the whole home.
    """
    listing = tmuxctl.list_panes() if patrol else Listing(False)
    if patrol and listing.known != memory.tmux_answers:
        memory.tmux_answers = listing.known
        silence = f"tmux does not answer ({listing.complaint}): nobody is judged until it does"
        write_log(home, "tmux answers again" if listing.known else silence)
    with opened(home, config, "daemon") as transaction:
        _sign_in(transaction, memory, me)
        typings = _work(transaction, memory, listing, patrol)
        memory.first = False
        workers = transaction.book.state.workers.values()
        living = [worker.agent.identity for worker in workers if worker.agent]
    if typings:
        _type(home, config, typings)
    return living


def _sign_in(transaction: Transaction, memory: Memory, me: Daemon) -> None:
    state = transaction.book.state
    if state.daemon != me or not state.daemon_running:
        transaction.book.state = state._replace(daemon=me, daemon_running=True)
    if not memory.first:
        return
    sweep_leftovers(transaction.home)
    for worker in state.workers.values():
        worker = _with_planted_amnesia(transaction, worker)
        if lifecycle.never_came_up(worker):
            worker = lifecycle.try_again(worker)
        if worker.status == "offline" and worker.resume != "idle":
            worker = worker._replace(status=worker.resume, resume="idle")
        if worker.status in DELIVERABLE:  # it goes on, also with what was given up before
            state = transaction.book.state.with_task_state(worker.task_id, "active")
            transaction.book.state = state
        transaction.put(worker)


def _with_planted_amnesia(transaction: Transaction, worker: Worker) -> Worker:
    """Plants only: what a restarted daemon gets wrong in other orchestrators."""
    if planted("sha-dropped-on-daemon-death"):
        worker = worker._replace(commit_sha=None)
    if planted("duplicate-agent") and worker.agent is not None:
        session = f"longboat-{worker.name}-{transaction.book.state.generation}"
        worker = worker._replace(agent=None, session=session)
    if planted("prompt-delivered-twice") and worker.inflight is not None:
        inbox = (worker.inflight.prompt, *worker.inbox)
        worker = worker._replace(inflight=None, inbox=inbox)
    if planted("merged-twice-after-crash"):
        landing.merge_again(transaction)
    if planted("hooks-lost-while-daemon-down"):
        spool.remove(transaction.home, tuple(spool.names(transaction.home)))
    return worker


def _work(transaction: Transaction, memory: Memory, listing: Listing, patrol: bool) -> list[Typing]:
    dead = {
        name for name, worker in transaction.book.state.workers.items() if agents.is_dead(worker)
    }
    if planted("stale-pid-trusted"):
        dead -= memory.trusted(transaction.book.state.workers.values())
    hear(transaction)
    typings = []
    for name in list(transaction.book.state.workers):
        if name in transaction.book.state.intents:
            continue  # its interrupted change could not be finished: nothing else may touch it
        try:
            typing = _heal(transaction, memory, name, listing, dead=name in dead, patrol=patrol)
        except (LongboatError, OSError) as error:
            transaction.log(f"{name}: {error}")
            continue
        if typing is not None:
            typings.append(typing)
    transaction.save()
    return typings


def hear(transaction: Transaction) -> None:
    """Apply all waiting hooks, save, and only then remove them."""
    book, home = transaction.book, transaction.home
    waiting = spool.names(home)
    if not waiting:
        return
    applied = [name for name in book.state.applied if name in waiting]
    postponed: set[str] = set()
    for event in spool.read(home, book.state.applied):
        if event.worker in postponed or event.worker in book.state.intents:
            continue
        worker = book.state.workers.get(event.worker)
        if worker is not None and worker.agent is None and event.spawn == worker.spawning:
            # Its starter died before it could enrol this agent; once adopted, it will be heard.
            postponed.add(event.worker)
            continue
        if worker is not None:
            before = book.state
            try:
                _apply(transaction, worker, event)
            except (LongboatError, OSError) as error:
                book.state = before
                postponed.add(event.worker)
                transaction.log(f"{event.worker}: {event.kind} is tried again later: {error}")
                continue
        applied.append(event.name)
    book.state = book.state._replace(applied=tuple(applied))
    transaction.save()
    spool.remove(home, book.state.applied)


def _apply(transaction: Transaction, worker: Worker, event: spool.Event) -> None:
    outcome = delivery.apply(worker, event)
    transaction.log(f"{worker.name}: {outcome.note}")
    worker = transaction.put(outcome.worker)
    if outcome.manual_prompt and worker.agent is not None:
        _typed_by_hand(transaction, worker, outcome.manual_prompt)
    elif outcome.turn_ended:
        turns.finish(transaction, worker)
    elif planted("done-before-work") and event.kind == "UserPromptSubmit":
        head = transaction.git.head(worker.worktree)
        transaction.put(worker._replace(status="needs_review", commit_sha=head))


def _typed_by_hand(transaction: Transaction, worker: Worker, text: str) -> None:
    """A person typed into the agent's terminal: that is work like any other."""
    agent = worker.agent
    if agent is None or worker.status not in ("idle", "needs_review", "no_changes", "error"):
        return
    worker = give_task(transaction, worker, text) if worker.task_id is None else worker
    state = transaction.book.state.with_task_state(worker.task_id, "active")
    transaction.book.state = state
    prompt = delivery.new_prompt("manual", text, worker.task_id or "")
    worker = worker._replace(inbox=(prompt,), status="working", error_reason=None)
    worker = delivery.begin_typing(
        worker, agent, transaction.git.head(worker.worktree), agent.since
    )
    if worker.inflight is not None:
        worker = worker._replace(inflight=worker.inflight._replace(stage=RECEIVED))
    transaction.put(worker)


def give_task(transaction: Transaction, worker: Worker, text: str) -> Worker:
    """A new task for a worker that has none; it is in the state, not yet in the inbox."""
    task = Task(os_id(), worker.name, text, "active")
    if not planted("task-not-accounted"):
        transaction.book.state = transaction.book.state.with_task(task)
    return worker._replace(task_id=task.id, current_prompt=text)


def os_id() -> str:
    """An id that no crash and no lost state can give twice."""
    import os

    return f"t{os.urandom(5).hex()}"


def _heal(
    transaction: Transaction,
    memory: Memory,
    name: str,
    listing: Listing,
    *,
    dead: bool,
    patrol: bool,
) -> Typing | None:
    """Bring one worker nearer to health; returns a text that is to be typed to its agent."""
    worker = transaction.book.state.workers[name]
    now = time.monotonic()
    lost = patrol and transaction.git.admin_directory(worker.worktree) is None
    if lost and not planted("worktree-dropped-after-accept"):
        worker = _heal_worktree(transaction, worker)
    agent = worker.agent
    if agent is not None and not dead and patrol:
        worker, dead = _look_at_living(transaction, memory, worker, listing, now)
    if dead and worker.agent is not None:
        worker = _bury(transaction, memory, worker, now)
    elif worker.agent is None and worker.inflight is not None:
        worker = turns.agent_died(transaction, worker)
    if worker.agent is None:
        worker = _start_if_due(transaction, memory, worker, now)
    transaction.put(worker)
    return _hand_out(transaction, worker, now)


def _heal_worktree(transaction: Transaction, worker: Worker) -> Worker:
    worker = agents.end(transaction, worker)
    transaction.put(worker)
    lifecycle.repair_worktree(transaction, worker)
    if worker.status == "rebasing":
        # The rebase went with the worktree; the commits are on the branch as they were before.
        queue = (worker.inflight.prompt,) if worker.inflight else ()
        left = tuple(one for one in (*queue, *worker.inbox) if one.kind != "conflict")
        worker = worker._replace(inflight=None, inbox=left, rebase_onto="")
        worker = worker._replace(
            status="working" if left else "needs_review",
            commit_sha=transaction.git.head(worker.worktree),
        )
    return transaction.put(worker)


def _look_at_living(
    transaction: Transaction, memory: Memory, worker: Worker, listing: Listing, now: float
) -> tuple[Worker, bool]:
    """Decide on patrol whether a living agent must be ended; True when it then is dead."""
    agent, inflight, config = worker.agent, worker.inflight, transaction.config
    if agent is None or (planted("stale-pid-trusted") and memory.trusted([worker])):
        return worker, False
    if tmuxctl.is_gone(listing, worker.session, agent.server):
        # Its terminal is certainly gone. It is probably dying of that: give it a moment.
        processes.wait_dead([agent.identity], _SECOND_LOOK_S)
        return _end_living(transaction, worker, "its session is gone"), True
    if not listing.known and planted("offline-on-query-failure"):
        return lifecycle.offline(worker), False
    if not listing.known:
        return worker, False  # while tmux is silent nobody is judged
    if not agent.ready and now - agent.since > config.start_timeout_secs:
        return _end_living(transaction, worker, "it started but never reported"), True
    if inflight is None:
        return worker, False
    waited = now - inflight.since
    unheard = inflight.stage in (CLEARING, TYPING, TYPED) or planted("long-turn-cut-off")
    if unheard and waited > config.ack_timeout_secs:
        return _end_living(transaction, worker, f"no answer in the stage '{inflight.stage}'"), True
    too_old = planted("live-work-reaped-by-age") and inflight.stage == RECEIVED and waited > 1.0
    if too_old and transaction.git.head(worker.worktree) == inflight.head:
        return _end_living(transaction, worker, "no commit for too long"), True
    if inflight.stage == RECEIVED and _missed_its_end(transaction, memory, worker, now):
        transaction.log(f"{worker.name}: done, and its end was missed")
        worker = worker._replace(agent=agent._replace(owes_stop=True))
        return turns.finish(transaction, worker), False
    return worker, False


def _end_living(transaction: Transaction, worker: Worker, why: str) -> Worker:
    """End an agent, prove it, and then listen once more: it may have spoken in its last moment."""
    transaction.log(
        f"{worker.name}: ending agent {worker.agent.pid if worker.agent else '?'}: {why}"
    )
    agent = worker.agent
    agents.end(transaction, worker)
    if agent is not None and processes.is_alive(agent.identity):
        raise LongboatError(f"agent {agent.pid} of worker '{worker.name}' is not dead")
    hear(transaction)
    return transaction.book.state.workers[worker.name]


def _missed_its_end(transaction: Transaction, memory: Memory, worker: Worker, now: float) -> bool:
    if planted("completion-missed", "hooks-lost-while-daemon-down"):
        return False
    limit_s = transaction.config.missed_completion_secs
    inflight = worker.inflight
    if inflight is None or now - inflight.since < limit_s:
        return False
    if now - memory.quiet_looked.get(worker.name, 0.0) < min(limit_s / 4, 30.0):
        return False
    memory.quiet_looked[worker.name] = now
    mark = turns.looks_done_while_alive(transaction, worker)
    if not mark:
        memory.quiet.pop(worker.name, None)
        return False
    known, since = memory.quiet.get(worker.name, ("", now))
    if known != mark:
        memory.quiet[worker.name] = (mark, now)
        return False
    return now - since >= limit_s


def _bury(transaction: Transaction, memory: Memory, worker: Worker, now: float) -> Worker:
    """A dead agent: what it had is finished or queued again, and the next start is timed."""
    agent = worker.agent
    if agent is None:
        return worker
    lived = now - agent.since
    # Once for each agent: a tick whose result could not be saved comes again, and buries it again.
    if memory.buried.get(worker.name) != agent.identity:
        memory.buried[worker.name] = agent.identity
        quick = memory.quick_deaths.get(worker.name, 0) + 1 if lived < _QUICK_DEATH_S else 0
        memory.quick_deaths[worker.name] = quick
        if quick > 1 and not planted("restarted-without-pause"):
            memory.not_before[worker.name] = now + min(0.1 * 2**quick, _BACKOFF_LIMIT_S)
    gives_up = planted("worker-stuck-offline-after-tmux-server-death")
    if gives_up and not processes.is_alive(agent.server):
        memory.not_before[worker.name] = float("inf")
        worker = lifecycle.offline(worker)
    failures = worker.spawn_failures + (0 if agent.ready else 1)
    worker = turns.agent_died(transaction, worker._replace(spawn_failures=failures))
    if failures >= transaction.config.max_attempts and worker.status != "error":
        reason = f"the agent ended {failures} times before it was ready"
        command = agents.command_line(transaction, worker)
        if agents.command_is_missing(command):
            reason += f" (command not found: {command.removeprefix('exec ').split()[0]})"
        transaction.log(f"{worker.name}: {reason}")
        resume = worker.resume if worker.status == "offline" else worker.status
        worker = worker._replace(status="error", error_reason=reason, resume=resume)
    return transaction.put(worker)


def _start_if_due(transaction: Transaction, memory: Memory, worker: Worker, now: float) -> Worker:
    if not delivery.wants_agent(worker) or now < memory.not_before.get(worker.name, 0.0):
        return worker
    return agents.start(transaction, worker, again=worker.name in memory.quick_deaths)


def _hand_out(transaction: Transaction, worker: Worker, now: float) -> Typing | None:
    """Start the delivery of the next prompt; it is saved before anything is typed."""
    agent, inflight = worker.agent, worker.inflight
    if agent is None or not agent.ready or worker.status not in DELIVERABLE:
        return None
    if inflight is None and not worker.inbox:
        return None
    if inflight is not None and inflight.stage != CLEARED:
        return None
    if inflight is None and delivery.needs_clear(agent, worker.inbox[0]):
        worker = transaction.put(delivery.begin_clear(worker, agent, now))
        text = "/clear"
    else:
        head = transaction.git.head(worker.worktree)
        worker = transaction.put(delivery.begin_typing(worker, agent, head, now))
        text = delivery.typed_text(worker.inflight.prompt.text) if worker.inflight else ""
    prompt = worker.inflight.prompt if worker.inflight else None
    if prompt is None:
        return None
    what = text if text == "/clear" else f"{prompt.kind} {prompt.id}"
    transaction.log(f"{worker.name}: typing {what} to agent {agent.pid}")
    return Typing(worker.name, prompt.id, agent.pane, agent.pid, text)


def _type(home: Home, config: Config, typings: list[Typing]) -> None:
    """Type without the lock (it may take a while), then note how it went."""
    answers = []
    for one in typings:
        text = one.text.removesuffix(";") if planted("last-semicolon-lost") else one.text
        answers.append(tmuxctl.type_text(one.pane, one.pid, text, config.submit_delay_ms))
    with opened(home, config, "daemon") as transaction:
        for one, answer in zip(typings, answers, strict=True):
            worker = transaction.book.state.workers.get(one.worker)
            if worker is None:
                continue
            if answer == "":
                transaction.put(delivery.was_typed(worker, one.prompt_id))
            elif answer == "stale":
                transaction.log(f"{one.worker}: the agent was gone before anything was typed")
                transaction.put(delivery.was_not_typed(worker, one.prompt_id))
            else:
                transaction.log(f"{one.worker}: nobody knows whether it was typed: {answer}")
