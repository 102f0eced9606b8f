"""Mutiny as a wheel in a virtual environment of its own: everything that it needs is inside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13")
LIMIT_S = 300.0


def run(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S
    )


def python_of(version: str) -> str | None:
    """An interpreter of this version that works: a shim may be there without one behind it."""
    if sys.version.startswith(f"{version}."):
        return sys.executable
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for found in (shutil.which(f"python{version}"), *map(str, installed)):
        if found is not None and run(found, "-c", "import venv", cwd=ROOT).returncode == 0:
            return found
    return None


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "-w", ".", cwd=place)
    if done.returncode != 0:
        pytest.skip(f"the wheel cannot be built here: {done.stderr.strip().splitlines()[-1:]}")
    (built,) = place.glob("mutiny-*.whl")
    return built


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path)
    }
    assert wanted - names == set()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", VERSIONS)
def test_it_runs_where_nothing_else_is_installed(version: str, wheel: Path, tmp_path: Path) -> None:
    python = python_of(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    assert run(python, "-m", "venv", "venv", cwd=tmp_path).returncode == 0
    done = run("venv/bin/pip", "install", "--quiet", str(wheel), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    mutiny = str(tmp_path / "venv/bin/mutiny")
    assert "Exit codes" in run(mutiny, "--help", cwd=tmp_path).stdout
    assert run(mutiny, "doctor", cwd=tmp_path).returncode == 0
    assert run(mutiny, "experiment", "check", "killed-agent", cwd=tmp_path).returncode == 0
    assert run(mutiny, "target", "init", "mine.toml", cwd=tmp_path).returncode == 0
    ran = run(mutiny, "run", "--scenario", "basic_lifecycle", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_plugin_works_where_only_pytest_is_installed(wheel: Path, tmp_path: Path) -> None:
    assert run(sys.executable, "-m", "venv", "venv", cwd=tmp_path).returncode == 0
    done = run("venv/bin/pip", "install", "--quiet", str(wheel), "pytest", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "test_own.py").write_text("def test_own(mutiny):\n    mutiny.explore(1, 8)\n")
    words = ("--mutiny", "longboat-batch", "--mutiny-goals", "shipped", "--mutiny-seeds", "1")
    chosen = "test_own or (goal and G1.8) or seed"
    ran = run(str(tmp_path / "venv/bin/pytest"), "-q", *words, "-k", chosen, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "3 passed" in ran.stdout


def test_the_versions_that_are_tried_are_the_ones_that_are_promised() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = [
        line.rpartition(" ")[2]
        for line in project["classifiers"]
        if line.startswith("Programming Language :: Python :: 3.")
    ]
    assert tuple(told) == VERSIONS
    assert project["requires-python"] == f">={VERSIONS[0]}"
