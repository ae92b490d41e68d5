"""Reports from Jinja2 templates in Markdown."""

from __future__ import annotations

import re
import traceback
from functools import cache
from pathlib import Path
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.console import grouped
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.kernel.guard import message_of
from hpcsimkit.reports.learning_curve import at_the_end, first_and_best, thrown_away
from hpcsimkit.reproductions.cells import comparison_cells, number, per_cent, spread_cell, standings_table

if TYPE_CHECKING:
    from jinja2 import Environment

METHODS = (
    *("PaperFindings.of", "PaperFindings.published_table", "PaperFindings.table", "PaperFindings.tabulated"),
    *("Quantities.against", "Quantities.at", "Quantities.below", "Quantities.best_of"),
    *("Quantities.cell", "Quantities.effect", "Quantities.has", "Quantities.interval"),
    *("Quantities.matching", "Quantities.mean", "Quantities.promises", "Quantities.published"),
    *("Quantities.rank", "Quantities.same_digits", "Quantities.spread", "Quantities.verdicts"),
    "Quantities.worst",
    *("Comparison.families", "Comparison.family_of"),
    *("Logs.lines", "PaperLog.line", "UnmodifiedLog.line"),
    *("PublishedTable.number", "PublishedTable.of"),
)
"""Methods of the reproductions that templates of a folder and expressions may call; none of them writes."""

PLAIN = (str, int, float, list, tuple, dict, set, frozenset)
"""Types all of whose methods it may call; the sandbox refuses those that change the object."""


@cache
def environment() -> Environment:
    """Return the templates of this package."""
    from jinja2 import Environment

    return _with_filters(Environment)


@cache
def sandbox() -> Environment:
    """Return the environment of templates from folders: they read values, and call listed functions only."""
    from jinja2.exceptions import SecurityError
    from jinja2.runtime import Macro
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Sandbox(ImmutableSandboxedEnvironment):
        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            return not isinstance(obj, ModuleType) and super().is_safe_attribute(obj, attr, value)

        def is_safe_callable(self, obj: Any) -> bool:
            known = isinstance(obj, Macro) or any(obj is each for each in self.globals.values())
            if not (super().is_safe_callable(obj) and (known or _is_harmless(obj))):
                name = getattr(obj, "__qualname__", type(obj).__name__)
                raise SecurityError(f"the template of a folder may not call {name}")
            return True

    return _with_filters(Sandbox)


def _is_harmless(function: Any) -> bool:
    """Return whether a function is a method of plain data, of Jinja's own objects, or one of `METHODS`."""
    of = getattr(getattr(function, "__wrapped__", function), "__self__", None)  # the sandbox wraps str.format
    if isinstance(function, MethodType) and function.__module__.startswith("hpcsimkit.reproductions."):
        return function.__qualname__ in METHODS
    return isinstance(of, PLAIN) or type(of).__module__.startswith("jinja2.")


def _with_filters(kind: type[Environment]) -> Environment:
    """Return an environment with filters for numbers and the table of standings."""
    from jinja2 import PackageLoader, StrictUndefined

    found = kind(
        loader=PackageLoader("hpcsimkit", "reproductions"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {"number": number, "grouped": grouped, "spread": spread_cell}
    for function in (comparison_cells, per_cent, standings_table, at_the_end, first_and_best, thrown_away):
        found.globals[function.__name__] = function
    return found


def rendered(template: str | Path, **values: Any) -> str:
    """Return the text of a template with values in it.

    It is the name of a template of this package, such as ``"dras/report.md.jinja"``, or the path of a file,
    which is rendered in a sandbox. Messages on a file name the line.
    """
    if isinstance(template, Path):
        return tidied(_of_file(template, values))
    return tidied(environment().get_template(template).render(values))


def _of_file(file: Path, values: dict[str, Any]) -> str:
    from jinja2 import TemplateSyntaxError

    source, name = read_bytes(file, Format.TEMPLATE), f"<{file}>"
    try:
        code = sandbox().compile(source.decode(), filename=name)
        return sandbox().template_class.from_code(sandbox(), code, sandbox().globals).render(values)
    except TemplateSyntaxError as error:
        raise UsageError(f"{file}:{error.lineno}: {error.message}") from None
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f"{frame.lineno}: " for frame in frames if frame.filename == name]
        raise UsageError(f"{file}:{''.join(lines[-1:]) or ' '}{message_of(error)}") from None


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
