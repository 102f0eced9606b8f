"""What follows from what: a mention, the end of a run, the end of a conversation; a transaction each."""

from __future__ import annotations

from longboat.planting import planted
from longboat.spawns.ledger import (
    COMPLETED,
    FAILED,
    LIVE,
    OPEN,
    PENDING,
    QUEUED,
    REFUSED,
    STOPPED,
    Agent,
    Ledger,
    Message,
    Spawn,
)
from longboat.spawns.settings import Settings
from longboat.spawns.starting import Starter


class Flow:
    """One transaction's rules: bounds, queue, retries."""

    def __init__(self, ledger: Ledger, settings: Settings, starter: Starter) -> None:
        self.ledger = ledger
        self.settings = settings
        self.starter = starter

    def mention(self, message: Message, agent: Agent, by: Spawn | None) -> Spawn:
        """Somebody was mentioned: a run that begins, waits, or is refused with a reason."""
        depth = 0 if by is None else by.depth + 1
        if by is not None and planted("depth-not-counted"):
            depth = by.depth
        status, reason = self._verdict(message, agent, depth)
        if planted("refused-without-reason"):
            reason = ""
        row = _new(message, agent, by, depth)._replace(status=status, reason=reason)
        spawn = self.ledger.add_spawn(row)
        if status == PENDING:
            self.starter.supervise(spawn)
        return self.ledger.fresh(spawn.id)

    def _verdict(self, message: Message, agent: Agent, depth: int) -> tuple[str, str]:
        settings, ledger = self.settings, self.ledger
        if message.sender.lower() == agent.name.lower():
            return REFUSED, "self"
        if depth > settings.max_depth:
            return REFUSED, "depth"
        if ledger.message(message.root).ended_by is not None:
            return REFUSED, "ended"
        if ledger.runs_of(message.root) >= settings.max_runs and not planted("echo-unbounded"):
            return REFUSED, "root_limit"
        busy = ledger.spawns(*OPEN, channel=message.channel, agent=agent.name)
        if busy and not planted("no-dedupe"):
            return QUEUED, "agent busy"
        here = message.channel if planted("running-limit-per-channel") else ""
        if len(ledger.spawns(*LIVE, channel=here)) >= settings.max_running:
            return QUEUED, "too many"
        return PENDING, ""

    def promote(self) -> None:
        """Whoever waited and may run now begins, in the order in which they came."""
        if planted("queue-forgotten"):
            return
        live = self.ledger.spawns(*LIVE)
        taken = {_place(one) for one in live}
        free = self.settings.max_running - len(live)
        waiting = self.ledger.spawns(QUEUED)
        for spawn in reversed(waiting) if planted("queue-newest-first") else waiting:
            if _place(spawn) not in taken and free > 0:
                self.starter.start(spawn)
                free -= 1
            taken.add(_place(spawn))

    def end_conversation(self, message: Message) -> bool:
        """`@human` in what a run says: nothing of this root begins any more. False: it had ended."""
        if self.ledger.message(message.root).ended_by is not None or planted("end-ignored"):
            return False
        self.ledger.end_conversation(message.root, message.id)
        waiting = () if planted("queue-after-end") else self.ledger.spawns(PENDING, QUEUED)
        for spawn in waiting:
            if spawn.root == message.root:
                status = FAILED if spawn.attempt else REFUSED
                self.ledger.move(spawn.id, status, "ended", reason="ended")
        self.promote()
        return True

    def after_attempt(self, spawn: Spawn, problem: str, exit_code: int | None) -> str:
        """An attempt is over and all its processes are dead: what the run is now."""
        ledger = self.ledger
        if planted("exit-code-of-the-first") and spawn.exit_code is not None:
            exit_code = spawn.exit_code
        if spawn.stopping:
            ledger.move(spawn.id, STOPPED, "", reason="stopped", exit_code=exit_code)
        elif not problem or (planted("exit-code-ignored") and problem.startswith("exit")):
            ledger.move(spawn.id, COMPLETED, "", reason="", exit_code=exit_code)
        else:
            hinders = self._hinders_retry(spawn)
            if not hinders:
                ledger.move(spawn.id, PENDING, problem, reason=problem, exit_code=exit_code)
                ledger.note("retry", None, spawn.id, problem)
                return PENDING
            reason = (
                problem if hinders == "often enough" else f"{problem}; not tried again: {hinders}"
            )
            ledger.move(spawn.id, FAILED, reason, reason=reason, exit_code=exit_code)
            if planted("queue-behind-failure-forgotten"):
                return FAILED
        self.promote()
        return ledger.fresh(spawn.id).status

    def _hinders_retry(self, spawn: Spawn) -> str:
        """Why a failed attempt is the last one; nothing: it is not."""
        often = self.settings.retries + (4 if planted("retries-miscounted") else 0)
        if not spawn.attempt or spawn.attempt > often or planted("no-retry"):
            return "often enough"  # what could not even begin is not tried again
        if self.ledger.posted(spawn.id) and not planted("retry-after-effect"):
            return "it has posted"
        if self.ledger.message(spawn.root).ended_by is not None:
            return "ended"
        return ""


def _place(spawn: Spawn) -> tuple[str, str]:
    return spawn.agent.lower(), spawn.channel.lower()


def _new(message: Message, agent: Agent, by: Spawn | None, depth: int) -> Spawn:
    """A run for a message, before anybody has decided about it."""
    return Spawn(
        id=0,
        agent=agent.name,
        provider=agent.provider,
        channel=message.channel,
        message=message.id,
        root=message.id if planted("root-is-the-last-word") else message.root,
        parent=None if by is None else by.id,
        depth=depth,
        status=PENDING,
        reason="",
        attempt=0,
        stopping=0,
        supervisor_pid=None,
        supervisor_start=None,
        pid=None,
        start=None,
        session=None,
        session_file=None,
        exit_code=None,
        created_at="",
        started_at=None,
        ended_at=None,
        began=None,
        progress=None,
    )
