"""`mutiny --help` is cheap: it loads nothing that only a command needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mutiny.cli.main import COMMANDS

PROBE = """
import sys
from mutiny.cli.main import main
code = main(sys.argv[1:])
print("\\n".join(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""
HEAVY = ("rich", "pydantic", "asyncio", "jsonschema_rs", "hypothesis")
PARTS = (
    *("engine", "targets", "box", "contracts", "faults", "kit", "modes", "probes", "report"),
    *("doubles", "syscalls", "codec", "model"),
)


def loaded(*argv: str) -> tuple[int, str, set[str]]:
    """Exit code, output and loaded modules of one call in a fresh Python."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, set(done.stderr.split())


@pytest.mark.parametrize("argv", [("--help",), ("-h",), ("--version",)])
def test_help_loads_nothing_heavy(argv: tuple[str, ...]) -> None:
    code, output, modules = loaded(*argv)
    assert code == 0
    assert "mutiny" in output
    assert {name for name in modules if name.split(".")[0] in HEAVY} == set()
    own = {name.split(".")[1] for name in modules if name.startswith("mutiny.")}
    assert own & set(PARTS) == set()


def test_help_names_every_command() -> None:
    _, output, _ = loaded("--help")
    for name, (_, text) in COMMANDS.items():
        assert name in output
        assert text.split()[0] in output
    assert "Exit codes" in output


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_starts_no_engine(name: str) -> None:
    code, output, modules = loaded(name, "--help")
    assert code == 0
    assert "Usage:" in output
    own = {name.split(".")[1] for name in modules if name.startswith("mutiny.")}
    assert own & {"engine", "box", "targets", "modes"} == set()
