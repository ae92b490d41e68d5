"""Classes of commands: they reject repeated options, and group their help texts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption

from hpcsimkit.cli.groups import COMMANDS, OPTIONS, grouped
from hpcsimkit.errors import UsageError


class Command(TyperCommand):
    """Command that rejects an option given twice; the parser alone would silently take the last value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of a command line; an option of one value that is given twice is an error."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        options = Counter(option for option in given if isinstance(option, TyperOption))
        for option, count in options.items():
            if count > 1 and not (option.multiple or option.is_flag or option.count):
                raise UsageError(f"{max(option.opts, key=len)} is given {count} times; it takes one value")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options by group."""
        parameters = [(each, each.get_help_record(ctx)) for each in self.get_params(ctx)]
        shown = [(each, record) for each, record in parameters if record is not None]
        arguments = [record for each, record in shown if each.param_type_name == "argument"]
        options = [(each.name or "", record) for each, record in shown if each.param_type_name == "option"]
        tables = [("Arguments", arguments)] if arguments else []
        for title, records in [*tables, *grouped(options, OPTIONS, "Options")]:
            with formatter.section(title):
                formatter.write_dl(records)


class Group(TyperGroup):
    """Program with its commands by group."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each command, by group."""
        named = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        shown = [(name, command) for name, command in named if command is not None and not command.hidden]
        limit = formatter.width - 6 - max(len(name) for name, _ in shown)
        lines = [(name, (name, command.get_short_help_str(limit))) for name, command in shown]
        for title, records in grouped(lines, COMMANDS, "Commands"):
            with formatter.section(title):
                formatter.write_dl(records)
