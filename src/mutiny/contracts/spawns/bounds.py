"""Rules about bounds and turns: how deep, how many, how often, how long, and who comes first."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from mutiny.contracts.spawns.book import BOOK, SLACK_S, Accused, SpawnsCheck, clock_bent
from mutiny.contracts.spawns.observation import Invocation, Run


@BOOK.rule(eventual=False)
def depth_bound(check: SpawnsCheck) -> Accused:
    """Counted from the messages, not from what the target says."""
    most = check.model.setting("max_depth")
    for run in check.seen.runs.values():
        depth = check.seen.depth_of(run)
        if run.status != "refused" and depth > most:
            yield run.agent, f"{run} is {depth} deep; {most:g} is the bound."


@BOOK.rule(eventual=False)
def runs_bounded(check: SpawnsCheck) -> Accused:
    """Runs that were not refused, by root message."""
    most = check.model.setting("max_runs")
    roots = Counter(
        check.seen.root_of(run.message)
        for run in check.seen.runs.values()
        if run.status != "refused"
    )
    for root, count in roots.items():
        if count > most:
            yield "", f"Message {root} has led to {count} runs; {most:g} is the bound."


@BOOK.rule(eventual=False)
def nothing_after_end(check: SpawnsCheck) -> Accused:
    """In the order of the target's own account no run begins after the signal."""
    seen = check.seen
    ended = {
        one.message: one.seq
        for one in seen.events
        if one.kind == "message" and one.message in seen.ends.values()
    }
    for one in seen.events:
        run = None if one.spawn is None else seen.runs.get(one.spawn)
        if one.kind != "running" or run is None:
            continue
        end = seen.ends.get(seen.root_of(run.message))
        if end is not None and one.seq > ended.get(end, one.seq):
            yield run.agent, f"{run} began after message {end} had ended the conversation."


@BOOK.rule(eventual=False)
def retries(check: SpawnsCheck) -> Accused:
    """Not more attempts than said, not sooner, and not fewer for what failed for no other reason."""
    seen, most = check.seen, 1 + int(check.model.setting("retries"))
    for run in seen.runs.values():
        tries = seen.invoked(run)
        yield from _too_soon(check, run, tries)
        if max([run.attempt, *(one.attempt for one in tries)]) > most:
            yield run.agent, f"{run} is at attempt {run.attempt}; {most} are allowed."
        left = any(one.posting for one in tries) or seen.root_of(run.message) in seen.ends
        model = check.model
        spared = run.id in model.hit or model.missing or model.faults or model.may_stop(run)
        was = check.before.runs.get(run.id)
        new = run.status == "failed" and (was is None or not was.over)
        silent = _silently(run, tries, most)
        if new and not left and not spared and not silent and 0 < len(tries) < most:
            text = f"{run} has failed after {len(tries)} attempts, and was not tried again."
            yield run.agent, text


def _silently(run: Run, tries: Sequence[Invocation], most: int) -> bool:
    """Was there another attempt, which ended before it has noted a word: its time was over, or its process
    is known and is nobody's who noted something?
    """
    other = run.provider is not None and all(one.identity != run.provider for one in tries)
    return other or ("timeout" in run.reason and run.attempt >= most)


def _too_soon(check: SpawnsCheck, run: Run, tries: Sequence[Invocation]) -> Accused:
    """Between two attempts lies at least the pause that was set, by what the agents noted themselves."""
    model, least = check.model, check.model.setting("retry_delay_s")
    unsure = model.retuned or run.id in model.hit or model.faults
    if len(tries) < 2 or unsure or clock_bent(check):
        return
    for first, second in itertools.pairwise(tries):
        pause = second.at - first.at
        if second.attempt > first.attempt and pause < least - SLACK_S:
            yield run.agent, f"{run} was tried again after {pause:.2f} s; {least:g} s are to pass."


@BOOK.rule(eventual=False)
def running_bounded(check: SpawnsCheck) -> Accused:
    """When somebody began, no more were at work, by the times of the rows; a bound that was lowered ends
    nobody.
    """
    most = check.model.setting("max_running")
    if clock_bent(check):
        return
    for run in check.seen.runs.values():
        was = check.before.runs.get(run.id)
        if not run.started or (was is not None and was.started == run.started):
            continue
        beside = sum(_at_work(other, run.started) for other in check.seen.runs.values())
        if beside > most:
            text = f"{run} has begun, and {beside} were at work at once; {most:g} is the bound."
            yield run.agent, text


def _at_work(run: Run, moment: float) -> bool:
    """Had its last attempt begun by then, and not ended?"""
    over = run.ended < moment + SLACK_S if run.over else run.status != "running"
    return 0 < run.started <= moment and not over


@BOOK.rule(eventual=True)
def first_come(check: SpawnsCheck) -> Accused:
    """Of two runs of an agent in a channel the one that was asked for first begins first."""
    if clock_bent(check):
        return
    begun = sorted(
        (run for run in check.seen.runs.values() if _began(check, run)),
        key=lambda run: (run.place, run.message),
    )
    for first, second in itertools.pairwise(begun):
        early = _began(check, second) < _began(check, first) - SLACK_S
        if first.place == second.place and first.message < second.message and early:
            text = f"{second} has begun before {first}, which was asked for earlier."
            yield second.agent, text


def _began(check: SpawnsCheck, run: Run) -> float:
    """When its first attempt noted that it was there; 0: it did not, or something was done to the run."""
    first = next(iter(check.seen.invoked(run)), None)
    told = first is not None and first.attempt == 1 and run.id not in check.model.hit
    return first.at if told and first is not None else 0.0


@BOOK.rule(eventual=False)
def has_its_time(check: SpawnsCheck) -> Accused:
    """Who is given up for its time has had that time, in its last attempt as well."""
    least = check.model.setting("timeout_s")
    for run in check.seen.runs.values():
        took = run.ended - run.started
        timed = run.status == "failed" and "timeout" in run.reason and run.started and run.ended
        new = run.id not in check.before.runs or not check.before.runs[run.id].over
        if timed and new and took < least - SLACK_S and not clock_bent(check):
            text = f"{run} was given up for its time after {took:.1f} s; it has {least:g} s."
            yield run.agent, text


FIRST = ("nothing_after_end", "depth_bound", "runs_bounded", "running_bounded")
LATER = ("first_come", "retries", "has_its_time")
"""In which they tell most."""
