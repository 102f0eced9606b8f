"""A fake model API: Anthropic's messages, OpenAI's chat completions and responses; scripted, and
able to fail.

Insight: what breaks clients is not the content but the bytes: a header that never comes, half of a
character, a connection reset after the third event. So this server speaks HTTP by hand over one
asyncio protocol and controls every write. It needs nothing but the standard library; one of them
serves all boxes (``listen``), or it runs inside one:

    python -m mutiny.doubles.model_api.api --port 8080 --script script.json --log requests.jsonl
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from mutiny.doubles.model_api import answers as model_answers
from mutiny.doubles.model_api.answers import SHAPES, Answer, Shape
from mutiny.doubles.model_api.conversations import check_conversation
from mutiny.doubles.model_api.requests import BadRequest, Request, RequestParser
from mutiny.doubles.model_api.script import Script, ScriptError, Step, read_script

Result = TypeVar("Result")
MODELS = ("claude-sonnet-4-5", "claude-opus-4-1", "gpt-5", "gpt-5-mini")
SPLIT_TEXT = "Café, naïve, 世界, 🏴."
"""What is said under `split-utf8` when the script's own text has no long character to split."""
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
_LAST_CHUNK = b"0\r\n\r\n"
_MARK = re.compile(rb"mutiny-secret-[0-9]+")
"""What Mutiny writes into files that nobody is to read."""
_CONTROL_LIMIT_S = 10.0
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests"}
_REASONS |= {500: "Internal Server Error", 529: "Overloaded"}


class ModelApi:
    """The server. As a `with` block it runs in a thread of its own; it may listen on many sockets."""

    def __init__(
        self,
        script: Script | None = None,
        *,
        log: str | os.PathLike[str] | None = None,
        bodies: str | os.PathLike[str] | None = None,
        script_file: str | None = None,
        models: tuple[str, ...] = MODELS,
    ) -> None:
        self.models = models
        self.served = 0
        self._script = script or Script()
        self._counts: dict[int, int] = {}
        self._script_file = script_file
        self._script_stamp = 0
        self._log = -1 if log is None else _appending(log)
        self._bodies = -1 if bodies is None else _appending(bodies)
        self._connections: set[_Connection] = set()
        self._servers: list[asyncio.Server] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.address: tuple[str, int] | None = None

    # --- from any thread

    def __enter__(self) -> ModelApi:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="model-api", daemon=True)
        self._thread.start()
        self.listen(socket.create_server(("127.0.0.1", 0)))
        return self

    def __exit__(self, *_: object) -> None:
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        self._in_loop(self._stop)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_CONTROL_LIMIT_S)
        for descriptor in (self._log, self._bodies):
            if descriptor >= 0:
                os.close(descriptor)
        self._log = self._bodies = -1

    @property
    def url(self) -> str:
        """Where it listens first, for ANTHROPIC_BASE_URL; OpenAI clients want `/v1` behind it."""
        if self.address is None:
            raise RuntimeError("the model API does not listen yet")
        return f"http://{self.address[0]}:{self.address[1]}"

    def listen(self, listener: socket.socket) -> None:
        """Serve one more socket, for example one from inside a box."""
        if self._loop is None:
            raise RuntimeError("the model API does not run")
        asyncio.run_coroutine_threadsafe(self._serve(listener), self._loop).result(_CONTROL_LIMIT_S)

    def set_script(self, script: Script) -> None:
        """Answer by another script from now on; its counts begin at the first step."""
        if self._loop is None:
            self._take_script(script)
        else:
            self._in_loop(lambda: self._take_script(script))

    def _in_loop(self, action: Callable[[], Result]) -> Result:
        async def do() -> Result:
            return action()

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(do(), self._loop).result(_CONTROL_LIMIT_S)

    # --- in the loop

    def _run(self) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(asyncio.sleep(0))  # let closed connections say so
        self._loop.close()

    async def _serve(self, listener: socket.socket) -> asyncio.Server:
        listener.setblocking(False)
        if self.address is None:
            self.address = listener.getsockname()[:2]
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(self), sock=listener, backlog=512)
        self._servers.append(server)
        return server

    def _stop(self) -> None:
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            connection.abort()

    def _take_script(self, script: Script) -> None:
        self._script = script
        self._counts = {}

    def reload_if_changed(self) -> None:
        """Read the script file again when it is another one."""
        if self._script_file is None:
            return
        try:
            stamp = os.stat(self._script_file).st_mtime_ns
            if stamp != self._script_stamp:
                with open(self._script_file, "rb") as file:
                    self._take_script(read_script(json.load(file)))
                self._script_stamp = stamp
        except (OSError, ValueError) as error:  # a bad script must be seen, not guessed
            raise ScriptError(f"{self._script_file}: {error}") from None

    def step_for(self, path: str, model: str, last: str, said: str = "") -> tuple[Step, int]:
        """The step of this request, and which one of its rule it is."""
        over: tuple[int, Step, int] | None = None
        for number, rule in enumerate(self._script.rules):
            count = self._counts.get(number, 0)
            if not rule.matches(path, model, last, count, said):
                continue
            step = rule.steps[min(count, len(rule.steps) - 1)]
            if step.over:
                over = over or (number, step, count)  # one at a time
                continue
            if over is not None and over[1].tools and not step.tools:
                over = None  # its time is still to come
            if over is None:
                self._counts[number] = count + 1
                return step, count
            return self._put_over(over, step)
        return (Step(), self.served) if over is None else self._put_over(over, Step())

    def _put_over(self, over: tuple[int, Step, int], answer: Step) -> tuple[Step, int]:
        """An answer with what another step puts on it; its own rule does not count it."""
        number, step, count = over
        self._counts[number] = count + 1
        given = replace(
            answer,
            fault=step.fault,
            retry_after_s=step.retry_after_s,
            tools=(*answer.tools, *step.tools),
            over=True,
        )
        return given, count

    def record(self, entry: dict[str, object]) -> None:
        """Append one line to the log, in one write."""
        if self._log >= 0:
            line = json.dumps({"time": time.time(), **entry}, ensure_ascii=False)
            os.write(self._log, line.encode() + b"\n")

    def keep(self, number: int, body: bytes) -> None:
        """Keep a request as it came, where that was asked for."""
        if self._bodies >= 0:
            os.write(self._bodies, b'{"number":%d,"body":%b}\n' % (number, _one_line(body)))

    def joined(self, connection: _Connection) -> None:
        """A client has come."""
        self._connections.add(connection)

    def left(self, connection: _Connection) -> None:
        """A client has gone."""
        self._connections.discard(connection)


class _Connection(asyncio.Protocol):
    """One client. Requests are answered one after the other; what waits for time is a task."""

    def __init__(self, api: ModelApi) -> None:
        self._api = api
        self._parser = RequestParser()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._api.joined(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._api.left(self)
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._parser.feed(data)
        if self._task is None:
            self._answer_waiting()

    def _answer_waiting(self) -> None:
        assert self._transport is not None
        if self._parser.wants_go_on():
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            while self._task is None and (request := self._parser.next()) is not None:
                self._answer(request)
        except BadRequest as error:
            self._plain(400, model_answers.error_body(400, str(error), "messages"))
            self._transport.close()

    # --- deciding

    def _answer(self, request: Request) -> None:
        shape = SHAPES.get(request.path)
        if shape is not None and request.method == "POST":
            self._answer_model(request, shape)
        elif request.path == "/v1/messages/count_tokens" and request.method == "POST":
            tokens = max(1, len(request.body) // 4)
            self._plain(200, model_answers.compact({"input_tokens": tokens}))
        elif request.path == "/v1/models" and request.method == "GET":
            anthropic = "anthropic-version" in request.headers
            self._plain(200, model_answers.models_body(self._api.models, anthropic=anthropic))
        elif request.path == "/" and request.method in ("GET", "HEAD"):
            self._plain(200, b"" if request.method == "HEAD" else b"{}")
        else:
            text = f"there is no {request.method} {request.path}"
            self._plain(404, model_answers.error_body(404, text, "messages"))
            self._api.record({"path": request.path, "method": request.method, "status": 404})

    def _answer_model(self, request: Request, shape: Shape) -> None:
        api = self._api
        try:
            asked: Any = json.loads(request.body)
            model = str(asked["model"])
            stream = bool(asked.get("stream"))
            options = asked.get("stream_options") or {}
            if shape == "messages":
                check_conversation(asked)
            api.reload_if_changed()
        except ScriptError as error:
            self._plain(500, model_answers.error_body(500, f"bad script: {error}", shape))
            api.record({"path": request.path, "status": 500, "error": str(error)})
            return
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            text = f"the request cannot be read: {type(error).__name__}: {error}"
            self._plain(400, model_answers.error_body(400, text, shape))
            api.record({"path": request.path, "status": 400, "error": text})
            return
        last = _last_text(asked)
        step, count = api.step_for(request.path, model, last, _conversation(asked))
        api.served += 1
        api.keep(api.served, request.body)
        if step.fault == "split-utf8" and step.text.isascii() and not step.over:
            step = replace(step, text=SPLIT_TEXT)
        tokens = max(1, len(request.body) // 4)
        usage = bool(isinstance(options, dict) and options.get("include_usage"))
        answer = Answer(shape, api.served, model, step, tokens, usage)
        api.record(
            {
                "path": request.path,
                "model": model,
                "stream": stream,
                "number": api.served,
                "step": count,
                "fault": step.fault,
                "sha256": hashlib.sha256(request.body).hexdigest(),
                "bytes": len(request.body),
                "last": last[:500],
                **_marks(request.body),
                **answer.told(),
            }
        )
        self._give(answer, stream)

    def _give(self, answer: Answer, stream: bool) -> None:
        step = answer.step
        fault = step.fault
        if fault in ("429", "529", "500"):
            message = {"429": "Rate limited", "529": "Overloaded", "500": "Internal error"}[fault]
            extra = ""
            if step.retry_after_s is not None:
                extra = f"retry-after: {step.retry_after_s}\r\n"
            body = model_answers.error_body(int(fault), message, answer.shape)
            self._plain(int(fault), body, extra)
        elif fault == "reset":
            self.abort(reset=True)
        elif fault == "close":
            self.abort(reset=False)
        elif fault == "hang":
            self._wait(_for_ever())
        elif fault is None and not step.delay_ms and not step.event_delay_ms:
            if stream:
                # Nothing lies between the events, so one write carries them, as the kernel would.
                chunks = (_as_chunk(item) for item in answer.events())
                self._write(b"".join((_STREAM_HEAD, *chunks, _LAST_CHUNK)))
            else:
                self._plain(200, answer.body())
        else:
            self._wait(self._stream(answer) if stream else self._document(answer))

    def _wait(self, work: Any) -> None:
        """Answer in a task; later requests of this connection wait for its end."""

        async def do() -> None:
            try:
                await work
            finally:
                self._task = None
            if self._transport is not None and not self._transport.is_closing():
                self._answer_waiting()

        self._task = asyncio.get_running_loop().create_task(do())

    # --- answers that take time or break

    async def _document(self, answer: Answer) -> None:
        step, body = answer.step, answer.body()
        await asyncio.sleep(step.delay_ms / 1000)
        half = len(body) // 2
        match step.fault:
            case "malformed-json" | "malformed-event":
                self._plain(200, body[:half])
            case "truncated" | "reset-midway" | "close-midway" | "stall":
                self._write(_head(200, len(body)) + body[:half])
                await asyncio.sleep(0)
                if step.fault == "stall":
                    await _for_ever()
                self.abort(reset=step.fault == "reset-midway")
            case "split-utf8":
                self._write(_head(200, len(body)))
                await self._byte_by_byte(body, chunked=False)
            case "error-event":
                self._plain(529, model_answers.error_body(529, "Overloaded", answer.shape))
            case _:
                self._plain(200, body)

    async def _stream(self, answer: Answer) -> None:
        step = answer.step
        if step.fault == "malformed-json":
            self._plain(200, answer.body()[: len(answer.body()) // 2])
            return
        self._begin_stream()
        await asyncio.sleep(step.delay_ms / 1000)
        events = list(answer.events())
        place = len(events) // 2 if step.over else step.after_events
        for number, item in enumerate(events):
            if number == place and step.fault is not None:
                if step.fault in ("reset-midway", "close-midway"):
                    self.abort(reset=step.fault == "reset-midway")
                    return
                if step.fault == "stall":
                    await _for_ever()
                if step.fault == "truncated":
                    self._write(f"{len(item):x}\r\n".encode() + item[: len(item) // 2])
                    self.abort(reset=False)
                    return
                if step.fault == "error-event":
                    self._chunk(answer.error_event())
                    break
                if step.fault == "malformed-event":
                    self._chunk(item[: len(item) // 2] + b"\n\n")
                    continue
            if step.event_delay_ms:
                await asyncio.sleep(step.event_delay_ms / 1000)
            if step.fault == "split-utf8":
                await self._byte_by_byte(item, chunked=True)
            else:
                self._chunk(item)
        self._write(_LAST_CHUNK)

    async def _byte_by_byte(self, data: bytes, *, chunked: bool) -> None:
        for number in data:
            piece = bytes((number,))
            if chunked:
                self._chunk(piece)
            else:
                self._write(piece)
            await asyncio.sleep(0)  # a write of its own for each byte

    # --- bytes

    def _plain(self, status: int, body: bytes, extra: str = "") -> None:
        self._write(_head(status, len(body), extra) + body)

    def _begin_stream(self) -> None:
        self._write(_STREAM_HEAD)

    def _chunk(self, data: bytes) -> None:
        self._write(_as_chunk(data))

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write(data)

    def abort(self, *, reset: bool = True) -> None:
        """End the connection: at once and with RST, or after what was written and with FIN."""
        assert self._transport is not None
        if not reset:
            self._transport.close()
            return
        connection = self._transport.get_extra_info("socket")
        with contextlib.suppress(OSError):  # already broken by the client
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._transport.abort()


def _appending(path: str | os.PathLike[str]) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


def _one_line(body: bytes) -> bytes:
    """A JSON document without line breaks; it was read already, so it is one."""
    return json.dumps(json.loads(body), ensure_ascii=False).encode() if b"\n" in body else body


def _as_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _head(status: int, length: int, extra: str = "") -> bytes:
    reason = _REASONS.get(status, "Unknown")
    return (
        f"HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\n{extra}"
        f"content-length: {length}\r\n\r\n"
    ).encode()


async def _for_ever() -> None:
    """Until the client gives up: then the task is cancelled."""
    await asyncio.Event().wait()


def _last_text(asked: Any) -> str:
    """The last thing that the user said, as far as it can be found."""
    said = asked.get("messages", asked.get("input", "")) if isinstance(asked, dict) else ""
    while isinstance(said, (list, dict)):
        if isinstance(said, list):
            said = said[-1] if said else ""
        else:
            said = said.get("content", said.get("text", ""))
    return str(said)


def _marks(body: bytes) -> dict[str, list[str]]:
    """The words in a request that only stand where nobody is to look."""
    found = sorted({mark.decode() for mark in _MARK.findall(body)})
    return {"marks": found} if found else {}


def _conversation(asked: dict[str, Any]) -> str:
    """What was said by both sides; what a system is told about the world is no part of it."""
    said = asked.get("messages", asked.get("input", ""))
    rows = said if isinstance(said, list) else [said]
    own = [row for row in rows if not (isinstance(row, dict) and row.get("role") == "system")]
    return json.dumps(own, ensure_ascii=False)


def main(arguments: list[str]) -> int:
    """Serve one port until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="model_api", description="A fake model API.")
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: a free one, which is printed")
    parser.add_argument("--script", help="a JSON file; read again whenever it changes")
    parser.add_argument("--log", help="a file for one JSON line per request")
    parser.add_argument("--bodies", help="a file for the requests themselves, one JSON line each")
    options = parser.parse_args(arguments)
    api = ModelApi(log=options.log, bodies=options.bodies, script_file=options.script)
    try:
        api.reload_if_changed()
    except ScriptError as error:
        print(f"model_api: {error}", file=sys.stderr)
        return 2
    asyncio.run(_serve_alone(api, options.address, options.port))
    return 0


async def _serve_alone(api: ModelApi, address: str, port: int) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    await api._serve(socket.create_server((address, port)))
    print(f"listening on {api.url}", flush=True)
    await ended.wait()
    api._stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
