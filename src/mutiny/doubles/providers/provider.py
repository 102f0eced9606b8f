"""A provider without a model: reads its prompt, keeps a session, does the steps of its script.

It starts thousands of times: nothing slow to load stands at the top of this module or of what it imports.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time

from mutiny.doubles.agents import processes
from mutiny.doubles.agents.prompts import find_tokens
from mutiny.doubles.agents.records import CannotRecord, Log, new_session_id
from mutiny.doubles.providers.launch import Launch, kind_of, read_to_end
from mutiny.doubles.providers.script import WITHOUT_SESSION, behaviours_of, parse
from mutiny.doubles.providers.sessions import Session
from mutiny.doubles.tasks.records import Desk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

EXIT_CANNOT_WORK = 70
"""Exit code when the double itself cannot do its job, so no verdict may rest on it."""
TEXT_LIMIT = 4000
_FOR_EVER_S = 3600.0
_CHANNEL = re.compile(r"CHANNEL: #([\w.-]+)")
_SENDER = re.compile(r"^FROM: @?([\w-]+)", re.MULTILINE)
_MESSAGE = re.compile(r"^MESSAGE: (\w+)", re.MULTILINE)
_TASK = re.compile(
    r"^TASK:[ \t]*\n?(.*?)(?:\n\n\s*CHANNEL: #[\w.-]+\nYou are headless\..*)?\Z",
    re.MULTILINE | re.DOTALL,
)
_RESUMED = re.compile(r"\ARESUMED SESSION in #([\w.-]+)\.\n[^\n]*\n(.*)", re.DOTALL)
"""A prompt that goes on with a session: the channel and the task, nothing else."""
_AGENTS = ["LONGBOAT_AGENT", "SPACE_IDENTITY"]
_SPAWNS = ["LONGBOAT_SPAWN_ID", "SPACE_SPAWN_ID"]
_SEND = ["longboat", "bridge", "--json", "send", "{channel}", "{text}"]


def main(provider: str, arguments: Sequence[str], desk: str) -> int:
    """Run the double and return its exit code."""
    launch = Launch(provider, arguments)
    if launch.flags & {"--version", "-v", "-V"} and not launch.words:
        print(f"{provider} 1.0.0 (double)")
        return 0
    try:
        if not os.path.isdir(desk):
            raise CannotRecord(f"{desk}: no such directory (set MUTINY_DOUBLES)")
        return Provider(launch, arguments, desk).run()
    except CannotRecord as error:
        sys.stderr.write(f"{provider} (double): cannot record what happens: {error}\n")
        return EXIT_CANNOT_WORK


class Provider:
    """One process of a provider."""

    def __init__(self, launch: Launch, arguments: Sequence[str], desk: str) -> None:
        self.launch = launch
        self.desk = Desk(desk)
        self.script: dict[str, Any] = self.desk.script()
        cwd = os.getcwd()
        self.agent = self._named("agent", _AGENTS) or os.path.basename(cwd)
        spawn = self._named("spawn", _SPAWNS)
        identity = launch.resumed or new_session_id()
        self.session = Session(launch.provider, identity, cwd, launch.model)
        self.log = Log(desk, self.agent, identity)
        self._same = {
            "provider": launch.provider,
            "agent": self.agent,
            "spawn": spawn,
            "attempt": os.environ.get("LONGBOAT_SPAWN_ATTEMPT", ""),
            "ppid": os.getppid(),
        }
        self._note("start", argv=list(arguments), cwd=cwd, stdin=kind_of(0))
        processes.rename(launch.provider, arguments)
        self.prompt = self.channel = self.sender = ""
        self.tokens: list[str] = []

    def _named(self, key: str, usual: list[str]) -> str:
        names = self.script.get(key, usual)
        return next((os.environ[name] for name in names if os.environ.get(name)), "")

    def _note(self, event: str, **fields: object) -> None:
        self.log.write(event, **self._same, **fields)

    # --- a turn -----------------------------------------------------------------------------------

    def run(self) -> int:
        """Read the prompt, and do what the script says for this turn."""
        if not self.launch.headless and kind_of(0) != "tty":
            sys.stderr.write("Error: stdin is not a terminal\n")
            return self._end(1)
        self.prompt = self._read_prompt()
        if not self.prompt.strip():
            sys.stderr.write("Error: no prompt: give it as an argument or on standard input\n")
            return self._end(1)
        steps = self._take_prompt()
        self.desk.hold("start")
        self.desk.hold(f"start-{self.agent}")
        if not steps or steps[0][0] not in WITHOUT_SESSION:
            self._keep_session()
        for name, argument in steps:
            code = self._step(name, argument)
            if code is not None:
                return self._end(code)
        self.desk.hold("exit")
        self.desk.hold(f"exit-{self.agent}")
        return self._end(0)

    def _read_prompt(self) -> str:
        """An argument, else standard input; codex reads that to its end in any case."""
        given = self.launch.prompt
        if given is not None and self.launch.provider == "codex" and kind_of(0) in ("pipe", "file"):
            return f"{given}\n{read_to_end()}".rstrip("\n")
        return read_to_end() if given is None else given

    def _take_prompt(self) -> list[tuple[str, str]]:
        """Write the prompt down, and count this turn, so that no two agents have the same."""
        task = _found(_TASK, self.prompt) or self.prompt
        self.channel, self.sender = _found(_CHANNEL, self.prompt), _found(_SENDER, self.prompt)
        resumed = _RESUMED.match(self.prompt)
        if resumed is not None:
            self.channel, task = resumed[1], resumed[2]
        self.tokens = find_tokens(task)
        behaviours, by = behaviours_of(self.script, self.agent, self.tokens)
        import hashlib

        lock = self.log.lock()
        try:
            turn = self._turns(by)
            behaviour = behaviours[min(turn, len(behaviours) - 1)]
            self._note(
                "prompt",
                turn=turn,
                behaviour=behaviour,
                by=by,
                tokens=self.tokens,
                token=self.tokens[0] if self.tokens else None,
                channel=self.channel,
                sender=self.sender,
                message=_found(_MESSAGE, self.prompt),
                sha256=hashlib.sha256(task.strip().encode("utf-8", "replace")).hexdigest(),
                task=task.strip()[:TEXT_LIMIT],
                text=self.prompt[:TEXT_LIMIT],
            )
        finally:
            os.close(lock)
        return parse(behaviour)

    def _turns(self, by: str) -> int:
        """How many turns this agent had; with a token, how many of that."""
        turns = 0
        with open(self.log.path, "rb") as file:
            for line in file:
                if b'"event":"prompt"' not in line:
                    continue
                try:
                    record = json.loads(line[max(line.rfind(b'{"time":'), 0) :])
                except ValueError:
                    continue  # its writer was killed in the middle of it
                turns += record["agent"] == self.agent and record.get("by") == by
        return turns

    def _keep_session(self) -> None:
        if self.launch.provider == "codex" and "--json" in self.launch.flags:
            meta = {"type": "session_meta", "payload": {"id": self.session.identity}}
            print(json.dumps(meta), flush=True)
        self.session.begin(self.prompt)
        self._note("session", path=self.session.path)

    def _end(self, code: int) -> int:
        self._note("exit", exit_code=code)
        return code

    # --- steps ------------------------------------------------------------------------------------

    def _step(self, name: str, argument: str) -> int | None:
        """One step; an exit code when it is the last one."""
        names = " ".join(f"@{one}" for one in argument.split(",") if one)
        words = {
            "reply": f"{self.agent}: done",
            "mention": f"{names} please go on",
            "human": "@human task complete",
            "post": argument,
        }
        if name in words:
            self._post(words[name])
        elif name == "echo":
            sender = "" if self.sender in ("", "human") else f"@{self.sender}"
            self._post(f"{names or sender} verified complete".strip())
        elif name == "in":
            self.channel = argument
        elif name == "flood":
            self._flood(argument)
        elif name in ("slow", "busy", "hang", "silent"):
            self._wait(int(argument) / 1000 if argument else _FOR_EVER_S, signs=name == "busy")
        elif name == "tty":
            _wait_for_terminal()
        elif name == "stdin":
            read_to_end()
        elif name == "exit":
            sys.stderr.write("this attempt was meant to fail\n" if argument != "0" else "")
            return int(argument)
        elif name == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif name == "leave":
            self._leave()
        elif name == "bytes":
            os.write(1, b"\xff\xfe \x80\xe2\x28 \xc3\n")
        elif name == "ignore-term":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return None

    def _wait(self, seconds: float, *, signs: bool) -> None:
        """A long task, in silence or with something to be seen all the time."""
        until = time.monotonic() + seconds
        while signs and time.monotonic() < until:
            self.session.say("still at it")
            self._note("sign")
            time.sleep(0.2)
        time.sleep(max(0.0, until - time.monotonic()))

    def _flood(self, argument: str) -> None:
        number, _, rest = argument.partition(",")
        names = "".join(f"@{one} " for one in rest.split(",") if one)
        for count in range(int(number)):
            self._post(f"{names}{self.agent}: message {count + 1}")

    def _post(self, words: str) -> None:
        """Say something in the channel, by the orchestrator's own command."""
        import subprocess

        text = " ".join([words, *self.tokens])
        values = {"channel": self.channel, "agent": self.agent, "text": text}
        argv = [_filled(word, values) for word in self.script.get("send", _SEND)]
        self._note("posting", text=text)
        self.session.say(text)
        print(json.dumps({"type": "message", "text": text}), flush=True)
        try:
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            code, answer, error = done.returncode, done.stdout, done.stderr
        except OSError as failed:
            code, answer, error = 127, "", str(failed)
        self._note(
            "effect", text=text, argv=argv, exit_code=code, answer=answer[:2000], error=error[:500]
        )

    def _leave(self) -> None:
        from mutiny.doubles.tasks.agent import leave

        leave()
        self._note("left")


def _wait_for_terminal() -> None:
    """Some programs ask the terminal before they work; without one they sit there, and use no time."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        time.sleep(_FOR_EVER_S)
        return
    os.close(terminal)


def _filled(word: str, values: dict[str, str]) -> str:
    """A word with its values; what is filled in is not looked at again."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), word)


def _found(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""
