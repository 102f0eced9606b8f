"""The ledger: every piece of work that the target acknowledged is accounted for, end to end.

A token rides in each prompt. The double writes down each receipt and each commit; git is searched
for the token. A task that was acknowledged and silently vanished is a bug, whatever the exit code
was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from mutiny.contracts.workers.invariants import Check
from mutiny.contracts.workers.model import Work, WorkerBelief
from mutiny.kit import operations as common
from mutiny.kit.checking import Unreadable
from mutiny.kit.git_rules import Branch, only_forward
from mutiny.kit.views import Commit, Receipt
from mutiny.model.violation import Violation


def audit(check: Check) -> Iterator[tuple[Violation, bool]]:
    """All ledger rules; each violation with whether the target's lag may excuse it for a while."""
    receipts = check.seen.receipts
    if receipts is not None:
        yield from ((violation, False) for violation in _delivered_once(receipts))
    commits = check.seen.commits
    if commits is None:
        if check.model.work:
            raise Unreadable("the commits of the source repository")
        return
    yield from ((violation, False) for violation in _merged_once(commits))
    yield from ((violation, False) for violation in _nothing_invented(check, commits))
    yield from ((violation, False) for violation in _accepted_is_merged(check, commits))
    yield from ((violation, True) for violation in _nothing_lost(check))
    yield from ((violation, True) for violation in _discarded_is_kept(check, commits))
    yield from ((violation, True) for violation in _work_reachable(check, commits))
    yield from ((violation, False) for violation in _merged_stays(check))
    yield from ((violation, False) for violation in _default_moves_forward(check, commits))


def _delivered_once(receipts: Iterable[Receipt]) -> Iterator[Violation]:
    for receipt in receipts:
        if receipt.token is None or not receipt.earlier_alive:
            continue
        who = "the same agent" if receipt.same_agent else "a second agent while the first was alive"
        yield Violation(
            "workers.delivered_once",
            f"{receipt.token} was delivered again to {who} of worker {receipt.worker!r}.",
            receipt.token,
            {"agent": receipt.agent[0]},
        )


def _merged_once(commits: Iterable[Commit]) -> Iterator[Violation]:
    counts = Counter(
        token for commit in commits if commit.on_default for token in set(commit.tokens)
    )
    for token, times in counts.items():
        if times > 1:
            yield Violation(
                "workers.merged_once",
                f"{token} is on the default branch in {times} commits.",
                token,
            )


def _nothing_invented(check: Check, commits: Iterable[Commit]) -> Iterator[Violation]:
    merged = {token for commit in commits if commit.on_default for token in commit.tokens}
    for token in sorted(merged):
        work = check.model.work.get(token)
        if work is not None and work.fate in ("open", "discarded"):
            word = "never accepted" if work.fate == "open" else "given up"
            yield Violation(
                "workers.nothing_invented",
                f"{token} is on the default branch but was {word}.",
                token,
            )


def _accepted_is_merged(check: Check, commits: Iterable[Commit]) -> Iterator[Violation]:
    merged = {token for commit in commits if commit.on_default for token in commit.tokens}
    for work in check.model.work.values():
        if work.fate == "merged" and work.token not in merged and _was_done(check, work):
            yield Violation(
                "workers.accepted_is_merged",
                f"{work.token} of worker {work.worker!r} was accepted but is not on the default branch.",
                work.token,
            )


def _merged_stays(check: Check) -> Iterator[Violation]:
    before, now = check.before.default_tokens, check.seen.default_tokens
    if before is None or now is None:
        raise Unreadable("the files of the default branch")
    for token in sorted(before - now):
        yield Violation(
            "workers.merged_stays",
            f"{token} was in the files of the default branch and is gone after {check.operation}.",
            token,
        )


def _default_moves_forward(check: Check, commits: Iterable[Commit]) -> Iterator[Violation]:
    if check.before.commits is None:
        raise Unreadable("the commits of the source repository")
    before, now = (
        Branch(look.default_head, {commit.sha for commit in seen if commit.on_default})
        for look, seen in ((check.before, check.before.commits), (check.seen, commits))
    )
    for message in only_forward(before, now, check.operation):
        yield Violation("workers.default_moves_forward", message, "source")


def _discarded_is_kept(check: Check, commits: Iterable[Commit]) -> Iterator[Violation]:
    if not check.model.profile.keeps_discarded:
        return
    reachable = {token for commit in commits for token in commit.tokens}
    for work in check.model.work.values():
        if work.fate == "discarded" and work.token not in reachable and _was_done(check, work):
            yield Violation(
                "workers.discarded_is_kept",
                f"The agent of worker {work.worker!r} committed {work.token}, "
                "the worker was nuked or reset, and no ref reaches the commit any more.",
                work.token,
            )


def _was_done(check: Check, work: Work) -> bool:
    """The agent really committed something for this token; otherwise there is nothing to merge."""
    receipts = check.seen.receipts or ()
    return any(work.token in receipt.tokens and receipt.committed for receipt in receipts)


def _nothing_lost(check: Check) -> Iterator[Violation]:
    for work in check.model.work.values():
        view = check.seen.workers.get(work.worker)
        belief = check.model.workers.get(work.worker)
        if work.fate != "open" or view is None or belief is None or belief.disturbed is not None:
            continue
        attended = check.model.daemon_certain is True  # otherwise nobody is there to hand it out
        if (
            view.status == "idle"
            and not view.pending_prompt
            and not _may_still_begin(check, belief)
        ):
            yield Violation(
                "workers.nothing_lost",
                f"{work.token} was acknowledged, was never merged or given up, "
                f"and worker {work.worker!r} is idle.",
                work.token,
                {"kind": work.kind},
            )
        elif (
            isinstance(check.operation, common.Settle)
            and attended
            and belief.will_complete
            and not _received(check, work)
        ):
            yield Violation(
                "workers.nothing_lost",
                f"{work.token} was acknowledged but no agent ever received it; "
                f"worker {work.worker!r} is {view.status}.",
                work.token,
                {"kind": work.kind},
            )
        elif (
            view.status == "needs_review"
            and attended
            and belief.will_complete
            and not _received(check, work)
        ):
            yield Violation(
                "workers.nothing_lost",
                f"worker {work.worker!r} is ready for review but never received {work.token}.",
                work.token,
                {"kind": work.kind},
            )


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


def _work_reachable(check: Check, commits: Iterable[Commit]) -> Iterator[Violation]:
    reachable = {token for commit in commits for token in commit.tokens}
    for work in check.model.work.values():
        if (
            work.fate not in ("open", "merged")
            or work.token in reachable
            or not _was_done(check, work)
        ):
            continue
        worktree = check.seen.worktrees.get(work.worker)
        if worktree is not None and worktree.rebasing:
            continue
        yield Violation(
            "workers.work_reachable",
            f"The agent of worker {work.worker!r} committed {work.token} but no ref reaches it any more.",
            work.token,
        )
