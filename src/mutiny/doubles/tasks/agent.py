"""A coding agent for one task, without a model: `agent ... PROMPT`, in the task's workspace.

The prompt names the task, and says what is done at each attempt.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

from mutiny.doubles.tasks.records import Desk

TASK = re.compile(r"Do task (\S+)")
TOLD = re.compile(r"\[does=(\S+) tokens=(\d+)(?: with=(\d+))?\]")


def main(desk: Desk, arguments: list[str]) -> int:
    """Work on the task as the prompt says."""
    code, tokens = attempt(desk, arguments[-1])
    usage = {"input_tokens": tokens, "output_tokens": 0}
    print(json.dumps({"type": "result", "is_error": code != 0, "usage": usage}))
    return code


def attempt(desk: Desk, prompt: str) -> tuple[int, int]:
    """One attempt at the task that a prompt names: its exit code, and the tokens that it used."""
    named, told = TASK.search(prompt), TOLD.search(prompt)
    if named is None:
        sys.stderr.write("agent: the prompt names no task\n")
        return 70, 0
    task = named[1]
    does, tokens = (told[1].split(","), int(told[2])) if told else (["works"], 0)
    present = sorted(os.listdir("work")) if os.path.isdir("work") else []
    number = desk.write("agent", task, present=present, pid=os.getpid())
    desk.hold("agent")
    desk.hold(f"agent-{task}")
    behaviour = does[min(number, len(does)) - 1]
    code = act(task, number, behaviour, desk.script().get("secret", ""))
    if behaviour == "meets" and told is not None:
        desk.meet(task, int(told[3] or 0))
    desk.hold("agent-half")
    desk.write("agent_end", task, tokens=tokens, code=code, attempt=number)
    if behaviour == "counts":
        first = tokens // 3
        print(json.dumps({"type": "assistant", "usage": {"output_tokens": first}}))
        tokens -= first
    return code, tokens


def act(task: str, number: int, behaviour: str, secret: str) -> int:
    """One attempt; its exit code."""
    if behaviour == "blurts":
        sys.stderr.write(f"agent: {secret} was refused\n")
        return 1
    if behaviour == "fails":
        sys.stderr.write("agent: this attempt was meant to fail\n")
        return 1
    if behaviour == "waits":
        time.sleep(3600)
    if behaviour == "idle":
        return 0
    if behaviour == "slowly":
        time.sleep(1.0)
    write(f"work/{task}.txt", f"{task} attempt {number}\n")
    if behaviour == "lingers":
        time.sleep(3600)
    if behaviour == "strays":
        write(f"extra/{task}.txt", f"{task} attempt {number}\n")
    if behaviour == "nears":
        write(f"extra/{task}/part.txt", f"{task} attempt {number}\n")
        write(f"extra/{task}-old/part.txt", f"{task} attempt {number}\n")
    if behaviour == "deepens":
        write(f"extra/{task}/part.txt", f"{task} attempt {number}\n")
        write(f"extra/{task}/below/part.txt", f"{task} attempt {number}\n")
    if behaviour == "shares":
        with open("shared.txt", "a", encoding="utf-8") as file:
            file.write(f"line of {task}\n")
    if behaviour == "tells":
        print(f"my key is {secret}")
    if behaviour in ALSO:
        ALSO[behaviour](task)
    return 0


def remove(task: str) -> None:
    """Take away what others have written."""
    for name in set(os.listdir("work")) - {f"{task}.txt"}:
        os.unlink(f"work/{name}")


def rename(task: str) -> None:
    """What others have written under a name of its own."""
    for name in set(os.listdir("work")) - {f"{task}.txt"}:
        os.replace(f"work/{name}", f"work/{task}.txt")


def push(task: str) -> None:
    """A branch of its own, to every repository that the workspace knows."""
    known = subprocess.run(["git", "remote"], capture_output=True, text=True, check=False)
    for remote in known.stdout.split():
        words = ["git", "push", "-q", remote, f"HEAD:refs/heads/agent-{task}"]
        subprocess.run(words, capture_output=True, check=False)


def commit(task: str) -> None:
    """What it has written, in a commit of its own."""
    who = ["-c", "user.name=Agent", "-c", "user.email=agent@example.invalid"]
    for words in (["add", "-A"], [*who, "commit", "-q", "-m", f"The work of {task}"]):
        subprocess.run(["git", *words], capture_output=True, check=False)


def leave() -> None:
    """A process of its own session that nobody waits for."""
    subprocess.Popen(
        ["sleep", "3600"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def write(path: str, text: str) -> None:
    """A file with this text."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


ALSO = {
    "leaves": lambda _task: leave(),
    "pushes": push,
    "removes": remove,
    "renames": rename,
    "commits": commit,
}
"""What an agent does beside its work."""
