"""Network faults inside the private network of a box: partition, one-way, loss, slow link; and a
door out of it.

Insight: the rules live in the network namespace of the box, which its maker may enter from outside,
also as a plain user; they can never touch the host, and they are gone with the box. Each rule
counts its packets, so that "the partition was felt" is a number and not a hope. Latency is the
proxy's (`proxy.py`) unless this kernel has netem.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mutiny.box.box import Box
from mutiny.errors import BoxError
from mutiny.faults.base import Fault
from mutiny.faults.namespaces import execute_in, why_no_namespace
from mutiny.faults.proxy import HEALTHY, DegradeLink, FaultProxy, LinkRules
from mutiny.model.result import OperationResult

__all__ = [
    "HEALTHY",
    "DegradeLink",
    "FaultProxy",
    "LinkRules",
    "Partition",
    "Party",
    "SlowLink",
    "listen_inside",
]

_LISTEN_LIMIT_S = 20.0


# --- a door out of a box without network -----------------------------------------------------------

_LISTEN = """
import socket, sys
listener = socket.socket(socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((sys.argv[2], int(sys.argv[3])))
listener.listen(128)
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
socket.send_fds(line, [b"x"], [listener.fileno()])
"""


def listen_inside(box: Box, port: int, address: str = "127.0.0.1") -> socket.socket:
    """A socket that listens inside the box and is served out here; the port is free in every box.

    A process of the box binds it in the box's own network and hands it out (SCM_RIGHTS); so one
    server can serve many boxes that have no network at all.
    """
    name = f"door-{secrets.token_hex(4)}"
    directory = box.files / "tmp"
    handle = directory.open_directory()
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(f"/proc/self/fd/{handle}/{name}")  # names of sockets have about 100 bytes
            door.listen(1)
            door.settimeout(_LISTEN_LIMIT_S)
            python = str(Path(sys.executable).resolve())
            inside = f"{box.inside_root}/tmp/{name}"
            argv = [python, "-IS", "-c", _LISTEN, inside, address, str(port)]
            done = box.run(argv, timeout_s=_LISTEN_LIMIT_S)
            if done.exit_code != 0:
                reason = (done.stderr.strip().splitlines() or [str(done)])[-1]
                raise BoxError(f"nobody can listen on {address}:{port} in the box: {reason}")
            line, _ = door.accept()
            with line:
                _, descriptors, _, _ = socket.recv_fds(line, 1, 1)
    finally:
        (directory / name).unlink(missing_ok=True)
        os.close(handle)
    return socket.socket(fileno=descriptors[0])


# --- partition and loss ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Party:
    """Somebody at the other end: an address and, if it is one service, its TCP port."""

    name: str
    address: str
    port: int | None = None

    def matches(self, side: Literal["source", "destination"]) -> str:
        """The nftables expression for packets from (or to) this party."""
        family = "ip6" if ipaddress.ip_address(self.address).version == 6 else "ip"
        letter = side[0]
        text = f"{family} {letter}addr {self.address}"
        return text if self.port is None else f"{text} tcp {letter}port {self.port}"


class Partition(Fault):
    """Packets between the box and a party are lost, in both directions or in one.

    `to` loses what goes to the party, `from` what comes from it. `how="reject"` answers with a
    reset instead of silence. `loss` (0 to 1) loses only a part: with `regular` exactly every n-th
    packet, otherwise at random.
    """

    def __init__(
        self,
        box: Box,
        party: Party,
        *,
        direction: Literal["both", "to", "from"] = "both",
        how: Literal["drop", "reject"] = "drop",
        loss: float | None = None,
        regular: bool = True,
    ) -> None:
        if loss is not None and not 0 < loss <= 1:
            raise ValueError(f"loss {loss} is not between 0 and 1")
        self._box = box
        self._party = party
        self._direction = direction
        self._how = how
        self._loss = loss
        self._regular = regular
        self._table = f"mutiny_{secrets.token_hex(4)}"
        self._active = False
        self._own = 0
        """Packets that the proof itself lost."""
        self.technique = "nftables in the network namespace of the box"

    def why_not(self) -> str | None:
        """No nft program, no network namespace, or a kernel without nftables."""
        if shutil.which("nft") is None:
            return "the program nft is not installed (package nftables); the TCP fault proxy needs none"
        reason = why_no_namespace(self._box, "net")
        if reason is not None:
            return f"{reason}; the TCP fault proxy needs none"
        done = self._nft(["list", "tables"])
        return None if done.returncode == 0 else f"nft: {_last_line(done.stderr)}"

    def rules(self) -> str:
        """The rules as nft reads them."""
        verdict = "drop"
        if self._how == "reject":
            verdict = "reject" if self._party.port is None else "reject with tcp reset"
        verdict = f"counter {verdict}"
        if self._loss is not None:
            lost, among = _small_ratio(self._loss)
            choice = "inc" if self._regular else "random"
            verdict = f"numgen {choice} mod {among} < {lost} {verdict}"
        wanted: list[str] = []
        if self._direction in ("both", "to"):
            wanted.append(self._party.matches("destination"))
        if self._direction in ("both", "from"):
            # The reset that rejects a packet comes in the party's name and must get through.
            spare_resets = " tcp flags & rst == 0" if self._how == "reject" else ""
            wanted.append(self._party.matches("source") + spare_resets)
        # On the loopback both directions arrive at the input; what leaves by a real device does not.
        arriving = "\n".join(f"    {match} {verdict}" for match in wanted)
        leaving = "\n".join(f'    oifname != "lo" {match} {verdict}' for match in wanted)
        return (
            f"table inet {self._table} {{\n"
            f"  chain arriving {{\n    type filter hook input priority 0;\n{arriving}\n  }}\n"
            f"  chain leaving {{\n    type filter hook output priority 0;\n{leaving}\n  }}\n}}\n"
        )

    def inject(self) -> OperationResult:
        """Add the rules, then send one packet to the party and look whether a rule has counted it."""
        done = self._nft(["-f", "-"], self.rules())
        if done.returncode != 0:
            return self.not_done(f"nft refused the rules: {_last_line(done.stderr)}")
        self._active = True
        what = f"{self._party.name} ({self._party.address}, port {self._party.port or 'any'})"
        # Of regular losses one is due after so many packets; of random ones nobody can say.
        if self._loss is None or self._regular:
            self._poke(1 if self._loss is None else _small_ratio(self._loss)[1])
            self._own = self.packets()
            if self._own == 0:
                return self.not_done(f"no packet to or from {what} meets the rules")
        return self.done(f"{self._how} {self._direction} {what}, loss {self._loss or 1:.0%}")

    def packets(self) -> int:
        """How many packets were lost so far."""
        done = self._nft(["-j", "list", "table", "inet", self._table])
        if done.returncode != 0:
            return 0
        return sum(
            expression["counter"]["packets"]
            for item in json.loads(done.stdout)["nftables"]
            for expression in item.get("rule", {}).get("expr", ())
            if "counter" in expression
        )

    def unfelt(self) -> str | None:
        """No packet of the target was lost."""
        if self.packets() > self._own:
            return None
        return f"no packet to or from {self._party.name} was lost meanwhile"

    def heal(self) -> OperationResult:
        """Take the rules away."""
        if not self._active:
            return self.not_done("there is no partition")
        lost = self.packets()
        done = self._nft(["delete", "table", "inet", self._table])
        if done.returncode != 0:
            return self.not_done(f"nft: {_last_line(done.stderr)}")
        self._active = False
        return self.done(f"{self._party.name} can be reached again; {lost} packets were lost")

    def _nft(self, arguments: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
        return execute_in(self._box, ["net"], ["nft", *arguments], stdin)

    def _poke(self, times: int) -> None:
        """Begin connections from inside and give them up at once: a packet each, and maybe an answer."""
        port = self._party.port or 9
        program = (
            "import socket,sys\na=sys.argv[1]\n"
            f"for _ in range({times}):\n"
            "  s=socket.socket(socket.AF_INET6 if ':' in a else socket.AF_INET)\n"
            "  s.setblocking(False);s.connect_ex((a,int(sys.argv[2])));s.close()\n"
        )
        python = str(Path(sys.executable).resolve())
        argv = [python, "-IS", "-c", program, self._party.address, str(port)]
        execute_in(self._box, ["net"], argv)


def _small_ratio(loss: float) -> tuple[int, int]:
    """The loss as a ratio of small whole numbers: 0.25 is one of four."""
    for among in (1, 2, 3, 4, 5, 10, 20, 50, 100, 1000):
        lost = round(loss * among)
        if lost and abs(lost / among - loss) < 1e-9:
            return lost, among
    return max(1, round(loss * 1000)), 1000


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]


# --- a slow link -----------------------------------------------------------------------------------


class SlowLink(Fault):
    """A narrow (`kilobits_per_s`) or long (`delay_ms`) network for everything in the box.

    The width works wherever the kernel has tbf. The delay needs netem, which many kernels lack:
    then it is refused, and the TCP fault proxy does the same for one link.
    """

    def __init__(
        self,
        box: Box,
        *,
        kilobits_per_s: int | None = None,
        delay_ms: int | None = None,
        device: str = "lo",
    ) -> None:
        if (kilobits_per_s is None) == (delay_ms is None):
            raise ValueError("give either kilobits_per_s or delay_ms")
        self._box = box
        self._device = device
        self._active = False
        self._before = 0
        if delay_ms is not None:
            self._discipline = ["netem", "delay", f"{delay_ms}ms"]
        else:
            # The burst must hold the largest packet of the loopback, or it never leaves.
            self._discipline = ["tbf", "rate", f"{kilobits_per_s}kbit", "burst", "80kb"]
            self._discipline += ["latency", "2s"]
        self.technique = f"tc {self._discipline[0]} in the network namespace of the box"

    def why_not(self) -> str | None:
        """No tc, no network namespace, or a kernel without this discipline."""
        if shutil.which("tc") is None:
            return "the program tc is not installed (package iproute2)"
        reason = why_no_namespace(self._box, "net")
        if reason is not None or self._active:
            return reason
        done = self._tc("add")
        if done.returncode != 0:
            return f"tc {self._discipline[0]}: {_last_line(done.stderr)}; use the TCP fault proxy"
        self._tc("del")
        return None

    def inject(self) -> OperationResult:
        """Put the discipline on the device and read it back."""
        done = self._tc("add")
        if done.returncode != 0:
            return self.not_done(f"tc: {_last_line(done.stderr)}")
        self._active = True
        shown = execute_in(self._box, ["net"], ["tc", "qdisc", "show", "dev", self._device])
        if self._discipline[0] not in shown.stdout:
            return self.not_done(f"{self._device} has no {self._discipline[0]}: {shown.stdout}")
        self._before = self.packets()
        return self.done(f"{self._device}: {' '.join(self._discipline)}")

    def packets(self) -> int:
        """How many packets went through it so far."""
        shown = execute_in(self._box, ["net"], ["tc", "-s", "qdisc", "show", "dev", self._device])
        sent = re.search(r"Sent \d+ bytes (\d+) pkt", shown.stdout)
        return int(sent[1]) if sent else 0

    def unfelt(self) -> str | None:
        """Nothing went through it."""
        if self.packets() > self._before:
            return None
        return f"no packet went over {self._device} meanwhile"

    def heal(self) -> OperationResult:
        """Full speed again."""
        if not self._active:
            return self.not_done("the link is not slow")
        self._active = False
        done = self._tc("del")
        if done.returncode != 0:
            return self.not_done(f"tc: {_last_line(done.stderr)}")
        return self.done(f"{self._device}: full speed")

    def _tc(self, verb: str) -> subprocess.CompletedProcess[str]:
        rest = self._discipline if verb == "add" else []
        argv = ["tc", "qdisc", verb, "dev", self._device, "root", *rest]
        return execute_in(self._box, ["net"], argv)
