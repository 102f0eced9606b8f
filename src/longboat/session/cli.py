"""The command line of `longboat session`: words to commands, answers to one line and an exit code."""

from __future__ import annotations

import argparse
import json
import os
import sys

from longboat.errors import LongboatError, UsageError
from longboat.session import commands, project
from longboat.session.home import Home
from longboat.session.values import Json, Refused

HOME = "LONGBOAT_SESSION_HOME"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="longboat session", description=__doc__)
    default = os.environ.get(HOME) or "longboat-session"
    parser.add_argument("--home", default=default, help=f"or {HOME}")
    verbs = parser.add_subparsers(dest="verb", required=True, parser_class=_Parser)

    def add(name: str, about: str) -> argparse.ArgumentParser:
        verb: argparse.ArgumentParser = verbs.add_parser(name, help=about)
        verb.add_argument("--session", default="", help="which one; default: the newest")
        return verb

    verb = add("start", "begin a session")
    verb.add_argument("--project", required=True, help="a shipped project or a file")
    verb.add_argument("--hours", type=float, default=6.0)
    verb.add_argument("--agents", type=int, default=6)
    verb.add_argument("--foreground", action="store_true")
    add("status", "where it is")
    add("checkpoint", "make a checkpoint now")
    add("verify", "look at all checkpoints").add_argument("--checkpoint", type=int)
    add("restore", "go back to a checkpoint").add_argument("--checkpoint", type=int)
    add("health", "is everything well?")
    add("recover", "make it run again").add_argument("--foreground", action="store_true")
    add("metrics", "a line of metrics").add_argument("--export", default="", metavar="FILE")
    add("report", "what became of it").add_argument("--output", default="", metavar="FILE")
    add("pause", "begin nothing new")
    verb = add("continue", "go on after a pause")
    verb.add_argument("--decide", default="", metavar="VOTE=OPTION")
    add("stop", "end it in good order")
    verb = verbs.add_parser("script", help="what the fake model API shall say for a project")
    verb.add_argument("--project", required=True)
    return parser


def main(arguments: list[str]) -> int:
    """Run one command; the only place that turns failures into words and exit codes."""
    try:
        given = _parser().parse_args(arguments)
        answer = _dispatch(given)
    except Refused as refusal:
        answer = refusal.answer()
    except UsageError as error:
        sys.stderr.write(f"longboat session: {error}\nTry `longboat session --help`.\n")
        return error.exit_code
    except LongboatError as error:
        answer = Refused("system", str(error)).answer()
    except OSError as error:
        from longboat.board.files import is_full

        kind = "no_space" if is_full(error) else "system"
        answer = Refused(kind, f"The system refused: {error}").answer()
    except Exception as error:
        if os.environ.get("LONGBOAT_DEBUG"):
            raise
        text = f"internal error: {error!r} (please report; LONGBOAT_DEBUG=1)"
        sys.stderr.write(f"longboat session: {text}\n")
        return 70
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")
    sys.stdout.flush()
    if answer.get("ok", True):
        return 0
    sys.stderr.write(f"{answer['text']}\n")
    return 1


def _dispatch(given: argparse.Namespace) -> Json:
    home = Home(os.path.expanduser(given.home))
    if given.verb == "script":
        return project.script(project.find(given.project))
    if given.verb == "start":
        how = given.project, given.hours, given.agents, given.session
        return commands.start(home, *how, foreground=given.foreground)
    session = home.session(given.session)
    match given.verb:
        case "status":
            return commands.status(session)
        case "verify":
            return commands.verify(session, given.checkpoint)
        case "restore":
            return commands.restore(session, given.checkpoint)
        case "health":
            return commands.health(session)
        case "recover":
            return commands.recover(session, foreground=given.foreground)
        case "metrics":
            return commands.metrics(session, given.export)
        case "report":
            return commands.report(session, given.output)
        case "stop":
            return commands.stop(session)
        case "continue":
            return commands.of_running(session, "continue", decide=given.decide)
        case _:
            return commands.of_running(session, given.verb)
