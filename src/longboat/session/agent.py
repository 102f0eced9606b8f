"""An agent: `python -m longboat.session.agent HOME ID NAME`.

It asks the model and uses the tools as its supervisor says, one thing at a time: a line in, a line
out. It keeps nothing of its own, so it can be ended at any moment and another one can go on with what
it knew. When the supervisor has gone, so has its input, and it ends.
"""

from __future__ import annotations

import json
import os
import sys

from longboat.session import model
from longboat.session.tools import Tools
from longboat.session.values import Json


def _say(line: Json) -> None:
    data = json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogateescape") + b"\n"
    while data:
        data = data[os.write(1, data) :]


def _ask(order: Json) -> Json:
    try:
        return {"ok": True, **model.ask(order["url"], order["body"], order["timeout_s"])}
    except model.Failed as failure:
        known = {
            "error": failure.kind,
            "text": str(failure),
            "retry_after_s": failure.retry_after_s,
        }
        return {"ok": False, **known}


def _use(tools: Tools, order: Json) -> Json:
    limits = order["timeout_s"], order["test_time_s"]
    return {"results": [tools.use(one["name"], one["input"], *limits) for one in order["uses"]]}


def main(arguments: list[str]) -> int:
    """Obey until the input ends."""
    home, session, _name = arguments
    root = os.path.join(home, "sessions", session, "project")
    tools = Tools(root, lambda: _say({"beat": True}))
    _say({"ready": True})
    try:
        for line in sys.stdin.buffer:
            order = json.loads(line)
            done = _ask(order) if order["op"] == "model" else _use(tools, order)
            _say({"call": order["call"], **done})
    except BrokenPipeError:
        return 0  # the supervisor has gone
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
