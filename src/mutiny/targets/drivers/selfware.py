"""A driver of the real Selfware: what stays in the foreground there is let run, its texts become answers.

    selfware.py PROGRAM start PROJECT | recover [ID] | status [ID] | report [ID] | stop | script PROJECT

`start` and `recover` answer when something was saved, or when it has ended; a `brief` project is waited
for. The script is what the model's API is to answer: one file a task, the first that the conversation does
not name yet.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 3)))

from mutiny.targets.drivers.common import Answer, refused, told

PROJECTS = {"demo": (12, 400, ""), "brief": (27, 0, "brief")}
"""Tasks, milliseconds for each answer, and what is special."""
DEFAULTS = {
    "agent.min_completion_steps": "0",
    "agent.require_verification_before_completion": "false",
    "continuous_work.checkpoint_interval_tools": "1",
    "retry.base_delay_ms": "50",
    "model": '"double"',
}
"""What a session of a few small files needs; settings of a run come before."""
LONGEST_S = 60.0
STOPS_S = 30.0
WORDS = {"Completed": "complete", "Failed": "failed", "Paused": "paused"}
"""Its words of a status -> ours; of one in progress it does not tell whether it runs."""
REFUSALS = {
    "no_session": r"Failed to load checkpoint|No such file|[Nn]ot found",
    "model": r"API returned|API error|Network error|response JSON|response body|Failed to send",
    "no_space": r"No space left|os error 28",
    "all_invalid": r"[Cc]orrupt|integrity",
    "system": r"os error \d+|Permission denied",
}


class Place:
    """Where everything lies in the box."""

    def __init__(self) -> None:
        self.own = os.environ["OWN"]
        self.sessions = os.path.join(os.environ["HOME"], ".selfware", "checkpoints")
        os.makedirs(self.own, exist_ok=True)

    def file(self, name: str) -> str:
        """A file of this driver's own."""
        return os.path.join(self.own, name)

    def stamps(self) -> dict[str, tuple[int, int]]:
        """Its checkpoints and deltas; temporary files are none."""
        found = {}
        for name in os.listdir(self.sessions) if os.path.isdir(self.sessions) else ():
            if name.endswith((".json", ".delta.jsonl")):
                try:
                    seen = os.stat(os.path.join(self.sessions, name))
                except FileNotFoundError:
                    continue
                found[name] = (seen.st_mtime_ns, seen.st_size)
        return found

    def newest(self) -> str:
        """The session that was begun last; empty: there is none."""
        begun = []
        for name in os.listdir(self.sessions) if os.path.isdir(self.sessions) else ():
            match = re.fullmatch(r"(.+?)\.json(\.bak)?", name)
            if match:
                begun.append((_created(os.path.join(self.sessions, name)), match[1]))
        return max(begun, default=("", ""))[1]


def _created(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = re.search(r'"created_at": *"([^"]+)"', file.read())
    except OSError:
        return ""
    return found[1] if found else ""


def configuration(place: Place) -> str:
    """The file that it is told to read: the run's settings, and what they leave open."""
    lines: dict[str, str] = dict(DEFAULTS)
    try:
        with open(os.environ["SETTINGS"], encoding="utf-8") as file:
            for line in file:
                key, _, value = line.strip().partition(" = ")
                lines[key] = str(int(float(value))) if value[:1].isdigit() else value
    except FileNotFoundError:
        pass
    path = place.file("selfware.toml")
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        file.write("".join(f"{key} = {value}\n" for key, value in lines.items()))
    os.chmod(file.name, 0o600)
    os.replace(file.name, path)
    return path


def command(place: Place, program: str, *words: str) -> list[str]:
    """A command line of it."""
    return [program, "-c", configuration(place), "-y", "--no-color", *words]


# --- what goes on by itself -------------------------------------------------------------------------------


def let_run(place: Place, argv: Sequence[str], *, to_its_end: bool) -> tuple[Answer, str]:
    """Start it, and answer when it has saved something, or has ended; with what it has said."""
    before = place.stamps()
    log = place.file(f"said.{os.getpid()}")
    with open(log, "wb") as file:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    with open(place.file("running"), "a", encoding="utf-8") as file:
        file.write(f"{child.pid}\n")
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        code = child.poll()
        if code is not None:
            return ended(code, said_in(log)), said_in(log)
        if not to_its_end and place.stamps() != before:
            return {"ok": True}, said_in(log)
        time.sleep(0.02)
    return {"ok": True, "message": "it still runs"}, said_in(log)


def ended(code: int, said: str) -> Answer:
    """What an end means."""
    if code == 0:
        return {"ok": True}
    lines = [line for line in said.splitlines() if line.strip()]
    found = [number for number, line in enumerate(lines) if line.startswith("Error:")]
    text = " ".join(lines[found[-1] :]) if found else " ".join(lines[-1:])
    for name, pattern in REFUSALS.items():
        if re.search(pattern, text):
            return {**refused(name, text[:400]), "exit": code}
    return {**refused("", text[:400]), "exit": code}


def said_in(path: str) -> str:
    """What was printed."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.read())


def start(place: Place, program: str, project: str) -> Answer:
    """Begin a session."""
    if project not in PROJECTS:
        return refused("bad_project", f"no project {project}")
    words = ("run", f"Write the files of the project {project}, one after the other.")
    argv = command(place, program, *words)
    return let_run(place, argv, to_its_end=PROJECTS[project][2] == "brief")[0]


def recover(place: Place, program: str, name: str) -> Answer:
    """Resume one."""
    chosen = name or place.newest()
    if not chosen:
        return refused("no_session", "there is nothing to resume")
    answer, said = let_run(place, command(place, program, "resume", chosen), to_its_end=False)
    if re.search(r"[Bb]ackup|[Ff]resh checkpoint|[Cc]orrupt|integrity", said):
        answer["fell_back"] = True
    return answer


def stop(place: Place) -> Answer:
    """Ctrl-C to what runs, and wait for its end."""
    alive = [pid for pid in running(place) if os.path.isdir(f"/proc/{pid}")]
    if not alive:
        return refused("not_running", "nothing runs")
    for pid in alive:
        os.kill(pid, signal.SIGINT)
    deadline = time.monotonic() + STOPS_S
    while time.monotonic() < deadline:
        if not any(os.path.isdir(f"/proc/{pid}") for pid in alive):
            return {"ok": True}
        time.sleep(0.05)
    return refused("", "it does not end")


def running(place: Place) -> list[int]:
    """What was started here and is still the same program."""
    try:
        with open(place.file("running"), encoding="utf-8") as file:
            pids = [int(line) for line in file]
    except FileNotFoundError:
        return []
    found = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"selfware\0-c\0" in file.read():
                    found.append(pid)
        except OSError:
            continue
    return found


# --- looks ------------------------------------------------------------------------------------------------


def asked(place: Place, program: str, *words: str) -> tuple[int, str]:
    """One command that ends by itself."""
    done = subprocess.run(
        command(place, program, *words),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def status(place: Place, program: str, name: str) -> Answer:
    """What its journal says of a session."""
    code, said = asked(place, program, "journal")
    if code != 0:
        return ended(code, said)
    if not name and "journal is empty" in said:
        return refused("no_session", "Your journal is empty")
    chosen = name or place.newest()
    found = re.search(rf"{re.escape(chosen)}[^\n]*\n[^\n]*Step \d+ \S+ (\w+)", said)
    if found is None:
        text = f"there is no {chosen} in the journal"
        return refused("no_session", text) if name else {"ok": True, "status": "none"}
    return {"ok": True, "status": WORDS.get(found[1], "running|interrupted")}


def report(place: Place, program: str, name: str) -> Answer:
    """The entry of a session."""
    chosen = name or place.newest()
    if not chosen:
        return refused("no_session", "there is no entry")
    code, said = asked(place, program, "journal-entry", chosen)
    return {"ok": True, "text": said} if code == 0 else ended(code, said)


# --- the model --------------------------------------------------------------------------------------------


def script(project: str) -> Answer:
    """What the model's API is to answer: the conversation decides, so that it goes on after anything."""
    count, delay_ms, _ = PROJECTS[project]
    tasks = {f"t{number:02d}": f"part{number:02d}.txt" for number in range(1, count + 1)}
    reflection = {"last": "*Reflect on the last*", "steps": [{"text": "Nothing to add."}]}
    rules: list[Answer] = [reflection]
    again = []
    for path in tasks.values():
        content = f"{path}: caf\u00e9 na\u00efve \u4e16\u754c\n" + "a line of words in it\n" * 3
        tool = {"name": "file_write", "input": {"path": path, "content": content}}
        step = {"text": "Next.", "in_text": True, "tools": [tool], "delay_ms": delay_ms}
        rules.append({"without": path, "steps": [step]})
        # Told that a call could not be read, the model makes the one again that brought no result.
        brought = f'path\\":\\"{path}'  # in a text inside of a JSON document
        again.append({"last": "*could not be parsed*", "without": brought, "steps": [step]})
    rules[1:1] = again
    rules.append({"steps": [{"text": "All parts are written."}]})
    return {"version": 1, "rules": rules, "tasks": tasks}


def main(arguments: Sequence[str]) -> int:
    """One command."""
    program, verb, *words = arguments
    if verb == "script":
        if words[0] not in PROJECTS:
            return 1
        print(json.dumps(script(words[0])))
        return 0
    place = Place()
    name = words[0] if words else ""
    verbs = {"start": start, "recover": recover, "status": status, "report": report}
    return told(stop(place) if verb == "stop" else verbs[verb](place, program, name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
