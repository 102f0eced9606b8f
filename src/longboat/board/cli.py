"""`longboat board`, `longboat broker` and `longboat crew`: which program, and its exit code.

Everything is imported late: a claim must not pay for a server.
"""

from __future__ import annotations

import os
import sys

from longboat.board import words
from longboat.board.values import Refused
from longboat.errors import LongboatError, UsageError
from longboat.planting import planted

_BOARD_HELP = """\
usage: longboat board [--dir DIR] [--json] COMMAND ...

A task board in files. DIR is --dir, else $LONGBOAT_BOARD, else .board here."""


def main(arguments: list[str]) -> int:
    """Run one of the three programs; failures become words and an exit code here."""
    program, rest = arguments[0], arguments[1:]
    try:
        match program:
            case "board":
                return _board(rest)
            case "broker":
                from longboat.board import broker

                return broker.main(rest)
            case _:
                from longboat.board import crew

                return crew.main(rest)
    except UsageError as error:
        sys.stderr.write(f"longboat {program}: {error}\nTry `longboat {program} --help`.\n")
        return error.exit_code
    except LongboatError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except Refused as refusal:
        return words.show("", refusal.answer(), as_json="--json" in rest)
    except OSError as error:
        from longboat.board import files

        return words.show("", files.refusal_of(error, "no").answer(), as_json="--json" in rest)
    except KeyboardInterrupt:
        sys.stderr.write(f"longboat {program}: interrupted\n")
        return 130
    except Exception as error:
        if os.environ.get("LONGBOAT_DEBUG") or planted("crash-on-missing-dependency"):
            raise
        text = f"internal error: {error!r} (please report; LONGBOAT_DEBUG=1)"
        sys.stderr.write(f"longboat {program}: {text}\n")
        return 70


def _board(arguments: list[str]) -> int:
    from longboat.board import config
    from longboat.board.file_store import FileStore

    line = words.split(arguments, words.SHAPES)
    if line.flags & {"--help", "-h"}:
        sys.stdout.write(words.help_text("longboat board", words.SHAPES, _BOARD_HELP) + "\n")
        return 0
    command = words.to_command(line)
    directory = words.directory_of(line)
    store = FileStore(directory, config.load(directory))
    return words.show(line.verb, store.execute(command), as_json="--json" in line.flags)
