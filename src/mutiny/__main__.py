"""The command `mutiny`, also as `python -m mutiny`: the first lines that run.

Until the rest is loaded an interrupt would end in a traceback of Python's own. Nothing has begun by then,
so there is nothing to tell.
"""

from __future__ import annotations

import os
import signal


def main() -> int:
    """Load the command line and obey it."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from mutiny.cli.main import main as command

    return command()


if __name__ == "__main__":
    raise SystemExit(main())
