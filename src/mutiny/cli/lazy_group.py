"""A click group whose commands are modules, each imported when it is called or asked for its help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click


class LazyCommand(NamedTuple):
    """A command that is not loaded yet: the module that has it as `command`, and its line of help."""

    module: str
    about: str


class LazyGroup(click.Group):
    """Knows its commands by name, module and one line of help; some have a second name."""

    def __init__(
        self,
        *args: Any,
        lazy: Mapping[str, LazyCommand],
        aliases: Mapping[str, str],
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.lazy = lazy
        self.aliases = aliases

    def load(self, name: str) -> click.Command | None:
        """A command by either of its names."""
        name = self.aliases.get(name, name)
        if name not in self.lazy:
            return None
        command = import_module(self.lazy[name].module).command
        assert isinstance(command, click.Command)
        return command

    def walk(self) -> Iterator[tuple[tuple[str, ...], click.Command]]:
        """Every command and group with the words that call it; loads them all."""
        for name in self.lazy:
            command = self.load(name)
            assert command is not None
            yield (name,), command
            if isinstance(command, click.Group):
                yield from (((name, inner), one) for inner, one in command.commands.items())

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.load(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = [*self.lazy, *self.aliases]
        if args[0] not in known and not args[0].startswith("-"):
            raise click.exceptions.NoSuchCommand(args[0], possibilities=known, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.about) for name, command in self.lazy.items()])
