"""Command class that rejects repeated options."""

from __future__ import annotations

from collections import Counter
from typing import Any

from typer.core import TyperCommand, TyperOption

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
