"""The ledger: every piece of work that the target acknowledged is accounted for, end to end.

A token rides in each prompt. The double writes down each receipt and each commit; git is searched
for the token. A task that was acknowledged and silently vanished is a bug, whatever the exit code
was.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.looking import Check
from mutiny.contracts.workers.model import Work, WorkerBelief
from mutiny.contracts.workers.observation import TASK_FATES
from mutiny.kit import checking
from mutiny.kit import operations as common
from mutiny.kit.checking import Found, RuleBook, Unreadable
from mutiny.kit.git_rules import Branch, only_forward
from mutiny.kit.views import Commit, Receipt
from mutiny.model.violation import Violation

LEDGER: RuleBook[Check] = RuleBook("workers")
_AT_WORK = ("working", "rejected", "rebasing", "needs_review")
REFERENCE = re.compile(r"\(ref [^()]*\)")
"""What Mutiny adds to each text, so that it can be found again."""
_OF_RECEIPTS = (
    *("workers.delivered_once", "workers.delivered_whole"),
    *("workers.delivered_in_order", "workers.given_up_stays_so"),
)


def audit(check: Check) -> Iterator[tuple[Violation, bool]]:
    """All ledger rules; each violation with whether the target's lag may excuse it for a while."""
    for name, (ask, eventual) in LEDGER.rules.items():
        if check.seen.commits is None and name not in _OF_RECEIPTS:
            if check.model.work:
                raise Unreadable("the commits of the source repository")
            return
        yield from ((violation, eventual) for violation in ask(check))


def _commits(check: Check) -> tuple[Commit, ...]:
    return check.seen.commits or ()


@LEDGER.rule(eventual=False)
def delivered_once(check: Check) -> Iterator[Found]:
    for receipt in check.seen.receipts or ():
        if receipt.token is None or not receipt.earlier_alive:
            continue
        who = "the same agent" if receipt.same_agent else "a second agent while the first was alive"
        text = f"{receipt.token} was delivered again to {who} of worker {receipt.worker!r}."
        yield receipt.token, text, {"agent": receipt.agent[0]}


@LEDGER.rule(eventual=False)
def delivered_whole(check: Check) -> Iterator[Found]:
    for receipt in check.seen.receipts or ():
        work = check.model.work.get(receipt.token or "")
        if work is None or not work.said or receipt.text is None or receipt.kind == "conflict":
            continue  # who is told of a conflict may be told of the task in other words
        if _letters(work.said) not in _letters(receipt.text):
            ends = f"{work.said[-40:]!r}" if len(work.said) > 40 else f"{work.said!r}"
            text = f"The agent of worker {work.worker!r} was not told all of {work.token}: {ends} was said."
            yield work.token, text, {"received": receipt.text[-200:]}
        elif len(_words(receipt.text)) < len(_words(work.said)):
            what = f"The words of {work.token} ran together"
            text = f"{what}: worker {work.worker!r} was to be told {work.said[:60]!r}."
            yield work.token, text, {"received": receipt.text[-200:]}


def _letters(text: str) -> str:
    """A text without our reference in it and without blanks, which a terminal may change."""
    return "".join(_words(text))


def _words(text: str) -> list[str]:
    """What stands between its blanks: they may be others, but not gone."""
    return REFERENCE.sub("", text).split()


@LEDGER.rule(eventual=False)
def delivered_in_order(check: Check) -> Iterator[Found]:
    first: dict[str, int] = {}
    told: dict[tuple[int, int], dict[str, int]] = {}
    for number, receipt in enumerate(check.seen.receipts or ()):
        for token in receipt.tokens:
            first.setdefault(token, number)
            if receipt.kind != "conflict":  # that may repeat what the task was
                told.setdefault(receipt.agent, {}).setdefault(token, number)
    said: dict[str, list[Work]] = {}
    for work in check.model.work.values():  # in the order in which they were acknowledged
        earlier = said.setdefault(work.worker, [])
        for one in earlier if work.fate != "unknown" else ():
            never = first.get(work.token, math.inf) < first.get(one.token, math.inf)
            # Who comes after an agent that died is told everything anew, in the same order.
            anew = any(
                has.get(work.token, math.inf) < has.get(one.token, 0) for has in told.values()
            )
            if one.fate == "open" and (never or anew):
                text = (
                    f"The agent of worker {work.worker!r} was told {work.token} before {one.token}"
                )
                yield work.token, f"{text}, which was said earlier."
        earlier.append(work)


@LEDGER.rule(eventual=False)
def given_up_stays_so(check: Check) -> Iterator[Found]:
    for receipt in check.seen.receipts or ():
        for token in receipt.tokens:
            work = check.model.work.get(token)
            if work is None or work.fate != "discarded" or work.known_to is None:
                continue
            if receipt.agent not in work.known_to:
                who = f"an agent that came later (pid {receipt.agent[0]})"
                yield (
                    token,
                    f"{token} of worker {work.worker!r} was given up, and {who} was told it.",
                )


@LEDGER.rule(eventual=True)
def tasks_accounted(check: Check) -> Iterator[Found]:
    kept = check.seen.tasks
    last = {one.worker: one.token for one in check.model.work.values() if one.kind == "task"}
    merged = {one.sha for one in _commits(check) if one.on_default}
    for work in check.model.work.values() if kept is not None else ():
        if work.kind != "task" or work.fate not in TASK_FATES:
            continue
        who = f"{work.token} of worker {work.worker!r}"
        exactly = re.compile(rf"{re.escape(work.token)}(?!\d)")  # the first is no part of the tenth
        mine = [one for one in kept or () if exactly.search(one.text)]
        if not mine:
            yield work.token, f"{who} is {work.fate}, but in no account of the target."
        elif mine[-1].fate == "given_up" and work.fate == "open":
            if check.seen.status_of(work.worker) in _AT_WORK and work.token == last.get(
                work.worker
            ):
                yield (
                    work.token,
                    f"{who} is being worked on; the target's account calls it given up.",
                )
        elif mine[-1].fate != work.fate:
            yield (
                work.token,
                f"{who} is {work.fate}, but the target's account says {mine[-1].fate}.",
            )
        elif mine[-1].fate == "merged" and mine[-1].commit and mine[-1].commit not in merged:
            text = f"{who} is merged, but the commit in the target's account is not on the branch."
            yield work.token, text, {"commit": mine[-1].commit}


@LEDGER.rule(eventual=False)
def merged_once(check: Check) -> Iterator[Found]:
    counts = Counter(
        token for commit in _commits(check) if commit.on_default for token in set(commit.tokens)
    )
    for token, times in counts.items():
        if times > 1:
            yield token, f"{token} is on the default branch in {times} commits."


@LEDGER.rule(eventual=False)
def nothing_invented(check: Check) -> Iterator[Found]:
    merged = {token for one in _commits(check) if one.on_default for token in one.tokens}
    for token in sorted(merged):
        work = check.model.work.get(token)
        if work is not None and work.fate in ("open", "discarded"):
            word = "never accepted" if work.fate == "open" else "given up"
            yield token, f"{token} is on the default branch but was {word}."


@LEDGER.rule(eventual=False)
def accepted_is_merged(check: Check) -> Iterator[Found]:
    merged = {token for one in _commits(check) if one.on_default for token in one.tokens}
    for work in check.model.work.values():
        if work.fate == "merged" and work.token not in merged and _was_done(check, work):
            what = f"{work.token} of worker {work.worker!r}"
            yield work.token, f"{what} was accepted but is not on the default branch."


@LEDGER.rule(eventual=True)
def nothing_lost(check: Check) -> Iterator[Found]:
    for work in check.model.work.values():
        message = _why_lost(check, work) if work.fate == "open" else ""
        if message:
            yield work.token, message, {"kind": work.kind}


def _why_lost(check: Check, work: Work) -> str:
    view, belief = check.seen.workers.get(work.worker), check.model.workers.get(work.worker)
    if view is None or belief is None or belief.disturbed is not None:
        return ""
    who = f"worker {work.worker!r}"
    resting = view.status == "idle" and not view.pending_prompt
    if resting and check.model.profile.shows_ends and not _may_still_begin(check, belief):
        return f"{work.token} was acknowledged, was never merged or given up, and {who} is idle."
    if view.status == "no_changes" and belief.tokens[-1:] == (work.token,) and _did(check, work):
        return f"{work.token} was done and committed, but {who} says that nothing was changed."
    # Unattended: nobody is there to hand it out.
    if not check.model.attended or not belief.will_complete or _received(check, work):
        return ""
    if isinstance(check.operation, common.Settle):
        return (
            f"{work.token} was acknowledged but no agent ever received it; {who} is {view.status}."
        )
    if view.status == "needs_review":
        return f"{who} is ready for review but never received {work.token}."
    return ""


def _was_done(check: Check, work: Work) -> bool:
    """The agent really committed something for this token; otherwise there is nothing to merge."""
    receipts = check.seen.receipts or ()
    return any(work.token in receipt.tokens and receipt.committed for receipt in receipts)


def _did(check: Check, work: Work) -> bool:
    """An agent was told it, committed something, and ended its turn."""
    receipts = check.seen.receipts or ()
    return any(work.token in one.tokens and one.committed and one.finished for one in receipts)


def _was_written(check: Check, work: Work) -> bool:
    """The agent had files for this token that it had not committed, and the target keeps those."""
    receipts = check.seen.receipts or ()
    told = any(work.token in receipt.tokens and receipt.wrote for receipt in receipts)
    return told and check.model.profile.keeps_uncommitted


def _may_still_begin(check: Check, belief: WorkerBelief) -> bool:
    """Where `start` only takes the task, an idle worker may have one for a while."""
    profile = check.model.profile
    if profile.start_is_immediate or belief.due_at is None:
        return False
    since = max(belief.due_at, belief.moved_at)
    return check.seen.at - since <= check.seen.pace.limit(profile.limits.complete_s)


def _received(check: Check, work: Work) -> bool:
    receipts = check.seen.receipts
    return receipts is None or any(work.token in receipt.tokens for receipt in receipts)


@LEDGER.rule(eventual=True)
def discarded_is_kept(check: Check) -> Iterator[Found]:
    if not check.model.profile.keeps_discarded:
        return
    reachable = {token for commit in _commits(check) for token in commit.tokens}
    in_files = {token for commit in _commits(check) for token in commit.in_files}
    for work in check.model.work.values():
        if work.fate != "discarded" or work.token in reachable:
            continue
        if _was_done(check, work):
            done = f"The agent of worker {work.worker!r} committed {work.token}, the worker was nuked or"
            yield work.token, f"{done} reset, and no ref reaches the commit any more."
        elif work.token not in in_files and _was_written(check, work):
            done = f"The agent of worker {work.worker!r} had written files for {work.token}, the worker was"
            yield work.token, f"{done} nuked or reset, and no ref has them."


@LEDGER.rule(eventual=True)
def work_reachable(check: Check) -> Iterator[Found]:
    reachable = {token for commit in _commits(check) for token in commit.tokens}
    for work in check.model.work.values():
        worktree = check.seen.worktrees.get(work.worker)
        rebasing = worktree is not None and worktree.rebasing
        astray = check.model.astray(work.worker, check.seen)
        kept = work.fate in ("open", "merged") and not rebasing and not astray
        if kept and work.token not in reachable and _was_done(check, work):
            done = f"The agent of worker {work.worker!r} committed {work.token}"
            yield work.token, f"{done} but no ref reaches it any more."


@LEDGER.rule(eventual=False)
def merged_stays(check: Check) -> Iterator[Found]:
    before, now = check.before.default_tokens, check.seen.default_tokens
    if before is None or now is None:
        raise Unreadable("the files of the default branch")
    for token in sorted(before - now):
        was = f"{token} was in the files of the default branch"
        yield token, f"{was} and is gone after {check.operation}."


@LEDGER.rule(eventual=False)
def only_work_lands(check: Check) -> Iterator[Found]:
    accepts = checking.inner_of(check.operation)
    if not isinstance(accepts, op.Accept | op.AcceptReviewed):
        return
    was, seen = check.before, check.seen
    for before, now, text in (
        (was.default_untold, seen.default_untold, "is on the default branch, which no agent wrote"),
        (
            was.default_conflicted,
            seen.default_conflicted,
            "on the default branch has the marks of a conflict",
        ),
    ):
        if before is None or now is None:
            raise Unreadable("the files of the default branch")
        for name in sorted(now - before):
            if _is_of_work(check, name):
                continue
            yield "source", f"After {check.operation} {name.partition(':')[2]} {text}."


def _is_of_work(check: Check, name: str) -> bool:
    """A file that holds no text says by its name whose it is."""
    return any(f"/{token}/" in name for token in check.model.work)


@LEDGER.rule(eventual=False)
def lands_whole(check: Check) -> Iterator[Found]:
    merged = {token for one in _commits(check) if one.on_default for token in one.tokens}
    for receipt in check.seen.receipts or ():
        work = check.model.work.get(receipt.token or "")
        landed = work is not None and work.fate == "merged" and work.token in merged
        if work is None or not (landed and receipt.shape):
            continue
        if check.seen.default_shape is None:
            raise Unreadable("the files of the default branch")
        for missing in _not_whole(receipt, check.seen.default_shape):
            what = f"{work.token} of worker {work.worker!r} was accepted, but not whole"
            yield work.token, f"{what}: {missing}"


def _not_whole(receipt: Receipt, shape: frozenset[str]) -> Iterator[str]:
    """What the tree does not say as the agent left it."""
    there = {path: f"{mode}, {size} bytes" for mode, size, path in map(_parts, shape)}
    for path in sorted(there.keys() & set(receipt.removed)):
        yield f"{path} was removed, and is there."
    for mode, size, path in map(_parts, receipt.shape):
        wanted, now = f"{mode}, {size} bytes", there.get(path, "not there")
        if now != wanted:
            yield f"{path} should be {wanted}, and is {now}."


def _parts(line: str) -> tuple[str, str, str]:
    """Mode, size and path of a file of a tree."""
    mode, size, path = line.split(" ", 2)
    return mode, size, path


@LEDGER.rule(eventual=False)
def default_moves_forward(check: Check) -> Iterator[Found]:
    if check.before.commits is None:
        raise Unreadable("the commits of the source repository")
    before, now = (
        Branch(look.default_head, {commit.sha for commit in seen if commit.on_default})
        for look, seen in ((check.before, check.before.commits), (check.seen, _commits(check)))
    )
    for message in only_forward(before, now, check.operation):
        yield "source", message
