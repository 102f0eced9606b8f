"""Make the JSON Schemas of what Mutiny writes and prints from the types of their forms.

python tools/make_schemas.py           write src/mutiny/schemas/*.schema.json anew
python tools/make_schemas.py --check   only say which of them differ
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Mapping
from inspect import cleandoc
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from mutiny.cli.forms import OUTPUTS, Envelope
from mutiny.contracts.catalogue import own
from mutiny.model import forms

FOLDER = Path(__file__).parents[1] / "src" / "mutiny" / "schemas"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
FORMAT = 1
PLAIN: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
SUCCESS_EXITS_WITH_0: dict[str, Any] = {
    "if": {"properties": {"verdict": {"const": "success"}}},
    "then": {"properties": {"error": {"type": "null"}, "exit_code": {"const": 0}}},
    "else": {"properties": {"exit_code": {"enum": [1, 3, 4]}}},
}


class Maker:
    """Turns types into schemas; records (`TypedDict`) are defined once, under their names."""

    def __init__(self) -> None:
        self.defined: dict[str, Any] = {}

    def make(self, kind: Any) -> dict[str, Any]:
        """The schema of a type."""
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._annotated(arguments[0], arguments[1:])
        if kind in PLAIN:
            return {"type": PLAIN[kind]}
        if kind in (object, Any):
            return {}
        if origin is Literal:
            return {"const": arguments[0]} if len(arguments) == 1 else {"enum": [*arguments]}
        if origin in (Union, types.UnionType):
            return self._union(arguments)
        if origin is list:
            return {"type": "array", "items": self.make(arguments[0])}
        if origin is dict:
            return self._table(*arguments)
        if is_typeddict(kind):
            return self._reference(kind)
        raise TypeError(f"no schema for {kind!r}")

    def record(self, kind: Any, *, closed: bool = True) -> dict[str, Any]:
        """A record with its fields; nothing else may be in it when it is `closed`."""
        hints = get_type_hints(kind, include_extras=True)
        about = cleandoc(kind.__doc__ or "").replace("\n", " ")
        made: dict[str, Any] = {"description": about} if about else {}
        made["type"] = "object"
        if closed:
            made["additionalProperties"] = False
        made["required"] = [
            name
            for name, hint in hints.items()
            if name in kind.__required_keys__ and get_origin(hint) is not NotRequired
        ]
        made["properties"] = {name: self.make(_bare(hint)) for name, hint in hints.items()}
        return made

    def _annotated(self, kind: Any, notes: tuple[Any, ...]) -> dict[str, Any]:
        said: dict[str, Any] = {}
        for note in notes:
            if note.state:
                return {"$ref": self._state()}
            said |= note.said
        made = self.make(kind)
        if "enum" in said or "const" in said:
            made.pop("type", None)  # the values say it
        return {**made, **said}

    def _union(self, options: tuple[Any, ...]) -> dict[str, Any]:
        rest = [self.make(option) for option in options if option is not type(None)]
        nullable = type(None) in options
        if not nullable and all(set(one) == {"type"} for one in rest):
            return {"type": [one["type"] for one in rest]}
        if nullable and len(rest) == 1:
            only = rest[0]
            if isinstance(only.get("type"), str) and only["type"] != "object":
                return {**only, "type": [only["type"], "null"]}
            if "enum" in only or "const" in only:
                return {"enum": [*only.get("enum", [only.get("const")]), None]}
        return {
            "oneOf" if nullable else "anyOf": [*([{"type": "null"}] if nullable else []), *rest]
        }

    def _table(self, key: Any, value: Any) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "object"}
        if key is not str:
            made["propertyNames"] = self.make(key)
        if value not in (object, Any):
            made["additionalProperties"] = self.make(value)
        return made

    def _reference(self, kind: Any) -> dict[str, Any]:
        name = kind.__name__
        if name not in self.defined:
            self.defined[name] = {}  # it may hold others of its own kind
            self.defined[name] = self.record(kind)
        return {"$ref": f"#/$defs/{name}"}

    def _state(self) -> str:
        """An object; whoever has the first field of a contract's form has all that it requires."""
        if "State" not in self.defined:
            choices = []
            self.defined["State"] = {}
            for contract in own().values():
                if contract.state_form is not None:
                    kind: Any = contract.state_form.load()
                    first = next(iter(kind.__annotations__))
                    self.defined[kind.__name__] = self.record(kind)
                    then = {"$ref": f"#/$defs/{kind.__name__}"}
                    choices.append({"if": {"required": [first]}, "then": then})
            about = "What was seen of the target; empty before the first box stands."
            self.defined["State"] = {"description": about, "type": "object", "allOf": choices}
        return "#/$defs/State"


def _bare(hint: Any) -> Any:
    """A field's type without the word that it may be missing."""
    return get_args(hint)[0] if get_origin(hint) is NotRequired else hint


def of_file(name: str, title: str, kind: Any, **more: Any) -> dict[str, Any]:
    """The schema of a file."""
    maker = Maker()
    body = maker.record(kind) if is_typeddict(kind) else maker.make(kind)
    return _headed(name, title, {**body, **more}, maker.defined)


def of_output() -> dict[str, Any]:
    """The schema of what `--json` prints: the same fields for every verb, then the verb's own."""
    maker = Maker()
    body = maker.record(Envelope, closed=False)
    body["properties"]["verb"]["enum"] = ["", *OUTPUTS]
    body["allOf"] = []
    for verb, kind in OUTPUTS.items():
        fields = maker.record(kind, closed=False)
        answered = {"if": {"properties": {"error": {"type": "null"}}}}
        then = {
            "properties": fields["properties"],
            **answered,
            "then": {"required": fields["required"]},
        }
        body["allOf"].append({"if": {"properties": {"verb": {"const": verb}}}, "then": then})
    body["unevaluatedProperties"] = False
    return _headed("output", "What --json prints", body, maker.defined)


def _headed(
    name: str, title: str, body: Mapping[str, Any], defined: Mapping[str, Any]
) -> dict[str, Any]:
    head = {"$schema": DRAFT, "$id": f"urn:mutiny:schema:{name}:{FORMAT}", "title": title}
    return {**head, **body, **({"$defs": dict(sorted(defined.items()))} if defined else {})}


def schemas() -> dict[str, dict[str, Any]]:
    """All of them, by name."""
    replay = "minimal_replay.json, and the form in which a user may write a scenario"
    return {
        "journal-line": of_file("journal-line", "One line of operations.jsonl", forms.JournalLine),
        "summary": of_file("summary", "summary.json", forms.SummaryForm, **SUCCESS_EXITS_WITH_0),
        "plan": of_file("plan", "plan.json", forms.PlanForm),
        "replay": of_file("replay", replay, forms.ReplayFile),
        "output": of_output(),
    }


def main(words: list[str]) -> int:
    """Write what differs, or only name it."""
    different = 0
    for name, made in schemas().items():
        path = FOLDER / f"{name}.schema.json"
        text = json.dumps(made, indent=2) + "\n"
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        different += 1
        print(f"{path.name} differs from its types")
        if "--check" not in words:
            path.write_text(text, encoding="utf-8")
    return 1 if different and "--check" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
