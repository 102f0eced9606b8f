"""A repository, the double of `claude` and a private tmux server, for the tests of the double."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from mutiny.doubles.agents.processes import is_alive
from mutiny.doubles.install import Received, install, read_received
from mutiny.system.files import BoxPath

DEADLINE_S = 20.0
POLL_S = 0.02
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")


class Box:
    """A directory with a repository, the installed double, and a private tmux server."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = root / "source"
        self.doubles = root / "doubles"
        self.environment = {
            "HOME": str(root / "home"),
            "TMPDIR": str(root / "tmp"),
            "TMUX_TMPDIR": str(root / "tmp"),
            "PATH": f"{root / 'bin'}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "MUTINY_DOUBLES": str(self.doubles),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_EDITOR": "true",
        }
        for name in ("home", "tmp", "source"):
            (root / name).mkdir()
        (root / "home" / ".gitconfig").write_text(
            "[user]\n name = Tester\n email = tester@example.com\n[init]\n defaultBranch = master\n"
        )
        install(BoxPath(root, "bin"), BoxPath(self.doubles))
        self.git("init", "--quiet")
        (self.source / ".gitignore").write_text(".claude/\n")
        self.git("add", ".gitignore")
        self.git("commit", "--quiet", "-m", "first")

    def git(self, *arguments: str, cwd: Path | None = None, check: bool = True) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=cwd or self.source,
            env=self.environment,
            check=check,
            capture_output=True,
            text=True,
        ).stdout

    def worktree(self, name: str) -> Path:
        path = self.root / "w" / name
        self.git("worktree", "add", "--quiet", "-b", f"work/{name}", str(path))
        return path

    def tmux(self, *arguments: str) -> str:
        return subprocess.run(
            ["tmux", "-L", "m", "-f", "/dev/null", *arguments],
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def start(self, name: str, cwd: Path, *arguments: str) -> Received:
        """Start the double in a new pane and wait until it has recorded its start."""
        known = len(self.events("start", worker=cwd.name))
        if not known:
            # A server whose last agent left would leave too, just when the next one comes.
            self.tmux("new-session", "-d", "-s", f"keep-{name}", "cat")
        self.tmux(
            *("new-session", "-d", "-s", name, "-x", "120", "-y", "30", "-c", str(cwd)),
            *("claude", "--dangerously-skip-permissions", *arguments),
        )
        return self.wait_for("start", known + 1, worker=cwd.name)[-1]

    def type(self, name: str, text: str) -> None:
        self.tmux("send-keys", "-t", f"={name}:", "-l", text)
        self.press(name, "Enter")

    def press(self, name: str, key: str) -> None:
        self.tmux("send-keys", "-t", f"={name}:", key)

    def paste(self, name: str, text: str, *flags: str) -> None:
        file = self.root / "tmp" / "paste"
        file.write_text(text)
        self.tmux("load-buffer", "-b", "prompt", str(file))
        self.tmux("paste-buffer", *flags, "-d", "-b", "prompt", "-t", f"={name}:")

    def screen(self, name: str) -> str:
        return self.tmux("capture-pane", "-p", "-t", f"={name}:")

    def events(self, event: str, **values: object) -> list[Received]:
        records = read_received(BoxPath(self.doubles, "received.jsonl"), 0)[0]
        return [
            record
            for record in records
            if record.event == event
            and all(getattr(record, name) == value for name, value in values.items())
        ]

    def wait_for(self, event: str, count: int = 1, **values: object) -> list[Received]:
        """Wait for a number of records of one event with the given values."""
        wait_until(
            lambda: len(self.events(event, **values)) >= count,
            lambda: (
                f"{count} x {event} {values}; received:\n"
                + (self.doubles / "received.jsonl").read_text()
            ),
        )
        return self.events(event, **values)

    def configure_hooks(self, cwd: Path, command: str | None = None) -> Path:
        """Write settings whose hooks append their input to a file; return the file."""
        heard = self.root / f"heard-{cwd.name}.jsonl"
        command = command or f"cat >> {heard}; echo >> {heard}"
        hook = {"type": "command", "command": command, "timeout": 5}
        settings = {"hooks": {event: [{"hooks": [hook]}] for event in EVENTS}}
        (cwd / ".claude").mkdir(exist_ok=True)
        (cwd / ".claude" / "settings.json").write_text(json.dumps(settings))
        return heard

    def print_mode(
        self, *arguments: str, stdin: str = "", cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["claude", "--print", *arguments],
            cwd=cwd or self.source,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )

    def close(self) -> None:
        """End the tmux server and see that every agent ends with it."""
        subprocess.run(
            ["tmux", "-L", "m", "-f", "/dev/null", "kill-server"],
            env=self.environment,
            check=False,
            capture_output=True,
        )
        agents = {(record.pid, record.start) for record in self.events("start")}
        wait_until(
            lambda: not any(is_alive(*agent) for agent in agents), lambda: "agents outlive tmux"
        )


def wait_until(condition: Callable[[], bool], missing: Callable[[], str]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {DEADLINE_S} s for {missing()}"
        time.sleep(POLL_S)


def heard_events(file: Path) -> list[Mapping[str, str]]:
    return [json.loads(line) for line in file.read_text().splitlines() if line]
