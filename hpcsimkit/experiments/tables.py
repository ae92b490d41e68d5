"""Tables of texts, printed as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Table(NamedTuple):
    """Table, printed as Markdown: the first column is left-aligned, the others are right-aligned.

    Examples
    --------
    >>> print(Table(["policy", "wait"], [["fcfs", "12"]]))
    | policy | wait |
    |---|---:|
    | fcfs | 12 |
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, str]]) -> Table:
        """Return the table of rows with the same cells by heading.

        >>> Table.of([{"policy": "fcfs", "wait": "12"}, {"policy": "sjf", "wait": "9"}]).rows
        [['fcfs', '12'], ['sjf', '9']]
        """
        return cls(list(rows[0]) if rows else [], [list(row.values()) for row in rows])

    def __str__(self) -> str:
        first, *lines = (
            " | ".join(cell.replace("|", "\\|") for cell in row) for row in (self.headings, *self.rows)
        )
        rule = "|".join(["---", *["---:"] * (len(self.headings) - 1)])
        return "\n".join([f"| {first} |", f"|{rule}|", *(f"| {line} |" for line in lines)])
