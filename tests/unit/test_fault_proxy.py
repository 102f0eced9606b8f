"""The TCP fault proxy over real sockets: exact bytes, real refusals, and healing of open connections."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

import pytest

from mutiny.faults.network import DegradeLink, FaultProxy, LinkRules

LIMIT_S = 10


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(LIMIT_S)
        yield made


@pytest.fixture
def proxy(server: socket.socket) -> Iterator[FaultProxy]:
    with FaultProxy(server.getsockname()[:2]) as made:
        yield made


def pair(server: socket.socket, proxy: FaultProxy) -> tuple[socket.socket, socket.socket]:
    """The client's end and the server's end of one connection through the proxy."""
    client = socket.create_connection(proxy.address, timeout=LIMIT_S)
    far, _ = server.accept()
    far.settimeout(LIMIT_S)
    return client, far


def read_exactly(line: socket.socket, size: int) -> int:
    left = size
    while left and (data := line.recv(left)):
        left -= len(data)
    return size - left


def read_all(line: socket.socket) -> tuple[bytes, str]:
    seen = b""
    try:
        while data := line.recv(65536):
            seen += data
    except ConnectionResetError:
        return seen, "reset"
    return seen, "closed"


def test_bytes_and_ends_pass_in_both_directions(server: socket.socket, proxy: FaultProxy) -> None:
    client, far = pair(server, proxy)
    with client, far:
        blob = bytes(range(256)) * 4000
        client.sendall(b"up")
        client.shutdown(socket.SHUT_WR)
        assert read_all(far) == (b"up", "closed")
        far.sendall(blob)
        far.close()
        assert read_all(client) == (blob, "closed")
    assert (proxy.connections, proxy.affected) == (1, 0)


def test_a_reset_passes_as_a_reset(server: socket.socket, proxy: FaultProxy) -> None:
    client, far = pair(server, proxy)
    with client:
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        far.close()
        assert read_all(client) == (b"", "reset")


def test_a_dead_server_is_a_reset(server: socket.socket, proxy: FaultProxy) -> None:
    server.close()
    with pytest.raises(ConnectionResetError):  # sometimes already while connecting
        socket.create_connection(proxy.address, timeout=LIMIT_S).recv(1)


def test_the_reset_comes_after_exactly_so_many_bytes(
    server: socket.socket, proxy: FaultProxy
) -> None:
    with DegradeLink(proxy, LinkRules(reset_after_bytes=1000)):
        client, far = pair(server, proxy)
        with client, far:
            for _ in range(3):  # in pieces, so that the first ones have been read before the reset
                far.sendall(b"x" * 300)
                assert read_exactly(client, 300) == 300
            far.sendall(b"y" * 300)
            rest, how = read_all(client)
            assert how == "reset"
            assert len(rest) in (0, 100), "a reset may overtake the last bytes, never add some"
    assert proxy.affected == 1


def test_what_was_held_arrives_when_healed(server: socket.socket, proxy: FaultProxy) -> None:
    client, far = pair(server, proxy)
    with client, far:
        with DegradeLink(proxy, LinkRules(stalled="down")):
            client.sendall(b"question")
            assert far.recv(100) == b"question", "the other direction is open"
            far.sendall(b"answer")
            client.settimeout(0.2)
            with pytest.raises(TimeoutError):
                client.recv(100)
            client.settimeout(LIMIT_S)
        assert client.recv(100) == b"answer"


def test_latency_delays_and_does_not_narrow(server: socket.socket, proxy: FaultProxy) -> None:
    client, far = pair(server, proxy)
    blob = b"z" * 1_000_000
    with client, far, DegradeLink(proxy, LinkRules(latency_s=0.1)):
        begun = time.monotonic()
        far.sendall(blob)
        assert client.recv(1)
        assert time.monotonic() - begun >= 0.1
        assert read_exactly(client, len(blob) - 1) == len(blob) - 1


def test_refused_is_refused_by_the_kernel_and_open_connections_stay(
    server: socket.socket, proxy: FaultProxy
) -> None:
    client, far = pair(server, proxy)
    with client, far:
        with DegradeLink(proxy, LinkRules(refuse=True)) as fault:
            assert fault.injected is not None
            assert fault.injected.fired
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(proxy.address, timeout=LIMIT_S)
            far.sendall(b"still here")
            assert client.recv(100) == b"still here"
        again, far_again = pair(server, proxy)
        again.close()
        far_again.close()


def test_all_open_connections_can_be_reset_at_once(
    server: socket.socket, proxy: FaultProxy
) -> None:
    pairs = [pair(server, proxy) for _ in range(3)]
    for client, far in pairs:  # both directions work, so that the proxy knows the connection
        client.sendall(b"x")
        assert far.recv(1) == b"x"
    assert proxy.reset_all() == 3
    for client, far in pairs:
        assert read_all(client)[1] == read_all(far)[1] == "reset"
        client.close()
        far.close()
