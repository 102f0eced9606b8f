"""When a checkpoint is made, and how: quiet first, then everything in one file, then it is told.

Four triggers, each by itself: time, calls of tools, tokens, the end of a phase; and whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from longboat.board.files import is_full
from longboat.errors import GitFailed
from longboat.planting import planted
from longboat.session import gates
from longboat.session.checkpoints import FIELDS, Invalid, problems
from longboat.session.site import Site
from longboat.session.values import CHECKS, Json, Refused
from longboat.session.work import Work

Then = Callable[[Json], None]
_FIRST = ("end", "stop", "phase", "command", "pressure", "calls", "tokens", "time")
"""When several want one, one is made for all of them: it is called after the first of these."""
_KEPT_IN_NEED = 2
"""Checkpoints that stay when the disk is full."""


class Owner(Protocol):
    """Who pauses when a checkpoint cannot be made."""

    def critical(self, kind: str, text: str) -> None:
        """Pause."""

    def withdraw_votes(self) -> None:
        """Votes that nobody can answer now begin anew later."""


class Saving:
    """The checkpoints of a running session."""

    def __init__(self, site: Site, work: Work, owner: Owner) -> None:
        self.site = site
        self._work = work
        self._owner = owner
        self._wanted: list[tuple[str, Then | None, str]] = []
        self._armed = 0
        self._busy = False
        self.arm()

    @property
    def pending(self) -> bool:
        """Is a checkpoint waiting until it is quiet?"""
        return bool(self._wanted)

    # --- triggers -------------------------------------------------------------------------------------

    def interval_s(self) -> float:
        """How much session time may lie between two checkpoints now."""
        return self.site.config.interval_s or self.site.phase.checkpoint_minutes * 60

    def arm(self) -> None:
        """From now on the time until the next one counts."""
        self._armed += 1
        armed = self._armed

        def due() -> None:
            if armed != self._armed:
                return
            left_s = self.site.base_at_s + self.interval_s() - self.site.clock.now()
            if left_s > 0:
                self.site.clock.after(left_s, due)
            elif not planted("session-no-time-checkpoint"):
                self.want("time")

        self.site.clock.after(self.interval_s(), due)

    def look_at_counts(self) -> None:
        """Have enough calls or tokens come together?"""
        site = self.site
        if self.pending:
            return
        calls = site.spent.tool_calls - site.base_calls
        tokens = site.spent.tokens - site.base_tokens
        if calls >= site.config.calls_interval and not planted("session-no-calls-checkpoint"):
            self.want("calls")
        elif tokens >= site.config.tokens_interval and not planted("session-no-tokens-checkpoint"):
            self.want("tokens")

    def want(self, trigger: str, then: Then | None = None, status: str = "") -> None:
        """A checkpoint as soon as no tool is used; `then` is told what came of it."""
        self._wanted.append((trigger, then, status))
        self.step()

    # --- making one -------------------------------------------------------------------------------------

    def step(self) -> None:
        """Make what is wanted, if it is quiet."""
        if not self._busy:
            self.look_at_counts()
        if self._busy or not self._wanted or self._work.active_tools():
            return
        if self._open_votes():
            if not self._work.halted:
                return  # ballots are on their way
            self._owner.withdraw_votes()
        self._busy = True
        wanted, self._wanted = self._wanted, []
        trigger = min((trigger for trigger, _, _ in wanted), key=_FIRST.index)
        status = next((status for _, _, status in wanted if status), "")
        made = self._make(trigger, status)
        self._busy = False
        for _, then, _ in wanted:
            if then is not None:
                then(made)
        if not self._work.halted:
            self._work.release()

    def _open_votes(self) -> bool:
        return any(vote["status"] == "open" for vote in self.site.state["votes"].values())

    def _make(self, trigger: str, status: str) -> Json:
        """One checkpoint; a second try, on a full disk after cleaning up; then somebody has to look."""
        site = self.site
        before = site.state["status"], site.state["reason"]
        if status:
            site.state["status"], site.state["reason"] = status, ""
        try:
            try:
                return self.write(trigger)
            except (OSError, GitFailed, Invalid) as error:
                site.say("checkpoint.failed", why=str(error)[:300], trigger=trigger)
                kind = kind_of(error)
                by = "cleanup" if kind == "disk_full" else "retry"
                if kind == "disk_full":
                    self.clean_up()  # for nothing else: old ones are what can be gone back to
                made = self.write(trigger)
                site.state["counts"]["recoveries"] += 1
                site.say("recovered", kind=kind, agent="", task="", took_s=0.0, by=by)
                return made
        except (OSError, GitFailed, Invalid) as error:
            site.state["status"], site.state["reason"] = before
            site.say("checkpoint.failed", why=str(error)[:300], trigger=trigger)
            kind = kind_of(error)
            refusal = "no_space" if kind == "disk_full" else "system"
            self._owner.critical(kind, f"no checkpoint could be made: {error}")
            return Refused(refusal, f"The system refused: no checkpoint was made: {error}").answer()

    def write(self, trigger: str) -> Json:
        """Commit, gather, check, write; only what is on the disk is told."""
        site = self.site
        number = site.session.checkpoints.next_number
        if not planted("session-not-committed"):
            site.state["git_commit"] = site.repository.commit(f"Checkpoint {number}")
        site.state["file_system_state"] = site.repository.snapshot()
        previous = "" if planted("session-chain-broken") else site.base_digest
        payload = site.present(trigger, number, previous)
        payload["metrics"]["checkpoint_count"] += 1  # this one
        payload["validation"] = self._validation(payload)
        if planted("session-field-missing"):
            del payload["working_memory"]
        wrong = problems(payload)
        if wrong and not planted("session-field-missing", "session-not-committed"):
            raise Invalid(f"checkpoint {number} would not be valid: {'; '.join(wrong)}")
        try:
            written = site.session.checkpoints.write(payload)
        except OSError:
            site.session.checkpoints.remove(number)  # not surely on the disk: it was never made
            raise
        site.rebase(payload, written)
        self.arm()
        known = {"checkpoint": number, "trigger": trigger, "digest": written}
        site.say("checkpoint.written", **known)
        self._forget_old(site.config.keep)
        return {**known, "git_commit": payload["git_commit"], "deltas": 0}

    def _validation(self, payload: Json) -> dict[str, bool]:
        """The checklist of checkpoints, each point looked at."""
        site, files = self.site, payload["file_system_state"]
        texts = {name: entry.get("text") or "" for name, entry in files.items()}
        clean = site.repository.is_clean()
        memory = payload["working_memory"]
        names = {one["name"] for one in payload["agent_states"]}
        held = [
            clean,
            set(site.repository.paths(unfinished=True)) == set(files),
            gates.compiles(texts),
            clean and bool(payload["git_commit"]),
            set(self._work.desks) <= names,
            all(isinstance(part, str) for pair in memory.items() for part in pair),
            bool(payload["metrics"]) and set(FIELDS) <= set(payload),
            not self._work.active_tools(),
            not self._open_votes(),
            payload["errors"] == [],
        ]
        return dict(zip(CHECKS, held, strict=True))

    # --- room -------------------------------------------------------------------------------------------

    def clean_up(self) -> None:
        """Make room: old checkpoints go, the newest good ones stay."""
        good = [row["checkpoint"] for row in self.site.session.checkpoints.survey() if row["valid"]]
        self._remove_before(good[-_KEPT_IN_NEED:])

    def _forget_old(self, keep: int) -> None:
        if keep:
            kept = 1 if planted("session-one-kept") else keep
            self._remove_before(self.site.session.checkpoints.numbers()[-kept:])

    def _remove_before(self, kept: list[int]) -> None:
        checkpoints = self.site.session.checkpoints
        for number in checkpoints.numbers():
            if kept and number < kept[0]:
                checkpoints.remove(number)


def kind_of(error: Exception) -> str:
    """Is it a full disk, or something else of the system's?"""
    full = isinstance(error, OSError) and is_full(error)
    return "disk_full" if full or "No space left" in str(error) else "system"
