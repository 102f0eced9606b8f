"""The agent as the `codex` of a software kit: `codex exec --cd WORKSPACE`, the prompt on its input.

It also writes a test for its task, because some orchestrators only look at work that has one. With
`LINGERS_S` it lives on for so long after its last word, as an agent that tidies up does.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time

from mutiny.doubles.tasks.agent import TASK, attempt, write
from mutiny.doubles.tasks.records import Desk


def main(desk: Desk, arguments: list[str]) -> int:
    """One turn of a thread."""
    prompt = sys.stdin.read()
    os.chdir(arguments[arguments.index("--cd") + 1])
    named = TASK.search(prompt)
    tell({"type": "thread.started", "thread_id": f"thread-{named[1] if named else 'nobody'}"})
    tell({"type": "turn.started"})
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code, tokens = attempt(desk, prompt)
    if said.getvalue():
        item = {"id": "item_0", "type": "agent_message", "text": said.getvalue().strip()}
        tell({"type": "item.completed", "item": item})
    if named and os.path.isfile(f"work/{named[1]}.txt"):
        write(f"extra/{named[1]}.test.txt", "it works\n")
    # Also of an attempt that fails: what nobody was told nobody can count.
    usage = {"input_tokens": tokens, "cached_input_tokens": 0, "output_tokens": 0}
    tell({"type": "turn.completed", "usage": usage})
    os.close(1)
    time.sleep(float(os.environ.get("LINGERS_S") or 0))
    os._exit(code)  # its standard output is closed already


def tell(event: dict[str, object]) -> None:
    """One event, as soon as it happens."""
    print(json.dumps(event), flush=True)
