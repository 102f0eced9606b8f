"""A driver of the real space-os: its programs `bridge` and `spawn` lie beside each other.

    space_os.py PROGRAM VERB ARGUMENTS...

space-os starts `spawn` by its bare name, and takes its own directory off its agents' PATH: `init` puts both
names beside the providers. A model says which provider an agent has.
"""

from __future__ import annotations

import os
import shutil
import sys

MODELS = {"claude": "claude-haiku-4-5", "codex": "gpt-5.1-codex", "gemini": "gemini-2.5-pro"}


def main(program: str, verb: str, *words: str) -> None:
    """One command of a user."""
    beside = os.path.dirname(os.path.abspath(program))
    if verb == "init":
        place(beside)
        run(beside, "spawn", "register", "human")
    elif verb == "register":
        agent, provider = words
        run(beside, "spawn", "register", agent, "--model", MODELS[provider])
    else:
        run(beside, verb, *words)


def place(beside: str) -> None:
    """What a user has on his PATH."""
    directory = os.path.dirname(shutil.which("claude") or sys.exit("there is no claude"))
    for name in ("bridge", "spawn"):
        path = os.path.join(directory, name)
        if not os.path.lexists(path):
            os.symlink(os.path.join(beside, name), path)


def run(beside: str, name: str, *words: str) -> None:
    """Become one of its programs."""
    path = os.path.join(beside, name)
    os.execv(path, [path, *words])


main(*sys.argv[1:])
