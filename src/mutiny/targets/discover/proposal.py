"""A target file from what was seen of a program: what is sure is said, the rest is a comment; pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any, get_type_hints

from mutiny.kit.descriptor import TargetForm
from mutiny.targets.discover.program import Found, Look, Source, Tried
from mutiny.targets.discover.records import fields_of
from mutiny.targets.kit.files import Vocabulary
from mutiny.targets.kit.hints import SAMPLES, Hint, OwnLines

SHOWN_FILES = 8
_REFUSING = re.compile(r"(?i)not found|no such|unknown|does not exist|error")
_PATH = re.compile(r"(?:/[\w.@+-]+){2,}")


def hints_of(vocabulary: Vocabulary) -> Mapping[str, Hint]:
    """What the contract says of its commands; without that they are looked for by their own names."""
    known = {name: Hint((name, name.replace("_", "-"))) for name in vocabulary.commands}
    return {**known, **vocabulary.hints} if not vocabulary.hints else vocabulary.hints


def proposed(form: type[TargetForm], found: Found, file: str) -> str:
    """The text of a target file."""
    vocabulary: Vocabulary = form.vocabulary
    own: OwnLines = vocabulary.own_lines.load()(found) if vocabulary.own_lines else OwnLines()
    name = re.sub(r"[^a-z0-9-]+", "-", PurePath(found.program).stem.lower()).strip("-") or "mine"
    lines = [
        f"# {name}, as `mutiny target init --from` saw it; what was seen stands beside it.",
        f"# Check it with: mutiny target check {file} --bin {found.program}",
        "format = 1",
        f"name = {_text(name)}",
        f"contract = {_text(vocabulary.contract)}",
        f"about = {_text(found.about[:100] or name)}",
        f"program = {_text(PurePath(found.program).name)}",
        *own.head,
        "",
        *_commands(vocabulary, found, own),
        "",
        *_state(form, found, own),
        *_rejections(found),
        *own.tail,
    ]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _commands(vocabulary: Vocabulary, found: Found, own: OwnLines) -> Iterator[str]:
    listed = ", ".join(" ".join(words) for words in found.commands)
    yield f"# Its help lists: {listed or 'no commands'}"
    yield "[commands]"
    for verb, words in found.verbs.items():
        argv = ", ".join(_text(own.words.get(word, word)) for word in ("{program}", *words))
        told = f", answer = '{own.answers[verb]}'" if verb in own.answers else ""
        yield f"{verb} = {{ argv = [{argv}]{told} }}{_how_it_went(found.tried.get(verb))}"
    lacking = [verb for verb in vocabulary.commands if verb not in found.verbs]
    needed = [verb for verb in vocabulary.required if verb in lacking]
    if needed:
        yield f"# You have to say: {', '.join(needed)}"
    if lacking:
        yield f"# Not found, and not asked for: {', '.join(lacking)}"


def _how_it_went(tried: Tried | None) -> str:
    if tried is None:
        return ""
    said = " ".join(tried.said.split())[:90]
    return "  # tried: it went well" if tried.succeeded else f"  # tried: it failed: {said}"


def _state(form: type[TargetForm], found: Found, own: OwnLines) -> Iterator[str]:
    made = found.made
    for what, names in (
        ("files", sorted(made.files, key=lambda one: (one.count("/"), one))),
        ("tmux sessions", sorted(made.sessions)),
        ("worktrees", sorted(made.worktrees)),
        ("branches", sorted(made.branches)),
    ):
        if names:
            more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
            yield f"# It made {what}: {', '.join(names[:SHOWN_FILES])}{more}"
    yield "[state]"
    if found.source is not None:
        yield from _by_source(found.source, found.made, named=bool(own.state))
        yield from own.state or _fields(form, found, found.source.place.record)
        return
    trees = [one for one in sorted(made.worktrees) if one.endswith(SAMPLES["worker"])]
    yield "# Nothing that it wrote shows the record: say where, see docs/targets.md"
    if trees:
        yield "worktrees = '/(?P<name>[^/]+)$'"
    yield 'directory = "{home}"' if trees else 'file = "{home}/where/state.json"'
    yield ""


def _directory(made: Look) -> str:
    """Where most of what it made lies: below the home or the repository, one step deep."""
    places = Counter("/".join(name.split("/")[:2]) for name in made.files if name.count("/") > 1)
    place = places.most_common(1)[0][0] if places else "home"
    first, _, rest = place.partition("/")
    return f"{{{first}}}/{rest}" if rest else f"{{{first}}}"


def _by_source(source: Source, made: Look, *, named: bool) -> Iterator[str]:
    """`named`: which field names a record is said by its fields."""
    place = source.place
    if source.word == "command":
        words = ", ".join(_text(word) for word in ("{program}", *source.value.split()))
        yield f"command = [{words}]"
        yield f"directory = {_text(_directory(made))}"
    else:
        yield f"{source.word} = {_text(source.value)}"
    if source.word == "sqlite":
        yield f"query = {_text(f'select * from {source.table}')}"
    elif place.path or source.word == "file":
        yield f"list = {_text(place.path or '.')}"
    if place.key and not named:
        yield f"key = {_text(place.key)}"
    shown = {key: str(value)[:60] for key, value in place.record.items()}
    yield f"# A record: {json.dumps(shown, ensure_ascii=False)}"
    yield from () if named else ("",)


def _fields(form: type[TargetForm], found: Found, record: Mapping[str, Any]) -> Iterator[str]:
    wanted = _wanted(form)
    facts = {
        "session": found.made.sessions,
        "worktree": found.made.worktrees,
        "branch": found.made.branches,
    }
    named = fields_of(record, wanted, facts)
    if named:
        yield "[state.fields]"
        yield from (f"{field} = {_text(key)}" for field, key in named.items())
        yield ""


def _wanted(form: type[TargetForm]) -> dict[str, str]:
    """The fields of a record that the contract knows, with their usual names."""
    state = get_type_hints(form)["state"]
    kind = get_type_hints(state).get("fields")
    if kind is None or not is_dataclass(kind):
        return {}
    return {
        item.name: item.default
        for item in fields(kind)
        if isinstance(item.default, str) and item.default
    }


def _rejections(found: Found) -> Iterator[str]:
    if not found.refusals:
        return
    yield "[rejections]"
    for name, (said, subject) in found.refusals.items():
        yield f"{name} = [{_text(pattern_of(said, subject))}]"
    yield ""


def pattern_of(said: str, subject: str) -> str:
    """A regular expression of a refusal: its line about the subject, for any subject and any path."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip(" │") for line in said.splitlines()]
    chosen: Sequence[str] = (
        [line for line in lines if subject in line]
        or [line for line in lines if _REFUSING.search(line)]
        or [line for line in lines if line]
    )
    text = _PATH.sub("\0", chosen[0].replace(subject, "\0")) if chosen else ""
    return re.sub(r"(?:\\?\0)+", ".*", re.escape(text)).replace("\\ ", " ").replace("\\-", "-")
