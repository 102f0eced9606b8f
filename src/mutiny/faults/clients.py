"""A client that connects and says nothing: whoever listens must go on serving the others.

A program that was stopped in a debugger, a hook that hangs, a port scanner: all of them open a connection
and leave it open. A server that reads from one connection until it has ended serves nobody else meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from mutiny.box.box import Box
from mutiny.faults.base import Fault
from mutiny.faults.holders import Holder, python_argv
from mutiny.kit.views import ProcessView
from mutiny.model.result import OperationResult

_CLIENT = """
import os, signal, socket, sys, time
state, *pids = sys.argv[1:]
held = []
def hold(family, address, shown):
    client = socket.socket(family, socket.SOCK_STREAM)
    client.settimeout(5)
    client.connect(address)
    held.append((client, shown))
def sockets():
    owned = {}
    for pid in pids:
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        owned.update((link[8:-1], pid) for link in links if link.startswith("socket:["))
    return owned
def connect(owned):
    for line in open("/proc/net/unix").read().splitlines()[1:]:
        parts = line.split(None, 7)
        listens = int(parts[3], 16) & 0x10000 and int(parts[4], 16) == 1
        if len(parts) == 8 and listens and parts[6] in owned:
            path = parts[7]
            if path.startswith("@"):
                hold(socket.AF_UNIX, chr(0) + path[1:], path)
                continue
            # Its server may have named it in a directory of its own, and a whole name may be too long.
            folder = os.path.dirname(path).replace("/proc/self/", f"/proc/{owned[parts[6]]}/")
            places = [os.path.join(f"/proc/{owned[parts[6]]}/cwd", folder)]
            places += [top for top, _, _ in os.walk(state)]
            name = os.path.basename(path)
            found = next((one for one in places if os.path.exists(os.path.join(one, name))), None)
            if found is not None:
                os.chdir(found)
                hold(socket.AF_UNIX, name, path)
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in open("/proc/net/" + table).read().splitlines()[1:]:
            parts = line.split()
            if parts[3] == "0A" and parts[9] in owned:
                port = int(parts[1].rsplit(":", 1)[1], 16)
                hold(family, ("127.0.0.1" if family == socket.AF_INET else "::1", port), f"port {port}")
until = time.monotonic() + 3  # a server that was started just now may not listen yet
while not held and time.monotonic() < until:
    connect(sockets())
    if not held:
        time.sleep(0.05)
if not held:
    print("nobody listens", flush=True)
    sys.exit(3)
print("connected to", ", ".join(shown for _, shown in held), flush=True)
while True:
    signal.pause()
"""


class SilentClient(Fault):
    """One open connection, on which nothing is ever said, to every stream socket of these processes.

    A socket whose name leads nowhere is looked for below the directory of the state.
    """

    technique = "connections of a process of the box that says nothing"

    def __init__(self, box: Box, servers: Sequence[ProcessView], state: str) -> None:
        self._state = state
        self._servers = tuple(servers)
        self._client = Holder(box)

    def inject(self) -> OperationResult:
        """Start the client, and wait until the kernel has given it its connections."""
        pids = [str(one.pid) for one in self._servers]
        said = self._client.take(python_argv(_CLIENT, self._state, *pids))
        if not said.startswith("connected"):
            return self.not_done(f"no connection could be held: {said}")
        return self.done(said)

    def heal(self) -> OperationResult:
        """End the client; the kernel closes its connections."""
        failed = self._client.let_go()
        return self.not_done(failed) if failed else self.done("connections closed")
