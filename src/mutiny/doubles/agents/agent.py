"""One agent session: hooks, transcript, records, and what each behaviour does with a turn.

A turn ends in this order: commit record, transcript, Stop hook, ``turn_end`` record. An
orchestrator that hears the hook can therefore find the commit, and a ``turn_end`` means that the
double has nothing more to do.
"""

from __future__ import annotations

import os

from mutiny.doubles.agents import behaviours, hooks, processes
from mutiny.doubles.agents.records import SCRIPT_FILE, TEXT_LIMIT, Log, Transcript, new_session_id
from mutiny.doubles.agents.terminal import HungUp, Interrupted, Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mutiny.doubles.agents.work import Work

DEFAULT_MODEL = "mutiny-double"


class AgentExit(Exception):
    """The behaviour says that the process ends now, without hooks."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.exit_code = 1


class Turn:
    """How a turn ended, and what the agent says about it."""

    __slots__ = ("outcome", "reply")

    def __init__(self, outcome: str, reply: str) -> None:
        self.outcome = outcome
        self.reply = reply


class Agent:
    """The double's state between turns."""

    def __init__(
        self,
        *,
        cwd: str,
        doubles_dir: str,
        log: Log,
        terminal: Terminal,
        model: str,
        settings: Sequence[str],
    ) -> None:
        self.cwd = cwd
        self.model = model
        self.log = log
        self.transcript = Transcript(cwd, log.session, model)
        self._script = os.path.join(doubles_dir, SCRIPT_FILE)
        self._terminal = terminal
        self._hooks = hooks.read_hooks(hooks.settings_sources(cwd, settings), log)

    def next_behaviour(self) -> tuple[str, int]:
        """Return name and milliseconds of the behaviour for the next turn of this worker."""
        self.log.earlier.refresh()
        turn = self.log.earlier.turn
        name, milliseconds, trouble = behaviours.read_behaviour(self._script, self.log.worker, turn)
        if trouble:
            self.log.problem(trouble)
        return name, milliseconds

    def start(self, source: str) -> None:
        """Begin the session (source ``startup``, ``resume`` or ``clear``)."""
        self._run_hooks("SessionStart", source=source, model=self.model)
        self.log.write("ready")

    def clear(self) -> None:
        """Do what ``/clear`` does: end the session, begin a fresh one in the same process."""
        session = new_session_id()
        self.log.write("clear", new_session=session)
        self._run_hooks("SessionEnd", reason="clear")
        self.log.session = session
        self.transcript = Transcript(self.cwd, session, self.model)
        self.start("clear")

    def end(self, reason: str) -> None:
        """End the session for good; from here on nothing interrupts the hooks."""
        self._terminal.leaving = True
        self._run_hooks("SessionEnd", reason=reason)

    def turn(self, prompt: str) -> Turn:
        """Receive a prompt and do with it what the script says.

        Raises:
            AgentExit: The behaviour ends the process.
            HungUp: The terminal went away meanwhile.
        """
        from mutiny.doubles.agents.work import (
            Work,  # Not needed to start, and start-up time counts.
        )

        work = Work(self.cwd, prompt, self._terminal, self.log)
        name, milliseconds, kind = self._receive(prompt, work)
        self._terminal.ignores_interrupts = name == "ignore-ctrl-c"
        self._terminal.ignores_endings |= name == "will-not-go"
        if name in ("exit", "exit-at-start"):
            raise AgentExit("exit")
        if name == "swallow":
            self.log.write("turn_end", outcome="swallowed")
            return Turn("swallowed", "")
        try:
            turn, detail = self._work(prompt, work, name, milliseconds, kind)
            self._remember(self.transcript.assistant, turn.reply)
            work.begin_long_git(milliseconds if name == "busy-git" else 0)
            self._stop(name, milliseconds)
            work.end_long_git()
            if name == "late-commit":
                detail = self._commit_late(work, milliseconds)
        except (Interrupted, HungUp) as stop:
            ended = isinstance(stop, HungUp)
            self.log.write("turn_end", outcome="cut off" if ended else "interrupted")
            if ended:
                raise
            return Turn("interrupted", "Interrupted by user")
        self.log.write("turn_end", outcome=turn.outcome, **({"detail": detail} if detail else {}))
        return turn

    def _commit_late(self, work: Work, milliseconds: int) -> str:
        """Commit what was said to be done already; return what went wrong."""
        from mutiny.doubles.agents.work import WorkFailed

        self._terminal.wait(milliseconds / 1000)
        try:
            work.commit(work.written)
        except (WorkFailed, OSError) as error:
            return str(error)
        return ""

    def _stop(self, name: str, milliseconds: int) -> None:
        """Tell the hooks that the turn is over: in time, late, twice, or never."""
        if name == "no-stop":
            return
        if name == "late-stop":
            self._terminal.wait(milliseconds / 1000)
        for _ in range(2 if name == "double-stop" else 1):
            self._run_hooks("Stop", stop_hook_active=False)

    def _receive(self, prompt: str, work: Work) -> tuple[str, int, str]:
        """Record the prompt together with who had it before; return behaviour and kind."""
        import hashlib

        from mutiny.doubles.agents import prompts

        kind = prompts.kind_of(prompt, rebase_in_progress=work.rebase_in_progress())
        lock_fd = self.log.lock()
        try:
            name, milliseconds = self.next_behaviour()
            self.log.write(
                "prompt",
                turn=self.log.earlier.turn,
                behaviour=f"{name}:{milliseconds}" if milliseconds else name,
                tokens=work.tokens,
                token=work.tokens[0] if work.tokens else None,
                sha256=hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest(),
                text=prompt[:TEXT_LIMIT],
                size=len(prompt),
                kind=kind,
                earlier=self.log.earlier_carriers(work.tokens),
            )
        finally:
            os.close(lock_fd)
        return name, milliseconds, kind

    def _work(
        self, prompt: str, work: Work, name: str, milliseconds: int, kind: str
    ) -> tuple[Turn, str]:
        """Run the turn up to its answer; a failure of the work is an outcome, not an error."""
        from mutiny.doubles.agents.work import WorkFailed

        try:
            # The orchestrator may have removed and recreated the worktree under this process.
            os.chdir(self.cwd)
            self._run_hooks("UserPromptSubmit", prompt=prompt)
            self._remember(self.transcript.user, prompt)
            self._before_work(name, milliseconds)
            return self._perform(work, name, milliseconds, kind), ""
        except (WorkFailed, OSError) as error:
            return Turn("failed", f"I could not finish: {error}"), str(error)

    def _before_work(self, name: str, milliseconds: int) -> None:
        """Do what a behaviour does before the agent obeys."""
        if name == "slow":
            self._terminal.wait(milliseconds / 1000)
        elif name == "hang":
            while True:
                self._terminal.wait(None)
        elif name == "read-stdin" and self._terminal.interactive:
            while not self._terminal.ended:
                self._terminal.wait(None)
            self._terminal.ended = False
        elif name == "garbage":
            self._terminal.show(behaviours.garbage())
        elif name == "leave-child":
            pid, start = processes.leave_child()
            self.log.write("child", child=pid, child_start=start)

    def _perform(self, work: Work, name: str, milliseconds: int, kind: str) -> Turn:
        """Do the work of a turn."""
        if name == "fail":
            return Turn("failed", "I could not do it.")
        if name in ("nothing", "stays"):
            return Turn("nothing", "There is nothing to do.")
        if kind == "conflict":
            if name == "give-up":
                return Turn("gave-up", "I cannot resolve these conflicts.")
            if not work.rebase_in_progress():
                return Turn("nothing", "There is no rebase in progress.")
            work.resolve_rebase()
            return Turn("done", "Resolved the conflicts, keeping both sides.")
        paths = work.write_files(stray=name == "stray", reshaped=name.startswith("reshape"))
        listed = ", ".join(paths)
        if name == "crash-in-commit":
            work.crash_in_commit(paths)
        if name == "die-dirty":
            work.die()
        if name == "unfinished":
            self.log.write("wrote", tokens=work.tokens)
            self._terminal.wait(milliseconds / 1000)
        if name.startswith("die-"):
            work.die_after_commit(paths, name)
        if name == "late-commit":
            return Turn("done", f"Wrote {listed}.")
        if name in ("dirty", "reshape-dirty", "busy-git"):
            return Turn("dirty", f"Wrote {listed}.")
        sha = work.commit(paths, self.log.worker if name == "signs" else "")
        if sha is not None:
            return Turn("done", f"Wrote {listed} and committed {sha[:12]}.")
        if work.in_repository:
            return Turn("nothing", f"{listed}: nothing to commit.")
        return Turn("done", f"Wrote {listed}.")

    def _remember(self, append: Callable[[str], None], text: str) -> None:
        """Append to the transcript; an agent whose disk is full still works, and so do we."""
        try:
            append(text)
        except OSError as error:
            self.log.problem(f"session file: {error}")

    def _run_hooks(self, event: str, **fields: object) -> None:
        hooks.run_hooks(
            self._hooks.get(event, ()),
            event,
            fields,
            cwd=self.cwd,
            transcript=self.transcript,
            log=self.log,
            terminal=self._terminal,
        )
