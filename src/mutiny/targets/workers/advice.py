"""What the file of a workers target says of state, sessions and agents, held against what is there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from mutiny.contracts.workers import operations as op
from mutiny.kit import operations as common
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.probes import tmux
from mutiny.probes.records import at
from mutiny.probes.sources import json_file
from mutiny.targets.discover.records import fields_of, places_of
from mutiny.targets.kit.advice import Advice, about_command
from mutiny.targets.kit.naming import UNTOLD
from mutiny.targets.kit.waits import Finding, until_glanced

if TYPE_CHECKING:
    from mutiny.targets.workers.live import WorkersLive

_WORKTREES = ("git", "worktree", "list", "--porcelain")
_BRANCHES = ("git", "for-each-ref", "--format=%(refname:short)", "refs/heads")


def advice(live: WorkersLive, operation: Operation, result: OperationResult) -> Iterator[Advice]:
    """Everything that one step has shown."""
    yield from about_command(live.spec, operation, result)
    if isinstance(operation, op.Init | op.Up) and result.succeeded:
        yield from _about_list(live)
    if isinstance(operation, op.Add) and UNTOLD in result.stderr:
        yield _about_name(live, result.stderr.removeprefix(f"{UNTOLD} {operation.worker}: "))
    if isinstance(operation, op.Add) and result.succeeded:
        yield from _about_state(live, operation.worker)
        yield from _about_sessions(live, operation.worker)
    waits = isinstance(operation, op.WaitForIdle | op.WaitForPrompt | common.Settle)
    if waits and not result.succeeded:
        yield from _about_agents(live)


def _about_name(live: WorkersLive, answer: str) -> Advice:
    """The answer in which the program should have told the name that it gave."""
    said = f"commands.add.answer = {live.spec.commands['add'].answer!r}"
    return Advice(
        said, f"the answer {answer}", "change it, so that (?P<worker>...) is the name in it"
    )


def _about_state(live: WorkersLive, worker: str) -> Iterator[Advice]:
    """Is the new worker to be seen where the file says, with all that is said of it?"""
    state, reading = live.spec.state, live.observer.state()
    where = f"state.{state.source} = {getattr(state, state.source)!r}"
    view = reading.workers.get(worker)
    if view is None and (reading.error is not None or not reading.exists):
        wrong = reading.error or "no such file"
        others = list(_written(live, worker)) or ["I saw no JSON file that names it"]
        yield Advice(where, f"{wrong} after `add`", "; ".join(others))
        return
    if view is None:
        path = state.words.workers
        saw = f"no {worker!r} in {path or 'it'}"
        yield Advice(
            f"{where}, list = {path!r}", saw, "; ".join(_written(live, worker)) or "change list"
        )
        return
    yield from _about_fields(live, worker)


def _about_list(live: WorkersLive) -> Iterator[Advice]:
    """The file is there before anybody is in it: is the list where the target's file says?"""
    state, reading = live.spec.state, live.observer.state()
    if not reading.exists or reading.error is None or state.source != "file":
        return
    data = json_file(live.observer.state_path).data
    tables = [name for name, one in data.items() if isinstance(one, dict | list)] if data else []
    change = f"lists and tables in it: {', '.join(tables) or 'none'}"
    yield Advice(f"state.file with the list {state.words.workers!r}", reading.error, change)


def _written(live: WorkersLive, worker: str) -> Iterator[str]:
    """Files in which the worker stands, as a file would say it."""
    root = live.box.files
    for name in ("home", "source"):
        for path in (root / name).files():
            if not path.name.endswith(".json") or ".git" in path.parts:
                continue
            inside = "/".join(path.parts[len(root.parts) + 1 :])
            for place in places_of(json_file(path).data, frozenset({live.names.own(worker)})):
                listed = f", list = {place.path!r}" if place.path else ""
                key = f", key = {place.key!r}" if place.key else ""
                yield f"change it to file = '{{{name}}}/{inside}'{listed}{key}"


def _about_fields(live: WorkersLive, worker: str) -> Iterator[Advice]:
    """Fields of the record that the file calls otherwise than the target does."""
    state = live.spec.state
    if state.source != "file":
        return
    found = json_file(live.observer.state_path).data
    rows = at(found, state.words.workers) if state.words.workers else found
    record = rows.get(live.names.own(worker)) if isinstance(rows, dict) else None
    if not isinstance(record, dict):
        return
    wanted = {name: str(key) for name, key in asdict(state.fields).items() if key}
    trees = re.findall(r"(?m)^worktree (.*)$", _asked(live, _WORKTREES))
    facts = {
        "session": frozenset(_asked(live, tmux.listing(windows=live.spec.windows)).splitlines()),
        "worktree": frozenset(trees),
        "branch": frozenset(_asked(live, _BRANCHES).splitlines()),
    }
    for name, key in fields_of(record, wanted, facts).items():
        usual = wanted[name]
        fits = str(record.get(usual, "")) in facts.get(name, frozenset())
        known = usual in record or usual in state.known
        if not fits and (name in facts or not known) and usual not in state.known:
            saw = f"{key} = {json.dumps(record[key], ensure_ascii=False)} in its record"
            yield Advice(f"state.fields.{name} = {usual!r}", saw, f"change it to {name} = {key!r}")


def _about_sessions(live: WorkersLive, worker: str) -> Iterator[Advice]:
    """Which sessions there are; one that a daemon starts after the answer is waited for."""
    seen: list[str] = []

    def missing() -> Finding:
        answer = _answer(live, tmux.listing(windows=live.spec.windows))
        seen[:] = answer.stdout.splitlines()
        asked = answer.succeeded or tmux.SILENT.search(answer.stderr)
        return OperationResult() if seen or not asked else f"no tmux session after `add {worker}`"

    waited = until_glanced(live, live.spec.profile.limits.idle_s, missing)
    said = f"sessions = {live.spec.sessions!r}"
    if seen and not any(re.search(live.spec.sessions, one) for one in seen):
        yield Advice(
            said, f"the sessions {', '.join(seen)}", "change sessions, so that it fits them"
        )
    elif waited.timed_out:
        yield Advice(said, waited.stderr, "is `add` the command that makes one?")


def _about_agents(live: WorkersLive) -> Iterator[Advice]:
    if live.observer.received.refresh():
        return
    panes = live.evidence().panes
    shown = "; ".join(f"{name}: {' '.join(text.split())[-160:]}" for name, text in panes.items())
    saw = f"no agent that was started (sessions show: {shown or 'nothing'})"
    change = (
        "if a configuration says how agents are started, lay it into the box: "
        '[files] "{source}/.mine.yaml" = "agent: claude\\n"'
    )
    yield Advice("nothing about how agents are started", saw, change)


def _asked(live: WorkersLive, argv: tuple[str, ...]) -> str:
    return _answer(live, argv).stdout


def _answer(live: WorkersLive, argv: tuple[str, ...]) -> OperationResult:
    return live.run(live.spoken(argv, None), unharmed=True)
