"""A target file from what was seen of a program: what is sure is said, the rest is a comment; pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import PurePath
from typing import Any, get_type_hints

from mutiny.foreign import parse
from mutiny.kit.descriptor import TargetForm
from mutiny.targets.discover.program import Found, Look, Source, Tried
from mutiny.targets.discover.records import fields_of
from mutiny.targets.kit.files import Vocabulary
from mutiny.targets.kit.hints import OTHER, SAMPLES, Hint, OwnLines

SHOWN_FILES = 8
SHORTEST = 6
_SAMPLED = (*(one for one in dict.fromkeys(SAMPLES.values()) if " " not in one), OTHER)
_SAID = frozenset({"format", "name", "contract", "about", "program", "commands", "state"})
"""What a proposed file says in any case."""
_ASKS = re.compile(r"(?i)[\[(]y(?:es)?/no?[\])]")
"""How a program asks whether something is meant; many exit with 0 when nobody answers."""
_REFUSING = re.compile(r"(?i)not found|no such|unknown|does not exist|error")
_ID = re.compile(r"(?<![\w-])[A-Za-z]+-\d+(?![\w-])")
_PATH = re.compile(r"(?:/[\w.@+-]+){2,}")


def hints_of(vocabulary: Vocabulary) -> Mapping[str, Hint]:
    """What the contract says of its commands; without that they are looked for by their own names."""
    known = {name: Hint((name, name.replace("_", "-"))) for name in vocabulary.commands}
    return {**known, **vocabulary.hints} if not vocabulary.hints else vocabulary.hints


def skeleton(form: type[TargetForm], file: str) -> str:
    """A file to fill in by hand: what has to be said, in the words that such programs usually have."""
    vocabulary: Vocabulary = form.vocabulary
    hints = hints_of(vocabulary)
    verbs = {
        verb: (hints[verb].words[0], *(f"{{{one}}}" for one in hints[verb].says if one[0] != "="))
        for verb in vocabulary.required
    }
    told = f"# A target of the contract {vocabulary.contract}; docs/targets.md explains the keys."
    return proposed(form, Found("mine", "my orchestrator", {}, verbs), file, told)


def proposed(form: type[TargetForm], found: Found, file: str, told: str = "") -> str:
    """The text of a target file; `told`: where it comes from, unless the program was seen."""
    vocabulary: Vocabulary = form.vocabulary
    own: OwnLines = vocabulary.own_lines.load()(found) if vocabulary.own_lines else OwnLines()
    name = re.sub(r"[^a-z0-9-]+", "-", PurePath(found.program).stem.lower()).strip("-") or "mine"
    lines = [
        told or f"# {name}, as `mutiny target init --from` saw it; what was seen stands beside it.",
        f"# Check it with: mutiny target check {file} --bin {'PATH' if told else found.program}",
        "format = 1",
        f"name = {_text(name)}",
        f"contract = {_text(vocabulary.contract)}",
        f"about = {_text(found.about[:100] or name)}",
        f"program = {_text(PurePath(found.program).name)}",
        *own.head,
        *_environment(found),
        "",
        *_unsaid(form, vocabulary.contract, own),
        *_commands(vocabulary, found, own),
        "",
        *_state(form, found, own),
        *_rejections(found),
        *own.tail,
    ]
    return "\n".join(lines) + "\n"


def _unsaid(form: type[TargetForm], contract: str, own: OwnLines) -> Iterator[str]:
    """What every file of the contract has to say, and nobody can see from outside."""
    said = _SAID | {line.partition(" =")[0] for line in own.head}
    names = [
        item.name
        for item in fields(form)  # type: ignore[arg-type]
        if item.default is MISSING and item.default_factory is MISSING and item.name not in said
    ]
    if names:
        yield f"# You also have to say: {', '.join(names)} (docs/{contract}.md)"
        yield ""


def _environment(found: Found) -> Iterator[str]:
    if found.environment:
        pairs = ", ".join(f"{name} = {_text(value)}" for name, value in found.environment.items())
        yield f"environment = {{ {pairs} }}  # it asked for this"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _commands(vocabulary: Vocabulary, found: Found, own: OwnLines) -> Iterator[str]:
    listed = ", ".join(" ".join(words) for words in found.commands)
    if listed or not found.verbs:
        yield f"# Its help lists: {listed or 'no commands'}"
    yield "[commands]"
    for verb, words in found.verbs.items():
        argv = ", ".join(_text(own.words.get(word, word)) for word in ("{program}", *words))
        told = f", answer = '{own.answers[verb]}'" if verb in own.answers else ""
        needless = "# " if _needless(verb, vocabulary, found) else ""
        went = _how_it_went(found.tried.get(verb))
        yield f"{needless}{verb} = {{ argv = [{argv}]{told} }}{went}"
    lacking = [verb for verb in vocabulary.commands if verb not in found.verbs]
    needed = [verb for verb in vocabulary.required if verb in lacking]
    if needed:
        yield f"# You have to say: {', '.join(needed)}"
    if lacking:
        yield f"# Not found, and not asked for: {', '.join(lacking)}"


def _needless(verb: str, vocabulary: Vocabulary, found: Found) -> bool:
    """It failed, and what nobody can do without went well all the same."""
    needed = [one for name, one in found.tried.items() if name in vocabulary.required]
    failed = verb in found.tried and not found.tried[verb].succeeded
    return failed and bool(needed) and all(one.succeeded for one in needed)


def _how_it_went(tried: Tried | None) -> str:
    if tried is None:
        return ""
    if _ASKS.search(f"{tried.said}\n{tried.answer}"):
        return '  # tried: it asks; say what it is told: stdin = "y\\n"'
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
        yield f"worktrees = '{_above(trees[0])}/(?P<name>[^/]+)$'"
    yield 'directory = "{home}"' if trees else 'file = "{home}/where/state.json"'
    yield ""
    yield from _known(made) if trees else ()


def _above(tree: str) -> str:
    """The place of a worktree within the home or the repository, so that no other is taken for one."""
    below = re.sub(r"^.*?/(?=(?:home|source|tmp)/)", "", tree)
    place = below.partition("/")[2] if "/" in below else below
    above = place.rpartition("/")[0]
    return f"/{re.escape(above)}".replace("\\-", "-") if above else ""


def _known(made: Look) -> Iterator[str]:
    """What follows from a worker's name, where no record says it."""
    facts = {"session": made.sessions, "branch": made.branches}
    name = SAMPLES["worker"]
    shown = {
        what: next((one for one in sorted(seen) if name in one), "") for what, seen in facts.items()
    }
    if any(shown.values()):
        yield "[state.known]"
        yield from (
            f"{what} = {_text(one.replace(name, '{worker}'))}" for what, one in shown.items() if one
        )
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
    for name, all_said in found.refusals.items():
        patterns = dict.fromkeys(pattern_of(said, subject) for said, subject in all_said)
        yield f"{name} = [{', '.join(_text(one) for one in patterns if one)}]"
    yield ""


def pattern_of(said: str, subject: str) -> str:
    """A regular expression of a refusal: its line about the subject, for any subject, id and path."""
    names = "|".join(re.escape(one) for one in (subject, *_shortened(subject), *_SAMPLED))
    mine = re.compile(rf"(?<![A-Za-z0-9])(?:{names})(?![A-Za-z0-9])")
    bare = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip(" │") for line in said.splitlines()]
    lines = [_message(line) for line in bare]
    chosen: Sequence[str] = (
        [line for line in lines if mine.search(line)]
        or [line for line in lines if _REFUSING.search(line)]
        or [line for line in lines if line]
    )
    if chosen and re.fullmatch(r"\w{1,8}", chosen[0]):
        return f"(?m)^{chosen[0]}$"  # a word that other answers may have, too
    text = _PATH.sub("\0", _ID.sub("\0", mine.sub("\0", chosen[0]))) if chosen else ""
    return re.sub(r"(?:\\?\0)+", ".*", re.escape(text)).replace("\\ ", " ").replace("\\-", "-")


def _shortened(subject: str) -> list[str]:
    """How a long id may be said: only its beginning."""
    return [subject[:end] for end in range(len(subject) - 1, SHORTEST - 1, -1)]


def _message(line: str) -> str:
    """What an answer in JSON says to people: its message; any other line as it is."""
    try:
        data = parse(line)
    except ValueError:
        return line
    while isinstance(data, Mapping):
        data = next((data[key] for key in ("error", "message", "detail") if data.get(key)), None)
    return data if isinstance(data, str) else line
