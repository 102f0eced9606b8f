#!/usr/bin/env python3
"""A small and correct keeper of sessions, such as users write for themselves: no daemon, no statuses."""

import argparse
import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path.home() / "tiny"
STATE = HOME / "rooms.json"
SOURCE = Path.cwd()
HOOKED = {"GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX"}
CLEAN = {key: value for key, value in os.environ.items() if key not in HOOKED}


def call(
    *argv: str, check: bool = True, text: str | None = None
) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(argv, capture_output=True, text=True, input=text, env=CLEAN)
    if check and done.returncode:
        sys.exit(f"Error: {done.stderr.strip()}")
    return done


def rooms() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(STATE.read_text()) if STATE.exists() else {}
    return found


def save(found: dict[str, dict[str, str]]) -> None:
    fresh = STATE.with_suffix(".new")
    with fresh.open("w") as file:
        json.dump(found, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(STATE)


def clear(room: dict[str, str]) -> None:
    call("tmux", "kill-session", "-t", f"={room['tmux_name']}", check=False)
    call("git", "worktree", "remove", "--force", "--force", room["path"], check=False)
    shutil.rmtree(room["path"], ignore_errors=True)
    call("git", "worktree", "prune", check=False)
    call("git", "branch", "-D", room["git_branch"], check=False)


def add(name: str, text: str | None) -> None:
    room = {
        "path": str(HOME / "trees" / name),
        "git_branch": f"tiny/{name}",
        "tmux_name": f"tiny-{name}",
    }
    found = rooms()
    if name in found:
        sys.exit(f"Error: there is a room {name!r} already")
    clear(room)  # what a broken-off `new` has left
    call("git", "worktree", "add", "-b", room["git_branch"], room["path"])
    agent = (HOME / "agent").read_text() if (HOME / "agent").exists() else "claude"
    asked = agent if text is None else f"{agent} -- {shlex.quote(text)}"
    call("tmux", "new-session", "-d", "-s", room["tmux_name"], "-c", room["path"], asked)
    save({**found, name: room})


def tell(name: str, text: str) -> None:
    room = known(name)
    target = f"={room['tmux_name']}:"
    if call("tmux", "has-session", "-t", target, check=False).returncode:
        sys.exit(f"Error: the room {name!r} has no session")
    call("tmux", "load-buffer", "-b", name, "-", text=text)
    call("tmux", "paste-buffer", "-p", "-d", "-b", name, "-t", target)
    call("tmux", "send-keys", "-t", target, "Enter")


def known(name: str) -> dict[str, str]:
    if name not in rooms():
        sys.exit(f"Error: no room {name!r}")
    return rooms()[name]


def merge(name: str) -> None:
    """The work of a room comes home, and the room goes."""
    room = known(name)
    if not call("git", "log", "--format=%H", f"HEAD..{room['git_branch']}").stdout:
        sys.exit(f"Error: nothing is ready in {name!r}")
    if call("git", "status", "--porcelain", "--untracked-files=no").stdout:
        sys.exit("Error: your own checkout has changes")
    if call("git", "merge", "--no-edit", room["git_branch"], check=False).returncode:
        call("git", "merge", "--abort", check=False)
        sys.exit(f"Error: {name!r} is in conflict with the branch")
    remove(name)


def remove(name: str) -> None:
    clear(known(name))
    save({one: room for one, room in rooms().items() if one != name})


def main() -> None:
    parser = argparse.ArgumentParser(prog="tiny", description="Rooms for agents.")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", title="commands"
    )
    made = commands.add_parser("new", help="make a room")
    made.add_argument("name", metavar="NAME")
    made.add_argument("--ask", metavar="TEXT", help="what its agent is told")
    told = commands.add_parser("tell", help="say something in a room")
    told.add_argument("name", metavar="NAME")
    told.add_argument("text", metavar="TEXT")
    commands.add_parser("rm", help="remove a room").add_argument("name", metavar="NAME")
    commands.add_parser("merge").add_argument("name", metavar="NAME")
    commands.add_parser("ls", help="list the rooms")
    given = parser.parse_args()
    HOME.mkdir(exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if given.command == "new":
            add(given.name, given.ask)
        elif given.command == "tell":
            tell(given.name, given.text)
        elif given.command == "rm":
            remove(given.name)
        elif given.command == "merge":
            merge(given.name)
        else:
            print("\n".join(rooms()))


if __name__ == "__main__":
    main()
