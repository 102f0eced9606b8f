"""How the commands of task boards are usually called."""

from __future__ import annotations

from mutiny.targets.kit.hints import Hint

HINTS = {
    "init": Hint(("init", "setup"), tried=True),
    "add": Hint(("add", "create", "new"), ("description",), tried=True),
    "claim": Hint(("claim", "take", "pick"), ("worker", "task")),
    "start": Hint(("start", "begin"), ("worker", "task")),
    "complete": Hint(("complete", "done", "close", "finish"), ("task",), nobody="unknown_task"),
    "fail": Hint(("fail",), ("task",)),
    "release": Hint(("release", "unclaim", "drop"), ("task",)),
    "cancel": Hint(("cancel", "archive", "delete"), ("task",)),
    "heartbeat": Hint(("heartbeat", "renew", "ping"), ("worker",)),
    "status": Hint(("status", "stats", "overview")),
    "list": Hint(("list", "ls")),
    "repair": Hint(("repair", "doctor", "fsck")),
}
