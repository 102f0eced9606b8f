#!/usr/bin/env python3
"""A board of Markdown files that answers in words, gives ids itself and claims nothing unnamed."""

import fcntl
import os
import re
import sys
from pathlib import Path

DIRECTORY = Path(os.environ["HOME"], "tiny")


def read() -> dict[str, dict[str, str]]:
    tasks = {}
    for path in sorted(DIRECTORY.glob("*.md")):
        lines = path.read_text(encoding="utf-8").split("---\n")[1].splitlines()
        row = dict(line.split(": ", 1) for line in lines)
        tasks[row["id"]] = row
    return tasks


def write(row: dict[str, str]) -> None:
    path = DIRECTORY / f"{row['id']}.md"
    text = "".join(f"{key}: {value}\n" for key, value in row.items())
    fresh = path.with_suffix(".new")
    fresh.write_text(f"---\n{text}---\n\nA task.\n", encoding="utf-8")
    fresh.replace(path)


def free(tasks: dict[str, dict[str, str]]) -> list[dict[str, str]]:
    done = {name for name, row in tasks.items() if row["status"] == "done"}
    waits = {name: set(re.findall(r"T-\d+", row.get("after", ""))) for name, row in tasks.items()}
    return [row for name, row in tasks.items() if row["status"] == "open" and waits[name] <= done]


def main(word: str, *given: str) -> str:
    if word == "init":
        DIRECTORY.mkdir(exist_ok=True)
        return "made"
    if not DIRECTORY.is_dir():
        sys.exit("there is no board")
    with (DIRECTORY / "lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tasks = read()
        if word == "add":
            own = f"T-{len(tasks) + 1}"
            write({"id": own, "title": given[0], "status": "open"})
            return f"Added.\n  {own}: {given[0]}"
        if word == "list":
            return "\n".join(f"{name} {row['status']}" for name, row in tasks.items()) or "Nothing."
        if word == "free":
            shown = list(tasks.values()) if os.environ.get("TINY_SHOWS_ALL") else free(tasks)
            return "\n".join(f"{row['id']} {row['title']}" for row in shown) or "Nothing."
        row = tasks.get(given[0])
        if row is None:
            sys.exit("no such task")
        if word == "after":
            others = re.findall(r"T-\d+", row.get("after", ""))
            write({**row, "after": f"[{', '.join([*others, given[1]])}]"})
        elif word == "claim":
            if row not in free(tasks) and not os.environ.get("TINY_GREEDY"):
                waits = row["status"] == "open"
                return f"Sorry, it is not {'ready' if waits else 'free'}"  # with exit code 0
            write({**row, "status": "taken", "by": given[1]})
        elif word == "done":
            if row.get("by") != given[1] or row["status"] != "taken":
                sys.exit("it is not yours")
            write({**row, "status": "done"})
        return "OK"


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
