"""The kinds of values that options take: ranges, and names that a shell can complete."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mutiny.errors import nearest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Choice(click.Choice[str]):
    """One of some words; for another one the nearest is suggested."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(words)
        self.words = words

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        return super().get_invalid_choice_message(value, ctx) + nearest(str(value), self.words)


class NumberRange(click.FloatRange):
    """A number between two others; `nan`, which click lets through, lies between none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


class Name(click.ParamType[str]):
    """A name that `mutiny.cli.completion` knows, or a file: any text is taken, a shell is offered names."""

    name = "text"

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from mutiny.cli.completion import offered

        return offered(self.kind, ctx.params, incomplete)


class Numbers(click.ParamType[tuple[int, ...]]):
    """Whole numbers with commas between them."""

    name = "numbers"

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(int(word) for word in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is no list of numbers like 100,1000", param, ctx)
        if not all(self.least <= number <= self.most for number in numbers):
            self.fail(f"each number must be between {self.least} and {self.most}", param, ctx)
        return numbers


COUNT = click.IntRange(1, 1_000_000)
"""How many of something: none of it is never what was meant."""
JOBS = click.IntRange(1, 256)
"""How much goes side by side."""
SEED = click.IntRange(0, 2**63 - 1)
SECONDS = NumberRange(0.001, 31_536_000.0)
"""At most a year."""
MINUTES = NumberRange(0.001, 525_600.0)

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
PATH = click.Path(path_type=Path)
ISOLATION = Choice(["bwrap", "unshare", "cgroup", "subreaper"])

TARGET = Name("targets")
PLANT = Name("plants")
SCENARIO = Name("scenarios")
EXPERIMENT = Name("experiments")
RULE = Name("rules")
CONTRACT = Name("contracts")
