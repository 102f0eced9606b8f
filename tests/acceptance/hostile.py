"""A target that turns on Mutiny: the real engine against a program whose `init` does what a trick says."""

from __future__ import annotations

import hashlib
import io
import json
import resource
import time
from dataclasses import dataclass
from pathlib import Path

from mutiny.engine.replay import load
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Assignment, Bench
from mutiny.report.terminal import Terminal
from mutiny.system.machine import crowding
from mutiny.targets.registry import find_target

HANG_S = 10.0
"""On a quiet machine; more when more is to be done at the same time."""
MEMORY_BYTES = 200 << 20
"""By so much the most that this process ever used may grow."""
SECRET = "the-secret-of-somebody-else"

PROGRAM = r"""#!/bin/sh
mine="$HOME/mine"
case "$1" in
init)
    mkdir -p "$mine"
    echo '{"workers": {}, "tasks": []}' > "$mine/state.json"
    : > "$mine/lock"
    echo 'a line' > "$mine/daemon.log"
    eval "$TRICK"
    ;;
review) echo '{"workers": 3}' > "$mine/state.json" ;;
down) eval "$LATER" ;;
list) echo '{"tasks": []}' ;;
esac
exit 0
"""

_WORKERS = ("init", "up", "down", "add", "nuke", "start", "review", "accept", "reject")
_BOARD = ("init", "add", "claim", "complete", "list", "status")
_REST = {
    "workers": """
[state]
file = "{home}/mine/state.json"
workers = "workers"

[state.fields]
status = "status"
branch = "branch"
worktree = "worktree"
session = "session"
prompt = "current_prompt"

[logs]
daemon = "{home}/mine/daemon.log"
files = ["{home}/mine"]

[rejections]

[profile.limits]
recover_s = 0.5
lag_s = 0.3
""",
    "board": """
[state]
directory = "{home}/mine"
file = "{home}/mine/state.json"
probe = "list"

[places]
lock = "{home}/mine/lock"

[profile.limits]
lag_s = 0.3
""",
}
"""What a target file of each contract says besides its commands."""


@dataclass(frozen=True)
class Attacked:
    """What became of Mutiny and of what lies outside of the box."""

    verdict: Verdict
    steps: int
    doubts: tuple[str, ...]
    said: str
    seconds: float
    memory: int
    run: Path
    before: str
    after: str

    def kept(self) -> dict[str, bytes]:
        """Every file of the run directory, but for those of the box itself; links are not followed."""
        found = {}
        own = [path for path in self.run.iterdir() if path.name != "box"]
        for path in [*own, *(below for folder in own for below in folder.rglob("*"))]:
            if path.is_dir() and not path.is_symlink():
                continue
            name = str(path.relative_to(self.run))
            found[name] = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        return found

    def require_harmless(self) -> None:
        """Nothing outside was touched, nothing hung, nothing flooded the memory, nothing leaked."""
        assert self.after == self.before, "something outside of the box was changed"
        assert self.seconds < HANG_S * crowding()
        assert self.memory < MEMORY_BYTES
        assert SECRET not in self.said
        kept = self.kept()
        assert [name for name, data in kept.items() if SECRET.encode() in data] == []
        assert not any(path.is_symlink() for path in map(self.run.joinpath, kept))


def outside_of(directory: Path) -> Path:
    """Files that are nobody's business, laid out so that a link to them fits many names."""
    outside = directory / "outside"
    for name in ("state.json", "README.md", "HEAD", "mine/state.json", "mine/daemon.log", "a/b"):
        path = outside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"workers": {}, "secret": SECRET, "tasks": []}))
    return outside


def tree_hash(directory: Path) -> str:
    """Names, kinds, modes and contents of everything below."""
    total = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        total.update(f"{path.relative_to(directory)} {path.lstat().st_mode:o}\n".encode())
        total.update(path.read_bytes() if path.is_file() else b"")
    return total.hexdigest()


def attack(
    directory: Path,
    trick: str,
    *operations: dict[str, object],
    later: str = "",
    isolation: str | None = None,
    contract: str = "workers",
) -> Attacked:
    """Run operations against the hostile target; `trick` is what its `init` does, `later` its `down`."""
    outside = outside_of(directory)
    target_file, program = _target(directory, outside, trick, later, contract)
    target = find_target(str(target_file), program=str(program), isolation=isolation)
    scenario = directory / "scenario.json"
    scenario.write_text(json.dumps(list(operations)))
    planned = load(scenario, target.contract().operations, contract).operations
    out = io.StringIO()
    terminal = Terminal(out)
    bench = Bench(target, directory / "chaos_runs")
    before, started, memory = tree_hash(outside), time.monotonic(), _most_memory()
    outcome = bench.run(Assignment(planned, "hostile", seed=7), (terminal.listen,))
    terminal.failure(outcome, target.contract(), None)
    return Attacked(
        outcome.verdict,
        len(outcome.steps),
        tuple(doubt for one in outcome.steps for doubt in one.inconclusive),
        out.getvalue(),
        time.monotonic() - started,
        _most_memory() - memory,
        outcome.directory.path,
        before,
        tree_hash(outside),
    )


def _target(
    directory: Path, outside: Path, trick: str, later: str, contract: str
) -> tuple[Path, Path]:
    program = directory / "program" / "mine"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    environment = {"OUTSIDE": str(outside), "BOX": "{box}", "TRICK": trick, "LATER": later}
    names = _WORKERS if contract == "workers" else _BOARD
    said = {"add": ["{worker}"]} if contract == "workers" else {}
    commands = [
        f"{name} = {{ argv = {json.dumps(['{program}', name, *said.get(name, ())])} }}"
        for name in names
    ]
    own = ('sessions = "."',) if contract == "workers" else ()
    lines = [
        *("format = 1", 'name = "mine"', f'contract = "{contract}"', 'about = "hostile"'),
        *('program = "mine"', *own, "[environment]"),
        *(f"{key} = {json.dumps(value)}" for key, value in environment.items()),
        *("[commands]", *commands, _REST[contract]),
    ]
    target = directory / "mine.toml"
    target.write_text("\n".join(lines))
    return target, program


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def step(kind: str, **arguments: object) -> dict[str, object]:
    """An operation as a scenario file has it."""
    return {"type": kind, "args": arguments}
