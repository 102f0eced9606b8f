"""What each command of `longboat session` does; every function returns the line that it prints."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

from longboat.batch.store import make_directory, remove_tree
from longboat.errors import UsageError
from longboat.planting import planted
from longboat.session import config as settings
from longboat.session import project as projects
from longboat.session import recovery, reporting
from longboat.session.home import Home, Session
from longboat.session.logs import Lines
from longboat.session.repository import Repository
from longboat.session.site import first_state, payload_of
from longboat.session.values import CHECKS, ENDED, LOOKS, Json, Refused, check_name, too_late
from longboat.workers.store import replace_file, sync_directory

_LOCK_S = 60.0

# --- beginning ----------------------------------------------------------------------------------------


def start(
    home: Home, wanted: str, hours: float, agents: int, name: str, *, foreground: bool
) -> Json:
    """A new session: everything of it on the disk, then a supervisor."""
    path = projects.find(wanted)
    project = projects.read(path)
    _make_home(home)
    config = settings.load(home.file("config.toml"))
    if not 0 < hours <= 1000:
        raise UsageError(f"--hours is a length of time, not {hours:g}")
    if not 1 <= agents <= config.max_agents and not planted("session-too-many-agents"):
        text = f"At most {config.max_agents} agents work at the same time, not {agents}"
        raise Refused("too_many_agents", text)
    if not config.model_url:
        raise UsageError("no model: set model_url or ANTHROPIC_BASE_URL")
    with home.commanding(_LOCK_S), home.without_supervisor(_busy_s(home)) as lock:
        session = Session(home, _new_name(home, name))
        _make(session, path, project, {"hours": hours, "agents": agents, "project": wanted}, lock)
    known = {
        "ok": True,
        "session": session.name,
        "project": project.name,
        "agents": agents,
        "hours": hours,
        "phases": [phase.name for phase in project.phases],
        "checkpoint": 0,
    }
    try:
        return {**known, "pid": _supervise(session, foreground=foreground)}
    except (Refused, OSError):
        # It never ran: a refusal must leave nothing that could be taken for a session.
        os.unlink(session.file("session.json"))
        sync_directory(session.directory)
        raise


def _busy_s(home: Home) -> float:
    """A git that outlives its killed supervisor is waited for; a living supervisor is not."""
    return 0.0 if home.supervised() and _answers(home) else _LOCK_S


def _answers(home: Home) -> bool:
    for name in reversed(home.sessions()):
        with contextlib.suppress(OSError):
            _connect(Session(home, name), 5.0).close()
            return True
    return False


def _make_home(home: Home) -> None:
    os.makedirs(os.path.dirname(home.path), exist_ok=True)
    make_directory(home.path)
    make_directory(home.file("sessions"))


def _new_name(home: Home, name: str) -> str:
    known = home.sessions()
    for one in known:
        found = Session(home, one).checkpoints.last_valid()
        status = found.chain.payload.get("status", "unknown") if found else "unknown"
        if status not in ENDED:
            raise Refused("unfinished", f"Session {one} is not finished. Recover it, or stop it")
    if name and check_name(name, "session") in known:
        raise Refused("exists", f"There is a session {name} already")
    numbers = [int(one[1:]) for one in known if one[:1] == "s" and one[1:].isdigit()]
    return name or f"s{max(numbers, default=0) + 1}"


def _make(session: Session, path: str, project: projects.Project, about: Json, lock: int) -> None:
    """The files of a session; `session.json` last, because with it the session exists."""
    remove_tree(session.directory)
    make_directory(session.directory)
    make_directory(session.file("checkpoints"))
    with open(path, "rb") as file:
        replace_file(session.file("project.toml"), file.read())
    commit = Repository(session.file("project"), lock).create()
    state = {**first_state(project), "git_commit": commit}
    payload = payload_of(state, 0, session.name, 0.0, "start", "")
    payload["validation"] = dict.fromkeys(CHECKS, True)
    payload["metrics"] = reporting.empty_metrics(session.name, project, about["hours"])
    session.checkpoints.write(payload)
    order = (
        max((Session(session.home, one).order for one in session.home.sessions()), default=0) + 1
    )
    known = {"id": session.name, "order": order, "started": round(time.time(), 3), **about}
    data = json.dumps({**known, "title": project.name}, indent=1).encode() + b"\n"
    events = Lines(session.file("events.jsonl"))
    begun = {"ts": known["started"], "at": 0.0, "life": 0, "session": session.name}
    events.say({**begun, "type": "session.start", **about})
    events.close()
    replace_file(session.file("session.json"), data)


def _supervise(session: Session, *, foreground: bool = False) -> int:
    """Start a supervisor of its own; returns when it listens."""
    argv = [sys.executable, "-m", "longboat.session.supervisor", session.home.path, session.name]
    if foreground:
        sys.stdout.flush()
        os.execv(argv[0], argv)
    with open(session.file("supervisor.log"), "ab") as log:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    assert process.stdout is not None
    said = process.stdout.readline()
    process.stdout.close()
    if said != b"ready\n":
        process.wait()
        with open(session.file("supervisor.log"), "rb") as log:
            last = log.read()[-300:].decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise Refused("system", f"The supervisor did not start: {last}")
    process.returncode = 0  # it is nobody's child to wait for: it outlives us
    return process.pid


# --- talking to a supervisor ----------------------------------------------------------------------------


def _connect(session: Session, timeout_s: float) -> socket.socket:
    from longboat.board.daemon import short_path

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        with short_path(session.directory, "control.sock") as short:
            connection.connect(short)
    except BaseException:
        connection.close()
        raise
    return connection


def ask(session: Session, verb: str, **more: Any) -> Json | None:
    """One command to the supervisor; None when there is none."""
    config = settings.load(session.home.file("config.toml"))
    try:
        connection = _connect(session, config.command_timeout_s)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    with connection:
        try:
            connection.sendall(json.dumps({"verb": verb, **more}).encode() + b"\n")
            received = b""
            while not received.endswith(b"\n"):
                data = connection.recv(1 << 20)
                if not data:
                    raise ConnectionResetError("the supervisor ended")
                received += data
        except TimeoutError:
            text = f"The supervisor did not answer in {config.command_timeout_s:g} s"
            raise Refused("busy", f"{text} (it is unknown whether it happened)") from None
        except ConnectionError as error:
            if verb in LOOKS:
                return None  # it has just ended: what it has left can be looked at
            text = f"The supervisor did not answer: {error} (it is unknown whether it happened)"
            raise Refused("system", text) from None
    answer: Json = json.loads(received)
    return answer


def of_running(session: Session, verb: str, **more: Any) -> Json:
    """A command that only a running session can obey."""
    answer = ask(session, verb, **more)
    if answer is None:
        raise too_late(session.name, _status_of_dead(session), verb)
    return answer


def _status_of_dead(session: Session) -> str:
    found = session.checkpoints.last_valid()
    if found is None or not found.chain.payload:
        return "unreadable"
    status = str(found.chain.payload["status"])
    return status if status in ENDED else "interrupted"


# --- looking --------------------------------------------------------------------------------------------


def status(session: Session) -> Json:
    """Where a session is; of a dead one, where its last valid checkpoint is."""
    answer = ask(session, "status")
    if answer is not None:
        return answer
    found = session.checkpoints.last_valid()
    known = {"ok": True, "session": session.name, "status": _status_of_dead(session)}
    if found is None or not found.chain.payload:
        return {**known, "reason": "no valid checkpoint is left", "pid": 0}
    return {**known, **reporting.of_checkpoint(session, found.chain), "pid": 0, "start": 0}


def verify(session: Session, number: int | None) -> Json:
    """Look at every checkpoint again; the newest, or the named one, must be valid."""
    rows = session.checkpoints.survey()
    for row in rows:
        if planted("session-verify-removes") and not row["valid"]:
            session.checkpoints.remove(row["checkpoint"])
    chosen = rows[-1:] if number is None else [row for row in rows if row["checkpoint"] == number]
    if not chosen:
        raise Refused("no_checkpoint", f"There is no checkpoint {number or ''} of {session.name}")
    found = session.checkpoints.last_valid()
    last = None
    checks: Json = {}
    if found is not None and found.chain.payload:
        last = {"checkpoint": found.chain.payload["number"], "deltas": found.chain.deltas}
        checks = found.chain.payload["validation"]
    known = {"session": session.name, "checkpoints": rows, "last_valid": last, "checks": checks}
    row = chosen[0]
    unfinished = row["why"].endswith("unfinished line") and not session.home.supervised()
    if not row["valid"] or (row["why"] and not unfinished):
        text = (
            f"Checkpoint {row['checkpoint']} of session {session.name} is not valid: {row['why']}"
        )
        raise Refused("invalid", text, **known)
    return {"ok": True, **known}


def health(session: Session) -> Json:
    """Is everything well?"""
    answer = ask(session, "health")
    if answer is not None:
        return answer
    now = _status_of_dead(session)
    known = {"session": session.name, "status": now}
    names = ("supervisor", "agents", "checkpoint", "disk", "memory", "errors")
    if now in ENDED:
        return {"ok": True, **known, "checks": dict.fromkeys(names, True)}
    checks = {**dict.fromkeys(names, True), "supervisor": False, "agents": False}
    checks["checkpoint"] = now != "unreadable"
    raise Refused(
        "unhealthy", f"Session {session.name} is not healthy: {now}", **known, checks=checks
    )


def metrics(session: Session, export: str) -> Json:
    """A line of metrics of now."""
    answer = ask(session, "metrics")
    if answer is None:
        found = session.checkpoints.last_valid()
        if found is None or not found.chain.payload:
            raise Refused("all_invalid", f"No valid checkpoint of session {session.name} is left")
        answer = {"ok": True, "session": session.name, **found.chain.payload["metrics"]}
        if found.chain.payload["status"] in ENDED:
            answer["status"] = found.chain.payload["status"]
        if planted("session-export-of-the-dead"):
            _export(export, answer)
    if not planted("session-export-of-the-dead"):
        _export(export, answer)
    return answer


def report(session: Session, output: str) -> Json:
    """What became of a session."""
    answer = {"ok": True, **reporting.report(session, status(session))}
    _export(output, answer)
    return answer


def _export(path: str, answer: Json) -> None:
    if path:
        replace_file(os.path.abspath(path), json.dumps(answer, indent=1).encode() + b"\n")


# --- going back -------------------------------------------------------------------------------------------


def restore(session: Session, number: int | None) -> Json:
    """Put a session back to a checkpoint; nobody may supervise it."""
    home = session.home
    with home.commanding(_LOCK_S), home.without_supervisor(_busy_s(home)) as lock:
        return {"ok": True, "session": session.name, **recovery.restore(session, number, lock)}


def recover(session: Session, *, foreground: bool = False) -> Json:
    """Make a session run again: restore and supervise a dead one, continue one that an error paused."""
    home = session.home
    if home.supervised() and _answers(home) and not planted("session-second-supervisor"):
        return of_running(session, "recover")
    with home.commanding(_LOCK_S):
        with home.without_supervisor(_busy_s(home)) as lock:
            made = recovery.restore(session, None, lock)
        pid = _supervise(session, foreground=foreground)
    known = {"ok": True, "session": session.name, "recovered": True}
    now = ask(session, "status") or {}
    if now.get("status") == "paused" and now.get("reason") != "asked":
        ask(session, "recover")
    return {**known, **made, "pid": pid}


def stop(session: Session) -> Json:
    """End a session in good order, and wait until its supervisor has gone."""
    answer = of_running(session, "stop")
    if answer["ok"]:
        with contextlib.suppress(Refused), session.home.without_supervisor(_LOCK_S):
            pass
    return answer
