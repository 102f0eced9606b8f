"""The agents of a crew: one process a task, its prompt on stdin, JSON lines back.

Before an agent starts, its mark is written down. Whatever kills the crew, the next one finds every
process that carries the mark and ends it before it gives that task to anybody else.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import time
from typing import IO

from longboat.board import files
from longboat.planting import planted
from longboat.workers import processes

LINE_LIMIT = 16 * 1024 * 1024
GRACE_S = 0.5


def default_command(model: str) -> str:
    """The agent that is started when nobody names another one."""
    return f"claude --print --output-format stream-json --model {model} --verbose"


class Agent:
    """One place in the crew, and the process that works in it now."""

    def __init__(self, directory: str, name: str, command: str) -> None:
        self.name = name
        self.task = ""
        self.epoch = 0
        self.deadline = 0.0
        self._command = shlex.split(command)
        self._mark_path = os.path.join(directory, "agents", name)
        self._log_path = os.path.join(directory, "agents", f"{name}.log")
        self._process: subprocess.Popen[bytes] | None = None
        self._prompt = b""
        self._buffer = b""
        self._texts: list[str] = []
        self._result: dict[str, object] | None = None
        self._shown_pid: int | None = None

    @property
    def busy(self) -> bool:
        """True while it has a task."""
        return bool(self.task)

    @property
    def stdin(self) -> IO[bytes] | None:
        """Where the rest of its prompt goes; None when it has all of it."""
        return self._process.stdin if self._process and self._prompt else None

    @property
    def stdout(self) -> IO[bytes] | None:
        """Where its answer comes from."""
        return self._process.stdout if self._process else None

    def start(self, task: str, epoch: int, prompt: str, timeout_s: float) -> None:
        """Start a process for a task; OSError when that is impossible."""
        mark = f"{os.getpid()}-{time.monotonic_ns()}-{self.name}"
        files.write_temporary(self._mark_path, mark.encode())
        environment = {
            **os.environ,
            "LONGBOAT_SPAWN": mark,
            "CLAUDE_CODE_AGENT_ID": self.name,
            "MUTINY_WORKER": self.name,
        }
        with open(self._log_path, "wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,
                bufsize=0,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        os.set_blocking(self._process.stdout.fileno(), False)
        self.task, self.epoch = task, epoch
        self.deadline = time.monotonic() + timeout_s
        self._prompt = prompt.encode("utf-8", "surrogateescape")
        self._buffer, self._texts, self._result = b"", [], None
        self._shown_pid = self._process.pid

    def give_prompt(self) -> None:
        """Write as much of the prompt as the pipe takes; then close it: nothing more will come."""
        stdin = self.stdin
        if stdin is None:
            return
        try:
            written = os.write(stdin.fileno(), self._prompt)
        except BlockingIOError:
            return
        except BrokenPipeError:  # it may answer without having read everything
            written = len(self._prompt)
        self._prompt = self._prompt[written:]
        if not self._prompt:
            stdin.close()

    def hear(self) -> bool:
        """Read what it said; True when its answer is over."""
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            data = os.read(self._process.stdout.fileno(), 1 << 20)
        except BlockingIOError:
            return False
        self._buffer += data
        while b"\n" in self._buffer:
            line, _, self._buffer = self._buffer.partition(b"\n")
            self._take(line)
        return not data or self._result is not None or len(self._buffer) > LINE_LIMIT

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return  # an agent may print what it likes; only its messages count
        if not isinstance(message, dict):
            return
        if message.get("type") == "result":
            self._result = message
        elif message.get("type") == "assistant":
            with contextlib.suppress(KeyError, TypeError):  # a message of another shape has no text
                blocks = message["message"]["content"]
                self._texts += [one["text"] for one in blocks if one["type"] == "text"]

    def finish(self) -> tuple[bool, str]:
        """End the process: whether it did its task, and its text or what went wrong."""
        code = self.end()
        self.task = ""
        if self._result is None:
            return False, f"the agent ended without a result (exit code {code})"
        text = self._result.get("result")
        said = text if isinstance(text, str) else "\n".join(self._texts)
        if self._result.get("is_error"):
            return False, said or "the agent reported an error"
        return True, said

    def end(self) -> int | None:
        """End it and all its children; its exit code when it had ended by itself."""
        process = self._process
        if process is None:
            files.discard(self._mark_path)
            return None
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S if self._result or process.poll() is not None else 0.05)
        code = process.returncode
        with contextlib.suppress(FileNotFoundError), open(self._mark_path, "rb") as file:
            # A number that was waited for may be somebody else's by now; a mark never is.
            session = process.pid if code is None else -1
            processes.terminate(session, file.read().decode(), grace_s=0.1)
        process.wait()
        files.discard(self._mark_path)
        self._process, self._prompt = None, b""
        return code

    def describe(self) -> dict[str, object]:
        """For `status`: asked of the kernel, not remembered."""
        if planted("dead-agent-reported-healthy"):
            return {"alive": self._shown_pid is not None, "pid": self._shown_pid, "task": self.task}
        alive = self._process is not None and self._process.poll() is None
        pid = self._process.pid if self._process is not None and alive else None
        return {"alive": alive, "pid": pid, "task": self.task or None}


def end_survivors(directory: str) -> None:
    """End every agent that an earlier crew left behind."""
    place = os.path.join(directory, "agents")
    for name in sorted(os.listdir(place)):
        path = os.path.join(place, name)
        if name.endswith(".log"):
            continue
        with open(path, "rb") as file:
            mark = file.read().decode("utf-8", "replace")
        if mark:
            processes.terminate(-1, mark, grace_s=0.0)
        os.unlink(path)


def stop_signals() -> tuple[int, ...]:
    """What ends a crew in good order."""
    return (signal.SIGTERM, signal.SIGINT)
