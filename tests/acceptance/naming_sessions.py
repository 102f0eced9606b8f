#!/usr/bin/env python3
"""A small and correct keeper of sessions that takes no names: it gives them, and tells them."""

import argparse
import fcntl
import os
import shlex

import tiny_sessions as tiny

KEY = "room:"


def hire(text: str) -> None:
    """A new otter; its directory is called otherwise than it is itself."""
    found = tiny.rooms()
    numbers = (n for n in range(1, 1000) if f"{KEY}otter{n}" not in found)
    name = f"otter{next(numbers)}"
    room = {
        "path": str(tiny.HOME / "trees" / f"{name}-den"),
        "git_branch": f"dens/{name}",
        "tmux_name": f"den-{name}",
    }
    tiny.clear(room)  # what a broken-off `hire` has left
    tiny.call("git", "worktree", "add", "-b", room["git_branch"], room["path"])
    asked = f"claude -- {shlex.quote(text)}"
    tiny.call("tmux", "new-session", "-d", "-s", room["tmux_name"], "-c", room["path"], asked)
    tiny.save({**found, f"{KEY}{name}": room})
    print("a new one" if os.environ.get("SILENT") else f"hired {name} for it")


def main() -> None:
    parser = argparse.ArgumentParser(prog="otters")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("hire").add_argument("text")
    told = commands.add_parser("tell")
    told.add_argument("name")
    told.add_argument("text")
    commands.add_parser("rm").add_argument("name")
    commands.add_parser("ls")
    given = parser.parse_args()
    tiny.HOME.mkdir(exist_ok=True)
    with (tiny.HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if given.command == "hire":
            hire(given.text)
        elif given.command == "tell":
            tiny.tell(f"{KEY}{given.name}", given.text)
        elif given.command == "rm":
            tiny.remove(f"{KEY}{given.name}")
        else:
            print("\n".join(tiny.rooms()))


if __name__ == "__main__":
    main()
