"""A group of commands with one that needs no name: `mira eval RUN` beside `mira eval grounding`."""

from __future__ import annotations

from typing import Any, ClassVar

from typer.core import TyperGroup


class GroupWithDefault(TyperGroup):
    """Words that name no command of the group are those of its default command, `--help` included."""

    default_command: ClassVar[str] = "of-runs"
    """A name that no file has, so that every path is an argument of the default command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args if named else [self.default_command, *args])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return "" if name == self.default_command else name, command, rest  # help shows no name for it
