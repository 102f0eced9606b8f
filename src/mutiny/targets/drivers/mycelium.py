"""A driver of the real Mycelium (`bin/mycelium`), set by a file, in words, refusing with exit 0.

    mycelium.py PROGRAM VERB ARGUMENTS...

Settings come as variables `SET_<KNOB>` and become its configuration. Its agent is `codex`, started by an
absolute path: a module that node loads first puts the double there. Its validators ask a model over HTTP:
this process answers, by asking the user's gate. Whatever it prints becomes one JSON object.
"""

from __future__ import annotations

import ctypes
import glob
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROJECT = "boxed"
PR_SET_PDEATHSIG = 1
PRELOAD = """\
// Loaded before the program: the agent that it starts is Mutiny's double.
const children = require("child_process");
const spawn = children.spawn;
children.spawn = (file, words, options) => {
  if (!String(file).endsWith("/codex/codex")) return spawn(file, words, options);
  const env = { ...options.env, LINGERS_S: process.env.LINGERS_S };
  return spawn(process.env.MUTINY_CODEX, words, { ...options, env });
};
require("module").syncBuiltinESMExports();
"""
ENDED = re.compile(r"^Run (\S+) (?:finished|resumed) with status: (\S+)", re.MULTILINE)
FIRST = re.compile(r"^Run: (\S+)\nStatus: (\S+)", re.MULTILINE)
SILENT_REFUSALS = re.compile(
    r"^(Mycelium config already exists|No runs found for|Run \S+ not found|Nothing to clean for|"
    r"Non-interactive session detected)",
    re.MULTILINE,
)
"""Refusals that end with exit 0."""
VALIDATORS = {
    "test": "test_validator",
    "style": "style_validator",
    "architecture": "architecture_validator",
}
WHICH = {
    "test validation agent": "test",
    "style validation agent": "style",
    "architecture alignment": "architecture",
}
"""How a prompt begins -> whose it is."""


class Place:
    """Where everything lies in the box."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.source = environment["SOURCE"]
        self.desk = environment["DESK"]
        """Quoted, for command lines."""
        self.own = environment["OWN"]
        os.makedirs(self.own, exist_ok=True)

    def file(self, name: str) -> str:
        """A file of this driver's own."""
        return os.path.join(self.own, name)

    def resources(self) -> dict[str, list[str]]:
        """Locks that plans have named, each with its files."""
        try:
            with open(self.file("resources.json"), encoding="utf-8") as file:
                found: dict[str, list[str]] = json.load(file)
        except FileNotFoundError:
            return {"core": ["core/**"], "docs": ["docs/**"], "shared": ["shared.txt"]}
        return found

    def write(self, name: str, value: object) -> str:
        """Write one of them; returns where it is."""
        text = value if isinstance(value, str) else json.dumps(value, indent=1)
        with open(self.file(f".{name}.{os.getpid()}"), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(file.name, self.file(name))
        return self.file(name)


def configuration(place: Place, knobs: Mapping[str, str]) -> dict[str, Any]:
    """Its configuration file, which is YAML, and JSON is YAML."""
    seconds = max(1, round(float(knobs["gate_timeout_s"])))
    made: dict[str, Any] = {
        "repo_path": place.source,
        "main_branch": "master",
        "doctor": f"{place.desk}/gate doctor ORCH_CANARY",
        "doctor_timeout": seconds,
        "doctor_canary": {"mode": "off"},
        "lint": f"{place.desk}/gate lint",
        "lint_timeout": seconds,
        "max_parallel": int(knobs["max_parallel"]),
        "max_retries": int(knobs["max_retries"]) + 1,  # it counts attempts
        "manifest_enforcement": knobs["manifest"],
        "resources": [{"name": name, "paths": paths} for name, paths in place.resources().items()],
        "planner": {"provider": "mock", "model": "mock"},
        "worker": {"model": "double"},
        "ui": {"enabled": False},
        "cleanup": {"workspaces": knobs["cleanup"]},
    }
    if knobs["budget"] != "off":
        made["budgets"] = {"mode": knobs["budget"]}
        if int(knobs["task_tokens"]):
            made["budgets"]["max_tokens_per_task"] = int(knobs["task_tokens"])
        if float(knobs["run_cost"]):
            made["budgets"]["max_cost_per_run"] = float(knobs["run_cost"])
    for name, key in VALIDATORS.items():
        if knobs[name] != "off":
            own = {
                "mode": knobs[name],
                "provider": "openai",
                "model": "double",
                "timeout_seconds": seconds,
            }
            made[key] = own
    return made


def settle(place: Place, knobs: Mapping[str, str]) -> None:
    """The user puts the settings into the file that `init` has made; without one nothing is edited."""
    path = os.path.join(place.source, ".mycelium", "config.yaml")
    text = json.dumps(configuration(place, knobs), indent=1)
    if os.path.isfile(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
        os.replace(place.write("config.yaml", text), path)
        docs = os.path.join(place.source, ".mycelium", "planning", "architecture.md")
        os.makedirs(os.path.dirname(docs), exist_ok=True)
        with open(
            docs, "w", encoding="utf-8"
        ) as file:  # without one its validator has nothing to say
            file.write("Tasks write into work/.\n")


def planned(place: Place, path: str, *, enforced: bool) -> dict[str, Any]:
    """Our plan as its planner's model would give it."""
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["tasks"]
    resources, tasks = place.resources(), []
    for row in rows:
        own = f"task-{row['id']}"
        files = [*row["files"], f"extra/{row['id']}.test.txt"]
        resources[own] = [name for name in files if name != "shared.txt"]
        shared = ["shared"] if "shared.txt" in files and enforced else []
        tasks.append(
            {
                "id": row["id"],
                "name": "task",
                "description": row["name"],
                "estimated_minutes": 1,
                "dependencies": row["depends"],
                "locks": {"reads": row["reads"], "writes": [own, *shared, *row["writes"]]},
                "files": {"reads": [], "writes": files},
                "affected_tests": [],
                "test_paths": [],
                "tdd_mode": "off",
                "verify": {"doctor": f"{place.desk}/gate doctor ORCH_CANARY"},
                "spec": row["prompt"],
            }
        )
    place.write("resources.json", resources)
    return {"tasks": tasks}


# --- the model behind its validators ---------------------------------------------------------------------


class Model(BaseHTTPRequestHandler):
    """Answers as the user's gate says."""

    place: Place
    begin: Callable[..., subprocess.Popen[str]]

    def do_POST(self) -> None:
        """One question of a validator."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = asked["messages"][0]["content"]
        kind = next(word for text, word in WHICH.items() if text in prompt[:200])
        task = re.search(r"^- Task: (.*) — ", prompt, re.MULTILINE)
        name = task[1] if task else ""
        where = glob.glob(
            f"{self.place.source}/.mycelium/workspaces/{PROJECT}/run-*/task-{glob.escape(name)}"
        )
        gate = self.begin(
            [*shlex.split(self.place.desk + "/gate"), "validate", kind],
            cwd=max(where, key=os.path.getmtime, default=self.place.source),
            env={**os.environ, "TASK_ID": name},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # no word of the program that is tested
        )
        said = gate.communicate()[0].strip()
        if gate.returncode:
            self.send_error(503)
            return
        message = {"role": "assistant", "content": _verdict(said, kind)}
        answer = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: object) -> None:
        """Nobody reads it."""


def _verdict(said: str, kind: str) -> str:
    """A gate's verdict in the form that a validator wants; what is none stays as it is."""
    try:
        verdict = {**json.loads(said), "concerns": [], "confidence": "high"}
    except ValueError:
        return said
    if kind == "test":
        verdict["coverage_gaps"] = []
    if kind == "architecture":
        verdict["recommendations"] = []
    return json.dumps(verdict)


# --- the program -----------------------------------------------------------------------------------------


def _with_me() -> None:
    """Whatever this process starts dies with it, as if it were the program itself."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def begun(argv: list[str], **more: Any) -> subprocess.Popen[str]:
    """Start a process that dies with this one."""
    return subprocess.Popen(argv, text=True, preexec_fn=_with_me, **more)


def run(place: Place, argv: list[str], environment: dict[str, str]) -> tuple[int, str, str]:
    """Run the program to its end, and hand on signals; exit code and both texts."""
    child = begun(
        argv, env=environment, cwd=place.source, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: child.send_signal(received))
    said, complained = child.communicate()
    return child.returncode, said, complained


def understood(verb: str, code: int, said: str, *, plain: bool) -> tuple[int, str, str]:
    """What its words mean: exit code, answer, complaint. `plain`: its own exit code."""
    if code == 0 and SILENT_REFUSALS.search(said):
        return 1, "", said
    ended = ENDED.search(said) if verb in ("run", "resume") else FIRST.search(said)
    if ended is None:
        return code, "", said if code else ""
    answer: dict[str, Any] = {"id": ended[1], "status": ended[2]}
    if verb == "status":
        rows = said.partition("\nTasks:\n")[2].splitlines()[1:]
        answer["tasks"] = {
            row.split()[0]: {"status": row.split()[1]} for row in rows if row.strip()
        }
        return code, json.dumps(answer), ""
    return (code or (0 if plain else int(ended[2] != "complete"))), json.dumps(answer), ""


def _quoted(path: str) -> str:
    """A path as node reads it in its options."""
    return json.dumps(path, ensure_ascii=False)


def main(arguments: list[str]) -> int:
    """Say one command."""
    program, verb, *rest = arguments
    place = Place(os.environ)
    knobs = {
        name[4:].lower(): value for name, value in os.environ.items() if name.startswith("SET_")
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SET_")}
    if verb == "plan":
        plan = planned(place, rest[0], enforced=knobs["manifest"] != "off")
        environment["MOCK_LLM_OUTPUT_PATH"] = place.write("planned.json", plan)
        rest = ["--input", place.write("plan.md", "As the planner says.\n")]
    environment["MUTINY_CODEX"] = shlex.split(place.desk)[0] + "/codex"
    environment["NODE_OPTIONS"] = f"--require={_quoted(place.write('double.cjs', PRELOAD))}"
    environment["OPENAI_API_KEY"] = "none"
    Model.place, Model.begin = place, staticmethod(begun)
    if any(knobs[name] != "off" for name in VALIDATORS):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environment["OPENAI_BASE_URL"] = f"http://127.0.0.1:{server.server_port}/v1"
    settle(place, knobs)
    words = verb.split("-") if verb.startswith(("logs-", "tasks-")) else [verb]
    project = [] if verb == "init" else ["--project", PROJECT]
    if words[0] == "logs":
        words, rest = [words[0], *project, *words[1:]], rest
    elif words[0] == "tasks":
        words, rest = ["tasks", "set-status"], [*rest, *project]
    else:
        rest = [*project, *rest]
    code, said, complained = run(place, [program, *words, *rest], environment)
    settle(place, knobs)
    code, answer, refusal = understood(verb, code, said, plain="PLAIN_EXIT" in os.environ)
    sys.stdout.write(answer)
    sys.stderr.write(f"{refusal}{complained}")
    sys.stdout.flush()
    sys.stderr.flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)  # a gate that hangs keeps a thread


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
