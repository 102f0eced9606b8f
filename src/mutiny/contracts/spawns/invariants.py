"""The rules about state, each a small function from a `Check` to whom it accuses, and of what."""

from __future__ import annotations

import itertools
from collections import Counter

from mutiny.contracts.spawns import accounts, bounds
from mutiny.contracts.spawns import operations as op
from mutiny.contracts.spawns.book import (
    BOOK,
    SLACK_S,
    Accused,
    SpawnsCheck,
    clock_bent,
    new_messages,
    runs_of,
)
from mutiny.contracts.spawns.mentions import agents_in
from mutiny.contracts.spawns.observation import LIVE, Invocation, Run
from mutiny.kit.operations import Settle
from mutiny.model.operation import walk

MOST_TEXT = 3500
"""The doubles write down so much of a text."""


# --- the database and its messages ------------------------------------------------------------------------


@BOOK.rule(eventual=True)
def database_whole(check: SpawnsCheck) -> Accused:
    """It can be read."""
    if check.seen.error is not None:
        yield "", f"The database cannot be read: {check.seen.error}"
    elif check.model.home and not check.seen.home:
        if check.before.home:
            yield "", "The database is gone."
        elif check.model.acknowledged:  # who keeps nothing at all must not pass for that
            yield "", f"{check.model.acknowledged} was acknowledged, and there is no database."


@BOOK.rule(eventual=True)
def registered(check: SpawnsCheck) -> Accused:
    """Agents and channels are those of the acknowledged commands."""
    if not check.seen.home:
        return
    model = {name: values[0] for name, values in check.model.agents.items()}
    for name in sorted(set(model) | set(check.seen.agents)):
        due, is_now = model.get(name), check.seen.agents.get(name)
        if due != is_now:
            yield name, f"Agent {name} is {is_now or 'not there'}, but should be {due or 'nobody'}."
    for name in sorted(check.model.channels ^ check.seen.channels):
        gone = name in check.model.channels
        yield "", f"Channel {name} {'is gone' if gone else 'was never made'}."


@BOOK.rule(eventual=False)
def messages_kept(check: SpawnsCheck) -> Accused:
    """What was accepted is there once and unchanged; nobody says what was not said."""
    seen, model = check.seen, check.model
    if not seen.home:
        return
    for sent in model.sent:
        row = None if sent.id is None else seen.messages.get(sent.id)
        if sent.id is not None and row is None:
            yield "", f"Message {sent.id} was accepted, and is not there."
        elif row is not None and (row.channel, row.sender, row.text) != sent.said:
            yield "", f"Message {sent.id} is {row.text!r} of {row.sender}, not what was sent."
    there = Counter(
        (one.channel, one.sender, one.text) for one in seen.messages.values() if one.spawn is None
    )
    surely = Counter(one.said for one in model.sent)
    perhaps = surely + Counter(one.said for one in model.unsure)
    for said, count in (surely - there).items():
        yield "", f"{said[2]!r} was accepted {count} times more than it is there."
    for said, count in (there - perhaps).items():
        yield "", f"{said[2]!r} of {said[1]} is there {count} times more than it was sent."
    for row in check.before.messages.values():
        if seen.messages.get(row.id) != row:
            yield row.sender, f"Message {row.id} was {row.text!r}, and is not any more."


@BOOK.rule(eventual=True)
def posts_kept(check: SpawnsCheck) -> Accused:
    """What an agent was told to be accepted is there."""
    for one in check.seen.invocations:
        for number in filter(None, one.posts):
            row = check.seen.messages.get(number)
            if row is None or row.spawn != one.spawn:
                text = f"Message {number} of {one.agent} was accepted, and is not there as its own."
                yield one.agent, text
    tried = Counter[int]()
    for one in check.seen.invocations:
        tried[one.spawn] += one.posting
    said = Counter(row.spawn for row in check.seen.messages.values() if row.spawn is not None)
    for run, count in said.items():
        if run in check.seen.by_run and count > tried[run]:
            agent = check.seen.by_run[run][0].agent
            yield agent, f"s{run} has posted {tried[run]} times, and there are {count} messages."


@BOOK.rule(eventual=False)
def messages_ordered(check: SpawnsCheck) -> Accused:
    """Who spoke later stands later."""
    numbers = [sent.id for sent in check.model.sent if sent.id is not None]
    for first, second in itertools.pairwise(numbers):
        if second <= first:
            yield "", f"Message {second} was sent after message {first}, and stands before it."


# --- mentions and their runs ------------------------------------------------------------------------------


@BOOK.rule(eventual=True)
def mention_runs(check: SpawnsCheck) -> Accused:
    """Every mention of an agent that was known has its run; when all has settled also those of a command
    that was broken off, if its message is there.
    """
    settled = check.gave(Settle)
    for message in check.seen.messages.values() if settled else new_messages(check):
        alone = check.model.direct(message)
        there = frozenset(check.before.agents) & frozenset(check.seen.agents)
        if message.id in check.before.messages:
            there &= check.model.meant_agents(message)
        for agent in (alone,) if alone else agents_in(message.text):
            known = agent in there
            if known and agent != message.sender and not runs_of(check.seen, message, agent):
                text = f"Message {message.id} mentions {agent}, which has no run and no refusal."
                yield agent, text


@BOOK.rule(eventual=True)
def only_mentions(check: SpawnsCheck) -> Accused:
    """Every run has a mention."""
    for run in check.seen.runs.values():
        message = check.seen.messages.get(run.message)
        if run.id in check.before.runs or message is None:
            continue
        alone = check.model.direct(message)
        if run.agent not in ((alone,) if alone else agents_in(message.text)):
            yield run.agent, f"{run} was started by {message.text!r}, which does not mention it."


@BOOK.rule(eventual=False)
def run_once(check: SpawnsCheck) -> Accused:
    """One run for one mention, one invocation for one attempt, none of what is refused."""
    seen = check.seen
    for (message, agent), count in Counter(
        (run.message, run.agent) for run in seen.runs.values()
    ).items():
        if count > 1:
            yield agent, f"Message {message} has {count} runs of {agent}."
    for (number, attempt), count in Counter(
        (one.spawn, one.attempt) for one in seen.invocations
    ).items():
        if count > 1:
            agent = seen.by_run[number][0].agent
            yield agent, f"Attempt {attempt} of s{number} was started {count} times."
    for run in seen.runs.values():
        if run.status == "refused" and seen.invoked(run):
            yield run.agent, f"{run} is refused ({run.reason}), and was started."


@BOOK.rule(eventual=True)
def text_received(check: SpawnsCheck) -> Accused:
    """The agent got the text of its message; what is completed has been heard."""
    seen = check.seen
    for run in seen.runs.values():
        message = seen.messages.get(run.message)
        for one in seen.invoked(run):
            due = None if message is None else message.text.strip()[:MOST_TEXT]
            if one.task is not None and one.task.strip()[:MOST_TEXT] != due:
                yield run.agent, f"{run} has received {one.task[:80]!r}, not {due!r:.80}."
        heard = any(one.task is not None for one in seen.invoked(run))
        if run.status == "completed" and not heard:
            yield run.agent, f"{run} is completed, but no agent has received its text."
    for number in set(seen.by_run) - set(seen.runs):
        agent = seen.by_run[number][0].agent
        yield agent, f"An agent {agent} was started for s{number}, which is nowhere."


@BOOK.rule(eventual=False)
def effect_once(check: SpawnsCheck) -> Accused:
    """After an attempt that has posted there is no other."""
    first: dict[int, int] = {}
    for row in check.seen.messages.values():
        if row.spawn is not None and row.attempt:
            first[row.spawn] = min(first.get(row.spawn, row.attempt), row.attempt)
    for one in check.seen.invocations:
        if one.posts and not any(
            row.attempt for row in check.seen.messages.values() if row.spawn == one.spawn
        ):
            first[one.spawn] = min(first.get(one.spawn, one.attempt), one.attempt)
    for one in check.seen.invocations:
        if one.attempt > first.get(one.spawn, one.attempt):
            text = f"s{one.spawn} has posted in attempt {first[one.spawn]}, and was run again."
            yield one.agent, text


@BOOK.rule(eventual=False)
def one_live(check: SpawnsCheck) -> Accused:
    """No two rows of an agent in a channel are under way."""
    places = Counter(run.place for run in check.seen.runs.values() if run.status in LIVE)
    for (agent, channel), count in places.items():
        if count > 1:
            yield agent, f"{count} runs of {agent} are under way in {channel}."


@BOOK.rule(eventual=True)
def one_alive(check: SpawnsCheck) -> Accused:
    """Nor do two processes live."""
    living = {
        (one.agent, check.seen.runs[one.spawn].channel, one.identity)
        for one in check.seen.invocations
        if one.alive and one.spawn in check.seen.runs
    }
    for (agent, channel), count in Counter(one[:2] for one in living).items():
        if count > 1:
            yield agent, f"{count} processes of {agent} live in {channel}."


# --- what is so -------------------------------------------------------------------------------------------


@BOOK.rule(eventual=True)
def row_true(check: SpawnsCheck) -> Accused:
    """Running: both live. Ended: neither."""
    if check.model.hindered:
        return
    for run in check.seen.runs.values():
        abandoned = check.model.died and not run.supervised
        if run.status == "running" and not (run.supervised and run.provided) and not abandoned:
            dead = "provider" if run.supervised else "supervisor"
            yield run.agent, f"{run} is called running, but its {dead} is dead."
        living = [one for one in check.seen.invoked(run) if one.alive]
        if run.over and (run.supervised or run.provided or living):
            who = "provider" if run.provided or living else "supervisor"
            yield run.agent, f"{run} is called {run.status}, but its {who} lives."


@BOOK.rule(eventual=True)
def times_true(check: SpawnsCheck) -> Accused:
    """What has ended says when, where the target says that of any; what has not ended does not."""
    tells = any(run.ended for run in check.before.runs.values() if run.over)
    for run in check.seen.runs.values():
        if run.ended and not run.over:
            yield run.agent, f"{run} is {run.status}, and says that it has ended."
        elif tells and run.over and not run.ended:
            yield run.agent, f"{run} is {run.status}, and does not say when it has ended."


@BOOK.rule(eventual=True)
def result_true(check: SpawnsCheck) -> Accused:
    """How it ended, as the agent itself wrote it down."""
    for run in check.seen.runs.values():
        codes = [one.exit_code for one in check.seen.invoked(run)]
        if run.id in check.model.hit or check.model.missing:
            continue
        if run.status == "completed" and codes and 0 not in codes:
            yield run.agent, f"{run} is called completed, but ended with {codes[-1]}."
        if run.status == "failed" and codes and codes[-1] == 0:
            yield run.agent, f"{run} is called failed ({run.reason}), but ended well."


@BOOK.rule(eventual=False)
def result_kept(check: SpawnsCheck) -> Accused:
    """What had ended has not changed."""
    for was in check.before.runs.values():
        now = check.seen.runs.get(was.id)
        if now is None:
            yield was.agent, f"{was} is gone."
        elif was.over and now.status != was.status:
            yield was.agent, f"{was} was {was.status}, and is {now.status} now."


@BOOK.rule(eventual=True)
def pid_first(check: SpawnsCheck) -> Accused:
    """The row has the pid of whoever has begun, and nobody posts before his start is written down."""
    for run in check.seen.runs.values():
        now = check.seen.latest(run)
        if now is not None and run.provider is None:
            yield run.agent, f"{run} acts as pid {now.identity[0]}, which is written down nowhere."
        elif now is not None and run.provider != now.identity:
            text = f"{run} acts as pid {now.identity[0]}, but {run.provider} is written down."
            yield run.agent, text
        elif now is not None and _acted_early(check, run, now):
            early = run.started - now.at
            yield run.agent, f"{run} has acted {early:.2f} s before its start was written down."
    begun: set[int] = set()
    for one in check.seen.events:
        if one.kind == "running" and one.spawn is not None:
            begun.add(one.spawn)
        row = None if one.message is None else check.seen.messages.get(one.message)
        if one.kind == "message" and row is not None and row.spawn not in (None, *begun):
            yield row.sender, f"s{row.spawn} has posted before its start was written down."


def _acted_early(check: SpawnsCheck, run: Run, now: Invocation) -> bool:
    """By the clock that both have; nobody's clock was bent."""
    if not 0 < now.at < run.started - SLACK_S or clock_bent(check):
        return False
    # Who was there before may have begun in time, and the start of his next attempt was written down since.
    new = all(one.identity != now.identity for one in check.before.invocations)
    return new or len(check.seen.invoked(run)) == run.attempt


@BOOK.rule(eventual=True)
def session_own(check: SpawnsCheck) -> Accused:
    """Nobody has another one's session, and who made one has it."""
    made = {one.session: one.spawn for one in check.seen.invocations if one.session}
    shared = Counter(run.session for run in check.seen.runs.values() if run.session)
    for run in check.seen.runs.values():
        if run.session and shared[run.session] > 1:
            yield run.agent, f"{run} has a session that others have, too."
        elif run.session and made.get(run.session, run.id) != run.id:
            yield run.agent, f"{run} has the session of s{made[run.session]}."
        own = [one.session for one in check.seen.invoked(run) if one.session]
        if run.status == "completed" and own and not run.session:
            yield run.agent, f"{run} is completed, and its session is not known."


@BOOK.rule(eventual=True)
def outlives_starter(check: SpawnsCheck) -> Accused:
    """Who is dead and has not ended was killed: by a stop, by its time, on purpose, or wrongly."""
    if check.model.hindered:
        return
    for run in check.seen.runs.values():
        if run.id in check.model.hit or run.stopping or check.model.may_stop(run):
            continue
        orphaned = run.status == "pending" and run.supervisor is not None and not run.supervised
        if orphaned and not check.model.died:
            yield run.agent, f"{run} has not begun, and its supervisor is dead."
        for one in check.seen.invoked(run):
            fell = not one.alive and one.exit_code is None and "die" not in one.behaviour
            if fell and "timeout" not in run.reason and not (one.endless and _timed(check)):
                yield run.agent, f"The agent of {run} is dead, and nobody has ended it."


def _timed(check: SpawnsCheck) -> bool:
    return check.model.setting("timeout_s") <= 60


# --- stop, clean up, leave --------------------------------------------------------------------------------


@BOOK.rule(eventual=True)
def stop_stops(check: SpawnsCheck) -> Accused:
    """A stop that was acknowledged."""
    for number in check.model.stopped:
        run = check.seen.runs.get(number)
        if run is None:
            continue
        living = run.supervised or run.provided or any(o.alive for o in check.seen.invoked(run))
        if run.status != "stopped" or living:
            word = f"is {run.status}" if run.status != "stopped" else "has a process that lives"
            yield run.agent, f"{run} was stopped, but {word}."


@BOOK.rule(eventual=False)
def only_named(check: SpawnsCheck) -> Accused:
    """Nothing is stopped that nobody wanted to stop, and no stranger."""
    if check.seen.killed > max(check.before.killed, 0):
        yield "", "A process was killed that only had the pid of a run."
    named = [
        (part.agent.lower(), part.channel.lower())
        for part in walk(check.operation)
        if isinstance(part, op.Stop | op.StopAll)
    ]
    for run in check.seen.runs.values():
        was = check.before.runs.get(run.id)
        if run.status != "stopped" or (was is not None and was.status == "stopped"):
            continue
        wanted = any(a in ("", run.agent) and c in ("", run.channel) for a, c in named)
        if not wanted and not check.model.may_stop(run):
            yield run.agent, f"{run} is stopped, and nobody has stopped it."


@BOOK.rule(eventual=False)
def cleanup_only_dead(check: SpawnsCheck) -> Accused:
    """What lived before and is well has not been touched."""
    if not check.gave(op.Cleanup) or check.gave((op.Stop, op.StopAll)) or check.model.hindered:
        return
    for run in check.seen.runs.values():
        was = check.before.runs.get(run.id)
        if was is None or not (was.supervised and was.provided) or run.id in check.model.hit:
            continue
        one = check.seen.latest(was)
        touched = (run.status, run.attempt) != (was.status, was.attempt)
        well = one is not None and (one.alive or one.exit_code == 0)
        if touched and well and run.status != "completed":
            yield run.agent, f"{run} was at work, and Cleanup has made it {run.status}."


@BOOK.rule(eventual=False)
def reason_given(check: SpawnsCheck) -> Accused:
    """Failed and refused runs have one."""
    for run in check.seen.runs.values():
        if run.status in ("failed", "refused") and not run.reason.strip():
            yield run.agent, f"{run} is {run.status}, and does not say why."


@BOOK.rule(eventual=True)
def looks_only(check: SpawnsCheck) -> Accused:
    """Nobody is made, started or stopped by a look."""
    if not check.operation.looks:
        return
    was, now = check.before, check.seen
    if set(was.agents) != set(now.agents) or was.channels != now.channels:
        yield "", f"{check.operation.short()} has changed agents or channels."
    for message in new_messages(check):
        if message.spawn is None:
            yield "", f"{check.operation.short()} has posted {message.text!r}."


@BOOK.rule(eventual=True)
def nothing_left(check: SpawnsCheck) -> Accused:
    """When no run is under way, nothing runs."""
    quiet = all(run.over for run in check.seen.runs.values())
    if quiet and check.seen.runs and not check.model.hindered:
        for stray in check.seen.strays:
            yield "", f"Every run has ended, and {stray} still runs."


ORDER = (
    *("database_whole", "messages_kept", "posts_kept", "registered", "messages_ordered"),
    *("effect_once", *bounds.FIRST, "one_live", "one_alive"),
    *("run_once", "only_mentions", "mention_runs", "cleanup_only_dead", "only_named"),
    *("stop_stops", "result_kept", "text_received", "outlives_starter", "row_true", "times_true"),
    *("result_true", *bounds.LATER, "pid_first", "session_own", "reason_given", "looks_only"),
    *("nothing_left", *accounts.ORDER),
)
"""In which they tell most."""
SAME = {"posts_kept": "messages_kept", "one_alive": "one_live", **accounts.SAME}
"""Two looks at one promise."""
