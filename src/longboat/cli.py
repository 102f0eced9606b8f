"""The command line: words to commands, errors to one line and an exit code.

Everything is imported late: a hook must not pay for what only commands need.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing `typing` would cost more than a whole hook
if TYPE_CHECKING:
    from longboat.arguments import Parsed
    from longboat.workers.commands import Answer
    from longboat.workers.config import Config
    from longboat.workers.store import Home


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the only place that turns failures into words and exit codes."""
    given = sys.argv[1:] if arguments is None else arguments
    if "hook" in given[:3] and _is_hook(given):
        from longboat.workers import hook

        return hook.main([word for word in given if word != "hook"])
    if given[:1] == ["batch"]:
        from longboat.batch import cli as batches

        return batches.main(given[1:])
    if given[:1] == ["session"]:
        from longboat.session import cli as sessions

        return sessions.main(given[1:])
    if given[:1] in (["board"], ["broker"], ["crew"]):
        from longboat.board import cli as boards

        return boards.main(given)
    if given[:1] in (["bridge"], ["spawn"]):
        from longboat.spawns import cli as spawns

        return spawns.main(given)
    from longboat.arguments import parse
    from longboat.errors import LongboatError, Rejection, UsageError
    from longboat.planting import planted

    try:
        parsed = parse(given)
        answer = _dispatch(parsed)
    except UsageError as error:
        sys.stderr.write(f"longboat: {error}\nTry `longboat --help`.\n")
        return error.exit_code
    except LongboatError as error:
        sys.stderr.write(f"{error}\n")
        if planted("error-exit-zero") and isinstance(error, Rejection):
            return 0
        return error.exit_code
    except OSError as error:
        sys.stderr.write(f"longboat: the system refused: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("longboat: interrupted\n")
        return 130
    except Exception as error:
        if planted("crash-traceback"):
            raise
        return _internal_error(error)
    return _print(answer, as_json="--json" in parsed.flags)


def _internal_error(error: Exception) -> int:
    """A defect of longboat itself: one line for people, everything for whoever mends it."""
    import traceback

    sys.stderr.write(f"longboat: internal error: {error!r} (please report; LONGBOAT_DEBUG=1)\n")
    if os.environ.get("LONGBOAT_DEBUG"):
        traceback.print_exception(error)
    return 70


def _is_hook(given: list[str]) -> bool:
    """`hook` as the command, not as the value of --home."""
    at = given.index("hook")
    return at == 0 or (at == 2 and given[0] == "--home")


def _print(answer: Answer, *, as_json: bool) -> int:
    text = answer.text
    if as_json:
        import json

        text = json.dumps(answer.data, indent=1)
    try:
        if text:
            sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)  # the reader has seen enough
    return answer.exit_code


def _dispatch(parsed: Parsed) -> Answer:
    from longboat.workers import commands, config
    from longboat.workers.store import open_home

    if "--version" in parsed.flags:
        from longboat import __version__

        return commands.Answer({"version": __version__}, f"longboat {__version__}")
    if parsed.flags & {"--help", "-h"}:
        from longboat.workers.view import HELP

        return commands.Answer({"help": HELP}, HELP.rstrip("\n"))
    place = parsed.option("--home") or os.environ.get("LONGBOAT_HOME") or "~/longboat"
    home = open_home(os.path.expanduser(place))
    if parsed.command == "init":
        return _init(parsed, home)
    return _run(parsed, home, config.load(home.config))


def _init(parsed: Parsed, home: Home) -> Answer:
    from longboat.errors import UsageError
    from longboat.workers import commands

    if not parsed.option("--source"):
        raise UsageError("init needs --source REPO")
    settings = parsed.options.get("--set", [])
    force = "--force" in parsed.flags
    return commands.init(home, parsed.option("--source"), settings, force=force)


def _run(parsed: Parsed, home: Home, config: Config) -> Answer:  # noqa: C901  (a table in words)
    from longboat.workers import commands

    name, flags = parsed.word(0), parsed.flags
    match parsed.command:
        case "up":
            return commands.up(home, config, foreground="--foreground" in flags)
        case "down":
            return commands.down(home, config)
        case "add":
            model, command = parsed.option("--model"), parsed.option("--command")
            return commands.add(home, config, name, model, command)
        case "nuke":
            return commands.nuke(home, config, name, yes="--yes" in flags)
        case "reset":
            return commands.reset(home, config, name, yes="--yes" in flags)
        case "start":
            return commands.start(home, config, *_start_arguments(parsed))
        case "message":
            return commands.message(home, config, name, parsed.word(1))
        case "attach":
            return commands.attach(home, name, print_only="--print" in flags)
        case "peek":
            return commands.peek(home, name, _lines(parsed.option("-l")))
        case "review":
            return commands.review(home, config, name, name_only="--name-only" in flags)
        case "accept":
            return commands.accept(home, config, name)
        case "reject":
            return commands.reject(home, config, name)
        case "rebase":
            return commands.rebase(home, config, name)
        case "doctor":
            from longboat.workers import doctor

            return doctor.doctor(home, config, repair="--repair" in flags)
        case _:
            from longboat.workers import view

            return view.status(home)


def _start_arguments(parsed: Parsed) -> tuple[str, str]:
    from longboat.errors import UsageError

    worker, prompt = parsed.option("--worker"), parsed.option("--prompt")
    path = parsed.option("--prompt-file")
    if not worker or not (prompt or path) or (prompt and path):
        raise UsageError("start needs --worker NAME and one of --prompt TEXT, --prompt-file FILE")
    if path:
        with open(path, encoding="utf-8") as file:
            prompt = file.read()
    return worker, prompt


def _lines(text: str) -> int:
    from longboat.errors import UsageError

    if text and not text.isdigit():
        raise UsageError(f"-l needs a number, not {text}")
    return int(text or 40)


if __name__ == "__main__":
    sys.exit(main())
