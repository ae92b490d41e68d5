"""Reports from Jinja2 templates in Markdown."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.experiments.console import grouped
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.reproductions.cells import comparison_cells, number, per_cent, spread_cell, standings_table

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["rendered", "tidied"]


@cache
def environment() -> Environment:
    """Return the templates of this package, with filters for numbers and the table of standings."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("hpcsimkit", "reproductions"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {"number": number, "grouped": grouped, "spread": spread_cell}
    for function in (comparison_cells, per_cent, standings_table):
        found.globals[function.__name__] = function
    return found


def rendered(template: str | Path, **values: Any) -> str:
    """Return the text of a template, such as ``"dras/report.md.jinja"`` or a file, with values in it."""
    if isinstance(template, Path):
        return tidied(
            environment().from_string(read_bytes(template, Format.TEMPLATE).decode()).render(values)
        )
    return tidied(environment().get_template(template).render(values))


def tidied(text: str) -> str:
    """Return Markdown with a line for each paragraph and list item, and a blank line between blocks.

    A line that begins with a punctuation mark is joined without a space.

    >>> print(tidied("# A\\n\\n\\n\\nMore\\nwords\\n.\\n\\n- one\\n  item\\n- another\\n"), end="")
    # A
    <BLANKLINE>
    More words.
    <BLANKLINE>
    - one item
    - another
    """
    blocks = [block.rstrip() for block in re.split(r"\n\s*\n", text.strip())]
    return "\n\n".join(each if each.startswith("```") else _joined(each) for each in blocks) + "\n"


def _joined(block: str) -> str:
    return re.sub(r"\s*\n\s*(?!- |\||\s)", " ", re.sub(r"\s*\n\s*(?=[.,;:])", "", block))
