"""Profiles of real small programs in three languages: which places they reached, and who adds what."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mutiny.engine.code import CodeCoverage, lacking
from mutiny.targets.kit.profiling import LANGUAGES, profile_environment, profile_files

PYTHON = "import sys\nif len(sys.argv) > 1:\n    print('with words')\nelse:\n    print('without')\n"
C = """\
#include <stdio.h>
int main(int count, char **words) {
  if (count > 1)
    puts("with words");
  else
    puts("without");
  return 0;
}
"""
GO = """\
package main

import "os"

func main() {
\tif len(os.Args) > 1 {
\t\tprintln("with words")
\t} else {
\t\tprintln("without")
\t}
}
"""


def built(language: str, place: Path) -> tuple[Path, list[str]]:
    """A program, and how it is called."""
    if language == "python":
        pytest.importorskip("coverage")
        path = place / "program.py"
        path.write_text(PYTHON)
        return path, [sys.executable, str(path)]
    program = place / "program"
    if language == "llvm":
        source = place / "program.c"
        source.write_text(C)
        flags = ("-fprofile-instr-generate", "-fcoverage-mapping")
        words = ["clang", *flags, str(source), "-o", str(program)]
    else:
        source = place / "main.go"
        source.write_text(GO)
        (place / "go.mod").write_text("module program\n\ngo 1.20\n")
        words = ["go", "build", "-cover", "-o", str(program), "."]
    if shutil.which(words[0]) is None or lacking(language) is not None:
        pytest.skip(f"this machine has no tools for {language}")
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=400)
    if done.returncode != 0:
        pytest.skip(f"it cannot be built here: {done.stderr[-300:]}")
    return program, [str(program)]


def run(language: str, argv: list[str], box: Path) -> Path:
    """Call it in a place that stands for a box; where its profile lies."""
    for path, text in profile_files(language, str(box)).items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    environment = {**os.environ, **profile_environment(language, str(box), {})}
    subprocess.run(argv, env=environment, check=True, capture_output=True, timeout=60)
    return box / "profile"


@pytest.mark.parametrize("language", ["python", "llvm", pytest.param("go", marks=pytest.mark.slow)])
def test_two_calls_reach_different_places(language: str, tmp_path: Path) -> None:
    program, argv = built(language, tmp_path)
    coverage = CodeCoverage(language, program)
    coverage.add("without", run(language, argv, tmp_path / "one"))
    coverage.add("with", run(language, [*argv, "x"], tmp_path / "two"))
    coverage.add("with again", run(language, [*argv, "x"], tmp_path / "three"))
    assert coverage.problems == []
    first, second, third = coverage.runs
    assert first.new == len(first.places) > 0
    assert second.new == 1
    assert third.new == 0
    assert coverage.only_here(first) >= 1
    assert coverage.only_here(second) == 0
    assert coverage.as_json()["reached"] == first.new + 1
    assert "reached" in next(coverage.told())


@pytest.mark.parametrize("language", LANGUAGES)
def test_without_a_profile_it_is_said_why(language: str, tmp_path: Path) -> None:
    (tmp_path / "data.broken").write_bytes(b"no database")
    (tmp_path / "x.profraw").write_bytes(b"")
    coverage = CodeCoverage(language, tmp_path)
    coverage.add("run", tmp_path)
    if language == "python":  # one that was cut off tells nothing
        assert coverage.as_json()["reached"] == 0
    else:
        assert coverage.runs == []
        assert "no profile" in coverage.problems[0]
    coverage.add("nothing", tmp_path / "none")
    assert "nothing: no profile" in coverage.problems[-1]


def test_what_else_is_on_the_path_of_python_stays() -> None:
    found = profile_environment("python", "/box", {"PYTHONPATH": "/own"})
    assert found["PYTHONPATH"] == "/box/profile/hook:/own"
