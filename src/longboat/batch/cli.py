"""The command line of `longboat batch`: words to commands, errors to one line and an exit code."""

from __future__ import annotations

import argparse
import json
import os
import sys

from longboat.batch import commands, config
from longboat.batch.commands import Answer
from longboat.batch.store import Home
from longboat.errors import LongboatError, UsageError

HOME = "LONGBOAT_BATCH_HOME"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="longboat batch", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--home", default=os.environ.get(HOME) or "longboat-batch", help=f"or {HOME}"
    )
    verbs = parser.add_subparsers(dest="verb", required=True, parser_class=_Parser)
    verb = verbs.add_parser("init", help="a home for batches of one repository")
    verb.add_argument("--source", required=True)
    verb.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    verb = verbs.add_parser("plan", help="read a plan, or have one made of a text")
    verb.add_argument("file")
    for name, about in (("run", "run the plan"), ("resume", "go on"), ("status", "what is so")):
        verb = verbs.add_parser(name, help=about)
        verb.add_argument("--run", default="", dest="run_id")
    verb = verbs.add_parser("logs", help="the events of a run")
    verb.add_argument("what", choices=("query", "timeline"))
    verb.add_argument("--run", default="", dest="run_id")
    verb.add_argument("--task", default="")
    verb.add_argument("--type", default="", dest="kind")
    verb = verbs.add_parser("clean", help="take the files of a run away")
    verb.add_argument("run_id")
    verb.add_argument("--force", action="store_true")
    verb = verbs.add_parser("set-status", help="try a task again, or leave it out")
    verb.add_argument("task")
    verb.add_argument("status")
    verb.add_argument("--run", default="", dest="run_id")
    return parser


def main(arguments: list[str]) -> int:
    """Run one command; the only place that turns failures into words and exit codes."""
    try:
        given = _parser().parse_args(arguments)
        answer = _dispatch(given)
    except UsageError as error:
        sys.stderr.write(f"longboat batch: {error}\nTry `longboat batch --help`.\n")
        return error.exit_code
    except LongboatError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except OSError as error:
        sys.stderr.write(f"longboat batch: the system refused: {error}\n")
        return 1
    text = json.dumps(answer.data, indent=1) if given.json else answer.text
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")
    sys.stdout.flush()
    return answer.exit_code


def _dispatch(given: argparse.Namespace) -> Answer:
    home = Home(os.path.expanduser(given.home))
    if given.verb == "init":
        return commands.init(home, given.source, given.set)
    known = config.load(home.file("config.toml"))
    match given.verb:
        case "plan":
            return commands.plan(home, known, given.file)
        case "run":
            return commands.run(home, known, given.run_id)
        case "resume":
            return commands.resume(home, known, given.run_id)
        case "status":
            return commands.status(home, known, given.run_id)
        case "logs" if given.what == "timeline":
            return commands.timeline(home, given.run_id)
        case "logs":
            return commands.logs(home, given.run_id, given.task, given.kind)
        case "clean":
            return commands.clean(home, known, given.run_id, force=given.force)
        case _:
            return commands.set_status(home, known, given.run_id, given.task, given.status)
