"""The crew at work: one loop over a socket, agents and time.

Agents are workers like all others: the crew claims, starts, completes and fails for them with the
same verbs that anybody may use, so there is nothing that only the crew could do wrong.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterator

from longboat.board import codec, files
from longboat.board.agents import Agent, end_survivors
from longboat.board.journal_store import JournalStore
from longboat.board.values import Answer, Command, Refused, Task
from longboat.planting import planted

TICK_S = 0.05
REQUEST_LIMIT = 64 * 1024 * 1024
AGENT_PREFIX = "agent-"
NOT_NOW = ("no_space", "system")
"""Why what became of a task could not be written down, and may be a moment later."""


class _Client:
    """One connection: a line in, a line out."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.received = b""
        self.to_send = b""


class Crew:
    """A board, its socket and its agents."""

    def __init__(
        self, store: JournalStore, agents: int, command: str, on_beat: Callable[[], None]
    ) -> None:
        self._store = store
        self._on_beat = on_beat
        self._agents = [
            Agent(store.directory, f"{AGENT_PREFIX}{number}", command)
            for number in range(1, agents + 1)
        ]
        self._owed: dict[str, Command] = {}
        self._selector = selectors.DefaultSelector()
        self._stopping = False
        self._beat_due = 0.0
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, self._woken)
        self._listening = self._listen()

    def _listen(self) -> socket.socket:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path = self._store.file("crew.sock")
        files.discard(path)
        with short_path(self._store.directory, "crew.sock") as short:
            listening.bind(short)
        listening.listen(64)
        listening.setblocking(False)
        self._selector.register(listening, selectors.EVENT_READ, self._accept)
        return listening

    def stop(self, *_: object) -> None:
        """Leave the loop soon; may be called from a signal handler."""
        self._stopping = True
        with contextlib.suppress(BlockingIOError):  # full: it will wake anyway
            os.write(self._wake_write, b"x")

    def _woken(self, _: int) -> None:
        os.read(self._wake_read, 100)

    def run(self) -> None:
        """Until `stop`. First whatever an earlier crew left behind."""
        if not planted("crew-resumes-running"):
            end_survivors(self._store.directory)
        for task in self._store.held_by(AGENT_PREFIX):
            self._say("fail", task, "the crew ended")
        self._store.forget_failures()
        sys.stdout.write("crew is ready\n")
        sys.stdout.flush()
        while not self._stopping:
            self._tick()
            for key, mask in self._selector.select(TICK_S):
                act: Callable[[int], None] = key.data
                act(mask)
        self._wind_up()

    def _say(self, verb: str, task: Task, text: str | None = None) -> bool:
        """Say for an agent what becomes of its task; what cannot be written down now is owed."""
        owner = task.owner or ""
        command = Command(verb, worker=owner, task=task.id, epoch=task.epoch, text=text)
        taken, refused = self._tell(command)
        if refused in NOT_NOW and not planted("agents-end-lost"):
            self._owed[owner] = command
        else:
            self._owed.pop(owner, None)
        return taken

    def _tell(self, command: Command) -> tuple[bool, object]:
        limited = planted("agents-end-limited")
        answer = self._store.execute(command, limited=limited)
        return bool(answer["ok"]), answer.get("error")

    def _say_again(self) -> None:
        """Its agent asks for nothing until it is said: else what it holds would look alive for ever."""
        for owner, command in list(self._owed.items()):
            if self._tell(command)[1] not in NOT_NOW:
                del self._owed[owner]

    # ---------------------------------------------------------------- agents

    def _tick(self) -> None:
        now = time.monotonic()
        for agent in self._agents:
            if agent.busy and (agent.stdout is not None or planted("dead-agent-kept-fresh")):
                self._store.hear(agent.name)
                if now > agent.deadline:
                    self._ended(agent, too_late=True)
        if now >= self._beat_due:
            self._store.still_ours()
            self._on_beat()
            try:
                files.touch(self._store.file("crew.lease"))
            except OSError as error:  # then a standby may take over; until it does, go on
                sys.stderr.write(f"longboat crew: the lease was not renewed: {error}\n")
            self._beat_due = now + self._store.config.leader_lease_s / 4
        self._say_again()
        for agent in self._agents:
            if agent.busy or agent.name in self._owed:
                continue
            if not self._dispatch(agent):
                break
        self._store.settle_deadlock()

    def _dispatch(self, agent: Agent) -> bool:
        """Give a free agent a task; False when there is none to give."""
        wanted = self._store.first_open() if planted("crew-ignores-dag") else ""
        answer = self._store.execute(Command("claim", worker=agent.name, task=wanted))
        if not answer["ok"]:
            return False
        task, epoch = str(answer["task"]), int(str(answer["epoch"]))
        taken = Task(task, "", 0, owner=agent.name, epoch=epoch)
        if not self._say("start", taken):
            self._say("release", taken)
            return False
        prompt = f"## Task: {task}\n\n{answer['description']}\n"
        if answer["payload"]:
            prompt += f"\n{answer['payload']}\n"
        try:
            agent.start(task, epoch, prompt, self._store.config.agent_timeout_s)
        except OSError as error:
            agent.end()
            self._say("fail", taken, f"the agent cannot be started: {error}")
            return True
        self._watch(agent)
        return True

    def _watch(self, agent: Agent) -> None:
        assert agent.stdout is not None
        assert agent.stdin is not None
        stdin = agent.stdin.fileno()

        def hear(_: int) -> None:
            if agent.hear():
                self._ended(agent)

        def give(_: int) -> None:
            agent.give_prompt()
            if agent.stdin is None:
                self._selector.unregister(stdin)

        self._selector.register(agent.stdout.fileno(), selectors.EVENT_READ, hear)
        self._selector.register(stdin, selectors.EVENT_WRITE, give)

    def _unwatch(self, agent: Agent) -> None:
        for pipe in (agent.stdout, agent.stdin):
            if pipe is not None and not pipe.closed:
                self._selector.unregister(pipe.fileno())

    def _ended(self, agent: Agent, *, too_late: bool = False) -> None:
        taken = Task(agent.task, "", 0, owner=agent.name, epoch=agent.epoch)
        self._unwatch(agent)
        done, text = agent.finish()
        if too_late:
            done, text = False, "the agent did not answer in time"
        if not done and planted("dead-agent-kept-fresh"):
            agent.task = taken.id
            return
        self._say("complete" if done else "fail", taken, text)

    def _wind_up(self) -> None:
        """In good order: agents end, their tasks go back untouched."""
        for agent in self._agents:
            if agent.busy:
                taken = Task(agent.task, "", 0, owner=agent.name, epoch=agent.epoch)
                self._unwatch(agent)
                agent.end()
                self._say("release", taken)
        self._listening.close()
        files.discard(self._store.file("crew.sock"))

    def abandon(self) -> None:
        """Another crew has taken over: our agents end, and nothing is written any more."""
        for agent in self._agents:
            agent.end()

    # ---------------------------------------------------------------- clients

    def _accept(self, _: int) -> None:
        try:
            connection, _address = self._listening.accept()
        except OSError:  # the caller has gone, or there are too many: it will see that itself
            return
        client = _Client(connection)
        self._selector.register(
            connection, selectors.EVENT_READ, lambda mask: self._serve(client, mask)
        )

    def _serve(self, client: _Client, mask: int) -> None:
        try:
            if mask & selectors.EVENT_READ:
                self._receive(client)
            if client.to_send:
                sent = client.connection.send(client.to_send)
                client.to_send = client.to_send[sent:]
                events = selectors.EVENT_READ
                if client.to_send:
                    events |= selectors.EVENT_WRITE
                key = self._selector.get_key(client.connection)
                self._selector.modify(client.connection, events, key.data)
        except BlockingIOError:
            return
        except OSError:  # it has gone; what it asked for has happened or not, as it was answered
            self._drop(client)

    def _receive(self, client: _Client) -> None:
        data = client.connection.recv(1 << 20)
        if not data or len(client.received) > REQUEST_LIMIT:
            self._drop(client)
            return
        client.received += data
        while b"\n" in client.received:
            line, _, client.received = client.received.partition(b"\n")
            client.to_send += codec.to_json(self._answer(line)).encode() + b"\n"

    def _answer(self, line: bytes) -> Answer:
        try:
            command = codec.decode_command(json.loads(line))
        except ValueError as error:
            return Refused("bad_input", f"not JSON: {error}").answer()
        except Refused as refusal:
            return refusal.answer()
        answer = self._store.execute(command)
        if command.verb == "status" and answer["ok"]:
            answer["agents"] = {agent.name: agent.describe() for agent in self._agents}
            answer["daemon"] = {"pid": os.getpid()}
        return answer

    def _drop(self, client: _Client) -> None:
        with contextlib.suppress(KeyError, ValueError):  # dropped already
            self._selector.unregister(client.connection)
        client.connection.close()
        client.to_send = b""


@contextlib.contextmanager
def short_path(directory: str, name: str) -> Iterator[str]:
    """A path to a socket that fits: socket addresses hold about a hundred bytes."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)
