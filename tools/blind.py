"""`make blind`: what of all that a target says and shows does no rule look at?

A scenario is run on the healthy target. At every step each part of the answer, and each part of what was
seen, is changed in memory (a number, a word, a yes; a list without its last entry), and the same rules
judge again. A part whose every change passes is one that nobody looks at: a bug there would not be found.
Not every such part is a hole: some cannot be known from outside. But each is worth a sentence.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

from mutiny.modes.bench import Assignment, Bench
from mutiny.targets.registry import find_target

Path_ = tuple[str, ...]
ENDS = 2
"""So many entries of a list are changed: its first and its last."""
ODD = "x"
READ = ("answer", "listed", "workers", "daemon_running", "named")
"""What drivers have read in an answer."""
PRINTED = "said"


@dataclass
class Watched:
    """How often a part was changed, and how often that was noticed."""

    changed: int = 0
    noticed: int = 0
    rules: set[str] = field(default_factory=set)
    example: str = ""
    words: set[str] = field(default_factory=set)
    """Values that were met here: a word that is known is a better lie than one that nobody knows."""


@dataclass(frozen=True)
class Part:
    """One part of a value, and the value without its truth."""

    path: Path_
    was: object
    lie: Callable[[set[str]], Any]


def parts(value: Any, path: Path_ = ()) -> Iterator[Part]:
    """Every part of a value with something else in its place."""
    if value is None or isinstance(value, bool | int | float | str):
        yield Part(path, value, lambda words: other(value, words))
        return
    if isinstance(value, list | tuple | frozenset) and value:
        less = shorter(value)
        yield Part((*path, "(last)"), f"{len(value)} entries", lambda _words: less)
    for name, inner, put in children(value):
        for part in parts(inner, (*path, name)):
            yield inside(part, put)


def shorter(value: Any) -> Any:
    """A collection without its last entry."""
    if isinstance(value, frozenset):
        return value - {max(value, key=repr)}
    return type(value)(value[:-1])


def children(value: Any) -> Iterator[tuple[str, Any, Callable[[Any], Any]]]:
    """The parts of a value with their names, and how another one is put in the place of each."""
    if isinstance(value, Mapping):
        for key in value:
            yield named(key), value[key], partial(_with_key, value, key)
    elif isinstance(value, list | tuple):
        for at in sorted({*range(min(ENDS, len(value))), len(value) - 1} - {-1}):
            yield "[]", value[at], partial(_with_entry, value, at)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for one in (one for one in dataclasses.fields(value) if one.init):
            yield one.name, getattr(value, one.name), partial(_with_field, value, one.name)


def _with_key(value: Mapping[str, Any], key: str, new: Any) -> Any:
    return {**value, key: new}


def _with_entry(value: Any, at: int, new: Any) -> Any:
    return type(value)((*value[:at], new, *value[at + 1 :]))


def _with_field(value: Any, name: str, new: Any) -> Any:
    return replace(value, **{name: new})


def inside(part: Part, put: Callable[[Any], Any]) -> Part:
    """The same part, seen from the value around it."""
    return Part(part.path, part.was, lambda words: put(part.lie(words)))


def named(key: object) -> str:
    """A key that is a name of the run's own (an id, a number, a path) is like any other of them."""
    word = str(key)
    known = word.replace("_", "").isalpha() and word.isascii()
    return word if known and word == word.lower() and len(word) > 2 else "{}"


def other(value: Any, words: set[str]) -> Any:
    """Something else of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 2 + 1
    if isinstance(value, str):
        return min(words - {value}, default=value + ODD)
    return ODD


def answered(result: Any) -> Any:
    """What a command said: its JSON, and what a driver has read."""
    details = {name: one for name, one in result.details.items() if name in READ}
    if "answer" in details:
        return details
    try:
        return {**details, PRINTED: json.loads(result.stdout)}
    except ValueError:
        return details


def saying(result: Any, said: Any) -> Any:
    """The same result, had the command said this."""
    details = {name: one for name, one in said.items() if name != PRINTED}
    changed = replace(result, details={**result.details, **details})
    return replace(changed, stdout=json.dumps(said[PRINTED])) if PRINTED in said else changed


class Doubt:
    """Asks the rules of a contract again, with one part of the truth changed."""

    def __init__(self, contract: Any, of: Sequence[str]) -> None:
        self.found: dict[tuple[str, Path_], Watched] = {}
        self._judge, self._check = contract.judge, contract.check
        self._of = of

    def judge(
        self, model: Any, operation: Any, result: Any, before: Any, seen: Any, now: float
    ) -> Any:
        """What the contract says, after it was asked about every lie."""
        told = self._judge(model, operation, result, before, seen, now)
        if "answers" in self._of and told.violation is None and result.succeeded:
            said = answered(result)
            for part in parts(said):
                watched = self._watched(operation.type, part)
                lie = part.lie(watched.words)
                told_so = saying(result, lie)
                again = self._asked(
                    partial(self._answered, model, operation, told_so, before, seen, now)
                )
                self._count(watched, part, again)
        return told

    def check(self, model: Any, operation: Any, succeeded: bool, before: Any, seen: Any) -> Any:
        """The same for what was seen."""
        told = self._check(model, operation, succeeded, before, seen)
        if "state" in self._of and not told.broken and not told.settling:
            for part in parts(seen):
                watched = self._watched("state", part)
                lie = part.lie(watched.words)
                again = self._asked(partial(self._seen, model, operation, succeeded, before, lie))
                self._count(watched, part, again)
        return told

    def _answered(self, *all_of_it: Any) -> set[str]:
        model, operation, result, before, seen, now = all_of_it
        told = self._judge(model, operation, result, before, seen, now)
        if told.violation is not None:
            return {told.violation.rule}
        return self._seen(told.model, operation, result.succeeded, before, seen)

    def _seen(self, *all_of_it: Any) -> set[str]:
        told = self._check(*all_of_it)
        return {one.rule for one in (*told.broken, *told.settling)} | {
            f"({rule})" for rule in told.unreadable
        }

    def _asked(self, ask: Callable[[], set[str]]) -> set[str]:
        try:
            return ask()
        except Exception as error:  # noqa: BLE001  a look of another shape is none that a target could give
            return {f"!{type(error).__name__}"}

    def _watched(self, place: str, part: Part) -> Watched:
        watched = self.found.setdefault((place, part.path), Watched())
        if isinstance(part.was, str) and len(watched.words) < 8:
            watched.words.add(part.was)
        return watched

    def _count(self, watched: Watched, part: Part, rules: set[str]) -> None:
        watched.changed += 1
        watched.noticed += bool(rules)
        watched.rules |= rules
        watched.example = watched.example or repr(part.was)[:40]


def main() -> int:
    """Print every part with who noticed it."""
    asked = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    asked.add_argument("--target", required=True)
    asked.add_argument("--of", choices=("answers", "state"), action="append")
    asked.add_argument("--all", action="store_true", help="print what was noticed, too")
    asked.add_argument("scenarios", nargs="*", help="names or patterns; none: all of them")
    chosen = asked.parse_args()
    target = find_target(chosen.target)
    contract = target.contract()
    doubt = Doubt(contract, chosen.of or ("answers", "state"))
    patched = type(contract)
    for name in ("judge", "check"):
        call = getattr(doubt, name)
        setattr(patched, name, lambda _self, *given, call=call, **more: call(*given, **more))
    with tempfile.TemporaryDirectory(prefix="mutiny-blind-") as scratch:
        for name, operations in contract.scenarios.items():
            if chosen.scenarios and not any(fnmatch(name, one) for one in chosen.scenarios):
                continue
            bench = Bench(target, Path(scratch) / "runs", None)
            outcome = bench.run(Assignment(operations, name, 1))
            print(f"{name}: {outcome.verdict}", file=sys.stderr, flush=True)
    blind = {key: one for key, one in doubt.found.items() if not one.noticed}
    for (place, path), one in sorted(doubt.found.items()):
        if chosen.all or not one.noticed:
            rules = ", ".join(sorted(one.rules)[:4])
            seen = f"{one.noticed:>4} of {one.changed:<5} {rules or one.example}"
            print(f"{place:<18} {'.'.join(path):<52.52} {seen}")
    print(f"{len(blind)} of {len(doubt.found)} parts are looked at by no rule")
    return 0


if __name__ == "__main__":
    sys.exit(main())
