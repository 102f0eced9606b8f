"""A private box for driving the real longboat with real tmux, git and the agent double."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mutiny.doubles.install import install, read_received, write_script
from mutiny.system.files import BoxPath

SOURCE_ROOT = Path(__file__).resolve().parents[2] / "src"
DEADLINE_S = 20.0


class Box:
    """One home, one source repository, one tmux server; gone without trace after the test."""

    def __init__(self) -> None:
        # Short on purpose: the socket of tmux has to fit into 107 bytes.
        self.root = Path(tempfile.mkdtemp(prefix="lb", dir="/tmp"))
        self.home = self.root / "home" / "longboat"
        self.source = self.root / "source"
        self.doubles = self.root / "doubles"
        for name in ("home", "tmp", "bin", "doubles", "source"):
            (self.root / name).mkdir()
        (self.root / "home" / ".gitconfig").write_text(
            "[user]\n name = Test\n email = test@example.org\n[init]\n defaultBranch = master\n"
        )
        install(BoxPath(self.root, "bin"), BoxPath(self.doubles))
        launcher = self.root / "bin" / "longboat"
        launcher.write_text(
            f"#!{sys.executable} -S\nimport sys\nsys.path.insert(0, {str(SOURCE_ROOT)!r})\n"
            "from longboat.cli import main\nsys.exit(main())\n"
        )
        launcher.chmod(0o755)
        self.environment = {
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "TMUX_TMPDIR": str(self.root / "tmp"),
            "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "MUTINY_DOUBLES": str(self.doubles),
            "GIT_CONFIG_NOSYSTEM": "1",
            "EDITOR": "true",
            "LONGBOAT_HOME": str(self.home),
        }
        self.git("init", "-q")
        (self.source / ".gitignore").write_text(".claude/\n.serena/\n")
        (self.source / "README").write_text("hello\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")

    # ------------------------------------------------------------ commands

    def run(self, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.root / "bin" / "longboat"), *words],
            env={**self.environment, **extra},
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )

    def do(self, *words: str) -> str:
        """A command that must succeed."""
        result = self.run(*words)
        assert result.returncode == 0, f"{words}: {result.stderr}{result.stdout}\n{self.log()}"
        return result.stdout

    def rejected(self, *words: str) -> str:
        """A command that must be rejected with exactly one line."""
        result = self.run(*words)
        assert result.returncode == 1, f"{words}: exit {result.returncode} {result.stdout}"
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1, result.stderr
        return result.stderr.strip()

    def git(self, *words: str, at: Path | None = None) -> str:
        result = subprocess.run(
            ["git", "-C", str(at or self.source), *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        return result.stdout.strip()

    def tmux(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["tmux", *words], env=self.environment, capture_output=True, text=True, timeout=30
        )

    def script(self, default: list[str] | None = None, **workers: list[str]) -> None:
        write_script(BoxPath(self.doubles), workers, default or ["obey"])

    # ------------------------------------------------------------ looking

    def state(self) -> dict[str, Any]:
        result: dict[str, Any] = json.loads((self.home / "state.json").read_text())
        return result

    def worker(self, name: str) -> dict[str, Any]:
        result: dict[str, Any] = self.state()["workers"][name]
        return result

    def log(self) -> str:
        path = self.home / "logs" / "daemon.log"
        return path.read_text() if path.exists() else "(no log)"

    def prompts(self, token: str) -> list[Any]:
        records, _ = read_received(BoxPath(self.doubles, "received.jsonl"))
        return [r for r in records if r.event == "prompt" and token in r.tokens]

    def wait(self, what: str, condition: Any) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            if condition():
                return
            time.sleep(0.01)
        raise AssertionError(f"not in time: {what}\n{self.state()}\n{self.log()}")

    def wait_status(self, name: str, status: str) -> None:
        self.wait(f"{name} {status}", lambda: self.worker(name)["status"] == status)

    def wait_stage(self, name: str, stage: str) -> None:
        def reached() -> bool:
            inflight = self.worker(name)["inflight"]
            return inflight is not None and inflight["stage"] == stage

        self.wait(f"{name} {stage}", reached)

    def sessions(self) -> list[str]:
        return self.tmux("list-sessions", "-F", "#{session_name}").stdout.split()

    # ------------------------------------------------------------ set-up and faults

    def init(self, **settings: object) -> None:
        values = {"patrol_interval_secs": 0.2, "submit_delay_ms": 0, "ack_timeout_secs": 2.0}
        values.update(settings)  # type: ignore[arg-type]
        options = [part for k, v in values.items() for part in ("--set", f"{k}={v}")]
        self.do("init", "--source", str(self.source), *options)

    def ready(self, *names: str, **settings: object) -> None:
        """A running daemon with idle workers."""
        self.init(**settings)
        self.do("up")
        for name in names:
            self.do("add", name)
        for name in names:
            self.wait_status(name, "idle")

    def start(self, name: str, token: str, file: str = "") -> None:
        file = file or f"{token}.txt"
        text = f"Create a file named {file} with content 'from {name}' {token}"
        self.do("start", "--worker", name, "--prompt", text)

    def kill(self, pid: int, number: int = signal.SIGKILL) -> None:
        handle = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)

    def kill_daemon(self) -> None:
        pid = self.state()["daemon"]["pid"]
        self.kill(pid)
        self.wait("daemon dead", lambda: not is_alive(pid))

    def kill_agent(self, name: str) -> None:
        self.kill(self.worker(name)["agent"]["pid"])

    def tmux_server_pid(self) -> int:
        return int(self.tmux("display-message", "-p", "#{pid}").stdout)

    def merged(self, token: str) -> int:
        """How many commits of master carry this token."""
        text = self.git("log", "master", "--format=%B%x00")
        return sum(token in message for message in text.split("\0"))

    def close(self) -> None:
        """End everything that carries this box in its environment, by handle."""
        mark = f"LONGBOAT_HOME={self.home}".encode()
        for _ in range(20):
            living = [pid for pid in _pids() if mark in _environ(pid)]
            if not living:
                break
            for pid in living:
                try:
                    self.kill(pid)
                except (ProcessLookupError, OSError):
                    continue
            time.sleep(0.01)
        shutil.rmtree(self.root, ignore_errors=True)


def _pids() -> list[int]:
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]


def _environ(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def is_alive(pid: int) -> bool:
    """True while the process lives; a zombie that nobody has buried is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
