"""Checkpoints as values: whether one is valid, what it holds, and which state a recovery has to bring back.

Read from the files themselves: the program's own word on its checkpoints is held against this.
"""

from __future__ import annotations

import ast
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mutiny.contracts.session.criteria import contradicted
from mutiny.foreign import parse

FIELDS = (
    *("timestamp", "session_id", "phase", "agent_states", "working_memory", "file_system_state"),
    *("test_results", "metrics", "git_commit"),
)
"""What the plan says that a checkpoint holds."""
CHECKLIST = (
    *("git_clean", "files_saved", "tests_compile", "nothing_uncommitted", "agents_serialized"),
    *("memory_complete", "metrics_logged", "no_active_tools", "votes_resolved", "errors_empty"),
)
METRICS = (
    *("elapsed_seconds", "estimated_remaining", "total_tokens_consumed", "tokens_per_minute"),
    *("tasks_completed", "tasks_remaining", "test_pass_rate", "lines_of_code", "test_coverage"),
    *("files_modified", "agent_utilization", "consensus_votes_cast", "memory_usage_mb"),
    *("checkpoint_count", "errors_encountered"),
)
"""All fields of the plan's metrics."""
TORN = "the last line is torn"
"""Why a chain of deltas may end after a crash."""


def digest_of(value: object, key: bytes | None = None) -> str:
    """The digest of a payload: of its JSON without blanks, keys in order; with a key, an HMAC."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    data = text.encode("utf-8", "surrogatepass")
    if key is not None:
        return hmac.new(key, data, hashlib.sha256).hexdigest()
    return hashlib.sha256(data).hexdigest()


def opened(text: str, key: bytes | None = None) -> tuple[Mapping[str, Any], str] | str:
    """The payload of an envelope and its digest; a text says why it is not valid."""
    try:
        envelope = parse(text)
    except ValueError as error:
        return f"it is no JSON: {error}"
    if not isinstance(envelope, dict) or not isinstance(envelope.get("payload"), dict):
        return "there is no payload in it"
    stated = envelope.get("sha256")
    if stated != digest_of(envelope["payload"], key):
        return "its digest is not that of its payload"
    return envelope["payload"], str(stated)


@dataclass(frozen=True)
class State:
    """What a session is, at a checkpoint or at one of its deltas."""

    number: int
    deltas: int = 0
    elapsed_s: float = 0.0
    phase: int = 0
    tasks: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    memory: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, str] = field(default_factory=dict)
    """Agent -> digest of what it knows: its context and its trust."""
    votes: Mapping[str, str] = field(default_factory=dict)
    tests: tuple[int, int] | None = None
    """How many tests ran last, and how many of them did not pass; None: it does not say."""
    messages: tuple[str, ...] = ()
    """Digests of what was said to the model and by it, in order, where the session is one conversation."""

    def differences(self, other: State) -> list[str]:
        """In what another state is not this one."""
        found = [
            f"{name} is {getattr(other, name)}, not {getattr(self, name)}"
            for name in ("phase", "tests")
            if getattr(other, name) != getattr(self, name)
        ]
        for name in ("tasks", "files", "memory", "agents", "votes"):
            mine, yours = getattr(self, name), getattr(other, name)
            wrong = sorted(key for key in {*mine, *yours} if mine.get(key) != yours.get(key))
            if wrong:
                found.append(f"{name} differ: {', '.join(wrong[:4])}")
        return found


@dataclass(frozen=True)
class Point:
    """One checkpoint with its deltas."""

    number: int
    valid: bool
    why: str = ""
    digest: str = ""
    previous: str = ""
    timestamp: float = 0.0
    trigger: str = ""
    session: str = ""
    commit: str | None = None
    blobs: Mapping[str, str] = field(default_factory=dict)
    """Each file with git's own name of its content."""
    restored_from: int | None = None
    states: tuple[State, ...] = ()
    """At the checkpoint itself, then at each of its valid deltas."""
    delta_times: tuple[float, ...] = ()
    cut: str = ""
    """Why the chain of deltas ends before its last line; empty: it does not."""
    missing: tuple[str, ...] = ()
    """What it should hold, and does not."""
    unfit: tuple[str, ...] = ()
    """Points of the checklist that it does not pass, as a machine sees them."""
    tokens: int = 0
    tool_calls: int = 0
    coverage: float = 0.0
    failing: int = 0
    """Tests that do not pass."""
    against: Mapping[str, str] = field(default_factory=dict)
    """Criterion of a gate -> what the files say against it."""

    @property
    def state(self) -> State:
        """At the checkpoint itself."""
        return self.states[0]


def last_valid(points: Sequence[Point]) -> State | None:
    """The newest valid checkpoint with its valid deltas; None: there is none."""
    whole = [point for point in points if point.valid]
    return whole[-1].states[-1] if whole else None


def point_of(number: int, text: str, deltas: str) -> Point:
    """What two files say: a checkpoint, and the lines that were added to it."""
    found = opened(text)
    if isinstance(found, str):
        return Point(number, False, found)
    payload, digest = found
    if payload.get("number") != number:
        return Point(number, False, f"it says that it is number {payload.get('number')}")
    try:
        return _valid(number, payload, digest, deltas)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Point(number, False, f"its payload is not one of a session: {error!r}", digest)


def _valid(number: int, payload: Mapping[str, Any], digest: str, deltas: str) -> Point:
    metrics, tests = payload.get("metrics") or {}, payload.get("test_results") or {}
    return _with_deltas(
        Point(
            number,
            True,
            digest=digest,
            previous=str(payload.get("previous", "")),
            timestamp=float(payload.get("timestamp") or 0),
            trigger=str(payload.get("trigger", "")),
            session=str(payload.get("session_id", "")),
            commit=payload.get("git_commit"),
            blobs=dict(_blobs(payload)),
            restored_from=payload.get("restored_from"),
            states=(state_of(payload),),
            missing=tuple(_missing(payload)),
            unfit=tuple(_unfit(payload)),
            tokens=int(metrics.get("total_tokens_consumed") or 0),
            tool_calls=int(metrics.get("tool_calls") or 0),
            coverage=float(tests.get("coverage") or 0),
            failing=int(tests.get("failed") or 0) + int(tests.get("errors") or 0),
            against=contradicted(payload),
        ),
        payload,
        deltas,
    )


def _with_deltas(point: Point, payload: Mapping[str, Any], text: str) -> Point:
    """With the lines that continue it, up to the first that does not."""
    whole = dict(payload)
    states, times, previous, cut = list(point.states), [], point.digest, ""
    for place, line in enumerate(text.split("\n")[:-1], 1):
        found = opened(line)
        if isinstance(found, str):
            cut = f"line {place}: {found}"
            break
        delta, digest = found
        if (delta.get("base"), delta.get("delta")) != (point.number, place):
            cut = f"line {place} is delta {delta.get('delta')} of {delta.get('base')}"
            break
        if delta.get("previous") != previous:
            cut = f"line {place} does not follow the one before it"
            break
        whole = applied(whole, delta)
        states.append(replace(state_of(whole), number=point.number, deltas=place))
        times.append(float(delta.get("elapsed_s") or 0))
        previous = digest
    if not cut and text and not text.endswith("\n"):
        cut = TORN
    return replace(point, states=tuple(states), delta_times=tuple(times), cut=cut)


def applied(payload: Mapping[str, Any], delta: Mapping[str, Any]) -> dict[str, Any]:
    """A payload with one delta on top."""
    whole = {**payload, **(delta.get("set") or {}), "elapsed_s": delta.get("elapsed_s")}
    files = {**whole["file_system_state"], **(delta.get("files") or {})}
    whole["file_system_state"] = {name: one for name, one in files.items() if one is not None}
    whole["tasks"] = {**whole.get("tasks", {}), **(delta.get("tasks") or {})}
    agents = {agent["name"]: agent for agent in whole["agent_states"]}
    whole["agent_states"] = list({**agents, **(delta.get("agents") or {})}.values())
    return whole


def state_of(payload: Mapping[str, Any]) -> State:
    """What a payload says that the session is."""
    return State(
        number=int(payload["number"]),
        elapsed_s=float(payload["elapsed_s"]),
        phase=int(payload["phase"]["index"]),
        tasks={
            name: "waiting" if one["status"] == "working" else str(one["status"])
            for name, one in payload.get("tasks", {}).items()
        },
        files={name: str(one["sha256"]) for name, one in payload["file_system_state"].items()},
        memory={
            name: digest_of(text) for name, text in (payload.get("working_memory") or {}).items()
        },
        agents={
            str(one["name"]): digest_of([one.get("context"), one.get("trust"), one.get("role")])
            for one in payload["agent_states"]
        },
        votes={
            name: f"{one.get('status')} {one.get('option')}"
            for name, one in payload.get("votes", {}).items()
            if one.get("status") != "open"  # it begins anew, whatever was kept of it
        },
        tests=_tests(payload.get("test_results") or {}),
    )


def _tests(results: Mapping[str, Any]) -> tuple[int, int] | None:
    """What a payload says of the tests that were run last."""
    total = results.get("total")
    wrong = [results.get("failed") or 0, results.get("errors") or 0]
    return (total, sum(map(int, wrong))) if isinstance(total, int) else None


def _blobs(payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, one in payload["file_system_state"].items():
        data = str(one.get("text", "")).encode("utf-8", "surrogateescape")
        yield name, hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _missing(payload: Mapping[str, Any]) -> list[str]:
    """What the plan says that a checkpoint holds, and that is not in it."""
    found = [name for name in FIELDS if name not in payload]
    metrics = payload.get("metrics")
    if isinstance(metrics, Mapping):
        found += [f"metrics.{name}" for name in METRICS if name not in metrics]
    for name, one in (payload.get("file_system_state") or {}).items():
        text = one.get("text")
        if not isinstance(text, str):
            found.append(f"the content of {name}")
        elif hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest() != one["sha256"]:
            found.append(f"the content of {name}: it is another one than its hash")
    found += [
        f"agent_states of {one.get('name')}: {key}"
        for one in payload.get("agent_states") or ()
        for key in ("role", "status", "trust", "context")
        if key not in one
    ]
    return found


def _unfit(payload: Mapping[str, Any]) -> list[str]:
    """The points of the checklist that a payload alone can tell."""
    said = payload.get("validation") or {}
    found = [f"{name} is not stated" for name in CHECKLIST if said.get(name) is not True]
    open_votes = [
        name for name, one in payload.get("votes", {}).items() if one.get("status") == "open"
    ]
    if open_votes:
        found.append(f"votes_resolved: {', '.join(open_votes)} is open")
    if payload.get("errors"):
        found.append("errors_empty: there are errors in it")
    for name, one in (payload.get("file_system_state") or {}).items():
        if name.endswith(".py") and isinstance(one.get("text"), str):
            try:
                ast.parse(one["text"])
            except (SyntaxError, ValueError) as error:
                found.append(f"tests_compile: {name}: {error}")
    return found
