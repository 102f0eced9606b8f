"""What a target needs to see, and how it looks when it saw too little."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mutiny.box.results import ProcessInfo, Spawned
from mutiny.cli.main import main
from mutiny.contracts.workers.operations import Init, Up
from mutiny.errors import TargetMissing, TechniqueMissing
from mutiny.kit.operations import Sleep
from mutiny.model.pace import Patience
from mutiny.model.result import OperationResult
from mutiny.targets import drivers
from mutiny.targets.kit import live
from mutiny.targets.kit.live import LiveTarget
from mutiny.targets.kit.starting import Starting, refuse_missing, trees_of, why_not_started

LOADERS = {
    "ld.so": (127, "tool: error while loading shared libraries: libx.so.1: cannot open shared"),
    "kernel": (126, "sh: 1: /opt/x/tool: bad interpreter: No such file or directory"),
    "bash": (127, "bash: line 1: ./tool: cannot execute: required file not found"),
    "env": (127, "env: 'node': No such file or directory"),
    "sh": (127, "sh: 1: tool: not found"),
    "python": (
        1,
        "Traceback (most recent call last):\n  ...\nModuleNotFoundError: No module named 'x'",
    ),
    "python, a library": (1, "Traceback ...\nImportError: libx.so: cannot open shared object file"),
    "python, the file": (2, "python3: can't open file '/x/y.py': [Errno 2] No such file"),
    "node": (1, "node:internal\n  throw err;\nError: Cannot find module '/x/y.js'\nRequire stack:"),
    "node, modules": (1, "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'"),
    "ruby": (1, "<internal>: cannot load such file -- bundler (LoadError)"),
    "perl": (2, "Can't locate Foo.pm in @INC (you may need to install"),
    "java": (1, "Error: Unable to access jarfile x.jar"),
}


@pytest.mark.parametrize("name", LOADERS)
def test_a_loaders_complaint_is_not_the_targets(name: str) -> None:
    code, said = LOADERS[name]
    starting = Starting()
    judged = starting.judged(Init(), OperationResult(code, stderr=said))
    assert judged.harness_error is not None
    assert "could not be started in the box" in judged.harness_error
    assert "mounts" in judged.harness_error


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (0, "ModuleNotFoundError: is only a word here"),
        (1, "Traceback (most recent call last):\nValueError: ModuleNotFoundError: no"),
        (1, "error: worker 'alpha' not found"),
        (1, "Traceback ...\nImportError: cannot import name 'a' from 'b' (c.py)"),
        (1, "config.toml: No such file or directory"),
        (101, "thread 'main' panicked at src/main.rs:1:1"),
    ],
)
def test_what_a_target_says_itself_is_its_own(code: int, said: str) -> None:
    result = OperationResult(code, stderr=said)
    assert why_not_started(result) is None
    assert Starting().judged(Init(), result) == result


def test_who_has_answered_once_can_start() -> None:
    starting = Starting()
    late = OperationResult(1, stderr="ModuleNotFoundError: No module named 'x'")
    assert starting.judged(Sleep(0.0), late) == late, "no command of the target"
    assert starting.judged(Init(), OperationResult(0)).harness_error is None
    assert starting.judged(Up(), late) == late, "it could start, and broke later"


def test_a_broken_driver_is_never_the_targets_crash() -> None:
    """The target's own crash comes through a driver, too: the innermost frame tells them apart."""
    folder = Path(drivers.__file__).parent
    mine = f'Traceback (most recent call last):\n  File "{folder}/x.py", line 3, in f\nKeyError: 1'
    theirs = (
        f'Traceback (most recent call last):\n  File "{folder}/x.py", line 3, in f\n'
        '    g()\n  File "/opt/board.py", line 9, in g\n    h()\nKeyError: 1'
    )
    starting = Starting()
    assert starting.judged(Init(), OperationResult(1, stderr=theirs)).harness_error is None
    judged = starting.judged(Init(), OperationResult(1, stderr=mine))
    assert judged.harness_error is not None
    assert "Mutiny's driver" in judged.harness_error


def test_trees_are_found_from_the_program(tmp_path: Path) -> None:
    linked = tmp_path / "elsewhere"
    linked.mkdir()
    app = tmp_path / "deep" / "app"
    (app / "bin").mkdir(parents=True)
    (app / "package.json").write_text("{}")
    venv = tmp_path / "venv"
    packages = venv / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "x.pth").write_text(f"import os\n{linked}\n/nowhere\n")
    (venv / "bin").mkdir()
    (venv / "bin" / "python").touch()
    base = tmp_path / "base" / "bin"
    base.mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text(f"home = {base}\nversion = 3\n")
    program = app / "bin" / "tool"
    program.write_text(f"#!{venv}/bin/python -I\n")
    alias = tmp_path / "links" / "tool"
    alias.parent.mkdir()
    alias.symlink_to(program)
    found = trees_of(alias, [str(linked)])
    for tree in (alias.parent, app / "bin", app, venv, base.parent, linked):
        assert tree in found, tree
    assert Path("/") not in found
    assert Path.home() not in found
    with pytest.raises(TargetMissing, match="/nowhere/at/all does not exist"):
        trees_of(program, ["/nowhere/at/all"])


def test_a_program_of_the_system_needs_nothing() -> None:
    assert trees_of(Path("/bin/sh")) == ()


def test_what_is_not_installed_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    refuse_missing("mine", ["sh", "python:json"])
    with pytest.raises(TechniqueMissing, match=r"bwrapp \(apt install bwrapp\)"):
        refuse_missing("mine", ["sh", "bwrapp"])
    with pytest.raises(TechniqueMissing, match=r"nothing_like_it \(pip install nothing_like_it\)"):
        refuse_missing("mine", ["python:nothing_like_it"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["run", "--scenario", "basic_lifecycle"]) == 3
    assert "git (apt install git), tmux (apt install tmux)" in capsys.readouterr().err


def test_a_broker_without_its_package_is_not_accused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["run", "--target", "longboat-broker"]) == 3
    assert "mcp (pip install mcp)" in capsys.readouterr().err


# --- slow is not stuck -----------------------------------------------------------------------------------


class Beginning:
    """A box in which a server begins: it computes all the time, or not at all."""

    def __init__(self, ready_after: int, *, computes: bool) -> None:
        self.looks, self.ready_after, self.computes = 0, ready_after, computes

    def spawn(self, *_: object, **__: object) -> Spawned:
        return Spawned(("boat", "serve"), 7, 1, "log")

    def inside(self, log: object) -> str:
        return str(log)

    def wait_ended(self, spawned: Spawned, seconds: float) -> None:
        self.looks += 1

    def processes(self) -> tuple[ProcessInfo, ...]:
        worked = self.looks * live.MOVED_TICKS if self.computes else 0
        one = ProcessInfo(7, 1, 1, "R", "boat", ("boat", "serve"), 7, False, cpu_ticks=worked)
        stranger = replace(one, pid=8, session_id=8, cpu_ticks=self.looks * 1000)
        return (one, stranger)

    def unlink(self, *, missing_ok: bool) -> None: ...

    def read_said(self) -> str:
        return "ready" if self.looks >= self.ready_after else ""


@pytest.mark.parametrize(
    ("computes", "ready_after", "late"), [(True, 12, False), (False, 12, True)]
)
def test_a_start_has_the_more_time_the_longer_it_computes(
    monkeypatch: pytest.MonkeyPatch, computes: bool, ready_after: int, late: bool
) -> None:
    monkeypatch.setattr(live, "LOOK_EVERY_S", 0.0)
    box = Beginning(ready_after, computes=computes)
    by_looks = partial(Patience, clock=lambda: float(box.looks))  # a second a look
    monkeypatch.setattr(live, "Patience", by_looks)
    target = SimpleNamespace(
        box=box,
        injured=False,
        values={"source": "/box/source"},
        environment=dict,
        limit=lambda _: 5.0,
    )
    target._computed = lambda spawned: LiveTarget._computed(cast(Any, target), spawned)
    _, result = LiveTarget.start(cast(Any, target), ("boat", "serve"), "ready", 1.0, cast(Any, box))
    assert result.timed_out is late
    assert result.succeeded is not late
