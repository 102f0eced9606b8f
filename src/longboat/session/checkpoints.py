"""Checkpoints: whole files with a digest, lines with what changed since, and what of them is valid.

checkpoints/000007.json          {"sha256": ..., "payload": ...}
checkpoints/000007.delta.jsonl   the same form, a line for each change since 000007

The one insight: a checkpoint holds everything, also the contents of all files, so that whether it is
valid can be seen from its own bytes. When one is damaged, the one before with all its lines leads up
to the same moment.
"""

from __future__ import annotations

import base64
import json
import os
import re
from typing import Any, NamedTuple

from longboat.planting import planted
from longboat.session.logs import Lines
from longboat.session.values import CHECKS, Json, Refused, compact, digest
from longboat.workers.store import replace_file

FORMAT = 1
FIELDS = (
    "format",
    "number",
    "session_id",
    "timestamp",
    "elapsed_s",
    "trigger",
    "status",
    "reason",
    "phase",
    "agent_states",
    "working_memory",
    "file_system_state",
    "test_results",
    "metrics",
    "git_commit",
    "tasks",
    "votes",
    "errors",
    "counts",
    "validation",
    "previous",
    "restored_from",
)
_HEADER = (
    "format",
    "number",
    "session_id",
    "timestamp",
    "elapsed_s",
    "trigger",
    "validation",
    "previous",
    "restored_from",
)
"""What belongs to one checkpoint and not to the state that it keeps."""
_NAME = re.compile(r"([0-9]{6})\.json\Z")


class Invalid(Exception):
    """Something that cannot be restored; the text says why."""


class Unreadable(Invalid):
    """What the system did not let us read: nobody knows whether it is damaged."""


class Chain(NamedTuple):
    """A checkpoint with all lines of it that are good."""

    payload: Json
    deltas: int
    lines: int
    why: str = ""
    """Why the chain ends before its last line."""
    tip: str = ""
    """The digest of its last good part."""
    phase: str = ""
    """In which phase the checkpoint itself was made; its lines may be of later ones."""
    digest: str = ""
    """The digest of the checkpoint itself."""


class Found(NamedTuple):
    """The last valid checkpoint, and what was found damaged on the way to it."""

    chain: Chain
    fell_back: list[Json]


def left_out(number: int, chain: Chain) -> list[Json]:
    """What of a checkpoint cannot be used: its lines from the first bad one on."""
    why = {"checkpoint": number, "delta": chain.deltas + 1, "why": chain.why}
    return [why] if chain.why else []


def _unread(what: str, error: OSError) -> Invalid:
    """A file that is away, or none, is damage; every other error tells nothing of what is in it."""
    damage = isinstance(error, FileNotFoundError | IsADirectoryError)
    kind = Invalid if damage or planted("session-unreadable-is-damaged") else Unreadable
    return kind(f"{what} cannot be read: {error}")


def envelope(payload: Json) -> bytes:
    """A payload with its digest, as one line."""
    data = compact(payload)
    return b'{"sha256":"' + digest(data).encode() + b'","payload":' + data + b"}\n"


def opened(line: bytes, what: str) -> tuple[Json, str]:
    """The payload of an envelope and its digest; refused when they do not agree."""
    try:
        data = json.loads(line)
        payload, said = data["payload"], data["sha256"]
    except (ValueError, TypeError, KeyError) as error:
        raise Invalid(f"{what} is no checkpoint: {error!r}"[:200]) from None
    if not isinstance(payload, dict) or not isinstance(said, str):
        raise Invalid(f"{what} is no checkpoint")
    if digest(compact(payload)) != said and not planted("session-digest-ignored"):
        raise Invalid(f"{what}: the digest does not agree")
    return payload, said


def file_entry(data: bytes) -> Json:
    """One file of the project as a checkpoint keeps it."""
    entry: Json = {"sha256": digest(data), "size": len(data)}
    try:
        entry["text"] = data.decode()
    except UnicodeDecodeError:
        entry["base64"] = base64.b64encode(data).decode()
    return entry


def file_bytes(entry: Json) -> bytes:
    """The contents of a file again."""
    try:
        text = entry.get("text")
        data = base64.b64decode(entry["base64"]) if text is None else text.encode()
        good = digest(data) == entry["sha256"]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Invalid(f"a file of it cannot be read: {error!r}") from None
    if not good:
        raise Invalid("a file of it does not agree with its digest")
    return data


def problems(payload: Json) -> list[str]:
    """Everything that a checkpoint lacks, by the list that it must pass."""
    missing = [name for name in FIELDS if name not in payload]
    if missing:
        return [f"it lacks {', '.join(missing)}"]
    checks = payload["validation"] if isinstance(payload["validation"], dict) else {}
    return [f"{name} does not hold" for name in CHECKS if checks.get(name) is not True]


def changes(old: Json, new: Json) -> Json:
    """What a delta line must say to make `new` of `old`."""
    plain = [key for key in new if key not in _HEADER]
    if planted("session-tests-not-in-lines"):
        plain.remove("test_results")
    special = ("file_system_state", "tasks", "agent_states")
    before = {one["name"]: one for one in old["agent_states"]}
    return {
        "set": {key: new[key] for key in plain if key not in special and old[key] != new[key]},
        "files": _entries(old["file_system_state"], new["file_system_state"]),
        "tasks": _entries(old["tasks"], new["tasks"]),
        "agents": _entries(before, {one["name"]: one for one in new["agent_states"]}),
    }


def _entries(old: Json, new: Json) -> Json:
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    return {**changed, **dict.fromkeys(set(old) - set(new))}


def applied(payload: Json, delta: Json) -> Json:
    """A checkpoint with one line of changes."""
    agents = {one["name"]: one for one in payload["agent_states"]}
    return {
        **payload,
        **delta["set"],
        "elapsed_s": delta["elapsed_s"],
        "timestamp": delta["timestamp"],
        "file_system_state": _merged(payload["file_system_state"], delta["files"]),
        "tasks": _merged(payload["tasks"], delta["tasks"]),
        "agent_states": list(_merged(agents, delta["agents"]).values()),
    }


def _merged(old: Json, changed: Json) -> Json:
    return {key: value for key, value in {**old, **changed}.items() if value is not None}


class Checkpoints:
    """The checkpoints of one session."""

    def __init__(self, directory: str, session_id: str) -> None:
        self.directory = directory
        self._session_id = session_id
        self._deltas: Lines | None = None

    def path(self, number: int, ending: str = "json") -> str:
        """The file of a checkpoint, or of its deltas."""
        return os.path.join(self.directory, f"{number:06d}.{ending}")

    @property
    def next_number(self) -> int:
        """The number of the checkpoint that comes next: so many were taken, however few are kept."""
        return max(self.numbers(), default=-1) + 1

    def numbers(self) -> list[int]:
        """All that are there, good or bad, in order."""
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return []
        found = sorted(int(match[1]) for name in names if (match := _NAME.match(name)))
        if planted("session-newest-by-time"):
            found.sort(key=lambda number: os.stat(self.path(number)).st_mtime)
        return found

    # --- writing ------------------------------------------------------------------------------------

    def write(self, payload: Json) -> str:
        """A new checkpoint, on the disk when this returns; its digest."""
        data = envelope(payload)
        path = self.path(payload["number"])
        if planted("session-checkpoint-in-place"):
            with open(path, "wb") as file:
                file.write(data)
        else:
            replace_file(path, data, sync=not planted("session-checkpoint-unsynced"))
        self.close()
        return digest(compact(payload))

    def append(self, payload: Json) -> str:
        """One line behind the newest checkpoint, on the disk when this returns; its digest."""
        path = self.path(payload["base"], "delta.jsonl")
        if self._deltas is None or self._deltas.path != path:
            self.close()
            self._deltas = Lines(path)
        self._deltas.append(envelope(payload), sync=not planted("session-delta-unsynced"))
        return digest(compact(payload))

    def close(self) -> None:
        """No more lines behind this checkpoint."""
        if self._deltas is not None:
            self._deltas.close()
            self._deltas = None

    def remove(self, number: int) -> None:
        """Forget an old one."""
        for ending in ("json", "delta.jsonl"):
            try:
                os.unlink(self.path(number, ending))
            except FileNotFoundError:
                continue

    # --- reading ------------------------------------------------------------------------------------

    def read(self, number: int) -> Chain:
        """A checkpoint with its good lines; raises Invalid."""
        what = f"checkpoint {number}"
        try:
            with open(self.path(number), "rb") as file:
                data = file.read()
        except OSError as error:
            raise _unread(what, error) from None
        payload, said = opened(data, what)
        self._check(payload, number, problems(payload))
        return self._with_deltas(payload, said)

    def _check(self, payload: Json, number: int, wrong: list[str]) -> None:
        if not wrong and payload["session_id"] != self._session_id:
            wrong = [f"it is one of session {payload['session_id']}"]
        if not wrong and (payload["number"] != number or payload["format"] != FORMAT):
            wrong = ["its number or format is another one"]
        if wrong:
            raise Invalid(f"checkpoint {number}: {'; '.join(wrong)}")
        for entry in payload["file_system_state"].values():
            file_bytes(entry)

    def _with_deltas(self, payload: Json, tip: str) -> Chain:
        number, phase, base = payload["number"], payload["phase"]["name"], tip
        lines, unfinished = self._lines(number)
        count = 0
        for line in lines:
            what = f"delta {count + 1} of checkpoint {number}"
            try:
                delta, said = opened(line, what)
                self._check_delta(delta, number, count + 1, tip)
                payload = applied(payload, delta)
            except (Invalid, KeyError, TypeError, AttributeError) as error:
                return Chain(payload, count, len(lines), str(error), tip, phase, base)
            count, tip = count + 1, said
        why = f"delta {count + 1} of checkpoint {number}: unfinished line" if unfinished else ""
        return Chain(payload, count, len(lines), why, tip, phase, base)

    def _check_delta(self, delta: Json, number: int, count: int, tip: str) -> None:
        due = (self._session_id, number, count, tip)
        said = tuple(delta.get(key) for key in ("session_id", "base", "delta", "previous"))
        if said != due:
            raise Invalid(f"delta {count} of checkpoint {number} belongs somewhere else")
        for entry in delta["files"].values():
            if entry is not None:
                file_bytes(entry)

    def _lines(self, number: int) -> tuple[list[bytes], bool]:
        try:
            with open(self.path(number, "delta.jsonl"), "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return [], False
        except OSError as error:
            raise _unread(f"deltas of checkpoint {number}", error) from None
        whole, newline, rest = data.rpartition(b"\n")
        return (whole.split(b"\n") if newline else []), bool(rest)

    def last_valid(self) -> Found | None:
        """The newest that can be restored, with its good lines; None: there is none at all.

        Refused when one cannot be read: to go back behind it would cost what it holds.
        """
        fell_back: list[Json] = []
        for number in reversed(self.numbers()):
            try:
                chain = self.read(number)
            except Unreadable as error:
                raise Refused("system", f"The system refused: {error}") from None
            except Invalid as error:
                fell_back.append({"checkpoint": number, "why": str(error)})
                continue
            return Found(chain, [*fell_back, *left_out(number, chain)])
        return Found(Chain({}, 0, 0), fell_back) if fell_back else None

    def survey(self) -> list[Json]:
        """Every checkpoint in one line each."""
        rows: list[Json] = []
        for number in self.numbers():
            try:
                chain = self.read(number)
            except Invalid as error:
                valid = planted("session-verify-trusts")
                row: dict[str, Any] = {"checkpoint": number, "valid": valid, "why": str(error)}
                if valid:
                    row["why"] = ""
                row |= dict.fromkeys(("trigger", "phase", "timestamp"))
                rows.append({**row, "deltas": 0, "deltas_valid": 0})
                continue
            base = chain.payload
            rows.append(
                {
                    "checkpoint": number,
                    "valid": True,
                    "why": chain.why,
                    "trigger": base["trigger"],
                    "phase": chain.phase,
                    "timestamp": base["timestamp"],
                    "deltas": chain.lines,
                    "deltas_valid": chain.deltas,
                }
            )
        return rows
