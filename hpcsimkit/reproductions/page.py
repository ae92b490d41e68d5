"""Pages in plain Markdown: headings, paragraphs, tables and figures."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Page"]


class Page:
    """Page in Markdown, written from top to bottom.

    Examples
    --------
    >>> page = Page("Results")
    >>> page.text("All of it.")
    >>> page.table(["policy", "wait"], [["fcfs", "12"]])
    >>> print(page)
    # Results
    <BLANKLINE>
    All of it.
    <BLANKLINE>
    | policy | wait |
    |---|---:|
    | fcfs | 12 |
    <BLANKLINE>
    """

    def __init__(self, title: str) -> None:
        self._blocks = [f"# {title}"]

    def heading(self, words: str) -> None:
        """Begin a section."""
        self._blocks.append(f"## {words}")

    def text(self, *paragraphs: str) -> None:
        """Write paragraphs."""
        self._blocks.extend(paragraphs)

    def items(self, items: Sequence[str]) -> None:
        """Write a list."""
        self._blocks.append("\n".join(f"- {item}" for item in items))

    def code(self, *lines: str) -> None:
        """Write lines as a code block."""
        self._blocks.append("\n".join(["```", *lines, "```"]))

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table: the first column is left-aligned, the others are right-aligned."""
        rule = ["---", *["---:"] * (len(headings) - 1)]
        lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in (headings, *rows)]
        lines.insert(1, "|".join(rule))
        self._blocks.append("\n".join(f"|{line}|" if line == lines[1] else f"| {line} |" for line in lines))

    def picture(self, file: str, words: str) -> None:
        """Show a figure from a file beside the page."""
        self._blocks.append(f"![{words}]({file})")

    def __str__(self) -> str:
        return "\n\n".join(self._blocks) + "\n"
