"""The command line of `longboat bridge` and `longboat spawn`: words to commands, errors to an exit code."""

from __future__ import annotations

import os
import sqlite3
import sys

from longboat.arguments import Parsed, Shape, parse
from longboat.board import files, words
from longboat.board.values import Answer, Refused
from longboat.errors import LongboatError, UsageError
from longboat.spawns import settings
from longboat.spawns.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from longboat.spawns.office import Office

HOME = "LONGBOAT_SPAWNS_HOME"
SHAPES = {
    "bridge": {
        "init": Shape(),
        "create": Shape(words=("CHANNEL",), needed=1),
        "channels": Shape(),
        "send": Shape(words=("CHANNEL", "TEXT"), options=("--as",), needed=2),
        "recv": Shape(words=("CHANNEL",), options=("--after", "--limit", "--as"), needed=1),
        "wait-human": Shape(words=("CHANNEL",), options=("--after", "--timeout"), needed=1),
    },
    "spawn": {
        "register": Shape(words=("NAME",), options=("--provider", "--model"), needed=1),
        "agents": Shape(),
        "run": Shape(
            words=("AGENT", "TEXT"), options=("--channel", "--as"), flags=("--detach",), needed=2
        ),
        "list": Shape(options=("--channel", "--status", "--agent")),
        "stop": Shape(words=("ID", "..."), needed=1),
        "stop-all": Shape(options=("--channel", "--agent")),
        "cleanup": Shape(),
        "health": Shape(),
        "chain": Shape(words=("ID",)),
        "logs": Shape(words=("ID",), options=("--tail",), flags=("--follow",), needed=1),
        "wait": Shape(words=("...",), options=("--channel", "--timeout")),
    },
}
_FOR_EVER_S = 1e9


def main(arguments: list[str]) -> int:
    """Run one command; the only place that turns failures into words and exit codes."""
    program, rest = arguments[0], arguments[1:]
    as_json = "--json" in rest
    try:
        parsed = parse(rest, SHAPES[program])
        if parsed.flags & {"--help", "-h"}:
            sys.stdout.write(_help(program))
            return 0
        place = parsed.option("--home") or os.environ.get(HOME) or "longboat-spawns"
        home = os.path.abspath(os.path.expanduser(place))
        return _run(program, parsed, home, settings.load())
    except UsageError as error:
        sys.stderr.write(f"longboat {program}: {error}\nTry `longboat {program} --help`.\n")
        return error.exit_code
    except LongboatError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except Refused as refusal:
        return words.show("", refusal.answer(), as_json=as_json)
    except files.Doubtful as doubt:
        return words.show("", files.refusal_of(doubt.error, "unknown").answer(), as_json=as_json)
    except sqlite3.Error as error:
        from longboat.spawns import database

        return words.show("", database.refusal_of(error, "no").answer(), as_json=as_json)
    except OSError as error:
        return words.show("", files.refusal_of(error, "no").answer(), as_json=as_json)
    except KeyboardInterrupt:
        sys.stderr.write(f"longboat {program}: interrupted\n")
        return 130
    except Exception as error:
        if os.environ.get("LONGBOAT_DEBUG"):
            raise
        text = f"internal error: {error!r} (please report; LONGBOAT_DEBUG=1)"
        sys.stderr.write(f"longboat {program}: {text}\n")
        return 70


def _help(program: str) -> str:
    lines = [f"usage: longboat {program} [--home DIR] [--json] COMMAND ..."]
    for name, shape in SHAPES[program].items():
        given = [word if at < shape.needed else f"[{word}]" for at, word in enumerate(shape.words)]
        given += [f"[{option} VALUE]" for option in shape.options]
        given += [f"[{flag}]" for flag in shape.flags]
        lines.append(f"  {' '.join([name, *given])}")
    return "\n".join(lines) + "\n"


def _run(program: str, parsed: Parsed, home: str, given: Settings) -> int:
    from longboat.spawns import database
    from longboat.spawns.office import Office

    if (program, parsed.command) == ("bridge", "init"):
        created = database.create(home, given.busy_s)
        return _show(parsed, {"ok": True, "created": created, "home": home})
    office = Office(home, given)
    try:
        return _bridge(parsed, office) if program == "bridge" else _spawn(parsed, office)
    finally:
        office.close()


def _bridge(parsed: Parsed, office: Office) -> int:
    from longboat.spawns import bridge

    channel = parsed.word(0)
    match parsed.command:
        case "create":
            return _show(parsed, bridge.create(office, channel))
        case "channels":
            return _show(parsed, bridge.channels(office))
        case "send":
            text, sender = parsed.word(1), parsed.option("--as")
            text = sys.stdin.read() if text == "-" else text
            return _show(parsed, bridge.send(office, channel, text, sender))
        case "recv":
            after, reader = _number(parsed, "--after"), parsed.option("--as")
            limit = _number(parsed, "--limit")
            answer = bridge.receive(office, channel, after, -1 if limit is None else limit, reader)
            code = _show(parsed, answer)
            if reader and code == 0:
                _remember(office, channel, reader, answer)
            return code
        case _:
            after, limit_s = _number(parsed, "--after") or 0, _seconds(parsed)
            return _show(parsed, bridge.wait_for_human(office, channel, after, limit_s))


def _remember(office: Office, channel: str, reader: str, answer: Answer) -> None:
    """The answer is given; a bookmark that cannot move only means that the next one repeats it."""
    from longboat.spawns import bridge

    try:
        bridge.remember(office, channel, reader, answer)
    except (Refused, OSError, sqlite3.Error) as error:
        sys.stderr.write(f"longboat bridge: the bookmark of {reader} stays where it was: {error}\n")


def _spawn(parsed: Parsed, office: Office) -> int:
    from longboat.spawns import ending, looking, runs

    channel, agent = parsed.option("--channel"), parsed.option("--agent")
    match parsed.command:
        case "register":
            provider, model = parsed.option("--provider"), parsed.option("--model")
            return _show(parsed, runs.register(office, parsed.word(0), provider, model))
        case "agents":
            return _show(parsed, runs.agents(office))
        case "run":
            return _run_agent(parsed, office)
        case "list":
            return _show(parsed, runs.listed(office, channel, parsed.option("--status"), agent))
        case "stop":
            ending.heal(office)
            return _show(parsed, {"ok": True, "stopped": ending.stop(office, list(parsed.words))})
        case "stop-all":
            ending.heal(office)
            return _show(parsed, {"ok": True, "stopped": ending.stop_all(office, channel, agent)})
        case "cleanup":
            return _show(parsed, {"ok": True, **ending.cleanup(office)})
        case "health":
            return _show(parsed, looking.health(office))
        case "chain":
            return _show(parsed, looking.chain(office, parsed.word(0)))
        case "logs":
            tail, follow = _number(parsed, "--tail") or 0, "--follow" in parsed.flags
            return _show(parsed, looking.logs(office, parsed.word(0), tail, follow=follow))
        case _:
            answer, code = runs.wait(office, list(parsed.words), channel, _seconds(parsed))
            return _show(parsed, answer) or code


def _run_agent(parsed: Parsed, office: Office) -> int:
    from longboat.spawns import runs

    channel = parsed.option("--channel")
    if not channel:
        raise UsageError("run needs --channel CHANNEL")
    answer = runs.run(office, parsed.word(0), parsed.word(1), channel, parsed.option("--as"))
    if "--detach" in parsed.flags:
        return _show(parsed, answer)
    spawn = answer["spawn"]
    assert isinstance(spawn, dict)
    waited, code = runs.wait(office, [str(spawn["id"])], "", _FOR_EVER_S)
    rows = waited["spawns"]
    assert isinstance(rows, list)
    return _show(parsed, {**answer, "spawn": rows[0]}) or code


def _show(parsed: Parsed, answer: Answer) -> int:
    return words.show(parsed.command, answer, as_json="--json" in parsed.flags, people=_for_people)


def _for_people(verb: str, answer: Answer) -> str:
    """A table for lists, a tree for a chain, and else what is in it."""
    if isinstance(text := answer.get("text"), str):
        return text
    lines = []
    for name, value in answer.items():
        if name == "ok":
            continue
        if isinstance(value, list) and any(isinstance(one, dict) for one in value):
            lines += [_row(one) for one in value]
        else:
            lines.append(f"{name}: {_row(value) if isinstance(value, dict) else value}")
    return "\n".join(lines) or "nothing"


def _row(record: dict[str, object]) -> str:
    shown = (f"{name}={value}" for name, value in record.items() if value not in (None, "", 0))
    return words.one_line(" ".join(shown))


def _number(parsed: Parsed, name: str) -> int | None:
    text = parsed.option(name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"{name} needs a number, not {text}")
    return int(text)


def _seconds(parsed: Parsed) -> float:
    text = parsed.option("--timeout")
    try:
        return float(text) if text else _FOR_EVER_S
    except ValueError:
        raise UsageError(f"--timeout needs seconds, not {text}") from None
