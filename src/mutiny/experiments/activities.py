"""Chaos Toolkit's activities, carried out inside the box: programs, HTTP calls, Python functions.

That tool calls an experiment completed when an action exited with an error; here an action that failed has
disturbed nothing, and says so.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutiny import stopping
from mutiny.experiments.tolerance import within
from mutiny.kit.experiment import Action, Gather
from mutiny.model.result import OperationResult

if TYPE_CHECKING:
    from mutiny.box.box import Box
    from mutiny.kit.experiment import Probe

TIMEOUT_S = 60.0
TECHNIQUE = "Chaos Toolkit activity in the box"
_MARK = "mutiny-value:"
_PYTHON = """
import importlib, inspect, json, sys
asked = json.load(sys.stdin)
sys.path[:0] = asked["path"]
function = getattr(importlib.import_module(asked["module"]), asked["func"])
arguments = dict(asked["arguments"])
try:
    known = inspect.signature(function).parameters
except (TypeError, ValueError):
    known = {}
for name in ("configuration", "secrets"):
    if name in known:
        arguments[name] = asked[name]
value = function(**arguments)
sys.stdout.flush()
print("\\nmutiny-value:" + json.dumps(value, default=str))
"""
_HTTP = """
import json, sys, urllib.error, urllib.parse, urllib.request
asked = json.load(sys.stdin)
url, arguments, data = asked["url"], asked["arguments"], None
if arguments and asked["method"] == "GET":
    url += ("&" if "?" in url else "?") + urllib.parse.urlencode(arguments)
elif arguments:
    as_json = asked["headers"].get("Content-Type") == "application/json"
    data = (json.dumps(arguments) if as_json else urllib.parse.urlencode(arguments)).encode()
request = urllib.request.Request(url, data, asked["headers"], method=asked["method"])
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    answer = opener.open(request, timeout=asked["timeout"])
except urllib.error.HTTPError as error:
    answer = error
body = answer.read().decode("utf-8", "replace")
try:
    body = json.loads(body)
except ValueError:
    pass
value = {"status": answer.status, "headers": dict(answer.headers), "body": body}
print("mutiny-value:" + json.dumps(value))
"""


class Activities:
    """Runs activities in one box."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._background: list[tuple[str, threading.Thread, list[OperationResult]]] = []

    def run(self, operation: Action | Probe | Gather) -> OperationResult:
        """Carry one out, with its pauses; one in the background is only started."""
        if isinstance(operation, Gather):
            return self._gather(operation)
        stopping.sleep(operation.pause_before_s)
        if operation.background:
            result = self._start(operation)
        else:
            result = self._judge(operation, self._call(operation))
        stopping.sleep(operation.pause_after_s)
        return result

    def _start(self, operation: Action | Probe) -> OperationResult:
        ended: list[OperationResult] = []

        def run() -> None:
            try:
                ended.append(self._judge(operation, self._call(operation)))
            except Exception as error:  # noqa: BLE001  a thread must hand every failure back
                text = f"{type(error).__name__}: {error}"
                ended.append(OperationResult(1, stderr=text, harness_error=text))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self._background.append((operation.name, thread, ended))
        return OperationResult(stdout="in the background", fired=True, technique=TECHNIQUE)

    def _gather(self, operation: Gather) -> OperationResult:
        deadline = time.monotonic() + operation.within_s
        waiting, self._background = self._background, []
        for name, thread, ended in waiting:
            stopping.join(thread, max(deadline - time.monotonic(), 0.0))
            if not ended:
                text = f"{name} in the background did not end"
                return OperationResult(1, stderr=text, harness_error=text)
            if not ended[0].succeeded:
                text = f"{name} in the background failed: {ended[0].stderr.strip()}"
                return OperationResult(1, stderr=text, harness_error=text)
        return OperationResult(stdout=f"{len(waiting)} in the background ended well")

    def _judge(self, operation: Action | Probe, result: OperationResult) -> OperationResult:
        """What an activity's value means."""
        if isinstance(operation, Action):
            return replace(result, fired=result.succeeded, technique=TECHNIQUE)
        if result.harness_error is not None or operation.tolerance is None:
            return result
        good, text = within(operation.tolerance, result.details.get("value"))
        said = f"{operation.name}: {text}"
        return replace(
            result,
            exit_code=0 if good else 1,
            stdout=said,
            stderr="" if good else f"probe {operation.name!r} is out of tolerance: {text}",
            details={**result.details, "tolerance_met": good},
        )

    def _call(self, operation: Action | Probe) -> OperationResult:
        provider: Mapping[str, Any] = operation.provider
        timeout_s = float(provider.get("timeout") or TIMEOUT_S)
        if provider["type"] == "process":
            return self._process(operation, provider, timeout_s)
        script, asked = _request(provider, timeout_s)
        python = str(Path(sys.executable).resolve())
        answer = self._box.run(
            [python, "-I", "-c", script], stdin=json.dumps(asked).encode(), timeout_s=timeout_s + 5
        )
        marked = [line for line in answer.stdout.splitlines() if line.startswith(_MARK)]
        if answer.exit_code != 0 or not marked:
            said = answer.stderr.strip().splitlines()[-1:] or ["no answer"]
            text = f"{operation.name} failed: {said[0]}"
            return OperationResult(1, answer.stdout, text, harness_error=text)
        value = json.loads(marked[-1].removeprefix(_MARK))
        bad = (
            provider["type"] == "http" and isinstance(operation, Action) and value["status"] >= 400
        )
        text = f"{operation.name} answered {value['status']}" if bad else ""
        if isinstance(operation, Action) and value is False:
            bad, text = True, f"{operation.name} returned false"
        return OperationResult(1 if bad else 0, answer.stdout, text, details={"value": value})

    def _process(
        self, operation: Action | Probe, provider: Mapping[str, Any], timeout_s: float
    ) -> OperationResult:
        argv = _argv(provider)
        answer = self._box.run(argv, timeout_s=timeout_s, env=dict(provider.get("env", {})))
        value = {"status": answer.exit_code, "stdout": answer.stdout, "stderr": answer.stderr}
        details: dict[str, object] = {"value": value}
        if answer.timed_out:
            text = f"{operation.name} did not end within {timeout_s:g} s"
            return OperationResult(None, answer.stdout, text, harness_error=text, details=details)
        failed = answer.exit_code != 0
        if failed and (isinstance(operation, Action) or operation.tolerance is None):
            how = f"signal {answer.signal}" if answer.signal else f"exit code {answer.exit_code}"
            text = f"{operation.name} failed: {how}: {answer.stderr.strip()[-200:]}"
            return OperationResult(
                answer.exit_code, answer.stdout, text, argv=tuple(argv), details=details
            )
        return OperationResult(0, answer.stdout, answer.stderr, argv=tuple(argv), details=details)


def _argv(provider: Mapping[str, Any]) -> list[str]:
    """The command line, put together as Chaos Toolkit does."""
    path, arguments = str(provider["path"]), provider.get("arguments", [])
    if isinstance(arguments, str):
        import shlex

        return ["sh", "-c", f"{shlex.quote(path)} {arguments}"]
    if isinstance(arguments, Mapping):
        arguments = [word for pair in arguments.items() for word in pair]
    return [path, *(str(word) for word in arguments if word not in (None, ""))]


def _request(provider: Mapping[str, Any], timeout_s: float) -> tuple[str, dict[str, object]]:
    if provider["type"] == "python":
        return _PYTHON, {
            "module": provider["module"],
            "func": provider["func"],
            "arguments": provider.get("arguments") or {},
            "path": provider.get("path", []),
            "configuration": provider.get("configuration", {}),
            "secrets": provider.get("secrets", {}),
        }
    return _HTTP, {
        "url": provider["url"],
        "method": str(provider.get("method", "GET")).upper(),
        "headers": provider.get("headers") or {},
        "arguments": provider.get("arguments") or {},
        "timeout": timeout_s,
    }
