"""What an agent can do in its project: write and read files, run tests and programs, remember."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from longboat.planting import planted
from longboat.session.repository import make_parents
from longboat.session.values import Json, digest
from longboat.workers.store import replace_file

_BEAT_S = 60.0
_OUTPUT_LIMIT = 20_000
_FULL = (errno.ENOSPC, errno.EDQUOT)

SCHEMAS: list[Json] = [
    {
        "name": name,
        "description": about,
        "input_schema": {
            "type": "object",
            "properties": {key: {"type": kind} for key, kind in fields.items()},
            "required": list(fields),
        },
    }
    for name, about, fields in (
        ("write_file", "Write a whole file.", {"path": "string", "content": "string"}),
        ("read_file", "Read a file.", {"path": "string"}),
        ("run_tests", "Run all tests and measure their coverage.", {}),
        ("run", "Run a program in the project.", {"argv": "array"}),
        ("remember", "Keep a fact for all agents.", {"key": "string", "value": "string"}),
    )
]
"""As the model is told about them."""


class Failed(Exception):
    """A tool did not do it: `kind` is timeout, no_space, system or refused."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Tools:
    """The tools of one agent in one project."""

    def __init__(self, root: str, beat: Callable[[], None]) -> None:
        self._root = root
        self._beat = beat

    def use(self, name: str, given: Json, timeout_s: float, test_time_s: float) -> Json:
        """Do one thing; what it brought, never an exception."""
        try:
            match name:
                case "write_file":
                    return self._write(str(given["path"]), str(given["content"]))
                case "read_file":
                    return self._read(str(given["path"]))
                case "run_tests":
                    return self._tests(test_time_s)
                case "run":
                    return self._run([str(word) for word in given["argv"]], timeout_s)
                case "remember":
                    memory = {"key": str(given["key"]), "value": str(given["value"])}
                    return {"ok": True, "text": "remembered", "memory": memory}
                case _:
                    raise Failed("refused", f"there is no tool {name!r}")
        except (KeyError, TypeError) as error:
            return {"ok": False, "error": "refused", "text": f"bad input of {name}: {error!r}"}
        except Failed as failure:
            return {"ok": False, "error": failure.kind, "text": str(failure)}
        except OSError as error:
            kind = "no_space" if error.errno in _FULL else "system"
            return {"ok": False, "error": kind, "text": f"The system refused: {error}"}

    def _place(self, path: str) -> str:
        parts = path.split("/")
        if not path or os.path.isabs(path) or ".." in parts or ".git" in parts or "\0" in path:
            raise Failed("refused", f"{path!r} lies outside of the project")
        place = os.path.join(self._root, path)
        real = os.path.realpath(place)
        if not real.startswith(os.path.realpath(self._root) + os.sep):
            raise Failed("refused", f"{path!r} leads out of the project")
        return place

    def _write(self, path: str, content: str) -> Json:
        place = self._place(path)
        data = content.encode()
        if path.endswith(".py"):
            _check_source(content, path)
        make_parents(self._root, path)
        if planted("session-torn-file"):
            with open(place, "wb") as file:
                file.write(data[: max(1, len(data) - 7)])
        else:
            replace_file(place, data)
        known = {"path": path, "sha256": digest(data), "size": len(data)}
        return {"ok": True, "text": f"wrote {len(data)} bytes to {path}", **known}

    def _read(self, path: str) -> Json:
        anywhere = planted("session-reads-anywhere")
        place = os.path.join(self._root, path) if anywhere else self._place(path)
        with open(place, "rb") as file:
            data = file.read(_OUTPUT_LIMIT)
        return {"ok": True, "text": data.decode("utf-8", "replace"), "path": path}

    def _run(self, argv: list[str], timeout_s: float) -> Json:
        if not argv:
            raise Failed("refused", "no program is named")
        code, out = self._child(argv, timeout_s)
        return {"ok": code == 0, "error": "" if code == 0 else "failed", "text": out, "code": code}

    def _tests(self, test_time_s: float) -> Json:
        """All tests, ended when they take too long."""
        try:
            results = self._prove(test_time_s)
        except Failed as failure:
            if failure.kind != "timeout":
                raise
            return {"ok": False, "error": "test_timeout", "text": str(failure)}
        passed = results["total"] > 0 and results["passed"] + results["skipped"] == results["total"]
        text = "{passed} of {total} tests passed, coverage {coverage}".format(**results)
        if not passed:
            text += f"\n{results['said']}"
        return {"ok": passed, "error": "" if passed else "failed", "text": text, "tests": results}

    def _prove(self, limit_s: float) -> Json:
        argv = [sys.executable, "-m", "longboat.session.proving", self._root]
        code, out = self._child(argv, limit_s)
        try:
            made: Json = json.loads(out.rstrip().rpartition("\n")[2])
        except ValueError:
            raise Failed(
                "system", f"the tests did not run (exit code {code}): {out[-500:]}"
            ) from None
        return made

    def _child(self, argv: list[str], timeout_s: float) -> tuple[int, str]:
        """A program of the agent's, with all that it starts, until its end or the deadline."""
        try:
            child = subprocess.Popen(
                argv,
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            )
        except (FileNotFoundError, PermissionError) as error:
            raise Failed("refused", f"{argv[0]} cannot be run: {error}") from None
        deadline = time.monotonic() + timeout_s
        try:
            while True:
                left_s = deadline - time.monotonic()
                if left_s <= 0 and not planted("session-tool-timeout-ignored"):
                    raise Failed("timeout", f"{argv[0]} did not end in {timeout_s:g} s")
                try:
                    out, _ = child.communicate(timeout=max(0.05, min(left_s, _BEAT_S)))
                except subprocess.TimeoutExpired:
                    self._beat()
                    continue
                return child.returncode, out.decode("utf-8", "replace")[-_OUTPUT_LIMIT:]
        finally:
            self._end(child)

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """The child and its group: nothing that a tool starts outlives it."""
        if planted("session-tool-children-left"):
            return
        with contextlib.suppress(ProcessLookupError):  # the whole group has ended by itself
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def _check_source(content: str, path: str) -> None:
    """Nothing that cannot be compiled gets into a project: no checkpoint of it could be valid."""
    try:
        compile(content, path, "exec")
    except (SyntaxError, ValueError) as error:
        if not planted("session-compile-not-checked"):
            raise Failed("refused", f"{path} does not compile: {error}") from None
