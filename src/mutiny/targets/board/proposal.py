"""How the commands of task boards are usually called."""

from __future__ import annotations

from mutiny.targets.kit.hints import Hint

_TASKS = ("task", "tasks", "issue", "issues")

HINTS = {
    "init": Hint(("init", "setup"), tried=True),
    "add": Hint(("add", "create", "new"), ("description",), groups=_TASKS, tried=True),
    "claim": Hint(("claim", "take", "pick"), ("worker", "task"), groups=_TASKS),
    "start": Hint(("start", "begin"), ("worker", "task"), groups=_TASKS),
    "complete": Hint(
        ("complete", "done", "close", "finish"), ("task",), nobody="unknown_task", groups=_TASKS
    ),
    "fail": Hint(("fail",), ("task",), groups=_TASKS),
    "release": Hint(("release", "unclaim", "drop"), ("task",), groups=_TASKS),
    "cancel": Hint(("cancel", "archive", "delete"), ("task",), groups=_TASKS),
    "heartbeat": Hint(("heartbeat", "renew", "ping"), ("worker",)),
    "status": Hint(("status", "stats", "overview")),
    "list": Hint(("list", "ls"), groups=_TASKS),
    "repair": Hint(("repair", "doctor", "fsck")),
}
