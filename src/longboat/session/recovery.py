"""Going back to a checkpoint: end what is left of the crew, put the files back, write a new checkpoint.

Nothing is changed before a valid checkpoint is found; when there is none, that is said, and an empty
beginning is never invented. May be broken off at any point and begun again.
"""

from __future__ import annotations

import copy
import os
import time

from longboat.board.files import sweep
from longboat.complaints import complain
from longboat.planting import planted
from longboat.session.checkpoints import Chain, Checkpoints, Found, Invalid, Unreadable, left_out
from longboat.session.crew import MARK, end_carriers
from longboat.session.home import Session
from longboat.session.logs import Lines
from longboat.session.project import read
from longboat.session.repository import Repository
from longboat.session.site import first_state, lives, payload_of
from longboat.session.values import CHECKS, ENDED, Json, Refused


def wanted(session: Session, number: int | None) -> Found:
    """The checkpoint to go back to; refused when it cannot be had."""
    checkpoints = session.checkpoints
    if number is not None:
        if number not in checkpoints.numbers():
            raise Refused("no_checkpoint", f"There is no checkpoint {number} of {session.name}")
        try:
            chain = checkpoints.read(number)
        except Unreadable as error:
            raise Refused("system", f"The system refused: {error}") from None
        except Invalid as error:
            raise Refused("invalid", f"Checkpoint {number} is not valid: {error}") from None
        quiet = planted("session-named-fallback-unsaid")
        return Found(chain, [] if quiet else left_out(number, chain))
    found = _planted_choice(checkpoints) or checkpoints.last_valid()
    if found is None or not found.chain.payload:
        if planted("session-silent-empty-start"):
            return Found(_nothing(session), [])
        why = "; ".join(row["why"] for row in found.fell_back[:3]) if found else "there are none"
        more = {"fell_back": found.fell_back if found else []}
        text = f"No valid checkpoint of session {session.name} is left: {why}"
        raise Refused("all_invalid", text, **more)
    if planted("session-fallback-unsaid"):
        return Found(found.chain, [])
    return found


def _planted_choice(checkpoints: Checkpoints) -> Found | None:
    """Plants only: a choice that is not the last valid one."""
    numbers = checkpoints.numbers()
    if planted("session-restores-older") and len(numbers) > 1:
        return Found(checkpoints.read(numbers[-2]), [])
    if planted("session-deltas-ignored"):
        found = checkpoints.last_valid()
        if found is not None and found.chain.deltas:
            path = checkpoints.path(found.chain.payload["number"], "delta.jsonl")
            os.rename(path, f"{path}.old")
            return checkpoints.last_valid()
    return None


def _nothing(session: Session) -> Chain:
    """Plants only: an empty beginning."""
    project = read(session.file("project.toml"))
    payload = payload_of(first_state(project), 0, session.name, 0.0, "start", "")
    return Chain({**payload, "validation": dict.fromkeys(CHECKS, True)}, 0, 0)


def restore(session: Session, number: int | None, lock: int) -> Json:
    """Put a session back; the supervisor's lock must be ours. What is the case afterwards."""
    found = wanted(session, number)
    chain = found.chain
    status = chain.payload["status"]
    if status in ENDED and number is None and not planted("session-finished-recovered"):
        text = f"Session {session.name} is {status}; there is nothing to restore"
        raise Refused("finished", text)
    if not planted("session-survivors-left"):
        end_carriers({MARK: session.mark})
    for directory in (session.directory, session.checkpoints.directory):
        sweep(directory)
    repository = Repository(session.file("project"), lock)
    wanted_commit = chain.payload["git_commit"]
    commit = repository.put_back(chain.payload["file_system_state"], wanted_commit)
    base = int(chain.payload["number"])
    new = session.checkpoints.next_number
    payload = copy.deepcopy(chain.payload)
    payload |= {"number": new, "trigger": "restore", "restored_from": base, "git_commit": commit}
    payload |= {"previous": chain.digest, "validation": dict.fromkeys(CHECKS, True)}
    payload["timestamp"] = int(time.time())
    payload["metrics"]["checkpoint_count"] = new + 1  # this one, too
    _settle(payload)
    session.checkpoints.write(payload)
    _tell(session, chain, found.fell_back, commit != wanted_commit)
    return {
        "checkpoint": base,
        "deltas": chain.deltas,
        "fell_back": found.fell_back,
        "new_checkpoint": new,
        "phase": payload["phase"],
        "git_commit": commit,
        "elapsed_s": payload["elapsed_s"],
    }


def _settle(payload: Json) -> None:
    """A vote that was open has no voters any more; everything else stays as it was."""
    votes = payload["votes"].items()
    kept: tuple[str, ...] = ("won", "priority", "decided", "escalated")
    if planted("session-decisions-forgotten"):
        kept = ("won", "escalated")
    payload["votes"] = {name: vote for name, vote in votes if vote["status"] in kept}


def _tell(session: Session, chain: Chain, fell_back: list[Json], renewed: bool) -> None:
    """Into the log. It is restored by now: what cannot be written there is in the answer all the same."""
    known = {"ts": round(time.time(), 3), "at": chain.payload["elapsed_s"], "life": lives(session)}
    known["session"] = session.name
    more = {"checkpoint": chain.payload["number"], "deltas": chain.deltas, "fell_back": fell_back}
    more["status"] = chain.payload["status"]
    try:
        events = Lines(session.file("events.jsonl"))
        for row in fell_back:
            events.say({**known, "type": "checkpoint.invalid", **row})
        events.say({**known, "type": "session.restore", **more, "repository_renewed": renewed})
        events.close()
    except OSError as error:
        complain(f"longboat session: the log could not be written: {error}")
