"""The server: commands in RESP, answers in RESP."""

from __future__ import annotations

from redqueue.broker import Broker, UnknownJob
from redqueue.resp import Incomplete, ProtocolError, decode, encode, encode_error

__all__ = ["Connection", "execute"]


def execute(broker: Broker, words: list[str], worker: str) -> bytes:
    """One command."""
    verb, arguments = words[0].upper(), words[1:]
    try:
        if verb == "PUT":
            priority = int(arguments[1]) if len(arguments) > 1 else 100
            delay_s = float(arguments[2]) if len(arguments) > 2 else 0.0
            return encode(broker.put(arguments[0], priority, delay_s))
        if verb == "TAKE":
            job = broker.take(worker)
            return encode(None if job is None else [job.id, job.payload])
        if verb == "DONE":
            broker.finish(int(arguments[0]))
            return b"+OK\r\n"
        if verb == "FAIL":
            return encode(int(broker.fail(int(arguments[0]))))
        if verb == "STATS":
            return encode([part for pair in broker.stats().items() for part in pair])
    except UnknownJob as error:
        return encode_error(f"no such job: {error}")
    except (IndexError, ValueError) as error:
        return encode_error(f"{verb}: {error}")
    return encode_error(f"unknown command {verb}")


class Connection:
    """One client: bytes in, bytes out, whatever the pieces are."""

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker = broker
        self._name = name
        self._received = b""

    def feed(self, data: bytes) -> bytes:
        """Answers to all commands that are complete now."""
        self._received += data
        said = b""
        while self._received:
            try:
                words, end = decode(self._received)
            except Incomplete:
                break
            except ProtocolError as error:
                self._received = b""
                return said + encode_error(str(error))
            self._received = self._received[end:]
            if not isinstance(words, list) or not words:
                said += encode_error("a command is a list of words")
                continue
            said += execute(self._broker, [str(word) for word in words], self._name)
        return said
