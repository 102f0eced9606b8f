"""Exactly-once delivery, as pure functions from worker and event to worker.

Only one prompt is outstanding at an agent at any time, and every stage is saved before its action.
So each hook can mean only one thing, and after any crash the question "may I send it again?" has a
simple answer: yes, when the agent that may have it is proven dead.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from longboat.planting import planted
from longboat.workers.spool import Event
from longboat.workers.state import (
    CLEARED,
    CLEARING,
    RECEIVED,
    TYPED,
    TYPING,
    Agent,
    Delivery,
    Prompt,
    Worker,
)

CONFLICT_TEXT = (
    "A rebase of your branch onto {branch} stopped with conflicts.\n"
    "Resolve every conflicted file so that both sides keep their meaning, `git add` them, and run "
    "`git -c core.editor=true rebase --continue` until the rebase is complete. Do not abort it."
)
REJECT_TEXT = "Your changes were reviewed and need modifications:\n\n{text}"


class Outcome(NamedTuple):
    """What a hook did to a worker."""

    worker: Worker
    turn_ended: bool = False
    manual_prompt: str = ""
    note: str = ""


def new_prompt(kind: str, text: str, task_id: str) -> Prompt:
    """A prompt with an id of its own."""
    return Prompt(os.urandom(4).hex(), kind, text, task_id)


def typed_text(text: str) -> str:
    """What is really typed: no control characters, which a terminal would obey."""
    kept = "".join(c for c in text.replace("\r\n", "\n") if c in "\n\t" or ord(c) >= 32)
    return kept.replace("\x7f", "").strip("\n")


def apply(worker: Worker, event: Event) -> Outcome:
    """The worker after one of its agent's hooks; hooks of another agent change nothing."""
    agent = worker.agent
    if agent is None or agent.spawn != event.spawn:
        return Outcome(worker, note=f"{event.kind} of an earlier agent, ignored")
    agent = agent._replace(
        session_id=event.session_id or agent.session_id,
        transcript=event.transcript or agent.transcript,
    )
    worker = worker._replace(agent=agent)
    if event.kind == "SessionStart":
        return _session_started(worker, agent, event)
    if event.kind == "UserPromptSubmit":
        return _prompt_received(worker, agent, event)
    if event.kind == "Stop":
        return _turn_stopped(worker, agent, event)
    return Outcome(worker, note=f"{event.kind} ({event.source or 'no reason'})")


def _session_started(worker: Worker, agent: Agent, event: Event) -> Outcome:
    note = f"agent {agent.pid} is ready" if not agent.ready else f"session {event.source}"
    agent = agent._replace(ready=True)
    inflight = worker.inflight
    if inflight is not None and inflight.stage == CLEARING and event.source == "clear":
        agent = agent._replace(task_id=None)
        inflight = inflight._replace(stage=CLEARED)
    status = worker.resume if worker.status == "offline" else worker.status
    return Outcome(
        worker._replace(agent=agent, inflight=inflight, status=status, spawn_failures=0), note=note
    )


def _prompt_received(worker: Worker, agent: Agent, event: Event) -> Outcome:
    inflight = worker.inflight
    agent = agent._replace(owes_stop=False)
    worker = worker._replace(agent=agent)
    if inflight is None:
        return Outcome(worker, manual_prompt=event.prompt, note="a prompt was typed by hand")
    if inflight.stage in (TYPING, TYPED) and event.time >= inflight.since:
        received = inflight._replace(stage=RECEIVED)
        note = f"prompt {inflight.prompt.id} received"
        return Outcome(worker._replace(inflight=received), note=note)
    return Outcome(worker, note="a prompt was received that is not the one in flight")


def _turn_stopped(worker: Worker, agent: Agent, event: Event) -> Outcome:
    inflight = worker.inflight
    cleared = worker._replace(agent=agent._replace(owes_stop=False))
    if planted("completion-missed") and inflight is not None and inflight.prompt.kind != "task":
        return Outcome(cleared, note="turn ended")
    if inflight is None:
        return Outcome(cleared, turn_ended=worker.status == "needs_review", note="a late end")
    if inflight.stage == RECEIVED:
        return Outcome(cleared, turn_ended=True, note=f"prompt {inflight.prompt.id} done")
    if inflight.stage in (TYPING, TYPED) and event.time >= inflight.since:
        if agent.owes_stop:
            return Outcome(cleared, note="the end of an earlier turn")
        # The receipt was lost with its hook, but a turn can only end after it began.
        return Outcome(cleared, turn_ended=True, note=f"prompt {inflight.prompt.id} done")
    return Outcome(cleared, note="a late end")


def needs_clear(agent: Agent, prompt: Prompt) -> bool:
    """True when the agent still has an earlier task in its memory."""
    return agent.task_id is not None and agent.task_id != prompt.task_id


def begin_clear(worker: Worker, agent: Agent, now: float) -> Worker:
    """The next prompt leaves the inbox; before it comes a `/clear`."""
    prompt, *rest = worker.inbox
    delivery = Delivery(prompt, CLEARING, agent.pid, agent.start, "", now)
    return worker._replace(inbox=tuple(rest), inflight=delivery)


def begin_typing(worker: Worker, agent: Agent, head: str, now: float) -> Worker:
    """The next prompt is about to be typed to this agent: counted as an attempt from here on."""
    inbox = worker.inbox
    if worker.inflight is not None:
        prompt = worker.inflight.prompt
    else:
        prompt, inbox = worker.inbox[0], worker.inbox[1:]
    prompt = prompt._replace(attempts=prompt.attempts + 1)
    delivery = Delivery(prompt, TYPING, agent.pid, agent.start, head, now)
    agent = agent._replace(task_id=prompt.task_id)
    return worker._replace(inbox=inbox, inflight=delivery, agent=agent)


def was_typed(worker: Worker, prompt_id: str) -> Worker:
    """Note that the typing itself worked; the agent's own word may already be there."""
    inflight = worker.inflight
    if inflight is None or inflight.prompt.id != prompt_id or inflight.stage != TYPING:
        return worker
    return worker._replace(inflight=inflight._replace(stage=TYPED))


def was_not_typed(worker: Worker, prompt_id: str) -> Worker:
    """Take back a delivery that certainly never reached the agent; it was no attempt."""
    inflight = worker.inflight
    if inflight is None or inflight.prompt.id != prompt_id:
        return worker
    if inflight.stage not in (CLEARING, TYPING):
        return worker
    counted = 1 if inflight.stage == TYPING else 0
    prompt = inflight.prompt._replace(attempts=inflight.prompt.attempts - counted)
    return worker._replace(inflight=None, inbox=(prompt, *worker.inbox))


def after_death(worker: Worker, max_attempts: int) -> Worker:
    """Queue the outstanding prompt again: its agent is proven dead and its work is not done."""
    inflight = worker.inflight
    if inflight is None:
        return worker
    prompt = inflight.prompt
    worker = worker._replace(inflight=None, inbox=(prompt, *worker.inbox))
    if prompt.attempts < max_attempts:
        return worker
    reason = f"{prompt.kind} was delivered {prompt.attempts} times and each agent died with it"
    return worker._replace(status="error", error_reason=reason)


def wants_agent(worker: Worker) -> bool:
    """A worker in error needs no agent until somebody gives it something to do."""
    return worker.status != "error" or bool(worker.inflight)
