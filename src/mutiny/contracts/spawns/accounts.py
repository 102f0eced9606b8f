"""Rules about what a target writes down of a run, held against what is known of it without the target.

Agents note how they ended and which session they keep; messages tell who started whom; the step in which
something happened tells when. A column that a target's queries do not give is not asked about.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from mutiny.contracts.spawns.book import BOOK, SLACK_S, Accused, SpawnsCheck, clock_bent
from mutiny.contracts.spawns.observation import Run

LOOK_S = 5.0
"""A look takes its time, and more on a machine that is busy: what falls between two looks may be so early
or so late.
"""


@BOOK.rule(eventual=True)
def origin_true(check: SpawnsCheck) -> Accused:
    """Root, parent and depth of a run, and the root of a message, are what the messages tell."""
    seen = check.seen
    for message in seen.messages.values():
        root = seen.root_of(message.id)
        if message.root not in (None, root):
            text = f"Message {message.id} goes back to message {root}, not {message.root}."
            yield message.sender, text
    for run in seen.runs.values():
        by = seen.messages.get(run.message)
        if by is None or (by.spawn is not None and by.spawn not in seen.runs):
            continue
        parent = f"s{by.spawn}" if by.spawn is not None else "nobody"
        depth, root = seen.depth_of(run), seen.root_of(run.message)
        if run.root is not None and run.channel != by.channel:
            yield run.agent, f"{run} is for message {by.id}, which was said in {by.channel}."
        if run.root not in (None, root):
            yield run.agent, f"{run} goes back to message {root}, not {run.root}."
        if run.parent not in (None, by.spawn or 0):
            yield run.agent, f"{run} was started by {parent}, not s{run.parent}."
        if run.depth not in (None, depth):
            yield run.agent, f"{run} is {depth} deep, not {run.depth}."


@BOOK.rule(eventual=True)
def exit_true(check: SpawnsCheck) -> Accused:
    """The exit code of what has ended by itself is the one that its agent noted."""
    model = check.model
    for run in check.seen.runs.values():
        last = check.seen.latest(run)
        if run.id in model.hit or model.missing or model.hindered or model.may_stop(run):
            continue
        if run.status == "completed" and last is None and check.seen.invoked(run):
            text = f"{run} is completed in attempt {run.attempt}, in which nobody has begun."
            yield run.agent, text
        if last is None or last.exit_code is None or run.exit_code is None:
            continue
        by_itself = run.status in ("completed", "failed") and "timeout" not in run.reason
        if by_itself and run.exit_code != last.exit_code:
            text = (
                f"{run} has ended with {last.exit_code}, and is said to have with {run.exit_code}."
            )
            yield run.agent, text


@BOOK.rule(eventual=True)
def told_own(check: SpawnsCheck) -> Accused:
    """Whoever does a run was started as its agent and for its message, if the target tells it that."""
    for run in check.seen.runs.values() if check.seen.kept else ():
        for one in check.seen.invoked(run):
            if one.agent and one.agent != run.agent:
                yield run.agent, f"{run} is done by somebody who was started as {one.agent}."
            elif one.message not in (None, run.message):
                text = f"{run} is for message {run.message}; its agent was told {one.message}."
                yield run.agent, text


@BOOK.rule(eventual=True)
def session_true(check: SpawnsCheck) -> Accused:
    """The session of a run is one that its agent has made, where the target keeps one of its own."""
    if not check.seen.kept:
        return
    for run in check.seen.runs.values():
        own = {one.session for one in check.seen.invoked(run) if one.session}
        if run.session and own and run.session not in own:
            text = f"{run} has session {run.session}; its agent keeps {', '.join(sorted(own))}."
            yield run.agent, text


@BOOK.rule(eventual=True)
def program_true(check: SpawnsCheck) -> Accused:
    """A run is done by the provider of its agent."""
    for run in check.seen.runs.values():
        due = check.seen.agents.get(run.agent)
        if run.program is not None and due is not None and run.program != due:
            yield run.agent, f"{run} is done by {run.program}; its agent is registered with {due}."


@BOOK.rule(eventual=True)
def times_in_step(check: SpawnsCheck) -> Accused:
    """What happened in a step has a time of that step; a run was asked for, has begun, has ended."""
    if clock_bent(check):
        return
    slack = check.seen.pace.stretched(LOOK_S)
    since, until = check.before.at - slack, check.seen.at + slack
    for run in check.seen.runs.values():
        times = [one for one in (run.created, run.started, run.ended) if one]
        if any(late < early - SLACK_S for early, late in itertools.pairwise(times)):
            yield run.agent, f"{run} has begun before it was asked for, or ended before it began."
        for name, moment in _new(check, run):
            if moment and since and not since <= moment <= until:
                off = moment - check.seen.at
                text = (
                    f"{run} was {name} in this step, by its own account {off:+.0f} s from its end."
                )
                yield run.agent, text


def _new(check: SpawnsCheck, run: Run) -> Iterator[tuple[str, float]]:
    """What happened to a run between the two looks, and when it says that it did."""
    was = check.before.runs.get(run.id)
    if check.before.error is not None or not check.before.home or check.model.hindered:
        return  # what was not to be seen before need not be new
    if was is None:
        yield "asked for", run.created
    if was is None or was.attempt != run.attempt:
        yield "begun", run.started
    if run.over and (was is None or not was.over):
        yield "ended", run.ended


ORDER = ("told_own", "exit_true", "session_true", "program_true", "times_in_step", "origin_true")
"""In which they tell most."""
SAME = {
    "told_own": "text_received",
    "exit_true": "result_true",
    "session_true": "session_own",
    "program_true": "registered",
    "times_in_step": "times_true",
}
"""Two looks at one promise."""
