"""Row filter that selects the usable jobs of a table and counts skipped rows by reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.columns import AMOUNT_LIMIT, TIME_LIMIT, Column
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import has_fraction
from hpcsimkit.workloads.readers.records import MENDED
from hpcsimkit.workloads.readers.swf import NO_ESTIMATE
from hpcsimkit.workloads.readers.tables import (
    Cells,
    EncodedCells,
    Parser,
    Table,
    labelled,
    numbered,
    parse,
    shown,
    some,
)

__all__ = ["FORMAT", "UNREAD", "USED", "Mask", "Sieve", "per_node"]

Mask = NDArray[np.bool_]

LINES_SHOWN = 3

FORMAT, USED, UNREAD = "Format", "Columns read", "Columns not read"
"""Keys of the header of a workload for the format and the columns of its log."""

PARTITION_LIMIT = "no estimate: time limit of the partition taken"


class Sieve:
    """Row filter of a table, which counts excluded rows by reason or, if strict, reports them as errors.

    Parameters
    ----------
    table : Table
        The table; malformed rows are counted immediately.
    strict : bool
        Whether :meth:`workload` raises an error for the first line of the file that was excluded.
    """

    def __init__(self, table: Table, strict: bool) -> None:
        if not table.malformed:
            table.check_well_formed()
        self.table = table
        self.strict = strict
        self.kept = np.ones(len(table), dtype=bool)
        self.skipped: dict[str, int] = {}
        self._notes: list[tuple[str, Mask]] = []
        self._problems: list[tuple[int, str]] = []
        if table.malformed:
            line, found = table.malformed[0]
            self.skipped[f"malformed line (first: line {line}: {found})"] = len(table.malformed)
            self._problems.append((line, f"{table.width} cells needed, found {found}"))
        if len(table.mended):
            self.note(MENDED, np.isin(table.line, table.mended))
        if not len(table):
            self._check()

    def parse(self, name: str, parser: Parser, cells: Cells | None = None) -> Column:
        """Return the parsed cells of a column; exclude rows with cells that cannot be parsed.

        Parameters
        ----------
        name : str
            Name of the column.
        parser : callable
            Parser for the text of a cell.
        cells : sequence of str, optional
            Cells to parse, one per row; by default those of the column.

        Returns
        -------
        array of int64, shape (rows,)
            Parsed values, -1 for excluded rows.
        """
        cells = self.table.columns[name] if cells is None else cells
        left = np.flatnonzero(self.kept)
        here = cells if len(left) == len(cells) else some(cells, left)
        values = np.full(len(cells), UNKNOWN)
        values[left], wrong = parse(here, parser)
        if wrong:
            broken = left[np.fromiter((cell in wrong for cell in here), dtype=bool, count=len(here))]
            cell, line = cells[broken[0]], int(self.table.line[broken[0]])
            self._problems.append((line, f"{name}: {wrong[cell]}"))
            self.skipped[f"{name} not understood (first: line {line}: {shown(cell)})"] = len(broken)
            self.kept[broken] = False
        return values

    def refuse(self, row: int, name: str, cell: str, text: str) -> None:
        """Exclude a row whose cell of a column cannot be used; `text` says what is needed and found."""
        if not self.kept[row]:
            return
        line, begin = int(self.table.line[row]), f"{name} not understood"
        self._problems.append((line, f"{name}: {text}"))
        known = next((reason for reason in self.skipped if reason.startswith(begin)), None)
        reason = known or f"{begin} (first: line {line}: {shown(cell)})"
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        self.kept[row] = False

    def leave_out(self, broken: Mask, reason: str, needed: str = "", found: Any = None) -> None:
        """Exclude rows; with a `needed` text, strict readers report the first of them as an error.

        Parameters
        ----------
        broken : array of bool, shape (rows,)
            Mask of the rows; rows excluded earlier are not counted again.
        reason : str
            Reason for :attr:`Workload.skipped`.
        needed : str
            Description of the required value for the error message; if empty, the rows are no jobs and never
            an error.
        found : sequence
            Values found, one per row, for the error message.
        """
        broken = broken & self.kept
        if not broken.any():
            return
        lines = self.table.line[broken]
        if needed:
            value = found[int(np.argmax(broken))]
            text = shown(value) if isinstance(value, str) else str(value)
            self._problems.append((int(lines[0]), f"{needed} needed, found {text}"))
            where = ", ".join(map(str, lines[:LINES_SHOWN]))
            reason = f"{reason} (first: line{'s' * (len(lines) > 1)} {where})"
        self.skipped[reason] = len(lines)
        self.kept &= ~broken

    def note(self, text: str, rows: Mask, needed: str = "", found: Cells = ()) -> None:
        """Count the jobs among some rows in :attr:`Workload.notes`.

        With a `needed` text and the values `found`, one per row, strict readers report the first as an error.
        """
        self._notes.append((text, rows))
        wrong = rows & self.kept
        if needed and wrong.any():
            row = int(np.argmax(wrong))
            self._problems.append((int(self.table.line[row]), f"{needed} needed, found {shown(found[row])}"))

    def ids(self, name: str) -> tuple[Column, str, tuple[str, ...]]:
        """Return the result of :func:`numbered` for the cells of a column in the remaining rows."""
        return self.ids_of(self.table.columns[name])

    def ids_of(self, cells: Cells) -> tuple[Column, str, tuple[str, ...]]:
        """Return the result of :func:`numbered` for cells, one per row, in the remaining rows."""
        ids = np.full(len(cells), UNKNOWN)
        ids[self.kept], word, names = numbered(list(some(cells, np.flatnonzero(self.kept))))
        return ids, word, names

    def note_rounding(self, names: Iterable[str]) -> None:
        """Count the rows with times that are rounded to whole seconds."""
        columns = [self.table.columns[name] for name in names]
        parts = [parse(cells, has_fraction)[0] > 0 for cells in columns if _has_points(cells)]
        if parts:
            self.note("times rounded to whole seconds", np.logical_or.reduce(parts))

    def times(
        self, submit: Column, run: Column, limit: Column, default: Column | None = None
    ) -> dict[str, ArrayLike]:
        """Return the submit, run and requested times [s]; a `limit` or `default` of -1 or 0 is unknown.

        Rows without a submit time, without a run time, or with a time above `TIME_LIMIT` are excluded. If the
        limit is unknown, the requested time is the default, and if this is unknown the run time.
        """
        if default is not None:
            taken = (limit <= 0) & (default > 0)
            limit = np.where(taken, default, limit)
            self.note(PARTITION_LIMIT, taken)
        self.leave_out(submit < 0, "submit time unknown or negative", "a submit time of 0 s or more", submit)
        self.leave_out(run < 0, "run time unknown", "a run time of 0 s or more", run)
        longest = np.maximum.reduce([submit, run, limit])
        self.leave_out(longest > TIME_LIMIT, "time beyond 10^11 s", "times up to 10^11 s", longest)
        known = limit > 0
        requested = np.maximum(np.where(known, limit, run), 1)
        self.note(NO_ESTIMATE, ~known)
        self.note("run time 0", run == 0)
        self.note("run time longer than requested", known & (run > limit))
        return {"submit_time": submit, "run_time": run, "requested_time": requested}

    def amounts(self, columns: Mapping[str, Column]) -> None:
        """Exclude rows with requests that are negative, implausibly large, or all zero."""
        values = np.array(list(columns.values()))
        least, most = values.min(axis=0), values.max(axis=0)
        self.leave_out(least < 0, "negative amount", "amounts of 0 or more", least)
        self.leave_out(most > AMOUNT_LIMIT, "amount beyond 10^16", "amounts up to 10^16", most)
        asked = " or ".join(columns)
        self.leave_out(most == 0, "asks for nothing", f"an amount above 0 of {asked}", most)

    def labelled(self, cells: Cells, *, numbers: bool = True) -> tuple[Column, tuple[str, ...]]:
        """Return numbers for the names in a column, and the names, from the remaining rows only."""
        if isinstance(cells, EncodedCells):
            nothing = len(cells.distinct)
            codes = np.where(self.kept, cells.codes, nothing)
            return labelled(EncodedCells([*cells.distinct, ""], codes), numbers=numbers)
        here = [cell if kept else "" for cell, kept in zip(cells, self.kept.tolist(), strict=True)]
        return labelled(here, numbers=numbers)

    def used_before(self, names: Cells, what: str = "job name") -> None:
        """Count jobs with a name that an earlier row has; for strict readers they are an error."""
        if len(set(names)) == len(names):
            return
        numbers = labelled(names, numbers=False)[0]
        jobs = np.flatnonzero(self.kept)
        again = self.kept.copy()
        again[jobs[np.unique(numbers[jobs], return_index=True)[1]]] = False
        self.note(f"{what} used before", again)
        if again.any():
            row = int(np.argmax(again))
            text = f"a {what} of its own needed, found {shown(names[row])} again"
            self._problems.append((int(self.table.line[row]), text))

    def workload(self, columns: Mapping[str, ArrayLike], **rest: Any) -> Workload:
        """Return the workload of the remaining rows.

        Parameters
        ----------
        columns : mapping of str to array, shape (rows,)
            Columns for all rows of the table; columns with only -1 are dropped.
        **rest
            The ``resources, labels, header`` of the :class:`Workload`.

        Raises
        ------
        WorkloadError
            If no row remains; or, if strict, rows were excluded.
        """
        self._check()
        chosen = {name: np.asarray(values)[self.kept] for name, values in columns.items()}
        used = {name: values for name, values in chosen.items() if (values != UNKNOWN).any()}
        submit = used["submit_time"]
        notes = {text: int(np.count_nonzero(rows[self.kept])) for text, rows in self._notes}
        notes["out of order of submission"] = int(np.count_nonzero(np.diff(submit) < 0))
        labels = {name: names for name, names in rest.pop("labels", {}).items() if names and name in used}
        header = {USED: ", ".join(self.table.columns), **rest.pop("header", {})}
        if self.table.unread:
            header[UNREAD] = ", ".join(self.table.unread)
        step = f"read {self.table.file_name}: {len(submit)} jobs, {sum(self.skipped.values())} skipped"
        return Workload(
            used,
            name=self.table.log_name,
            skipped=self.skipped,
            notes={text: count for text, count in notes.items() if count},
            provenance=(step,),
            labels=labels,
            lines=self.table.line[self.kept],
            header=header,
            **rest,
        )

    def _check(self) -> None:
        if self.strict and self._problems:
            line, text = min(self._problems, key=lambda problem: problem[0])
            raise WorkloadError(f"{self.table.path}:{line}: {text}")
        if not self.kept.any():
            counts = ", ".join(f"{count} {reason}" for reason, count in self.skipped.items())
            raise WorkloadError(f"{self.table.path}: no usable job; skipped: {counts}")


def _has_points(cells: Cells) -> bool:
    return "." in "".join(cells.distinct if isinstance(cells, EncodedCells) else cells)


def per_node(total: Column, nodes: Column) -> Column:
    """Return the amount per node for a given total, rounded up.

    >>> per_node(np.array([10, 12]), np.array([4, 4])).tolist()
    [3, 3]
    """
    return -(-total // nodes)
