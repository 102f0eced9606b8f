"""Run a project's tests and measure which lines they reach: `python -m longboat.session.proving DIR`.

One JSON line says how it went. Lines are counted with the interpreter's own tracing, in the files of
the project alone; what can be reached is what the compiler gave a line number.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
import unittest
from types import CodeType, FrameType
from typing import Any

Reached = dict[str, set[int]]


def lines_of(path: str) -> set[int]:
    """Every line of a file at which something can happen."""
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec")
    found: set[int] = set()
    left: list[CodeType] = [code]
    while left:
        one = left.pop()
        found |= {line for _, _, line in one.co_lines() if line}
        left += [part for part in one.co_consts if isinstance(part, CodeType)]
    return found


class Tracer:
    """Notes every line of the project that runs."""

    def __init__(self, files: list[str]) -> None:
        self.reached: Reached = {path: set() for path in files}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Called by the interpreter for every new frame."""
        lines = self.reached.get(frame.f_code.co_filename)
        if lines is None:
            return None
        lines.add(frame.f_lineno)

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            lines.add(frame.f_lineno)
            return step

        return step


def sources(directory: str) -> list[str]:
    """The modules whose lines count: all but the tests themselves."""
    found = []
    for place, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if name not in (".git", "tests", "__pycache__")]
        found += [os.path.join(place, name) for name in names if name.endswith(".py")]
    return sorted(found)


def prove(directory: str) -> dict[str, Any]:
    """Run the tests of a project; how many passed, and how much they reach."""
    os.chdir(directory)
    sys.path.insert(0, directory)
    sys.dont_write_bytecode = True
    files = sources(directory)
    tracer = Tracer(files)
    began = time.monotonic()
    tests = os.path.join(directory, "tests")
    suite = unittest.TestSuite()
    sys.settrace(tracer)
    threading.settrace(tracer)
    try:
        if os.path.isdir(tests):
            suite = unittest.defaultTestLoader.discover(tests, "test*.py", directory)
        said = io.StringIO()
        result = unittest.TextTestRunner(said, verbosity=0).run(suite)
    finally:
        sys.settrace(None)
        threading.settrace(None)
    possible = {path: lines_of(path) for path in files}
    count = sum(map(len, possible.values()))
    reached = sum(len(possible[path] & tracer.reached[path]) for path in files)
    failed, errors, skipped = len(result.failures), len(result.errors), len(result.skipped)
    return {
        "total": result.testsRun,
        "passed": max(0, result.testsRun - failed - errors - skipped),
        "failed": failed,
        "errors": errors,
        "skipped": skipped,
        "coverage": round(100 * reached / count, 2) if count else 0.0,
        "lines": count,
        "duration_s": round(time.monotonic() - began, 3),
        "said": said.getvalue()[-2000:],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(prove(os.path.abspath(sys.argv[1]))) + "\n")
